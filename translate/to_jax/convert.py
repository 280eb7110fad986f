"""Lowerings between element types: convert, bit_cast, quantising, packing of 4-bit numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from migraphx.errors import Error
from migraphx.types import SMALL_FLOATS, dtype_of, type_t

from .numeric import (
    BOOL,
    FLOAT32,
    OBJECT,
    clamp_ints,
    is_float,
    is_int,
    is_small,
    is_tiny,
    saturate,
    wide_type,
)
from .registry import lower

FLOAT8 = frozenset(dtype_of(kind) for kind in SMALL_FLOATS)
E8M0 = dtype_of(type_t.fp8e8m0_type)
BYTE_SHIFT = np.uint8(4)


@lower("convert")
def convert(op, xp, x):
    """The rules of `migraphx.ops.convert.Convert`."""
    dtype = dtype_of(op.target_type)
    if x.dtype == OBJECT:
        return sizes_as(dtype, x)
    if is_int(dtype) and is_int(x.dtype):
        return clamp_ints(xp, x, dtype)
    return to_type(xp, x, dtype)


@lower("onnx::cast")
def cast(op, xp, x):
    """The rules of ONNX's Cast."""
    dtype = dtype_of(op.target_type)
    if x.dtype == OBJECT:
        return sizes_as(dtype, x)
    if dtype == E8M0:
        return to_e8m0(xp, x, op.round_mode, op.saturate)
    if is_int(dtype) and is_tiny(dtype) and x.dtype != BOOL:
        whole = x if is_int(x.dtype) else to_type(xp, x, np.dtype(np.int32))
        return low_bits(xp, whole, dtype)
    return to_type(xp, x, dtype, op.saturate)


def to_type(xp, x, dtype, saturates: bool = True):
    """`x` in another type: integers from floats saturate, integers from integers wrap."""
    if x.dtype == dtype:
        return x
    if dtype == BOOL:
        return x != 0
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if is_int(dtype) and is_float(x.dtype):
        return saturate(xp, x, dtype)
    if is_tiny(dtype) and is_float(dtype) and not is_float(x.dtype):
        x = x.astype(FLOAT32 if x.dtype.itemsize < 4 else np.float64)
    if dtype in FLOAT8 and saturates:
        info = ml_dtypes.finfo(dtype)
        x = x.astype(FLOAT32) if is_small(x.dtype) else x
        x = xp.minimum(xp.maximum(x, float(info.min)), float(info.max))  # NaN stays
    if is_small(dtype) and x.dtype == np.float64 and dtype.itemsize == 1:
        x = round_to_odd(xp, x)
    if is_int(x.dtype) and is_tiny(x.dtype) and dtype != np.int32:
        x = x.astype(np.int32)
    return x.astype(dtype)


def round_to_odd(xp, x):
    """A double as a float32 from which a second rounding gives what one rounding would.

    What float32 cannot hold is cut towards zero and its last bit set.
    """
    near = x.astype(FLOAT32)
    back = near.astype(x.dtype)
    bits = near.view(np.int32) if xp is np else jax.lax.bitcast_convert_type(near, jnp.int32)
    inexact = (back != x) & (x == x) & xp.isfinite(near)
    cut = xp.where(inexact & (xp.abs(back) > xp.abs(x)), bits - 1, bits)
    odd = xp.where(inexact, cut | 1, bits)
    return odd.view(FLOAT32) if xp is np else jax.lax.bitcast_convert_type(odd, jnp.float32)


def low_bits(xp, x, dtype):
    """A whole number cut to the low bits of a type of 2 or 4 bits."""
    info = ml_dtypes.iinfo(dtype)
    kept = x.astype(np.int32) & ((1 << info.bits) - 1)
    if info.min < 0:
        kept = kept - ((kept >> (info.bits - 1)) << info.bits)
    return kept.astype(dtype)


def to_e8m0(xp, x, mode: str, saturates: bool):
    """The power of two next to x, of which only the exponent is kept; the sign is dropped."""
    bits = to_bits(xp, x.astype(FLOAT32), np.int32)
    exponent = (bits >> 23) & 0xFF
    rest = bits & 0x7FFFFF
    if mode == "up":
        more = rest > 0
    elif mode == "nearest":
        more = (rest > 0x400000) | ((rest == 0x400000) & (exponent > 0))
    else:
        more = rest < 0
    more = more & (exponent < (0xFE if saturates else 0xFF))
    found = xp.where(exponent == 0xFF, 0xFF, exponent + more).astype(np.uint8)
    return from_bits(xp, found, E8M0)


def sizes_as(dtype, x) -> np.ndarray:
    """Sizes that may be symbolic stay what they are in any type of whole numbers."""
    if not is_int(dtype):
        raise Error(f"convert: symbolic sizes have no value as {dtype}")
    return x


# -- bits ----------------------------------------------------------------------------------------


def to_bits(xp, x, dtype):
    """The bits of an array as a type of equal size."""
    return x.view(dtype) if xp is np else jax.lax.bitcast_convert_type(x, dtype)


from_bits = to_bits


