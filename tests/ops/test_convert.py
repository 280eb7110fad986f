"""Operators between element types: ONNX's Cast, packing two fp4 numbers in a byte."""

import ml_dtypes
import numpy as np
from checks import case, family, refused
from rows import dtype_of

from migraphx.types import as_type, limits

FLOATS = "float half bf16 double fp8e4m3fn fp8e4m3fnuz fp8e5m2 fp8e5m2fnuz"
INTS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64"
# Ties, ends of the types, what is beyond them, and what is no number.
EDGES = [
    0, -0.0, 0.4, 0.5, 1.5, 2.5, -1.5, -0.5, 3.7, 127, 128, 129, -128, -129, 240, 247, 248, 255,
    256, 448, 463, 464, 465, 480, 57344, 61439, 61440, 65504, 65519, 65520, 2.0**31, -(2.0**31),
    2.0**32, 2.0**63, 2.0**64, 1e30, -1e30, np.inf, -np.inf, np.nan, 1.0625, 1.0625 + 2.0**-40,
    2.0**-9, 2.0**-10, 2.0**-10 + 2.0**-50, 2.0**-18,
]  # fmt: skip
WHOLE = [
    0,
    1,
    -1,
    2,
    7,
    8,
    9,
    15,
    16,
    17,
    127,
    128,
    255,
    256,
    -128,
    -129,
    2**24 + 1,
    2**31,
    -(2**40),
]


def to_whole(x, target_type, **_):
    """Cut towards zero between the ends of the type; NaN is 0."""
    kind = as_type(target_type)
    low, high = limits(kind)
    values = [0 if v != v else max(low, min(high, v)) for v in x.reshape(-1).tolist()]
    return np.array([int(v) for v in values], object).astype(dtype_of(kind)).reshape(x.shape)


def low_bits(x, target_type):
    """Python's whole numbers, cut to the bits of the type."""
    dtype = dtype_of(as_type(target_type))
    info = ml_dtypes.iinfo(dtype)
    low, span = int(info.min), int(info.max) - int(info.min) + 1
    values = [(int(v) - low) % span + low for v in x.reshape(-1).tolist()]
    return np.array(values, np.int64 if low else np.uint64).astype(dtype).reshape(x.shape)


def nearest(x, target_type, saturate=True):
    """Searched among all 256 numbers of an 8-bit float, halves to the even one."""
    dtype = dtype_of(as_type(target_type))
    table = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
    codes = np.flatnonzero(np.isfinite(table) & ~np.signbit(table))
    sizes = table[codes]
    beyond = np.inf if np.isinf(table).any() else np.nan  # without `saturate`
    end = sizes[-1] + (sizes[-1] - sizes[-2]) / 2  # the highest number is even or odd
    found = []
    for v in x.astype(np.float64).reshape(-1).tolist():
        size = abs(v)
        if v != v or (not saturate and (size > end or (size == end and codes[-1] % 2))):
            found.append(v if v != v else np.copysign(beyond, v))
            continue
        away = np.abs(sizes - min(size, sizes[-1]))
        best = np.flatnonzero(away == away.min())
        pick = best[0] if len(best) == 1 or codes[best[0]] % 2 == 0 else best[1]
        found.append(np.copysign(sizes[pick], v))
    return np.array(found).reshape(x.shape)


def to_float(x, target_type):
    with np.errstate(all="ignore"):
        return x.astype(dtype_of(as_type(target_type)))


def power_of_two(x, target_type, round_mode="up", saturate=True):
    """Searched among the powers of two that fp8e8m0 holds; infinities have none."""
    powers = 2.0 ** np.arange(-127, 129)  # the last one is beyond
    found = []
    for v in np.abs(x.astype(np.float64)).reshape(-1).tolist():
        if v != v or v == np.inf:
            found.append(np.nan)
            continue
        above, below = powers[powers >= v][0], powers[powers <= v][-1]
        up = round_mode == "up" or (round_mode == "nearest" and v - below >= above - v)
        found.append(above if up else below)
        if found[-1] == powers[-1]:
            found[-1] = powers[-2] if saturate else np.nan
    return np.array(found).reshape(x.shape)


