"""Half precision, int8 and fp8 against the recorded programs; what users rely on besides."""

import re
from pathlib import Path

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


@pytest.mark.parametrize("how", ["fp16", "bf16", "int8", "fp8"])
@pytest.mark.parametrize("name", MODELS)
def test_programs_are_those_of_migraphx(name, how):
    text = repr(quantised(name, how)).strip()
    expected = (PROGRAMS / f"{name}_quantize_{how}.txt").read_text().strip()
    if (name, how) in (("attention", "fp16"), ("attention", "bf16")):
        # MIGraphX lists literals in the order of a hash map of addresses.
        assert without_numbers(text) == without_numbers(expected)
    else:
        assert text == expected
