"""ONNX graph to module: names, inputs, initialisers, functions, subgraphs, options."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from onnx import AttributeProto

from migraphx.dims import Dim, as_dim
from migraphx.errors import Error, close_matches, warn
from migraphx.graph import Instruction, Module
from migraphx.passes.dead_code import dead_code_elimination
from migraphx.program import Program
from migraphx.shape import Shape

from . import registry
from .builder import Builder
from .calls import call
from .nodes import (
    describe,
    domain_of,
    every_node,
    function_body,
    has_function,
    sorted_nodes,
    with_attributes,
)
from .registry import Deferred
from .tensors import element_type, read_tensor
from .types import output_types

MAX_FUNCTION_DEPTH = 64


@dataclass
class Options:
    """The reader's options, as `migraphx.parse_onnx` takes them."""

    default_dim_value: int = 0
    default_dyn_dim_value: object = None
    map_input_dims: dict = field(default_factory=dict)
    map_dyn_input_dims: dict = field(default_factory=dict)
    dim_params: dict = field(default_factory=dict)
    skip_unknown_operators: bool = False
    print_program_on_error: bool = False
    max_loop_iterations: int = 10
    limit_max_iterations: int = 65535
    use_debug_symbols: bool = False

    def __post_init__(self):
        for key in ("map_input_dims", "map_dyn_input_dims", "dim_params"):
            setattr(self, key, dict(getattr(self, key) or {}))
        if self.map_input_dims and self.map_dyn_input_dims:
            raise Error("parse_onnx: give map_input_dims or map_dyn_input_dims, not both")
        if self.default_dim_value and self.default_dyn_dim_value is not None:
            raise Error("parse_onnx: give default_dim_value or default_dyn_dim_value, not both")
        if self.default_dim_value < 0:
            raise Error(f"parse_onnx: default_dim_value {self.default_dim_value} is negative")


def build(model: onnx.ModelProto, folder: Path | None, options: Options) -> Program:
    """The program of a model."""
    program = Program()
    world = World(model, folder, options, program)
    scope = Scope(world, program.main, None)
    try:
        world.check_operators(model.graph)
        world.check_functions(model.graph)
        outputs = scope.graph(model.graph)
        program.main.add_return(outputs)
    except Error:
        if options.print_program_on_error:
            print(program)
        raise
    if world.deferred:
        for module in program.get_modules():
            dead_code_elimination(module)
    return program


def dim_label(dim, name: str, axis: int) -> str:
    """The name of an open dimension: its own, or that of the input and axis.

    Exporters write "?" for dimensions that have no name; those are not one and the same.
    """
    named = any(c.isalnum() for c in dim.dim_param)
    return dim.dim_param if named else f"{name}_d{axis}"


# More nodes than any model has: functions that call each other twice and more reach any number.
MOST_NODES = 1_000_000


class World:
    """What all scopes of one model share."""

    def __init__(self, model, folder, options, program):
        self.folder, self.options, self.program = folder, options, program
        self.opsets = {domain_of(o.domain): o.version for o in model.opset_import} or {"": 13}
        self.functions = {(domain_of(f.domain), f.name): f for f in model.functions}
        self.deferred = False
        self.symbols: dict[str, Dim] = {}
        self.open_dims: list[str] = []
        self.module_names: dict[str, int] = {}

    def check_operators(self, graph) -> None:
        """Refuses unknown operators, all in one message."""
        if self.options.skip_unknown_operators:
            return
        unknown = {}
        for node in every_node(graph):
            domain = domain_of(node.domain)
            known = (domain, node.op_type) in self.functions or self.handler(node) is not None
            if not known and not has_function(node, self.opsets.get(domain)):
                label = f"{domain}::{node.op_type}" if domain else node.op_type
                unknown.setdefault(label, node.name)
        if unknown:
            parts = ", ".join(
                f"{name} (node {node!r})" if node else name for name, node in unknown.items()
            )
            hint = close_matches(next(iter(unknown)), registry.names())
            raise Error(
                f"parse_onnx: Unknown operator: {parts}{hint}; "
                "skip_unknown_operators=True lets them stand"
            )

    def check_functions(self, graph) -> None:
        """Refuses functions that call themselves, or each other so often that nothing ends."""
        sizes: dict = {}

        def size(nodes) -> int:
            total = 0
            for node in nodes:
                key = domain_of(node.domain), node.op_type
                total += 1
                if key not in self.functions:
                    continue
                if key not in sizes:
                    sizes[key] = None
                    sizes[key] = size(every_node(self.functions[key]))
                if sizes[key] is None:
                    raise Error(f"parse_onnx: the function {node.op_type} calls itself")
                total += sizes[key]
            return total

        count = size(every_node(graph)) if self.functions else 0
        if count > MOST_NODES:
            raise Error(
                f"parse_onnx: the model's functions stand for {count} nodes, more than {MOST_NODES}"
            )

    def handler(self, node, opsets=None):
        domain = domain_of(node.domain)
        version = (opsets or self.opsets).get(domain, 10**6)
        return registry.find(domain, node.op_type, version)

    def module(self, name: str) -> Module:
        """A new module with a name of its own."""
        count = self.module_names.get(name, 0)
        self.module_names[name] = count + 1
        return self.program.create_module(f"{name}_{count}" if count else name)


