"""Lower precision on this device: ratios to the float program, and to onnxruntime's int8.

``python -m tests.benchmarks.precision`` prints a table; everything is interleaved in one run.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import onnx

import migraphx

from ..models.build import build, random_inputs

SIZES = {
    "resnet50": ({"width": 32, "size": 128}, {"batch": 1}),
    "bert": ({"width": 256, "layers": 4, "heads": 4, "words": 2000}, {"batch": 1, "sequence": 64}),
}
KINDS = ("float", "fp16", "bf16", "int8", "fp8", "int4_weights")


def quantised(program, kind: str, data: dict):
    """The program in a lower precision, calibrated with the inputs that are measured."""
    if kind in ("int8", "fp8"):
        getattr(migraphx, f"quantize_{kind}")(program, "cpu", calibration=[data])
    elif kind != "float":
        getattr(migraphx, f"quantize_{kind}")(program)
    program.compile("cpu")
    return program


def rival(model: onnx.ModelProto, data: dict):
    """onnxruntime's session for the model, quantised by itself to int8 with the same data."""
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [data]

        def get_next(self):
            return self.left.pop() if self.left else None

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(model, source)
        quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ)
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(target.read_bytes(), options)
    return lambda: session.run(None, data)


def similarity(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine of the angle between two tensors."""
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-300))


def measured(calls: dict, rounds: int) -> dict:
    """Median seconds of each call, one after the other in every round."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = perf_counter()
            call()
            times[name].append(perf_counter() - start)
    return {name: median(t) for name, t in times.items()}


def main(rounds: int = 15) -> None:
    """Prints the table."""
    warnings.simplefilter("ignore")
    print(
        f"{'model':10} {'precision':13} {'ms':>8} {'x float':>8} {'x ort int8':>10} {'cosine':>9}"
    )
    for name, (sizes, dims) in SIZES.items():
        model = build(name, **sizes)
        data = random_inputs(model, dims)
        shapes = {k: list(v.shape) for k, v in data.items()}
        calls, results = {}, {}
        for kind in KINDS:
            parsed = migraphx.parse_onnx_buffer(model.SerializeToString(), map_input_dims=shapes)
            program = quantised(parsed, kind, data)
            calls[kind] = partial(program.run, data)
            results[kind] = np.asarray(program.run(data)[0])
        calls["ort"] = rival(model, data)
        found = measured(calls, rounds)
        for kind in KINDS:
            print(
                f"{name:10} {kind:13} {found[kind] * 1e3:8.2f} {found[kind] / found['float']:8.2f} "
                f"{found[kind] / found['ort']:10.2f} "
                f"{similarity(results[kind], results['float']):9.5f}"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
