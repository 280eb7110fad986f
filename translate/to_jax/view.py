"""Lowering of operators that show the same elements under other dims."""

from __future__ import annotations

import numpy as np

from .registry import lower


def with_axes(x):
    """`x` with at least one axis: rank 0 has none here but one in the graph."""
    return x.reshape((1,)) if x.ndim == 0 else x


@lower("identity")
def identity(op, xp, x, *_):
    return x


@lower("contiguous", "layout")
def contiguous(op, xp, x):
    """The memory order of an intermediate result is XLA's choice."""
    return x


@lower("transpose")
def transpose(op, xp, x):
    return xp.transpose(x, op.permutation) if x.ndim else x


@lower("reshape", "reshape_lazy")
def reshape(op, xp, x, target=None):
    """0 copies a size, unless only reading it as "no elements" fits."""
    if target is not None:
        return x.reshape(target.shape)
    dims = [int(getattr(d, "min", d)) for d in op.dims]
    if 0 in dims:
        have = with_axes(x).shape
        copied = [have[k] if d == 0 and k < len(have) else d for k, d in enumerate(dims)]
        dims = copied if x.size or -1 in dims or not np.prod(copied) else dims
    if -1 in dims and not x.size:  # NumPy cannot tell what is left of nothing
        dims = [0 if d == -1 else d for d in dims]
    return x.reshape(dims)


@lower("flatten")
def flatten(op, xp, x):
    axis = op.axis + max(x.ndim, 1) if op.axis < 0 else op.axis
    before, after = x.shape[:axis], x.shape[axis:]
    return x.reshape((int(np.prod(before, dtype=int)), int(np.prod(after, dtype=int))))


@lower("squeeze")
def squeeze(op, xp, x):
    if not x.ndim:
        return x
    return xp.squeeze(x, tuple(op.axes) if op.axes else None)


@lower("unsqueeze")
def unsqueeze(op, xp, x):
    """New axes; with steps, the axis that follows is split."""
    if not x.ndim:
        return x.reshape((1,))
    rank = x.ndim + len(op.axes)
    axes = [a + rank if a < 0 else a for a in op.axes]
    steps = dict(zip(axes, op.steps))
    left, dims = list(x.shape), []
    for k in range(rank):
        if k not in axes:
            dims.append(left.pop(0))
            continue
        step = steps.get(k, 1)
        if step != 1:
            left[0] //= step
        dims.append(step)
    return x.reshape(dims)


@lower("as_shape")
def as_shape(op, xp, x):
    """Elements at the places in memory that the strides of the target reach."""
    dims = op.shape.dims
    if op.shape.standard() and x.size == np.prod(dims, dtype=int):
        return x.reshape(dims)
    places = np.zeros((), np.int64)
    for size, stride in zip(dims, op.shape.strides(), strict=True):
        places = places[..., None] + np.arange(size) * stride
    return x.reshape(-1)[places]
