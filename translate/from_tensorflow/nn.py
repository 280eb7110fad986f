"""Convolution, pooling and normalisation of TensorFlow, computed channels-first."""

from __future__ import annotations

import math

import numpy as np

from migraphx.errors import Error

from .builder import first_order
from .registry import tf_op
from .shared import Const, add_bias, batch_norm_training, conv_transpose, window

PADDINGS = {"SAME": "SAME_UPPER", "VALID": "VALID", "EXPLICIT": "NOTSET"}


def spatial(values, rank: int, data_format: str, name: str, default: int = 1) -> list:
    """The numbers of an attribute for the spatial axes; those of batch and channels must be 1."""
    values = list(values or [default] * rank)
    if len(values) == 1:
        values *= rank
    if len(values) == rank - 2:
        return values
    if len(values) != rank:
        raise Error(f"{name} {values} needs {rank} numbers")
    ordered = values if data_format.startswith("NC") else [values[k] for k in first_order(rank)]
    if ordered[:2] != [1, 1]:
        raise Error(f"{name} {values}: over batch and channels it must be 1")
    return ordered[2:]


def explicit(values, rank: int, data_format: str) -> list:
    """explicit_paddings as begins and ends of the spatial axes."""
    if len(values) != 2 * rank:
        raise Error(f"explicit_paddings {list(values)} needs {2 * rank} numbers")
    order = range(rank) if data_format.startswith("NC") else first_order(rank)
    pairs = [(values[2 * k], values[2 * k + 1]) for k in order]
    if pairs[0] != (0, 0) or pairs[1] != (0, 0):
        raise Error(f"explicit_paddings {list(values)} pads batch or channels")
    return [a for a, _ in pairs[2:]] + [b for _, b in pairs[2:]]


def placed(m, x, kernel, strides, padding, paddings, dilations, data_format) -> dict:
    """Strides, dilations and pads of a window over channels-first `x`."""
    rank = m.rank(x)
    if padding not in PADDINGS:
        raise Error(f"padding {padding!r} is none of {', '.join(PADDINGS)}")
    pads = explicit(paddings, rank, data_format) if padding == "EXPLICIT" else None
    steps = spatial(strides, rank, data_format, "strides")
    spread = spatial(dilations, rank, data_format, "dilations")
    return window(m, x, kernel, steps, pads, spread, PADDINGS[padding])


def checked_rank(m, x, rank: int) -> None:
    """Refuses inputs of another rank."""
    if m.rank(x) != rank:
        raise Error(f"an input of rank {m.rank(x)}; {rank} is needed")


# -- convolution -----------------------------------------------------------------------------------


