"""The driver's options: help, errors in one line, sizes, tables, and how fast it starts."""

import json
import re
import subprocess
import sys

import pytest
from test_driver_read import error_of, small_program

import migraphx
from migraphx.driver import main
from migraphx.driver.commands import COMMANDS
from migraphx.driver.console import plain_table
from migraphx.driver.options import REFUSED, UsageError
from migraphx.driver.output import FORMS
from migraphx.driver.sizes import default_dim, dim_params, dynamic_input_dims


@pytest.fixture
def files(tmp_path):
    """A folder with a small program."""
    migraphx.save(small_program(), tmp_path / "small.mxr")
    return tmp_path


# -- help and errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_examples_that_can_be_parsed(capsys, command):
    from migraphx.driver.parser import parse_words

    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    examples = re.findall(r"^  migraphx-driver (.*)$", text, re.MULTILINE)
    assert examples
    import shlex

    for line in examples:
        words = shlex.split(line.split("|")[0])
        assert words[0] == command
        assert parse_words(words).command == command


def test_every_option_of_migraphx_is_known_or_refused_with_a_reason(capsys):
    from pathlib import Path

    golden = Path(__file__).parents[2] / "shared/golden/driver_options.json"
    if not golden.exists():
        pytest.skip("the list of MIGraphX's options is not here")
    for command, rows in json.loads(golden.read_text()).items():
        if command not in COMMANDS or command == "trim":
            continue
        assert main([command, "--help"]) == 0
        text = capsys.readouterr().out
        words = {w for row in rows for w in re.findall(r"--?[\w-]+", row)}
        output = {w for row in COMMANDS["read"].groups[-2][1] for w in row[0]}
        missing = {w for w in words if not re.search(rf"(?<![\w-]){w}(?![\w-])", text)}
        if command in ("run", "perf", "time", "verify", "params"):  # they print no program
            missing -= output | {"--brief", "--output", "-o"}
        if command == "verify":
            missing -= {"--json"}
        assert not missing, command


@pytest.mark.parametrize("word", REFUSED)
def test_options_without_a_meaning_say_why(capsys, word):
    code, line = error_of(capsys, "read", "x.onnx", word)
    assert code == 2
    assert line.endswith(f"{word}: {REFUSED[word]}")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["read"], 2, "read: give a FILE; see migraphx-driver read --help"),
        (["read", "SMALL", "--test"], 2, "a FILE or --test, not both"),
        (["read", "SMALL", "--text", "--py"], 2, "not allowed with"),
        (["read", "SMALL", "--brief"], 2, "--brief goes with --graphviz"),
        (["read", "SMALL", "--weights"], 2, "--weights goes with --py"),
        (["read", "SMALL", "--outptu", "x"], 2, "did you mean --output"),
        (["read", "SMALL", "--dim-param", "@n", "3"], 2, "has its sizes already"),
        (["read", "SMALL", "--log-level", "loud"], 2, "'loud' is not one of none, error"),
        (["read", "SMALL", "--trim", "-1"], 2, "--trim"),
        (["read", "SMALL", "--trim", "3"], 1, "the program has 3 instructions"),
        (["trim", "SMALL"], 2, "give --trim N"),
        (["op"], 2, "give a NAME or --list"),
        (["op", "convolutoin"], 1, "did you mean convolution"),
        (["op", "dot", "--list"], 2, "not both"),
        (["onnx"], 2, "onnx: give --list"),
        (["roctx", "x.onnx"], 2, "use perf, or JAX's profiler"),
        (["--ort-sha"], 2, "not built against an ONNX Runtime"),
        (["raed", "x"], 2, "invalid choice: 'raed'"),
    ],
)
def test_errors_are_one_line_with_a_hint(files, capsys, words, code, text):
    words = [str(files / "small.mxr") if w == "SMALL" else w for w in words]
    got, line = error_of(capsys, *words)
    assert text in line
    assert got == code


def test_debug_shows_the_trace(files):
    with pytest.raises(UsageError):
        main(["read", str(files / "small.mxr"), "--brief", "--debug"])


