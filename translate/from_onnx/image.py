"""Pictures: blocks of pixels and channels, regions of interest, columns, encoded files."""

from __future__ import annotations

import numpy as np

from migraphx.dims import Dim
from migraphx.errors import Error
from migraphx.types import type_t

from .nn import spatial
from .registry import Const, onnx_op


def _blocks(m, x, blocksize: int) -> tuple:
    dims = m.dims(x)
    if len(dims) != 4:
        raise Error(f"4 dimensions are needed, got {len(dims)}")
    if blocksize < 1:
        raise Error(f"blocksize {blocksize} must be positive")
    return dims


@onnx_op("DepthToSpace")
def depth_to_space(m, x, *, blocksize, mode="DCR"):
    n, c, h, w = _blocks(m, x, blocksize)
    if mode not in ("DCR", "CRD"):
        raise Error(f"mode {mode!r} is neither DCR nor CRD")
    b = blocksize
    if not isinstance(c, Dim) and c % (b * b):
        raise Error(f"{c} channels are no multiple of blocksize² = {b * b}")
    depth = c // (b * b)
    split = [n, b, b, depth, h, w] if mode == "DCR" else [n, depth, b, b, h, w]
    order = [0, 3, 4, 1, 5, 2] if mode == "DCR" else [0, 1, 4, 2, 5, 3]
    moved = m.add("transpose", m.reshape(x, split), permutation=order)
    return m.reshape(moved, [n, depth, h * b, w * b])


