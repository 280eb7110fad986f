"""Element types of the outputs of a node that is not translated yet, from ONNX's schemas."""

from __future__ import annotations

import re

import onnx
from onnx import defs

from migraphx.types import type_t

from .tensors import TYPES

# Attributes that name the element type of the output, by operator.
BY_ATTRIBUTE = {
    "Cast": "to", "RandomNormal": "dtype", "RandomUniform": "dtype", "EyeLike": "dtype",
    "Multinomial": "dtype", "RandomNormalLike": "dtype", "RandomUniformLike": "dtype",
    "Bernoulli": "dtype", "QuantizeLinear": "output_dtype", "DequantizeLinear": "output_dtype",
    "BlackmanWindow": "output_datatype", "HannWindow": "output_datatype",
    "HammingWindow": "output_datatype", "MelWeightMatrix": "output_datatype",
    "SequenceEmpty": "dtype",
}  # fmt: skip

NAMES = {
    name: TYPES[number]
    for number, name in {
        n: re.sub("_", "", onnx.TensorProto.DataType.Name(n).lower()) for n in TYPES
    }.items()
}


def output_types(node, inputs: list, opsets: dict) -> list:
    """One element type per output of `node`; `inputs` are the types of its inputs or None."""
    attributes = {a.name: a for a in node.attribute}
    named = BY_ATTRIBUTE.get(node.op_type)
    if named in attributes and attributes[named].i in TYPES:
        return [TYPES[attributes[named].i]] * len(node.output)
    if node.op_type in ("CastLike", "QuantizeLinear") and inputs[-1] is not None:
        last = inputs[-1] if node.op_type == "CastLike" or len(inputs) > 2 else type_t.uint8_type
        return [last] * len(node.output)
    if node.op_type == "ConstantOfShape":
        value = attributes.get("value")
        return [TYPES[value.t.data_type] if value is not None else type_t.float_type]
    first = next((k for k in inputs if k is not None), type_t.float_type)
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        schema = defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except defs.SchemaError:
        return [first] * len(node.output)
    bound = {}
    for k, kind in enumerate(inputs):
        if kind is not None and schema.inputs:
            bound.setdefault(schema.inputs[min(k, len(schema.inputs) - 1)].type_str, kind)
    result = []
    for k in range(len(node.output)):
        text = schema.outputs[min(k, len(schema.outputs) - 1)].type_str
        if text in bound:
            result.append(bound[text])
            continue
        allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        choices = allowed.get(text, [text])
        match = re.search(r"tensor\((\w+)\)", choices[0]) if len(choices) == 1 else None
        result.append(NAMES.get(match.group(1), first) if match else first)
    return result
