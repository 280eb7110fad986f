"""ONNX's `Backend` interface, so that anybody can run its conformance suite against this reader."""

from __future__ import annotations

import numpy as np
import onnx
from onnx.backend.base import Backend as OnnxBackend
from onnx.backend.base import BackendRep, Device, DeviceType

from migraphx.argument import Argument
from migraphx.dims import UNBOUNDED, Dim
from migraphx.program import Program
from migraphx.target import get_target

from . import parse_buffer


class Prepared(BackendRep):
    """A compiled program with the ranks and types that the model declares for its outputs."""

    def __init__(self, program: Program, outputs):
        self.program, self.outputs = program, outputs

    def run(self, inputs, **kwargs) -> tuple:
        """Results for inputs in the order of the graph's inputs (or by name)."""
        if isinstance(inputs, dict):
            feeds = inputs
        else:
            names = self.program.get_parameter_names()
            feeds = dict(zip(names, inputs, strict=False))
        results = self.program.run(feeds)
        return tuple(as_declared(r, o.type) for r, o in zip(results, self.outputs, strict=True))


def as_declared(result, kind):
    """A result as the suite expects it: rank 0 where the model says so; sequences as lists."""
    if kind.HasField("optional_type"):
        if result is None:
            return None
        return as_declared(result, kind.optional_type.elem_type)
    if kind.HasField("sequence_type"):
        parts = result.parts if isinstance(result, Argument) else result
        if kind.sequence_type.elem_type.HasField("map_type"):
            return list(parts)
        return [as_declared(p, onnx.TypeProto()) for p in parts]  # each has its own rank
    if kind.HasField("map_type"):
        return result
    array = np.asarray(result)
    shape = kind.tensor_type.shape if kind.tensor_type.HasField("shape") else None
    if shape is None:
        rank0 = isinstance(result, Argument) and result.get_shape().is_rank0()
    else:
        rank0 = not len(shape.dim)
    return array.reshape(()) if rank0 and array.size == 1 else array


class Backend(OnnxBackend):
    """Runs ONNX models through `migraphx`; devices CPU (target ref) and CUDA (target gpu)."""

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs) -> bool:
        """Every model may be tried."""
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs) -> Prepared:
        """Parses and compiles a model; the sizes that it leaves open stay open."""
        kwargs.setdefault("default_dyn_dim_value", Dim(0, UNBOUNDED))
        program = parse_buffer(model.SerializeToString(), **kwargs)
        target = "ref" if Device(device).type == DeviceType.CPU else "gpu"
        program.compile(get_target(target))
        return Prepared(program, model.graph.output)

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs) -> tuple:
        """Parses, compiles and runs a model once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs) -> tuple:
        """Runs a single node on arrays."""
        names = [n for n in node.input if n]
        given = [
            onnx.helper.make_tensor_value_info(
                n, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.asarray(x).shape
            )
            for n, x in zip(names, inputs, strict=True)
        ]
        wanted = [onnx.ValueInfoProto(name=n) for n in node.output if n]
        for info in wanted:
            info.type.tensor_type.elem_type = 1
        graph = onnx.helper.make_graph([node], "node", given, wanted)
        opsets = [onnx.helper.make_opsetid("", kwargs.pop("opset_version", 21))]
        model = onnx.helper.make_model(graph, opset_imports=opsets)
        return cls.run_model(model, inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """CPU always; CUDA where JAX finds a GPU."""
        if Device(device).type == DeviceType.CPU:
            return True
        from migraphx.errors import Error

        try:
            get_target("gpu")
        except Error:
            return False
        return True


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
is_compatible = Backend.is_compatible
