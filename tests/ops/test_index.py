"""Operators that read or write at places given by other tensors."""

import numpy as np
import pytest
from checks import case, family, refused
from rows import run_op, single

import migraphx

ALL = "float half bf16 double fp8e4m3fn int8 uint8 int32 int64 uint64"
WRITE = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": np.minimum,
    "max": np.maximum,
}


def counted(start, limit, delta, max_output=2**31 - 1):
    """Python's range; for floats start + k * delta while below the limit."""
    start, limit, delta = (v[()] for v in (start, limit, delta))
    if np.asarray(start).dtype.kind in "iu":
        return np.array(list(range(int(start), int(limit), int(delta)))[:max_output])
    found = []
    while len(found) < max_output and (limit - (start + len(found) * delta)) * np.sign(delta) > 0:
        found.append(start + len(found) * delta)
    return np.array(found)


def scatternd(kind):
    """One update after the other."""

    def written(x, places, updates):
        out = np.array(x)
        for at in np.ndindex(places.shape[:-1]):
            place = tuple(int(p) for p in places[at])
            out[place] = WRITE[kind](out[place], updates[at])
        return out

    return written


def scattered(kind):
    def written(x, places, updates, axis=0, skip_out_of_bounds=False):
        out = np.array(x)
        for at in np.ndindex(places.shape):
            place = list(at)
            place[axis] = int(places[at])
            if skip_out_of_bounds and not -x.shape[axis] <= place[axis] < x.shape[axis]:
                continue
            out[tuple(place)] = WRITE[kind](out[tuple(place)], updates[at])
        return out

    return written


def scalars(kind, *values):
    return [(f"{name}:{kind}[]", v) for name, v in zip(("a", "b", "d"), values, strict=True)]


RANGE = [
    ("int64", 1, 10, 2), ("int32", 10, 0, -3), ("int64", 3, 3, 1), ("uint8", 250, 255, 2),
    ("int16", 5, 1, 1), ("float", 0.0, 1.0, 0.125), ("half", 2.0, -1.0, -0.5), ("double", 1, 2, 3),
]  # fmt: skip
TWICE = [[0, 1], [2, 2], [0, 1], [-1, -3]]

CASES = [
    *(case("dynamic_range", *scalars(*row), reference=counted, symbolic=False, grad=False)
      for row in RANGE),
    case("dynamic_range", *scalars("int64", 0, 10, 1), max_output=4, reference=counted,
         symbolic=False),
    case("dynamic_range", ("a:int32[1]", [0]), ("b:int32[1]", [5]), ("d:int32[1]", [1]),
         reference=lambda a, b, d: np.arange(5), symbolic=False),
    *(case(f"scatternd_{k}", "x[3,4,2]", ("i:int64[4,2]", TWICE), "u[4,2]",
           reference=scatternd(k), types=ALL, grad=False) for k in WRITE),
    *(case(f"scatternd_{k}", "x[5]", ("i:int32[3,1]", [[4], [0], [-5]]), "u[3]",
           reference=scatternd(k), grad=False) for k in WRITE),
    case("scatternd_mul", "x[4,3]", ("i:int64[2,2,1]", [[[0], [2]], [[2], [-4]]]), "u[2,2,3]",
         reference=scatternd("mul"), types=ALL, grad=False),
    case("scatternd_mul", "x[3,4]", ("i:int64[0,2]", np.zeros((0, 2))), "u[0]",
         reference=lambda x, *_: x),
    case("scatternd_mul", "x[n,3]", ("i:int8[m,1]", 1), "u[m,3]", reference=scatternd("mul"),
         at={"n": 5}, grad=False),
    *(case(f"scatter_{k}", "x[3,4]", ("i:int64[2,4]", [[0, 2, 2, 1], [0, -1, 2, -3]]), "u[2,4]",
           reference=scattered(k), types=ALL, grad=False) for k in WRITE),
    *(case(f"scatter_{k}", "x[3,4]", ("i:int32[3,2]", [[3, 9], [0, -5], [1, 1]]), "u[3,2]", axis=-1,
           skip_out_of_bounds=True, reference=scattered(k), grad=False, skip="layouts")
      for k in WRITE),
]  # fmt: skip

