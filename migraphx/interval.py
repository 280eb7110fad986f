"""Which values an expression can take, given the bounds of its symbols."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import NamedTuple

from .errors import Error
from .expression import Expr, Integer, Product, Quotient, Remainder, Smallest, Sum, Symbol

MAX_OPTIMALS = 4096  # combinations of the symbols' optimals


class Span(NamedTuple):
    """The whole numbers from `lo` to `hi`; arithmetic contains every possible result."""

    lo: int
    hi: int

    def __add__(self, other):
        lo, hi = _ends(other)
        return Span(self.lo + lo, self.hi + hi)

    def __mul__(self, other):
        ends = [a * b for a in self for b in _ends(other)]
        return Span(min(ends), max(ends))

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other):
        # Next to zero lie the divisors that make the largest quotients.
        ends = [a // b for a in self for b in {*other, -1, 1} if b and other.lo <= b <= other.hi]
        if not ends:
            raise ZeroDivisionError
        return Span(min(ends), max(ends))

    def __mod__(self, other):
        if self.lo >= 0 and self.hi < other.lo:
            return self
        high = max(other.hi - 1, 0)
        if self.lo >= 0 and other.lo > 0:
            high = min(high, self.hi)
        return Span(min(other.lo + 1, 0), high)

    @staticmethod
    def smallest(*spans):
        return Span(min(s.lo for s in spans), min(s.hi for s in spans))

    @staticmethod
    def largest(*spans):
        return Span(max(s.lo for s in spans), max(s.hi for s in spans))


def _ends(x) -> tuple:
    return x if isinstance(x, tuple) else (x, x)


STILL = Span(0, 0)


def find_span(expr: Expr) -> Span:
    """The span of the values: exact where each symbol moves them one way only, else safe.

    Where it only rises or only falls the ends lie at the symbols' bounds. Other symbols are left
    to interval arithmetic, which takes parts as independent and so never gives too little.
    """
    if isinstance(expr, Integer):
        return Span(expr.number, expr.number)
    if isinstance(expr, Symbol):
        return Span(expr.lo, expr.hi)
    try:
        wide = rough(expr)
        return _at_corners(expr, wide) if wide.lo < wide.hi and _defined(expr) else wide
    except ZeroDivisionError:
        raise Error(f"symbolic: division by zero in {expr.text()}") from None


def rough(expr: Expr) -> Span:
    """The span from those of the parts, as if they varied independently."""
    return expr.apply([a.span() for a in expr.args], Span.smallest, Span.largest)


def _defined(expr: Expr) -> bool:
    """True if nothing in it can be divided by zero; steps mean nothing across such a gap."""
    if isinstance(expr, Quotient):
        bottom = expr.args[1].span()
        if bottom.lo <= 0 <= bottom.hi:
            return False
    return all(map(_defined, expr.args))


def _at_corners(expr: Expr, wide: Span) -> Span:
    at_lo, at_hi = {}, {}
    for name, step in steps(expr).items():
        symbol = expr.names[name]
        if step.lo >= 0 or symbol.lo == symbol.hi:
            at_lo[name], at_hi[name] = symbol.lo, symbol.hi
        elif step.hi <= 0:
            at_lo[name], at_hi[name] = symbol.hi, symbol.lo
    if not at_lo:
        return wide
    if len(at_lo) == len(expr.names):
        return Span(expr._at(at_lo), expr._at(at_hi))
    low, high = _pinned(expr, at_lo), _pinned(expr, at_hi)
    return Span(max(wide.lo, low.lo), min(wide.hi, high.hi))


def _pinned(expr: Expr, at: dict) -> Span:
    """The rough span where some symbols are fixed."""
    if isinstance(expr, Symbol) and expr.name in at:
        return Span(at[expr.name], at[expr.name])
    if not expr.args:
        return expr.span()
    return expr.apply([_pinned(a, at) for a in expr.args], Span.smallest, Span.largest)


def steps(expr: Expr) -> dict:
    """For each name, a span of what the value changes by when that symbol grows by one."""
    if expr._steps is None:
        expr._steps = {expr.name: Span(1, 1)} if isinstance(expr, Symbol) else _find_steps(expr)
    return expr._steps


def _find_steps(expr: Expr) -> dict:
    moved = [steps(a) for a in expr.args]
    span = rough(expr) if isinstance(expr, Quotient) else None
    found = {}
    for name in expr.names:
        parts = [m.get(name, STILL) for m in moved]
        if isinstance(expr, Sum):
            found[name] = expr.apply(parts, None, None) + -expr.constant
        elif isinstance(expr, Product):
            found[name] = _product_step(expr, parts)
        elif isinstance(expr, Smallest):  # and Largest
            found[name] = Span(min(p.lo for p in parts), max(p.hi for p in parts))
        else:
            found[name] = _quotient_step(expr, *parts, Span(span.lo - span.hi, span.hi - span.lo))
    return found


def _product_step(expr: Product, parts) -> Span:
    # step(a*b) = a(next)*step(b) + b*step(a), one factor after the other
    value, step = Span(expr.factor, expr.factor), STILL
    for (base, power), part in zip(expr.powers, parts, strict=True):
        for _ in range(power):
            step = value * part + step * base.span()
            value = value * base.span()
    return step


def _quotient_step(expr: Quotient, up: Span, down: Span, most: Span) -> Span:
    top, bottom = (a.span() for a in expr.args)
    if isinstance(expr, Remainder) or bottom.lo <= 0:
        return most
    if down == STILL:
        low, high = min(up.lo // b for b in bottom), max(-(-up.hi // b) for b in bottom)
        return Span(max(low, most.lo), min(high, most.hi))
    if top.lo >= 0 and up.lo >= 0 >= down.hi:
        return Span(0, most.hi)
    if top.lo >= 0 and up.hi <= 0 <= down.lo:
        return Span(most.lo, 0)
    return most


def find_optimals(expr: Expr) -> set[int]:
    """The values at every combination of the symbols' optimals, if these are not too many."""
    symbols = expr.symbols()
    choices = [
        [s.lo] if s.lo == s.hi else [o for o in s.sizes if s.lo <= o <= s.hi] for s in symbols
    ]
    if not symbols or prod(map(len, choices)) > MAX_OPTIMALS:
        return set()
    names = [s.name for s in symbols]
    values = (expr.evaluate(dict(zip(names, c, strict=True))) for c in product(*choices))
    return {v for v in values if v >= 0}
