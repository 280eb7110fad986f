"""Sequences and optionals: Python lists and values in the place of tensors.

A program of several such operators has one tensor as its result, so each is read by another.
"""

import numpy as np
import pytest
from checks import case, family, refused
from rows import close, numbers, shape_of

import migraphx
from migraphx.types import as_type

APART = (
    "onnx::sequence_empty", "onnx::sequence_construct", "onnx::sequence_insert",
    "onnx::sequence_erase", "onnx::sequence_at", "onnx::sequence_part", "onnx::sequence_length",
    "onnx::split_to_sequence", "onnx::concat_from_sequence", "onnx::optional",
    "onnx::optional_has_element", "onnx::optional_get_element",
)  # fmt: skip
TYPES = ("float", "half", "bf16", "int64", "int8", "bool")


def ran(build, *arrays, literal=()):
    """The results of the instructions that `build(add, *inputs)` gives."""
    program = migraphx.program()
    main = program.get_main_module()
    inputs = [
        main.add_literal(migraphx.argument.of(a if a.ndim else a.reshape(1), shape_of(a)))
        if k in literal
        else main.add_parameter(f"x{k}", shape_of(a))
        for k, a in enumerate(arrays)
    ]

    def add(name, *args, **attributes):
        return main.add(f"onnx::{name}", *args, **attributes)

    outs = build(add, *inputs)
    main.add_return(outs if isinstance(outs, list) else [outs])
    program.compile(migraphx.get_target("ref"))
    given = {f"x{k}": a for k, a in enumerate(arrays) if k not in literal}
    return program.run(given)


def one(build, *arrays, **more):
    """The single tensor that a program gives, the same for parameters and for literals."""
    got = np.asarray(ran(build, *arrays, **more)[0])
    known = np.asarray(ran(build, *arrays, literal=range(len(arrays)))[0])
    close(known, got)
    return got


def three(kind):
    """Three tensors of different sizes, one of them empty."""
    return [numbers(lens, as_type(kind), k) for k, lens in enumerate(((2, 3), (4, 3), (0, 3)))]


def number(k) -> np.ndarray:
    return np.array(k, np.int64)


# -- sequences -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("place", [0, 1, 2, -1, -3])
def test_at(kind, place):
    arrays = three(kind)

    def build(add, a, b, c, k):
        return add("sequence_at", add("sequence_construct", a, b, c), k)

    close(one(build, *arrays, number(place)), arrays[place])


@pytest.mark.parametrize("place", [3, -4])
def test_at_outside(place):
    def build(add, a, b, c, k):
        return add("sequence_at", add("sequence_construct", a, b, c), k)

    with pytest.raises(migraphx.Error, match=f"position {place} is outside a sequence of 3"):
        ran(build, *three("float"), number(place))


@pytest.mark.parametrize("kind", TYPES)
def test_length(kind):
    def build(add, a, b, c):
        return add("sequence_length", add("sequence_construct", a, b, c))

    got = one(build, *three(kind))
    assert got == 3
    assert got.dtype == np.int64


def test_empty():
    """Nothing in it; what is put in is there."""
    x = numbers((2, 2), as_type("double"))
    assert one(lambda add: add("sequence_length", add("sequence_empty", type="double"))) == 0

    def build(add, a, k):
        return add(
            "sequence_at", add("sequence_insert", add("sequence_empty", type="double"), a), k
        )

    close(one(build, x, number(0)), x)
    shape = migraphx.op("onnx::sequence_empty", type="double").compute_shape([])
    assert shape.dims is None
    assert shape.type_string() == "double_type"


@pytest.mark.parametrize("place", [None, 0, 1, 2, -1, -2])
def test_insert(place):
    """Before a position; at the end without one. Python's list says the same."""
    a, b, new = numbers((3,), as_type("float"), 1), *three("float")[:2]
    wanted = [a, b]
    wanted.insert(2 if place is None else place, new)
    position = [] if place is None else [number(place)]

    for k, tensor in enumerate(wanted):

        def build(add, a, b, new, k, *at):
            whole = add("sequence_construct", a, b)
            return add("sequence_at", add("sequence_insert", whole, new, *at), k)

        close(one(build, a, b, new, number(k), *position), tensor)


@pytest.mark.parametrize("place", [None, 0, 1, 2, -1, -3])
def test_erase(place):
    arrays = three("float")
    wanted = list(arrays)
    del wanted[-1 if place is None else place]
    position = [] if place is None else [number(place)]
    for k, tensor in enumerate(wanted):

        def build(add, a, b, c, k, *at):
            whole = add("sequence_erase", add("sequence_construct", a, b, c), *at)
            return add("sequence_at", whole, k)

        close(one(build, *arrays, number(k), *position), tensor)


def test_insert_and_erase_outside():
    x = numbers((2,), as_type("float"))

    def insert(add, a, k):
        return add("sequence_length", add("sequence_insert", add("sequence_construct", a), a, k))

    def erase(add, a, k):
        return add("sequence_length", add("sequence_erase", add("sequence_construct", a), k))

    def drain(add):
        return add("sequence_length", add("sequence_erase", add("sequence_empty")))

    assert one(insert, x, number(1)) == 2
    with pytest.raises(migraphx.Error, match="position 2 is outside a sequence of 1"):
        ran(insert, x, number(2))
    with pytest.raises(migraphx.Error, match="position 1 is outside a sequence of 1"):
        ran(erase, x, number(1))
    with pytest.raises(migraphx.Error, match="the sequence is empty"):
        ran(drain)


