"""Operators that repeat elements along axes, and those that ask for or fix run-time sizes."""

from __future__ import annotations

from ..dims import UNBOUNDED, Dim, as_dim, fixed, hi, intersect, lo
from ..shape import Shape
from ..types import type_t
from .base import Dims, Ints, Op


def common_dims(op, *shapes) -> tuple:
    """Dims that all inputs broadcast to by NumPy's rule."""
    rank = max(len(dims) for dims in shapes)
    result = [1] * rank
    for dims in shapes:
        for k, d in enumerate(dims, rank - len(dims)):
            result[k] = common_dim(op, result[k], d, shapes)
    return tuple(result)


def common_dim(op, a, b, shapes):
    """One size of a broadcast; a size that may be 1 or the other's becomes the other's."""
    if a == b or (fixed(b) and lo(b) == 1):
        return a
    if fixed(a) and lo(a) == 1:
        return b
    met = intersect(a, b)
    if met is None:
        lists = " and ".join(_braced(s) for s in shapes)
        op.fail(f"dims {lists} cannot be broadcast: {a} against {b}")
    return lo(met) if fixed(met) and not (isinstance(a, Dim) and isinstance(b, Dim)) else met


def spread_strides(x: Shape, out, first: int):
    """Strides of `x` seen with the dims `out`, its axes starting at `first`; None for ranges."""
    if x._strides is None:
        return None
    strides = [0] * len(out)
    for k, (d, s) in enumerate(zip(x.dims, x._strides, strict=True), first):
        strides[k] = s if d == out[k] else 0
    return strides


class Multibroadcast(Op, name="multibroadcast", inputs=(1, None)):
    """The first input repeated by NumPy's rule.

    One input: to `out_lens`, or to the symbolic `out_dyn_dims`. More inputs: to the dims that
    all of them have in common.
    """

    out_lens: Ints = ()
    out_dyn_dims: Dims = ()

    def rule(self, x, *others):
        if any(s.dims is None for s in (x, *others)):
            return Shape.unknown(x.type())
        if others:
            out = common_dims(self, x.dims, *(s.dims for s in others))
            dynamic = any(s.dynamic() for s in (x, *others))
            if dynamic:
                out = tuple(as_dim(d) for d in (self.out_dyn_dims or out))
        elif self.out_dyn_dims:
            if not all(d.is_symbolic() or d.is_fixed() for d in self.out_dyn_dims):
                self.fail(f"out_dyn_dims {_braced(self.out_dyn_dims)} hold ranges; use two inputs")
            out = self.out_dyn_dims
        else:
            if x.dynamic() and not x.symbolic():
                self.fail(f"Single dynamic input shape not supported: {x}. Use two inputs.")
            out = self.out_lens
        self.check_fit(x, out)
        strides = spread_strides(x, out, len(out) - x.rank)
        return Shape.make(x.type(), out, strides)

    def check_fit(self, x, out):
        if x.rank > len(out):
            self.fail(
                f"input dimensions should <= output size: {x.rank} axes of {x} do not fit "
                f"{_braced(out)}"
            )
        for d, o in zip(x.dims, out[len(out) - x.rank :], strict=True):
            if not (d == o or lo(d) == 1 or intersect(d, o) is not None):
                self.fail(f"input shape {_braced(x.dims)} cannot be broadcasted to {_braced(out)}!")
            if not isinstance(d, Dim) and not isinstance(o, Dim) and d not in (1, o):
                self.fail(f"input shape {_braced(x.dims)} cannot be broadcasted to {_braced(out)}!")


