"""Programs as text: MIGraphX's own listing, and Python that builds the program again.

The forms follow MIGraphX to the letter (`reference/printing.md`), so that listings can be compared
between the two.
"""

from __future__ import annotations

import base64
import enum
import itertools
import json
import math
import re

import numpy as np

from .argument import elements_text, number_text
from .dims import Dim
from .errors import Error
from .ops.base import PRINTED_BY_NAME, Op, is_default, to_value
from .ops.control import Return
from .shape import Shape, packed_strides

SHOWN_ELEMENTS = 10  # longer literals print as { ... }
WRITTEN_ELEMENTS = 1024  # from here on to_py writes generate_argument


# -- listings -------------------------------------------------------------------------------------


def program_text(program) -> str:
    """All modules: main, those it runs in order of use, then the rest."""
    modules = program.get_modules()
    names = output_names(modules)
    return "".join(f'module: "{m.name()}"\n{_lines(m, names)}\n' for m in modules)


def module_text(module) -> str:
    """One module; instructions of others that it reads print as ``?``."""
    return _lines(module, output_names([module], prefixed=False))


def output_names(modules, prefixed: bool = True) -> dict:
    """The name that each instruction prints under."""
    names = {}
    plain = next((m for m in modules if m.instructions), None)
    for module in modules:
        bare = not prefixed or module is plain
        prefix = "" if bare else f"{module.name()}:"
        for index, ins in enumerate(module.instructions):
            own = ins.op_.parameter if ins.is_param else f"@{index}"
            names[ins] = prefix + own
    return names


def _lines(module, names: dict) -> str:
    return "".join(f"{instruction_text(ins, names)}\n" for ins in module.instructions)


def instruction_text(ins, names: dict) -> str:
    """``OUTPUT = OPERATOR(INPUTS), [MODULES] -> SHAPE`` and the debug symbols as a comment."""
    text = f"{names[ins]} = {op_text(ins.op_)}"
    if ins.literal is not None:
        many = ins.literal.get_shape().elements() > SHOWN_ELEMENTS
        text += "{" + (" ... " if many else elements_text(ins.literal.numpy())) + "}"
    if ins.inputs_:
        text += f"({','.join(names.get(i, '?') for i in ins.inputs_)})"
    if ins.mods:
        text += f", [{', '.join(m.name() for m in ins.mods)}]"
    if type(ins.op_) is not Return:
        text += f" -> {ins.shape()}"
    if ins.debug:
        text += f" # {', '.join(sorted(set(ins.debug)))}"
    return text


def op_text(op: Op) -> str:
    """An operator with all its attributes, or its own form for the special ones."""
    name = op.op_name
    if name == "@param":
        return f"@param:{op.parameter}"
    if name == "@comment":
        return f"@comment: {op.text}"
    if name == "load":
        return f"load[offset={op.offset},end={op.offset + op.shape.bytes()}]"
    if name == "unknown:":
        return op.name()
    if name == "ref::op":
        return f"ref::{op_text(op.wrapped)}"
    if not op.kinds:
        return name
    return f"{name}[{','.join(f'{key}={_value_text(getattr(op, key))}' for key in op.kinds)}]"


def _value_text(value) -> str:
    if value is None:
        return "nullopt"
    if isinstance(value, enum.Enum):
        return value.name if isinstance(value, PRINTED_BY_NAME) else str(int(value))
    if isinstance(value, (Dim, Shape, str)):
        return str(value)
    if isinstance(value, Op):
        return op_text(value)
    if isinstance(value, (tuple, list)):
        return f"{{{', '.join(map(_value_text, value))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {_value_text(v)}' for k, v in value.items())}}}"
    return number_text(value)


# -- Python ---------------------------------------------------------------------------------------


def to_py(program, weights: bool = False) -> str:
    """Python text that builds the program again.

    Without `weights` the text is MIGraphX's: numbers have 6 digits, literals of 1,024 elements and
    more are stood in for by ``generate_argument``, a literal of lens 1 loses its zero stride unless
    a reader needs it, and inputs and literals stand as printed, so that running the text, which
    puts each new one in front, reverses their order. With `weights` every literal is written whole
    and exactly, and the program that the text builds prints and computes the same.

    MIGraphX leaves out the modules that an operator runs and refuses dynamic shapes; here both are
    written, so every text runs.
    """
    return _Writer(program, weights).text()


