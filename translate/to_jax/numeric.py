"""Number rules shared by the lowerings: in which type to compute, and how to get back.

Half, bfloat16 and the smaller floats are computed in float32 and rounded once; whole numbers and
bools, where a function of real numbers is asked for, in float64 and cut back.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

OBJECT = np.dtype(object)  # sizes that may be symbolic, or strings
BOOL = np.dtype(bool)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)


def is_int(dtype) -> bool:
    """True for whole numbers of any width, not for bool."""
    dtype = np.dtype(dtype)
    return dtype.kind in "iu" or _extended(dtype, "int")


def is_float(dtype) -> bool:
    """True for floats of any width."""
    dtype = np.dtype(dtype)
    return dtype.kind == "f" or _extended(dtype, "float") or _extended(dtype, "bfloat")


def _extended(dtype: np.dtype, kind: str) -> bool:
    return dtype.isbuiltin == 2 and dtype.name.lstrip("u").startswith(kind)


def is_small(dtype) -> bool:
    """True for floats that are computed in float32."""
    return is_float(dtype) and np.dtype(dtype) not in (FLOAT32, FLOAT64)


def is_tiny(dtype) -> bool:
    """True for floats of 8 bits and less, and whole numbers of 4 and less."""
    dtype = np.dtype(dtype)
    return dtype.isbuiltin == 2 and dtype.itemsize == 1


def wide_type(dtype) -> np.dtype:
    """The type in which real-valued functions of `dtype` are computed."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c" or dtype in (FLOAT32, FLOAT64):
        return dtype
    return FLOAT32 if is_float(dtype) else FLOAT64


def in_floats(xp, function, *xs):
    """`function(*xs)` for a function of real numbers, in the type of `xs`."""
    dtype = xs[0].dtype
    wide = wide_type(dtype)
    if wide == dtype:
        return function(*xs)
    return narrow(xp, function(*(x.astype(wide) for x in xs)), dtype)


def in_numbers(xp, function, *xs):
    """`function(*xs)` for arithmetic, in the type of `xs`; whole numbers wrap.

    Bools count as 8-bit numbers and come back as "not zero"; types of 8 bits and less that XLA
    has no arithmetic for take a wider one.
    """
    dtype = xs[0].dtype
    if dtype == BOOL:
        return function(*(x.astype(np.int8) for x in xs)) != 0
    if is_tiny(dtype):
        wide = FLOAT32 if is_float(dtype) else np.int32
        return function(*(x.astype(wide) for x in xs)).astype(dtype)
    return function(*xs)


def narrow(xp, x, dtype):
    """`x`, a float, in `dtype`: rounded to a float, cut to a whole number, non-zero to bool."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return saturate(xp, x, np.int8) != 0
    return saturate(xp, x, dtype) if is_int(dtype) else x.astype(dtype)


def int_limits(dtype) -> tuple:
    """Lowest and highest whole number of a type."""
    info = ml_dtypes.iinfo(np.dtype(dtype))
    return int(info.min), int(info.max)


def saturate(xp, x, dtype):
    """A float as a whole number: cut, NaN as 0, what is out of range as the nearest limit."""
    dtype = np.dtype(dtype)
    if is_small(x.dtype):
        x = x.astype(FLOAT32)
    low, high = int_limits(dtype)
    over = x >= float(high + 1)  # a power of two, so exact in every float
    under = x <= float(low)
    middle = over | under | (x != x)
    inside = xp.where(middle, xp.zeros((), x.dtype), x)
    if dtype.isbuiltin == 2:
        inside = inside.astype(np.int32)
    whole = inside.astype(dtype)
    whole = xp.where(over, xp.full((), high, dtype), whole)
    return xp.where(under, xp.full((), low, dtype), whole)


def clamp_ints(xp, x, dtype):
    """A whole number as one of another type; what is out of range as the nearest limit."""
    dtype = np.dtype(dtype)
    if is_tiny(x.dtype):
        x = x.astype(np.int32)
    low, high = int_limits(dtype)
    least, most = int_limits(x.dtype)
    if low > least:
        x = xp.maximum(x, xp.full((), low, x.dtype))
    if high < most:
        x = xp.minimum(x, xp.full((), high, x.dtype))
    return x.astype(dtype)


def divide_ints(xp, x, y):
    """x / y without the fraction; 0 where y is 0."""
    zero = y == 0
    safe = xp.where(zero, xp.ones((), y.dtype), y)
    if xp is np:
        quotient = x // safe
        if x.dtype.kind == "i":
            quotient = quotient + ((quotient < 0) & (quotient * safe != x))
    else:
        quotient = jax.lax.div(*jnp.broadcast_arrays(x, safe))
    return xp.where(zero, xp.zeros((), y.dtype), quotient).astype(y.dtype)


def remainder_ints(xp, x, y, function):
    """`function(x, y)` for a remainder; 0 where y is 0."""
    zero = y == 0
    safe = xp.where(zero, xp.ones((), y.dtype), y)
    return xp.where(zero, xp.zeros((), y.dtype), function(x, safe)).astype(y.dtype)
