"""Builders of networks: convolution, matrix products, normalisation, rotary embedding, tile."""

from __future__ import annotations

import numpy as np

from ..dims import product
from ..errors import Error
from ..types import FLOATS, type_t
from .common import add_common_op, builder, common_dims, convert_to, halves, lit


def broadcast_along(m, x, like, axis: int = 1):
    """A vector spread over the dims of `like`, along an axis."""
    if like.shape().dynamic():
        return m.add("broadcast", x, like, axis=axis)
    return m.add("broadcast", x, axis=axis, out_lens=like.shape().dims)


# -- convolution ---------------------------------------------------------------------------------

AUTO_PAD = {"SAME_UPPER": 2, "SAME_LOWER": 1}


def window_attributes(x, auto_pad, paddings, strides, dilations, group, padding_mode) -> dict:
    """Attributes of a convolution; empty lists mean no padding and steps of one."""
    spatial = x.shape().rank - 2
    if spatial < 1:
        raise Error(f"the input {x.shape()} has no spatial axes")
    given = {"paddings": paddings, "strides": strides, "dilations": dilations}
    for key, values in given.items():
        allowed = (0, spatial, 2 * spatial) if key == "paddings" else (0, spatial)
        if len(values) not in allowed:
            raise Error(f"{key} has {len(values)} entries for {spatial} spatial axes")
    if auto_pad in AUTO_PAD:
        if any(paddings):
            raise Error(f"auto_pad {auto_pad} and paddings cannot both be given")
        padding_mode = AUTO_PAD[auto_pad]
    elif auto_pad not in ("NOTSET", "VALID", ""):
        raise Error(f"auto_pad is NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {auto_pad!r}")
    return {
        "padding": list(paddings) or [0] * spatial,
        "stride": list(strides) or [1] * spatial,
        "dilation": list(dilations) or [1] * spatial,
        "group": group,
        "padding_mode": padding_mode,
    }


def with_bias(m, result, bias):
    """A convolution's result plus one number for each channel."""
    if bias is None:
        return result
    bias = convert_to(m, bias, result.shape().type())
    return m.add("add", result, broadcast_along(m, bias, result))


@builder("convolution")
def convolution(
    m, x, w, bias=None, *, auto_pad="NOTSET", paddings=(), strides=(), dilations=(), group=1,
    padding_mode=0,
):  # fmt: skip
    """A convolution, and a bias for each channel."""
    attributes = window_attributes(x, auto_pad, paddings, strides, dilations, group, padding_mode)
    return with_bias(m, m.add("convolution", x, w, **attributes), bias)


@builder("quant_convolution")
def quant_convolution(
    m, x, w, x_zero=None, w_zero=None, *, auto_pad="NOTSET", paddings=(), strides=(),
    dilations=(), group=1, padding_mode=0,
):  # fmt: skip
    """A convolution of quantised numbers, whose zero points are taken off before."""
    attributes = window_attributes(x, auto_pad, paddings, strides, dilations, group, padding_mode)
    bytes_ = (type_t.int8_type, type_t.uint8_type)
    plain = x_zero is None and w_zero is None
    if plain and type_t.uint8_type not in (x.shape().type(), w.shape().type()):
        return m.add("quant_convolution", x, w, **attributes)
    for given in (x, w):
        if given.shape().type() not in bytes_:
            raise Error(f"zero points need int8 or uint8 data, got {given.shape().type_string()}")
    return m.add(
        "convolution", without_zero(m, x, x_zero, 1), without_zero(m, w, w_zero, 0), **attributes
    )


def without_zero(m, x, zero, axis: int):
    """Quantised numbers minus their zero point, as int32; the zero point may differ by channel."""
    wide = convert_to(m, x, type_t.int32_type)
    if zero is None:
        return wide
    zero = convert_to(m, zero, type_t.int32_type)
    if not zero.shape().is_rank0() and zero.shape().dims != (1,):
        zero = broadcast_along(m, zero, wide, axis)
    return add_common_op(m, "sub", wide, zero)


# -- matrix products -----------------------------------------------------------------------------


