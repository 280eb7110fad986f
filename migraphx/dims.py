"""One dimension: a range of sizes with its optimals, or a symbolic expression.

Shape rules add, subtract, multiply and divide sizes without asking whether they are `int` or
`Dim`, so one rule serves static, range and symbolic shapes.
"""

from __future__ import annotations

from .errors import Error

UNBOUNDED = 2**64 - 1


class Dim:
    """The sizes that one axis may take: MIGraphX's `dynamic_dimension`.

    Parameters
    ----------
    min, max : int
        Smallest and largest size, both included; one number alone is a fixed size.
    optimals : collection of int, optional
        Sizes worth preparing for; dropped when the dimension is fixed, as MIGraphX does.
    expression : str
        Instead of numbers: a symbolic size such as ``"n[1..8]*3 + 1"``.
    symbols : dict of str to Dim, optional
        Bounds for names that carry none in the expression.

    Examples
    --------
    >>> Dim(1, 4, {2, 4})
    dynamic_dimension(1, 4, {2, 4})
    >>> Dim("2*n[1..8]").max
    16
    """

    __slots__ = ("_max", "_min", "_optimals", "expr")

    def __init__(self, min=None, max=None, optimals=None, *, expression=None, symbols=None):
        self.expr = None
        if isinstance(min, str):
            if isinstance(max, dict):  # dynamic_dimension("2*n", {"n": ...})
                max, symbols = None, max
            expression, min = min, None
        if expression is not None:
            if min is not None or max is not None or optimals is not None:
                raise TypeError("dynamic_dimension: give an expression or bounds, not both")
            from . import symbolic  # sympy and its kin load only when a symbol is met

            self.expr = symbolic.parse(expression, symbols)
            return
        if min is None:
            min = max = 0
        self._min = size_of(min, "min")
        self._max = self._min if max is None else size_of(max, "max")
        if self._min > self._max:
            raise Error(
                f"dynamic_dimension: min {self._min} is above max {self._max}; give (min, max)"
            )
        found = frozenset(size_of(o, "optimals") for o in optimals or ())
        self._optimals = frozenset() if self._min == self._max else found

    @classmethod
    def of_expr(cls, expr) -> Dim:
        """The dimension whose size is the expression `expr`."""
        dim = cls.__new__(cls)
        dim.expr = expr
        return dim

    @property
    def min(self) -> int:
        """The smallest size the dimension can take."""
        return max(self.expr.interval()[0], 0) if self.expr is not None else self._min

    @property
    def max(self) -> int:
        """The largest size the dimension can take (2**64 - 1 if unbounded)."""
        return self.expr.interval()[1] if self.expr is not None else self._max

    @property
    def optimals(self) -> set:
        """The sizes to optimize for; of an expression, its values at its symbols' optimals."""
        return set(self.expr.optimals() if self.expr is not None else self._optimals)

    @property
    def expression(self) -> str | None:
        """The expression with its symbols' bounds, or None for a range."""
        return None if self.expr is None else self.expr.text()

    def is_fixed(self) -> bool:
        """True if only one size is possible."""
        return self.min == self.max

    def is_symbolic(self) -> bool:
        """True if the size is an expression."""
        return self.expr is not None

    def as_range(self) -> Dim:
        """The same sizes without the expression."""
        return self if self.expr is None else Dim(self.min, self.max, self.optimals)

    def as_symbolic(self) -> Dim:
        """The same size as an expression; only a fixed range has one."""
        if self.expr is not None:
            return self
        if not self.is_fixed():
            raise Error(f"dynamic_dimension: the range {self} has no expression")
        from .symbolic import Expr

        return Dim.of_expr(Expr.literal(self._min))

    def __eq__(self, other):
        if isinstance(other, int):
            return self.min == self.max == other
        if not isinstance(other, Dim):
            return NotImplemented
        if self.expr is not None or other.expr is not None:
            if self.expr is not None and other.expr is not None:
                return self.expr == other.expr
            return self.is_fixed() and other.is_fixed() and self.min == other.min
        same = (self._min, self._max) == (other._min, other._max)
        return same and self._optimals == other._optimals

    def __hash__(self):
        if self.is_fixed():
            return hash(self.min)
        return hash(self.expr) if self.expr is not None else hash((self._min, self._max))

    def __str__(self):
        if self.expr is not None:
            return str(self.expr) if self.is_fixed() else f"{self.expr}[{self.min}..{self.max}]"
        return str(self._min) if self.is_fixed() else f"[{self._min}..{self._max}]"

    def __repr__(self):
        if self.expr is not None:
            return f"dynamic_dimension({self.expression!r})"
        tail = f", {{{', '.join(map(str, sorted(self._optimals)))}}}" if self._optimals else ""
        return f"dynamic_dimension({self._min}, {self._max}{tail})"

    def __add__(self, other):
        return _arith(self, other, "add")

    def __radd__(self, other):
        return _arith(other, self, "add")

    def __sub__(self, other):
        return _arith(self, other, "sub")

    def __rsub__(self, other):
        return _arith(other, self, "sub")

    def __mul__(self, other):
        return _arith(self, other, "mul")

    def __rmul__(self, other):
        return _arith(other, self, "mul")

    def __floordiv__(self, other):
        return _arith(self, other, "div")

    def __rfloordiv__(self, other):
        return _arith(other, self, "div")

    __truediv__ = __floordiv__  # sizes are never fractions
    __rtruediv__ = __rfloordiv__

    def __mod__(self, other):
        return _arith(self, other, "mod")

    def __rmod__(self, other):
        return _arith(other, self, "mod")


