"""Operators along axes: reductions, argmax, softmax, prefix sums, topk."""

from __future__ import annotations

from ..dims import Dim, hi
from ..shape import Shape
from ..types import type_t
from .base import Axes, Axis, Op, define


class Reduce(Op, inputs=(1, 2)):
    """Reduces the axes in `axes` to size 1; without `axes` the second input holds them."""

    axes: Axes = ()

    def compute_shape(self, shapes, mods=()):
        wanted = 1 if self.axes else 2
        self.check_count(len(shapes), (wanted, wanted), "arguments")
        return super().compute_shape(shapes, mods)

    def rule(self, x, axes=None):
        if x.dims is None:
            return x
        if axes is not None:  # any axis may be reduced
            return Shape.make(x.type(), [Dim(min(1, hi(d)), hi(d)) for d in x.dims])
        reduced = self.axes_of(self.axes, x.rank)
        return x.standard_of([1 if k in reduced else d for k, d in enumerate(x.dims)])


REDUCE = {
    "reduce_all": "1 where every element is non-zero.",
    "reduce_any": "1 where some element is non-zero.",
    "reduce_max": "The largest element; NaN if there is one.",
    "reduce_mean": "The sum divided by the number of elements; of integers without the fraction.",
    "reduce_min": "The smallest element; NaN if there is one.",
    "reduce_prod": "The product; integers wrap.",
    "reduce_sum": "The sum; integers wrap.",
}
for _name, _doc in REDUCE.items():
    define(_name, Reduce, _doc)


class ArgMax(Op, name="argmax", inputs=1):
    """Index of the largest element along an axis: the first one, or the last of equal ones."""

    axis: Axis = 0
    select_last_index: bool = False

    def rule(self, x):
        if x.dims is None:
            return Shape.unknown(type_t.int64_type)
        axis = self.axis_of(self.axis, x.rank)
        return x.standard_of(
            [1 if k == axis else d for k, d in enumerate(x.dims)], type_t.int64_type
        )


class ArgMin(ArgMax, name="argmin"):
    """Index of the smallest element along an axis: the first one, or the last of equal ones."""


class Softmax(Op, name="softmax", inputs=1):
    """exp(x) divided by its sum along an axis."""

    axis: Axis = 1

    def rule(self, x):
        if x.dims is None:
            return x
        self.axis_of(self.axis, x.rank)
        return x if x.packed() or x._strides is None else x.packed_like()


class LogSoftmax(Softmax, name="logsoftmax"):
    """The logarithm of softmax."""


class PrefixScanSum(Op, name="prefix_scan_sum", inputs=1):
    """Sums of the elements up to each one along an axis (without itself if `exclusive`)."""

    axis: Axis = 0
    exclusive: bool = False
    reverse: bool = False

    def rule(self, x):
        if x.dims is None:
            return x
        self.axis_of(self.axis, x.rank)
        return x.standard_of() if x.broadcasted() else x.packed_like()


class TopK(Op, name="topk", inputs=(1, 2)):
    """The k largest or smallest elements along an axis, best first, and their indices.

    Of equal ones the smaller index comes first; NaN counts as larger than any number. A second
    input of the same dims gives what stands for the index of each element.
    """

    k: int = 1
    axis: Axis = 0
    largest: bool = True

    def rule(self, x, indices=None):
        if x.dims is None:
            return Shape.tuple_of([x, Shape.unknown(type_t.int64_type)])
        axis = self.axis_of(self.axis, x.rank)
        if not 0 <= self.k <= hi(x.dims[axis]):
            self.fail(f"k is {self.k}, but axis {axis} has {x.dims[axis]} elements")
        dims = [self.k if n == axis else d for n, d in enumerate(x.dims)]
        return Shape.tuple_of([x.standard_of(dims), x.standard_of(dims, type_t.int64_type)])
