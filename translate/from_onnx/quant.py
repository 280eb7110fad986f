"""QuantizeLinear, DequantizeLinear and integer products of ONNX."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import FLOATS, INTEGERS, SMALL_FLOATS, limits, type_t

from .math import cast_to, where_common
from .nn import product
from .registry import onnx_op
from .tensors import element_type

# The integers that MIGraphX's own operators quantise to; other types are composed.
QUANTIZED = INTEGERS | SMALL_FLOATS
SMALL_INTEGERS = {
    type_t.int4_type: (-8, 7),
    type_t.uint4_type: (0, 15),
    type_t.int2_type: (-2, 1),
    type_t.uint2_type: (0, 3),
}


def spread(m, v, x, axis: int, block_size: int = 0):
    """A scale or zero point with the dims of x: per tensor, along `axis`, or in blocks of it."""
    dims = m.dims(x)
    rank = m.rank(v)
    if rank == 0 or (rank == 1 and m.dims(v) == (1,) and not block_size):
        return m.broadcast(v, dims)
    axis = m.axis(axis, len(dims))
    if rank == 1 and not block_size:
        size = m.dims(v)[0]
        if not hasattr(dims[axis], "min") and not hasattr(size, "min") and size != dims[axis]:
            raise Error(f"{size} scales do not fit axis {axis} of {list(map(str, dims))}")
        return _along(m, v, x, axis)
    if m.dims(v) == dims:
        return v
    if rank != len(dims):
        raise Error(f"a scale of rank {rank} does not fit an input of rank {len(dims)}")
    return _blocks(m, v, dims, axis, block_size)


def _along(m, v, x, axis):
    if x.shape().dynamic():
        return m.add("broadcast", v, axis=axis, out_dyn_dims=x.shape().dims)
    return m.add("broadcast", v, axis=axis, out_lens=m.dims(x))


def _blocks(m, v, dims, axis, block_size):
    have = m.static_dims(v)
    size = int(block_size) or -(-int(dims[axis]) // have[axis])
    if -(-int(dims[axis]) // size) != have[axis]:
        raise Error(f"blocks of {size} along axis {axis} of {list(dims)} need {list(have)} scales")
    wide = (*have[: axis + 1], size, *have[axis + 1 :])
    v = m.broadcast(m.add("unsqueeze", v, axes=[axis + 1]), wide)
    v = m.reshape(v, (*have[:axis], have[axis] * size, *have[axis + 1 :]))
    if have[axis] * size != dims[axis]:
        v = m.add("slice", v, axes=[axis], starts=[0], ends=[dims[axis]])
    return v


# -- QuantizeLinear, DequantizeLinear --------------------------------------------------------------


@onnx_op("QuantizeLinear")
def quantize_linear(
    m, x, scale, zero_point=None, *, axis=1, block_size=0, output_dtype=0, saturate=1, precision=0
):
    """round(x / scale) + zero_point, saturated; small floats by ONNX's casts."""
    if zero_point is not None:
        kind = m.type(zero_point)
    else:
        kind = element_type(output_dtype) if output_dtype else type_t.uint8_type
    return quantize(m, x, scale, zero_point, kind, axis, block_size, saturate, precision)


def quantize(m, x, scale, zero_point, kind, axis=1, block_size=0, saturate=1, precision=0):
    """x in the quantised type `kind`."""
    work = m.type(scale)
    if precision:
        work = element_type(precision)
    elif m.type(x) not in FLOATS:
        work = type_t.float_type
    wide = work if work not in (type_t.fp8e8m0_type,) else m.type(x)
    x = m.convert(x, wide)
    scale = spread(m, cast_to(m, scale, wide) if m.type(scale) != wide else scale, x, axis,
                   block_size)  # fmt: skip
    zero = None if zero_point is None else spread(m, zero_point, x, axis, block_size)
    if kind in QUANTIZED and saturate:
        extra = () if zero is None else (zero,)
        named = {} if zero is not None or kind == type_t.uint8_type else {"out_type": kind}
        return m.add("quantizelinear", x, scale, *extra, **named)
    ratio = m.add("div", x, scale)
    if kind not in SMALL_INTEGERS and kind not in INTEGERS:
        if zero is not None:
            ratio = m.add("add", ratio, cast_to(m, zero, wide))
        return cast_to(m, ratio, kind, saturate)
    rounded = m.add("nearbyint", ratio)
    if zero is not None:
        rounded = m.add("add", rounded, cast_to(m, zero, wide))
    low, high = SMALL_INTEGERS.get(kind) or limits(kind)
    return cast_to(m, clip_to(m, rounded, low, high), kind)


