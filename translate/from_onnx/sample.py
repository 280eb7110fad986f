"""Reading pictures at computed places: GridSample and DeformConv."""

from __future__ import annotations

import itertools

import numpy as np

from migraphx.errors import Error
from migraphx.types import type_t

from .nn import add_bias, spatial
from .reduce import squeeze_axes
from .registry import onnx_op

CUBIC = -0.75  # the coefficient of GridSample's cubic kernel


class Places:
    """Arithmetic of places along one axis, in the type of the grid."""

    def __init__(self, m, size: int, padding: str, align: bool):
        self.m, self.size, self.padding = m, size, padding
        self.low, self.high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)

    def __call__(self, name, *xs):
        like = next(x for x in xs if not isinstance(x, float))
        made = [self.m.lit(x, like) if isinstance(x, float) else x for x in xs]
        return self.m.common(name, *made)

    def held(self, at):
        """Within the picture: clamped, or reflected at its border."""
        if self.padding == "border":
            return self("min", self("max", at, 0.0), self.size - 1.0)
        return self.reflected(at) if self.padding == "reflection" else at

    def reflected(self, at):
        span = self.high - self.low
        if span <= 0:
            return self("mul", at, 0.0)
        way = self("fmod", self("abs", self("sub", at, self.low)), 2 * span)
        back = self("sub", 2 * span, way)
        return self("add", self("min", way, back), self.low)

    def tap(self, at):
        """The index that a whole place reads, and whether it lies inside (None: always)."""
        inside = None
        if self.padding == "zeros":
            low = self("not", self.m.common("less", at, self.m.lit(0.0, at)))
            high = self("not", self.m.common("greater", at, self.m.lit(self.size - 1.0, at)))
            inside = self("logical_and", low, high)
        index = self("min", self("max", self.held(at), 0.0), self.size - 1.0)
        return self.m.convert(index, type_t.int64_type), inside


def taps_of(places: Places, at, mode: str):
    """For one axis: (index, inside, weight or None) of every element that a place reads."""
    if mode == "nearest":
        at = places.held(places("nearbyint", at))
        return [(*places.tap(at), None)]
    at = places.held(at)
    base = places("floor", at)
    share = places("sub", at, base)
    if mode == "linear":
        weights = [places("sub", 1.0, share), share]
        steps = [0.0, 1.0]
    else:
        weights, steps = cubic_weights(places, share), [-1.0, 0.0, 1.0, 2.0]
    return [(*places.tap(places("add", base, s)), w) for s, w in zip(steps, weights, strict=True)]


def cubic_weights(f, share):
    """Keys' kernel for the four neighbours."""
    a = CUBIC

    def near(t):  # |t| <= 1
        return f("add", f("mul", f("mul", f("sub", f("mul", t, a + 2), a + 3), t), t), 1.0)

    def far(t):  # 1 < |t| < 2
        inner = f("add", f("mul", f("sub", f("mul", t, a), 5 * a), t), 8 * a)
        return f("sub", f("mul", inner, t), 4 * a)

    rest = f("sub", 1.0, share)
    return [far(f("add", share, 1.0)), near(share), near(rest), far(f("add", rest, 1.0))]


def sample(m, x, at: list, mode: str, padding: str, align: bool):
    """`x` [N, C, *dims] read at places (one [N, *out] per axis): [N, C, *out]."""
    dims = m.static_dims(x)
    spatial_rank, kind = len(dims) - 2, m.type(x)
    last = [0, *range(2, spatial_rank + 2), 1]
    pixels = m.add("transpose", x, permutation=last)
    axes = [
        taps_of(Places(m, size, padding, align), place, mode)
        for size, place in zip(dims[2:], at, strict=True)
    ]
    total = None
    for corner in itertools.product(*axes):
        index = m.add("concat", *(_last(m, i) for i, _, _ in corner), axis=m.rank(corner[0][0]))
        value = m.add("gathernd", pixels, index, batch_dims=1)
        weight = None
        for _, inside, share in corner:
            for factor in (share, inside):
                if factor is None:
                    continue
                factor = m.convert(factor, kind)
                weight = factor if weight is None else m.common("mul", weight, factor)
        if weight is not None:
            value = m.common("mul", value, _last(m, weight))
        total = value if total is None else m.add("add", total, value)
    rank = m.rank(total)
    return m.add("transpose", total, permutation=[0, rank - 1, *range(1, rank - 1)])


