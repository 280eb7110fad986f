"""Programs as JAX functions: `compile_program`, `evaluate`, `find_device`."""

from __future__ import annotations

from . import (  # noqa: F401 - registers the lowerings
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
    roi,
    sequence,
    signal,
    slicing,
    view,
    window,
)
from .device import find_device, put_on, wait_for_devices
from .evaluate import evaluate, fold
from .executable import Executable, compile_program
from .export import as_jax, export_program
from .function import to_function

__all__ = [
    "Executable",
    "as_jax",
    "compile_program",
    "evaluate",
    "export_program",
    "find_device",
    "fold",
    "put_on",
    "to_function",
    "wait_for_devices",
]
