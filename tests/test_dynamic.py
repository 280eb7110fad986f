"""Dynamic programs: at any sizes they give what a program of those sizes gives."""

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.build import SMALL, build, random_inputs
from onnx import TensorProto, helper, numpy_helper

import migraphx

DYN = migraphx.shape.dynamic_dimension
rng = np.random.default_rng(0)


def weight(name, *dims):
    return numpy_helper.from_array(rng.standard_normal(dims).astype(np.float32), name)


def model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(
        [helper.make_node(op, i, o, **a) for op, i, o, a in nodes], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        initializer=list(weights),
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return made.SerializeToString()


ints = numpy_helper.from_array
# Nodes, inputs with named dimensions, outputs, weights: what shape arithmetic must go through.
MODELS = {
    "convolution and pooling": model(
        [("Conv", ["x", "w"], ["a"], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
         ("MaxPool", ["a"], ["b"], {"kernel_shape": [2, 2], "ceil_mode": 1}),
         ("GlobalAveragePool", ["b"], ["y"], {})],
        [("x", ["n", 3, "h", "w_"])], ["b", "y"], [weight("w", 4, 3, 3, 3)]),
    "transposed convolution": model(
        [("ConvTranspose", ["x", "w"], ["y"], {"strides": [2], "output_padding": [1]})],
        [("x", ["n", 3, "h"])], ["y"], [weight("w", 3, 2, 3)]),
    "reshape to a computed shape": model(
        [("Shape", ["x"], ["s"], {}), ("Gather", ["s", "zero"], ["d"], {"axis": 0}),
         ("Concat", ["d", "minus"], ["t"], {"axis": 0}), ("Reshape", ["x", "t"], ["y"], {})],
        [("x", ["n", "h", 6])], ["y"],
        [ints(np.array([0]), "zero"), ints(np.array([-1]), "minus")]),
    "concat, slice, pad": model(
        [("Concat", ["x", "z"], ["a"], {"axis": 1}),
         ("Slice", ["a", "start", "end", "axis"], ["b"], {}),
         ("Pad", ["b", "pads"], ["y"], {})],
        [("x", ["n", "h"]), ("z", ["n", "k"])], ["a", "y"],
        [ints(np.array([1]), "start"), ints(np.array([2**31 - 1]), "end"),
         ints(np.array([1]), "axis"), ints(np.array([0, 2, 1, 0]), "pads")]),
    "broadcast against a shape": model(
        [("Shape", ["x"], ["s"], {}), ("Expand", ["one", "s"], ["o"], {}),
         ("Mul", ["x", "o"], ["y"], {})],
        [("x", ["n", "h", 2])], ["y"], [weight("one", 1, 1, 2)]),
    "attention": model(
        [("Transpose", ["x"], ["t"], {"perm": [0, 2, 1]}), ("MatMul", ["x", "t"], ["s"], {}),
         ("Softmax", ["s"], ["p"], {"axis": -1}), ("MatMul", ["p", "x"], ["y"], {})],
        [("x", ["n", "h", 5])], ["y"]),
    "resize": model(
        [("Resize", ["x", "", "scales"], ["y"], {"mode": "nearest"})],
        [("x", ["n", 1, "h", "k"])], ["y"],
        [ints(np.array([1, 1, 2, 2], np.float32), "scales")]),
    "flatten and gemm": model(
        [("Flatten", ["x"], ["f"], {"axis": 1}), ("Gemm", ["f", "w"], ["y"], {"transB": 1})],
        [("x", ["n", 2, 3])], ["y"], [weight("w", 4, 6)]),
    "reductions and where": model(
        [("ReduceMean", ["x"], ["m"], {"axes": [1], "keepdims": 1}),
         ("Greater", ["x", "m"], ["g"], {}), ("Where", ["g", "x", "m"], ["y"], {})],
        [("x", ["n", "h"])], ["y"]),
}  # fmt: skip
COMPILED = {}


def dynamic(name):
    if name not in COMPILED:
        program = migraphx.parse_onnx_buffer(MODELS[name], default_dyn_dim_value=DYN(1, 24))
        program.compile(migraphx.get_target("ref"))
        COMPILED[name] = program
    return COMPILED[name]


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_any_sizes_give_what_a_static_program_gives(name, data):
    sizes: dict = {}
    feeds = {}
    for value in onnx.load_from_string(MODELS[name]).graph.input:
        dims = []
        for d in value.type.tensor_type.shape.dim:
            if d.dim_param and d.dim_param not in sizes:
                low = 4 if "conv" in name else 2
                sizes[d.dim_param] = data.draw(st.integers(low, 9), label=d.dim_param)
            dims.append(sizes[d.dim_param] if d.dim_param else d.dim_value)
        feeds[value.name] = np.random.default_rng(len(dims)).standard_normal(dims, np.float32)
    shapes = {k: list(v.shape) for k, v in feeds.items()}
    fixed = migraphx.parse_onnx_buffer(MODELS[name], map_input_dims=shapes)
    program = dynamic(name)
    got, wanted = program.run(feeds), fixed.run(feeds)
    for a, b in zip(got, wanted, strict=True):
        assert a.get_shape().lens() == b.get_shape().lens()
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-5)
    # The promised shapes hold for the sizes given.
    for promised, real in zip(program.get_output_shapes(), got, strict=True):
        for dim, size in zip(promised.dyn_dims(), real.get_shape().lens(), strict=True):
            assert dim.min <= size <= dim.max
            if dim.is_symbolic():
                named = {k: v for k, v in sizes.items() if k in str(dim.expression)}
                assert dim.expr.evaluate(named) == size


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "unet", "bert", "gpt"])
def test_whole_networks(name):
    made = build(name, **SMALL[name])
    data = made.SerializeToString()
    program = migraphx.parse_onnx_buffer(data, default_dyn_dim_value=DYN(1, 32))
    program.compile(migraphx.get_target("ref"))
    for batch, sequence in ((2, 7), (1, 16)):
        feeds = random_inputs(made, {"batch": batch, "sequence": sequence})
        shapes = {k: list(v.shape) for k, v in feeds.items()}
        fixed = migraphx.parse_onnx_buffer(data, map_input_dims=shapes)
        for a, b in zip(program.run(feeds), fixed.run(feeds), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-4)


