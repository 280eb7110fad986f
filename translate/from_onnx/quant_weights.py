"""Products with weights of few bits (contrib) and microscaling formats."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import dtype_of, type_t

from .math import cast_to, where_common
from .nn import product
from .quant import dequantize, dynamic_quantize_linear, mat_mul_integer, spread
from .registry import Const, onnx_op


@onnx_op("MatMulIntegerToFloat", domain="com.microsoft")
def mat_mul_integer_to_float(m, a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
    left = dequantize(m, a, a_scale, a_zero, axis=-2)
    right = dequantize(m, b, b_scale, b_zero, axis=-1)
    result = product(m, "dot", left, right)
    return result if bias is None else m.common("add", result, bias)


@onnx_op("DynamicQuantizeMatMul", domain="com.microsoft")
def dynamic_quantize_mat_mul(m, a, b, b_scale, b_zero=None, bias=None):
    quantized, scale, zero = dynamic_quantize_linear(m, a)
    whole = mat_mul_integer(m, quantized, b, zero, b_zero)
    step = m.common("mul", scale, b_scale)
    result = m.common("mul", m.convert(whole, m.type(step)), step)
    return result if bias is None else m.common("add", result, bias)


@onnx_op("MatMulNBits", domain="com.microsoft")
def mat_mul_nbits(
    m, a, b: Const, scales, zero_points=None, g_idx: Const = None, bias=None, *, K, N,
    bits=4, block_size, accuracy_level=0, weight_prepacked=0,
):  # fmt: skip
    """a times the transpose of b [N, K], which is packed in blocks of `block_size` along K."""
    if bits not in (2, 4, 8):
        raise Error(f"bits is {bits}, accepted are 2, 4 and 8")
    blocks = -(-K // block_size)
    kind = m.type(scales)
    weights = unpacked(b.reshape(N, -1), bits)[:, : blocks * block_size]
    weights = m.lit(weights.reshape(N, blocks, block_size).astype(np.uint8))
    scale = m.reshape(scales, (N, blocks, 1))
    zero = _nbits_zero(m, zero_points, bits, N, blocks)
    if g_idx is not None and len(g_idx):
        return _ordered_nbits(m, a, weights, scale, zero, g_idx, kind, (N, K), bias)
    dims = (N, blocks, block_size)
    scale = m.broadcast(scale, dims)
    if zero is None:
        zero = m.lit(np.array(1 << (bits - 1), np.uint8))
    if m.type(zero) == type_t.uint8_type:
        real = m.add("dequantizelinear", weights, scale, m.broadcast(zero, dims))
    else:
        moved = m.add("sub", m.convert(weights, kind), m.broadcast(m.convert(zero, kind), dims))
        real = m.add("mul", moved, scale)
    real = m.reshape(real, (N, blocks * block_size))
    if blocks * block_size != K:
        real = m.add("slice", real, axes=[1], starts=[0], ends=[K])
    return _times_transposed(m, a, real, bias)


def _times_transposed(m, a, weights, bias):
    weights = m.convert(m.add("transpose", weights, permutation=[1, 0]), m.type(a))
    result = product(m, "dot", a, weights)
    return result if bias is None else m.common("add", result, bias)


def _ordered_nbits(m, a, weights, scale, zero, g_idx, kind, dims, bias):
    """Column k of the weights uses the scale of group g_idx[k]."""
    rows, depth = dims
    flat = m.reshape(weights, (rows, -1))
    flat = m.add("slice", flat, axes=[1], starts=[0], ends=[depth])
    groups = m.lit(g_idx[:depth].astype(np.int64))

    def per_column(v):
        return m.add("gather", m.add("squeeze", v, axes=[2]), groups, axis=1)

    real = m.convert(flat, kind)
    if zero is None:
        zero = m.broadcast(m.lit(np.array(8, np.uint8)), scale.shape().dims)
    real = m.add("sub", real, per_column(m.convert(zero, kind)))
    return _times_transposed(m, a, m.add("mul", real, per_column(scale)), bias)


def _nbits_zero(m, zero_points, bits, rows, blocks):
    if zero_points is None:
        return None
    if m.type(zero_points) != type_t.uint8_type:
        return m.reshape(zero_points, (rows, blocks, 1))
    known = m.value(zero_points)
    if known is None:
        raise Error("packed zero points must be known")
    values = unpacked(known.reshape(rows, -1), bits)[:, :blocks]
    return m.lit(values.reshape(rows, blocks, 1).astype(np.uint8))


def unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of `bits` bits from bytes, lowest bits first, along the last axis."""
    data = np.ascontiguousarray(data).view(np.uint8)
    parts = [(data >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*data.shape[:-1], -1)


# The values of bitsandbytes' two 4-bit types: quant_type 0 (fp4) and 1 (nf4).
BNB4 = {
    0: (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25,
        -0.0, -5.208333333e-03, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25),
    1: (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
        0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
}  # fmt: skip


@onnx_op("MatMulBnb4", domain="com.microsoft")
def mat_mul_bnb4(
    m, a, b: Const, absmax, *, K, N, block_size, quant_type, training_mode=0, transB=1
):
    """a times the transpose of b [N, K]; b indexes a table of 16 numbers, scaled per block."""
    if quant_type not in BNB4:
        raise Error(f"quant_type is {quant_type}, accepted are 0 (fp4) and 1 (nf4)")
    data = b.reshape(-1).view(np.uint8)
    codes = np.stack([data >> 4, data & 15], -1).reshape(-1)[: N * K]  # high half first
    table = np.array(BNB4[quant_type], np.float32).astype(dtype_of(m.type(absmax)))
    values = m.lit(table[codes].reshape(-1))
    blocks = -(-N * K // block_size)
    whole = blocks * block_size == N * K
    scale = m.reshape(absmax, (blocks, 1))
    scale = m.reshape(m.broadcast(scale, (blocks, block_size)), (blocks * block_size,))
    if not whole:
        scale = m.add("slice", scale, axes=[0], starts=[0], ends=[N * K])
    weights = m.reshape(m.add("mul", values, scale), (N, K) if transB else (K, N))
    if not transB:
        return product(m, "dot", a, m.convert(weights, m.type(a)))
    return _times_transposed(m, a, weights, None)


# -- microscaling formats --------------------------------------------------------------------------


@onnx_op("MXQuantizeDequantize", "MXFixNeuron", domain="com.microsoft")
def mx_quantize_dequantize(m, x, *, axis=1, block_size=32, element_dtype="fp4_e2m1",
                           rounding_mode=2, **ignored):  # fmt: skip
    """x rounded to fp4 (e2m1) with a power of two per block of `axis`."""
    if element_dtype != "fp4_e2m1":
        raise Error(f"element_dtype {element_dtype!r}; accepted is fp4_e2m1")
    scale = dynamic_scale(m, x, axis=axis, block_size=block_size)
    scale = spread(m, scale, x, axis, block_size)
    small = cast_to(m, m.add("div", x, scale), type_t.fp4e2m1_type)
    return m.add("mul", cast_to(m, small, m.type(x)), scale)


@onnx_op("DynamicScale", domain="com.microsoft")
def dynamic_scale(m, x, *, axis=-1, block_size=32, group_dim=None, group_size=None,
                  output_dtype=0, **ignored):  # fmt: skip
    """Per block the power of two that brings its largest element into fp4's range."""
    dims = list(m.static_dims(x))
    axis = m.axis(axis if group_dim is None else group_dim, len(dims))
    size = block_size if group_size is None else group_size
    blocks = -(-dims[axis] // size)
    if blocks * size != dims[axis]:
        pads = [0] * (2 * len(dims))
        pads[len(dims) + axis] = blocks * size - dims[axis]
        x = m.add("pad", x, pads=pads)
    x = m.reshape(x, (*dims[:axis], blocks, size, *dims[axis + 1 :]))
    largest = m.add("reduce_max", m.add("abs", x), axes=[axis + 1])
    largest = m.add("squeeze", largest, axes=[axis + 1])
    exponent = m.add("floor", m.add("log2", largest))
    exponent = m.common("sub", exponent, m.lit(2.0, largest))  # 6 = 1.5 * 2**2 is the largest
    scale = m.common("pow", m.lit(2.0, largest), exponent)
    zero = m.convert(m.common("equal", largest, m.lit(0, largest)), type_t.bool_type)
    return where_common(m, zero, m.lit(1, largest), scale)
