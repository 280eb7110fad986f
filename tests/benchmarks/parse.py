"""Reading a model of 100 MB: time against `onnx.load`, and the peak of memory.

``python -m tests.benchmarks.parse``; each number is of a new process, medians of processes in turn.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

from tests.models.build import build

from .load import fresh

COMMON = """
import json, sys, time
def memory(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
"""
OURS = (
    COMMON
    + """
import migraphx, onnx, translate.from_onnx, warnings
warnings.simplefilter("ignore")
before, begin = memory("VmRSS"), time.perf_counter()
program = migraphx.parse_onnx(sys.argv[1])
taken = time.perf_counter() - begin
weights = sum(i.shape().bytes() for i in program.get_main_module() if i.name() == "@literal")
print(json.dumps([taken, memory("VmHWM") - before, weights]))
"""
)
THEIRS = (
    COMMON
    + """
import onnx
begin = time.perf_counter()
onnx.load(sys.argv[1])
print(json.dumps([time.perf_counter() - begin]))
"""
)


def main(rounds: int = 5) -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        path.write_bytes(build("resnet50").SerializeToString())
        size = path.stat().st_size
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(fresh(OURS, path))
            theirs.append(fresh(THEIRS, path))
        taken, peak, weights = (median(c) for c in zip(*ours, strict=True))
        other = median(t for (t,) in theirs)
        print(f"file {size / 1e6:.0f} MB, weights {weights / 1e6:.0f} MB")
        print(
            f"parse {taken * 1e3:.0f} ms, onnx.load {other * 1e3:.0f} ms, ratio {taken / other:.2f}"
        )
        print(f"peak beyond the weights {(peak - weights) / size:.2f} x the file")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