def size_of(value, who: str) -> int:
    """`value` as a size: a whole number from 0 to 2**64 - 1."""
    try:
        number = value.__index__()
    except AttributeError:
        raise TypeError(f"dynamic_dimension: {who} must be whole numbers, got {value!r}") from None
    if not 0 <= number <= UNBOUNDED:
        raise Error(f"dynamic_dimension: {who} {number} is outside 0 to 2**64 - 1")
    return number


def _cap(value: int) -> int:
    return min(max(value, 0), UNBOUNDED)


def _div(a: int, b: int) -> int:
    return UNBOUNDED if b == 0 else a // b


_EXPR = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}
# (lowest, highest) of the result from the two intervals
_RANGE = {
    "add": lambda a, b: (a.min + b.min, a.max + b.max),
    "sub": lambda a, b: (a.min - b.max, a.max - b.min),
    "mul": lambda a, b: (a.min * b.min, a.max * b.max),
    "div": lambda a, b: (_div(a.min, b.max), _div(a.max, b.min)),
    "mod": lambda a, b: (0, min(a.max, max(b.max - 1, 0))),
}


def _arith(a, b, kind: str):
    """Arithmetic on two sizes of which at least one is a `Dim`."""
    if not (_is_size(a) and _is_size(b)):
        return NotImplemented
    if any(isinstance(x, Dim) and x.expr is not None for x in (a, b)):
        exprs = [as_expr(x) for x in (a, b)]
        if None not in exprs:
            return Dim.of_expr(_EXPR[kind](*exprs))
    # Offsets inside a rule may be negative (x - 3 + 4), so plain integers keep their sign.
    if isinstance(b, int) and b < 0 and kind in ("add", "sub"):
        return _arith(a, -b, "sub" if kind == "add" else "add")
    a, b = (x.as_range() if isinstance(x, Dim) else _Fixed(x) for x in (a, b))
    if kind in ("div", "mod") and b.max == 0:
        raise Error("dynamic_dimension: division by zero")
    low, high = _RANGE[kind](a, b)
    result = Dim(_cap(low), _cap(high))
    moving, fixed = (a, b) if b.min == b.max else (b, a)
    if fixed.min == fixed.max and moving.optimals:
        pairs = ((o, fixed.min) if moving is a else (fixed.min, o) for o in moving.optimals)
        shifted = frozenset(_cap(_EXPR[kind](*pair)) for pair in pairs)
        if result._min != result._max:
            result._optimals = shifted
    return result


class _Fixed:
    """A plain number seen as a dimension; negative ones may occur inside a formula."""

    optimals = frozenset()

    def __init__(self, value: int):
        self.min = self.max = value


def _is_size(x) -> bool:
    return isinstance(x, Dim) or (isinstance(x, int) and not isinstance(x, bool))


def as_expr(size):
    """The expression of a size (a literal one for a fixed size), or None for a real range."""
    if isinstance(size, Dim):
        if size.expr is not None:
            return size.expr
        if not size.is_fixed():
            return None
        size = size.min
    from .symbolic import Expr

    return Expr.literal(size)


def as_dim(value) -> Dim:
    """A `Dim` from a `Dim`, an int, an expression text or a (min, max[, optimals]) sequence."""
    if isinstance(value, Dim):
        return value
    if isinstance(value, str):
        return Dim(value)
    if isinstance(value, (list, tuple)):
        if not 1 <= len(value) <= 3:
            raise Error(f"dynamic_dimension: {value!r} is not (min, max) or (min, max, optimals)")
        return Dim(*value)
    if isinstance(value, dict):
        return dim_from_value(value)
    return Dim(value, value)


def lo(size) -> int:
    """Smallest value of an int or `Dim`."""
    return size.min if isinstance(size, Dim) else size


def hi(size) -> int:
    """Largest value of an int or `Dim`."""
    return size.max if isinstance(size, Dim) else size


def fixed(size) -> bool:
    """True if an int or `Dim` can only be one number."""
    return not isinstance(size, Dim) or size.is_fixed()


def product(sizes):
    """The product of sizes; 1 for none."""
    result = 1
    for size in sizes:
        result = result * size
    return result


def intersect(a, b):
    """The sizes that both may take, or None if there are none. Equal expressions stay one."""
    if a == b:
        return a if isinstance(a, Dim) else b
    low, high = max(lo(a), lo(b)), min(hi(a), hi(b))
    return None if low > high else Dim(low, high)


def dim_to_value(dim: Dim) -> dict:
    """The tree of one dimension as `.mxr` files hold it."""
    if dim.expr is not None:
        return {"range": None, "optimals": None, "sym": dim.expr.to_value()}
    return {
        "range": {"min": dim._min, "max": dim._max},
        "optimals": sorted(dim._optimals),
        "sym": None,
    }


def dim_from_value(tree: dict) -> Dim:
    """The dimension that `dim_to_value` wrote; also the older form {min, max, optimals}."""
    try:
        if tree.get("sym") is not None:
            from .symbolic import Expr

            return Dim.of_expr(Expr.from_value(tree["sym"]))
        bounds = tree.get("range") or tree
        return Dim(bounds["min"], bounds["max"], tree.get("optimals") or ())
    except (KeyError, TypeError, AttributeError) as bad:
        raise Error(f"shape: {tree!r} is not a serialised dimension") from bad
