"""The driver's commands that run a model: inputs, results, run, time, perf, verify."""

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from test_driver_read import error_of, small_onnx, small_program

import migraphx
from migraphx.driver import main
from migraphx.driver.inputs import concrete_shapes
from migraphx.driver.operators import by_operator, measure
from migraphx.driver.perf import statistics
from migraphx.driver.results import describe

X = np.array([[1, 2, 3], [-4, 5, -6]], np.float32)


@pytest.fixture
def files(tmp_path):
    """A small program, as .mxr and as ONNX, and an input for it in each kind of file."""
    migraphx.save(small_program(), tmp_path / "small.mxr")
    onnx.save(small_onnx(), tmp_path / "small.onnx")
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", x=X, y=np.ones(2))
    np.savez(tmp_path / "other.npz", a=X, b=X)
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(X).SerializeToString())
    migraphx.argument.save(migraphx.argument(X), tmp_path / "x.mxr")
    return tmp_path


def text_of(capsys, *words):
    """What a command that succeeds prints."""
    assert main(list(map(str, words))) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def expected(x=X):
    return np.maximum(x @ np.arange(12, dtype=np.float32).reshape(3, 4), 0) + 1


# -- inputs and results ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [["@x", "x.npy"], ["@x", "x.npz"], ["x.npz"], ["@x", "x.pb"], ["@x", "x.mxr"]],
    ids="-".join,
)
def test_inputs_are_loaded_and_results_written(files, capsys, words):
    words = [w if w.startswith("@") else str(files / w) for w in words]
    out = files / "out.npz"
    text_of(capsys, "run", files / "small.mxr", "--load-arg", *words, "-n", 1, "--ref", "-o", out)
    with np.load(out) as results:
        assert list(results) == ["output_0"]
        np.testing.assert_allclose(results["output_0"], expected())


def test_one_result_goes_to_npy_and_fills_are_numbers(files, capsys):
    out = files / "out.npy"
    for fill in (0, 1):
        text_of(capsys, "run", files / "small.mxr", f"--fill{fill}", "x", "-n", 1, "-o", out)
        np.testing.assert_allclose(np.load(out), expected(np.full((2, 3), fill, np.float32)))


def test_results_of_every_kind_are_kept(tmp_path, capsys):
    program = migraphx.program()
    main_ = program.get_main_module()
    x = main_.add_parameter("x", migraphx.shape(type="float", lens=[4]))
    half = main_.add_instruction(migraphx.op("convert", target_type=1), [x])
    bf16 = main_.add_instruction(migraphx.op("convert", target_type=18), [x])
    top = main_.add_instruction(migraphx.op("topk", k=2, axis=0), [x])
    main_.add_return([half, bf16, top])
    migraphx.save(program, tmp_path / "many.mxr")
    out = tmp_path / "out.npz"
    text_of(capsys, "run", tmp_path / "many.mxr", "-n", 1, "-o", out)
    with np.load(out) as results:
        kinds = {name: results[name].dtype.name for name in results}
    assert len(kinds) == 4
    assert list(kinds)[2:] == ["output_2_0", "output_2_1"]
    code, line = error_of(capsys, "run", tmp_path / "many.mxr", "-n", 1, "-o", tmp_path / "a.npy")
    assert code == 1
    assert "holds one array, there are 4" in line


def test_dynamic_inputs_get_sizes(files, capsys):
    dynamic = ["run", files / "small.onnx", "--dim-param", "@N", "{min:2,max:9}", "-n", 1]
    assert "0: float_type, {2, 4}, {4, 1}" in text_of(capsys, *dynamic)
    assert "0: float_type, {5, 4}, {4, 1}" in text_of(capsys, *dynamic, "--batch", 5)
    words = ["run", files / "small.onnx", "--dyn-input-dim", "@x", "[{min:2,max:9},3]", "-n", 1]
    assert "{7, 4}" in text_of(capsys, *words, "--input-dim", "@x", 7, 3)
    assert "{2, 4}" in text_of(capsys, *words, "--load-arg", "@x", files / "x.npy")
    assert "size 1 is not N[2..9]" in error_of(capsys, *words, "--input-dim", "@x", 1, 3)[1]
    assert "--batch 10 is not in N[2..9]" in error_of(capsys, *words, "--batch", 10)[1]