# What a node that makes no sense raises in its handler.
BAD = (Error, TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError,
       AssertionError, ZeroDivisionError)  # fmt: skip


def has_graph(node) -> bool:
    """True for control flow."""
    return any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute)


class Scope:
    """One graph or function body: its names, seen from inside."""

    def __init__(self, world: World, module: Module, parent, opsets=None, depth=0):
        self.world, self.module, self.parent = world, module, parent
        self.opsets = opsets or (parent.opsets if parent else world.opsets)
        self.values: dict[str, object] = {}
        self.builder = Builder(module, self, world.folder)
        if parent is not None:
            self.builder._values = parent.builder._values
        self.depth = depth
        # Of a branch that may never be taken: what does not fit there is left until it is.
        self.may_not_run = parent is not None and parent.may_not_run
        self.attributes: dict = {}

    # -- names ---------------------------------------------------------------------------------

    def lookup(self, name: str, node):
        """The value called `name`, here or in a scope around; None for an omitted input."""
        if not name:
            return None
        scope = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        raise Error(
            f"{describe(node)}: input {name!r} is not available: no node, input or initializer "
            f"gives it{close_matches(name, self.values)}"
        )

    # -- graphs --------------------------------------------------------------------------------

    def graph(self, graph, bound: dict | None = None) -> list:
        """Translates a graph; inputs in `bound` have values, others become parameters."""
        bound = bound or {}
        constants = {}
        for tensor in graph.initializer:
            if tensor.name in constants:
                raise Error(f"parse_onnx: the initializer {tensor.name!r} stands twice")
            constants[tensor.name] = tensor
        for sparse in graph.sparse_initializer:
            constants[sparse.values.name] = sparse
        for name, tensor in constants.items():  # parameters then stand before them
            if name not in bound:
                self.values[name] = self.initializer(tensor)
        for value in graph.input:
            if value.name in bound:
                self.values[value.name] = bound[value.name]
            elif value.name not in constants:
                if value.name in self.values:
                    raise Error(f"parse_onnx: the graph input {value.name!r} stands twice")
                self.values[value.name] = self.parameter(value)
        self.warn_open()
        self.warn_unknown(graph)
        self.nodes(graph.node)
        outputs = []
        for value in graph.output:
            found = self.lookup(value.name, None)
            if found is None:
                raise Error(f"parse_onnx: the graph output {value.name!r} has no value")
            outputs.append(found)
        return outputs

    def initializer(self, tensor) -> Instruction:
        if isinstance(tensor, onnx.SparseTensorProto):
            from .tensors_sparse import dense

            return self.builder.lit(dense(tensor, self.world.folder))
        try:
            return self.builder.lit(read_tensor(tensor, self.world.folder))
        except Error as error:
            raise Error(f"parse_onnx: initializer {tensor.name!r}: {error}") from None

    def nodes(self, nodes) -> None:
        """Translates nodes in an order in which every input stands first."""
        for node in sorted_nodes(nodes, self.available):
            self.node(node)

    def available(self, name: str) -> bool:
        scope = self
        while scope is not None:
            if name in scope.values:
                return True
            scope = scope.parent
        return False

    # -- parameters ----------------------------------------------------------------------------

    def parameter(self, value) -> Instruction:
        """A parameter of the module for a graph input."""
        return self.module.add_parameter(value.name, self.input_shape(value))

    def input_shape(self, value) -> Shape:
        options = self.world.options
        kind = value.type
        for wrapper in ("optional_type", "sequence_type"):
            while kind.HasField(wrapper):
                kind = getattr(kind, wrapper).elem_type
                if kind.HasField("tensor_type"):  # also of an optional, which may hold nothing
                    return Shape.unknown(element_type(kind.tensor_type.elem_type or 1))
        if kind.HasField("map_type"):  # a dict when the program runs
            number = kind.map_type.value_type.tensor_type.elem_type
            return Shape.unknown(element_type(number or 1))
        if not kind.HasField("tensor_type"):
            raise Error(f"parse_onnx: input {value.name!r} is of a kind that is not supported")
        try:
            element = element_type(kind.tensor_type.elem_type)
        except Error as error:
            raise Error(f"parse_onnx: input {value.name!r}: {error}") from None
        main = self.parent is None
        if main and value.name in options.map_input_dims:
            return _static(element, options.map_input_dims[value.name], value.name)
        if not kind.tensor_type.HasField("shape"):
            if main and value.name in options.map_dyn_input_dims:
                given = options.map_dyn_input_dims[value.name]
                dims = [self.bound(as_dim(d), f"{value.name}_d{k}") for k, d in enumerate(given)]
                return Shape.make(element, dims) if dims else Shape.scalar_of(element)
            return Shape.unknown(element)
        declared = kind.tensor_type.shape.dim
        if main and value.name in options.map_dyn_input_dims:
            given = options.map_dyn_input_dims[value.name]
            if len(given) != len(declared):
                raise Error(
                    f"parse_onnx: map_dyn_input_dims gives {len(given)} dimensions for input "
                    f"{value.name!r}, which has {len(declared)}"
                )
            dims = [
                self.bound(as_dim(g), dim_label(d, value.name, k))
                for k, (g, d) in enumerate(zip(given, declared, strict=True))
            ]
        elif main:
            dims = [self.size(d, value.name, k) for k, d in enumerate(declared)]
        else:
            if any(not d.HasField("dim_value") or d.dim_value < 0 for d in declared):
                return Shape.unknown(element)
            dims = [d.dim_value for d in declared]
        return Shape.make(element, dims) if dims else Shape.scalar_of(element)

    def size(self, dim, name: str, axis: int):
        """The size of one axis of an input, by the model or by the options."""
        options = self.world.options
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            return dim.dim_value
        label = dim_label(dim, name, axis)
        if dim.dim_param in options.dim_params:
            return self.bound(as_dim(options.dim_params[dim.dim_param]), label)
        if options.default_dyn_dim_value is not None:
            return self.bound(as_dim(options.default_dyn_dim_value), label)
        if not options.default_dim_value:
            self.world.open_dims.append(f"axis {axis} of {name!r} ({dim.dim_param or 'unnamed'})")
        return options.default_dim_value or 1

    def bound(self, dim: Dim, label: str):
        """A size given by the user: fixed, an expression, or a range as a symbol of that name."""
        from migraphx import symbolic

        if dim.is_fixed() and not dim.is_symbolic():
            return dim.min
        if dim.is_symbolic():
            return dim
        name = symbolic.valid_name(label)
        if name not in self.world.symbols:
            bounds = ((dim.min, dim.max),)
            expr = symbolic.Expr.symbol(name, bounds, tuple(sorted(dim.optimals)))
            self.world.symbols[name] = Dim.of_expr(expr)
        known = self.world.symbols[name]
        if (known.min, known.max) != (dim.min, dim.max):
            raise Error(
                f"parse_onnx: {label!r} is given as {dim} and as {known}; one name has one range"
            )
        return known

    def warn_unknown(self, graph) -> None:
        """Says which names in the options are none of the model's."""
        if self.parent is not None:
            return
        options = self.world.options
        inputs = [v.name for v in graph.input]
        dims = {d.dim_param for v in graph.input for d in v.type.tensor_type.shape.dim} - {""}
        for key, names in (
            ("map_input_dims", inputs), ("map_dyn_input_dims", inputs), ("dim_params", dims)
        ):  # fmt: skip
            for name in getattr(options, key):
                if name not in names:
                    kind = "named dimension" if key == "dim_params" else "input"
                    hint = close_matches(name, names)
                    warn(f"parse_onnx: {key}: the model has no {kind} {name!r}{hint}")

    def warn_open(self) -> None:
        """Says once which sizes were taken as 1 because nobody gave them."""
        if self.parent is None and self.world.open_dims:
            warn(
                "parse_onnx: the model leaves sizes open that are taken as 1: "
                + ", ".join(self.world.open_dims)
                + "; give default_dim_value, map_input_dims, or default_dyn_dim_value"
            )
            self.world.open_dims.clear()

    # -- nodes ---------------------------------------------------------------------------------

    def node(self, node) -> None:
        """Translates one node and names its outputs."""
        b = self.builder
        before = b.node, b.opset, b.debug, b.outputs
        inputs = [self.lookup(name, node) for name in node.input]
        b.node = node
        b.outputs = len(node.output)
        b.opset = self.opsets.get(domain_of(node.domain), 10**6)
        b.debug = (node.name or f"migx_uid:{node.op_type}",) if (
            self.world.options.use_debug_symbols) else ()  # fmt: skip
        try:
            results = self.translate(node, inputs)
        except Error as error:
            text = str(error)
            raise Error(
                text if text.startswith("parse_onnx: node") else f"{describe(node)}: {text}"
            ) from error
        except (Deferred, RecursionError, MemoryError):
            raise Error(f"{describe(node)}: cannot be translated") from None
        except BAD as error:
            raise Error(
                f"{describe(node)}: bad inputs or attributes: {type(error).__name__}: {error}"
            ) from error
        finally:
            b.node, b.opset, b.debug, b.outputs = before
        if len(results) < len([n for n in node.output if n]) and len(results) < len(node.output):
            raise Error(f"{describe(node)}: output {node.output[len(results)]!r} is not supported")
        for name, result in zip(node.output, results, strict=False):
            if name:
                self.values[name] = result

    def translate(self, node, inputs: list) -> list:
        key = (domain_of(node.domain), node.op_type)
        if key in self.world.functions:
            return self.call_function(self.world.functions[key], node, inputs)
        handler = self.world.handler(node, self.opsets)
        if handler is None:
            return self.without_handler(node, inputs)
        try:
            return as_list(call(handler, self.builder, node, inputs, self))
        except Deferred:
            return self.defer(node, inputs)
        except BAD:
            if not self.may_not_run or has_graph(node):
                raise
            return self.defer(node, inputs)

    def without_handler(self, node, inputs: list) -> list:
        version = self.opsets.get(domain_of(node.domain))
        if has_function(node, version):
            function = function_body(node, version, inputs)
            return self.call_function(function, node, inputs)
        if self.world.options.skip_unknown_operators:
            given = [i for i in inputs if isinstance(i, Instruction)]
            ins = self.builder.add("unknown:", *given, op=node.op_type)
            return [ins] * len(node.output)
        raise Error(
            f"Unknown operator: {node.op_type}{close_matches(node.op_type, registry.names())}"
        )

    def call_function(self, function, node, inputs: list) -> list:
        """Translates a model-local function, or the body that ONNX gives for an operator."""
        if self.depth >= MAX_FUNCTION_DEPTH:
            raise Error(f"functions call each other more than {MAX_FUNCTION_DEPTH} deep")
        opsets = {domain_of(o.domain): o.version for o in function.opset_import} or self.opsets
        inner = Scope(self.world, self.module, None, opsets, self.depth + 1)
        inner.builder._values = self.builder._values
        inner.may_not_run = self.may_not_run
        if len(inputs) > len(function.input):
            raise Error(f"{len(inputs)} inputs for the {len(function.input)} of the function")
        given = inputs + [None] * (len(function.input) - len(inputs))
        inner.values = dict(zip(function.input, given, strict=True))
        attributes = {a.name: a for a in function.attribute_proto}
        attributes.update({a.name: a for a in node.attribute})
        inner.parent = None
        inner.nodes([with_attributes(n, attributes) for n in function.node])
        return [inner.lookup(name, node) for name in function.output]

    def defer(self, node, inputs: list) -> list:
        """Leaves the node to be translated while tracing."""
        if has_graph(node):
            raise Error("its inputs must be known while parsing")
        self.world.deferred = True
        present = [k for k, i in enumerate(inputs) if i is not None]
        given = [self.builder.lit(i) if not isinstance(i, Instruction) else i
                 for i in inputs if i is not None]  # fmt: skip
        kinds = [None if i is None else i.shape().type() for i in inputs]
        lean = onnx.NodeProto()
        lean.CopyFrom(node)
        lean.doc_string = ""
        types = output_types(lean, kinds, self.opsets)
        ins = self.builder.add(
            "onnx::node",
            *given,
            node=base64.b64encode(lean.SerializeToString()).decode(),
            opsets=",".join(f"{d}={v}" for d, v in self.opsets.items()),
            types=types,
            present=present,
        )
        if len(node.output) == 1:
            return [ins]
        return [self.builder.add("get_tuple_elem", ins, index=k) for k in range(len(node.output))]

    # -- for handlers of control flow ----------------------------------------------------------

    def child(self, module: Module) -> Scope:
        """The scope of a subgraph, whose nodes see the names of this one."""
        return Scope(self.world, module, self, self.opsets, self.depth)


def as_list(result) -> list:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _static(kind, dims, name: str) -> Shape:
    sizes = list(dims)
    if any(not hasattr(d, "__index__") or d.__index__() < 0 for d in sizes):
        raise Error(f"parse_onnx: map_input_dims for {name!r} must be whole numbers, got {sizes}")
    return Shape(kind, sizes) if sizes else Shape.scalar_of(kind)
