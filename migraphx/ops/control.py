"""Control flow and the special instructions: if, loop, tuples, @param, @literal, @return."""

from __future__ import annotations

from ..dims import UNBOUNDED, Dim, as_dim, hi, lo
from ..shape import Shape, common_permutation
from ..types import type_t
from .base import Axes, Ints, Op

NO_SHAPE = Shape.make(type_t.float_type, ())


class Param(Op, name="@param", inputs=0):
    """An input of the module."""

    parameter: str = ""


class Literal(Op, name="@literal", inputs=0):
    """Constant data."""


class Return(Op, name="@return", inputs=(0, None)):
    """The results of the module."""

    def rule(self, *xs):
        return xs[0] if len(xs) == 1 else Shape.tuple_of(xs)


class GetTupleElem(Op, name="get_tuple_elem", inputs=1):
    """One element of a tuple."""

    index: int = 0

    def rule(self, x):
        if not x.subs:
            self.fail(f"the input {x} is not a tuple")
        if not 0 <= self.index < len(x.subs):
            self.fail(f"index {self.index} is outside the tuple of {len(x.subs)}")
        return x.subs[self.index]


# -- if and loop ---------------------------------------------------------------------------------


class If(Op, name="if", inputs=(1, None), bodies=2):
    """The results of the first module where the condition holds, else those of the second.

    Inputs behind the condition feed the modules' parameters in the order of their names. The two
    modules may differ in sizes; the shape then covers both, and the size is that of the branch
    taken.
    """

    def rule(self, cond, *xs, mods):
        then, other = (m.get_output_shapes() for m in mods)
        if len(then) != len(other):
            self.fail(f"output shapes differ: {len(then)} and {len(other)} results")
        return Shape.tuple_of(either(self, a, b) for a, b in zip(then, other, strict=True))


class Loop(Op, name="loop", inputs=(2, None), bodies=1):
    """Runs a module over and over: inputs are trip count, condition and the carried values.

    The module takes iteration number, condition and carried values and gives the next condition,
    the carried values and one row for every scan output. Scan outputs have `max_iterations`
    rows; those that are not reached are zero.
    """

    max_iterations: int = 10
    scan_output_directions: Ints = ()

    def rule(self, trip, cond, *carried, mods):
        outs = self.outputs_of(mods[0], len(carried))
        kept = [either(self, a, b) for a, b in zip(carried, outs, strict=False)]
        return Shape.tuple_of(kept + [self.rows(s) for s in outs[len(carried) :]])

    def outputs_of(self, body, carried: int) -> list:
        """Shapes of the carried values and of the rows that the module gives."""
        outs = body.get_output_shapes()
        if len(outs) < 1 + carried:
            self.fail(
                f"{body.name()} must give a condition and {carried} carried values, "
                f"it gives {len(outs)} results"
            )
        return outs[1:]

    def rows(self, row: Shape) -> Shape:
        """The shape of a scan output from that of its rows."""
        if row.dims is None:
            return Shape.unknown(row.type())
        return row.standard_of((self.max_iterations, *row.dims))


class OnnxGradient(Op, name="onnx::gradient", inputs=(1, None), bodies=1, own=True):
    """Derivatives of the sum of a module's result by its first `count` parameters, a tuple."""

    count: int = 1

    def rule(self, *xs, mods):
        if not 1 <= self.count <= len(xs):
            self.fail(f"count {self.count} does not fit {len(xs)} inputs")
        return Shape.tuple_of(x.standard_of(x.dims) for x in xs[: self.count])


class OnnxLoop(Loop, name="onnx::loop", own=True):
    """A loop as ONNX means it: scan outputs have exactly as many rows as iterations were run.

    Carried values may change their sizes. A trip count beyond `max_iterations` is cut off there,
    which by default is no limit.
    """

    max_iterations: int = UNBOUNDED // 2

    def rule(self, trip, cond, *carried, mods):
        outs = self.outputs_of(mods[0], len(carried))
        kept = [self.settled(a, b) for a, b in zip(carried, outs, strict=False)]
        return Shape.tuple_of(kept + [self.rows(s) for s in outs[len(carried) :]])

    def settled(self, before: Shape, after: Shape) -> Shape:
        """The shape of a carried value after any number of iterations."""
        if before.dims is None or after.dims is None or before.subs or after.subs:
            return before if before == after else Shape.unknown(after.type())
        if before.is_rank0() and after.is_rank0():
            return before
        if before.rank != after.rank or before.is_rank0() != after.is_rank0():
            return Shape.unknown(after.type())
        anything = Dim(0, UNBOUNDED)
        dims = [a if a == b else anything for a, b in zip(before.dims, after.dims, strict=True)]
        return Shape.make(after.type(), dims)

    def rows(self, row: Shape) -> Shape:
        if row.dims is None:
            return Shape.unknown(row.type())
        dims = () if row.is_rank0() else row.dims
        return Shape.make(row.type(), (Dim(0, self.max_iterations), *map(as_dim, dims)))


class ScanSlice(Op, name="scan_slice", inputs=2, static_only=True):
    """One slice along an axis, which stays with size 1; counted from the end by `direction` 1.

    An index outside is an error if it is known while compiling; else the nearest slice is taken.
    """

    axis: int = 0
    direction: int = 0

    def rule(self, x, index):
        if x.dims is None:
            return x
        axis = self.axis_of(self.axis, x.rank)
        dims = [1 if k == axis else size for k, size in enumerate(x.dims)]
        return Shape.make(x.type(), dims, x.strides())


