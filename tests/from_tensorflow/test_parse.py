"""parse_tf: files, options, names and outputs, layout, errors."""

import sys

import numpy as np
import pytest
from from_tensorflow.graphs import const, graph, node, placeholder
from google.protobuf import text_format

import migraphx

X = placeholder("x", 2, 3)


@pytest.fixture
def parse(tmp_path):
    """Writes nodes to a file and parses it."""

    def function(*nodes, **options):
        path = tmp_path / "graph.pb"
        path.write_bytes(graph(*nodes).SerializeToString())
        return migraphx.parse_tf(path, **options)

    return function


def run(program, **feed):
    program.compile(migraphx.get_target("ref"))
    return [np.asarray(r) for r in program.run(feed)]


def parameters(program):
    return {name: shape.lens() for name, shape in program.get_parameter_shapes().items()}


def ops(program):
    return [ins.name() for ins in program.get_main_module()]


# -- files -----------------------------------------------------------------------------------------


def test_text_is_told_from_binary_by_its_content(tmp_path):
    made = graph(X, node("y", "Relu", "x"))
    (tmp_path / "a.pb").write_text("# a comment\n\n" + text_format.MessageToString(made))
    (tmp_path / "b.pbtxt").write_bytes(made.SerializeToString())
    for name in ("a.pb", "b.pbtxt"):
        program = migraphx.parse_tf(str(tmp_path / name))
        assert parameters(program) == {"x": [2, 3]}
        assert ops(program)[-2:] == ["relu", "@return"]


def test_operators_are_listed():
    names = migraphx.get_tf_operators()
    assert names == sorted(names)
    assert {"Conv2D", "StridedSlice", "While", "NonMaxSuppressionV5"} <= set(names)


def test_without_tensorboard_the_error_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "graph.pb"
    path.write_bytes(graph(X).SerializeToString())
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto", None)
    with pytest.raises(migraphx.Error, match=r'pip install "migraphx-jax\[tf\]"'):
        migraphx.parse_tf(path)


# -- options ---------------------------------------------------------------------------------------


def test_open_sizes_become_the_batch_size(parse):
    nodes = placeholder("x", -1, 3), placeholder("i", -1, 8, 0, 3), node("y", "Relu", "x"), node(
        "z", "Relu", "i")  # fmt: skip
    assert parameters(parse(*nodes)) == {"x": [1, 3], "i": [1, 3, 8, 1]}
    assert parameters(parse(*nodes, batch_size=4)) == {"x": [4, 3], "i": [4, 3, 8, 4]}


def test_map_input_dims_are_the_parameters_own(parse):
    nodes = placeholder("i", -1, -1, -1, 3), node("y", "Shape", "i", out_type="int32"), node(
        "z", "Relu", "i")  # fmt: skip
    program = parse(*nodes, map_input_dims={"i": [2, 3, 5, 7]})
    assert parameters(program) == {"i": [2, 3, 5, 7]}
    x = np.ones((2, 3, 5, 7), np.float32)
    shape, same = run(program, i=x)
    assert shape.tolist() == [2, 5, 7, 3]
    assert np.array_equal(same, x)


def test_map_input_dims_gives_an_unknown_rank(parse):
    unknown = node("x", "Placeholder", dtype="float32")
    unknown.attr["shape"].shape.unknown_rank = True
    with pytest.raises(migraphx.Error, match=r"node 'x' \(Placeholder\).*map_input_dims"):
        parse(unknown, node("y", "Relu", "x"))
    program = parse(unknown, node("y", "Relu", "x"), map_input_dims={"x": [4, 5]})
    assert parameters(program) == {"x": [4, 5]}


def test_bad_options(parse):
    nodes = X, node("y", "Relu", "x")
    with pytest.raises(migraphx.Error, match="map_input_dims gives 3 dimensions"):
        parse(*nodes, map_input_dims={"x": [1, 2, 3]})
    with pytest.raises(migraphx.Error, match=r"map_input_dims names 'xx'.*did you mean x"):
        parse(*nodes, map_input_dims={"xx": [1, 2]})
    with pytest.raises(migraphx.Error, match="whole numbers"):
        parse(*nodes, map_input_dims={"x": [1, -2]})
    with pytest.raises(migraphx.Error, match="batch_size"):
        parse(*nodes, batch_size=0)


