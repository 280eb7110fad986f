"""What an operator is: a frozen dataclass whose fields are its attributes.

Declaring one is subclassing `Op` with class keywords (`name=`, `inputs=`, …), annotated fields in
MIGraphX's order, and a method `rule` that computes the output shape. The constructor's checks,
`values()`, printing, files and equality all read the fields.
"""

from __future__ import annotations

import dataclasses
import enum
import typing

import numpy as np

from ..dims import Dim, as_dim, dim_to_value
from ..errors import Error, close_matches
from ..shape import Shape
from ..types import as_type, type_t

OPS: dict[str, type[Op]] = {}


class PoolingMode(enum.IntEnum):
    """How pooling reduces a window."""

    average = 0
    max = 1
    lpnorm = 2


class RnnDirection(enum.IntEnum):
    """The way a recurrent operator walks along its sequence."""

    forward = 0
    reverse = 1
    bidirectional = 2


class PaddingMode(enum.IntEnum):
    """Explicit padding, or the two automatic ones."""

    default_ = 0
    same_lower = 1
    same_upper = 2


class PadMode(enum.IntEnum):
    """What `pad` fills the border with."""

    constant_pad = 0
    reflect_pad = 1
    edge_pad = 2


# Enumerations that printing shows by name; the others print as numbers.
PRINTED_BY_NAME = (PoolingMode, RnnDirection)

# Names for annotations that say more than a Python type does.
Ints = tuple[int, ...]  # whole numbers
Floats = tuple[float, ...]
Axes = typing.NewType("Axes", tuple)  # axes, counted from the end if negative
Axis = typing.NewType("Axis", int)
Dims = typing.NewType("Dims", tuple)  # dynamic dimensions
Sizes = typing.NewType("Sizes", tuple)  # ints, with Dims where a size is symbolic
Ops = typing.NewType("Ops", tuple)  # nested operators (activation functions)
Values = typing.NewType("Values", dict)  # any tree
OptShape = typing.NewType("OptShape", object)
OptType = typing.NewType("OptType", object)
OptInt = typing.NewType("OptInt", object)


class OpMeta(type):
    """Lets `migraphx.op("add", ...)` make an operator while `op` is also their base class."""

    def __call__(cls, *args, **kwargs):
        if cls is Op:
            return make(*args, **kwargs)
        return super().__call__(*args, **kwargs)


