"""GraphDef to program: which nodes, their names and outputs, functions, options."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field

from migraphx.errors import Error
from migraphx.graph import Instruction, Module
from migraphx.passes.dead_code import dead_code_elimination
from migraphx.program import Program
from migraphx.shape import Shape

from . import nodes as names
from . import registry
from .branches import DEAD, MERGES
from .builder import TfBuilder, first_order, last_order
from .deferred import can_defer, defer, defer_result, result
from .nodes import describe
from .registry import HANDLERS, Entries, Handler
from .shared import Const, Deferred, Sizes, checked
from .tensors import Function, attribute_value, element_type, read_shape

MAX_DEPTH = 64  # of functions that call each other
# Operators, besides the element-wise ones, whose inputs all have the type T.
ONE_TYPE = {"BatchMatMul", "BatchMatMulV2", "BiasAdd", "Conv2D", "Conv3D", "DepthwiseConv2dNative",
            "Pack"}  # fmt: skip
FAULTS = (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError,
          AssertionError, ZeroDivisionError)  # fmt: skip


@dataclass
class Options:
    """The reader's options, as `migraphx.parse_tf` takes them."""

    is_nhwc: bool = True
    batch_size: int = 1
    map_input_dims: dict = field(default_factory=dict)
    output_names: list = field(default_factory=list)

    def __post_init__(self):
        self.map_input_dims = dict(self.map_input_dims or {})
        given = self.output_names or []
        self.output_names = [given] if isinstance(given, str) else list(given)
        if not hasattr(self.batch_size, "__index__") or self.batch_size < 1:
            raise Error(f"parse_tf: batch_size must be a positive number, got {self.batch_size!r}")


def build(graph, options: Options) -> Program:
    """The program of a GraphDef."""
    found = names.by_name(graph.node)
    targets = options.output_names or names.default_outputs(graph.node)
    for target in targets:
        if names.node_of(target) not in found:
            raise Error(
                f"parse_tf: output name {target} not found in graph!"
                f"{names.close(names.node_of(target), found)}"
            )
    if not targets:
        raise Error("parse_tf: the graph has no outputs: each node is read by another")
    program = Program()
    world = World(graph, options, program)
    wanted = [names.node_of(t) for t in targets]
    world.check_operators(names.reachable(found, wanted))
    scope = Scope(world, program.main)
    scope.graph_nodes(found, wanted)
    unused = set(options.map_input_dims) - set(found)
    if unused:
        raise Error(f"parse_tf: map_input_dims names {min(unused)!r}, which is not in the graph"
                    f"{names.close(min(unused), found)}")  # fmt: skip
    program.main.add_return([world.result(scope, t, found) for t in targets])
    for module in program.get_modules():
        dead_code_elimination(module)
    return program


class World:
    """What all scopes of one graph share."""

    def __init__(self, graph, options: Options, program: Program):
        self.options, self.program = options, program
        self.functions = {f.signature.name: f for f in graph.library.function}
        self.module_names: dict[str, int] = {}

    def module(self, name: str) -> Module:
        """A new module with a name of its own."""
        count = self.module_names.get(name, 0)
        self.module_names[name] = count + 1
        return self.program.create_module(f"{name}_{count}" if count else name)

    def check_operators(self, nodes) -> None:
        """Refuses unknown operators, all in one message."""
        unknown: dict[str, str] = {}
        seen: set[str] = set()
        stack = list(nodes)[::-1]
        while stack:
            node = stack.pop()
            for name in called(node, self.functions) - seen:
                seen.add(name)
                function = self.functions[name]
                stack.extend(function_needs(function))
            if node.op not in HANDLERS and node.op not in self.functions:
                if not names.holds_no_data(node):
                    unknown.setdefault(node.op, node.name)
        if unknown:
            parts = ", ".join(f"{op} (node {name!r})" for op, name in unknown.items())
            near = names.close(next(iter(unknown)), registry.names())
            raise Error(f"parse_tf: Unknown operator: {parts}{near}{names.hint(unknown)}")

    def result(self, scope: Scope, target: str, found: dict) -> Instruction:
        """An output of the program: values of rank 4 come channels-first."""
        value = scope.lookup(target, found[names.node_of(target)])
        if not isinstance(value, Instruction):
            raise Error(f"parse_tf: the output {target!r} has no value: it is in a branch "
                        "that is not taken")  # fmt: skip
        if not self.options.is_nhwc:
            return value
        if value.shape().dims is None:
            return defer_result(scope.builder, value)
        return result(scope.builder, value)


