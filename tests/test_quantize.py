"""Half precision, int8 and fp8 against the recorded programs; what users rely on besides."""

import json
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import migraphx

PROGRAMS = Path(__file__).parent / "data" / "golden" / "programs"
MODELS = ("attention", "cnn_static")


def load(name):
    return migraphx.load(str(PROGRAMS / f"{name}.mxr"))


def inputs(program):
    return {k: migraphx.generate_argument(s, 0) for k, s in program.get_parameter_shapes().items()}


def quantised(name, how):
    program = load(name)
    data = [inputs(program)]
    if how in ("int8", "fp8"):
        function = getattr(migraphx, f"quantize_{how}")
        function(program, migraphx.get_target("ref"), calibration=data)
    else:
        getattr(migraphx, f"quantize_{how}")(program)
    return program


def without_numbers(text):
    """A program's text with each literal written where it is used, so that its place is free."""
    lines, known = [], {}
    for line in text.splitlines():
        match = re.match(r"(\S+) = (.*)", line)
        if match and match[2].startswith("@literal"):
            known[match[1]] = f"[{match[2]}]"
        elif match:
            key = match[1] if not match[1].startswith("@") else f"%{len(lines)}"
            body = re.sub(r"@\d+", lambda m: known[m[0]], match[2])
            known[match[1]] = key
            lines.append(f"{key} = {body}")
    return lines


LITERAL = re.compile(r"@literal\{([-+\d][-+.e\d, ]*)\}")
# MIGraphX cuts off bits where a float literal becomes half or bfloat16; here it is rounded to the
# nearest, at most one step away (2^-24 near zero). Scales come from sums, whose order moves the last
# of the six digits.
STEP = {"fp16": (2**-10, 2**-24), "bf16": (2**-7, 0), "int8": (1e-5, 0), "fp8": (1e-5, 0)}


def literals(text):
    return np.array([float(n) for part in LITERAL.findall(text) for n in part.split(", ")])


@pytest.mark.parametrize("how", ["fp16", "bf16", "int8", "fp8"])
@pytest.mark.parametrize("name", MODELS)
def test_programs_are_those_of_migraphx(name, how):
    text = repr(quantised(name, how)).strip()
    expected = (PROGRAMS / f"{name}_quantize_{how}.txt").read_text().strip()
    if how in ("fp16", "bf16"):
        # MIGraphX lists these literals in the order of a hash map of addresses.
        text, expected = ("\n".join(without_numbers(t)) for t in (text, expected))
    assert LITERAL.sub("#", text) == LITERAL.sub("#", expected)
    rtol, atol = STEP[how]
    np.testing.assert_allclose(literals(text), literals(expected), rtol=rtol, atol=atol)


@pytest.mark.parametrize("how", ["fp16", "int8", "fp8"])
@pytest.mark.parametrize("name", MODELS)
def test_files_are_those_of_migraphx(name, how, tmp_path):
    """Operators, attributes, shapes and flags of every node as MIGraphX saves them."""
    migraphx.save(quantised(name, how), str(tmp_path / "p.json"), format="json")
    got, want = (
        [
            {k: n[k] for k in ("name", "operator", "shape", "normalized")}
            for n in json.loads(path.read_text())["modules"]["main"]["nodes"]
            if n["name"] != "@literal"
        ]
        for path in (tmp_path / "p.json", PROGRAMS / f"{name}_quantize_{how}.json")
    )
    assert got == want


@pytest.mark.parametrize("how", ["fp16", "bf16", "int8", "fp8"])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_near_those_of_migraphx(name, how):
    index = json.loads((PROGRAMS / "index.json").read_text())
    program = quantised(name, how)
    before = load(name)
    assert program.get_parameter_shapes() == before.get_parameter_shapes()
    assert program.get_output_shapes() == before.get_output_shapes()
    program.compile(migraphx.get_target("ref"))
    (got,) = program.run(inputs(program))
    want = np.array(index[f"{name}_quantize_{how}"]["outputs"][0]["values"])
    largest = np.abs(want).max()
    # In units of the type's rounding: 2^-11, 2^-8, 1/127, 2^-4, each a few times over.
    bound = {"fp16": 2**-9, "bf16": 2**-5, "int8": 4 / 127, "fp8": 2**-3}[how]
    np.testing.assert_allclose(np.asarray(got).reshape(-1), want, rtol=0, atol=bound * largest)


# -- half ------------------------------------------------------------------------------------------


def build(shapes, body, kind="float_type"):
    program = migraphx.program()
    main = program.get_main_module()
    params = [
        main.add_parameter(f"x{k}", migraphx.shape(type=kind, lens=list(lens)))
        for k, lens in enumerate(shapes)
    ]
    main.add_return(body(main, *params))
    return program


def run(program, *arrays):
    program.compile(migraphx.get_target("ref"))
    return [np.asarray(r) for r in program.run({f"x{k}": a for k, a in enumerate(arrays)})]


def constant(main, value, like):
    lit = main.add_literal(np.array(value, np.float32))
    return main.add("multibroadcast", lit, out_lens=like.shape().lens())


