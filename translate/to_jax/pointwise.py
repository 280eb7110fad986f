"""Lowerings of element-wise operators."""

from __future__ import annotations

from .registry import lower

# Operators that are one function of NumPy and jax.numpy, under another or the same name.
SAME = {
    "abs": "abs", "add": "add", "sub": "subtract", "mul": "multiply",
}  # fmt: skip


def _plain(function: str):
    return lambda op, xp, *xs: getattr(xp, function)(*xs)


for _name, _function in SAME.items():
    lower(_name)(_plain(_function))


@lower("relu")
def relu(op, xp, x):
    return xp.maximum(x, xp.zeros((), x.dtype))
