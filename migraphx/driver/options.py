"""The options of the driver's commands, named as in MIGraphX's own driver."""

from __future__ import annotations

import argparse

EXAMPLES = """\
examples:
  migraphx-driver run --demo
  migraphx-driver run model.onnx --batch 8
  migraphx-driver run model.onnx --input-dim @image 1 3 224 224 --cpu -n 20
"""


class UsageError(Exception):
    """A wrong option; the text says which, in one line."""


class Parser(argparse.ArgumentParser):
    """A parser that raises `UsageError` where argparse prints its usage and ends the process."""

    def error(self, message):
        raise UsageError(f"{message}; see {self.prog} --help")


def parser() -> Parser:
    """The parser of the whole command line; `command` in its result is the function to call."""
    from .. import __version__
    from .run import run

    top = Parser(
        prog="migraphx-driver",
        description="Reads, compiles and runs models with MIGraphX's operators on JAX.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("-v", "--version", action="version", version=f"migraphx-jax {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = commands.add_parser(
        "run",
        help="compile a model and run it on generated inputs, or show the demo",
        description="Parses, compiles and runs a model; prints output shapes and times.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_reader(command)
    _add_compiler(command)
    _add_inputs(command)
    command.set_defaults(command=run)
    return top


def _add_reader(command: Parser) -> None:
    group = command.add_argument_group("model")
    group.add_argument("file", nargs="?", metavar="FILE.onnx", help="the model")
    group.add_argument(
        "--demo", action="store_true", help="read handwritten digits with a model that comes along"
    )
    group.add_argument(
        "--batch", type=_positive, metavar="N", help="size of open dimensions (default 1)"
    )
    group.add_argument(
        "--input-dim",
        nargs="+",
        action="extend",
        default=[],
        metavar="@NAME D",
        help="sizes of an input: @name d1 d2 ...",
    )
    group.add_argument(
        "--skip-unknown-operators",
        action="store_true",
        help="let unknown operators stand when parsing",
    )


def _add_compiler(command: Parser) -> None:
    group = command.add_argument_group("target (by default a GPU if JAX finds one, else the CPU)")
    target = group.add_mutually_exclusive_group()
    for name, meaning in (
        ("gpu", "the GPU that JAX finds"),
        ("cpu", "JAX's CPU backend"),
        ("ref", "JAX's CPU backend, as the reference"),
    ):
        target.add_argument(
            f"--{name}", action="store_const", const=name, dest="target", help=meaning
        )
    group.add_argument(
        "--disable-fast-math", action="store_true", help="highest precision of matrix products"
    )


def _add_inputs(command: Parser) -> None:
    group = command.add_argument_group("inputs and runs")
    for number in (0, 1):
        group.add_argument(
            f"--fill{number}",
            nargs="+",
            action="extend",
            default=[],
            metavar="NAME",
            help=f"inputs to fill with {number} in place of random numbers",
        )
    group.add_argument(
        "--iterations", "-n", type=_positive, default=10, metavar="N", help="runs (default 10)"
    )


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def input_dims(words: list) -> dict:
    """Sizes by input name from ``["@a", "1", "3", "@b", "2"]``."""
    sizes: dict[str, list] = {}
    name = ""
    for word in words:
        if word.startswith("@"):
            name = word[1:]
            sizes[name] = []
        elif not name:
            raise UsageError(f"--input-dim: expected @name before {word!r}")
        elif not word.isdecimal() or not word.isascii():
            raise UsageError(
                f"--input-dim: {word!r} is not a size (a FILE goes before the options)"
            )
        else:
            sizes[name].append(int(word))
    return sizes
