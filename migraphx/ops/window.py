"""Operators that slide a window: convolution, pooling, im2col, lrn."""

from __future__ import annotations

import dataclasses

from ..dims import Dim, fixed, hi, intersect, lo
from ..shape import Shape
from ..types import SMALL_FLOATS, type_t
from .base import Ints, Op, PaddingMode, PoolingMode


def out_size(size, pads: int, kernel, stride: int, dilation: int, least: int = 0, up=False):
    """Places of a window along one axis; `up` counts the last, partial one too."""
    reach = dilation * (kernel - 1) + 1
    round_up = stride - 1 if up else 0
    if isinstance(size, Dim) or isinstance(reach, Dim):
        room = size + pads - reach + round_up
        if lo(size) + pads - hi(reach) >= 0:
            return room // stride + 1
        return (size + (pads + stride + round_up) - reach) // stride
    return max((size + pads - reach + round_up) // stride + 1, least)


def same_pads(size: int, kernel: int, stride: int, dilation: int, mode) -> tuple:
    """Padding before and after an axis so that ceil(size / stride) windows fit."""
    reach = dilation * (kernel - 1) + 1
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    small = total // 2
    return (total - small, small) if mode == PaddingMode.same_lower else (small, total - small)


class Window(Op):
    """What convolutions and pooling share: attributes with one entry per spatial axis."""

    def spatial(self, x) -> int:
        if x.rank < 3:
            self.fail(f"at least 3 dimensions (batch, channels, spatial) are needed, got {x}")
        return x.rank - 2

    def check_sizes(self, rank: int, names, padding_twice=True):
        """Refuses attributes that do not fit the number of spatial axes."""
        allowed = {"padding": (rank, 2 * rank) if padding_twice else (rank,)}
        for name in names:
            values = getattr(self, name)
            if len(values) not in allowed.get(name, (rank,)):
                self.fail(
                    f"inconsistent attribute sizes: {name} {list(values)} for {rank} spatial axes"
                )
            least = 0 if name == "padding" else 1
            if any(v < least for v in values):
                self.fail(f"{name} {list(values)}: at least {least} is needed")

    def both_pads(self, rank: int) -> list:
        """(before, after) of each spatial axis as the attribute says."""
        before = self.padding[:rank]
        return list(zip(before, self.padding[rank:] or before, strict=True))

    def normalized(self, shapes):
        """Padding written out for both sides."""
        rank = shapes[0].rank - 2
        if len(self.padding) != rank:
            return self
        return dataclasses.replace(self, padding=(*self.padding, *self.padding))


CONVOLUTION = ("padding", "stride", "dilation")


class Convolution(Window, name="convolution", inputs=2, same_type=True):
    """Grouped convolution over any number of spatial axes.

    Inputs are (N, C, spatial…) and (O, C/group, kernel…). With an automatic `padding_mode`,
    ceil(size / stride) windows fit each axis.
    """

    padding: Ints = (0, 0)
    stride: Ints = (1, 1)
    dilation: Ints = (1, 1)
    group: int = 1
    padding_mode: PaddingMode = PaddingMode.default_

    least = 0
    automatic = True  # whether an automatic padding mode has an effect

    def rule(self, x, w):
        if x.dims is None or w.dims is None:
            return Shape.unknown(x.type())
        return self.result(x, w, x.type())

    def result(self, x, w, kind):
        if x.rank != w.rank:
            self.fail(f"Number of dimensions do not match: {x} and {w}")
        rank = self.spatial(x)
        self.check_sizes(rank, CONVOLUTION)
        self.check_channels(x, w)
        pads = self.both_pads(rank)
        dims = [x.dims[0], w.dims[0]]
        for k in range(rank):
            size, kernel, stride = x.dims[2 + k], w.dims[2 + k], self.stride[k]
            if self.automatic and self.padding_mode != PaddingMode.default_:
                dims.append((size + (stride - 1)) // stride)
            else:
                dims.append(
                    out_size(size, sum(pads[k]), kernel, stride, self.dilation[k], self.least)
                )
        base = w if w.dynamic() and not x.dynamic() else x
        return base.packed_like(dims, kind) if base is x else base.standard_of(dims, kind)

    def check_channels(self, x, w):
        channels, inner = x.dims[1], w.dims[1]
        if self.group < 1:
            self.fail(f"group {self.group}: at least 1 is needed")
        have = inner * self.group
        if channels != have and (
            (fixed(channels) and fixed(inner)) or intersect(channels, have) is None
        ):
            self.fail(f"mismatched channel numbers: {channels} channels, weights for {have}")
        if fixed(w.dims[0]) and lo(w.dims[0]) % self.group:
            self.fail(f"{w.dims[0]} output channels do not divide into {self.group} groups")


class QuantConvolution(Convolution, name="quant_convolution", inputs=(2, 4)):
    """`convolution` of quantised numbers: int8 gives int32, fp8 and float give float.

    With four inputs the last two are scales, multiplied with the first two before.
    `padding_mode` is kept but has no effect, as in MIGraphX: `padding` holds.
    """

    padding: Ints = (0, 0)
    stride: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding_mode: PaddingMode = PaddingMode.default_
    group: int = 1

    least = 1
    same_type = False
    automatic = False

    def rule(self, x, w, *scales):
        if len(scales) == 1:
            self.fail("Wrong number of arguments: expected 2, 4 but given 3")
        if x.type() != w.type():
            self.fail(f"Types do not match: {x.type_string()}, {w.type_string()}")
        accepted = (
            type_t.int8_type,
            type_t.float_type,
            type_t.fp4x2_type,
            *(t for t in SMALL_FLOATS if t < 100),
        )
        if x.type() not in accepted:
            self.fail(f"only int8, fp8, fp4x2 and float are accepted, got {x.type_string()}")
        kind = type_t.int32_type if x.type() == type_t.int8_type else type_t.float_type
        if x.dims is None or w.dims is None:
            return Shape.unknown(kind)
        return self.result(x, w, kind)


class ConvolutionBackwards(Window, name="convolution_backwards", inputs=2, same_type=True):
    """Transposed convolution: the gradient of a convolution with respect to its input.

    Inputs are (N, C, spatial…) and (C, O/group, kernel…).
    """

    padding: Ints = (0, 0)
    stride: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding_mode: PaddingMode = PaddingMode.default_
    group: int = 1

    def rule(self, x, w):
        if x.dims is None or w.dims is None:
            return Shape.unknown(x.type())
        if x.rank != w.rank:
            self.fail(f"Number of dimensions do not match: {x} and {w}")
        rank = self.spatial(x)
        self.check_sizes(rank, CONVOLUTION, padding_twice=False)
        if x.dims[1] != w.dims[0] and (fixed(x.dims[1]) and fixed(w.dims[0])):
            self.fail(f"mismatched channel numbers: {x.dims[1]} and weights for {w.dims[0]}")
        if fixed(x.dims[1]) and lo(x.dims[1]) % self.group:
            self.fail(f"{x.dims[1]} channels do not divide into {self.group} groups")
        dims = [x.dims[0], w.dims[1] * self.group]
        for k in range(rank):
            reach = self.dilation[k] * (w.dims[2 + k] - 1) + 1
            size = (x.dims[2 + k] - 1) * self.stride[k] + reach - 2 * self.padding[k]
            dims.append(size if isinstance(size, Dim) else max(size, 1))
        return x.packed_like(dims)

    def normalized(self, shapes):
        return self


class Pooling(Window, name="pooling", inputs=1):
    """The average, largest element or lp norm of each window.

    The average divides by the number of elements inside the tensor, or inside the padded tensor
    with `count_include_pad`. `dyn_global` makes the whole spatial extent one window.
    """

    mode: PoolingMode = PoolingMode.average
    padding: Ints = (0, 0)
    padding_mode: PaddingMode = PaddingMode.default_
    stride: Ints = (1, 1)
    lengths: Ints = (1, 1)
    dilations: Ints = (1, 1)
    ceil_mode: bool = False
    count_include_pad: bool = False
    lp_order: int = 2
    dyn_global: bool = False

    def rule(self, x):
        if x.dims is None:
            return x
        rank = self.spatial(x)
        if self.dyn_global:
            return x.packed_like([*x.dims[:2], *[1] * rank])
        self.check_sizes(rank, ("padding", "stride", "lengths", "dilations"))
        dims, pads = list(x.dims[:2]), self.both_pads(rank)
        for k in range(rank):
            size, stride = x.dims[2 + k], self.stride[k]
            if self.padding_mode != PaddingMode.default_:
                dims.append((size + (stride - 1)) // stride)
                continue
            reach = self.dilations[k] * (self.lengths[k] - 1) + 1
            if lo(size) + sum(pads[k]) < reach and not (
                isinstance(size, Dim) and size.is_symbolic() and hi(size) + sum(pads[k]) >= reach
            ):
                self.fail(
                    f"not enough padding for the given kernel size: axis {2 + k} of {x} with "
                    f"padding {pads[k]} for a window of {reach}"
                )
            dims.append(
                out_size(
                    size, sum(pads[k]), self.lengths[k], stride, self.dilations[k],
                    up=self.ceil_mode,
                )
            )  # fmt: skip
        return x.packed_like(dims)

    def normalized(self, shapes):
        return self if self.dyn_global else super().normalized(shapes)


class Im2col(Window, name="im2col", inputs=2, static_only=True):
    """The windows of an image of batch 1 as rows: (places, channels x kernel).

    `padding_mode` is kept but has no effect, as in MIGraphX: `padding` holds.
    """

    padding: Ints = (0, 0)
    stride: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding_mode: PaddingMode = PaddingMode.default_

    def rule(self, x, w):
        if x.rank != 4 or w.rank != 4:
            self.fail(f"Only 4d supported: got {x} and {w}")
        self.check_sizes(2, CONVOLUTION)
        if x.dims[0] != 1:
            self.fail(f"im2col only support batch_size 1, got {x.dims[0]}")
        places = 1
        for k, pads in enumerate(self.both_pads(2)):
            size, kernel = x.dims[2 + k], w.dims[2 + k]
            places *= out_size(size, sum(pads), kernel, self.stride[k], self.dilation[k])
        return Shape.make(x.type(), (places, x.dims[1] * w.dims[2] * w.dims[3]))


class Lrn(Op, name="lrn", inputs=1):
    """Each element divided by a power of the sum of squares over neighbouring channels.

    x * (bias + alpha / size * sum)^-beta over the channels c - (size - 1) / 2 … c + size / 2.
    """

    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0
    size: int = 1

    def rule(self, x):
        if x.dims is not None and x.dynamic() and not x.symbolic():
            self.fail(f"Dynamic shapes not supported: {x}")
        if self.size < 1:
            self.fail(f"size {self.size}: at least 1 is needed")
        if x.dims is not None and x.rank < 2:
            self.fail(f"Shape must have at least 2 dimensions: {x}")
        return x


class RefIm2col(Im2col, name="ref::im2col"):
    """What compiling for the real module's ref target leaves of `im2col`."""


class RefLrn(Lrn, name="ref::lrn"):
    """What compiling for the real module's ref target leaves of `lrn`."""
