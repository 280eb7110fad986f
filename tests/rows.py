"""What a row of an operator is: its inputs, their numbers and shapes, and how it is run.

`checks` holds what every row goes through, and explains how a family file is written.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import migraphx
from migraphx.ops.base import make
from migraphx.shape import Shape
from migraphx.types import FLOATS, as_type, dtype_of, from_dtype, limits, type_t

# Relative tolerance by type; the absolute one is a tenth of it.
TOLERANCE = {
    type_t.half_type: 2e-3,
    type_t.bf16_type: 1.6e-2,
    type_t.float_type: 1e-5,
    type_t.double_type: 1e-10,
    type_t.fp8e4m3fnuz_type: 0.13,
    type_t.fp8e4m3fn_type: 0.13,
    type_t.fp8e5m2_type: 0.26,
    type_t.fp8e5m2fnuz_type: 0.26,
}
SIZES = {"n": 2, "m": 3, "k": 4, "h": 5, "w": 6, "c": 3, "s": 4}  # of the names in "x[n,3]"


@dataclass(frozen=True)
class Input:
    """One input of a row: its name, type and dims, and how its values are made."""

    name: str
    kind: type_t | None  # None: the type that the row is tried with
    dims: tuple  # ints and names of sizes; () is rank 0
    values: object = None  # array, list or function of (generator, lens)


@dataclass(frozen=True)
class Case:
    """A row; see `case`."""

    op: str
    inputs: tuple
    attributes: dict
    reference: Callable | None = None
    tol: float | None = None
    types: tuple = (type_t.float_type,)
    symbolic: bool = True
    grad: bool | None = None
    skip: frozenset = frozenset()
    sizes: dict = field(default_factory=dict)
    kind: type_t = type_t.float_type

    def __str__(self):
        inputs = ",".join(
            f"{i.name}[{','.join(map(str, i.dims))}]" + (f":{i.kind.name[:-5]}" if i.kind else "")
            for i in self.inputs
        )
        attributes = "".join(f"-{k}={_short(v)}" for k, v in self.attributes.items())
        return f"{self.op}-{inputs}-{self.kind.name.removesuffix('_type')}{attributes}"


def _short(value) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return getattr(value, "name", None) or str(value)


def case(
    op: str,
    *inputs,
    reference=None,
    tol=None,
    types="float",
    symbolic=True,
    grad=None,
    skip="",
    at=None,
    **attributes,
) -> Case:
    """One row.

    Parameters
    ----------
    op : str
        Name of the operator.
    *inputs : str, array, or (str, values)
        ``"x[2,3]"``, ``"x[n,3]"`` (sizes by name, tried at several values), ``"s[]"`` (rank 0),
        ``"i:int64[4]"`` or ``"i[4]:int64"`` (a type of its own). `values` is a list, an array or
        a function of a NumPy generator and the lens; without it numbers between -2 and 2.
    reference : function, optional
        Of the NumPy inputs (small floats as float64) and the attributes; gives one array or a
        tuple. Without it only the agreement of the ways to compute is checked.
    tol : float, optional
        Relative tolerance instead of that of the output's type.
    types : str
        The types tried for the inputs that have none of their own.
    symbolic : bool
        False: the sizes are not tried as ranges and expressions.
    grad : bool, optional
        True or False: check the gradient or do not; default: if inputs and outputs are floats
        and the operator is differentiable.
    skip : str
        Names of checks that make no sense for the row: ``"empty layouts"``.
    at : dict, optional
        Values of named sizes, beside those of `SIZES`.
    """
    return Case(
        op,
        tuple(_input(text, k) for k, text in enumerate(inputs)),
        attributes,
        reference,
        tol,
        tuple(as_type(t) for t in types.split()),
        symbolic,
        grad,
        frozenset(skip.split()),
        SIZES | (at or {}),
    )


def _input(given, place: int) -> Input:
    text, values = given if isinstance(given, tuple) else (given, None)
    if not isinstance(text, str):
        array = np.asarray(text)
        return Input(f"x{place}", from_dtype(array.dtype), array.shape, array)
    found = re.fullmatch(r"(\w+)(?::(\w+))?\[([^]]*)\](?::(\w+))?", text)
    if found is None:
        raise ValueError(f'{text!r} is not an input such as "x[2,3]" or "i:int64[4]"')
    name, before, dims, behind = found.groups()
    kind = before or behind
    return Input(
        name,
        as_type(kind) if kind else None,
        tuple(int(d) if d.strip().isdigit() else d.strip() for d in dims.split(",") if d.strip()),
        values,
    )


# -- values and shapes of a row ------------------------------------------------------------------


def numbers(lens, kind: type_t, seed: int = 0) -> np.ndarray:
    """Reproducible numbers of a type: floats between -2 and 2, small integers of both signs."""
    rng = np.random.default_rng(seed)
    dtype = dtype_of(kind)
    if kind == type_t.bool_type:
        return rng.random(lens) < 0.5
    if kind in (type_t.complex64_type, type_t.complex128_type):
        return (rng.uniform(-2, 2, lens) + 1j * rng.uniform(-2, 2, lens)).astype(dtype)
    if kind in FLOATS or 104 <= kind <= 107:
        return rng.uniform(-2, 2, lens).astype(dtype)
    low, high = limits(kind)
    return rng.integers(max(low, -6), min(high, 12), lens, endpoint=True).astype(dtype)


def lens_of(entry: Input, sizes: dict) -> tuple:
    """The sizes of an input."""
    return tuple(sizes[d] if isinstance(d, str) else d for d in entry.dims)


def arrays_of(row: Case, sizes: dict | None = None) -> list:
    """The values of a row's inputs."""
    sizes = row.sizes if sizes is None else sizes
    seed = zlib.crc32(str(row).encode())
    made = []
    for place, entry in enumerate(row.inputs):
        kind = entry.kind if entry.kind is not None else row.kind
        lens = lens_of(entry, sizes)
        if entry.values is None:
            array = numbers(lens, kind, seed + place)
        else:
            given = entry.values
            if callable(given):
                given = given(np.random.default_rng(seed + place), lens)
            array = np.asarray(given).astype(dtype_of(kind))
        made.append(np.broadcast_to(array, lens) if array.shape != lens else array)
    return [np.ascontiguousarray(a) if a.ndim else a for a in made]


