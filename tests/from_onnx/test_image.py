"""Operators on pictures that ONNX's suite has no case for, against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import migraphx


def both(node, opset, **inputs):
    """Results of a one-node model here and from onnxruntime."""
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in inputs.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", given, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    data = model.SerializeToString()
    ours = np.asarray(migraphx.parse_onnx_buffer(data).run(inputs)[0])
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return ours, session.run(None, inputs)[0]


@pytest.mark.parametrize(("scale", "pooled"), [(1.0, [2, 2]), (0.5, [3, 1])])
def test_max_roi_pool(scale, pooled):
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 9)).astype(np.float32)
    rois = np.array([[0, 0, 0, 7, 6], [1, 2, 3, 4, 5], [1, 5, 1, 5, 1]], np.float32)
    node = helper.make_node(
        "MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=pooled, spatial_scale=scale
    )
    ours, theirs = both(node, 13, x=x, rois=rois)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample_with_scales_as_an_attribute(mode):
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    node = helper.make_node("Upsample", ["x"], ["y"], mode=mode, scales=[1.0, 1.0, 2.0, 3.0])
    ours, theirs = both(node, 7, x=x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_antialiased_resize_to_nothing():
    x = np.ones((1, 1, 4, 4), np.float32)
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [4], [1, 1, 0, 4])
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear", antialias=1)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [given], [output], [sizes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    (y,) = migraphx.parse_onnx_buffer(model.SerializeToString()).run({"x": x})
    assert np.asarray(y).shape == (1, 1, 0, 4)


def test_loss_of_one_sample_keeps_its_axis():
    scores, target = np.array([[0.25, 0.75]], np.float32), np.array([1], np.int64)
    node = helper.make_node(
        "NegativeLogLikelihoodLoss", ["scores", "target"], ["y"], reduction="none"
    )
    ours, theirs = both(node, 13, scores=scores, target=target)
    assert ours.shape == theirs.shape == (1,)
    np.testing.assert_array_equal(ours, theirs)
