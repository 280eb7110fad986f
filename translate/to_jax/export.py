"""Programs outside this package: a JAX function with its weights, a StableHLO artifact."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import export as jax_export

from migraphx.dims import Dim, hi, lo
from migraphx.errors import Error
from migraphx.symbolic import valid_name
from migraphx.types import dtype_of

from .device import exact_types
from .function import to_function
from .registry import Context
from .sizes import bind_symbols

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def as_jax(program):
    """`(function, weights)` of a program; see `Program.to_jax`."""
    from migraphx.passes import complete

    check_filled(program)
    main = complete(program.clone(), turn_weights=False).main
    params = main.parameters()
    names = [p.op_.parameter for p in params]
    kinds = [dtype_of(p.shape().type()) for p in params]
    shapes = [p.shape() for p in params]
    call, weights = to_function(main, trainable=True)
    expected = tuple(weights)

    @functools.wraps(call)
    def function(weights, inputs):
        for what, given, wanted in (("weights", weights, expected), ("inputs", inputs, names)):
            if not isinstance(given, dict):
                raise TypeError(f"to_jax: {what} is a dict by name, got {type(given).__name__}")
            missing = [n for n in wanted if n not in given]
            if missing:
                have = ", ".join(map(str, given)) or "nothing"
                raise Error(f"to_jax: {what} {missing} are missing; given: {have}")
        with exact_types():
            arrays = [jnp.asarray(inputs[n], k) for n, k in zip(names, kinds, strict=True)]
            for name, shape, array in zip(names, shapes, arrays, strict=True):
                rank = None if shape.dims is None else 0 if shape.is_rank0() else len(shape.dims)
                if rank is not None and array.ndim != rank and not (rank == 0 and array.size == 1):
                    raise Error(
                        f"to_jax: input {name!r} has {array.ndim} axes, the program takes {shape}"
                    )
            symbols = bind_symbols(names, shapes, arrays)
            return call(weights, dict(zip(names, arrays, strict=True)), Context(symbols=symbols))

    return function, weights


def prepared(program):
    """The main module of what runs."""
    from migraphx.passes import prepare

    check_filled(program)
    return prepare(program, "ref", {}).main


def check_filled(program) -> None:
    """Refuses a program without instructions."""
    if not program.main.instructions:
        raise Error("program: there is nothing to run: the main module is empty")


def export_program(program, platforms) -> bytes:
    """The serialised artifact of a program; see `Program.export`."""
    platforms = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    unknown = [p for p in platforms if p not in PLATFORMS]
    if unknown or not platforms:
        raise Error(f"export: platforms {list(platforms)}: accepted are {', '.join(PLATFORMS)}")
    main = prepared(program)
    scope_text, specs, symbols = input_specs(main)
    call, weights = to_function(main)
    ctx = Context(platform=platforms[0] if len(platforms) == 1 else "any", symbols=symbols)

    def function(inputs):
        return call(weights, inputs, ctx)

    with exact_types():
        try:
            made = jax_export.export(jax.jit(function), platforms=platforms)(specs)
        except Error:
            raise
        except Exception as error:
            if not scope_text:
                raise
            raise Error(
                f"export: the sizes {scope_text} cannot stay symbolic in this program: {error}"
            ) from error
        return bytes(made.serialize())


def input_specs(main):
    """`(text of the symbols, specs by parameter name, JAX's dimension of each symbol)`."""
    bounds, texts = {}, {}
    for param in main.parameters():
        shape, name = param.shape(), param.op_.parameter
        if shape.dims is None or shape.subs:
            raise Error(f"export: parameter {name} is {shape}; only tensors can be exported")
        dims = () if shape.is_rank0() else shape.dims
        texts[name] = [dim_text(d, valid_name(f"{name}_d{k}"), bounds) for k, d in enumerate(dims)]
    constraints = []
    for symbol, (low, high) in bounds.items():
        constraints.append(f"{symbol} >= {max(low, 0)}")
        if high < 2**31:
            constraints.append(f"{symbol} <= {high}")
    scope = jax_export.SymbolicScope(constraints)
    symbols = {s: jax_export.symbolic_shape(s, scope=scope)[0] for s in bounds}
    specs = {}
    for param in main.parameters():
        name = param.op_.parameter
        text = ", ".join(texts[name])
        dims = jax_export.symbolic_shape(text, scope=scope) if text else ()
        specs[name] = jax.ShapeDtypeStruct(dims, dtype_of(param.shape().type()))
    return ", ".join(bounds), specs, symbols


def dim_text(size, name: str, bounds: dict) -> str:
    """One size in the words of `jax.export.symbolic_shape`; adds its symbols to `bounds`."""
    if not isinstance(size, Dim) or size.is_fixed():
        return str(lo(size))
    if not size.is_symbolic():
        bounds[name] = (lo(size), hi(size))
        return name
    for symbol in size.expr.symbols():
        bounds[symbol.name] = symbol.interval()
    return size.expr.to_jax_text()
