"""RNN, GRU and LSTM of ONNX."""

from __future__ import annotations

from migraphx.errors import Error, close_matches
from migraphx.ops import make

from .registry import onnx_op

# ONNX's name in lower case: operator, and the defaults of its alpha and beta, if it has them.
ACTIVATIONS = {
    "relu": ("relu",),
    "tanh": ("tanh",),
    "sigmoid": ("sigmoid",),
    "softsign": ("onnx::softsign",),
    "softplus": ("onnx::softplus",),
    "leakyrelu": ("leaky_relu", 0.01),
    "thresholdedrelu": ("onnx::thresholded_relu", 1.0),
    "elu": ("elu", 1.0),
    "affine": ("onnx::affine", 1.0, 0.0),
    "scaledtanh": ("onnx::scaled_tanh", 1.0, 1.0),
    "hardsigmoid": ("onnx::hard_sigmoid", 0.2, 0.5),
}
DIRECTIONS = ("forward", "reverse", "bidirectional")


def activations(names, alphas, betas, default: list, direction: str) -> list:
    """The activation operators of all directions.

    Each function that has an alpha (a beta) takes the next of the values given; those that are
    left keep their defaults.
    """
    wanted = len(default) * (2 if direction == "bidirectional" else 1)
    names = [_text(n) for n in names or ()] or default * (wanted // len(default))
    if len(names) != wanted:
        raise Error(f"{len(names)} activations are given, {direction} needs {wanted}")
    alphas, betas, made = list(alphas or ()), list(betas or ()), []
    for name in names:
        if name.lower() not in ACTIVATIONS:
            raise Error(f"unknown activation {name!r}{close_matches(name, ACTIVATIONS)}")
        operator, *defaults = ACTIVATIONS[name.lower()]
        values = {}
        for key, given, value in zip(("alpha", "beta"), (alphas, betas), defaults, strict=False):
            values[key] = given.pop(0) if given else value
        made.append(make(operator, **values))
    return made


def _text(value) -> str:
    return value.decode() if isinstance(value, bytes) else value


def recurrent(m, name: str, inputs, default, direction, hidden_size, layout, functions, **extra):
    """Adds the recurrent operator `name`; gives all hidden states and the last states."""
    if direction not in DIRECTIONS:
        raise Error(f"direction {direction!r} is none of {', '.join(DIRECTIONS)}")
    if layout not in (0, 1):
        raise Error(f"layout {layout} is neither 0 nor 1")
    x, w, r, bias, lens, hidden, *rest = inputs
    hidden_size = m.static_dims(r)[-1] if hidden_size is None else hidden_size
    if layout:
        x, hidden = batch_second(m, x), batch_second(m, hidden)
        rest[:1] = [batch_second(m, v) for v in rest[:1]]
    given = [x, w, r, bias, lens, hidden, *rest]
    while given[-1] is None:
        given.pop()
    whole = m.add(
        name,
        *(m.add("undefined") if v is None else v for v in given),
        hidden_size=hidden_size,
        actv_func=activations(*functions, default, direction),
        direction=direction,
        **extra,
    )
    results = [whole, m.add("rnn_last_hs_output", whole)]
    if name == "lstm":
        results.append(m.add("rnn_last_cell_output", whole))
    if layout:
        results[0] = m.add("transpose", whole, permutation=[2, 0, 1, 3])
        results[1:] = [batch_second(m, v) for v in results[1:]]
    return tuple(results)


def batch_second(m, x):
    """Exchanges the first two axes; None stays None."""
    return None if x is None else m.add("transpose", x, permutation=[1, 0, 2])


@onnx_op("RNN")
def rnn(
    m, x, w, r, b=None, sequence_lens=None, initial_h=None, *, hidden_size=None,
    direction="forward", activations=None, activation_alpha=None, activation_beta=None, clip=0.0,
    layout=0, output_sequence=0,
):  # fmt: skip
    return recurrent(
        m, "rnn", [x, w, r, b, sequence_lens, initial_h], ["Tanh"], direction, hidden_size,
        layout, (activations, activation_alpha, activation_beta), clip=clip,
    )  # fmt: skip


@onnx_op("GRU")
def gru(
    m, x, w, r, b=None, sequence_lens=None, initial_h=None, *, hidden_size=None,
    direction="forward", activations=None, activation_alpha=None, activation_beta=None, clip=0.0,
    layout=0, linear_before_reset=0, output_sequence=0,
):  # fmt: skip
    return recurrent(
        m, "gru", [x, w, r, b, sequence_lens, initial_h], ["Sigmoid", "Tanh"], direction,
        hidden_size, layout, (activations, activation_alpha, activation_beta), clip=clip,
        linear_before_reset=linear_before_reset,
    )  # fmt: skip


@onnx_op("LSTM")
def lstm(
    m, x, w, r, b=None, sequence_lens=None, initial_h=None, initial_c=None, p=None, *,
    hidden_size=None, direction="forward", activations=None, activation_alpha=None,
    activation_beta=None, clip=0.0, layout=0, input_forget=0, output_sequence=0,
):  # fmt: skip
    return recurrent(
        m, "lstm", [x, w, r, b, sequence_lens, initial_h, initial_c, p],
        ["Sigmoid", "Tanh", "Tanh"], direction, hidden_size, layout,
        (activations, activation_alpha, activation_beta), clip=clip, input_forget=input_forget,
    )  # fmt: skip
