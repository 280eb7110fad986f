"""Lowering of operators that take parts of tensors, join them, or add borders."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from migraphx.errors import Error
from migraphx.ops.base import PadMode
from migraphx.types import FLOATS, from_dtype, limits, type_t

from .registry import known_ints, lower
from .view import with_axes


@lower("slice")
def slice_(op, xp, x, *more):
    """Bounds from the attributes or, in the order starts, ends, axes, from the inputs."""
    x = with_axes(x)
    rest = iter(more)
    starts, ends, axes = (
        list(given) if given or not more else known_ints(next(rest))
        for given in (op.starts, op.ends, op.axes)
    )
    index = [slice(None)] * x.ndim
    for axis, start, end in zip(axes, starts, ends, strict=True):
        if not -x.ndim <= axis < x.ndim:
            raise Error(f"slice: axes: value out of range! {axis} for {x.ndim} dimensions")
        size = x.shape[axis]
        begin, stop = (min(max(b, -size), size) for b in (start, end))
        begin, stop = (b + size if b < 0 else b for b in (begin, stop))
        index[axis] = slice(begin, max(stop, begin))
    return x[tuple(index)]


@lower("step")
def step(op, xp, x):
    x = with_axes(x)
    index = [slice(None)] * x.ndim
    for axis, size in zip(op.axes, op.steps, strict=True):
        index[axis] = slice(None, None, size)
    return x[tuple(index)]


@lower("reverse")
def reverse(op, xp, x):
    return xp.flip(with_axes(x), tuple(op.axes))


@lower("concat")
def concat(op, xp, *xs):
    xs = [with_axes(x) for x in xs]
    return xs[0] if len(xs) == 1 else xp.concatenate(xs, op.axis)


@lower("pad", numpy=False)
def pad(op, xp, x):
    """Cuts where pads are negative, then adds the border."""
    x = with_axes(x)
    pads = list(zip(op.pads[: x.ndim], op.pads[x.ndim :], strict=True))
    if op.mode == PadMode.constant_pad:
        value = jnp.asarray(fill_value(op.value, x.dtype), x.dtype)
        return jax.lax.pad(x, value, [(before, after, 0) for before, after in pads])
    index = tuple(
        slice(max(-before, 0), size - max(-after, 0))
        for (before, after), size in zip(pads, x.shape, strict=True)
    )
    grow = [(max(before, 0), max(after, 0)) for before, after in pads]
    x = x[index]
    if any(size == 0 and sum(g) for size, g in zip(x.shape, grow, strict=True)):
        raise Error(f"pad: an axis without elements has nothing to repeat: {x.shape}")
    return jnp.pad(x, grow, mode="reflect" if op.mode == PadMode.reflect_pad else "edge")


def fill_value(value: float, dtype):
    """`value` in the range of a type; infinity stays where the type has one."""
    kind = from_dtype(np.dtype(dtype))
    if kind == type_t.bool_type:
        return bool(value)
    if kind in FLOATS and np.isinf(np.asarray(value).astype(dtype).astype(np.float64)):
        if np.isinf(value):
            return value
        low, high = limits(kind)
        return min(max(value, low), high)
    if kind in FLOATS:
        return value
    low, high = limits(kind)
    if np.isnan(value):
        return 0
    return int(min(max(value, low), high)) if np.isfinite(value) else (high if value > 0 else low)
