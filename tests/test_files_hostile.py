"""Files that are wrong: each gives a `migraphx.Error` that says what and where, and soon.

`FUZZ_ROUNDS=1000 pytest tests/test_files_hostile.py -k fuzz` mutates the recorded files longer.
"""

import copy
import json
import os
import pickle
import random
import resource
import time
from pathlib import Path

import msgpack
import numpy as np
import pytest

import migraphx
from migraphx import packing

PROGRAMS = Path(__file__).parent / "data" / "golden" / "programs"
FILES = sorted(PROGRAMS.glob("*.mxr"))
ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "12"))


def tree_of(name="lstm") -> dict:
    return msgpack.unpackb((PROGRAMS / f"{name}.mxr").read_bytes())


def nodes_of(tree, module="main") -> list:
    return tree["modules"][module]["nodes"]


def refused(tree, match):
    with pytest.raises(migraphx.Error, match=match) as caught:
        migraphx.load_buffer(b"".join(packing.pack(tree)))
    assert len(str(caught.value)) < 1500


def shape_tree(lens, strides=None, kind="float_type") -> dict:
    return migraphx.shape("float", [1]).to_value() | {
        "type": kind, "lens": lens, "strides": [1] * len(lens) if strides is None else strides,
    }  # fmt: skip


# -- other kinds of files --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "the file is empty"),
        (b'{"version": 8}', 'looks like JSON, not msgpack; use format="json"'),
        (b"\x08\x08\x12\x04test", "looks like an ONNX model.*parse_onnx"),
        (pickle.dumps([1, 2]), "Key not found: version"),
        (msgpack.packb({"a": 1}), "Key not found: version"),
        (msgpack.packb([1, 2]), "Not an object: program"),
        (msgpack.packb({1: 2}), "a key is a int, not a text"),
        (msgpack.packb({"version": msgpack.ExtType(1, b"x")}), "no msgpack that MIGraphX writes"),
        (b"\x82\xa1a\x01\xa1a\x02", "the key 'a' occurs twice"),
        (b"\xa2\xff\xff", "not UTF-8"),
        (b"\x91" * 5000, "nested deeper than 400 levels"),
        (b"\xdd\xff\xff\xff\xff\x01", "4294967295 items are claimed, 1 bytes left"),
        (b"\xdf\xff\xff\xff\xff\x01", "8589934590 items are claimed, 1 bytes left"),
        (b"\xc6\xff\xff\xff\xff\x01", "4294967295 bytes of data are claimed"),
        (b"\x92\xc4\x01a\x01", "mixes binary data with other values"),
    ],
    ids=lambda v: repr(v[:12]) if isinstance(v, bytes) else "",
)
def test_foreign_files(data, match, tmp_path):
    path = tmp_path / "file.mxr"
    path.write_bytes(data)
    with pytest.raises(migraphx.Error, match=f"load: {path}: .*{match}"):
        migraphx.load(path)
    with pytest.raises(migraphx.Error, match=match):
        migraphx.load_buffer(data)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "the file is empty"),
        (b"{", "this is not JSON"),
        (b"\xff\xfe{", "this is not JSON"),
        (b"[" * 100_000, "this is not JSON"),
        (b"1" * 10_000, "this is not JSON"),
        (b'{"version":8,"modules":{"main":{"bytes":[1,256]}}}', "numbers from 0 to 255"),
        (b"[]", "Key not found: version"),
        (b"3", "Not an object: program"),
    ],
    ids=lambda v: repr(v[:12]) if isinstance(v, bytes) else "",
)
def test_foreign_json(data, match, tmp_path):
    path = tmp_path / "file.json"
    path.write_bytes(data)
    with pytest.raises(migraphx.Error, match=match):
        migraphx.load(path, format="json")


def test_msgpack_read_as_json():
    with pytest.raises(migraphx.Error, match='looks like msgpack, not JSON; use format="msgpack"'):
        migraphx.load(PROGRAMS / "lstm.mxr", format="json")


def test_missing_file_folder_and_format(tmp_path):
    with pytest.raises(migraphx.Error, match=r"Failure opening file: .*none.mxr: No such file"):
        migraphx.load(tmp_path / "none.mxr")
    with pytest.raises(migraphx.Error, match=r"Failure opening file: .*Is a directory"):
        migraphx.load(tmp_path)
    with pytest.raises(migraphx.Error, match=r"Failure opening file: .*null"):
        migraphx.load("a\0b")
    for call in (migraphx.load, lambda p, f: migraphx.save(migraphx.program(), p, f)):
        with pytest.raises(migraphx.Error, match=r"Unknown format: jsn; did you mean json"):
            call(tmp_path / "none.mxr", "jsn")
    assert not list(tmp_path.iterdir())


