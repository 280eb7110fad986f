"""Passes: functions of a module that leave its results as they were."""

from __future__ import annotations

from .layout import channels_last
from .rewrite_rnn import rewrite_rnn
from .widen import widen_half


def prepare(program, target: str, options: dict):
    """The copy of a program that is compiled: what runs, not what the user sees."""
    copy = complete(program.clone())
    if target in ("ref", "cpu"):
        for module in copy.get_modules():
            channels_last(module)
    return copy


def complete(program):
    """Joins operators that can be computed only together; `program` itself, changed."""
    for module in program.get_modules():
        rewrite_rnn(module)
        widen_half(module)
    return program
