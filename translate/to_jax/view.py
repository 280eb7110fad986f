"""Lowering of operators that show the same elements under other dims."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from migraphx.errors import Error

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


@dataclass(frozen=True)
class OpenBuffer:
    """What `allocate` gives for sizes of which one is -1: only `reshape` can tell that size.

    The real module writes an ONNX Reshape to computed sizes in this way.
    """

    shape: tuple
    dtype: np.dtype

    def __array__(self, *_, **__):
        raise Error(f"allocate: only reshape can read a buffer with an open size, {self.shape}")


@lower("reshape", "reshape_lazy")
def reshape(op, xp, x, target=None):
    """0 copies a size, unless only reading it as "no elements" fits."""
    dims = [int(getattr(d, "min", d)) for d in (op.dims if target is None else target.shape)]
    if 0 in dims:
        have = with_axes(x).shape
        copied = [have[k] if d == 0 and k < len(have) else d for k, d in enumerate(dims)]
        dims = copied if x.size or -1 in dims or not np.prod(copied) else dims
    if -1 in dims and not x.size:  # NumPy cannot tell what is left of nothing
        dims = [0 if d == -1 else d for d in dims]
    if target is not None and not _holds(x.size, dims):
        op.fail(f"{x.size} elements {list(x.shape)} do not fit the sizes {dims}")
    return x.reshape(dims)


def _holds(size: int, dims) -> bool:
    """True if `size` elements fit `dims`, of which one may be -1."""
    rest = math.prod(d for d in dims if d != -1)
    return size % rest == 0 if -1 in dims and rest else size == rest


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
