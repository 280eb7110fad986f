"""Random numbers of ONNX.

With a seed the numbers are those of NumPy's `RandomState`, as in ONNX's reference evaluator, and
the same at every run. Without one every run draws anew.
"""

from __future__ import annotations

import numpy as np

from migraphx.dims import fixed
from migraphx.errors import Error
from migraphx.types import FLOATS, dtype_of, type_t

from .registry import onnx_op
from .tensors import element_type


def drawn(m, distribution: str, dims, kind, seed, first: float, second: float):
    """Numbers of a distribution; of fixed sizes and with a seed they are a literal."""
    if kind not in FLOATS:
        raise Error(f"{kind.name} is no type of random numbers; give a float type")
    like = m.broadcast(m.lit(np.zeros((), dtype_of(kind))), dims)
    result = m.add(
        "onnx::random", seed_of(m, seed), like, distribution=distribution, first=first,
        second=second,
    )  # fmt: skip
    if seed is None or not all(fixed(d) for d in dims):
        return result
    return m.lit(result.eval())


def seed_of(m, seed):
    """A literal, or a number that differs at each run."""
    if seed is None:
        return m.add("random_seed")
    return m.lit(np.array(int(seed) % 2**32, np.uint64))


def kind_of(m, dtype, x=None) -> type_t:
    """The type of the attribute `dtype`, else that of `x`."""
    return m.type(x) if dtype is None else element_type(dtype)


@onnx_op("RandomNormal")
def random_normal(m, *, shape, dtype=1, mean=0.0, scale=1.0, seed=None):
    return drawn(m, "normal", tuple(shape), kind_of(m, dtype), seed, mean, scale)


@onnx_op("RandomNormalLike")
def random_normal_like(m, x, *, dtype=None, mean=0.0, scale=1.0, seed=None):
    return drawn(m, "normal", m.dims(x), kind_of(m, dtype, x), seed, mean, scale)


@onnx_op("RandomUniform")
def random_uniform(m, *, shape, dtype=1, low=0.0, high=1.0, seed=None):
    return drawn(m, "uniform", tuple(shape), kind_of(m, dtype), seed, low, high)


@onnx_op("RandomUniformLike")
def random_uniform_like(m, x, *, dtype=None, low=0.0, high=1.0, seed=None):
    return drawn(m, "uniform", m.dims(x), kind_of(m, dtype, x), seed, low, high)


@onnx_op("Bernoulli")
def bernoulli(m, x, *, dtype=None, seed=None):
    """1 with the probability x, by one uniform number each; the other half is turned round.

    A probability above one half compares from the other end, as NumPy's binomial does.
    """
    kind = kind_of(m, dtype, x)
    chance = m.convert(x, type_t.double_type)
    numbers = drawn(m, "uniform", m.dims(x), type_t.double_type, seed, 0.0, 1.0)
    rare = m.common("greater", numbers, m.common("sub", m.lit(np.float64(1)), chance))
    common = m.add("not", m.common("greater", numbers, chance))
    half = m.common("greater", chance, m.lit(np.float64(0.5)))
    picked = m.add("where", m.convert(half, type_t.bool_type), common, rare)
    return m.convert(m.convert(picked, type_t.bool_type), kind)


@onnx_op("Multinomial")
def multinomial(m, x, *, dtype=6, sample_size=1, seed=None):
    """Class numbers drawn by unnormalised log-probabilities {batch, classes}."""
    if m.rank(x) != 2:
        raise Error(f"the log-probabilities need 2 dimensions, got {m.rank(x)}")
    kind = element_type(dtype)
    if kind not in (type_t.int32_type, type_t.int64_type):
        raise Error(f"dtype {kind.name} is neither int32 nor int64")
    wide = type_t.double_type if m.type(x) == type_t.double_type else type_t.float_type
    x = m.convert(x, wide)
    largest = m.add("reduce_max", x, axes=[1])
    sums = m.add("prefix_scan_sum", m.add("exp", m.common("sub", x, largest)), axis=1)
    like = m.broadcast(m.lit(np.zeros((), dtype_of(wide))), (m.dims(x)[0], sample_size))
    numbers = m.add("random_uniform", seed_of(m, seed), like)
    return m.add("multinomial", sums, numbers, dtype=kind)
