"""``--apply-pass`` and ``--optimize``: MIGraphX's passes by name, as far as they exist here."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

from ..errors import Error, close_matches
from ..program import Program
from .console import log

SAME = {"eliminate_dead_code": "dead_code_elimination"}

# What -O applies, in this order.
OPTIMIZE = ("eliminate_identity", "simplify_algebra", "simplify_reshapes", "propagate_constant",
            "eliminate_pad", "dead_code_elimination")  # fmt: skip

# Passes of MIGraphX that prepare its own kernels; XLA does such work while it compiles.
LEFT_TO_XLA = (
    "auto_contiguous", "eliminate_allocation", "eliminate_common_subexpression",
    "eliminate_concat", "eliminate_contiguous", "eliminate_data_type", "eliminate_identity",
    "eliminate_pad", "fuse_attention", "fuse_pointwise", "fuse_reduce", "inline_module",
    "insert_pad", "normalize_ops", "optimize_module", "promote_literals", "propagate_constant",
    "rewrite_dot", "rewrite_gelu", "rewrite_pooling", "rewrite_quantization", "rewrite_reduce",
    "simplify_algebra", "simplify_dyn_ops", "simplify_qdq", "simplify_reshapes",
)  # fmt: skip


def find(name: str):
    """The function of a pass, or None: the one of that name in `migraphx.passes`."""
    package = import_module("migraphx.passes")
    name = SAME.get(name, name)
    found = getattr(package, name, None)
    if inspect.isfunction(found):
        return found
    for place in iter_modules(package.__path__):
        found = getattr(import_module(f"{package.__name__}.{place.name}"), name, None)
        if inspect.isfunction(found):
            return found
    return None


def available() -> list:
    """Names of the passes that can be applied here."""
    return [n for n in (*LEFT_TO_XLA, "dead_code_elimination", "rewrite_rnn") if find(n)]


def apply(program: Program, names: list) -> None:
    """Applies passes to a program, in order."""
    for name in names:
        function = (
            find(name) if name in (*SAME, *SAME.values(), "rewrite_rnn", *LEFT_TO_XLA) else None
        )
        if function is None:
            known = ", ".join(available())
            if name in LEFT_TO_XLA:
                raise Error(f"--apply-pass: {name} is left to XLA here; passes here: {known}")
            hint = close_matches(name, (*LEFT_TO_XLA, *available()))
            raise Error(f"--apply-pass: Unknown pass: {name}{hint}; passes here: {known}")
        run(function, program)


def optimize(program: Program) -> None:
    """Applies the passes of ``-O`` that exist here."""
    for name in OPTIMIZE:
        function = find(name)
        if function is None:
            log.detail(f"--optimize: {name} is left to XLA")
        else:
            run(function, program)


def run(function, program: Program) -> None:
    """Calls a pass, which takes a program or each of its modules."""
    first = next(iter(inspect.signature(function).parameters))
    if first in ("program", "p", "prog"):
        function(program)
        return
    for module in program.get_modules():
        function(module)
