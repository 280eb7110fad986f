"""Passes: functions of a module that leave its results as they were."""

from __future__ import annotations

from .rewrite_rnn import rewrite_rnn


def prepare(program, target: str, options: dict):
    """The copy of a program that is compiled: what runs, not what the user sees."""
    copy = program.clone()
    for module in copy.get_modules():
        rewrite_rnn(module)
    return copy
