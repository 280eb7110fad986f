"""``migraphx-driver compile``: compile, and print or save the program."""

from __future__ import annotations

from .compiling import prepare
from .console import log, plain_table
from .output import write


def compile_(options) -> None:
    """The command."""
    ready = prepare(options)
    log.note(plain_table(f"times on {ready.times.place}", ("", ">", ""), ready.times.rows()))
    write(ready.program, options)
