"""Slices of TensorFlow: Slice, StridedSlice with all its masks, Split and Unpack."""

from __future__ import annotations

import numpy as np

from migraphx.dims import Dim
from migraphx.errors import Error
from migraphx.types import type_t

from .builder import first_order
from .registry import Entries, tf_op
from .shared import Const, Deferred, cut, slice_by, squeeze_axes

ALL = 2**31 - 1  # an end beyond any size


@tf_op("Slice")
def slice_(m, x, starts: Entries, sizes: Entries):
    """A begin that is computed becomes a gather of so many places behind it."""
    rank = m.rank(x)
    if len(starts) != rank or len(sizes) != rank:
        raise Error(f"{len(starts)} begins and {len(sizes)} sizes for {rank} dimensions")
    axes, first, last = [], [], []
    for axis, (start, count) in enumerate(zip(starts, sizes, strict=True)):
        if not isinstance(count, (int, Dim)):
            raise Deferred
        if not isinstance(start, (int, Dim)):
            x = moving(m, x, axis, start, count)
            continue
        have = m.dims(x)[axis]
        stop = have if isinstance(count, int) and count == -1 else start + count
        outside = not isinstance(have, Dim) and not isinstance(stop, Dim) and stop > have
        if outside or (isinstance(start, int) and start < 0):
            raise Error(f"begin {start} and size {count} leave axis {axis} of size {have}")
        axes.append(axis)
        first.append(start)
        last.append(stop)
    return sliced(m, x, axes, first, last, [1] * len(axes))


def moving(m, x, axis: int, start, count):
    """`count` entries along an axis from a computed start on."""
    if isinstance(count, Dim) or count < 0:
        raise Deferred
    places = m.lit(np.arange(count, dtype=np.int64))
    return m.add(
        "gather", x, m.common("add", m.convert(start, type_t.int64_type), places), axis=axis
    )


def sliced(m, x, axes, first, last, steps):
    """A slice with steps where anything is lost; of an image as it is stored."""
    dims = m.dims(x)
    kept = [
        k
        for k, axis in enumerate(axes)
        if isinstance(dims[axis], Dim)
        or steps[k] != 1
        or not isinstance(first[k], int)
        or first[k] != 0
        or not isinstance(last[k], int)
        or last[k] < dims[axis]
    ]
    if not kept:
        return x
    axes, first, last, steps = ([v[k] for k in kept] for v in (axes, first, last, steps))
    if not m.is_image(x):
        return slice_by(m, x, first, last, axes, steps)
    order = first_order(len(dims))
    inside = [order.index(a) for a in axes]
    return m.last(slice_by(m, m.first(x), first, last, inside, steps))


# -- StridedSlice ----------------------------------------------------------------------------------


class Spec:
    """What a StridedSlice does to each axis: a range with a step, one entry, or a new axis."""

    def __init__(self, begin, end, strides, rank: int, masks: dict):
        self.begin, self.end, self.strides, self.masks = begin, end, strides, masks
        self.axes, self.first, self.last, self.steps = [], [], [], []
        self.single: list = []  # (axis, entry) that is taken out
        self.layout: list = []  # of the result: axes of x, None for new ones
        self.read(rank)

    def bit(self, mask: str, k: int) -> bool:
        return bool(self.masks[mask] >> k & 1)

    def read(self, rank: int) -> None:
        count = len(self.strides)
        dots = [k for k in range(count) if self.bit("ellipsis", k)]
        if len(dots) > 1:
            raise Error("ellipsis_mask has more than one bit")
        fresh = sum(self.bit("new_axis", k) for k in range(count) if k not in dots)
        covered = count - len(dots) - fresh
        if covered > rank:
            raise Error(f"{covered} indices for {rank} dimensions")
        axis = 0
        for k in range(count):
            if k in dots:
                self.layout += range(axis, axis + rank - covered)
                axis += rank - covered
            elif self.bit("new_axis", k):
                self.layout.append(None)
            else:
                self.index(k, axis)
                axis += 1
        self.layout += range(axis, rank)

    def index(self, k: int, axis: int) -> None:
        if self.bit("shrink", k):
            self.single.append((axis, self.begin[k]))
            return
        step = self.strides[k]
        if not isinstance(step, int) or step == 0:
            raise Error(f"a stride of {step}")
        begin = None if self.bit("begin", k) else self.begin[k]
        end = None if self.bit("end", k) else self.end[k]
        if begin is None and end is None and step == 1:
            self.layout.append(axis)
            return
        self.axes.append(axis)
        self.first.append((0 if step > 0 else ALL) if begin is None else begin)
        self.last.append((ALL if step > 0 else -ALL) if end is None else end)
        self.steps.append(step)
        self.layout.append(axis)


