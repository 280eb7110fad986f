"""What a handler works with: the module being built, seen from one node."""

from __future__ import annotations

import numpy as np

from migraphx import macros
from migraphx.argument import Argument, array_shape
from migraphx.dims import Dim, fixed
from migraphx.errors import Error
from migraphx.graph import Instruction, Module
from migraphx.shape import Shape
from migraphx.target import fold
from migraphx.types import dtype_of, from_dtype, type_t

from .registry import Deferred

# Values larger than this are not folded to look for shape arithmetic.
FOLD_LIMIT = 1 << 16


class Builder:
    """Adds instructions for ONNX nodes to a module.

    Attributes
    ----------
    module : Module
        Where instructions go.
    opset : int
        Version of the node's domain.
    node : NodeProto or None
        The node being translated.
    graph : Graph
        The scope: names, parent scopes, options.
    """

    def __init__(self, module: Module, graph=None, folder=None):
        self.module, self.graph, self.folder = module, graph, folder
        self.opset, self.node, self.debug = 0, None, ()
        self.outputs = 1  # how many outputs of the node are wanted
        self._values: dict[Instruction, np.ndarray | None] = {}

    # -- adding --------------------------------------------------------------------------------

    def add(self, name, *inputs, mods=(), **attributes) -> Instruction:
        """Adds an operator; inputs may be instructions, arrays or numbers."""
        made = [self.lit(x) if not isinstance(x, Instruction) else x for x in inputs]
        ins = self.module.add(name, *made, mods=mods, **attributes)
        ins.debug = self.debug
        return ins

    def lit(self, value, kind=None) -> Instruction:
        """A literal: rank 0 for a number; `kind` (a type or an instruction) sets its type."""
        if isinstance(kind, Instruction):
            kind = kind.shape().type()
        if isinstance(value, Argument):
            ins = self.module.literal(value)
        else:
            array = np.asarray(value)
            if kind is None and not isinstance(value, (np.ndarray, np.generic)):
                kind = type_t.int64_type if array.dtype.kind in "iu" else None
                kind = type_t.float_type if array.dtype.kind == "f" else kind
            if kind is not None:
                array = array.astype(dtype_of(kind))
            kind = from_dtype(array.dtype) if kind is None else kind
            ins = self.module.literal(Argument.of(array, array_shape(array.shape, kind)))
        ins.debug = self.debug
        return ins

    def common(self, name, *inputs, **attributes) -> Instruction:
        """A binary (or ternary) operator after NumPy broadcasting and C++ type promotion."""
        made = [self.lit(x) if not isinstance(x, Instruction) else x for x in inputs]
        self.need_ranks(*made)
        return self.rank_of_result(
            made, macros.add_common_op(self.module, name, *made, **attributes)
        )

    def call(self, name, *inputs, **options):
        """Adds a macro; its one result, or a tuple of them."""
        return macros.call(self.module, name, *inputs, **options)

    def broadcast(self, x: Instruction, dims) -> Instruction:
        """`x` seen with the dims `dims` (ints or `Dim`s), NumPy style."""
        have, dims = self.dims(x), tuple(dims)
        if have == dims:
            return x
        if dims == (1,) and have == ():
            return self.add("unsqueeze", x, axes=[0])
        if any(isinstance(d, Dim) for d in dims):
            return self.add("multibroadcast", x, out_dyn_dims=dims)
        return self.add("multibroadcast", x, out_lens=dims)

    def convert(self, x: Instruction, kind: type_t) -> Instruction:
        """`x` in another type, or `x` itself if it has it."""
        return x if self.type(x) == kind else self.add("convert", x, target_type=kind)

    def reshape(self, x: Instruction, dims) -> Instruction:
        """`x` with the dims `dims`; an empty list gives rank 0."""
        if not len(dims):
            return self.add("squeeze", self.add("reshape", x, dims=[1]), axes=[0])
        return self.add("reshape", x, dims=tuple(dims))

    # -- asking --------------------------------------------------------------------------------

    def type(self, x: Instruction) -> type_t:
        """Element type."""
        return x.shape().type()

    def dims(self, x: Instruction) -> tuple:
        """Sizes, ints or `Dim`s; () for rank 0 (lens {1}, strides {0} in the graph)."""
        shape = x.shape()
        if shape.dims is None:
            raise Deferred
        return () if shape.is_rank0() else shape.dims

    def rank(self, x: Instruction) -> int:
        """Number of axes as ONNX counts them."""
        return len(self.dims(x))

    def static_dims(self, x: Instruction) -> tuple:
        """Sizes as ints; a symbolic one defers the node to run time."""
        dims = self.dims(x)
        if not all(fixed(d) for d in dims):
            raise Deferred
        return tuple(d.min if isinstance(d, Dim) else d for d in dims)

    def need_ranks(self, *xs) -> None:
        """Defers the node if the rank of an input is not known yet."""
        if any(isinstance(x, Instruction) and x.shape().dims is None for x in xs):
            raise Deferred

    def axis(self, axis: int, rank: int) -> int:
        """`axis` counted from the front."""
        if not -rank <= axis < max(rank, 1):
            raise Error(f"axis {axis} is out of range for {rank} dimensions")
        return axis + rank if axis < 0 else axis

    def value(self, x: Instruction | None) -> np.ndarray | None:
        """The value of `x` if it is known while parsing (sizes may be `Dim`s), else None."""
        if x is None:
            return None
        if x not in self._values:
            self._values[x] = self._fold(x)
        return self._values[x]

    def _fold(self, x: Instruction):
        stack = [x]
        while stack:
            ins = stack[-1]
            if ins in self._values:
                stack.pop()
                continue
            if ins.op_.op_name == "dimensions_of":
                self._values[ins] = sizes_array(ins)
                continue
            if ins.literal is not None:
                array = ins.literal.device_array()
                self._values[ins] = array.reshape(()) if ins.shape().is_rank0() else array
                continue
            if ins.is_param or ins.mods or too_large(ins.shape()):
                self._values[ins] = None
                continue
            missing = [i for i in ins.inputs_ if i not in self._values]
            if missing:
                stack.extend(missing)
                continue
            values = [self._values[i] for i in ins.inputs_]
            self._values[ins] = None if any(v is None for v in values) else fold(ins, values)
        return self._values[x]

    # -- rank 0 --------------------------------------------------------------------------------

    def rank_of_result(self, inputs, result: Instruction) -> Instruction:
        """Keeps {1},{0} for rank 0 alone: a rank-1 result of one element gets stride 1."""
        if result.shape().is_rank0() and any(self.rank(x) for x in inputs):
            return self.add("unsqueeze", result, axes=[0])
        return result


def too_large(shape: Shape) -> bool:
    """True for tensors that cannot be shape arithmetic."""
    if shape.subs:
        return any(map(too_large, shape.subs))
    return not shape.dynamic() and shape.elements() > FOLD_LIMIT


def sizes_array(ins: Instruction) -> np.ndarray | None:
    """What `dimensions_of` yields: int64, or objects where sizes are symbolic; None for ranges."""
    shape = ins.inputs_[0].shape()
    if shape.dims is None:
        return None
    dims = () if shape.is_rank0() else shape.dims
    dims = dims[ins.op_.start : ins.op_.end or None]
    if all(fixed(d) for d in dims):
        return np.array([d.min if isinstance(d, Dim) else d for d in dims], np.int64)
    if any(not fixed(d) and not d.is_symbolic() for d in dims):
        return None
    out = np.empty(len(dims), object)
    out[:] = [d.min if fixed(d) and isinstance(d, Dim) else d for d in dims]
    return out