def called(node, functions) -> set:
    """Names of the library's functions that a node calls."""
    found = {node.op} & set(functions)
    for value in node.attr.values():
        for func in [value.func, *value.list.func]:
            if func.name in functions:
                found.add(func.name)
    return found


def function_needs(function) -> list:
    """The nodes of a function that its results depend on."""
    found = {n.name: n for n in function.node_def}
    return names.reachable(found, map(names.node_of, function.ret.values()))


class Scope:
    """A graph or the body of a function: its names, seen from inside."""

    def __init__(self, world: World, module: Module, parent: Scope | None = None):
        self.world, self.module = world, module
        self.values: dict[str, object] = {}  # the outputs of each node, or DEAD
        self.nodes: dict[str, object] = {}
        self.builder = TfBuilder(module, self)
        self.depth = parent.depth if parent else 0
        self.attributes: dict = {}  # of the call, for a function
        if parent is not None:
            self.builder._values = parent.builder._values

    def child(self, module: Module) -> Scope:
        """A scope in another module, for a function that an operator calls."""
        return Scope(self.world, module, self)

    # -- nodes ---------------------------------------------------------------------------------

    def graph_nodes(self, found: dict, targets) -> None:
        """Translates the nodes that `targets` need."""
        self.nodes = found
        for node in names.needed(found, targets, self.values):
            self.node(node)

    def lookup(self, reference: str, reader):
        """The value that a reference names."""
        name = names.node_of(reference)
        outputs = self.values[name]
        if outputs is DEAD:
            return DEAD
        index = self.output_index(reference)
        if index >= len(outputs):
            raise Error(
                f"{describe(reader)}: {reference!r} asks for output {index} of {name!r} "
                f"({self.nodes[name].op}), of which {len(outputs)} are supported"
            )
        return outputs[index]

    def output_index(self, reference: str) -> int:
        """The number of an output; in functions they are named: ``node:indices:0``."""
        parts = reference.split(":")
        if len(parts) < 3:
            return names.output_of(reference)
        op = self.nodes[parts[0]].op
        if op in self.world.functions:
            order = [a.name for a in self.world.functions[op].signature.output_arg]
        else:
            order = list(HANDLERS[op].outputs)
        return (order.index(parts[1]) if parts[1] in order else 0) + int(parts[2])

    def node(self, node) -> None:
        """Translates one node."""
        b = self.builder
        before = b.node, b.outputs
        inputs = [self.lookup(r, node) for r in names.data_inputs(node)]
        b.node = node
        try:
            if any(i is DEAD for i in inputs) and node.op not in MERGES:
                self.values[node.name] = DEAD
                return
            results = as_list(self.translate(node, inputs))
            self.values[node.name] = [b.folded(r) for r in results]
        except Error as error:
            text = str(error)
            raise Error(
                text if text.startswith("parse_tf: node") else f"{describe(node)}: {text}"
            ) from error
        except Deferred as error:
            reason = str(error) or "a size or an axis that it needs depends on data"
            raise Error(f"{describe(node)}: {reason}") from None
        except (RecursionError, MemoryError):
            raise Error(f"{describe(node)}: it cannot be translated") from None
        except FAULTS as error:
            raise Error(
                f"{describe(node)}: bad inputs or attributes: {type(error).__name__}: {error}"
            ) from error
        finally:
            b.node, b.outputs = before

    def translate(self, node, inputs: list):
        """The values of a node."""
        handler = HANDLERS.get(node.op)
        attributes = self.node_attributes(node)
        if handler is None:
            return self.call(Function(node.op, dict(node.attr)), inputs)
        try:
            return self.bound(handler, inputs, attributes)
        except Deferred:
            if not can_defer(node.op, inputs):
                raise
            return defer(self.builder, node, inputs, attributes)

    def bound(self, handler: Handler, inputs: list, attributes: dict) -> list:
        """The results of a handler."""
        check_types(handler, inputs, attributes)
        if not handler.images:
            return as_list(bind(handler, self.builder, inputs, attributes))
        given, rank = self.builder.aligned(inputs)
        results = as_list(bind(handler, self.builder, given, attributes))
        return [self.builder.restored(r, rank) for r in results]

    def node_attributes(self, node) -> dict:
        """Attributes as Python values, those of a function's nodes filled in from its call."""
        return {key: attribute_value(value) for key, value in self.filled(node.attr).items()}

    def filled(self, attributes) -> dict:
        """AttrValues, those that name an attribute of the function replaced by that of the call."""
        found = {}
        for key, value in attributes.items():
            if value.WhichOneof("value") == "placeholder":
                value = self.attributes.get(value.placeholder)
            if value is not None:
                found[key] = value
        return found

    # -- functions -----------------------------------------------------------------------------

    def function(self, function: Function):
        """The FunctionDef of a reference."""
        found = self.world.functions.get(function.name)
        if found is None:
            raise Error(f"the function {function.name!r} is not in the graph's library")
        return found

    def call(self, function: Function, inputs: list) -> list:
        """The results of a function for `inputs`, written where the node stands."""
        if self.depth >= MAX_DEPTH:
            raise Error(f"functions call each other more than {MAX_DEPTH} deep")
        body = self.function(function)
        arguments = [a.name for a in body.signature.input_arg]
        if len(arguments) != len(inputs):
            raise Error(
                f"{len(inputs)} inputs for the {len(arguments)} of the function {function.name!r}"
            )
        inner = self.child(self.module)
        inner.depth = self.depth + 1
        inner.attributes = self.filled(function.attributes)
        inner.builder._moved = self.builder._moved
        inner.values = {a: [x] for a, x in zip(arguments, inputs, strict=True)}
        results = [body.ret[a.name] for a in body.signature.output_arg]
        inner.graph_nodes(names.by_name(body.node_def), map(names.node_of, results))
        return [inner.lookup(r, self.builder.node) for r in results]

    # -- parameters ----------------------------------------------------------------------------

    def parameter(self, node, dtype: int, shape) -> Instruction:
        """A parameter for a Placeholder; images are channels-first outside."""
        options = self.world.options
        kind = element_type(dtype)
        given = options.map_input_dims.get(node.name)
        if given is None and shape is None:
            shape = output_shape(node)
        if given is None and shape is None:
            raise Error(f"its rank is not known; map_input_dims={{{node.name!r}: [...]}} gives it")
        if given is None:
            dims = [d if d > 0 else int(options.batch_size) for d in shape]
            image = options.is_nhwc and len(dims) == 4
            if image:
                dims = [dims[k] for k in first_order(4)]
        else:
            dims = list(given)
            if any(not hasattr(d, "__index__") or d < 0 for d in dims):
                raise Error(f"map_input_dims for {node.name!r} must be whole numbers, got {dims}")
            if shape is not None and len(shape) != len(dims):
                raise Error(
                    f"map_input_dims gives {len(dims)} dimensions for an input with {len(shape)}"
                )
            image = options.is_nhwc and len(dims) == 4
        whole = Shape(kind, [int(d) for d in dims]) if dims else Shape.scalar_of(kind)
        made = self.module.add_parameter(node.name, whole)
        return self.builder.permuted(made, last_order(4)) if image else made


