"""Sizes of dynamic inputs: the symbols they give, which to compile for, how many stay."""

from __future__ import annotations

import itertools

from migraphx.dims import Dim, lo
from migraphx.errors import Error

from .stage import MAX_STAGES


def cache_size(options: dict) -> int:
    """How many sizes of the inputs stay compiled, the option `shape_cache_size`."""
    given = (options.get("advance_backend_options") or {}).get("shape_cache_size", MAX_STAGES)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise Error(f"compile: shape_cache_size must be a positive whole number, got {given!r}")
    return given


def optimal_sizes(shapes):
    """The sizes of all inputs for each choice of optimals; equal symbols have equal sizes."""
    choices: dict = {}
    for k, shape in enumerate(shapes):
        for axis, dim in enumerate(shape.dims):
            if not isinstance(dim, Dim) or dim.is_fixed():
                continue
            if dim.is_symbolic():
                for symbol in dim.expr.symbols():
                    choices.setdefault(symbol.name, sorted(symbol.optimals()))
            else:
                choices[k, axis] = sorted(dim.optimals)
    if not all(choices.values()):
        return  # some size has no optimal: there is nothing to guess
    for values in itertools.product(*choices.values()):
        at = dict(zip(choices, values, strict=True))
        symbols = {name: v for name, v in at.items() if isinstance(name, str)}
        yield [
            tuple(
                lo(d) if not isinstance(d, Dim) or d.is_fixed()
                else d.expr.evaluate(symbols) if d.is_symbolic() else at[k, axis]
                for axis, d in enumerate(() if shape.is_rank0() else shape.dims)
            )
            for k, shape in enumerate(shapes)
        ]  # fmt: skip


def bind_symbols(names, shapes, arrays) -> dict:
    """Values of the symbols in the parameters' shapes, from the sizes given."""
    found: dict = {}
    pending = [
        (name, axis, dim, size)
        for name, shape, array in zip(names, shapes, arrays, strict=True)
        for axis, (dim, size) in enumerate(zip(shape.dims or (), getattr(array, "shape", ())))
        if isinstance(dim, Dim) and dim.is_symbolic() and not dim.expr.is_literal
    ]
    progress = True
    while progress and pending:
        progress, waiting = False, []
        for name, axis, dim, size in pending:
            solved = dim.expr.solve(size, found)
            if solved is None:
                waiting.append((name, axis, dim, size))
                continue
            found.update(solved)
            progress = True
            have = dim.expr.evaluate(found)
            if have != size:
                values = ", ".join(f"{k} = {v}" for k, v in found.items())
                raise Error(
                    f"run: parameter {name}, axis {axis}: size {size} does not fit {dim}, "
                    f"which is {have} where {values}"
                )
        pending = waiting
    if pending:
        name, axis, dim, size = pending[0]
        raise Error(
            f"run: parameter {name}, axis {axis}: size {size} alone does not tell the symbols "
            f"of {dim}; another input must have them in a linear form"
        )
    for shape in shapes:
        for dim in shape.dims or ():
            for symbol in dim.expr.symbols() if isinstance(dim, Dim) and dim.expr else ():
                low, high = symbol.interval()
                value = found.get(symbol.name, low)
                if not low <= value <= high:
                    raise Error(
                        f"run: {symbol.name} = {value} is outside its bounds {low} to {high}"
                    )
    return found
