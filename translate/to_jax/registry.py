"""How a lowering is declared, and what it may ask while it runs.

A lowering is a function `(op, xp, *arrays)` that gives one array or a tuple of them. `xp` is NumPy
when every input is *known* (a NumPy array: its value does not depend on the run) and `jax.numpy`
otherwise. Rank-0 values (lens {1}, strides {0} in the graph) are arrays of rank 0.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

import jax
import numpy as np

from migraphx.ops.base import only_one

LOWER: dict[str, Lowering] = {}


@dataclass(frozen=True)
class Lowering:
    """A registered lowering.

    `numpy`: may be called with `xp=numpy`, so that its result on known values is known.
    `host`: runs on the host between jitted stages, on concrete NumPy values.
    `bodies`: takes `bodies=`, the modules of the instruction as functions.
    `shape`: takes `shape=`, the shape of the instruction.
    `each_run`: gives another value at each run, so it is never computed while tracing.
    """

    function: object
    numpy: bool = True
    host: bool = False
    bodies: bool = False
    each_run: bool = False
    shape: bool = False


def lower(*names: str, numpy=True, host=False, bodies=False, each_run=False, shape=False):
    """Registers the decorated function as the lowering of the operators `names`."""

    def register(function):
        for name in names:
            before = LOWER.get(name)
            only_one(f"lowering of {name}", before and before.function, function)
            LOWER[name] = Lowering(function, numpy, host, bodies, each_run, shape)
        return function

    return register


@dataclass
class Context:
    """What holds for the whole trace: device kind, options, values of symbols.

    `running`: nothing is traced; the host computes an operator between two stages.
    """

    platform: str = "cpu"
    fast_math: bool = True
    tuned: dict = field(default_factory=dict)
    symbols: dict = field(default_factory=dict)
    running: bool = False

    @property
    def precision(self):
        """The `precision` argument for matrix products and convolutions."""
        return None if self.fast_math else jax.lax.Precision.HIGHEST


_local = threading.local()


def context() -> Context:
    """The context of the trace that runs in this thread."""
    return getattr(_local, "context", None) or _DEFAULT


_DEFAULT = Context()


@contextmanager
def using(ctx: Context):
    """Makes `ctx` the context inside a `with`."""
    before = getattr(_local, "context", None)
    _local.context = ctx
    try:
        yield ctx
    finally:
        _local.context = before


class NeedsValue(Exception):
    """A lowering needs a number that is still traced: the program is to be cut here."""

    def __init__(self, value):
        super().__init__("a value is needed while tracing")
        self.value = value


class NeedsHost(Exception):
    """An operator runs on the host, and something it reads is still traced."""


def is_known(x) -> bool:
    """True if the value is there while tracing."""
    if isinstance(x, (tuple, list)):
        return all(map(is_known, x))
    return not isinstance(x, jax.core.Tracer) and not isinstance(x, jax.Array)


def known(x) -> np.ndarray:
    """`x` as a NumPy array; if it is only traced, the program is cut into stages here."""
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, jax.core.Tracer):
        raise NeedsValue(x)
    return np.asarray(x)


def known_ints(x) -> list:
    """`known` as a flat list of Python ints."""
    return [int(v) if not hasattr(v, "expr") else v for v in known(x).reshape(-1)]
