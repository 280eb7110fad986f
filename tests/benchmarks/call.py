"""What `program.run` costs beyond the bare jitted JAX call on the same arrays.

    python -m tests.benchmarks.call

Aim: at most 1.2 times the bare call plus 30 µs.
"""

from __future__ import annotations

import jax
import numpy as np

import migraphx

from .timing import in_turn, table

FACTOR, EXTRA = 1.2, 30e-6
WEIGHTS = 200
SIZE = 256  # elements: above 512 bytes, so that each weight is an argument


def one_node() -> migraphx.program:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[SIZE]))
    m.add_return([m.add_instruction(migraphx.op("relu"), [x])])
    return p


def many_weights() -> migraphx.program:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[SIZE]))
    random = np.random.default_rng(0)
    for k in range(WEIGHTS):
        weight = m.add_literal(random.standard_normal(SIZE, np.float32))
        x = m.add_instruction(migraphx.op("mul" if k % 2 else "add"), [x, weight])
    m.add_return([x])
    return p


PROGRAMS = {"1 node": one_node, f"{WEIGHTS} weights": many_weights}


def measure(name: str, rounds: int = 21) -> tuple:
    """A row: microseconds of the bare call and of `run`, what is allowed, and whether it is kept."""
    program = PROGRAMS[name]()
    program.compile(migraphx.get_target("cpu"))
    function, weights = program.to_jax()
    jitted = jax.jit(function)
    placed = jax.device_put(weights)
    x = np.random.default_rng(1).standard_normal(SIZE).astype(np.float32)
    np.testing.assert_allclose(
        np.asarray(program.run({"x": x})[0]), jitted(placed, {"x": x})[0], rtol=1e-6
    )
    times = in_turn(
        {
            "bare": lambda: jax.block_until_ready(jitted(placed, {"x": x})),
            "run": lambda: program.run({"x": x}),
        },
        rounds,
        repeat=200,
        pause=0,
    )
    allowed = FACTOR * times["bare"] + EXTRA
    fits = "yes" if times["run"] <= allowed else "no"
    return name, *(f"{t * 1e6:.0f}" for t in (times["bare"], times["run"], allowed)), fits


def main() -> None:
    head = ("program", "bare µs", "run µs", "allowed µs", "kept")
    print(table(head, [measure(name) for name in PROGRAMS]))


if __name__ == "__main__":
    main()
