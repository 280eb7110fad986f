"""Reductions, arg-reductions, softmax, cumulative sums and sorting operators of ONNX."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import FLOATS, type_t

from .registry import Const, onnx_op


def reduction(m, x, axes, keepdims, noop, target, before=None, after=None):
    """Reduces over `axes` (all if None and not `noop`), with functions before and after."""
    rank = m.rank(x)
    axes = None if axes is None or not len(axes) else [m.axis(int(a), rank) for a in axes]
    if axes is None and noop:
        return after(m, before(m, x) if before else x) if after or before else m.add("identity", x)
    if before:
        x = before(m, x)
    if rank:
        axes = list(range(rank)) if axes is None else axes
        x = m.add(target, x, axes=axes)
        if not keepdims:
            x = m.add("squeeze", x, axes=axes)
            if x.shape().is_rank0() and len(axes) < rank:
                x = m.add("unsqueeze", x, axes=[0])
    return after(m, x) if after else m.add("identity", x) if not rank else x


def _abs(m, x):
    return m.add("abs", x)


def _square(m, x):
    return m.add("mul", x, x)


def _sqrt(m, x):
    kind = m.type(x)
    if kind in FLOATS:
        return m.add("sqrt", x)
    return m.convert(m.add("sqrt", m.convert(x, type_t.double_type)), kind)


def _log(m, x):
    kind = m.type(x)
    if kind in FLOATS:
        return m.add("log", x)
    return m.convert(m.add("log", m.convert(x, type_t.double_type)), kind)


# ONNX operator: (operator, function before, function after)
REDUCTIONS = {
    "ReduceSum": ("reduce_sum", None, None),
    "ReduceMean": ("reduce_mean", None, None),
    "ReduceMax": ("reduce_max", None, None),
    "ReduceMin": ("reduce_min", None, None),
    "ReduceProd": ("reduce_prod", None, None),
    "ReduceL1": ("reduce_sum", _abs, None),
    "ReduceL2": ("reduce_sum", _square, _sqrt),
    "ReduceLogSum": ("reduce_sum", None, _log),
    "ReduceSumSquare": ("reduce_sum", _square, None),
}


def _reduction(target, before, after):
    def handler(m, x, axes: Const = None, *, keepdims=1, noop_with_empty_axes=0):
        return reduction(m, x, axes, keepdims, noop_with_empty_axes, target, before, after)

    return handler


for _name, _row in REDUCTIONS.items():
    onnx_op(_name)(_reduction(*_row))


@onnx_op("ReduceLogSumExp")
def reduce_log_sum_exp(m, x, axes: Const = None, *, keepdims=1, noop_with_empty_axes=0):
    """Shifted by the maximum, so that exp does not overflow."""
    if m.type(x) not in FLOATS:
        kind = m.type(x)
        wide = m.convert(x, type_t.double_type)
        return m.convert(
            reduce_log_sum_exp(m, wide, axes, keepdims=keepdims,
                               noop_with_empty_axes=noop_with_empty_axes), kind)  # fmt: skip
    rank = m.rank(x)
    empty = axes is None or not len(axes)
    if (empty and noop_with_empty_axes) or not rank:
        return m.add("identity", x)
    if any(d == 0 for d in m.dims(x)):
        return reduction(m, m.add("exp", x), axes, keepdims, 0, "reduce_sum", None, _log)
    chosen = list(range(rank)) if empty else [m.axis(int(a), rank) for a in axes]
    top = m.add("reduce_max", x, axes=chosen)
    infinite = m.convert(m.add("isinf", top), type_t.bool_type)
    from .math import where_common

    top = where_common(m, infinite, m.lit(0, x), top)
    total = m.add("reduce_sum", m.add("exp", m.common("sub", x, top)), axes=chosen)
    result = m.add("add", m.add("log", total), top)
    if keepdims:
        return result
    result = m.add("squeeze", result, axes=chosen)
    if result.shape().is_rank0() and len(chosen) < rank:
        return m.add("unsqueeze", result, axes=[0])
    return result


@onnx_op("ArgMax", "ArgMin")
def arg_reduction(m, x, *, axis=0, keepdims=1, select_last_index=0):
    name = "argmax" if m.node.op_type == "ArgMax" else "argmin"
    axis = m.axis(axis, m.rank(x))
    if m.rank(x) == 0:
        return m.add("convert", m.add("sub", x, x), target_type=type_t.int64_type)
    result = m.add(name, x, axis=axis, select_last_index=bool(select_last_index))
    return result if keepdims else squeeze_axes(m, result, [axis])


def squeeze_axes(m, x, axes):
    """`squeeze` that gives rank 0 only when every axis goes."""
    rank = m.rank(x)
    result = m.add("squeeze", x, axes=axes)
    if result.shape().is_rank0() and len(axes) < rank:
        return m.add("unsqueeze", result, axes=[0])
    return result


# -- softmax family --------------------------------------------------------------------------------


@onnx_op("Softmax", "LogSoftmax", since=13)
def softmax(m, x, *, axis=-1):
    name = m.node.op_type.lower()
    if not m.rank(x):
        one = m.add("unsqueeze", x, axes=[0])
        return m.add("squeeze", m.add(name, one, axis=0), axes=[0])
    m.axis(axis, m.rank(x))
    return m.add(name, x, axis=axis)


@onnx_op("Softmax", "LogSoftmax")
def softmax_1(m, x, *, axis=1):
    """Older opsets normalise over all axes from `axis` on."""
    rank = m.rank(x)
    axis = m.axis(axis, rank) if axis != rank else rank
    if axis == rank - 1 or (all(d == 1 for d in m.dims(x)[axis + 1 :]) and axis < rank):
        return m.add(m.node.op_type.lower(), x, axis=axis)
    return through_rows(m, x, axis, lambda y: m.add(m.node.op_type.lower(), y, axis=1))


def through_rows(m, x, axis, function):
    """`function` of x as a matrix, split at `axis`; the result in the shape of x."""
    flat = m.add("flatten", x, axis=axis)
    return m.reshape(function(flat), m.dims(x))


@onnx_op("Hardmax", since=13)
def hardmax(m, x, *, axis=-1):
    """1 at the first largest element along the axis, 0 elsewhere."""
    rank = m.rank(x)
    axis = m.axis(axis, rank)
    best = m.add("argmax", x, axis=axis)
    places = m.lit(np.arange(m.static_dims(x)[axis], dtype=np.int64))
    places = m.reshape(places, [-1 if k == axis else 1 for k in range(rank)])
    return m.convert(m.common("equal", best, places), m.type(x))


@onnx_op("Hardmax")
def hardmax_1(m, x, *, axis=1):
    rank = m.rank(x)
    axis = m.axis(axis, rank) if axis != rank else rank
    if axis == rank - 1:
        return hardmax(m, x, axis=axis)
    return through_rows(m, x, axis, lambda y: hardmax(m, y, axis=1))


# -- along an axis ---------------------------------------------------------------------------------


@onnx_op("CumSum")
def cum_sum(m, x, axis: Const, *, exclusive=0, reverse=0):
    return m.add(
        "prefix_scan_sum",
        x,
        axis=m.axis(int(axis.reshape(())), m.rank(x)),
        exclusive=bool(exclusive),
        reverse=bool(reverse),
    )


@onnx_op("CumProd", since=26)
def cum_prod(m, x, axis: Const, *, exclusive=0, reverse=0):
    """Running products by doubling: each pass multiplies by what lies twice as far back."""
    axis = m.axis(int(axis.reshape(())), m.rank(x))
    dims = m.static_dims(x)
    size = dims[axis]

    def shifted(y, step):
        """`y` moved by `step` along the axis, ones moving in."""
        lead = m.broadcast(m.lit(1, x), [step if k == axis else d for k, d in enumerate(dims)])
        start, end = (step, size) if reverse else (0, size - step)
        kept = m.add("slice", y, axes=[axis], starts=[start], ends=[end])
        parts = (kept, lead) if reverse else (lead, kept)
        return m.add("concat", *parts, axis=axis)

    if exclusive and size:
        x = shifted(x, 1)
    step = 1
    while step < size:
        x = m.add("mul", x, shifted(x, step))
        step *= 2
    return x


@onnx_op("TopK")
def top_k(m, x, k: Const, *, axis=-1, largest=1, sorted=1):
    """The k largest (or smallest) elements, best first, ties by smaller index."""
    axis = m.axis(axis, m.rank(x))
    k = int(k.reshape(-1)[0])
    size = m.dims(x)[axis]
    if k < 0 or (isinstance(size, int) and k > size):
        raise Error(f"k = {k} is outside 0 to the size {size} of axis {axis}")
    both = m.add("topk", x, k=k, axis=axis, largest=bool(largest))
    return m.add("get_tuple_elem", both, index=0), m.add("get_tuple_elem", both, index=1)
