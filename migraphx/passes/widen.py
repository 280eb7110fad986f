"""Arithmetic between half and bfloat16 values in float32."""

from __future__ import annotations

import numpy as np

from ..argument import Argument, array_shape
from ..graph import Instruction, Module
from ..ops.base import make
from ..ops.pointwise import BINARY, UNARY
from ..target import evaluate
from ..types import type_t
from .dead_code import dead_code_elimination

PRODUCTS = ("dot", "dot::wide", "convolution", "convolution_backwards")
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


# -- products on CPUs ------------------------------------------------------------------------------


def float_products(module: Module) -> None:
    """Multiplies half and bfloat16 in float32, which CPUs do faster; weights are converted once.

    What goes in has been rounded to the narrow type, and what comes out is rounded again where it
    is read as such.
    """
    changed = False
    for ins in list(module.instructions):
        name = ins.op_.op_name
        if name not in PRODUCTS or not all(map(_half, ins.inputs_)):
            continue
        args = [_as_float(module, ins, x) for x in ins.inputs_]
        op = make("dot") if name == "dot::wide" else ins.op_
        made = module.insert(ins, op, *args)
        kind = ins.shape().type()
        if made.shape().type() != kind:
            made = module.insert(ins, "convert", made, target_type=kind)
        module.redirect(ins, made)
        changed = True
    if changed:
        dead_code_elimination(module)


def _as_float(module: Module, before: Instruction, x: Instruction) -> Instruction:
    if x.literal is None:
        return module.insert(before, "convert", x, target_type=type_t.float_type)
    array = x.literal.numpy().astype(np.float32)
    return module.literal(Argument.of(array, array_shape(array.shape, type_t.float_type)))


def fold_rounded_weights(module: Module) -> None:
    """dequantizelinear(quantizelinear(literal)) -> literal: weights are rounded once."""
    done = False
    for ins in list(module.instructions):
        if ins.op_.op_name != "dequantizelinear":
            continue
        whole = ins.inputs_[0]
        if whole.op_.op_name == "quantizelinear" and whole.inputs_[0].literal is not None:
            value = evaluate(ins)
            if value is not None:
                module.redirect(ins, module.literal(value))
                done = True
    if done:
        dead_code_elimination(module)
