"""The command line: ``migraphx-driver COMMAND …`` or ``python -m migraphx COMMAND …``."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from ..errors import Error
from .console import log
from .options import UsageError
from .parser import parse_words, parser

USAGE, FAILURE, INTERRUPTED = 2, 1, 130


def main(argv=None) -> int:
    """Runs one command of the driver.

    Parameters
    ----------
    argv : list of str
        The words after the program's name; by default those of the process.

    Returns
    -------
    int
        0, or 1 if something went wrong, 2 if an option is wrong, 130 after an interrupt.
        What went wrong is written to standard error in one line.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    if not words:
        parser().print_help()
        return USAGE
    try:
        options = parse_words(words)
        with log.writing(options.log_level, options.log_file):
            code = _function(options.function)(options)
            sys.stdout.flush()
            return int(code or 0)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads our output, `head` say, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if "--debug" in words:
            raise
        return _failed(error)


def _function(place: str):
    module, name = place.split(":")
    return getattr(import_module(f"{__name__}.{module}"), name)


def _failed(error: Exception) -> int:
    # JAX adds a paragraph about its own traces, which a line has no room for.
    notes = "; ".join(n for n in getattr(error, "__notes__", ()) if "\n" not in n.strip())
    text = f"{error} ({notes})" if notes else str(error)
    if not isinstance(error, (UsageError, Error, OSError)):
        text = f"{type(error).__name__}: {text or 'no further word'}; --debug shows where"
    print("migraphx-driver: error:", " ".join(text.split()), file=sys.stderr)
    return USAGE if isinstance(error, UsageError) else FAILURE
