"""Lowerings of sequences (Python lists of arrays) and optionals (a value or None)."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error

from .registry import known, known_ints, lower


def position(op, sequence, index, last: int) -> int:
    """A position in a sequence, counted from the front, at most `last`."""
    place = known_ints(index)[0]
    size = len(sequence)
    if not -size <= place <= last:
        raise Error(f"{op.op_name}: position {place} is outside a sequence of {size}")
    return place + size if place < 0 else place


@lower("onnx::sequence_empty")
def sequence_empty(op, xp):
    return []


@lower("onnx::sequence_construct")
def sequence_construct(op, xp, *xs):
    return list(xs)


@lower("onnx::sequence_insert")
def sequence_insert(op, xp, sequence, x, index=None):
    at = len(sequence) if index is None else position(op, sequence, index, len(sequence))
    return [*sequence[:at], x, *sequence[at:]]


@lower("onnx::sequence_erase")
def sequence_erase(op, xp, sequence, index=None):
    if not sequence:
        raise Error("onnx::sequence_erase: the sequence is empty")
    at = len(sequence) - 1 if index is None else position(op, sequence, index, len(sequence) - 1)
    return [*sequence[:at], *sequence[at + 1 :]]


@lower("onnx::sequence_at")
def sequence_at(op, xp, sequence, index):
    return sequence[position(op, sequence, index, len(sequence) - 1)]


@lower("onnx::sequence_part")
def sequence_part(op, xp, x, index):
    return sequence_at(op, xp, x, index) if isinstance(x, (list, tuple)) else x


@lower("onnx::sequence_length")
def sequence_length(op, xp, sequence):
    return np.array(len(sequence), np.int64)


@lower("onnx::split_to_sequence")
def split_to_sequence(op, xp, x, split=None):
    axis = op.axis + x.ndim if op.axis < 0 else op.axis
    size = x.shape[axis]
    if split is None:
        sizes = [1] * size
    elif known(split).ndim == 0:
        chunk = known_ints(split)[0]
        if chunk <= 0:
            raise Error(f"onnx::split_to_sequence: pieces of size {chunk}")
        sizes = [min(chunk, size - at) for at in range(0, size, chunk)]
    else:
        sizes = known_ints(split)
        if sum(sizes) != size or any(s < 0 for s in sizes):
            raise Error(f"onnx::split_to_sequence: {sizes} do not add up to {size}")
    parts, at = [], 0
    for length in sizes:
        index = [slice(None)] * x.ndim
        index[axis] = slice(at, at + length)
        part = x[tuple(index)]
        parts.append(part if op.keepdims or split is not None else xp.squeeze(part, axis))
        at += length
    return parts


@lower("onnx::concat_from_sequence")
def concat_from_sequence(op, xp, sequence):
    if not sequence:
        raise Error("onnx::concat_from_sequence: the sequence is empty")
    join = xp.stack if op.new_axis else xp.concatenate
    return join(sequence, axis=op.axis)


@lower("onnx::optional")
def optional(op, xp, *xs):
    return xs[0] if xs else None


@lower("onnx::optional_has_element")
def optional_has_element(op, xp, *xs):
    return np.array(bool(xs) and xs[0] is not None)


@lower("onnx::optional_get_element")
def optional_get_element(op, xp, x):
    if x is None:
        raise Error("OptionalGetElement: the optional holds nothing")
    return x
