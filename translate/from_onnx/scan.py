"""Scan of ONNX: a body applied to the slices of tensors one after the other."""

from __future__ import annotations

import numpy as np
import onnx

from migraphx.dims import as_dim, fixed
from migraphx.errors import Error
from migraphx.graph import Instruction
from migraphx.shape import Shape

from .control import COUNT, FLAG, LoopShape, elements, trip_count
from .registry import onnx_op


@onnx_op("Scan", since=9, any_rank=True)
def scan(
    m, *given, body, num_scan_inputs, scan_input_axes=(), scan_input_directions=(),
    scan_output_axes=(), scan_output_directions=(),
):  # fmt: skip
    states = list(given[: len(given) - num_scan_inputs])
    xs = list(given[len(given) - num_scan_inputs :])
    check_scan(body, given, num_scan_inputs)
    outputs = len(body.output) - len(states)
    plan = ScanPlan(
        body, len(states), listed(scan_input_axes, len(xs), "scan_input_axes"),
        listed(scan_input_directions, len(xs), "scan_input_directions"),
        listed(scan_output_axes, outputs, "scan_output_axes"),
        listed(scan_output_directions, outputs, "scan_output_directions"),
    )  # fmt: skip
    return plan.build(m, states, xs)


def check_scan(body, given, num_scan_inputs: int) -> None:
    """Refuses a Scan whose inputs do not fit its body."""
    if not 0 < num_scan_inputs <= len(given):
        raise Error(f"num_scan_inputs is {num_scan_inputs} for {len(given)} inputs")
    if any(x is None for x in given):
        raise Error("an input is left out")
    if len(body.input) != len(given):
        raise Error(f"its body takes {len(body.input)} inputs, {len(given)} are given")
    if len(body.output) < len(given) - num_scan_inputs:
        raise Error(f"its body gives only {len(body.output)} results")


def listed(values, count: int, what: str) -> list:
    """A list attribute, zeros by default."""
    values = list(values) or [0] * count
    if len(values) != count:
        raise Error(f"{what} has {len(values)} entries, {count} are needed")
    return values


class ScanPlan:
    """A body applied to the slices of tensors one after the other."""

    def __init__(self, body, states: int, axes, directions, out_axes, out_directions):
        self.body, self.states = body, states
        self.axes, self.directions = axes, directions
        self.out_axes, self.out_directions = out_axes, out_directions

    def build(self, m, states: list, xs: list, padded: Instruction | None = None) -> list:
        """Adds the loop.

        `padded` is the number of slices to take where not all count; scan outputs then keep the
        full length, with zeros at the end.
        """
        for x, axis in zip(xs[1:], self.axes[1:], strict=True):
            self.same_length(m, xs[0], x, axis)
        trip = size_of_axis(m, xs[0], self.axes[0])

        def fill(scope, iteration, going, values):
            inner = scope.builder
            parts = [
                slice_at(inner, x, iteration, axis, direction, padded)
                for x, axis, direction in zip(xs, self.axes, self.directions, strict=True)
            ]
            names = [v.name for v in self.body.input]
            return [
                going,
                *scope.graph(self.body, dict(zip(names, (*values, *parts), strict=True))),
            ]

        names = [v.name for v in self.body.input]
        free = [unused(names, "iteration"), unused(names, "going")]
        params = [(free[0], COUNT), (free[1], FLAG), *((n, None) for n in names[: self.states])]
        stem = f"Scan_{len(m.module)}_scan"
        going = m.lit(np.array(True))
        if padded is not None:
            results = PaddedLoop(m, stem, padded, going, states, params, fill, trip).build()
        else:
            made = LoopShape(m, stem, trip, going, states, params, fill)
            made.directions = [int(d) for d in self.out_directions]
            results = made.build()
        rows = results[self.states :]
        return results[: self.states] + [
            move_first(m, row, axis) for row, axis in zip(rows, self.out_axes, strict=True)
        ]

    def same_length(self, m, first, x, axis: int) -> None:
        """Refuses scan inputs of different known lengths."""
        sizes = [known_size(m, v, a) for v, a in ((first, self.axes[0]), (x, axis))]
        if None not in sizes and sizes[0] != sizes[1]:
            raise Error(f"scan inputs of different lengths: {sizes[0]} and {sizes[1]}")