def rms_norm(m, x):
    mean = m.add("reduce_mean", m.add("mul", x, x), axes=[1])
    root = m.add("rsqrt", m.add("add", mean, constant(m, 1e-6, mean)))
    return [m.add("mul", x, m.add("multibroadcast", root, out_lens=x.shape().lens()))]


def scaled_scores(m, x):
    scores = m.add("dot", x, m.add("transpose", x, permutation=[1, 0]))
    return [m.add("softmax", m.add("mul", scores, constant(m, 1e-4, scores)), axis=1)]


def long_softmax(m, x):
    return [m.add("softmax", x, axis=1)]


def power_chain(m, x):
    cube = m.add("pow", x, constant(m, 3, x))
    return [m.add("div", cube, m.add("add", cube, constant(m, 1, cube)))]


def exponential(m, x):
    grown = m.add("exp", m.add("mul", x, constant(m, 0.05, x)))
    return [m.add("log", grown)]


def sine_of_time(m, x):
    return [m.add("sin", m.add("mul", x, constant(m, 0.37, x)))]


def sum_of_squares(m, x):
    return [m.add("sqrt", m.add("reduce_sum", m.add("sqdiff", x, constant(m, 0, x)), axes=[1]))]


CHAINS = [
    (rms_norm, (4, 512), 600), (scaled_scores, (16, 64), 90), (long_softmax, (1, 100_000), 1),
    (power_chain, (8, 8), 60), (exponential, (8, 8), 250), (sine_of_time, (1, 64), 1900),
    (sum_of_squares, (4, 64), 900),
]  # fmt: skip


@pytest.mark.parametrize("how", ["fp16", "bf16"])
@pytest.mark.parametrize(("body", "lens", "size"), CHAINS, ids=[c[0].__name__ for c in CHAINS])
def test_half_stays_finite_where_float_does(how, body, lens, size):
    rng = np.random.default_rng(0)
    x = np.rint(rng.uniform(0.5, 1, lens) * size).astype(np.float32)  # whole: exact in half
    kind = np.float16 if how == "fp16" else ml_dtypes.bfloat16
    x = x.astype(kind).astype(np.float32)
    plain, narrow = build([lens], body), build([lens], body)
    getattr(migraphx, f"quantize_{how}")(narrow)
    assert "half_type" in repr(narrow) or how == "bf16"
    (want,), (got,) = run(plain, x), run(narrow, x)
    assert got.dtype == np.float32
    assert np.isfinite(got).all()
    step = float(ml_dtypes.finfo(kind).eps)
    # Constants are rounded once to the narrow type, the result once.
    slack = 1900 * 0.37 * step / 2 if body is sine_of_time else 0
    np.testing.assert_allclose(got, want, rtol=4 * step, atol=4 * step * np.abs(want).max() + slack)


def test_named_operators_only():
    program = load("attention")
    migraphx.quantize_fp16(program, ["dot"])
    kinds = {(i.name(), i.shape().type_string()) for i in program.get_main_module()}
    assert ("dot", "half_type") in kinds
    assert ("softmax", "float_type") in kinds
    assert ("softmax", "half_type") not in kinds


def test_tuples_and_whole_numbers_keep_their_types():
    def body(m, x):
        both = m.add("topk", x, k=2, axis=1, largest=True)
        values = m.add("get_tuple_elem", both, index=0)
        return [m.add("mul", values, values), m.add("get_tuple_elem", both, index=1),
                m.add("argmax", x, axis=1)]  # fmt: skip

    program = build([(3, 5)], body)
    before = program.get_output_shapes()
    migraphx.quantize_fp16(program)
    assert program.get_output_shapes() == before
    x = np.random.default_rng(1).permutation(15).reshape(3, 5).astype(np.float32)
    values, places, best = run(program, x)
    order = np.argsort(-x, 1)[:, :2]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1) ** 2)
    np.testing.assert_array_equal(best.reshape(-1), x.argmax(1))


