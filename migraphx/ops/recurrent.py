"""Recurrent operators: rnn, gru, lstm, their last states, and sequences of varying length.

Layouts are ONNX's: the sequence is {time, batch, input}, weights are {directions, gates * hidden,
input} and {directions, gates * hidden, hidden}, the result is {time, directions, batch, hidden}.
Inputs that are left out in the middle are `undefined` instructions.
"""

from __future__ import annotations

from ..dims import fixed, lo
from ..shape import Shape
from .base import Op, Ops, RnnDirection


class Recurrent(Op):
    """What rnn, gru and lstm share: the shape of the result and the checks of the inputs."""

    differentiable = True
    gates = 1  # stacked in the weights
    states = 1  # carried along the sequence: the hidden one, and lstm's cell
    activations = 1  # for each direction

    def rule(self, x, w, r, *rest):
        self.check_ranks(x, w, r, *rest)
        if r.dims[2] != self.hidden_size:
            self.fail(
                f"hidden size mismatch in attribute and input: {self.hidden_size} and {r.dims[2]}"
            )
        if r.dims[0] != self.directions:
            self.fail(
                f"num_direction does not match the direction attribute: {r.dims[0]} in the "
                f"recurrence weights, {self.directions} for {self.direction.name}"
            )
        self.check_inputs(x, w, r, *rest)
        return x.standard_of((x.dims[0], self.directions, x.dims[1], self.hidden_size))

    @property
    def directions(self) -> int:
        """Number of directions walked."""
        return 2 if self.direction == RnnDirection.bidirectional else 1

    def check_ranks(self, *inputs) -> None:
        ranks = (3, 3, 3, 2, 1, 3, 3, 2)
        for place, (shape, rank) in enumerate(zip(inputs, ranks, strict=False)):
            if given(shape) and shape.rank != rank:
                self.fail(f"input {place} needs {rank} dimensions, got {shape}")

    def check_inputs(self, x, w, r, *rest) -> None:
        """Sizes that must agree, where they are known."""
        wide = self.gates * self.hidden_size
        batch, ways = x.dims[1], self.directions
        wanted = [
            (w, (ways, wide, x.dims[2]), "the weights"),
            (r, (ways, wide, self.hidden_size), "the recurrence weights"),
        ]
        optional = [
            ((ways, 2 * wide), "the bias"),
            ((batch,), "the sequence lengths"),
            ((ways, batch, self.hidden_size), "the initial hidden state"),
            ((ways, batch, self.hidden_size), "the initial cell"),
            ((ways, 3 * self.hidden_size), "the peepholes"),
        ]
        wanted += [(s, dims, what) for s, (dims, what) in zip(rest, optional, strict=False)]
        for shape, dims, what in wanted:
            if given(shape) and not may_be(shape.dims, dims):
                self.fail(f"{what} should be {{{', '.join(map(str, dims))}}}, got {shape}")

    def functions(self) -> list:
        """The activation functions of each direction; one given alone serves for the rest."""
        count, have = self.activations, list(self.actv_func)
        if not have:
            have = list(type(self)().actv_func)[:count]
        if len(have) > count * self.directions and self.directions == 2:
            self.fail(f"{len(have)} activation functions, at most {2 * count} are used")
        if len(have) <= count:
            have = have + have[-1:] * (count - len(have))
            return [have[:count]] * self.directions
        have = have + have[-1:] * (2 * count - len(have))
        return [have[:count], have[count:]][: self.directions]


class Rnn(Recurrent, name="rnn", inputs=(3, 6)):
    """The plain recurrence ``h = f(x W + h R + b)``."""

    hidden_size: int = 1
    actv_func: Ops = ("tanh", "tanh")
    direction: RnnDirection = RnnDirection.forward
    clip: float = 0.0


class Gru(Recurrent, name="gru", inputs=(3, 6)):
    """Gated recurrent unit; gates stand in the order update, reset, hidden (z, r, h).

    `clip`, if positive, bounds what goes into the activation functions, as ONNX says (MIGraphX
    keeps the attribute but ignores it).
    """

    gates = 3
    activations = 2
    hidden_size: int = 1
    actv_func: Ops = ("sigmoid", "tanh")
    direction: RnnDirection = RnnDirection.forward
    clip: float = 0.0
    linear_before_reset: int = 0


