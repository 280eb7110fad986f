"""``migraphx-driver run``: parse, compile, run and say how long each took."""

from __future__ import annotations

import statistics
import time
import zlib
from dataclasses import dataclass, field

from .. import api
from ..argument import fill_argument, generate_argument
from ..errors import Error
from ..program import Program
from ..target import Target, device_of, get_target
from .options import UsageError, input_dims


@dataclass
class Times:
    """Seconds that each stage took."""

    start: float = 0.0
    parse: float = 0.0
    compile: float = 0.0
    runs: list = field(default_factory=list)

    def print(self, note: str = "") -> None:
        """Writes the table of times, with `note` in its heading."""
        print(f"times{note}")
        print(f"  start JAX  {milliseconds(self.start)}")
        print(f"  parse      {milliseconds(self.parse)}")
        print(f"  compile    {milliseconds(self.compile)}")
        print(f"  first run  {milliseconds(self.runs[0])}")
        if len(self.runs) > 1:
            later = statistics.median(self.runs[1:])
            print(f"  run        {milliseconds(later)}  (median of {len(self.runs) - 1} more)")


def milliseconds(seconds: float) -> str:
    """A time for a table."""
    return f"{seconds * 1e3:10.2f} ms"


def run(options) -> None:
    """The command: the demo, or a file on generated inputs."""
    if options.demo:
        from .demo import demo

        if options.file or options.input_dim or options.fill0 or options.fill1:
            raise UsageError("run --demo brings its own model and inputs; leave out FILE and these")
        demo(options)
        return
    sizes = input_dims(options.input_dim)
    if not options.file:
        raise UsageError("run: give a FILE.onnx, or --demo; see migraphx-driver run --help")
    run_file(options, sizes)


def run_file(options, sizes: dict) -> None:
    """Runs the model of ``options.file`` on generated inputs; `sizes` are those given by name."""
    times = Times()
    target = start(options, times)
    batch = options.batch or 1
    program = parse(
        options.file, target, options, times, default_dim_value=batch, map_input_dims=sizes
    )
    unknown = [n for n in sizes if n not in program.get_parameter_names()]
    if unknown:
        raise UsageError(f"--input-dim: {no_input(unknown[0], program)}")
    inputs = generated(program, options)
    results = timed_runs(program, inputs, options.iterations, times)
    print(options.file)
    for name, shape in program.get_parameter_shapes().items():
        print(f"  input  {name}: {shape}")
    for number, result in enumerate(results):
        print(f"  output {number}: {result.get_shape()}")
    times.print()


def start(options, times: Times) -> Target:
    """The target chosen, or the GPU if there is one; loads JAX and says where things will run."""
    begin = time.perf_counter()
    target = get_target(options.target) if options.target else _default_target()
    device = device_of(target)
    times.start = time.perf_counter() - begin
    print(f"target {target.name()}: {device.device_kind} ({device})")
    return target


def _default_target() -> Target:
    try:
        return get_target("gpu")
    except Error:
        return get_target("cpu")


def parse(file, target: Target, options, times: Times, **sizes) -> Program:
    """The compiled program of an ONNX file."""
    begin = time.perf_counter()
    program = api.parse_onnx(file, skip_unknown_operators=options.skip_unknown_operators, **sizes)
    parsed = time.perf_counter()
    program.compile(target, fast_math=not options.disable_fast_math)
    times.parse, times.compile = parsed - begin, time.perf_counter() - parsed
    return program


def generated(program: Program, options) -> dict:
    """Random inputs, with a seed from each name, or filled with 0 or 1 where asked."""
    fills = dict.fromkeys(options.fill0, 0) | dict.fromkeys(options.fill1, 1)
    shapes = program.get_parameter_shapes()
    for name in fills:
        if name not in shapes:
            raise UsageError(f"--fill{fills[name]}: {no_input(name, program)}")
    return {
        name: fill_argument(shape, fills[name])
        if name in fills
        else generate_argument(shape, zlib.crc32(name.encode()))
        for name, shape in shapes.items()
    }


def no_input(name: str, program: Program) -> str:
    """What to say of a name that the model does not have."""
    return f"no input {name!r}; the model has {', '.join(program.get_parameter_names()) or 'none'}"


def timed_runs(program: Program, inputs: dict, count: int, times: Times) -> list:
    """Runs `count` times, each until its results are on the host; the last results."""
    results = []
    for _ in range(count):
        begin = time.perf_counter()
        results = program.run(inputs)
        for result in results:
            wait(result)
        times.runs.append(time.perf_counter() - begin)
    return results


def wait(result) -> None:
    """Waits for a result, which may be a tuple."""
    if result.get_shape().type_string() != "tuple_type":
        result.numpy()
    for part in result.parts:
        wait(part)
