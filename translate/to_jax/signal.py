"""Lowerings of Fourier transforms.

Forward transforms are computed in double and rounded once; the inverse in the precision of its
input, as ONNX's reference does, whose suite compares what is left of zeros to 1e-7.
"""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error

from .numeric import FLOAT32, FLOAT64
from .registry import lower


@lower("onnx::dft")
def dft(op, xp, x):
    axis = op.axis % x.ndim
    length = x.shape[axis] if op.length is None else op.length
    if op.inverse and op.onesided:
        length = 2 * (x.shape[axis] - 1) if op.length is None else op.length
        return xp.fft.irfft(joined(xp, x), length, axis)[..., None].astype(x.dtype)
    if length < 1:
        raise Error(f"onnx::dft: a length of {length} along axis {axis} has no transform")
    return transform(xp, x, length, axis, op.inverse, op.onesided).astype(x.dtype)


def joined(xp, x, dtype=np.float64):
    """Real or complex signal from the parts in the last axis."""
    wide = x.astype(dtype)
    return wide[..., 0] if x.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]


def transform(xp, x, length: int, axis: int, inverse: bool, onesided: bool):
    """The transform with its parts in a new last axis."""
    signal = joined(xp, x, FLOAT32 if inverse and x.dtype != FLOAT64 else FLOAT64)
    if inverse:
        found = xp.fft.ifft(signal, length, axis)
    elif onesided and signal.dtype == np.float64:
        found = xp.fft.rfft(signal, length, axis)
    else:
        found = xp.fft.fft(signal, length, axis)
        if onesided:
            index = [slice(None)] * signal.ndim
            index[axis] = slice(length // 2 + 1)
            found = found[tuple(index)]
    return xp.stack([xp.real(found), xp.imag(found)], -1)


@lower("onnx::stft")
def stft(op, xp, x, window=None):
    length = op.frame_length
    frames = (x.shape[1] - length) // op.frame_step + 1
    if frames < 1:
        raise Error(f"onnx::stft: a signal of {x.shape[1]} elements has no frame of {length}")
    places = np.arange(frames)[:, None] * op.frame_step + np.arange(length)
    parts = x.astype(np.float64)[:, places]  # {batch, frames, length, parts}
    if window is not None:
        weights = window.astype(np.float64)[:length]
        if len(weights) < length:
            weights = xp.pad(weights, (0, length - len(weights)))
        parts = parts * weights[:, None]
    return transform(xp, parts, length, 2, False, op.onesided).astype(x.dtype)
