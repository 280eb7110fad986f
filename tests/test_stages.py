"""Programs that are cut into stages: values needed while tracing, host operators, control flow."""

import threading

import numpy as np
import pytest

import migraphx
from migraphx.dims import Dim
from migraphx.ops.base import Op
from migraphx.shape import Shape
from translate.to_jax import executable as executable_module
from translate.to_jax import sizes as sizes_module
from translate.to_jax.registry import known_ints, lower


class Head(Op, name="test::head", inputs=2, own=True):
    """The first rows of x, as many as an integer input says."""

    def rule(self, x, count):
        return Shape.make(x.type(), (Dim(0, 2**62), *x.dims[1:]))


class Nonnegative(Op, name="test::nonnegative", inputs=1, own=True):
    """The elements that are not negative: how many there are depends on the data."""

    def rule(self, x):
        return Shape.make(x.type(), (Dim(0, 2**62),))


class Sum(Op, name="test::sum", inputs=1, own=True):
    """The sum of all elements."""

    def rule(self, x):
        return Shape.scalar_of(x.type())


class Whole(Op, name="test::whole", inputs=1, own=True):
    """Truncated to int64."""

    def rule(self, x):
        return x.with_type(Shape.type_t.int64_type)


@lower("test::head")
def head(op, xp, x, count):
    return x[: known_ints(count)[0]]


@lower("test::nonnegative", host=True)
def nonnegative(op, xp, x):
    return x[x >= 0]


@lower("test::sum")
def total(op, xp, x):
    return x.sum(dtype=x.dtype)


@lower("test::whole")
def whole(op, xp, x):
    return x.astype(xp.int64)


FLOAT = migraphx.shape(type="float", lens=[6])
COUNT = migraphx.shape(type="int64", lens=[1], strides=[0])
FLAG = migraphx.shape(type="bool", lens=[1], strides=[0])
X = np.array([1, -2, 3, -4, 5, -6], np.float32)


@pytest.fixture
def compiled(monkeypatch):
    """A list that grows with every stage that is traced."""
    stages = []
    before = executable_module.Executable.stage

    def counted(self, *args, **kwargs):
        stages.append(args[0].name())
        return before(self, *args, **kwargs)

    monkeypatch.setattr(executable_module.Executable, "stage", counted)
    return stages


@pytest.fixture(params=["numpy", "jit"])
def host(request, monkeypatch):
    """Bodies run by the host on little data: by NumPy, and compiled like those on much."""
    if request.param == "jit":
        monkeypatch.setattr(executable_module, "KNOWN_LIMIT", -1)
    return request.param


def begin(**params):
    """A program with parameters; gives it, its main module and the parameters."""
    program = migraphx.program()
    main = program.get_main_module()
    return program, main, [main.add_parameter(name, shape) for name, shape in params.items()]


def run(program, **values):
    return [r.numpy() for r in program.run(values)]


def test_count_from_a_parameter_is_read_and_cached(compiled):
    program, main, (x, n) = begin(x=FLOAT, n=COUNT)
    part = main.add("test::head", main.add("add", x, x), n)
    main.add_return([main.add("mul", part, part)])
    program.compile("ref")
    np.testing.assert_array_equal(run(program, x=X, n=np.int64(2))[0], (2 * X[:2]) ** 2)
    first = len(compiled)
    np.testing.assert_array_equal(run(program, x=X, n=np.int64(2))[0], (2 * X[:2]) ** 2)
    np.testing.assert_array_equal(run(program, x=-X, n=np.int64(2))[0], (2 * X[:2]) ** 2)
    assert len(compiled) == first
    np.testing.assert_array_equal(run(program, x=X, n=np.int64(4))[0], (2 * X[:4]) ** 2)
    assert len(compiled) == first + 1  # only what comes behind the number


def test_two_cuts_in_a_row(compiled):
    program, main, (x,) = begin(x=FLOAT)
    inner = main.add(
        "test::head", x, main.add("test::whole", main.add("test::sum", main.add("abs", x)))
    )
    again = main.add(
        "test::head", inner, main.add("test::whole", main.add("test::sum", main.add("relu", inner)))
    )
    main.add_return([again, main.add("add", x, x)])
    values = np.array([1, -1, 0.5, 0.5, 0, 0], np.float32)
    for scale in (1, 1, 2):
        n = int(np.abs(values * scale).sum())
        want = (values * scale)[:n]
        want = want[: int(np.maximum(want, 0).sum())]
        got = run(program, x=values * scale)
        np.testing.assert_array_equal(got[0], want)
        np.testing.assert_array_equal(got[1], values * scale * 2)
    count = len(compiled)
    run(program, x=values)
    assert len(compiled) == count


