"""Operators of TensorFlow that build, shape and join tensors."""

from __future__ import annotations

import numpy as np

from migraphx.dims import Dim
from migraphx.errors import Error

from .builder import first_order
from .registry import tf_op
from .shared import (
    Const,
    Sizes,
    expand,
    join,
    make_range,
    pad_by,
    reshape,
    reverse_sequence,
    shape_of,
    size_of,
    squeeze_axes,
    tile,
    where_common,
)
from .tensors import INT32, element_type, limited, read_tensor

# -- inputs and constants --------------------------------------------------------------------------


@tf_op("Placeholder")
def placeholder(m, *, dtype, shape=None):
    return m.graph.parameter(m.node, dtype, shape)


@tf_op("Const", "HostConst")
def const(m, *, value):
    return m.lit(read_tensor(value))


@tf_op("Fill")
def fill(m, dims: Sizes, value):
    return m.broadcast(m.scalar(value), [d if isinstance(d, Dim) else int(d) for d in dims])


@tf_op("Range")
def range_(m, start: Const, limit: Const, delta: Const):
    first, last, step = (float(v.reshape(())) for v in (start, limit, delta))
    if step:
        limited(max((last - first) / step, 0), "a range")
    return make_range(m, start, limit, delta)


@tf_op("LinSpace")
def lin_space(m, start: Const, stop: Const, num: Const):
    count = limited(int(num.reshape(())), "its result")
    values = np.linspace(start.reshape(()), stop.reshape(()), count)
    return m.lit(values.astype(start.dtype))


# -- sizes -----------------------------------------------------------------------------------------


@tf_op("Shape")
def shape(m, x, *, out_type=INT32):
    kind = element_type(out_type)
    if x.shape().dynamic():
        return m.convert(shape_of(m, x), kind)
    return m.lit(np.array(m.dims(x), np.int64), kind)


@tf_op("ShapeN")
def shape_n(m, *xs, out_type=INT32):
    return [shape(m, x, out_type=out_type) for x in xs]


@tf_op("Size")
def size(m, x, *, out_type=INT32):
    return m.convert(size_of(m, x), element_type(out_type))


@tf_op("Rank")
def rank(m, x):
    return m.lit(np.int32(m.rank(x)))


# -- other dims for the same elements --------------------------------------------------------------


@tf_op("Reshape")
def reshape_(m, x, dims: Sizes):
    """An image of one pixel is reshaped as it is stored: its elements lie in the same order."""
    if m.is_image(x) and all(d == 1 for d in m.dims(x)[1:-1]):
        x = m.first(x)
    return reshape(m, x, dims, allowzero=1)


@tf_op("ExpandDims")
def expand_dims(m, x, axis: Const):
    rank = m.rank(x)
    axis = m.axis(int(axis.reshape(())), rank + 1)
    return m.add("unsqueeze", x, axes=[axis]) if rank else m.shaped(x, [1])


@tf_op("Squeeze")
def squeeze(m, x, *, squeeze_dims=()):
    """All axes of size 1 where none are named."""
    rank, dims = m.rank(x), m.dims(x)
    axes = sorted({m.axis(a, rank) for a in squeeze_dims})
    if not axes:
        axes = [k for k, d in enumerate(m.static_dims(x)) if d == 1]
    bad = [a for a in axes if not isinstance(dims[a], Dim) and dims[a] != 1]
    if bad:
        raise Error(f"axis {bad[0]} has size {dims[bad[0]]}, only axes of size 1 go")
    if not axes:
        return x
    order = first_order(rank)
    left = [a for a in order if a not in axes]
    if m.is_image(x) and left == sorted(left):
        return squeeze_axes(m, m.first(x), sorted(order.index(a) for a in axes))
    return squeeze_axes(m, x, axes)


@tf_op("Transpose")
def transpose(m, x, order: Const):
    order = [int(k) for k in order.reshape(-1)]
    rank = m.rank(x)
    order = [k + rank if k < 0 else k for k in order]
    if sorted(order) != list(range(rank)):
        raise Error(f"perm {order} does not order the {rank} axes of the input")
    return m.permuted(x, order)


@tf_op("InvertPermutation")
def invert_permutation(m, x: Const):
    return m.lit(np.argsort(x).astype(x.dtype))


# -- joining and repeating -------------------------------------------------------------------------


def joined(m, xs, axis: int):
    """`concat`; of images as they are stored."""
    axis = m.axis(axis, m.rank(xs[0]))
    images = [m.is_image(x) for x in xs]
    if any(images) and all(i or x.literal is not None for i, x in zip(images, xs, strict=True)):
        inside = first_order(m.rank(xs[0])).index(axis)
        return m.last(join(m, [m.first(x) for x in xs], inside))
    return join(m, xs, axis) if len(xs) > 1 else xs[0]


@tf_op("ConcatV2")
def concat_v2(m, *xs, N=None):
    *parts, axis = xs
    return joined(m, parts, int(m.known(axis, "axis").reshape(())))


