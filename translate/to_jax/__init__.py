"""Programs as JAX functions: `compile_program`, `evaluate`, `find_device`."""

from __future__ import annotations

from .device import find_device
from .evaluate import evaluate
from . import control, pointwise  # noqa: F401 - registers the lowerings
from .executable import Executable, compile_program
from .function import to_function

__all__ = ["Executable", "compile_program", "evaluate", "find_device", "to_function"]
