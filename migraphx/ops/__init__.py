"""All operators: importing this package registers every family."""

from . import control, pointwise
from .base import OPS, Op, make

__all__ = ["OPS", "Op", "make"]
