"""The driver's commands as a table: what each does, its options, and examples that teach it."""

from __future__ import annotations

from dataclasses import dataclass

from . import options as o

TARGET_TITLE = "target (by default a GPU if JAX finds one, else the CPU)"

# Groups of options: (title, rows, of which only one may be given?)
MODEL = [("model", o.FILE, False), ("kind of file (by default its content tells)", o.KIND, True)]
READ = [*MODEL, ("reading", o.READING, False), ("changing the program", o.CHANGING, False)]
WRITE = [("output", o.FORMATS, True), ("", o.DETAILS + o.OUTPUT, False)]
COMPILE = [(TARGET_TITLE, o.TARGETS, True), ("compiling", o.COMPILING, False),
           ("inputs (by default random numbers)", o.INPUTS, False)]  # fmt: skip


@dataclass(frozen=True)
class Command:
    """One command: `function` is ``module:name`` in this package."""

    function: str
    help: str
    description: str
    groups: list
    examples: tuple


COMMANDS = {
    "read": Command(
        "read:read",
        "read a model, and print or save its program",
        "Reads a model and prints it as a program, or saves it in another form.",
        READ + WRITE,
        (
            "read model.onnx",
            "read model.onnx --optimize -o model.mxr",
            "read model.mxr --py -o model.py",
            "read model.onnx --graphviz | dot -Tsvg -o model.svg",
            'read model.onnx --dim-param @N "{min:1,max:64}"',
        ),
    ),
    "compile": Command(
        "compile:compile_",
        "compile a model, and print or save it",
        "Reads, quantises and compiles a model, and prints or saves it. A saved one remembers its "
        "target and options, and is compiled again by XLA when it runs.",
        READ + COMPILE + WRITE,
        ("compile model.onnx --cpu -o model.mxr", "compile model.onnx --gpu --fp16 -o model.mxr"),
    ),
    "run": Command(
        "run:run",
        "compile a model and run it on inputs, or show the demo",
        "Reads, compiles and runs a model; prints shapes, results and times. With -o FILE.npz the "
        "results are written to that file, under the names output_0, output_1, ...",
        [READ[0], ("demo", o.DEMO, False), *READ[1:], *COMPILE, ("runs", o.RUNS, False),
         ("output", o.RESULTS, False)],
        (
            "run --demo",
            "run model.onnx --batch 8",
            "run model.onnx --input-dim @image 1 3 224 224 --cpu -n 20",
            "run model.onnx --load-arg @image photo.npy -o result.npz",
        ),
    ),
    "perf": Command(
        "perf:perf",
        "measure a compiled model: times, memory, cost of each operator",
        "Compiles a model and measures it: times of runs with their percentiles, throughput, time "
        "to compile, memory, and what each operator costs when it runs alone.",
        READ + COMPILE + [("measuring", o.MORE_RUNS + o.PERF, False),
                          ("output", o.JSON + o.OUTPUT, False)],
        (
            "perf model.onnx --batch 8 -n 200",
            "perf model.onnx --compare onnxruntime --cpu",
            "perf model.onnx --plot time.png",
            "perf model.onnx --json -o perf.json",
        ),
    ),
    "time": Command(
        "timing:time_",
        "time a compiled model: one number",
        "Compiles a model, runs it -n times and prints the mean time of a run.",
        READ + COMPILE + [("measuring", o.MORE_RUNS, False)],
        ("time model.onnx -n 100", "time model.mxr --gpu --fp16"),
    ),
    "verify": Command(
        "verify:verify",
        "compare a compiled model with the reference",
        "Runs a model on the reference and on the target and compares the results. The exit code "
        "is 1 if they differ, where that of MIGraphX's driver is 0.",
        READ + COMPILE + [("verifying", o.VERIFY, False)],
        (
            "verify model.onnx --gpu",
            "verify model.onnx --fp16 --rms-tol 0.01",
            "verify model.onnx --per-instruction",
            "verify model.onnx --compiled-model model.mxr",
        ),
    ),
    "params": Command(
        "read:params",
        "list the inputs of a model",
        "Prints the name and shape of each input of a model.",
        [*READ, ("output", o.JSON + o.OUTPUT, False)],
        ("params model.onnx", "params model.onnx --json"),
    ),
    "op": Command(
        "lists:op",
        "show an operator's attributes and defaults, or list operators",
        "Prints the attributes of an operator with their defaults as JSON, or all operators.",
        [("", o.NAME + o.LIST, False)],
        ("op convolution", "op --list"),
    ),
    "onnx": Command(
        "lists:onnx",
        "list the ONNX operators that can be read",
        "Prints the names of the ONNX operators that can be read.",
        [("", o.LIST, False)],
        ("onnx --list",),
    ),
    "tf": Command(
        "lists:tf",
        "list the TensorFlow operators that can be read",
        "Prints the names of the TensorFlow operators that can be read.",
        [("", o.LIST, False)],
        ("tf --list",),
    ),
    "trim": Command(
        "read:trim",
        "cut a piece out of a model, and print or save it",
        "Reads a model and keeps a piece of it: without its last --trim instructions, and of what "
        "is left only the last --trim-size; what the piece reads from outside becomes a parameter.",
        READ + WRITE,
        ("trim model.onnx --trim 10", "trim model.onnx -t 10 -s 5 -o piece.mxr"),
    ),
}  # fmt: skip

TOP_EXAMPLES = (
    "run --demo",
    "read model.onnx",
    "params model.onnx",
    "perf model.onnx --batch 8 --compare onnxruntime",
    "verify model.onnx --gpu --fp16",
    "op convolution",
)