@tf_op("Concat")
def concat(m, axis: Const, *xs, N=None):
    return joined(m, xs, int(axis.reshape(())))


@tf_op("Pack")
def pack(m, *xs, axis=0, N=None):
    rank = m.rank(xs[0])
    axis = m.axis(axis, rank + 1)
    parts = [m.add("unsqueeze", x, axes=[axis]) if rank else m.shaped(x, [1]) for x in xs]
    return join(m, parts, axis)


@tf_op("Tile")
def tile_(m, x, multiples: Const):
    return tile(m, x, multiples)


@tf_op("BroadcastTo")
def broadcast_to(m, x, dims: Sizes):
    return expand(m, x, dims)


@tf_op("BroadcastArgs")
def broadcast_args(m, a: Const, b: Const):
    return m.lit(np.array(np.broadcast_shapes(tuple(a), tuple(b)), a.dtype))


# -- padding ---------------------------------------------------------------------------------------


@tf_op("Pad", "PadV2")
def pad(m, x, paddings: Const, value: Const = None):
    return padded(m, x, paddings, 0 if value is None else value.reshape(-1)[0], "constant")


def padded(m, x, paddings, value, mode):
    """Begins and ends as rows [axis, 2]; an image is padded as it is stored."""
    order = list(range(m.rank(x)))
    image = m.is_image(x)
    if image:
        order, x = first_order(len(order)), m.first(x)
    pairs = np.asarray(paddings).reshape(-1, 2)
    pads = [int(pairs[k][end]) for end in (0, 1) for k in order]
    result = pad_by(m, x, pads, value, None, mode) if any(pads) else x
    return m.last(result) if image else result


@tf_op("MirrorPad")
def mirror_pad(m, x, paddings: Const, *, mode):
    """SYMMETRIC repeats the edge itself: a gather along each axis."""
    if mode == "REFLECT":
        return padded(m, x, paddings, 0, "reflect")
    if mode != "SYMMETRIC":
        raise Error(f"mode {mode!r} is neither REFLECT nor SYMMETRIC")
    dims = m.static_dims(x)
    for axis, (begin, end) in enumerate(paddings.reshape(-1, 2)):
        if begin or end:
            limited(dims[axis] + int(begin) + int(end), "an axis")
            places = np.pad(np.arange(dims[axis]), (int(begin), int(end)), mode="symmetric")
            x = m.add("gather", x, m.lit(places), axis=axis)
    return x


# -- order of elements -----------------------------------------------------------------------------


@tf_op("ReverseV2")
def reverse_v2(m, x, axes: Const):
    chosen = [m.axis(int(a), m.rank(x)) for a in axes.reshape(-1)]
    return m.add("reverse", x, axes=chosen) if chosen else x


@tf_op("Reverse")
def reverse(m, x, dims: Const):
    chosen = np.flatnonzero(dims).tolist()
    return m.add("reverse", x, axes=chosen) if chosen else x


@tf_op("ReverseSequence")
def reverse_sequence_(m, x, lengths, *, seq_dim, batch_dim=0):
    return reverse_sequence(m, x, lengths, batch_axis=batch_dim, time_axis=seq_dim)


@tf_op("Roll")
def roll(m, x, shift: Const, axis: Const):
    dims = m.static_dims(x)
    for step, along in zip(shift.reshape(-1), axis.reshape(-1), strict=True):
        along = m.axis(int(along), len(dims))
        places = np.roll(np.arange(dims[along]), int(step))
        x = m.add("gather", x, m.lit(places), axis=along)
    return x


@tf_op("MatrixBandPart")
def matrix_band_part(m, x, lower: Const, upper: Const):
    """Keeps so many diagonals below and above the main one; negative numbers keep all."""
    rows, columns = m.static_dims(x)[-2:]
    lower, upper = int(lower.reshape(())), int(upper.reshape(()))
    offset = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    keep = ((lower < 0) | (-offset <= lower)) & ((upper < 0) | (offset <= upper))
    return where_common(m, m.lit(keep), x, m.lit(0, x))


@tf_op("MatrixDiag", "Diag")
def matrix_diag(m, x):
    """The last axis on the diagonal of matrices of zeros."""
    if m.node.op == "Diag" and m.rank(x) != 1:
        raise Error(f"an input of rank {m.rank(x)}; 1 is supported")
    size = m.static_dims(x)[-1]
    rows = m.add("unsqueeze", x, axes=[m.rank(x) - 1])
    return where_common(m, m.lit(np.eye(size, dtype=bool)), rows, m.lit(0, x))


@tf_op("MatrixDiagPart", "DiagPart")
def matrix_diag_part(m, x):
    """The diagonals of matrices in the last two axes."""
    dims = m.static_dims(x)
    if m.node.op == "DiagPart" and len(dims) != 2:
        raise Error(f"an input of rank {len(dims)}; 2 is supported")
    count = min(dims[-2:])
    flat = m.shaped(x, [*dims[:-2], dims[-2] * dims[-1]])
    return m.add("gather", flat, m.lit(np.arange(count) * (dims[-1] + 1)), axis=len(dims) - 2)
