"""Verification: a program on a target against plain mathematics on the CPU."""

from __future__ import annotations

import dataclasses
import enum
import math
import zlib
from pathlib import Path

import numpy as np

from .argument import Argument, array_shape, generate_argument
from .errors import Error, close_matches
from .graph import Instruction, Module
from .passes.dead_code import dead_code_elimination
from .passes.simplify import refresh
from .program import Program, copy_modules
from .shape import Shape
from .target import as_target
from .types import FLOATS, dtype_of, type_t


class VerifyMode(enum.Enum):
    """What `program.verify` compares.

    ``outputs``: the results. ``per_instruction``: every instruction alone, on the inputs that the
    reference computes. ``bisect``: the results and, where they differ, the first instruction that
    makes them differ.
    """

    outputs = "outputs"
    per_instruction = "per_instruction"
    bisect = "bisect"


# Tolerances (RMS, absolute, relative) by the least precise type in the program, as MIGraphX's.
PLAIN = (0.001, 0.001, 0.001)
HALF = (0.08, 0.04, 0.04)
TINY = (0.8, 0.4, 0.4)
TOLERANCES = {"fp16": HALF, "bf16": HALF, "int8": HALF, "fp8": HALF}
PRECISIONS = tuple(TOLERANCES)
# Not compared by themselves: they only arrange what others computed.
ARRANGING = ("broadcast", "multibroadcast", "reshape", "transpose", "undefined", "identity",
             "rnn_last_hs_output", "rnn_last_cell_output")  # fmt: skip


@dataclasses.dataclass
class Comparison:
    """One tensor of the target against that of the reference.

    Attributes
    ----------
    name : str
        The output's number, or the instruction as printed.
    shape : shape
        What the reference gives.
    rms : float
        Root of the mean squared difference over the largest magnitude.
    largest : float
        Largest absolute difference; `where` is its index.
    nans, infinities : tuple of int
        How many the target has, and the reference.
    passed : bool
        Whether the tolerances hold.
    reason : str
        Why not, or why it was not compared.
    """

    name: str
    shape: Shape | None = None
    rms: float = math.nan
    largest: float = math.nan
    where: tuple = ()
    nans: tuple = (0, 0)
    infinities: tuple = (0, 0)
    passed: bool = False
    reason: str = ""


class VerifyResult:
    """What `program.verify` found: true if everything passed, readable when printed.

    Attributes
    ----------
    passed : bool
        Whether all comparisons passed.
    comparisons : list
        One for each output or instruction.
    first_failure : str or None
        After bisecting: the first instruction whose result differs.
    tolerances : dict
        The `rms_tol`, `atol` and `rtol` that were used.
    """

    def __init__(self, mode, target, comparisons, tolerances, first_failure=None):
        self.mode, self.target = mode, target
        self.comparisons, self.tolerances = comparisons, tolerances
        self.first_failure = first_failure

    @property
    def passed(self) -> bool:
        """Whether all comparisons passed."""
        return all(c.passed for c in self.comparisons)

    def __bool__(self):
        return self.passed

    HEAD = ("", "compared", "shape", "RMS error", "largest difference", "at", "NaN", "inf", "")

    def _rows(self):
        for c in self.comparisons:
            where = ", ".join(map(str, c.where))
            yield (
                "passed" if c.passed else "FAILED", c.name, c.shape, f"{c.rms:.3g}",
                f"{c.largest:.3g}", f"({where})" if c.where else "", "/".join(map(str, c.nans)),
                "/".join(map(str, c.infinities)), c.reason,
            )  # fmt: skip

    def _caption(self) -> str:
        bounds = ", ".join(f"{k} {v:g}" for k, v in self.tolerances.items())
        failed = sum(not c.passed for c in self.comparisons)
        verdict = "passed" if self.passed else f"FAILED ({failed} of {len(self.comparisons)})"
        text = f"verification of {self.mode.value} on {self.target}: {verdict}; {bounds}"
        if self.first_failure:
            text += f"\nfailure starts at: {self.first_failure}"
        return text

    def __repr__(self):
        rows = [tuple(map(str, r)) for r in (self.HEAD, *self._rows())]
        wide = [max(len(r[k]) for r in rows) for k in range(len(self.HEAD))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, wide, strict=True)).rstrip() for r in rows]
        return "\n".join([self._caption(), *lines])

    def _repr_html_(self) -> str:
        from .display import table_html

        return table_html(self.HEAD, self._rows(), self._caption())


