"""What each operator costs when it is compiled and run alone.

XLA fuses operators, so the parts of a compiled program have no times of their own. Here each
instruction becomes a program by itself, which is run on the very values it gets in the model; XLA
counts its work. Equal instructions on equal sizes are measured once.
"""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict

import numpy as np

from ..argument import Argument
from ..dims import Dim
from ..errors import Error
from ..graph import Instruction
from ..passes import prepare
from ..passes.dead_code import dead_code_elimination
from ..printing import op_text, output_names
from ..program import Program
from ..shape import Shape
from ..types import type_t
from .timing import run_once
from .xla import work

SMALL = 512  # bytes; smaller literals stay literals, which operators may need while tracing
REPEATS, BUDGET = 20, 0.1  # runs of each operator, and seconds after which fewer will do


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one instruction costs."""

    name: str  # in the listing of the program
    operator: str
    text: str
    shape: str
    seconds: float
    flops: float
    moved: float


def measure(program: Program, target, inputs: dict, options: dict, shown=None) -> list:
    """The costs of the instructions of a compiled program's main module, in order."""
    prepared = prepare(program, target.name(), options)
    main = prepared.main
    names = output_names(prepared.get_modules())
    body = [i for i in main.instructions if not i.name().startswith("@")]
    last_use = {s: ins for ins in main.instructions for s in _sources(ins)}
    values = {p: inputs[p.op_.parameter] for p in main.parameters()}
    values |= {i: i.literal for i in main.instructions if i.literal is not None}
    symbols = _symbols(values)
    made, costs = {}, []
    floor = _floor(target, options)
    for number, ins in enumerate(body):
        if shown is not None:
            shown.update(f"measuring operator {number + 1} of {len(body)}: {ins.name()}")
        alone, given, key = _alone(ins, values, symbols, names)
        if key is None or key not in made:
            alone.compile(target, **options)
            result, seconds = _timed(alone, given)
            found = (alone, max(0.0, seconds - floor), *work(alone))
            made[key if key is not None else ins] = found
        else:
            found = made[key]
            result = run_once(found[0], given)
        values[ins] = result[0] if len(result) == 1 else Argument.tuple_of(result)
        costs.append(Cost(names[ins], ins.name(), op_text(ins.op_), str(ins.shape()), *found[1:]))
        for source in _sources(ins):
            if last_use[source] is ins:
                values.pop(source, None)
    return costs


def by_operator(costs: list) -> list:
    """Costs added up by operator, dearest first: (operator, count, seconds, flops, moved)."""
    sums = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for cost in costs:
        for k, value in enumerate((1, cost.seconds, cost.flops, cost.moved)):
            sums[cost.operator][k] += value
    return sorted(((name, *s) for name, s in sums.items()), key=lambda row: -row[2])


def _sources(ins: Instruction) -> list:
    """What an instruction reads, also inside the modules it runs, each once."""
    captured = [s for m in ins.mods for s in m.captured()]
    return list(dict.fromkeys([*ins.inputs_, *captured]))


def _symbols(values: dict) -> dict:
    """The values of the symbols in the shapes of the parameters."""
    symbols: dict[str, int] = {}
    for ins, value in values.items():
        if ins.shape().subs or not ins.shape().dynamic():
            continue
        for dim, size in zip(ins.shape().dims or (), value.get_shape().lens()):
            if isinstance(dim, Dim) and dim.is_symbolic():
                symbols.update(dim.expr.solve(size, symbols) or {})
    return symbols


def _bound(op, symbols: dict):
    """The operator with symbolic sizes in its attributes replaced by numbers."""
    changes = {}
    for key in op.kinds:
        value = getattr(op, key)
        if isinstance(value, tuple) and any(isinstance(v, Dim) and v.is_symbolic() for v in value):
            changes[key] = tuple(
                v.expr.evaluate(symbols) if isinstance(v, Dim) and v.is_symbolic() else v
                for v in value
            )
    return dataclasses.replace(op, **changes) if changes else op


# -- one instruction as a program ------------------------------------------------------------------


def _alone(ins: Instruction, values: dict, symbols: dict, names: dict):
    """The program of one instruction, its inputs by name, and what equal ones have in common."""
    if ins.mods:
        return (*_alone_with_modules(ins, values, names), None)
    program, given = Program(), {}
    op = _bound(ins.op_, symbols)
    inputs, key = [], [op, str(ins.shape())]
    places: dict = {}
    for source in ins.inputs_:
        if source not in places:
            places[source] = _place(program, source, values[source], len(places), given, key)
        inputs.append(places[source])
        key.append(inputs.index(places[source]))
    copy = Instruction(op, inputs, [], ins.shape())
    program.main._place(copy, len(program.main.instructions))
    program.main.add_return([copy])
    return program, given, tuple(map(repr, key))


def _place(program, source, value, number: int, given: dict, key: list) -> Instruction:
    """The literal or parameter that stands for `source`."""
    literal = source.literal
    if literal is not None and literal.get_shape().bytes() < SMALL:
        key.append(np.ascontiguousarray(literal.numpy()).tobytes())
        key.append(literal.get_shape())
        return program.main.literal(literal, len(program.main.instructions))
    if not isinstance(value, Argument):
        raise Error(f"{source.name()} gives a {type(value).__name__}, which is not measured")
    shape = _shape_of(source.shape(), value)
    key.append(shape)
    given[f"x{number}"] = value
    return program.main.add_parameter(f"x{number}", shape)


def _shape_of(shape: Shape, value: Argument) -> Shape:
    """The static shape of a value, of the rank that the program says."""
    if not shape.dynamic() and shape.dims is not None:
        return shape
    return value.get_shape()


def _alone_with_modules(ins: Instruction, values: dict, names: dict):
    """As `_alone`, for an instruction that runs modules: a copy of the program, cut around it."""
    place = ins.module.index(ins)
    sources = [s for s in _sources(ins) if s.literal is None]
    places = {s: s.module.index(s) for s in sources}
    program = ins.module.program.clone()
    main = program.main
    copy = main.instructions[place]
    copies = {s: main.instructions[k] for s, k in places.items()}
    main.remove_all(main.instructions[place + 1 :])
    given = {}
    for number, source in enumerate(sources):
        name = f"value {number} of {names[ins]}"
        param = main.add_parameter(name, _shape_of(source.shape(), values[source]))
        main.replace_instruction(copies[source], param)
        given[name] = values[source]
    main.add_return([copy])
    dead_code_elimination(main)
    main.remove_all([p for p in main.parameters() if p.op_.parameter not in given])
    return program, given


# -- time ------------------------------------------------------------------------------------------


def _timed(program: Program, given: dict) -> tuple:
    """The results, and the shortest time of a run."""
    results = program.run(given)
    best, start = float("inf"), time.perf_counter()
    for _ in range(REPEATS):
        begin = time.perf_counter()
        program.run(given)
        now = time.perf_counter()
        best = min(best, now - begin)
        if now - start > BUDGET:
            break
    return results, best


def _floor(target, options: dict) -> float:
    """What a run costs that computes nothing worth mentioning."""
    program = Program()
    x = program.main.add_parameter("x", Shape.make(type_t.float_type, (1,)))
    program.main.add_return([program.main.add("neg", x)])
    program.compile(target, **options)
    return _timed(program, {"x": np.ones(1, np.float32)})[1]
