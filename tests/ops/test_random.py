"""Random operators: numbers as C++ makes them, distributions, drawing by probabilities."""

import numpy as np
import pytest
from checks import case, family, refused
from rows import numbers, run_op, single

import migraphx
from migraphx.types import as_type, dtype_of

APART = ("random_seed",)
FLOATS = "float half bf16 double"
SEED = migraphx.shape(type="uint64", lens=[1], strides=[0])


class Twister:
    """std::mt19937, written after Matsumoto and Nishimura's paper."""

    def __init__(self, seed: int):
        self.state = [seed & 0xFFFFFFFF]
        for k in range(1, 624):
            last = self.state[-1]
            self.state.append((1812433253 * (last ^ last >> 30) + k) & 0xFFFFFFFF)
        self.at = 624

    def word(self) -> int:
        if self.at == 624:
            for k in range(624):
                y = self.state[k] & 0x80000000 | self.state[(k + 1) % 624] & 0x7FFFFFFF
                odd = 0x9908B0DF if y & 1 else 0
                self.state[k] = self.state[(k + 397) % 624] ^ y >> 1 ^ odd
            self.at = 0
        y = self.state[self.at]
        self.at += 1
        y ^= y >> 11
        y ^= y << 7 & 0x9D2C5680
        y ^= y << 15 & 0xEFC60000
        return y ^ y >> 18

    def whole(self, most: int) -> int:
        """libstdc++'s uniform_int_distribution from 0 to `most` = 2**bits - 1."""
        if most < 2**32:
            return self.word() * (most + 1) >> 32
        while True:
            found = (self.whole(most >> 32) << 32) + self.word()
            if found <= most:
                return found

    def fraction(self) -> float:
        """libstdc++'s uniform_real_distribution<double>: the first of two words counts least."""
        low = self.word()
        return min((low + self.word() * 2.0**32) / 2.0**64, np.nextafter(1, 0))


def uniform(seed, like):
    twister, kind = Twister(int(seed.reshape(-1)[0])), like.dtype
    if kind.kind == "f":
        values = [twister.fraction() for _ in range(like.size)]
    else:
        most = 1 if kind.kind == "b" else int(np.iinfo(kind).max)
        values = [twister.whole(most) for _ in range(like.size)]
    return np.array(values, kind).reshape(like.shape)


def random_state(seed, like, distribution="uniform", first=0.0, second=1.0):
    """NumPy's legacy generator, whose numbers stay the same by promise."""
    state = np.random.RandomState(int(seed))
    if distribution == "normal":
        return state.normal(np.float32(first), np.float32(second), like.shape)
    return state.uniform(np.float32(first), np.float32(second), like.shape)


def drawn(sums, given, **_):
    """The first class whose running sum exceeds the number times the last sum."""
    out = np.zeros((len(sums), given.shape[1]))
    for b, s in np.ndindex(out.shape):
        limit = given[b, s] * sums[b, -1]
        out[b, s] = next(k for k, v in enumerate(sums[b]) if v > limit)
    return out


def running_sums(rng, lens):
    return np.cumsum(rng.uniform(0.1, 1, lens), -1)


SUMS = [[0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 2.0, 4.0]]
UNIT = [[0.0, 0.24, 0.25, 0.99, 0.5], [0.0, 0.4, 0.5, 0.75, 0.01]]
CASES = [
    case("random_uniform", ("s:uint64[]", 5489), "x[20,40]", reference=uniform, symbolic=False,
         types="float half double int8 uint8 int16 int32 uint32 int64 uint64 bool", skip="empty"),
    case("random_uniform", ("s:int32[]", 0), "x[n,3]", reference=uniform, types="float int64"),
    case("random_uniform", ("s:uint64[1]", [2**40 + 7]), "x[]", reference=uniform,
         types="double uint64"),
    *(case("multinomial", ("s[2,4]", SUMS), ("r[2,5]", UNIT), dtype=dtype, reference=drawn,
           types="float double", symbolic=False)
      for dtype in ("int32", "int64", "float", "uint8")),
    case("multinomial", ("s[n,5]", running_sums), ("r[n,m]", lambda rng, lens: rng.random(lens)),
         reference=drawn),
    case("multinomial", ("s:half[2,4]", SUMS), ("r:float[2,5]", UNIT), reference=drawn,
         symbolic=False),
]  # fmt: skip

