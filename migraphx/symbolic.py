"""Symbolic sizes: their texts, their form in files, and their way to sympy and JAX.

Where the references leave a choice:

- A symbol without intervals is unconstrained: its sizes are 1 to 2**64 - 1 (as in MIGraphX and in
  JAX a symbol is never 0 unless an interval says so: ``n[0..8]``), and its text has none.
- One name is one number. Where differently constrained uses of a name meet, all intervals and
  optimals are gathered, and the symbol lies in the intersection.
- Division rounds down, like Python's ``//`` (for sizes, the same as towards zero).
- The annotated text repeats constraints and optimals at every use, so each part stands alone.
"""

from __future__ import annotations

import re
import reprlib
from functools import reduce
from operator import add, mul

from .errors import Error
from .expression import (
    MAX_DEPTH,
    MAX_POWER,
    MAX_TERMS,
    UNBOUNDED,
    Expr,
    Integer,
    Product,
    Quotient,
    Remainder,
    Smallest,
    Sum,
    Symbol,
    largest,
    make_symbol,
    smallest,
)

__all__ = [
    "Expr",
    "exact_quotient",
    "from_sympy",
    "largest",
    "parse",
    "smallest",
    "to_sympy",
    "valid_name",
]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>\.\.|//|[-+*/%(),{}\[\]]))"
)
_FUNCTIONS = {"min": smallest, "max": largest}


def parse(text: str, symbols: dict | None = None) -> Expr:
    """The expression that a text spells.

    Parameters
    ----------
    text : str
        Names, whole numbers, ``+ - * / %`` (``//`` is ``/``), parentheses, ``min(...)`` and
        ``max(...)``. A name may be followed by intervals and then by optimals:
        ``n[1..20][2..10]{4}``.
    symbols : dict of str to Dim or Expr, optional
        Whose bounds and optimals go to names that carry neither in the text.

    Examples
    --------
    >>> parse("n[1..8] * 3 + 1").text()
    '3*n[1..8] + 1'
    """
    if not isinstance(text, str):
        raise TypeError(f"symbolic: an expression is a str, got {text!r}")
    parser = _Parser(text, symbols or {})
    result = parser.sum(1)
    if parser.kind != "end":
        parser.fail("expected an operator or the end")
    return result