EXPONENTS = [
    0.75,
    1,
    1.25,
    1.4999999,
    1.5,
    1.75,
    -3,
    6,
    1e30,
    2.5e38,
    3.4e38,
    np.inf,
    np.nan,
    2.0**-126,
]
CAST = "onnx::cast"
HALVES = np.array([-9, -6, -5, -3.5, -2.5, -1.75, -1.25, -0.75, -0.25, -0.2,
                   0.2, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.1, 7])  # fmt: skip


def packed(x, axis=-1):
    """The codes that ml_dtypes rounds to, the even places in the low half."""
    codes = x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    codes = np.moveaxis(codes, axis, -1)
    return np.moveaxis(codes[..., ::2] | (codes[..., 1::2] << 4), -1, axis)


def unpacked(x, axis=-1):
    table = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    x = np.moveaxis(x, axis, -1)
    pairs = np.stack([table[x & 15], table[x >> 4]], -1)
    return np.moveaxis(pairs.reshape(*x.shape[:-1], -1), -1, axis)


def any_byte(rng, lens):
    return rng.integers(0, 256, lens)


CASES = [
    *(case(CAST, (f"x[{len(EDGES)}]", EDGES), target_type=kind, reference=to_whole, types=FLOATS)
      for kind in INTS.split()),
    *(case(CAST, (f"x[{len(WHOLE)}]", WHOLE), target_type=kind, reference=low_bits, types=INTS)
      for kind in (*INTS.split(), "int4", "uint4")),
    *(case(CAST, (f"x[{len(EDGES)}]", EDGES), target_type=kind, reference=nearest,
           types=" ".join(k for k in FLOATS.split() if k != kind),
           tol=1e-12, grad=False, **more)
      for kind in FLOATS.split() if kind.startswith("fp8") for more in ({}, {"saturate": False})),
    *(case(CAST, (f"x[{len(EDGES)}]", EDGES), target_type=kind, reference=to_float, types=FLOATS,
           tol=1e-12, grad=False)
      for kind in FLOATS.split() if not kind.startswith("fp8")),
    *(case(CAST, (f"x[{len(WHOLE)}]", WHOLE), target_type=kind, reference=to_float, types=INTS)
      for kind in ("float", "double", "half", "bf16")),
    *(case(CAST, (f"x[{len(EXPONENTS)}]", EXPONENTS), target_type="fp8e8m0_type", round_mode=mode,
           saturate=saturate, reference=power_of_two, types="float double", tol=1e-12, grad=False)
      for mode in ("up", "down", "nearest") for saturate in (True, False)),
    case(CAST, ("x[4]", [0, 0.5, -3, np.nan]), target_type="bool", types="float half double",
         reference=lambda x, target_type: x != 0, grad=False),
    case(CAST, "x[n,3]", target_type="float", reference=to_float, types="bool int8 half"),
    case(CAST, "x[]", target_type="int32", reference=to_whole, types="float double"),
    case("pack_fp4", "x[n,4]", reference=packed, types="float half bf16 double"),
    case("pack_fp4", ("x[20]", HALVES), reference=packed, types="float half bf16 double"),
    case("pack_fp4", "x[4,n,3]", axis=0, reference=packed, types="float half"),
    case("pack_fp4", "x[3,6,2]", axis=-2, reference=packed),
    case("unpack_fp4", ("x:fp4x2[n,3]", any_byte), reference=unpacked),
    case("unpack_fp4", ("x:fp4x2[16,16]", np.arange(256).reshape(16, 16)), reference=unpacked),
    case("unpack_fp4", ("x:fp4x2[2,3,5]", any_byte), axis=0, reference=unpacked),
    case("unpack_fp4", ("x:fp4x2[2,3,5]", any_byte), axis=-2, reference=unpacked),
]  # fmt: skip

test_family = family(CASES)

test_refused = refused(
    [
        (CAST, {"target_type": "half", "round_mode": "sideways"}, ["x[2]"], "round_mode is up"),
        (CAST, {"target_type": "string"}, ["x[2]"], "onnx::cast_text"),
        ("pack_fp4", {"axis": 1}, ["x[2,3]"], "an even number is needed"),
        ("pack_fp4", {"axis": 2}, ["x[2,4]"], "value out of range"),
        ("unpack_fp4", {"axis": -2}, ["x:fp4x2[4]"], "attribute out of range"),
        ("unpack_fp4", {}, ["x:uint8[4]"], "fp4x2_type is needed"),
    ]
)