class Lstm(Recurrent, name="lstm", inputs=(3, 8)):
    """Long short-term memory; gates stand in the order input, output, forget, cell (i, o, f, c).

    `clip` is as in `gru`; `input_forget` couples the forget gate to the input gate (``1 - i``).
    """

    gates = 4
    states = 2
    activations = 3
    hidden_size: int = 1
    actv_func: Ops = ("sigmoid", "tanh", "tanh")
    direction: RnnDirection = RnnDirection.forward
    clip: float = 0.0
    input_forget: int = 0


def given(shape: Shape) -> bool:
    """False for the shape of an `undefined` instruction: an input left out."""
    return shape.dims is None or bool(shape.dims)


def may_be(dims, wanted) -> bool:
    """True unless two sizes are known and differ."""
    if dims is None:
        return True
    return all(
        not (fixed(a) and fixed(b)) or lo(a) == lo(b) for a, b in zip(dims, wanted, strict=True)
    )


# -- activation functions that ONNX has and MIGraphX has not ---------------------------------------


class Activation(Op, inputs=1):
    """An element-wise function for `actv_func`."""

    def rule(self, x):
        return x


class Affine(Activation, name="onnx::affine", own=True):
    """``alpha * x + beta``"""

    alpha: float = 1.0
    beta: float = 0.0


class HardSigmoid(Activation, name="onnx::hard_sigmoid", own=True):
    """``alpha * x + beta`` between 0 and 1."""

    alpha: float = 0.2
    beta: float = 0.5


class ScaledTanh(Activation, name="onnx::scaled_tanh", own=True):
    """``alpha * tanh(beta * x)``"""

    alpha: float = 1.0
    beta: float = 1.0


class Softplus(Activation, name="onnx::softplus", own=True):
    """``log(1 + exp(x))``"""


class Softsign(Activation, name="onnx::softsign", own=True):
    """``x / (1 + |x|)``"""


class ThresholdedRelu(Activation, name="onnx::thresholded_relu", own=True):
    """x where it exceeds `alpha`, else 0."""

    alpha: float = 1.0


# -- last states ---------------------------------------------------------------------------------


class LastState(Op, inputs=1):
    """Reads a state of the recurrent instruction that is its input; computed with it."""

    def rule(self, x):
        if x.rank != 4:
            self.fail(f"the input {x} is not the result of a recurrent operator")
        return x.standard_of(x.dims[1:])


class RnnLastHsOutput(LastState, name="rnn_last_hs_output"):
    """The hidden state after the last step of each sequence, {directions, batch, hidden}."""


class RnnLastCellOutput(LastState, name="rnn_last_cell_output"):
    """The cell of an `lstm` after the last step of each sequence."""


class WithStates:
    """A recurrent operator as it is compiled: gives its result and its last states as a tuple.

    Weights stand transposed, {directions, input, gates * hidden}: as constants they are turned
    once instead of at every run.
    """

    def check_inputs(self, x, w, r, *rest) -> None:
        """The weights were checked before they were turned."""

    def rule(self, x, w, r, *rest):
        whole = x.standard_of((x.dims[0], self.directions, x.dims[1], self.hidden_size))
        return Shape.tuple_of([whole] + [whole.standard_of(whole.dims[1:])] * self.states)


class RnnStates(WithStates, Rnn, name="rnn::states", own=True):
    """`rnn` with its last hidden state."""


class GruStates(WithStates, Gru, name="gru::states", own=True):
    """`gru` with its last hidden state."""


class LstmStates(WithStates, Lstm, name="lstm::states", own=True):
    """`lstm` with its last hidden state and cell."""


# -- sequences of varying length -----------------------------------------------------------------


class RnnVarSlLastOutput(Op, name="rnn_var_sl_last_output", inputs=2):
    """The last valid step of each sequence: the first one where it was walked backwards."""

    direction: RnnDirection = RnnDirection.forward

    def rule(self, x, lens):
        return x.standard_of(x.dims[1:])


class RnnVarSlShiftOutput(Op, name="rnn_var_sl_shift_output", inputs=2):
    """Zeros behind the end of each sequence; results walked backwards move to the front."""

    output_name: str = "hidden_states"
    direction: RnnDirection = RnnDirection.forward

    def rule(self, x, lens):
        return x.standard_of()


class RnnVarSlShiftSequence(Op, name="rnn_var_sl_shift_sequence", inputs=2):
    """Moves each sequence to the end of the time axis, zeros in front of it."""

    def rule(self, x, lens):
        return x.standard_of()