@lower("bit_cast")
def bit_cast(op, xp, x):
    dtype = dtype_of(op.target_type)
    if x.dtype == BOOL:
        x = x.astype(np.uint8)
    if dtype == BOOL:
        return to_bits(xp, x, np.dtype(np.uint8)) != 0
    if xp is np:
        return np.ascontiguousarray(x).view(dtype).reshape(x.shape)
    return x if x.dtype == dtype else jax.lax.bitcast_convert_type(x, dtype)


# -- quantising ----------------------------------------------------------------------------------


@lower("quantizelinear")
def quantizelinear(op, xp, x, scale, zero=None):
    dtype = dtype_of(type_t.uint8_type if op.out_type is None else op.out_type)
    dtype = dtype if zero is None else zero.dtype
    wide = wide_type(x.dtype)
    scaled = x.astype(wide) / scale.astype(wide)
    if not is_int(dtype):
        if zero is not None:
            scaled = scaled + zero.astype(wide)
        return to_type(xp, scaled, dtype)
    whole = xp.rint(scaled)
    if dtype.itemsize <= 2:
        low, high = ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max
        if zero is not None:
            offset = zero.astype(np.int32) if is_tiny(dtype) else zero
            whole = whole + offset.astype(wide)
        whole = xp.where(whole != whole, xp.zeros((), wide), whole)
        whole = xp.minimum(xp.maximum(whole, float(low)), float(high)).astype(np.int32)
        return whole.astype(dtype)
    whole = saturate(xp, whole, np.int64)  # the sum would not be exact in floats
    if zero is not None:
        low, high = -(2**62), 2**62  # room for the zero point
        whole = xp.minimum(xp.maximum(whole, low), high) + zero.astype(np.int64)
    return clamp_ints(xp, whole, dtype)


@lower("dequantizelinear")
def dequantizelinear(op, xp, x, scale, zero=None):
    wide = wide_type(scale.dtype)
    if is_int(x.dtype):
        exact = np.int32 if x.dtype.itemsize <= 2 else np.int64
        x = x.astype(exact)
        zero = None if zero is None else zero.astype(exact)
    else:
        x = x.astype(wide)
        zero = None if zero is None else zero.astype(wide)
    shifted = x if zero is None else x - zero
    return (shifted.astype(wide) * scale.astype(wide)).astype(scale.dtype)


# -- packing -------------------------------------------------------------------------------------


def halves(x, axis: int) -> tuple:
    """The elements at even and at odd places along an axis."""
    place = [slice(None)] * x.ndim
    found = []
    for start in (0, 1):
        place[axis] = slice(start, None, 2)
        found.append(x[tuple(place)])
    return tuple(found)


def interleaved(xp, low, high, axis: int):
    """What `halves` took apart, together again."""
    axis = axis % low.ndim
    dims = list(low.shape)
    dims[axis] *= 2
    return xp.stack([low, high], axis + 1).reshape(dims)


@lower("pack_int4")
def pack_int4(op, xp, x):
    low, high = (-8, 7) if x.dtype == np.int8 else (0, 15)
    x = xp.clip(x, x.dtype.type(low), x.dtype.type(high))
    even, odd = halves(to_bits(xp, x, np.uint8) & np.uint8(15), op.axis)
    return to_bits(xp, even | (odd << BYTE_SHIFT), x.dtype)


@lower("unpack_int4")
def unpack_int4(op, xp, x):
    if x.dtype == np.int8:
        low = (x << np.int8(4)) >> np.int8(4)  # shifts of signed numbers keep the sign
        return interleaved(xp, low, x >> np.int8(4), op.axis)
    return interleaved(xp, x & np.uint8(15), x >> BYTE_SHIFT, op.axis)


# Midpoints between the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6 of fp4, and whether a number on the
# midpoint goes up (the code above is the even one).
FP4_STEPS = (
    (0.25, False), (0.75, True), (1.25, False), (1.75, True), (2.5, False), (3.5, True),
    (5.0, False),
)  # fmt: skip


@lower("pack_fp4")
def pack_fp4(op, xp, x):
    x = x.astype(wide_type(x.dtype))
    size = xp.abs(x)
    code = xp.zeros(x.shape, np.uint8)
    for middle, goes_up in FP4_STEPS:
        code = code + (size >= middle if goes_up else size > middle)
    code = code | (xp.signbit(x).astype(np.uint8) << np.uint8(3))
    even, odd = halves(code, op.axis)
    return even | (odd << BYTE_SHIFT)


@lower("unpack_fp4")
def unpack_fp4(op, xp, x):
    codes = interleaved(xp, x & np.uint8(15), x >> BYTE_SHIFT, op.axis)
    # fp8e4m3fn has 3 bits of fraction and bias 7, fp4 has 1 and 1: (exponent + 6, fraction * 4)
    size = codes & np.uint8(7)
    bits = (size << np.uint8(2)) + np.uint8(6 << 3)
    bits = xp.where(size == 0, np.uint8(0), xp.where(size == 1, np.uint8(0x30), bits))
    bits = bits | ((codes & np.uint8(8)) << BYTE_SHIFT)
    return to_bits(xp, bits, dtype_of(type_t.fp8e4m3fn_type))