def convolve(m, x, filters, strides, padding, paddings, dilations, data_format, rank):
    """A convolution in TensorFlow's layout; fewer input channels in the filter mean groups."""
    checked_rank(m, x, rank)
    checked_rank(m, filters, rank)
    x = m.first(x, data_format)
    weights = m.permuted(filters, [rank - 1, rank - 2, *range(rank - 2)])
    channels, inside = m.dims(x)[1], m.dims(weights)[1]
    if channels % inside:
        raise Error(f"{channels} channels and a filter for {inside} do not fit")
    at = placed(
        m, x, m.static_dims(weights)[2:], strides, padding, paddings, dilations, data_format
    )
    return m.last(convolution(m, x, weights, at, channels // inside), data_format)


def convolution(m, x, weights, at, groups):
    """The operator, channels-first."""
    return m.add(
        "convolution", x, weights, padding=at["pads"], stride=at["strides"],
        dilation=at["dilations"], group=groups,
    )  # fmt: skip


@tf_op("Conv2D")
def conv2d(
    m, x, filters, *, strides, padding, explicit_paddings=(), data_format="NHWC", dilations=None
):
    return convolve(m, x, filters, strides, padding, explicit_paddings, dilations, data_format, 4)


@tf_op("Conv3D")
def conv3d(m, x, filters, *, strides, padding, data_format="NDHWC", dilations=None):
    return convolve(m, x, filters, strides, padding, (), dilations, data_format, 5)


@tf_op("DepthwiseConv2dNative")
def depthwise(
    m, x, filters, *, strides, padding, explicit_paddings=(), data_format="NHWC", dilations=None
):
    """One group per channel: filters [h, w, channels, multiplier]."""
    checked_rank(m, x, 4)
    checked_rank(m, filters, 4)
    x = m.first(x, data_format)
    high, wide, channels, multiplier = m.static_dims(filters)
    if channels != m.dims(x)[1]:
        raise Error(f"{m.dims(x)[1]} channels and a filter for {channels} do not fit")
    weights = m.shaped(m.permuted(filters, [2, 3, 0, 1]), [channels * multiplier, 1, high, wide])
    at = placed(
        m, x, [high, wide], strides, padding, explicit_paddings, dilations, data_format
    )  # fmt: skip
    return m.last(convolution(m, x, weights, at, channels), data_format)


def transposed(m, sizes, filters, x, strides, padding, paddings, dilations, data_format, rank):
    """The gradient of a convolution by its input, whose sizes are given."""
    checked_rank(m, x, rank)
    x = m.first(x, data_format)
    weights = m.permuted(filters, [rank - 1, rank - 2, *range(rank - 2)])
    kernel = m.static_dims(weights)[2:]
    sizes = [int(v) for v in np.asarray(sizes).reshape(-1)]
    if len(sizes) == rank:
        order = range(rank) if data_format.startswith("NC") else first_order(rank)
        sizes = [sizes[k] for k in order][2:]
    steps = spatial(strides, rank, data_format, "strides")
    spread = spatial(dilations, rank, data_format, "dilations")
    given = explicit(paddings, rank, data_format) if padding == "EXPLICIT" else None
    begin, end = [], []
    for k, (n, size) in enumerate(zip(m.static_dims(x)[2:], sizes, strict=True)):
        reach = (kernel[k] - 1) * spread[k] + 1
        total = 0
        if padding == "SAME":
            total = max((-(-size // steps[k]) - 1) * steps[k] + reach - size, 0)
        first = total // 2 if given is None else given[k]
        begin.append(first)
        end.append((n - 1) * steps[k] + reach - size - first)
    result = conv_transpose(
        m, x, weights, strides=steps, pads=begin + end, dilations=spread
    )  # fmt: skip
    return m.last(result, data_format)


@tf_op("Conv2DBackpropInput")
def conv2d_backprop(
    m, sizes: Const, filters, x, *, strides, padding, explicit_paddings=(), data_format="NHWC",
    dilations=None,
):  # fmt: skip
    return transposed(
        m, sizes, filters, x, strides, padding, explicit_paddings, dilations, data_format, 4
    )


@tf_op("Conv3DBackpropInputV2")
def conv3d_backprop(
    m, sizes: Const, filters, x, *, strides, padding, data_format="NDHWC", dilations=None
):
    return transposed(m, sizes, filters, x, strides, padding, (), dilations, data_format, 5)


@tf_op("BiasAdd")
def bias_add(m, x, bias, *, data_format="NHWC"):
    """One number per channel."""
    if m.rank(x) > 2 and data_format.startswith("NC"):
        return add_bias(m, x, bias)
    if m.is_image(x):
        return m.last(add_bias(m, m.first(x), bias))
    return m.common("add", x, bias)


tf_op("BiasAddV1")(lambda m, x, bias: bias_add(m, x, bias))


# -- pooling ---------------------------------------------------------------------------------------


def pooled(m, x, mode, ksize, strides, padding, paddings, data_format, rank):
    """Averages (of what lies inside) or maxima of windows."""
    checked_rank(m, x, rank)
    x = m.first(x, data_format)
    kernel = spatial(ksize, rank, data_format, "ksize")
    at = placed(m, x, kernel, strides, padding, paddings, None, data_format)
    result = m.add(
        "pooling", x, mode=mode, padding=at["pads"], stride=at["strides"], lengths=kernel,
        dilations=at["dilations"],
    )  # fmt: skip
    return m.last(result, data_format)


@tf_op("AvgPool")
def avg_pool(m, x, *, ksize, strides, padding, data_format="NHWC"):
    return pooled(m, x, "average", ksize, strides, padding, (), data_format, 4)


@tf_op("MaxPool")
def max_pool(m, x, *, ksize, strides, padding, explicit_paddings=(), data_format="NHWC"):
    return pooled(m, x, "max", ksize, strides, padding, explicit_paddings, data_format, 4)


@tf_op("MaxPoolV2")
def max_pool_v2(m, x, ksize: Const, strides: Const, *, padding, data_format="NHWC"):
    sizes, steps = ([int(v) for v in a.reshape(-1)] for a in (ksize, strides))
    return pooled(m, x, "max", sizes, steps, padding, (), data_format, 4)


@tf_op("AvgPool3D")
def avg_pool_3d(m, x, *, ksize, strides, padding, data_format="NDHWC"):
    return pooled(m, x, "average", ksize, strides, padding, (), data_format, 5)


@tf_op("MaxPool3D")
def max_pool_3d(m, x, *, ksize, strides, padding, data_format="NDHWC"):
    return pooled(m, x, "max", ksize, strides, padding, (), data_format, 5)


# -- normalisation ---------------------------------------------------------------------------------

BATCH_NORM = ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2",
              "reserve_space_3")  # fmt: skip


@tf_op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", outputs=BATCH_NORM)
def batch_norm(
    m, x, scale, offset, mean, variance, *, epsilon=1e-4, data_format="NHWC", is_training=True
):
    """By the statistics given or, in a graph frozen while training, by those of the batch."""
    kind = m.type(x)
    y = m.first(x, data_format)
    if is_training:
        y = m.convert(y, m.type(scale))
        axes = [k for k in range(m.rank(y)) if k != 1]
        center = m.add("reduce_mean", y, axes=axes)
        spread = m.add("reduce_mean", m.common("sqdiff", y, center), axes=axes)
        mean, biased = (m.add("squeeze", v, axes=axes) for v in (center, spread))
        count = math.prod(m.static_dims(y)) // max(m.static_dims(y)[1], 1)
        result = batch_norm_training(m, y, scale, offset, mean, biased, epsilon, 0.0)[0]
        variance = m.common("mul", biased, m.lit(count / max(count - 1, 1), biased))
        result = m.convert(result, kind)
    else:
        parts = (m.convert(v, kind) for v in (scale, offset, mean, variance))
        result = m.call("batchnorm", y, *parts, epsilon=epsilon)
    result = m.last(result, data_format)
    return result, mean, variance, mean, variance, m.lit(np.zeros(1, np.float32))


@tf_op("LRN")
def lrn(m, x, *, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5):
    """TensorFlow's alpha counts per channel, MIGraphX's for the whole window."""
    size = 2 * depth_radius + 1
    y = m.add("lrn", m.first(x), size=size, alpha=alpha * size, beta=beta, bias=bias)
    return m.last(y)
