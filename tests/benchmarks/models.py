"""Whole models at real widths, batch 1, against onnxruntime with the same threads.

python -m tests.benchmarks.models [--rounds N] [name …]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import onnxruntime

import migraphx
from tests.models.build import build, random_inputs

from .timing import THREADS, in_turn, table

# Model, its sizes, the sizes of its open axes.
MODELS = {
    "resnet50": ("resnet50", {}, {"batch": 1}),
    "mobilenet_v2": ("mobilenet_v2", {}, {"batch": 1}),
    "bert": ("bert", {}, {"batch": 1, "sequence": 128}),
    "gpt": ("gpt", {}, {"batch": 1, "sequence": 128}),
    "unet": ("unet", {}, {"batch": 1}),
}
CHECKED = ("resnet50", "mobilenet_v2", "bert")  # the others take longer


def session(data: bytes) -> onnxruntime.InferenceSession:
    """The model in onnxruntime, with as many threads as XLA has."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def compiled(data: bytes, feeds: dict, **options):
    """The model compiled for the shapes of `feeds`, and the seconds that parsing and compiling took."""
    dims = {name: list(array.shape) for name, array in feeds.items()}
    start = time.perf_counter()
    program = migraphx.parse_onnx_buffer(data, map_input_dims=dims)
    parsed = time.perf_counter()
    program.compile(migraphx.get_target("cpu"), **options)
    return program, parsed - start, time.perf_counter() - parsed


def difference(mine, theirs) -> float:
    """The largest difference, relative to the largest number."""
    pairs = [(np.asarray(a, np.float64), b) for a, b in zip(mine, theirs, strict=True)]
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def measure(name: str, rounds: int) -> tuple:
    """One row: milliseconds of both, their ratio, difference of the results, parse and compile."""
    model, sizes, axes = MODELS[name]
    proto = build(model, **sizes)
    feeds = random_inputs(proto, axes)
    data = proto.SerializeToString()
    del proto
    theirs = session(data)
    ours, parse, compilation = compiled(data, feeds)
    wrong = difference(ours.run(feeds), theirs.run(None, feeds))
    times = in_turn(
        {"ours": lambda: ours.run(feeds), "ort": lambda: theirs.run(None, feeds)}, rounds
    )
    return (
        name, f"{times['ours'] * 1e3:.2f}", f"{times['ort'] * 1e3:.2f}",
        f"{times['ours'] / times['ort']:.2f}", f"{wrong:.0e}", f"{parse:.2f}", f"{compilation:.2f}",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*MODELS, []], default=CHECKED)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    head = ("model", "ours ms", "onnxruntime ms", "ratio", "difference", "parse s", "compile s")
    print(f"{THREADS} threads, batch 1, medians of {args.rounds} rounds in turn")
    print(table(head, [measure(name, args.rounds) for name in args.names]))


if __name__ == "__main__":
    main()
