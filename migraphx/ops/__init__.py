"""All operators: importing this package registers every family."""

from . import control, onnx, pointwise
from .base import OPS, Op, make

__all__ = ["OPS", "Op", "make"]
