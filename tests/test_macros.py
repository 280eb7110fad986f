"""Macros: what they add, against recorded texts, NumPy and ONNX's reference evaluator."""

import math
from pathlib import Path

import numpy as np
import pytest

import migraphx
from migraphx.builders import BUILDERS

RNG = np.random.default_rng(3)
GOLDEN = Path(__file__).parent / "data" / "golden" / "macros"


def numbers(*dims, kind=np.float32):
    """Random numbers."""
    return RNG.normal(size=dims).astype(kind)


def build(name, *arrays, insert=False, **options):
    """The results of a macro on parameters, one for each array; and the program."""
    program = migraphx.program()
    main = program.get_main_module()
    inputs = [
        main.add_parameter(f"x{k}", migraphx.argument(a).get_shape()) for k, a in enumerate(arrays)
    ]
    macro = migraphx.macro(name, **options)
    if insert:
        last = main.add("identity", inputs[0])
        results = main.insert_macro(last, macro, inputs)
    else:
        results = main.add_macro(macro, inputs)
    main.add_return(results)
    return program


def run(name, *arrays, **options):
    """The values of a macro's results, the one result alone."""
    program = build(name, *arrays, **options)
    got = [r.numpy() for r in program.run({f"x{k}": a for k, a in enumerate(arrays)})]
    return got[0] if len(got) == 1 else got


def check(wanted, name, *arrays, rtol=1e-5, **options):
    for insert in (False, True):
        got = run(name, *arrays, insert=insert, **options)
        wanted = np.asarray(wanted)
        assert got.shape == (wanted.shape or (1,))
        np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=rtol, atol=1e-5)


# -- the class -----------------------------------------------------------------------------------


def test_name_and_options():
    macro = migraphx.macro("gemm", alpha=2.0, transB=True)
    assert macro.name() == "gemm"
    assert macro.options() == {"alpha": 2.0, "transB": True}
    assert repr(macro) == "macro('gemm', alpha=2.0, transB=True)"


def test_plain_operator_as_macro():
    x = numbers(2, 3)
    check(np.exp(x) / np.exp(x).sum(1, keepdims=True), "softmax", x, axis=1)
    with pytest.raises(migraphx.Error, match="No key 'axes' in softmax"):
        build("softmax", x, axes=1)


def test_unknown_name():
    with pytest.raises(migraphx.Error, match="not found: gelu_erff; did you mean gelu_erf"):
        build("gelu_erff", numbers(2))
    with pytest.raises(TypeError, match="must be a str"):
        migraphx.macro(3)


def test_unknown_option():
    with pytest.warns(UserWarning, match="gemm ignores the option 'transC'"):
        migraphx.macro("gemm", transC=True)


def test_wrong_number_of_inputs():
    with pytest.raises(migraphx.Error, match="gelu_erf: takes 1 inputs, 2 are given"):
        build("gelu_erf", numbers(2), numbers(2))


def test_insert_macro_stands_before_the_instruction():
    program = build("gelu_quick", numbers(2, 3), insert=True)
    names = [i.name() for i in program.get_main_module() if not i.name().startswith("@")]
    assert names[-1] == "identity"
    assert names[0] in ("multibroadcast", "mul")


def test_add_macro_stands_before_the_return():
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    main.add_return([x])
    (y,) = main.add_macro(migraphx.macro("gelu_erf"), [x])
    assert main[len(main) - 1].name() == "@return"
    main.replace_return([y])
    got = program.run({"x": np.float32([0, 1])})[0].numpy()
    np.testing.assert_allclose(got, [0, 0.8413447], rtol=1e-5)


@pytest.mark.parametrize("name", ["gelu_erf", "gemm", "einsum"])
def test_golden_text(name):
    inputs = [numbers(2, 3)] if name == "gelu_erf" else [numbers(2, 3), numbers(3, 4)]
    options = {"equation": "ij,jk->ik"} if name == "einsum" else {}
    text = repr(build(name, *inputs, **options))
    assert text.strip() == (GOLDEN / f"{name}.txt").read_text().strip()


# -- element-wise --------------------------------------------------------------------------------

BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "pow": lambda x, y: np.power(np.abs(x), y), "sqdiff": lambda x, y: (x - y) ** 2,
    "prelu": lambda x, y: np.where(x > 0, x, x * y),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    x, y = numbers(2, 1, 4), numbers(3, 1)
    x = np.abs(x) if name == "pow" else x
    check(BINARY[name](x, y), name, x, y)
    z = numbers(3)
    whole = np.abs(numbers(2, 3, 4))
    check(BINARY[name](whole, z[:, None]), name, whole, z, broadcasted_axis=1)


