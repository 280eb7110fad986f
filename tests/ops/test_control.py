"""Operators that run modules: if, loop, groups, fused operators; slices of a scan.

Each is computed twice, on parameters and on literals, where branches and counts are known.
"""

import numpy as np
import pytest
from checks import case, family, refused
from rows import close, flat, numbers, parts, shape_of

import migraphx
from migraphx.dims import Dim
from migraphx.shape import Shape
from migraphx.types import as_type, dtype_of

APART = (
    "if", "loop", "onnx::loop", "group", "pointwise", "fused_reduce", "split_fused_reduce",
    "fused_concat", "select_module", "onnx::gradient",
)  # fmt: skip
TYPES = ("float", "half", "bf16", "double", "int8", "int32", "int64")


# -- building ------------------------------------------------------------------------------------


def module(program, name, shapes, function, names=None):
    """A module with parameters of `shapes` and the results of `function(module, *parameters)`."""
    body = program.create_module(name)
    names = names or [f"x{k}" for k in range(len(shapes))]
    params = [body.add_parameter(n, s) for n, s in zip(names, shapes, strict=True)]
    body.add_return(function(body, *params))
    return body


def ran(build, *arrays, shapes=None, literal=()):
    """The results of `build(program, main, *inputs)`, an instruction, on parameters.

    Inputs at the places `literal` are constants. The shape that the rule gives is compared.
    """
    shapes = shapes or [shape_of(a) for a in arrays]
    program = migraphx.program()
    main = program.get_main_module()
    inputs = [
        main.add_literal(migraphx.argument.of(a if a.ndim else a.reshape(1), s))
        if k in literal
        else main.add_parameter(f"x{k}", s)
        for k, (a, s) in enumerate(zip(arrays, shapes, strict=True))
    ]
    ins = build(program, main, *inputs)
    promised = flat(ins.shape())
    main.add_return([ins])
    program.compile(migraphx.get_target("ref"))
    given = {f"x{k}": a for k, a in enumerate(arrays) if k not in literal}
    results = program.run(given)
    got = parts(results[0]) if len(results) == 1 else [np.asarray(r) for r in results]
    for array, shape in zip(got, promised, strict=True):
        assert array.dtype == dtype_of(shape.type())
        if not shape.dynamic():
            assert array.shape == tuple(shape.lens())
    return got


def both_ways(build, *arrays, shapes=None):
    """Results on parameters; those on literals are the same."""
    got = ran(build, *arrays, shapes=shapes)
    known = ran(build, *arrays, shapes=shapes, literal=range(len(arrays)))
    for one, two in zip(got, known, strict=True):
        close(one, two)
    return got


def compare(got, wanted):
    for one, two in zip(got, wanted, strict=True):
        close(one, np.asarray(two))