def test_a_defect_is_one_line_too(files, capsys, monkeypatch):
    monkeypatch.setitem(FORMS, "text", lambda program, options: 1 / 0)
    code, line = error_of(capsys, "read", files / "small.mxr")
    assert code == 1
    assert line.endswith("ZeroDivisionError: division by zero; --debug shows where")


def test_log_file_and_level(files, capsys):
    log = files / "log.txt"
    words = ["compile", str(files / "small.mxr"), "--cpu"]
    assert main([*words, "--log-file", str(log)]) == 0
    assert capsys.readouterr().err == ""
    assert "compile " in log.read_text()
    assert main([*words, "--log-level", "error"]) == 0
    assert capsys.readouterr().err == ""
    assert main(words) == 0
    assert "times on target cpu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "argument", "text"),
    [
        (default_dim, "{min:1}", "the keys are min, max and optimals"),
        (default_dim, "[1, 2]", "neither a number nor"),
        (default_dim, "{min:4,max:1}", "is not a dimension"),
        (default_dim, "{min:1,", "should look like"),
        (dim_params, ["@n"], "@n has no size"),
        (dim_params, ["@n", "3", "4"], "'4' is a second"),
        (dim_params, ["3"], "expected @name before '3'"),
        (dynamic_input_dims, ["@x", "{min:x}"], "should look like"),
    ],
)
def test_wrong_sizes(call, argument, text):
    with pytest.raises(UsageError, match=re.escape(text)):
        call(argument)


def test_right_sizes():
    dim = migraphx.dynamic_dimension
    assert default_dim(None) is None
    assert default_dim("{min: 1, max: 8, optimals: [2, 4]}") == dim(1, 8, {2, 4})
    assert default_dim('{"min":1,"max":8}') == dim(1, 8)
    assert dim_params(["@n", "8", "@m", "k[1..4]"]) == {"n": dim(8, 8), "m": dim("k[1..4]")}
    assert dynamic_input_dims(["@x", "[{min:1,max:4},3]", "@y", "5", "{min:1,max:2}"]) == {
        "x": [dim(1, 4), dim(3, 3)],
        "y": [dim(5, 5), dim(1, 2)],
    }


def test_plain_tables_are_aligned():
    text = plain_table("title", ("name", ">n"), [("a", "1"), ("long name", "22")])
    assert text.splitlines() == ["title", "  name        n", "  a           1", "  long name  22"]


def test_lists_and_help_start_without_jax(tmp_path):
    for words in (["op", "--list"], ["perf", "--help"], ["read", "--test"]):
        code = (
            "import sys; from migraphx.driver import main; code = main(sys.argv[1:]);"
            "print([m for m in ('jax', 'onnx', 'rich', 'matplotlib') if m in sys.modules]);"
            "sys.exit(code)"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        assert run.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m migraphx op --list | head -1"
    script = f"set -o pipefail; {command}"
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.stdout.strip() == "abs"


TERMINAL = """
import time
from migraphx.driver.console import progress, table
with progress("working"):
    time.sleep(1.4)
with progress("in no time"):
    pass
table("title", ("name", ">n"), [("a", "1")])
"""


def test_terminals_get_progress_and_colours(tmp_path):
    pytest.importorskip("pty")
    import os
    import pty

    code = tmp_path / "code.py"
    code.write_text(TERMINAL)
    terminal, inside = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    run = subprocess.Popen(
        [sys.executable, str(code)], stdout=inside, stderr=inside, env=environment
    )
    os.close(inside)
    shown = b""
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:  # the other side has ended
        pass
    os.close(terminal)
    assert run.wait() == 0
    assert b"working" in shown
    assert b"in no time" not in shown
    assert b"\x1b[1mtitle" in shown
    plain = subprocess.run([sys.executable, str(code)], capture_output=True, check=True)
    assert plain.stdout == b"title\n  name  n\n  a     1\n"
    assert plain.stderr == b""
