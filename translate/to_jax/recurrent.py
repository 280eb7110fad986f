"""Lowerings of recurrent operators: one product for all steps, then a scan.

The products of the inputs with their weights do not depend on the state, so all steps are done as
one matrix product before the scan (measured: 1.3 to 1.9 times as fast as inside it). A scan that is
unrolled gains nothing and compiles for seconds. Both directions are scans of their own: stacked in
one batched scan they were 1.45 times as slow.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from migraphx.errors import Error
from migraphx.ops.base import RnnDirection

from .numeric import FLOAT32, in_floats, is_small
from .registry import LOWER, context, is_known, known, lower


@lower("rnn", "gru", "lstm", numpy=False)
def recurrent(op, xp, x, w, r, *rest):
    """The hidden states of all steps."""
    turned = [jnp.swapaxes(jnp.asarray(v), 1, 2) for v in (w, r)]
    return with_states(op, xp, x, *turned, *rest)[0]


@lower("rnn::states", "gru::states", "lstm::states", numpy=False)
def with_states(op, xp, x, w, r, bias=None, lens=None, hidden=None, cell=None, peepholes=None):
    """All hidden states and the last states, for weights {directions, input, gates * hidden}."""
    time, batch = x.shape[:2]
    bias, lens, hidden, cell, peepholes = (
        None if v is None or v.size == 0 else v for v in (bias, lens, hidden, cell, peepholes)
    )
    inside = valid_steps(lens, time)
    ways = []
    for way, functions in enumerate(op.functions()):
        step = STEPS[op.op_name.removesuffix("::states")](
            op,
            x.dtype,
            [apply(f) for f in functions],
            r[way],
            None if bias is None else bias[way],
            None if peepholes is None else peepholes[way],
        )
        start = tuple(
            jnp.zeros((batch, op.hidden_size), x.dtype) if s is None else s[way]
            for s in (hidden, cell)[: op.states]
        )
        ways.append(scan(step, x, w[way], start, inside, is_backwards(op, way)))
    whole = jnp.stack([found[0] for found in ways], 1)
    last = [jnp.stack(states) for states in zip(*(found[1] for found in ways), strict=True)]
    if inside is not None:  # a sequence without steps has states of zeros, as in onnxruntime
        last = [jnp.where(inside[0], s, jnp.zeros((), s.dtype)) for s in last]
    return (whole, *last)


def is_backwards(op, way: int) -> bool:
    """True if direction number `way` walks from the end."""
    return op.direction == RnnDirection.reverse or way == 1


def valid_steps(lens, time: int):
    """Where a step lies inside its sequence, {time, batch, 1}; None if all do."""
    if lens is None or time == 0:
        return None
    if is_known(lens) and (known(lens) >= time).all():
        return None
    return (jnp.arange(time)[:, None] < jnp.asarray(lens).astype(np.int32)[None, :])[..., None]


def scan(step, x, w, start, inside, backwards: bool):
    """The hidden states of all steps of one direction, and the states after the last one.

    A step outside its sequence leaves the states as they were and gives zeros. Walked backwards,
    a sequence so begins with its own last step.
    """
    from_input = product(x.reshape(-1, x.shape[2]), w).reshape(*x.shape[:2], w.shape[1])
    dtype, wide = x.dtype, from_input.dtype
    start = (start[0].astype(dtype), *(s.astype(wide) for s in start[1:]))

    def one(states, given):
        found = step(given[0], *states)
        if inside is None:
            return found, found[0]
        found = tuple(jnp.where(given[1], new, old) for new, old in zip(found, states))
        return found, jnp.where(given[1], found[0], jnp.zeros((), dtype))

    parts = (step.prepare(from_input),) if inside is None else (step.prepare(from_input), inside)
    last, whole = jax.lax.scan(one, start, parts, reverse=backwards)
    return whole, [s.astype(dtype) for s in last]


def product(x, w):
    """A matrix product; of small floats with the sums in float32."""
    wide = FLOAT32 if is_small(x.dtype) else None
    return jnp.matmul(x, w, precision=context().precision, preferred_element_type=wide)


def apply(function):
    """An activation, which is an operator, as a function of an array."""
    found = LOWER.get(function.op_name)
    if found is None or found.host or found.bodies or function.arity[0] != 1:
        raise Error(f"{function.op_name}: this operator is no activation function")
    return lambda x: found.function(function, jnp, x)


class Step:
    """One step of a recurrence, as a function of the input's part and the states."""

    def __init__(self, op, dtype, functions, r, bias, peepholes):
        self.op, self.dtype, self.functions, self.r = op, dtype, functions, r
        wide = FLOAT32 if is_small(dtype) else dtype
        size = op.gates * op.hidden_size
        self.bias = None if bias is None else [b.astype(wide) for b in (bias[:size], bias[size:])]
        self.peepholes = None if peepholes is None else jnp.split(peepholes.astype(wide), 3)

    def prepare(self, from_input):
        """The input's part of all steps with what can be added before the scan."""
        return from_input if self.bias is None else from_input + (self.bias[0] + self.bias[1])

    def clipped(self, x):
        """What goes into an activation function."""
        bound = self.op.clip
        return jnp.clip(x, -bound, bound) if bound > 0 else x

    def gate(self, k: int, x):
        """Activation function `k` of `x`."""
        return self.functions[k](self.clipped(x))


