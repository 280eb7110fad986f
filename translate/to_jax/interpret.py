"""Walks a module and computes each instruction with its lowering.

The same walk serves constant folding (NumPy in, NumPy out), tracing under `jax.jit`, and the host
between stages; only the values in the environment differ.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from migraphx.dims import Dim
from migraphx.errors import Error
from migraphx.graph import Instruction, Module
from migraphx.types import type_t

from .registry import LOWER, NeedsHost, NeedsValue, context, is_known

# A known value larger than this is computed by XLA instead: it would end up as a constant in the
# compiled function. Shape arithmetic is far below.
KNOWN_LIMIT = 1 << 14


class HostOnly:
    """Stands in a trace for a value that XLA cannot hold (texts): only host operators read it."""


class Cut(Exception):
    """Tracing stops before `ins`: `needs` must be known, or (if None) `ins` runs on the host.

    `value` is what was needed, as it is called where it was traced.
    """

    def __init__(self, ins: Instruction, needs: Instruction | None, value=None):
        super().__init__(f"cut before {ins!r}")
        self.ins, self.needs, self.value = ins, needs, value


def run_instructions(instructions, env: dict) -> None:
    """Computes instructions in order, reading and writing their values in `env`."""
    for ins in instructions:
        if ins not in env and ins.op_.op_name != "@return":
            env[ins] = step(ins, env)


def run_module(module: Module, env: dict) -> tuple:
    """Computes a module whose parameters and captured values are in `env`; gives its results."""
    run_instructions(module.instructions, env)
    return tuple(env[i] for i in module.returned())


def literal_value(ins: Instruction) -> np.ndarray:
    """The array of a literal: rank 0 where the graph says lens {1}, strides {0}."""
    array = ins.literal.numpy()
    return array.reshape(()) if ins.shape().is_rank0() else array


# More elements than any device holds; XLA ends the process where their number overflows.
MOST_ELEMENTS = 1 << 42


def _possible(value):
    """A result, refused where its size is absurd."""
    shape = getattr(value, "shape", ())
    if all(type(n) is int for n in shape) and math.prod(shape) > MOST_ELEMENTS:
        raise Error(f"a result of dims {list(shape)} has too many elements for any device")
    return value


# What NumPy and JAX raise for sizes and types that do not fit.
MISFITS = (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError)


def step(ins: Instruction, env: dict):
    """The value of one instruction."""
    name = ins.op_.op_name
    if name == "@literal":
        return literal_value(ins)
    if name == "@param":
        raise Error(f"program: the value of parameter {ins.op_.parameter!r} is missing")
    args = [env[i] for i in ins.inputs_]
    try:
        return fit_rank(_possible(compute(ins, args, env)), ins.shape())
    except (NeedsValue, Cut) as need:  # of this instruction, or of one in a module of it
        raise Cut(ins, source_of(need.value, ins, args, env), need.value) from None
    except NeedsHost:
        raise Cut(ins, None) from None
    except Exception as error:
        if getattr(error, "_noted", False):
            raise
        where = f" (from {', '.join(ins.debug)})" if ins.debug else ""
        place = f"while computing {name}{where} on {', '.join(map(_describe, args))}"
        if isinstance(error, MISFITS) and not isinstance(error, jax.errors.JAXTypeError):
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            refused = Error(f"{name}: {text} ({place})")
            refused._noted = True
            raise refused from error
        error.add_note(place)
        error._noted = True
        raise


def holds_host_only(value) -> bool:
    """True if some part of a value stands for data on the host."""
    if isinstance(value, (tuple, list)):
        return any(map(holds_host_only, value))
    return isinstance(value, HostOnly)


def source_of(value, ins: Instruction, args: list, env: dict) -> Instruction | None:
    """The instruction that `value` is the result of, if `ins` reads it directly or in a module."""
    if value is None:
        return None
    for source, arg in zip(ins.inputs_, args, strict=True):
        if arg is value:
            return source
    return next((source for source, other in env.items() if other is value), None)


def _describe(value) -> str:
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_describe, value))})"
    return f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else repr(value)


def compute(ins: Instruction, args: list, env: dict):
    """Calls the lowering of `ins` on the values of its inputs."""
    found = LOWER.get(ins.op_.op_name)
    if found is None:
        raise Error(f"{ins.op_.op_name}: this operator cannot be computed")
    if any(holds_host_only(a) for a in args):
        raise NeedsHost
    if found.each_run and not context().running:
        raise NeedsHost
    op = bind(ins.op_)
    extra = {"bodies": [Body(m, env) for m in ins.mods]} if found.bodies else {}
    if found.shape:
        extra["shape"] = ins.shape()
    all_known = all(map(is_known, args))
    if not all_known and any(map(_is_text, args, ins.inputs_)):
        raise NeedsHost
    if found.host:
        if not all_known:
            if any(_traced(a) for a in args):
                raise NeedsHost
            args = [_to_host(a) for a in args]
        return _as_arrays(found.function(op, np, *args, **extra))
    if found.numpy and all_known and _plain(args):
        with np.errstate(all="ignore"):
            result = _as_arrays(found.function(op, np, *args, **extra))
        if _size(result) <= KNOWN_LIMIT or not _can_trace(result):
            return result
    return found.function(op, jnp, *args, **extra)


class Body:
    """A module of an instruction as a function of the values of its parameters."""

    def __init__(self, module: Module, env: dict):
        self.module, self.env = module, env

    def __call__(self, *args) -> tuple:
        """The results for arguments given in the order of the module's parameters."""
        inner = dict(self.env)
        for param, value in zip(self.module.parameters(), args, strict=True):
            inner[param] = fit_rank(value, param.shape())
        return run_module(self.module, inner)