# -- outputs ---------------------------------------------------------------------------------------


def test_outputs_are_what_nobody_reads(parse):
    program = parse(
        X, node("a", "Relu", "x"), node("b", "Neg", "a"), node("c", "Abs", "a"),
        const("unread", [1.0]), node("nothing", "NoOp"), node("check_Assert", "Identity", "a"),
    )  # fmt: skip
    x = np.array([[-1, 2, 3], [4, -5, 6]], np.float32)
    b, c = run(program, x=x)
    assert np.array_equal(b, -np.maximum(x, 0))
    assert np.array_equal(c, np.maximum(x, 0))


def test_output_names_with_numbers(parse):
    split = X, const("axis", np.int32(1)), node("s", "Split", "axis", "x", num_split=3)
    program = parse(*split, node("y", "Neg", "s:2"), output_names=["s:1", "y", "s", "s:0"])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = run(program, x=x)
    assert [r.reshape(-1).tolist() for r in results] == [[1, 4], [-2, -5], [0, 3], [0, 3]]
    with pytest.raises(migraphx.Error, match="'s:3' asks for output 3 of 's'"):
        parse(*split, output_names=["s:3"])


def test_only_what_the_outputs_need_is_read(parse):
    """Unknown operators and inputs in other branches do not matter."""
    program = parse(
        X, placeholder("other", 2, dtype="string"), node("odd", "DecodeJpeg", "other"),
        node("y", "Relu", "x"), output_names=["y"],
    )  # fmt: skip
    assert parameters(program) == {"x": [2, 3]}


def test_control_inputs_are_skipped(parse):
    program = parse(X, node("check", "Assert", "x"), node("y", "Relu", "x", "^check"))
    assert ops(program) == ["@param", "relu", "@return"]


def test_order_of_nodes_does_not_matter(parse):
    program = parse(node("z", "Neg", "y"), node("y", "Relu", "x"), X)
    assert ops(program) == ["@param", "relu", "neg", "@return"]


# -- layout ----------------------------------------------------------------------------------------

IMAGE = placeholder("x", 1, 8, 8, 3)
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NHWC"}


def test_nothing_is_transposed_between_image_operators(parse):
    """Only parameters and results are channels-first, so no transpose is left at all."""
    program = parse(
        IMAGE, const("w", np.ones((3, 3, 3, 4))), const("b", np.ones(4)), const("r", np.ones((8, 4))),
        node("c", "Conv2D", "x", "w", **CONV), node("d", "BiasAdd", "c", "b"),
        node("e", "Relu6", "d"), node("f", "AddV2", "e", "r"), node("g", "Mul", "f", "c"),
        node("y", "MaxPool", "g", ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
    )  # fmt: skip
    assert parameters(program) == {"x": [1, 3, 8, 8]}
    assert program.get_output_shapes()[0].lens() == [1, 4, 4, 4]
    assert "transpose" not in ops(program)


def test_tensors_of_rank_4_that_are_no_images_stay(parse):
    program = parse(
        X, const("dims", np.int32([1, 1, 2, 3])), node("a", "Reshape", "x", "dims"),
        node("b", "Neg", "a"), node("y", "AddV2", "b", "b"),
    )  # fmt: skip
    assert ops(program).count("transpose") == 1  # of the result, which is of rank 4
    assert program.get_output_shapes()[0].lens() == [1, 3, 1, 2]


def test_is_nhwc_off_leaves_all_as_it_is(parse):
    nodes = placeholder("x", 1, 3, 8, 8), const("w", np.ones((3, 3, 3, 4))), node(
        "y", "Conv2D", "x", "w", **CONV | {"data_format": "NCHW"})  # fmt: skip
    program = parse(*nodes, is_nhwc=False)
    assert parameters(program) == {"x": [1, 3, 8, 8]}
    assert program.get_output_shapes()[0].lens() == [1, 4, 8, 8]
    assert "transpose" not in ops(program)


CHANNELS_FIRST = {
    "conv": (node("y", "Conv2D", "x", "w", **CONV | {"strides": [1, 1, 2, 1]}), True),
    "explicit": (
        node("y", "Conv2D", "x", "w", strides=[1, 2, 1, 1], padding="EXPLICIT",
             explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0], data_format="NHWC"), True),
    "pool": (node("y", "AvgPool", "x", ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding="SAME",
                  data_format="NHWC"), False),
    "depth": (node("y", "SpaceToDepth", "x", block_size=2, data_format="NHWC"), False),
}  # fmt: skip


