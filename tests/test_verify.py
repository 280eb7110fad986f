"""`program.verify`: reports, tolerances, and finding a broken operator."""

import numpy as np
import pytest

import migraphx
from migraphx.verify import rms_error
from translate.to_jax import registry

MODES = migraphx.program_verify_mode


def chain(count=6):
    """x -> relu -> tanh(+1) ... with a second path, so that several values are alive."""
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float_type", lens=[4, 4]))
    one = main.add_literal(np.ones((4, 4), np.float32))
    side, value = main.add("abs", x), x
    for _ in range(count):
        value = main.add("add", main.add("tanh", value), one)
    value = main.add("floor", main.add("mul", value, main.add_literal(np.full((4, 4), 7.0, "f4"))))
    main.add_return([main.add("add", value, side), main.add("sqrt", side)])
    return program


@pytest.fixture
def broken(monkeypatch):
    """Makes an operator wrong where fast mathematics is allowed, which the reference forbids."""

    def break_(name):
        found = registry.LOWER[name]
        right = found.function

        def wrong(op, xp, *args):
            result = right(op, xp, *args)
            return result + 1 if registry.context().fast_math else result

        monkeypatch.setitem(
            registry.LOWER,
            name,
            found._replace(function=wrong)
            if hasattr(found, "_replace")
            else __import__("dataclasses").replace(found, function=wrong),
        )

    return break_


@pytest.mark.parametrize("mode", list(MODES))
def test_a_right_program_passes(mode):
    result = chain().verify(migraphx.get_target("cpu"), mode=mode)
    assert isinstance(result, migraphx.program_verify_result)
    assert result
    assert result.first_failure is None
    assert "passed" in repr(result)
    assert "<table>" in result._repr_html_()


def test_bisecting_finds_the_broken_operator(broken):
    broken("sqrt")
    program = chain()
    result = program.verify(migraphx.get_target("cpu"), mode=MODES.bisect)
    assert not result
    assert [c.passed for c in result.comparisons] == [True, False]
    assert " sqrt " in result.first_failure
    assert result.first_failure in repr(result)


def test_bisecting_finds_the_first_of_many(broken):
    broken("tanh")
    result = chain().verify(migraphx.get_target("cpu"), mode="bisect")
    first = next(k for k, i in enumerate(chain().get_main_module()) if i.name() == "tanh")
    assert result.first_failure.startswith(f"@{first} tanh ")


def test_each_instruction_alone(broken):
    broken("floor")
    result = chain().verify(migraphx.get_target("cpu"), mode=MODES.per_instruction)
    failed = [c.name.split()[1] for c in result.comparisons if not c.passed]
    assert failed == ["floor"]
    assert "elements differ" in repr(result)


def test_programs_with_control_flow(golden_programs):
    for name in ("if_branches", "loop_scan", "lstm"):
        program = migraphx.load(str(golden_programs / f"{name}.mxr"))
        for mode in MODES:
            assert program.verify(migraphx.get_target("cpu"), mode=mode), (name, mode)


@pytest.fixture
def golden_programs():
    from pathlib import Path

    return Path(__file__).parent / "data" / "golden" / "programs"


@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8", "fp8"])
def test_lower_precision(golden_programs, precision):
    program = migraphx.load(str(golden_programs / "cnn_static.mxr"))
    text = repr(program)
    result = program.verify(migraphx.get_target("cpu"), precision=precision, ref_use_double=True)
    assert result
    assert result.comparisons[0].rms > 0
    assert result.comparisons[0].shape.type_string() == "double_type"
    assert repr(program) == text


def test_double_reference_leaves_quantising_out(golden_programs):
    program = migraphx.load(str(golden_programs / "cnn_static.mxr"))
    plain = program.verify(migraphx.get_target("ref"), ref_use_double=True)
    migraphx.quantize_int8(program, migraphx.get_target("ref"), [{}])
    rounded = program.verify(migraphx.get_target("ref"), ref_use_double=True)
    assert plain.comparisons[0].rms < 1e-6 < rounded.comparisons[0].rms


def test_tolerances():
    program = chain()
    names = ("rms_tol", "atol", "rtol")
    assert program.verify("cpu").tolerances == dict.fromkeys(names, 0.001)
    assert program.verify("cpu", rms_tol=0.5).tolerances["rms_tol"] == 0.5
    migraphx.quantize_fp16(program)
    assert program.verify("cpu").tolerances == dict(zip(names, (0.08, 0.04, 0.04), strict=True))


def test_given_parameters_are_used():
    given = np.zeros((4, 4), np.float32)
    program = chain()
    result = program.verify("cpu", params={"x": migraphx.argument(given)})
    assert result
    with pytest.raises(migraphx.Error, match="no parameter 'y'"):
        program.verify("cpu", params={"y": given})


def test_dynamic_parameters_must_be_given():
    program = migraphx.program()
    main = program.get_main_module()
    dims = [migraphx.dynamic_dimension(1, 8)]
    x = main.add_parameter("x", migraphx.shape(type="float_type", dyn_dims=dims))
    main.add_return([main.add("exp", x)])
    with pytest.raises(migraphx.Error, match="'x' is dynamic"):
        program.verify("cpu")
    for mode in MODES:
        assert program.verify("cpu", mode=mode, params={"x": np.ones(3, np.float32)})


def test_a_compiled_model(tmp_path):
    program, other = chain(), chain(1)
    migraphx.save(other, str(tmp_path / "other.mxr"))
    assert program.verify("cpu", compiled_model=program.clone())
    assert not program.verify("cpu", compiled_model=str(tmp_path / "other.mxr"))
    with pytest.raises(migraphx.Error, match="outputs alone"):
        program.verify("cpu", mode="bisect", compiled_model=other)


def test_nan_and_infinity_in_the_same_places_are_equal(broken):
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float_type", lens=[4]))
    main.add_return([main.add("log", x), main.add("relu", x)])
    given = {"x": np.array([-1, 0, 1, 2], np.float32)}
    result = program.verify("cpu", params=given)
    assert result
    assert result.comparisons[0].nans == (1, 1)
    assert result.comparisons[0].infinities == (1, 1)
    broken("log")
    wrong = program.verify("cpu", params=given)
    assert [c.passed for c in wrong.comparisons] == [False, True]


def test_rms_error():
    a, b = np.array([3.0, 0.0]), np.array([0.0, 4.0])
    assert rms_error(a, b) == pytest.approx(5 / (np.sqrt(2) * 4))
    assert rms_error(a, a) == 0
    assert rms_error(np.zeros(0), np.zeros(0)) == 0


BAD = [
    ({"mode": "all"}, "unknown mode 'all'"),
    ({"precision": "fp61"}, "unknown precision"),
    ({"tolerance": 1}, "unexpected keyword argument 'tolerance'"),
    ({"target": "moon"}, "unknown target"),
]


@pytest.mark.parametrize(("options", "text"), BAD)
def test_bad_options(options, text):
    with pytest.raises(migraphx.Error, match=text):
        chain().verify(**{"target": "cpu", **options})
