"""Runs with a stop-watch, and ``migraphx-driver time``."""

from __future__ import annotations

import time

from ..program import Program
from .compiling import prepare
from .console import progress


def time_(options) -> None:
    """The command: the mean time of a run."""
    ready = prepare(options)
    for _ in range(options.warm_up):
        run_once(ready.program, ready.inputs)
    seconds = []
    with progress("running"):
        timed_runs(ready.program, ready.inputs, options.iterations, seconds)
    print(f"Total time: {sum(seconds) / len(seconds) * 1e3:.6g} ms")


def timed_runs(program: Program, inputs: dict, count: int, seconds: list) -> list:
    """Runs `count` times, adding to `seconds` what each took; the last results."""
    results = []
    for _ in range(count):
        begin = time.perf_counter()
        results = run_once(program, inputs)
        seconds.append(time.perf_counter() - begin)
    return results


def run_once(program: Program, inputs: dict) -> list:
    """The results of a run, on the host."""
    results = program.run(inputs)
    for result in results:
        wait(result)
    return results


def wait(result) -> None:
    """Waits for a result, which may be a tuple, or none."""
    if not hasattr(result, "get_shape"):
        return
    if result.get_shape().type_string() != "tuple_type":
        result.numpy()
    for part in result.parts:
        wait(part)
