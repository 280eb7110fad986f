"""Sizes on the command line: ``@name 1 3 224 224`` and ``"{min:1,max:4}"``."""

from __future__ import annotations

import json
import re

from ..dims import Dim
from ..errors import Error
from .options import UsageError


def input_dims(words: list) -> dict:
    """Sizes by input name from ``["@a", "1", "3", "@b", "2"]``."""
    sizes = {name: [] for name, _ in named(words, "--input-dim")}
    for name, word in named(words, "--input-dim"):
        if word is None:
            continue
        if not word.isdecimal() or not word.isascii():
            raise UsageError(
                f"--input-dim: {word!r} is not a size (a FILE goes before the options)"
            )
        sizes[name].append(int(word))
    return sizes


def dynamic_input_dims(words: list) -> dict:
    """Dimensions by input name from ``["@a", "[{min:1,max:4},3]"]``."""
    sizes: dict[str, list] = {}
    for name, word in named(words, "--dyn-input-dim"):
        tree = [] if word is None else relaxed(word, "--dyn-input-dim")
        found = [dimension(t, "--dyn-input-dim") for t in tree] if isinstance(tree, list) else [
            dimension(tree, "--dyn-input-dim")
        ]  # fmt: skip
        sizes.setdefault(name, []).extend(found)
    return sizes


def dim_params(words: list) -> dict:
    """Dimensions by name from ``["@n", "8", "@m", "{min:1,max:4}"]``."""
    sizes = {}
    for name, word in named(words, "--dim-param"):
        if word is None:
            continue
        if name in sizes:
            raise UsageError(f"--dim-param: @{name} has one size, {word!r} is a second")
        sizes[name] = dimension(relaxed(word, "--dim-param"), "--dim-param")
    missing = [n for n, _ in named(words, "--dim-param") if n not in sizes]
    if missing:
        raise UsageError(f"--dim-param: @{missing[0]} has no size")
    return sizes


def default_dim(word: str | None) -> Dim | None:
    """The dimension of ``--default-dyn-dim``."""
    if word is None:
        return None
    return dimension(relaxed(word, "--default-dyn-dim"), "--default-dyn-dim")


def named(words: list, option: str):
    """Pairs of name and word; a name alone gives None."""
    name = None
    for word in words:
        if word.startswith("@") and len(word) > 1:
            name = word[1:]
            yield name, None
        elif name is None:
            raise UsageError(f"{option}: expected @name before {word!r}")
        else:
            yield name, word


def relaxed(text: str, option: str):
    """The value of JSON whose keys and texts need no quotes: ``{min:1,max:4}``."""
    quoted = re.sub(r'(?<!["\w.])([A-Za-z_]\w*)\s*(?=:)', r'"\1"', text)
    try:
        return json.loads(quoted)
    except ValueError:
        if text[:1] in "[{":
            raise UsageError(
                f'{option}: {text!r} should look like "{{min:1,max:4}}" or "[{{min:1,max:4}},3]"'
            ) from None
        return text


def dimension(tree, option: str) -> Dim:
    """A dimension from a number, ``{min, max, optimals}`` or an expression such as ``n[1..8]``."""
    try:
        if isinstance(tree, bool) or not isinstance(tree, (int, str, dict)):
            raise Error("it is neither a number nor {min:..,max:..}")
        if not isinstance(tree, dict):
            return Dim(tree, tree) if isinstance(tree, int) else Dim(tree)
        if not {"min", "max"} <= tree.keys() <= {"min", "max", "optimals"}:
            raise Error("the keys are min, max and optimals")
        return Dim(tree["min"], tree["max"], set(tree.get("optimals") or ()))
    except (Error, TypeError, ValueError) as bad:
        raise UsageError(f"{option}: {tree!r} is not a dimension: {bad}") from None
