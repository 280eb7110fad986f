"""Resize and Upsample: the operator `resize` where it says the same, else weights along each axis.

The arithmetic of places follows ONNX's definition in double precision. A case that MIGraphX's
operator lacks (antialiasing, a region of interest, weights without the outside) becomes one
product with a constant matrix per axis.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from migraphx.dims import Dim
from migraphx.errors import Error
from migraphx.ops.resize import COORDINATES, NEAREST
from migraphx.types import FLOATS, type_t

from .registry import Const, onnx_op

MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}
POLICIES = ("stretch", "not_larger", "not_smaller")


@onnx_op("Upsample")
def upsample_7(m, x, *, scales, mode="nearest"):
    return upsample(m, x, np.asarray(scales, np.float32), mode=mode)


@onnx_op("Upsample", since=9)
def upsample(m, x, scales: Const, *, mode="nearest"):
    return resize(
        m, x, None, scales, mode=mode, nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip


@onnx_op("Resize")
def resize_10(m, x, scales: Const, *, mode="nearest"):
    """As Upsample, but axes that shrink take the element at or after each place."""
    scales = scales.reshape(-1)
    if mode != "nearest" or not (scales < 1).any():
        return upsample(m, x, scales, mode=mode)
    if (scales > 1).any():
        x = upsample(m, x, np.maximum(scales, 1), mode=mode)
    return resize(
        m, x, None, np.minimum(scales, 1), mode=mode, nearest_mode="ceil",
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip


@onnx_op("Resize", since=11)
def resize(
    m, x, roi: Const = None, scales: Const = None, sizes: Const = None, *, antialias=0, axes=None,
    coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75, exclude_outside=0,
    extrapolation_value=0.0, keep_aspect_ratio_policy="stretch", mode="nearest",
    nearest_mode="round_prefer_floor",
):  # fmt: skip
    if mode not in MODES:
        raise Error(f"mode {mode!r} is none of nearest, linear and cubic")
    if nearest_mode not in NEAREST:
        raise Error(f"nearest_mode {nearest_mode!r} is none of {', '.join(NEAREST)}")
    if keep_aspect_ratio_policy not in POLICIES:
        raise Error(f"keep_aspect_ratio_policy is none of {', '.join(POLICIES)}")
    mode, rank = MODES[mode], m.rank(x)
    axes = list(range(rank)) if axes is None else [m.axis(a, rank) for a in axes]
    scales = None if scales is None or not scales.size else scales.reshape(-1)
    sizes = None if sizes is None or not sizes.size else sizes.reshape(-1)
    if (scales is None) == (sizes is None):
        raise Error("either scales or sizes must be given")
    given = scales if sizes is None else sizes
    if len(given) != len(axes):
        raise Error(f"{len(given)} sizes or scales for {len(axes)} axes")
    if not (np.isfinite(given.astype(np.float64)).all() and (given >= 0).all()):
        raise Error(f"sizes and scales must be positive, got {given.tolist()}")
    place = coordinate_transformation_mode
    simple = place in COORDINATES and not antialias and not exclude_outside
    if any(isinstance(d, Dim) for d in m.dims(x)):
        if scales is None or not simple or place == "align_corners":
            m.static_dims(x)  # defers the node if a size is open
        else:
            full = np.ones(rank, np.float32)
            full[axes] = scales
            return plain(m, x, mode, place, nearest_mode, cubic_coeff_a, scales=full.tolist())
    old = list(m.static_dims(x))
    factors, new = targets(old, axes, scales, sizes, keep_aspect_ratio_policy)
    if 0 in new:
        return m.broadcast(m.lit(0, x), new)
    whole = all(factors[a] * old[a] == new[a] for a in axes)
    if simple and (whole or (scales is not None and place != "align_corners")):
        if scales is None:
            return plain(m, x, mode, place, nearest_mode, cubic_coeff_a, sizes=new)
        return plain(m, x, mode, place, nearest_mode, cubic_coeff_a, scales=factors)
    corners = np.zeros((rank, 2))
    if place == "tf_crop_and_resize":
        if roi is None or roi.size != 2 * len(axes):
            raise Error(f"roi needs {2 * len(axes)} numbers")
        corners[axes] = roi.reshape(2, -1).T
    weigh = weights_of(mode, nearest_mode, cubic_coeff_a, bool(antialias))
    return by_matrices(
        m, x, axes, factors, new, place, corners, weigh, bool(exclude_outside), extrapolation_value
    )


def plain(m, x, mode, place, nearest_mode, cubic, **target):
    """MIGraphX's operator."""
    return m.add(
        "resize", x, mode=mode, coordinate_transformation_mode=place, nearest_mode=nearest_mode,
        cubic_coeff_a=cubic, **target,
    )  # fmt: skip


def targets(old, axes, scales, sizes, policy):
    """The scale and the new size of every axis."""
    factors, new = [1.0] * len(old), list(old)
    if scales is not None:
        for axis, scale in zip(axes, scales, strict=True):
            factors[axis] = float(scale)
            new[axis] = int(float(scale) * old[axis])
        return factors, new
    for axis, size in zip(axes, sizes, strict=True):
        if not old[axis] and size:
            raise Error(f"axis {axis} of size 0 cannot be resized to {size}")
        factors[axis] = int(size) / max(old[axis], 1)
        new[axis] = int(size)
    if policy != "stretch":
        one = (min if policy == "not_larger" else max)(factors[a] for a in axes)
        for axis in axes:
            factors[axis], new[axis] = one, int(one * old[axis] + 0.5)
    return factors, new