def test_part():
    """Of a sequence the tensor at a position, of a tensor the tensor."""
    a, b, _ = three("float")

    def of_sequence(add, a, b, k):
        return add("sequence_part", add("sequence_construct", a, b), k)

    close(one(of_sequence, a, b, number(1)), b)
    close(one(lambda add, a, k: add("sequence_part", a, k), a, number(1)), a)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_concat(kind, axis, new):
    x, y = (numbers((2, 3), as_type(kind), k) for k in (1, 2))

    def build(add, a, b):
        return add("concat_from_sequence", add("sequence_construct", a, b), axis=axis, new_axis=new)

    close(one(build, x, y), (np.stack if new else np.concatenate)([x, y], axis))


def test_concat_of_different_sizes_and_of_nothing():
    arrays = three("float")

    def build(add, a, b, c):
        return add("concat_from_sequence", add("sequence_construct", a, b, c))

    close(one(build, *arrays), np.concatenate(arrays))
    with pytest.raises(migraphx.Error, match="the sequence is empty"):
        ran(lambda add: add("concat_from_sequence", add("sequence_empty")))


SPLITS = [  # axis, sizes, keepdims, where it is cut
    (0, None, True, [1, 2, 3, 4]), (1, None, False, [1, 2, 3, 4, 5]), (0, 2, True, [2, 4]),
    (0, 3, False, [3]), (-1, 4, True, [4]), (1, [1, 0, 5], True, [1, 1]), (-2, [5], True, []),
]  # fmt: skip


@pytest.mark.parametrize(("axis", "sizes", "keepdims", "cuts"), SPLITS)
@pytest.mark.parametrize("kind", ["float", "bf16", "int64"])
def test_split(kind, axis, sizes, keepdims, cuts):
    """Single slices, pieces of one size with a smaller last one, pieces of given sizes."""
    x = numbers((5, 6), as_type(kind))
    wanted = np.split(x, cuts, axis)
    if sizes is None and not keepdims:
        wanted = [np.squeeze(w, axis) for w in wanted]
    extra = [] if sizes is None else [np.array(sizes, np.int64)]

    def count(add, a, *sizes):
        whole = add("split_to_sequence", a, *sizes, axis=axis, keepdims=keepdims)
        return add("sequence_length", whole)

    def part(add, a, k, *sizes):
        whole = add("split_to_sequence", a, *sizes, axis=axis, keepdims=keepdims)
        return add("sequence_at", whole, k)

    assert one(count, x, *extra) == len(wanted)
    for k, tensor in enumerate(wanted):
        close(one(part, x, number(k), *extra), tensor)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [(0, "pieces of size 0"), ([2, 2], "do not add up to 5"), ([6, -1], "do not add up to 5")],
)
def test_split_refuses(sizes, message):
    def build(add, a, s):
        return add("sequence_length", add("split_to_sequence", a, s))

    with pytest.raises(migraphx.Error, match=message):
        ran(build, np.zeros((5, 2), np.float32), np.array(sizes, np.int64))


# -- optionals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
def test_optional(kind):
    x = numbers((2, 3), as_type(kind))
    close(one(lambda add, a: add("optional_get_element", add("optional", a)), x), x)
    assert one(lambda add, a: add("optional_has_element", add("optional", a)), x)
    assert not one(lambda add: add("optional_has_element", add("optional", type=kind)))
    assert not one(lambda add: add("optional_has_element"))


def test_optional_of_a_sequence():
    a, b, _ = three("float")

    def build(add, a, b, k):
        whole = add("optional", add("sequence_construct", a, b))
        return add("sequence_at", add("optional_get_element", whole), k)

    close(one(build, a, b, number(-1)), b)


def test_optional_of_nothing():
    with pytest.raises(migraphx.Error, match="the optional holds nothing"):
        ran(lambda add: add("optional_get_element", add("optional")))


# What tensors can go through; the rest needs sequences.
TENSORS = [
    case("onnx::optional", "x[n,3]", reference=lambda x: x, types="float half int8 bool"),
    case("onnx::optional_get_element", "x[n,3]", reference=lambda x: x, types="float half int8"),
    case("onnx::optional_has_element", "x[n,3]", reference=lambda x: np.array(True)),
]
test_tensors = family(TENSORS)

SEQUENCE = "x[2]"
test_refused = refused(
    [
        ("onnx::sequence_empty", {}, [SEQUENCE], "Wrong number of arguments"),
        ("onnx::sequence_construct", {}, [], "Wrong number of arguments"),
        ("onnx::sequence_insert", {}, [SEQUENCE], "Wrong number of arguments"),
        ("onnx::sequence_erase", {}, [], "Wrong number of arguments"),
        ("onnx::sequence_at", {}, [SEQUENCE], "Wrong number of arguments"),
        ("onnx::sequence_part", {}, [SEQUENCE], "Wrong number of arguments"),
        ("onnx::sequence_length", {}, [], "Wrong number of arguments"),
        ("onnx::split_to_sequence", {}, [], "Wrong number of arguments"),
        ("onnx::split_to_sequence", {"axis": 1}, [SEQUENCE], "value out of range"),
        ("onnx::concat_from_sequence", {}, [], "Wrong number of arguments"),
        ("onnx::optional", {}, [SEQUENCE, SEQUENCE], "Wrong number of arguments"),
        ("onnx::optional_has_element", {}, [SEQUENCE, SEQUENCE], "Wrong number of arguments"),
        ("onnx::optional_get_element", {}, [], "Wrong number of arguments"),
    ]
)


def test_concat_along_an_axis_that_is_not_there():
    def build(add, a):
        return add("concat_from_sequence", add("sequence_construct", a), axis=2)

    with pytest.raises(migraphx.Error, match="axis 2"):
        ran(build, np.zeros((2, 3), np.float32))
