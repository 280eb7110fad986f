"""Recurrent operators: rnn, gru and lstm with their states, sequences of varying length.

The reference walks each sample by itself, step by step, with plain vectors.
"""

import numpy as np
import pytest
from checks import case, family, refused
from rows import shape_of

import migraphx

APART = ("rnn_last_hs_output", "rnn_last_cell_output")
SMALL = "float half bf16 double"
GATES = {"rnn": 1, "gru": 3, "lstm": 4}

F = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "onnx::softsign": lambda x: x / (1 + np.abs(x)),
}


def one_step(kind, x, h, c, w, r, b, p, functions, clip=0.0, linear_before_reset=0, input_forget=0,
             **_):  # fmt: skip
    """The next hidden state and cell of one sample; w and r as ONNX stores them."""
    size = len(h)

    def part(matrix, k):
        return matrix[k * size : (k + 1) * size]

    def gate(f, total):
        return F[f](np.clip(total, -clip, clip) if clip > 0 else total)

    wb, rb = b[: GATES[kind] * size], b[GATES[kind] * size :]
    into = [part(w, k) @ x + part(wb, k) for k in range(GATES[kind])]
    back = [part(r, k) @ h + part(rb, k) for k in range(GATES[kind])]
    if kind == "rnn":
        return gate(functions[0], into[0] + back[0]), c
    if kind == "gru":
        z, reset = (gate(functions[0], into[k] + back[k]) for k in (0, 1))
        if linear_before_reset:
            inner = reset * back[2]
        else:
            inner = part(r, 2) @ (reset * h) + part(rb, 2)
        return (1 - z) * gate(functions[1], into[2] + inner) + z * h, c
    peep = [part(p, k) * c for k in range(3)]  # input, output, forget
    i = gate(functions[0], into[0] + back[0] + peep[0])
    f = 1 - i if input_forget else gate(functions[0], into[2] + back[2] + peep[2])
    c = f * c + i * gate(functions[1], into[3] + back[3])
    # The output gate's peephole sees the new cell.
    o = gate(functions[0], into[1] + back[1] + part(p, 1) * c)
    return o * F[functions[2]](c), c


def recurrent(kind, turned=True):
    """The operator `kind` with its states; `turned` weights are {directions, input, gates}."""

    def reference(x, w, r, bias=None, lens=None, hidden=None, cell=None, peepholes=None, *,
                  hidden_size, direction="forward", actv_func=(), **attributes):  # fmt: skip
        if turned:
            w, r = np.swapaxes(w, 1, 2), np.swapaxes(r, 1, 2)
        time, batch, ways, size = x.shape[0], x.shape[1], len(w), hidden_size
        count = {"rnn": 1, "gru": 2, "lstm": 3}[kind]
        names = list(actv_func) or ["tanh"] if kind == "rnn" else list(actv_func)
        names = names or ["sigmoid", "tanh", "tanh"][:count]
        functions = names * (2 if len(names) == count else 1)
        whole = np.zeros((time, ways, batch, size))
        h_end, c_end = np.zeros((2, ways, batch, size))
        for way in range(ways):
            for n in range(batch):
                steps = time if lens is None else int(lens[n])
                order = range(steps)
                order = reversed(order) if direction == "reverse" or way == 1 else order
                h = np.zeros(size) if hidden is None else hidden[way, n]
                c = np.zeros(size) if cell is None else cell[way, n]
                b = np.zeros(2 * GATES[kind] * size) if bias is None else bias[way]
                p = np.zeros(3 * size) if peepholes is None else peepholes[way]
                for t in order:
                    h, c = one_step(kind, x[t, n], h, c, w[way], r[way], b, p,
                                    functions[way * count :][:count], **attributes)  # fmt: skip
                    whole[t, way, n] = h
                h_end[way, n], c_end[way, n] = h, c
        return (whole, h_end, c_end)[: 3 if kind == "lstm" else 2]

    return reference


