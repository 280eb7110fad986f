"""Arithmetic on symbolic whole numbers: results in canonical form, by MIGraphX's rules.

`expression` declares the nodes and reaches these functions through their operators.
"""

from __future__ import annotations

from operator import attrgetter

from .errors import Error
from .expression import (
    MAX_POWER,
    MAX_TERMS,
    Expr,
    Integer,
    Largest,
    Product,
    Quotient,
    Remainder,
    Smallest,
    Sum,
    as_expr,
    make_symbol,
    need_expr,
)


def gathered(*exprs) -> tuple:
    """The expressions, each name carrying what any of them knows about it."""
    seen, changes = {}, {}
    for expr in exprs:
        for name, symbol in expr.names.items():
            known = changes.get(name) or seen.setdefault(name, symbol)
            if symbol is known or (symbol.key, symbol.sizes) == (known.key, known.sizes):
                continue
            intervals = symbol.intervals + known.intervals
            changes[name] = make_symbol(name, intervals, symbol.sizes + known.sizes)
    return tuple(e.substitute(changes) for e in exprs) if changes else exprs


def sum_of(constant: int, terms: dict) -> Expr:
    """A constant and `{term: factor}`; no more than it needs to be."""
    left = [item for item in terms.items() if item[1]]
    if len(left) > MAX_TERMS:
        raise Error(f"symbolic: a sum of more than {MAX_TERMS} terms")
    if not left:
        return Integer(constant)
    if not constant and len(left) == 1:
        ((term, factor),) = left
        return term if factor == 1 else product_of(factor, term.product_parts()[1])
    left.sort(key=lambda item: item[0].key)
    return Sum(constant, tuple(left))


def product_of(factor: int, powers) -> Expr:
    """A factor and pairs of base and power; no more than it needs to be."""
    powers = sorted(powers, key=lambda item: item[0].key)
    if not factor or not powers:
        return Integer(factor)
    if any(p > MAX_POWER for _, p in powers):
        raise Error(f"symbolic: a power above {MAX_POWER}")
    if factor == 1 and len(powers) == 1 and powers[0][1] == 1:
        return powers[0][0]
    return Product(factor, tuple(powers))


def add(a: Expr, b: Expr, sign: int = 1) -> Expr:
    """a + sign * b."""
    (constant, terms), (more, others) = a.sum_parts(), b.sum_parts()
    found = dict(terms)
    for term, factor in others:
        found[term] = found.get(term, 0) + sign * factor
    return sum_of(constant + sign * more, found)


def multiply(a: Expr, b: Expr) -> Expr:
    """a * b; sums are multiplied out."""
    if not isinstance(a, Sum) and not isinstance(b, Sum):
        (factor, powers), (more, others) = a.product_parts(), b.product_parts()
        found = dict(powers)
        for base, power in others:
            found[base] = found.get(base, 0) + power
        return product_of(factor * more, found.items())
    (left, terms), (right, others) = a.sum_parts(), b.sum_parts()
    if len(terms) * len(others) > MAX_TERMS:
        raise Error(f"symbolic: a sum of more than {MAX_TERMS} terms")
    pairs = [(t, c * right) for t, c in terms] + [(t, c * left) for t, c in others]
    pairs += [(multiply(t, u), c * d) for t, c in terms for u, d in others]
    found = {}
    for term, factor in pairs:
        found[term] = found.get(term, 0) + factor
    return sum_of(left * right, found)


def divide(a: Expr, b: Expr) -> Expr:
    """Division that simplifies only where nothing is lost, by MIGraphX's rules."""
    _refuse_zero(a, b)
    if a == b or a == 0:
        return Integer(int(a == b))
    if isinstance(b, Integer):
        divisor = b.number
        constant, terms = a.sum_parts()
        if not terms:
            return Integer(constant // divisor)
        if not constant % divisor and not any(c % divisor for _, c in terms):
            return sum_of(constant // divisor, {t: c // divisor for t, c in terms})
    if isinstance(a, Product):
        (factor, powers), (other, others) = a.product_parts(), b.product_parts()
        powers, others = dict(powers), dict(others)
        shared = {base: min(p, others[base]) for base, p in powers.items() if base in others}
        if shared:
            rest = product_of(factor, _less(powers, shared))
            return divide(rest, product_of(other, _less(others, shared)))
    return Quotient(a, b)


def _less(powers: dict, taken: dict) -> list:
    rest = ((base, power - taken.get(base, 0)) for base, power in powers.items())
    return [(base, power) for base, power in rest if power]


def remainder(a: Expr, b: Expr) -> Expr:
    """The remainder of `divide`; what the divisor surely divides drops out."""
    _refuse_zero(a, b)
    constant, terms = a.sum_parts()
    factor, powers = b.product_parts()
    kept = {t: c for t, c in terms if c % factor or not _divides(powers, t)}
    if not powers:
        constant = 0 if not constant % factor else constant
    rest = sum_of(constant, kept)
    if rest == 0 or a == b:
        return Integer(0)
    if isinstance(rest, Integer) and isinstance(b, Integer):
        return Integer(rest.number % b.number)
    return Remainder(rest, b)


def _divides(powers, term: Expr) -> bool:
    available = dict(term.product_parts()[1])
    return all(available.get(base, 0) >= power for base, power in powers)


def _refuse_zero(a: Expr, b: Expr):
    if isinstance(b, Integer) and not b.number:
        raise Error(f"symbolic: division by zero: ({a.text()})/0")


def at_least(large, small, gap: int):
    """Whether `large` is always `gap` above `small`; never so is False, sometimes an error."""
    large, small = as_expr(large), as_expr(small)
    if large is None or small is None:
        return NotImplemented
    lo, hi = (large - small).span()
    if lo >= gap or hi < gap:
        return lo >= gap
    sign = "<" if gap else "<="
    raise Error(
        f"symbolic: comparison undetermined: {small.text()} {sign} {large.text()}; "
        f"the difference lies in {lo}..{hi}"
    )


def smallest(*xs) -> Expr:
    """The smallest of numbers and expressions; those never smaller than another drop out."""
    return _extreme(Smallest, xs, lambda x, y: (x - y).span()[0] >= 0)


def largest(*xs) -> Expr:
    """The largest of numbers and expressions; those never larger than another drop out."""
    return _extreme(Largest, xs, lambda x, y: (y - x).span()[0] >= 0)


def _extreme(kind, xs, needless):
    exprs = gathered(*map(need_expr, xs))
    parts = {p for x in exprs for p in (x.args if type(x) is kind else (x,))}
    if not 0 < len(parts) <= MAX_TERMS:
        raise Error(f"symbolic: {kind.word} of {len(parts)}; give 1 to {MAX_TERMS}")
    kept = sorted(parts, key=attrgetter("key"))
    for x in tuple(kept):
        if any(x is not y and needless(x, y) for y in kept):
            kept.remove(x)
    return kept[0] if len(kept) == 1 else kind(tuple(kept))
