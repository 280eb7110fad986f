"""Fused operators that exporters write for onnxruntime, and other names of MIGraphX's list."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import type_t

from . import math as elementwise
from .attention import part, rms_norm
from .math import clip_between
from .nn import conv, gemm, normalize, product, scale_shift
from .registry import Const, onnx_op
from .tensors import element_type

CONTRIB = "com.microsoft"

# -- activations -----------------------------------------------------------------------------------


@onnx_op("FastGelu", domain=CONTRIB)
def fast_gelu(m, x, bias=None):
    """The tanh form of GELU, of x + bias."""
    return m.call("gelu_tanh", x if bias is None else m.common("add", x, bias))


@onnx_op("BiasGelu", domain=CONTRIB)
def bias_gelu(m, x, bias):
    return m.call("gelu_erf", m.common("add", x, bias))


@onnx_op("BiasSplitGelu", domain=CONTRIB)
def bias_split_gelu(m, x, bias):
    """The first half of x + bias times the GELU of the second."""
    return m.call("gelu_split", m.common("add", x, bias))


@onnx_op("QuickGelu", domain=CONTRIB)
def quick_gelu(m, x, *, alpha=1.702):
    return m.call("gelu_quick", x, alpha=alpha)


@onnx_op("BiasAdd", domain=CONTRIB)
def bias_add(m, x, bias, skip):
    return m.common("add", m.common("add", x, bias), skip)


ACTIVATIONS = {
    "Relu": lambda m, x, p: m.add("relu", x),
    "Sigmoid": lambda m, x, p: m.add("sigmoid", x),
    "Tanh": lambda m, x, p: m.add("tanh", x),
    "LeakyRelu": lambda m, x, p: m.add("leaky_relu", x, alpha=p[0] if p else 0.01),
    "Clip": lambda m, x, p: clip_between(m, x, *(p or (float("-inf"), float("inf")))),
    "HardSigmoid": lambda m, x, p: elementwise.hard_sigmoid(
        m, x, alpha=p[0] if p else 0.2, beta=p[1] if len(p) > 1 else 0.5
    ),
    "HardSwish": lambda m, x, p: elementwise.hard_swish(m, x),
    "Elu": lambda m, x, p: m.add("elu", x, alpha=p[0] if p else 1.0),
    "Softplus": lambda m, x, p: elementwise.softplus(m, x),
    "Gelu": lambda m, x, p: m.call("gelu_erf", x),
}


def activated(m, x, name: str, parameters=()):
    """The activation called `name` of x; none for an empty name."""
    if not name:
        return x
    if name not in ACTIVATIONS:
        raise Error(f"activation {name!r} is none of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name](m, x, tuple(parameters or ()))


# -- products and convolutions ---------------------------------------------------------------------


@onnx_op("FusedConv", domain=CONTRIB)
def fused_conv(m, x, w, bias=None, z=None, *, activation="", activation_params=None, **settings):
    """Convolution, then a sum with z, then an activation."""
    result = conv(m, x, w, bias, **settings)
    result = result if z is None else m.common("add", result, z)
    return activated(m, result, activation, activation_params)


@onnx_op("FusedGemm", domain=CONTRIB)
def fused_gemm(
    m, a, b, c=None, *, activation="", activation_alpha=None, activation_beta=None,
    activation_gamma=None, **settings,
):  # fmt: skip
    given = [p for p in (activation_alpha, activation_beta, activation_gamma) if p is not None]
    return activated(m, gemm(m, a, b, c, **settings), activation, given)


@onnx_op("NhwcConv", domain=CONTRIB)
def nhwc_conv(m, x, w, bias=None, **settings):
    """Convolution with channels last in x, the result, and after the first axis of w."""
    rank = m.rank(x)
    first = [0, rank - 1, *range(1, rank - 1)]
    x, w = (m.add("transpose", v, permutation=first) for v in (x, w))
    result = conv(m, x, w, bias, **settings)
    return m.add("transpose", result, permutation=[0, *range(2, rank), 1])


@onnx_op("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=CONTRIB)
def fused_mat_mul(
    m, a, b, *, alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0,
    activation="", activation_alpha=None, activation_beta=None, activation_gamma=None,
    activation_axis=None,
):  # fmt: skip
    """alpha * A B; transBatch moves the first axis in front of the last."""
    a, b = _turned(m, a, transA, transBatchA), _turned(m, b, transB, transBatchB)
    result = product(m, "dot", a, b)
    result = result if alpha == 1.0 else m.common("mul", result, m.lit(alpha, result))
    given = [p for p in (activation_alpha, activation_beta, activation_gamma) if p is not None]
    return activated(m, result, activation, given)


def _turned(m, x, inner, batch):
    rank = m.rank(x)
    order = list(range(rank))
    if batch and rank > 2:
        order = [*order[1:-1], 0, order[-1]]
    if inner and rank > 1:
        order[-1], order[-2] = order[-2], order[-1]
    return x if order == list(range(rank)) else m.add("transpose", x, permutation=order)


@onnx_op("Inverse", domain=CONTRIB)
def inverse(m, x):
    """Inverses of the last two axes: the adjugate over the determinant up to 3, else Newton's."""
    size = m.static_dims(x)[-1]
    if m.static_dims(x)[-2] != size:
        raise Error(f"the last two sizes {m.dims(x)[-2:]} differ")
    return m.add("onnx::inverse", x)