test_family = family(CASES)

ND = ["x[3,4]", "i:int64[2,2]", "u[2]"]
test_refused = refused(
    [
        ("dynamic_range", {}, ["a:int64[]", "b:int64[]"], "Wrong number of arguments"),
        ("dynamic_range", {}, ["a:int64[]", "b:int64[]", "d:int32[]"], "Types do not match"),
        ("dynamic_range", {}, ["a:int64[2]", "b:int64[]", "d:int64[]"], "single static numbers"),
        ("scatternd_mul", {}, ["x[3,4]", "i[2,2]", "u[2]"], "must be whole numbers"),
        ("scatternd_mul", {}, ["x[3,4]", "i:int64[2,3]", "u[2]"], "too large for tensor of rank 2"),
        ("scatternd_mul", {}, ["x[3,4]", "i:int64[2,1]", "u[2]"], "ranks of inputs don't match"),
        ("scatternd_mul", {}, ["x[3,4]", "i:int64[2,1]", "u[2,3]"], "incorrect update shape"),
        ("scatternd_mul", {}, ["x[3,4]", "i:int64[2,2]", "u:int32[2]"], "updates are int32_type"),
        ("scatter_add", {"axis": 2}, ["x[3,4]", "i:int64[3,4]", "u[3,4]"], "value out of range"),
        ("scatter_add", {}, ["x[3,4]", "i:int64[3]", "u[3]"], "need the same dims and the rank"),
        ("gather", {}, ["x[3,4]", "i[2]"], "indices must be whole numbers"),
        ("gathernd", {"batch_dims": 2}, ["x[3,4]", "i:int64[3,1]"], "is not below the ranks"),
    ]
)

# What lies outside of {3, 4}, along the first axis: the operator, its inputs and attributes.
X, FAR = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([[3], [-4]])
OUTSIDE = {
    "gather": ((X, FAR[:, 0]), X[[2, 0]]),
    "gathernd": ((X, FAR), X[[2, 0]]),
    "scatternd_mul": ((X, FAR, X[:2]), X),
    "scatternd_none": ((X, FAR, X[:2]), X),
    "scatter_add": ((X, FAR.repeat(4, 1), X[:2]), X),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_places_outside_are_an_error_where_they_are_known(name):
    (x, places, *rest), _ = OUTSIDE[name]
    program = migraphx.program()
    main = program.get_main_module()
    inputs = [main.add_parameter("x", migraphx.shape(type="float", lens=x.shape))]
    inputs += [main.add_literal(v) for v in (places, *rest)]
    main.add_return([main.add_instruction(migraphx.op(name), inputs)])
    with pytest.raises(migraphx.Error, match="Out of bounds index detected: 3 on an axis of 3"):
        program.compile(migraphx.get_target("ref"))


@pytest.mark.parametrize("name", OUTSIDE)
def test_places_outside_that_the_run_brings(name):
    """Compiled code cannot raise: the nearest element is read, an update is left out."""
    arrays, wanted = OUTSIDE[name]
    np.testing.assert_array_equal(run_op(migraphx.op(name), arrays)[0], wanted)


def test_range_whose_numbers_the_run_brings():
    shape = migraphx.shape(type="int64", lens=[1], strides=[0])
    program, _ = single(migraphx.op("dynamic_range"), [shape] * 3)
    program.compile(migraphx.get_target("ref"))

    def run(*values):
        return program.run({f"x{k}": np.array([v]) for k, v in enumerate(values)})[0].tolist()

    assert run(0, 5, 2) == [0, 2, 4]
    assert run(4, 0, -1) == [4, 3, 2, 1]
    with pytest.raises(migraphx.Error, match="delta is 0"):
        run(0, 5, 0)