def places(mode: str, size: int, new: int, scale: float, corners) -> np.ndarray:
    """Where in an axis of `size` each of `new` elements lies."""
    y = np.arange(new, dtype=np.float64)
    width = scale * size
    if mode == "align_corners":
        return np.zeros(new) if width == 1 else y * (size - 1) / (width - 1)
    if mode == "asymmetric":
        return y / scale
    if mode == "tf_half_pixel_for_nn":
        return (y + 0.5) / scale
    if mode == "pytorch_half_pixel" and width == 1:
        return np.full(new, -0.5)
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (y + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - new / width) + (y + 0.5) / scale - 0.5
    if mode == "tf_crop_and_resize":
        start, end = corners
        if width == 1:
            return np.full(new, (start + end) * (size - 1) / 2)
        return start * (size - 1) + y * (end - start) * (size - 1) / (width - 1)
    raise Error(f"coordinate_transformation_mode {mode!r} is not known")


# -- weights: of the neighbours first, first + 1, ... of a place, from its share of the way --------


def weights_of(mode: str, nearest_mode: str, cubic: float, antialias: bool):
    """A function of shares (0 < share <= 1) and the scale: first neighbour, weights [n, taps]."""
    if mode == "nearest":
        if antialias:
            raise Error("antialias needs mode linear or cubic")
        return partial(_nearest, nearest_mode)
    kernel = _triangle if mode == "linear" else partial(_keys, cubic)
    return partial(_kernel, kernel, 1 if mode == "linear" else 2, antialias)


def _nearest(rounding: str, share, scale):
    upper = {
        "floor": share == 1,
        "ceil": share > 0,
        "round_prefer_floor": share > 0.5,
        "round_prefer_ceil": share >= 0.5,
    }[rounding]
    return 0, np.stack([~upper, upper], 1).astype(np.float64)


def _triangle(t):
    return np.clip(1 - np.abs(t), 0, 1)


def _keys(a: float, t):
    t = np.abs(t)
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    far = a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _kernel(kernel, reach: int, antialias: bool, share, scale):
    stretch = min(scale, 1.0) if antialias else 1.0
    first = int(np.floor(-reach / stretch) + 1)
    steps = np.arange(first, 2 - first)
    weights = kernel((steps[None] - share[:, None]) * stretch)
    return first, weights / weights.sum(1, keepdims=True) if antialias else weights


def matrix(size: int, at: np.ndarray, scale, weigh, exclude: bool) -> np.ndarray:
    """The weight of each old element at each place, [places, size]; the edge repeats outside."""
    base = np.ceil(at).astype(np.int64) - 1  # so that a whole place has share 1
    first, weights = weigh(at - base, scale)
    taps = base[:, None] + first + np.arange(weights.shape[1])
    if exclude:
        weights = np.where((taps < 0) | (taps >= size), 0, weights)
        weights = weights / weights.sum(1, keepdims=True)
    result = np.zeros((len(at), size))
    rows = np.broadcast_to(np.arange(len(at))[:, None], taps.shape)
    np.add.at(result, (rows, np.clip(taps, 0, size - 1)), weights)
    return result


def by_matrices(m, x, axes, factors, new, place, corners, weigh, exclude, outside):
    """One product with a constant matrix along each axis that changes."""
    old, kind = m.static_dims(x), m.type(x)
    wide = kind if kind in (type_t.float_type, type_t.double_type) else type_t.float_type
    result = m.convert(x, wide)
    beyond = np.zeros(new, bool)
    for axis in axes:
        size, count = old[axis], new[axis]
        crops = place == "tf_crop_and_resize"
        if not crops and factors[axis] == 1 and count == size:
            continue
        at = places(place, size, count, factors[axis], corners[axis])
        result = along(m, result, axis, matrix(size, at, factors[axis], weigh, exclude))
        if crops:
            shape = [-1 if k == axis else 1 for k in range(len(new))]
            beyond |= ((at < 0) | (at > size - 1)).reshape(shape)
    if beyond.any():
        fill = m.broadcast(m.lit(outside, result), new)
        result = m.add("where", m.lit(beyond), fill, result)
    if kind not in FLOATS and kind != wide:
        return m.add("onnx::cast", result, target_type=kind, saturate=True)
    return m.convert(result, kind)


def along(m, x, axis: int, weights: np.ndarray):
    """`x` with its axis multiplied by a matrix [new, old]."""
    dims = m.dims(x)
    last = len(dims) - 1
    right = m.lit(np.ascontiguousarray(weights.T), x)
    if len(dims) == 1:
        return m.reshape(m.add("dot", m.reshape(x, [1, -1]), right), [weights.shape[0]])
    order = [k for k in range(len(dims)) if k != axis] + [axis]
    moved = x if axis == last else m.add("transpose", x, permutation=order)
    lead = [dims[k] for k in order[:-1]]
    flat = m.reshape(moved, [int(np.prod(lead)), dims[axis]])
    result = m.reshape(m.add("dot", flat, right), [*lead, weights.shape[0]])
    back = [order.index(k) for k in range(len(dims))]
    return result if axis == last else m.add("transpose", result, permutation=back)
