"""Sequences and optionals of ONNX."""

from __future__ import annotations

from migraphx.types import type_t

from .registry import onnx_op
from .tensors import element_type


@onnx_op("SequenceEmpty", any_rank=True)
def sequence_empty(m, *, dtype=1):
    return m.add("onnx::sequence_empty", type=element_type(dtype))


@onnx_op("SequenceConstruct", any_rank=True)
def sequence_construct(m, *xs):
    return m.add("onnx::sequence_construct", *xs)


@onnx_op("SequenceInsert", any_rank=True)
def sequence_insert(m, sequence, x, position=None):
    return m.add("onnx::sequence_insert", *(v for v in (sequence, x, position) if v is not None))


@onnx_op("SequenceErase", any_rank=True)
def sequence_erase(m, sequence, position=None):
    return m.add("onnx::sequence_erase", *(v for v in (sequence, position) if v is not None))


@onnx_op("SequenceAt", any_rank=True)
def sequence_at(m, sequence, position):
    return m.add("onnx::sequence_at", sequence, position)


@onnx_op("SequenceLength", any_rank=True)
def sequence_length(m, sequence):
    return m.add("onnx::sequence_length", sequence)


@onnx_op("SplitToSequence", any_rank=True)
def split_to_sequence(m, x, split=None, *, axis=0, keepdims=1):
    inputs = (x,) if split is None else (x, split)
    return m.add("onnx::split_to_sequence", *inputs, axis=axis, keepdims=bool(keepdims))


@onnx_op("ConcatFromSequence", any_rank=True)
def concat_from_sequence(m, sequence, *, axis, new_axis=0):
    return m.add("onnx::concat_from_sequence", sequence, axis=axis, new_axis=bool(new_axis))


@onnx_op("SequenceMap", any_rank=True)
def sequence_map(m, sequence, *extra, body):
    """Runs the body for each element: by the loop that ONNX defines it to be."""
    from .control import map_sequence

    return map_sequence(m, sequence, extra, body)


@onnx_op("Optional", any_rank=True)
def optional(m, x=None, *, type=None):
    if x is not None:
        return m.add("onnx::optional", x)
    kind = type_t.float_type
    if type is not None:
        while not type.HasField("tensor_type"):
            wrapped = "sequence_type" if type.HasField("sequence_type") else "optional_type"
            type = getattr(type, wrapped).elem_type
        kind = element_type(type.tensor_type.elem_type)
    return m.add("onnx::optional", type=kind)


@onnx_op("OptionalHasElement", any_rank=True)
def optional_has_element(m, x=None):
    return m.add("onnx::optional_has_element", *([] if x is None else [x]))


@onnx_op("OptionalGetElement", any_rank=True)
def optional_get_element(m, x):
    return m.add("onnx::optional_get_element", x)
