"""From a saved, compiled program to its first result in a new process, against onnxruntime.

``python -m tests.benchmarks.load`` prints a table: medians over processes that take turns. Ours:
`load` and `run` with a warm cache; onnxruntime: session and first run. Imports are apart. Also the
time and the peak of memory of `load` alone, against reading the file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

import migraphx
from tests.models.build import build, random_inputs

from .timing import THREADS

MODELS = {"resnet50": ({}, {"batch": 1}), "bert": ({}, {"batch": 1, "sequence": 128})}

OURS = """
import json, sys, time
start = time.perf_counter()
import jax, numpy as np
import migraphx, translate.to_jax
jax.local_devices(backend="cpu")
imported = time.perf_counter()
feeds = dict(np.load(sys.argv[2]))
def memory(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
before, begin = memory("VmRSS"), time.perf_counter()
program = migraphx.load(sys.argv[1])
loaded, after = time.perf_counter(), memory("VmHWM")
program.run(feeds)
print(json.dumps([imported - start, loaded - begin, time.perf_counter() - begin, after - before]))
"""
THEIRS = """
import json, sys, time
start = time.perf_counter()
import numpy as np, onnxruntime
imported = time.perf_counter()
feeds = dict(np.load(sys.argv[2]))
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
begin = time.perf_counter()
session = onnxruntime.InferenceSession(sys.argv[1], options)
session.run(None, feeds)
print(json.dumps([imported - start, time.perf_counter() - begin]))
"""
READ = """
import sys, time
begin = time.perf_counter()
open(sys.argv[1], "rb").read()
print(time.perf_counter() - begin)
"""


def fresh(script: str, *words) -> list:
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main(rounds: int = 5) -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["MIGRAPHX_JAX_CACHE"] = str(folder / "cache")
        print("| model | file MB | load + run ms | onnxruntime ms | ratio | load ms | read ms | "
              "peak / file | import ms ours | theirs |")  # fmt: skip
        print("|---|---|---|---|---|---|---|---|---|---|")
        for model, (sizes, axes) in MODELS.items():
            proto = build(model, **sizes)
            feeds = random_inputs(proto, axes)
            np.savez(folder / "feeds.npz", **feeds)
            (folder / "m.onnx").write_bytes(proto.SerializeToString())
            del proto
            dims = {k: list(v.shape) for k, v in feeds.items()}
            program = migraphx.parse_onnx(folder / "m.onnx", map_input_dims=dims)
            program.compile("cpu")
            migraphx.save(program, folder / "m.mxr")
            del program
            size = (folder / "m.mxr").stat().st_size
            ours, theirs, read = [], [], []
            for _ in range(rounds):
                ours.append(fresh(OURS, folder / "m.mxr", folder / "feeds.npz"))
                theirs.append(fresh(THEIRS, folder / "m.onnx", folder / "feeds.npz", THREADS))
                read.append(fresh(READ, folder / "m.mxr"))
            imported, loaded, total, peak = (median(c) for c in zip(*ours, strict=True))
            imported2, total2 = (median(c) for c in zip(*theirs, strict=True))
            print(
                f"| {model} | {size / 1e6:.0f} | {total * 1e3:.0f} | {total2 * 1e3:.0f} | "
                f"{total / total2:.2f} | {loaded * 1e3:.0f} | {median(read) * 1e3:.0f} | "
                f"{peak / size:.2f} | {imported * 1e3:.0f} | {imported2 * 1e3:.0f} |"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
