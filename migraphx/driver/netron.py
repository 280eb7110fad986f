"""A program as an ONNX file for the Netron viewer: each instruction a node of our own domain."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..dims import Dim
from ..program import Program
from ..shape import Shape
from ..types import type_t

DOMAIN = "migraphx"
HIDDEN = ("@param", "@literal", "@return")
SHOWN_BYTES = 1 << 20  # larger literals are shown by their shape alone

# Element types as ONNX numbers them; others are shown as bytes.
ELEMENTS = {
    type_t.float_type: 1, type_t.uint8_type: 2, type_t.int8_type: 3, type_t.uint16_type: 4,
    type_t.int16_type: 5, type_t.int32_type: 6, type_t.int64_type: 7, type_t.string_type: 8,
    type_t.bool_type: 9, type_t.half_type: 10, type_t.double_type: 11, type_t.uint32_type: 12,
    type_t.uint64_type: 13, type_t.bf16_type: 16, type_t.fp8e4m3fn_type: 17,
    type_t.fp8e4m3fnuz_type: 18, type_t.fp8e5m2_type: 19, type_t.fp8e5m2fnuz_type: 20,
}  # fmt: skip


def model_bytes(program: Program) -> bytes:
    """The ONNX file."""
    from onnx import helper

    from ..printing import output_names

    names = output_names(program.get_modules())
    graph = _graph(program.main, names)
    model = helper.make_model(
        graph,
        producer_name="migraphx-jax",
        opset_imports=[helper.make_opsetid(DOMAIN, 1)],
        doc_string="A program of MIGraphX's operators, to be looked at; not a model to be run.",
    )
    return model.SerializeToString(deterministic=True)


def _graph(module, names: dict):
    from onnx import helper

    return helper.make_graph(
        [_node(i, names) for i in module.instructions if i.name() not in HIDDEN],
        module.name(),
        [_info(names[p], p.shape()) for p in module.parameters()],
        [_info(names[i], i.shape()) for i in Counter(module.returned())],
        [_tensor(names[i], i.literal) for i in module.instructions if i.literal is not None],
        value_info=[_info(names[i], i.shape()) for i in module.instructions
                    if i.name() not in HIDDEN],
    )  # fmt: skip


def _node(ins, names: dict):
    from onnx import helper

    node = helper.make_node(
        ins.name(), [names.get(i, "?") for i in ins.inputs_], [names[ins]], names[ins],
        doc_string=", ".join(ins.debug), domain=DOMAIN,
    )  # fmt: skip
    for key, value in ins.op_.values().items():
        if value not in (None, {}, []):
            node.attribute.append(helper.make_attribute(key, _plain(value)))
    for module in ins.mods:
        node.attribute.append(helper.make_attribute(module.name(), _graph(module, names)))
    return node


def _plain(value):
    """An attribute as ONNX knows it: a number, a text, or a list of one kind."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)
    if isinstance(value, (float, str)):
        return value
    if isinstance(value, list):
        for kind in (int, float, str):
            if all(type(v) is kind for v in value) and all(type(_plain(v)) is kind for v in value):
                return value
    return str(value)


def _info(name: str, shape: Shape):
    from onnx import helper

    kind = ELEMENTS.get(shape.type()) if not shape.subs else None
    if kind is None:
        return helper.make_tensor_value_info(name, 0, None, doc_string=str(shape))
    dims = shape.dims
    sizes = None if dims is None else [str(d) if isinstance(d, Dim) else int(d) for d in dims]
    return helper.make_tensor_value_info(name, kind, sizes, doc_string=str(shape))


def _tensor(name: str, literal):
    from onnx import TensorProto, helper

    shape = literal.get_shape()
    kind = ELEMENTS.get(shape.type())
    array = np.ascontiguousarray(literal.numpy())
    if kind == TensorProto.STRING:
        texts = [str(v).encode() for v in array.reshape(-1)]
        return helper.make_tensor(name, kind, array.shape, texts)
    if kind is None:
        array, kind = array.reshape(-1).view(np.uint8), TensorProto.UINT8
    if array.nbytes > SHOWN_BYTES:
        tensor = TensorProto(name=name, data_type=kind, dims=array.shape)
        tensor.doc_string = f"{shape}: {array.nbytes:,} bytes, left out of this picture"
        return tensor
    return helper.make_tensor(name, kind, array.shape, array.tobytes(), raw=True)
