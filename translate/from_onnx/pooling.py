"""Pooling of ONNX, and its inverse."""

from __future__ import annotations

import math

import numpy as np

from migraphx.dims import Dim
from migraphx.types import type_t

from .nn import spatial, window
from .registry import Const, onnx_op
from .tensor import cut


@onnx_op("AveragePool")
def average_pool(
    m, x, *, kernel_shape, strides=None, pads=None, dilations=None, auto_pad="NOTSET",
    ceil_mode=0, count_include_pad=0,
):  # fmt: skip
    at = window(m, x, kernel_shape, strides, pads, dilations, auto_pad)
    return pool(m, x, "average", kernel_shape, at, ceil_mode, count_include_pad)


@onnx_op("LpPool", since=2)
def lp_pool(
    m, x, *, kernel_shape, p=2, strides=None, pads=None, dilations=None, auto_pad="NOTSET",
    ceil_mode=0,
):  # fmt: skip
    at = window(m, x, kernel_shape, strides, pads, dilations, auto_pad)
    return pool(m, x, "lpnorm", kernel_shape, at, ceil_mode, 0, p)


def pool(m, x, mode, kernel, at, ceil_mode, count_include_pad=0, order=2):
    """The `pooling` operator; half, bf16 and integers as they are."""
    result = m.add(
        "pooling", x, mode=mode, padding=at["pads"], stride=at["strides"], lengths=kernel,
        dilations=at["dilations"], ceil_mode=bool(ceil_mode),
        count_include_pad=bool(count_include_pad), lp_order=order,
    )  # fmt: skip
    return begun_inside(m, x, result, kernel, at) if ceil_mode else result


def begun_inside(m, x, result, kernel, at):
    """Leaves out a last window, of ceil_mode, that would begin in the padding at the end."""
    count = len(kernel)
    axes, ends = [], []
    for k in range(count):
        before, after, stride = at["pads"][k], at["pads"][k + count], at["strides"][k]
        if after + stride <= at["dilations"][k] * (kernel[k] - 1) + 1:
            continue  # the last window is never that late
        size, places = m.static_dims(x)[2 + k], m.static_dims(result)[2 + k]
        if (places - 1) * stride >= size + before:
            axes.append(2 + k)
            ends.append(places - 1)
    return cut(m, result, axes, [0] * len(axes), ends) if axes else result


@onnx_op("MaxPool")
def max_pool(
    m, x, *, kernel_shape, strides=None, pads=None, dilations=None, auto_pad="NOTSET",
    ceil_mode=0, storage_order=0,
):  # fmt: skip
    at = window(m, x, kernel_shape, strides, pads, dilations, auto_pad)
    result = pool(m, x, "max", kernel_shape, at, ceil_mode)
    if m.outputs < 2 or not m.node.output[1]:
        return result
    return result, max_pool_indices(m, x, result, kernel_shape, at, storage_order)


def max_pool_indices(m, x, result, kernel, at, storage_order):
    """Flat position in x of each maximum: the first tap, in order, that equals it."""
    dims, out = m.static_dims(x), m.static_dims(result)
    count = len(kernel)
    flat = np.arange(math.prod(dims), dtype=np.int64).reshape(dims)
    if storage_order:
        order = list(range(len(dims) - count)) + list(range(len(dims) - 1, 1, -1))
        column = np.arange(math.prod(dims[2:])).reshape(dims[2:][::-1]).transpose()
        image = np.arange(math.prod(dims[:2])).reshape(dims[:2]) * math.prod(dims[2:])
        flat = (image.reshape(dims[:2] + (1,) * count) + column).astype(np.int64)
        del order
    rows = x if x.shape().standard() else m.add("contiguous", x)
    values = m.reshape(rows, [-1])
    index = None
    for tap in reversed(list(np.ndindex(*kernel))):
        places, valid = tap_places(dims, out, tap, at)
        here = m.add("gather", values, m.lit(places), axis=0)
        equal = m.convert(m.common("equal", here, result), type_t.bool_type)
        match = m.common("logical_and", equal, m.lit(valid))
        from .math import where_common

        where = m.lit(flat.reshape(-1)[places])
        index = where if index is None else where_common(m, match, where, index)
    return index


def tap_places(dims, out, tap, at):
    """For one tap of the window: flat positions in the input for each output, and which exist."""
    count = len(tap)
    grids, valid = [], np.ones(out[2:], bool)
    for k in range(count):
        start = np.arange(out[k + 2]) * at["strides"][k] - at["pads"][k]
        place = start + tap[k] * at["dilations"][k]
        inside = (place >= 0) & (place < dims[k + 2])
        shape = [-1 if j == k else 1 for j in range(count)]
        valid &= inside.reshape(shape)
        grids.append(np.clip(place, 0, dims[k + 2] - 1).reshape(shape))
    position = np.zeros(out[2:], np.int64)
    for k in range(count):
        position = position * dims[k + 2] + grids[k]
    plane = math.prod(dims[2:])
    base = np.arange(dims[0] * dims[1]).reshape(dims[0], dims[1]) * plane
    full = base.reshape(base.shape + (1,) * count) + position
    return full.astype(np.int64), np.broadcast_to(valid, out).copy()


@onnx_op("MaxUnpool")
def max_unpool(m, x, indices, output_shape: Const = None, *, kernel_shape, strides=None, pads=None):
    """Places each value at its index in a tensor of zeros."""
    dims = m.static_dims(x)
    count = len(kernel_shape)
    strides = spatial(strides, count, 1, "strides")
    pads = list(pads or [0] * (2 * count))
    natural = list(dims[:2]) + [
        (dims[k + 2] - 1) * strides[k] + kernel_shape[k] - pads[k] - pads[k + count]
        for k in range(count)
    ]
    want = natural if output_shape is None else [int(v) for v in output_shape]
    zeros = m.broadcast(m.lit(0, x), [math.prod(natural)])
    flat = m.add(
        "scatter_none", m.add("contiguous", zeros), m.reshape(indices, [-1]), m.reshape(x, [-1]),
        axis=0,
    )  # fmt: skip
    result = m.reshape(flat, natural)
    if want == natural:
        return result
    grow = [0] * len(want) + [w - n for w, n in zip(want, natural, strict=True)]
    return m.add("pad", result, pads=grow)


def _global(mode):
    def handler(m, x, *, p=2):
        dims = m.dims(x)
        count = len(dims) - 2
        if any(isinstance(d, Dim) and not d.is_fixed() for d in dims[2:]):
            return m.add(
                "pooling", x, mode=mode, lengths=[], stride=[], padding=[], dilations=[],
                lp_order=p, dyn_global=True,
            )  # fmt: skip
        sizes = [d.min if isinstance(d, Dim) else d for d in dims[2:]]
        at = {"pads": [0] * (2 * count), "strides": [1] * count, "dilations": [1] * count}
        return pool(m, x, mode, sizes, at, 0, 0, p)

    return handler


for _name, _mode in {
    "GlobalAveragePool": "average", "GlobalMaxPool": "max", "GlobalLpPool": "lpnorm",
}.items():  # fmt: skip
    onnx_op(_name)(_global(_mode))