class RnnStep(Step):
    """h = f(x W + h R + b)"""

    def __call__(self, x, hidden):
        return (self.gate(0, x + product(hidden, self.r)).astype(self.dtype),)


class GruStep(Step):
    """Update gate z, reset gate r, candidate; the new state lies between candidate and old one."""

    def prepare(self, from_input):
        if self.bias is None or not self.op.linear_before_reset:
            return super().prepare(from_input)
        size = 2 * self.op.hidden_size  # the candidate's own bias stays inside the reset
        first, second = self.bias
        return from_input + jnp.concatenate([first[:size] + second[:size], first[size:]])

    def __call__(self, x, hidden):
        size, op = self.op.hidden_size, self.op
        xz, xr, xh = jnp.split(x, 3, 1)
        if op.linear_before_reset:
            hz, hr, inner = jnp.split(product(hidden, self.r), 3, 1)
            if self.bias is not None:
                inner = inner + self.bias[1][2 * size :]
            inner = self.gate(0, xr + hr) * inner
        else:
            hz, hr = jnp.split(product(hidden, self.r[:, : 2 * size]), 2, 1)
            kept = (self.gate(0, xr + hr) * hidden).astype(self.dtype)
            inner = product(kept, self.r[:, 2 * size :])
        update = self.gate(0, xz + hz)
        found = (1 - update) * self.gate(1, xh + inner) + update * hidden
        return (found.astype(self.dtype),)


class LstmStep(Step):
    """Input, output and forget gate and candidate; the cell is what they keep and add."""

    def __call__(self, x, hidden, cell):
        xi, xo, xf, xc = jnp.split(x + product(hidden, self.r), 4, 1)
        i = self.gate(0, self.peep(0, xi, cell))
        f = 1 - i if self.op.input_forget else self.gate(0, self.peep(2, xf, cell))
        cell = f * cell + i * self.gate(1, xc)
        o = self.gate(0, self.peep(1, xo, cell))
        return (o * self.functions[2](cell)).astype(self.dtype), cell

    def peep(self, k: int, x, cell):
        """`x` and what peephole `k` (input, output, forget) sees of the cell."""
        return x if self.peepholes is None else x + self.peepholes[k] * cell


STEPS = {"rnn": RnnStep, "gru": GruStep, "lstm": LstmStep}


# Activation functions of ONNX that MIGraphX has no operator for.
ACTIVATIONS = {
    "onnx::affine": lambda op, xp, x: op.alpha * x + op.beta,
    "onnx::hard_sigmoid": lambda op, xp, x: xp.clip(op.alpha * x + op.beta, 0, 1),
    "onnx::scaled_tanh": lambda op, xp, x: op.alpha * xp.tanh(op.beta * x),
    "onnx::softplus": lambda op, xp, x: xp.logaddexp(x, xp.zeros((), x.dtype)),
    "onnx::softsign": lambda op, xp, x: x / (1 + xp.abs(x)),
    "onnx::thresholded_relu": lambda op, xp, x: xp.where(x > op.alpha, x, xp.zeros((), x.dtype)),
}


def _activation(function):
    def activation(op, xp, x):
        return in_floats(xp, lambda v: function(op, xp, v), x)

    return activation


for _name, _function in ACTIVATIONS.items():
    lower(_name)(_activation(_function))


@lower("rnn_last_hs_output", "rnn_last_cell_output")
def last_state(op, xp, x):
    """Never reached in a compiled program, where a pass joins it with the recurrent operator."""
    raise Error(
        f"{op.op_name}: its input must be an rnn, gru or lstm instruction of the same module"
        + ("; a cell has only lstm" if op.op_name == "rnn_last_cell_output" else "")
    )


# -- sequences of varying length -----------------------------------------------------------------


@lower("rnn_var_sl_last_output")
def var_sl_last_output(op, xp, x, lens):
    ends = xp.maximum(lens.astype(np.int32) - 1, 0)
    ways = [
        x[0, way] if is_backwards(op, way) else x[ends, way, xp.arange(x.shape[2])]
        for way in range(x.shape[1])
    ]
    return xp.stack(ways)


@lower("rnn_var_sl_shift_output")
def var_sl_shift_output(op, xp, x, lens):
    time, lens = x.shape[0], lens.astype(np.int32)
    steps = xp.arange(time)[:, None]
    inside = (steps < lens[None, :])[..., None]
    ways = []
    for way in range(x.shape[1]):
        part = x[:, way]
        if is_backwards(op, way):
            part = shifted(xp, part, steps + time - lens[None, :])
        ways.append(xp.where(inside, part, xp.zeros((), x.dtype)))
    return xp.stack(ways, 1)


@lower("rnn_var_sl_shift_sequence")
def var_sl_shift_sequence(op, xp, x, lens):
    time = x.shape[0]
    source = xp.arange(time)[:, None] - (time - lens.astype(np.int32))[None, :]
    moved = shifted(xp, x, source)
    return xp.where((source >= 0)[..., None], moved, xp.zeros((), x.dtype))


def shifted(xp, x, source):
    """Step `source[t, b]` of sequence b at place t, of {time, batch, size}; clipped at the ends."""
    return x[xp.clip(source, 0, x.shape[0] - 1), xp.arange(x.shape[1])[None, :]]
