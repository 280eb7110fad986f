"""Lowerings of control flow."""

from __future__ import annotations

from .registry import lower

HOST_CONTROL = {}


@lower("get_tuple_elem")
def get_tuple_elem(op, xp, x):
    return x[op.index]
