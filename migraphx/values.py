"""Programs and arguments as trees of plain values, and back: version 8 of MIGraphX's files.

`program_to_value` and its kin give dicts, lists, numbers, texts and blobs (bytes-like) with keys
in the order in which MIGraphX writes them. The way back checks everything: whatever a tree holds,
the outcome is a program that its operators accept, or an `Error` that says where it is wrong.
"""

from __future__ import annotations

import reprlib
from contextlib import contextmanager

import numpy as np

from .argument import Argument, buffer_array
from .errors import Error
from .graph import Instruction, Module
from .ops.base import OPS, Op, make
from .ops.control import Literal, Param, Return
from .printing import output_names
from .program import Program
from .shape import Shape, element_space
from .target import TARGETS, Target
from .types import dtype_of, type_t

VERSION = 8
MIGRAPHX_VERSION = "2.16.0"
MAX_BYTES = 2**63 - 1
MAX_MODULE_DEPTH = 64
MAX_MODULE_USES = 20_000  # bodies, counted as often as they are run inside each other


# -- shapes, arguments, operators -----------------------------------------------------------------


def shape_from_value(tree) -> Shape:
    """The shape of a tree; refused if its elements could not be numbered with 64 bits."""
    tree = _object(tree, "shape")
    if not isinstance(tree.get("type"), (str, int)):
        raise Error(f"the type of a shape should be a text, got {_kind(tree.get('type'))}")
    shape = Shape.from_value(tree)
    check_size(shape)
    return shape


def check_size(shape: Shape) -> None:
    """Refuses a static shape with more elements or bytes than 64-bit numbers can count."""
    for sub in shape.subs:
        check_size(sub)
    if shape.subs or shape.dynamic():
        return
    count = 1
    for size in shape.dims:
        count *= size
        if count > MAX_BYTES:
            break
    if count and max(count, shape.bytes()) > MAX_BYTES:
        raise Error(f"the lens of {reprlib.repr(str(shape))} are absurd: above 2**63 - 1 elements")


def argument_to_value(arg: Argument) -> dict:
    """The tree of an argument; the blob is the argument's memory where that is possible."""
    shape = arg.get_shape()
    tree = {"shape": shape.to_value()}
    if shape.subs:
        tree["sub"] = [argument_to_value(p) for p in arg.parts]
    elif shape.type() == type_t.string_type:
        tree["strings"] = [_as_text(t) for t in arg.numpy().reshape(-1)]
    else:
        tree["data"] = memory_of(arg)
    return tree


def argument_from_value(tree) -> Argument:
    """The argument of a tree; it borrows the memory of its blob."""
    tree = _object(tree, "argument")
    shape = shape_from_value(_get(tree, "shape"))
    if shape.type() == type_t.tuple_type:
        parts = [argument_from_value(t) for t in _list(tree, "sub")]
        if [p.get_shape() for p in parts] != list(shape.subs):
            raise Error(f"the parts of a tuple argument do not have its shape {shape}")
        return Argument.tuple_of(parts)
    if shape.dynamic():
        raise Error(f"data of the dynamic shape {shape}")
    if shape.type() == type_t.string_type:
        return _texts_from_value(tree, shape)
    if "data" not in tree and shape.dims:
        raise Error(f"Key not found: data (of {shape})")
    data = tree.get("data", b"")
    if not isinstance(data, (bytes, memoryview)):
        raise Error(f"data should be binary, got {_kind(data)}")
    return Argument.of(_array_over(shape, data), shape)


def _array_over(shape: Shape, data) -> np.ndarray:
    count = memoryview(data).nbytes
    if count != shape.bytes():
        raise Error(f"{count} bytes of data for {shape}, which takes {shape.bytes()}")
    dtype = dtype_of(shape.type())
    if not shape.elements():
        return np.empty(shape.dims or (0,), dtype)
    if dtype == np.bool_ and np.frombuffer(data, np.uint8).max() > 1:
        data = (np.frombuffer(data, np.uint8) != 0).tobytes()
    try:
        return buffer_array(shape, data)
    except ValueError as bad:
        raise Error(f"NumPy cannot hold {shape}: {bad}") from None


