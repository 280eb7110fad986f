"""All operators: importing this package registers every family."""

from . import (  # noqa: F401 - registers the operators
    control,
    convert,
    internal,
    ml,
    onnx,
    pointwise,
    random,
    recurrent,
    reduce,
    sequence,
    signal,
)
from .base import OPS, Op, make

__all__ = ["OPS", "Op", "make"]
