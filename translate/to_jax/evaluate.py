"""The value of an instruction that depends on literals alone."""

from __future__ import annotations

import jax
import numpy as np

from migraphx.argument import Argument, array_shape
from migraphx.dims import Dim
from migraphx.shape import Shape
from migraphx.types import from_dtype

from .device import exact_types, find_device
from .interpret import Cut, compute, fit_rank, run_instructions
from .registry import NeedsHost, NeedsValue

# These have no value by themselves: it differs at each run, or belongs to another instruction.
NO_VALUE = ("random_seed", "undefined", "rnn_last_hs_output", "rnn_last_cell_output")


def evaluate(ins) -> Argument | None:
    """The value of `ins`, or None if it depends on a parameter or on the run.

    Integer results stay NumPy throughout, so that folding shape arithmetic costs microseconds.
    """
    needed = constant_sources(ins)
    if needed is None:
        return None
    with exact_types(), jax.default_device(find_device("cpu")):
        env = {}
        run_instructions(needed, env)
        return to_argument(env[ins], ins.shape())


def constant_sources(ins) -> list | None:
    """What must be computed for `ins`, in order; None if a parameter or random number is read."""
    order, seen, stack = [], set(), [(ins, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        if node.is_param or node.op_.op_name in NO_VALUE:
            return None
        stack.append((node, True))
        sources = list(node.inputs_)
        for mod in node.mods:
            sources.extend(mod.captured())
        stack.extend((s, False) for s in sources)
    return order


def to_argument(value, shape: Shape) -> Argument:
    """A value as an argument; its shape is that of the value, rank 0 as lens {1}, strides {0}."""
    if isinstance(value, (tuple, list)):
        subs = shape.subs or (shape,) * len(value)
        return Argument.tuple_of(to_argument(v, s) for v, s in zip(value, subs, strict=True))
    array = np.asarray(value)
    kind = from_dtype(array.dtype)
    if shape.type() != kind and shape.type_size() == array.dtype.itemsize and not shape.subs:
        kind = shape.type()  # fp4x2 is stored as uint8
    return Argument.of(array, array_shape(array.shape, kind))


def is_symbolic(attribute) -> bool:
    """True if an attribute holds sizes that only a run knows, as that of a broadcast literal."""
    return isinstance(attribute, tuple) and any(
        isinstance(v, Dim) and v.is_symbolic() for v in attribute
    )


def fold(ins, values):
    """The value of one instruction from the NumPy values of its inputs, or None.

    Sizes may be symbolic (object arrays of `Dim`s); what cannot be computed with them gives None.
    """
    if ins.op_.op_name in NO_VALUE:
        return None
    symbolic = any(v.dtype == np.dtype(object) for v in values if hasattr(v, "dtype"))
    symbolic = symbolic or any(is_symbolic(getattr(ins.op_, k)) for k in ins.op_.kinds)
    try:
        with exact_types(), jax.default_device(find_device("cpu")):
            result = fit_rank(compute(ins, list(values), {}), ins.shape())
    except (NeedsHost, NeedsValue, Cut):
        return None
    except Exception:
        if symbolic:  # an operation that sizes do not have
            return None
        raise
    if isinstance(result, (tuple, list)):
        return tuple(map(np.asarray, result))
    return np.asarray(result)