def test_symbols_are_the_same_in_all_inputs():
    shape = migraphx.shape
    shapes = {
        "a": shape(type="float", dyn_dims=[migraphx.dynamic_dimension("n[1..8]")]),
        "b": shape(type="float", dyn_dims=[migraphx.dynamic_dimension("2*n[1..8]+1")]),
    }

    def lens(asked, batch=None):
        found = concrete_shapes(shapes, asked, batch, {})
        return [s.lens() for s in found.values()]

    assert lens({}) == [[1], [3]]
    assert lens({}, batch=4) == [[4], [9]]
    assert lens({"b": [7]}) == [[3], [7]]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--load-arg", "@y", "x.npy"], 2, "no input 'y'; the model has x"),
        (["--load-arg", "x.npy"], 2, "say which input"),
        (["--load-arg", "@x"], 2, "@x has no file"),
        (["--load-arg", "@x", "x.npy", "x.pb"], 2, "is a second one"),
        (["--load-arg", "other.npz"], 1, "holds a, b; the model's inputs are x"),
        (["--load-arg", "@x", "other.npz"], 1, "has no array 'x'"),
        (["--load-arg", "@x", "text"], 1, "is neither .npy, .npz, a TensorProto"),
        (["--load-arg", "@x", "none.npy"], 1, "none.npy"),
        (["--load-arg", "@x", "long.npy"], 1, "input 'x' is float_type, the file holds int64"),
        (["--load-arg", "@x", "wide.npy"], 1, "axis 1: size 4 is not 3"),
        (["--load-arg", "@x", "pickle.npy"], 1, "not an .npy or .npz file"),
        (["-o", "out.txt"], 2, "results are written to FILE.npz or FILE.npy"),
    ],
)
def test_wrong_inputs(files, capsys, words, code, text):
    (files / "text").write_text("hello")
    np.save(files / "long.npy", np.ones((2, 3), np.int64))
    np.save(files / "wide.npy", np.ones((2, 4), np.float32))
    np.save(files / "pickle.npy", np.array([{"a": 1}]), allow_pickle=True)
    words = [str(files / w) if w.count(".") or w == "text" else w for w in words]
    got, line = error_of(capsys, "run", files / "small.mxr", "-n", 1, *words)
    assert text in line
    assert got == code


def test_an_error_on_random_numbers_says_so(tmp_path, capsys):
    program = migraphx.program()
    main_ = program.get_main_module()
    dims = main_.add_parameter("dims", migraphx.shape(type="int64", lens=[2]))
    x = main_.add_parameter("x", migraphx.shape(type="float", lens=[6]))
    shape = main_.add_instruction(migraphx.op("allocate", buf_type=2), [dims])
    main_.add_return([main_.add_instruction(migraphx.op("reshape"), [x, shape])])
    migraphx.save(program, tmp_path / "dims.mxr")
    code, line = error_of(capsys, "run", tmp_path / "dims.mxr", "-n", 1)
    assert code == 1
    assert "dims are random numbers; --fill0, --fill1 and --load-arg give others" in line


def test_describe():
    assert describe(migraphx.argument(X)) == "-6 to 5, mean 0.16667"
    strange = migraphx.argument(np.array([1, np.nan], np.float32))
    assert describe(strange).endswith("1 not finite")
    assert describe(migraphx.argument(np.zeros((0, 2), np.float32))) == ""


# -- compile and time --------------------------------------------------------------------------


def test_compiled_programs_remember_their_target(files, capsys):
    out = files / "compiled.mxr"
    text_of(capsys, "compile", files / "small.onnx", "--ref", "--disable-fast-math", "-o", out)
    program = migraphx.load(out)
    assert program.is_compiled()
    text = text_of(capsys, "run", out, "-n", 1)
    assert "target ref" in text
    assert main(["time", str(out), "-n", "1", "--fp16"]) == 0
    assert "compiled already; --fp16 changes nothing" in capsys.readouterr().err


def test_time_prints_one_line(files, capsys):
    text = text_of(capsys, "time", files / "small.mxr", "-n", 3, "--warm-up", 0, "--cpu")
    name, number, unit = text.rsplit(maxsplit=2)
    assert (name, unit) == ("Total time:", "ms")
    assert float(number) > 0


def test_the_built_in_program_runs(capsys):
    assert "{256, 256}" in text_of(capsys, "run", "--test", "-n", 1)


