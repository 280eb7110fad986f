"""Passes: functions of a module that leave its results as they were."""

from __future__ import annotations


def prepare(program, target: str, options: dict):
    """The copy of a program that is compiled: what runs, not what the user sees."""
    return program.clone()
