"""Matrix products."""

from __future__ import annotations

from ..dims import as_dim, fixed, intersect
from ..shape import Shape
from ..types import SMALL_FLOATS, type_t
from .base import Op


def meet(op, a, b, what: str):
    """The size that two axes share; an `Error` if they cannot be equal."""
    if a == b:
        return a
    both = intersect(a, b)
    if both is None or (fixed(a) and fixed(b)):
        op.fail(what)
    if fixed(a):
        return a
    return b if fixed(b) else both


def product_dims(op, a: Shape, b: Shape) -> list:
    """Dims of a @ b: equal batch axes, then rows of a and columns of b."""
    for s in (a, b):
        if s.rank < 2:
            op.fail(f"Shape must have at least 2 dimensions: {s}")
    if a.rank != b.rank:
        op.fail(f"Number of dimensions do not match: {a} and {b}")
    lists = f"{_braced(a.dims)} x {_braced(b.dims)}"
    meet(op, a.dims[-1], b.dims[-2], f"inner dimensions are not compatible: {lists}")
    batch = [
        meet(op, d, e, f"static outer dimensions are not compatible: {lists}")
        for d, e in zip(a.dims[:-2], b.dims[:-2], strict=True)
    ]
    dims = [*batch, a.dims[-2], b.dims[-1]]
    if a.dynamic() or b.dynamic():
        dims = [as_dim(d) for d in dims]
        if any(not d.is_symbolic() and not d.is_fixed() for d in dims):
            dims = [d.as_range() for d in dims]
    return dims


def _braced(dims) -> str:
    return "{" + ", ".join(map(str, dims)) + "}"


class Dot(Op, name="dot", inputs=2, same_type=True):
    """The matrix product of the last two axes; the axes before are equal, never broadcast.

    Floats below 32 bits are summed in float32, whole numbers wrap.
    """

    def rule(self, a, b):
        if a.dims is None or b.dims is None:
            return Shape.unknown(a.type())
        return Shape.make(a.type(), product_dims(self, a, b))


class DotWide(Dot, name="dot::wide", own=True):
    """`dot` of half or bfloat16 with its sums in float32 as they are."""

    def rule(self, a, b):
        return super().rule(a, b).with_type(type_t.float_type)


QUANTISED = (
    type_t.int8_type,
    type_t.uint8_type,
    type_t.float_type,
    *(t for t in SMALL_FLOATS if t < 100),
)


class QuantDot(Op, name="quant_dot", inputs=(2, 4)):
    """`dot` of quantised numbers: int8 and uint8 give int32, fp8 gives float.

    With four inputs the last two are scales of the first two, which are multiplied by them
    before; the result is float.
    """

    def rule(self, a, b, *scales):
        if len(scales) == 1:
            self.fail("Wrong number of arguments: expected 2, 4 but given 3")
        if a.type() != b.type():
            self.fail(f"Types do not match: {a.type_string()}, {b.type_string()}")
        if a.type() not in QUANTISED and not (scales and a.type() == type_t.fp4x2_type):
            self.fail(f"only int8, uint8, float and fp8 can be multiplied, got {a.type_string()}")
        for x, scale in zip((a, b), scales):
            if x.dims is not None and scale.dims is not None and x.rank != scale.rank:
                self.fail(f"the scale {scale} does not fit {x}")
        kind = type_t.float_type if scales or a.type() in SMALL_FLOATS else type_t.int32_type
        if a.dims is None or b.dims is None:
            return Shape.unknown(kind)
        return Shape.make(kind, product_dims(self, a, b))


class RefQuantDot(QuantDot, name="ref::quant_dot"):
    """What compiling for the real module's ref target leaves of `quant_dot`."""


__all__ = ["Dot", "QuantDot", "RefQuantDot", "meet"]
