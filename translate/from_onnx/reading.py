"""ONNX files and buffers as messages that can be trusted to hold text where names should be."""

from __future__ import annotations

from pathlib import Path

import onnx

from migraphx.errors import Error


def read_model(source) -> onnx.ModelProto:
    """The model of a path or of bytes, without external data."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, what = bytes(source), "the buffer"
    else:
        path = Path(source)
        what = str(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = error.strerror or error
            raise Error(f"parse_onnx: Failed reading onnx file: {path}: {reason}") from None
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:
        raise Error(f"parse_onnx: Failed reading onnx file: {what} is not an ONNX model") from error
    if not model.HasField("graph"):
        raise Error(f"parse_onnx: Failed reading onnx file: {what} holds no graph")
    _require_text(model)
    return model


def _require_text(model: onnx.ModelProto) -> None:
    """Refuses names that are no UTF-8, which protobuf hands out as bytes."""

    def check(what, *names):
        for name in names:
            if not isinstance(name, str):
                raise Error(f"parse_onnx: {what} has a name that is not UTF-8 text: {name!r}")

    graphs = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        check("the graph", graph.name, *(o.domain for o in model.opset_import))
        if isinstance(graph, onnx.FunctionProto):
            check("a function", graph.domain, *graph.input, *graph.output, *graph.attribute)
        else:
            check("an initializer", *(t.name for t in graph.initializer))
            for value in (*graph.input, *graph.output, *graph.value_info):
                dims = value.type.tensor_type.shape.dim
                check("an input or output", value.name, *(d.dim_param for d in dims))
        for node in graph.node:
            check("a node", node.name, node.op_type, node.domain, *node.input, *node.output)
            for attribute in node.attribute:
                check("an attribute", attribute.name, attribute.ref_attr_name)
                graphs += [attribute.g] if attribute.HasField("g") else []
                graphs += attribute.graphs