class Op(metaclass=OpMeta):
    """An operator with its attributes: ``migraphx.op("softmax", axis=1)``.

    Parameters
    ----------
    name : str
        Name of the operator.
    **attributes
        Values for its attributes; the others keep their defaults.

    Raises
    ------
    Error
        for an unknown operator or attribute (naming close ones) and for values that do not fit.
    """

    pooling_mode = PoolingMode
    rnn_direction = RnnDirection
    padding_mode = PaddingMode
    pad_mode = PadMode

    op_name: typing.ClassVar[str] = ""
    arity: typing.ClassVar[tuple] = (0, None)
    bodies: typing.ClassVar[tuple] = (0, 0)
    static_only: typing.ClassVar[bool] = False
    same_type: typing.ClassVar[bool] = False
    own: typing.ClassVar[bool] = False  # this project's own operator, unknown to MIGraphX
    differentiable: typing.ClassVar[bool] = True

    def __init_subclass__(
        cls,
        name=None,
        inputs=None,
        bodies=None,
        static_only=None,
        same_type=None,
        own=None,
        **kwargs,
    ):
        super().__init_subclass__(**kwargs)
        for key, value in (("static_only", static_only), ("same_type", same_type), ("own", own)):
            if value is not None:
                setattr(cls, key, value)
        if inputs is not None:
            cls.arity = (inputs, inputs) if isinstance(inputs, int) else inputs
        if bodies is not None:
            cls.bodies = (bodies, bodies) if isinstance(bodies, int) else bodies
        if cls.__dict__.get("__annotations__") or not hasattr(cls, "kinds"):
            # Making a dataclass costs half a millisecond, so operators without attributes of
            # their own take everything from the class they come from.
            dataclasses.dataclass(frozen=True, repr=False, eq=False)(cls)
            hints = typing.get_type_hints(cls)
            cls.kinds = {f.name: hints[f.name] for f in dataclasses.fields(cls)}
        if name is not None:
            cls.op_name = name
            OPS[name] = only_one(f"operator {name}", OPS.get(name), cls)

    def __post_init__(self):
        for key, kind in self.kinds.items():
            value = getattr(self, key)
            object.__setattr__(self, key, coerce(kind, value, f"{self.op_name}: attribute {key}"))

    # -- public --------------------------------------------------------------------------------

    def name(self) -> str:
        """The name of the operator."""
        return self.op_name

    def values(self) -> dict:
        """The attributes as plain Python values: enumerations and bools as ints."""
        return {key: to_value(getattr(self, key)) for key in self.kinds}

    def __eq__(self, other):
        if not isinstance(other, Op):
            return NotImplemented
        return self.op_name == other.op_name and all(
            getattr(self, key) == getattr(other, key) for key in self.kinds
        )

    def __hash__(self):
        return hash((self.op_name, *(getattr(self, k) for k in self.kinds if k != "operator")))

    def __repr__(self):
        inner = "".join(f", {key}={value!r}" for key, value in self.values().items())
        return f"op({self.op_name!r}{inner})"

    # -- for shape rules -----------------------------------------------------------------------

    def rule(self, *shapes):
        """The output shape; subclasses write it."""
        raise Error(f"{self.op_name}: this operator has no shape of its own")

    def fail(self, message: str):
        """Refuses: raises an `Error` that starts with the operator's name."""
        raise Error(f"{self.op_name}: {message}")

    def compute_shape(self, shapes, mods=()) -> Shape:
        """Checks the number of inputs and their kind, then asks `rule`."""
        self.check_count(len(shapes), self.arity, "arguments")
        self.check_count(len(mods), self.bodies, "module arguments")
        if self.static_only and any(s.dynamic() for s in shapes):
            self.fail(f"Dynamic shapes not supported: {', '.join(map(repr, shapes))}")
        if self.same_type and len({s.type() for s in shapes}) > 1:
            self.fail(f"Types do not match: {', '.join(s.type_string() for s in shapes)}")
        if self.bodies != (0, 0):
            return self.rule(*shapes, mods=mods)
        return self.rule(*shapes)

    def check_count(self, got: int, allowed: tuple, what: str) -> None:
        low, high = allowed
        if low <= got and (high is None or got <= high):
            return
        if high is None:
            wanted = f"at least {low}"
        else:
            wanted = ", ".join(map(str, range(low, high + 1)))
        self.fail(f"Wrong number of {what}: expected {wanted} but given {got}")

    def axis_of(self, axis: int, rank: int, what: str = "axis") -> int:
        """`axis` counted from the front."""
        if axis >= rank:
            self.fail(f"{what}: value out of range! {axis} for {rank} dimensions")
        if axis < -rank:
            self.fail(f"{what}: attribute out of range! {axis} for {rank} dimensions")
        return axis + rank if axis < 0 else axis

    def axes_of(self, axes, rank: int, what: str = "axes") -> tuple:
        """Axes counted from the front, in the given order."""
        return tuple(self.axis_of(a, rank, what) for a in axes)

    def normalized(self, shapes) -> Op:
        """The operator with its axes counted from the front and paddings written out in full.

        What MIGraphX's pass normalize_ops does to attributes; overridden where there is more.
        """
        changes = {}
        for key, kind in self.kinds.items():
            if shapes and kind is Axis:
                changes[key] = self.axis_of(getattr(self, key), self.normal_rank(shapes), key)
            elif shapes and kind is Axes:
                changes[key] = self.axes_of(getattr(self, key), self.normal_rank(shapes), key)
        return dataclasses.replace(self, **changes) if changes else self

    def normal_rank(self, shapes) -> int:
        """The rank that axes count in; the first input's unless an operator adds axes."""
        return shapes[0].rank


def only_one(what: str, before, made):
    """`made`, unless something else is registered as `what`: the later would silently win.

    Running the same definition again (a notebook's cell, a reload) replaces it; functions made
    by other functions cannot be told apart by their names, so they count as different.
    """
    if before is not None:
        places = [f"{x.__module__}.{x.__qualname__}" for x in (before, made)]
        if places[0] != places[1] or "<" in places[0]:
            raise Error(f"{what}: registered twice, by {places[0]} and {places[1]}")
    return made


def define(name: str, base: type, doc: str, **keywords) -> type:
    """Declares an operator that adds only a name and a sentence to `base`."""
    return OpMeta(
        "".join(part.capitalize() for part in name.split("_")),
        (base,),
        {"__doc__": doc, "__module__": base.__module__},
        name=name,
        **keywords,
    )