def bind(op):
    """The operator with symbolic sizes in its attributes replaced by their values."""
    changes = {}
    for key in op.kinds:
        value = getattr(op, key)
        if isinstance(value, tuple) and any(isinstance(v, Dim) and v.is_symbolic() for v in value):
            symbols = context().symbols
            changes[key] = tuple(
                v.expr.evaluate(symbols) if isinstance(v, Dim) and v.is_symbolic() else v
                for v in value
            )
    if not changes:
        return op
    import dataclasses

    return dataclasses.replace(op, **changes)


def fit_rank(value, shape):
    """A value of rank 0 exactly where the graph says lens {1}, strides {0}."""
    if shape.dims is None or not hasattr(value, "ndim"):
        return value
    if shape.is_rank0():
        return value.reshape(()) if value.ndim == 1 and value.shape[0] == 1 else value
    return value.reshape((1,)) if value.ndim == 0 and len(shape.dims) == 1 else value


def _is_text(x, source: Instruction) -> bool:
    """True for an array of strings (symbolic sizes are objects too)."""
    return getattr(x, "dtype", None) == np.dtype(object) and (
        source.shape().type() == type_t.string_type
    )


def _traced(x) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_traced, x))
    return isinstance(x, jax.core.Tracer)


def _to_host(x):
    if isinstance(x, (tuple, list)):
        return type(x)(map(_to_host, x))
    return np.asarray(x) if isinstance(x, jax.Array) else x


def _as_arrays(result):
    """NumPy scalars, which operations on rank-0 arrays give, become arrays again."""
    if isinstance(result, (tuple, list)):
        return type(result)(map(_as_arrays, result))
    return np.asarray(result) if isinstance(result, np.generic) else result


def _plain(args) -> bool:
    """True if NumPy computes these types by itself and reliably (not bf16, fp8, int4)."""
    flat = []
    for a in args:
        flat.extend(a if isinstance(a, (tuple, list)) else [a])
    return all(getattr(a, "dtype", np.dtype(np.int64)).isbuiltin != 2 for a in flat)


def _can_trace(result) -> bool:
    flat = result if isinstance(result, (tuple, list)) else [result]
    return all(getattr(a, "dtype", np.dtype(object)) != np.dtype(object) for a in flat)


def _size(result) -> int:
    if isinstance(result, (tuple, list)):
        return sum(map(_size, result))
    return getattr(result, "size", 0)
