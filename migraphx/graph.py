"""Instructions and modules: the graph of a program."""

from __future__ import annotations

import itertools

from .argument import Argument
from .errors import Error
from .ops.base import Op, make
from .ops.control import Literal, Param, Return
from .shape import Shape


class Instruction:
    """One node of a module: an operator applied to other instructions.

    Instructions are made by the methods of a module; two are equal only if they are the same.
    """

    __slots__ = ("__weakref__", "_shape", "_users", "debug", "inputs_", "literal", "mods", "module",
                 "op_", "order")  # fmt: skip

    def __init__(self, op: Op, inputs=(), mods=(), shape=None, literal=None):
        self.op_ = op
        self.inputs_ = list(inputs)
        self.mods = list(mods)
        self._shape = shape
        self.literal = literal
        self.module = None
        self.debug = ()
        self.order = 0
        self._users = []

    def shape(self) -> Shape:
        """The shape of the result, with the strides of a view."""
        return self._shape

    def op(self) -> Op:
        """The operator."""
        return self.op_

    def name(self) -> str:
        """The name of the operator; ``@param``, ``@literal``, ``@return`` for the special ones."""
        return self.op_.op_name

    def inputs(self) -> list:
        """The instructions whose results this one reads."""
        return list(self.inputs_)

    def outputs(self) -> list:
        """The instructions that read this one, each once."""
        return list(dict.fromkeys(self._users))

    def module_inputs(self) -> list:
        """The modules that the operator runs."""
        return list(self.mods)

    def get_literal(self) -> Argument:
        """The data of a literal; an `Error` for any other instruction."""
        if self.literal is None:
            raise Error(f"get_literal: {self!r} is not a literal")
        return self.literal

    def eval(self) -> Argument | None:
        """The value if it depends on literals alone, else None."""
        from .target import evaluate

        return evaluate(self)

    @property
    def is_param(self) -> bool:
        """True for a parameter."""
        return type(self.op_) is Param

    def __repr__(self):
        return f"<instruction_ref {self.op_.op_name} -> {self._shape}>"


