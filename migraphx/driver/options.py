"""The options of the driver's commands as tables, named as in MIGraphX's own driver.

A row is the option's words, its meaning for ``--help``, and what argparse is to do with it.
"""

from __future__ import annotations

import argparse


class UsageError(Exception):
    """A wrong option; the text says which, in one line."""


def positive(text: str) -> int:
    """A whole number above 0."""
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def not_negative(text: str) -> int:
    """A whole number from 0."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def tolerance(text: str) -> float:
    """A number from 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0")
    return value


LEVELS = ("none", "error", "warn", "info", "debug", "trace")


def log_level(text: str) -> int:
    """A level by name, as MIGraphX calls them, or by number."""
    if text in LEVELS:
        return LEVELS.index(text)
    if text.isdecimal() and text.isascii() and int(text) < len(LEVELS):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(LEVELS)} or 0 to 5")


def _flag(**more) -> dict:
    return {"action": "store_true", **more}


def _words(metavar: str, **more) -> dict:
    return {"nargs": "+", "action": "extend", "default": [], "metavar": metavar, **more}


def _choice(value: str, dest: str) -> dict:
    return {"action": "store_const", "const": value, "dest": dest}


FILE = (
    (("file",), "the model: ONNX, TensorFlow GraphDef, .mxr or JSON; its content tells which",
     {"nargs": "?", "metavar": "FILE"}),
    (("--test",), "in place of a file: a program of one matrix product", _flag()),
)  # fmt: skip

DEMO = ((("--demo",), "read handwritten digits with a model that comes along", _flag()),)

KIND = (
    (("--onnx",), "take FILE as an ONNX model", _choice("onnx", "kind")),
    (("--tf",), "take FILE as a TensorFlow GraphDef", _choice("tf", "kind")),
    (("--migraphx",), "take FILE as a saved program (msgpack)", _choice("msgpack", "kind")),
    (("--migraphx-json",), "take FILE as a saved program in JSON", _choice("json", "kind")),
)

READING = (
    (("--batch",), "size of open dimensions (default 1)", {"type": positive, "metavar": "N"}),
    (("--input-dim",), "sizes of an input: @name d1 d2 ...", _words("@NAME D")),
    (("--dyn-input-dim",), 'sizes with ranges: @name "[{min:1,max:4},3,224]"',
     _words("@NAME DIMS")),
    (("--default-dyn-dim",), 'a range for open dimensions: "{min:1,max:64}"',
     {"metavar": "DIM"}),
    (("--dim-param",), 'size of a named dimension: @name 8 or @name "{min:1,max:8}"',
     _words("@NAME DIM")),
    (("--output-names",), "TensorFlow: the nodes that are outputs", _words("NAME")),
    (("--nhwc",), "TensorFlow: the channel comes last (default)",
     {"action": "store_const", "const": True, "dest": "nhwc"}),
    (("--nchw",), "TensorFlow: the channel comes second",
     {"action": "store_const", "const": False, "dest": "nhwc"}),
    (("--skip-unknown-operators",), "let unknown operators stand when parsing", _flag()),
    (("--debug-symbols",), "note the ONNX node on each instruction", _flag()),
)  # fmt: skip

CHANGING = (
    (("--optimize", "-O"), "apply the passes that tidy a program up", _flag()),
    (("--apply-pass", "-p"), "apply these passes, in this order", _words("NAME")),
    (("--trim", "-t"), "cut N instructions off the end",
     {"type": not_negative, "metavar": "N", "dest": "trim_end"}),
    (("--trim-size", "-s"), "keep N instructions before the end; their inputs become parameters",
     {"type": positive, "metavar": "N"}),
)  # fmt: skip

FORMATS = (
    (("--text",), "the listing (default on a terminal or in a pipe)", _choice("text", "format")),
    (("--python", "--py"), "Python that builds the program", _choice("py", "format")),
    (("--json",), "a saved program in JSON", _choice("json", "format")),
    (("--binary",), "a saved program, .mxr (default with -o)", _choice("binary", "format")),
    (("--graphviz", "-g"), "a graph for Graphviz's dot", _choice("graphviz", "format")),
    (("--netron",), "an ONNX file for the Netron viewer", _choice("netron", "format")),
)
DETAILS = (
    (("--brief",), "with --graphviz: operators' names alone, no attributes", _flag()),
    (("--weights",), "with --py: write every literal whole and exactly", _flag()),
)
OUTPUT = ((("--output", "-o"), "write to FILE, which is replaced at once or not at all",
           {"metavar": "FILE"}),)  # fmt: skip
