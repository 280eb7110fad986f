"""Operators that take parts of tensors, join them, or add borders."""

import numpy as np
from checks import case, family, refused

import migraphx

ALL = "float half bf16 double fp8e4m3fn int8 uint8 int32 int64 bool"


def sliced(x, *_, axes, starts, ends):
    index = [slice(None)] * x.ndim
    for axis, start, end in zip(axes, starts, ends, strict=True):
        index[axis] = slice(start, end)
    return x[tuple(index)]


def stepped(x, *, axes, steps):
    index = [slice(None)] * x.ndim
    for axis, step in zip(axes, steps, strict=True):
        index[axis] = slice(None, None, step)
    return x[tuple(index)]


def padded(x, *, pads, mode=0, value=0.0):
    both = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
    x = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(both, x.shape, strict=True))]
    both = [(max(a, 0), max(b, 0)) for a, b in both]
    if mode == 0:
        return np.pad(x, both, constant_values=np.asarray(value).astype(x.dtype))
    return np.pad(x, both, mode=("reflect", "edge")[mode - 1])


def joined(*xs, axis=0):
    return np.concatenate(xs, axis)


CASES = [
    case("slice", "x[n,3,4]", axes=[1, 2], starts=[0, 1], ends=[1, 3], reference=sliced, types=ALL),
    case("slice", "x[n,5]", axes=[-1], starts=[-2], ends=[100], reference=sliced),
    case("slice", "x[n,5]", axes=[1], starts=[3], ends=[2], reference=sliced),
    case("slice", "x[4,3]", ("s:int64[1]", [1]), ("e:int64[1]", [3]), axes=[0], symbolic=False,
         reference=lambda x, s, e, axes: x[1:3], skip="layouts empty", grad=False),
    case("step", "x[4,6]", axes=[0, -1], steps=[2, 4], reference=stepped, symbolic=False, types=ALL),
    case("reverse", "x[3,4]", axes=[-1], reference=lambda x, axes: x[:, ::-1], symbolic=False, types=ALL),
    case("reverse", "x[3,4]", axes=[0, 1], reference=lambda x, axes: x[::-1, ::-1], symbolic=False),
    case("concat", "x[n,3]", "y[n,2]", axis=1, reference=joined, types=ALL),
    case("concat", "x[n,3]", "y[n,3]", "z[m,3]", axis=-2, reference=joined, symbolic=False),
    case("concat", "x[2,3]", axis=0, reference=joined),
    case("pad", "x[n,3]", pads=[1, 0, 0, 1], reference=padded, types=ALL),
    case("pad", "x[3,4]", pads=[2, 2, 2, 2], value=1.5, reference=padded, types="float half int8 double"),
    case("pad", "x[3,4]", pads=[-1, 1, 2, -2], reference=padded),
    case("pad", "x[3,4]", pads=[2, 3, 2, 5], mode=1, reference=padded, types="float int32 fp8e4m3fn", skip="empty"),
    case("pad", "x[3,4]", pads=[4, 9, 0, 0], mode=1, reference=padded, skip="empty"),
    case("pad", "x[3,4]", pads=[2, 0, 1, 5], mode=2, reference=padded, types="float uint8 bool", skip="empty"),
    case("pad", "x[2,1,2,1,2,1]", pads=[0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 2], reference=padded),
]  # fmt: skip

test_family = family(CASES)

test_refused = refused(
    [
        ("slice", {"axes": [2], "starts": [0], "ends": [1]}, ["x[2,3]"], "value out of range"),
        ("slice", {"axes": [0], "starts": [0, 1], "ends": [1]}, ["x[2,3]"], "differ in length"),
        ("slice", {"axes": [0]}, ["x[2,3]"], "must each come once"),
        ("step", {"axes": [0], "steps": [0]}, ["x[2,3]"], "at least 1"),
        ("step", {"axes": [0], "steps": [1, 2]}, ["x[2,3]"], "1 axes but 2 steps"),
        ("concat", {"axis": 2}, ["x[2,3]", "y[2,3]"], "value out of range"),
        ("concat", {"axis": 1}, ["x[2,3]", "y[4,3]"], "should match along axis 0"),
        ("concat", {"axis": 0}, ["x[2,3]", "y[3]"], "Number of dimensions do not match"),
        ("concat", {"axis": 0}, ["x[2,3]", "i:int32[2,3]"], "Types do not match"),
        ("pad", {"pads": [1, 1]}, ["x[2,3]"], "2 pads for 2 dimensions"),
        ("pad", {"pads": [-3, 0, 0, 0]}, ["x[2,3]"], "cut more"),
    ]
)


def test_slice_of_symbolic_sizes():
    n = migraphx.shape.dynamic_dimension("n[2..8]")
    x = migraphx.shape(type="float", dyn_dims=[n, "3"])

    def size(start, end):
        op = migraphx.op("slice", axes=[0], starts=[start], ends=[end])
        return op.compute_shape([x]).dyn_dims()[0]

    assert size(0, 2) == 2
    assert size(1, 100) == n - 1
    assert size(0, -1) == n - 1
    assert size(0, 5).expression.startswith("min(")


def test_pad_holds_its_value_in_the_type():
    p = migraphx.program()
    main = p.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="int8", lens=[1]))
    main.add_return([main.add_instruction(migraphx.op("pad", pads=[1, 0], value=1000.0), [x])])
    p.compile(migraphx.get_target("ref"))
    assert p.run({"x": np.array([3], np.int8)})[0].tolist() == [127, 3]
