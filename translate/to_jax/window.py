"""Lowering of convolution, pooling, im2col and lrn."""

from __future__ import annotations

import itertools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from migraphx.errors import Error
from migraphx.ops.base import PaddingMode, PoolingMode
from migraphx.ops.window import same_pads

from .convolve import Window, convolve_last
from .numeric import BOOL, FLOAT32, int_limits, is_float, is_int, is_small, is_tiny, narrow
from .registry import context, lower

SHIFTED_MOST = 16  # windows longer than this along an axis are left to reduce_window


def pads_of(op, x, kernel, dilation) -> list:
    """(before, after) of each spatial axis of `x`."""
    rank = x.ndim - 2
    if op.padding_mode == PaddingMode.default_ or not getattr(op, "automatic", True):
        return op.both_pads(rank)
    return [
        same_pads(x.shape[2 + k], kernel[k], op.stride[k], dilation[k], op.padding_mode)
        for k in range(rank)
    ]


# -- convolution -----------------------------------------------------------------------------------


def computed_in(dtype) -> np.dtype:
    """The type in which products of `dtype` are summed."""
    if is_small(dtype):
        return FLOAT32
    return np.dtype(np.int32) if is_tiny(dtype) or dtype == BOOL else np.dtype(dtype)


def convolve(x, w, out, *, stride, pads, dilation, group, lhs_dilation=()):
    """The convolution of (N, C, …) with (O, C/group, …), summed in `out`.

    On CPUs channels stand last while convolving: XLA's kernels there want them so.
    """
    rank = x.ndim - 2
    same = x.dtype == w.dtype == out
    if not same:  # narrow floats and 8-bit numbers: the device may sum them wider itself
        if context().platform == "cpu" or is_tiny(x.dtype):
            x, w = x.astype(out), w.astype(out)
    if context().platform == "cpu" and rank <= 3:
        window = Window(
            tuple(stride), tuple(map(tuple, pads)), tuple(dilation), group, tuple(lhs_dilation)
        )
        x = x.transpose(0, *range(2, x.ndim), 1)
        w = w.transpose(*range(2, w.ndim), 1, 0)
        result = convolve_last(x, w, window, out)
        return result.transpose(0, result.ndim - 1, *range(1, result.ndim - 1))
    return lax.conv_general_dilated(
        x, w, stride, pads, lhs_dilation or None, dilation, feature_group_count=group,
        precision=context().precision, preferred_element_type=out,
    )  # fmt: skip


@lower("convolution", numpy=False)
def convolution(op, xp, x, w):
    dtype, out = x.dtype, computed_in(x.dtype)
    pads = pads_of(op, x, w.shape[2:], op.dilation)
    if dtype == BOOL:
        x, w = x.astype(out), w.astype(out)
    result = sized(op, x, w, out, pads)
    return result != 0 if dtype == BOOL else result.astype(dtype)


