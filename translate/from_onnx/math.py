"""Element-wise operators of ONNX."""

from __future__ import annotations

import math

import numpy as np
import onnx

from migraphx.errors import Error
from migraphx.types import FLOATS, INTEGERS, dtype_of, limits, type_t

from .registry import onnx_op
from .tensors import element_type

# ONNX operator -> the operator of the same meaning.
SAME_MEANING = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Neg": "neg",
    "Reciprocal": "recip",
    "Relu": "relu",
    "Round": "nearbyint",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}


def _same(target: str):
    return lambda m, x: m.add(target, x)


for _name, _target in SAME_MEANING.items():
    onnx_op(_name, any_rank=True)(_same(_target))


@onnx_op("Identity", any_rank=True)
def identity(m, x):
    """Also passes sequences and optionals on."""
    return m.add("identity", x)


@onnx_op("Not", any_rank=True)
def logical_not(m, x):
    return m.add("not", x)


@onnx_op("IsNaN", any_rank=True)
def is_nan(m, x):
    return m.convert(m.add("isnan", x), type_t.bool_type)


@onnx_op("IsInf")
def is_inf(m, x, *, detect_negative=1, detect_positive=1):
    infinite = m.convert(m.add("isinf", x), type_t.bool_type)
    if detect_negative and detect_positive:
        return infinite
    if not detect_negative and not detect_positive:
        return m.broadcast(m.lit(np.array(False)), m.dims(x))
    wanted = "greater" if detect_positive else "less"
    side = m.convert(m.common(wanted, x, m.lit(0, x)), type_t.bool_type)
    return m.add("logical_and", infinite, side)


# -- two inputs ------------------------------------------------------------------------------------

ARITHMETIC = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"}
LOGICAL = {"And": "logical_and", "Or": "logical_or", "Xor": "logical_xor"}
COMPARISONS = {"Greater": "greater", "Less": "less", "Equal": "equal"}


def aligned(m, x, y, axis, broadcast) -> tuple:
    """Opset 6 and older: y is placed along the axes of x from `axis` on."""
    if broadcast and axis is not None and m.rank(y) and m.rank(y) < m.rank(x):
        axis = m.axis(axis, m.rank(x))
        tail = m.rank(x) - axis - m.rank(y)
        if tail:
            y = m.add("unsqueeze", y, axes=[m.rank(y) + k for k in range(tail)])
    return x, y


def _binary(target: str, to_bool: bool):
    def handler(m, x, y, *, axis=None, broadcast=0):
        x, y = aligned(m, x, y, axis, broadcast)
        result = m.common(target, x, y)
        return m.convert(result, type_t.bool_type) if to_bool else result

    return handler


for _name, _target in ARITHMETIC.items():
    onnx_op(_name)(_binary(_target, False))
for _name, _target in (LOGICAL | COMPARISONS).items():
    onnx_op(_name)(_binary(_target, True))


@onnx_op("GreaterOrEqual")
def greater_or_equal(m, x, y):
    """x > y or x == y: not the opposite of less, which would hold for NaN."""
    return m.add("logical_or", _compare(m, "greater", x, y), _compare(m, "equal", x, y))


@onnx_op("LessOrEqual")
def less_or_equal(m, x, y):
    """x < y or x == y."""
    return m.add("logical_or", _compare(m, "less", x, y), _compare(m, "equal", x, y))


def _compare(m, name, x, y):
    return m.convert(m.common(name, x, y), type_t.bool_type)


@onnx_op("PRelu")
def prelu(m, x, slope):
    if m.rank(slope) == 1 and m.rank(x) > 1 and m.opset < 7:
        slope = m.add("unsqueeze", slope, axes=[1 + k for k in range(m.rank(x) - 2)])
    return m.common("prelu", x, slope)


@onnx_op("Pow")
def power(m, x, y, *, axis=None, broadcast=0):
    x, y = aligned(m, x, y, axis, broadcast)
    kind = m.type(x)
    return m.convert(m.common("pow", x, y), kind)


@onnx_op("Mod")
def modulo(m, x, y, *, fmod=0):
    return m.common("fmod" if fmod else "mod", x, y)