def make(name: str, /, **attributes) -> Op:
    """The operator `name` with `attributes`; the function behind `migraphx.op`."""
    if not isinstance(name, str):
        raise TypeError(f"op: the name must be a str, got {type(name).__name__}")
    cls = OPS.get(name)
    if cls is None:
        raise Error(f"op: Operator not found: {name}{close_matches(name, OPS)}")
    for key in attributes:
        if key not in cls.kinds:
            known = ", ".join(cls.kinds) or "no attributes"
            raise Error(
                f"op: No key '{key}' in {name}{close_matches(key, cls.kinds)}; it has {known}"
            )
    return cls(**attributes)


# -- attribute values ----------------------------------------------------------------------------


def coerce(kind, value, who: str):
    """`value` as an attribute of type `kind`; an `Error` naming `who` if it does not fit."""
    try:
        return _COERCE[kind](value) if kind in _COERCE else _coerce_enum(kind, value)
    except Error as error:
        raise Error(f"{who}: {error}") from None
    except (TypeError, ValueError, OverflowError, KeyError, IndexError):
        raise Error(f"{who}: {value!r} does not fit, expected {_describe(kind)}") from None


def _describe(kind) -> str:
    if isinstance(kind, type) and issubclass(kind, enum.IntEnum):
        return "one of " + ", ".join(f"{m.name} ({m.value})" for m in kind)
    known = {
        int: "a whole number", float: "a number", bool: "True or False", str: "a text",
        Ints: "a list of whole numbers", Axes: "a list of whole numbers",
        Axis: "a whole number", Floats: "a list of numbers", type_t: "a type",
    }  # fmt: skip
    return known.get(kind, getattr(kind, "__name__", str(kind)))


def _int(value) -> int:
    if isinstance(value, (float, np.floating)) and not isinstance(value, bool):
        return int(value)  # C's conversion, as the reference does
    if isinstance(value, str):
        return int(value, 0) if value.strip() else int(value)
    return value.__index__() if hasattr(value, "__index__") else int(value)


def _float(value) -> float:
    if isinstance(value, (list, tuple, dict)):
        raise TypeError
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _listed(value) -> list:
    if value is None:
        return []
    if isinstance(value, np.ndarray):
        return value.reshape(-1).tolist()
    if isinstance(value, (list, tuple, set, range)):
        return list(value)
    if isinstance(value, dict) and not value:
        return []
    return [value]


def _size(value):
    if isinstance(value, Dim):
        return value
    return as_dim(value) if isinstance(value, (str, dict)) else _int(value)


def _bool(value) -> bool:
    return bool(_int(value))


def _str(value) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError
    return value


def _shape(value):
    if value is None or isinstance(value, Shape):
        return value
    if isinstance(value, dict):
        return Shape.from_value(value)
    raise TypeError


def _type(value) -> type_t:
    return as_type(value)


def _op(value) -> Op:
    if isinstance(value, Op):
        return value
    if isinstance(value, str):
        return make(value)
    return make(value["name"], **(value.get("operator") or {}))


def _coerce_enum(kind, value):
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        return kind[value]
    return kind(_int(value))


_COERCE = {
    int: _int,
    Axis: _int,
    float: _float,
    bool: _bool,
    str: _str,
    Ints: lambda v: tuple(map(_int, _listed(v))),
    Axes: lambda v: tuple(map(_int, _listed(v))),
    Floats: lambda v: tuple(map(_float, _listed(v))),
    Sizes: lambda v: tuple(map(_size, _listed(v))),
    Dims: lambda v: tuple(map(as_dim, _listed(v))),
    Ops: lambda v: tuple(map(_op, _listed(v))),
    Values: lambda v: dict(v or {}),
    Shape: _shape,
    OptShape: _shape,
    type_t: _type,
    OptType: lambda v: None if v is None else _type(v),
    OptInt: lambda v: None if v is None else _int(v),
}


def to_value(value):
    """An attribute as the plain value that files hold: ints, floats, texts, lists, dicts."""
    if isinstance(value, enum.Enum):
        return int(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Shape):
        return value.to_value()
    if isinstance(value, Dim):
        return dim_to_value(value)
    if isinstance(value, Op):
        return {"name": value.op_name, "operator": value.values()}
    if isinstance(value, (tuple, list)):
        return [to_value(v) for v in value]
    return value


def is_default(op: Op, key: str) -> bool:
    """True if an attribute has its declared default."""
    if not dataclasses.is_dataclass(op):  # ref::op, which has none
        return False
    field = next(f for f in dataclasses.fields(op) if f.name == key)
    default = field.default
    if default is dataclasses.MISSING:
        factory = field.default_factory
        default = None if factory is dataclasses.MISSING else factory()
    return getattr(op, key) == coerce(op.kinds[key], default, key)
