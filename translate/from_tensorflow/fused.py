"""Operators into which TensorFlow's graph optimiser joins others."""

from __future__ import annotations

from migraphx.errors import Error

from .matmul import mat_mul
from .nn import batch_norm, bias_add, conv2d, depthwise
from .registry import tf_op
from .shared import clip_between

ACTIVATIONS = {
    "Relu": lambda m, x, alpha: m.add("relu", x),
    "Relu6": lambda m, x, alpha: clip_between(m, x, 0, 6),
    "Elu": lambda m, x, alpha: m.add("elu", x, alpha=1.0),
    "LeakyRelu": lambda m, x, alpha: m.add("leaky_relu", x, alpha=alpha),
    "Tanh": lambda m, x, alpha: m.add("tanh", x),
    "Sigmoid": lambda m, x, alpha: m.add("sigmoid", x),
    "GeluExact": lambda m, x, alpha: m.call("gelu_erf", x),
    "GeluApproximate": lambda m, x, alpha: m.call("gelu_tanh", x),
}


def followed(m, x, fused_ops, extra, epsilon, alpha, data_format):
    """`x` after the operators of the list, which take their further inputs from `extra`."""
    extra = list(extra)
    for name in fused_ops:
        if name == "BiasAdd":
            x = bias_add(m, x, extra.pop(0), data_format=data_format)
        elif name == "FusedBatchNorm":
            parts, extra = extra[:4], extra[4:]
            x = batch_norm(
                m, x, *parts, epsilon=epsilon, data_format=data_format, is_training=False
            )[0]  # fmt: skip
        elif name == "Add":
            x = m.common("add", x, extra.pop(0))
        elif name in ACTIVATIONS:
            inside = m.is_image(x)
            x = ACTIVATIONS[name](m, m.first(x) if inside else x, alpha)
            x = m.last(x) if inside else x
        else:
            raise Error(f"fused_ops has {name!r}, accepted are BiasAdd, FusedBatchNorm, Add, "
                        + ", ".join(ACTIVATIONS))  # fmt: skip
    return x


@tf_op("_FusedConv2D", "_FusedDepthwiseConv2dNative")
def fused_conv(
    m, x, filters, *extra, strides, padding, explicit_paddings=(), data_format="NHWC",
    dilations=None, fused_ops=(), epsilon=1e-4, leakyrelu_alpha=0.2,
):  # fmt: skip
    function = conv2d if m.node.op == "_FusedConv2D" else depthwise
    result = function(
        m, x, filters, strides=strides, padding=padding, explicit_paddings=explicit_paddings,
        data_format=data_format, dilations=dilations,
    )  # fmt: skip
    return followed(m, result, fused_ops, extra, epsilon, leakyrelu_alpha, data_format)


@tf_op("_FusedMatMul")
def fused_mat_mul(
    m, a, b, *extra, transpose_a=False, transpose_b=False, fused_ops=(), epsilon=1e-4,
    leakyrelu_alpha=0.2,
):  # fmt: skip
    result = mat_mul(m, a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return followed(m, result, fused_ops, extra, epsilon, leakyrelu_alpha, "NHWC")