def test_host_operator_between_stages(compiled):
    program, main, (x,) = begin(x=FLOAT)
    kept = main.add("test::nonnegative", main.add("add", x, x))
    main.add_return([main.add("mul", kept, kept), kept])
    for data in (X, X, -X, np.abs(X)):
        twice = 2 * data
        want = twice[twice >= 0]
        got = run(program, x=data)
        np.testing.assert_array_equal(got[0], want**2)
        np.testing.assert_array_equal(got[1], want)
    count = len(compiled)
    run(program, x=X)
    assert len(compiled) == count


def test_result_is_the_needed_parameter_itself():
    program, main, (x, n) = begin(x=FLOAT, n=COUNT)
    main.add_return([n, main.add("test::head", x, n), x])
    got = run(program, x=X, n=np.int64(3))
    assert got[0].reshape(()) == 3
    np.testing.assert_array_equal(got[1], X[:3])
    np.testing.assert_array_equal(got[2], X)


def test_static_program_is_one_stage(compiled):
    program, main, (x,) = begin(x=FLOAT)
    main.add_return([main.add("add", x, x)])
    program.compile("ref")
    run(program, x=X)
    run(program, x=X)
    assert compiled == ["main"]


# -- if ------------------------------------------------------------------------------------------


def branches(program, x, then, other):
    """Two modules that return what the functions make of `x`."""
    made = []
    for name, function in (("then", then), ("other", other)):
        body = program.create_module(name)
        body.add_return(function(body, x))
        made.append(body)
    return made


def test_if_on_data_is_one_stage(compiled):
    program, main, (x, c) = begin(x=FLOAT, c=FLAG)
    mods = branches(
        program,
        x,
        lambda m, v: [m.add("add", v, v)],
        lambda m, v: [m.add("mul", v, v)],
    )
    main.add_return([main.add("get_tuple_elem", main.add("if", c, mods=mods), index=0)])
    program.compile("ref")
    np.testing.assert_array_equal(run(program, x=X, c=np.bool_(True))[0], X + X)
    np.testing.assert_array_equal(run(program, x=X, c=np.bool_(False))[0], X * X)
    assert compiled == ["main"]


def test_if_with_branches_of_different_sizes():
    program, main, (x, c) = begin(x=FLOAT, c=FLAG)
    two = main.add_literal(np.array(2, np.int64))
    mods = branches(
        program, x, lambda m, v: [m.add("test::head", v, two)], lambda m, v: [m.add("mul", v, v)]
    )
    main.add_return([main.add("get_tuple_elem", main.add("if", c, mods=mods), index=0)])
    for _ in range(2):
        np.testing.assert_array_equal(run(program, x=X, c=np.bool_(True))[0], X[:2])
        np.testing.assert_array_equal(run(program, x=X, c=np.bool_(False))[0], X * X)


@pytest.mark.parametrize("inside", ["outer", "inner"])
def test_cut_in_a_branch(inside, compiled, host):
    program, main, (x, c, n) = begin(x=FLOAT, c=FLAG, n=COUNT)

    def then(m, v):
        if inside == "outer":
            return [m.add("test::head", m.add("add", v, v), n)]
        return [m.add("test::nonnegative", m.add("add", v, v))]

    mods = branches(program, x, then, lambda m, v: [m.add("mul", v, v)])
    result = main.add("get_tuple_elem", main.add("if", c, mods=mods), index=0)
    main.add_return([main.add("add", result, result)])
    twice = X + X
    want = twice[:3] if inside == "outer" else twice[twice >= 0]
    for _ in range(2):
        got = run(program, x=X, c=np.bool_(True), n=np.int64(3))[0]
        np.testing.assert_array_equal(got, 2 * want)
        got = run(program, x=X, c=np.bool_(False), n=np.int64(3))[0]
        np.testing.assert_array_equal(got, 2 * X * X)
    count = len(compiled)
    run(program, x=X, c=np.bool_(True), n=np.int64(3))
    assert len(compiled) == count


def test_known_condition_runs_one_branch_alone():
    program, main, (x,) = begin(x=FLOAT)
    yes = main.add_literal(np.array(True))
    mods = branches(
        program, x, lambda m, v: [m.add("add", v, v)], lambda m, v: [m.add("test::nonnegative", v)]
    )
    main.add_return([main.add("get_tuple_elem", main.add("if", yes, mods=mods), index=0)])
    np.testing.assert_array_equal(run(program, x=X)[0], X + X)


