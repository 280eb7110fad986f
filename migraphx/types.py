"""The element types in one table: number, names, NumPy type, size, limits.

Numbers, names and sizes are MIGraphX's own. Types from number 100 on are this project's: ONNX
has them, MIGraphX has not; they appear only in programs read from models that use them.
"""

from __future__ import annotations

import enum
from functools import cache

import ml_dtypes
import numpy as np

from .errors import NameLookupError, close_matches


class type_t(enum.IntEnum):
    """Element types of a shape, with MIGraphX's numbers."""

    bool_type = 0
    half_type = 1
    float_type = 2
    double_type = 3
    uint8_type = 4
    int8_type = 5
    uint16_type = 6
    int16_type = 7
    int32_type = 8
    int64_type = 9
    uint32_type = 10
    uint64_type = 11
    fp8e4m3fnuz_type = 12
    fp8e4m3fn_type = 13
    fp8e5m2_type = 14
    bf16_type = 15
    fp8e5m2fnuz_type = 16
    tuple_type = 17
    fp4x2_type = 18
    # This project's own, for ONNX only.
    int4_type = 100
    uint4_type = 101
    int2_type = 102
    uint2_type = 103
    fp4e2m1_type = 104
    fp6e2m3_type = 105
    fp6e3m2_type = 106
    fp8e8m0_type = 107
    complex64_type = 108
    complex128_type = 109
    string_type = 110


def _ml(name: str) -> np.dtype | None:
    kind = getattr(ml_dtypes, name, None)  # older ml_dtypes lack the newest small types
    return None if kind is None else np.dtype(kind)


# type: (NumPy type of one stored element, further accepted names)
_TABLE = {
    type_t.bool_type: (np.dtype(np.bool_), ("bool",)),
    type_t.half_type: (np.dtype(np.float16), ("half", "float16")),
    type_t.float_type: (np.dtype(np.float32), ("float", "float32")),
    type_t.double_type: (np.dtype(np.float64), ("double", "float64")),
    type_t.uint8_type: (np.dtype(np.uint8), ("uint8", "uint8_t")),
    type_t.int8_type: (np.dtype(np.int8), ("int8", "int8_t")),
    type_t.uint16_type: (np.dtype(np.uint16), ("uint16", "uint16_t")),
    type_t.int16_type: (np.dtype(np.int16), ("int16", "int16_t")),
    type_t.int32_type: (np.dtype(np.int32), ("int32", "int32_t", "int")),
    type_t.int64_type: (np.dtype(np.int64), ("int64", "int64_t")),
    type_t.uint32_type: (np.dtype(np.uint32), ("uint32", "uint32_t")),
    type_t.uint64_type: (np.dtype(np.uint64), ("uint64", "uint64_t")),
    type_t.fp8e4m3fnuz_type: (
        np.dtype(ml_dtypes.float8_e4m3fnuz),
        ("fp8e4m3fnuz", "float8_e4m3fnuz", "migraphx::fp8::fp8e4m3fnuz"),
    ),
    type_t.fp8e4m3fn_type: (
        np.dtype(ml_dtypes.float8_e4m3fn),
        ("fp8e4m3fn", "float8_e4m3fn", "migraphx::fp8::fp8e4m3fn"),
    ),
    type_t.fp8e5m2_type: (
        np.dtype(ml_dtypes.float8_e5m2),
        ("fp8e5m2", "float8_e5m2", "migraphx::fp8::fp8e5m2"),
    ),
    type_t.bf16_type: (np.dtype(ml_dtypes.bfloat16), ("bf16", "bfloat16")),
    type_t.fp8e5m2fnuz_type: (
        np.dtype(ml_dtypes.float8_e5m2fnuz),
        ("fp8e5m2fnuz", "float8_e5m2fnuz", "migraphx::fp8::fp8e5m2fnuz"),
    ),
    type_t.tuple_type: (None, ("tuple",)),
    type_t.fp4x2_type: (np.dtype(np.uint8), ("fp4x2",)),
    type_t.int4_type: (np.dtype(ml_dtypes.int4), ("int4",)),
    type_t.uint4_type: (np.dtype(ml_dtypes.uint4), ("uint4",)),
    type_t.int2_type: (_ml("int2"), ("int2",)),
    type_t.uint2_type: (_ml("uint2"), ("uint2",)),
    type_t.fp4e2m1_type: (_ml("float4_e2m1fn"), ("float4_e2m1fn",)),
    type_t.fp6e2m3_type: (_ml("float6_e2m3fn"), ("float6_e2m3fn",)),
    type_t.fp6e3m2_type: (_ml("float6_e3m2fn"), ("float6_e3m2fn",)),
    type_t.fp8e8m0_type: (_ml("float8_e8m0fnu"), ("float8_e8m0fnu",)),
    type_t.complex64_type: (np.dtype(np.complex64), ("complex64",)),
    type_t.complex128_type: (np.dtype(np.complex128), ("complex128",)),
    type_t.string_type: (np.dtype(object), ("string",)),
}