def inputs(kind, ways=1, count=3, lens=(4, 2, 3), hidden=5, time=4, width=2):
    """Texts of the first `count` inputs, small enough that nothing saturates."""
    wide, batch = GATES[kind] * hidden, len(lens)

    def small(rng, dims):
        return rng.uniform(-0.8, 0.8, dims)

    texts = [
        (f"x[{time},{batch},{width}]", small),
        (f"w[{ways},{width},{wide}]", small),
        (f"r[{ways},{hidden},{wide}]", small),
        (f"b[{ways},{2 * wide}]", small),
        (f"lens:int32[{batch}]", list(lens)),
        (f"h[{ways},{batch},{hidden}]", small),
        (f"c[{ways},{batch},{hidden}]", small),
        (f"p[{ways},{3 * hidden}]", small),
    ]
    return texts[:count]


def states(kind, *, ways=1, count=3, types="float", whole=False, **attributes):
    """A row of an operator with its states; the weights' sizes are not tried as symbols.

    `whole` rows go through every check; the slow ones depend little on attributes.
    """
    given = inputs(kind, ways, count)
    skip = "empty" if whole else "empty layouts lowers gradient"
    return case(f"{kind}::states", *given, hidden_size=5, reference=recurrent(kind), types=types,
                symbolic=False, skip=skip, **attributes)  # fmt: skip


def var_lens(kind):
    """What moves in a sequence of {time, batch, …}: to the end, or back to the front."""

    def reference(x, lens, direction="forward", **_):
        out, time = np.zeros(x.shape), x.shape[0]
        for b in range(len(lens)):
            size = int(lens[b])
            if kind == "sequence":
                out[time - size :, b] = x[:size, b]
                continue
            for way in range(x.shape[1]):
                backwards = direction == "reverse" or way == 1
                out[:size, way, b] = x[time - size :, way, b] if backwards else x[:size, way, b]
        return out

    return reference


BOTH = {"ways": 2, "direction": "bidirectional"}
WAYS = (("forward", 1), ("reverse", 1), ("bidirectional", 2))
CASES = [
    *(states(kind, types=SMALL, whole=True) for kind in GATES),
    *(states(kind, count=4, direction="reverse") for kind in GATES),
    *(states(kind, count=6, **BOTH) for kind in GATES),
    states("rnn", count=6, actv_func=["relu"], types=SMALL),
    states("rnn", count=4, actv_func=["relu", "onnx::softsign"], clip=0.3, **BOTH),
    states("gru", count=4, linear_before_reset=1, types="float double"),
    states("gru", count=6, clip=0.2, linear_before_reset=1, **BOTH),
    states("gru", count=4, actv_func=["sigmoid", "relu"]),
    states("lstm", count=7, types=SMALL),
    states("lstm", count=8, types="float double", whole=True),
    states("lstm", count=8, input_forget=1, clip=0.25, **BOTH),
    states("lstm", count=8, actv_func=["sigmoid", "tanh", "onnx::softsign"], direction="reverse"),
    case("lstm::states", *inputs("lstm", count=7, lens=(0, 4)), hidden_size=5, symbolic=False,
         skip="layouts empty", grad=False),
    *(case("rnn_var_sl_last_output", f"x[4,{ways},3,2]", ("lens:int32[3]", [4, 1, 2]),
           direction=way, types=SMALL, symbolic=False,
           reference=lambda x, lens, direction: np.stack([
               np.stack([x[0 if direction == "reverse" or d == 1 else int(n) - 1, d, b]
                         for b, n in enumerate(lens)]) for d in range(x.shape[1])]))
      for way, ways in WAYS),
    *(case("rnn_var_sl_shift_output", f"x[4,{ways},3,2]", ("lens:int32[3]", [4, 1, 2]),
           direction=way, types=SMALL, symbolic=False, reference=var_lens("output"))
      for way, ways in WAYS),
    case("rnn_var_sl_shift_sequence", "x[4,3,2]", ("lens:int64[3]", [4, 1, 2]), types=SMALL,
         symbolic=False, reference=var_lens("sequence")),
    case("rnn_var_sl_shift_sequence", "x[4,2,2]", ("lens:int32[2]", [0, 3]),
         symbolic=False, reference=var_lens("sequence")),
]  # fmt: skip

test_family = family(CASES)