def sized(op, x, w, out, pads, least: int = 0):
    """`convolve`; empty where the window does not fit."""
    dims = [
        max((n + sum(p) - (d * (k - 1) + 1)) // s + 1, least)
        for n, p, k, s, d in zip(
            x.shape[2:], pads, w.shape[2:], op.stride, op.dilation, strict=True
        )
    ]
    if 0 in dims or 0 in x.shape or 0 in w.shape:
        return jnp.zeros((x.shape[0], w.shape[0], *dims), out)
    return convolve(x, w, out, stride=op.stride, pads=pads, dilation=op.dilation, group=op.group)


@lower("quant_convolution", numpy=False)
def quant_convolution(op, xp, x, w, *scales):
    out = np.dtype(np.int32) if x.dtype.kind in "iu" else FLOAT32
    pads = pads_of(op, x, w.shape[2:], op.dilation)
    if scales:
        x, w = (v.astype(FLOAT32) * s.astype(FLOAT32) for v, s in zip((x, w), scales, strict=True))
        return sized(op, x, w, FLOAT32, pads).astype(out)
    return sized(op, x, w, out, pads)


@lower("convolution_backwards", numpy=False)
def convolution_backwards(op, xp, x, w):
    """A convolution of the input spread by the strides with the kernel turned around."""
    dtype, out, group = x.dtype, computed_in(x.dtype), op.group
    rank = x.ndim - 2
    channels, per_group = w.shape[0], w.shape[1]
    kernel = w.shape[2:]
    turned = jnp.flip(w, tuple(range(2, w.ndim)))
    turned = turned.reshape(group, channels // group, per_group, *kernel).swapaxes(1, 2)
    turned = turned.reshape(group * per_group, channels // group, *kernel)
    reach = [op.dilation[k] * (kernel[k] - 1) for k in range(rank)]
    dims = [
        max((x.shape[2 + k] - 1) * op.stride[k] + reach[k] + 1 - 2 * op.padding[k], 1)
        for k in range(rank)
    ]
    if 0 in x.shape or 0 in w.shape:
        return jnp.zeros((x.shape[0], group * per_group, *dims), dtype)
    pads = [(reach[k] - op.padding[k], reach[k] - op.padding[k]) for k in range(rank)]
    result = convolve(
        x, turned, out, stride=(1,) * rank, pads=pads, dilation=op.dilation, group=group,
        lhs_dilation=op.stride,
    )  # fmt: skip
    return result.astype(dtype)


# -- pooling ---------------------------------------------------------------------------------------


@lower("pooling", numpy=False)
def pooling(op, xp, x):
    if op.dyn_global or covers_all(op, x):
        return pool_all(op, x)
    function = {
        PoolingMode.max: max_pool,
        PoolingMode.average: average_pool,
        PoolingMode.lpnorm: norm_pool,
    }[op.mode]
    return function(op, x, pads_of(op, x, op.lengths, op.dilations))


def covers_all(op, x) -> bool:
    """True if there is one window, of the size of the input."""
    pads = pads_of(op, x, op.lengths, op.dilations)
    return tuple(op.lengths) == x.shape[2:] and set(op.dilations) <= {1} and not any(map(any, pads))


def pool_all(op, x):
    """One window over the whole spatial extent."""
    axes = tuple(range(2, x.ndim))
    if op.mode == PoolingMode.average and x.dtype == FLOAT32 and context().platform == "cpu":
        return mean_as_product(x)
    if op.mode == PoolingMode.max:
        return x.max(axes, keepdims=True, initial=lowest(x.dtype))
    wide = x.astype(wide_type(x.dtype))
    if op.mode == PoolingMode.average:
        count = max(math.prod(x.shape[2:]), 1)
        return narrow(jnp, wide.sum(axes, keepdims=True) / count, x.dtype)
    total = power(wide, op.lp_order).sum(axes, keepdims=True)
    return narrow(jnp, root(total, op.lp_order), x.dtype)


def mean_as_product(x):
    """Channels last, a row of ones times the places: XLA's reductions swallow the convolutions
    before them and run those on one thread.
    """
    count = math.prod(x.shape[2:])
    places = x.transpose(0, *range(2, x.ndim), 1).reshape(x.shape[0], count, x.shape[1])
    row = jnp.full((1, count), 1 / max(count, 1), x.dtype)
    mean = jnp.matmul(row, places, precision=context().precision)
    return mean.transpose(0, 2, 1).reshape(*x.shape[:2], *[1] * (x.ndim - 2))


def wide_type(dtype):
    """Sums of whole numbers are exact in float64; small floats are summed in float32."""
    if is_int(dtype) or dtype == BOOL:
        return np.float64
    return FLOAT32 if is_small(dtype) else dtype


def lowest(dtype):
    """The number that no maximum keeps."""
    if dtype == BOOL:
        return False
    if is_int(dtype):
        return int_limits(dtype)[0]
    return -np.inf


def max_pool(op, x, pads):
    if x.dtype == BOOL or (is_tiny(x.dtype)):
        wide = np.int8 if x.dtype == BOOL else FLOAT32 if is_float(x.dtype) else np.int32
        return max_pool(op, x.astype(wide), pads).astype(x.dtype)
    return windows(op, x, pads, lowest(x.dtype), jnp.maximum, lax.max)


def average_pool(op, x, pads):
    wide = x.astype(wide_type(x.dtype))
    total = windows(op, wide, pads, 0, jnp.add, lax.add)
    return narrow(jnp, total / counts(op, x, pads).astype(total.dtype), x.dtype)


def norm_pool(op, x, pads):
    wide = power(x.astype(wide_type(x.dtype)), op.lp_order)
    return narrow(jnp, root(windows(op, wide, pads, 0, jnp.add, lax.add), op.lp_order), x.dtype)


def power(x, order: int):
    if order == 0:
        return jnp.ones_like(x)
    return jnp.abs(x) if order == 1 else x * x if order == 2 else jnp.abs(x) ** order


def root(total, order: int):
    if order == 0:
        return jnp.ones_like(total)
    return total if order == 1 else jnp.sqrt(total) if order == 2 else total ** (1 / order)


def out_sizes(op, x, pads) -> list:
    """Places of the window along each spatial axis."""
    sizes = []
    for k, (before, after) in enumerate(pads):
        room = x.shape[2 + k] + before + after - (op.dilations[k] * (op.lengths[k] - 1) + 1)
        stride = op.stride[k]
        up = op.ceil_mode and op.padding_mode == PaddingMode.default_
        sizes.append((room + (stride - 1 if up else 0)) // stride + 1)
    return sizes


def counts(op, x, pads) -> np.ndarray:
    """Elements that each window divides by, with the axes (1, 1, spatial…)."""
    total = np.ones((1, 1), np.int64)
    for k, places in enumerate(out_sizes(op, x, pads)):
        before, after = pads[k]
        size = x.shape[2 + k]
        first = np.arange(places)[:, None] * op.stride[k] - before
        taps = first + np.arange(op.lengths[k]) * op.dilations[k]
        low, high = (-before, size + after) if op.count_include_pad else (0, size)
        along = ((taps >= low) & (taps < high)).sum(1)
        total = total[..., None] * along
    return np.maximum(total, 1)


def windows(op, x, pads, neutral, join, reducer):
    """`join` over the elements of each window, padding with `neutral`."""
    places = out_sizes(op, x, pads)
    grow = []
    for k, (before, _) in enumerate(pads):
        reach = op.dilations[k] * (op.lengths[k] - 1) + 1
        need = (places[k] - 1) * op.stride[k] + reach
        grow.append((before, need - x.shape[2 + k] - before))  # a negative end cuts
    value, grow = jnp.asarray(neutral, x.dtype), [(a, b, 0) for a, b in grow]
    if context().platform != "cpu":
        return lax.reduce_window(
            lax.pad(x, value, [(0, 0, 0), (0, 0, 0), *grow]), value, reducer,
            (1, 1, *op.lengths), (1, 1, *op.stride), "VALID", None, (1, 1, *op.dilations),
        )  # fmt: skip
    x = x.transpose(0, *range(2, x.ndim), 1)  # channels last, as convolutions on CPUs
    if any(map(any, grow)):
        x = lax.optimization_barrier(lax.pad(x, value, [(0, 0, 0), *grow, (0, 0, 0)]))
    for k in reversed(range(len(places))):
        x = along_axis(op, x, k, places[k], value, join, reducer)
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def along_axis(op, x, k: int, places: int, neutral, join, reducer):
    """One axis: shifted slices for short windows, where XLA's reduce_window is slow on CPUs."""
    axis, length, stride, dilation = 1 + k, op.lengths[k], op.stride[k], op.dilations[k]
    if length == 1 and stride == 1:
        return x
    if length > SHIFTED_MOST:
        sizes = [1] * x.ndim
        strides, dilations = list(sizes), list(sizes)
        sizes[axis], strides[axis], dilations[axis] = length, stride, dilation
        return lax.reduce_window(x, neutral, reducer, sizes, strides, "VALID", None, dilations)
    last = (places - 1) * stride + 1
    parts = (
        lax.slice_in_dim(x, tap * dilation, tap * dilation + last, stride, axis)
        for tap in range(length)
    )
    result = next(parts)
    for part in parts:
        result = join(result, part)
    return result


# -- im2col, lrn -----------------------------------------------------------------------------------


@lower("im2col", "ref::im2col", numpy=False)
def im2col(op, xp, x, w):
    """Rows are places of the window, columns channels and then taps."""
    pads = op.both_pads(2)
    x = lax.pad(x[0], jnp.zeros((), x.dtype), [(0, 0, 0), *[(a, b, 0) for a, b in pads]])
    height, width = (
        (x.shape[1 + k] - op.dilation[k] * (w.shape[2 + k] - 1) - 1) // op.stride[k] + 1
        for k in range(2)
    )
    taps = []
    for i, j in itertools.product(range(w.shape[2]), range(w.shape[3])):
        top, left = i * op.dilation[0], j * op.dilation[1]
        taps.append(
            x[
                :,
                top : top + (height - 1) * op.stride[0] + 1 : op.stride[0],
                left : left + (width - 1) * op.stride[1] + 1 : op.stride[1],
            ]
        )
    stacked = jnp.stack(taps, 1)  # (channels, taps, height, width)
    return stacked.transpose(2, 3, 0, 1).reshape(height * width, -1)


@lower("lrn", "ref::lrn", numpy=False)
def lrn(op, xp, x):
    """The sum over channels by shifted slices."""
    if is_int(x.dtype) or x.dtype == BOOL:
        raise Error(f"lrn: a float is needed, got {x.dtype}")
    wide = x.astype(wide_type(x.dtype))
    before, after = (op.size - 1) // 2, op.size // 2
    grow = [(0, 0)] * x.ndim
    grow[1] = (before, after)
    squares = jnp.pad(wide * wide, grow)
    total = sum(lax.slice_in_dim(squares, k, k + x.shape[1], 1, 1) for k in range(op.size))
    scaled = op.bias + (op.alpha / op.size) * total
    return (wide * scaled ** (-op.beta)).astype(x.dtype)