class _Writer:
    def __init__(self, program, weights: bool):
        self.program = program
        self.weights = weights
        self.exact = weights or _beyond_migraphx(program)
        self.names = output_names(program.get_modules())
        self.variables = _variables(self.names.values())
        self.modules = _module_variables(program.get_modules())
        self.written = set()
        self.seeds = itertools.count()
        self.encoded = False
        self.lines = []

    def text(self) -> str:
        self.module(self.program.main)
        for module in self.program.get_modules():
            if module not in self.written:
                self.module(module)
        head = "import base64\nimport numpy\n" if self.encoded else ""
        return head + "p = migraphx.program()\n" + "".join(f"{line}\n" for line in self.lines)

    def module(self, module) -> None:
        self.written.add(module)
        variable = self.modules[module]
        if module is self.program.main:
            self.lines.append("m = p.get_main_module()")
        else:
            self.lines.append(f"{variable} = p.create_module({_quoted(module.name())});")
        for ins in self.ordered(module):
            for mod in ins.mods:
                if mod not in self.written:
                    self.lines.append("")
                    self.module(mod)
            last = ins is module.instructions[-1]
            self.lines.append(self.instruction(ins, variable, last))
        self.lines.append("")

    def ordered(self, module) -> list:
        """The instructions; in exact texts what is added in front comes in the order of adding."""
        if not self.exact:
            return module.instructions
        first, rest = [], []
        for ins in module.instructions:
            (first if ins.is_param or ins.literal is not None else rest).append(ins)
        return [*reversed(first), *rest] if rest else first

    def instruction(self, ins, module: str, last: bool) -> str:
        given = "" if last else f"{self.variables[self.names[ins]]} = "
        position = next(self.seeds)
        inputs = ", ".join(self.variables[self.names[i]] for i in ins.inputs_)
        if ins.is_param:
            shape = shape_py(ins.shape())
            return f"{given}{module}.add_parameter({_quoted(ins.op_.parameter)}, {shape})"
        if ins.literal is not None:
            return f"{given}{module}.add_literal({self.literal(ins, position)})"
        if type(ins.op_) is Return:
            return f"{module}.add_return([{inputs}])"
        mods = f", [{', '.join(self.modules[m] for m in ins.mods)}]" if ins.mods else ""
        shape = shape_py(ins.shape(), exact=False)
        return f"{given}{module}.add_instruction({op_py(ins.op_)}, [{inputs}]{mods}) # {shape}"

    def literal(self, ins, position: int) -> str:
        shape, array = ins.literal.get_shape(), ins.literal.numpy()
        exact = self.exact or _depends_on_scalar(ins)
        described = shape_py(shape, exact=exact)
        if array.dtype == object:
            return f"migraphx.create_argument({described}, {json.dumps(array.ravel().tolist())})"
        if not self.weights and shape.elements() >= WRITTEN_ELEMENTS:
            return f"migraphx.generate_argument({described}, {position})"
        flat = array.reshape(-1)
        if self.weights and not _reads_back(flat):
            self.encoded = True
            data = base64.b64encode(np.ascontiguousarray(flat).tobytes()).decode()
            values = f'numpy.frombuffer(base64.b64decode("{data}"), "{array.dtype}")'
            if tuple(shape.strides()) == packed_strides(shape.lens()):
                return f"migraphx.argument({values}.reshape({list(shape.lens())}))"
            return f"migraphx.create_argument({described}, {values})"
        return f"migraphx.create_argument({described}, [{', '.join(map(_number_py, flat))}])"


def _beyond_migraphx(program) -> bool:
    """True if MIGraphX's own text would not run: modules of operators, dynamic shapes."""
    return any(
        ins.mods or ins.shape().dynamic() for m in program.get_modules() for ins in m.instructions
    )


def _reads_back(flat: np.ndarray) -> bool:
    """True if the 6 digits that are written name each number exactly, and there are few."""
    if flat.size >= WRITTEN_ELEMENTS:
        return False
    if flat.dtype.kind in "iub":
        return True
    with np.errstate(all="ignore"):
        again = np.array([float(number_text(v)) for v in flat]).astype(flat.dtype)
    return again.tobytes() == np.ascontiguousarray(flat).tobytes()