test_family = family(CASES)

# A constant seed and a seed that the run brings go different ways: the rows' checks compare them.
SHAPE_ONLY = [
    case("onnx::random", ("s:uint64[]", 7), "x[n,3]", types=FLOATS, skip="layouts", grad=False),
    case("onnx::random", ("s:uint64[]", 7), "x[n,3]", distribution="normal", types=FLOATS,
         skip="layouts"),
]  # fmt: skip
test_shape_only = family(SHAPE_ONLY)

test_refused = refused(
    [
        ("random_seed", {}, ["x[2]"], "Wrong number of arguments"),
        ("random_seed", {"dtype": "number"}, [], "unknown type"),
        ("random_uniform", {}, ["s:uint64[]"], "Wrong number of arguments"),
        ("onnx::random", {"distribution": "poisson"}, ["s:uint64[]", "x[2]"], "is neither"),
        ("multinomial", {}, ["s[4]", "r[2,5]"], "Only 2d supported"),
        ("multinomial", {}, ["s[2,4]", "r[5]"], "need 2 dimensions"),
        ("multinomial", {"dtype": "bool"}, ["s[2,4]", "r[2,5]"], "holds no class numbers"),
    ]
)


def test_twister_is_the_standard_one():
    """C++ says which number the 10000th of the default seed is."""
    twister = Twister(5489)
    assert [twister.word() for _ in range(10000)][-1] == 4123659995


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
@pytest.mark.parametrize("kind", FLOATS.split())
def test_constant_seed_gives_numpys_numbers(distribution, kind):
    program = migraphx.program()
    main = program.get_main_module()
    seed = main.add_literal(migraphx.argument.of(np.array([42], np.uint64), SEED))
    like = main.add_parameter("x", migraphx.shape(type=kind, lens=[3, 4]))
    attributes = {"distribution": distribution, "first": -1.5, "second": 2.5}
    op = migraphx.op("onnx::random", **attributes)
    main.add_return([main.add_instruction(op, [seed, like])])
    program.compile(migraphx.get_target("ref"))
    x = numbers((3, 4), as_type(kind))
    got = np.asarray(program.run({"x": x})[0]).astype(np.float64)
    wanted = random_state(42, x, **attributes)
    assert abs(got - wanted).max() < {"double": 1e-12, "float": 1e-6}.get(kind, 4e-2)


@pytest.mark.parametrize("kind", FLOATS.split())
def test_distribution_for_a_seed_that_the_run_brings(kind):
    """Mean, deviation and ends of many numbers; another seed, other numbers."""
    like = np.zeros((200, 100), dtype_of(as_type(kind)))

    def values(seed, **attributes):
        op = migraphx.op("onnx::random", **attributes)
        return run_op(op, [np.array(seed, np.uint64), like])[0].astype(np.float64)

    flat = values(3, first=2.0, second=6.0)
    assert 2 <= flat.min() < 2.01
    assert 5.95 < flat.max() <= 6
    assert abs(flat.mean() - 4) < 0.05
    bell = values(3, distribution="normal", first=1.0, second=0.5)
    assert abs(bell.mean() - 1) < 0.02
    assert abs(bell.std() - 0.5) < 0.02
    np.testing.assert_array_equal(flat, values(3, first=2.0, second=6.0))
    assert (flat != values(4, first=2.0, second=6.0)).mean() > 0.9
    assert (flat != values(3 + 2**32, first=2.0, second=6.0)).mean() > 0.9


@pytest.mark.parametrize("kind", ["uint64", "int64", "int32", "uint8", "float"])
def test_random_seed_differs_at_every_run(kind):
    program, ins = single(migraphx.op("random_seed", dtype=kind), [])
    assert ins.shape().is_rank0()
    assert ins.shape().type_string() == f"{kind}_type"
    assert ins.eval() is None
    program.compile(migraphx.get_target("ref"))
    seeds = [np.asarray(program.run({})[0]).reshape(-1)[0] for _ in range(20)]
    assert len(set(seeds)) > 15
    assert seeds[0].dtype == dtype_of(as_type(kind))
