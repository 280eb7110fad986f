"""Reads a model of any kind into a program, and changes it as the options say."""

from __future__ import annotations

import re
from pathlib import Path

from .. import api, files
from ..errors import Error
from ..program import Program
from . import sizes
from .console import log, progress
from .options import UsageError

HEAD = 4096  # bytes that tell what a file is
JSON_STARTS = (b"{", b"[")
# First bytes of a protobuf: the field's number and how it is written.
MODEL_TAGS = {0x08: "ir_version", 0x12: "producer_name", 0x1A: "producer_version", 0x22: "domain",
              0x28: "model_version", 0x32: "doc_string", 0x3A: "graph",
              0x42: "opset_import"}  # fmt: skip
GRAPH_TAGS = {0x0A: "node", 0x22: "versions"}
TEXT_GRAPH = re.compile(rb"(?:#[^\n]*\n\s*)*(?:node|library|versions?)\s*[:{<]")
KINDS = "an ONNX model, a TensorFlow GraphDef, a saved program (.mxr) or one in JSON"
GEMM = 256  # size of the matrices of --test


def read(options) -> Program:
    """The program that the options ask for, passes applied and ends cut."""
    sizes.input_dims(options.input_dim)  # it may have swallowed the FILE
    if not options.file and not options.test:
        command = options.command
        more = ", or --demo" if command == "run" else ""
        raise UsageError(f"{command}: give a FILE{more}; see migraphx-driver {command} --help")
    if options.file and options.test:
        raise UsageError(f"{options.command}: give a FILE or --test, not both")
    with progress(f"reading {options.file or 'the test'}"):
        program = test_program() if options.test else load(options.file, options)
        return changed(program, options)


def changed(program: Program, options) -> Program:
    """`program` after the passes and the cut that the options ask for."""
    from .passes import apply, optimize
    from .trim import trim

    if options.optimize:
        optimize(program)
    if options.apply_pass:
        apply(program, options.apply_pass)
    if options.trim_end is not None or options.trim_size is not None:
        trim(program, options.trim_end or 0, options.trim_size)
    return program


def test_program() -> Program:
    """One matrix product."""
    from ..shape import Shape
    from ..types import type_t

    program = Program()
    shape = Shape.make(type_t.float_type, (GEMM, GEMM))
    a, b = (program.main.add_parameter(name, shape) for name in "ab")
    program.main.add_return([program.main.add("dot", a, b)])
    return program


# -- files -----------------------------------------------------------------------------------------


def load(filename: str, options) -> Program:
    """The program in a file."""
    kind = options.kind or kind_of(filename)
    log.detail(f"reading {filename} as {kind}")
    if kind == "onnx":
        return api.parse_onnx(filename, **onnx_options(options))
    if kind == "tf":
        return api.parse_tf(filename, **tf_options(options))
    _refuse_sizes(options)
    return run_python(filename) if kind == "py" else files.load(filename, kind)


def kind_of(filename: str) -> str:
    """``onnx``, ``tf``, ``msgpack``, ``json`` or ``py``, from what is in the file."""
    path = Path(filename)
    if path.stem == "saved_model" or (path / "saved_model.pb").exists():
        return "tf"  # which says how to freeze it
    if path.is_dir():
        raise Error(f"{filename} is a folder; give a file")
    if path.suffix == ".py":
        return "py"
    with open(path, "rb") as file:
        head = file.read(HEAD)
    kind = kind_of_head(head, path.suffix)
    if kind is None:
        raise Error(f"{filename} is not {KINDS}; --onnx, --tf, --migraphx or --migraphx-json say "
                    "which it should be")  # fmt: skip
    return kind


def kind_of_head(head: bytes, suffix: str = "") -> str | None:
    """The kind of a file that starts with `head`; None if it is none of ours."""
    start = head.lstrip()
    if start[:1] in JSON_STARTS:
        return "json"
    if TEXT_GRAPH.match(start):
        return "tf"
    if not head:
        return None
    first = head[0]
    if 0x80 <= first <= 0x8F or first in (0xDE, 0xDF):  # a map of msgpack
        return "msgpack"
    if first == 0x22:  # may be either: the name decides
        return "tf" if suffix == ".pb" else "onnx"
    if first in GRAPH_TAGS and _looks_binary(head):
        return "tf"
    if first in MODEL_TAGS and _looks_binary(head):
        return "onnx"
    return None


def _looks_binary(head: bytes) -> bool:
    """False for text, which may start with a line feed (0x0a) too."""
    return any(b < 9 or 13 < b < 32 or b > 126 for b in head[1:])


def run_python(filename: str) -> Program:
    """The program that a Python file (such as ``--py`` writes) builds; it is run as Python."""
    import runpy

    import migraphx

    found = runpy.run_path(filename, {"migraphx": migraphx})
    programs = [v for v in found.values() if isinstance(v, Program)]
    chosen = found.get("p") if isinstance(found.get("p"), Program) else None
    if chosen is None and len(programs) != 1:
        raise Error(f"{filename} should build one program, in the variable p; "
                    f"it builds {len(programs)}")  # fmt: skip
    return chosen or programs[0]


# -- options of the readers ------------------------------------------------------------------------


def onnx_options(options) -> dict:
    """The arguments for `parse_onnx`."""
    default = sizes.default_dim(options.default_dyn_dim)
    dynamic = sizes.dynamic_input_dims(options.dyn_input_dim)
    chosen = {
        "skip_unknown_operators": options.skip_unknown_operators,
        "use_debug_symbols": options.debug_symbols,
        "dim_params": sizes.dim_params(options.dim_param),
    }
    if default is not None:
        chosen["default_dyn_dim_value"] = default
    else:
        chosen["default_dim_value"] = options.batch or 1
    if dynamic:  # sizes of --input-dim are then those to run with
        chosen["map_dyn_input_dims"] = dynamic
    else:
        chosen["map_input_dims"] = sizes.input_dims(options.input_dim)
    return chosen


def tf_options(options) -> dict:
    """The arguments for `parse_tf`."""
    for word, given in (("--dyn-input-dim", options.dyn_input_dim),
                        ("--default-dyn-dim", options.default_dyn_dim),
                        ("--dim-param", options.dim_param)):  # fmt: skip
        if given:
            raise UsageError(f"{word}: sizes of a TensorFlow graph are fixed when it is read; "
                             "use --batch and --input-dim")  # fmt: skip
    return {
        "is_nhwc": options.nhwc is not False,
        "batch_size": options.batch or 1,
        "map_input_dims": sizes.input_dims(options.input_dim),
        "output_names": list(options.output_names),
    }


def _refuse_sizes(options) -> None:
    for word in ("--dyn-input-dim", "--default-dyn-dim", "--dim-param"):
        if getattr(options, word.strip("-").replace("-", "_")):
            raise UsageError(f"{word}: a saved program has its sizes already; "
                             "give this when reading the model it came from")  # fmt: skip
