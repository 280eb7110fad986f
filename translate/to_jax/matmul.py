"""Lowering of matrix products."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from .numeric import BOOL, FLOAT32, is_float, is_small, is_tiny, saturate
from .registry import context, lower


def product(xp, a, b, out):
    """a @ b summed in the type `out`."""
    if xp is np:
        return np.matmul(a.astype(out), b.astype(out))
    return jnp.matmul(a, b, precision=context().precision, preferred_element_type=out)


@lower("dot")
def dot(op, xp, a, b):
    """Small floats are summed in float32; whole numbers in their type, where they wrap."""
    dtype = a.dtype
    if dtype == BOOL:
        return product(xp, a.astype(np.int32), b.astype(np.int32), np.int32) != 0
    if is_tiny(dtype):
        wide = FLOAT32 if is_float(dtype) else np.dtype(np.int32)
        return product(xp, a.astype(wide), b.astype(wide), wide).astype(dtype)
    if is_small(dtype):
        return product(xp, a, b, FLOAT32).astype(dtype)
    return product(xp, a, b, dtype)


@lower("dot::wide")
def dot_wide(op, xp, a, b):
    return product(xp, a, b, FLOAT32)


@lower("quant_dot", "ref::quant_dot")
def quant_dot(op, xp, a, b, *scales):
    """8-bit whole numbers are summed in int32, everything else in float32."""
    if scales:
        a, b = (x.astype(FLOAT32) * s.astype(FLOAT32) for x, s in zip((a, b), scales, strict=True))
        return product(xp, a, b, FLOAT32)
    if a.dtype.kind in "iu" and not is_tiny_int(a.dtype):
        return product(xp, a, b, np.dtype(np.int32))
    result = product(xp, a.astype(FLOAT32), b.astype(FLOAT32), FLOAT32)
    return saturate(xp, result, np.int32) if a.dtype == FLOAT32 else result


def is_tiny_int(dtype) -> bool:
    return is_tiny(dtype) and not is_float(dtype)
