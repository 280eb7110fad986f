"""Fourier transforms of ONNX."""

from __future__ import annotations

from ..shape import Shape
from .base import Axis, Op, OptInt


class OnnxDft(Op, name="onnx::dft", inputs=1, own=True):
    """Discrete Fourier transform along `axis`; the last axis holds real (and imaginary) part.

    `length` cuts the signal or fills it with zeros. `onesided` keeps the non-negative half of the
    frequencies; together with `inverse` it takes such a half and gives a real signal.
    """

    axis: Axis = -2
    length: OptInt = None
    inverse: bool = False
    onesided: bool = False

    def rule(self, x):
        if x.dims is None:
            return x
        axis = self.axis_of(self.axis, x.rank)
        if axis == x.rank - 1:
            self.fail(f"axis {self.axis} holds the real and imaginary part of {x}")
        if x.dims[-1] not in (1, 2):
            self.fail(f"the last axis of {x} needs one real or two complex parts")
        dims = list(x.dims)
        real = self.inverse and self.onesided
        size = dims[axis] if self.length is None else self.length
        if self.length is None and real:
            size = 2 * (size - 1)
        dims[axis] = size // 2 + 1 if self.onesided and not self.inverse else size
        dims[-1] = 1 if real else 2
        return x.standard_of(dims)


class OnnxStft(Op, name="onnx::stft", inputs=(1, 2), own=True):
    """Fourier transforms of the frames of a signal {batch, length, parts}, weighted by a window.

    Frames of `frame_length` begin every `frame_step` elements.
    """

    frame_step: int = 1
    frame_length: int = 1
    onesided: bool = True

    def rule(self, x, *window):
        if x.dims is None:
            return x
        if x.rank != 3 or x.dims[2] not in (1, 2):
            self.fail(f"the signal should be {{batch, length, 1 or 2}}, got {x}")
        if self.frame_step < 1 or self.frame_length < 1:
            self.fail(f"frame_step {self.frame_step} and frame_length {self.frame_length} must be "
                      "positive")  # fmt: skip
        frames = (x.dims[1] - self.frame_length) // self.frame_step + 1
        bins = self.frame_length // 2 + 1 if self.onesided else self.frame_length
        return Shape.make(x.type(), (x.dims[0], frames, bins, 2))