def test_wrong_python_types():
    with pytest.raises(TypeError, match="save: expected a program, got int"):
        migraphx.save(3, "x")
    with pytest.raises(TypeError, match="load_buffer: expected bytes, got a str"):
        migraphx.load_buffer("x")
    with pytest.raises(TypeError, match=r"argument.save: expected an argument"):
        migraphx.argument.save(np.ones(3), "x")


def test_a_program_is_no_argument_and_the_other_way_round(tmp_path):
    with pytest.raises(migraphx.Error, match=r"argument.load: .*Key not found: shape"):
        migraphx.argument.load(PROGRAMS / "lstm.mxr")
    with pytest.raises(migraphx.Error, match="Key not found: version"):
        migraphx.load(PROGRAMS.parent / "argument.mxr")


def test_every_truncation_is_refused():
    data = (PROGRAMS / "lstm.mxr").read_bytes()
    for end in range(len(data)):
        with pytest.raises(migraphx.Error):
            migraphx.load_buffer(data[:end])


def test_what_follows_the_document_is_ignored():
    data = (PROGRAMS / "lstm.mxr").read_bytes()
    assert migraphx.load_buffer(data + b"\xff\x00") == migraphx.load_buffer(data)


# -- versions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [8, 8.0, "8", 7, 1])
def test_versions_that_are_read(version):
    assert migraphx.load_buffer(msgpack.packb(tree_of() | {"version": version}))


@pytest.mark.parametrize("version", [9, 2**64 - 1, 0, -1])
def test_versions_that_are_not(version):
    refused(tree_of() | {"version": version}, f"Program version mismatch.* version {version}, .*8")


@pytest.mark.parametrize("version", [None, "x", [], float("nan"), float("inf")])
def test_versions_that_are_no_numbers(version):
    refused(tree_of() | {"version": version}, "version should be a number")


def test_an_older_file_that_cannot_be_read_says_so():
    refused(tree_of() | {"version": 5, "modules": {}}, r"main .*version 5, older than 8\)")


# -- wrong trees -----------------------------------------------------------------------------------


def changed(**changes) -> dict:
    """A program whose last but one node (`rnn_last_cell_output`) has other fields."""
    tree = tree_of()
    nodes_of(tree)[-2].update(changes)
    return tree


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"name": "rnn_last_cell_outputs"}, "not found.*did you mean rnn_last_cell_output"),
        ({"name": "gpu::gemm"}, "compiled for 'gpu'; save the program before it is compiled"),
        ({"name": "ref::nothing"}, "compiled for 'ref'; save the program before"),
        ({"name": 3}, "name should be a text, got a int"),
        ({"output": None}, "output should be a text"),
        ({"output": "x"}, "the output 'x' occurs twice"),
        ({"inputs": ["@9"]}, "main', node 5 .*input '@9' does not exist"),
        ({"inputs": ["@5"]}, "input '@5' does not exist, or stands behind"),
        ({"inputs": ["@6"]}, "input '@6' does not exist, or stands behind"),
        ({"inputs": [3]}, "inputs should be a list of texts"),
        ({"inputs": "x"}, "inputs should be a list"),
        ({"inputs": ["x"] * 3}, "Wrong number of arguments"),
        ({"operator": {"axis": 1}}, "No key 'axis'"),
        ({"operator": [1]}, "Not an object: operator"),
        ({"operator": "x"}, "Not an object: operator"),
        ({"name": "softmax", "operator": {"axis": "x"}}, "attribute axis: 'x' does not fit"),
        ({"name": "softmax", "operator": {"axis": 2**70 - 2**70 + 99}}, "out of range"),
        ({"name": "ref::op", "operator": {"name": 3}}, "name should be a text"),
        ({"name": "@return"}, "an instruction stands behind @return"),
        ({"name": "@param", "operator": {"parameter": "x"}}, "parameter 'x' occurs twice"),
        ({"name": "@param", "operator": []}, "Key not found: parameter"),
        ({"module_inputs": ["main"]}, "module 'main' runs itself"),
        ({"module_inputs": ["none"]}, "Key not found: none"),
        ({"debug_symbols": [1]}, "debug_symbols should be a list of texts"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_nodes(changes, match):
    refused(changed(**changes), match)


def test_missing_fields():
    for key in ("version", "modules"):
        refused({k: v for k, v in tree_of().items() if k != key}, f"Key not found: {key}")
    for key in ("name", "output", "inputs"):
        tree = tree_of()
        del nodes_of(tree)[-2][key]
        refused(tree, f"Key not found: {key}")
    refused(tree_of() | {"modules": {}}, "Key not found: main")


@pytest.mark.parametrize(
    ("targets", "match"),
    [
        ([{"name": "fpga"}], "unknown target 'fpga'.*save the program before"),
        ([{}], "Key not found: name"),
        ([3], "Not an object: target"),
        ("ref", "targets should be a list"),
    ],
    ids=str,
)
def test_wrong_targets(targets, match):
    refused(tree_of() | {"targets": targets}, match)


def test_wrong_options():
    tree = tree_of() | {"targets": [{"name": "ref"}]}
    refused(tree | {"compile_options": {"fast_math": "yes"}}, "fast_math should be true or false")
    refused(tree | {"compile_options": 3}, "Not an object: compile_options")


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        (None, "Not an object: shape"),
        ([], "type of a shape should be a text"),
        (shape_tree([2], kind="flot_type"), "unknown type 'flot_type'.*did you mean"),
        (shape_tree([2], kind=["a", "b"]), "type of a shape should be a text"),
        (shape_tree([-1]), "between 0 and 2"),
        (shape_tree([2.5]), "whole numbers"),
        (shape_tree([2], [1, 1]), "differ in rank"),
        (shape_tree([2**62] * 4), "absurd"),
        (shape_tree([2**40] * 2, [0, 0]), "absurd"),
        (shape_tree([3, 3], [2**62, 1]), "absurd"),
        (shape_tree([1] * 5000), "at most 1024"),
    ],
    ids=lambda v: str(v)[:60],
)
def test_wrong_shapes(shape, match):
    tree = tree_of()
    nodes_of(tree)[0]["shape"] = shape
    refused(tree, match)


