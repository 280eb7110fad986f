"""Whole networks against onnxruntime at two input shapes: built ones, and trained ones of PyPI."""

import numpy as np
import onnx
import onnxruntime
import pytest
from models.build import SMALL, build, random_inputs
from models.real import REAL

import migraphx

pytestmark = pytest.mark.slow

AXES = ({"batch": 1, "sequence": 8}, {"batch": 3, "sequence": 20})
OPEN = migraphx.shape.dynamic_dimension(1, 1 << 16)


def session(data: bytes | str):
    """onnxruntime's session of a model or its path."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def open_dims(model: onnx.ModelProto) -> dict:
    """Parameters whose axes without a size may have any."""
    dims = {}
    for value in model.graph.input:
        sizes = [d.dim_value for d in value.type.tensor_type.shape.dim]
        dims[value.name] = [
            migraphx.shape.dynamic_dimension(n, n) if n > 0 else OPEN for n in sizes
        ]
    return {name: d for name, d in dims.items() if OPEN in d}


def agree(mine, theirs, names, rtol=1e-3) -> None:
    assert len(mine) == len(theirs)
    for name, got, wanted in zip(names, mine, theirs, strict=True):
        got = np.asarray(got)
        assert got.shape == wanted.shape, name
        assert got.dtype == wanted.dtype, name
        if wanted.dtype.kind in "biu":
            np.testing.assert_array_equal(got, wanted, err_msg=name)
        else:  # near zero what counts is the size of the whole result
            atol = rtol * float(np.abs(wanted).max())
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, err_msg=name)


def outputs(model: onnx.ModelProto) -> list:
    return [o.name for o in model.graph.output]


@pytest.mark.parametrize("norm", [False, True], ids=["folded", "batchnorm"])
@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "unet"])
def test_images(name, norm):
    check_built(build(name, norm=norm, **SMALL[name]))


@pytest.mark.parametrize("name", ["bert", "gpt"])
def test_texts(name):
    check_built(build(name, **SMALL[name]))


def check_built(model: onnx.ModelProto) -> None:
    """One program for all sizes, and one for each."""
    data = model.SerializeToString()
    theirs = session(data)
    whole = migraphx.parse_onnx_buffer(data, map_dyn_input_dims=open_dims(model))
    whole.compile(migraphx.get_target("cpu"))
    for axes in AXES:
        feeds = random_inputs(model, axes)
        wanted = theirs.run(None, feeds)
        agree(whole.run(feeds), wanted, outputs(model))
        dims = {name: list(array.shape) for name, array in feeds.items()}
        fixed = migraphx.parse_onnx_buffer(data, map_input_dims=dims)
        fixed.compile(migraphx.get_target("ref"))
        agree(fixed.run(feeds), wanted, outputs(model))


@pytest.mark.parametrize("name", REAL)
def test_trained(name):
    real = REAL[name]
    path = real.path()
    if path is None:
        pytest.skip(f"the package {real.package} is not installed (models/requirements.txt)")
    model = onnx.load(path, load_external_data=False)
    theirs = session(str(path))
    program = migraphx.parse_onnx(path, map_dyn_input_dims=open_dims(model))
    program.compile(migraphx.get_target("cpu"))
    for which in range(len(real.inputs)):
        feeds = real.feeds(which)
        agree(program.run(feeds), theirs.run(None, feeds), outputs(model))
