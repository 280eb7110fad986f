"""Layers on quantised tensors, of ONNX and contrib: real numbers in between, as MIGraphX does."""

from __future__ import annotations

from migraphx.errors import Error
from migraphx.types import type_t

from .math import where_common
from .nn import add_bias, conv, product
from .pooling import average_pool
from .quant import dequantize, quantize
from .registry import onnx_op


@onnx_op("QLinearConv")
def qlinear_conv(
    m, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None, *, channels_last=0,
    **window,
):  # fmt: skip
    if channels_last:
        rank = m.rank(x)
        x = m.add("transpose", x, permutation=[0, rank - 1, *range(1, rank - 1)])
    real = dequantize(m, x, x_scale, x_zero)
    weights = dequantize(m, w, w_scale, w_zero, axis=0)
    result = conv(m, real, weights, **window)
    if bias is not None:
        step = m.common("mul", x_scale, w_scale)
        result = add_bias(m, result, dequantize(m, bias, step, None, axis=0))
    result = quantize(m, result, y_scale, y_zero, m.type(y_zero))
    if channels_last:
        result = m.add("transpose", result, permutation=[0, *range(2, rank), 1])
    return result


@onnx_op("QLinearMatMul")
def qlinear_mat_mul(m, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    left = dequantize(m, a, *_per_row(m, a, a_scale, a_zero, -2))
    right = dequantize(m, b, *_per_row(m, b, b_scale, b_zero, -1))
    # half scales: the products need float32
    kind = m.type(left)
    if kind != type_t.double_type:
        left, right = (m.convert(v, type_t.float_type) for v in (left, right))
    result = product(m, "dot", left, right)
    return quantize(m, result, m.convert(y_scale, m.type(result)), y_zero, m.type(y_zero), -2)


def _per_row(m, x, scale, zero, axis):
    """Scale, zero point and axis: one number per row of a, per column of b."""
    return scale, zero, axis if m.rank(x) > 1 else 0


def _binary(name):
    def handler(m, a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero=None):
        left, right = dequantize(m, a, a_scale, a_zero), dequantize(m, b, b_scale, b_zero)
        kind = m.type(a) if c_zero is None else m.type(c_zero)
        return quantize(m, m.common(name, left, right), c_scale, c_zero, kind)

    return handler


for _name in ("Add", "Mul"):
    onnx_op("QLinear" + _name, domain="com.microsoft")(_binary(_name.lower()))


def unary(m, x, x_scale, x_zero, y_scale, y_zero, function):
    """`function` of the real numbers, quantised again."""
    kind = m.type(x) if y_zero is None else m.type(y_zero)
    return quantize(m, function(dequantize(m, x, x_scale, x_zero)), y_scale, y_zero, kind)


@onnx_op("QLinearSigmoid", domain="com.microsoft")
def qlinear_sigmoid(m, x, x_scale, x_zero=None, y_scale=None, y_zero=None):
    return unary(m, x, x_scale, x_zero, y_scale, y_zero, lambda v: m.add("sigmoid", v))


@onnx_op("QLinearLeakyRelu", domain="com.microsoft")
def qlinear_leaky_relu(m, x, x_scale, x_zero=None, y_scale=None, y_zero=None, *, alpha=0.01):
    def function(v):
        return m.add("leaky_relu", v, alpha=alpha)

    return unary(m, x, x_scale, x_zero, y_scale, y_zero, function)


@onnx_op("QLinearSoftmax", domain="com.microsoft")
def qlinear_softmax(m, x, x_scale, x_zero=None, y_scale=None, y_zero=None, *, opset=13, axis=-1):
    """Softmax over `axis`; below opset 13 over everything from `axis` on."""
    from .reduce import through_rows

    def function(v):
        if opset >= 13:
            return m.add("softmax", v, axis=m.axis(axis, m.rank(v)))
        return through_rows(m, v, axis, lambda u: m.add("softmax", u, axis=1))

    return unary(m, x, x_scale, x_zero, y_scale, y_zero, function)


@onnx_op("QLinearAveragePool", domain="com.microsoft")
def qlinear_average_pool(
    m, x, x_scale, x_zero=None, y_scale=None, y_zero=None, *, channels_last=0, **settings
):
    def function(v):
        return in_nchw(m, v, channels_last, lambda u: average_pool(m, u, **settings))

    return unary(m, x, x_scale, x_zero, y_scale, y_zero, function)


@onnx_op("QLinearGlobalAveragePool", domain="com.microsoft")
def qlinear_global_average_pool(
    m, x, x_scale, x_zero=None, y_scale=None, y_zero=None, *, channels_last=0
):
    def function(v):
        def mean(u):
            return m.add("reduce_mean", u, axes=list(range(2, m.rank(u))))

        return in_nchw(m, v, channels_last, mean)

    return unary(m, x, x_scale, x_zero, y_scale, y_zero, function)


def in_nchw(m, x, channels_last, function):
    """`function` of x with its channels at axis 1."""
    if not channels_last:
        return function(x)
    rank = m.rank(x)
    result = function(m.add("transpose", x, permutation=[0, rank - 1, *range(1, rank - 1)]))
    return m.add("transpose", result, permutation=[0, *range(2, rank), 1])


@onnx_op("QLinearConcat", domain="com.microsoft")
def qlinear_concat(m, y_scale, y_zero, *parts, axis):
    """Parts come in threes: x, its scale, its zero point."""
    if not parts or len(parts) % 3:
        raise Error(f"{len(parts)} inputs after the output's scale and zero point; need threes")
    real = [dequantize(m, *parts[k : k + 3]) for k in range(0, len(parts), 3)]
    joined = m.add("concat", *real, axis=m.axis(axis, m.rank(real[0])))
    return quantize(m, joined, y_scale, y_zero, m.type(y_zero))


@onnx_op("QLinearWhere", domain="com.microsoft")
def qlinear_where(m, condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero):
    x, y = dequantize(m, x, x_scale, x_zero), dequantize(m, y, y_scale, y_zero)
    return quantize(m, where_common(m, condition, x, y), z_scale, z_zero, m.type(z_zero))


@onnx_op("QLinearReduceMean", domain="com.microsoft")
def qlinear_reduce_mean(
    m, x, x_scale, x_zero=None, y_scale=None, y_zero=None, *, axes=None, keepdims=1
):
    def function(v):
        chosen = list(range(m.rank(v))) if not axes else [m.axis(a, m.rank(v)) for a in axes]
        mean = m.add("reduce_mean", v, axes=chosen)
        return mean if keepdims else m.add("squeeze", mean, axes=chosen)

    return unary(m, x, x_scale, x_zero, y_scale, y_zero, function)


@onnx_op("QGemm", domain="com.microsoft")
def qgemm(
    m, a, a_scale, a_zero, b, b_scale, b_zero, c=None, y_scale=None, y_zero=None, *, alpha=1.0,
    transA=0, transB=0,
):  # fmt: skip
    """A product of quantised matrices; C is int32 with the scale alpha * a_scale * b_scale."""
    left = dequantize(m, a, a_scale, a_zero)
    right = dequantize(m, b, b_scale, b_zero, axis=0 if transB else 1)
    left = m.add("transpose", left, permutation=[1, 0]) if transA else left
    right = m.add("transpose", right, permutation=[1, 0]) if transB else right
    result = m.add("dot", left, right)
    if c is not None:
        step = m.common("mul", a_scale, b_scale)
        bias = m.common("mul", m.convert(c, m.type(step)), step)
        result = m.common("add", result, bias)
    result = m.common("mul", result, m.lit(alpha, result)) if alpha != 1.0 else result
    if y_scale is None:
        return result
    return quantize(m, result, y_scale, y_zero, m.type(y_zero))