def batched(m, a, b) -> list:
    """Two matrix operands with the same batch dims."""
    left, right = a.shape(), b.shape()
    if min(left.rank, right.rank) < 2:
        raise Error(f"matrices are needed, got {left} and {right}")
    if left.dims[:-2] == right.dims[:-2]:
        return [a, b]
    if left.dynamic() or right.dynamic():
        return [m.add("broadcast_for_dot", a, b), m.add("broadcast_for_dot", b, a)]
    shapes = [s.standard_of(s.dims[:-2] or (1,)) for s in (left, right)]
    batch = common_dims(shapes)
    return [
        i if i.shape().dims == (*batch, *i.shape().dims[-2:])
        else m.add("multibroadcast", i, out_lens=(*batch, *i.shape().dims[-2:]))
        for i in (a, b)
    ]  # fmt: skip


@builder("dot")
def dot(m, a, b):
    """A matrix product with NumPy's broadcasting of the batch axes."""
    kinds = [i.shape().type() for i in (a, b)]
    if kinds[0] != kinds[1]:
        a, b = (convert_to(m, i, type_t.float_type) for i in (a, b)) if (
            type_t.double_type not in kinds
        ) else (convert_to(m, i, type_t.double_type) for i in (a, b))  # fmt: skip
    return m.add("dot", *batched(m, a, b))


@builder("quant_dot")
def quant_dot(m, a, b):
    """A matrix product of quantised numbers with broadcasting of the batch axes."""
    return m.add("quant_dot", *batched(m, a, b))


@builder("gemm")
def gemm(m, a, b, c=None, *, alpha=1.0, beta=1.0, transA=False, transB=False):
    """alpha * A @ B + beta * C for matrices; C is broadcast, and left out if beta is 0."""
    for x in (a, b):
        if x.shape().rank != 2:
            raise Error(f"A and B should be rank 2, got {x.shape()}")
    kind = a.shape().type()
    if alpha != 1:
        a = convert_to(m, add_common_op(m, "mul", lit(m, alpha, scale_type(kind)), a), kind)
    a = m.add("transpose", a, permutation=[1, 0]) if transA else a
    b = m.add("transpose", b, permutation=[1, 0]) if transB else b
    result = m.add("dot", a, b)
    if c is None or beta == 0:
        return result
    shape = result.shape()
    if not shape.dynamic() and not c.shape().dynamic() and c.shape().dims != shape.dims:
        c = m.add("multibroadcast", c, out_lens=shape.dims)
    if beta != 1:
        scaled = add_common_op(m, "mul", c, lit(m, beta, scale_type(kind)))
        c = convert_to(m, scaled, c.shape().type())
    return add_common_op(m, "add", result, c)


def scale_type(kind):
    """The type of a factor that may be a fraction."""
    return kind if kind in FLOATS else type_t.float_type


# -- normalisation -------------------------------------------------------------------------------


@builder("batchnorm")
def batchnorm(m, x, scale, bias, mean, var, *, epsilon=1e-5):
    """(x - mean) * scale / sqrt(var + epsilon) + bias; one of each for every channel."""
    given = [scale, bias, mean, var]
    if any(i.shape().rank != 1 for i in given):
        raise Error("scale, bias, mean and var must be vectors")
    small = lit(m, epsilon, x)
    rank = x.shape().rank
    if rank > 2:
        axes = list(range(1, rank - 1))
        given = [m.add("unsqueeze", i, axes=axes) for i in given]
    scale, bias, mean, var = given
    centred = add_common_op(m, "sub", x, mean)
    spread = m.add("rsqrt", add_common_op(m, "add", var, small))
    factor = add_common_op(m, "mul", scale, spread)
    scaled = add_common_op(m, "mul", centred, factor)
    return add_common_op(m, "add", scaled, bias)


