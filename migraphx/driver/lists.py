"""``migraphx-driver op``, ``onnx`` and ``tf``: what there is to read and to compute."""

from __future__ import annotations

import json

from .. import api
from ..ops import OPS, make
from .options import UsageError


def op(options) -> None:
    """The command: an operator's attributes with their defaults, or all names."""
    if options.list:
        if options.name:
            raise UsageError("op: give a NAME or --list, not both")
        print("\n".join(sorted(n for n in OPS if not n.startswith("@"))))
        return
    if not options.name:
        raise UsageError("op: give a NAME or --list; see migraphx-driver op --help")
    print(json.dumps(make(options.name).values(), indent=2))


def onnx(options) -> None:
    """The command: names of the ONNX operators."""
    _names(options, api.get_onnx_operators)


def tf(options) -> None:
    """The command: names of the TensorFlow operators."""
    _names(options, api.get_tf_operators)


def _names(options, names) -> None:
    if not options.list:
        command = options.command
        raise UsageError(f"{command}: give --list; see migraphx-driver {command} --help")
    print("\n".join(names()))
