"""Records what TensorFlow computes for small graphs and for networks.

    pip install tensorflow-cpu          # in an environment of its own; 2.21 made the files here
    python tests/from_tensorflow/record.py [part of a case's name]

A case is a frozen GraphDef, its inputs, the names of its outputs and TensorFlow's results. The
files beside this script hold them; `test_recorded.py` runs them through `migraphx.parse_tf`.
With a part of a name, the cases that have it are only computed and listed.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np

HERE = Path(__file__).parent
CASES: dict[str, "Case"] = {}


class Case:
    """One recording.

    Attributes
    ----------
    name : str
    graph : GraphDef
    inputs : dict of str to ndarray
        By placeholder.
    outputs : list of str
        Names, ``node`` or ``node:1``.
    options : dict
        ``tolerance``, ``stripped`` (weights are made from a seed), ``slow``, and what goes to
        `parse_tf` under ``parse``.
    expected : list of ndarray
    """

    def __init__(self, name, graph, inputs, outputs, **options):
        self.name, self.graph, self.inputs = name, graph, inputs
        self.outputs, self.options = outputs, options
        self.expected = options.pop("expected", None)

    def compute(self):
        """Runs TensorFlow on the graph as it is stored."""
        import tensorflow as tf
        import weights

        if self.options.get("stripped"):
            weights.strip(self.graph)
            full = type(self.graph)()
            full.CopyFrom(self.graph)
            weights.restore(full)
        else:
            full = self.graph
        with tf.Graph().as_default() as g:
            tf.import_graph_def(full, name="")
            fetches = [n if ":" in n else f"{n}:0" for n in self.outputs]
            with tf.compat.v1.Session(graph=g) as session:
                feed = {f"{n}:0": v for n, v in self.inputs.items()}
                self.expected = session.run(fetches, feed)
        return self


def add(case) -> None:
    """Notes a case; names are unique."""
    if case.name in CASES:
        raise ValueError(f"two cases are called {case.name}")
    CASES[case.name] = case


def graph_case(name, function, inputs, **options):
    """A case from a function of placeholders, built as a TensorFlow 1 graph.

    `inputs` gives the data of each argument; the placeholder has their shape unless
    ``shapes={name: shape}`` says otherwise.
    """
    import tensorflow as tf

    shapes = options.pop("shapes", {})
    with tf.Graph().as_default() as graph:
        placed = {
            key: tf.compat.v1.placeholder(value.dtype, shapes.get(key, value.shape), name=key)
            for key, value in inputs.items()
        }
        results = function(**placed)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
    outputs = [r.name.removesuffix(":0") for r in results]
    add(Case(name, lean(graph.as_graph_def()), inputs, outputs, **options))


def frozen_case(name, function, inputs, **options):
    """A case from a function traced and frozen by TensorFlow 2, control flow kept functional."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2 as freeze,
    )

    shapes = options.pop("shapes", {})
    specs = [
        tf.TensorSpec(shapes.get(k, v.shape), tf.as_dtype(v.dtype), name=k)
        for k, v in inputs.items()
    ]
    made = tf.function(function).get_concrete_function(*specs)
    frozen = freeze(made, lower_control_flow=False)
    graph = lean(frozen.graph.as_graph_def())
    outputs = [t.name.removesuffix(":0") for t in frozen.outputs]
    add(Case(name, graph, inputs, outputs, **options))


def function_case(name, function, inputs, **options):
    """A case from a function traced by TensorFlow 2 as it is: its calls are not written out."""
    import tensorflow as tf

    specs = [tf.TensorSpec(v.shape, tf.as_dtype(v.dtype), name=k) for k, v in inputs.items()]
    made = tf.function(function).get_concrete_function(*specs)
    graph = lean(made.graph.as_graph_def())
    outputs = [t.name.removesuffix(":0") for t in made.outputs]
    add(Case(name, graph, inputs, outputs, **options))


def lean(graph):
    """The graph without what no reader needs, so that the files stay small."""
    for nodes in [graph.node, *(f.node_def for f in graph.library.function)]:
        for node in nodes:
            for key in [k for k in node.attr if k.startswith("_") or k in ("use_cudnn_on_gpu",)]:
                del node.attr[key]
            node.ClearField("experimental_debug_info")
            node.ClearField("device")
    for function in graph.library.function:
        for argument in function.arg_attr.values():
            argument.attr.clear()
    return graph


def write(path, cases) -> None:
    """Writes cases to one compressed file."""
    arrays, notes = {}, {}
    for case in cases:
        arrays[f"{case.name}|graph"] = np.frombuffer(case.graph.SerializeToString(), np.uint8)
        for key, value in case.inputs.items():
            arrays[f"{case.name}|in|{key}"] = plain(value)
        for k, value in enumerate(case.expected):
            arrays[f"{case.name}|out|{k}"] = plain(value)
        kinds = {"in": {k: v.dtype.name for k, v in case.inputs.items()},
                 "out": [np.asarray(v).dtype.name for v in case.expected]}  # fmt: skip
        notes[case.name] = {"outputs": case.outputs, "kinds": kinds, **case.options}
    text = json.dumps(notes, separators=(",", ":")).encode()
    pack(path, arrays, np.frombuffer(text, np.uint8))


def pack(path, arrays, notes) -> None:
    """All arrays as one blob: thousands of small zip members would take more than the data."""
    index, parts, at = {}, [], 0
    for key, value in arrays.items():
        data = np.ascontiguousarray(value).tobytes()
        index[key] = [at, value.dtype.str, list(value.shape)]
        parts.append(data)
        at += len(data)
    where = np.frombuffer(json.dumps(index, separators=(",", ":")).encode(), np.uint8)
    blob = np.frombuffer(b"".join(parts), np.uint8)
    np.savez_compressed(path, notes=notes, index=where, data=blob)


def plain(value) -> np.ndarray:
    """Types that NumPy's files lack as their bits."""
    value = np.asarray(value)
    return value.view(np.uint16) if value.dtype.name == "bfloat16" else value


def main(part=""):
    sys.path.insert(0, str(HERE))
    sys.modules["record"] = sys.modules[__name__]
    import record_control
    import record_more
    import record_networks
    import record_ops

    files = {}
    for module, path in (
        (record_ops, "ops.npz"),
        (record_more, "more.npz"),
        (record_control, "control.npz"),
        (record_networks, "networks.npz"),
    ):
        CASES.clear()
        module.cases()
        chosen = [c for c in CASES.values() if part in c.name]
        files[path] = [c.compute() for c in chosen]
        print(path, len(chosen), "cases")
        if part:
            print(*(f"{c.name} {[np.shape(e) for e in c.expected]}" for c in chosen), sep="\n")
    if not part:
        for path, cases in files.items():
            write(HERE / path, cases)


if __name__ == "__main__":
    main(*sys.argv[1:])