def shape_of(array: np.ndarray, kind: type_t | None = None) -> Shape:
    """The standard shape of an array; rank 0 is lens {1}, strides {0}."""
    kind = from_dtype(array.dtype) if kind is None else kind
    return Shape.make(kind, array.shape) if array.ndim else Shape.scalar_of(kind)


def kinds_of(row: Case) -> list:
    """The types of a row's inputs."""
    return [i.kind if i.kind is not None else row.kind for i in row.inputs]


def shapes_of(row: Case, sizes: dict | None = None) -> list:
    """The static shapes of a row's inputs."""
    sizes = row.sizes if sizes is None else sizes
    return [
        Shape.make(kind, lens_of(i, sizes)) if i.dims else Shape.scalar_of(kind)
        for i, kind in zip(row.inputs, kinds_of(row))
    ]


def operator(row: Case):
    """The operator of a row."""
    return make(row.op, **row.attributes)


def flat(shape: Shape) -> list:
    """A shape, or those of a tuple."""
    return list(shape.subs) or [shape]


# -- running -------------------------------------------------------------------------------------


def single(op, shapes):
    """A program of one operator with parameters x0, x1, ..."""
    program = migraphx.program()
    main = program.get_main_module()
    inputs = [main.add_parameter(f"x{k}", s) for k, s in enumerate(shapes)]
    ins = main.add_instruction(op, inputs)
    return program, ins


def run_op(op, arrays, shapes=None) -> list:
    """The results of one operator, compiled for `ref`, as NumPy arrays."""
    shapes = [shape_of(a) for a in arrays] if shapes is None else shapes
    program, _ = single(op, shapes)
    program.compile(migraphx.get_target("ref"))
    return parts(program.run({f"x{k}": a for k, a in enumerate(arrays)})[0])


def eval_op(op, arrays, shapes=None) -> list | None:
    """The results of one operator on literals, or None if it has no constant value."""
    shapes = [shape_of(a) for a in arrays] if shapes is None else shapes
    program = migraphx.program()
    main = program.get_main_module()
    inputs = [
        main.literal(migraphx.argument.of(a if a.ndim else a.reshape(1), s))
        for a, s in zip(arrays, shapes)
    ]
    value = main.add_instruction(op, inputs).eval()
    return None if value is None else parts(value)


def parts(argument) -> list:
    """The arrays of an argument or of its parts."""
    return [p.numpy() for p in argument.parts] if argument.parts else [argument.numpy()]


def widen(array: np.ndarray) -> np.ndarray:
    """Small floats as float64, so that a reference computes precisely; others as they are."""
    small = array.dtype.isbuiltin == 2 or array.dtype in (np.float16, np.float32)
    if small and from_dtype(array.dtype) < 100:
        return array.astype(np.float64)
    return array


def close(got, wanted, tol=None) -> None:
    """Asserts equal numbers: exactly for integers, within the type's tolerance for floats."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape or got.size == wanted.size == 1, (got.shape, wanted.shape)
    wanted = wanted.reshape(got.shape)
    kind = from_dtype(got.dtype)
    if got.dtype.kind == "c":
        np.testing.assert_allclose(got, wanted, rtol=tol or 1e-5)
    elif kind in TOLERANCE or 104 <= kind <= 107:  # floats of 4, 6 and 8 bits: exactly
        rtol = TOLERANCE.get(kind, 0) if tol is None else tol
        with np.errstate(all="ignore"):
            wanted = wanted.astype(got.dtype).astype(np.float64)  # overflows as the type does
        np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=rtol, atol=rtol / 10)
    else:
        np.testing.assert_array_equal(got, wanted.astype(got.dtype))
