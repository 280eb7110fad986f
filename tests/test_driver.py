"""The command line: the demo, a model on generated inputs, and how errors end."""

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import migraphx
from migraphx.driver import main
from migraphx.driver.demo import DATA, batches, card
from migraphx.driver.options import UsageError
from migraphx.driver.sizes import input_dims

ROOT = Path(__file__).parent.parent
DIGITS = str(DATA / "digits.onnx")


@pytest.fixture(scope="module")
def digits():
    with np.load(DATA / "digits.npz") as file:
        return file["images"].astype(np.float32), file["labels"]


def accuracy_in(text):
    right, count, percent = re.search(r"accuracy (\d+) of (\d+) = ([\d.]+)%", text).groups()
    assert float(percent) == pytest.approx(100 * int(right) / int(count), abs=0.05)
    return int(right), int(count)


def last_error(capsys):
    """The one line that an error leaves on standard error."""
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("migraphx-driver: error: ")
    return lines[0]


# -- the demo ----------------------------------------------------------------------------------


def test_demo_prints_predictions_accuracy_and_times(capsys, digits):
    assert main(["run", "--demo", "--cpu", "-n", "2"]) == 0
    text = capsys.readouterr().out
    right, count = accuracy_in(text)
    assert count == len(digits[1])
    assert right / count >= 0.97
    assert text.startswith("target cpu: ")
    for line in ("parse ", "compile ", "first run ", "run ", "label "):
        assert re.search(rf"^ *{line}", text, re.MULTILINE), line


def test_demo_in_batches_has_the_same_accuracy(capsys):
    answers = []
    for batch in ("64", "450"):
        assert main(["run", "--demo", "--ref", "--batch", batch, "-n", "1"]) == 0
        answers.append(accuracy_in(capsys.readouterr().out))
    assert answers[0] == answers[1]


def test_model_agrees_with_onnxruntime(digits):
    images, labels = digits
    program = migraphx.parse_onnx(DIGITS, default_dim_value=len(images))
    program.compile("ref")
    (mine,) = program.run({"image": images})
    session = onnxruntime.InferenceSession(DIGITS)
    (wanted,) = session.run(None, {"image": images})
    np.testing.assert_allclose(mine.numpy(), wanted, rtol=1e-3, atol=1e-6)
    assert (wanted.argmax(1) == labels).mean() >= 0.97


def test_model_is_small_and_of_open_batch():
    assert Path(DIGITS).stat().st_size < 1_000_000
    (image,) = onnx.load(DIGITS).graph.input
    assert image.type.tensor_type.shape.dim[0].dim_param == "N"


def test_batches_fill_up_the_last():
    parts = batches(np.ones((5, 1, 8, 8), np.float32), 2)
    assert [p.shape[0] for p in parts] == [2, 2, 2]
    assert [float(p.sum()) for p in parts] == [128, 128, 64]


def test_card_shows_the_picture_and_the_two_likeliest():
    image = np.zeros((8, 8), np.float32)
    image[0, 0] = 16
    lines = card(image, 3, np.array([0, 0.25, 0, 0.75]))
    assert lines[0] == "@@" + " " * 14
    assert lines[8:] == ["3  75.00%", "1  25.00%", "label 3"]


# -- a file ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ([], 1),
        (["--batch", "3"], 3),
        (["--input-dim", "@image", "2", "1", "8", "8", "--fill1", "image"], 2),
        (["--ref", "--disable-fast-math"], 1),
    ],
)
def test_run_prints_shapes_and_times(capsys, options, size):
    assert main(["run", DIGITS, *options, "-n", "1"]) == 0
    text = capsys.readouterr().out
    assert f"image: float_type, {{{size}, 1, 8, 8}}" in text
    assert f"0: float_type, {{{size}, 10}}, {{10, 1}}" in text
    assert "median" not in text


def test_input_dim_takes_several_inputs():
    assert input_dims(["@a", "1", "3", "@b", "2", "@c"]) == {"a": [1, 3], "b": [2], "c": []}
    with pytest.raises(UsageError, match="expected @name before '1'"):
        input_dims(["1", "@a"])


# -- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["run", "nowhere.onnx"], 1, "nowhere.onnx"),
        (["run", str(ROOT / "README.md")], 1, "is not an ONNX model, a TensorFlow"),
        (["run"], 2, "give a FILE, or --demo"),
        (["run", "--demo", DIGITS], 2, "leave out FILE"),
        (["run", "--demo", "--bach", "3"], 2, "--bach"),
        (["run", DIGITS, "--cpu", "--ref"], 2, "not allowed with"),
        (["run", DIGITS, "--batch", "0"], 2, "'0' is not a whole number above 0"),
        (["run", DIGITS, "-n", "x"], 2, "'x' is not a whole number above 0"),
        (["run", DIGITS, "--input-dim", "@imag", "1"], 2, "no input 'imag'; the model has image"),
        (["run", DIGITS, "--fill0", "x"], 2, "no input 'x'; the model has image"),
        (["run", "--input-dim", "@image", "2", DIGITS], 2, "a FILE goes before the options"),
        (["walk"], 2, "invalid choice: 'walk'"),
    ],
)
def test_errors_end_in_one_line_and_a_code(capsys, words, code, text):
    assert main(words) == code
    assert text in last_error(capsys)


def test_help_version_and_no_command(capsys):
    assert main(["--version"]) == 0
    assert main(["run", "--help"]) == 0
    assert "--input-dim" in capsys.readouterr().out
    assert main([]) == 2
    assert "examples:" in capsys.readouterr().out


# -- README ------------------------------------------------------------------------------------


def test_readme_has_the_command_that_ci_runs():
    wanted = [x for x in (ROOT / ".ci/run").read_text().splitlines() if x.startswith("python3 -m")]
    assert len(wanted) == 1
    assert wanted[0] in (ROOT / "README.md").read_text().splitlines()


@pytest.mark.parametrize("number", range(4))
def test_readme_examples_run_and_print_what_they_say(capsys, monkeypatch, number):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 4
    exec(blocks[number], {})
    printed = capsys.readouterr().out
    for said in re.findall(r"  # ([\[{f].*)", blocks[number]):
        for part in said.split(", then "):
            assert part in printed
