"""Element-wise operators of TensorFlow."""

from __future__ import annotations

import math

import numpy as np

from migraphx.errors import Error
from migraphx.types import FLOATS, limits, type_t

from .registry import tf_op
from .shared import cast_to, clip_between, softplus, softsign, where_common
from .tensors import element_type

# TensorFlow operator -> the operator of the same meaning.
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
    "Inv": "recip",
    "Log": "log",
    "Neg": "neg",
    "Reciprocal": "recip",
    "Relu": "relu",
    "Rint": "nearbyint",
    "Round": "nearbyint",  # halves to even, in TensorFlow too
    "Rsqrt": "rsqrt",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
# Those that give the value as it is, at least when a graph is only run forwards.
PASS_ON = ("CheckNumerics", "DebugIdentity", "EnsureShape", "Identity", "PlaceholderWithDefault",
           "PreventGradient", "Snapshot", "StopGradient")  # fmt: skip


def _same(target: str):
    return lambda m, x: m.add(target, x)


def _pass_on(m, x):
    return x


for _name, _target in SAME_MEANING.items():
    tf_op(_name, images=True)(_same(_target))
tf_op(*PASS_ON)(_pass_on)


@tf_op("Square", images=True)
def square(m, x):
    return m.add("mul", x, x)


@tf_op("Expm1", images=True)
def expm1(m, x):
    """exp(x) - 1; near 0 from tanh, which keeps the digits that the difference would lose."""
    half = m.add("tanh", m.common("mul", x, m.lit(0.5, x)))
    near = m.common("div", m.common("mul", half, m.lit(2, x)), m.common("sub", m.lit(1, x), half))
    far = m.common("sub", m.add("exp", x), m.lit(1, x))
    return where_common(m, is_small(m, x), near, far)


@tf_op("Log1p", images=True)
def log1p(m, x):
    """log(1 + x); near 0 the rounding of 1 + x is divided out again."""
    one = m.lit(1, x)
    total = m.common("add", x, one)
    log = m.add("log", total)
    rounded = m.common("sub", total, one)
    none = m.compare("equal", rounded, m.lit(0, x))
    ratio = m.common("div", x, where_common(m, none, one, rounded))
    near = where_common(m, none, x, m.common("mul", log, ratio))
    return where_common(m, is_small(m, x), near, log)


def is_small(m, x):
    """|x| < 1/2."""
    return m.compare("less", m.add("abs", x), m.lit(0.5, x))


@tf_op("Erfc", images=True)
def erfc(m, x):
    return m.common("sub", m.lit(1, x), m.add("erf", x))


@tf_op("OnesLike", images=True)
def ones_like(m, x):
    return m.broadcast(m.lit(np.array(1), x), m.dims(x))


@tf_op("ZerosLike", images=True)
def zeros_like(m, x):
    return m.zeros(x, m.dims(x))


@tf_op("LogicalNot", images=True)
def logical_not(m, x):
    return m.inverted(x)


@tf_op("IsNan", images=True)
def is_nan(m, x):
    return m.convert(m.add("isnan", x), type_t.bool_type)


@tf_op("IsInf", images=True)
def is_inf(m, x):
    return m.convert(m.add("isinf", x), type_t.bool_type)


@tf_op("IsFinite", images=True)
def is_finite(m, x):
    return m.inverted(m.add("logical_or", is_nan(m, x), is_inf(m, x)))


@tf_op("Invert", images=True)
def invert(m, x):
    """-1 - x in two's complement; the largest number - x if unsigned."""
    low, high = limits(m.type(x))
    return m.common("sub", m.lit(np.array(-1 if low < 0 else high), x), x)


# -- activations -----------------------------------------------------------------------------------

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


@tf_op("Relu6", images=True)
def relu6(m, x):
    return clip_between(m, x, 0, 6)


@tf_op("Elu", images=True)
def elu(m, x):
    return m.add("elu", x, alpha=1.0)


@tf_op("Selu", images=True)
def selu(m, x):
    return m.common("mul", m.lit(SELU_SCALE, x), m.add("elu", x, alpha=SELU_ALPHA))


@tf_op("LeakyRelu", images=True)
def leaky_relu(m, x, *, alpha=0.2):
    return m.add("leaky_relu", x, alpha=alpha)


tf_op("Softplus", images=True)(softplus)
tf_op("Softsign", images=True)(softsign)


@tf_op("ClipByValue", images=True)
def clip_by_value(m, x, low, high):
    return m.common("max", m.common("min", x, high), low)


# -- two inputs ------------------------------------------------------------------------------------

BINARY = {
    "Add": "add",
    "AddV2": "add",
    "BitwiseAnd": "bitwise_and",
    "Div": "div",  # integers without the fraction
    "Maximum": "max",
    "Minimum": "min",
    "Mod": "fmod",
    "Mul": "mul",
    "RealDiv": "div",
    "SquaredDifference": "sqdiff",
    "Sub": "sub",
    "TruncateDiv": "div",
    "TruncateMod": "fmod",
    "FloorMod": "mod",
}
COMPARISONS = {"Equal": "equal", "Greater": "greater", "Less": "less"}
LOGICAL = {"LogicalAnd": "logical_and", "LogicalOr": "logical_or"}


