"""The driver's commands that run nothing: read, params, trim, op, onnx, tf; and what files are."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import migraphx
from migraphx.driver import main
from migraphx.driver.model import kind_of, kind_of_head
from migraphx.driver.output import FORMS
from migraphx.driver.passes import LEFT_TO_XLA, available


def small_program():
    """relu(x @ w) + 1 with a batch of open size at axis 0."""
    program = migraphx.program()
    main_ = program.get_main_module()
    x = main_.add_parameter("x", migraphx.shape(type="float", lens=[2, 3]))
    w = main_.add_literal(np.arange(12, dtype=np.float32).reshape(3, 4))
    one = main_.add_literal(np.ones((2, 4), np.float32))
    y = main_.add_instruction(migraphx.op("dot"), [x, w])
    y = main_.add_instruction(migraphx.op("relu"), [y])
    main_.add_return([main_.add_instruction(migraphx.op("add"), [y, one])])
    return program


def small_onnx():
    """relu(x @ w) with x of sizes N, 3."""
    w = helper.make_tensor("w", TensorProto.FLOAT, [3, 4], np.arange(12, dtype=np.float32))
    return helper.make_model(
        helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])],
            "small",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
            [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 4])],
            [w],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


@pytest.fixture
def files(tmp_path):
    """The same small program in each kind of file, and as ONNX."""
    program = small_program()
    migraphx.save(program, tmp_path / "small.mxr")
    migraphx.save(program, tmp_path / "small.json", format="json")
    (tmp_path / "small.py").write_text(program.to_py(weights=True))
    onnx.save(small_onnx(), tmp_path / "small.onnx")
    return tmp_path


def out_of(capsysbinary, *words):
    """What a command that succeeds writes to standard output, as bytes; nothing goes elsewhere."""
    assert main(list(map(str, words))) == 0
    got = capsysbinary.readouterr()
    assert got.err == b""
    return got.out


def error_of(capsys, *words):
    """The code and the one line of a command that fails."""
    code = main(list(map(str, words)))
    got = capsys.readouterr()
    lines = got.err.splitlines()
    assert len(lines) == 1, got.err
    assert lines[0].startswith("migraphx-driver: error: ")
    return code, lines[0]


# -- kinds of files ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small.mxr", "small.json", "small.py"])
def test_content_tells_the_kind_and_all_kinds_read_the_same(files, capsysbinary, name):
    wanted = f"{small_program()}".encode()
    assert out_of(capsysbinary, "read", files / name) == wanted
    if name != "small.py":  # a Python file is known by its name alone
        misnamed = (files / name).rename(files / "model.dat")
        assert out_of(capsysbinary, "read", misnamed) == wanted


def test_onnx_is_known_by_content(files, capsysbinary):
    misnamed = (files / "small.onnx").rename(files / "model")
    assert b"relu(@2) -> float_type, {1, 4}, {4, 1}" in out_of(capsysbinary, "read", misnamed)


@pytest.mark.parametrize(
    ("head", "suffix", "kind"),
    [
        (b"\x08\x07\x12\x04test", "", "onnx"),
        (b"\x3a\x80\x01", "", "onnx"),
        (b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder", ".pb", "tf"),
        (b'node {\n  name: "x"\n', ".pbtxt", "tf"),
        (b"versions { producer: 9 }", "", "tf"),
        (b"\x84\xa7version", "", "msgpack"),
        (b"\xde\x00\x11", "", "msgpack"),
        (b' {"version":8}', "", "json"),
        (b"", "", None),
        (b"# A text about models\n", "", None),
        (b"\n\nA text\n", "", None),
        (b"\x89PNG\r\n", "", "msgpack"),  # a map of nine by its first byte; load refuses it
    ],
)
def test_kind_of_head(head, suffix, kind):
    assert kind_of_head(head, suffix) == kind


def test_kind_of_golden_files():
    assert kind_of("migraphx/data/digits.onnx") == "onnx"


def test_a_forced_kind_is_taken_at_its_word(files, capsys):
    code, line = error_of(capsys, "read", files / "small.mxr", "--onnx")
    assert code == 1
    assert "not an ONNX model" in line
    assert "looks like JSON" in error_of(capsys, "read", files / "small.json", "--migraphx")[1]


def test_folders_and_python_files_without_a_program_are_refused(files, capsys):
    assert "is a folder" in error_of(capsys, "read", files)[1]
    (files / "none.py").write_text("x = 1\n")
    assert "should build one program" in error_of(capsys, "read", files / "none.py")[1]


# -- read --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [f for f in FORMS if f != "binary"])
def test_every_form_is_printed_and_written(files, capsysbinary, form):
    printed = out_of(capsysbinary, "read", files / "small.mxr", f"--{form}")
    target = files / "written"
    assert out_of(capsysbinary, "read", files / "small.mxr", f"--{form}", "-o", target) == b""
    assert target.read_bytes().rstrip() == printed.rstrip()


def test_a_file_is_binary_unless_said_otherwise_and_loads_as_it_was(files, capsysbinary):
    target = files / "copy.mxr"
    out_of(capsysbinary, "read", files / "small.json", "-o", target)
    assert migraphx.load(target) == small_program()
    printed = out_of(capsysbinary, "read", files / "small.json", "--binary")
    assert migraphx.load_buffer(printed) == small_program()


def test_json_and_python_round_trip(files, capsysbinary):
    out_of(capsysbinary, "read", files / "small.mxr", "--json", "-o", files / "again.json")
    assert migraphx.load(files / "again.json", format="json") == small_program()
    out_of(capsysbinary, "read", files / "small.mxr", "--py", "--weights", "-o", files / "again.py")
    assert out_of(capsysbinary, "read", files / "again.py") == f"{small_program()}".encode()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(files, capsys):
    target = files / "none" / "x.mxr"
    code, line = error_of(capsys, "read", files / "small.mxr", "-o", target)
    assert code == 1
    assert str(target) in line
    assert not [p for p in files.iterdir() if p.name.endswith(".tmp")]


def test_netron_file_holds_the_instructions_as_nodes(files, capsysbinary):
    model = onnx.ModelProto.FromString(
        out_of(capsysbinary, "read", files / "small.mxr", "--netron")
    )
    graph = model.graph
    assert [(n.op_type, n.domain) for n in graph.node] == [
        (name, "migraphx") for name in ("dot", "relu", "add")
    ]
    assert [i.name for i in graph.input] == ["x"]
    assert [o.name for o in graph.output] == [graph.node[-1].output[0]]
    weights = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}
    assert graph.node[0].input[0] == "x"
    np.testing.assert_array_equal(weights[graph.node[0].input[1]].reshape(-1), np.arange(12))
    assert [d.dim_value for d in graph.value_info[0].type.tensor_type.shape.dim] == [2, 4]


def test_netron_file_holds_attributes_modules_and_odd_types():
    from migraphx.driver.netron import model_bytes

    program = migraphx.program()
    main_ = program.get_main_module()
    cond = main_.add_parameter("cond", migraphx.shape(type="bool", lens=[1]))
    x = main_.add_parameter("x", migraphx.shape(type="float", dyn_dims=[
        migraphx.dynamic_dimension(1, 4), migraphx.dynamic_dimension(3, 3)]))  # fmt: skip
    bodies = []
    for name in ("yes", "no"):
        module = program.create_module(name)
        module.add_return([module.add_instruction(migraphx.op("softmax", axis=1), [x])])
        bodies.append(module)
    both = main_.add_instruction(migraphx.op("if"), [cond], bodies)
    main_.add_return([main_.add_instruction(migraphx.op("get_tuple_elem", index=0), [both])])
    model = onnx.ModelProto.FromString(model_bytes(program))
    node = model.graph.node[0]
    inner = {a.name: a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH}
    assert set(inner) == {"yes", "no"}
    (axis,) = inner["yes"].node[0].attribute
    assert (axis.name, axis.i) == ("axis", 1)
    assert inner["yes"].node[0].input[0] == "x"
    assert model.graph.input[1].type.tensor_type.shape.dim[0].dim_param == "[1..4]"


def test_brief_graphs_name_operators_alone(files, capsysbinary):
    brief = out_of(capsysbinary, "read", files / "small.mxr", "--graphviz", "--brief").decode()
    assert 'label="dot"' in brief
    assert "\\n" not in brief


def test_sizes_reach_the_parser(files, capsysbinary):
    def first(*words):
        return out_of(capsysbinary, "params", files / "small.onnx", *words).decode().strip()

    assert first() == "x: float_type, {1, 3}, {3, 1}"
    assert first("--batch", "5") == "x: float_type, {5, 3}, {3, 1}"
    assert first("--input-dim", "@x", "7", "3") == "x: float_type, {7, 3}, {3, 1}"
    assert first("--dim-param", "@N", "6") == "x: float_type, {6, 3}, {3, 1}"
    assert "N[1..9]" in first("--dim-param", "@N", "{min:1,max:9}")
    assert "[2..4]" in first("--default-dyn-dim", "{min:2,max:4}")
    assert "[2..4], 3" in first("--dyn-input-dim", "@x", "[{min:2,max:4},3]")


def test_debug_symbols_and_unknown_operators(tmp_path, files, capsysbinary):
    model = small_onnx()
    model.graph.node[0].name = "product"
    onnx.save(model, tmp_path / "named.onnx")
    text = out_of(capsysbinary, "read", tmp_path / "named.onnx", "--debug-symbols")
    assert b"# product" in text
    model.graph.node[1].op_type = "Fancy"
    model.graph.node[1].domain = "odd"
    model.opset_import.append(helper.make_opsetid("odd", 1))
    onnx.save(model, tmp_path / "odd.onnx")
    text = out_of(capsysbinary, "read", tmp_path / "odd.onnx", "--skip-unknown-operators")
    assert b"unknown:" in text


def test_passes_are_applied(files, capsysbinary):
    program = small_program()
    main_ = program.get_main_module()
    main_.add_instruction(migraphx.op("neg"), [main_.get_parameter("x")])
    migraphx.save(program, files / "dead.mxr")
    assert b"neg" in out_of(capsysbinary, "read", files / "dead.mxr")
    for words in (["-p", "dead_code_elimination"], ["--apply-pass", "eliminate_dead_code"], ["-O"]):
        assert b"neg" not in out_of(capsysbinary, "read", files / "dead.mxr", *words)


def test_unknown_passes_are_refused_with_a_list(files, capsys):
    assert {"dead_code_elimination", "rewrite_rnn"} <= set(available())
    code, line = error_of(capsys, "read", files / "small.mxr", "-p", "dead_code_eliminatio")
    assert code == 1
    assert "Unknown pass: dead_code_eliminatio; did you mean" in line
    left = next((n for n in LEFT_TO_XLA if n not in available()), None)
    if left:
        assert "left to XLA" in error_of(capsys, "read", files / "small.mxr", "-p", left)[1]


# -- trim --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "names", "inputs"),
    [
        (["-t", "1"], ["dot", "relu"], ["x"]),
        (["-t", "2"], ["dot"], ["x"]),
        (["-s", "1"], ["add"], ["x1"]),
        (["--trim", "1", "--trim-size", "1"], ["relu"], ["x1"]),
        (["-t", "0", "-s", "9"], ["dot", "relu", "add"], ["x"]),
    ],
)
def test_trim_keeps_a_piece_that_runs(files, capsysbinary, words, names, inputs):
    target = files / "piece.mxr"
    out_of(capsysbinary, "trim", files / "small.mxr", *words, "-o", target)
    piece = migraphx.load(target)
    body = [i.name() for i in piece.get_main_module() if not i.name().startswith("@")]
    assert body == names
    assert piece.get_parameter_names() == inputs
    shapes = piece.get_parameter_shapes()
    assert piece.run({n: migraphx.generate_argument(s) for n, s in shapes.items()})
    assert out_of(capsysbinary, "read", files / "small.mxr", *words) == f"{piece}".encode()


def test_trim_drops_modules_that_nobody_runs_now():
    from migraphx.driver.trim import trim

    program = migraphx.program()
    main_ = program.get_main_module()
    x = main_.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    cond = main_.add_parameter("cond", migraphx.shape(type="bool", lens=[1]))
    y = main_.add_instruction(migraphx.op("neg"), [x])
    bodies = []
    for name in ("yes", "no"):
        module = program.create_module(name)
        module.add_return([module.add_instruction(migraphx.op("relu"), [y])])
        bodies.append(module)
    both = main_.add_instruction(migraphx.op("if"), [cond], bodies)
    main_.add_return([main_.add_instruction(migraphx.op("get_tuple_elem", index=0), [both])])

    end = trim(program.clone(), 0, 2)  # the modules read what is cut off
    assert set(end.get_parameter_names()) == {"cond", "x2"}
    (value,) = end.run({"cond": np.array([True]), "x2": np.array([-1, 2], np.float32)})
    assert value.tolist() == [0, 2]
    start = trim(program.clone(), 2)
    assert [m.name() for m in start.get_modules()] == ["main"]
    assert start.get_parameter_names() == ["x"]


# -- lists -------------------------------------------------------------------------------------


def test_op_prints_defaults_as_json(capsysbinary):
    tree = json.loads(out_of(capsysbinary, "op", "convolution"))
    assert tree == migraphx.op("convolution").values()
    names = out_of(capsysbinary, "op", "-l").decode().splitlines()
    assert names == sorted(names)
    assert {"convolution", "dot", "softmax"} < set(names)


def test_lists_of_operators(capsysbinary):
    assert b"Conv\n" in out_of(capsysbinary, "onnx", "--list")


def test_tensorflow_graphs_are_read(tmp_path, capsysbinary):
    graph_pb2 = pytest.importorskip("tensorboard.compat.proto.graph_pb2")
    from google.protobuf import text_format

    text = """
        node { name: "x" op: "Placeholder"
               attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
        node { name: "y" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    """
    (tmp_path / "graph.txt").write_text(f"# frozen\n{text}")
    graph = text_format.Parse(text, graph_pb2.GraphDef())
    (tmp_path / "graph").write_bytes(graph.SerializeToString())
    for name in ("graph", "graph.txt"):
        printed = out_of(capsysbinary, "read", tmp_path / name, "--batch", 4)
        assert b"relu(x) -> float_type, {4, 3}" in printed
    words = ["params", tmp_path / "graph", "--input-dim", "@x", 2, 3, "--output-names", "y"]
    assert out_of(capsysbinary, *words) == b"x: float_type, {2, 3}, {3, 1}\n"


def test_tensorflow_graphs_have_fixed_sizes_and_are_frozen(tmp_path, capsys):
    (tmp_path / "graph.pbtxt").write_text('node { name: "x" op: "Placeholder" }')
    words = ["read", tmp_path / "graph.pbtxt", "--dim-param", "@n", 3]
    assert "use --batch and --input-dim" in error_of(capsys, *words)[1]
    pytest.importorskip("tensorboard.compat.proto.graph_pb2")
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12\x00")
    for place in (tmp_path, tmp_path / "saved_model.pb"):
        code, line = error_of(capsys, "read", place)
        assert code == 1
        assert "freeze it first" in line


def test_lists_of_tensorflow_operators(capsysbinary):
    pytest.importorskip("translate.from_tensorflow")
    assert b"Conv2D\n" in out_of(capsysbinary, "tf", "-l")


def test_params_as_json(files, capsysbinary):
    words = ["params", files / "small.onnx", "--dim-param", "@N", "{min:1,max:9}", "--json"]
    tree = json.loads(out_of(capsysbinary, *words))
    assert tree == {"x": {"type": "float_type", "dims": ["N[1..9]", 3]}}
    out_of(capsysbinary, *words, "-o", files / "params.json")
    assert json.loads((files / "params.json").read_text()) == tree