def test_logical_and_types():
    x, y = np.int32([[0, 2], [3, 0]]), np.int32([1, 0])
    for name, f in [("logical_and", np.logical_and), ("logical_or", np.logical_or),
                    ("logical_xor", np.logical_xor)]:  # fmt: skip
        np.testing.assert_array_equal(run(name, x, y) != 0, f(x, y))
    np.testing.assert_array_equal(run("bitwise_and", x, np.int32([6, 1])), x & [6, 1])
    assert run("add", np.int32([1]), np.float32([0.5])).dtype == np.float32
    assert run("add", np.int8([100]), np.uint8([100])).dtype == np.int32


def test_broadcasted_axis_that_does_not_fit():
    with pytest.raises(migraphx.Error, match="add: broadcasted_axis 3 leaves no room"):
        build("add", numbers(2, 3, 4), numbers(3), broadcasted_axis=3)


def test_clip():
    x = np.float32([-3, 0.5, 7, np.nan])
    low, high = np.float32(-1), np.float32(2)
    check(np.clip(x, -1, 2), "clip", x, low, high)
    check(np.maximum(x, -1), "clip", x, low)
    check(x, "clip", x)


def test_clip_with_an_undefined_bound():
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float", lens=[3]))
    none = main.add("undefined")
    results = main.add_macro(migraphx.macro("clip"), [x, none, main.add_literal(np.float32(1))])
    main.add_return(results)
    np.testing.assert_array_equal(program.run({"x": np.float32([-5, 0, 5])})[0], [-5, 0, 1])


def normal(x):
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def test_activations():
    x = numbers(3, 4)
    check(x * normal(x), "gelu_erf", x)
    check(x[:, :2] * (x[:, 2:] * normal(x[:, 2:])), "gelu_split", x)
    check(x / (1 + np.exp(-1.7 * x)), "gelu_quick", x, alpha=1.7)
    check(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), "gelu_tanh", x)
    fast = 0.5 * x * (1 + np.tanh(x * (0.035677 * x * x + 0.797885)))
    check(fast, "gelu_tanh", x, fast=True)
    celu = np.maximum(x, 0) + np.minimum(0, 2 * (np.exp(x / 2) - 1))
    check(celu, "celu", x, alpha=2.0)


def test_activations_refuse():
    with pytest.raises(migraphx.Error, match="gelu_erf: only floating point"):
        build("gelu_erf", np.int32([1, 2]))
    with pytest.raises(migraphx.Error, match="celu: alpha is zero"):
        build("celu", numbers(2), alpha=0.0)
    with pytest.raises(migraphx.Error, match="size 3 cannot be halved"):
        build("gelu_split", numbers(2, 3))


def test_bias_uint8():
    x, zero = np.uint8([0, 128, 255]), np.uint8(130)
    shifted, its = run("bias_uint8", x, zero, has_bias=True)
    assert shifted.dtype == its.dtype == np.int8
    np.testing.assert_array_equal(shifted.astype(int) - int(its[0]), x.astype(int) - 130)
    shifted, its = run("bias_uint8", x, zero)
    np.testing.assert_array_equal(shifted.astype(int) - its.reshape(()), x)


# -- networks ------------------------------------------------------------------------------------


def test_batchnorm():
    for dims in [(4,), (2, 4), (2, 4, 3), (2, 4, 3, 5)]:
        x = numbers(*dims)
        scale, bias, mean, var = numbers(4), numbers(4), numbers(4), np.abs(numbers(4))
        shape = (4,) if len(dims) < 3 else (4,) + (1,) * (len(dims) - 2)
        s, b, m, v = (p.reshape(shape) for p in (scale, bias, mean, var))
        wanted = (x - m) / np.sqrt(v + 1e-3) * s + b
        check(wanted, "batchnorm", x, scale, bias, mean, var, epsilon=1e-3)


def test_convolution_with_bias():
    x, w, b = numbers(2, 3, 5), numbers(4, 3, 3), numbers(4)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1)])
    wanted = np.stack([np.einsum("nck,ock->no", padded[:, :, k : k + 3], w) for k in (0, 2, 4)], -1)
    check(wanted + b[:, None], "convolution", x, w, b, paddings=[1, 1], strides=[2], dilations=[1])
    plain = run("convolution", x, w, paddings=[1, 1], strides=[2], dilations=[1])
    np.testing.assert_allclose(plain, wanted, rtol=1e-4, atol=1e-5)


def test_convolution_auto_pad_and_errors():
    x, w = numbers(1, 1, 4, 4), numbers(2, 1, 3, 3)
    assert run("convolution", x, w, auto_pad="SAME_UPPER").shape == (1, 2, 4, 4)
    with pytest.raises(migraphx.Error, match="auto_pad is NOTSET, VALID"):
        build("convolution", x, w, auto_pad="FULL")
    with pytest.raises(migraphx.Error, match="strides has 3 entries for 2"):
        build("convolution", x, w, strides=[1, 1, 1])


