"""A jitted piece of a module, and what it reads and gives."""

from __future__ import annotations

import math
from collections import OrderedDict

import jax
import numpy as np

from migraphx.graph import Module

from .function import all_modules
from .interpret import literal_value
from .registry import LOWER

MAX_STAGES = 512  # compiled stages kept per program, the longest unused go first


class Stage:
    """A jitted piece of a module, and how it goes on behind it."""

    __slots__ = ("children", "compiled", "inputs", "known", "last", "needs", "outputs", "places",
                 "stop", "weight_ins", "weights", "whole")  # fmt: skip

    def __init__(self, weight_ins, inputs, outputs, stop, needs, known=None, last=False):
        self.weight_ins, self.inputs, self.outputs = weight_ins, inputs, outputs
        self.stop, self.needs, self.known, self.last = stop, needs, known or {}, last
        self.compiled = self.places = self.weights = None
        self.whole = False
        self.children = OrderedDict()


def keep(children: OrderedDict, key, stage: Stage, limit: int = MAX_STAGES) -> Stage:
    """Remembers a stage, forgetting the oldest beyond the limit."""
    while len(children) >= limit:
        children.popitem(last=False)
    children[key] = stage
    return stage


def literals(part, env: dict) -> None:
    """Adds the literals that instructions read from before this stage or from outer modules."""
    for ins in part:
        for source in ins.inputs_:
            if source not in env and source.literal is not None:
                env[source] = literal_value(source)
        for module in ins.mods:
            for source in module.captured():
                if source not in env and source.literal is not None:
                    env[source] = literal_value(source)


def reads(instructions, module) -> set:
    """Everything that `instructions` or the results of the module read."""
    found = set(module.returned())
    for ins in instructions:
        found.update(ins.inputs_)
        for mod in ins.mods:
            found.update(mod.captured())
    return found


def used_inputs(part, module) -> set:
    """What a stage reads: inputs of its instructions, all inside their modules, and results."""
    found = reads(part, module)
    pending = [m for ins in part for m in ins.mods]
    while pending:
        mod = pending.pop()
        found.update(mod.instructions)
        pending.extend(m for ins in mod.instructions for m in ins.mods)
    return found | set(part)


def is_array(value) -> bool:
    """True for arrays that XLA can hold, also inside tuples and sequences."""
    if isinstance(value, (tuple, list)):
        return all(map(is_array, value))
    return hasattr(value, "dtype") and value.dtype != np.dtype(object)


def holds_tracer(value) -> bool:
    """True if some part of a value is not known while tracing."""
    if isinstance(value, (tuple, list)):
        return any(map(holds_tracer, value))
    return isinstance(value, (jax.core.Tracer, jax.Array))


def aval(value):
    """Shape and type of a value, for tracing."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(aval, value))
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def signature(env: dict) -> tuple:
    """What distinguishes the values of one call from another for tracing."""
    return tuple(signature_of(v) for v in env.values())


def signature_of(value):
    """Shape and type of a value, or what else tells it from others, for tracing."""
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, *map(signature_of, value))
    if hasattr(value, "dtype") and value.dtype == np.dtype(object):
        return ("object", value.shape)
    return (value.shape, value.dtype) if hasattr(value, "dtype") else repr(value)


def to_host(value):
    """A value with its arrays as NumPy arrays."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(to_host, value))
    return np.asarray(value) if isinstance(value, jax.Array) else value


def holds_elements(values) -> int:
    """Number of elements in values; infinite if NumPy does not compute their type by itself."""
    count = 0
    for value in values:
        if isinstance(value, (tuple, list)):
            count += holds_elements(value)
        elif hasattr(value, "dtype"):
            count += math.inf if value.dtype.isbuiltin == 2 else value.size
    return count


def computed_by_numpy(module: Module) -> bool:
    """True if NumPy can compute every operator of a module and of the modules inside."""
    for mod in all_modules(module):
        for ins in mod.instructions:
            found = LOWER.get(ins.op_.op_name)
            if found is not None and not (found.numpy or found.host or found.bodies):
                return False
            if ins.literal is not None and ins.literal.numpy().dtype.isbuiltin == 2:
                return False
    return True