@pytest.mark.parametrize("how", ["fp16", "bf16"])
@pytest.mark.parametrize("name", ["if_branches", "loop_scan", "lstm"])
def test_programs_with_modules_and_recurrence(name, how):
    plain, narrow = load(name), load(name)
    getattr(migraphx, f"quantize_{how}")(narrow)
    assert narrow.get_output_shapes() == plain.get_output_shapes()
    given = inputs(plain)
    for program in (plain, narrow):
        program.compile(migraphx.get_target("ref"))
    step = 2**-10 if how == "fp16" else 2**-7
    for a, b in zip(narrow.run(given), plain.run(given), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        np.testing.assert_allclose(a, b, rtol=8 * step, atol=8 * step)


# -- int8, fp8, int4 -------------------------------------------------------------------------------


def product(m, x):
    rng = np.random.default_rng(2)
    w = m.add_literal(rng.standard_normal((6, 4)).astype(np.float32))
    return [m.add("dot", x, w)]


def scales(program):
    return [
        float(i.inputs()[1].inputs()[0].get_literal().tolist()[0])
        for i in program.get_main_module()
        if i.name() == "quantizelinear"
    ]


def test_calibration_keeps_the_largest_of_all_sets():
    program = build([(2, 6)], product)
    sets = [{"x0": migraphx.argument(np.full((2, 6), v, np.float32))} for v in (1.0, -5.0, 2.0)]
    migraphx.quantize_int8(program, migraphx.get_target("ref"), calibration=sets)
    assert scales(program)[0] == pytest.approx(5 / 127, rel=1e-6)


def test_without_data_the_scale_is_a_64th_and_a_warning_says_so():
    program = build([(2, 6)], product)
    with pytest.warns(UserWarning, match="no calibration data"):
        migraphx.quantize_int8(program, migraphx.get_target("ref"))
    assert scales(program) == [1 / 64, 1 / 64]


def test_calibration_ignores_what_is_not_finite_and_zeros_give_scale_one():
    program = build([(2, 6)], product)
    data = [{"x0": np.full((2, 6), np.inf, np.float32)}, {}]
    migraphx.quantize_int8(program, migraphx.get_target("ref"), calibration=data)
    assert scales(program)[0] == 1.0


def test_int8_results():
    program, plain = build([(2, 6)], product), build([(2, 6)], product)
    x = np.random.default_rng(3).standard_normal((2, 6)).astype(np.float32)
    migraphx.quantize_int8(program, migraphx.get_target("ref"), calibration=[{"x0": x}])
    (got,), (want,) = run(program, x), run(plain, x)
    step = np.abs(x).max() / 127
    assert 0 < np.abs(got - want).max() < 6 * step * 3


def test_dynamic_programs_can_be_calibrated():
    program = migraphx.program()
    main = program.get_main_module()
    dims = [migraphx.dynamic_dimension(1, 8), migraphx.dynamic_dimension(6, 6)]
    x = main.add_parameter("x", migraphx.shape(type="float_type", dyn_dims=dims))
    w = main.add_literal(np.eye(6, dtype=np.float32))
    main.add_return([main.add("dot", x, w)])
    data = [{"x": np.full((3, 6), 2.0, np.float32)}]
    migraphx.quantize_int8(program, migraphx.get_target("ref"), calibration=data)
    program.compile(migraphx.get_target("ref"))
    for rows in (1, 5):
        given = np.full((rows, 6), 1.0, np.float32)
        (got,) = program.run({"x": given})
        np.testing.assert_allclose(np.asarray(got), given, atol=2 / 127)


def test_autocast_fp8():
    kind = "fp8e4m3fn_type"
    program = build([(2, 3)], lambda m, x: [m.add("add", x, x)], kind)
    migraphx.autocast_fp8(program)
    assert [s.type_string() for s in program.get_parameter_shapes().values()] == ["float_type"]
    assert [s.type_string() for s in program.get_output_shapes()] == ["float_type"]
    (got,) = run(program, np.full((2, 3), 1.3, np.float32))
    np.testing.assert_array_equal(got, 2.5)  # 1.3 is 1.25 in fp8


def test_int4_weights():
    program, plain = build([(2, 6)], product), build([(2, 6)], product)
    migraphx.quantize_int4_weights(program)
    assert "unpack_int4" in repr(program)
    x = np.random.default_rng(3).standard_normal((2, 6)).astype(np.float32)
    (got,), (want,) = run(program, x), run(plain, x)
    weights = np.random.default_rng(2).standard_normal((6, 4)).astype(np.float32)
    bound = np.abs(x).sum(1, keepdims=True) * (np.abs(weights).max(0) / 7 / 2)
    assert (np.abs(got - want) <= bound + 1e-5).all()
    assert not np.array_equal(got, want)


def test_quantised_programs_can_be_saved(tmp_path):
    for how in ("fp16", "int8"):
        program = quantised("cnn_static", how)
        migraphx.save(program, str(tmp_path / "p.mxr"))
        assert migraphx.load(str(tmp_path / "p.mxr")) == program


REFUSED = [
    (lambda p, t: migraphx.quantize_fp16("p"), TypeError, "expected a migraphx.program"),
    (lambda p, t: migraphx.quantize_fp16(p, "dot"), TypeError, "list of operator names"),
    (lambda p, t: migraphx.quantize_int8(p, t, ins_names={"relu"}), migraphx.Error, "only support"),
    (lambda p, t: migraphx.quantize_int8(p, t, {"x0": 1}), TypeError, "list of dicts"),
    (lambda p, t: migraphx.quantize_int8(p, t, [3]), TypeError, "list of dicts"),
    (lambda p, t: migraphx.quantize_fp8(None, t), TypeError, "expected a migraphx.program"),
    (lambda p, t: migraphx.quantize_int8(p, "nowhere"), migraphx.Error, "unknown target"),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_bad_arguments(call, kind, text):
    program = build([(2, 6)], product)
    before = repr(program)
    with pytest.raises(kind, match=text):
        call(program, migraphx.get_target("ref"))
    assert repr(program) == before