def test_inputs_feed_parameters_by_name():
    program, main, (x, c) = begin(x=FLOAT, c=FLAG)
    mods = []
    for name in ("then", "other"):
        body = program.create_module(name)
        b, a = body.add_parameter("b", FLOAT), body.add_parameter("a", FLOAT)
        pair = (a, b) if name == "then" else (b, a)
        body.add_return([body.add("sub", *pair)])
        mods.append(body)
    twice = main.add("add", x, x)
    main.add_return([main.add("get_tuple_elem", main.add("if", c, twice, x, mods=mods), index=0)])
    np.testing.assert_array_equal(run(program, x=X, c=np.bool_(True))[0], X)
    np.testing.assert_array_equal(run(program, x=X, c=np.bool_(False))[0], -X)


# -- loop ----------------------------------------------------------------------------------------


def loop_program(step, name="loop", trip=None, carried=FLOAT, start=True, **attributes):
    """A loop over one carried value; `step(body, i, v)` gives condition, value and rows."""
    program, main, params = begin(x=carried, **({"n": COUNT} if trip is None else {}))
    body = program.create_module("body")
    i = body.add_parameter("i", COUNT)
    c = body.add_parameter("c", FLAG)
    v = body.add_parameter("v", carried)
    body.add_return(step(body, i, c, v))
    count = params[1] if trip is None else main.add_literal(np.array(trip, np.int64))
    go = main.add_literal(np.array(start))
    loop = main.add(name, count, go, params[0], mods=[body], **attributes)
    parts = [main.add("get_tuple_elem", loop, index=k) for k in range(len(loop.shape().subs))]
    main.add_return(parts)
    return program


def doubling(m, i, c, v):
    twice = m.add("add", v, v)
    return [c, twice, v]


@pytest.mark.parametrize("trip", [0, 1, 3, 40, 300])
def test_loop_of_known_count(trip, compiled):
    program = loop_program(lambda m, i, c, v: [c, m.add("relu", v), m.add("add", v, v)],
                           trip=trip, max_iterations=300)  # fmt: skip
    program.compile("ref")
    final, rows = run(program, x=X)
    want = np.zeros((300, 6), np.float32)
    value = X
    for k in range(trip):
        want[k], value = value + value, np.maximum(value, 0)
    np.testing.assert_array_equal(final, value)
    np.testing.assert_array_equal(rows, want)
    assert compiled == ["main"]


@pytest.mark.parametrize("name", ["loop", "onnx::loop"])
@pytest.mark.parametrize("backwards", [False, True])
def test_loop_of_computed_count(name, backwards, compiled):
    directions = [1] if backwards else []
    program = loop_program(doubling, name, max_iterations=5, scan_output_directions=directions)
    for trip in (3, 0, 5, 9):
        final, rows = run(program, x=X, n=np.int64(trip))
        done = min(trip, 5)
        want = np.stack([X * 2**k for k in range(done)]) if done else np.zeros((0, 6), np.float32)
        rest = np.zeros((5 - done, 6), np.float32)
        if backwards:
            want = want[::-1]
        if name == "loop":
            want = np.concatenate([rest, want] if backwards else [want, rest])
        np.testing.assert_array_equal(final, X * 2**done)
        np.testing.assert_array_equal(rows, want)
    if name == "loop":
        assert compiled == ["main"]


@pytest.mark.parametrize("name", ["loop", "onnx::loop"])
@pytest.mark.parametrize("rows", [False, True])
def test_loop_ended_by_its_condition(name, rows, host):
    limit = np.array(100, np.float32)

    def step(m, i, c, v):
        twice = m.add("add", v, v)
        size = m.add("test::sum", m.add("abs", twice))
        more = m.add("test::whole", m.add("relu", m.add("sub", m.add_literal(limit), size)))
        return [m.add("test::truth", more), twice] + ([v] if rows else [])

    program = loop_program(step, name, trip=50, max_iterations=50)
    got = run(program, x=X)
    value, found = X, []
    while True:
        found.append(value)
        value = value + value
        if np.abs(value).sum() > 99:
            break
    np.testing.assert_array_equal(got[0], value)
    if rows:
        want = np.stack(found)
        if name == "loop":
            want = np.concatenate([want, np.zeros((50 - len(found), 6), np.float32)])
        np.testing.assert_array_equal(got[1], want)


class Truth(Op, name="test::truth", inputs=1, own=True):
    """True where not zero."""

    def rule(self, x):
        return x.with_type(Shape.type_t.bool_type)


@lower("test::truth")
def truth(op, xp, x):
    return x != 0


class Join(Op, name="test::join", inputs=2, own=True):
    """Two vectors, one behind the other."""

    def rule(self, x, y):
        return Shape.make(x.type(), (Dim(0, 2**62),))


