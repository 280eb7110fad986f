"""The command line's parser, made from the tables of options and commands."""

from __future__ import annotations

import argparse
import textwrap

from ..errors import close_matches
from .commands import COMMANDS, TOP_EXAMPLES, Command
from .options import GENERAL, REFUSED, REFUSED_COMMANDS, REFUSED_TOP, UsageError

PROGRAM = "migraphx-driver"
WIDTH = 79


class Parser(argparse.ArgumentParser):
    """A parser that raises `UsageError` where argparse prints its usage and ends the process."""

    def error(self, message):
        raise UsageError(f"{message}; see {self.prog} --help")


class Refuse(argparse.Action):
    """An option of MIGraphX's driver that has no meaning here: says why."""

    def __init__(self, why: str, **keywords):
        super().__init__(nargs=0, default=argparse.SUPPRESS, help=why, **keywords)

    def __call__(self, parser, namespace, values, option_string=None):
        raise UsageError(f"{option_string}: {self.help}")


def parse_words(words: list) -> argparse.Namespace:
    """The options in the words of a command line; `function` in them is what to call."""
    if words[:1] and words[0] in REFUSED_COMMANDS:
        raise UsageError(f"{words[0]}: {REFUSED_COMMANDS[words[0]]}")
    options, unknown = parser().parse_known_args(words)
    if unknown:
        hint = close_matches(unknown[0], _words(COMMANDS[options.command]))
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}{hint}; see {PROGRAM} "
                         f"{options.command} --help")  # fmt: skip
    return options


def _words(command: Command) -> list:
    rows = [row for _, rows, _ in command.groups for row in rows]
    return [word for words, _, _ in (*rows, *GENERAL) for word in words]


def parser() -> Parser:
    """The parser of the whole command line."""
    from .. import __version__

    top = Parser(
        prog=PROGRAM,
        description="Reads, compiles, runs and measures models with MIGraphX's operators on JAX.",
        epilog=_examples(TOP_EXAMPLES) + "\n'migraphx-driver COMMAND --help' tells more. The exit "
        "code is 0 after success, 1 after a\nfailure (also of verify) and 2 for a wrong option.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("-v", "--version", action="version", version=f"migraphx-jax {__version__}")
    for word, why in REFUSED_TOP.items():
        top.add_argument(word, action=Refuse, why=why)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        _add_command(commands, name, command)
    return top


def _add_command(commands, name: str, command: Command) -> None:
    parser = commands.add_parser(
        name,
        help=command.help,
        usage=f"{PROGRAM} {name} {_operand(command)}[options]",
        description=textwrap.fill(command.description, WIDTH),
        epilog=_examples(command.examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for title, rows, exclusive in command.groups:
        _add_group(parser, title, rows, exclusive)
    _add_group(parser, "general", GENERAL, False)
    if any(title == "reading" for title, _, _ in command.groups):
        group = parser.add_argument_group("options of MIGraphX's driver without a meaning here")
        for word, why in REFUSED.items():
            group.add_argument(word, action=Refuse, why=why)
    parser.set_defaults(function=command.function, command=name)


def _add_group(parser: Parser, title: str, rows: tuple, exclusive: bool) -> None:
    group = parser.add_argument_group(title) if title else parser
    if exclusive:
        group = group.add_mutually_exclusive_group()
    for words, meaning, keywords in rows:
        group.add_argument(*words, help=meaning, **keywords)


def _operand(command: Command) -> str:
    operands = [keywords["metavar"] for _, rows, _ in command.groups
                for words, _, keywords in rows if not words[0].startswith("-")]  # fmt: skip
    return "".join(f"{word} " for word in operands)


def _examples(examples: tuple) -> str:
    return "examples:\n" + "".join(f"  {PROGRAM} {text}\n" for text in examples)
