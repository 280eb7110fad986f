"""Fourier transforms, windows and mel weights of ONNX."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import dtype_of

from .registry import Const, onnx_op
from .tensors import element_type


def one_int(value, what: str) -> int:
    """The single whole number of a known input."""
    value = np.asarray(value)
    if value.size != 1:
        raise Error(f"{what} should be one number, got {value.tolist()}")
    return int(value.reshape(-1)[0])


def fourier(m, x, dft_length, axis, inverse, onesided):
    length = None if dft_length is None else one_int(dft_length, "dft_length")
    if length is not None and length < 1:
        raise Error(f"dft_length {length} must be positive")
    return m.add(
        "onnx::dft", x, axis=m.axis(axis, m.rank(x)), length=length, inverse=bool(inverse),
        onesided=bool(onesided),
    )  # fmt: skip


@onnx_op("DFT", since=20)
def dft(m, x, dft_length: Const = None, axis: Const = None, *, inverse=0, onesided=0):
    axis = -2 if axis is None else one_int(axis, "axis")
    return fourier(m, x, dft_length, axis, inverse, onesided)


@onnx_op("DFT")
def dft_17(m, x, dft_length: Const = None, *, axis=1, inverse=0, onesided=0):
    return fourier(m, x, dft_length, axis, inverse, onesided)


@onnx_op("STFT")
def stft(m, signal, frame_step: Const, window=None, frame_length: Const = None, *, onesided=1):
    """Frames are as long as said, else as the window, else as the signal."""
    if frame_length is not None:
        length = one_int(frame_length, "frame_length")
    else:
        length = m.static_dims(signal)[1] if window is None else m.static_dims(window)[0]
    if m.rank(signal) == 2:
        signal = m.add("unsqueeze", signal, axes=[2])
    return m.add(
        "onnx::stft", signal, *(() if window is None else (window,)),
        frame_step=one_int(frame_step, "frame_step"), frame_length=length,
        onesided=bool(onesided),
    )  # fmt: skip


# Weights of the cosines of 0, 1, 2 ... periods.
WINDOWS = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


def _window(weights):
    def handler(m, size: Const, *, output_datatype=1, periodic=1):
        count = one_int(size, "size")
        if count < 0:
            raise Error(f"size {count} is negative")
        periods = max(count if periodic else count - 1, 1)
        turns = np.arange(count) * (2 * np.pi / periods)
        values = sum(w * np.cos(k * turns) for k, w in enumerate(weights))
        return m.lit(np.asarray(values).astype(dtype_of(element_type(output_datatype))))

    return handler


for _name, _weights in WINDOWS.items():
    onnx_op(_name)(_window(_weights))


@onnx_op("MelWeightMatrix")
def mel_weight_matrix(
    m, num_mel_bins: Const, dft_length: Const, sample_rate: Const, lower_edge_hertz: Const,
    upper_edge_hertz: Const, *, output_datatype=1,
):  # fmt: skip
    """Triangles of the mel scale over the bins of a spectrum, {dft_length // 2 + 1, mel bins}."""
    bins, length = one_int(num_mel_bins, "num_mel_bins"), one_int(dft_length, "dft_length")
    rate = one_int(sample_rate, "sample_rate")
    edges = [float(np.asarray(v).reshape(-1)[0]) for v in (lower_edge_hertz, upper_edge_hertz)]
    if bins < 1 or length < 1 or rate < 1:
        raise Error(f"num_mel_bins {bins}, dft_length {length}, sample_rate {rate}: all positive")
    low, high = (2595 * np.log1p(e / 700) / np.log(10) for e in edges)
    mels = low + np.arange(bins + 2) * ((high - low) / (bins + 2))
    hertz = 700 * np.expm1(mels / 2595 * np.log(10))
    corners = ((length + 1) * hertz // rate).astype(int)
    result = np.zeros((length // 2 + 1, bins))
    spectrum = np.arange(len(result))
    for k, (left, top, right) in enumerate(zip(corners, corners[1:], corners[2:], strict=False)):
        if top >= len(result):
            raise Error(f"upper_edge_hertz {edges[1]} lies above half the sample rate {rate}")
        rising = (spectrum >= left) & (spectrum <= top)
        falling = (spectrum >= top) & (spectrum < right)
        result[rising, k] = (spectrum[rising] - left) / (top - left) if top > left else 1
        if right > top:
            result[falling, k] = (right - spectrum[falling]) / (right - top)
    return m.lit(result.astype(dtype_of(element_type(output_datatype))))