# -- norms -----------------------------------------------------------------------------------------


def _wide(m, x, function):
    """`function` of x in float32 (double stays), the first result in x's type."""
    kind = m.type(x)
    work = kind if kind == type_t.double_type else type_t.float_type
    first, *rest = function(m.convert(x, work))
    return m.convert(first, kind), *rest


def _last_norm(m, x, gamma, beta, epsilon):
    """Layer normalisation over the last axis: result, mean, 1 / deviation."""
    last = m.rank(x) - 1

    def function(y):
        result, center, deviation = normalize(m, y, [last], epsilon)
        kind = m.type(y)
        shift = None if beta is None else m.convert(beta, kind)
        return scale_shift(m, result, m.convert(gamma, kind), shift, last), center, deviation

    return _wide(m, x, function)


def _last_rms(m, x, gamma, epsilon):
    last = m.rank(x) - 1

    def function(y):
        result, deviation = rms_norm(m, y, [last], epsilon)
        return scale_shift(m, result, m.convert(gamma, m.type(y)), None, last), deviation

    return _wide(m, x, function)


def _skip_sum(m, x, skip, bias):
    total = m.common("add", x, skip)
    return total if bias is None else m.common("add", total, bias)


@onnx_op("SkipLayerNormalization", domain=CONTRIB)
def skip_layer_normalization(m, x, skip, gamma, beta=None, bias=None, *, epsilon=1e-12):
    """Layer normalisation of x + skip + bias; also mean, 1 / deviation and the sum."""
    total = _skip_sum(m, x, skip, bias)
    return *_last_norm(m, total, gamma, beta, epsilon), total


@onnx_op("SkipSimplifiedLayerNormalization", domain=CONTRIB)
def skip_simplified_layer_normalization(m, x, skip, gamma, bias=None, *, epsilon=1e-12):
    """As SkipLayerNormalization, without the mean."""
    total = _skip_sum(m, x, skip, bias)
    result, deviation = _last_rms(m, total, gamma, epsilon)
    return result, deviation, deviation, total