NAMES = {t.name: t for t in type_t} | {n: t for t, (_, names) in _TABLE.items() for n in names}
# fp4x2 and uint8 share a NumPy type; the plain one wins.
_FROM_DTYPE = {d: t for t, (d, _) in _TABLE.items() if d is not None and t != type_t.fp4x2_type}

SMALL_FLOATS = frozenset(
    (
        type_t.fp8e4m3fnuz_type,
        type_t.fp8e4m3fn_type,
        type_t.fp8e5m2_type,
        type_t.fp8e5m2fnuz_type,
    )
)
FLOATS = SMALL_FLOATS | {
    type_t.half_type,
    type_t.float_type,
    type_t.double_type,
    type_t.bf16_type,
}
SIGNED = frozenset((type_t.int8_type, type_t.int16_type, type_t.int32_type, type_t.int64_type))
UNSIGNED = frozenset(
    (type_t.uint8_type, type_t.uint16_type, type_t.uint32_type, type_t.uint64_type)
)
INTEGERS = SIGNED | UNSIGNED


def accepted_names() -> str:
    """The names that `type=` takes, for messages: MIGraphX's types only."""
    return ", ".join(t.name for t in type_t if t < 100)


@cache
def _from_name(name: str) -> type_t:
    if name in NAMES:
        return NAMES[name]
    raise NameLookupError(
        f"shape: unknown type {name!r}{close_matches(name, NAMES)}; accepted: {accepted_names()}, "
        "their short forms (float, int32, int32_t, bf16, ...) and NumPy types"
    )


def as_type(value) -> type_t:
    """The `type_t` meant by a name, a number, a `type_t` or anything NumPy takes as a type.

    Raises
    ------
    NameLookupError
        (an `Error` and an `IndexError`) if there is no such type; the text lists the names.
    """
    if isinstance(value, type_t):
        return value
    if isinstance(value, str):
        return _from_name(value)
    if isinstance(value, bool) or value is None:
        raise NameLookupError(f"shape: {value!r} is not a type; accepted: {accepted_names()}")
    if isinstance(value, (int, np.integer)):
        try:
            return type_t(int(value))
        except ValueError:
            raise NameLookupError(
                f"shape: there is no type number {value}; accepted: 0 to 18, {accepted_names()}"
            ) from None
    try:
        dtype = np.dtype(value)
    except TypeError:
        raise NameLookupError(
            f"shape: {value!r} is not a type; accepted: {accepted_names()}"
        ) from None
    return from_dtype(dtype)


def from_dtype(dtype) -> type_t:
    """The element type of a NumPy dtype; byte order is ignored, structure is refused."""
    dtype = np.dtype(dtype)
    found = _FROM_DTYPE.get(dtype if dtype.isnative else dtype.newbyteorder("="))
    if found is None:
        if dtype.kind in "US":
            return type_t.string_type
        raise NameLookupError(
            f"argument: Unsupported data type {dtype}; accepted: {accepted_names()}"
        )
    return found


def dtype_of(kind: type_t) -> np.dtype:
    """The NumPy dtype that stores one element of `kind`."""
    dtype = _TABLE[kind][0]
    if dtype is None:
        raise NameLookupError(f"{kind.name} has no NumPy type")
    return dtype


def size_of(kind: type_t) -> int:
    """Bytes of one stored element (0 for a tuple; fp4x2 stores two numbers in its one byte)."""
    return 0 if kind == type_t.tuple_type else _TABLE[kind][0].itemsize


def short_name(kind: type_t) -> str:
    """The name of the type in C, as `shape.type_string()` of MIGraphX spells it: `float_type`."""
    return kind.name


def limits(kind: type_t) -> tuple:
    """Lowest and highest finite value, as Python numbers."""
    if kind == type_t.bool_type:
        return False, True
    dtype = dtype_of(kind)
    if kind in FLOATS or kind >= 104:
        info = ml_dtypes.finfo(dtype)
        return float(info.min), float(info.max)
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def common_type(*kinds: type_t) -> type_t:
    """The type that arithmetic on `kinds` gives: C++'s usual conversions, folded left to right.

    Two different small floats, or one with any other type but double, give float.
    """
    result = kinds[0]
    for kind in kinds[1:]:
        result = _common(result, kind)
    return result


_RANK = {type_t.int32_type: 1, type_t.uint32_type: 2, type_t.int64_type: 3, type_t.uint64_type: 4}


def _common(a: type_t, b: type_t) -> type_t:
    if a == b:
        return a
    for strong in (type_t.double_type, type_t.float_type):
        if strong in (a, b):
            return strong
    if a in FLOATS or b in FLOATS:
        return type_t.float_type
    if {a, b} == {type_t.bool_type, type_t.int8_type}:
        return type_t.int8_type
    wide = max(a, b, key=lambda t: _RANK.get(t, 0))
    return wide if wide in _RANK else type_t.int32_type
