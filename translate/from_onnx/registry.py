"""How an ONNX operator is declared: a function whose signature is the schema.

    @onnx_op("Softmax", since=13)
    def softmax(m, x, *, axis=-1):
        return m.add("softmax", x, axis=axis)

Positional parameters are inputs (default None: optional; ``*xs``: any number), keyword ones are
attributes (without a default: required). `m` is the `Builder` of the node. A parameter annotated
`Const` arrives as a NumPy array; ONNX moved many attributes to inputs over time, so it is taken
from the attribute of that name if the node has one. `Sizes` is the same but may hold symbolic
sizes. If such a value is not known while parsing, the node is *deferred*: it is translated while
tracing, when every shape and every value that decides a shape is known. The function with the
highest `since` not above the model's opset is used.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from migraphx.errors import Error


class Const:
    """Annotation: a NumPy array known when the node is translated."""


class Sizes:
    """Annotation: as `Const`, in which sizes may be symbolic (an object array with `Dim`s)."""


class Any:
    """Annotation: a value of any kind (also a sequence, an optional or None)."""


class Deferred(Exception):
    """The node needs a value or rank that is known only while tracing."""


@dataclass(frozen=True)
class Handler:
    """One version of an operator."""

    name: str
    since: int
    function: object
    inputs: tuple  # (name, annotation, default) of each positional parameter
    variadic: bool
    attributes: dict  # name -> default (inspect.Parameter.empty if required)
    any_rank: bool  # translates inputs of unknown rank without being deferred
    passes_on: bool = False  # takes all attributes (``**settings``), for another function

    def const_inputs(self, count: int) -> list:
        """Positions of the inputs that must be known."""
        return [k for k, (_, kind, _) in enumerate(self.inputs[:count]) if kind in (Const, Sizes)]


# (domain, operator) -> handlers, newest first. "" is ai.onnx.
HANDLERS: dict[tuple, list[Handler]] = {}
CONTRIB = "com.microsoft"


def onnx_op(*names: str, since: int = 1, domain: str = "", any_rank: bool = False):
    """Registers the decorated function for operators `names` of `domain` from opset `since` on."""

    def register(function):
        signature = inspect.signature(function)
        inputs, attributes, variadic, passes_on = [], {}, False, False
        hints = {k: _hint(p.annotation, function) for k, p in signature.parameters.items()}
        for key, parameter in list(signature.parameters.items())[1:]:
            if parameter.kind is parameter.VAR_POSITIONAL:
                variadic = True
            elif parameter.kind is parameter.KEYWORD_ONLY:
                attributes[key] = parameter.default
            elif parameter.kind is parameter.VAR_KEYWORD:
                passes_on = True
            else:
                inputs.append((key, hints[key], parameter.default))
        for name in names:
            found = HANDLERS.setdefault((domain, name), [])
            found.append(
                Handler(
                    name, since, function, tuple(inputs), variadic, attributes, any_rank, passes_on
                )
            )
            found.sort(key=lambda h: -h.since)
        return function

    return register


def _hint(annotation, function):
    if isinstance(annotation, str):
        return {"Const": Const, "Sizes": Sizes, "Any": Any}.get(annotation)
    return annotation


def find(domain: str, name: str, opset: int) -> Handler | None:
    """The handler for an operator at an opset version.

    MIGraphX ignores domains; here the node's own domain goes first, then ai.onnx, then contrib.
    """
    for place in dict.fromkeys((domain, "", CONTRIB)):
        for handler in HANDLERS.get((place, name), ()):
            if handler.since <= opset or place != domain:
                return handler
        found = HANDLERS.get((place, name))
        if found:
            return found[-1]
    return None


def names() -> list:
    """All operator names, sorted."""
    return sorted({name for domain, name in HANDLERS if domain != "tensorflow"})


def required_missing(handler: Handler, attributes: dict) -> None:
    """Refuses a node that lacks a required attribute."""
    for key, default in handler.attributes.items():
        if default is inspect.Parameter.empty and key not in attributes:
            raise Error(f"attribute {key!r} is required")
