"""Element-wise builders: broadcast arithmetic, clip and activations."""

from __future__ import annotations

from ..errors import Error
from ..types import FLOATS, type_t
from .common import add_common_op, builder, convert_to, halves, lit

BINARY = (
    "add", "sub", "mul", "div", "pow", "prelu", "sqdiff",
    "logical_and", "logical_or", "logical_xor", "bitwise_and",
)  # fmt: skip


def binary(name: str):
    """The builder of a binary operator: NumPy's broadcasting, or along an axis."""

    def build(m, x, y, *, broadcasted_axis=None):
        if broadcasted_axis is None:
            return add_common_op(m, name, x, y)
        return add_common_op(m, name, *along_axis(m, x, y, int(broadcasted_axis)))

    return build


for _name in BINARY:
    builder(_name)(binary(_name))


def along_axis(m, x, y, axis: int) -> tuple:
    """Both inputs with the dims of the one of higher rank; the other's begin at `axis`."""
    if x.shape().rank == y.shape().rank:
        return x, y
    small, large = sorted((x, y), key=lambda i: i.shape().rank)
    dims = large.shape().dims
    axis = axis + len(dims) if axis < 0 else axis
    if not 0 <= axis <= len(dims) - small.shape().rank:
        raise Error(
            f"broadcasted_axis {axis} leaves no room for {small.shape()} in {large.shape()}"
        )
    if large.shape().dynamic():
        spread = m.add("broadcast", small, large, axis=axis)
    else:
        spread = m.add("broadcast", small, axis=axis, out_lens=dims)
    return (spread, large) if small is x else (large, spread)


def need_float(x) -> None:
    """Refuses integers."""
    if x.shape().type() not in FLOATS:
        raise Error(f"only floating point types are accepted, got {x.shape().type_string()}")


@builder("clip")
def clip(m, x, low=None, high=None):
    """`x` held between bounds; those that are missing or ``undefined`` do not count."""
    low, high = (None if b is None or b.name() == "undefined" else b for b in (low, high))
    if low is not None and high is not None:
        return add_common_op(m, "clip", x, low, high)
    if high is not None:
        return add_common_op(m, "min", x, high)
    if low is not None:
        return add_common_op(m, "max", x, low)
    return m.add("identity", x)


@builder("celu")
def celu(m, x, *, alpha=1.0):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    need_float(x)
    if alpha == 0:
        raise Error("alpha is zero; another number is needed")
    kind = x.shape().type()
    if kind not in (type_t.half_type, type_t.float_type, type_t.double_type):
        return convert_to(m, celu(m, convert_to(m, x, type_t.float_type), alpha=alpha), kind)
    zero, one, alpha = lit(m, 0, x), lit(m, 1, x), lit(m, alpha, x)
    above = add_common_op(m, "max", x, zero)
    grown = m.add("exp", add_common_op(m, "div", x, alpha))
    below = add_common_op(m, "mul", alpha, add_common_op(m, "sub", grown, one))
    return m.add("add", above, add_common_op(m, "min", below, zero))


@builder("gelu_erf")
def gelu_erf(m, x):
    """0.5 * x * (1 + erf(x / sqrt(2)))."""
    need_float(x)
    half, one, root = lit(m, 0.5, x), lit(m, 1, x), lit(m, 2**0.5, x)
    scaled = add_common_op(m, "mul", x, half)
    bell = m.add("erf", add_common_op(m, "div", x, root))
    return m.add("mul", scaled, add_common_op(m, "add", bell, one))


@builder("gelu_split")
def gelu_split(m, x):
    """The first half of the last axis times gelu of the second."""
    need_float(x)
    left, right = halves(m, x, x.shape().rank - 1)
    return m.add("mul", left, gelu_erf(m, right))


@builder("gelu_quick")
def gelu_quick(m, x, *, alpha=1.0):
    """x * sigmoid(alpha * x)."""
    need_float(x)
    inner = add_common_op(m, "mul", x, lit(m, alpha, x))
    return m.add("mul", x, m.add("sigmoid", inner))


@builder("gelu_tanh")
def gelu_tanh(m, x, *, fast=False):
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))).

    `fast` has the rounded constants of ONNX Runtime's FastGelu:
    tanh(x * (0.035677 * x**2 + 0.797885)).
    """
    need_float(x)
    kind = x.shape().type()
    if fast and kind == type_t.double_type:
        raise Error("the fast form does not accept double_type")
    half, one = lit(m, 0.5, x), lit(m, 1, x)
    square = m.add("mul", x, x)
    if fast:
        inner = add_common_op(m, "mul", square, lit(m, 0.035677, x))
        inner = add_common_op(m, "add", inner, lit(m, 0.797885, x))
        inner = m.add("mul", x, inner)
    else:
        cube = m.add("mul", square, x)
        inner = add_common_op(m, "mul", cube, lit(m, 0.044715, x))
        inner = m.add("add", x, inner)
        inner = add_common_op(m, "mul", inner, lit(m, 0.7978845608028654, x))
    rounded = add_common_op(m, "add", m.add("tanh", inner), one)
    return m.add("mul", add_common_op(m, "mul", x, half), rounded)


@builder("bias_uint8")
def bias_uint8(m, x, bias, *, has_bias=False):
    """uint8 data as int8, 128 lower, and the zero point that belongs to it; int8 as they are.

    Without `has_bias` the zero point counts as 0.
    """
    if x.shape().type() != type_t.uint8_type:
        return [x, bias]
    shifted = lowered(m, x)
    if has_bias:
        return [shifted, lowered(m, bias)]
    return [shifted, lit(m, -128, type_t.int8_type)]


def lowered(m, x):
    """A uint8 tensor minus 128, as int8."""
    wide = convert_to(m, x, type_t.int32_type)
    moved = add_common_op(m, "add", wide, lit(m, -128, type_t.int32_type))
    return m.add("convert", moved, target_type=type_t.int8_type)