def test_costs_do_not_grow_with_the_largest_size():
    sizes = []
    for most in (8, 512):
        program = migraphx.parse_onnx_buffer(
            build("bert", **SMALL["bert"]).SerializeToString(),
            default_dyn_dim_value=DYN(1, most),
        )
        program.compile(migraphx.get_target("ref"))
        sizes.append(len(migraphx.save_buffer(program)))
    assert sizes[1] <= 1.2 * sizes[0]


def test_sizes_that_are_not_allowed():
    program = dynamic("concat, slice, pad")
    x, z = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    with pytest.raises(migraphx.Error, match="parameter z, axis 0: size 3"):
        program.run({"x": x, "z": z})
    with pytest.raises(migraphx.Error, match="axis 1 has size 25"):
        program.run({"x": np.ones((2, 25), np.float32), "z": z[:2]})


def test_a_migraphx_script_for_dynamic_batches():
    """Sizes as such scripts choose them: from the parameter's dims, fixed ones at their minimum."""
    program = dynamic("flatten and gemm")
    for batch in (1, 5):
        feeds = {}
        for name, value in program.get_parameter_shapes().items():
            lens = [d.min if d.is_fixed() else batch for d in value.dyn_dims()]
            static = migraphx.shape(type=value.type_string(), lens=lens)
            feeds[name] = migraphx.generate_argument(static, 1)
        (got,) = program.run(feeds)
        assert got.get_shape().lens() == [batch, 4]
