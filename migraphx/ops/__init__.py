"""All operators: importing this package registers every family."""

from . import (  # noqa: F401 - registers the operators
    broadcast,
    control,
    convert,
    index,
    internal,
    matmul,
    ml,
    onnx,
    pointwise,
    random,
    recurrent,
    reduce,
    resize,
    sequence,
    signal,
    slicing,
    view,
    window,
)
from .base import OPS, Op, make

__all__ = ["OPS", "Op", "make"]
