"""How a TensorFlow operator is declared: a function whose signature is the schema.

    @tf_op("ArgMax", "ArgMin")
    def arg_max(m, x, axis: Const, *, output_type=DT_INT64):
        ...

Positional parameters are inputs (``*xs``: any number), keyword ones are the attributes that
matter, with TensorFlow's defaults. `m` is the `TfBuilder` of the node. An input annotated `Const`
arrives as a NumPy array; if it is not known while the graph is read, the node is translated later
(`deferred`). Values have TensorFlow's
layout; for a handler with ``images=True`` all of them come channels-first where one of them
is stored so, which suits whatever works element by element.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from .shared import Const, Sizes

RESULT = "_Result"  # the front end's own: no operator of TensorFlow


class Entries:
    """Annotation: the numbers of a vector, ints where they are known, else instructions."""


@dataclass(frozen=True)
class Handler:
    """One operator."""

    name: str
    function: object
    inputs: tuple  # (name, annotation, default) of each positional parameter
    variadic: bool
    attributes: dict  # name -> default (inspect.Parameter.empty if required)
    outputs: tuple  # names of the outputs, where there are several kinds
    images: bool


HANDLERS: dict[str, Handler] = {}
KINDS = {"Const": Const, "Sizes": Sizes, "Entries": Entries}


def tf_op(*names: str, outputs: tuple = (), images: bool = False):
    """Registers the decorated function for the operators `names`.

    Parameters
    ----------
    *names : str
        Operators.
    outputs : tuple of str
        Names of the outputs by which the nodes of a function are read (``top:indices:0``);
        not needed for operators with one kind of output.
    images : bool
        Works element by element, so in any order of axes.
    """

    def register(function):
        inputs, attributes, variadic = [], {}, False
        for key, parameter in list(inspect.signature(function).parameters.items())[1:]:
            if parameter.kind is parameter.VAR_POSITIONAL:
                variadic = True
            elif parameter.kind is parameter.KEYWORD_ONLY:
                attributes[key] = parameter.default
            else:
                kind = KINDS.get(str(parameter.annotation))
                inputs.append((key, kind, parameter.default))
        for name in names:
            HANDLERS[name] = Handler(
                name, function, tuple(inputs), variadic, attributes, tuple(outputs), images
            )
        return function

    return register


def names() -> list:
    """All operator names, sorted."""
    return sorted(HANDLERS.keys() - {RESULT})