JSON = ((("--json",), "print JSON, for machines", _flag()),)
RESULTS = ((("--output", "-o"), "write the results to FILE.npz (or FILE.npy, if there is one)",
            {"metavar": "FILE"}),)  # fmt: skip

TARGETS = (
    (("--gpu",), "the GPU that JAX finds", _choice("gpu", "target")),
    (("--cpu",), "JAX's CPU backend", _choice("cpu", "target")),
    (("--ref",), "JAX's CPU backend, as the reference", _choice("ref", "target")),
)

COMPILING = (
    (("--enable-offload-copy",), "accepted: results are copied to the host when read", _flag()),
    (("--disable-fast-math",), "highest precision of matrix products", _flag()),
    (("--exhaustive-tune",), "try several forms of an operator, keep the fastest", _flag()),
    (("--fp16",), "quantise to half before compiling", _flag()),
    (("--bf16",), "quantise to bfloat16", _flag()),
    (("--int8",), "quantise products to int8, calibrated with the inputs", _flag()),
    (("--fp8",), "quantise to fp8, calibrated with the inputs", _flag()),
    (("--int4-weights",), "quantise weights to int4", _flag()),
)

INPUTS = (
    (("--fill0",), "inputs to fill with 0 in place of random numbers", _words("NAME")),
    (("--fill1",), "inputs to fill with 1", _words("NAME")),
    (("--load-arg",), "inputs from files: @name x.npy (.npz, .pb, .mxr), or all from one .npz",
     _words("@NAME FILE")),
)  # fmt: skip


def _count(words, meaning: str, default: int, kind=positive) -> tuple:
    options = {"type": kind, "default": default, "metavar": "N"}
    return (words, f"{meaning} (default {default})", options)


RUNS = (_count(("--iterations", "-n"), "runs", 10),)
MORE_RUNS = (
    _count(("--iterations", "-n"), "measured runs", 100),
    _count(("--warm-up",), "runs before that", 5, not_negative),
)

PERF = (
    (("--detailed", "-d"), "the cost of every instruction, not only of every operator", _flag()),
    (("--no-operators",), "leave out what each operator costs", _flag()),
    (("--compare",), "run this beside it, in turns", {"choices": ("onnxruntime",)}),
    (("--plot",), "write a picture of where the time goes (needs matplotlib)",
     {"metavar": "FILE.png"}),
)  # fmt: skip

VERIFY = (
    (("--per-instruction", "-i"), "compare every instruction alone",
     _choice("per_instruction", "mode")),
    (("--reduce", "-r"), "cut instructions off the end, one by one, and compare each time",
     _flag()),
    (("--bisect", "-b"), "find the instruction where the difference starts",
     _choice("bisect", "mode")),
    (("--ref-use-double",), "compute the reference in double", _flag()),
    (("--compiled-model", "-c"), "compare with this compiled program", {"metavar": "FILE"}),
    (("--rms-tol",), "largest root mean square error", {"type": tolerance, "metavar": "X"}),
    (("--atol",), "largest absolute error", {"type": tolerance, "metavar": "X"}),
    (("--rtol",), "largest relative error", {"type": tolerance, "metavar": "X"}),
)  # fmt: skip

LIST = ((("--list", "-l"), "list the names", _flag()),)
NAME = ((("name",), "an operator", {"nargs": "?", "metavar": "NAME"}),)

GENERAL = (
    (("--debug",), "show where an error comes from", _flag()),
    (("--log-level",), "none, error, warn, info (default), debug, trace or 0 to 5",
     {"type": log_level, "metavar": "LEVEL", "default": LEVELS.index("info")}),
    (("--log-file",), "write notes and warnings to FILE, not to standard error",
     {"metavar": "FILE"}),
)  # fmt: skip

# Options of MIGraphX's driver that mean nothing here, and why.
REFUSED = {
    "--mlir": "XLA compiles everything here; there is no MLIR part to choose",
    "--replace-literals": "literals are arguments of the compiled function already",
    "--strip-context": "a saved program holds no device context that could be stripped",
    "--cpp": "there is no C++ API to write for; use --py",
}
REFUSED_COMMANDS = {
    "roctx": "markers for AMD's profiler belong to MIGraphX's kernels; use perf, or JAX's profiler",
}
REFUSED_TOP = {"--ort-sha": "this package is not built against an ONNX Runtime"}