def _depends_on_scalar(ins) -> bool:
    """True if an operator that reads this lens-1, stride-0 literal needs the stride to be 0."""
    shape = ins.shape()
    if not shape.is_rank0():
        return False
    plain = Shape.make(shape.type(), (1,), (1,))
    for user in ins.outputs():
        if type(user.op_) is Return:
            continue
        shapes = [plain if i is ins else i.shape() for i in user.inputs_]
        try:
            if user.op_.compute_shape(shapes, user.mods).dims != user.shape().dims:
                return True
        except Error:
            return True
    return False


def _variables(names) -> dict:
    """A Python name for each printed name, all different."""
    found, taken = {}, set()
    for name in names:
        text = name.replace(":", "_module_")
        text = ("x_" if "@" in name else "p_") + text
        text = re.sub("_+", "_", re.sub(r"[^0-9a-zA-Z]", "_", text))
        while text in taken:
            text += "_"
        taken.add(text)
        found[name] = text
    return found


def _module_variables(modules) -> dict:
    """A Python name for each module, all different."""
    found, taken = {}, set()
    for module in modules:
        name = module.name()
        text = "m" if name == "main" else "m" + re.sub(r"[^0-9a-zA-Z_]", "_", name)
        while text in taken:
            text += "_"
        taken.add(text)
        found[module] = text
    return found


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number_py(value) -> str:
    text = number_text(value)
    if isinstance(value, (bool, np.bool_, int, np.integer)) or math.isfinite(float(value)):
        return text
    return f'float("{text}")'


def op_py(op: Op) -> str:
    """``migraphx.op(...)`` with the attributes that differ from their defaults."""
    parts = [_quoted(op.op_name)]
    parts += [f"{key}={_value_py(getattr(op, key))}" for key in op.kinds if not is_default(op, key)]
    return f"migraphx.op({', '.join(parts)})"


def _value_py(value) -> str:
    """An attribute as compact JSON, with Python's spelling where JSON has another."""
    if value is None:
        return "None"
    if isinstance(value, Dim):
        return dim_py(value)
    if isinstance(value, Shape):
        return shape_py(value, exact=True)
    if isinstance(value, Op):
        return json.dumps(to_value(value), separators=(",", ":"))
    if isinstance(value, str):
        return _quoted(str(value))
    if isinstance(value, (tuple, list)):
        return f"[{','.join(map(_value_py, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_quoted(k)}:{_value_py(v)}' for k, v in value.items())}}}"
    if isinstance(value, (bool, int, enum.Enum)):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def shape_py(shape: Shape, exact: bool = True) -> str:
    """``migraphx.shape(...)``; strides only when they are not the standard ones.

    Without `exact` strides of axes of size 1 do not matter, as in MIGraphX.
    """
    if shape.subs:
        return 'migraphx.shape(type="tuple_type", lens=[], strides=[])'
    kind = shape.type_string()
    if shape.dims is None:
        return f'migraphx.shape(type="{kind}")'
    if shape.dynamic():
        symbolic = shape.symbolic()
        text = f'migraphx.shape(type="{kind}", dyn_dims=[{_dims_py(shape.dims, symbolic)}]'
        if symbolic and not shape.standard():
            text += f", dyn_strides=[{_dims_py(shape.dyn_strides(), True)}]"
        return text + ")"
    lens, strides = list(shape.lens()), list(shape.strides())
    text = f'migraphx.shape(type="{kind}", lens={lens}'
    if tuple(strides) != packed_strides(lens) if exact else not shape.standard():
        text += f", strides={strides}"
    return text + ")"


def _dims_py(dims, symbolic: bool) -> str:
    return ", ".join(f'"{d}"' if symbolic and isinstance(d, int) else dim_py(d) for d in dims)


def dim_py(dim) -> str:
    """A dimension: the text of an expression, a number, or a range."""
    if not isinstance(dim, Dim):
        return str(dim)
    if dim.is_symbolic():
        return _quoted(dim.expression)
    if dim.is_fixed():
        return str(dim.min)
    optimals = f", {{{', '.join(map(str, sorted(dim.optimals)))}}}" if dim.optimals else ""
    return f"migraphx.shape.dynamic_dimension({dim.min}, {dim.max}{optimals})"
