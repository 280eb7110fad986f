"""Operators that work element by element: unary and binary tables, clip, where, convert."""

from __future__ import annotations

from ..dims import hi, lo
from ..shape import Shape, common_permutation
from ..types import INTEGERS, type_t
from .base import Op, define


def pointwise_shape(op: Op, shapes, kind=None) -> Shape:
    """The output of an element-wise operator of several inputs of equal dims.

    Equal packed shapes give that shape; one packed shape wins over the others; otherwise the
    result is packed in the most common memory order of the inputs that are not broadcast.
    """
    first = shapes[0]
    if any(s.dims is None for s in shapes):
        return Shape.unknown(first.type() if kind is None else kind)
    if any(s.dims != first.dims for s in shapes):
        if any(s.dynamic() for s in shapes):
            same = [(lo(d), hi(d)) for d in first.dims]
            if any([(lo(d), hi(d)) for d in s.dims] != same for s in shapes):
                op.fail(f"Min dynamic dimensions do not match: {_texts(shapes)}")
            op.fail(f"fixed-dyn shape for inputs: {_texts(shapes)}")
        op.fail(f"Dimensions do not match: {_texts(shapes)}")
    kind = first.type() if kind is None else kind
    if first._strides is None:
        return first.with_type(kind)
    packed = [s for s in shapes if s.packed()]
    if (
        packed
        and all(s == packed[0] for s in packed)
        and (len(packed) == len(shapes) or len(packed) == 1)
    ):
        return packed[0].with_type(kind)
    plain = [s for s in shapes if not s.broadcasted()]
    order = plain[0].permutation() if len(plain) == 1 else common_permutation(shapes)
    return first.packed_like(kind=kind, permutation=order)


def _texts(shapes) -> str:
    return ", ".join(f"{{{', '.join(map(str, s.dims))}}}" for s in shapes)


class Unary(Op, inputs=1):
    """One input, one output of the same dims."""

    def rule(self, x):
        if x.dynamic() or x.scalar():
            return x
        return Shape.make(x.type(), x.dims) if x.broadcasted() else x.packed_like()


UNARY = {
    "abs": "Absolute value.",
    "acos": "Angle in radians whose cosine is x.",
    "acosh": "Number whose hyperbolic cosine is x.",
    "asin": "Angle in radians whose sine is x.",
    "asinh": "Number whose hyperbolic sine is x.",
    "atan": "Angle in radians whose tangent is x.",
    "atanh": "Number whose hyperbolic tangent is x.",
    "ceil": "Smallest whole number not below x.",
    "cos": "Cosine of x in radians.",
    "cosh": "Hyperbolic cosine.",
    "erf": "The Gauss error function.",
    "exp": "e to the power of x.",
    "floor": "Largest whole number not above x.",
    "log": "Natural logarithm.",
    "log2": "Logarithm to base 2.",
    "nearbyint": "Nearest whole number; halves go to the even one.",
    "neg": "x with the opposite sign.",
    "not": "True where x is zero.",
    "recip": "1 / x.",
    "relu": "x where positive, else zero; NaN stays NaN.",
    "rsqrt": "1 / square root of x.",
    "sigmoid": "1 / (1 + exp(-x)).",
    "sign": "-1, 0 or 1 after the sign of x.",
    "sin": "Sine of x in radians.",
    "sinh": "Hyperbolic sine.",
    "sqrt": "Square root.",
    "tan": "Tangent of x in radians.",
    "tanh": "Hyperbolic tangent.",
}
for _name, _doc in UNARY.items():
    define(_name, Unary, _doc)


class Test(Op, inputs=1):
    """One input, one bool for each element."""

    def rule(self, x):
        return Unary.rule(self, x).with_type(type_t.bool_type)


TESTS = {
    "isinf": "True where x is an infinity.",
    "isnan": "True where x is not a number.",
}
for _name, _doc in TESTS.items():
    define(_name, Test, _doc)


class Binary(Op, inputs=2, same_type=True):
    """Two inputs of equal type and dims; nothing is broadcast by itself."""

    def rule(self, x, y):
        return pointwise_shape(self, (x, y))


BINARY = {
    "add": "x + y.",
    "div": "x / y; integers drop the fraction.",
    "fmod": "Remainder of x / y with the sign of x.",
    "greater": "True where x is above y, in the type of the inputs.",
    "less": "True where x is below y, in the type of the inputs.",
    "logical_and": "True where both are non-zero, in the type of the inputs.",
    "logical_or": "True where one is non-zero, in the type of the inputs.",
    "logical_xor": "True where exactly one is non-zero, in the type of the inputs.",
    "max": "The larger of x and y; NaN if one is NaN.",
    "min": "The smaller of x and y; NaN if one is NaN.",
    "mod": "Remainder of x / y with the sign of y.",
    "mul": "x * y.",
    "pow": "x to the power of y.",
    "prelu": "x where positive, else x * slope.",
    "sqdiff": "(x - y) squared.",
    "sub": "x - y.",
}
for _name, _doc in BINARY.items():
    define(_name, Binary, _doc)


class Equal(Binary, name="equal"):
    """1 where x equals y, else 0, in the type of the inputs; bools for strings."""

    def rule(self, x, y):
        kind = type_t.bool_type if x.type() == type_t.string_type else x.type()
        return pointwise_shape(self, (x, y), kind)


class BitwiseAnd(Binary, name="bitwise_and"):
    """Bits set in both x and y."""

    def rule(self, x, y):
        if x.type() not in INTEGERS | {type_t.bool_type}:
            self.fail(f"only supports integral types, got {x.type_string()}")
        return pointwise_shape(self, (x, y))


class Elu(Unary, name="elu"):
    """x above zero, alpha * (exp(x) - 1) below."""

    alpha: float = 1.0


class LeakyRelu(Unary, name="leaky_relu"):
    """x above zero, alpha * x below."""

    alpha: float = 0.01


class Clip(Op, name="clip", inputs=3, same_type=True):
    """x held between the second and the third input; NaN stays NaN."""

    def rule(self, x, low, high):
        pointwise_shape(self, (x, low, high))
        return x


class Where(Op, name="where", inputs=3):
    """The second input where the first is not zero, else the third.

    A condition of one element picks the whole of one input.
    """

    def rule(self, condition, x, y):
        if any(s.dims is None for s in (condition, x, y)):
            return Shape.unknown(x.type())
        if x.dims != y.dims:
            self.fail(f"Dimensions do not match: {_texts((x, y))}")
        one = not condition.dynamic() and condition.elements() == 1
        if not one and not x.dynamic() and condition.dims != x.dims:
            self.fail(f"Dimensions do not match: {_texts((condition, x, y))}")
        if x._strides is None or (x == y and x.packed()):
            return x
        if x.packed() != y.packed():
            return (x if x.packed() else y).with_type(x.type())
        if x.broadcasted() != y.broadcasted():
            return x.packed_like(permutation=(y if x.broadcasted() else x).permutation())
        return x.standard_of()
