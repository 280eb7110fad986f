"""Programs in the forms that the driver writes: text, Python, JSON, .mxr, Graphviz, Netron."""

from __future__ import annotations

import sys

from .. import files
from ..program import Program
from .console import on_terminal
from .options import UsageError


def write(program: Program, options) -> None:
    """Prints a program, or writes it to the file of ``--output``."""
    kind = options.format or ("binary" if options.output else "text")
    if options.brief and kind != "graphviz":
        raise UsageError("--brief goes with --graphviz")
    if options.weights and kind != "py":
        raise UsageError("--weights goes with --py")
    if not options.output and BINARY.get(kind) and on_terminal(sys.stdout):
        raise UsageError(f"--{kind} on a terminal shows nothing useful; give -o FILE")
    data = FORMS[kind](program, options)
    if options.output:
        files.replace_file(options.output, [data if isinstance(data, bytes) else data.encode()],
                           options.command)  # fmt: skip
    elif isinstance(data, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    elif kind == "text" and on_terminal(sys.stdout):
        print_coloured(data)
    else:
        print(data, end="" if data.endswith("\n") else "\n")


def print_coloured(text: str) -> None:
    """Prints a listing with names, operators and shapes in colours."""
    import re

    from rich.console import Console
    from rich.text import Text

    shown = Text(text)
    for pattern, style in COLOURS:
        for found in re.finditer(pattern, text, re.MULTILINE):
            shown.stylize(style, *found.span(1))
    Console(soft_wrap=True).print(shown, end="")


COLOURS = (
    (r"^(\S+) = ", "cyan"),
    (r"^\S+ = ([\w:@]+)", "bold"),
    (r"(\[[^\]]*\])\(", "dim"),
    (r"-> (.*)$", "green"),
    (r'^(module: ".*")$', "bold magenta"),
)


def _graphviz(program: Program, options) -> str:
    text = program.to_dot()
    if not options.brief:
        return text
    import re

    # A label has three lines: the name in the listing, the operator, its attributes.
    return re.sub(r'label="[^"\\]*\\n([^"\\]*)(?:\\.|[^"\\])*"', r'label="\1"', text)


def _netron(program: Program, options) -> bytes:
    from .netron import model_bytes

    return model_bytes(program)


FORMS = {
    "text": lambda program, options: repr(program),
    "py": lambda program, options: program.to_py(options.weights),
    "json": lambda program, options: files.to_json(files.program_to_value(program)),
    "binary": lambda program, options: files.save_buffer(program),
    "graphviz": _graphviz,
    "netron": _netron,
}
BINARY = {"binary": True, "netron": True}