class Module:
    """A list of instructions in the order in which they run.

    A module belongs to a program and keeps it alive. Modules other than ``main`` are arguments of
    operators such as ``if`` and ``loop``; their instructions may read those of the modules around.
    """

    def __init__(self, program, name: str):
        self.program = program
        self._name = name
        self.instructions: list[Instruction] = []
        self.version = 0
        self._counter = itertools.count()

    # -- reading -------------------------------------------------------------------------------

    def name(self) -> str:
        """The name of the module."""
        return self._name

    def __iter__(self):
        return iter(tuple(self.instructions))

    def __len__(self):
        return len(self.instructions)

    def __getitem__(self, index):
        return self.instructions[index]

    def __bool__(self):
        return True

    def parameters(self) -> list:
        """The parameters in the order in which they were added."""
        found = [i for i in self.instructions if i.is_param]
        return sorted(found, key=lambda i: i.order)

    def get_parameter_names(self) -> list:
        """Names of the parameters in the order in which they were added."""
        return [p.op_.parameter for p in self.parameters()]

    def get_parameter(self, name: str) -> Instruction:
        """The parameter called `name`."""
        for ins in self.instructions:
            if ins.is_param and ins.op_.parameter == name:
                return ins
        raise Error(f"module: no parameter {name!r} in {self._name}")

    def returned(self) -> list:
        """The instructions whose results the module yields."""
        if not self.instructions:
            return []
        last = self.instructions[-1]
        return list(last.inputs_) if type(last.op_) is Return else [last]

    def get_output_shapes(self) -> list:
        """The shapes of the results as the instructions have them, views included."""
        return [i.shape() for i in self.returned()]

    def captured(self) -> list:
        """Instructions of other modules that this one and the modules inside it read, each once."""
        found, inside = {}, set()
        self._collect(found, inside)
        return [i for i in found if i not in inside]

    def _collect(self, found, inside):
        inside.update(self.instructions)
        for ins in self.instructions:
            found.update(dict.fromkeys(ins.inputs_))
            for mod in ins.mods:
                mod._collect(found, inside)

    # -- adding --------------------------------------------------------------------------------

    def add_instruction(self, op: Op, args, mod_args=()) -> Instruction:
        """Adds an operator at the end, before the return if there is one.

        Parameters
        ----------
        op : op
            The operator, ``migraphx.op(name, ...)``; a name alone stands for its defaults.
        args : list of instruction_ref
            Inputs.
        mod_args : list of module
            Modules that the operator runs.

        Raises
        ------
        Error
            if the operator refuses the shapes of its inputs.
        """
        return self._insert(self._end(), *self._checked(op, args, mod_args))

    def insert_instruction(self, ins: Instruction, op: Op, args, mod_args=()) -> Instruction:
        """As `add_instruction`, but directly before `ins`."""
        return self._insert(self.index(ins), *self._checked(op, args, mod_args))

    def add(self, name, *inputs, mods=(), **attributes) -> Instruction:
        """`add_instruction` in short: ``m.add("softmax", x, axis=1)``."""
        op = make(name, **attributes) if isinstance(name, str) else name
        return self._insert(self._end(), op, inputs, mods)

    def insert(self, before: Instruction, name, *inputs, mods=(), **attributes) -> Instruction:
        """`insert_instruction` in short."""
        op = make(name, **attributes) if isinstance(name, str) else name
        return self._insert(self.index(before), op, inputs, mods)

    def add_literal(self, data, values=None) -> Instruction:
        """Adds constant data (a buffer, array, argument or number); it is copied.

        With two arguments, a shape and a list of values in row-major order.
        """
        if isinstance(data, Shape):
            from .argument import create_argument

            return self.literal(create_argument(data, values))
        arg = Argument(data)
        return self.literal(_copied(arg))

    def literal(self, arg: Argument, at: int = 0) -> Instruction:
        """Adds a literal around an argument that nobody will change; no copy."""
        ins = Instruction(Literal(), shape=arg.get_shape(), literal=arg)
        return self._place(ins, at)

    def add_parameter(self, name: str, shape: Shape) -> Instruction:
        """Adds an input of the module; names are unique in a module."""
        if not isinstance(name, str):
            raise TypeError(f"add_parameter: the name must be a str, got {type(name).__name__}")
        if not isinstance(shape, Shape):
            raise TypeError(f"add_parameter: expected a migraphx.shape, got {shape!r}")
        if any(i.is_param and i.op_.parameter == name for i in self.instructions):
            raise Error(f"add_parameter: {self._name} has a parameter {name!r} already")
        ins = Instruction(Param(parameter=name), shape=shape)
        ins.order = next(self._counter)
        return self._place(ins, 0)

    def add_return(self, args) -> Instruction:
        """Ends the module: its results are those of `args`."""
        args = self._refs(args, "add_return")
        if self.instructions and type(self.instructions[-1].op_) is Return:
            raise Error(
                f"add_return: {self._name} has a return already; use replace_return to change it"
            )
        return self._insert(len(self.instructions), Return(), args, ())

    def replace_return(self, args) -> Instruction:
        """Changes the results of the module, or adds a return where there is none."""
        args = self._refs(args, "replace_return")
        if self.instructions and type(self.instructions[-1].op_) is Return:
            self.remove(self.instructions[-1])
        return self.add_return(args)

    def add_macro(self, macro, args, mod_args=()) -> list:
        """Adds the operators that a macro stands for; gives its results."""
        return macro.build(self, self._refs(args, "add_macro"), list(mod_args), None)

    def insert_macro(self, ins: Instruction, macro, args, mod_args=()) -> list:
        """As `add_macro`, but directly before `ins`."""
        self.index(ins)
        return macro.build(self, self._refs(args, "insert_macro"), list(mod_args), ins)

    # -- changing ------------------------------------------------------------------------------

    def index(self, ins: Instruction) -> int:
        """Position of an instruction of this module."""
        if ins.module is not self:
            raise Error(f"module: {ins!r} is not an instruction of {self._name}")
        return self.instructions.index(ins)

    def replace_instruction(self, ins: Instruction, by) -> Instruction:
        """Lets everything that reads `ins` read `by` (an instruction of equal shape) instead.

        `by` itself may read `ins`, and goes on doing so: that puts it behind `ins`. It may stand
        anywhere; where it stands too late, the module is sorted.
        """
        old, new = ins.shape(), by.shape()
        static = not (old.dynamic() or new.dynamic() or old.subs or new.subs)
        if static and (old.type(), old.dims) != (new.type(), new.dims):
            raise Error(f"replace_instruction: {new} cannot stand for {old}")
        readers = [user for user in ins.outputs() if user is not by and user.module is self]
        self.redirect(ins, by)
        if readers and by.module is self:
            place = self.index(by)
            if any(self.index(user) < place for user in readers):
                self.sort()
        return by

    def redirect(self, ins: Instruction, by: Instruction) -> None:
        """As `replace_instruction` without any check, for passes that see to the order."""
        for user in ins.outputs():
            if user is not by:
                user.inputs_ = [by if i is ins else i for i in user.inputs_]
                by._users.extend([user] * ins._users.count(user))
        ins._users = [user for user in ins._users if user is by]
        self.touch()

    def remove(self, ins: Instruction) -> None:
        """Removes an instruction that nothing reads."""
        if ins._users:
            raise Error(f"module: {ins!r} is still read by {len(ins._users)} instructions")
        self.instructions.pop(self.index(ins))
        for source in ins.inputs_:
            source._users.remove(ins)
        ins.module = None
        self.touch()

    def remove_all(self, unwanted) -> None:
        """Removes many instructions at once; only each other may read them."""
        unwanted = set(unwanted)
        self.instructions = [i for i in self.instructions if i not in unwanted]
        for ins in unwanted:
            ins.module = None
            for source in ins.inputs_:
                if source not in unwanted:
                    source._users.remove(ins)
        self.touch()

    def sort(self) -> None:
        """Orders the instructions so that each stands behind what it reads."""
        order, seen = [], set()
        inside = set(self.instructions)
        for root in tuple(self.instructions):
            stack = [(root, iter(_sources(root)))]
            if root in seen:
                continue
            seen.add(root)
            while stack:
                ins, rest = stack[-1]
                following = next((s for s in rest if s in inside and s not in seen), None)
                if following is None:
                    order.append(ins)
                    stack.pop()
                else:
                    seen.add(following)
                    stack.append((following, iter(_sources(following))))
        self.instructions = order
        self.touch()

    def touch(self) -> None:
        """Notes that the module has changed, so that compiled forms are made anew."""
        self.version += 1

    # -- printing ------------------------------------------------------------------------------

    def print(self) -> None:
        """Writes the instructions to standard output."""
        print(repr(self))

    def __repr__(self):
        from .printing import module_text

        return module_text(self)

    # -- helpers -------------------------------------------------------------------------------

    def _end(self) -> int:
        full = bool(self.instructions) and type(self.instructions[-1].op_) is Return
        return len(self.instructions) - full

    def _checked(self, op, args, mod_args):
        if isinstance(op, str):
            op = make(op)
        if not isinstance(op, Op):
            raise TypeError(f"add_instruction: expected a migraphx.op, got {type(op).__name__}")
        if op.op_name in ("@param", "@literal", "@return"):
            raise Error(f"add_instruction: use add_{op.op_name.strip('@')} ... for {op.op_name}")
        for mod in mod_args:
            if not isinstance(mod, Module):
                raise TypeError(f"add_instruction: mod_args must be modules, got {mod!r}")
        return op, self._refs(args, "add_instruction"), list(mod_args)

    def _refs(self, args, who: str) -> list:
        if isinstance(args, Instruction):
            raise TypeError(f"{who}: args must be a list of instructions, got one instruction")
        args = list(args)
        for arg in args:
            if not isinstance(arg, Instruction):
                raise TypeError(f"{who}: args must be instructions, got {type(arg).__name__}")
            if arg.module is None or arg.module.program is not self.program:
                raise Error(f"{who}: {arg!r} belongs to another program or was removed")
        return args

    def _insert(self, at: int, op: Op, inputs, mods) -> Instruction:
        shape = op.compute_shape([i._shape for i in inputs], mods)
        return self._place(Instruction(op, inputs, mods, shape), at)

    def _place(self, ins: Instruction, at: int) -> Instruction:
        self.instructions.insert(at, ins)
        ins.module = self
        for source in ins.inputs_:
            source._users.append(ins)
        self.version += 1
        return ins


def _sources(ins: Instruction):
    """What an instruction reads, also inside its modules."""
    yield from ins.inputs_
    for mod in ins.mods:
        yield from mod.captured()


def _copied(arg: Argument) -> Argument:
    from .argument import copy_keeping_strides

    if arg.parts:
        raise Error("add_literal: a tuple cannot be a literal; add its parts")
    shape = arg.get_shape()
    if not hasattr(arg.device_array(), "strides"):  # a JAX array: nobody can change it
        return Argument.of(arg.numpy(), shape)
    if shape.type_string() == "string_type":
        return Argument.of(arg.numpy().copy(), shape)
    return Argument.of(copy_keeping_strides(arg.numpy(), shape), shape)
