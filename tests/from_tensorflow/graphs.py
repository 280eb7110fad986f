"""GraphDefs built by hand for tests: nodes from a name, an operator, inputs and attributes."""

import numpy as np
from tensorboard.compat.proto import attr_value_pb2, graph_pb2, node_def_pb2

TYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "string": 7, "int64": 9, "bool": 10}


def attribute(value):
    """An AttrValue; a dtype name is a type, a tuple a shape, an array a tensor."""
    made = attr_value_pb2.AttrValue()
    if isinstance(value, bool):
        made.b = value
    elif isinstance(value, int):
        made.i = value
    elif isinstance(value, float):
        made.f = value
    elif isinstance(value, str) and value in TYPES:
        made.type = TYPES[value]
    elif isinstance(value, str):
        made.s = value.encode()
    elif isinstance(value, tuple):
        for size in value:
            made.shape.dim.add(size=size)
        made.shape.SetInParent()
    elif isinstance(value, list):
        made.list.i.extend(value)
    else:
        tensor = made.tensor
        tensor.dtype = TYPES[value.dtype.name]
        for size in value.shape:
            tensor.tensor_shape.dim.add(size=size)
        tensor.tensor_content = value.tobytes()
    return made


def node(name, op, *inputs, **attributes):
    """A NodeDef."""
    made = node_def_pb2.NodeDef(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        made.attr[key].CopyFrom(attribute(value))
    return made


def placeholder(name, *dims, dtype="float32"):
    return node(name, "Placeholder", dtype=dtype, shape=tuple(dims))


def const(name, value):
    value = np.asarray(value)
    if value.dtype == np.float64:
        value = value.astype(np.float32)
    return node(name, "Const", dtype=value.dtype.name, value=value)


def graph(*nodes):
    """A GraphDef."""
    made = graph_pb2.GraphDef()
    for n in nodes:
        made.node.add().CopyFrom(n)
    return made
