"""MIGraphX's `optimize_module`: the simplifications that come before quantising."""

from __future__ import annotations

from ..graph import Module
from .constants import propagate_constant
from .dead_code import dead_code_elimination
from .simplify import eliminate_common_subexpression, refresh, simplify_algebra, simplify_reshapes


def optimize_module(module: Module) -> None:
    """Folds constants, simplifies views and arithmetic, and joins common parts.

    What is quantised stays so: a pair of `quantizelinear` and `dequantizelinear` is not folded.
    """
    for _ in range(2):
        simplify_reshapes(module)
        propagate_constant(module)
        dead_code_elimination(module)
        simplify_algebra(module)
        eliminate_common_subexpression(module)
        propagate_constant(module)
        dead_code_elimination(module)
        refresh(module)
