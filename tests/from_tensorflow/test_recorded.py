"""Graphs that TensorFlow has run: the results recorded by `record.py`, and ours."""

import json
from pathlib import Path

import numpy as np
import pytest
from from_tensorflow import weights
from ml_dtypes import bfloat16
from tensorboard.compat.proto import graph_pb2

import migraphx

HERE = Path(__file__).parent
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)


def load(path):
    """The arrays of a file by name, and the notes on each case."""
    with np.load(path) as stored:
        index = json.loads(stored["index"].tobytes())
        notes = json.loads(stored["notes"].tobytes())
        data = stored["data"].tobytes()
    arrays = {}
    for key, (at, kind, shape) in index.items():
        dtype = np.dtype(kind)
        count = int(np.prod(shape, dtype=int))
        arrays[key] = np.frombuffer(data, dtype, count, at).reshape(shape)
    return arrays, notes


FILES = {name: load(HERE / f"{name}.npz") for name in ("ops", "more", "control", "networks")}
ROWS = [
    pytest.param(file, case, id=case, marks=[pytest.mark.slow] if note.get("slow") else [])
    for file, (_, notes) in FILES.items()
    for case, note in notes.items()
]


def recorded_graph(file, case):
    arrays, notes = FILES[file]
    graph = graph_pb2.GraphDef.FromString(arrays[f"{case}|graph"].tobytes())
    if notes[case].get("stripped"):
        weights.restore(graph)
    return graph


def images_first(array):
    """Rank 4 as programs take and give it."""
    return np.ascontiguousarray(array.transpose(FIRST)) if array.ndim == 4 else array


def typed(array, kind):
    return array.view(bfloat16) if kind == "bfloat16" else array


@pytest.mark.parametrize(("file", "case"), ROWS)
def test_same_as_tensorflow(file, case, tmp_path):
    arrays, notes = FILES[file][0], FILES[file][1][case]
    path = tmp_path / "graph.pb"
    path.write_bytes(recorded_graph(file, case).SerializeToString())
    program = migraphx.parse_tf(path, output_names=notes["outputs"], **notes.get("parse", {}))
    program.compile(migraphx.get_target("ref"))
    feed = {
        key: images_first(typed(arrays[f"{case}|in|{key}"], kind))
        for key, kind in notes["kinds"]["in"].items()
        if key in program.get_parameter_names()
    }
    results = program.run(feed)
    tolerance = notes.get("tolerance", 1e-5)
    assert len(results) == len(notes["outputs"])
    for k, (result, kind) in enumerate(zip(results, notes["kinds"]["out"], strict=True)):
        want = images_first(typed(arrays[f"{case}|out|{k}"], kind))
        have = np.asarray(result)
        assert have.dtype == want.dtype, notes["outputs"][k]
        assert list(result.get_shape().lens()) == list(want.shape or (1,)), notes["outputs"][k]
        if want.dtype.kind == "f" or kind == "bfloat16":
            wide = want.astype(np.float64)
            scale = max(1.0, float(np.abs(wide[np.isfinite(wide)]).max(initial=0)))
            np.testing.assert_allclose(
                have.astype(np.float64).reshape(want.shape), wide, rtol=tolerance,
                atol=tolerance * scale,
            )  # fmt: skip
        else:
            np.testing.assert_array_equal(have.reshape(want.shape), want)


@pytest.mark.parametrize("case", [c for c in FILES["more"][1] if c.startswith("layout_")])
def test_channels_last_outside(case, tmp_path):
    """Without is_nhwc, parameters and results have the graph's own layout."""
    arrays, notes = FILES["more"][0], FILES["more"][1][case]
    path = tmp_path / "graph.pb"
    path.write_bytes(recorded_graph("more", case).SerializeToString())
    program = migraphx.parse_tf(path, output_names=notes["outputs"], is_nhwc=False)
    program.compile(migraphx.get_target("ref"))
    for k, result in enumerate(program.run({"x": arrays[f"{case}|in|x"]})):
        want = arrays[f"{case}|out|{k}"]
        np.testing.assert_allclose(np.asarray(result), want, rtol=1e-5, atol=1e-4)


# Operators that no recorded case has; the list may only shrink.
NOT_RECORDED = {
    "AccumulateNV2": "TensorFlow has no kernel; as AddN",
    "Case": "frozen as StatelessCase",
    "DebugIdentity": "as Identity",
    "HostConst": "as Const",
    "Print": "as Identity",
    "Rank": "TensorFlow folds it while it builds a graph",
    "RefMerge": "as Merge",
    "RefSwitch": "as Switch",
    "StatefulPartitionedCall": "as PartitionedCall",
    "TopK": "removed from TensorFlow; as TopKV2",
    "_FusedDepthwiseConv2dNative": "TensorFlow has no kernel for CPUs; as _FusedConv2D",
}


def test_each_operator_is_recorded():
    seen = set()
    for file, (_, notes) in FILES.items():
        for case in notes:
            graph = recorded_graph(file, case)
            seen.update(n.op for n in graph.node)
            seen.update(n.op for f in graph.library.function for n in f.node_def)
    assert set(migraphx.get_tf_operators()) - seen == set(NOT_RECORDED)


@pytest.mark.parametrize("case", ["MobileNetV2", "ResNet50", "InceptionV3", "DenseNet121"])
def test_no_transposes_in_image_networks(case, tmp_path):
    path = tmp_path / "graph.pb"
    path.write_bytes(recorded_graph("networks", case).SerializeToString())
    program = migraphx.parse_tf(path)
    names = [ins.name() for ins in program.get_main_module()]
    assert "convolution" in names
    assert "transpose" not in names
