"""Operators of TensorFlow that resize images."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import type_t

from .registry import tf_op
from .shared import Const, along, matrix, resize, weights_of, where_common
from .tensors import limited

CURVE_STEPS = 1024  # TensorFlow reads the cubic from a table of so many points
KEYS_SHARP, KEYS_CATMULL = -0.75, -0.5  # the cubic's parameter, without and with half pixels


def places(size: int, new: int, align_corners: bool, half: bool, shift: float = 0.5) -> np.ndarray:
    """Where each new element lies among the old ones, in TensorFlow's float32 arithmetic."""
    y = np.arange(new, dtype=np.float32)
    if align_corners and new > 1:
        return y * np.float32((size - 1) / np.float32(new - 1))
    scale = np.float32(size) / np.float32(new)
    if half:
        return (y + np.float32(0.5)) * scale - np.float32(shift)
    return y * scale


def target(size, old=()) -> list:
    """The new height and width; `old` ones are those for which weights are made."""
    new = [int(s) for s in size.reshape(-1)]
    if len(new) != 2 or min(new) < 1:
        raise Error(f"size {new} is not a height and a width")
    limited(new[0] * new[1], "an image")
    for pair in zip(new, old, strict=False):
        limited(16 * pair[0] * pair[1], "the weights")
    return new


@tf_op("ResizeNearestNeighbor")
def resize_nearest(m, x, size: Const, *, align_corners=False, half_pixel_centers=False):
    """A whole factor repeats elements; anything else is a gather along each axis."""
    x, new = m.first(x), target(size)
    old = m.static_dims(x)[2:]
    if all(n % o == 0 for n, o in zip(new, old, strict=True)) and not align_corners:
        sizes = np.array([*m.static_dims(x)[:2], *new])
        return m.last(resize(
            m, x, None, None, sizes, mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        ))  # fmt: skip
    for k in (0, 1):
        at = places(old[k], new[k], align_corners, half_pixel_centers, shift=0.0)
        index = np.floor(at + np.float32(0.5)) if align_corners else np.floor(at)
        index = np.clip(index.astype(np.int64), 0, old[k] - 1)
        if not np.array_equal(index, np.arange(old[k])):
            x = m.add("gather", x, m.lit(index), axis=k + 2)
    return m.last(x)


@tf_op("ResizeBilinear")
def resize_bilinear(m, x, size: Const, *, align_corners=False, half_pixel_centers=False):
    """The result is float32 whatever the image is."""
    x = m.convert(m.first(x), type_t.float_type)
    mode = "align_corners" if align_corners else "asymmetric"
    mode = "half_pixel" if half_pixel_centers else mode
    old = m.static_dims(x)
    sizes = np.array([*old[:2], *target(size, old[2:])])
    return m.last(resize(m, x, None, None, sizes, mode="linear",
                         coordinate_transformation_mode=mode))  # fmt: skip


@tf_op("ResizeBicubic")
def resize_bicubic(m, x, size: Const, *, align_corners=False, half_pixel_centers=False):
    """With half pixels a softer curve, and what lies outside has no weight."""
    x = m.convert(m.first(x), type_t.float_type)
    curve = KEYS_CATMULL if half_pixel_centers else KEYS_SHARP
    weigh = weights_of("cubic", "floor", curve, False)
    for k, new in enumerate(target(size, m.static_dims(x)[2:])):
        old = m.static_dims(x)[k + 2]
        at = places(old, new, align_corners, half_pixel_centers).astype(np.float64)
        at = np.floor(at) + np.rint((at - np.floor(at)) * CURVE_STEPS) / CURVE_STEPS
        x = along(m, x, k + 2, matrix(old, at, new / old, weigh, half_pixel_centers))
    return m.last(x)


# -- parts of images -------------------------------------------------------------------------------


@tf_op("CropAndResize")
def crop_and_resize(
    m, x, boxes, box_index, size: Const, *, method="bilinear", extrapolation_value=0.0
):
    """Boxes are computed, so that each pixel is gathered by its own place."""
    if method not in ("bilinear", "nearest"):
        raise Error(f"method {method!r} is neither bilinear nor nearest")
    x = m.convert(x, type_t.float_type)
    dims, new = m.static_dims(x), target(size)
    rows = box_places(m, boxes, 0, dims[1], new[0])  # {boxes, height}
    columns = box_places(m, boxes, 1, dims[2], new[1])
    rows, columns = m.shaped(rows, [-1, new[0], 1]), m.shaped(columns, [-1, 1, new[1]])
    batch = m.shaped(m.convert(box_index, type_t.int64_type), [-1, 1, 1])

    def pixels(row, column):
        return m.add("gathernd", x, coordinates(m, (batch, row, column), dims, new))

    if method == "nearest":
        result = pixels(rounded(m, rows), rounded(m, columns))
    else:
        result = bilinear(m, rows, columns, pixels)
    inside = m.common("logical_and", within(m, rows, dims[1]), within(m, columns, dims[2]))
    inside = m.add("unsqueeze", m.convert(inside, type_t.bool_type), axes=[3])
    return where_common(m, inside, result, m.lit(extrapolation_value, result))


def box_places(m, boxes, which: int, size: int, count: int):
    """Rows (or columns) of the pixels of each box, as floats."""
    start, end = (
        m.add("slice", boxes, axes=[1], starts=[k], ends=[k + 1]) for k in (which, which + 2)
    )
    reach = m.lit(float(size - 1), start)
    if count == 1:
        middle = m.common("mul", m.add("add", start, end), m.lit(0.5, start))
        return m.common("mul", middle, reach)
    step = m.common("mul", m.add("sub", end, start), m.lit((size - 1) / (count - 1), start))
    steps = m.lit(np.arange(count, dtype=np.float32), start)
    return m.common("add", m.common("mul", start, reach), m.common("mul", step, steps))


def rounded(m, at):
    """Places rounded with halves away from zero; those outside do not count."""
    return m.add("floor", m.common("add", at, m.lit(0.5, at)))


def within(m, at, size: int):
    """True for places in the image."""
    low = m.compare("less", at, m.lit(0, at))
    high = m.compare("greater", at, m.lit(size - 1, at))
    return m.inverted(m.add("logical_or", low, high))


def bilinear(m, rows, columns, pixels):
    """The mean of four neighbours, weighted by how near they are."""
    top, left = m.add("floor", rows), m.add("floor", columns)
    bottom, right = m.add("ceil", rows), m.add("ceil", columns)
    down = m.add("unsqueeze", m.add("sub", rows, top), axes=[3])
    across = m.add("unsqueeze", m.add("sub", columns, left), axes=[3])

    def between(a, b, share):
        return m.common("add", a, m.common("mul", m.add("sub", b, a), share))

    upper = between(pixels(top, left), pixels(top, right), across)
    lower = between(pixels(bottom, left), pixels(bottom, right), across)
    return between(upper, lower, down)


def coordinates(m, parts, dims, new):
    """Rows [image, row, column] for gathernd, held inside the image."""
    batch, row, column = parts
    wide = []
    for part, size in ((batch, dims[0]), (row, dims[1]), (column, dims[2])):
        part = m.common("min", m.common("max", part, m.lit(0, part)), m.lit(size - 1, part))
        part = m.convert(part, type_t.int64_type)
        boxes = m.dims(batch)[0]
        wide.append(m.add("unsqueeze", m.broadcast(part, [boxes, *new]), axes=[3]))
    return m.add("concat", *wide, axis=3)