def _texts_from_value(tree: dict, shape: Shape) -> Argument:
    texts = _names(tree, "strings")
    if len(texts) != shape.elements():
        raise Error(f"{len(texts)} strings for {shape}, which takes {shape.elements()}")
    array = np.empty(len(texts), object)
    array[:] = texts
    if shape.is_rank0():
        return Argument.of(array.reshape(()), shape)
    return Argument.of(array.reshape(shape.dims), shape.standard_of())


def _as_text(value) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def memory_of(arg: Argument) -> memoryview:
    """The elements in memory order, gaps as zeros; a view of the argument's memory if packed."""
    shape, array = arg.get_shape(), arg.numpy()
    if array.size == 0:
        return memoryview(b"")
    if shape.packed() and array.ndim == shape.rank:
        array = array.transpose(shape.permutation())
    elif not shape.is_rank0():
        array = _spread(shape, array)
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def _spread(shape: Shape, array: np.ndarray) -> np.ndarray:
    """`array` in the memory of a shape with gaps or repeats; repeated elements are written once."""
    steps = shape.strides()
    array = array[tuple(slice(0, 1) if s == 0 else slice(None) for s in steps)]
    memory = np.zeros(element_space(shape.dims, steps), array.dtype)
    once = Shape.make(shape.type(), array.shape, steps)
    buffer_array(once, memory)[...] = array
    return memory


def operator_to_value(op: Op) -> dict:
    """The attributes of an operator as files hold them."""
    return {key: str(v) if isinstance(v, str) else v for key, v in op.values().items()}


def operator_from_value(name: str, attributes) -> Op:
    """The operator of a name and its attributes; missing ones keep their defaults."""
    attributes = _object(attributes, "operator")
    if name == "ref::op":
        inner = _text(attributes, "name")
        operator_from_value(inner, attributes.get("operator", {}))
    plain = name.removeprefix("ref::")
    if name not in OPS and plain in OPS:
        name = plain
    if name not in OPS and "::" in name:
        raise Error(
            f"Operator not found: {name[:80]} belongs to a program compiled for "
            f"{name.split('::')[0][:40]!r}; save the program before it is compiled"
        )
    return make(name, **attributes)


# -- writing programs -----------------------------------------------------------------------------


def program_to_value(program: Program) -> dict:
    """The tree of a program; the blobs of its literals are views of their memory."""
    modules = program.get_modules()
    names = _unique_names(modules)
    target = program._target
    tree = {
        "version": VERSION,
        "migraphx_version": MIGRAPHX_VERSION,
        "targets": [{"name": target.name()}] if target else [],
        "contexts": [None] if target else [],
        "modules": {m.name(): _module_to_value(m, names) for m in modules},
    }
    if target and program._options:
        tree["compile_options"] = dict(program._options)
    return tree


def _unique_names(modules) -> dict:
    """The name that every instruction prints under, made unique over all modules."""
    names, taken = output_names(modules), set()
    for ins, name in names.items():
        while name in taken:  # a parameter called "@3", say
            name += "'"
        names[ins] = name
        taken.add(name)
    return names


def _module_to_value(module: Module, names: dict) -> dict:
    nodes = [_node_to_value(ins, names) for ins in module.instructions]
    return {"name": module.name(), "nodes": nodes or None}


def _node_to_value(ins: Instruction, names: dict) -> dict:
    node = {
        "output": names[ins],
        "name": ins.op_.op_name,
        "shape": ins.shape().to_value(),
        "normalized": ins in ins.module.program._normalized,
    }
    if ins.literal is not None:
        node["literal"] = argument_to_value(ins.literal)
    node["operator"] = operator_to_value(ins.op_)
    node["inputs"] = [names[i] for i in ins.inputs_]
    if ins.mods:
        node["module_inputs"] = [m.name() for m in ins.mods]
    if ins.debug:
        node["debug_symbols"] = sorted(set(ins.debug))
    return node


# -- reading programs -----------------------------------------------------------------------------


