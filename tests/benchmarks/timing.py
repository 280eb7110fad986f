"""Times of several functions, taken in turn so that a busy machine hits all alike."""

from __future__ import annotations

import os
import statistics
import time

# onnxruntime's threads go on spinning for 20 to 50 ms after a call and slow down whoever is next.
PAUSE = 0.06
THREADS = len(os.sched_getaffinity(0))


def in_turn(functions: dict, rounds: int = 11, repeat: int = 1, pause: float = PAUSE) -> dict:
    """Median seconds of a call of each function; the first call of each is not counted."""
    times = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            time.sleep(pause)
            function()  # wakes threads and caches
            start = time.perf_counter()
            for _ in range(repeat):
                function()
            times[name].append((time.perf_counter() - start) / repeat)
    return {name: statistics.median(found) for name, found in times.items()}


def table(head: tuple, rows: list) -> str:
    """A table in Markdown."""
    rows = [tuple(map(str, row)) for row in rows]
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]

    def line(row):
        cells = [
            text.ljust(width) if k == 0 else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(cells)} |"

    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])
