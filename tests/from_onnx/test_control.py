"""If, Loop, Scan, SequenceMap and sparse tensors, against ONNX's reference evaluator."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import check, check_official, prepared

import migraphx

OFFICIAL = [
    "if", "if_seq", "if_opt", "loop11", "loop13_seq", "loop16_seq_none", "scan_sum", "scan9_sum",
    "scan9_multi_state", "scan9_scalar", "sequence_map_identity_1_sequence",
    "sequence_map_identity_2_sequences", "sequence_map_identity_1_sequence_1_tensor",
    "sequence_map_add_2_sequences", "sequence_map_add_1_sequence_1_tensor",
    "sequence_map_extract_shapes", "sequence_map_add_2_sequences_expanded",
    "sequence_map_add_1_sequence_1_tensor_expanded", "sequence_map_extract_shapes_expanded",
]  # fmt: skip
X = np.array([1, -2, 3], np.float32)


@pytest.mark.parametrize("name", OFFICIAL)
def test_official(name):
    check_official(f"test_{name}")


# -- If ------------------------------------------------------------------------------------------

IF = """
g (float[3] x, bool c) => (float[] y) {
    y = If (c) <then_branch = a () => (float[K] p) { %s },
                else_branch = b () => (float[K] q) { %s }>
}"""


@pytest.mark.parametrize("c", [True, False])
@pytest.mark.parametrize(
    ("then", "other"),
    [
        ("p = Add(x, x)", "q = Neg(x)"),
        ("p = Concat <axis = 0> (x, x)", "q = Neg(x)"),  # sizes differ
        ("p = ReduceSum <keepdims = 0> (x)", "q = Neg(x)"),  # ranks differ
    ],
)
def test_if(c, then, other):
    check(IF % (then, other), X, np.array(c))


def test_if_with_known_condition_is_inlined():
    text = """
    g (float[3] x) => (float[3] y) <bool c = {1}> {
        y = If (c) <then_branch = a () => (float[3] p) { p = Neg(x) },
                    else_branch = b () => (float[3] q) { q = Abs(x) }>
    }"""
    program = check(text, X)
    names = [i.name() for i in program.get_main_module()]
    assert "if" not in names
    assert "neg" in names
    assert "abs" not in names
    assert len(program.get_modules()) == 1


def test_if_modules_are_named_by_position():
    text = IF % ("p = Add(x, x)", "q = Neg(x)")
    program = prepared(text).program
    assert [m.name() for m in program.get_modules()] == ["main", "If_2_if", "If_2_else"]


def test_nested_if_reads_names_of_all_scopes():
    text = """
    g (float[3] x, bool c, bool d) => (float[3] y) {
        z = Exp(x)
        y = If (c) <
            then_branch = a () => (float[3] p) {
                w = Add(z, x)
                p = If (d) <then_branch = aa () => (float[3] r) { r = Mul(w, z) },
                            else_branch = bb () => (float[3] s) { s = Sub(w, x) }>
            },
            else_branch = b () => (float[3] q) { q = Neg(z) }>
    }"""
    ready = prepared(text)
    z = np.exp(X)
    for c, d, want in [(1, 1, (z + X) * z), (1, 0, z + X - X), (0, 1, -z)]:
        (got,) = ready.run([X, np.array(bool(c)), np.array(bool(d))])
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_if_branches_may_give_outer_values():
    text = """
    g (float[3] x, bool c) => (float[3] y) {
        z = Exp(x)
        y = If (c) <then_branch = a () => (float[3] z) { },
                    else_branch = b () => (float[3] x) { }>
    }"""
    ready = prepared(text)
    np.testing.assert_allclose(ready.run([X, np.array(True)])[0], np.exp(X), rtol=1e-6)
    np.testing.assert_array_equal(ready.run([X, np.array(False)])[0], X)


def test_if_with_branches_of_unlike_count():
    text = """
    g (float[3] x, bool c) => (float[3] y) {
        y = If (c) <then_branch = a () => (float[3] p, float[3] r) { p = Neg(x) r = Abs(x) },
                    else_branch = b () => (float[3] q) { q = Abs(x) }>
    }"""
    with pytest.raises(migraphx.Error, match="2 and 1 results"):
        prepared(text)


# -- Loop ----------------------------------------------------------------------------------------

COUNT_UP = """
g (int64 n, bool c, float[2] v) => (float[2] w, float[K,2] rows) {
    w, rows = Loop (n, c, v) <body = b (int64 i, bool ci, float[2] vi)
        => (bool co, float[2] vo, float[2] row) <float[2] one = {1, 1}> {
        co = Identity(ci)
        vo = Add(vi, one)
        row = Mul(vo, vi)
    }>
}"""
V = np.array([1, 5], np.float32)


@pytest.mark.parametrize("count", [0, 1, 3, 40, 2000])
def test_loop_of_a_run_time_count(count):
    check(COUNT_UP, np.int64(count), np.array(True), V, expected=counted(count))


def test_loop_that_does_not_start():
    check(COUNT_UP, np.int64(3), np.array(False), V, expected=counted(0))


def counted(count):
    """The same in NumPy."""
    steps = V + np.arange(count, dtype=np.float32)[:, None]
    return [V + np.float32(count), steps * (steps + 1)]


def known_loop(count):
    return f"""
    g (float[2] v) => (float[2] w, float[K,2] rows) <int64 n = {{{count}}}, bool c = {{1}}> {{
        w, rows = Loop (n, c, v) <body = b (int64 i, bool ci, float[2] vi)
            => (bool co, float[2] vo, float[2] row) <float[2] one = {{1, 1}}> {{
            vo = Add(vi, one)
            co = Identity(ci)
            row = Identity(vo)
        }}>
    }}"""


@pytest.mark.parametrize("count", [0, 3, 2000])
def test_loop_of_a_known_count(count):
    steps = V + np.arange(1, count + 1, dtype=np.float32)[:, None]
    program = check(known_loop(count), V, expected=[V + np.float32(count), steps])
    (loop,) = [i for i in program.get_main_module() if "loop" in i.name()]
    assert loop.name() == "loop"
    assert loop.op().values()["max_iterations"] == count
    body = loop.module_inputs()[0]
    assert body.name() == "Loop_3_loop"
    names = [i.op().values().get("parameter") or i.name() for i in body]
    assert names == ["vi", "ci", "i", "@literal", "add", "identity", "identity", "@return"]


ENDS_EARLY = """
g (float[2] v) => (float[2] w, float[K] rows) <int64 n = {100}, bool c = {1}> {
    w, rows = Loop (n, c, v) <body = b (int64 i, bool ci, float[2] vi)
        => (bool co, float[2] vo, float row) <float limit = {20}> {
        vo = Add(vi, vi)
        row = ReduceSum <keepdims = 0> (vo)
        co = Less(row, limit)
    }>
}"""


def test_rows_are_those_of_iterations_that_were_run():
    check(ENDS_EARLY, V, expected=[np.float32([4, 20]), np.float32([12, 24])])


def test_rank_0_rows():
    text = """
    g (float v) => (float w, float[K] rows) <int64 n = {4}, bool c = {1}> {
        w, rows = Loop (n, c, v) <body = b (int64 i, bool ci, float vi)
            => (bool ci, float vo, float vo) { vo = Add(vi, vi) }>
    }"""
    check(text, np.float32(1.5), expected=[np.float32(24), np.float32([3, 6, 12, 24])])


@pytest.mark.parametrize("count", [0, 1, 5])
def test_carried_value_that_grows(count):
    text = """
    g (int64 n, float[1] v) => (float[K] w, int64[K] sizes) {
        w, sizes = Loop (n, , v) <body = b (int64 i, bool ci, float[m] vi)
            => (bool ci, float[m] vo, int64[1] size) {
            vo = Concat <axis = 0> (vi, vi)
            size = Shape(vi)
        }>
    }"""
    (w, sizes) = prepared(text).run([np.int64(count), np.ones(1, np.float32)])
    assert w.shape == (2**count,)
    np.testing.assert_array_equal(sizes, np.reshape([2**k for k in range(count)], (count, 1)))


def test_while_loop_by_condition_alone():
    text = """
    g (float v) => (float w) <float limit = {100}, bool c = {1}> {
        w = Loop ( , c, v) <body = b (int64 i, bool ci, float vi) => (bool co, float vo) {
            vo = Add(vi, vi)
            co = Less(vo, limit)
        }>
    }"""
    with pytest.warns(UserWarning, match="max_loop_iterations"):
        ready = prepared(text)
    assert ready.run([np.float32(1)])[0] == 128
    assert ready.run([np.float32(0.01)])[0] == np.float32(0.01) * 2**10
    with pytest.warns(UserWarning, match="ends after 50"):
        ready = prepared(text, max_loop_iterations=50)
    assert ready.run([np.float32(0.01)])[0] == np.float32(0.01) * 2**14


def test_limit_of_iterations():
    text = known_loop(30)
    with pytest.warns(UserWarning, match="limit_max_iterations"):
        ready = prepared(text, limit_max_iterations=7)
    w, rows = ready.run([V])
    np.testing.assert_array_equal(w, V + 7)
    assert rows.shape == (7, 2)


def test_iteration_number_and_outer_names():
    text = """
    g (int64 n, float[5] x) => (float s, float[K] rows) <float zero = {0}> {
        y = Exp(x)
        s, rows = Loop (n, , zero) <body = b (int64 i, bool ci, float si)
            => (bool ci, float so, float row) {
            row = Gather(y, i)
            so = Add(si, row)
        }>
    }"""
    x = np.linspace(0, 1, 5, dtype=np.float32)
    for count in (0, 2, 5):
        y = np.exp(x)[:count]
        check(text, np.int64(count), x, expected=[y.sum(), y])


def test_loop_in_loop_in_if():
    text = """
    g (int64 n, bool c, float[2] v) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] p) {
            p = Loop (n, , v) <body = outer (int64 i, bool ci, float[2] a)
                    => (bool ci, float[2] ao) {
                ao = Loop (i, , a) <body = inner (int64 j, bool cj, float[2] d)
                    => (bool cj, float[2] e) {
                    f = Cast <to = 1> (i)
                    e = Add(d, f)
                }>
            }>
        }, else_branch = e () => (float[2] q) { q = Neg(v) }>
    }"""
    check(text, np.int64(4), np.array(True), V, expected=[V + np.float32(1 + 4 + 9)])
    check(text, np.int64(4), np.array(False), V, expected=[-V])


def test_loop_with_a_body_that_does_not_fit():
    text = known_loop(3).replace("float[2] vi)", "float[2] vi, float extra)")
    with pytest.raises(migraphx.Error, match="takes 4 inputs, 3 are needed"):
        prepared(text)


def test_sequence_grows_in_a_loop():
    text = """
    g (int64 n, float[3] x) => (seq(float[3]) s, float[K] all) {
        empty = SequenceEmpty()
        s = Loop (n, , empty) <body = b (int64 i, bool ci, seq(float[3]) si)
            => (bool ci, seq(float[3]) so) {
            k = Cast <to = 1> (i)
            y = Mul(x, k)
            so = SequenceInsert(si, y)
        }>
        all = ConcatFromSequence <axis = 0> (s)
    }"""
    for count in (1, 4):
        check(text, np.int64(count), X, expected=[
            [X * k for k in range(count)], np.concatenate([X * k for k in range(count)])
        ])  # fmt: skip


# -- Scan ----------------------------------------------------------------------------------------


def scan_model(opset=21, **attributes):
    """State: a running sum; scan outputs: the sum so far and the difference of the two inputs."""
    body = onnx.parser.parse_graph("""
        b (float[3] s, float[3] p, float[3] q) => (float[3] so, float[3] total, float[3] gap) {
            gap = Sub(p, q)
            so = Add(s, gap)
            total = Identity(so)
        }""")
    node = helper.make_node("Scan", ["s", "x", "y"], ["t", "totals", "gaps"], body=body,
                            num_scan_inputs=2, **attributes)  # fmt: skip

    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)

    graph = helper.make_graph([node], "g", [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [3] if n == "s" else None)
        for n in "sxy"
    ], [info(n) for n in ("t", "totals", "gaps")])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def scanned(s, x, y, directions=(0, 0), out_directions=(0, 0)):
    """The same in NumPy; axis 0 is the sequence."""
    x, y = (v[::-1] if d else v for v, d in zip((x, y), directions, strict=True))
    totals, gaps = s + np.cumsum(x - y, 0), x - y
    rows = [v[::-1] if d else v for v, d in zip((totals, gaps), out_directions, strict=True)]
    return totals[-1], *rows


@pytest.mark.parametrize("known_rank", [True, False])
@pytest.mark.parametrize("directions", [(0, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("out_directions", [(0, 0), (1, 0)])
@pytest.mark.parametrize("axes", [(0, 0), (0, 1), (1, -1)])
def test_scan(axes, directions, out_directions, known_rank):
    rng = np.random.default_rng(0)
    s, x, y = (rng.normal(size=d).astype(np.float32) for d in [(3,), (5, 3), (5, 3)])
    model = scan_model(
        scan_input_axes=axes, scan_input_directions=directions, scan_output_axes=(1, 0),
        scan_output_directions=out_directions,
    )  # fmt: skip
    given = [s, *(np.moveaxis(v, 0, a) for v, a in zip((x, y), axes, strict=True))]
    if known_rank:
        for value, array in zip(model.graph.input[1:], given[1:], strict=True):
            value.type.tensor_type.shape.CopyFrom(
                helper.make_tensor_type_proto(1, array.shape).tensor_type.shape
            )
    state, totals, gaps = scanned(s, x, y, directions, out_directions)
    check(model, *given, expected=[state, totals.T, gaps])


def test_scan_of_any_length_compiles_per_length():
    model = scan_model()
    for value in model.graph.input[1:]:
        value.type.tensor_type.shape.CopyFrom(
            helper.make_tensor_type_proto(1, ["n", 3]).tensor_type.shape
        )
    ready = prepared(model)
    rng = np.random.default_rng(0)
    for length in (1, 4, 300):
        s, x, y = (rng.normal(size=d).astype(np.float32) for d in [(3,), (length, 3), (length, 3)])
        for mine, wanted in zip(ready.run([s, x, y]), scanned(s, x, y), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-4)


def test_scan_module_is_named_by_position():
    model = scan_model()
    modules = prepared(model).program.get_modules()
    assert modules[1].name().startswith("Scan_")
    assert modules[1].name().endswith("_scan")


def test_scan_of_unlike_lengths():
    model = scan_model()
    for value, size in zip(model.graph.input[1:], (4, 5), strict=True):
        value.type.tensor_type.shape.CopyFrom(
            helper.make_tensor_type_proto(1, [size, 3]).tensor_type.shape
        )
    with pytest.raises(migraphx.Error, match="different lengths: 4 and 5"):
        prepared(model)


def test_scan_with_too_few_axes():
    with pytest.raises(migraphx.Error, match="scan_input_axes has 1 entries, 2 are needed"):
        prepared(scan_model(scan_input_axes=[0]))


@pytest.mark.parametrize("lengths", [None, [4, 2, 0]])
@pytest.mark.parametrize("directions", [(0, 0), (1, 0)])
def test_scan_8(lengths, directions):
    rng = np.random.default_rng(1)
    s, x, y = (rng.normal(size=d).astype(np.float32) for d in [(3, 3), (3, 4, 3), (3, 4, 3)])
    model = scan_model(opset=8, directions=directions)
    node = model.graph.node[0]
    names = list(node.input)
    node.input[:] = ["", *names] if lengths is None else ["n", *names]
    for value, array in zip(model.graph.input, (s, x, y), strict=True):
        value.type.tensor_type.shape.CopyFrom(
            helper.make_tensor_type_proto(1, array.shape).tensor_type.shape
        )
    feeds = [s, x, y]
    if lengths is not None:
        model.graph.input.insert(0, helper.make_tensor_value_info("n", TensorProto.INT64, [3]))
        feeds.insert(0, np.array(lengths, np.int64))
    states, totals, gaps = s.copy(), np.zeros_like(x), np.zeros_like(x)
    for k, n in enumerate(lengths or [4] * 3):
        if n:
            states[k], totals[k, :n], gaps[k, :n] = scanned(s[k], x[k, :n], y[k, :n], directions)
    check(model, *feeds, expected=[states, totals, gaps])


# -- sparse tensors ------------------------------------------------------------------------------


def sparse(values, indices, dims):
    return helper.make_sparse_tensor(
        helper.make_tensor("w", TensorProto.FLOAT, [len(values)], values),
        helper.make_tensor("wi", TensorProto.INT64, np.shape(indices), np.ravel(indices).tolist()),
        dims,
    )


@pytest.mark.parametrize("indices", [[1, 5, 6], [[0, 1], [1, 2], [1, 3]]])
@pytest.mark.parametrize("as_constant", [True, False])
def test_sparse(indices, as_constant):
    tensor = sparse([1.0, 2.0, 3.0], indices, [2, 4])
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    if as_constant:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=tensor))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, [2, 4])],
        [helper.make_tensor_value_info("y", 1, [2, 4])],
        sparse_initializer=() if as_constant else [tensor],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    want = np.ones((2, 4), np.float32)
    want.reshape(-1)[[1, 6 if np.ndim(indices) == 2 else 5, 7 if np.ndim(indices) == 2 else 6]] += [
        1, 2, 3
    ]  # fmt: skip
    check(model, np.ones((2, 4), np.float32), expected=[want])


@pytest.mark.parametrize(
    ("indices", "message"),
    [([1, 5, 8], "outside"), ([[0, 1], [1, 2], [1, 4]], "outside"), ([1, 2], "for 3 values")],
)
def test_sparse_that_does_not_fit(indices, message):
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])], "g", [],
        [helper.make_tensor_value_info("y", 1, [2, 4])],
        sparse_initializer=[sparse([1.0, 2.0, 3.0], indices, [2, 4])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    with pytest.raises(migraphx.Error, match=message):
        prepared(model)


def test_a_branch_that_is_not_taken_need_not_fit():
    """A model for two sizes of its input (as silero-vad, for two sample rates)."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    graphs = []
    for size in (4, 6):
        nodes = [
            helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(
                np.arange(size, dtype=np.float32))),
            helper.make_node("Mul", ["x", "w"], [f"y{size}"]),
        ]  # fmt: skip
        out = helper.make_tensor_value_info(f"y{size}", TensorProto.FLOAT, [size])
        graphs.append(helper.make_graph(nodes, f"for{size}", [], [out]))
    node = helper.make_node("If", ["flag"], ["y"], then_branch=graphs[0], else_branch=graphs[1])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m"])
    model = helper.make_model(
        helper.make_graph([node], "g", [x, flag], [out]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    program = migraphx.parse_onnx_buffer(
        model.SerializeToString(), default_dyn_dim_value=migraphx.dynamic_dimension(1, 64)
    )
    program.compile(migraphx.get_target("ref"))
    for size, flag in ((4, True), (6, False), (4, True)):
        (got,) = program.run({"x": np.ones(size, np.float32), "flag": np.array(flag)})
        np.testing.assert_array_equal(np.asarray(got), np.arange(size))
    with pytest.raises(migraphx.Error, match=r"multibroadcast: .*cannot be broadcast"):
        program.run({"x": np.ones(5, np.float32), "flag": np.array(True)})
    program = migraphx.parse_onnx_buffer(model.SerializeToString(), map_input_dims={"x": [6]})
    (got,) = program.run({"x": np.ones(6, np.float32), "flag": np.array(False)})
    np.testing.assert_array_equal(np.asarray(got), np.arange(6))
    with pytest.raises(migraphx.Error, match="Mul"):
        program.run({"x": np.ones(6, np.float32), "flag": np.array(True)})


def test_dimensions_called_question_mark_are_different_ones():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["?", "?"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["?", "?"])
    model = helper.make_model(
        helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    program = migraphx.parse_onnx_buffer(
        model.SerializeToString(), default_dyn_dim_value=migraphx.dynamic_dimension(1, 64)
    )
    program.compile(migraphx.get_target("ref"))
    (got,) = program.run({"x": np.ones((2, 5), np.float32)})
    assert got.get_shape().lens() == [2, 5]
