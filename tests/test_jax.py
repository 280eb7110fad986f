"""Programs in JAX's hands: `to_jax`, `export`."""

import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import migraphx

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((12, 16)).astype(np.float32)


def model(batch="3"):
    """tanh(reshape(x) @ W): x is (batch, 3, 4)."""
    p = migraphx.program()
    m = p.get_main_module()
    dims = [batch, "3", "4"] if not batch.isdigit() else None
    kind = {"dyn_dims": dims} if dims else {"lens": [int(batch), 3, 4]}
    x = m.add_parameter("x", migraphx.shape(type="float", **kind))
    w = m.add_literal(WEIGHT)
    flat = m.add_instruction(migraphx.op("reshape", dims=[0, -1]), [x])
    spread = w
    y = m.add_instruction(migraphx.op("dot"), [flat, spread])
    m.add_return([m.add_instruction(migraphx.op("tanh"), [y])])
    return p


def wanted(x):
    return np.tanh(x.reshape(len(x), 12) @ WEIGHT)


@pytest.fixture
def x():
    return RNG.standard_normal((3, 3, 4)).astype(np.float32)


def test_function_gives_what_run_gives(x):
    p = model()
    function, weights = p.to_jax()
    assert [w.shape for w in weights.values()] == [(12, 16)]
    got = jax.jit(function)(weights, {"x": x})[0]
    np.testing.assert_allclose(got, wanted(x), rtol=1e-5, atol=1e-6)
    p.compile(migraphx.get_target("ref"))
    np.testing.assert_allclose(got, np.array(p.run({"x": x})[0]), rtol=1e-6, atol=1e-6)


def test_gradient_of_weights_and_inputs(x):
    function, weights = model().to_jax()
    slopes = jax.grad(lambda w, v: function(w, {"x": v})[0].sum(), argnums=(0, 1))(weights, x)
    inner = 1 - wanted(x) ** 2
    np.testing.assert_allclose(slopes[0]["w0"], x.reshape(3, 12).T @ inner, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(slopes[1], (inner @ WEIGHT.T).reshape(x.shape), rtol=1e-4, atol=1e-5)


def test_vmap_adds_an_axis():
    function, weights = model().to_jax()
    many = RNG.standard_normal((5, 3, 3, 4)).astype(np.float32)
    got = jax.vmap(lambda v: function(weights, {"x": v})[0])(many)
    np.testing.assert_allclose(got, np.stack([wanted(v) for v in many]), rtol=1e-5, atol=1e-6)


def test_symbols_are_bound_by_the_inputs():
    function, weights = model("n[1..8]").to_jax()
    for n in (1, 5):
        x = RNG.standard_normal((n, 3, 4)).astype(np.float32)
        np.testing.assert_allclose(function(weights, {"x": x})[0], wanted(x), rtol=1e-5, atol=1e-6)
    with pytest.raises(migraphx.Error, match="outside its bounds"):
        function(weights, {"x": np.zeros((9, 3, 4), np.float32)})


def test_users_settings_stay(x):
    assert jnp.arange(3).dtype == np.int32
    function, weights = model().to_jax()
    function(weights, {"x": x})
    assert jnp.arange(3).dtype == np.int32


def test_whole_numbers_of_64_bits_inside_jit():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="int64", lens=[2]))
    big = m.add_literal(np.array([2**40, 2**40]))
    m.add_return([m.add_instruction(migraphx.op("div"), [big, x])])
    function, weights = p.to_jax()
    got = jax.jit(function)(weights, {"x": np.array([2, 4])})[0]
    assert np.asarray(got).tolist() == [2**39, 2**38]


def test_missing_input_is_named():
    function, weights = model().to_jax()
    with pytest.raises(migraphx.Error, match=r"\['x'\] are missing"):
        function(weights, {"y": 1})


def test_sizes_from_data_are_refused():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[4]))
    e = m.add_parameter("e", migraphx.shape(type="int64", lens=[1]))
    m.add_return([m.add_instruction(migraphx.op("slice", axes=[0], starts=[0]), [x, e])])
    function, weights = p.to_jax()
    with pytest.raises(migraphx.Error, match="slice needs sizes that depend on data"):
        jax.jit(function)(weights, {"x": np.zeros(4, np.float32), "e": np.array([2])})


@pytest.mark.parametrize("batch", ["3", "n[1..8]", "2*n[1..4] + 1"])
def test_export_runs_without_this_package(batch, tmp_path):
    x = RNG.standard_normal((3, 3, 4)).astype(np.float32)
    (tmp_path / "model.bin").write_bytes(model(batch).export())
    np.save(tmp_path / "x.npy", x)
    code = """
        import sys, numpy as np
        from jax import export
        made = export.deserialize(open("model.bin", "rb").read())
        np.save("y.npy", made.call({"x": np.load("x.npy")})[0])
        assert set(made.platforms) == {"cpu", "cuda", "rocm", "tpu"}
        assert "migraphx" not in sys.modules and "translate" not in sys.modules
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, check=True, timeout=120
    )
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted(x), rtol=1e-5, atol=1e-6)


def test_export_keeps_sizes_symbolic():
    made = jax.export.deserialize(bytearray(model("n[1..8]").export("cpu")))
    for n in (1, 2, 7):
        x = RNG.standard_normal((n, 3, 4)).astype(np.float32)
        np.testing.assert_allclose(made.call({"x": x})[0], wanted(x), rtol=1e-5, atol=1e-6)


def test_export_of_an_unknown_platform():
    with pytest.raises(migraphx.Error, match="cpu, cuda, rocm, tpu"):
        model().export("vax")


def test_weights_are_the_literals_of_the_program():
    """Whatever compiling does to weights: recurrent and convolution weights stay as they are."""
    from pathlib import Path

    p = migraphx.load(str(Path(__file__).parent / "data/golden/programs/cnn_static.mxr"))
    wanted = [
        i.get_literal().tolist() for i in p.get_main_module()
        if i.name() == "@literal" and i.shape().elements() > 1
    ]  # fmt: skip
    _, weights = p.to_jax()
    assert [np.asarray(w).reshape(-1).tolist() for w in weights.values()] == wanted


BAD_CALLS = [
    ({}, {"x": np.zeros((2, 3, 4))}, migraphx.Error, "weights .* are missing"),
    (None, np.zeros(3), TypeError, "inputs is a dict by name"),
    ([1], {}, TypeError, "weights is a dict by name"),
    (None, {"x": np.zeros(3)}, migraphx.Error, "'x' has 1 axes"),
]


@pytest.mark.parametrize(("weights", "inputs", "kind", "text"), BAD_CALLS)
def test_bad_calls(weights, inputs, kind, text):
    function, own = model().to_jax()
    with pytest.raises(kind, match=text):
        function(own if weights is None else weights, inputs)
