"""Modules, instructions and programs: building, running, comparing, keeping alive."""

import gc
import threading

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import migraphx

FLOAT23 = migraphx.shape(type="float", lens=[2, 3])


def small(kind="float", lens=(2, 3)):
    """x + constant, then relu."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type=kind, lens=list(lens)))
    c = m.add_literal(np.arange(np.prod(lens)).reshape(lens).astype(np.asarray(
        migraphx.fill_argument(x.shape(), 0)).dtype))  # fmt: skip
    y = m.add_instruction(migraphx.op("add"), [x, c])
    m.add_return([m.add_instruction(migraphx.op("relu"), [y])])
    return p


def test_instructions():
    p = small()
    m = p.get_main_module()
    literal, x, add, relu, ret = list(m)
    assert [i.name() for i in m] == ["@literal", "@param", "add", "relu", "@return"]
    assert add.inputs() == [x, literal]
    assert add.outputs() == [relu]
    assert add.op().name() == "add"
    assert repr(relu.shape()) == repr(FLOAT23)
    assert literal.get_literal().tolist() == [0, 1, 2, 3, 4, 5]
    assert len({add, relu, add}) == 2
    assert add != relu
    assert ret.inputs() == [relu]
    with pytest.raises(migraphx.Error, match="not a literal"):
        add.get_literal()


def test_literals_and_parameters_stand_in_front():
    p = migraphx.program()
    m = p.get_main_module()
    a = m.add_parameter("a", FLOAT23)
    m.add_parameter("b", FLOAT23)
    m.add_literal(np.float32(1))
    assert [i.name() for i in m] == ["@literal", "@param", "@param"]
    assert list(m)[2] == a
    assert p.get_parameter_names() == ["a", "b"]
    assert p.get_parameter_shapes() == {"a": FLOAT23, "b": FLOAT23}
    with pytest.raises(migraphx.Error, match="'a' already"):
        m.add_parameter("a", FLOAT23)


def test_literals_are_copied():
    source = np.ones(3, np.float32)
    p = migraphx.program()
    lit = p.get_main_module().add_literal(source)
    source[:] = 7
    assert lit.get_literal().tolist() == [1, 1, 1]
    turned = p.get_main_module().add_literal(np.arange(6).reshape(2, 3).T)
    assert turned.shape().strides() == [1, 3]
    assert turned.get_literal().tolist() == [0, 3, 1, 4, 2, 5]


def test_a_module_outlives_its_variable():
    m = small().get_main_module()
    gc.collect()
    assert len(m) == 5
    assert m.program.run({"x": np.zeros((2, 3), np.float32)})[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_mistakes_in_building():
    p, other = migraphx.program(), migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", FLOAT23)
    foreign = other.get_main_module().add_parameter("y", FLOAT23)
    add = migraphx.op("add")
    with pytest.raises(TypeError, match="list of instructions"):
        m.add_instruction(add, x)
    with pytest.raises(migraphx.Error, match="another program"):
        m.add_instruction(add, [x, foreign])
    with pytest.raises(migraphx.Error, match="add: Wrong number of arguments: expected 2"):
        m.add_instruction(add, [x])
    with pytest.raises(TypeError, match=r"migraphx\.op"):
        m.add_instruction(3, [x])
    with pytest.raises(TypeError, match="str"):
        m.add_parameter(3, FLOAT23)
    m.add_return([x])
    with pytest.raises(migraphx.Error, match="replace_return"):
        m.add_return([x])
    before = len(m)
    y = m.add_instruction(migraphx.op("relu"), [x])
    assert list(m)[-1].name() == "@return"
    m.replace_return([y])
    assert list(m)[-1].inputs() == [y]
    assert len(m) == before + 1


def test_insert_replace_remove_sort():
    p = small()
    m = p.get_main_module()
    relu = next(i for i in m if i.name() == "relu")
    neg = m.insert_instruction(relu, migraphx.op("neg"), [relu.inputs()[0]])
    assert [i.name() for i in m][2:5] == ["add", "neg", "relu"]
    with pytest.raises(migraphx.Error, match="still read"):
        m.remove(relu)
    m.replace_instruction(relu, neg)
    m.remove(relu)
    assert p.run({"x": np.ones((2, 3), np.float32)})[0].tolist() == [-1, -2, -3, -4, -5, -6]
    m.instructions.reverse()
    p.sort()
    names = [i.name() for i in m]
    assert names.index("add") < names.index("neg") < names.index("@return")
    assert p.run({"x": np.ones((2, 3), np.float32)})[0].tolist() == [-1, -2, -3, -4, -5, -6]


def test_equality_looks_at_structure_and_data():
    assert small() == small()
    assert small() == small().clone()
    assert small() != small(lens=(3, 2))
    p = small()
    lit = next(iter(p.get_main_module()))
    assert lit.get_literal().tolist()[0] == 0
    q = small()
    q.get_main_module().instructions[0].literal = migraphx.argument(
        np.array([[0, 1, 2], [3, 4, 5.000001]], np.float32)
    )
    assert p != q
    assert p != 3
    assert migraphx.program() == migraphx.program()


def test_clone_is_independent():
    p = small()
    p.compile(migraphx.get_target("ref"))
    q = p.clone()
    assert q.is_compiled()
    m = q.get_main_module()
    m.replace_return([m.add_instruction(migraphx.op("neg"), [list(m)[-1].inputs()[0]])])
    x = {"x": np.zeros((2, 3), np.float32)}
    assert p.run(x)[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert q.run(x)[0].tolist() == [0, -1, -2, -3, -4, -5]
    assert q.get_parameter_names() == ["x"]


def test_clones_share_weights_on_the_device():
    p = small(lens=(64, 64))
    p.compile(migraphx.get_target("ref"))
    q = p.clone()
    q.compile(migraphx.get_target("cpu"))
    one, two = p._executable.weights, q._executable.weights
    assert [w.unsafe_buffer_pointer() for w in one.values()] == [
        w.unsafe_buffer_pointer() for w in two.values()
    ]
    assert len(one) == 1


def test_output_shapes_are_those_of_run():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", FLOAT23)
    t = m.add_instruction(migraphx.op("transpose", permutation=[1, 0]), [x])
    b = m.add_instruction(migraphx.op("multibroadcast", out_lens=[4, 2, 3]), [x])
    m.add_return([t, b, x])
    assert t.shape().strides() == [1, 3]
    before = p.get_output_shapes()
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    for step in ("before", "after"):
        if step == "after":
            p.compile(migraphx.get_target("ref"))
        results = p.run({"x": data})
        assert [r.get_shape() for r in results] == p.get_output_shapes() == before
        assert all(s.standard() for s in before)
        assert np.array_equal(results[0], data.T)
        assert np.array_equal(results[1], np.broadcast_to(data, (4, 2, 3)))


def test_results_do_not_follow_the_caller_s_array():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(lens=[64]))
    m.add_return([x, m.add_instruction(migraphx.op("identity"), [x])])
    p.compile(migraphx.get_target("ref"))
    data = np.zeros(64, np.float32)
    first, second = p.run({"x": data})
    data[:] = 9
    assert first.tolist() == [0] * 64
    assert second.tolist() == [0] * 64


INPUTS = {
    "numpy": lambda a: a,
    "argument": migraphx.argument,
    "jax": jnp.asarray,
    "transposed view": lambda a: np.asfortranarray(a),
    "argument of a view": lambda a: migraphx.argument(np.asfortranarray(a)),
    "slice": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "big endian": lambda a: a.astype(">f4"),
    "read only": lambda a: np.frombuffer(a.tobytes(), np.float32).reshape(a.shape),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_of_every_kind(name):
    p = small()
    p.compile(migraphx.get_target("ref"))
    data = np.array([[1, -9, 2], [3, -4, 0]], np.float32)
    result = p.run({"x": INPUTS[name](data), "unused": 3})
    assert np.array_equal(result[0], np.maximum(data + np.arange(6).reshape(2, 3), 0))


def test_torch_tensors():
    torch = pytest.importorskip("torch", reason="torch is several GB; its tensors are DLPack too")
    p = small()
    result = p.run({"x": torch.ones(2, 3)})
    assert result[0].tolist() == [1, 2, 3, 4, 5, 6]
    assert torch.from_dlpack(result[0]).shape == (2, 3)


BAD_INPUTS = [
    ({}, migraphx.Error, "Parameter not found: x .*float_type, {2, 3}"),
    ({"X": 1}, migraphx.Error, "Parameter not found: x .*given: X"),
    ({"x": np.zeros((3, 2), np.float32)}, migraphx.Error, "axis 0 has size 3, allowed is 2"),
    ({"x": np.zeros((2, 3))}, migraphx.Error, "double_type.*parameter: x should be: float_type"),
    ({"x": np.zeros(6, np.float32)}, migraphx.Error, "Incorrect shape"),
    ({"x": [[1, 2, 3]]}, TypeError, "list"),
    ([], TypeError, "dict"),
]


@pytest.mark.parametrize(
    ("params", "kind", "text"), BAD_INPUTS, ids=[b[2][:30] for b in BAD_INPUTS]
)
def test_bad_inputs_say_which_and_why(params, kind, text):
    p = small()
    if params == []:
        params = [1]
    with pytest.raises(kind, match=text):
        p.run(params)


@pytest.mark.parametrize(
    "kind", ["double", "int64", "uint64", "int8", "half", "bf16", "fp8e4m3fn", "bool"]
)
def test_types_stay_exact(kind):
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type=kind, lens=[3]))
    m.add_return([m.add_instruction(migraphx.op("identity"), [x])])
    p.compile(migraphx.get_target("ref"))
    data = np.array([0, 1, 1]).astype(np.asarray(migraphx.fill_argument(x.shape(), 0)).dtype)
    if kind == "int64":
        data = np.array([2**62 + 1, -(2**62), 3])
    if kind == "double":
        data = np.array([1 + 2**-50, np.nan, -np.inf])
    result = np.asarray(p.run({"x": data})[0])
    assert result.dtype == data.dtype
    assert result.tobytes() == data.tobytes()
    assert jnp.arange(3).dtype == jnp.int32  # the user's JAX is as it was


def test_rank_0_parameters():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[1], strides=[0]))
    m.add_return([m.add_instruction(migraphx.op("neg"), [x])])
    for given in (np.float32(2), np.array([2], np.float32), np.array(2, np.float32)):
        result = p.run({"x": given})[0]
        assert result.tolist() == [-2]
        assert result.get_shape() == p.get_output_shapes()[0]


def test_threads_share_the_first_compilation():
    p = small(lens=(32, 32))
    p.compile(migraphx.get_target("ref"))
    p._executable.fast.clear()
    results, start = [], threading.Barrier(8)

    def work(k):
        start.wait()
        for _ in range(20):
            got = np.asarray(p.run({"x": np.full((32, 32), k, np.float32)})[0])
            results.append(np.array_equal(got, k + np.arange(1024).reshape(32, 32)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 160
    assert all(results)


def test_changes_after_compile_take_effect():
    p = small()
    p.compile(migraphx.get_target("ref"))
    m = p.get_main_module()
    m.replace_return([m.add_instruction(migraphx.op("neg"), [list(m)[-1].inputs()[0]])])
    assert p.run({"x": np.zeros((2, 3), np.float32)})[0].tolist() == [0, -1, -2, -3, -4, -5]


def test_an_empty_program_is_refused():
    with pytest.raises(migraphx.Error, match="nothing to run"):
        migraphx.program().run({})
    with pytest.raises(migraphx.Error, match="nothing to run"):
        migraphx.program().compile(migraphx.get_target("ref"))


def test_targets():
    assert repr(migraphx.get_target("ref")) == "target('ref')"
    with pytest.raises(migraphx.Error, match="did you mean cpu"):
        migraphx.get_target("cpuu")
    with pytest.raises(TypeError, match="str"):
        migraphx.get_target(3)
    p = small()
    p.compile("cpu", offload_copy=False, fast_math=False, exhaustive_tune=False,
              advance_backend_options={"unknown": 1})  # fmt: skip
    assert p.run({"x": np.zeros((2, 3), np.float32)})[0].tolist() == [0, 1, 2, 3, 4, 5]
    if all(d.platform == "cpu" for d in jax.devices()):
        with pytest.raises(migraphx.Error, match=r"no GPU here.*\[rocm\]"):
            migraphx.get_target("gpu")


def test_modules_by_name():
    p = migraphx.program()
    m = p.create_module("body")
    assert p.create_module("body") is m
    assert p.create_module("main") is p.get_main_module()
    assert [x.name() for x in p.get_modules()] == ["main", "body"]
    with pytest.raises(TypeError, match="name"):
        p.create_module("")


def test_small_floats_run():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="bf16", lens=[2]))
    m.add_return([m.add_instruction(migraphx.op("add"), [x, x])])
    result = p.run({"x": np.array([1.5, 2], ml_dtypes.bfloat16)})[0]
    assert result.tolist() == [3, 4]
    assert np.asarray(result).dtype == ml_dtypes.bfloat16


# -- replace_instruction ---------------------------------------------------------------------------


def chain_of(*names):
    program = migraphx.program()
    main = program.get_main_module()
    made = [main.add_parameter("x", migraphx.shape(type="float_type", lens=[3]))]
    for name in names:
        made.append(main.add(name, made[-1]))
    main.add_return([made[-1]])
    return program, main, made


def test_an_instruction_that_reads_the_old_one_stands_behind_it():
    program, main, (_, exp, log) = chain_of("exp", "log")
    main.replace_instruction(exp, main.insert(log, "neg", exp))
    program.compile(migraphx.get_target("ref"))
    (got,) = program.run({"x": np.array([1, 2, 3], np.float32)})
    assert np.isnan(np.asarray(got)).all()
    assert [i.name() for i in main] == ["@param", "exp", "neg", "log", "@return"]


def test_a_replacement_that_stands_too_late_is_sorted():
    program, main, (x, exp, _) = chain_of("exp", "abs")
    main.replace_instruction(exp, main.add("neg", x))
    program.compile(migraphx.get_target("ref"))
    (got,) = program.run({"x": np.array([1, 2, 3], np.float32)})
    np.testing.assert_array_equal(np.asarray(got), [1, 2, 3])


def test_a_replacement_of_another_shape_is_refused():
    _, main, (x, exp, log) = chain_of("exp", "log")
    other = main.insert(log, "convert", x, target_type=migraphx.shape.type_t.half_type)
    with pytest.raises(migraphx.Error, match=r"half_type.* cannot stand for .*float_type"):
        main.replace_instruction(exp, other)
