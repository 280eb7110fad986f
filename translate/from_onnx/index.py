"""Operators of ONNX that pick and place elements by index."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import dtype_of, type_t

from .reduce import squeeze_axes
from .registry import Const, Deferred, onnx_op


@onnx_op("Gather")
def gather(m, x, indices, *, axis=0):
    axis = m.axis(axis, m.rank(x))
    result = m.add("gather", x, indices, axis=axis)
    rank = m.rank(x) + m.rank(indices) - 1
    if rank and result.shape().is_rank0():
        return m.add("unsqueeze", result, axes=[0])
    return result


@onnx_op("GatherND")
def gather_nd(m, x, indices, *, batch_dims=0):
    result = m.add("gathernd", x, indices, batch_dims=batch_dims)
    last = m.static_dims(indices)[-1]
    rank = m.rank(indices) + m.rank(x) - last - 1 - batch_dims
    if not rank and not result.shape().is_rank0():
        return squeeze_axes(m, result, [0])
    return result


@onnx_op("GatherElements")
def gather_elements(m, x, indices, *, axis=0):
    """A gather from the flattened input, with the indices turned into flat positions."""
    dims, want = m.static_dims(x), m.static_dims(indices)
    rank = len(dims)
    axis = m.axis(axis, rank)
    size = dims[axis]
    index = m.convert(indices, type_t.int64_type)
    if 0 in want:
        return m.broadcast(m.lit(np.zeros((), dtype_of(m.type(x)))), want)
    below = m.convert(m.common("less", index, m.lit(0, index)), type_t.bool_type)
    from .math import where_common

    index = where_common(m, below, m.common("add", index, m.lit(size, index)), index)
    strides = [int(np.prod(dims[k + 1 :])) for k in range(rank)]
    base = np.zeros(want, np.int64)
    for k in range(rank):
        if k != axis:
            places = np.arange(want[k], dtype=np.int64) * strides[k]
            base += places.reshape([-1 if j == k else 1 for j in range(rank)])
    flat = m.common("mul", index, m.lit(strides[axis], index))
    flat = m.add("add", flat, m.lit(base))
    return m.add("gather", m.reshape(x, [-1]), flat, axis=0)


REDUCTIONS = ("none", "add", "mul", "min", "max")


@onnx_op("ScatterElements", "Scatter")
def scatter_elements(m, x, indices, updates, *, axis=0, reduction="none"):
    if reduction not in REDUCTIONS:
        raise Error(f"reduction {reduction!r} is none of {', '.join(REDUCTIONS)}")
    return m.add(f"scatter_{reduction}", x, indices, updates, axis=axis)


@onnx_op("ScatterND")
def scatter_nd(m, x, indices, updates, *, reduction="none"):
    if reduction not in REDUCTIONS:
        raise Error(f"reduction {reduction!r} is none of {', '.join(REDUCTIONS)}")
    return m.add(f"scatternd_{reduction}", x, indices, updates)


@onnx_op("TensorScatter")
def tensor_scatter(m, past, update, write_indices=None, *, axis=-2, mode="linear"):
    """Writes `update` into a cache along `axis`, at a start of its own for each batch entry."""
    dims, new = m.static_dims(past), m.static_dims(update)
    axis = m.axis(axis, len(dims))
    steps = np.arange(new[axis], dtype=np.int64)
    shape = [-1 if k == axis else 1 for k in range(len(dims))]
    index = m.lit(steps.reshape(shape))
    if write_indices is not None:
        start = m.reshape(m.convert(write_indices, type_t.int64_type), [-1] + [1] * (len(dims) - 1))
        index = m.common("add", start, index)
    if mode == "circular":
        index = m.common("mod", index, m.lit(dims[axis], index))
    return m.add("scatter_none", past, m.broadcast(index, new), update, axis=axis)


@onnx_op("OneHot")
def one_hot(m, indices, depth: Const, values, *, axis=-1):
    depth = int(depth.reshape(-1)[0])
    rank = m.rank(indices)
    axis = m.axis(axis, rank + 1)
    index = m.convert(indices, type_t.int64_type)
    below = m.convert(m.common("less", index, m.lit(0, index)), type_t.bool_type)
    from .math import where_common

    index = where_common(m, below, m.common("add", index, m.lit(depth, index)), index)
    places = m.lit(np.arange(depth, dtype=np.int64))
    places = m.reshape(places, [-1 if k == axis else 1 for k in range(rank + 1)])
    if rank:
        index = m.add("unsqueeze", index, axes=[axis])
    hot = m.convert(m.common("equal", index, places), type_t.bool_type)
    off, on = (squeeze_axes(m, cut_one(m, values, k), [0]) for k in (0, 1))
    return where_common(m, hot, on, off)


def cut_one(m, x, k):
    """Element k of a 1-D tensor, as a tensor of one element."""
    from .tensor import cut

    return cut(m, x, [0], [k], [k + 1])


@onnx_op("NonZero")
def non_zero(m, x):
    """Coordinates of the elements that are not zero, exactly as many as there are.

    MIGraphX's `nonzero` is padded; a slice with the count, computed from the data, cuts it.
    """
    if not m.rank(x):
        x = m.add("unsqueeze", x, axes=[0])
        inner = non_zero(m, x)
        return cut_columns(m, inner, 0)
    dims = m.dims(x)
    if any(d == 0 for d in dims):
        return m.lit(np.zeros((len(dims), 0), np.int64))
    hit = m.convert(m.convert(x, type_t.bool_type), type_t.int64_type)
    flat = m.reshape(hit, [-1])
    count = m.add("reduce_sum", flat, axes=[0])
    if any(not isinstance(d, int) for d in dims):
        raise Deferred
    full = m.add("nonzero", x if x.shape().standard() else m.add("contiguous", x))
    return first_columns(m, full, count, 1)


def cut_columns(m, x, rows):
    """No rows: the coordinates of a rank-0 value have none."""
    from .tensor import cut

    return cut(m, x, [0], [0], [rows]) if x.shape().dims is not None else x


def first_columns(m, x, count, axis):
    """The first `count` (a one-element tensor) entries along an axis, as many as the data say."""
    zero = m.lit(np.zeros(1, np.int64))
    return m.add("slice", x, zero, count, axes=[axis])


@onnx_op("Compress")
def compress(m, x, condition, *, axis=None):
    """Elements along an axis (or of the flattened input) where the condition holds."""
    if axis is None:
        x, axis = m.reshape(x, [-1]), 0
    axis = m.axis(axis, m.rank(x))
    size, given = m.static_dims(x)[axis], m.static_dims(condition)[0]
    if given > size:
        condition = cut_to(m, condition, size)
    places = non_zero(m, condition)
    return m.add("gather", x, m.add("squeeze", places, axes=[0]), axis=axis)


def cut_to(m, x, size):
    from .tensor import cut

    return cut(m, x, [0], [0], [size])


@onnx_op("Unique")
def unique(m, x, *, axis=None, sorted=1):
    """Distinct elements (or slices along an axis), first index, inverse and count of each."""
    if axis is None:
        both = m.add("unique", m.reshape(x, [-1]), axis=0, sorted=bool(sorted))
        return tuple(m.add("get_tuple_elem", both, index=k) for k in range(4))
    axis = m.axis(axis, m.rank(x))
    if axis:
        order = [axis] + [k for k in range(m.rank(x)) if k != axis]
        x = m.add("contiguous", m.add("transpose", x, permutation=order))
    both = m.add("unique", x, axis=0, sorted=bool(sorted))
    parts = [m.add("get_tuple_elem", both, index=k) for k in range(4)]
    if axis:
        back = [order.index(k) for k in range(len(order))]
        parts[0] = m.add("transpose", parts[0], permutation=back)
    return tuple(parts)


@onnx_op("NonMaxSuppression")
def non_max_suppression(
    m, boxes, scores, max_output=None, iou=None, score=None, *, center_point_box=0
):
    """Selected [batch, class, box] rows, exactly as many as there are."""
    inputs = [boxes, scores]
    defaults = (np.zeros(1, np.int64), np.zeros(1, np.float32), None)
    for given, default in zip((max_output, iou, score), defaults, strict=True):
        if given is None and default is None:
            break
        value = m.lit(default) if given is None else given
        if m.rank(value) == 0:
            value = m.add("unsqueeze", value, axes=[0])
        inputs.append(value)
    return m.add(
        "nonmaxsuppression",
        *inputs,
        center_point_box=bool(center_point_box),
        use_dyn_output=True,
    )
