"""This project's own operators, for what ONNX can say and MIGraphX's set cannot."""

from __future__ import annotations

from ..shape import Shape
from ..types import type_t
from .base import Axes, Ints, Op, Sizes


class OnnxNode(Op, name="onnx::node", inputs=(0, None), own=True):
    """An ONNX node that is translated while tracing.

    Some of its inputs decide shapes and were not known when the model was parsed (a computed
    reshape target, say); once their values are known, the node is translated as the reader
    would have done.
    """

    node: str = ""  # the NodeProto, base64
    opsets: str = ""  # "domain=version" joined by ","
    types: Ints = ()  # element types of the outputs
    present: Ints = ()  # which of the node's inputs are given

    def rule(self, *xs):
        shapes = [Shape.unknown(type_t(t)) for t in self.types]
        return shapes[0] if len(shapes) == 1 else Shape.tuple_of(shapes)


class OnnxSlice(Op, name="onnx::slice", inputs=1, own=True):
    """`slice` with bounds that may be symbolic sizes, none of them negative."""

    axes: Axes = ()
    starts: Sizes = ()
    ends: Sizes = ()

    def rule(self, x):
        if x.dims is None:
            return x
        dims = list(x.dims)
        axes = self.axes_of(self.axes, len(dims))
        for axis, start, end in zip(axes, self.starts, self.ends, strict=True):
            plain = all(isinstance(v, int) for v in (start, end, dims[axis]))
            if plain and not 0 <= start <= end <= dims[axis]:
                self.fail(f"{start} to {end} lies outside of axis {axis} of {x}")
            dims[axis] = end - start
        return x.standard_of(dims)


class OnnxCastText(Op, name="onnx::cast_text", inputs=1, own=True):
    """Conversion of texts to numbers and of numbers to texts, on the host."""

    differentiable = False
    target_type: type_t = type_t.string_type

    def rule(self, x):
        return x.with_type(self.target_type)


class OnnxDecodeImage(Op, name="onnx::decode_image", inputs=1, own=True):
    """The pixels [height, width, channels] of an image file (BMP, JPEG, PNG, ...), on the host."""

    differentiable = False
    pixel_format: str = "RGB"

    def rule(self, encoded):
        return Shape.unknown(type_t.uint8_type)


class OnnxDet(Op, name="onnx::det", inputs=1, own=True):
    """Determinants of square matrices in the last two axes."""

    def rule(self, x):
        if x.dims is None:
            return x
        if x.rank < 2 or x.dims[-1] != x.dims[-2]:
            self.fail(f"the last two axes of {x} are not square matrices")
        return x.standard_of(x.dims[:-2]) if x.rank > 2 else Shape.scalar_of(x.type())


class OnnxInverse(Op, name="onnx::inverse", inputs=1, own=True):
    """Inverses of square matrices in the last two axes."""

    def rule(self, x):
        if x.dims is None:
            return x
        if x.rank < 2 or x.dims[-1] != x.dims[-2]:
            self.fail(f"the last two axes of {x} are not square matrices")
        return x.standard_of(x.dims)


class OnnxMoveAxis(Op, name="onnx::move_axis", inputs=1, own=True):
    """One axis moved to another position, for tensors whose rank is not known."""

    source: int = 0
    destination: int = 0

    def rule(self, x):
        if x.dims is None:
            return x
        dims = list(x.dims)
        moved = dims.pop(self.axis_of(self.source, x.rank))
        dims.insert(self.axis_of(self.destination, x.rank), moved)
        return x.standard_of(dims)
