"""Lowering of operators that repeat elements along axes, or ask for sizes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from .registry import known_ints, lower
from .view import with_axes


def sizes(dims) -> tuple:
    """Plain ints from ints and fixed dimensions."""
    return tuple(int(getattr(d, "min", d)) for d in dims)


@lower("multibroadcast")
def multibroadcast(op, xp, x, *others):
    """To the attribute's dims, or by NumPy's rule to what all inputs have in common."""
    if others:
        return xp.broadcast_to(x, np.broadcast_shapes(x.shape, *(o.shape for o in others)))
    return xp.broadcast_to(x, sizes(op.out_dyn_dims or op.out_lens))


@lower("broadcast")
def broadcast(op, xp, x, like=None):
    out = sizes(op.out_dyn_dims or op.out_lens) if like is None else with_axes(like).shape
    x = with_axes(x)
    after = len(out) - op.axis - x.ndim
    return xp.broadcast_to(x.reshape((1,) * op.axis + x.shape + (1,) * after), out)


@lower("scalar")
def scalar(op, xp, x):
    return xp.broadcast_to(x.reshape(()), op.scalar_bcst_dims)


@lower("broadcast_for_dot")
def broadcast_for_dot(op, xp, x, other):
    batch = np.broadcast_shapes(x.shape[:-2], other.shape[:-2])
    return xp.broadcast_to(x, batch + x.shape[-2:])


@lower("broadcast_with_dims")
def broadcast_with_dims(op, xp, x, dims):
    """NumPy's rule between the input and the dims at run time."""
    target = np.broadcast_shapes(with_axes(x).shape, tuple(known_ints(dims)))
    return xp.broadcast_to(x, target)


@lower("dimensions_of")
def dimensions_of(op, xp, x):
    """Sizes are known while tracing."""
    return np.array(with_axes(x).shape[op.start : op.end], np.int64)


@lower("fill")
def fill(op, xp, value, out):
    return xp.broadcast_to(value.reshape(()), out.shape)


@lower("fixed_pad", shape=True)
def fixed_pad(op, xp, x, *, shape):
    grow = [(0, most - have) for have, most in zip(x.shape, shape.dims)]
    return jnp.pad(x, grow) if any(after for _, after in grow) else x
