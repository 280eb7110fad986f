"""``migraphx-driver read``, ``params`` and ``trim``: models as programs, without running them."""

from __future__ import annotations

import json

from ..dims import fixed, lo
from ..files import replace_file
from . import model
from .options import UsageError
from .output import write


def read(options) -> None:
    """The command: prints or saves a program."""
    write(model.read(options), options)


def trim(options) -> None:
    """The command: as `read`, of a piece of the program."""
    if options.trim_end is None and options.trim_size is None:
        raise UsageError("trim: give --trim N, --trim-size N or both; see migraphx-driver trim "
                         "--help")  # fmt: skip
    write(model.read(options), options)


def params(options) -> None:
    """The command: names and shapes of the inputs."""
    shapes = model.read(options).get_parameter_shapes()
    if options.json:
        text = json.dumps({name: shape_tree(s) for name, s in shapes.items()}, indent=2) + "\n"
    else:
        text = "".join(f"{name}: {shape}\n" for name, shape in shapes.items())
    if options.output:
        replace_file(options.output, [text.encode()], "params")
    else:
        print(text, end="")


def shape_tree(shape) -> dict:
    """A shape for JSON: its type, and its dims as numbers or texts."""
    dims = None if shape.dims is None else [lo(d) if fixed(d) else str(d) for d in shape.dims]
    return {"type": shape.type_string(), "dims": dims}