def verify(
    program: Program, target, mode=VerifyMode.outputs, params=None, *, rms_tol=None, atol=None,
    rtol=None, precision=None, ref_use_double=False, compiled_model=None,
) -> VerifyResult:  # fmt: skip
    """See `program.verify`."""
    target = as_target(target)
    mode = _mode(mode)
    if precision is not None and precision not in PRECISIONS:
        raise Error(
            f"verify: unknown precision {precision!r}{close_matches(precision, PRECISIONS)}; "
            f"accepted: {', '.join(PRECISIONS)}"
        )
    if compiled_model is not None and mode is not VerifyMode.outputs:
        raise Error(f"verify: a compiled model has outputs alone, mode is {mode.value}")
    given = _values(program, params or {})
    base = _tolerances(program, precision)
    chosen = dict(zip(("rms_tol", "atol", "rtol"), base, strict=True))
    chosen.update({
        k: float(v) for k, v in (("rms_tol", rms_tol), ("atol", atol), ("rtol", rtol))
        if v is not None
    })  # fmt: skip
    work = _Work(program, target, given, chosen, precision, bool(ref_use_double))
    if mode is VerifyMode.per_instruction:
        found, first = work.each(), None
    else:
        found, first = work.outputs(compiled_model), None
        if mode is VerifyMode.bisect and not all(c.passed for c in found):
            first = work.bisected()
    return VerifyResult(mode, target.name(), found, chosen, first)


def _mode(mode) -> VerifyMode:
    if isinstance(mode, VerifyMode):
        return mode
    try:
        return VerifyMode[mode]
    except KeyError:
        names = ", ".join(m.name for m in VerifyMode)
        raise Error(f"verify: unknown mode {mode!r}; accepted: {names}") from None


def _values(program: Program, params: dict) -> dict:
    """The inputs: those given, and random ones for the rest."""
    values = {}
    for name, shape in program.get_parameter_shapes().items():
        if name in params:
            values[name] = params[name]
        elif shape.dynamic():
            raise Error(f"verify: parameter {name!r} is dynamic ({shape}); give it in params")
        else:
            values[name] = generate_argument(shape, zlib.crc32(name.encode()))
    unknown = [n for n in params if n not in values]
    if unknown:
        raise Error(f"verify: no parameter {unknown[0]!r}{close_matches(unknown[0], values)}")
    return values


def _tolerances(program: Program, precision) -> tuple:
    if precision is not None:
        return TOLERANCES[precision]
    kinds = {i.shape().type() for m in program.get_modules() for i in m if not i.shape().subs}
    if kinds & {k for k in FLOATS if dtype_of(k).itemsize == 1} or type_t.fp4x2_type in kinds:
        return TINY
    return HALF if kinds & {type_t.half_type, type_t.bf16_type} else PLAIN