def output_shape(node) -> list | None:
    """The shape that older graphs note beside a Placeholder without one."""
    if "_output_shapes" in node.attr and len(node.attr["_output_shapes"].list.shape) == 1:
        return read_shape(node.attr["_output_shapes"].list.shape[0])
    return None


def check_types(handler: Handler, inputs: list, attributes: dict) -> None:
    """Refuses inputs of types that differ from each other, or from what the node says."""
    if not (handler.images or handler.name in ONE_TYPE) or handler.name == "SelectV2":
        return
    kinds = [i.shape().type() for i in inputs if isinstance(i, Instruction)]
    declared = attributes.get("T")
    wanted = element_type(declared) if declared and kinds else next(iter(kinds), None)
    for k, kind in enumerate(kinds):
        if kind != wanted:
            raise Error(f"input {k} is of {kind.name}, {wanted.name} is needed")


def bind(handler: Handler, builder: TfBuilder, inputs: list, attributes: dict):
    """Calls a handler with inputs and attributes bound to its parameters."""
    args = []
    for k, (name, kind, default) in enumerate(handler.inputs):
        if k >= len(inputs):
            if default is inspect.Parameter.empty:
                raise Error(f"input {k} ({name}) is missing")
            args.append(default)
        elif kind is Entries:
            args.append(builder.entries(inputs[k]))
        elif kind in (Const, Sizes):
            args.append(builder.known(inputs[k], name))
        else:
            args.append(inputs[k])
    extra = inputs[len(handler.inputs) :]
    if handler.variadic:
        args.extend(extra)
    elif extra:
        raise Error(f"{len(inputs)} inputs; at most {len(handler.inputs)} are accepted")
    chosen = {}
    for key, default in handler.attributes.items():
        if key in attributes:
            chosen[key] = checked(key, attributes[key], default)
        elif default is inspect.Parameter.empty:
            raise Error(f"attribute {key!r} is required")
    return handler.function(builder, *args, **chosen)


def as_list(result) -> list:
    """The results of a handler as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]
