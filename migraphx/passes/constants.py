"""Values known before the program runs: folding, and spread constants as operands."""

from __future__ import annotations

import numpy as np

from ..argument import Argument, array_shape
from ..graph import Instruction, Module
from ..ops.broadcast import Broadcast, Multibroadcast
from ..target import evaluate
from ..types import FLOATS

# Kept as they are, so that later steps still see what is quantised, and what is random.
KEPT = ("quantizelinear", "dequantizelinear", "unpack_int4", "unpack_fp4", "random_seed",
        "random_uniform", "undefined")  # fmt: skip
VIEWS = ("broadcast", "multibroadcast", "identity", "reshape", "reshape_lazy", "slice", "squeeze",
         "step", "transpose", "unsqueeze")  # fmt: skip


def propagate_constant(module: Module, kept=KEPT) -> bool:
    """Replaces what depends on literals alone by literals; says whether anything changed.

    Tensors that repeat elements stay: a literal would hold every copy. A view of a literal keeps
    its strides.
    """
    constant, wanted = set(), []
    for ins in module.instructions:
        if ins.literal is not None or (
            ins.inputs_ and _foldable(ins, kept) and constant.issuperset(ins.inputs_)
        ):
            constant.add(ins)
    outer = [
        ins
        for ins in module.instructions
        if ins in constant
        and ins.literal is None
        and not repeats(ins)
        and any(user not in constant or repeats(user) for user in ins._users)
    ]
    for ins in reversed(outer):
        value = evaluate(ins)
        if value is not None:
            wanted.append((ins, _with_strides(value, ins)))
    for ins, value in wanted:
        module.redirect(ins, module.literal(value))
    return bool(wanted)


def _foldable(ins: Instruction, kept) -> bool:
    shape = ins.shape()
    return not (
        ins.op_.op_name in kept
        or ins.op_.op_name.startswith("@")
        or ins.mods
        or shape.subs
        or shape.dynamic()
        or shape.dims is None
    )


def repeats(ins: Instruction) -> bool:
    """True if a tensor, or what it is a view of, holds elements more than once."""
    while True:
        shape = ins.shape()
        if not shape.dynamic() and not shape.subs and shape.element_space() < shape.elements():
            return True
        if ins.op_.op_name not in VIEWS:
            return False
        ins = ins.inputs_[0]


def _with_strides(value: Argument, ins: Instruction) -> Argument:
    """The value laid out as the instruction's shape says; the same memory for a plain view."""
    shape = ins.shape()
    if value.get_shape() == shape or shape.is_rank0():
        return value
    array = value.numpy()
    size = array.dtype.itemsize
    flat = np.empty(shape.element_space(), array.dtype)
    view = np.lib.stride_tricks.as_strided(flat, array.shape, [s * size for s in shape.strides()])
    view[...] = array
    return Argument.of(view, shape)


# -- constants spread over a tensor ----------------------------------------------------------------


def spread_constant(ins: Instruction) -> np.ndarray | None:
    """The numbers of a broadcast literal of floats in the rank of the result, with sizes of 1.

    None for anything else. A literal that needs no broadcast is given as it is.
    """
    shape = ins.shape()
    if shape.dynamic() or shape.subs or shape.type() not in FLOATS or shape.type_size() < 2:
        return None
    if ins.literal is not None:
        return None if shape.is_rank0() else ins.literal.numpy()
    op, source = ins.op_, ins.inputs_[0] if ins.inputs_ else None
    if source is None or source.literal is None or len(ins.inputs_) != 1:
        return None
    lens, array = shape.lens(), source.literal.numpy()
    if source.shape().is_rank0():
        return array.reshape((1,) * len(lens))
    if isinstance(op, Broadcast):
        sizes = [1] * len(lens)
        sizes[op.axis : op.axis + array.ndim] = array.shape
        return array.reshape(sizes)
    if isinstance(op, Multibroadcast):
        return array.reshape((1,) * (len(lens) - array.ndim) + array.shape)
    return None


def add_spread(module: Module, before: Instruction, core: np.ndarray, like: Instruction):
    """A literal with the numbers of `core`, broadcast to the lens of `like`."""
    shape = like.shape()
    lens, kind = tuple(shape.lens()), shape.type()
    if core.shape == lens:
        return module.literal(Argument.of(core, array_shape(core.shape, kind)))
    wide = [axis for axis, size in enumerate(core.shape) if size != 1]
    if not wide:
        literal = module.literal(Argument.of(core.reshape(()), array_shape((), kind)))
        return module.insert(before, "multibroadcast", literal, out_lens=lens)
    if len(wide) == 1 and core.shape[wide[0]] == lens[wide[0]]:
        flat = np.ascontiguousarray(core.reshape(-1))
        literal = module.literal(Argument.of(flat, array_shape(flat.shape, kind)))
        return module.insert(before, "broadcast", literal, axis=wide[0], out_lens=lens)
    literal = module.literal(Argument.of(core, array_shape(core.shape, kind)))
    return module.insert(before, "multibroadcast", literal, out_lens=lens)