@pytest.mark.parametrize(
    ("literal", "match"),
    [
        (None, "Not an object: argument"),
        ({}, "Key not found: shape"),
        ({"shape": shape_tree([2])}, "Key not found: data"),
        ({"shape": shape_tree([2]), "data": [1, 2]}, "data should be binary"),
        ({"shape": shape_tree([2]), "data": b"1234"}, "4 bytes of data for .* which takes 8"),
        ({"shape": shape_tree([2]), "data": b"1" * 12}, "12 bytes of data for .* takes 8"),
        ({"shape": shape_tree([2**40]), "data": b"1234"}, "which takes 4398046511104"),
        ({"shape": shape_tree([2**60] + [1] * 70, [0] * 71), "data": b"1234"}, "NumPy cannot"),
        ({"shape": shape_tree([], [], "tuple_type"), "sub": []}, "tuple cannot be a literal"),
        ({"shape": shape_tree([2], kind="string_type"), "strings": ["a"]}, "1 strings for"),
        ({"shape": shape_tree([2], kind="string_type"), "strings": [1, 2]}, "list of texts"),
    ],
    ids=lambda v: str(v)[:60],
)
def test_wrong_literals(literal, match):
    tree = tree_of()
    nodes_of(tree).insert(0, {"output": "L", "name": "@literal", "literal": literal})
    refused(tree, match)


def test_bools_are_zero_or_one():
    tree = tree_of()
    literal = {"shape": shape_tree([3], kind="bool_type"), "data": b"\x00\x07\xff"}
    nodes_of(tree).insert(0, {"output": "L", "name": "@literal", "literal": literal})
    program = migraphx.load_buffer(b"".join(packing.pack(tree)))
    assert program.get_main_module()[0].get_literal().tolist() == [0, 1, 1]


# -- modules ---------------------------------------------------------------------------------------


def test_modules_in_a_circle():
    tree = tree_of("if_branches")
    nodes_of(tree, "If_2_if")[0]["module_inputs"] = ["If_2_else"]
    nodes_of(tree, "If_2_else")[0]["module_inputs"] = ["If_2_if"]
    refused(tree, "runs itself")


def test_an_instruction_of_a_module_beside():
    tree = tree_of("if_branches")
    inside = nodes_of(tree, "If_2_if")[0]["output"]
    nodes_of(tree, "If_2_else")[0]["inputs"] = [inside, inside]
    refused(tree, "belongs to a module that is not around this one")


