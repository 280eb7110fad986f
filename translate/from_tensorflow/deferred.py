"""Nodes whose shapes depend on data: they are translated while tracing.

Behind a selection of boxes, say, sizes and axes that TensorFlow computes are known only when the
program runs. Such a node is left in the program as the ONNX front end leaves its own, in a
domain of this front end, and translated once every shape and value that it needs is known.
"""

from __future__ import annotations

import base64

import onnx

from migraphx.graph import Instruction
from migraphx.types import type_t

from . import registry
from .builder import TfBuilder
from .registry import HANDLERS, Handler, tf_op
from .shared import ONNX_HANDLERS, Const, OnnxHandler, elements
from .tensors import attribute_value, element_type

DOMAIN = "tensorflow"
PREFIX = "tf."  # no operator of ONNX may stand in for one of the same name
RESULT = registry.RESULT  # stands for a result of the program whose rank is not known

# These read the graph around them.
NOT_DEFERRED = {
    "Placeholder", "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case",
    "StatelessCase", "While", "StatelessWhile", "Switch", "RefSwitch", "Merge", "RefMerge",
    "IdentityN", "TensorListReserve",
}  # fmt: skip

# -- element types of the results: a type, the number of an input, or the name of an attribute -----

BOOL, FLOAT, INT = type_t.bool_type, type_t.float_type, type_t.int32_type
CONDITIONS = (
    "All", "Any", "ApproximateEqual", "Equal", "Greater", "GreaterEqual", "IsFinite", "IsInf",
    "IsNan", "Less", "LessEqual", "LogicalAnd", "LogicalNot", "LogicalOr", "NotEqual",
)  # fmt: skip
KINDS = {name: [BOOL] for name in CONDITIONS} | {
    "ArgMax": ["output_type"],
    "ArgMin": ["output_type"],
    "BatchMatMulV3": ["Tout"],
    "Bitcast": ["type"],
    "Cast": ["DstT"],
    "CombinedNonMaxSuppression": [FLOAT, FLOAT, FLOAT, INT],
    "Concat": [1],
    "Conv2DBackpropInput": [2],
    "Conv3DBackpropInputV2": [2],
    "CropAndResize": [FLOAT],
    "Dequantize": ["dtype"],
    "Fill": [1],
    "NonMaxSuppression": [INT],
    "NonMaxSuppressionV2": [INT],
    "NonMaxSuppressionV3": [INT],
    "NonMaxSuppressionV4": [INT, INT],
    "NonMaxSuppressionV5": [INT, 1, INT],
    "OneHot": [2],
    "QuantizeV2": ["T", FLOAT, FLOAT],
    "Rank": [INT],
    "ResizeBicubic": [FLOAT],
    "ResizeBilinear": [FLOAT],
    "ScatterNd": [1],
    "Select": [1],
    "SelectV2": [1],
    "Shape": ["out_type"],
    "ShapeN": ["out_type"],
    "Size": ["out_type"],
    "Split": [1],
    "TensorListElementShape": ["shape_type"],
    "TensorListLength": [INT],
    "TopKV2": [0, "index_type"],
    "Unique": [0, "out_idx"],
    "UniqueV2": [0, "out_idx"],
    "Where": [type_t.int64_type],
}  # fmt: skip


def result_types(handler: Handler, attributes: dict, inputs: list) -> list:
    """The element type of each result of a node."""
    rows = KINDS.get(handler.name, [0])
    count = attributes.get("num_split") or attributes.get("num") or len(handler.outputs)
    if handler.name == "ShapeN":
        count = len(inputs)
    rows = [rows[min(k, len(rows) - 1)] for k in range(count or 1)]
    return [_kind(row, handler, attributes, inputs) for row in rows]


def _kind(row, handler, attributes, inputs) -> type_t:
    if isinstance(row, str):
        number = attributes.get(row, handler.attributes.get(row))
        return inputs[0].shape().type() if number is None else element_type(number)
    return row if isinstance(row, type_t) else inputs[row].shape().type()


# -- leaving a node, and translating it ------------------------------------------------------------


def can_defer(op: str, inputs: list) -> bool:
    """True if a node can be translated away from its graph."""
    return op in HANDLERS and op not in NOT_DEFERRED and bool(inputs) and all(
        isinstance(i, Instruction) for i in inputs
    )  # fmt: skip


def defer(m: TfBuilder, node, inputs: list, attributes: dict) -> list:
    """Leaves a node in the program; its results, of unknown rank."""
    handler = HANDLERS[node.op]
    register(handler)
    types = result_types(handler, attributes, inputs)
    made = onnx.NodeProto(op_type=PREFIX + node.op, domain=DOMAIN, name=node.name)
    made.input.extend(f"x{k}" for k in range(len(inputs)))
    made.output.extend(f"y{k}" for k in range(len(types)))
    made.attribute.append(onnx.helper.make_attribute("node_def", node.SerializeToString()))
    ins = m.add(
        "onnx::node", *inputs, node=base64.b64encode(made.SerializeToString()).decode(),
        types=types, present=list(range(len(inputs))),
    )  # fmt: skip
    return [ins] if len(types) == 1 else elements(m, ins, len(types))


def register(handler: Handler) -> None:
    """Makes a handler known where deferred nodes are translated."""
    key = (DOMAIN, PREFIX + handler.name)
    if key in ONNX_HANDLERS:
        return
    kinds = [
        (name, Const if kind is not None else None, default)
        for name, kind, default in handler.inputs
    ]

    def translate(m, *inputs, node_def):
        return _translated(handler, m, inputs, node_def)

    ONNX_HANDLERS[key] = [
        OnnxHandler(
            key[1], 1, translate, tuple(kinds), handler.variadic,
            {"node_def": b""}, any_rank=True,
        )
    ]  # fmt: skip


def register_all() -> None:
    """Makes all handlers known, for programs with deferred nodes that were read from a file."""
    for handler in HANDLERS.values():
        register(handler)


def _translated(handler: Handler, m, inputs, node_def):
    from .parser import bind
    from .reading import node_message

    node = node_message(node_def)
    builder = TfBuilder(m.module, None)
    builder.node = node
    attributes = {key: attribute_value(value) for key, value in node.attr.items()}
    given = [i for i in inputs if i is not None]
    return bind(handler, builder, given, attributes)


@tf_op(RESULT)
def result(m, x):
    """A result of the program: channels-first if it has rank 4."""
    return m.first(x) if m.rank(x) == 4 else x


def defer_result(m: TfBuilder, x: Instruction) -> Instruction:
    """`result` of a value whose rank is not known."""
    from .reading import node_message

    node = node_message(b"")
    node.op = RESULT
    return defer(m, node, [x], {})[0]
