"""Operators between element types: convert, bit_cast, quantising, packing of 4-bit numbers."""

from __future__ import annotations

from ..shape import Shape
from ..types import type_t
from .base import Axis, Op, OptType
from .pointwise import pointwise_shape


class Convert(Op, name="convert", inputs=1):
    """The elements in another type; out of range saturates, NaN to an integer is 0.

    Beyond half and bfloat16 lies infinity; the 8-bit floats saturate. To bool, what is not zero
    is true. A real number's fraction is dropped on the way to an integer.
    """

    target_type: type_t = type_t.half_type

    def rule(self, x):
        return x.with_type(self.target_type)


class Cast(Op, name="onnx::cast", inputs=1, own=True):
    """ONNX's Cast, where it differs from `convert`: integers keep their low bits.

    Floats to integers are cut towards zero; out of range, where ONNX defines nothing, the nearest
    end is taken and NaN is 0, but 2- and 4-bit integers keep their low bits. `saturate` concerns
    the 8-bit floats alone; `round_mode` (up, down, nearest) fp8e8m0 alone.
    """

    target_type: type_t = type_t.float_type
    saturate: bool = True
    round_mode: str = "up"

    def rule(self, x):
        if self.round_mode not in ("up", "down", "nearest"):
            self.fail(f"round_mode is up, down or nearest, got {self.round_mode!r}")
        if type_t.string_type in (x.type(), self.target_type):
            self.fail("texts are converted by onnx::cast_text")
        return x.with_type(self.target_type)


class BitCast(Op, name="bit_cast", inputs=1):
    """The same bits read as another type of equal size."""

    target_type: type_t = type_t.bool_type

    def rule(self, x):
        made = x.with_type(self.target_type)
        if made.type_size() != x.type_size():
            self.fail(
                f"target_type has different type_size from input's: {self.target_type.name} has "
                f"{made.type_size()} bytes, {x.type_string()} has {x.type_size()}"
            )
        return made


class QuantizeLinear(Op, name="quantizelinear", inputs=(2, 3)):
    """x / scale rounded to the nearest whole number (halves to even) + zero point, saturated.

    The type is that of the zero point, else `out_type`, else uint8; floats are not made whole.
    """

    out_type: OptType = None

    def rule(self, x, scale, zero=None):
        if x.type() != scale.type():
            self.fail(f"Types do not match: {x.type_string()}, {scale.type_string()}")
        kind = type_t.uint8_type if self.out_type is None else self.out_type
        kind = kind if zero is None else zero.type()
        return packed_as_first(self, [s for s in (x, scale, zero) if s is not None], kind)


class DequantizeLinear(Op, name="dequantizelinear", inputs=(2, 3)):
    """(x - zero point) * scale, in the type of the scale."""

    def rule(self, x, scale, zero=None):
        if zero is not None and zero.type() != x.type():
            self.fail(f"Types do not match: {x.type_string()}, {zero.type_string()}")
        return packed_as_first(self, [s for s in (x, scale, zero) if s is not None], scale.type())


def packed_as_first(op: Op, shapes, kind) -> Shape:
    """Inputs of equal dims; the result is packed in the memory order of the first."""
    made = pointwise_shape(op, shapes, kind)
    if made.dims is None or made._strides is None:
        return made
    return shapes[0].packed_like(kind=kind)


class Halving(Op, inputs=1):
    """Two neighbours along an axis become one byte."""

    axis: Axis = -1

    def halved(self, x):
        axis = self.axis_of(self.axis, x.rank)
        dims = list(x.dims)
        if isinstance(dims[axis], int) and dims[axis] % 2:
            self.fail(f"the packed axis {axis} has {dims[axis]} elements; an even number is needed")
        dims[axis] = dims[axis] // 2
        return dims

    def doubled(self, x):
        axis = self.axis_of(self.axis, x.rank)
        dims = list(x.dims)
        dims[axis] = dims[axis] * 2
        return dims


BYTES = (type_t.int8_type, type_t.uint8_type)


class PackInt4(Halving, name="pack_int4"):
    """Two numbers saturated to 4 bits in one byte, the even one in the low half."""

    def rule(self, x):
        self.check_bytes(x)
        return x if x.dims is None else x.standard_of(self.halved(x))

    def check_bytes(self, x):
        if x.type() not in BYTES:
            self.fail(f"Only int8_type and uint8_type are accepted, got {x.type_string()}")


class UnpackInt4(PackInt4, name="unpack_int4"):
    """The two 4-bit numbers of each byte, the low half first; int8 keeps signs."""

    def rule(self, x):
        self.check_bytes(x)
        return x if x.dims is None else x.standard_of(self.doubled(x))


class PackFp4(Halving, name="pack_fp4"):
    """Two numbers rounded to fp4 (e2m1) in one byte, the even one in the low half."""

    def rule(self, x):
        kind = type_t.fp4x2_type
        if x.dims is None:
            return Shape.unknown(kind)
        return x.packed_like(self.halved(x), kind)


class UnpackFp4(Halving, name="unpack_fp4"):
    """The two fp4 numbers of each byte as fp8e4m3fn, the low half first."""

    def rule(self, x):
        if x.type() != type_t.fp4x2_type:
            self.fail(f"fp4x2_type is needed, got {x.type_string()}")
        kind = type_t.fp8e4m3fn_type
        return Shape.unknown(kind) if x.dims is None else x.packed_like(self.doubled(x), kind)