@lower("test::join")
def join(op, xp, x, y):
    return xp.concatenate([x, y])


@pytest.mark.parametrize("trip", [None, 2, 900])
def test_carried_value_that_grows(trip, host):
    if (trip, host) == (900, "jit"):
        pytest.skip("compiles for 900 sizes")
    shape = migraphx.shape(type="float", lens=[1])

    def step(m, i, c, v):
        return [c, m.add("test::join", v, m.add_literal(np.ones(1, np.float32)))]

    program = loop_program(step, "onnx::loop", trip=trip, carried=shape)
    for n in (trip,) if trip else (0, 3, 4, 3):
        values = {"x": np.zeros(1, np.float32)} | ({} if trip else {"n": np.int64(n)})
        (got,) = run(program, **values)
        np.testing.assert_array_equal(got, [0] + [1] * n)


@pytest.mark.parametrize("trip", [3, 200])
def test_iteration_number_decides_a_size(trip):
    def step(m, i, c, v):
        part = m.add("test::head", v, i)
        return [c, m.add("add", v, v), m.add("test::sum", part)]

    program = loop_program(step, "onnx::loop", trip=trip)
    small = np.ones(6, np.float32) / 8
    final, rows = run(program, x=small * 0)
    assert rows.shape == (trip,)
    final, rows = run(program, x=small)
    want, value = [], small
    with np.errstate(all="ignore"):
        for k in range(trip):
            want.append(value[:k].sum(dtype=np.float32))
            value = value + value
    np.testing.assert_array_equal(rows, np.array(want, np.float32))
    np.testing.assert_array_equal(final, value)


def test_cut_in_a_loop_body(compiled, host):
    def step(m, i, c, v):
        kept = m.add("test::nonnegative", v)
        return [c, m.add("sub", v, m.add("abs", v)), m.add("test::sum", kept)]

    program = loop_program(step, "onnx::loop")
    for _ in range(2):
        final, rows = run(program, x=X, n=np.int64(3))
        np.testing.assert_array_equal(rows, [9, 0, 0])
        np.testing.assert_array_equal(final, np.where(X > 0, 0, 8 * X))
    count = compiled.count("body")
    run(program, x=-X, n=np.int64(2))  # as many elements are kept: only main is traced anew
    run(program, x=X, n=np.int64(3))
    assert compiled.count("body") == count
    assert (count == 0) == (host == "numpy")


def nested(inner_step, trip_outer=None, trip_inner=3):
    """A loop in a loop, the inner one of known count."""
    program, main, (x, n) = begin(x=FLOAT, n=COUNT)
    outer, inner = program.create_module("outer"), program.create_module("inner")
    i, c, v = (outer.add_parameter(k, s) for k, s in (("i", COUNT), ("c", FLAG), ("v", FLOAT)))
    j, d, w = (inner.add_parameter(k, s) for k, s in (("j", COUNT), ("d", FLAG), ("w", FLOAT)))
    inner.add_return(inner_step(inner, i, v, j, d, w, x))
    count = outer.add_literal(np.array(trip_inner, np.int64))
    result = outer.add("onnx::loop", count, c, v, mods=[inner])
    parts = [outer.add("get_tuple_elem", result, index=k) for k in range(2)]
    outer.add_return([c, parts[0], parts[1]])
    trips = n if trip_outer is None else main.add_literal(np.array(trip_outer, np.int64))
    yes = main.add_literal(np.array(True))
    loop = main.add("onnx::loop", trips, yes, x, mods=[outer])
    main.add_return([main.add("get_tuple_elem", loop, index=k) for k in range(2)])
    return program


@pytest.mark.parametrize("trip", [None, 2, 60])
@pytest.mark.parametrize("cut", [False, True])
def test_nested_loops(trip, cut, host):
    def step(m, i, v, j, d, w, x):
        part = m.add("test::nonnegative", w) if cut else w
        return [d, m.add("relu", m.add("add", w, x)), m.add("test::sum", part)]

    program = nested(step, trip)
    data = X / 100
    for n in (trip,) if trip else (2, 1):
        final, rows = run(program, x=data, n=np.int64(n))
        value, want = data, []
        for _ in range(n):
            row = []
            for _ in range(3):
                row.append(value[value >= 0].sum() if cut else value.sum())
                value = np.maximum(value + data, 0)
            want.append(row)
        np.testing.assert_allclose(final, value, rtol=1e-5)
        np.testing.assert_allclose(rows, np.array(want), rtol=1e-4, atol=1e-6)


