"""Files of programs and arguments; what MIGraphX wrote is read, run and written back unchanged.

`pytest tests/test_files.py -k lstm` runs what there is about one recorded program. Hostile files
are in `test_files_hostile.py`.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import msgpack
import numpy as np
import pytest

import migraphx
from migraphx import packing, values
from migraphx.argument import buffer_array
from migraphx.types import type_t

GOLDEN = Path(__file__).parent / "data" / "golden"
PROGRAMS = GOLDEN / "programs"
INDEX = json.loads((PROGRAMS / "index.json").read_text())
NAMES = sorted(p.name.removesuffix(".mxr") for p in PROGRAMS.glob("*.mxr"))
# Recorded outputs come from sums in another order; quantised models amplify the difference.
TOLERANCE = {"fp16": 5e-3, "bf16": 4e-2, "fp8": 1e-3, "int8": 1e-3}
# Where an operator's shape differs from the recorded one on purpose or for now.
DIFFERENT = {"cnn_batch_dynamic": "flatten keeps the optimals of a dimension, MIGraphX drops them"}


def marked(names) -> list:
    """Test parameters, those in `DIFFERENT` expected to fail."""
    marks = {name: pytest.mark.xfail(reason=why) for name, why in DIFFERENT.items()}
    return [pytest.param(n, marks=marks[n]) if n in marks else n for n in names]


def sample(**literals) -> migraphx.program:
    """A program that adds literals to its input."""
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape("float", [2, 3]))
    for array in literals.values():
        x = main.add_instruction("add", [x, main.add_literal(array)])
    main.add_return([x])
    return program


def again(program) -> migraphx.program:
    """The program after a way through a msgpack file."""
    return migraphx.load_buffer(migraphx.save_buffer(program))


def with_literal(array_or_argument) -> migraphx.program:
    program = migraphx.program()
    main = program.get_main_module()
    main.add_return([main.literal(migraphx.argument(array_or_argument))])
    return program


# -- recorded files --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", marked(NAMES))
def test_recorded_msgpack_is_written_back_byte_for_byte(name):
    path = PROGRAMS / f"{name}.mxr"
    assert migraphx.save_buffer(migraphx.load(path)) == path.read_bytes()


@pytest.mark.parametrize("name", marked(sorted(INDEX)))
def test_recorded_json_is_written_back_character_by_character(name, tmp_path):
    path = PROGRAMS / f"{name}.json"
    program = migraphx.load(path, format="json")
    migraphx.save(program, tmp_path / "a.json", format="json")
    assert (tmp_path / "a.json").read_text() == path.read_text()
    assert program == migraphx.load(PROGRAMS / f"{name}.mxr")


@pytest.mark.parametrize("name", sorted(INDEX))
def test_recorded_interface(name):
    program, record = migraphx.load(PROGRAMS / f"{name}.mxr"), INDEX[name]
    assert program.get_parameter_names() == record["parameter_names"]
    shapes = {k: repr(s) for k, s in program.get_parameter_shapes().items()}
    assert shapes == record["parameter_shapes"]
    # Of views these are the strides before compiling; `program.get_output_shapes` has the results'.
    assert [repr(s) for s in program.get_main_module().get_output_shapes()] == record[
        "output_shapes"
    ]
    assert not program.is_compiled()


@pytest.mark.parametrize("name", [n for n in sorted(INDEX) if "outputs" in INDEX[n]])
def test_recorded_outputs(name):
    check_outputs(migraphx.load(PROGRAMS / f"{name}.mxr"), name)


def check_outputs(program, name):
    shapes = program.get_parameter_shapes()
    outputs = program.run({n: migraphx.generate_argument(s, 0) for n, s in shapes.items()})
    tolerance = TOLERANCE.get(name.rpartition("_")[2], 1e-4)
    for got, record in zip(outputs, INDEX[name]["outputs"], strict=True):
        assert repr(got.get_shape()) == record["shape"]
        wanted = np.array(record["values"], float)
        np.testing.assert_allclose(got.tolist(), wanted, rtol=tolerance, atol=tolerance)


def test_program_compiled_by_migraphx_runs():
    program = migraphx.load(PROGRAMS / "cnn_static.compiled_ref.mxr")
    assert program.is_compiled()
    check_outputs(program, "cnn_static")


def test_recorded_argument():
    arg = migraphx.argument.load(GOLDEN / "argument.mxr")
    records = json.loads((GOLDEN / "generate_argument.json").read_text())
    assert arg.get_shape() == migraphx.shape("float", [2, 3])
    np.testing.assert_array_equal(arg.tolist(), records["argument.mxr"])


def test_recorded_argument_is_written_back(tmp_path):
    arg = migraphx.argument.load(GOLDEN / "argument.mxr")
    migraphx.argument.save(arg, tmp_path / "a.mxr")
    assert (tmp_path / "a.mxr").read_bytes() == (GOLDEN / "argument.mxr").read_bytes()


# -- programs --------------------------------------------------------------------------------------


def test_compiled_program_keeps_target_and_options():
    program = sample(a=np.ones((2, 3), np.float32))
    options = {"xla_cpu_enable_fast_math": False, "xla_dump_to": "/tmp/x", "other": "a/b"}
    program.compile(
        migraphx.get_target("cpu"), fast_math=False, advance_backend_options=dict(options)
    )
    loaded = again(program)
    assert loaded.is_compiled()
    assert loaded._target.name() == "cpu"
    assert loaded._options["fast_math"] is False
    # A file cannot make XLA write to paths of its choice.
    assert loaded._options["advance_backend_options"] == {"xla_cpu_enable_fast_math": False}
    assert loaded.run({"x": np.ones((2, 3), np.float32)})[0].tolist() == [2.0] * 6


def test_tree_of_compiled_program_has_what_migraphx_reads():
    program = sample()
    program.compile(migraphx.get_target("ref"))
    tree = values.program_to_value(program)
    assert tree["targets"] == [{"name": "ref"}]
    assert tree["contexts"] == [None]


def test_same_order_of_parameters_after_every_round():
    program = migraphx.program()
    main = program.get_main_module()
    refs = [main.add_parameter(n, migraphx.shape("float", [1])) for n in "bac"]
    main.add_return(refs)
    assert again(again(program)).get_parameter_names() == ["b", "a", "c"]


def test_names_stay_unique_beside_odd_parameters():
    program = migraphx.program()
    main = program.get_main_module()
    refs = [main.add_parameter(n, migraphx.shape("float", [1])) for n in ("@2", "@3")]
    main.add_return([main.add_instruction("add", refs)])
    assert again(program) == program


def test_flags_and_symbols_of_instructions_survive_clone_and_file():
    tree = msgpack.unpackb((PROGRAMS / "lstm.mxr").read_bytes())
    node = tree["modules"]["main"]["nodes"][3]
    node["normalized"], node["debug_symbols"] = True, ["b", "a"]
    loaded = migraphx.load_buffer(msgpack.packb(tree)).clone()
    node = values.program_to_value(loaded)["modules"]["main"]["nodes"][3]
    assert node["normalized"] is True
    assert node["debug_symbols"] == ["a", "b"]


def test_modules_that_nothing_runs_keep_their_instructions():
    program = sample()
    spare = program.create_module("spare")
    spare.add_return([spare.add_parameter("p", migraphx.shape("float", [2]))])
    assert again(program) == program
    assert len(again(program).get_modules()[1]) == 2


def test_empty_program_has_no_nodes():
    tree = msgpack.unpackb(migraphx.save_buffer(migraphx.program()))
    assert tree["modules"] == {"main": {"name": "main", "nodes": None}}
    assert again(migraphx.program()) == migraphx.program()


@pytest.mark.parametrize(
    "dims",
    [
        ["n[1..8]", "3", "2*n[1..8] + 1"],
        ["n[1..20][2..10]{4}", "h[4..64] / 2"],
        ["min(n[1..8], 4) % 3", "free"],
        [(1, 4, {2}), 3],
    ],
    ids=str,
)
def test_dynamic_shapes(dims):
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape("float", dyn_dims=dims))
    main.add_return([main.add_instruction("relu", [x])])
    loaded = again(program)
    assert loaded == program
    before, after = (p.get_parameter_shapes()["x"].dyn_dims() for p in (program, loaded))
    assert list(map(repr, before)) == list(map(repr, after))


@pytest.mark.parametrize("format", ["msgpack", "json"])
def test_attributes_without_a_finite_value(format, tmp_path):
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape("float", [2]))
    op = migraphx.op("pad", pads=[1, 1], value=-np.inf)
    main.add_return([main.add_instruction(op, [x])])
    migraphx.save(program, tmp_path / "p", format=format)
    assert migraphx.load(tmp_path / "p", format=format) == program


# -- data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [t.name for t in type_t if t.name not in ("tuple_type",)])
def test_literals_of_every_type(kind, tmp_path):
    if kind == "string_type":
        array = np.array(["a", "ä", ""], object)
    else:
        array = np.arange(3).astype(migraphx.types.dtype_of(type_t[kind]))
    shape = migraphx.shape(kind, [3])
    program = with_literal(migraphx.argument.of(array, shape))
    migraphx.save(program, tmp_path / "p.json", format="json")
    for loaded in (again(program), migraphx.load(tmp_path / "p.json", "json")):
        literal = loaded.get_main_module()[0].get_literal()
        assert literal.get_shape() == shape
        same = np.ndarray.tolist if kind == "string_type" else np.ndarray.tobytes
        assert same(literal.numpy()) == same(array)


def test_data_are_written_in_memory_order():
    memory = np.arange(11, dtype=np.float32)
    shape = migraphx.shape("float", [3, 2], [4, 2])
    gaps = migraphx.argument.of(buffer_array(shape, memory.tobytes()), shape)
    data = np.frombuffer(values.argument_to_value(gaps)["data"], np.float32)
    assert data.tolist() == [0, 0, 2, 0, 4, 0, 6, 0, 8, 0, 10]
    turned = migraphx.argument(np.arange(6, dtype=np.int8).reshape(2, 3).T)
    assert bytes(values.argument_to_value(turned)["data"]) == bytes(range(6))
    assert again(with_literal(gaps)) == with_literal(gaps)
    assert again(with_literal(turned)) == with_literal(turned)


def test_repeated_elements_are_written_once():
    big = np.broadcast_to(np.float32(3), (1 << 40,))
    data = values.argument_to_value(migraphx.argument(big))["data"]
    assert bytes(data) == np.float32(3).tobytes()


@pytest.mark.parametrize("lens", [[0], [2, 0, 3]], ids=str)
def test_data_without_elements(lens):
    program = with_literal(np.empty(lens, np.float32))
    assert msgpack.unpackb(migraphx.save_buffer(program))["modules"]["main"]["nodes"][0]["literal"][
        "data"
    ] == [b""]
    assert again(program) == program


def test_packed_weights_are_not_copied_to_be_written():
    array = np.arange(10_000, dtype=np.float32).reshape(100, 100)
    for arg in (array, array.T):
        data = values.argument_to_value(migraphx.argument(arg))["data"]
        assert np.shares_memory(np.frombuffer(data, np.uint8), array)
        assert any(np.shares_memory(np.frombuffer(p, np.uint8), array) for p in packing.pack(data))


def test_weights_that_are_read_are_aligned_for_xla():
    loaded = again(with_literal(np.ones(5000, np.float32)))
    array = loaded.get_main_module()[0].get_literal().numpy()
    assert array.__array_interface__["data"][0] % 64 == 0
    assert not array.flags.writeable


def test_loading_does_not_need_the_buffer_afterwards():
    buffer = bytearray(migraphx.save_buffer(with_literal(np.ones(5000, np.float32))))
    loaded = migraphx.load_buffer(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert loaded.get_main_module()[0].get_literal().numpy().all()


@pytest.mark.parametrize("size", [0, 1, 1000, 1001, 5000, 10_000])
def test_long_data_come_in_chunks(size, monkeypatch):
    monkeypatch.setattr(packing, "CHUNK", 5000)
    blob = bytes(np.arange(size, dtype=np.uint8))
    document = b"".join(packing.pack(blob))
    chunks = msgpack.unpackb(document)
    assert b"".join(chunks) == blob
    assert [len(c) for c in chunks] == [5000] * (size // 5000) + [size % 5000] * (
        size % 5000 > 0 or size == 0
    )
    program = with_literal(np.frombuffer(blob, np.uint8))
    assert again(program) == program


def test_old_files_have_data_in_a_single_item():
    tree = msgpack.unpackb(migraphx.save_buffer(with_literal(np.ones(3, np.float32))))
    literal = tree["modules"]["main"]["nodes"][0]["literal"]
    literal["data"] = literal["data"][0]
    assert migraphx.load_buffer(msgpack.packb(tree)) == with_literal(np.ones(3, np.float32))


# -- arguments -------------------------------------------------------------------------------------


def test_arguments_of_tuples(tmp_path):
    parts = [migraphx.argument(np.arange(3)), migraphx.argument(np.ones((2, 2), np.float16))]
    migraphx.argument.save(migraphx.argument.tuple_of(parts), tmp_path / "t.mxr")
    loaded = migraphx.argument.load(str(tmp_path / "t.mxr"))
    assert loaded == migraphx.argument.tuple_of(parts)


# -- writing files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["msgpack", "json"])
@pytest.mark.parametrize("kind", [str, Path, os.fsencode])
def test_names_of_files(format, kind, tmp_path):
    path = kind(str(tmp_path / "p"))
    migraphx.save(sample(), path, format=format)
    assert migraphx.load(path, format=format) == sample()


def test_saving_keeps_permissions_and_links(tmp_path):
    path, link = tmp_path / "p.mxr", tmp_path / "link.mxr"
    migraphx.save(sample(), path)
    path.chmod(0o640)
    link.symlink_to(path)
    migraphx.save(sample(a=np.ones((2, 3), np.float32)), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert len(migraphx.load(path).get_main_module()) == 4


def test_failed_saving_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "p.mxr"
    migraphx.save(sample(), path)

    def failing():
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(migraphx.Error, match="No space left"):
        migraphx.files.replace_file(path, failing(), "save")
    assert migraphx.load(path) == sample()
    assert list(tmp_path.iterdir()) == [path]


def test_saving_to_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(migraphx.Error, match=r"save: Failure opening file: .*No such file"):
        migraphx.save(sample(), tmp_path / "none" / "p.mxr")


SAVER = """
import sys, numpy, migraphx
def program(fill):
    p = migraphx.program()
    p.get_main_module().add_literal(numpy.full(4_000_000, fill, numpy.float32))
    return p
both = [program(1), program(2)]
migraphx.save(both[0], sys.argv[1])
print("ready", flush=True)
while True:
    for p in both:
        migraphx.save(p, sys.argv[1])
"""


def test_a_kill_leaves_a_whole_file(tmp_path):
    path = tmp_path / "p.mxr"
    for delay in (0.01, 0.05, 0.12):
        child = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "ready\n"
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        data = migraphx.load(path).get_main_module()[0].get_literal().numpy()
        assert len(data) == 4_000_000
        assert data.min() == data.max()
        assert data[0] in (1, 2)


def test_loading_does_not_import_jax():
    code = "import sys, migraphx; migraphx.load(sys.argv[1]); assert 'jax' not in sys.modules"
    path = PROGRAMS / "cnn_static.compiled_ref.mxr"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