def test_quant_convolution_with_zero_points():
    x = RNG.integers(0, 256, (1, 2, 5)).astype(np.uint8)
    w = RNG.integers(-128, 128, (3, 2, 2)).astype(np.int8)
    xz, wz = np.uint8(7), np.int8([1, -2, 3])
    wide = np.pad(x.astype(np.int32) - 7, [(0, 0), (0, 0), (1, 0)])
    kernel = w.astype(np.int32) - wz[:, None, None]
    wanted = np.stack(
        [np.einsum("nck,ock->no", wide[:, :, k:k + 2], kernel) for k in range(5)], -1
    )  # fmt: skip
    got = run("quant_convolution", x, w, xz, wz, paddings=[1, 0], strides=[1], dilations=[1])
    np.testing.assert_array_equal(got, wanted)
    assert got.dtype == np.int32


def test_dot():
    a, b = numbers(5, 1, 2, 3), numbers(4, 3, 6)
    check(a @ b, "dot", a, b, rtol=1e-4)
    with pytest.raises(migraphx.Error, match="dot: matrices are needed"):
        build("dot", numbers(3), numbers(3, 4))
    x, y = (RNG.integers(-128, 128, d).astype(np.int8) for d in [(2, 2, 3), (3, 4)])
    np.testing.assert_array_equal(run("quant_dot", x, y), x.astype(np.int32) @ y.astype(np.int32))


@pytest.mark.parametrize("transA", [False, True])
@pytest.mark.parametrize("transB", [False, True])
@pytest.mark.parametrize("c", [None, (), (4,), (2, 1), (2, 4)])
def test_gemm(transA, transB, c):
    a, b = numbers(2, 3), numbers(3, 4)
    given = [a.T.copy() if transA else a, b.T.copy() if transB else b]
    wanted = 0.5 * a @ b
    if c is not None:
        given.append(numbers(*c))
        wanted = wanted + 1.5 * given[-1]
    check(wanted, "gemm", *given, alpha=0.5, beta=1.5, transA=transA, transB=transB)
    if c is not None:
        check(0.5 * a @ b, "gemm", *given, alpha=0.5, beta=0, transA=transA, transB=transB)


def test_gemm_refuses_batches():
    with pytest.raises(migraphx.Error, match="gemm: A and B should be rank 2"):
        build("gemm", numbers(2, 3, 4), numbers(4, 5))


def test_mean_variance_normalization():
    x = numbers(2, 3, 4, 5) + 1
    axes = (0, 2, 3)
    wanted = (x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9)
    check(wanted, "mean_variance_normalization", x, rtol=1e-4)
    with pytest.raises(migraphx.Error, match="rank - 1"):
        build("mean_variance_normalization", x, axes=[0, 1])


def rotated(x, positions, cos, sin, interleaved):
    """Rotary embedding in NumPy."""
    turned = 2 * cos.shape[1]
    c, s = cos[positions][:, None], sin[positions][:, None]
    part, rest = x[..., :turned], x[..., turned:]
    if interleaved:
        one, two = part[..., ::2], part[..., 1::2]
        out = np.stack([one * c - two * s, two * c + one * s], -1).reshape(part.shape)
    else:
        one, two = part[..., : turned // 2], part[..., turned // 2 :]
        out = np.concatenate([one * c - two * s, two * c + one * s], -1)
    return np.concatenate([out, rest], -1)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("features", [4, 6])
def test_rotary_embedding(interleaved, features):
    x, cos, sin = numbers(2, 3, 5, features), numbers(10, 2), numbers(10, 2)
    positions = RNG.integers(0, 10, (2, 5))
    wanted = rotated(x, positions, cos, sin, interleaved)
    check(wanted, "rotary_embedding", x, positions, cos, sin, interleaved=interleaved)
    offset = rotated(x, np.array([[3, 4, 5, 6, 7]] * 2), cos, sin, interleaved)
    check(offset, "rotary_embedding", x, np.int64([3]), cos, sin, interleaved=interleaved)


@pytest.mark.parametrize("repeats", [(2, 3, 1), (1, 1, 1), (0, 2, 1)])
def test_tile(repeats):
    x = numbers(2, 3, 4)
    check(np.tile(x, repeats), "tile", x, repeats=list(repeats))


def test_tile_refuses():
    with pytest.raises(migraphx.Error, match="tile: 2 repeats for 1 dimensions"):
        build("tile", numbers(3), repeats=[1, 2])


# -- quantising ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dims", "options", "whole"),
    [
        ((), {}, lambda s: s),
        ((4,), {"axis": 0}, lambda s: s[:, None]),
        ((6,), {"axis": -1}, lambda s: s),
        ((4, 3), {"axis": 1, "block_size": 2}, lambda s: np.repeat(s, 2, 1)),
        ((4, 2), {"axis": 1, "block_size": 4}, lambda s: np.repeat(s, 4, 1)[:, :6]),
    ],
)
def test_quantize_and_back(dims, options, whole):
    x = numbers(4, 6)
    scale = np.abs(numbers(*dims)) / 20 + np.float32(0.01)
    zero = np.asarray(RNG.integers(-5, 5, dims), np.int8)
    s, z = whole(np.asarray(scale)), whole(zero).astype(np.float32)
    wanted = np.clip(np.rint(x / s) + z, -128, 127)
    got = run("quantizelinear", x, np.float32(scale), zero, **options)
    assert got.dtype == np.int8
    np.testing.assert_array_equal(got, wanted)
    back = run("dequantizelinear", got, np.float32(scale), zero, **options)
    np.testing.assert_allclose(back, (wanted - z) * s, rtol=1e-6)


