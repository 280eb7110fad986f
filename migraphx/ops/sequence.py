"""This project's own operators on ONNX's sequences and optionals.

A sequence is a list of tensors while a program runs; its length is known while tracing, its
elements need not be. An optional is its element, or nothing.
"""

from __future__ import annotations

from ..shape import Shape
from ..types import type_t
from .base import Op


class Sequence(Op):
    """An operator whose result is a sequence: a shape of unknown rank with the elements' type."""

    def rule(self, *xs):
        return Shape.unknown(xs[0].type())


class SequenceEmpty(Op, name="onnx::sequence_empty", inputs=0, own=True):
    """A sequence without elements."""

    type: type_t = type_t.float_type

    def rule(self):
        return Shape.unknown(self.type)


class SequenceConstruct(Sequence, name="onnx::sequence_construct", inputs=(1, None), own=True):
    """A sequence of the inputs."""


class SequenceInsert(Sequence, name="onnx::sequence_insert", inputs=(2, 3), own=True):
    """The sequence with a tensor put in before a position, or at the end."""


class SequenceErase(Sequence, name="onnx::sequence_erase", inputs=(1, 2), own=True):
    """The sequence without the tensor at a position, or without the last one."""


class SequenceAt(Sequence, name="onnx::sequence_at", inputs=2, own=True):
    """The tensor at a position, counted from the end if negative."""


class SequencePart(Sequence, name="onnx::sequence_part", inputs=2, own=True):
    """The tensor at a position of a sequence; what is not a sequence is given as it is."""


class SequenceLength(Op, name="onnx::sequence_length", inputs=1, own=True):
    """Number of tensors in a sequence."""

    def rule(self, x):
        return Shape.scalar_of(type_t.int64_type)


class SplitToSequence(Sequence, name="onnx::split_to_sequence", inputs=(1, 2), own=True):
    """Pieces of a tensor along an axis: of given sizes, of one size, or single slices."""

    axis: int = 0
    keepdims: bool = True

    def rule(self, x, *sizes):
        if x.dims is not None:
            self.axis_of(self.axis, x.rank)
        return super().rule(x)


class ConcatFromSequence(Sequence, name="onnx::concat_from_sequence", inputs=1, own=True):
    """The tensors of a sequence joined along an axis, or along a new one."""

    axis: int = 0
    new_axis: bool = False


class Optional(Op, name="onnx::optional", inputs=(0, 1), own=True):
    """An optional: the input, or nothing."""

    type: type_t = type_t.float_type

    def rule(self, *xs):
        return xs[0] if xs else Shape.unknown(self.type)


class OptionalHasElement(Op, name="onnx::optional_has_element", inputs=(0, 1), own=True):
    """True if the optional holds something."""

    def rule(self, *xs):
        return Shape.scalar_of(type_t.bool_type)


class OptionalGetElement(Op, name="onnx::optional_get_element", inputs=1, own=True):
    """What an optional holds; an error if it is nothing."""

    def rule(self, x):
        return x