def _binary(target: str):
    return lambda m, x, y: m.common(target, x, y)


def _boolean(target: str):
    return lambda m, x, y: m.compare(target, x, y)


for _name, _target in BINARY.items():
    tf_op(_name, images=True)(_binary(_target))
for _name, _target in (COMPARISONS | LOGICAL).items():
    tf_op(_name, images=True)(_boolean(_target))


@tf_op("NotEqual", images=True)
def not_equal(m, x, y):
    return m.inverted(m.compare("equal", x, y))


@tf_op("GreaterEqual", "LessEqual", images=True)
def or_equal(m, x, y):
    """Not the opposite of the other comparison, which would hold for NaN."""
    name = "greater" if m.node.op == "GreaterEqual" else "less"
    return m.add("logical_or", m.compare(name, x, y), m.compare("equal", x, y))


@tf_op("ApproximateEqual", images=True)
def approximate_equal(m, x, y, *, tolerance=1e-5):
    return m.compare("less", m.add("abs", m.common("sub", x, y)), m.lit(tolerance, x))


@tf_op("BitwiseOr", "BitwiseXor", images=True)
def bitwise(m, x, y):
    """x + y = (x | y) + (x & y) = (x ^ y) + 2 (x & y), where overflow wraps."""
    both = m.common("bitwise_and", x, y)
    once = m.add("sub", m.common("add", x, y), both)
    return once if m.node.op == "BitwiseOr" else m.add("sub", once, both)


@tf_op("FloorDiv", images=True)
def floor_div(m, x, y):
    """The quotient rounded down; for integers from the remainder, which is exact."""
    if m.type(x) in FLOATS:
        return m.add("floor", m.common("div", x, y))
    return m.common("div", m.common("sub", x, m.common("mod", x, y)), y)


@tf_op("Pow", images=True)
def power(m, x, y):
    return m.convert(m.common("pow", x, y), m.type(x))


@tf_op("DivNoNan", "MulNoNan", images=True)
def no_nan(m, x, y):
    """0 where y is 0, whatever x is."""
    name = "div" if m.node.op == "DivNoNan" else "mul"
    none = m.compare("equal", y, m.lit(0, y))
    safe = where_common(m, none, m.lit(1, y), y) if name == "div" else y
    return where_common(m, none, m.lit(0, x), m.common(name, x, safe))


@tf_op("Xdivy", "Xlogy", "Xlog1py", images=True)
def x_times(m, x, y):
    """0 where x is 0, whatever y is."""
    if m.node.op == "Xdivy":
        value = m.common("div", x, y)
    else:
        value = m.common("mul", x, log1p(m, y) if m.node.op == "Xlog1py" else m.add("log", y))
    return where_common(m, m.compare("equal", x, m.lit(0, x)), m.lit(0, x), value)


@tf_op("Atan2", images=True)
def atan2(m, y, x):
    """The angle of (x, y), from the arc tangent of the quotient by quadrants."""
    zero, half = m.lit(0, x), m.lit(math.pi / 2, x)
    no_x = m.compare("equal", x, zero)
    below = m.compare("less", y, zero)
    angle = m.add("atan", m.common("div", y, where_common(m, no_x, m.lit(1, x), x)))
    turn = where_common(m, below, m.lit(-math.pi, x), m.lit(math.pi, x))
    angle = where_common(m, m.compare("less", x, zero), m.common("add", angle, turn), angle)
    level = m.compare("equal", y, zero)
    upright = where_common(m, below, m.lit(-math.pi / 2, x), half)
    upright = where_common(m, level, zero, upright)
    return where_common(m, no_x, upright, angle)


# -- any number of inputs, choices, types ----------------------------------------------------------


@tf_op("AddN", "AccumulateNV2", images=True)
def add_n(m, *xs):
    if not xs:
        raise Error("at least one input is required")
    result = xs[0]
    for x in xs[1:]:
        result = m.common("add", result, x)
    return result


@tf_op("SelectV2", images=True)
def select_v2(m, condition, x, y):
    return where_common(m, condition, x, y)


@tf_op("Select")
def select(m, condition, x, y):
    """A condition of rank 1 chooses among the rows of x and y."""
    rank = m.rank(x)
    if m.rank(condition) == 1 and rank > 1:
        condition = m.shaped(condition, [m.dims(condition)[0]] + [1] * (rank - 1))
    (condition, x, y), images = m.aligned([condition, x, y])
    return m.restored(where_common(m, condition, x, y), images)


@tf_op("Cast", images=True)
def cast(m, x, *, DstT):
    return cast_to(m, x, element_type(DstT))


@tf_op("Bitcast")
def bit_cast(m, x, *, type):
    return m.add("bit_cast", x, target_type=element_type(type))
