"""What dynamic sizes cost: a size seen before, a new one, and a larger declared maximum.

``python -m tests.benchmarks.dynamic``; ratios to a static program, medians in turn.
"""

from __future__ import annotations

import sys
from statistics import median
from time import perf_counter

import migraphx
from tests.models.build import SMALL, build, random_inputs

MODELS = {"resnet50": {"batch": 2}, "bert": {"batch": 2, "sequence": 8}}
SIZES = {"resnet50": {"width": 32, "size": 96}, "bert": {**SMALL["bert"], "width": 256}}


def dynamic(data: bytes, most: int):
    """The program with every open size from 1 to `most`."""
    sizes = migraphx.shape.dynamic_dimension(1, most)
    program = migraphx.parse_onnx_buffer(data, default_dyn_dim_value=sizes)
    program.compile("cpu")
    return program


def static(data: bytes, dims: dict):
    """The program of one size."""
    program = migraphx.parse_onnx_buffer(data, map_input_dims=dims)
    program.compile("cpu")
    return program


def seconds(call, *args) -> float:
    """How long a call takes."""
    start = perf_counter()
    call(*args)
    return perf_counter() - start


def measure(name: str, rounds: int) -> None:
    """Prints the figures of one model."""
    model = build(name, **SIZES[name])
    data, feeds = model.SerializeToString(), random_inputs(model, MODELS[name])
    dims = {k: list(v.shape) for k, v in feeds.items()}
    open_, fixed = dynamic(data, 64), static(data, dims)
    open_.run(feeds), fixed.run(feeds)
    a, b = [], []
    for _ in range(rounds):
        a.append(seconds(open_.run, feeds))
        b.append(seconds(fixed.run, feeds))
    print(
        f"{name}: size seen before {median(a) * 1e6:.0f} µs, static {median(b) * 1e6:.0f} µs, "
        f"ratio {median(a) / median(b):.3f}"
    )
    first, whole, small, large = [], [], [], []
    for _ in range(5):
        first.append(seconds(dynamic(data, 64).run, feeds))
        start = perf_counter()
        static(data, dims).run(feeds)
        whole.append(perf_counter() - start)
        small.append(seconds(dynamic(data, 8).run, feeds))
        large.append(seconds(dynamic(data, 512).run, feeds))
    print(
        f"{name}: first run at a new size {median(first):.2f} s, static parse, compile and run "
        f"{median(whole):.2f} s, ratio {median(first) / median(whole):.2f}; sizes to 512 against "
        f"sizes to 8: {median(large) / median(small):.2f}"
    )


def main(rounds: int = 200) -> None:
    """Prints the figures."""
    for name in MODELS:
        measure(name, rounds)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
