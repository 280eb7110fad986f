"""Reductions, softmax, running sums and the largest elements, of TensorFlow."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error

from .builder import first_order
from .registry import tf_op
from .shared import Const, cum_prod, reduction, squeeze_axes
from .tensors import INT32, INT64, element_type

REDUCTIONS = {
    "All": "reduce_all",
    "Any": "reduce_any",
    "EuclideanNorm": "reduce_sum",  # of the squares, then the root
    "Max": "reduce_max",
    "Mean": "reduce_mean",
    "Min": "reduce_min",
    "Prod": "reduce_prod",
    "Sum": "reduce_sum",
}


@tf_op(*REDUCTIONS)
def reduce(m, x, axes: Const, *, keep_dims=False):
    """No axes reduce nothing."""
    target = REDUCTIONS[m.node.op]
    rank = m.rank(x)
    axes = sorted(m.axis(int(a), rank) for a in axes.reshape(-1))
    x, axes, back = stored(m, x, axes, keep_dims)
    if m.node.op == "EuclideanNorm":
        total = reduction(m, m.add("mul", x, x), axes, keep_dims, True, target)
        return back(m.add("sqrt", total))
    return back(reduction(m, x, axes, keep_dims, True, target))


def stored(m, x, axes, keep_dims):
    """An image as it is stored, if the reduced result has its axes in the same order then.

    Also the axes there, and what brings the result back to TensorFlow's layout.
    """
    if not m.is_image(x):
        return x, axes, lambda y: y
    order = first_order(m.rank(x))  # the axis of x that each stored axis is
    left = [a for a in order if a not in axes]
    if not keep_dims and left != sorted(left):
        return x, axes, lambda y: y
    inside = sorted(order.index(a) for a in axes)
    return m.first(x), inside, m.last if keep_dims else lambda y: y


@tf_op("L2Loss")
def l2_loss(m, x):
    total = reduction(m, m.add("mul", x, x), None, False, False, "reduce_sum")
    return m.common("mul", total, m.lit(0.5, x))


@tf_op("ArgMax", "ArgMin")
def arg_reduction(m, x, axis: Const = None, *, output_type=INT64):
    axis = m.axis(0 if axis is None else int(axis.reshape(())), m.rank(x))
    result = m.add("argmax" if m.node.op == "ArgMax" else "argmin", x, axis=axis)
    return m.convert(squeeze_axes(m, result, [axis]), element_type(output_type))


@tf_op("Softmax", "LogSoftmax")
def softmax(m, x):
    """Over the last axis, which of an image are the channels."""
    name = m.node.op.lower()
    if m.is_image(x):
        return m.last(m.add(name, m.first(x), axis=1))
    return m.add(name, x, axis=m.rank(x) - 1)


@tf_op("Cumsum")
def cumsum(m, x, axis: Const, *, exclusive=False, reverse=False):
    axis = m.axis(int(axis.reshape(())), m.rank(x))
    return m.add("prefix_scan_sum", x, axis=axis, exclusive=exclusive, reverse=reverse)


@tf_op("Cumprod")
def cumprod(m, x, axis: Const, *, exclusive=False, reverse=False):
    return cum_prod(m, x, axis, exclusive=exclusive, reverse=reverse)


def _top_k(m, x, count: int, index_type: int):
    axis = m.rank(x) - 1
    size = m.dims(x)[axis]
    if count < 0 or (isinstance(size, int) and count > size):
        raise Error(f"k = {count} is outside 0 to the size {size} of the last axis")
    if not count:
        dims = [*m.dims(x)[:-1], 0]
        return m.zeros(x, dims), m.broadcast(m.lit(np.int32(0)), dims)
    both = m.add("topk", x, k=count, axis=axis, largest=True)
    values, indices = (m.add("get_tuple_elem", both, index=k) for k in (0, 1))
    return values, m.convert(indices, element_type(index_type))


@tf_op("TopKV2", outputs=("values", "indices"))
def top_k_v2(m, x, k: Const, *, index_type=INT32):
    return _top_k(m, x, int(k.reshape(())), index_type)


@tf_op("TopK", outputs=("values", "indices"))
def top_k_1(m, x, *, k):
    return _top_k(m, x, k, INT32)