def program_from_value(tree) -> Program:
    """The program of a tree.

    Shapes are computed anew, as MIGraphX does; those in the file only serve parameters and
    literals. Parameters count as added from the last to the first, because building a program puts
    each new one in front: so `get_parameter_names` gives what it gave before saving.

    Raises
    ------
    Error
        for a newer version, and for anything that is not a program.
    """
    tree = _object(tree, "program")
    version = _version(_get(tree, "version"))
    try:
        program = _Loader(_object(_get(tree, "modules"), "modules")).load()
        _restore_target(program, tree)
    except Error as bad:
        if version == VERSION:
            raise
        raise Error(f"{bad} (the file has version {version}, older than {VERSION})") from None
    return program


def _version(value) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise Error(f"version should be a number, got {reprlib.repr(value)}") from None
    if not 1 <= number <= VERSION:
        raise Error(
            f"Program version mismatch: the file has version {number}, this package reads 1 to "
            f"{VERSION}; save the program again with a MIGraphX that writes version {VERSION}"
        )
    return number


def _restore_target(program: Program, tree: dict) -> None:
    targets = _list(tree, "targets", required=False)
    if not targets:
        return
    name = _text(_object(targets[0], "target"), "name")
    if name not in TARGETS:
        raise Error(
            f"the program was compiled for the unknown target {name[:40]!r}; known: "
            f"{', '.join(TARGETS)}; save the program before it is compiled"
        )
    program._target = Target(name)  # a missing device shows when it runs
    program._options = _options(_object(tree.get("compile_options", {}), "compile_options"))


def _options(tree: dict) -> dict:
    """Arguments of `compile` from a file, without anything that could name a path."""
    options = {k: tree[k] for k in ("offload_copy", "fast_math", "exhaustive_tune") if k in tree}
    for key, value in options.items():
        if not isinstance(value, bool):
            raise Error(f"compile_options: {key} should be true or false, got {_kind(value)}")
    advanced = _object(tree.get("advance_backend_options", {}), "advance_backend_options")
    if tree:
        options["advance_backend_options"] = {k: v for k, v in advanced.items() if _harmless(k, v)}
    return options


def _harmless(key: str, value) -> bool:
    if any(word in key for word in ("dump", "dir", "path", "file", "cache")):
        return False
    return isinstance(value, (bool, int, float)) or (
        isinstance(value, str) and value.replace("_", "").isalnum()
    )


