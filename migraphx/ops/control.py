"""Control flow and the special instructions: if, loop, tuples, @param, @literal, @return."""

from __future__ import annotations

from ..shape import Shape
from .base import Op


class Param(Op, name="@param", inputs=0):
    """An input of the module."""

    parameter: str = ""


class Literal(Op, name="@literal", inputs=0):
    """Constant data."""


class Return(Op, name="@return", inputs=(0, None)):
    """The results of the module."""

    def rule(self, *xs):
        return xs[0] if len(xs) == 1 else Shape.tuple_of(xs)


class GetTupleElem(Op, name="get_tuple_elem", inputs=1):
    """One element of a tuple."""

    index: int = 0

    def rule(self, x):
        if not x.subs:
            self.fail(f"the input {x} is not a tuple")
        if not 0 <= self.index < len(x.subs):
            self.fail(f"index {self.index} is outside the tuple of {len(x.subs)}")
        return x.subs[self.index]
