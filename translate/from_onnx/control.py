"""Control flow of ONNX: If, Loop and SequenceMap; what loops have in common."""

from __future__ import annotations

import numpy as np

from migraphx.dims import UNBOUNDED, Dim, fixed
from migraphx.errors import Error, warn
from migraphx.graph import Instruction
from migraphx.shape import Shape
from migraphx.types import type_t

from .registry import onnx_op
from .tensors import element_type

# How often a loop body is translated anew, for sizes that turn out to change, before the rank of
# what changes is given up.
ATTEMPTS = 3
COUNT = Shape.scalar_of(type_t.int64_type)
FLAG = Shape.scalar_of(type_t.bool_type)


# -- If ------------------------------------------------------------------------------------------


@onnx_op("If", any_rank=True)
def if_(m, cond, *, then_branch, else_branch):
    """A branch that is known already is written where the node stands."""
    known = m.value(cond)
    if known is not None:
        branch = then_branch if known.reshape(-1)[0] else else_branch
        return m.graph.child(m.module).graph(branch)
    stem = f"If_{len(m.module)}"
    mods = [
        branch_module(m, f"{stem}_{end}", graph)
        for end, graph in (("if", then_branch), ("else", else_branch))
    ]
    counts = [len(mod.returned()) for mod in mods]
    if counts[0] != counts[1]:
        raise Error(f"the branches give {counts[0]} and {counts[1]} results")
    return elements(m, m.add("if", cond, mods=mods), counts[0])


def branch_module(m, name: str, graph):
    """A module for a graph without inputs."""
    module = m.graph.world.module(name)
    scope = m.graph.child(module)
    scope.may_not_run = True
    module.add_return(scope.graph(graph))
    return module


def elements(m, whole: Instruction, count: int) -> list:
    """The parts of a tuple."""
    return [m.add("get_tuple_elem", whole, index=k) for k in range(count)]


# -- loops in general ----------------------------------------------------------------------------


class LoopShape:
    """A loop to be built: its name, how often it runs, and what it carries.

    `fill` translates the body: from the scope of its module, the instructions of iteration
    number, condition and carried values, it gives those of the next condition, the carried
    values and the rows of the scan outputs.
    """

    def __init__(self, m, name: str, trip, cond, carried: list, params: list, fill):
        self.m, self.name, self.trip, self.cond = m, name, trip, cond
        self.carried, self.fill = carried, fill
        self.params = params  # (name, shape or None) of iteration number, condition, carried
        self.limit = UNBOUNDED // 2
        self.directions: list = []

    def build(self) -> list:
        """Adds the loop; gives the final carried values and the stacked scan outputs."""
        body, outs, fits = self.settled_body()
        count = len(self.carried)
        rows = [i.shape() for i in outs[1 + count :]]
        m, trips = self.m, trip_count(self.m, self.trip)
        if fits and trips is not None and self.never_early(outs[0], body, bool(rows)) and all(
            settled(r) for r in rows
        ):  # fmt: skip
            name, most = "loop", max(min(trips, self.limit), 0)
        else:
            name, most = "onnx::loop", self.limit
        attributes = {"scan_output_directions": self.directions} if any(self.directions) else {}
        ins = m.add(
            name, self.trip, self.cond, *self.carried, mods=[body], max_iterations=most,
            **attributes,
        )  # fmt: skip
        results = elements(m, ins, count + len(rows))
        if name == "loop":  # its rows of rank 0 have one element
            for k, row in enumerate(rows, count):
                if row.is_rank0():
                    results[k] = m.add("squeeze", results[k], axes=[1])
        return results

    def never_early(self, ending: Instruction, body, rows: bool) -> bool:
        """True if MIGraphX's `loop`, which always gives all rows, says the same as ONNX."""
        if not rows:
            return True
        start = self.m.value(self.cond)
        if start is None or not start.reshape(-1)[0]:
            return False
        value = self.m.value(ending)
        if value is not None:
            return bool(value.reshape(-1)[0])
        while ending.op_.op_name == "identity":
            ending = ending.inputs_[0]
        return ending is body.parameters()[1]

    def settled_body(self):
        """The module for carried values of the shapes that they have in all iterations.

        Also its results and whether the shapes stay what they are before the first iteration.
        """
        world = self.m.graph.world
        shapes = [i.shape() for i in self.carried]
        begin = [s.standard_of() if plain(s) else s for s in shapes]
        current = begin
        for attempt in range(ATTEMPTS + 1):
            names = dict(world.module_names)
            modules = dict(world.program._modules)
            body = world.module(self.name)
            outs = self.translated(body, current)
            after = [i.shape() for i in outs[1 : 1 + len(current)]]
            following = [self.cover(*p, attempt) for p in zip(current, after, strict=True)]
            if following == current:
                return body, outs, current == begin and all(map(settled, current))
            discard(body)
            world.module_names = names
            world.program._modules = modules
            current = following
        raise Error("the sizes of its carried values do not settle")

    def translated(self, body, shapes: list) -> list:
        scope = self.m.graph.child(body)
        scope.builder.node, scope.builder.opset = self.m.node, self.m.opset
        given = [
            body.add_parameter(name, shape or carried)
            for (name, shape), carried in zip(self.params, (COUNT, FLAG, *shapes), strict=True)
        ]
        outs = self.fill(scope, given[0], given[1], given[2:])
        inside = set(given)
        body.instructions = given[::-1] + [i for i in body.instructions if i not in inside]
        body.add_return(outs)
        return outs

    def cover(self, before: Shape, after: Shape, attempt: int) -> Shape:
        """A shape for a carried value that was `before` and is `after` when the body has run."""
        if before.type() != after.type():
            if before.dims is None and self.untyped(before):
                return after
            raise Error(
                f"a carried value changes its type from {before.type_string()} to "
                f"{after.type_string()}"
            )
        if before.dims is None or (before.dims == after.dims and rank0(before, after)):
            return before
        if after.dims is None or before.rank != after.rank or not rank0(before, after):
            return Shape.unknown(before.type())
        if attempt >= ATTEMPTS - 1:
            return Shape.unknown(before.type())
        dims = [a if a == b else Dim(0, UNBOUNDED)
                for a, b in zip(before.dims, after.dims, strict=True)]  # fmt: skip
        return Shape.make(before.type(), dims)

    def untyped(self, shape: Shape) -> bool:
        """True for what may be an optional that holds nothing: its type is a guess."""
        return shape.type() == type_t.float_type


