"""Operators of TensorFlow that move elements between space, batch and channels."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error

from .registry import tf_op
from .shared import Const, cut
from .tensor import padded


@tf_op("SpaceToBatchND")
def space_to_batch_nd(m, x, block: Const, paddings: Const):
    block = [int(b) for b in block.reshape(-1)]
    count = len(block)
    around = np.asarray(paddings).reshape(-1, 2)
    rest = m.rank(x) - 1 - count
    x = padded(m, x, [[0, 0], *around.tolist(), *[[0, 0]] * rest], 0, "constant")
    batch, *dims = m.static_dims(x)
    if any(d % b for d, b in zip(dims, block, strict=False)):
        raise Error(f"the padded sizes {dims[:count]} do not divide into blocks {block}")
    small = [d // b for d, b in zip(dims, block, strict=False)]
    split = [n for pair in zip(small, block, strict=True) for n in pair]
    x = m.reshape(x, [batch, *split, *dims[count:]])
    inner = [2 + 2 * k for k in range(count)]
    outer = [1 + 2 * k for k in range(count)]
    x = m.permuted(x, [*inner, 0, *outer, *range(1 + 2 * count, m.rank(x))])
    return m.reshape(x, [batch * int(np.prod(block)), *small, *dims[count:]])


@tf_op("BatchToSpaceND")
def batch_to_space_nd(m, x, block: Const, crops: Const):
    block = [int(b) for b in block.reshape(-1)]
    count, (batch, *dims) = len(block), m.static_dims(x)
    total = int(np.prod(block))
    if batch % total:
        raise Error(f"a batch of {batch} does not divide into blocks {block}")
    x = m.reshape(x, [*block, batch // total, *dims])
    order = [count]
    for k in range(count):
        order += [count + 1 + k, k]
    x = m.permuted(x, [*order, *range(2 * count + 1, m.rank(x))])
    large = [d * b for d, b in zip(dims, block, strict=False)]
    x = m.reshape(x, [batch // total, *large, *dims[count:]])
    crops = np.asarray(crops).reshape(-1, 2).tolist()
    axes = [k for k, pair in enumerate(crops) if any(pair)]
    if not axes:
        return x
    return cut(m, x, [a + 1 for a in axes], [crops[a][0] for a in axes],
               [large[a] - crops[a][1] for a in axes])  # fmt: skip


@tf_op("SpaceToBatch")
def space_to_batch(m, x, paddings: Const, *, block_size):
    return space_to_batch_nd(m, x, np.array([block_size] * 2), paddings)


@tf_op("BatchToSpace")
def batch_to_space(m, x, crops: Const, *, block_size):
    return batch_to_space_nd(m, x, np.array([block_size] * 2), crops)


@tf_op("SpaceToDepth")
def space_to_depth(m, x, *, block_size, data_format="NHWC"):
    """[n, c, h, w] to [n, block * block * c, h / block, w / block], channels innermost."""
    x = m.first(x, data_format)
    batch, channels, high, wide = m.static_dims(x)
    if high % block_size or wide % block_size:
        raise Error(f"{high} x {wide} does not divide into blocks of {block_size}")
    small = [high // block_size, wide // block_size]
    x = m.reshape(x, [batch, channels, small[0], block_size, small[1], block_size])
    x = m.reshape(
        m.permuted(x, [0, 3, 5, 1, 2, 4]), [batch, channels * block_size**2, *small]
    )  # fmt: skip
    return m.last(x, data_format)


@tf_op("DepthToSpace")
def depth_to_space(m, x, *, block_size, data_format="NHWC"):
    """[n, block * block * c, h, w] to [n, c, h * block, w * block]."""
    x = m.first(x, data_format)
    batch, channels, high, wide = m.static_dims(x)
    if channels % block_size**2:
        raise Error(f"{channels} channels do not divide into blocks of {block_size}")
    left = channels // block_size**2
    x = m.reshape(x, [batch, block_size, block_size, left, high, wide])
    x = m.reshape(
        m.permuted(x, [0, 3, 4, 1, 5, 2]), [batch, left, high * block_size, wide * block_size]
    )  # fmt: skip
    return m.last(x, data_format)


@tf_op("ExtractImagePatches")
def extract_image_patches(m, x, *, ksizes, strides, rates, padding):
    """Each window as one row of channels: a gather from the padded image."""
    batch, high, wide, channels = m.static_dims(x)
    sizes, axes = [high, wide], []
    for k, size in enumerate(sizes):
        kernel, step, rate = ksizes[k + 1], strides[k + 1], rates[k + 1]
        reach = (kernel - 1) * rate + 1
        count = -(-size // step) if padding == "SAME" else (size - reach) // step + 1
        missing = max((count - 1) * step + reach - size, 0) if padding == "SAME" else 0
        places = np.arange(count)[:, None] * step + np.arange(kernel)[None] * rate
        axes.append((places, missing // 2, missing - missing // 2))
    (rows, top, bottom), (columns, left, right) = axes
    x = padded(m, x, [[0, 0], [top, bottom], [left, right], [0, 0]], 0, "constant")
    width = wide + left + right
    flat = rows[:, None, :, None] * width + columns[None, :, None, :]
    x = m.reshape(x, [batch, (high + top + bottom) * width, channels])
    x = m.add("gather", x, m.lit(flat.astype(np.int64)), axis=1)
    return m.reshape(x, [batch, *flat.shape[:2], flat.shape[2] * flat.shape[3] * channels])
