"""The one error type of the package and how a message names what went wrong."""

from __future__ import annotations

import difflib
import sys
import warnings
from pathlib import Path

OWN = tuple(str(Path(__file__).parents[1] / name) for name in ("migraphx", "translate"))


class Error(RuntimeError):
    """Anything this package refuses: a bad graph, file, shape, parameter or option.

    It is a `RuntimeError`, because that is what users of MIGraphX catch.
    """


class NameLookupError(Error, IndexError):
    """An unknown name in a fixed table (a shape type, say); also an `IndexError` for scripts."""


def close_matches(name: str, names) -> str:
    """A hint ", did you mean a or b?" for an unknown name, or an empty text."""
    found = difflib.get_close_matches(str(name), [str(n) for n in names], n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def warn(text: str) -> None:
    """A UserWarning at the line outside of this project that led here."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level + 1)
