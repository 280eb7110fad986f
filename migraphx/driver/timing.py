"""Runs with a stop-watch, and ``migraphx-driver time``."""

from __future__ import annotations

import time
from contextlib import contextmanager

from ..program import Program
from .compiling import Ready, prepare
from .console import progress

WHOLE = {f"{sign}int{bits}_type" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def time_(options) -> None:
    """The command: the mean time of a run."""
    ready = prepare(options)
    seconds = []
    with progress("running"), explaining(ready, options):
        timed_runs(ready.program, ready.inputs, options.warm_up, [])
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


@contextmanager
def explaining(ready: Ready, options):
    """Adds to an error of a run that random whole numbers may be what it stumbles on."""
    try:
        yield
    except Exception as error:
        given = {*options.fill0, *options.fill1, *options.load_arg}
        names = [n for n, s in ready.program.get_parameter_shapes().items()
                 if s.type_string() in WHOLE and not given & {n, f"@{n}"}]  # fmt: skip
        if names:
            error.add_note(f"the inputs {', '.join(names)} are random numbers; "
                           "--fill0, --fill1 and --load-arg give others")  # fmt: skip
        raise


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
