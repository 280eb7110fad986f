"""Operator by operator at realistic sizes against onnxruntime, and the geometric mean.

    python -m tests.benchmarks.operators [--rounds N] [part of a name …]

Ratios above 1 are slower than onnxruntime. The rows are in `operator_rows.py`.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .models import compiled, session
from .operator_rows import ROWS, Row
from .timing import THREADS, in_turn, table

OPSET = 21
SHORT = 300e-6  # seconds; a faster operator is called several times per measurement
WORST = 2.0  # rows above are marked


def model_of(row: Row) -> tuple:
    """The bytes of a model of one node, and its inputs."""
    random = np.random.default_rng(0)
    names, feeds, weights = [], {}, []
    for k, value in enumerate(row.inputs):
        if value is None:
            names.append("")
            continue
        array = value.make(random)
        name = f"{'w' if value.constant else 'x'}{k}"
        names.append(name)
        if value.constant:
            weights.append(numpy_helper.from_array(array, name))
        else:
            feeds[name] = array
    outputs = [f"y{k}" for k in range(row.outputs)]
    node = helper.make_node(row.kind, names, outputs, **row.attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in feeds.items()
    ]
    kinds = (row.result, TensorProto.INT64) if row.kind == "TopK" else [row.result] * row.outputs
    results = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip(outputs, kinds, strict=True)
    ]
    graph = helper.make_graph([node], "model", inputs, results, weights)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), feeds


def measure(row: Row, rounds: int) -> tuple:
    """Seconds of both and the largest relative difference of the results."""
    data, feeds = model_of(row)
    theirs = session(data)
    ours, *_ = compiled(data, feeds)
    mine, wanted = ours.run(feeds), theirs.run(None, feeds)
    wrong = max(
        float(np.abs(np.asarray(a, np.float64) - b).max() / max(np.abs(b).max(), 1e-30))
        for a, b in zip(mine, wanted, strict=True)
    )
    functions = {"ours": lambda: ours.run(feeds), "ort": lambda: theirs.run(None, feeds)}
    quick = in_turn(functions, 3)
    repeat = max(1, int(SHORT / min(quick.values())))
    times = in_turn(functions, rounds, repeat)
    return times["ours"], times["ort"], wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    rows, ratios = [], []
    for row in ROWS:
        if args.parts and not any(part.lower() in row.name.lower() for part in args.parts):
            continue
        try:
            ours, theirs, wrong = measure(row, args.rounds)
        except Exception as error:
            rows.append((row.name, "-", "-", type(error).__name__, str(error).splitlines()[0][:60]))
            continue
        ratios.append(ours / theirs)
        mark = " !" if ratios[-1] > WORST else ""
        rows.append(
            (row.name, f"{ours * 1e6:.0f}", f"{theirs * 1e6:.0f}", f"{ratios[-1]:.2f}{mark}",
             f"{wrong:.0e}")
        )  # fmt: skip
    print(f"{THREADS} threads, medians of {args.rounds} rounds in turn")
    print(table(("operator", "ours µs", "onnxruntime µs", "ratio", "difference"), rows))
    above = sum(r > WORST for r in ratios)
    mean = statistics.geometric_mean(ratios)
    print(f"geometric mean {mean:.2f} over {len(ratios)} rows, {above} above {WORST}")


if __name__ == "__main__":
    main()
