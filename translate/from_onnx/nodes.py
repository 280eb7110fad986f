"""Nodes of an ONNX graph: order, what they read, schemas, bodies that ONNX gives for operators."""

from __future__ import annotations

import onnx
from onnx import AttributeProto, defs

from migraphx.errors import Error
from migraphx.graph import Instruction

from .tensors import NUMBERS


def with_attributes(node, attributes: dict):
    """A function's node with references to the caller's attributes resolved, also in subgraphs."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for a in node.attribute:
        if a.ref_attr_name:
            if a.ref_attr_name in attributes:
                given = copy.attribute.add()
                given.CopyFrom(attributes[a.ref_attr_name])
                given.name = a.name
            continue
        kept = copy.attribute.add()
        kept.CopyFrom(a)
        if a.type == AttributeProto.GRAPH:
            inner = [with_attributes(n, attributes) for n in a.g.node]
            del kept.g.node[:]
            kept.g.node.extend(inner)
    return copy


def domain_of(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def describe(node) -> str:
    """`parse_onnx: node 'name' (Operator)` for messages."""
    if node is None:
        return "parse_onnx: the graph"
    domain = f"{node.domain}::" if domain_of(node.domain) else ""
    name = node.name or next(iter(node.output), "")
    return f"parse_onnx: node {name!r} ({domain}{node.op_type})"


def every_node(graph):
    """All nodes of a graph and its subgraphs."""
    for node in graph.node:
        yield node
        for a in node.attribute:
            if a.type == AttributeProto.GRAPH:
                yield from every_node(a.g)
            elif a.type == AttributeProto.GRAPHS:
                for g in a.graphs:
                    yield from every_node(g)


def schema_of(node, version: int | None):
    """ONNX's schema of a node's operator, or None."""
    try:
        if version is None:
            return defs.get_schema(node.op_type, domain_of(node.domain))
        return defs.get_schema(node.op_type, version, domain_of(node.domain))
    except defs.SchemaError:
        return None


def has_function(node, version: int | None) -> bool:
    """True if ONNX itself gives a body for the operator."""
    schema = schema_of(node, version)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def function_body(node, version: int | None, inputs: list):
    """The body that ONNX gives for an operator, for inputs (instructions, arrays or None)."""
    schema = schema_of(node, version)
    if schema.has_function:
        return schema.function_body
    kinds = [type_proto(x).SerializeToString() for x in inputs]
    body = schema.get_context_dependent_function(node.SerializeToString(), kinds)
    if not body:
        raise Error("ONNX gives no body for these inputs and attributes")
    function = onnx.FunctionProto()
    function.ParseFromString(body)
    return function


def type_proto(x) -> onnx.TypeProto:
    """ONNX's type of an input; empty for one that is left out."""
    if x is None:
        return onnx.TypeProto()
    if not isinstance(x, Instruction):
        kind, dims = onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
        return onnx.helper.make_tensor_type_proto(kind, dims)
    shape = x.shape()
    dims = None
    if shape.dims is not None:
        dims = () if shape.is_rank0() else [d if isinstance(d, int) else None for d in shape.dims]
    return onnx.helper.make_tensor_type_proto(NUMBERS[shape.type()], dims)


def sorted_nodes(nodes, available) -> list:
    """Nodes so that each stands behind what it reads; a cycle is an `Error`."""
    nodes = list(nodes)
    maker = {}
    for node in nodes:
        for name in node.output:
            if not name:
                continue
            if name in maker:
                raise Error(f"{describe(node)}: the name {name!r} is given twice")
            maker[name] = node
    done, ready = set(), True
    for node in nodes:  # the common case: already in order
        if any(n in maker and n not in done for n in reads(node)):
            ready = False
            break
        done.update(node.output)
    if ready:
        return nodes
    order, state = [], {}
    for start in nodes:
        stack = [(start, None)]
        while stack:
            node, rest = stack.pop()
            if rest is None:
                if state.get(id(node)) == 2:
                    continue
                if state.get(id(node)) == 1:
                    raise Error(
                        f"{describe(node)}: it reads its own result (the graph has a cycle)"
                    )
                state[id(node)] = 1
                rest = iter([maker[n] for n in reads(node) if n in maker])
            following = next(rest, None)
            if following is None:
                state[id(node)] = 2
                order.append(node)
                continue
            stack.append((node, rest))
            if state.get(id(following)) != 2:
                stack.append((following, None))
    return order


def reads(node) -> list:
    """Names that a node reads, also inside its subgraphs."""
    names = [n for n in node.input if n]
    for a in node.attribute:
        graphs = [a.g] if a.type == AttributeProto.GRAPH else list(a.graphs)
        for g in graphs:
            inside = {v.name for v in g.input} | {t.name for t in g.initializer}
            for inner in g.node:
                names.extend(n for n in reads(inner) if n not in inside)
                inside.update(inner.output)
            names.extend(v.name for v in g.output if v.name not in inside)
    return names