def as_channels_first(made):
    """A node with its attributes in the order of NCHW."""
    copy = type(made).FromString(made.SerializeToString())
    copy.attr["data_format"].s = b"NCHW"
    for key in ("strides", "ksize"):
        if key in copy.attr:
            n, h, w, c = copy.attr[key].list.i
            copy.attr[key].list.i[:] = [n, c, h, w]
    if "explicit_paddings" in copy.attr:
        values = copy.attr["explicit_paddings"].list.i
        values[:] = [*values[:2], *values[6:], *values[2:6]]
    return copy


@pytest.mark.parametrize("name", CHANNELS_FIRST)
def test_channels_first_nodes_compute_the_same(parse, name):
    made, weighted = CHANNELS_FIRST[name]
    rng = np.random.default_rng(1)
    w = [const("w", rng.uniform(-1, 1, (3, 3, 3, 4)))] if weighted else []
    x = rng.uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)
    last = run(parse(IMAGE, *w, made), x=x)[0]
    first = parse(placeholder("x", 1, 3, 8, 8), *w, as_channels_first(made), is_nhwc=False)
    np.testing.assert_allclose(run(first, x=x)[0], last, rtol=1e-5, atol=1e-5)


def test_types_of_placeholders(parse):
    for dtype, want in {"bool": "bool_type", "uint8": "uint8_type", "int64": "int64_type"}.items():
        program = parse(placeholder("x", 2, dtype=dtype), node("y", "Identity", "x"))
        assert program.get_parameter_shapes()["x"].type_string() == want


# -- sizes that data decide ------------------------------------------------------------------------


def test_axes_and_sizes_may_be_inputs(parse):
    program = parse(
        X, placeholder("axes", 1, dtype="int32"), placeholder("dims", 2, dtype="int32"),
        node("a", "Sum", "x", "axes", keep_dims=True), node("b", "Reshape", "x", "dims"),
        node("c", "AddV2", "b", "b"), node("d", "Shape", "c"),
    )  # fmt: skip
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    total, dims = run(program, x=x, axes=np.int32([1]), dims=np.int32([3, -1]))
    assert total.tolist() == [[3], [12]]
    assert dims.tolist() == [3, 2]
    assert run(program, x=x, axes=np.int32([0]), dims=np.int32([1, 6]))[0].tolist() == [[3, 5, 7]]


def test_results_of_unknown_rank_are_channels_first_if_they_have_rank_4(parse):
    program = parse(X, placeholder("d", -1, dtype="int32"), node("y", "Reshape", "x", "d"),
                    map_input_dims={"d": [4]})  # fmt: skip
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = run(program, x=x, d=np.int32([1, 1, 2, 3]))[0]
    assert np.array_equal(result, x.reshape(1, 1, 2, 3).transpose(0, 3, 1, 2))


# -- errors ----------------------------------------------------------------------------------------


def test_unknown_operators_are_all_named(parse):
    with pytest.raises(migraphx.Error) as caught:
        parse(X, node("a", "Reluu", "x"), node("b", "Fooo", "a"), node("c", "Fooo", "b"))
    text = str(caught.value)
    assert "Unknown operator: Reluu (node 'a'), Fooo (node 'b')" in text
    assert "did you mean Relu" in text


def test_graphs_that_are_not_frozen(parse):
    with pytest.raises(migraphx.Error, match=r"Unknown operator: VariableV2.*not frozen"):
        parse(node("v", "VariableV2"), node("y", "Relu", "v"))
    with pytest.raises(migraphx.Error, match="lower_control_flow=False"):
        parse(X, node("a", "Enter", "x"), node("m", "Merge", "a", "n"), node(
            "n", "NextIteration", "m"), node("y", "Relu", "m"))  # fmt: skip


