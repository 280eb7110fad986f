"""ONNX models to programs: `parse`, `parse_buffer`, `operators`."""

from __future__ import annotations

import base64
from importlib import import_module
from pathlib import Path

import onnx

from migraphx.argument import Argument, array_shape
from migraphx.program import Program
from migraphx.types import from_dtype

from . import registry
from .parser import Options, Scope, World, build
from .reading import read_model
from .registry import HANDLERS, onnx_op

# The files of handlers: importing them registers them.
FAMILIES = (
    "attention",
    "contrib",
    "contrib_attention",
    "control",
    "image",
    "index",
    "loss",
    "math",
    "ml",
    "ml_svm",
    "ml_trees",
    "nn",
    "pooling",
    "qlinear",
    "quant",
    "quant_recurrent",
    "quant_weights",
    "random",
    "recurrent",
    "reduce",
    "resize",
    "sample",
    "scan",
    "sequence",
    "signal",
    "string",
    "tensor",
    "training",
)
for _name in FAMILIES:
    import_module(f"{__name__}.{_name}")

__all__ = ["HANDLERS", "expand", "needed_inputs", "onnx_op", "operators", "parse", "parse_buffer"]


def parse(filename, **options) -> Program:
    """The program of an ONNX file; see `migraphx.parse_onnx`."""
    model = read_model(filename)
    return build(model, Path(filename).parent, Options(**options))


def parse_buffer(buffer, external_data_path="", **options) -> Program:
    """The program of the bytes of an ONNX file."""
    model = read_model(bytes(buffer))
    folder = Path(external_data_path) if external_data_path else None
    return build(model, folder, Options(**options))


def operators() -> list:
    """Names of all operators that can be read."""
    return registry.names()


# -- nodes that were deferred ----------------------------------------------------------------------


def _node(op):
    node = onnx.NodeProto()
    node.ParseFromString(base64.b64decode(op.node))
    opsets = dict(part.rsplit("=", 1) for part in op.opsets.split(",") if part)
    return node, {d: int(v) for d, v in opsets.items()}


def needed_inputs(op) -> list:
    """Which of the inputs given to a deferred node must be known to translate it."""
    node, opsets = _node(op)
    domain = "" if node.domain == "ai.onnx" else node.domain
    handler = registry.find(domain, node.op_type, opsets.get(domain, 10**6))
    wanted = handler.const_inputs(len(node.input)) if handler else []
    return [op.present.index(k) for k in wanted if k in op.present]


def expand(op, arrays):
    """A program that computes a deferred node.

    `arrays` are the inputs given: NumPy arrays are known and become literals, anything else with
    a shape and dtype becomes the parameter ``x<k>``.
    """
    node, opsets = _node(op)
    program = Program()
    world = World(onnx.ModelProto(), None, Options(), program)
    world.opsets = opsets
    scope = Scope(world, program.main, None)
    inputs = [None] * len(node.input)
    for k, (place, array) in enumerate(zip(op.present, arrays, strict=True)):
        inputs[place] = _given(program.main, k, array)
    scope.builder.node = node
    for place, value in enumerate(inputs):
        scope.values[f"in{place}"] = value
    renamed = onnx.NodeProto()
    renamed.CopyFrom(node)
    renamed.input[:] = [f"in{k}" for k in range(len(inputs))]
    scope.defer = _never
    scope.node(renamed)
    program.main.add_return([scope.values[n] for n in node.output if n])
    return program


def _never(node, inputs):
    from migraphx.errors import Error

    raise Error("a value that decides a shape stays unknown")


def _given(module, k: int, array):
    import numpy as np

    if isinstance(array, (list, tuple)) or array is None:
        from migraphx.shape import Shape
        from migraphx.types import type_t

        return module.add_parameter(f"x{k}", Shape.unknown(type_t.float_type))
    shape = array_shape(array.shape, from_dtype(array.dtype))
    if isinstance(array, np.ndarray):
        return module.literal(Argument.of(array, shape))
    return module.add_parameter(f"x{k}", shape)