@tf_op("StridedSlice")
def strided_slice(
    m, x, starts: Entries, ends: Entries, strides: Const, *, begin_mask=0, end_mask=0,
    ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0,
):  # fmt: skip
    masks = {"begin": begin_mask, "end": end_mask, "ellipsis": ellipsis_mask,
             "new_axis": new_axis_mask, "shrink": shrink_axis_mask}  # fmt: skip
    steps = [int(s) for s in strides.reshape(-1)]
    if not len(starts) == len(ends) == len(steps):
        raise Error(f"{len(starts)} begins, {len(ends)} ends and {len(steps)} strides")
    spec = Spec(starts, ends, steps, m.rank(x), masks)
    x = ranges(m, x, spec)
    x, gone = take_out(m, x, spec.single)
    x = shrink(m, x, gone) if gone else x
    fresh = [k for k, a in enumerate(spec.layout) if a is None]
    if not fresh:
        return x
    if not m.rank(x):
        return m.shaped(x, [1] * len(fresh))
    return m.add("unsqueeze", x, axes=fresh)


def ranges(m, x, spec: Spec):
    """The slices of a StridedSlice."""
    if any(not isinstance(v, (int, Dim)) for v in (*spec.first, *spec.last)):
        raise Deferred
    return sliced(m, x, spec.axes, spec.first, spec.last, spec.steps)


def take_out(m, x, single) -> tuple:
    """Single entries of axes, which stay with size 1, and those axes."""
    axes, first = [], []
    for axis, entry in single:
        if isinstance(entry, int):
            size = m.dims(x)[axis]
            if not isinstance(size, Dim) and not -size <= entry < size:
                raise Error(f"index {entry} is out of range for axis {axis} of size {size}")
            axes.append(axis)
            first.append(entry)
        elif isinstance(entry, Dim):
            raise Deferred
        else:
            place = m.reshape(m.convert(entry, type_t.int64_type), [1])
            x = m.add("gather", x, place, axis=axis)
    if axes:
        last = [f + 1 if f != -1 else ALL for f in first]
        x = sliced(m, x, axes, first, last, [1] * len(axes))
    return x, [axis for axis, _ in single]


def shrink(m, x, axes):
    """`x` without axes of size 1."""
    order = first_order(m.rank(x)) if m.rank(x) > 1 else [0]
    left = [a for a in order if a not in axes]
    if m.is_image(x) and left == sorted(left):
        return squeeze_axes(m, m.first(x), sorted(order.index(a) for a in axes))
    return squeeze_axes(m, x, axes)


# -- parts -----------------------------------------------------------------------------------------


def parts_of(m, x, axis: int, sizes) -> list:
    """Consecutive parts along an axis."""
    axis = m.axis(axis, m.rank(x))
    image = m.is_image(x)
    if image:
        axis, x = first_order(m.rank(x)).index(axis), m.first(x)
    ends = np.cumsum(sizes).tolist()
    parts = [cut(m, x, [axis], [e - s], [e]) for s, e in zip(sizes, ends, strict=True)]
    return [m.last(p) for p in parts] if image else parts


@tf_op("Split")
def split(m, axis: Const, x, *, num_split):
    axis = m.axis(int(axis.reshape(())), m.rank(x))
    size = m.static_dims(x)[axis]
    if num_split < 1 or size % num_split:
        raise Error(f"axis {axis} of size {size} does not split into {num_split} equal parts")
    return parts_of(m, x, axis, [size // num_split] * num_split)


@tf_op("SplitV")
def split_v(m, x, sizes: Const, axis: Const, *, num_split=None):
    """One of the sizes may be -1: what is left."""
    axis = m.axis(int(axis.reshape(())), m.rank(x))
    size, sizes = m.static_dims(x)[axis], [int(s) for s in sizes.reshape(-1)]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = size - sum(s for s in sizes if s != -1)
    if any(s < 0 for s in sizes) or sum(sizes) != size:
        raise Error(f"sizes {sizes} do not add up to the size {size} of axis {axis}")
    return parts_of(m, x, axis, sizes)


@tf_op("Unpack")
def unpack(m, x, *, num, axis=0):
    axis = m.axis(axis, m.rank(x))
    if m.static_dims(x)[axis] != num:
        raise Error(f"axis {axis} has size {m.dims(x)[axis]}, not {num}")
    return [shrink(m, p, [axis]) for p in parts_of(m, x, axis, [1] * num)]