class PaddedLoop(LoopShape):
    """A loop that keeps the rows of `most` iterations, however few are run: MIGraphX's."""

    def __init__(self, m, name, trip, cond, carried, params, fill, most):
        super().__init__(m, name, trip, cond, carried, params, fill)
        self.most = trip_count(m, most)
        if self.most is None:
            raise Error("sequence_lens needs a sequence axis whose size is known while parsing")

    def build(self) -> list:
        body, outs, _ = self.settled_body()
        m, count = self.m, len(self.carried)
        ins = m.add("loop", self.trip, self.cond, *self.carried, mods=[body],
                    max_iterations=self.most)  # fmt: skip
        results = elements(m, ins, len(outs) - 1)
        for k, out in enumerate(outs[1 + count :], count):
            if out.shape().is_rank0():
                results[k] = m.add("squeeze", results[k], axes=[1])
        return results


def unused(names: list, name: str) -> str:
    """A name that is not among `names`."""
    while name in names:
        name += "_"
    return name


def onnx_node(m, kind: str, *inputs, **attributes) -> Instruction:
    """What the reader makes of an ONNX node, deferred if need be."""
    node = onnx.helper.make_node(kind, [f"in{k}" for k in range(len(inputs))], ["out"])
    node.attribute.extend(onnx.helper.make_attribute(k, v) for k, v in attributes.items())
    return m.graph.translate(node, list(inputs))[0]


def known_size(m, x: Instruction, axis: int) -> int | None:
    """The size of an axis if it is a plain number already."""
    shape = x.shape()
    if shape.dims is None:
        return None
    if shape.is_rank0():
        raise Error("a scan input of rank 0 has no slices")
    size = shape.dims[m.axis(axis, shape.rank)]
    return int(as_dim(size).min) if fixed(size) else None


def size_of_axis(m, x: Instruction, axis: int) -> Instruction:
    """The size of an axis as a number of the program."""
    size = known_size(m, x, axis)
    if size is not None:
        return m.lit(np.int64(size))
    if x.shape().dims is not None:
        axis = m.axis(axis, x.shape().rank)
        return m.add("dimensions_of", x, start=axis, end=axis + 1)
    end = {} if axis == -1 else {"end": axis + 1}
    return onnx_node(m, "Shape", x, start=axis, **end)


def slice_at(m, x, iteration, axis: int, direction: int, length=None) -> Instruction:
    """The slice of an iteration, counted from the end if `direction` is 1."""
    shape = x.shape()
    if shape.dims is not None and not shape.dynamic() and (length is None or not direction):
        axis = m.axis(axis, shape.rank)
        part = m.add("scan_slice", x, iteration, axis=axis, direction=direction)
        part = m.add("squeeze", part, axes=[axis])
        return m.add("unsqueeze", part, axes=[0]) if lost_axis(shape, part.shape()) else part
    index = iteration
    if direction:
        size = size_of_axis(m, x, axis) if length is None else length
        if not size.shape().is_rank0():
            size = onnx_node(m, "Squeeze", size)
        index = m.add("sub", m.add("sub", size, m.lit(np.int64(1))), iteration)
    return onnx_node(m, "Gather", x, index, axis=axis)


def lost_axis(before: Shape, after: Shape) -> bool:
    """True if a slice of one broadcast element looks like rank 0."""
    return before.rank > 1 and after.is_rank0()


def move_first(m, x: Instruction, axis: int) -> Instruction:
    """The first axis moved to position `axis`."""
    if axis == 0:
        return x
    if x.shape().dims is None:
        return m.add("onnx::move_axis", x, source=0, destination=axis)
    rank = x.shape().rank
    order = list(range(1, rank))
    order.insert(m.axis(axis, rank), 0)
    return x if order == list(range(rank)) else m.add("transpose", x, permutation=order)


@onnx_op("Scan", since=1, any_rank=True)
def scan8(m, sequence_lens=None, *given, body, num_scan_inputs, directions=()):
    """Opset 8: axis 0 is a batch, each entry of which is scanned along axis 1."""
    check_scan(body, given, num_scan_inputs)
    count = len(given) - num_scan_inputs
    outputs = len(body.output) - count
    directions = listed(directions, num_scan_inputs, "directions")
    plan = ScanPlan(body, count, [0] * num_scan_inputs, directions, [0] * outputs, [0] * outputs)

    def fill(scope, entry, going, values):
        inner = scope.builder
        parts = [slice_at(inner, x, entry, 0, 0) for x in given]
        length = None
        if sequence_lens is not None:
            length = onnx_node(inner, "Gather", sequence_lens, entry, axis=0)
        return [going, *plan.build(inner, parts[:count], parts[count:], length)]

    trip = size_of_axis(m, given[0], 0)
    params = [("entry", COUNT), ("going", FLAG)]
    name = f"Scan_{len(m.module)}_scan"
    return LoopShape(m, name, trip, m.lit(np.array(True)), [], params, fill).build()
