"""The checks that every row of a family file goes through; `rows` says what a row is.

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
from dataclasses import replace

import jax
import numpy as np
import pytest
from rows import (
    Case,
    arrays_of,
    case,
    close,
    eval_op,
    flat,
    kinds_of,
    operator,
    run_op,
    shape_of,
    shapes_of,
    widen,
)

import migraphx
from migraphx.dims import Dim, hi, lo
from migraphx.ops.base import OPS, make
from migraphx.shape import Shape
from migraphx.types import dtype_of, type_t
from translate.to_jax.interpret import fit_rank
from translate.to_jax.registry import LOWER, Context, NeedsValue, using

PLATFORMS = ("rocm", "cuda", "tpu")


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
