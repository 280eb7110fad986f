"""Operators that show the same elements under other dims."""

import numpy as np
import pytest
from checks import case, family, refused

import migraphx
from migraphx.shape import Shape
from migraphx.types import type_t

ALL = "float half bf16 double fp8e4m3fn fp8e5m2 int8 uint8 int16 int32 int64 uint64 bool"


def same(x, *_, **__):
    return x


def reshaped(x, *, dims):
    return x.reshape([x.shape[k] if d == 0 else d for k, d in enumerate(dims)])


def flattened(x, *, axis=1):
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))


def squeezed(x, *, axes=()):
    return np.squeeze(x, tuple(axes) or None)


def unsqueezed(x, *, axes, steps=()):
    if not steps:
        return np.expand_dims(x, tuple(axes))
    return x.reshape(3, 4, 2, 5, 1, 1)


CASES = [
    case("identity", "x[n,3]", reference=same, types=ALL),
    case("identity", "s[]", reference=same),
    case("contiguous", "x[n,3,4]", reference=same, types=ALL),
    case("contiguous", "s[]", reference=same),
    case("layout", "x[2,3,4]", permutation=[2, 0, 1], reference=same, symbolic=False),
    case("transpose", "x[n,3]", permutation=[1, 0], reference=lambda x, permutation: x.T, types=ALL),
    case(
        "transpose", "x[n,3,m,2,1,2]", permutation=[5, 0, 3, 1, 2, 4],
        reference=lambda x, permutation: x.transpose(permutation),
    ),
    case("reshape", "x[2,3]", dims=[3, 2], reference=reshaped, types=ALL),
    case("reshape", "x[n,3,4]", dims=[0, -1], reference=reshaped),
    case("reshape", "x[n,3,4]", dims=[-1, 6], reference=reshaped, at={"n": 3}),
    case("reshape", "x[n,3,4]", dims=[-1], reference=reshaped),
    case("reshape", "x[2,3]", dims=[1, 2, 1, 3, 1, 1], reference=reshaped, symbolic=False),
    case("reshape", "s[]", dims=[1, 1], reference=reshaped),
    case("reshape", "x[2,3]", "y[6]", reference=lambda x, y: x.reshape(6), symbolic=False, skip="empty"),
    case("reshape_lazy", "x[2,3,4]", dims=[6, 4], reference=reshaped, symbolic=False, skip="layouts"),
    case("reshape_lazy", "x[n,3,4]", dims=[0, 12], reference=reshaped, skip="layouts"),
    case("flatten", "x[n,3,4]", axis=1, reference=flattened, types="float int32"),
    case("flatten", "x[n,3,4]", axis=0, reference=flattened),
    case("flatten", "x[n,3,4]", axis=3, reference=flattened),
    case("flatten", "x[n,3,4]", axis=-1, reference=flattened),
    case("squeeze", "x[n,1,3,1]", axes=[1, -1], reference=squeezed, types=ALL),
    case("squeeze", "x[1,3,1]", reference=squeezed, symbolic=False, skip="empty"),
    case("squeeze", "x[1]", axes=[0], reference=squeezed, skip="empty"),
    case("unsqueeze", "x[n,3]", axes=[0, 2], reference=unsqueezed, types=ALL),
    case("unsqueeze", "x[n,3]", axes=[-1], reference=unsqueezed),
    case(
        "unsqueeze", "x[3,4,10]", axes=[2, 4, 5], steps=[2], reference=unsqueezed, symbolic=False,
        skip="empty",
    ),
    case("unsqueeze", "s[]", axes=[0], reference=lambda x, axes: x.reshape(1)),
    case(
        "as_shape", "x[2,3]", shape=Shape("float", [3, 2], [1, 3]), symbolic=False, skip="empty",
        reference=lambda x, shape: x.reshape(2, 3).T,
    ),
    case(
        "as_shape", "x[6]", shape=Shape("float", [2, 2, 3], [0, 3, 1]), symbolic=False,
        skip="empty", reference=lambda x, shape: np.broadcast_to(x.reshape(2, 3), (2, 2, 3)),
    ),
]  # fmt: skip

test_family = family(CASES)

test_refused = refused(
    [
        ("transpose", {"permutation": [0, 0]}, ["x[2,3]"], "Invalid permutation"),
        ("transpose", {"permutation": [0]}, ["x[2,3]"], "wrong number of axes"),
        ("layout", {"permutation": [0]}, ["x[2,3]"], "Only 1d supported"),
        ("reshape", {"dims": [4, 2]}, ["x[2,3]"], "8 elements whereas the input has 6"),
        ("reshape", {"dims": [-1, -1]}, ["x[2,3]"], "only have one -1"),
        ("reshape", {"dims": [-2, 3]}, ["x[2,3]"], "only -1"),
        ("reshape", {"dims": [6, 1, 0]}, ["x[2,3]"], "copy axis 2"),
        ("flatten", {"axis": 3}, ["x[2,3]"], "axis: value out of range"),
        ("squeeze", {"axes": [0]}, ["x[2,1]"], "should be equal to 1"),
        ("unsqueeze", {"axes": [0, 0]}, ["x[2]"], "name an axis twice"),
        ("unsqueeze", {"axes": [1], "steps": [3]}, ["x[2,4]"], "does not divide"),
        ("as_shape", {"shape": Shape("float", [3, 3])}, ["x[2,3]"], "reaches 9 elements"),
    ]
)

STRIDES = [
    ("reshape", {"dims": [2, 3, 1]}, ([2, 3], [1, 2]), ([2, 3, 1], [1, 2, 2])),
    ("reshape", {"dims": [6]}, ([2, 3], [1, 2]), ([6], [1])),
    ("reshape", {"dims": [1, 2, 3]}, ([2, 3], [1, 2]), ([1, 2, 3], [2, 1, 2])),
    ("reshape_lazy", {"dims": [2, 2, 3]}, ([4, 3], [6, 2]), ([2, 2, 3], [12, 6, 2])),
    ("reshape_lazy", {"dims": [2, 6]}, ([2, 2, 3], [12, 6, 2]), ([2, 6], [12, 2])),
    ("unsqueeze", {"axes": [0, 2]}, ([2, 3], [1, 2]), ([1, 2, 1, 3], [2, 1, 6, 2])),
    ("squeeze", {"axes": [1]}, ([2, 1, 3], [1, 6, 2]), ([2, 3], [1, 2])),
    ("flatten", {"axis": 1}, ([2, 3, 2], [1, 4, 2]), ([2, 6], [6, 1])),
]


@pytest.mark.parametrize(("name", "attributes", "given", "wanted"), STRIDES)
def test_strides(name, attributes, given, wanted):
    got = migraphx.op(name, **attributes).compute_shape([Shape("float", *given)])
    assert (got.lens(), got.strides()) == wanted


def test_symbolic_reshape_cancels_sizes():
    n = migraphx.shape.dynamic_dimension("n[1..8]")
    x = migraphx.shape(type="float", dyn_dims=[n, "3", "4"])
    got = migraphx.op("reshape", dims=[-1, 4]).compute_shape([x])
    assert got.dyn_dims() == [n * 3, 4]
    assert got.type() == type_t.float_type
    got = migraphx.op("reshape", dims=[0, -1]).compute_shape([x])
    assert got.dyn_dims() == [n, 12]