@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_normalization(m, x, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    """x / sqrt(mean(x²) + epsilon) * scale over the axes from `axis` on; and 1 / the root."""
    rank = m.rank(x)
    axes = list(range(m.axis(axis, rank), rank))
    wide = type_t.double_type if m.type(x) == type_t.double_type else element_type(stash_type)
    result, deviation = rms_norm(m, x, axes, epsilon, wide)
    kind = m.type(scale)
    return m.common("mul", m.convert(result, kind), scale), deviation


@onnx_op("EmbedLayerNormalization", domain=CONTRIB)
def embed_layer_normalization(
    m, ids, segments, words, positions, segment_table=None, gamma=None, beta=None, mask=None,
    position_ids=None, *, epsilon=1e-12, mask_index_type=0,
):  # fmt: skip
    """Layer normalisation of the sum of word, position and segment embeddings."""
    length = m.static_dims(ids)[1]
    total = m.add("gather", words, ids, axis=0)
    if position_ids is None:
        placed = part(m, positions, 0, 0, length)
    else:
        placed = m.add("gather", positions, position_ids, axis=0)
    total = m.common("add", total, placed)
    if segments is not None and segment_table is not None:
        total = m.common("add", total, m.add("gather", segment_table, segments, axis=0))
    result, _, _ = _last_norm(m, total, gamma, beta, epsilon)
    if mask is None:
        counts = m.broadcast(m.lit(np.array(0, np.int32)), (m.dims(ids)[0],))
    else:
        counts = m.add("reduce_sum", m.convert(mask, type_t.int32_type), axes=[1])
        counts = m.add("squeeze", counts, axes=[1])
    return result, counts, total


@onnx_op("GroupNorm", domain=CONTRIB)
def group_norm(m, x, gamma, beta, *, activation, channels_last=1, epsilon=1e-5, groups):
    """Group normalisation, channels last by default, then SiLU if `activation` is 1."""
    return _group_norm(m, x, gamma, beta, activation, channels_last, epsilon, groups)


@onnx_op("SkipGroupNorm", domain=CONTRIB)
def skip_group_norm(
    m, x, gamma, beta, skip, bias=None, *, activation, channels_last=1, epsilon=1e-5, groups
):
    dims = m.dims(x)
    if m.rank(skip) == 2:
        skip = m.reshape(skip, (dims[0], 1, 1, dims[3]))
    total = _skip_sum(m, x, skip, bias)
    return _group_norm(m, total, gamma, beta, activation, channels_last, epsilon, groups), total


def _group_norm(m, x, gamma, beta, activation, channels_last, epsilon, groups):
    rank = m.rank(x)
    if channels_last:
        x = m.add("transpose", x, permutation=[0, rank - 1, *range(1, rank - 1)])
    dims = m.dims(x)

    def function(y):
        split = m.reshape(y, (dims[0], groups, dims[1] // groups, -1))
        result, _, _ = normalize(m, split, [2, 3], epsilon)
        kind = m.type(y)
        result = m.reshape(result, dims)
        return (scale_shift(m, result, m.convert(gamma, kind), m.convert(beta, kind), 1),)

    (result,) = _wide(m, x, function)
    if activation:
        result = m.add("mul", result, m.add("sigmoid", result))
    if channels_last:
        result = m.add("transpose", result, permutation=[0, *range(2, rank), 1])
    return result


# -- tensors ---------------------------------------------------------------------------------------


@onnx_op("ConstantFill", domain=CONTRIB)
def constant_fill(
    m, shape: Const = None, *, value=0.0, dtype=1, input_as_shape=0, extra_shape=None
):
    """A tensor of one number; its shape an attribute or an input."""
    dims = [int(v) for v in np.asarray(shape).reshape(-1)]
    if not input_as_shape and isinstance(shape, np.ndarray) and "shape" not in _attributes(m):
        dims = list(np.asarray(shape).shape)
    number = m.lit(np.array(value), element_type(dtype))
    return m.broadcast(number, [*dims, *(extra_shape or [])])


def _attributes(m) -> set:
    return {a.name for a in m.node.attribute}


@onnx_op("ImageScaler", domain=CONTRIB)
def image_scaler(m, x, *, scale=1.0, bias=None):
    """x * scale + bias per channel."""
    result = m.common("mul", x, m.lit(scale, x))
    if not bias:
        return result
    shift = m.lit(np.array(bias, np.float32).reshape(-1, *[1] * (m.rank(x) - 2)), x)
    return m.common("add", result, shift)


@onnx_op("ATen", domain="org.pytorch.aten")
def aten(m, *xs, operator, mode=0, include_last_offset=0, overload_name=""):
    """PyTorch's embedding_bag of one bag."""
    if operator != "embedding_bag":
        raise Error(f"operator {operator!r}; accepted is embedding_bag")
    weights, ids = xs[0], xs[1]
    kinds = {0: "reduce_sum", 1: "reduce_mean", 2: "reduce_max"}
    if mode not in kinds:
        raise Error(f"mode is {mode}, accepted are 0 (sum), 1 (mean) and 2 (max)")
    rows = m.add("gather", weights, ids, axis=0)
    return m.add(kinds[mode], rows, axes=[0])


@onnx_op("ExpandDims", domain=CONTRIB)
def expand_dims(m, x, axis: Const):
    rank = m.rank(x) + 1
    return m.add("unsqueeze", x, axes=[m.axis(int(np.asarray(axis).reshape(-1)[0]), rank)])


@onnx_op("CDist", domain=CONTRIB)
def cdist(m, a, b, *, metric="sqeuclidean"):
    """Distances of the rows of a and b."""
    if metric not in ("euclidean", "sqeuclidean"):
        raise Error(f"metric {metric!r} is neither euclidean nor sqeuclidean")
    distance = m.common("sub", m.add("unsqueeze", a, axes=[1]), m.add("unsqueeze", b, axes=[0]))
    total = m.add("reduce_sum", m.add("mul", distance, distance), axes=[2])
    total = m.add("squeeze", total, axes=[2])
    return m.add("sqrt", total) if metric == "euclidean" else total


@onnx_op("GatherBlockQuantized", domain=CONTRIB)
def gather_block_quantized(
    m, data, indices, scales, zero_points=None, *, gather_axis=0, quantize_axis=1, block_size=128,
    bits=4,
):  # fmt: skip
    """Rows of a block-quantised table, as real numbers."""
    from .quant import dequantize

    real = dequantize(m, data, scales, zero_points, quantize_axis, block_size)
    return m.add("gather", real, indices, axis=m.axis(gather_axis, m.rank(real)))


@onnx_op("SwiGLU", since=28)
def swiglu(m, a, b, *, alpha=1.0):
    """a * sigmoid(alpha * a) * b for inputs of one shape."""
    if m.dims(a) != m.dims(b):
        raise Error(f"inputs differ: {list(map(str, m.dims(a)))}, {list(map(str, m.dims(b)))}")
    scaled = a if alpha == 1.0 else m.common("mul", m.lit(alpha, a), a)
    return m.add("mul", m.add("mul", a, m.add("sigmoid", scaled)), b)
