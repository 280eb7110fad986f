"""The command line: ``migraphx-driver COMMAND …`` or ``python -m migraphx COMMAND …``."""

from __future__ import annotations

import sys

from ..errors import Error
from .options import UsageError, parser

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
        options = parser().parse_args(words)
        options.command(options)
    except UsageError as error:
        return _failed(error, USAGE)
    except (Error, OSError) as error:
        return _failed(error, FAILURE)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _failed(error: Exception, code: int) -> int:
    print("migraphx-driver: error:", " ".join(str(error).split()), file=sys.stderr)
    return code
