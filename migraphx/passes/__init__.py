"""Passes: functions of a module that leave its results as they were."""

from __future__ import annotations

from .rewrite_rnn import rewrite_rnn
from .widen import widen_half


def prepare(program, target: str, options: dict):
    """The copy of a program that is compiled: what runs, not what the user sees."""
    return complete(program.clone())


def complete(program):
    """Joins operators that can be computed only together; `program` itself, changed."""
    for module in program.get_modules():
        rewrite_rnn(module)
        widen_half(module)
    return program
