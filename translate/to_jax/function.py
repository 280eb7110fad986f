"""A program as a pure JAX function of its weights and inputs."""

from __future__ import annotations

from migraphx.errors import Error
from migraphx.graph import Instruction, Module
from migraphx.types import FLOATS

from .interpret import Cut, fit_rank, literal_value, run_module
from .registry import Context, using

# Literals of at least this many bytes are arguments of the compiled function; smaller ones are
# constants that XLA may fold.
WEIGHT_BYTES = 512


def all_modules(module: Module, seen=None) -> list:
    """`module` and those its instructions run, each once."""
    seen = [] if seen is None else seen
    if module not in seen:
        seen.append(module)
        for ins in module.instructions:
            for mod in ins.mods:
                all_modules(mod, seen)
    return seen


def weights_of(main: Module, trainable: bool = False) -> list[Instruction]:
    """The literals that are passed as arguments, in order; small floats if they are `trainable`."""
    return [
        ins
        for module in all_modules(main)
        for ins in module.instructions
        if ins.literal is not None and (is_weight(ins) or (trainable and is_trainable(ins)))
    ]


def is_trainable(ins: Instruction) -> bool:
    """True for several numbers of a type that has derivatives."""
    shape = ins.shape()
    return shape.type() in FLOATS and shape.type_size() > 1 and shape.elements() > 1


def is_weight(ins: Instruction) -> bool:
    """True if a literal is large enough to be an argument, and of a type that XLA holds."""
    return ins.shape().bytes() >= WEIGHT_BYTES and ins.shape().type() < 108


def to_function(main: Module, ctx: Context | None = None, trainable: bool = False):
    """`(function, weights)`: `function(weights, inputs, ctx)` with `inputs` by parameter name.

    The function is pure and traceable; `weights` is a dict of name to NumPy array. A program
    whose sizes depend on data cannot be one function; that is an `Error` naming the operator.
    With `trainable`, every literal of two floats and more is a weight.
    """
    literals = weights_of(main, trainable)
    names = {ins: f"w{k}" for k, ins in enumerate(literals)}
    weights = {names[ins]: literal_value(ins) for ins in literals}
    params = main.parameters()
    ctx = ctx or Context()

    def function(weights, inputs, ctx=ctx):
        env = {ins: weights[name] for ins, name in names.items()}
        for param in params:
            env[param] = fit_rank(inputs[param.op_.parameter], param.shape())
        with using(ctx):
            try:
                return list(run_module(main, env))
            except Cut as cut:
                raise Error(
                    f"to_jax: {cut.ins.name()} needs sizes that depend on data; such a program "
                    "runs in stages (program.run), not as one function"
                ) from None

    return function, weights
