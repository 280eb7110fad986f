"""This project's own operators, for what ONNX can say and MIGraphX's set cannot."""

from __future__ import annotations

from ..shape import Shape
from ..types import type_t
from .base import Ints, Op


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