class Broadcast(Op, name="broadcast", inputs=(1, 2)):
    """The input's axes placed from `axis` on, all others repeated.

    The opposite alignment of NumPy's. With two inputs the first, of one dimension, takes the
    dims of the second.
    """

    axis: int = 0
    out_lens: Ints = ()
    out_dyn_dims: Dims = ()

    def rule(self, x, like=None):
        if x.dims is None or (like is not None and like.dims is None):
            return Shape.unknown(x.type())
        if like is not None:
            if x.rank != 1:
                self.fail(f"the first of two inputs must have one dimension, got {x}")
            out = like.dims
            if like.dynamic() and not like.symbolic():
                self.place(x, out)
                return Shape.make(x.type(), out)
        elif self.out_dyn_dims:
            if not all(d.is_symbolic() or d.is_fixed() for d in self.out_dyn_dims):
                self.fail(f"out_dyn_dims {_braced(self.out_dyn_dims)} hold ranges")
            out = self.out_dyn_dims
        else:
            out = self.out_lens
        if x.dynamic() and not x.symbolic():
            self.fail(f"Dynamic shapes not supported: {x}")
        self.place(x, out)
        return Shape.make(x.type(), out, spread_strides(x, out, self.axis))

    def place(self, x, out):
        if not 0 <= self.axis < len(out):
            self.fail(f"axis {self.axis} is out of range for {len(out)} dimensions")
        if len(out) - self.axis < x.rank:
            self.fail(f"(broadcast ndims - axis) is less than s0 ndims: {x} at axis {self.axis}")
        for d, o in zip(x.dims, out[self.axis :]):
            if d != o and ((fixed(d) and fixed(o)) or intersect(d, o) is None):
                self.fail(
                    f"when broadcasting, succeeding sizes must match: {_braced(x.dims)} at axis "
                    f"{self.axis} of {_braced(out)}"
                )


class Scalar(Op, name="scalar", inputs=1, static_only=True):
    """One element repeated to the dims `scalar_bcst_dims`."""

    scalar_bcst_dims: Ints = ()

    def rule(self, x):
        if x.rank != 1 or x.elements() != 1:
            self.fail(f"the input must have one dimension and one element, got {x}")
        return Shape.make(x.type(), self.scalar_bcst_dims, [0] * len(self.scalar_bcst_dims))


class BroadcastForDot(Op, name="broadcast_for_dot", inputs=2):
    """The first input with the batch axes (all but the last two) that both have in common."""

    def rule(self, x, other):
        if x.dims is None or other.dims is None:
            return Shape.unknown(x.type())
        for s in (x, other):
            if s.rank < 2:
                self.fail(f"Shape must have at least 2 dimensions: {s}")
        batch = common_dims(self, x.dims[:-2], other.dims[:-2])
        out = (*batch, *x.dims[-2:])
        if x.dynamic() or other.dynamic():
            out = tuple(as_dim(d) for d in out)
        return Shape.make(x.type(), out, spread_strides(x, out, len(out) - x.rank))


class BroadcastWithDims(Op, name="broadcast_with_dims", inputs=2):
    """The first input repeated to the dims that the second one holds at run time."""

    def rule(self, x, dims):
        if dims.dynamic() or dims.rank != 1:
            self.fail(f"the dims must be a static list of numbers, got {dims}")
        if x.dims is None:
            return Shape.unknown(x.type())
        rank = max(x.rank, dims.dims[0])
        return Shape.make(x.type(), [Dim(0, UNBOUNDED)] * rank)


class DimensionsOf(Op, name="dimensions_of", inputs=1):
    """The sizes of the axes `start` … `end` - 1 at run time, as int64."""

    differentiable = False
    start: int = 0
    end: int = 0

    def rule(self, x):
        if not 0 <= self.start < self.end:
            self.fail(f"start >= end: {self.start} and {self.end}")
        if x.dims is not None and self.end > x.rank:
            self.fail(f"end {self.end} is beyond the {x.rank} dimensions of {x}")
        return Shape.make(type_t.int64_type, (self.end - self.start,))


class Fill(Op, name="fill", inputs=2, same_type=True):
    """The one element of the first input in every place of the second's shape."""

    def rule(self, value, out):
        if value.dynamic() or value.elements() != 1:
            self.fail(f"the default value must be one element, got {value}")
        return out


class FixedPad(Op, name="fixed_pad", inputs=1):
    """The input in the corner of a tensor of its largest sizes; the rest is 0."""

    def rule(self, x):
        if not x.dynamic():
            return x
        if x.dims is None or any(hi(d) >= 2**63 for d in x.dims):
            self.fail(f"the sizes of {x} have no upper bounds")
        return Shape.make(x.type(), [hi(d) for d in x.dims])


def _braced(dims) -> str:
    return "{" + ", ".join(map(str, dims)) + "}"