@pytest.mark.parametrize("kind", ["fp16", "bf16", "int8", "fp8", "int4_weights"])
def test_quantising(files, capsys, kind):
    if not hasattr(migraphx, f"quantize_{kind}"):
        pytest.skip(f"there is no quantize_{kind} yet")
    out = files / "out.npy"
    words = ["run", files / "small.mxr", "--load-arg", "@x", files / "x.npy", "-n", 1, "-o", out]
    text_of(capsys, *words, f"--{kind.replace('_', '-')}")
    np.testing.assert_allclose(np.load(out), expected(), rtol=0.2, atol=3)


# -- perf --------------------------------------------------------------------------------------


def test_perf_prints_tables(files, capsys):
    text = text_of(capsys, "perf", files / "small.onnx", "--batch", 4, "-n", 3, "--detailed")
    for line in ("compile ", "first run ", "rate ", "median ", "99 % ", "temporary ", "relu "):
        assert f"  {line}" in text, line
    assert "instructions, each alone" in text
    assert "\x1b" not in text


def test_perf_as_json_beside_onnxruntime(files, capsys):
    words = ["perf", files / "small.onnx", "--batch", 4, "-n", 5, "--warm-up", 1, "--json"]
    tree = json.loads(text_of(capsys, *words, "--compare", "onnxruntime"))
    assert tree["batch"] == 4
    assert len(tree["runs_ms"]["migraphx"]) == len(tree["runs_ms"]["onnxruntime"]) == 5
    assert tree["run_ms"]["min"] <= tree["run_ms"]["p50"] <= tree["run_ms"]["max"]
    assert tree["compare"]["largest_difference"] < 1e-4
    assert tree["compare"]["ratio"] > 0
    assert {o["operator"] for o in tree["operators"]} == {"dot", "relu"}
    assert sum(o["share"] for o in tree["operators"]) == pytest.approx(1, abs=1e-6)
    assert tree["memory_bytes"]["argument"] >= 4 * 3 * 4
    assert tree["rate_per_second"] == pytest.approx(4e3 / tree["run_ms"]["p50"])
    assert text_of(capsys, *words, "-o", files / "perf.json") == ""
    assert "operators" in json.loads((files / "perf.json").read_text())
    assert "operators" not in json.loads(text_of(capsys, *words, "--no-operators"))


def test_perf_shows_the_ratio(files, capsys):
    text = text_of(capsys, "perf", files / "small.onnx", "-n", 2, "--compare", "onnxruntime")
    assert "in turns with onnxruntime" in text
    assert "largest difference of results" in text


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["small.mxr", "--compare", "onnxruntime"], 2, "onnxruntime reads ONNX files"),
        (["small.mxr", "--compare", "tflite"], 2, "invalid choice"),
        (["small.onnx", "--compare", "onnxruntime", "-t", "1"], 2, "not the trimmed one"),
        (["--test", "--compare", "onnxruntime"], 2, "needs an ONNX file"),
        (["small.mxr", "--plot", "x.bmp"], 2, ".png, .svg, .pdf"),
        (["small.mxr", "-n", "0"], 2, "'0' is not a whole number above 0"),
    ],
)
def test_wrong_words_to_perf(files, capsys, words, code, text):
    words = [str(files / w) if w.startswith("small") else w for w in words]
    got, line = error_of(capsys, "perf", *words)
    assert text in line
    assert got == code


