"""What compile, run, perf, time and verify share: target, inputs, quantising, compiling."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ..errors import Error
from ..program import Program
from ..target import Target, device_of, get_target
from . import inputs as inputs_
from . import model
from .console import log, milliseconds, progress, table

__all__ = ["Ready", "Times", "choose_target", "compile_program", "prepare", "quantize"]

QUANTIZE = ("int8", "fp8", "int4_weights", "fp16", "bf16")  # in the order in which they are done
CALIBRATED = ("int8", "fp8")


@dataclass
class Times:
    """Seconds that each stage took, and where."""

    place: str = ""
    start: float = 0.0
    parse: float = 0.0
    quantize: float = 0.0
    compile: float = 0.0
    runs: list = field(default_factory=list)

    def rows(self) -> list:
        """The stages that took time, as rows of a table."""
        found = [("start JAX", self.start), ("parse", self.parse), ("quantise", self.quantize),
                 ("compile", self.compile)]  # fmt: skip
        rows = [(name, milliseconds(t), "") for name, t in found if t]
        if self.runs:
            rows.append(("first run", milliseconds(self.runs[0]), ""))
        if len(self.runs) > 1:
            later = sorted(self.runs[1:])
            note = f"(median of {len(later)} more)"
            rows.append(("run", milliseconds(later[len(later) // 2]), note))
        return rows

    def print(self, note: str = "") -> None:
        """Writes the table of times, with `note` in its heading."""
        table(f"times on {self.place}{note}", ("", ">", ""), self.rows())


@dataclass
class Ready:
    """A compiled program with inputs for it."""

    program: Program
    original: Program  # before it was quantised
    target: Target
    inputs: dict
    times: Times


def prepare(options) -> Ready:
    """Reads, quantises and compiles the model that the options name."""
    times = Times()
    begin = time.perf_counter()
    program = model.read(options)
    times.parse = time.perf_counter() - begin
    inputs = inputs_.inputs_of(program, options)
    begin = time.perf_counter()
    target = choose_target(options, program)
    times.place = place(target)
    times.start = time.perf_counter() - begin
    original = program.clone()
    quantize(program, target, inputs, options, times)
    compile_program(program, target, options, times)
    return Ready(program, original, target, inputs, times)


def choose_target(options, program: Program | None = None) -> Target:
    """The target asked for, that of a compiled program, or the GPU if JAX finds one."""
    if options.target:
        return get_target(options.target)
    if program is not None and program.is_compiled():
        return program._target
    try:
        return get_target("gpu")
    except Error:
        return get_target("cpu")


def place(target: Target) -> str:
    """The target and the device it means, in words."""
    device = device_of(target)
    return f"target {target.name()}: {device.device_kind} ({device})"


def asked_quantization(options) -> list:
    """The kinds of quantisation that the options ask for."""
    return [kind for kind in QUANTIZE if getattr(options, kind)]


def quantize(program: Program, target: Target, inputs: dict, options, times: Times) -> None:
    """Quantises a program in place; int8 and fp8 are calibrated with the inputs."""
    import migraphx

    kinds = asked_quantization(options)
    if kinds and program.is_compiled():
        log.warn(f"the program is compiled already; --{kinds[0].replace('_', '-')} changes nothing")
        return
    begin = time.perf_counter()
    for kind in kinds:
        function = getattr(migraphx, f"quantize_{kind}", None)
        if function is None:
            raise Error(f"--{kind.replace('_', '-')}: this version cannot quantise to it")
        with progress(f"quantising to {kind}"):
            if kind in CALIBRATED:
                function(program, target, [inputs])
            else:
                function(program)
    times.quantize = time.perf_counter() - begin if kinds else 0.0


def compile_program(program: Program, target: Target, options, times: Times) -> None:
    """Compiles a program; one that was saved compiled keeps its options."""
    chosen = {
        "offload_copy": True,  # what --enable-offload-copy asks for is always so
        "fast_math": not options.disable_fast_math,
        "exhaustive_tune": options.exhaustive_tune,
    }
    if program.is_compiled() and not (options.disable_fast_math or options.exhaustive_tune):
        chosen = dict(program._options)
    begin = time.perf_counter()
    with progress("compiling"):
        program.compile(target, **chosen)
    times.compile = time.perf_counter() - begin