class _Loader:
    """Rebuilds the modules of a tree, main first and each body before what runs it."""

    def __init__(self, trees: dict):
        self.trees = trees
        self.program = Program()
        self.made: dict[str, Instruction] = {}
        self.filling: list[Module] = []
        self.uses: dict[Module, int] = {}

    def load(self) -> Program:
        """The program."""
        if "main" not in self.trees:
            raise Error("Key not found: main (among the modules)")
        main = self.fill("main")
        self.filling = [main]  # what nothing runs may still read main's instructions
        for name in self.trees:
            self.fill(name)
        return self.program

    def fill(self, name: str) -> Module:
        """The module of that name with its instructions."""
        if name not in self.trees:
            raise Error(f"Key not found: {name[:80]} (among the modules)")
        module = self.program.create_module(name)
        if module in self.uses:
            return module
        if module in self.filling:
            raise Error(f"module {name[:80]!r} runs itself")
        if len(self.filling) >= MAX_MODULE_DEPTH:
            raise Error(f"modules nested deeper than {MAX_MODULE_DEPTH} levels")
        self.filling.append(module)
        uses = 1
        tree = _object(self.trees[name], f"module {name[:80]!r}")
        for place, node in enumerate(_list(tree, "nodes", required=False)):
            with _saying(f"module {name[:80]!r}, node {place}{_node_name(node)}"):
                ins = self.add(module, _object(node, "node"))
            uses += sum(self.uses[m] for m in ins.mods)
        if uses > MAX_MODULE_USES:
            raise Error(f"module {name[:80]!r} runs modules within modules without end")
        self.filling.pop()
        self.uses[module] = uses
        _number_parameters(module)
        return module

    def add(self, module: Module, node: dict) -> Instruction:
        """The instruction of a node, at the end of its module."""
        name, output = _text(node, "name"), _text(node, "output")
        if output in self.made:
            raise Error(f"the output {output[:80]!r} occurs twice")
        if module.instructions and type(module.instructions[-1].op_) is Return:
            raise Error("an instruction stands behind @return")
        if name == "@param":
            ins = self.parameter(module, node)
        elif name == "@literal":
            arg = argument_from_value(_get(node, "literal"))
            if arg.get_shape().type() == type_t.tuple_type:
                raise Error("a tuple cannot be a literal")
            ins = Instruction(Literal(), shape=arg.get_shape(), literal=arg)
        else:
            ins = self.operation(name, node)
        ins.debug = tuple(_names(node, "debug_symbols", required=False))
        self.made[output] = module._place(ins, len(module.instructions))
        if node.get("normalized") is True:
            self.program._normalized.add(ins)
        return ins

    def parameter(self, module: Module, node: dict) -> Instruction:
        name = _text(_object(_get(node, "operator"), "operator"), "parameter")
        if any(i.is_param and i.op_.parameter == name for i in module.instructions):
            raise Error(f"the parameter {name[:80]!r} occurs twice")
        return Instruction(Param(parameter=name), shape=shape_from_value(_get(node, "shape")))

    def operation(self, name: str, node: dict) -> Instruction:
        inputs = [self.input(i) for i in _names(node, "inputs")]
        mods = [self.fill(m) for m in _names(node, "module_inputs", required=False)]
        if name == "@return":
            op = Return()
        else:
            op = operator_from_value(name, node.get("operator", {}))
        shape = op.compute_shape([i.shape() for i in inputs], mods)
        check_size(shape)
        return Instruction(op, inputs, mods, shape)

    def input(self, name: str) -> Instruction:
        found = self.made.get(name)
        if found is None:
            raise Error(f"the input {name[:80]!r} does not exist, or stands behind its reader")
        if found.module not in self.filling:
            raise Error(f"the input {name[:80]!r} belongs to a module that is not around this one")
        return found


def _number_parameters(module: Module) -> None:
    for ins in reversed(module.instructions):
        if ins.is_param:
            ins.order = next(module._counter)


def _node_name(node) -> str:
    if not isinstance(node, dict):
        return ""
    parts = (node.get("output"), node.get("name"))
    return " (" + " = ".join(p[:80] for p in parts if isinstance(p, str)) + ")"


class _PlacedError(Error):
    """An error that says in which module and node it happened."""


@contextmanager
def _saying(where: str):
    """Puts the place in front of an error, and makes errors of whatever else a rule raises."""
    try:
        yield
    except _PlacedError:
        raise  # from a module inside
    except Error as bad:
        raise _PlacedError(f"{where}: {bad}") from None
    except Exception as bad:
        raise _PlacedError(f"{where}: {type(bad).__name__}: {reprlib.repr(str(bad))}") from bad


# -- parts of trees -------------------------------------------------------------------------------


def _kind(value) -> str:
    return f"a {type(value).__name__}, {reprlib.repr(value)}"


def _object(value, who: str) -> dict:
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and not value:  # msgpack files do not tell {} and [] apart
        return {}
    raise Error(f"Not an object: {who} should have named fields, got {_kind(value)}")


def _get(tree: dict, key: str):
    if key not in tree:
        raise Error(f"Key not found: {key}")
    return tree[key]


def _list(tree: dict, key: str, required: bool = True) -> list:
    value = _get(tree, key) if required else tree.get(key)
    if (value is None and not required) or value == {}:
        return []
    if not isinstance(value, list):
        raise Error(f"{key} should be a list, got {_kind(value)}")
    return value


def _text(tree: dict, key: str) -> str:
    value = _get(tree, key)
    if not isinstance(value, str):
        raise Error(f"{key} should be a text, got {_kind(value)}")
    return value


def _names(tree: dict, key: str, required: bool = True) -> list:
    values = _list(tree, key, required)
    for value in values:
        if not isinstance(value, str):
            raise Error(f"{key} should be a list of texts, it has {_kind(value)}")
    return values
