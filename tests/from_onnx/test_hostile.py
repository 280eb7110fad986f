"""Bad models: each ends in a `migraphx.Error` that names what is wrong, never in anything else."""

import random
import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

import migraphx

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def info(name, dims=(2, 3), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def model(*nodes, inputs=("x",), outputs=("y",), initializers=(), functions=(), opset=17):
    graph = helper.make_graph(
        list(nodes), "g", [info(i) for i in inputs], [info(o, None) for o in outputs],
        initializer=list(initializers),
    )  # fmt: skip
    domains = {"": opset, **{f.domain: 1 for f in functions}}
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(d, v) for d, v in domains.items()],
        functions=list(functions),
    )  # fmt: skip


def node(kind, inputs=("x",), outputs=("y",), name="bad_one", domain="", **attributes):
    return helper.make_node(kind, list(inputs), list(outputs), name, domain=domain, **attributes)


def literal(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def recursive():
    body = [node("Again", ["a"], ["b"], domain="own")]
    again = helper.make_function(
        "own", "Again", ["a"], ["b"], body,
        [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
    )  # fmt: skip
    return model(node("Again", domain="own"), functions=[again])


def doubling(depth=60):
    """Functions of which each calls the next twice: 2^60 nodes."""
    functions = []
    for k in range(depth):
        inner = f"F{k + 1}" if k + 1 < depth else "Relu"
        domain = "own" if k + 1 < depth else ""
        body = [node(inner, ["a"], ["m"], domain=domain), node(inner, ["m"], ["b"], domain=domain)]
        functions.append(
            helper.make_function("own", f"F{k}", ["a"], ["b"], body,
                                 [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)])
        )  # fmt: skip
    return model(node("F0", domain="own"), functions=functions)


def outside(location):
    tensor = literal("w", np.zeros((2, 3), np.float32))
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    return model(node("Add", ["x", "w"]), initializers=[tensor])


def short_data():
    tensor = literal("w", np.zeros((2, 3), np.float32))
    tensor.raw_data = tensor.raw_data[:-4]
    return model(node("Add", ["x", "w"]), initializers=[tensor])


def huge_initializer():
    tensor = literal("w", np.zeros((2, 3), np.float32))
    tensor.dims[:] = [1 << 40, 1 << 40]
    return model(node("Add", ["x", "w"]), initializers=[tensor])


CASES = {
    "unknown operators, all of them": (
        lambda: model(node("Nonsense", outputs=["a"]), node("Rubbish", ["a"], domain="com.me")),
        "Nonsense.*Rubbish",
    ),
    "missing input": (lambda: model(node("Add", ["x", "w"])), "bad_one.*'w' is not available"),
    "too few inputs": (lambda: model(node("Add", ["x"])), "bad_one"),
    "too many inputs": (lambda: model(node("Relu", ["x", "x", "x"])), "bad_one"),
    "no value for an output": (lambda: model(node("Relu", outputs=["z"])), "'y'"),
    "cycle": (
        lambda: model(node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"], "second"),
                      node("Relu", ["b"])),
        "bad_one|second",
    ),
    "attribute of a wrong type": (lambda: model(node("Softmax", axis=1.5)), "bad_one.*axis"),
    "attribute out of range": (lambda: model(node("Softmax", axis=7)), "bad_one"),
    "missing attribute": (lambda: model(node("Cast")), "bad_one.*to"),
    "type clash": (
        lambda: model(node("Concat", ["x", "w"], axis=0),
                      initializers=[literal("w", np.zeros((2, 3), np.int64))]),
        "bad_one",
    ),
    "shapes that do not fit": (
        lambda: model(node("MatMul", ["x", "x"])), "bad_one",
    ),
    "reshape to another number of elements": (
        lambda: model(node("Reshape", ["x", "s"]), initializers=[literal("s", np.array([5]))]),
        "bad_one",
    ),
    "data too short": (short_data, "'w'"),
    "absurd initializer": (huge_initializer, "'w'"),
    "absurd size": (
        lambda: model(node("Expand", ["x", "s"]),
                      initializers=[literal("s", np.array([1 << 40, 1 << 40, 2, 3]))]),
        "bad_one|elements|large",
    ),
    "external data outside": (lambda: outside("../../etc/passwd"), "w"),
    "external data at an absolute path": (lambda: outside("/etc/passwd"), "w"),
    "external data missing": (lambda: outside("weights.bin"), "w"),
    "function that calls itself": (recursive, "Again"),
    "functions that double": (doubling, "F|nodes"),
    "input twice": (lambda: model(node("Relu"), inputs=("x", "x")), "'x'"),
    "output twice": (lambda: model(node("Relu"), node("Abs", name="again")), "'y'"),
    "dilation of zero": (
        lambda: model(node("MaxPool", kernel_shape=[2], dilations=[0])), "bad_one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_models(name, tmp_path):
    make, text = CASES[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(make().SerializeToString())
    with pytest.raises(migraphx.Error, match=text):
        program = migraphx.parse_onnx(str(path))
        program.compile(migraphx.get_target("ref"))
        program.run({"x": np.zeros((2, 3), np.float32)})


def test_bad_files(tmp_path):
    good = model(node("Relu")).SerializeToString()
    for data in (b"", b"not a model at all", good[: len(good) // 2], good[:-3], b"\x00" * 1000):
        (tmp_path / "m.onnx").write_bytes(data)
        with pytest.raises(migraphx.Error):
            migraphx.parse_onnx(tmp_path / "m.onnx")
        with pytest.raises(migraphx.Error):
            migraphx.parse_onnx_buffer(data)
    with pytest.raises((migraphx.Error, FileNotFoundError), match="nowhere"):
        migraphx.parse_onnx(tmp_path / "nowhere.onnx")
    with pytest.raises((migraphx.Error, IsADirectoryError)):
        migraphx.parse_onnx(tmp_path)


# -- mutated models --------------------------------------------------------------------------------

KINDS = ("conv", "loop", "if", "scan", "resize", "gather", "reshape", "slice", "lstm", "topk",
         "einsum", "quantizelinear", "maxpool", "split", "concat", "pad", "nonzero")  # fmt: skip


def originals():
    chosen = {}
    for case in load_model_tests(kind="node"):
        kind = next((k for k in KINDS if case.name.startswith(f"test_{k}")), None)
        if kind and case.model is not None and len(chosen.setdefault(kind, [])) < 3:
            chosen[kind].append(case)
    return [case for cases in chosen.values() for case in cases]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes changed, removed, doubled or inserted at a few places."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.randint(1, 8)]
        elif kind == 2:
            data[at:at] = data[at : at + rng.randint(1, 16)]
        else:
            data[at] ^= 1 << rng.randrange(8)
        if not data:
            return b"\x00"
    return bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("case", originals(), ids=lambda c: c.name)
def test_mutated_models_end_in_a_result_or_an_error(case):
    rng = random.Random(case.name)
    data = case.model.SerializeToString()
    for _ in range(25):
        changed = mutated(data, rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = migraphx.parse_onnx_buffer(changed, limit_max_iterations=100)
                if sum(s.bytes() for s in program.get_parameter_shapes().values()) > 1 << 24:
                    continue
                program.get_output_shapes()
        except migraphx.Error:
            pass


def test_a_model_that_is_right_runs():
    program = migraphx.parse_onnx_buffer(model(node("Relu")).SerializeToString())
    program.compile(migraphx.get_target("ref"))
    (got,) = program.run({"x": -np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(np.asarray(got), np.zeros((2, 3)))
