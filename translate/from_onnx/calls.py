"""Calling a handler: inputs and attributes of a node bound to the parameters of a function."""

from __future__ import annotations

import inspect

import numpy as np
import onnx
from onnx import AttributeProto

from migraphx.errors import Error
from migraphx.graph import Instruction

from . import registry
from .builder import Builder
from .nodes import domain_of, schema_of
from .registry import Const, Deferred, Sizes
from .tensors import as_array


def call(handler, builder: Builder, node, inputs: list, scope) -> object:
    """Binds inputs and attributes to a handler's parameters and calls it."""
    attributes = read_attributes(node, scope)
    args = []
    for k, (name, kind, default) in enumerate(handler.inputs):
        value = inputs[k] if k < len(inputs) else None
        if kind in (Const, Sizes):
            args.append(constant(builder, name, kind, value, attributes, default, node))
            continue
        if value is None:
            if name in attributes and name not in handler.attributes:
                value = attributes.pop(name)
            elif default is inspect.Parameter.empty:
                raise Error(f"input {k} ({name}) is required")
            else:
                value = default
        args.append(value)
    extra = inputs[len(handler.inputs) :]
    if handler.variadic:
        args.extend(extra)
    elif any(e is not None for e in extra):
        raise Error(f"{len(inputs)} inputs; at most {len(handler.inputs)} are accepted")
    registry.required_missing(handler, attributes)
    chosen = dict(attributes) if handler.passes_on else {}
    for key, default in handler.attributes.items():
        if key in attributes:
            chosen[key] = checked(key, attributes[key], default)
    if not handler.any_rank:
        builder.need_ranks(*(a for a in args if isinstance(a, Instruction)))
    return handler.function(builder, *args, **chosen)


def constant(builder, name, kind, value, attributes, default, node):
    """A `Const` or `Sizes` parameter: attribute of that name, or a folded input."""
    if value is None:
        if name in attributes:
            found = attributes.pop(name)
            return found if isinstance(found, np.ndarray) else np.asarray(found)
        if default is inspect.Parameter.empty:
            raise Error(f"input {name} is required")
        return default
    array = builder.value(value) if isinstance(value, Instruction) else np.asarray(value)
    if array is None or (array.dtype == np.dtype(object) and kind is Const
                         and builder.type(value) != 110):  # fmt: skip
        raise Deferred
    return array


def checked(key: str, value, default):
    """An attribute value, refused if its kind is not that of the default."""
    if isinstance(default, bool) or default is None or default is inspect.Parameter.empty:
        return value
    wanted = {int: int, float: (float, int), str: str, list: list, tuple: list}.get(type(default))
    if wanted is not None and not isinstance(value, wanted):
        raise Error(f"attribute {key!r} should be {type(default).__name__}, got {value!r}")
    return value


def read_attributes(node, scope) -> dict:
    """Attributes of a node as Python values; graphs stay protobufs, tensors become arrays."""
    schema = schema_of(node, scope.opsets.get(domain_of(node.domain)))
    result = {}
    for a in node.attribute:
        if a.ref_attr_name:
            continue  # refers to an attribute that the caller left out
        if schema is not None and a.name in schema.attributes:
            check_kind(a, schema.attributes[a.name].type)
        result[a.name] = attribute_value(a, scope.world.folder)
    return result


def attribute_value(a, folder):
    """The value of one attribute."""
    if a.type == AttributeProto.TENSOR:
        return as_array(a.t, folder)
    if a.type == AttributeProto.TENSORS:
        return [as_array(t, folder) for t in a.tensors]
    if a.type == AttributeProto.STRING:
        return a.s.decode("utf-8", "surrogateescape")
    if a.type == AttributeProto.STRINGS:
        return [s.decode("utf-8", "surrogateescape") for s in a.strings]
    value = onnx.helper.get_attribute_value(a)
    return list(value) if a.type in (AttributeProto.FLOATS, AttributeProto.INTS) else value


def check_kind(a, wanted) -> None:
    """Refuses an attribute of another type than the operator's schema says."""
    names = {v: k for k, v in AttributeProto.AttributeType.items()}
    have, want = names.get(a.type, "UNDEFINED"), wanted.name
    if have != want:
        raise Error(f"attribute {a.name!r} should be {want}, got {have}")
