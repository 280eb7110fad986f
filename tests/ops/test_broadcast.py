"""Operators that repeat elements along axes, or ask for sizes."""

import numpy as np
from checks import case, family, refused

import migraphx
from migraphx.shape import Shape

ALL = "float half bf16 double fp8e4m3fn int8 uint8 int32 int64 bool"


def spread(x, *_, out_lens):
    return np.broadcast_to(x, out_lens)


def common(x, *others):
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, *(o.shape for o in others)))


def placed(x, *, axis, out_lens):
    dims = (1,) * axis + x.shape + (1,) * (len(out_lens) - axis - x.ndim)
    return np.broadcast_to(x.reshape(dims), out_lens)


CASES = [
    case("multibroadcast", "x[1,3]", out_lens=[4, 2, 3], reference=spread, types=ALL, symbolic=False, skip="empty"),
    case("multibroadcast", "x[3]", out_lens=[2, 1, 3], reference=spread, symbolic=False, skip="empty"),
    case("multibroadcast", "s[]", out_lens=[2, 2, 1, 1, 2, 3], reference=spread, skip="empty"),
    case("multibroadcast", "x[n,1]", "y[1,m]", reference=common, types="float int32"),
    case("multibroadcast", "x[n,3]", "y[2,1,1]", "z[1,3]", reference=common),
    case("broadcast", "x[3]", axis=1, out_lens=[2, 3, 4], reference=placed, types=ALL, symbolic=False, skip="empty"),
    case("broadcast", "x[3,4]", axis=1, out_lens=[2, 3, 4], reference=placed, symbolic=False, skip="empty"),
    case("broadcast", "x[3]", "y[2,3,4]", axis=1, symbolic=False, skip="empty",
         reference=lambda x, y, axis: placed(x, axis=axis, out_lens=y.shape)),
    case("scalar", "x[1]", scalar_bcst_dims=[2, 3], symbolic=False, skip="empty",
         reference=lambda x, scalar_bcst_dims: np.full(scalar_bcst_dims, x[0]), types=ALL),
    case("broadcast_for_dot", "x[3,2,4]", "y[n,1,4,5]",
         reference=lambda x, y: np.broadcast_to(x, (y.shape[0], 3, 2, 4))),
    case("broadcast_with_dims", "x[3,1]", ("d:int64[3]", [2, 3, 4]), symbolic=False, skip="empty layouts",
         reference=lambda x, d: np.broadcast_to(x, (2, 3, 4)), grad=False),
    case("dimensions_of", "x[n,3,m]", start=1, end=3, grad=False,
         reference=lambda x, start, end: np.array(x.shape[start:end])),
    case("fill", "v[1]", "x[2,3]", symbolic=False, skip="empty", types=ALL,
         reference=lambda v, x: np.full(x.shape, v[0])),
    case("fixed_pad", "x[2,3]", reference=lambda x: x, symbolic=False),
]  # fmt: skip

test_family = family(CASES)

test_refused = refused(
    [
        ("multibroadcast", {"out_lens": [2, 1, 3]}, ["x[2,3]"], "cannot be broadcasted to"),
        ("multibroadcast", {"out_lens": [3]}, ["x[2,3]"], "input dimensions should <= output"),
        ("multibroadcast", {}, ["x[2,3]", "y[4,3]"], "cannot be broadcast"),
        ("broadcast", {"axis": 3, "out_lens": [2, 3]}, ["x[3]"], "is out of range"),
        ("broadcast", {"axis": 0, "out_lens": [2, 3]}, ["x[3]"], "succeeding sizes must match"),
        ("broadcast", {"axis": 1, "out_lens": [2, 3]}, ["x[3,3]"], "less than s0 ndims"),
        ("scalar", {"scalar_bcst_dims": [2]}, ["x[2]"], "one element"),
        ("broadcast_for_dot", {}, ["x[2]", "y[2,2]"], "at least 2 dimensions"),
        ("dimensions_of", {"start": 1, "end": 1}, ["x[2]"], "start >= end"),
        ("dimensions_of", {"start": 0, "end": 3}, ["x[2]"], "beyond the 1 dimensions"),
        ("fill", {}, ["v[2]", "x[2]"], "one element"),
    ]
)


def test_common_symbols_stay_one():
    n = migraphx.shape.dynamic_dimension("n[1..8]")
    x = migraphx.shape(type="float", dyn_dims=[n, "1"])
    y = migraphx.shape(type="float", dyn_dims=["1", "5"])
    got = migraphx.op("multibroadcast").compute_shape([x, y])
    assert got.dyn_dims() == [n, 5]
    assert got.symbolic()


def test_fixed_pad_fills_up_to_the_largest_sizes():
    p = migraphx.program()
    main = p.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float", dyn_dims=[(1, 4), (3, 3)]))
    main.add_return([main.add_instruction(migraphx.op("fixed_pad"), [x])])
    p.compile(migraphx.get_target("ref"))
    got = np.array(p.run({"x": np.ones((2, 3), np.float32)})[0])
    np.testing.assert_array_equal(got, [[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]])


def test_scalar_keeps_zero_strides():
    got = migraphx.op("multibroadcast", out_lens=[2, 3]).compute_shape([Shape("float", [1], [0])])
    assert got.strides() == [0, 0]
