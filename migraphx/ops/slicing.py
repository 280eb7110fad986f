"""Operators that take parts of tensors, join them, or add borders."""

from __future__ import annotations

import dataclasses

from ..dims import Dim, fixed, hi, intersect, lo
from ..shape import Shape, common_permutation, packed_strides
from .base import Axes, Axis, Ints, Op, PadMode


class Slice(Op, name="slice", inputs=(1, 4)):
    """The elements from `starts` up to `ends` (excluded) on `axes`.

    Negative bounds count from the end; bounds beyond the ends are clipped. Of starts, ends and
    axes, those that are empty come as further inputs in this order; then the sizes are known
    only at run time.
    """

    axes: Axes = ()
    starts: Ints = ()
    ends: Ints = ()

    def rule(self, x, *more):
        given = [bool(self.starts), bool(self.ends), bool(self.axes)]
        if len(more) != 3 - sum(given) and not (not more and not any(given)):
            self.fail(
                f"starts, ends and axes must each come once: attributes {self.values()} "
                f"and {len(more)} inputs"
            )
        if x.dims is None:
            return x
        axes = self.axes_of(self.axes, x.rank)
        if more:
            return self.at_run_time(x, more, axes)
        if not len(axes) == len(self.starts) == len(self.ends):
            self.fail(f"starts, ends and axes differ in length: {self.values()}")
        dims = list(x.dims)
        for axis, start, end in zip(axes, self.starts, self.ends, strict=True):
            begin, stop = self.bounds(dims[axis], start, end, x)
            dims[axis] = self.length(begin, stop)
        if x.dynamic():
            return x.standard_of([_without_optimals(d) for d in dims])
        return Shape.make(x.type(), dims, x._strides)

    def bounds(self, size, start: int, end: int, x) -> tuple:
        """First and one-past-last place on an axis of `size`."""
        if fixed(size):
            return _place(start, lo(size)), _place(end, lo(size))
        if not size.is_symbolic():
            self.fail(f"slicing is not allowed on non-fixed dynamic input axis: {x}")
        return _symbolic_place(start, size), _symbolic_place(end, size)

    def length(self, begin, stop):
        if isinstance(begin, Dim) or isinstance(stop, Dim):
            return _at_least_0(stop - begin)
        return max(stop - begin, 0)

    def at_run_time(self, x, more, axes):
        """Sizes from 0 to the input's."""
        counts = {len(a) for a in (self.starts, self.ends, axes) if a}
        for s in more:
            if s.dynamic() or s.rank != 1:
                self.fail(f"starts, ends and axes must be static lists of numbers, got {s}")
            counts.add(s.dims[0])
        if len(counts) > 1:
            self.fail(f"starts, ends and axes differ in length: {sorted(counts)}")
        cut = axes or range(x.rank)
        dims = [Dim(0, hi(d)) if k in cut else d for k, d in enumerate(x.dims)]
        return Shape.make(x.type(), [d.as_range() if isinstance(d, Dim) else d for d in dims])

    def normalized(self, shapes):
        x = shapes[0]
        axes = self.axes_of(self.axes, x.rank)
        if len(shapes) > 1 or not all(fixed(x.dims[a]) for a in axes):
            return dataclasses.replace(self, axes=axes)
        sizes = [lo(x.dims[a]) for a in axes]
        return dataclasses.replace(
            self,
            axes=axes,
            starts=[_place(s, n) for s, n in zip(self.starts, sizes)],
            ends=[_place(e, n) for e, n in zip(self.ends, sizes)],
        )


def _place(at: int, size: int) -> int:
    at = min(max(at, -size), size)
    return at + size if at < 0 else at


def _symbolic_place(at: int, size: Dim):
    """A bound on an axis of symbolic size, without a minimum where none can occur."""
    from ..expression import largest, smallest

    if at >= 0:
        if at <= size.min:
            return at
        return size if at >= size.max else Dim.of_expr(smallest(size.expr, at))
    if size.min + at >= 0:
        return size + at
    return 0 if size.max + at <= 0 else Dim.of_expr(largest((size + at).expr, 0))


def _at_least_0(size):
    from ..expression import largest

    if not isinstance(size, Dim) or size.expr is None:
        return size
    low, _ = size.expr.span()
    return size if low >= 0 else Dim.of_expr(largest(size.expr, 0))