X, W, R = "x[4,3,2]", "w[1,5,2]", "r[1,5,5]"
test_refused = refused(
    [
        ("rnn", {"hidden_size": 4}, [X, W, R], "hidden size mismatch"),
        ("lstm", {"hidden_size": 5, "direction": "bidirectional"}, [X, W, R],
         "num_direction does not match"),
        ("gru", {"hidden_size": 5}, ["x[4,3]", W, R], "input 0 needs 3 dimensions"),
        ("rnn::states", {"hidden_size": 5}, [X, W], "Wrong number of arguments"),
        ("gru", {"hidden_size": 5}, [X, W, R], "the weights should be {1, 15, 2}"),
        ("lstm", {"hidden_size": 5}, [X, "w[1,20,2]", "r[1,20,5]", "b[1,20]"], "the bias should be"),
        ("rnn_last_hs_output", {}, ["x[4,3,2]"], "not the result of a recurrent operator"),
        ("rnn_last_cell_output", {}, ["x[3,2]"], "not the result of a recurrent operator"),
        ("rnn_var_sl_last_output", {}, ["x[4,1,3,2]"], "Wrong number of arguments"),
        ("rnn_var_sl_shift_output", {}, ["x[4,1,3,2]"], "Wrong number of arguments"),
        ("rnn_var_sl_shift_sequence", {}, ["x[4,3,2]"], "Wrong number of arguments"),
        ("rnn_var_sl_last_output", {"direction": "sideways"}, ["x[2]", "n[2]"], "does not fit"),
    ]
)  # fmt: skip


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_last_states(kind, direction):
    """The operators that read the last states, in a program as a user builds it."""
    ways = 2 if direction == "bidirectional" else 1
    rng = np.random.default_rng(3)
    wide = GATES[kind] * 5
    arrays = [
        rng.uniform(-0.8, 0.8, dims).astype(np.float32)
        for dims in ((4, 3, 2), (ways, wide, 2), (ways, wide, 5), (ways, 2 * wide))
    ]
    arrays.append(np.array([4, 2, 3], np.int32))
    program = migraphx.program()
    main = program.get_main_module()
    params = [main.add_parameter(f"x{k}", shape_of(a)) for k, a in enumerate(arrays)]
    op = migraphx.op(kind, hidden_size=5, direction=direction)
    whole = main.add_instruction(op, params)
    outs = [whole, main.add_instruction(migraphx.op("rnn_last_hs_output"), [whole])]
    if kind == "lstm":
        outs.append(main.add_instruction(migraphx.op("rnn_last_cell_output"), [whole]))
    assert outs[1].shape().lens() == [ways, 3, 5]
    main.add_return(outs)
    program.compile(migraphx.get_target("ref"))
    got = program.run({f"x{k}": a for k, a in enumerate(arrays)})
    wanted = recurrent(kind, turned=False)(*arrays, hidden_size=5, direction=direction)
    for one, two in zip(got, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), two, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", APART)
def test_a_last_state_needs_a_recurrent_instruction(name):
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float", lens=[4, 1, 3, 5]))
    main.add_return([main.add_instruction(migraphx.op(name), [x])])
    with pytest.raises(migraphx.Error, match="its input must be an rnn, gru or lstm"):
        program.compile(migraphx.get_target("ref"))


def test_a_plain_rnn_has_no_cell():
    program = migraphx.program()
    main = program.get_main_module()
    lens = ([4, 3, 2], [1, 5, 2], [1, 5, 5])
    xs = [main.add_parameter(f"x{k}", migraphx.shape(type="float", lens=n))
          for k, n in enumerate(lens)]  # fmt: skip
    whole = main.add_instruction(migraphx.op("rnn", hidden_size=5), xs)
    main.add_return([main.add_instruction(migraphx.op("rnn_last_cell_output"), [whole])])
    with pytest.raises(migraphx.Error, match="a cell has only lstm"):
        program.compile(migraphx.get_target("ref"))


def test_too_many_activation_functions():
    op = migraphx.op("rnn", hidden_size=5, actv_func=["tanh"] * 3, direction="bidirectional")
    with pytest.raises(migraphx.Error, match="at most 2 are used"):
        op.functions()
