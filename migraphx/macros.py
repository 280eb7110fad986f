"""Composite operators: names that stand for several operators of a module."""

from __future__ import annotations

from .builders import BUILDERS
from .builders.common import (
    add_common_op,
    broadcast_common,
    common_dim,
    common_dims,
    convert_to,
)
from .errors import Error, close_matches, warn
from .ops.base import OPS, make

__all__ = [
    "BUILDERS",
    "Macro",
    "add_common_op",
    "broadcast_common",
    "call",
    "common_dim",
    "common_dims",
    "convert_to",
]


class Macro:
    """A composite operator with its options: ``migraphx.macro("gemm", transB=True)``.

    `module.add_macro` and `module.insert_macro` add what it stands for. The name of a plain
    operator stands for that operator, with its attributes as options.

    Parameters
    ----------
    name : str
        Name of the macro.
    **options
        Values for its options; the others keep their defaults.
    """

    __slots__ = ("_name", "_options")

    def __init__(self, name: str, /, **options):
        if not isinstance(name, str):
            raise TypeError(f"macro: the name must be a str, got {type(name).__name__}")
        self._name, self._options = name, options
        found = BUILDERS.get(name)
        unknown = [key for key in options if found is not None and key not in found.options]
        if unknown:
            known = ", ".join(found.options) or "no options"
            warn(f"macro: {name} ignores the option {unknown[0]!r}; it has {known}")

    def name(self) -> str:
        """The name of the macro."""
        return self._name

    def options(self) -> dict:
        """The options as they were given."""
        return dict(self._options)

    def build(self, module, args, mod_args=(), before=None) -> list:
        """Adds the operators at the end of `module`, or in front of `before`; their results."""
        place = module if before is None else Before(module, before)
        found = BUILDERS.get(self._name)
        if found is None:
            if self._name not in OPS:
                names = sorted({*BUILDERS, *OPS})
                raise Error(f"macro: not found: {self._name}{close_matches(self._name, names)}")
            return [place.add(make(self._name, **self._options), *args, mods=list(mod_args))]
        options = {k: v for k, v in self._options.items() if k in found.options}
        return as_list(run(place, self._name, args, options))

    def __repr__(self):
        inner = "".join(f", {key}={value!r}" for key, value in self._options.items())
        return f"macro({self._name!r}{inner})"


class Before:
    """A module seen so that what is added stands in front of an instruction."""

    def __init__(self, module, ins):
        self.module, self.ins = module, ins

    def add(self, name, *inputs, mods=(), **attributes):
        """Inserts an operator."""
        return self.module.insert(self.ins, name, *inputs, mods=mods, **attributes)

    def literal(self, arg):
        """Adds a literal at the front of the module."""
        return self.module.literal(arg)


def call(m, name: str, *inputs, **options):
    """Adds the macro `name`; its one result, or a tuple of them."""
    results = as_list(run(m, name, inputs, options))
    return results[0] if len(results) == 1 else tuple(results)


def run(m, name: str, inputs, options):
    """Calls a builder after checking the number of inputs."""
    found = BUILDERS[name]
    count = len(inputs)
    if count < found.least or (found.most is not None and count > found.most):
        if found.most is None:
            wanted = f"at least {found.least}"
        else:
            wanted = " or ".join(map(str, range(found.least, found.most + 1)))
        raise Error(f"{name}: takes {wanted} inputs, {count} are given")
    try:
        return found.function(m, *inputs, **options)
    except Error as error:
        text = str(error)
        raise Error(text if text.startswith(f"{name}:") else f"{name}: {text}") from None


def as_list(result) -> list:
    """The results of a builder as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]
