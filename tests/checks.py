"""Rows that say what an operator gives, and the checks that every row goes through.

A family file is mostly rows::

    CASES = [
        case("softmax", "x[n,3,4]", axis=1, reference=softmax, types="float half"),
        case("gather", "x[4,3]", ("i:int64[2]", [3, -1]), reference=np.take, axis=0),
    ]
    test_family = family(CASES)

``pytest tests/ops -k "softmax and gradient"`` runs one check of one operator.
"""

from __future__ import annotations

import itertools
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import jax
import numpy as np
import pytest

import migraphx
from migraphx.dims import Dim, hi, lo
from migraphx.ops.base import OPS, make
from migraphx.shape import Shape
from migraphx.types import FLOATS, as_type, dtype_of, from_dtype, limits, type_t
from translate.to_jax.interpret import fit_rank
from translate.to_jax.registry import LOWER, Context, NeedsValue, using

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
PLATFORMS = ("rocm", "cuda", "tpu")


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
    elif kind in TOLERANCE:
        rtol = TOLERANCE[kind] if tol is None else tol
        with np.errstate(all="ignore"):
            wanted = wanted.astype(got.dtype).astype(np.float64)  # overflows as the type does
        np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=rtol, atol=rtol / 10)
    else:
        np.testing.assert_array_equal(got, wanted.astype(got.dtype))


# -- the checks ----------------------------------------------------------------------------------


def check_values(row: Case) -> None:
    """Compiled numbers = reference, in the type and lens that the rule promises."""
    op, arrays, shapes = operator(row), arrays_of(row), shapes_of(row)
    promised = flat(op.compute_shape(shapes))
    got = run_op(op, arrays, shapes)
    assert len(got) == len(promised)
    for array, shape in zip(got, promised):
        assert array.dtype == dtype_of(shape.type())
        if not shape.dynamic():
            assert array.shape == tuple(shape.lens())
    if row.reference is None:
        return
    with np.errstate(all="ignore"):
        wanted = row.reference(*map(widen, arrays), **row.attributes)
    wanted = wanted if isinstance(wanted, (tuple, list)) else [wanted]
    for array, want in zip(got, wanted, strict=True):
        close(array, want, row.tol)


def check_layouts(row: Case) -> None:
    """The layout of inputs does not change the numbers, nor does being a literal."""
    op, arrays, kinds = operator(row), arrays_of(row), kinds_of(row)
    plain = run_op(op, arrays, shapes_of(row))
    _same(eval_op(op, arrays, shapes_of(row)), plain, row)
    turned, shapes = [], []
    for array, kind in zip(arrays, kinds):
        if array.ndim < 2:
            turned.append(array)
            shapes.append(shape_of(array, kind))
            continue
        order = tuple(reversed(range(array.ndim)))
        turned.append(np.ascontiguousarray(array.transpose(order)).transpose(order))
        shapes.append(Shape(kind, array.shape, permutation=order))
    if any(a.ndim > 1 for a in arrays):
        _same(_tried(run_op, op, turned, shapes), plain, row)
        _same(_tried(eval_op, op, turned, shapes), plain, row)
    _check_broadcast(op, arrays, kinds, row)