def _without_optimals(size):
    if isinstance(size, Dim) and not size.is_symbolic():
        return Dim(size.min, size.max)
    return size


class Step(Op, name="step", inputs=1):
    """Every `steps`-th element of `axes`, from the first one on."""

    axes: Axes = ()
    steps: Ints = ()

    def rule(self, x):
        if x.dims is None:
            return x
        if x.dynamic() and not x.symbolic():
            self.fail(f"Dynamic shapes not supported: {x}")
        axes = self.axes_of(self.axes, x.rank)
        if len(axes) != len(self.steps):
            self.fail(f"{len(axes)} axes but {len(self.steps)} steps")
        dims, strides = list(x.dims), list(x._strides)
        for axis, step in zip(axes, self.steps, strict=True):
            if step < 1:
                self.fail(f"step {step}: steps are at least 1")
            dims[axis] = (dims[axis] + (step - 1)) // step
            strides[axis] = strides[axis] * step
        if x.dynamic():
            return x.standard_of(dims)
        return Shape.make(x.type(), dims, strides)


class Reverse(Op, name="reverse", inputs=1):
    """The axes `axes` from their end to their beginning."""

    axes: Axes = ()

    def rule(self, x):
        if x.dims is None:
            return x
        if x.dynamic() and not x.symbolic():
            self.fail(f"Dynamic shapes not supported: {x}")
        self.axes_of(self.axes, x.rank)
        return x.packed_like()


class Pad(Op, name="pad", inputs=1):
    """Borders around a tensor: `pads` has the sizes before every axis, then those after.

    Negative sizes cut elements away. Mode ``constant_pad`` fills with `value` (held in the range
    of the type), ``reflect_pad`` mirrors without repeating the edge, ``edge_pad`` repeats it.
    """

    mode: PadMode = PadMode.constant_pad
    pads: Ints = ()
    value: float = 0.0

    def rule(self, x):
        if x.dims is None:
            return x
        rank = x.rank
        if len(self.pads) != 2 * rank:
            self.fail(f"{len(self.pads)} pads for {rank} dimensions: {2 * rank} are needed")
        dims = []
        for k, d in enumerate(x.dims):
            size = d + (self.pads[k] + self.pads[rank + k])
            if not isinstance(size, Dim) and size < 0:
                self.fail(f"pads {list(self.pads)} cut more from axis {k} than {x} has")
            dims.append(size)
        return x.packed_like(dims)

    def symmetric(self) -> bool:
        """True if every axis grows by the same size on both sides."""
        half = len(self.pads) // 2
        return self.pads[:half] == self.pads[half:]


class Concat(Op, name="concat", inputs=(1, None), same_type=True):
    """Tensors one after another along `axis`."""

    axis: Axis = 0

    def rule(self, *xs):
        if any(x.dims is None for x in xs):
            return Shape.unknown(xs[0].type())
        if len({x.rank for x in xs}) > 1:
            self.fail(f"Number of dimensions do not match: {', '.join(map(repr, xs))}")
        dynamic = [x.dynamic() for x in xs]
        if any(dynamic) and not all(dynamic) and any(x.dynamic() and not x.symbolic() for x in xs):
            self.fail("Cannot mix static and dynamic input shapes.")
        axis = self.axis_of(self.axis, xs[0].rank)
        dims = [self.joined(axis, k, [x.dims[k] for x in xs]) for k in range(xs[0].rank)]
        if any(dynamic):
            return Shape.make(xs[0].type(), xs[dynamic.index(True)]._keep_dynamic(dims))
        return Shape.make(xs[0].type(), dims, packed_strides(dims, common_permutation(xs)))

    def joined(self, axis: int, place: int, sizes):
        """The size of one axis of the result."""
        total = sizes[0]
        if place == axis:
            for size in sizes[1:]:
                total = total + size
            return total
        for size in sizes[1:]:
            if size == total:
                continue
            both = [isinstance(s, Dim) and (s.is_symbolic() or s.is_fixed()) for s in (size, total)]
            if not any(both) or intersect(size, total) is None or (fixed(size) and fixed(total)):
                self.fail(f"all input dimensions should match along axis {place}: {total}, {size}")
            total = size if fixed(size) else total
        return total
