"""Lowering of ONNX nodes that are translated while tracing."""

from __future__ import annotations

from migraphx.target import expand_onnx_node, needed_inputs

from .interpret import Cut, run_module
from .registry import NeedsValue, known, lower


@lower("onnx::node")
def onnx_node(op, xp, *arrays):
    """Translates the node for the shapes and values at hand and computes the result."""
    for k in needed_inputs(op):
        known(arrays[k])
    program = expand_onnx_node(op, arrays)
    env = {p: arrays[int(p.op_.parameter[1:])] for p in program.main.parameters()}
    try:
        results = run_module(program.main, env)
    except Cut as cut:
        if cut.needs is not None and cut.needs in env:
            raise NeedsValue(env[cut.needs]) from None
        raise
    return results[0] if len(results) == 1 else results
