"""All operators: importing this package registers every family."""

from . import control, onnx, pointwise, sequence
from .base import OPS, Op, make

__all__ = ["OPS", "Op", "make"]