def clip_to(m, x, low, high):
    """x held between two numbers of its own type."""
    dims = m.dims(x)
    low, high = (m.broadcast(m.lit(float(v), x), dims) for v in (low, high))
    return m.add("clip", x, low, high)


@onnx_op("DequantizeLinear")
def dequantize_linear(m, x, scale, zero_point=None, *, axis=1, block_size=0, output_dtype=0):
    """(x - zero_point) * scale, in the type of the scale."""
    result = dequantize(m, x, scale, zero_point, axis, block_size)
    if output_dtype:
        return m.convert(result, element_type(output_dtype))
    return result


def dequantize(m, x, scale, zero_point=None, axis=1, block_size=0):
    """The real numbers that a quantised x stands for."""
    if m.type(scale) == type_t.fp8e8m0_type:
        scale = cast_to(m, scale, type_t.float_type)
    if m.type(x) not in QUANTIZED:  # int4, int2, fp4 ...: exact in the scale's type
        x = cast_to(m, x, m.type(scale))
        if zero_point is not None:
            zero = spread(m, cast_to(m, zero_point, m.type(scale)), x, axis, block_size)
            x = m.add("sub", x, zero)
        return m.add("mul", x, spread(m, scale, x, axis, block_size))
    scale = spread(m, scale, x, axis, block_size)
    if zero_point is None:
        return m.add("dequantizelinear", x, scale)
    return m.add("dequantizelinear", x, scale, spread(m, zero_point, x, axis, block_size))


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(m, x):
    """uint8 with a scale and zero point from the range of x, which is made to hold 0."""
    axes = list(range(m.rank(x)))

    def extreme(name, bound):
        value = m.add("squeeze", m.add(name, x, axes=axes), axes=axes) if axes else x
        return m.add(bound, value, m.lit(0, x))

    low, high = extreme("reduce_min", "min"), extreme("reduce_max", "max")
    span = m.add("div", m.add("sub", high, low), m.lit(255.0, x))
    empty = m.convert(m.common("equal", span, m.lit(0, x)), type_t.bool_type)
    scale = where_common(m, empty, m.lit(1, x), span)
    zero = m.add("neg", m.add("div", low, scale))
    zero = m.convert(m.add("nearbyint", clip_to(m, zero, 0, 255)), type_t.uint8_type)
    return quantize(m, x, scale, zero, type_t.uint8_type), scale, zero


# -- integer products ------------------------------------------------------------------------------


def as_int8(m, x, zero):
    """x and its zero point (int32, or None) moved from uint8 to int8, both by 128."""
    if m.type(x) == type_t.int8_type:
        return x, None if zero is None else m.convert(zero, type_t.int32_type)
    wide = m.common("sub", m.convert(x, type_t.int32_type), int32(m, 128))
    moved = m.lit(np.array(0, np.uint8)) if zero is None else zero
    moved = m.common("sub", m.convert(moved, type_t.int32_type), int32(m, 128))
    return m.convert(wide, type_t.int8_type), moved


def int32(m, value):
    """An int32 literal of rank 0."""
    return m.lit(np.array(value, np.int32))


def is_zero(m, zero) -> bool:
    """True if a zero point is absent or known to be 0 everywhere."""
    if zero is None:
        return True
    value = m.value(zero)
    return value is not None and not np.any(np.asarray(value, np.float32))