def rank0(a: Shape, b: Shape) -> bool:
    """True if both or neither have rank 0."""
    return a.is_rank0() == b.is_rank0()


def plain(shape: Shape) -> bool:
    """True for tensors of known rank other than 0."""
    return shape.dims is not None and not shape.subs and not shape.is_rank0()


def settled(shape: Shape) -> bool:
    """True if equal dims mean equal sizes: no open ranges."""
    return shape.dims is not None and all(
        not isinstance(d, Dim) or fixed(d) or d.is_symbolic() for d in shape.dims
    )


def trip_count(m, trip: Instruction) -> int | None:
    """The trip count if it is a plain number already."""
    value = m.value(trip)
    if value is None or value.dtype == np.dtype(object):
        return None
    return int(value.reshape(-1)[0])


def discard(module) -> None:
    """Undoes a module: what it reads no longer counts it as a reader."""
    for ins in module.instructions:
        for mod in ins.mods:
            discard(mod)
    module.remove_all(list(module.instructions))


def declared_rank1(value) -> bool:
    """True if a body's input is declared as a tensor of one element rather than a scalar."""
    kind = value.type.tensor_type
    return kind.HasField("shape") and len(kind.shape.dim) == 1


# -- Loop ----------------------------------------------------------------------------------------


@onnx_op("Loop", any_rank=True)
def loop(m, trip=None, cond=None, *carried, body):
    """Scan outputs have one row for each iteration that was run."""
    options = m.graph.world.options
    count = len(carried)
    if len(body.input) != count + 2:
        raise Error(f"its body takes {len(body.input)} inputs, {count + 2} are needed")
    if len(body.output) < count + 1:
        raise Error(f"its body gives {len(body.output)} results, at least {count + 1} are needed")
    if any(c is None for c in carried):
        raise Error("a carried value is left out")
    limit = options.limit_max_iterations
    if trip is None:
        limit = min(limit, options.max_loop_iterations)
        if cond is not None or not constant_true(body):
            warn(
                f"parse_onnx: a Loop without trip count ends after {limit} iterations; "
                "max_loop_iterations sets another limit"
            )
        trip = m.lit(np.int64(limit))
    elif (trip_count(m, trip) or 0) > limit:
        warn(
            f"parse_onnx: a Loop with trip count {trip_count(m, trip)} ends after {limit} "
            "iterations; limit_max_iterations sets another limit"
        )
    cond = m.lit(np.array(True)) if cond is None else cond

    def fill(scope, iteration, going, values):
        names = [v.name for v in body.input]
        return scope.graph(body, dict(zip(names, (iteration, going, *values), strict=True)))

    fixed_shapes = [
        shape.standard_of((1,)) if declared_rank1(value) else shape
        for value, shape in zip(body.input, (COUNT, FLAG), strict=False)
    ]
    params = [
        (value.name, shape)
        for value, shape in zip(body.input, [*fixed_shapes, *[None] * count], strict=True)
    ]
    name = f"Loop_{len(m.module)}_loop"
    made = LoopShape(m, name, trip, cond, list(carried), params, fill)
    made.limit = limit
    return made.build()


def constant_true(body) -> bool:
    """True if a body's condition is plainly always true, so that the loop runs for ever."""
    name = body.output[0].name
    return name == body.input[1].name


# -- SequenceMap ---------------------------------------------------------------------------------


def map_sequence(m, sequence, extra, body) -> list:
    """The body's results for each element of a sequence, as sequences."""
    given = [sequence, *extra]
    if len(body.input) != len(given):
        raise Error(f"its body takes {len(body.input)} inputs, {len(given)} are given")
    kinds = [element_type(v.type.tensor_type.elem_type or 1) for v in body.output]
    empty = [m.add("onnx::sequence_empty", type=kind) for kind in kinds]
    names = [v.name for v in body.input]

    def fill(scope, iteration, going, values):
        inner = scope.builder
        parts = [inner.add("onnx::sequence_part", x, iteration) for x in given]
        made = scope.graph(body, dict(zip(names, parts, strict=True)))
        grown = [
            inner.add("onnx::sequence_insert", value, part)
            for value, part in zip(values, made, strict=True)
        ]
        return [going, *grown]

    params = [
        ("iteration", COUNT),
        ("going", FLAG),
        *((f"results{k}", None) for k in range(len(kinds))),
    ]
    trip = m.add("onnx::sequence_length", sequence)
    name = f"SequenceMap_{len(m.module)}_loop"
    return LoopShape(m, name, trip, m.lit(np.array(True)), empty, params, fill).build()