@onnx_op("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(m, x, y):
    if m.node.op_type == "BitwiseAnd":
        return m.common("bitwise_and", x, y)
    both = m.common("bitwise_and", x, y)
    total = m.common("add", x, y)  # x + y = (x | y) + (x & y) = (x ^ y) + 2 (x & y), wrapping
    once = m.add("sub", total, both)
    return once if m.node.op_type == "BitwiseOr" else m.add("sub", once, both)


@onnx_op("BitwiseNot")
def bitwise_not(m, x):
    """-1 - x in two's complement; the largest number - x if unsigned."""
    low, high = limits(m.type(x))
    return m.common("sub", m.lit(np.array(-1 if low < 0 else high), x), x)


@onnx_op("BitShift")
def bit_shift(m, x, y, *, direction):
    """Shifts by multiplying with or dividing by powers of two.

    To the right, signed numbers keep their sign; bits that leave are lost. A shift by the width
    or more, or by a negative number, leaves nothing but the sign.
    """
    if direction not in ("LEFT", "RIGHT"):
        raise Error(f"direction {direction!r} is neither LEFT nor RIGHT")
    kind = m.type(x)
    if kind not in INTEGERS:
        raise Error(f"a tensor of whole numbers is needed, got {kind.name}")
    signed, width = limits(kind)[0] < 0, dtype_of(kind).itemsize * 8
    wide = type_t.int64_type if signed else type_t.uint64_type
    x, steps = m.convert(x, wide), m.convert(y, wide)

    def number(value):
        return m.lit(np.array(value), wide)

    gone = m.add("not", _compare(m, "less", steps, number(width)))
    if signed:
        gone = m.add("logical_or", gone, _compare(m, "less", steps, number(0)))
    steps = where_common(m, gone, number(width - 1), steps)
    half = m.common("div", steps, number(2))  # in two steps: 2^63 is no int64
    for part in (half, m.add("sub", steps, half)):
        factor = m.common("pow", number(2), part)
        if direction == "RIGHT":
            rest = m.common("mod", x, factor)  # of the factor's sign: rounds towards -infinity
            x = m.common("div", m.common("sub", x, rest), factor)
        else:
            x = m.common("mul", x, factor)
    if direction == "LEFT" or not signed:
        x = where_common(m, gone, number(0), x)
    return m.convert(_wrapped(m, x, signed, width), kind)


def _wrapped(m, x, signed: bool, width: int):
    """The lowest `width` bits of 64, as a number of that width: conversion would saturate."""
    if width == 64:
        return x
    modulus = m.lit(np.array(1 << width), x)
    if not signed:
        return m.common("mod", x, modulus)
    half = m.lit(np.array(1 << (width - 1)), x)
    return m.common("sub", m.common("mod", m.common("add", x, half), modulus), half)


# -- any number of inputs --------------------------------------------------------------------------


def _fold(target: str):
    def handler(m, *xs):
        if not xs:
            raise Error("at least one input is required")
        result = xs[0]
        for x in xs[1:]:
            result = m.common(target, result, x)
        return m.add("identity", result) if len(xs) == 1 else result

    return handler


for _name, _target in {"Sum": "add", "Max": "max", "Min": "min"}.items():
    onnx_op(_name)(_fold(_target))


@onnx_op("Mean")
def mean(m, *xs):
    count = m.lit(np.array(len(xs)), xs[0])
    if m.type(xs[0]) in INTEGERS:
        return m.common("div", _fold("add")(m, *xs), count)
    return _fold("add")(m, *(m.common("div", x, count) for x in xs))


@onnx_op("Where")
def where(m, condition, x, y):
    return where_common(m, condition, x, y)


def where_common(m, condition, x, y):
    """`where` with the three inputs broadcast to common dims, x and y in one type."""
    from migraphx import macros

    m.need_ranks(condition, x, y)
    kind = m.type(x)
    parts = macros.broadcast_common(m, condition, x, y, types=False)
    result = m.add("where", parts[0], parts[1], m.convert(parts[2], kind))
    return m.rank_of_result((condition, x, y), result)


# -- activations -----------------------------------------------------------------------------------


@onnx_op("Elu")
def elu(m, x, *, alpha=1.0):
    return m.add("elu", x, alpha=alpha)


@onnx_op("LeakyRelu")
def leaky_relu(m, x, *, alpha=0.01):
    return m.add("leaky_relu", x, alpha=alpha)


@onnx_op("Celu")
def celu(m, x, *, alpha=1.0):
    return m.call("celu", x, alpha=alpha)


@onnx_op("Selu")
def selu(m, x, *, alpha=None, gamma=None):
    """gamma * (x above 0, alpha * (exp(x) - 1) below); opset 6 has more digits of both."""
    exact = m.opset >= 6
    alpha = (1.67326319217681884765625 if exact else 1.6732) if alpha is None else alpha
    gamma = (1.05070102214813232421875 if exact else 1.0507) if gamma is None else gamma
    return m.common("mul", m.lit(gamma, x), m.add("elu", x, alpha=alpha))


@onnx_op("HardSigmoid")
def hard_sigmoid(m, x, *, alpha=0.2, beta=0.5):
    line = m.common("add", m.common("mul", m.lit(alpha, x), x), m.lit(beta, x))
    return clip_between(m, line, 0.0, 1.0)


@onnx_op("HardSwish")
def hard_swish(m, x):
    return m.add("mul", x, hard_sigmoid(m, x, alpha=1 / 6, beta=0.5))


@onnx_op("Swish")
def swish(m, x, *, alpha=1.0):
    scaled = x if alpha == 1.0 else m.common("mul", m.lit(alpha, x), x)
    return m.add("mul", x, m.add("sigmoid", scaled))


@onnx_op("Mish")
def mish(m, x):
    return m.add("mul", x, m.add("tanh", softplus(m, x)))


@onnx_op("Softplus")
def softplus(m, x):
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow as log(exp(x) + 1) does."""
    small = m.add("exp", m.add("neg", m.add("abs", x)))
    soft = m.add("log", m.common("add", small, m.lit(1, x)))
    return m.add("add", m.add("relu", x), soft)


@onnx_op("Softsign")
def softsign(m, x):
    return m.add("div", x, m.common("add", m.add("abs", x), m.lit(1, x)))


@onnx_op("ThresholdedRelu")
def thresholded_relu(m, x, *, alpha=1.0):
    above = _compare(m, "greater", x, m.lit(alpha, x))
    return where_common(m, above, x, m.lit(0, x))


@onnx_op("Shrink")
def shrink(m, x, *, bias=0.0, lambd=0.5):
    kind = m.type(x)
    left = _compare(m, "less", x, m.lit(-lambd, x))
    right = _compare(m, "greater", x, m.lit(lambd, x))
    inner = where_common(m, right, m.common("sub", x, m.lit(bias, x)), m.lit(0, x))
    return m.convert(where_common(m, left, m.common("add", x, m.lit(bias, x)), inner), kind)


@onnx_op("Gelu")
def gelu(m, x, *, approximate="none"):
    if approximate not in ("none", "tanh"):
        raise Error(f"approximate {approximate!r} is neither none nor tanh")
    return m.call("gelu_tanh" if approximate == "tanh" else "gelu_erf", x)


@onnx_op("Clip", since=11)
def clip(m, x, low=None, high=None):
    kind = m.type(x)
    if low is not None and high is not None:
        return _clip(m, x, low, high)
    if low is not None:
        return m.common("max", x, m.convert(low, kind))
    if high is not None:
        return m.common("min", x, m.convert(high, kind))
    return m.add("identity", x)


@onnx_op("Clip")
def clip_1(m, x, *, min=None, max=None):
    low = None if min is None else m.lit(min, x)
    high = None if max is None else m.lit(max, x)
    return clip(m, x, low, high)


def _clip(m, x, low, high):
    """min(max(x, low), high): the upper bound wins where the two cross."""
    if m.type(x) in FLOATS and m.rank(low) == m.rank(high) == 0 and m.dims(x) != ():
        dims = m.dims(x)
        return m.add("clip", x, m.broadcast(low, dims), m.broadcast(high, dims))
    return m.common("min", m.common("max", x, low), high)


def clip_between(m, x, low: float, high: float):
    """x held between two numbers."""
    return _clip(m, x, m.lit(low, x), m.lit(high, x))


# -- types -----------------------------------------------------------------------------------------


@onnx_op("Cast", any_rank=True)
def cast(m, x, *, to, saturate=1, round_mode="up"):
    """Conversion by ONNX's rules; see `cast_to`. Before opset 6 `to` was a type's name."""
    if isinstance(to, str) and to in dict(onnx.TensorProto.DataType.items()):
        to = onnx.TensorProto.DataType.Value(to)
    return cast_to(m, x, element_type(to), saturate, round_mode)


@onnx_op("CastLike", any_rank=True)
def cast_like(m, x, target, *, saturate=1, round_mode="up"):
    return cast_to(m, x, m.type(target), saturate, round_mode)


def cast_to(m, x, kind, saturate=1, round_mode="up"):
    """`convert`, or the project's own cast where ONNX's rules differ from MIGraphX's.

    MIGraphX's convert saturates everywhere; ONNX saturates only small floats (unless told not
    to), wraps small integers and gives infinity beyond the range of half and bf16.
    """
    have = m.type(x)
    if have == kind:
        return m.add("identity", x)
    plain = kind in FLOATS - {t for t in FLOATS if t.name.startswith("fp8")} or (
        kind == type_t.bool_type
    )
    if (plain or have in INTEGERS | {type_t.bool_type}) and kind < 100 and have < 100:
        widening = kind in FLOATS or kind == type_t.bool_type or _fits(have, kind)
        if widening and not kind.name.startswith("fp8"):
            return m.add("convert", x, target_type=kind)
    if type_t.string_type in (have, kind):
        return m.add("onnx::cast_text", x, target_type=kind)
    return m.add("onnx::cast", x, target_type=kind, saturate=bool(saturate), round_mode=round_mode)


def _fits(have, kind) -> bool:
    if have == type_t.bool_type:
        return True
    if have not in INTEGERS or kind not in INTEGERS:
        return False
    (low, high), (least, most) = limits(have), limits(kind)
    return least <= low and high <= most


@onnx_op("BitCast")
def bit_cast(m, x, *, to):
    return m.add("bit_cast", x, target_type=element_type(to))


SQRT_HALF = math.sqrt(0.5)
