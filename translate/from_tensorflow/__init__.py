"""TensorFlow graphs to programs: `parse` and `operators`."""

from __future__ import annotations

from importlib import import_module

from migraphx.program import Program

from . import registry
from .parser import Options, build
from .reading import read_graph
from .registry import HANDLERS, tf_op

# The files of handlers: importing them registers them.
FAMILIES = (
    "boxes",
    "branches",
    "control",
    "fused",
    "image",
    "index",
    "lists",
    "math",
    "matmul",
    "nn",
    "quant",
    "reduce",
    "slicing",
    "space",
    "tensor",
)
for _name in FAMILIES:
    import_module(f"{__name__}.{_name}")

__all__ = ["HANDLERS", "operators", "parse", "tf_op"]


def parse(filename, **options) -> Program:
    """The program of a frozen graph; see `migraphx.parse_tf`."""
    checked = Options(**options)
    return build(read_graph(filename), checked)


def operators() -> list:
    """Names of all operators that can be read."""
    return registry.names()
