"""The nodes of symbolic whole numbers; `arithmetic` computes, `symbolic` reads and writes them.

Expressions are small trees of this module's own, built directly in MIGraphX's canonical form.
sympy orders, prints and divides by its own rules, so each result would have to be converted; it
would cost 0.2 s at import and hundreds of microseconds for a new expression, here about ten. It
serves as interchange and as referee in the tests.
"""

from __future__ import annotations

import re
import reprlib
from functools import reduce
from operator import attrgetter, index

from .errors import Error

UNBOUNDED = 2**64 - 1
MAX_DEPTH = 100  # levels of an expression, a text or a file's tree
MAX_TERMS = 256  # of a sum, min or max; multiplying sums out can explode
MAX_POWER = 64
LIMIT = 2**64  # numbers in an expression lie below, which keeps hostile ones from growing
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _both_sides(operation) -> tuple:
    """An operator and its mirrored form, for expressions and whole numbers."""

    def apply(a, b):
        a, b = as_expr(a), as_expr(b)
        if a is None or b is None:
            return NotImplemented
        return operation(*gathered(a, b)) if a.names and b.names else operation(a, b)

    return apply, lambda a, b: apply(b, a)


class Expr:
    """A symbolic whole number: immutable, canonical and hashable.

    Made by `parse`, `Expr.literal`, `Expr.symbol` and arithmetic. Equality is that of the
    canonical form, symbols' constraints included and optimals not.

    Examples
    --------
    >>> n = Expr.symbol("n", ((1, 8),))
    >>> str(3 * n + 1), (3 * n + 1).text(), (3 * n + 1).interval()
    ('3*n + 1', '3*n[1..8] + 1', (4, 25))
    """

    # `key` orders and identifies: the kind's rank, then what symbolic.md compares.
    __slots__ = ("args", "depth", "key", "_hash", "_names", "_span", "_steps")
    rank = 0

    def __init__(self, args: tuple, *key, numbers=()):
        self.args = args
        self.depth = 1 + max((a.depth for a in args), default=0)
        if not all(-LIMIT < number < LIMIT for number in numbers):
            raise Error("symbolic: a number in an expression needs more than 64 bits")
        if self.depth > MAX_DEPTH:
            raise Error(f"symbolic: expression nested deeper than {MAX_DEPTH} levels")
        self.key = (self.rank, *key)
        self._hash = self._names = self._span = self._steps = None

    @staticmethod
    def literal(value: int) -> Expr:
        """The expression that is the number `value`."""
        return Integer(index(value))

    @staticmethod
    def symbol(name: str, intervals=((1, 8),), optimals=()) -> Expr:
        """The symbol `name`, which lies in every one of `intervals`; none is unconstrained."""
        return make_symbol(name, intervals, optimals)

    @staticmethod
    def from_value(tree: dict) -> Expr:
        """The expression that `to_value` wrote, made canonical again."""
        from .symbolic import read

        return read(tree)

    @property
    def is_literal(self) -> bool:
        """True for a plain number."""
        return isinstance(self, Integer)

    @property
    def names(self) -> dict:
        """The symbols by name."""
        if self._names is None:
            self._names = reduce(lambda x, y: x if x is y else x | y, [a.names for a in self.args])
        return self._names

    def symbols(self) -> tuple:
        """The symbols, ordered by name."""
        return tuple(sorted(self.names.values(), key=attrgetter("key")))

    def __hash__(self):
        if self._hash is None:
            self._hash = hash(self.key)
        return self._hash

    def __eq__(self, other):
        if isinstance(other, Expr):
            return self is other or (hash(self) == hash(other) and self.key == other.key)
        return NotImplemented

    __add__, __radd__ = _both_sides(lambda a, b: add(a, b))
    __sub__, __rsub__ = _both_sides(lambda a, b: add(a, b, -1))
    __mul__, __rmul__ = _both_sides(lambda a, b: multiply(a, b))
    __floordiv__, __rfloordiv__ = _both_sides(lambda a, b: divide(a, b))
    __mod__, __rmod__ = _both_sides(lambda a, b: remainder(a, b))

    def __neg__(self):
        return multiply(Integer(-1), self)

    def __lt__(self, other):
        return at_least(other, self, 1)

    def __le__(self, other):
        return at_least(other, self, 0)

    def __gt__(self, other):
        return at_least(self, other, 1)

    def __ge__(self, other):
        return at_least(self, other, 0)

    def __index__(self):
        raise Error(f"symbolic: {self} has no single value; evaluate it at some sizes")

    def __int__(self):
        return self.__index__()

    @property
    def value(self) -> int:
        """The number, if the expression is one."""
        return self.__index__()

    def interval(self) -> tuple[int, int]:
        """Smallest and largest value; a largest above 2**64 - 1 counts as that.

        Exact if the expression only rises or only falls in each symbol, else possibly wider. The
        smallest is negative where the expression can be.
        """
        lo, hi = self.span()
        return min(lo, UNBOUNDED), min(hi, UNBOUNDED)

    def span(self) -> tuple[int, int]:
        """The interval, not cut at 2**64 - 1."""
        if self._span is None:
            from .interval import find_span

            self._span = find_span(self)
        return self._span

    def optimals(self) -> set[int]:
        """The values at the symbols' optimals; empty unless every symbol that varies has some.

        Optimals outside a symbol's bounds and negative values do not count.
        """
        from .interval import find_optimals

        return find_optimals(self)

    def evaluate(self, sizes: dict) -> int:
        """The value where the symbols have `sizes`, which are not compared with the bounds."""
        try:
            return self._at({name: index(size) for name, size in sizes.items()})
        except ZeroDivisionError:
            raise Error(f"symbolic: division by zero in {self} where {sizes}") from None

    def _at(self, sizes: dict) -> int:
        return self.apply([a._at(sizes) for a in self.args], min, max)

    def substitute(self, values: dict) -> Expr:
        """The expression with numbers or expressions in place of the named symbols."""
        if self.names.keys().isdisjoint(values):
            return self
        return self.apply([a.substitute(values) for a in self.args], smallest, largest)

    def solve(self, size: int, known: dict) -> dict | None:
        """What the one still unknown symbol must be for the expression to be `size`.

        Returns ``{name: value}``, or ``{}`` if no symbol is unknown, or None if `size` does not
        determine it (several unknown symbols, or not linear). Where nothing fits, the value is the
        closest below: evaluate to see whether `size` is met.
        """
        sure = {name: s.lo for name, s in self.names.items() if s.lo == s.hi}
        rest = self.substitute(sure | known)
        if rest.is_literal:
            return {}
        constant, terms = rest.sum_parts()
        (term, factor), *more = terms
        if more or not isinstance(term, Symbol):
            return None
        return {term.name: (index(size) - constant) // factor}

    def sum_parts(self) -> tuple:
        """The expression as constant and ((term, factor), ...)."""
        return 0, ((self, 1),)

    def product_parts(self) -> tuple:
        """The expression as factor and ((base, power), ...)."""
        return 1, ((self, 1),)

    def __str__(self):
        return self.render(attrgetter("name"))

    def text(self) -> str:
        """The text with constraints and optimals at every use of a symbol; `parse` reads it."""
        return self.render(Symbol.annotated)

    def __repr__(self):
        return f"parse({self.text()!r})"

    def __reduce__(self):
        return Expr.from_value, (self.to_value(),)

    def to_value(self) -> dict:
        """The form that ``.mxr`` files hold."""
        from .symbolic import write

        return write(self)

    def to_jax_text(self) -> str:
        """The text that `jax.export.symbolic_shape` reads; bounds would be its constraints."""
        from .symbolic import jax_text

        return jax_text(self)


class Integer(Expr):
    """A plain number."""

    __slots__ = ("number",)
    names = {}

    def __init__(self, number: int):
        self.number = number
        super().__init__((), number, numbers=(number,))

    def __hash__(self):
        return hash(self.number)

    def __eq__(self, other):
        if isinstance(other, int):
            return self.number == other
        return isinstance(other, Integer) and self.number == other.number

    def __index__(self):
        return self.number

    def _at(self, sizes):
        return self.number

    def sum_parts(self):
        return self.number, ()

    product_parts = sum_parts

    def render(self, spell):
        return str(self.number)


class Symbol(Expr):
    """A named size, its constraints and the sizes worth preparing for."""

    __slots__ = ("name", "intervals", "lo", "hi", "sizes")
    rank = 1

    def __init__(self, name: str, intervals: tuple, lo: int, hi: int, sizes: tuple):
        self.name, self.intervals, self.lo, self.hi, self.sizes = name, intervals, lo, hi, sizes
        super().__init__((), name, lo, hi, intervals)

    @property
    def names(self):
        return {self.name: self}

    def _at(self, sizes):
        if self.name in sizes:
            return sizes[self.name]
        if self.lo == self.hi:
            return self.lo
        raise Error(f"symbolic: the size of {self.name} is not given; got {sorted(sizes)}")

    def substitute(self, values):
        return need_expr(values[self.name]) if self.name in values else self

    def render(self, spell):
        return spell(self)

    def annotated(self) -> str:
        bounds = "".join(f"[{lo}..{hi}]" for lo, hi in self.intervals)
        return self.name + bounds + (f"{{{', '.join(map(str, self.sizes))}}}" if self.sizes else "")


class Sum(Expr):
    """A constant and terms with factors; no term is a number, a sum or has a factor itself."""

    __slots__ = ("constant", "terms")
    rank = 2

    def __init__(self, constant: int, terms: tuple):
        self.constant, self.terms = constant, terms
        args, factors = zip(*terms, strict=True)
        key = tuple((t.key, c) for t, c in terms)
        super().__init__(args, constant, key, numbers=(constant, *factors))

    def apply(self, args, low, high):
        return sum((a * c for a, (_, c) in zip(args, self.terms, strict=True)), self.constant)

    def sum_parts(self):
        return self.constant, self.terms

    def render(self, spell):
        parts = []
        for term, factor in self.terms:
            sign = ("-" if factor < 0 else "") if not parts else (" - " if factor < 0 else " + ")
            # "-n/2" would read as (-n)/2
            bare = abs(factor) == 1 and (sign != "-" or isinstance(term, Product))
            scale = "" if abs(factor) == 1 else f"{abs(factor)}*"
            parts.append(sign + scale + (term.render(spell) if bare else _operand(term, spell)))
        if self.constant:
            parts.append(f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}")
        return "".join(parts)


class Product(Expr):
    """A factor and powers of bases that are neither numbers nor sums nor products."""

    __slots__ = ("factor", "powers")
    rank = 3

    def __init__(self, factor: int, powers: tuple):
        self.factor, self.powers = factor, powers
        key = tuple((b.key, p) for b, p in powers)
        super().__init__(tuple(b for b, _ in powers), factor, key, numbers=(factor,))

    def apply(self, args, low, high):
        result = self.factor
        for arg, (_, power) in zip(args, self.powers, strict=True):
            for _ in range(power):
                result = result * arg
        return result

    def sum_parts(self):
        return 0, ((product_of(1, self.powers), self.factor),)

    def product_parts(self):
        return self.factor, self.powers

    def render(self, spell):
        bases = [_operand(b, spell) for b, power in self.powers for _ in range(power)]
        if self.factor == -1:
            return "-" + "*".join(bases)
        return "*".join(bases if self.factor == 1 else [str(self.factor), *bases])


class Quotient(Expr):
    """A division that does not cancel, rounded down."""

    __slots__ = ()
    rank, sign, word = 4, "/", "tdiv"

    def __init__(self, num: Expr, den: Expr):
        super().__init__((num, den), num.key, den.key)

    def apply(self, args, low, high):
        return args[0] // args[1]

    def render(self, spell):
        return self.sign.join(_operand(a, spell) for a in self.args)


class Remainder(Quotient):
    """What a division that rounds down leaves over."""

    __slots__ = ()
    rank, sign, word = 5, "%", "mod"

    def apply(self, args, low, high):
        return args[0] % args[1]


class Smallest(Expr):
    """The smallest of several expressions."""

    __slots__ = ()
    rank, word = 6, "min"

    def __init__(self, args: tuple):
        super().__init__(args, tuple(a.key for a in args))

    def apply(self, args, low, high):
        return low(*args)

    def render(self, spell):
        return f"{self.word}({', '.join(a.render(spell) for a in self.args)})"


class Largest(Smallest):
    """The largest of several expressions."""

    __slots__ = ()
    rank, word = 7, "max"

    def apply(self, args, low, high):
        return high(*args)


def make_symbol(name: str, intervals, sizes) -> Symbol:
    """A checked symbol, intervals and optimals in their canonical order."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise Error(f"symbolic: {reprlib.repr(name)} is no name; use letters, digits and _")
    intervals = tuple(sorted({(index(lo), index(hi)) for lo, hi in intervals}))
    sizes = tuple(sorted(set(map(index, sizes))))
    for lo, hi in (*intervals, *((s, s) for s in sizes)):
        if not 0 <= lo <= hi <= UNBOUNDED:
            raise Error(f"symbolic: {name}: {lo}..{hi} must rise within 0 to 2**64 - 1")
    low = max((lo for lo, _ in intervals), default=1)
    high = min((hi for _, hi in intervals), default=UNBOUNDED)
    if low > high:
        every = "".join(f"[{lo}..{hi}]" for lo, hi in intervals)
        raise Error(f"symbolic: no size satisfies {name}{every}")
    return Symbol(name, intervals, low, high, sizes)


def as_expr(x) -> Expr | None:
    """A whole number or expression as an expression; None for anything else."""
    if isinstance(x, Expr):
        return x
    if isinstance(x, bool) or not hasattr(x, "__index__"):
        return None
    return Integer(index(x))


def need_expr(x) -> Expr:
    """`as_expr`, or a TypeError."""
    expr = as_expr(x)
    if expr is None:
        raise TypeError(f"symbolic: expected a whole number or an expression, got {x!r}")
    return expr


def _operand(expr: Expr, spell) -> str:
    text = expr.render(spell)
    return f"({text})" if isinstance(expr, (Sum, Product, Quotient)) else text


# The operators above need the arithmetic, which needs the classes above.
from .arithmetic import (  # noqa: E402
    add,
    at_least,
    divide,
    gathered,
    largest,
    multiply,
    product_of,
    remainder,
    smallest,
)