def test_weights_are_read_inside_bodies():
    weight = np.arange(400, dtype=np.float32)
    shape = migraphx.shape(type="float", lens=[400])
    program, main, (x, n) = begin(x=shape, n=COUNT)
    outside = main.add_literal(weight)
    body = program.create_module("body")
    _, c, v = (body.add_parameter(k, s) for k, s in (("i", COUNT), ("c", FLAG), ("v", shape)))
    inside = body.add_literal(weight * 2)
    kept = body.add("test::nonnegative", v)
    body.add_return(
        [c, body.add("add", body.add("add", v, inside), outside), body.add("test::sum", kept)]
    )
    yes = main.add_literal(np.array(True))
    loop = main.add("onnx::loop", n, yes, x, mods=[body])
    main.add_return([main.add("get_tuple_elem", loop, index=0)])
    for _ in range(2):
        got = run(program, x=np.zeros(400, np.float32), n=np.int64(2))[0]
        np.testing.assert_array_equal(got, weight * 6)


# -- threads, copies -----------------------------------------------------------------------------


def test_threads_run_at_once():
    program, main, (x, n) = begin(x=FLOAT, n=COUNT)
    part = main.add("test::head", main.add("add", x, x), n)
    kept = main.add("test::nonnegative", part)
    main.add_return([main.add("mul", kept, kept)])
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(12):
            count, data = int(rng.integers(0, 7)), rng.normal(size=6).astype(np.float32)
            twice = (data + data)[:count]
            try:
                got = run(program, x=data, n=np.int64(count))[0]
                np.testing.assert_array_equal(got, twice[twice >= 0] ** 2)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_old_stages_are_forgotten(monkeypatch):
    monkeypatch.setattr(sizes_module, "MAX_STAGES", 3)
    program, main, (x, n) = begin(x=FLOAT, n=COUNT)
    main.add_return([main.add("add", *[main.add("test::head", x, n)] * 2)])
    for count in (0, 1, 2, 3, 4, 5, 6, 0, 1):
        np.testing.assert_array_equal(run(program, x=X, n=np.int64(count))[0], 2 * X[:count])


def dynamic_program(dims):
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float_type", dyn_dims=dims))
    main.add_return([main.add("exp", x)])
    return program


@pytest.mark.parametrize(
    "dims", [[migraphx.dynamic_dimension(1, 8, {2, 4}), "3"], ["n[1..8]{2, 4}", "3"]]
)
def test_optimals_are_compiled_in_the_background(dims):
    if dims[1] == "3" and not isinstance(dims[0], str):
        dims = [dims[0], migraphx.dynamic_dimension(3, 3)]
    program = dynamic_program(dims)
    program.compile("ref", advance_backend_options={"compile_optimals": True})
    executable = program._executable
    executable.background.join(60)
    assert sorted(executable.fast) == [((2, 3),), ((4, 3),)]
    before = [len(c) for c in executable.roots.values()]
    program.run({"x": np.ones((4, 3), np.float32)})
    assert [len(c) for c in executable.roots.values()] == before
    program.run({"x": np.ones((5, 3), np.float32)})
    assert [len(c) for c in executable.roots.values()] == [before[0] + 1]


def test_without_the_option_nothing_is_compiled_for_optimals():
    program = dynamic_program(["n[1..8]{2, 4}"])
    program.compile("ref")
    assert not program._executable.fast
    assert program._executable.background is None


def test_how_many_sizes_stay_is_an_option():
    program = dynamic_program(["n[1..8]"])
    program.compile("ref", advance_backend_options={"shape_cache_size": 2})
    for n in (1, 2, 3, 4, 3, 4):
        (got,) = program.run({"x": np.full(n, 1, np.float32)})
        np.testing.assert_allclose(np.asarray(got), np.full(n, np.e), rtol=1e-6)
    assert len(program._executable.fast) == 2
    assert [len(c) for c in program._executable.roots.values()] == [2]
    for bad in (0, -1, "many", True):
        with pytest.raises(migraphx.Error, match="shape_cache_size must be a positive"):
            program.compile("ref", advance_backend_options={"shape_cache_size": bad})


def test_a_sweep_over_sizes_compiles_each_once(monkeypatch):
    import jax

    count, original = [], jax.stages.Lowered.compile
    monkeypatch.setattr(
        jax.stages.Lowered, "compile", lambda s, *a, **k: count.append(1) or original(s, *a, **k)
    )
    program = dynamic_program(["n[1..8]", "4"])
    program.compile("ref")
    for sweep in range(2):
        for n in range(1, 9):
            program.run({"x": np.ones((n, 4), np.float32)})
        assert len(count) == 8, sweep
