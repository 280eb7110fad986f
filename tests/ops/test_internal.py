"""Operators of compiled programs, attention with a cache, placeholders, registering names."""

import numpy as np
import pytest
from checks import case, family, refused

import migraphx
from migraphx.ops.base import Op, only_one
from translate.to_jax.registry import LOWER, lower

APART = ("undefined",)
SMALL = "float half bf16 double"


def softmax(x, axis=1):
    power = np.exp(x - x.max(axis, keepdims=True))
    return power / power.sum(axis, keepdims=True)


def logsoftmax(x, axis=1):
    return np.log(softmax(x, axis))


def lrn(x, alpha=1e-4, beta=0.75, bias=1.0, size=1):
    """ONNX's: the sum runs over the channels around each, cut at the ends."""
    alpha, beta, bias = (float(np.float32(v)) for v in (alpha, beta, bias))
    out = np.empty_like(x)
    for c in range(x.shape[1]):
        low, high = max(0, c - (size - 1) // 2), min(x.shape[1], c + size // 2 + 1)
        square = (x[:, low:high] ** 2).sum(1)
        out[:, c] = x[:, c] / (bias + alpha / size * square) ** beta
    return out


def im2col(x, w, padding=(0, 0), stride=(1, 1), dilation=(1, 1), **_):
    """A row for each window, read element by element."""
    top, left, bottom, right = padding if len(padding) == 4 else (*padding, *padding)
    padded = np.pad(x[0], [(0, 0), (top, bottom), (left, right)])
    rows = []
    reach = [dilation[k] * (w.shape[2 + k] - 1) + 1 for k in (0, 1)]
    for i in range(0, padded.shape[1] - reach[0] + 1, stride[0]):
        for j in range(0, padded.shape[2] - reach[1] + 1, stride[1]):
            part = padded[:, i : i + reach[0] : dilation[0], j : j + reach[1] : dilation[1]]
            rows.append(part.reshape(-1))
    return np.stack(rows)


def quant_dot(a, b, *scales):
    if scales:
        return (a * scales[0]) @ (b * scales[1])
    wide = np.int64 if a.dtype.kind in "iu" else np.float64
    return a.astype(wide) @ b.astype(wide)


def last_output(x, lens, direction="forward"):
    """{time, directions, batch, hidden}: the last valid step, or the first one walked backwards."""
    out = np.empty(x.shape[1:])
    for way in range(x.shape[1]):
        for b in range(x.shape[2]):
            backwards = direction == "reverse" or way == 1
            out[way, b] = x[0 if backwards else int(lens[b]) - 1, way, b]
    return out


def cached(present, lens, past, **_):
    out, steps = np.array(past), present.shape[2]
    for b in range(present.shape[0]):
        for s in range(steps):
            out[b, :, int(lens.reshape(-1)[b]) if steps == 1 else s] = present[b, :, s]
    return out


def rotated(x, lens, cosines, sines, num_heads=1, kv_num_heads=1, interleaved=False):
    """Each pair of numbers is turned by the angle of its position."""
    out, steps, half = np.array(x), x.shape[2], cosines.shape[1]
    for b, h, s, k in np.ndindex(x.shape[0], num_heads + kv_num_heads, steps, half):
        place = int(lens.reshape(-1)[b]) if steps == 1 else s
        i, j = (2 * k, 2 * k + 1) if interleaved else (k, k + half)
        turn = complex(cosines[place, k], sines[place, k]) * complex(x[b, h, s, i], x[b, h, s, j])
        out[b, h, s, i], out[b, h, s, j] = turn.real, turn.imag
    return out


CACHE = ("past[2,3,5,4]",)
TABLES = ("cos[5,2]", "sin[5,2]")
CASES = [
    case("ref::softmax", "x[n,3,4]", reference=softmax, types=SMALL),
    case("ref::softmax", "x[n,3,4]", axis=-1, reference=softmax, types=SMALL),
    case("ref::logsoftmax", "x[n,3,4]", axis=0, reference=logsoftmax, types=SMALL),
    case("ref::logsoftmax", "x[n,3,4]", axis=-2, reference=logsoftmax),
    case("ref::lrn", "x[n,5,3,2]", size=3, alpha=0.5, beta=0.6, bias=2.0, reference=lrn,
         types=SMALL, symbolic=False),
    case("ref::lrn", "x[2,5,3]", size=4, alpha=0.5, reference=lrn),
    case("ref::im2col", "x[1,2,5,6]", "w[4,2,3,2]", reference=im2col, types="float half int8",
         skip="empty"),
    case("ref::im2col", "x[1,2,5,6]", "w[4,2,3,2]", padding=[1, 0, 2, 1], stride=[2, 1],
         dilation=[1, 2], reference=im2col, skip="empty"),
    case("ref::quant_dot", "a[n,3,4]", "b[n,4,2]", reference=quant_dot, types="int8 uint8"),
    case("ref::quant_dot", "a[3,4]", "b[4,2]", reference=quant_dot, types="fp8e4m3fn fp8e5m2fnuz"),
    case("ref::quant_dot", "a:int8[3,4]", "b:int8[4,2]", "s:float[3,4]", "t:float[4,2]",
         reference=quant_dot, grad=False),
    *(case("ref::rnn_var_sl_last_output", f"x[4,{ways},3,2]", ("lens:int32[3]", [4, 1, 2]),
           direction=way, reference=last_output, types=SMALL, symbolic=False)
      for way, ways in (("forward", 1), ("reverse", 1), ("bidirectional", 2))),
    case("dot::wide", "a[n,3,4]", "b[n,4,2]", types="half bf16", tol=1e-5,
         reference=lambda a, b: np.einsum("nij,njk->nik", a, b)),
    case("concat_past_present", "x[2,3,1,4]", ("lens:int32[2,1]", [[0], [4]]), *CACHE,
         kv_num_heads=3, reference=cached, types=SMALL, symbolic=False),
    case("concat_past_present", "x[2,3,4,4]", ("lens:int64[2]", [3, 3]), *CACHE,
         kv_num_heads=3, reference=cached, types="float int8", symbolic=False),
    *(case("gqa_rotary_embedding", f"x[2,5,{steps},4]", ("lens:int32[2,1]", [[1], [4]]), *TABLES,
           num_heads=3, interleaved=pairs, reference=rotated, types=SMALL, symbolic=False)
      for steps in (1, 3) for pairs in (False, True)),
    case("gqa_rotary_embedding", "x[1,4,2,6]", ("lens:int32[1]", [1]), *TABLES, num_heads=2,
         reference=rotated, symbolic=False),
]  # fmt: skip

test_family = family(CASES)

LENS = "lens:int32[2]"
test_refused = refused(
    [
        ("ref::softmax", {"axis": 3}, ["x[2,3]"], "value out of range"),
        ("ref::logsoftmax", {"axis": -3}, ["x[2,3]"], "attribute out of range"),
        ("ref::lrn", {"size": 0}, ["x[2,3]"], "at least 1 is needed"),
        ("ref::lrn", {}, ["x[2]"], "at least 2 dimensions"),
        ("ref::im2col", {}, ["x[2,2,5,6]", "w[4,2,3,2]"], "only support batch_size 1"),
        ("ref::im2col", {}, ["x[2,5,6]", "w[4,2,3,2]"], "Only 4d supported"),
        ("ref::quant_dot", {}, ["a:int8[3,4]", "b:int8[3,2]"], "inner dimensions are not"),
        ("ref::rnn_var_sl_last_output", {}, ["x[4,1,3,2]"], "Wrong number of arguments"),
        ("dot::wide", {}, ["a:half[3,4]", "b:half[3,2]"], "inner dimensions are not"),
        ("concat_past_present", {}, ["x[2,3,4]", LENS, *CACHE], "need 4 dimensions"),
        ("concat_past_present", {}, ["x[2,3,1,4]", LENS], "Wrong number of arguments"),
        ("gqa_rotary_embedding", {}, ["x[2,3,4]", LENS, *TABLES], "needs 4 dimensions"),
        ("undefined", {}, ["x[2]"], "Wrong number of arguments"),
    ]
)


def test_undefined_is_an_input_left_out():
    """It has no sizes and no value; what reads it takes it as not given."""
    program = migraphx.program()
    main = program.get_main_module()
    nothing = main.add_instruction(migraphx.op("undefined"), [])
    assert str(nothing.shape()) == "float_type, {}, {}"
    assert nothing.eval() is None
    shapes = ([3, 2, 4], [1, 5, 4], [1, 5, 5], [1, 2, 5])
    x, w, r, h = (
        main.add_parameter(f"x{k}", migraphx.shape(type="float", lens=lens))
        for k, lens in enumerate(shapes)
    )
    op = migraphx.op("rnn", hidden_size=5)
    main.add_return([main.add_instruction(op, [x, w, r, nothing, nothing, h])])
    program.compile(migraphx.get_target("ref"))
    rng = np.random.default_rng(0)
    x, w, r, h = (rng.standard_normal(lens).astype(np.float32) for lens in shapes)
    state, wanted = h[0], []
    for step in x:
        state = np.tanh(step @ w[0].T + state @ r[0].T)
        wanted.append(state)
    got = program.run({"x0": x, "x1": w, "x2": r, "x3": h})[0]
    np.testing.assert_allclose(np.asarray(got)[:, 0], wanted, rtol=1e-5, atol=1e-6)


def test_a_name_is_registered_once():
    with pytest.raises(migraphx.Error, match="operator relu: registered twice"):

        class Relu(Op, name="relu", inputs=1):
            pass

    before = LOWER["concat"]
    with pytest.raises(migraphx.Error, match="lowering of concat: registered twice"):

        @lower("concat")
        def concat(op, xp, *xs):
            return xs[0]

    assert migraphx.op("relu").compute_shape([migraphx.shape(type="float", lens=[2])])
    assert LOWER["concat"] is before


def test_the_same_definition_may_run_again():
    assert only_one("operator", LOWER["concat"].function, LOWER["concat"].function)
