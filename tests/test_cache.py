"""Compiled programs on disk: a second process compiles nothing, and nothing bad gets in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import migraphx
from translate.to_jax import cache

PROGRAMS = Path(__file__).parent / "data" / "golden" / "programs"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiles(monkeypatch):
    """How often JAX compiled a function for us."""
    count = []
    original = jax.stages.Lowered.compile

    def counted(self, *args, **kwargs):
        count.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(jax.stages.Lowered, "compile", counted)
    return count


def small(scale=2.0, size=300):
    """x * scale + a weight of more than 512 bytes."""
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float_type", lens=[size]))
    factor = main.add("multibroadcast", main.add_literal(np.float32(scale)), out_lens=[size])
    weight = main.add_literal(np.arange(size, dtype=np.float32))
    main.add_return([main.add("add", main.add("mul", x, factor), weight)])
    return program


def result(program, **inputs):
    program.compile(migraphx.get_target("ref"))
    given = inputs or {
        k: migraphx.generate_argument(s, 0) for k, s in program.get_parameter_shapes().items()
    }
    return [np.asarray(r) for r in program.run(given)]


def test_the_second_time_nothing_is_compiled(folder, compiles):
    first = result(small())
    assert len(compiles) == 1
    assert len(list(folder.iterdir())) == 1
    second = result(small())
    assert len(compiles) == 1
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "name", ["cnn_static", "attention", "lstm", "if_branches", "if_two_modules", "loop_scan",
             "literals_of_every_type", "convert_softmax", "conv_pool_views"],
)  # fmt: skip
def test_golden_programs(folder, compiles, name):
    first = result(migraphx.load(str(PROGRAMS / f"{name}.mxr")))
    before = len(compiles)
    second = result(migraphx.load(str(PROGRAMS / f"{name}.mxr")))
    assert len(compiles) == before
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sizes_that_depend_on_data(folder, compiles):
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["places"]),
         helper.make_node("Shape", ["places"], ["size"]),
         helper.make_node("ConstantOfShape", ["size"], ["y"])],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
         helper.make_tensor_value_info("places", TensorProto.INT64, None)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    parts = []
    for _ in range(2):
        program = migraphx.parse_onnx_buffer(model.SerializeToString())
        for given in ([1, 0, 2, 0, 0, 3], [0, 0, 0, 1, 0, 0]):
            parts.append(result(program, x=np.array(given, np.float32)))
        parts.append(len(compiles))
    assert parts[2] == parts[5]
    for a, b in zip(parts[:2], parts[3:5], strict=True):
        for p, q in zip(a, b, strict=True):
            np.testing.assert_array_equal(p, q)
    assert parts[3][0].shape == (1, 3)


def test_what_differs_is_compiled_anew(folder, compiles):
    first = result(small(2.0))
    other = result(small(3.0))  # a small literal is part of the code
    assert len(compiles) == 2
    assert not np.array_equal(first, other)
    result(small(2.0, 400))
    assert len(compiles) == 3
    program = small()
    program.compile(migraphx.get_target("cpu"))  # fast mathematics, which ref never uses
    assert len(compiles) == 4
    program.compile(migraphx.get_target("cpu"), fast_math=False)
    assert len(compiles) == 4


def test_weights_are_no_part_of_the_code(folder, compiles):
    def program(seed):
        made = migraphx.program()
        main = made.get_main_module()
        x = main.add_parameter("x", migraphx.shape(type="float_type", lens=[2, 300]))
        w = np.random.default_rng(seed).standard_normal((300, 4)).astype(np.float32)
        main.add_return([main.add("dot", x, main.add_literal(w))])
        return made, w

    x = np.random.default_rng(9).standard_normal((2, 300)).astype(np.float32)
    for seed in (0, 1):
        made, w = program(seed)
        np.testing.assert_allclose(result(made, x=x)[0], x @ w, rtol=1e-4, atol=1e-4)
    assert len(compiles) == 1


def damage_nothing(path):
    path.write_bytes(b"")


def damage_end(path):
    path.write_bytes(path.read_bytes()[:-100])


def damage_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def damage_foreign(path):
    path.write_bytes(b"\x80\x04\x95 a pickle perhaps" * 30)


@pytest.mark.parametrize("harm", [damage_nothing, damage_end, damage_bit, damage_foreign])
def test_damaged_entries_are_compiled_again(folder, compiles, harm):
    first = result(small())
    (path,) = folder.iterdir()
    harm(path)
    second = result(small())
    assert len(compiles) == 2
    np.testing.assert_array_equal(first, second)
    third = result(small())  # it was written again
    assert len(compiles) == 2
    np.testing.assert_array_equal(first, third)


def test_an_entry_that_says_other_things_is_refused(folder, compiles, monkeypatch):
    result(small())
    (path,) = folder.iterdir()
    entry = cache.read(path.name)
    for key, value in (("w", [99]), ("o", "x"), ("known", 3), ("compiled", {}), ("stop", None)):
        cache.write(path.name, {**entry, key: value})
        before = len(compiles)
        got = result(small())
        np.testing.assert_array_equal(got[0].shape, (300,))
        assert len(compiles) == before + 1, key


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
def test_a_directory_that_others_can_write_is_not_used(folder, compiles):
    folder.mkdir()
    folder.chmod(0o777)
    result(small())
    result(small())
    assert len(compiles) == 2
    assert not list(folder.iterdir())


def test_off(folder, compiles, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, "off")
    result(small())
    result(small())
    assert len(compiles) == 2
    assert not folder.exists()


def test_the_longest_unused_go_first(folder, monkeypatch):
    for k in range(3):
        result(small(float(k)))
    sizes = [p.stat().st_size for p in folder.iterdir()]
    oldest = min(folder.iterdir(), key=lambda p: p.stat().st_mtime_ns)
    monkeypatch.setattr(cache, "LIMIT", sum(sizes) + min(sizes) // 2)
    monkeypatch.setattr(cache, "_shrink", cache._shrink)
    cache.write("new", {"filler": b"x" * max(sizes)})
    left = {p.name for p in folder.iterdir()}
    assert "new" in left or sum(sizes) // 4 < max(sizes)
    assert sum(p.stat().st_size for p in folder.iterdir()) <= cache.LIMIT
    assert oldest.name not in left or "new" not in left


SCRIPT = """
import json, sys
import jax
import numpy as np
import migraphx
count = [0]
original = jax.stages.Lowered.compile
def counted(self, *args, **kwargs):
    count[0] += 1
    return original(self, *args, **kwargs)
jax.stages.Lowered.compile = counted
program = migraphx.load(sys.argv[1])
if not program.is_compiled():
    program.compile(migraphx.get_target("cpu"))
    migraphx.save(program, sys.argv[1])
(got,) = program.run({"x": np.ones(300, np.float32)})
print(json.dumps([count[0], got.tolist()]))
"""


def test_a_new_process(folder, tmp_path):
    path = tmp_path / "p.mxr"
    migraphx.save(small(), str(path))
    seen = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True
        )
        seen.append(json.loads(done.stdout))
    assert [s[0] for s in seen] == [1, 0]
    assert seen[0][1] == seen[1][1] == [2.0 + k for k in range(300)]
