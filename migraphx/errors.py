"""The one error type of the package and how a message names what went wrong."""

from __future__ import annotations

import difflib


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