def either(op: Op, a: Shape, b: Shape) -> Shape:
    """A shape that covers `a` and `b`: the first if their sizes are equal."""
    if a.type() != b.type():
        op.fail(f"output shapes differ: {a} and {b}")
    if a.subs or b.subs:
        if len(a.subs) != len(b.subs):
            op.fail(f"output shapes differ: {a} and {b}")
        return Shape.tuple_of(either(op, x, y) for x, y in zip(a.subs, b.subs, strict=True))
    if a.dims is None or b.dims is None or a.rank != b.rank:
        return Shape.unknown(a.type())
    if a.is_rank0() != b.is_rank0():
        return Shape.unknown(a.type())
    if a.dims == b.dims:
        return a
    return Shape.make(a.type(), [_cover(x, y) for x, y in zip(a.dims, b.dims, strict=True)])


def _cover(a, b):
    return a if a == b else Dim(min(lo(a), lo(b)), max(hi(a), hi(b)))


class SelectModule(Op, name="select_module", inputs=(1, None), bodies=(1, None)):
    """Runs that one of its modules whose parameters have the sizes of the inputs."""

    output_dyn_shapes: Shape = NO_SHAPE

    def rule(self, *xs, mods):
        return self.output_dyn_shapes


# -- containers ----------------------------------------------------------------------------------


class Group(Op, name="group", inputs=(1, None), bodies=1):
    """A module run as one operator; `tag` says what it is (attention, say)."""

    tag: str = ""

    def rule(self, *xs, mods):
        return results_of(mods[0])


class RunOnTarget(Op, name="run_on_target", inputs=(0, None), bodies=1):
    """A module run as one operator; here on the same device as the rest."""

    target_id: int = 0

    def rule(self, *xs, mods):
        wanted = len(mods[0].parameters())
        if len(xs) != wanted:
            self.fail(f"{mods[0].name()} has {wanted} parameters but {len(xs)} inputs are given")
        return Shape.tuple_of(mods[0].get_output_shapes())


class Pointwise(Op, name="pointwise", inputs=(1, None), bodies=1):
    """Applies a module of scalar operators to each element of its inputs."""

    def rule(self, *xs, mods):
        params = sorted_parameters(mods[0])
        if len(params) != len(xs):
            self.fail(f"Wrong number of arguments: expected {len(params)} but given {len(xs)}")
        if any(x.dims is None for x in xs):
            return results_of(mods[0])
        if len({x.dims for x in xs}) > 1:
            self.fail(f"Dimensions do not match: {', '.join(map(repr, xs))}")
        if any(x.broadcasted() for x in xs) and not all(x.broadcasted() for x in xs):
            order = common_permutation(xs)
            xs = [x.packed_like(permutation=order) if x.broadcasted() else x for x in xs]
        return shapes_through(mods[0], dict(zip(params, xs, strict=True)), xs[0])


class FusedReduce(Op, name="fused_reduce", inputs=(1, None), bodies=1):
    """A reduction together with the element-wise operators around it, as one module."""

    axes: Axes = ()

    def rule(self, *xs, mods):
        outs = mods[0].get_output_shapes()
        if any(s.dynamic() for s in (*xs, *outs)):
            return results_of(mods[0])
        made = [s.packed_like(permutation=_order_for(s, xs)) for s in outs]
        return made[0] if len(made) == 1 else Shape.tuple_of(made)


class SplitFusedReduce(FusedReduce, name="split_fused_reduce"):
    """A `fused_reduce` that a GPU compiler has split into partial reductions."""

    axes: Axes = ()
    assign: str = "assign_none"


class FusedConcat(Op, name="fused_concat", inputs=(1, None), bodies=(2, None)):
    """Concatenates what modules make of the inputs, then applies one module to the result."""

    axis: int = 0

    def rule(self, *xs, mods):
        *parts, last = mods
        wanted = sum(len(m.parameters()) for m in mods) - 1
        if len(xs) != wanted:
            self.fail(f"Wrong number of arguments: expected {wanted} but given {len(xs)}")
        firsts, at = [], 0
        for part in parts:
            firsts.append(xs[at])
            at += len(part.parameters())
        kind = last.get_output_shapes()[0].type()
        if any(s.dims is None for s in firsts):
            return Shape.unknown(kind)
        axis = self.axis_of(self.axis, firsts[0].rank)
        dims = list(firsts[0].dims)
        for s in firsts[1:]:
            dims[axis] = dims[axis] + s.dims[axis]
        if any(s.dynamic() for s in xs):
            return Shape.make(kind, dims)
        return xs[0].packed_like(dims, kind, common_permutation(xs))


def results_of(mod) -> Shape:
    """The shape of a module's result, a tuple if it has several."""
    outs = mod.get_output_shapes()
    return outs[0] if len(outs) == 1 else Shape.tuple_of(outs)


def sorted_parameters(mod) -> list:
    """The parameters of a module in the order of their names."""
    return sorted(mod.parameters(), key=lambda p: p.op_.parameter)


def shapes_through(mod, shapes: dict, whole: Shape) -> Shape:
    """The result of a module of scalar operators for parameters of other shapes."""
    for ins in mod.instructions:
        if ins in shapes:
            continue
        if ins.literal is not None:
            kind = ins.shape().type()
            shapes[ins] = Shape.make(kind, whole.dims, (0,) * whole.rank)
        elif ins.op_.op_name != "@return":
            shapes[ins] = ins.op_.compute_shape([shapes[i] for i in ins.inputs_], ins.mods)
    outs = [shapes[i] for i in mod.returned()]
    return outs[0] if len(outs) == 1 else Shape.tuple_of(outs)


def _order_for(out: Shape, xs) -> list:
    alike = [x for x in xs if x.rank == out.rank]
    return common_permutation(alike) if alike else list(range(out.rank))