@onnx_op("SpaceToDepth")
def space_to_depth(m, x, *, blocksize, mode="DCR"):
    n, c, h, w = _blocks(m, x, blocksize)
    if mode not in ("DCR", "CRD"):
        raise Error(f"mode {mode!r} is neither DCR nor CRD")
    b = blocksize
    if any(not isinstance(d, Dim) and d % b for d in (h, w)):
        raise Error(f"height {h} and width {w} must be multiples of blocksize {b}")
    split = m.reshape(x, [n, c, h // b, b, w // b, b])
    order = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    moved = m.add("transpose", split, permutation=order)
    return m.reshape(moved, [n, c * b * b, h // b, w // b])


# -- regions of interest --------------------------------------------------------------------------


def _roi_align(m, x, rois, images, **attributes):
    mode = attributes.pop("mode")
    if mode not in ("avg", "max"):
        raise Error(f"mode {mode!r} is neither avg nor max")
    images = m.convert(images, type_t.int64_type)
    return m.add(
        "roialign", x, rois, images, mode="average" if mode == "avg" else "max", **attributes
    )


@onnx_op("RoiAlign")
def roi_align_10(
    m, x, rois, images, *, mode="avg", output_height=1, output_width=1, sampling_ratio=0,
    spatial_scale=1.0,
):  # fmt: skip
    return _roi_align(
        m, x, rois, images, mode=mode, output_height=output_height, output_width=output_width,
        sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
        coordinate_transformation_mode="output_half_pixel",
    )  # fmt: skip


@onnx_op("RoiAlign", since=16)
def roi_align(
    m, x, rois, images, *, coordinate_transformation_mode="half_pixel", mode="avg",
    output_height=1, output_width=1, sampling_ratio=0, spatial_scale=1.0,
):  # fmt: skip
    return _roi_align(
        m, x, rois, images, mode=mode, output_height=output_height, output_width=output_width,
        sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
        coordinate_transformation_mode=coordinate_transformation_mode,
    )  # fmt: skip


@onnx_op("MaxRoiPool")
def max_roi_pool(m, x, rois, *, pooled_shape, spatial_scale=1.0):
    """The largest pixel in each of the bins of a region, whole pixels throughout (Fast R-CNN)."""
    if len(pooled_shape) != 2:
        raise Error(f"pooled_shape {pooled_shape} needs 2 numbers")
    count = m.static_dims(rois)[0]

    def column(k):
        return m.reshape(m.add("slice", rois, axes=[1], starts=[k], ends=[k + 1]), [count])

    picture = m.add("gather", x, m.convert(column(0), type_t.int64_type), axis=0)
    lowest = -np.inf
    for axis, first, last, bins in ((2, 2, 4, pooled_shape[0]), (3, 1, 3, pooled_shape[1])):
        size = m.static_dims(x)[axis]
        ends = []
        for k in (first, last):
            end = m.common("mul", column(k), m.lit(spatial_scale, rois))
            ends.append(m.add("floor", m.common("add", end, m.lit(0.5, rois))))
        inside = _in_bins(m, rois, ends, size, bins, count)  # [rois, bins, size]
        # The axis gets the bins in front of it, and is then reduced.
        wide = m.add("unsqueeze", picture, axes=[axis])
        shape = list(m.static_dims(wide))
        shape[axis] = bins
        lens = [count if k == 0 else 1 for k in range(5)]
        lens[axis], lens[axis + 1] = bins, size
        mask = m.broadcast(m.reshape(inside, lens), shape)
        low = m.broadcast(m.lit(lowest, picture), shape)
        masked = m.add("where", mask, m.broadcast(wide, shape), low)
        highest = m.add("reduce_max", masked, axes=[axis + 1])
        picture = m.add("squeeze", highest, axes=[axis + 1])
    empty = m.common("equal", picture, m.lit(lowest, picture))
    zero = m.broadcast(m.lit(0.0, picture), m.static_dims(picture))
    return m.add("where", m.convert(empty, type_t.bool_type), zero, picture)


def _in_bins(m, rois, ends, size: int, bins: int, count: int):
    """Whether a pixel lies in a bin, [rois, bins, size]."""
    start, end = (m.reshape(e, [count, 1]) for e in ends)
    length = m.common("sub", end, start)
    length = m.common("max", m.common("add", length, m.lit(1.0, rois)), m.lit(1.0, rois))
    bin_size = m.common("div", length, m.lit(float(bins), rois))
    number = m.lit(np.arange(bins, dtype=np.float32)[None], rois)
    low = m.add("floor", m.common("mul", number, bin_size))
    high = m.add("ceil", m.common("mul", m.common("add", number, m.lit(1.0, rois)), bin_size))
    pixel = m.lit(np.arange(size, dtype=np.float32)[None, None], rois)
    low = m.reshape(m.common("add", low, start), [count, bins, 1])
    high = m.reshape(m.common("add", high, start), [count, bins, 1])
    after = m.common("not", m.common("less", pixel, low))
    before = m.common("less", pixel, high)
    both = m.common("logical_and", after, m.convert(before, m.type(after)))
    return m.convert(both, type_t.bool_type)


# -- columns --------------------------------------------------------------------------------------


@onnx_op("Col2Im", since=18)
def col2im(
    m, x, image_shape: Const, block_shape: Const, *, dilations=None, pads=None, strides=None
):
    """Adds the columns of blocks up to pictures: one scatter with known places."""
    image = [int(v) for v in image_shape.reshape(-1)]
    block = [int(v) for v in block_shape.reshape(-1)]
    rank = len(image)
    strides = spatial(strides, rank, 1, "strides")
    dilations = spatial(dilations, rank, 1, "dilations")
    pads = list(pads or [0] * (2 * rank))
    taps = int(np.prod(block))
    n, columns, count = m.static_dims(x)
    full = [s + pads[k] + pads[k + rank] for k, s in enumerate(image)]
    steps = [
        (f - d * (b - 1) - 1) // s + 1
        for f, d, b, s in zip(full, dilations, block, strides, strict=True)
    ]
    if columns % taps or count != int(np.prod(steps)):
        raise Error(
            f"an input {m.dims(x)} does not fit blocks of {taps} at {int(np.prod(steps))} places"
        )
    channels = columns // taps
    flat = np.zeros((taps, count), np.int64)
    tap = np.stack(np.meshgrid(*map(np.arange, block), indexing="ij"), -1).reshape(-1, rank)
    step = np.stack(np.meshgrid(*map(np.arange, steps), indexing="ij"), -1).reshape(-1, rank)
    for k in range(rank):
        flat = flat * full[k] + tap[:, None, k] * dilations[k] + step[None, :, k] * strides[k]
    updates = m.reshape(x, [n * channels, taps * count])
    updates = m.add("transpose", updates, permutation=[1, 0])
    total = int(np.prod(full))
    zeros = m.broadcast(m.lit(0, x), [total, n * channels])
    index = m.lit(flat.reshape(-1, 1))
    result = m.add("scatternd_add", zeros, index, updates)
    result = m.add("transpose", result, permutation=[1, 0])
    result = m.reshape(result, [n, channels, *full])
    axes = list(range(2, rank + 2))
    starts = pads[:rank]
    ends = [a + s for a, s in zip(starts, image, strict=True)]
    return m.add("slice", result, axes=axes, starts=starts, ends=ends)


@onnx_op("ImageDecoder", since=20)
def image_decoder(m, encoded, *, pixel_format="RGB"):
    if pixel_format not in ("RGB", "BGR", "Grayscale"):
        raise Error(f"pixel_format {pixel_format!r} is none of RGB, BGR and Grayscale")
    return m.add("onnx::decode_image", encoded, pixel_format=pixel_format)