class _Work:
    """One verification: both programs, and what they gave."""

    def __init__(self, program, target, values, tolerances, precision, double):
        self.program, self.target, self.values = program, target, values
        self.tolerances, self.precision, self.double = tolerances, precision, double
        self.known: dict[Instruction, np.ndarray] = {}

    # -- running -------------------------------------------------------------------------------

    def on_target(self, program: Program) -> list:
        program.compile(self.target)
        return [np.asarray(a) for a in program.run(self.values)]

    def reference(self, program: Program) -> list:
        """Plain: the highest precision, no fast mathematics, in double if asked."""
        values = self.values
        if self.double:
            _to_double(program)
            values = {k: _as_double(v) for k, v in values.items()}
        program.compile(as_target("ref"), fast_math=False)
        return [np.asarray(a) for a in program.run(values)]

    def quantised(self, program: Program) -> Program:
        from . import quantize

        if self.precision in ("fp16", "bf16"):
            getattr(quantize, f"quantize_{self.precision}")(program)
        elif self.precision is not None:
            function = getattr(quantize, f"quantize_{self.precision}")
            function(program, as_target("ref"), [self.values])
        return program

    # -- modes ---------------------------------------------------------------------------------

    def outputs(self, compiled_model) -> list:
        expected = self.reference(self.program.clone())
        if compiled_model is None:
            got = self.on_target(self.quantised(self.program.clone()))
        else:
            loaded = compiled_model
            if isinstance(loaded, (str, Path)):
                from .files import load

                loaded = load(loaded)
            got = [np.asarray(a) for a in _compiled(loaded, self.target).run(self.values)]
        if len(got) != len(expected):
            reason = f"{len(got)} results, the reference gives {len(expected)}"
            return [Comparison("results", reason=reason)]
        return [
            self.compare(f"output {k}", g, e)
            for k, (g, e) in enumerate(zip(got, expected, strict=True))
        ]

    def intermediates(self) -> dict:
        """What the reference computes for every instruction of the main module."""
        copy = Program()
        twins = copy_modules(self.program, copy)
        wanted = [i for i in self.program.get_main_module() if _plain(i)]
        main = copy.get_main_module()
        main.replace_return([twins[i] for i in wanted])
        return dict(zip(wanted, self.reference(copy), strict=True))

    def each(self) -> list:
        self.known, found = self.intermediates(), []
        for number, ins in enumerate(self.program.get_main_module()):
            name = ins.op_.op_name
            if name.startswith("@") or name in ARRANGING or ins not in self.known:
                continue
            label = f"@{number} {name}"
            if ins.mods or any(i not in self.known for i in ins.inputs_):
                found.append(Comparison(label, ins.shape(), passed=True, reason="not compared: "
                                        "it runs modules, or reads tuples"))  # fmt: skip
                continue
            try:
                (got,) = self.alone(ins)
            except Error as error:
                found.append(Comparison(label, ins.shape(), reason=str(error)))
                continue
            found.append(self.compare(label, got, self.known[ins]))
        return found

    def alone(self, ins: Instruction) -> list:
        """The instruction by itself on the target, on the reference's inputs."""
        single = Program()
        main, values, args = single.get_main_module(), {}, {}
        for k, x in enumerate(dict.fromkeys(ins.inputs_)):
            if x.literal is not None:
                args[x] = main.literal(x.literal)
                continue
            dtype = dtype_of(x.shape().type())
            values[str(k)] = self.known[x].astype(dtype, copy=False)
            shape = x.shape()
            if shape.dynamic():
                shape = array_shape(values[str(k)].shape, shape.type())
            args[x] = main.add_parameter(str(k), shape)
        made = main.add_instruction(ins.op_, [args[x] for x in ins.inputs_])
        main.add_return([made])
        self.quantised_alone(single, values)
        single.compile(self.target)
        return [np.asarray(a) for a in single.run(values)]

    def quantised_alone(self, single: Program, values: dict) -> None:
        _Work(single, self.target, values, self.tolerances, self.precision, False).quantised(single)

    def bisected(self) -> str:
        """The first instruction behind which what is still read differs from the reference.

        A cut behind an instruction is judged by all values that cross it, so that the search
        finds a place where the values in front agree and those behind do not.
        """
        self.known = self.intermediates()
        source = self.program.get_main_module()
        order = [i for i in source if i.op_.op_name != "@return"]
        good, bad = -1, len(order) - 1
        while bad - good > 1:
            middle = (good + bad) // 2
            if self.agrees(order, middle):
                good = middle
            else:
                bad = middle
        ins = order[bad]
        return f"@{source.index(ins)} {ins.op_.op_name} -> {ins.shape()}"

    def agrees(self, order: list, cut: int) -> bool:
        front = set(order[: cut + 1])
        crossing = [
            i
            for i in order[: cut + 1]
            if i in self.known and not i.is_param and i.literal is None
            and any(u not in front for u in i._users)
        ]  # fmt: skip
        if not crossing:
            return True
        copy = Program()
        twins = copy_modules(self.program, copy)
        main = copy.get_main_module()
        main.replace_return([twins[i] for i in crossing])
        for module in copy.get_modules():
            dead_code_elimination(module)
        got = self.on_target(self.quantised(copy))
        pairs = zip(got, crossing, strict=True)
        return all(self.compare("", g, self.known[i]).passed for g, i in pairs)

    # -- comparing -----------------------------------------------------------------------------

    def compare(self, name: str, got: np.ndarray, expected: np.ndarray) -> Comparison:
        """Numbers that are not finite must stand in the same places; the rest is compared."""
        shape = array_shape(expected.shape, _kind(expected))
        if got.shape != expected.shape:
            reason = f"lens {list(got.shape)}, the reference has {list(expected.shape)}"
            return Comparison(name, shape, reason=reason)
        if expected.dtype == object or expected.dtype.kind in "OSU":
            same = bool((got == expected).all())
            return Comparison(name, shape, 0.0, 0.0, passed=same, reason="" if same else "differs")
        a, b = got.astype(np.float64), expected.astype(np.float64)
        nans = int(np.isnan(a).sum()), int(np.isnan(b).sum())
        infinities = int(np.isinf(a).sum()), int(np.isinf(b).sum())
        made = Comparison(name, shape, nans=nans, infinities=infinities)
        usable = np.isfinite(a) & np.isfinite(b)
        strange = (a == b) | (np.isnan(a) & np.isnan(b))
        if not (usable | strange).all():
            made.where = tuple(map(int, np.argwhere(~(usable | strange))[0]))
            made.reason = "NaN or infinity in other places than in the reference"
            return made
        a, b = np.where(usable, a, 0), np.where(usable, b, 0)
        difference = np.abs(a - b)
        made.largest = float(difference.max()) if difference.size else 0.0
        if made.largest:
            made.where = tuple(map(int, np.unravel_index(difference.argmax(), difference.shape)))
        made.rms = rms_error(a, b)
        made.passed = made.rms <= self.tolerances["rms_tol"]
        if not made.passed:
            bound = self.tolerances["atol"] + self.tolerances["rtol"] * np.abs(b)
            made.reason = (
                f"RMS error above {self.tolerances['rms_tol']:g}; "
                f"{int((difference >= bound).sum())} of {b.size} elements differ"
            )
        return made


