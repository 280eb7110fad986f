"""All operators: importing this package registers every family."""

from . import control, internal, ml, onnx, pointwise, random, recurrent, sequence
from .base import OPS, Op, make

__all__ = ["OPS", "Op", "make"]
