"""The LSTM that onnxruntime's quantiser emits: 8-bit weights, inputs and states quantised as met.

It is a loop of MIGraphX's operators, as its `lstm` multiplies real numbers only.
"""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import type_t

from .control import COUNT, FLAG, LoopShape, settled
from .math import where_common
from .quant_weights import dynamic_quantize_mat_mul
from .recurrent import DIRECTIONS
from .recurrent import activations as functions_of
from .reduce import squeeze_axes
from .registry import Deferred, onnx_op
from .scan import size_of_axis, slice_at


@onnx_op("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantize_lstm(
    m, x, w, r, b=None, sequence_lens=None, initial_h=None, initial_c=None, p=None, w_scale=None,
    w_zero=None, r_scale=None, r_zero=None, *, hidden_size=None, direction="forward",
    activations=None, activation_alpha=None, activation_beta=None, clip=0.0, input_forget=0,
):  # fmt: skip
    """Weights {directions, inputs, 4 * hidden}, each with a scale per direction or per column."""
    if direction not in DIRECTIONS:
        raise Error(f"direction {direction!r} is none of {', '.join(DIRECTIONS)}")
    if w_scale is None or r_scale is None:
        raise Error("the scales of W and R are required")
    hidden_size = m.static_dims(r)[1] if hidden_size is None else hidden_size
    batch = m.dims(x)[1]
    given = [v for v in (initial_h, initial_c) if v is not None]
    if not settled(x.shape()) or any(m.dims(v)[1:] != (batch, hidden_size) for v in given):
        raise Deferred  # the states of a step must be known to have the sizes of the one before
    functions = functions_of(activations, activation_alpha, activation_beta,
                             ["Sigmoid", "Tanh", "Tanh"], direction)  # fmt: skip
    steps = size_of_axis(m, x, 0)
    ways = []
    for way in range(2 if direction == "bidirectional" else 1):
        parts = [_of_way(m, v, way) for v in (b, p, w, w_scale, w_zero, r, r_scale, r_zero)]
        cell = Cell(functions[3 * way : 3 * way + 3], clip, input_forget, hidden_size, *parts)
        states = [_start(m, x, s, way, hidden_size) for s in (initial_h, initial_c)]
        backwards = way == 1 or direction == "reverse"
        ways.append(cell.walk(m, x, sequence_lens, states, steps, backwards))
    rows, hidden, cells = zip(*ways, strict=True)
    return (
        m.add("concat", *(m.add("unsqueeze", v, axes=[1]) for v in rows), axis=1),
        *(m.add("concat", *(m.add("unsqueeze", v, axes=[0]) for v in part), axis=0)
          for part in (hidden, cells)),
    )  # fmt: skip


def _of_way(m, x, way: int):
    """The part of one direction; a scale per direction stays a tensor of one element."""
    if x is None:
        return None
    part = m.add("slice", x, axes=[0], starts=[way], ends=[way + 1])
    return part if m.rank(x) == 1 else squeeze_axes(m, part, [0])


def _start(m, x, state, way: int, hidden_size: int):
    """The first state of a direction, zeros where none is given."""
    if state is not None:
        return _of_way(m, state, way)
    return m.broadcast(m.lit(0, x), [m.dims(x)[1], hidden_size])


class Cell:
    """One direction: its weights, and the loop over the steps."""

    def __init__(self, functions, clip, input_forget, size, bias, peepholes, *weights):
        self.functions, self.clip, self.input_forget = functions, clip, input_forget
        self.size, self.bias, self.peepholes = size, bias, peepholes
        self.from_input, self.from_state = weights[:3], weights[3:]

    def walk(self, m, x, lens, states, steps, backwards: bool) -> list:
        """All hidden states, and the last hidden and cell state."""
        # all steps in one product, as onnxruntime: one scale for the whole input
        ready = dynamic_quantize_mat_mul(m, x, *self.from_input)
        if self.bias is not None:
            first, second = (self.piece(m, self.bias, k, 4 * self.size) for k in range(2))
            ready = m.common("add", ready, m.add("add", first, second))

        def fill(scope, iteration, going, values):
            inner = scope.builder
            part = slice_at(inner, ready, iteration, 0, backwards)
            if lens is None:
                found = self.step(inner, part, *values)
                return [going, *found, found[0]]
            return [going, *self.limited(inner, part, values, iteration, steps, lens, backwards)]

        params = [("iteration", COUNT), ("going", FLAG), ("hidden", None), ("cell", None)]
        stem = f"DynamicQuantizeLSTM_{len(m.module)}"
        loop = LoopShape(m, stem, steps, m.lit(np.array(True)), list(states), params, fill)
        loop.directions = [int(backwards)]
        hidden, cell, rows = loop.build()
        return [rows, hidden, cell]

    def step(self, m, x, hidden, cell):
        """Input, output and forget gate and candidate; the cell is what they keep and add."""
        whole = m.common("add", x, dynamic_quantize_mat_mul(m, hidden, *self.from_state))
        xi, xo, xf, xc = (self.piece(m, whole, k, self.size) for k in range(4))
        gate = self.act(m, 0, self.peep(m, 0, xi, cell))
        if self.input_forget:
            keep = m.common("sub", m.lit(1, gate), gate)
        else:
            keep = self.act(m, 0, self.peep(m, 2, xf, cell))
        fresh = m.common("mul", gate, self.act(m, 1, xc))
        cell = m.common("add", m.common("mul", keep, cell), fresh)
        out = self.act(m, 0, self.peep(m, 1, xo, cell))
        return [m.common("mul", out, self.add(m, self.functions[2], cell)), cell]

    def limited(self, m, x, states, iteration, steps, lens, backwards: bool) -> list:
        """A step that some sequences do not have: their states stay, their rows are zeros."""
        place = iteration
        if backwards:
            place = m.common("sub", m.common("sub", steps, m.lit(np.array(1))), iteration)
        valid = m.common("less", place, m.convert(lens, type_t.int64_type))
        valid = m.convert(m.add("unsqueeze", valid, axes=[1]), type_t.bool_type)

        def only(new, old):
            return where_common(m, valid, new, old)

        zero = m.lit(0, states[0])
        # what is not read must not widen the range that the state is quantised by
        found = self.step(m, x, only(states[0], zero), states[1])
        kept = [only(new, old) for new, old in zip(found, states, strict=True)]
        return [*kept, only(found[0], zero)]

    def piece(self, m, x, k: int, size: int):
        """Part `k` of the last axis."""
        axis = m.rank(x) - 1
        return m.add("slice", x, axes=[axis], starts=[k * size], ends=[(k + 1) * size])

    def peep(self, m, k: int, x, cell):
        """`x` and what peephole `k` (input, output, forget) sees of the cell."""
        if self.peepholes is None:
            return x
        seen = m.common("mul", cell, self.piece(m, self.peepholes, k, self.size))
        return m.common("add", x, seen)

    def act(self, m, k: int, x):
        """Activation function `k` of what goes into it."""
        if self.clip > 0:
            x = m.common("max", x, m.lit(-self.clip, x))
            x = m.common("min", x, m.lit(self.clip, x))
        return self.add(m, self.functions[k], x)

    def add(self, m, function, x):
        values = {key: getattr(function, key) for key in function.kinds}
        return m.add(function.op_name, x, **values)