def test_quantize_without_zero_point():
    x = np.float32([[-1, 300, 2.5, 3.5]])
    np.testing.assert_array_equal(run("quantizelinear", x, np.float32(1)), [[0, 255, 2, 4]])
    got = run("quantizelinear", x, np.float32(1), output_type=migraphx.shape.type_t.int8_type)
    np.testing.assert_array_equal(got, [[-1, 127, 2, 4]])


def test_scales_that_do_not_fit():
    with pytest.raises(migraphx.Error, match="3 scales or zero points for axis 1 of size 6"):
        build("quantizelinear", numbers(4, 6), numbers(3))


# -- einsum --------------------------------------------------------------------------------------

EQUATIONS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk": [(2, 3), (3, 4)],
    "bij,bjk->bik": [(5, 2, 3), (5, 3, 4)],
    "bhqd,bhkd->bhqk": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "i,i->": [(3,), (3,)],
    "i,j->ij": [(3,), (4,)],
    "i,j->ji": [(3,), (4,)],
    "ij->ji": [(2, 3)],
    "ij->": [(2, 3)],
    "ij->j": [(2, 3)],
    "ii": [(3, 3)],
    "ii->i": [(3, 3)],
    "iji->j": [(3, 2, 3)],
    "biib->bi": [(2, 3, 3, 2)],
    "iii->i": [(3, 3, 3)],
    "ij,ij->ij": [(2, 3), (2, 3)],
    "ij,j->ij": [(2, 3), (3,)],
    "ij,jk,kl->il": [(2, 3), (3, 4), (4, 5)],
    "ij,kj,lj->ikl": [(2, 3), (4, 3), (5, 3)],
    "ij,ij,ij->": [(2, 3), (2, 3), (2, 3)],
    "...ij,...jk->...ik": [(6, 1, 2, 3), (5, 3, 4)],
    "i...->...": [(3, 2, 4)],
    "...i,...i": [(4, 3), (2, 4, 3)],
    "...,...": [(2, 3), (3,)],
    "ab...,b...c->ac...": [(2, 3, 4), (3, 4, 5)],
    "bnij,bj->bni": [(2, 3, 4, 5), (2, 5)],
    "Ab,bC->AC": [(2, 3), (3, 4)],
    " i j , j k -> i k ": [(2, 3), (3, 4)],
    "ij,k->i": [(2, 3), (4,)],
    "ij,jk->": [(2, 3), (3, 0)],
    "ij,jk->ki": [(2, 0), (0, 3)],
    "xyz,yzw,wx->": [(2, 3, 4), (3, 4, 5), (5, 2)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation):
    xs = [numbers(*dims) for dims in EQUATIONS[equation]]
    check(np.einsum(equation.replace(" ", ""), *xs), "einsum", *xs, equation=equation, rtol=1e-4)


@pytest.mark.parametrize(
    ("equation", "dims", "message"),
    [
        ("ij,jk->ik", [(2, 3)], "has 2 inputs, 1 are given"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "label 'j' has sizes 3 and 4"),
        ("ijk->i", [(2, 3)], "does not fit an input of 2 dimensions"),
        ("ij->ii", [(2, 3)], "repeats a label"),
        ("ij->k", [(2, 3)], "one of no input"),
        ("i1->i", [(2, 3)], "not a list of labels"),
        ("ii->i", [(2, 3)], "sizes 2 and 3"),
    ],
)
def test_einsum_refuses(equation, dims, message):
    with pytest.raises(migraphx.Error, match=message):
        build("einsum", *(numbers(*d) for d in dims), equation=equation)


def test_every_builder_is_tested():
    text = Path(__file__).read_text()
    assert [name for name in BUILDERS if f'"{name}"' not in text] == []