@onnx_op("MatMulInteger")
def mat_mul_integer(m, a, b, a_zero=None, b_zero=None):
    """(a - a_zero)(b - b_zero) in int32; zero points are per tensor, row of a, or column of b."""
    rank = m.rank(a), m.rank(b)
    if min(rank) < 1:
        raise Error("inputs of rank 0 cannot be multiplied as matrices")
    a_zero = _outer_zero(m, a_zero, a, -2)
    b_zero = _outer_zero(m, b_zero, b, -1)
    if m.type(a) not in INTEGERS or m.type(b) not in INTEGERS:
        raise Error("the inputs must be int8 or uint8")
    (a, a_zero), (b, b_zero) = as_int8(m, a, a_zero), as_int8(m, b, b_zero)
    result = product(m, "quant_dot", a, b)
    a32, b32 = (m.convert(v, type_t.int32_type) for v in (a, b))
    vector = [r == 1 for r in rank]
    if not is_zero(m, a_zero):
        columns = _summed(m, b32, -2 if not vector[1] else -1, vector[1], vector[0])
        result = m.common("sub", result, m.common("mul", _drop(m, a_zero, vector), columns))
    if not is_zero(m, b_zero):
        rows = _summed(m, a32, -1, vector[0], vector[1])
        result = m.common("sub", result, m.common("mul", _drop(m, b_zero, vector), rows))
    if not is_zero(m, a_zero) and not is_zero(m, b_zero):
        both = m.common("mul", _drop(m, a_zero, vector), _drop(m, b_zero, vector))
        depth = m.static_dims(a)[-1]
        result = m.common("add", result, m.common("mul", both, int32(m, depth)))
    return result


def _summed(m, x, axis, own_vector, other_vector):
    """Sums over the inner axis, kept unless one of the operands is a vector."""
    axis = m.axis(axis, m.rank(x))
    total = m.add("reduce_sum", x, axes=[axis])
    return m.add("squeeze", total, axes=[axis]) if own_vector or other_vector else total


def _drop(m, zero, vector):
    """A zero point of one element as a number where an operand is a vector."""
    if any(vector) and m.rank(zero) and m.static_dims(zero).count(1) == m.rank(zero):
        return m.add("squeeze", zero, axes=list(range(m.rank(zero))))
    return zero


def _outer_zero(m, zero, x, axis):
    """A zero point shaped so that it broadcasts along the inner axis of x."""
    if zero is None or m.rank(zero) != 1 or m.dims(zero) == (1,):
        return zero
    return m.add("unsqueeze", zero, axes=[1]) if axis == -2 and m.rank(x) > 1 else zero


@onnx_op("ConvInteger")
def conv_integer(
    m, x, w, x_zero=None, w_zero=None, *, kernel_shape=None, strides=None, pads=None,
    dilations=None, group=1, auto_pad="NOTSET",
):  # fmt: skip
    """Convolution of x - x_zero and w - w_zero in int32: padding stands for x_zero."""
    kernel = list(kernel_shape or m.static_dims(w)[2:])
    from .nn import window

    at = window(m, x, kernel, strides, pads, dilations, auto_pad)
    settings = {"padding": at["pads"], "stride": at["strides"], "dilation": at["dilations"],
                "group": group}  # fmt: skip
    plain = m.type(x) == m.type(w) == type_t.int8_type and is_zero(m, x_zero)
    if plain and is_zero(m, w_zero):
        return m.add("quant_convolution", x, w, **settings)
    x = _centered(m, x, x_zero, None)
    w = _centered(m, w, w_zero, 0)
    # products of 8-bit numbers are exact in float32 up to 2**24: double beyond
    depth = int(np.prod(m.static_dims(w)[1:]))
    kind = type_t.float_type if depth * 255 * 255 < 2**24 else type_t.double_type
    result = m.add("convolution", m.convert(x, kind), m.convert(w, kind), **settings)
    return m.convert(result, type_t.int32_type)


def _centered(m, x, zero, axis):
    """x - zero in int32; a zero point with several values lies along `axis`."""
    x = m.convert(x, type_t.int32_type)
    if is_zero(m, zero):
        return x
    return m.add("sub", x, spread(m, m.convert(zero, type_t.int32_type), x, axis or 0))
