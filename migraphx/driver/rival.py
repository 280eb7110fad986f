"""ONNX Runtime beside us, for ``perf --compare onnxruntime``."""

from __future__ import annotations

import numpy as np

from ..errors import Error

PROVIDERS = ("MIGraphXExecutionProvider", "ROCMExecutionProvider", "CUDAExecutionProvider")


class OnnxRuntime:
    """A session on an ONNX file, with the inputs it is to run on.

    Its threads do not spin after a run: in turns with other work they would slow that down. That
    costs it some three percent.
    """

    def __init__(self, filename: str, inputs: dict, target: str):
        try:
            import onnxruntime
        except ImportError:
            raise Error(
                "--compare: onnxruntime is not installed; pip install onnxruntime"
            ) from None
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        options.log_severity_level = 3
        there = onnxruntime.get_available_providers()
        chosen = [p for p in PROVIDERS if p in there] if target == "gpu" else []
        try:
            self.session = onnxruntime.InferenceSession(
                filename, options, providers=[*chosen, "CPUExecutionProvider"]
            )
        except Exception as bad:  # its exceptions have no common class of their own
            raise Error(f"--compare: onnxruntime refuses {filename}: {bad}") from None
        self.version = onnxruntime.__version__
        self.provider = self.session.get_providers()[0]
        ranks = {i.name: len(i.shape) for i in self.session.get_inputs()}
        self.inputs = {
            name: np.ascontiguousarray(value).reshape(
                () if ranks[name] == 0 else value.numpy().shape
            )
            for name, value in inputs.items()
            if name in ranks
        }

    def run(self) -> list:
        """The outputs."""
        try:
            return self.session.run(None, self.inputs)
        except Exception as bad:
            raise Error(f"--compare: onnxruntime fails: {bad}") from None


def largest_difference(mine: list, theirs: list) -> float | None:
    """The largest difference between outputs that are arrays of numbers; None if there are none."""
    worst = None
    for one, other in zip(mine, theirs):
        other = np.asarray(other)
        if not hasattr(one, "get_shape") or one.parts or other.dtype.kind not in "fiub":
            continue
        a, b = one.numpy().astype(np.float64), other.astype(np.float64)
        if a.size == b.size and a.size:
            with np.errstate(invalid="ignore"):
                apart = np.abs(a.reshape(-1) - b.reshape(-1))
            apart[a.reshape(-1) == b.reshape(-1)] = 0  # infinities
            worst = max(worst or 0.0, float(apart.max()))
    return worst