def rms_error(a: np.ndarray, b: np.ndarray) -> float:
    """sqrt(sum (a - b)²) / (sqrt(n) · largest magnitude), as MIGraphX measures it."""
    if not a.size:
        return 0.0
    magnitude = max(np.abs(a).max(), np.abs(b).max(), np.finfo(np.float64).tiny)
    return float(np.sqrt((((a - b) / magnitude) ** 2).sum()) / math.sqrt(a.size))


def _kind(array: np.ndarray) -> type_t:
    from .types import from_dtype

    return from_dtype(array.dtype)


def _plain(ins: Instruction) -> bool:
    """True for an instruction that gives one tensor."""
    return ins.op_.op_name != "@return" and not ins.shape().subs


def _compiled(program, target) -> Program:
    if not isinstance(program, Program):
        raise TypeError(f"verify: compiled_model is a program or a file, got {program!r}")
    if not program.is_compiled():
        program.compile(target)
    return program


# -- the reference in double -----------------------------------------------------------------------


def _as_double(value):
    array = np.asarray(value)
    return array.astype(np.float64) if _is_float(array.dtype) else value


def _is_float(dtype) -> bool:
    return _kind(np.zeros(0, dtype)) in FLOATS


def _to_double(program: Program) -> None:
    """Computes a program in double: parameters, literals and conversions, nothing quantised."""
    for module in program.get_modules():
        _without_rounding(module)
    for module in program.get_modules():
        for ins in module.instructions:
            if ins.is_param and ins.shape().type() in FLOATS and not ins.shape().subs:
                ins._shape = ins.shape().with_type(type_t.double_type)
            elif ins.literal is not None and ins.shape().type() in FLOATS:
                array = ins.literal.numpy().astype(np.float64)
                ins.literal = Argument.of(array, array_shape(array.shape, type_t.double_type))
                ins._shape = ins.literal.get_shape()
            elif ins.op_.op_name == "convert" and ins.op_.target_type in FLOATS:
                ins.op_ = dataclasses.replace(ins.op_, target_type=type_t.double_type)
    for module in reversed(program.get_modules()):
        refresh(module)
        module.touch()


def _without_rounding(module: Module) -> None:
    """Lets dequantise(quantise(x)) be x."""
    for ins in list(module.instructions):
        if ins.op_.op_name != "dequantizelinear":
            continue
        whole = ins.inputs_[0]
        if whole.op_.op_name == "quantizelinear":
            module.redirect(ins, whole.inputs_[0])
    dead_code_elimination(module)