BAD = {
    "missing input": ([X, node("y", "Add", "x", "xy")], r"node 'y' \(Add\): input 'xy' is missing"),
    "too few inputs": ([X, node("y", "AddV2", "x")], r"node 'y' \(AddV2\): input 1 \(y\) is missing"),
    "too many": ([X, node("y", "Relu", "x", "x")], r"node 'y' \(Relu\): 2 inputs; at most 1"),
    "cycle": ([X, node("a", "Add", "x", "b"), node("b", "Relu", "a"), node("y", "Neg", "b")], "cycle"),
    "twice": ([X, X, node("y", "Relu", "x")], "node 'x'.*given twice"),
    "no output": ([node("a", "Relu", "b"), node("b", "Relu", "a")], "no outputs"),
    "type": ([placeholder("x", 2, dtype="string"), node("y", "Identity", "x")],
             r"node 'x' \(Placeholder\): DT_STRING is not supported"),
    "attribute": ([IMAGE, const("w", np.ones((1, 1, 3, 4))), node("y", "Conv2D", "x", "w", padding="SAME")],
                  "node 'y'.*attribute 'strides' is required"),
    "attribute kind": ([X, node("y", "LeakyRelu", "x", alpha="SAME")], "node 'y'.*attribute 'alpha'"),
    "types": ([X, placeholder("z", 3, dtype="int32"), node("y", "AddV2", "x", "z")],
              r"node 'y' \(AddV2\): input 1 is of int32_type, float_type is needed"),
    "declared type": ([X, node("y", "Relu", "x", T="int32")],
                      r"node 'y' \(Relu\): input 0 is of float_type, int32_type is needed"),
    "huge": ([X, const("d", np.int32(2**30)), node("y", "OneHot", "i", "d", "x", "x"), placeholder("i", 2, dtype="int32")],
             "node 'y'.*would have 1073741824 elements"),
    "range": ([X, const("low", 1.0), const("high", 0.0), node("y", "FakeQuantWithMinMaxVars", "x", "low", "high")],
              "1.0 to 0.0 is not a range"),
    "length of a list": ([placeholder("n", dtype="int32"), const("s", np.int32([3])),
                          node("l", "TensorListReserve", "s", "n", element_dtype="float32"),
                          node("y", "TensorListStack", "l", "s")],
                         r"node 'l' \(TensorListReserve\): its input 'count' depends on data"),
    "padding": ([IMAGE, const("w", np.ones((1, 1, 3, 4))), node("y", "Conv2D", "x", "w", **CONV | {"padding": "FULL"})],
                "padding 'FULL' is none of SAME"),
    "shapes": ([X, placeholder("z", 4), node("y", "AddV2", "x", "z")], r"node 'y' \(AddV2\)"),
    "reshape": ([X, const("d", np.int32([4])), node("y", "Reshape", "x", "d")], r"node 'y' \(Reshape\)"),
    "axis": ([X, const("d", np.int32(2)), node("y", "ArgMax", "x", "d")], "axis 2 is out of range"),
    "constant": ([node("x", "Const", dtype="float32", value=np.ones(3, np.float32)), node("y", "Relu", "x")], None),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_graphs(parse, name):
    nodes, message = BAD[name]
    if message is None:
        nodes[0].attr["value"].tensor.tensor_content = b"123"
        message = (
            r"node 'x' \(Const\): a constant of shape \[3\] and float32 needs 12 bytes, it has 3"
        )
    with pytest.raises(migraphx.Error, match=message):
        parse(*nodes)


def test_unknown_output_name(parse):
    with pytest.raises(migraphx.Error, match="output name z not found in graph!"):
        parse(X, node("y", "Relu", "x"), output_names=["z"])


def test_bad_files(tmp_path):
    whole = graph(X, const("w", np.ones(99)), node("y", "Relu", "x")).SerializeToString()
    for name, data in {"short": whole[:-5], "noise": b"\x00\x01\xff" * 9, "empty": b""}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(migraphx.Error, match=f"Failed reading tf file.*{name}"):
            migraphx.parse_tf(tmp_path / name)
    (tmp_path / "bad.pbtxt").write_text('node { name: "x" op: }')
    with pytest.raises(migraphx.Error, match="Failed reading tf file"):
        migraphx.parse_tf(tmp_path / "bad.pbtxt")
    with pytest.raises(migraphx.Error, match=r"Failed reading tf file: .*nowhere"):
        migraphx.parse_tf(tmp_path / "nowhere")


def test_saved_models_say_how_to_freeze(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12\x00")
    for path in (tmp_path, tmp_path / "saved_model.pb"):
        with pytest.raises(migraphx.Error, match=r"SavedModel.*convert_variables_to_constants_v2"):
            migraphx.parse_tf(path)
