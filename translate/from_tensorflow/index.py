"""Operators of TensorFlow that pick and place elements by index."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error

from .registry import tf_op
from .shared import Const, gather, gather_nd, non_zero, unique, where_common
from .tensors import INT32, element_type, limited


@tf_op("Gather")
def gather_1(m, x, indices):
    return gather(m, x, indices, axis=0)


@tf_op("GatherV2")
def gather_v2(m, x, indices, axis: Const, *, batch_dims=0):
    """With batch dims, the axes of x between them and `axis` are moved behind `axis` first."""
    rank = m.rank(x)
    axis = m.axis(int(axis.reshape(())), rank)
    if batch_dims < 0:
        batch_dims += m.rank(indices)
    if not batch_dims:
        return gather(m, x, indices, axis=axis)
    if axis < batch_dims:
        raise Error(f"axis {axis} is among the {batch_dims} batch dims")
    lead, between = list(range(batch_dims)), list(range(batch_dims, axis))
    x = m.permuted(x, [*lead, axis, *between, *range(axis + 1, rank)])
    picked = gather_nd(m, x, m.add("unsqueeze", indices, axes=[m.rank(indices)]),
                       batch_dims=batch_dims)  # fmt: skip
    inner = m.rank(indices) - batch_dims  # these axes of the result belong behind `between`
    places = list(range(batch_dims, batch_dims + inner))
    moved = [batch_dims + inner + k for k in range(len(between))]
    rest = range(batch_dims + inner + len(between), m.rank(picked))
    return m.permuted(picked, [*lead, *moved, *places, *rest])


@tf_op("GatherNd")
def gather_nd_(m, x, indices):
    return gather_nd(m, x, indices)


@tf_op("ScatterNd")
def scatter_nd(m, indices, updates, shape: Const):
    """Updates of the same place add up."""
    zeros = m.zeros(updates, [int(d) for d in shape.reshape(-1)])
    return m.add("scatternd_add", m.add("contiguous", zeros), indices, updates)


SCATTERS = {
    "TensorScatterAdd": "scatternd_add",
    "TensorScatterMax": "scatternd_max",
    "TensorScatterMin": "scatternd_min",
    "TensorScatterUpdate": "scatternd_none",
}


@tf_op(*SCATTERS)
def tensor_scatter(m, x, indices, updates):
    return m.add(SCATTERS[m.node.op], x, indices, updates)


@tf_op("TensorScatterSub")
def tensor_scatter_sub(m, x, indices, updates):
    return m.add("scatternd_add", x, indices, m.add("neg", updates))


@tf_op("UnsortedSegmentSum")
def unsorted_segment_sum(m, x, ids, count: Const):
    """Rows with a negative number are dropped: they go to one more row, which is cut off."""
    rank = m.rank(ids)
    rows = int(count.reshape(()))
    below = m.compare("less", ids, m.lit(0, ids))
    places = where_common(m, below, m.lit(rows, ids), ids)
    zeros = m.zeros(x, [rows + 1, *m.static_dims(x)[rank:]])
    index = m.add("unsqueeze", places, axes=[rank]) if rank else m.shaped(places, [1])
    total = m.add("scatternd_add", m.add("contiguous", zeros), index, x)
    return m.add("slice", total, axes=[0], starts=[0], ends=[rows])


@tf_op("OneHot")
def one_hot(m, indices, depth: Const, on, off, *, axis=-1):
    """Indices outside 0 to depth - 1 give `off` everywhere."""
    depth, rank = limited(int(depth.reshape(())), "an axis"), m.rank(indices)
    axis = m.axis(axis, rank + 1)
    places = np.arange(depth).reshape([-1 if k == axis else 1 for k in range(rank + 1)])
    index = m.add("unsqueeze", indices, axes=[axis]) if rank else indices
    hot = m.compare("equal", index, m.lit(places, indices))
    return where_common(m, hot, m.scalar(on), m.scalar(off))


@tf_op("Where")
def where(m, x):
    """Coordinates of what is not zero, one row for each."""
    return m.permuted(non_zero(m, x), [1, 0])


@tf_op("Unique", "UniqueV2", outputs=("y", "idx"))
def unique_(m, x, axis=None, *, out_idx=INT32):
    """In the order of their first place."""
    if m.rank(x) != 1:
        raise Error(f"an input of rank {m.rank(x)}; 1 is supported")
    values, _, inverse, _ = unique(m, x, sorted=0)
    return values, m.convert(inverse, element_type(out_idx))