def nested(depth: int, uses: int) -> dict:
    """A program of modules that each run the next one `uses` times."""
    shape = shape_tree([2])
    modules = {}
    for level in range(depth + 1):
        name, below = f"m{level}" if level else "main", f"m{level + 1}"
        start = {
            "output": f"{name}x", "name": "@param", "operator": {"parameter": "x"}, "shape": shape,
        }  # fmt: skip
        runs = [
            {"output": f"{name}{k}", "name": "pointwise", "operator": {}, "inputs": [f"{name}x"],
             "module_inputs": [below]}
            for k in range(uses if level < depth else 0)
        ]  # fmt: skip
        end = {"output": f"{name}r", "name": "@return", "inputs": [f"{name}x"], "operator": {}}
        modules[name] = {"name": name, "nodes": [start, *runs, end]}
    return {"version": 8, "modules": modules}


def test_modules_nested_too_deep_or_too_often():
    assert migraphx.load_buffer(msgpack.packb(nested(5, 2)))
    refused(nested(500, 1), "modules nested deeper than")
    start = time.perf_counter()
    refused(nested(40, 3), "runs modules within modules without end")
    assert time.perf_counter() - start < 5


def test_operators_wrapped_too_deep():
    op = {"name": "relu", "operator": {}}
    for _ in range(250):
        op = {"name": "ref::op", "operator": op}
    refused(changed(name="ref::op", operator=op), "nested deeper than|RecursionError")


# -- mutated files ---------------------------------------------------------------------------------

NASTY = [
    None, True, False, -1, 0, 1, 2, 7, 1000, 2**31, 2**62, 2**63 - 1, 2**64 - 1, -(2**63), 0.5,
    1e308, float("nan"), float("inf"), "", "x", "@0", "@3", "main", "add", "float_type",
    "tuple_type", "string_type", "ref::op", "@return", "x" * 3000, b"", b"abc", [], {}, [[]], [0],
    [1, 2], [2**62] * 4, [-1], ["@0"], {"a": 1}, {"name": "add", "operator": {}},
    [{"type": "int", "value": 3}], {"range": {"min": 0, "max": 2**64 - 1}, "optimals": []},
]  # fmt: skip


def mutated_bytes(data: bytes, rng) -> bytes:
    """`data` with a few bytes changed, removed, inserted, or cut off."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at, way, count = rng.randrange(len(data)), rng.randrange(5), rng.randrange(1, 9)
        if way == 0:
            data[at] = rng.randrange(256)
        elif way == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif way == 2:
            del data[at : at + count]
        elif way == 3:
            data[at:at] = rng.randbytes(count)
        else:
            del data[at + 1 :]
        data = data or bytearray(b"\x80")
    return bytes(data)


def mutated_tree(tree, rng):
    """`tree` with one or two parts removed, doubled or replaced."""
    for _ in range(rng.choice([1, 1, 2])):
        owner, key = rng.choice(list(places(tree)))
        way = rng.randrange(5)
        if way == 0:
            del owner[key]
        elif way == 1 and isinstance(owner, list):
            owner.insert(key, copy.deepcopy(rng.choice(owner)))
        else:
            owner[key] = copy.deepcopy(rng.choice(NASTY))
    return tree


def places(tree):
    """(container, key) of every part of a tree."""
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in list(keys):
        yield tree, key
        yield from places(tree[key])


def check_load(load):
    """Loads, and where that succeeds saves and loads again; True if it succeeded."""
    start = time.perf_counter()
    try:
        program = load()
        assert migraphx.load_buffer(migraphx.save_buffer(program)) == program
    except migraphx.Error:
        return False
    finally:
        assert time.perf_counter() - start < 5
    return True


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_fuzz(path, tmp_path):
    rng = random.Random(path.stem)
    data = path.read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loaded = 0
    for _ in range(ROUNDS):
        bad = mutated_bytes(data, rng)
        loaded += check_load(lambda bad=bad: migraphx.load_buffer(bad))
        bad = b"".join(packing.pack(mutated_tree(msgpack.unpackb(data), rng)))
        loaded += check_load(lambda bad=bad: migraphx.load_buffer(bad))
    assert loaded < 2 * ROUNDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


@pytest.mark.parametrize("name", ["lstm", "if_branches", "dynamic_ranges"])
def test_fuzz_json(name, tmp_path):
    rng = random.Random(name)
    text, path = (PROGRAMS / f"{name}.json").read_bytes(), tmp_path / "bad.json"
    for _ in range(ROUNDS):
        path.write_bytes(mutated_bytes(text, rng))
        check_load(lambda: migraphx.load(path, format="json"))
        path.write_text(json.dumps(mutated_tree(json.loads(text), rng), default=list))
        check_load(lambda: migraphx.load(path, format="json"))