def _check_broadcast(op, arrays, kinds, row) -> None:
    """An input that repeats along its first axis, with stride 0 and written out."""
    if not any(a.ndim and a.shape[0] > 1 for a in arrays):
        return
    views = [np.broadcast_to(a[:1], a.shape) if a.ndim and a.shape[0] > 1 else a for a in arrays]
    shapes = [
        Shape(k, v.shape, [s // v.itemsize for s in v.strides])
        if v.ndim and 0 in v.strides
        else shape_of(v, k)
        for v, k in zip(views, kinds)
    ]
    written = [np.ascontiguousarray(v) if v.ndim else v for v in views]
    plain = _tried(eval_op, op, written, [shape_of(w, k) for w, k in zip(written, kinds)])
    if plain is not None:
        _same(_tried(eval_op, op, views, shapes), plain, row)


def _tried(function, op, arrays, shapes):
    """The results, or None where the operator refuses such a layout."""
    try:
        op.compute_shape(shapes)
    except migraphx.Error:
        return None
    return function(op, arrays, shapes)


def _same(got, wanted, row) -> None:
    if got is None:
        return
    for one, two in zip(got, wanted, strict=True):
        assert one.dtype == two.dtype
        close(one, two, row.tol)


def check_empty(row: Case) -> None:
    """With an axis of size 0 the operator refuses, or gives what its rule promises."""
    op = operator(row)
    names = sorted({d for i in row.inputs for d in i.dims}, key=str)
    for name in names:
        entries = [
            replace(i, dims=tuple(0 if d == name else d for d in i.dims)) for i in row.inputs
        ]
        if any(i.values is not None and not callable(i.values) and 0 in e.dims
               for i, e in zip(row.inputs, entries)):  # fmt: skip
            continue
        smaller = replace(row, inputs=tuple(entries))
        try:
            promised = op.compute_shape(shapes_of(smaller))
        except migraphx.Error:
            continue
        try:
            got = run_op(op, arrays_of(smaller), shapes_of(smaller))
        except migraphx.Error:
            continue
        for array, shape in zip(got, flat(promised), strict=True):
            assert array.dtype == dtype_of(shape.type())
            if not shape.dynamic():
                assert array.shape == tuple(shape.lens())


def check_shape_rule(row: Case) -> None:
    """Rule = `jax.eval_shape` of the lowering; dynamic rules agree with the static one."""
    op = operator(row)
    promised = flat(op.compute_shape(shapes_of(row)))
    found = abstract(row)
    if found is not None:
        for shape, aval in zip(promised, found, strict=True):
            assert aval.dtype == dtype_of(shape.type())
            if not shape.dynamic():
                assert aval.shape == (() if shape.is_rank0() else tuple(shape.lens()))
    if row.symbolic:
        _check_dynamic(row, op, ranges=False)
        _check_dynamic(row, op, ranges=True)


def _check_dynamic(row: Case, op, ranges: bool) -> None:
    """The rule at ranges or symbols against the static rule at several sizes.

    Sizes written as names must be accepted unless the operator is for static shapes only; rows
    without names have their equal sizes tied together and may be refused.
    """
    named = sorted({d for i in row.inputs for d in i.dims if isinstance(d, str)})
    if not named:
        ties = sorted({d for i in row.inputs for d in i.dims if d > 1})
        entries = [
            replace(i, dims=tuple(f"d{d}" if d > 1 else d for d in i.dims)) for i in row.inputs
        ]
        sizes = {f"d{d}": d for d in ties}
        if not sizes:
            return
    else:
        entries, sizes = list(row.inputs), {n: row.sizes[n] for n in named}
    tied = replace(row, inputs=tuple(entries), sizes=sizes)
    bounds = {n: (max(s - 1, 1), s + 4) for n, s in sizes.items()}
    dims = {n: Dim(*b) if ranges else Dim(f"{n}[{b[0]}..{b[1]}]") for n, b in bounds.items()}
    shapes = [
        Shape.make(k, tuple(dims.get(d, d) if isinstance(d, str) else d for d in i.dims))
        if i.dims else Shape.scalar_of(k)
        for i, k in zip(entries, kinds_of(row))
    ]  # fmt: skip
    if not named or type(op).static_only:
        try:
            dynamic = op.compute_shape(shapes)
        except migraphx.Error:
            return
    else:
        dynamic = op.compute_shape(shapes)
    for step in (0, 1, 3):
        values = {n: min(s + step, bounds[n][1]) for n, s in sizes.items()}
        try:
            static = op.compute_shape(shapes_of(tied, values))
        except migraphx.Error:
            continue
        for one, other in zip(flat(dynamic), flat(static), strict=True):
            _agree(one, other, values, exact=not ranges)


def _agree(dynamic: Shape, static: Shape, values: dict, exact: bool) -> None:
    assert dynamic.type() == static.type()
    if dynamic.dims is None:
        return
    assert len(dynamic.dims) == len(static.dims)
    for dim, size in zip(dynamic.dims, static.dims):
        low, high = (lo(size), hi(size))
        assert lo(dim) <= low
        assert high <= hi(dim)
        if exact and isinstance(dim, Dim) and dim.is_symbolic() and not isinstance(size, Dim):
            assert dim.expr.evaluate(values) == size


def function_of(row: Case, platform: str = "cpu"):
    """`(function of the traced inputs, their arrays)`; inputs needed as numbers are bound."""
    op, found = operator(row), LOWER[row.op]
    arrays = [fit_rank(a, s) for a, s in zip(arrays_of(row), shapes_of(row))]
    bound: set = set()
    extra = {"shape": op.compute_shape(shapes_of(row))} if found.shape else {}

    def function(*traced):
        rest = iter(traced)
        values = [a if k in bound else next(rest) for k, a in enumerate(arrays)]
        with using(Context(platform=platform)):
            try:
                return found.function(op, jax.numpy, *values, **extra)
            except NeedsValue as need:
                bound.add(next(k for k, v in enumerate(values) if v is need.value))
                raise

    def free():
        return [a for k, a in enumerate(arrays) if k not in bound]

    while True:
        try:
            jax.eval_shape(function, *free())
            return function, free()
        except NeedsValue:
            continue


def traceable(row: Case) -> bool:
    """True if the operator is computed by JAX: no host operator, no module to run."""
    found = LOWER.get(row.op)
    return found is not None and not found.host and not found.bodies


def abstract(row: Case):
    """Shapes and types that the lowering gives, by `jax.eval_shape`; None if it cannot say."""
    if not traceable(row):
        return None
    with jax.enable_x64(True):
        function, arrays = function_of(row)
        result = jax.eval_shape(function, *arrays)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def check_lowers(row: Case) -> None:
    """XLA's input can be made for every kind of accelerator (nothing is run)."""
    if not traceable(row):
        return
    for platform in PLATFORMS:
        with jax.enable_x64(True):
            function, arrays = function_of(row, platform)
            jax.export.export(jax.jit(function), platforms=[platform])(*arrays)


def check_gradient(row: Case) -> None:
    """`jax.grad` = the slope measured along a random direction, in float64."""
    if not (row.grad if row.grad is not None else gradient_makes_sense(row)):
        return
    with jax.enable_x64(True):
        double = replace(row, kind=type_t.double_type)
        function, arrays = function_of(double)
        places = [k for k, a in enumerate(arrays) if a.dtype == np.float64]
        rng = np.random.default_rng(1)
        steps = [rng.uniform(-1, 1, arrays[k].shape) for k in places]
        weights: dict = {}

        def total(*moving):
            values = list(arrays)
            for k, v in zip(places, moving):
                values[k] = v
            result = function(*values)
            result = result if isinstance(result, (tuple, list)) else [result]
            floats = [r for r in result if jax.numpy.issubdtype(r.dtype, jax.numpy.floating)]
            value = 0.0
            for k, r in enumerate(floats):
                w = weights.setdefault(k, np.random.default_rng(2 + k).uniform(0.5, 1, r.shape))
                value = value + (r * w).sum()
            return value

        points = [arrays[k] for k in places]
        slopes = jax.grad(total, tuple(range(len(points))))(*points)
        slope = sum(float((g * s).sum()) for g, s in zip(slopes, steps))
        eps = 1e-5
        ahead = total(*[p + eps * s for p, s in zip(points, steps)])
        behind = total(*[p - eps * s for p, s in zip(points, steps)])
        measured = float(ahead - behind) / (2 * eps)
    assert slope == pytest.approx(measured, rel=1e-4, abs=1e-5)


def gradient_makes_sense(row: Case) -> bool:
    """True for operators with a float input and a float result that have a derivative."""
    if row.kind != type_t.float_type or not traceable(row) or not OPS[row.op].differentiable:
        return False
    floats = (type_t.float_type, type_t.double_type)
    given = any(k in floats for k in kinds_of(row))
    outputs = flat(operator(row).compute_shape(shapes_of(row)))
    return given and any(s.type() in floats for s in outputs)


def check_attributes(row: Case) -> None:
    """The operator comes back from its attributes as files hold them."""
    op = operator(row)
    values = json.loads(json.dumps(op.values()))
    assert make(row.op, **values) == op
    assert list(values) == list(type(op).kinds)


CHECKS = {
    "values": check_values,
    "layouts": check_layouts,
    "empty": check_empty,
    "shape_rule": check_shape_rule,
    "lowers": check_lowers,
    "gradient": check_gradient,
    "attributes": check_attributes,
}
ONCE = ("layouts", "empty", "lowers", "gradient", "attributes")  # in the first type only


def expand(cases) -> list:
    """Every row in each of its types."""
    return [replace(row, kind=kind) for row in cases for kind in row.types]


def family(cases):
    """A test that sends every row through every check.

    The numbers and the rule are checked in all the types of a row, the rest in the first one.
    """
    rows = expand(cases)
    params = []
    for row, (name, check) in itertools.product(rows, CHECKS.items()):
        repeated = row.kind != row.types[0] and name in ONCE
        unasked = name == "gradient" and row.grad is False
        if name in row.skip or repeated or unasked:
            continue
        params.append(pytest.param(check, row, id=f"{row}-{name}"))

    @pytest.mark.parametrize(("check", "row"), params)
    def test_family(check, row):
        check(row)

    test_family.operators = {row.op for row in rows}
    return test_family


def refused(rows):
    """A test that every row `(op, attributes, input texts, part of the message)` is an `Error`."""

    @pytest.mark.parametrize(
        ("name", "attributes", "inputs", "message"),
        rows,
        ids=[f"{r[0]}-{r[3][:40]}" for r in rows],
    )
    def test_refused(name, attributes, inputs, message):
        row = case(name, *inputs, **attributes)
        with pytest.raises(migraphx.Error, match=re.escape(message)):
            operator(row).compute_shape(shapes_of(row))

    return test_refused