@builder("mean_variance_normalization")
def mean_variance_normalization(m, x, *, axes=(0, 2, 3)):
    """(x - mean) / (sqrt(E[x**2] - mean**2) + 1e-9), 1e-7 for half, over `axes`."""
    axes, rank = list(axes), x.shape().rank
    if len(axes) != rank - 1:
        raise Error(
            "Length of axes array needs to be equal to input tensor rank - 1: "
            f"got {axes} for {rank}"
        )
    mean = m.add("reduce_mean", x, axes=axes)
    square = m.add("reduce_mean", m.add("mul", x, x), axes=axes)
    spread = m.add("sqrt", m.add("sub", square, m.add("mul", mean, mean)))
    small = lit(m, 1e-7 if x.shape().type() == type_t.half_type else 1e-9, x)
    centred = add_common_op(m, "sub", x, mean)
    return add_common_op(m, "div", centred, add_common_op(m, "add", spread, small))


# -- others --------------------------------------------------------------------------------------


@builder("rotary_embedding")
def rotary_embedding(m, x, position_ids, cos, sin, *, interleaved=False):
    """Turns pairs of features by angles that depend on the position.

    `x` is [batch, heads, sequence, features]; `position_ids` [batch, sequence], or one number
    that is the position of the first element; rows of `cos` and `sin` belong to positions. Pairs
    are neighbours if `interleaved`, else one from each half. Features beyond twice the columns of
    `cos` stay.
    """
    shape = x.shape()
    if shape.rank != 4:
        raise Error(f"the input should have 4 dimensions, got {shape}")
    features, turned = shape.dims[3], 2 * cos.shape().dims[-1]
    if turned > features:
        raise Error(f"cos and sin turn {turned} features, the input has {features}")
    rest = None
    if turned != features:
        rest = m.add("slice", x, axes=[3], starts=[turned], ends=[features])
        x = m.add("slice", x, axes=[3], starts=[0], ends=[turned])
    positions = all_positions(m, position_ids, shape.dims[2])
    c, s = (m.add("unsqueeze", m.add("gather", t, positions, axis=0), axes=[1]) for t in (cos, sin))
    if interleaved:
        first, second = neighbours(m, x)
    else:
        first, second = halves(m, x, 3)
    ahead = m.add("sub", *(add_common_op(m, "mul", v, w) for v, w in ((first, c), (second, s))))
    behind = m.add("add", *(add_common_op(m, "mul", v, w) for v, w in ((second, c), (first, s))))
    if interleaved:
        parts = [m.add("unsqueeze", v, axes=[4]) for v in (ahead, behind)]
        result = m.add("reshape", m.add("concat", *parts, axis=4), dims=x.shape().dims)
    else:
        result = m.add("concat", ahead, behind, axis=3)
    return result if rest is None else m.add("concat", result, rest, axis=3)


def all_positions(m, position_ids, length):
    """[batch, sequence] positions, also from that of the first element alone."""
    shape = position_ids.shape()
    if shape.rank == 2:
        return position_ids
    steps = lit(m, np.arange(length).reshape(1, -1), position_ids)
    return add_common_op(m, "add", position_ids, steps)


def neighbours(m, x) -> list:
    """Even and odd elements of the last axis."""
    dims = x.shape().dims
    pairs = m.add("reshape", x, dims=(*dims[:-1], dims[-1] // 2, 2))
    axis = len(dims)
    return [
        m.add("squeeze", m.add("slice", pairs, axes=[axis], starts=[k], ends=[k + 1]), axes=[axis])
        for k in (0, 1)
    ]


@builder("tile")
def tile(m, x, *, repeats):
    """The tensor repeated along each axis."""
    dims, counts = x.shape().dims, list(repeats)
    if len(counts) != len(dims):
        raise Error(f"{len(counts)} repeats for {len(dims)} dimensions")
    if any(c < 0 for c in counts):
        raise Error(f"repeats {counts} cannot be negative")
    if all(c == 1 for c in counts):
        return m.add("identity", x)
    apart = m.add("unsqueeze", x, axes=list(range(0, 2 * len(dims), 2)))
    spread = [n for pair in zip(counts, dims, strict=True) for n in pair]
    apart = m.add("multibroadcast", apart, out_lens=spread)
    return m.add("reshape", apart, dims=[product(p) for p in zip(counts, dims, strict=True)])