def valid_name(text: str) -> str:
    """`text` with _ for what an identifier may not have; different texts can become the same."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"_{name}" if not name or name[0].isdigit() else name


class _Parser:
    """Reads a text from left to right, one token ahead."""

    def __init__(self, text: str, symbols: dict):
        self.text, self.symbols, self.end = text, symbols, 0
        self.seen: dict = {}  # the intervals of each name so far
        self.step()

    def step(self):
        """Moves to the next token."""
        found = _TOKEN.match(self.text, self.end)
        if found:
            self.kind, self.token = found.lastgroup, found[found.lastgroup]
            self.start, self.end = found.start(found.lastgroup), found.end()
            return
        self.kind, self.token = "end", ""
        self.start = len(self.text) - len(self.text[self.end :].lstrip())
        if self.start < len(self.text):
            self.kind = "unknown"

    def fail(self, what: str, at: int | None = None):
        at = self.start if at is None else at
        cut = max(0, at - 60)
        line = re.sub(r"\s", " ", self.text[cut : at + 40])
        raise Error(f"symbolic: {what} at column {at + 1}\n  {line}\n  {' ' * (at - cut)}^")

    def take(self, *tokens: str) -> str | None:
        """The token, if it is one of `tokens`, and moves on."""
        token = self.token
        if token not in tokens:
            return None
        self.step()
        return token

    def expect(self, token: str, what: str = ""):
        if not self.take(token):
            self.fail(f"expected {what or repr(token)}")

    def sum(self, depth: int) -> Expr:
        if depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels")
        result = self.product(depth)
        while sign := self.take("+", "-"):
            term = self.product(depth)
            result = result + term if sign == "+" else result - term
        return result

    def product(self, depth: int) -> Expr:
        result = self.factor(depth)
        while sign := self.take("*", "/", "//", "%"):
            at = self.start
            factor = self.factor(depth)
            if sign != "*" and factor == 0:
                self.fail("division by zero", at)
            if sign == "*":
                result = result * factor
            else:
                result = result % factor if sign == "%" else result // factor
        return result

    def factor(self, depth: int) -> Expr:
        negative = False
        while self.take("-"):
            negative = not negative
        result = self.primary(depth)
        return -result if negative else result

    def primary(self, depth: int) -> Expr:
        if self.kind == "number":
            return Expr.literal(self.number())
        if self.kind == "name":
            return self.named(depth)
        if self.take("("):
            result = self.sum(depth + 1)
            self.expect(")", "an operator or ')'")
            return result
        return self.fail("expected a number, a name, '(' or '-'")

    def number(self) -> int:
        if self.kind != "number":
            self.fail("expected a whole number")
        if len(self.token) > 20 or int(self.token) > UNBOUNDED:
            self.fail("number above 2**64 - 1")
        value = int(self.token)
        self.step()
        return value

    def named(self, depth: int) -> Expr:
        name, at = self.token, self.start
        self.step()
        if self.take("("):
            if name not in _FUNCTIONS:
                self.fail(f"unknown function {name[:60]!r}; there are min and max", at)
            args = [self.sum(depth + 1)]
            while self.take(","):
                args.append(self.sum(depth + 1))
            self.expect(")", "',' or ')'")
            return _FUNCTIONS[name](*args)
        intervals, optimals = [], []
        while self.take("["):
            intervals.append(self.interval())
        if self.take("{"):
            optimals.append(self.number())
            while self.take(","):
                optimals.append(self.number())
            self.expect("}", "',' or '}'")
            if self.token == "[":
                self.fail("intervals stand before the optimals")
        bare = not intervals and not optimals
        intervals += _bound(name, self.symbols).intervals if bare else ()
        every = self.seen.setdefault(name, [])
        every += intervals
        if every and max(lo for lo, _ in every) > min(hi for _, hi in every):
            bounds = "".join(f"[{lo}..{hi}]" for lo, hi in every)
            self.fail(f"no size satisfies {name}{bounds}", at)
        return _bound(name, self.symbols) if bare else make_symbol(name, intervals, optimals)

    def interval(self) -> tuple:
        at = self.start
        low = self.number()
        self.expect("..")
        high = self.number()
        self.expect("]")
        if low > high:
            self.fail(f"interval {low}..{high} is empty; give the smaller number first", at)
        return low, high


def _bound(name: str, symbols: dict) -> Symbol:
    """The symbol `name`, bounded and optimised like what `symbols` has for it."""
    if name not in symbols:
        return make_symbol(name, (), ())
    given = symbols[name]
    expr = given if isinstance(given, Expr) else getattr(given, "expr", None)
    if isinstance(expr, Symbol):
        return make_symbol(name, expr.intervals, expr.sizes)
    if expr is not None:
        return make_symbol(name, [expr.interval()], expr.optimals())
    if not hasattr(given, "optimals"):
        raise TypeError(f"symbolic: symbols[{name!r}] must be a dynamic_dimension, got {given!r}")
    return make_symbol(name, [(given.min, given.max)], given.optimals)


# The form that files hold


def write(expr: Expr) -> dict:
    """The tree of an expression; `read` takes it back."""
    if isinstance(expr, Integer):
        return {"type": "int", "value": expr.number}
    if isinstance(expr, Symbol):
        tree = {"type": "sym", "name": expr.name, "min": expr.lo, "max": expr.hi}
        if expr.sizes:
            tree["optimals"] = list(expr.sizes)
        if len(expr.intervals) != 1:  # MIGraphX's own form has exactly one
            tree["intervals"] = [list(i) for i in expr.intervals]
        return tree
    if isinstance(expr, Sum):
        terms = [{"expr": write(t), "coeff": c} for t, c in expr.terms]
        return {"type": "add", "constant": expr.constant, "terms": terms}
    if isinstance(expr, Product):
        factors = [{"expr": write(b), "exp": p} for b, p in expr.powers]
        return {"type": "mul", "coeff": expr.factor, "factors": factors}
    args = [write(a) for a in expr.args]
    if isinstance(expr, Quotient):
        return {"type": expr.word, "num": args[0], "den": args[1]}
    return {"type": expr.word, "args": args}


def read(tree, depth: int = 1) -> Expr:
    """The expression of a tree that `Expr.to_value` made; hostile ones are refused."""
    kind = tree.get("type") if isinstance(tree, dict) else None
    if not isinstance(kind, str) or kind not in _READERS:
        raise Error(
            f"symbolic: {reprlib.repr(tree)} is not a serialised expression; "
            f"its type must be one of {', '.join(_READERS)}"
        )
    if depth > MAX_DEPTH:
        raise Error(f"symbolic: serialised expression nested deeper than {MAX_DEPTH} levels")
    return _READERS[kind](tree, depth + 1)


def _number(
    tree: dict, key: str, low: int = -UNBOUNDED, high: int = UNBOUNDED, default=None
) -> int:
    value = tree.get(key, default)
    return _checked(value, key, low, high)


def _checked(value, key: str, low: int, high: int) -> int:
    if type(value) is int and low <= value <= high:
        return value
    got = "" if type(value) is int else f", got {reprlib.repr(value)}"
    raise Error(f"symbolic: {key} must be a whole number from {low} to {high}{got}")


def _list(tree: dict, key: str) -> list:
    value = tree.get(key)
    if not isinstance(value, (list, tuple)) or len(value) > MAX_TERMS:
        raise Error(f"symbolic: {key} must be a list of at most {MAX_TERMS}")
    return value


def _parts(tree: dict, key: str, number: str, low: int, high: int, depth: int):
    """(expression, number) of each entry of a sum or a product."""
    for item in _list(tree, key):
        if not isinstance(item, dict):
            raise Error(f"symbolic: an entry of {key} must be an object, got {reprlib.repr(item)}")
        yield read(item.get("expr"), depth), _number(item, number, low, high)


def _read_symbol(tree: dict, depth: int) -> Expr:
    bounds = [(_number(tree, "min", 0, default=1), _number(tree, "max", 0, default=1))]
    if "intervals" in tree:
        bounds = [tuple(pair) for pair in map(_pair, _list(tree, "intervals"))]
    sizes = _list(tree, "optimals") if tree.get("optimals") is not None else ()
    sizes = [_checked(s, "optimals", 0, UNBOUNDED) for s in sizes]
    return make_symbol(tree.get("name"), bounds, sizes)


def _pair(pair) -> tuple:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise Error(f"symbolic: an interval must be [min, max], got {reprlib.repr(pair)}")
    return tuple(_checked(end, "interval", 0, UNBOUNDED) for end in pair)


def _read_sum(tree: dict, depth: int) -> Expr:
    parts = _parts(tree, "terms", "coeff", -UNBOUNDED, UNBOUNDED, depth)
    return reduce(
        add, (expr * factor for expr, factor in parts), Integer(_number(tree, "constant"))
    )


def _read_product(tree: dict, depth: int) -> Expr:
    bases = [
        base
        for base, power in _parts(tree, "factors", "exp", 1, MAX_POWER, depth)
        for _ in range(power)
    ]
    return reduce(mul, bases, Integer(_number(tree, "coeff")))


_READERS = {
    "int": lambda tree, depth: Integer(_number(tree, "value")),
    "sym": _read_symbol,
    "add": _read_sum,
    "mul": _read_product,
    "tdiv": lambda tree, depth: read(tree.get("num"), depth) // read(tree.get("den"), depth),
    "mod": lambda tree, depth: read(tree.get("num"), depth) % read(tree.get("den"), depth),
    "min": lambda tree, depth: smallest(*(read(x, depth) for x in _list(tree, "args"))),
    "max": lambda tree, depth: largest(*(read(x, depth) for x in _list(tree, "args"))),
}


# Other systems


def jax_text(expr: Expr) -> str:
    """The text for `jax.export.symbolic_shape`, whose grammar has no parentheses."""
    if isinstance(expr, Sum):
        parts = [jax_text(term * factor) for term, factor in expr.terms]
        parts += [str(expr.constant)] if expr.constant else []
        return " + ".join(parts).replace("+ -", "- ")
    if isinstance(expr, Product):
        bases = [jax_text(base) for base, power in expr.powers for _ in range(power)]
        sign, factor = "-" if expr.factor < 0 else "", abs(expr.factor)
        return sign + "*".join(bases if factor == 1 else [str(factor), *bases])
    if isinstance(expr, Quotient):
        word = "mod" if isinstance(expr, Remainder) else "floordiv"
        return f"{word}({', '.join(map(jax_text, expr.args))})"
    if isinstance(expr, Smallest):  # and Largest; JAX takes two at a time
        return reduce(lambda x, y: f"{expr.word}({x}, {y})", map(jax_text, expr.args))
    return str(expr)


def to_sympy(expr: Expr):
    """The expression in sympy, division as ``floor(a / b)``; bounds are lost."""
    import sympy

    if isinstance(expr, Integer):
        return sympy.Integer(expr.number)
    if isinstance(expr, Symbol):
        sign = {"positive": True} if expr.lo > 0 else {"nonnegative": True}
        return sympy.Symbol(expr.name, integer=True, **sign)
    return expr.apply([to_sympy(a) for a in expr.args], sympy.Min, sympy.Max)


def from_sympy(value, symbols: dict | None = None) -> Expr:
    """The expression of a sympy one, made of + * floor Mod Min Max and whole powers.

    `symbols` gives bounds to names, as in `parse`.
    """
    import sympy

    def build(operation, args):
        return reduce(operation, (from_sympy(a, symbols) for a in args))

    if value.is_Integer:
        return Integer(int(value))
    if value.is_Symbol:
        return _bound(value.name, symbols or {})
    if value.is_Pow and value.exp.is_Integer and 0 < value.exp <= MAX_POWER:
        return build(mul, [value.base] * int(value.exp))
    if isinstance(value, sympy.floor):
        num, den = sympy.fraction(sympy.together(value.args[0]))
        return from_sympy(num, symbols) // from_sympy(den, symbols)
    for kind, operation in {
        sympy.Add: add,
        sympy.Mul: mul,
        sympy.Mod: lambda a, b: a % b,
        sympy.Min: smallest,
        sympy.Max: largest,
    }.items():
        if isinstance(value, kind):
            return build(operation, value.args)
    raise Error(f"symbolic: no whole-number expression for sympy's {value}")


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """The expression q with ``q * b == a`` as polynomials, or None: what a -1 in reshape needs.

    Plain division cancels only single products, as MIGraphX does: ``(m*n + n)/n`` stays.
    """
    quotient, rest, divisor = Integer(0), a, _leading(b)
    while rest != 0:
        factor, powers = _leading(rest)
        missing = [base for base, p in divisor[1].items() if powers.get(base, 0) < p]
        if missing or factor % divisor[0]:
            return None
        term = Integer(factor // divisor[0])
        for base, power in powers.items():
            for _ in range(power - divisor[1].get(base, 0)):
                term = term * base
        quotient, rest = quotient + term, rest - term * b
    return quotient


def _leading(expr: Expr) -> tuple:
    """Factor and powers of the term that comes first when names are letters of a dictionary."""
    constant, terms = expr.sum_parts()
    parts = [(c, dict(t.product_parts()[1])) for t, c in terms] or [(constant, {})]
    bases = sorted({b for _, powers in parts for b in powers}, key=lambda base: base.key)
    return max(parts, key=lambda part: [part[1].get(base, 0) for base in bases])