def _last(m, x):
    return m.add("unsqueeze", x, axes=[m.rank(x)])


def _part(m, x, axis: int, k: int):
    picked = m.add("slice", x, axes=[axis], starts=[k], ends=[k + 1])
    return squeeze_axes(m, picked, [axis])


@onnx_op("GridSample")
def grid_sample(m, x, grid, *, mode="linear", padding_mode="zeros", align_corners=0):
    """A picture read where a grid of places (-1 to 1, the last axis from x to z) says."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("linear", "nearest", "cubic"):
        raise Error(f"mode {mode!r} is none of linear, nearest and cubic")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise Error(f"padding_mode {padding_mode!r} is none of zeros, border and reflection")
    dims = m.static_dims(x)
    if m.rank(grid) != len(dims) or m.static_dims(grid)[-1] != len(dims) - 2:
        raise Error(f"a grid {m.dims(grid)} does not fit an input {dims}")
    at = []
    for axis, size in enumerate(dims[2:]):
        place = _part(m, grid, m.rank(grid) - 1, len(dims) - 3 - axis)
        half = (size - 1) / 2 if align_corners else size / 2
        place = m.common("mul", m.common("add", place, m.lit(1.0, place)), m.lit(half, place))
        if not align_corners:
            place = m.common("sub", place, m.lit(0.5, place))
        at.append(place)
    return sample(m, x, at, mode, padding_mode, bool(align_corners))


@onnx_op("DeformConv", since=19)
def deform_conv(
    m, x, w, offset, bias=None, mask=None, *, dilations=None, group=1, kernel_shape=None,
    offset_group=1, pads=None, strides=None,
):  # fmt: skip
    """A convolution whose taps read at places of their own, bilinearly, with zeros outside."""
    n, channels, *size = m.static_dims(x)
    outputs, per_group, *kernel = m.static_dims(w)
    count = len(kernel)
    if kernel_shape and list(kernel_shape) != kernel:
        raise Error(f"kernel_shape {kernel_shape} differs from the weights' {kernel}")
    if channels != per_group * group or outputs % group or channels % offset_group:
        raise Error(f"{channels} channels, {group} groups and {offset_group} offset groups")
    strides = spatial(strides, count, 1, "strides")
    dilations = spatial(dilations, count, 1, "dilations")
    pads = list(pads or [0] * (2 * count))
    out = list(m.static_dims(offset)[2:])
    taps = int(np.prod(kernel))
    wanted = [
        (s + pads[k] + pads[k + count] - (kernel[k] - 1) * dilations[k] - 1) // strides[k] + 1
        for k, s in enumerate(size)
    ]
    if out != wanted or m.static_dims(offset)[1] != offset_group * taps * count:
        raise Error(f"an offset {m.dims(offset)} does not fit {n} outputs of {wanted}")
    groups = [n * offset_group, channels // offset_group]
    offset = m.reshape(offset, [groups[0], taps, count, *out])
    at = []
    for axis in range(count):
        tap = np.arange(kernel[axis]) * dilations[axis]
        tap = np.broadcast_to(tap.reshape([-1 if k == axis else 1 for k in range(count)]), kernel)
        window = np.arange(out[axis]) * strides[axis] - pads[axis]
        window = window.reshape([-1 if k == axis else 1 for k in range(count)])
        base = tap.reshape(1, taps, *[1] * count) + window
        at.append(m.common("add", _part(m, offset, 2, axis), m.lit(base, offset)))
    picture = m.reshape(x, [*groups, *size])
    read = sample(m, picture, at, "linear", "zeros", True)
    if mask is not None:
        read = m.common("mul", read, m.reshape(mask, [groups[0], 1, taps, *out]))
    columns = m.reshape(read, [n, group, per_group * taps, int(np.prod(out))])
    kernels = m.reshape(w, [1, group, outputs // group, per_group * taps])
    kernels = m.broadcast(kernels, [n, group, outputs // group, per_group * taps])
    result = m.reshape(m.add("dot", kernels, columns), [n, outputs, *out])
    return result if bias is None else add_bias(m, result, bias)
