"""Arithmetic between half and bfloat16 values in float32."""

from __future__ import annotations

from ..graph import Instruction, Module
from ..ops.pointwise import BINARY, UNARY
from ..types import type_t
from .dead_code import dead_code_elimination

HALVES = (type_t.half_type, type_t.bf16_type)
ARITHMETIC = frozenset((
    *UNARY, *BINARY, "clip", "elu", "leaky_relu", "where", "softmax", "logsoftmax",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum",
))  # fmt: skip
VIEWS = frozenset((
    "broadcast", "contiguous", "flatten", "multibroadcast", "reshape", "slice", "squeeze",
    "transpose", "unsqueeze",
))  # fmt: skip


def widen_half(module: Module) -> None:
    """Rounds to half only what products and other operators read, not every step in between.

    So a program that is finite in float32 stays finite in half: squares before a mean, powers,
    exponentials and scores before they are scaled may leave the range of half on their way. On
    CPUs it costs nothing, they compute in float32 anyway; elsewhere XLA fuses the steps.
    """
    wide: dict[Instruction, Instruction] = {}
    chains = _chains(module)
    for ins in list(module.instructions):
        if ins not in chains:
            continue
        name, kind = ins.op_.op_name, ins.shape().type()
        if name == "dot":
            made = module.insert(ins, "dot::wide", *ins.inputs_)
        else:
            made = module.insert(ins, ins.op_, *(_wide(module, ins, x, wide) for x in ins.inputs_))
        narrow = module.insert(ins, "convert", made, target_type=kind)
        wide[narrow] = made
        module.redirect(ins, narrow)
    if chains:
        dead_code_elimination(module)


def _half(ins: Instruction) -> bool:
    shape = ins.shape()
    return not shape.subs and shape.type() in HALVES


def _chains(module: Module) -> set:
    """Steps whose result another step reads, and those that read it."""
    steps = {i for i in module.instructions if i.op_.op_name in ARITHMETIC and _half(i)}
    views = {i for i in module.instructions if i.op_.op_name in VIEWS and _half(i)}
    found = set()
    for ins in module.instructions:
        if ins not in steps:
            continue
        for x in ins.inputs_:
            path = []
            while x in views:
                path.append(x)
                x = x.inputs_[0]
            if x in steps or (x.op_.op_name == "dot" and x.module is module and _half(x)):
                found.update((ins, x, *path))
    return found


def _wide(module: Module, before: Instruction, x: Instruction, wide: dict) -> Instruction:
    """x in float32: what it was rounded from, where that is known."""
    if not _half(x):
        return x
    if x not in wide:
        wide[x] = module.insert(before, "convert", x, target_type=type_t.float_type)
    return wide[x]