def turned(array):
    """The same numbers in the opposite memory order, and their shape."""
    order = tuple(reversed(range(array.ndim)))
    moved = np.ascontiguousarray(array.transpose(order)).transpose(order)
    return moved, migraphx.shape(
        type=shape_of(array).type_string(),
        lens=array.shape,
        strides=[s // array.itemsize for s in moved.strides],
    )


# -- if ------------------------------------------------------------------------------------------


def if_of(then, other):
    def build(program, main, cond, *xs):
        shapes = [x.shape() for x in xs]
        mods = [module(program, "then", shapes, then), module(program, "other", shapes, other)]
        return main.add("if", cond, *xs, mods=mods)

    return build


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("cond", [True, False])
def test_if(kind, cond):
    x, y = (numbers((2, 3), as_type(kind), k) for k in (1, 2))
    build = if_of(lambda m, a, b: [m.add("add", a, b), a], lambda m, a, b: [m.add("sub", a, b), b])
    got = both_ways(build, np.array(cond), x, y)
    compare(got, (x + y, x) if cond else (x - y, y))


@pytest.mark.parametrize("cond", [True, False])
def test_if_of_different_sizes_gives_those_of_the_branch(cond):
    x = numbers((4, 3), as_type("float"))
    half = {"axes": [0], "starts": [0], "ends": [2]}
    build = if_of(lambda m, a: [m.add("slice", a, **half)], lambda m, a: [m.add("neg", a)])
    compare(both_ways(build, np.array(cond), x), [x[:2] if cond else -x])


@pytest.mark.parametrize("cond", [True, False])
def test_if_of_empty_tensors_and_transposed_ones(cond):
    build = if_of(lambda m, a, b: [m.add("abs", a), b], lambda m, a, b: [m.add("neg", a), b])
    nothing, x = np.zeros((0, 3), np.float32), numbers((4, 3), as_type("float"))
    moved, shape = turned(x)
    flag = np.array(cond)
    got = both_ways(build, flag, moved, nothing, shapes=[shape_of(flag), shape, shape_of(nothing)])
    compare(got, [np.abs(x) if cond else -x, nothing])


def test_if_refuses():
    program = migraphx.program()
    main = program.get_main_module()
    cond = main.add_parameter("c", migraphx.shape(type="bool", lens=[1], strides=[0]))
    x = main.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    one = module(program, "one", [x.shape()], lambda m, a: [a])
    two = module(program, "two", [x.shape()], lambda m, a: [a, a])
    whole = module(program, "whole", [x.shape()],
                   lambda m, a: [m.add("convert", a, target_type="int32")])  # fmt: skip
    with pytest.raises(migraphx.Error, match="Wrong number of module arguments"):
        main.add("if", cond, x, mods=[one])
    with pytest.raises(migraphx.Error, match="output shapes differ: 1 and 2 results"):
        main.add("if", cond, x, mods=[one, two])
    with pytest.raises(migraphx.Error, match="output shapes differ"):
        main.add("if", cond, x, mods=[one, whole])
    with pytest.raises(migraphx.Error, match="Wrong number of arguments"):
        main.add("if", mods=[one, one])


# -- loop ----------------------------------------------------------------------------------------


def loop_of(name, **attributes):
    """v, rows of v: v = v + v + i until the sum of v is 100 or more."""

    def step(m, i, c, v):
        whole = m.add("multibroadcast", m.add("convert", i, target_type=v.shape().type_string()),
                      out_lens=v.shape().lens())  # fmt: skip
        new = m.add("add", m.add("add", v, v), whole)
        most = m.add("reduce_max", new, axes=[0])
        limit = m.add_literal(np.array([100], dtype_of(v.shape().type())))
        more = m.add("convert", m.add("less", most, limit), target_type="bool")
        return [more, new, v]

    def build(program, main, trip, cond, v):
        shapes = [trip.shape(), cond.shape(), v.shape()]
        body = module(program, "body", shapes, step, ["i", "c", "v"])
        return main.add(name, trip, cond, v, mods=[body], **attributes)

    return build


def looped(trip, cond, v, exact, most=10, backwards=False):
    """The same in Python."""
    rows, k = [], 0
    while cond and k < min(int(trip), most):
        rows.append(v)
        v = (v + v + np.array(k).astype(v.dtype)).astype(v.dtype)
        cond, k = bool(v.max() < 100), k + 1
    if not exact:
        rows += [np.zeros_like(v)] * (most - len(rows))
    rows = rows[::-1] if backwards else rows
    return v, np.array(rows, v.dtype).reshape(len(rows), *v.shape)


@pytest.mark.parametrize("name", ["loop", "onnx::loop"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("trip", "cond"), [(0, True), (1, True), (3, True), (9, True), (3, False)])
def test_loop(name, kind, trip, cond):
    v = np.array([1, 2, 3], dtype_of(as_type(kind)))
    got = both_ways(loop_of(name), np.array(trip), np.array(cond), v)
    compare(got, looped(trip, cond, v, name == "onnx::loop"))


@pytest.mark.parametrize("name", ["loop", "onnx::loop"])
@pytest.mark.parametrize("trip", [0, 2, 4, 50])
def test_loop_backwards_and_cut_off(name, trip):
    """Rows from the end; no more iterations than `max_iterations`."""
    v = np.array([0, 1], np.float32)
    attributes = {"max_iterations": 4, "scan_output_directions": [1]}
    got = both_ways(loop_of(name, **attributes), np.array(trip), np.array(True), v)
    compare(got, looped(trip, True, v, name == "onnx::loop", 4, backwards=True))


def test_loop_whose_values_grow():
    """Only ONNX's loop may change sizes: a value that doubles its length at each iteration."""

    def build(program, main, trip, cond, v):
        anything = migraphx.shape(type="float", dyn_dims=[Dim(0, 100)])
        body = module(program, "body", [trip.shape(), cond.shape(), anything],
                      lambda m, i, c, x: [c, m.add("concat", x, x, axis=0)],
                      ["i", "c", "v"])  # fmt: skip
        return main.add("onnx::loop", trip, cond, v, mods=[body])

    got = both_ways(build, np.array(3), np.array(True), np.array([1, 2], np.float32))
    compare(got, [np.tile(np.array([1, 2], np.float32), 8)])


@pytest.mark.parametrize("name", ["loop", "onnx::loop"])
def test_loop_refuses(name):
    program = migraphx.program()
    main = program.get_main_module()
    trip = main.add_literal(np.array(3))
    cond = main.add_literal(np.array(True))
    x = main.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    short = module(
        program, "short", [trip.shape(), cond.shape(), x.shape()], lambda m, i, c, v: [c]
    )
    with pytest.raises(migraphx.Error, match="must give a condition and 1 carried values"):
        main.add(name, trip, cond, x, mods=[short])
    with pytest.raises(migraphx.Error, match="Wrong number of module arguments"):
        main.add(name, trip, cond, x)
    with pytest.raises(migraphx.Error, match="Wrong number of arguments"):
        main.add(name, trip, mods=[short])


def test_loop_keeps_the_type_of_what_it_carries():
    program = migraphx.program()
    main = program.get_main_module()
    trip, cond = main.add_literal(np.array(3)), main.add_literal(np.array(True))
    x = main.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    body = module(program, "body", [trip.shape(), cond.shape(), x.shape()],
                  lambda m, i, c, v: [c, m.add("convert", v, target_type="half")])  # fmt: skip
    with pytest.raises(migraphx.Error, match="output shapes differ"):
        main.add("loop", trip, cond, x, mods=[body])


# -- modules as one operator ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("results", [1, 2])
def test_group(kind, results):
    x, y = (numbers((2, 3), as_type(kind), k) for k in (1, 2))

    def build(program, main, *xs):
        body = module(program, "body", [v.shape() for v in xs],
                      lambda m, a, b: [m.add("add", a, b), m.add("sub", a, b)][:results])  # fmt: skip
        return main.add("group", *xs, mods=[body], tag="attention")

    compare(both_ways(build, x, y), [x + y, x - y][:results])


def scalar(x):
    return migraphx.shape(type=x.shape().type_string(), lens=[1], strides=[0])


def pointwise_of(function):
    def build(program, main, *xs):
        body = module(program, "scalars", [scalar(x) for x in xs], function)
        return main.add("pointwise", *xs, mods=[body])

    return build


@pytest.mark.parametrize("kind", TYPES)
def test_pointwise(kind):
    """A module of scalar operators with a literal, on several elements."""
    x, y = (numbers((2, 3), as_type(kind), k) for k in (1, 2))
    dtype = x.dtype

    def function(m, a, b):
        return [m.add("mul", m.add("add", a, b), m.add_literal(np.array(2, dtype)))]

    wide = [v.astype(np.float64) if kind in ("half", "bf16") else v for v in (x, y)]
    got = both_ways(pointwise_of(function), x, y)
    compare(got, [((wide[0] + wide[1]).astype(dtype) * dtype.type(2)).astype(dtype)])


def test_pointwise_of_layouts():
    """Transposed and repeated inputs, several results, and a result that needs no input."""
    x, y = (numbers((3, 4), as_type("float"), k) for k in (1, 2))
    moved, shape = turned(x)
    row = np.broadcast_to(y[:1], y.shape)
    shapes = [shape, migraphx.shape(type="float", lens=[3, 4], strides=[0, 1])]

    def function(m, a, b):
        return [m.add("sub", a, b), m.add_literal(np.array(7, np.float32)), b]

    got = ran(pointwise_of(function), moved, row, shapes=shapes)
    compare(got, [x - row, np.full((3, 4), 7, np.float32), row])
    nothing = np.zeros((0, 4), np.float32)
    compare(both_ways(pointwise_of(function), nothing, nothing), [nothing] * 3)


def test_pointwise_refuses():
    program = migraphx.program()
    main = program.get_main_module()
    x, y = (main.add_parameter(f"x{k}", migraphx.shape(type="float", lens=[2 + k])) for k in (0, 1))
    body = module(program, "scalars", [scalar(x)] * 2, lambda m, a, b: [m.add("add", a, b)])
    with pytest.raises(migraphx.Error, match="expected 2 but given 1"):
        main.add("pointwise", x, mods=[body])
    with pytest.raises(migraphx.Error, match="Dimensions do not match"):
        main.add("pointwise", x, y, mods=[body])
    with pytest.raises(migraphx.Error, match="Wrong number of module arguments"):
        main.add("pointwise", x, y)


@pytest.mark.parametrize("name", ["fused_reduce", "split_fused_reduce"])
@pytest.mark.parametrize("kind", ["float", "half", "double", "int32"])
def test_fused_reduce(name, kind):
    x, y = (numbers((2, 3, 4), as_type(kind), k) for k in (1, 2))

    def build(program, main, *xs):
        body = module(
            program,
            "body",
            [v.shape() for v in xs],
            lambda m, a, b: [m.add("reduce_sum", m.add("mul", a, b), axes=[1])],
        )
        return main.add(name, *xs, mods=[body], axes=[1])

    wide = np.float64 if kind != "int32" else np.int32
    compare(both_ways(build, x, y), [(x.astype(wide) * y).sum(1, keepdims=True)])
    (moved, shape), (other, same) = turned(x), turned(y)
    compare(ran(build, moved, other, shapes=[shape, same]),
            [(x.astype(wide) * y).sum(1, keepdims=True)])  # fmt: skip


def test_fused_reduce_keeps_the_memory_order_of_its_inputs():
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float", lens=[2, 3, 4], strides=[1, 2, 6]))
    body = module(program, "body", [x.shape()], lambda m, a: [m.add("reduce_sum", a, axes=[1])])
    assert main.add("fused_reduce", x, mods=[body], axes=[1]).shape().strides() == [1, 2, 2]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", ["float", "half", "int32"])
def test_fused_concat(axis, kind):
    """neg(x) and a + b side by side, then relu(. - c)."""
    x, a, b = (numbers((2, 3), as_type(kind), k) for k in (1, 2, 3))
    joined = np.concatenate([-x, a + b], axis)
    c = numbers(joined.shape, as_type(kind), 4)

    def build(program, main, *xs):
        one, two = (
            module(program, "one", [scalar(xs[0])], lambda m, v: [m.add("neg", v)]),
            module(program, "two", [scalar(xs[0])] * 2, lambda m, v, w: [m.add("add", v, w)]),
        )
        last = module(program, "last", [scalar(xs[0])] * 2,
                      lambda m, v, w: [m.add("relu", m.add("sub", v, w))])  # fmt: skip
        return main.add("fused_concat", *xs, mods=[one, two, last], axis=axis)

    compare(both_ways(build, x, a, b, c), [np.maximum(joined - c, 0)])


def test_fused_concat_refuses():
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float", lens=[2, 3]))
    one, two, last = (module(program, name, [scalar(x)], lambda m, v: [m.add("neg", v)])
                      for name in ("one", "two", "last"))  # fmt: skip
    with pytest.raises(migraphx.Error, match="expected 2 but given 1"):
        main.add("fused_concat", x, mods=[one, two, last])
    with pytest.raises(migraphx.Error, match="value out of range"):
        main.add("fused_concat", x, x, mods=[one, two, last], axis=2)
    with pytest.raises(migraphx.Error, match="Wrong number of module arguments"):
        main.add("fused_concat", x, mods=[one])


# -- select_module -------------------------------------------------------------------------------


def selecting(kind="float"):
    """One module doubles batches of 1, the other negates batches of 3."""
    program = migraphx.program()
    main = program.get_main_module()
    sizes = Dim(1, 4), Dim(2, 2)
    x = main.add_parameter("x", migraphx.shape(type=kind, dyn_dims=sizes))
    mods = [
        module(program, "one", [migraphx.shape(type=kind, lens=[1, 2])],
               lambda m, v: [m.add("add", v, v)]),
        module(program, "three", [migraphx.shape(type=kind, lens=[3, 2])],
               lambda m, v: [m.add("neg", v)]),
    ]  # fmt: skip
    out = Shape.tuple_of([migraphx.shape(type=kind, dyn_dims=sizes)])
    ins = main.add("select_module", x, mods=mods, output_dyn_shapes=out)
    assert ins.shape() == out
    main.add_return([main.add("get_tuple_elem", ins, index=0)])
    program.compile(migraphx.get_target("ref"))
    return program


@pytest.mark.parametrize("kind", TYPES)
def test_select_module(kind):
    program = selecting(kind)
    one, three = (numbers((n, 2), as_type(kind), n) for n in (1, 3))
    close(program.run({"x": one})[0].numpy(), one + one)
    close(program.run({"x": three})[0].numpy(), -three)


def test_select_module_without_a_fitting_one():
    with pytest.raises(migraphx.Error, match=r"no module takes float32\[2, 2\]"):
        selecting().run({"x": np.zeros((2, 2), np.float32)})


# -- scan_slice, gradient ------------------------------------------------------------------------


def one_slice(x, index, axis=0, direction=0):
    k = int(index.reshape(-1)[0])
    k = x.shape[axis] - 1 - k if direction else k
    return np.expand_dims(np.take(x, k, axis), axis)


ALL = "float half bf16 double fp8e4m3fn int8 uint8 int32 int64 bool"
CASES = [
    case("scan_slice", "x[3,4]", ("i:int64[1]", [1]), reference=one_slice, types=ALL),
    case("scan_slice", "x[3,4,2]", ("i:int32[]", 0), axis=1, direction=1, reference=one_slice),
    case("scan_slice", "x[3,4,2]", ("i:int64[]", 3), axis=-2, reference=one_slice, types=ALL),
    case("scan_slice", "x[3,4,2]", ("i:int64[]", 1), axis=-1, direction=1, reference=one_slice),
]
test_family = family(CASES)

test_refused = refused(
    [
        ("scan_slice", {"axis": 2}, ["x[3,4]", "i:int64[]"], "value out of range"),
        ("scan_slice", {"axis": -3}, ["x[3,4]", "i:int64[]"], "attribute out of range"),
        ("scan_slice", {}, ["x[3,4]"], "Wrong number of arguments"),
    ]
)


def test_scan_slice_is_a_view():
    op = migraphx.op("scan_slice", axis=1)
    index = migraphx.shape(type="int64", lens=[1])
    made = op.compute_shape([migraphx.shape(type="float", lens=[3, 4], strides=[1, 3]), index])
    assert (made.lens(), made.strides()) == ([3, 1], [1, 3])


def test_scan_slice_outside():
    """An error where the index is known; else the nearest slice, since code cannot raise."""
    x = np.arange(6, dtype=np.float32).reshape(3, 2)

    def build(program, main, *xs):
        return main.add("scan_slice", *xs)

    with pytest.raises(migraphx.Error, match="index 3 is out of range for size 3"):
        ran(build, x, np.array([3]), literal=[1])
    compare(ran(build, x, np.array([3])), [x[2:]])


@pytest.mark.parametrize("kind", ["float", "double"])
def test_gradient(kind):
    """d(x * y * y) by x and y; a third input only takes part."""
    x, y, z = (numbers((2, 3), as_type(kind), k) for k in (1, 2, 3))

    def build(program, main, *xs):
        body = module(program, "body", [v.shape() for v in xs],
                      lambda m, a, b, c: [m.add("mul", m.add("mul", a, m.add("mul", b, b)), c)])  # fmt: skip
        return main.add("onnx::gradient", *xs, mods=[body], count=2)

    compare(both_ways(build, x, y, z), [y * y * z, 2 * x * y * z])


@pytest.mark.parametrize("count", [0, 3])
def test_gradient_refuses(count):
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    body = module(program, "body", [x.shape()] * 2, lambda m, a, b: [m.add("mul", a, b)])
    with pytest.raises(migraphx.Error, match=f"count {count} does not fit 2 inputs"):
        main.add("onnx::gradient", x, x, mods=[body], count=count)
