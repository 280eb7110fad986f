"""Lowering of `roialign`.

Bilinear samples on a grid are separable: the average over a box's samples is a product of two
matrices, one per axis, with the picture. The number of samples per axis may differ from roi to
roi, so the matrices are summed up in a loop. The maximum is not separable and reads the samples.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from migraphx.ops.base import PoolingMode

from .numeric import FLOAT32, FLOAT64, narrow
from .registry import context, lower


@lower("roialign", numpy=False)
def roialign(op, xp, x, rois, images):
    dtype = x.dtype
    wide = FLOAT64 if dtype == FLOAT64 else FLOAT32
    x, rois = jnp.asarray(x).astype(wide), jnp.asarray(rois).astype(wide)
    images = jnp.clip(jnp.asarray(images).reshape(-1).astype(np.int32), 0, x.shape[0] - 1)
    pictures = jnp.take(x, images, 0, mode="clip")  # [rois, C, H, W]
    grids = [
        _grid(op, rois[:, 1], rois[:, 3], op.output_height, wide),
        _grid(op, rois[:, 0], rois[:, 2], op.output_width, wide),
    ]
    reduce = _maximum if op.mode == PoolingMode.max else _average
    return narrow(jnp, reduce(op, pictures, grids), dtype)


def _grid(op, first, last, bins: int, wide):
    """Start, bin size and number of samples per bin, for each roi, along one axis."""
    half = op.coordinate_transformation_mode == "half_pixel"
    offset = wide.type(0.5 if half else 0)
    scale = wide.type(op.spatial_scale)
    start, end = first * scale - offset, last * scale - offset
    length = end - start if half else jnp.maximum(end - start, 1)
    step = length / bins
    if op.sampling_ratio > 0:
        count = jnp.full(start.shape, op.sampling_ratio, np.int32)
    else:
        count = jnp.maximum(jnp.ceil(step), 1).astype(np.int32)
    return start, step, count


def _sample(grid, k, bins: int):
    """Coordinates [rois, bins] of the k-th sample of every bin, and where there is one."""
    start, step, count = grid
    number = jnp.arange(bins, dtype=start.dtype)
    within = (k + 0.5) / count.astype(start.dtype)
    place = start[:, None] + (number[None] + within[:, None].astype(start.dtype)) * step[:, None]
    return place, (k < count)[:, None]


def _neighbours(place, size: int):
    """Lower and upper neighbour and the share of the upper; no weight beyond one pixel outside."""
    inside = (place >= -1) & (place <= size)
    place = jnp.clip(place, 0, size - 1)
    low = jnp.floor(place).astype(np.int32)
    high = jnp.minimum(low + 1, size - 1)
    return low, high, place - low.astype(place.dtype), inside


def _weights(grid, bins: int, size: int, most):
    """The mean weight of every pixel: [rois, bins, size]."""
    pixel = np.arange(size, dtype=np.int32)

    def body(k, total):
        place, there = _sample(grid, k, bins)
        low, high, share, inside = _neighbours(place, size)
        share = share[..., None]
        one = (low[..., None] == pixel) * (1 - share) + (high[..., None] == pixel) * share
        return total + jnp.where((there & inside)[..., None], one, 0).astype(total.dtype)

    start, _, count = grid
    zero = jnp.zeros((start.shape[0], bins, size), start.dtype)
    total = jax.lax.fori_loop(0, most, body, zero)
    return total / count[:, None, None].astype(start.dtype)


def _most(op, grid):
    """The largest number of samples per bin: a number where it is fixed."""
    if op.sampling_ratio > 0:
        return op.sampling_ratio
    return jnp.max(grid[2], initial=0)


def _average(op, pictures, grids):
    rows, columns = grids
    height, width = pictures.shape[2:]
    down = _weights(rows, op.output_height, height, _most(op, rows))
    across = _weights(columns, op.output_width, width, _most(op, columns))
    return jnp.einsum("nhy,ncyx,nwx->nchw", down, pictures, across, precision=context().precision)


def _maximum(op, pictures, grids):
    """The largest of the weighted neighbours of all samples, as ONNX defines it."""
    rows, columns = grids
    height, width = pictures.shape[2:]
    shape = (*pictures.shape[:2], op.output_height, op.output_width)

    def read(y, x):
        picked = jnp.take_along_axis(pictures, y[:, None, :, None], 2)
        return jnp.take_along_axis(picked, x[:, None, None, :], 3)

    def across(j, state):
        i, best = state
        y, there_y = _sample(rows, i, op.output_height)
        x, there_x = _sample(columns, j, op.output_width)
        y0, y1, v, inside_y = _neighbours(y, height)
        x0, x1, u, inside_x = _neighbours(x, width)
        v, u = v[:, None, :, None], u[:, None, None, :]
        corners = (
            (y0, x0, (1 - v) * (1 - u)), (y0, x1, (1 - v) * u),
            (y1, x0, v * (1 - u)), (y1, x1, v * u),
        )  # fmt: skip
        value = None
        for a, b, weight in corners:
            part = read(a, b) * weight
            value = part if value is None else jnp.maximum(value, part)
        inside = inside_y[:, None, :, None] & inside_x[:, None, None, :]
        there = there_y[:, None, :, None] & there_x[:, None, None, :]
        value = jnp.where(inside, value, 0)
        return i, jnp.where(there, jnp.maximum(best, value), best)

    def down(i, best):
        return jax.lax.fori_loop(0, _most(op, columns), across, (i, best))[1]

    start = jnp.full(shape, -np.inf, pictures.dtype)
    return jax.lax.fori_loop(0, _most(op, rows), down, start)