def test_a_picture_needs_matplotlib(files, capsys, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, line = error_of(capsys, "perf", files / "small.mxr", "--plot", files / "x.png")
    assert code == 1
    assert line.endswith("matplotlib is not installed; pip install matplotlib")


def test_a_picture_is_written(files, capsys):
    pytest.importorskip("matplotlib")
    words = ["perf", files / "small.mxr", "-n", 2, "--plot", files / "x.png"]
    text_of(capsys, *words)
    assert (files / "x.png").read_bytes().startswith(b"\x89PNG")


def test_every_instruction_is_measured_on_the_values_it_gets():
    program = migraphx.program()
    main_ = program.get_main_module()
    x = main_.add_parameter("x", migraphx.shape(type="float", lens=[4]))
    cond = main_.add_parameter("cond", migraphx.shape(type="bool", lens=[1]))
    y = x
    for _ in range(3):
        y = main_.add_instruction(migraphx.op("exp"), [y])
    bodies = []
    for name in ("yes", "no"):
        module = program.create_module(name)
        module.add_return([module.add_instruction(migraphx.op("tanh"), [y])])
        bodies.append(module)
    both = main_.add_instruction(migraphx.op("if"), [cond], bodies)
    main_.add_return([main_.add_instruction(migraphx.op("get_tuple_elem", index=0), [both])])
    target = migraphx.get_target("cpu")
    program.compile(target)
    inputs = {
        "x": migraphx.argument(np.zeros(4, np.float32)),
        "cond": migraphx.argument(np.array([True])),
    }
    costs = measure(program, target, inputs, program._options)
    assert [c.operator for c in costs] == ["exp", "exp", "exp", "if", "get_tuple_elem"]
    assert len({c.seconds for c in costs[:3]}) == 1  # equal ones are measured once
    assert all(c.seconds >= 0 and c.moved >= 0 for c in costs)
    sums = {name: count for name, count, *_ in by_operator(costs)}
    assert sums == {"exp": 3, "if": 1, "get_tuple_elem": 1}


def test_operators_of_dynamic_programs_are_measured(files, capsys):
    words = ["--dim-param", "@N", "{min:2,max:9}", "--batch", 3, "-n", 1, "--json"]
    tree = json.loads(text_of(capsys, "perf", files / "small.onnx", *words))
    assert {o["operator"] for o in tree["operators"]} == {"dot", "relu"}


def test_statistics():
    found = statistics([0.001, 0.002, 0.009])
    assert list(found) == ["min", "mean", "p50", "p90", "p95", "p99", "max"]
    assert found["p50"] == pytest.approx(2)
    assert found["mean"] == pytest.approx(4)


# -- verify ------------------------------------------------------------------------------------


class Result:
    """Stands in for the result of `program.verify`."""

    def __init__(self, passes):
        self.passes = passes

    def __bool__(self):
        return self.passes

    def __str__(self):
        return "report"


@pytest.fixture
def asked(monkeypatch):
    """Lets `program.verify` note what it is asked, and pass unless told to fail."""
    calls = []

    class Modes:
        outputs, per_instruction, bisect = "outputs", "per_instruction", "bisect"

    def verify(program, target, mode=None, params=None, **options):
        calls.append({"target": target.name(), "mode": mode, "params": params, **options})
        return Result("rms_tol" not in options)

    monkeypatch.setattr(migraphx.program, "verify", verify, raising=False)
    monkeypatch.setattr(migraphx, "program_verify_mode", Modes, raising=False)
    return calls


def test_verify_passes_its_options_on_and_fails_with_1(files, capsys, asked):
    assert text_of(capsys, "verify", files / "small.mxr", "--cpu") == "report\n"
    (call,) = asked
    assert list(call.pop("params")) == ["x"]
    assert call == {"target": "cpu", "mode": "outputs"}
    words = ["-i", "--fp16", "--rms-tol", "0.5", "--atol", "1e-3", "--rtol", "0"]
    words += ["--ref-use-double", "-c", "other.mxr"]
    assert main(["verify", str(files / "small.mxr"), *words]) == 1
    call = asked[-1]
    assert call["mode"] == "per_instruction"
    assert call["precision"] == "fp16"
    assert [call[k] for k in ("rms_tol", "atol", "rtol")] == [0.5, 1e-3, 0]
    assert call["ref_use_double"] is True
    assert call["compiled_model"] == "other.mxr"


def test_verify_reduces(files, capsys, asked):
    text = text_of(capsys, "verify", files / "small.mxr", "--reduce")
    assert text == "without the last 1: passed\nwithout the last 2: passed\n"
    assert len(asked) == 2
    words = ["verify", files / "small.mxr", "--reduce", "--bisect"]
    assert error_of(capsys, *words)[0] == 2
    words = ["verify", files / "small.mxr", "--fp16", "--int8"]
    assert "give one of" in error_of(capsys, *words)[1]


def test_verify_for_real(files, capsys):
    for words in ([], ["-i"], ["-b"], ["--fp16"], ["-r"], ["--ref-use-double"]):
        assert text_of(capsys, "verify", files / "small.mxr", "--cpu", *words)
    third = files / "third.npy"
    np.save(third, X / 3)  # these are no numbers of bfloat16
    words = ["--bf16", "--rms-tol", "0", "--cpu", "--load-arg", "@x", str(third)]
    assert main(["verify", str(files / "small.mxr"), *words]) == 1
