"""Lowering of `resize`: one axis after the other, by known places and weights."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.ops.resize import scaled

from .index import take
from .numeric import FLOAT32, FLOAT64, is_float, narrow
from .registry import known, lower
from .view import with_axes

ROUND = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
}


@lower("resize")
def resize(op, xp, x, target=None):
    """Nearest reads one element per output element, linear two, cubic four, along each axis."""
    x = with_axes(x)
    sizes, scales = _target(op, x.shape, target)
    changed = [k for k in range(x.ndim) if sizes[k] != x.shape[k] or scales[k] != 1]
    if changed and not op.coordinate_transformation_mode:
        op.fail("coordinate_transformation_mode is not set")
    dtype = x.dtype
    wide = dtype in (FLOAT64, FLOAT32) or op.mode == "nearest"
    if not wide:
        x = x.astype(FLOAT32 if is_float(dtype) else FLOAT64)
    for axis in changed:
        x = _along(op, xp, x, axis, sizes[axis], scales[axis])
    return x if x.dtype == dtype else narrow(xp, x, dtype)


def _target(op, dims, target):
    """Output sizes, and scales in float32."""
    given_sizes, given_scales = op.sizes, op.scales
    if target is not None:
        values = known(target).reshape(-1)
        given_sizes, given_scales = (), ()
        if is_float(values.dtype):
            given_scales = tuple(float(v) for v in values)
        else:
            given_sizes = tuple(int(v) for v in values)
    given = given_sizes or given_scales
    if len(given) != len(dims):
        op.fail(f"{len(given)} sizes or scales for {len(dims)} dimensions")
    if not all(np.isfinite(v) and v >= 0 for v in given):
        op.fail(f"sizes and scales must be positive, got {list(given)}")
    if given_scales:
        sizes = [scaled(d, s) for d, s in zip(dims, given_scales, strict=True)]
        return sizes, [np.float32(s) for s in given_scales]
    scales = [np.float32(s) / np.float32(max(d, 1)) for d, s in zip(dims, given_sizes, strict=True)]
    return list(given_sizes), scales


def coordinates(mode: str, size: int, new: int, scale) -> np.ndarray:
    """Where in an axis of `size` each of `new` elements lies, in float32."""
    place = np.arange(new, dtype=np.float32)
    half = np.float32(0.5)
    if mode == "asymmetric":
        return place / scale
    if mode == "tf_half_pixel_for_nn":
        return (place + half) / scale
    if mode == "align_corners":
        if new == 1:
            return np.zeros(1, np.float32)
        return place * np.float32(size - 1) / np.float32(max(new - 1, 1))
    if mode == "pytorch_half_pixel" and new <= 1:
        return np.zeros(new, np.float32)
    return (place + half) / scale - half


def _along(op, xp, x, axis: int, new: int, scale):
    size = x.shape[axis]
    if not size and new:
        raise Error(f"resize: axis {axis} has no elements to make {new} of")
    if not new:
        return take(xp, x, np.zeros(0, np.int32), axis)
    place = coordinates(op.coordinate_transformation_mode, size, new, scale)
    if op.mode == "nearest":
        place = np.clip(ROUND[op.nearest_mode](place), 0, size - 1).astype(np.int32)
        return take(xp, x, place, axis)
    taps, weights = (linear if op.mode == "linear" else cubic)(place, size, op.cubic_coeff_a)
    shape = [-1 if k == axis else 1 for k in range(x.ndim)]
    total = None
    for tap, weight in zip(taps, weights, strict=True):
        part = take(xp, x, tap, axis) * weight.astype(x.dtype).reshape(shape)
        total = part if total is None else total + part
    return total


def linear(place, size: int, _=None):
    """The two neighbours and their weights."""
    place = np.clip(place, 0, size - 1)
    low = np.floor(place)
    high = np.minimum(low + 1, size - 1)
    share = place - low
    return (low.astype(np.int32), high.astype(np.int32)), (1 - share, share)


def cubic(place, size: int, a: float):
    """Four neighbours, the edge repeated outside, and Keys's weights."""
    low = np.floor(place)
    share = place - low
    taps = [np.clip(low + k, 0, size - 1).astype(np.int32) for k in (-1, 0, 1, 2)]
    return taps, [keys(np.abs(share - k), np.float32(a)) for k in (-1, 0, 1, 2)]


def keys(distance, a):
    """Keys's piecewise cubic at distances up to 2."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0)).astype(np.float32)
