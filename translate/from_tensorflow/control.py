"""Control flow of TensorFlow: If, Case, While, calls of functions, Switch and Merge."""

from __future__ import annotations

import numpy as np

from migraphx.dims import UNBOUNDED
from migraphx.errors import Error
from migraphx.graph import Instruction
from migraphx.shape import Shape
from migraphx.types import type_t

from . import nodes as names
from .lists import Reserved
from .registry import tf_op
from .shared import LoopShape, discard, elements

FOREVER = UNBOUNDED // 2  # iterations
COUNT = Shape.scalar_of(type_t.int64_type)
FLAG = Shape.scalar_of(type_t.bool_type)


@tf_op("NoOp", "Assert")
def nothing(m, *xs):
    return []


@tf_op("IdentityN")
def identity_n(m, *xs):
    return list(xs)


@tf_op("Print")
def print_(m, x, *data):
    return x


@tf_op("PartitionedCall", "StatefulPartitionedCall")
def call(m, *xs, f):
    return m.graph.call(f, list(xs))


# -- branches --------------------------------------------------------------------------------------


def truth(m, condition):
    """A condition as one bool: a number is true unless it is 0."""
    if m.rank(condition):
        condition = m.scalar(condition)
    return m.convert(condition, type_t.bool_type)


@tf_op("If", "StatelessIf")
def if_(m, cond, *xs, then_branch, else_branch):
    """A branch that is known already is written where the node stands."""
    known = m.value(cond)
    if known is not None:
        return m.graph.call(then_branch if known.reshape(-1)[0] else else_branch, list(xs))
    return branches(m, truth(m, cond), then_branch, else_branch, xs)


def branches(m, cond, then_branch, else_branch, xs) -> list:
    """The operator `if`; its modules read the inputs where they stand."""
    stem, mods, counts = f"If_{len(m.module)}", [], []
    for end, function in (("if", then_branch), ("else", else_branch)):
        module = m.graph.world.module(f"{stem}_{end}")
        results = m.graph.child(module).call(function, list(xs))
        module.add_return(results)
        mods.append(module)
        counts.append(len(results))
    if counts[0] != counts[1]:
        raise Error(f"the branches give {counts[0]} and {counts[1]} results")
    return elements(m, m.add("if", cond, mods=mods), counts[0])


@tf_op("Case", "StatelessCase")
def case(m, index, *xs, branches):
    """The branch of that number, the last one for a number outside."""
    known = m.value(index)
    if known is None:
        raise Error("the number of its branch depends on data")
    number = int(known.reshape(-1)[0])
    inside = 0 <= number < len(branches)
    return m.graph.call(branches[number if inside else -1], list(xs))


# -- loops -----------------------------------------------------------------------------------------


@tf_op("While", "StatelessWhile")
def while_(m, *xs, cond, body):
    """Values that the body passes on unchanged are not carried: the body reads them outside.

    The condition is computed before the loop and at the end of its body.
    """
    graph = m.graph
    function = graph.function(body)
    if len(function.signature.output_arg) != len(xs):
        raise Error(
            f"{len(xs)} values go round, its body gives {len(function.signature.output_arg)}"
        )
    still = unchanged(function)
    if any(isinstance(x, Reserved) for x in xs):
        xs = with_shapes(m, body, xs)
    moving = [k for k in range(len(xs)) if k not in still]

    def whole(values) -> list:
        given = dict(zip(moving, values, strict=True))
        return [given.get(k, xs[k]) for k in range(len(xs))]

    def fill(scope, iteration, going, values):
        after = scope.call(body, whole(values))
        after = [after[k] for k in moving]
        return [truth(scope.builder, scope.call(cond, whole(after))[0]), *after]

    going = truth(m, graph.call(cond, list(xs))[0])
    params = [("iteration", COUNT), ("going", FLAG), *((f"value{k}", None) for k in moving)]
    name = f"While_{len(m.module)}_loop"
    trip = m.lit(np.int64(FOREVER))
    loop = LoopShape(m, name, trip, going, [xs[k] for k in moving], params, fill)
    loop.limit = FOREVER
    results = dict(zip(moving, loop.build(), strict=True))
    return [results.get(k, xs[k]) for k in range(len(xs))]


def with_shapes(m, body, xs) -> list:
    """`xs` with tensors for reserved lists, of the shape that the body gives them.

    For that the body is translated once in a module of its own, which is thrown away.
    """
    world = m.graph.world
    names_before, modules = dict(world.module_names), dict(world.program._modules)
    trial = world.module("trial")
    given = [
        trial.add_parameter(f"x{k}", x.shape())
        if isinstance(x, Instruction) and x.literal is None
        else x
        for k, x in enumerate(xs)
    ]
    after = m.graph.child(trial).call(body, given)
    dims = [tuple(a.shape().dims[1:]) if isinstance(a, Instruction) else None for a in after]
    discard(trial)
    world.module_names, world.program._modules = names_before, modules
    return [
        x.filled(m, d) if isinstance(x, Reserved) and d is not None else x
        for x, d in zip(xs, dims, strict=True)
    ]


def is_computed(x) -> bool:
    """True for a value that is neither a reserved list nor a literal."""
    return isinstance(x, Instruction) and x.literal is None


def unchanged(function) -> set:
    """Which results of a loop body are its arguments of the same number."""
    found = {n.name: n for n in function.node_def}
    still = set()
    pairs = zip(function.signature.input_arg, function.signature.output_arg, strict=True)
    for k, (argument, result) in enumerate(pairs):
        name = names.node_of(function.ret[result.name])
        for _ in found:  # as often as there are nodes, in case that they read each other
            if name not in found or found[name].op != "Identity":
                break
            name = names.node_of(names.data_inputs(found[name])[0])
        if name == argument.name:
            still.add(k)
    return still
