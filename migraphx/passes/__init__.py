"""Passes: functions of a module that leave its results as they were."""

from __future__ import annotations

from .layout import channels_last
from .rewrite_rnn import rewrite_rnn
from .widen import float_products, fold_rounded_weights, widen_half


def prepare(program, target: str, options: dict):
    """The copy of a program that is compiled: what runs, not what the user sees."""
    copy = complete(program.clone())
    if target in ("ref", "cpu"):
        for module in copy.get_modules():
            fold_rounded_weights(module)
            float_products(module)
            channels_last(module)
    return copy


def complete(program, turn_weights: bool = True):
    """Joins operators that can be computed only together; `program` itself, changed.

    `turn_weights`: recurrent weights are transposed now, rather than in each run.
    """
    for module in program.get_modules():
        rewrite_rnn(module, turn_weights)
        widen_half(module)
    return program
