"""Arguments: from every kind of buffer, to every kind of consumer, with memory kept alive."""

import copy
import gc
import json
import pickle
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import migraphx
from migraphx.argument import copy_keeping_strides, memory_bytes, random_bits
from migraphx.types import dtype_of, type_t

GENERATED = json.loads((Path(__file__).parent / "data/golden/generate_argument.json").read_text())
KINDS = [t for t in type_t if t < 100 and t not in (type_t.tuple_type,)]


@pytest.mark.parametrize("key", [k for k in GENERATED if "/" in k])
def test_generated_numbers(key):
    name, seed = key.split("/")
    made = migraphx.generate_argument(migraphx.shape(type=name, lens=[2, 5]), int(seed))
    assert made.tolist() == GENERATED[key]


def test_long_random_sequences_follow_the_recurrence():
    mask, (x, y, z) = 2**64 - 1, (123456789, 362436069, 521288629 ^ 5)
    expected = []
    for _ in range(3000):
        t = x ^ (x << 16 & mask)
        t ^= t >> 5
        t ^= t << 1 & mask
        x, y, z = y, z, t ^ y ^ z
        expected.append(z)
    assert random_bits(3000, 5).tolist() == expected
    assert random_bits(0, 5).tolist() == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda t: t.name)
def test_every_type_from_numpy_and_back(kind):
    source = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype_of(kind))
    if kind == type_t.fp4x2_type:
        arg = migraphx.fill_argument(migraphx.shape(type=kind, lens=[2, 3]), 1)
        assert arg.tolist() == [1] * 6
        return
    arg = migraphx.argument(source)
    assert arg.get_shape() == migraphx.shape(type=kind, lens=[2, 3])
    assert arg.tolist() == [0, 1, 1, 1, 0, 1]
    assert all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in arg.tolist())
    assert repr(arg) == "0, 1, 1, 1, 0, 1"
    back = np.asarray(arg)
    assert back.dtype == source.dtype
    assert np.shares_memory(back, source)
    assert migraphx.create_argument(arg.get_shape(), arg.tolist()) == arg


VIEWS = {
    "plain": lambda a: a,
    "transposed": lambda a: a.T,
    "sliced": lambda a: a[:, 1:3],
    "stepped": lambda a: a[::2, ::2],
    "broadcast": lambda a: np.broadcast_to(a[0], (5, 6)),
    "reversed": lambda a: a[::-1],
    "new axis": lambda a: a[:, None],
    "empty": lambda a: a[:0],
    "fortran": np.asfortranarray,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_keep_their_values_and_strides(name):
    view = VIEWS[name](np.arange(24, dtype=np.int32).reshape(4, 6))
    arg = migraphx.argument(view)
    assert np.array_equal(np.asarray(arg), view)
    assert arg.tolist() == view.reshape(-1).tolist()
    assert arg.get_shape().lens() == list(view.shape)
    if min(view.strides) >= 0 and view.size:
        # An axis of size 1 has whatever stride NumPy's version gives it.
        steps = zip(view.shape, arg.get_shape().strides(), view.strides, strict=True)
        assert all(have == want // 4 for size, have, want in steps if size > 1)
        assert arg.data_ptr() == view.ctypes.data


def test_rank_0_is_lens_1_stride_0():
    for value in (np.float32(3), np.array(3, np.float32), jnp.float32(3)):
        arg = migraphx.argument(value)
        assert repr(arg.get_shape()) == "float_type, {1}, {0}"
        assert np.asarray(arg).shape == (1,)
        assert float(arg) == 3
    assert migraphx.argument(2.5).get_shape().type_string() == "double_type"
    assert int(migraphx.argument(7)) == 7


def test_buffers():
    assert migraphx.argument(b"abc").tolist() == [97, 98, 99]
    assert migraphx.argument(bytearray(b"ab")).get_shape().type_string() == "uint8_type"
    assert migraphx.argument(memoryview(np.arange(3.0))).tolist() == [0, 1, 2]
    assert migraphx.argument(migraphx.argument(np.arange(2))).tolist() == [0, 1]
    assert migraphx.argument(np.array([1, 2], ">i4")).tolist() == [1, 2]
    assert migraphx.argument(np.frombuffer(b"\0" * 9, np.uint8)[1:].view("<i4")).tolist() == [0, 0]


class Exporter:
    """Something that knows DLPack alone, as tensors of other libraries do."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_both_ways():
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    arg = migraphx.argument(Exporter(source))
    assert arg.data_ptr() == source.ctypes.data
    assert np.shares_memory(np.from_dlpack(arg), source)
    half = migraphx.argument(Exporter(jnp.ones(3, jnp.bfloat16)))
    assert half.get_shape().type_string() == "bf16_type"
    assert jax.dlpack.from_dlpack(half).dtype == jnp.bfloat16
    assert arg.__dlpack_device__() == (1, 0)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes export buffers from Python 3.12 on")
def test_buffer_protocol():
    assert memoryview(migraphx.argument(np.arange(3.0))).tolist() == [0, 1, 2]
    assert memoryview(migraphx.argument(np.ones(2, ml_dtypes.bfloat16))).nbytes == 4


def test_jax_arrays_are_borrowed():
    source = jnp.arange(6.0).reshape(2, 3)
    arg = migraphx.argument(source)
    assert arg.get_shape() == migraphx.shape(lens=[2, 3])
    assert arg.data_ptr() == source.unsafe_buffer_pointer()
    assert arg.tolist() == [0, 1, 2, 3, 4, 5]


def test_memory_of_temporaries_is_kept():
    args = [migraphx.argument(np.full(1000, k)) for k in range(20)]
    gc.collect()
    filler = [np.zeros(1000) for _ in range(50)]
    assert all(set(a.tolist()) == {k} for k, a in enumerate(args))
    assert len(filler) == 50


@pytest.mark.parametrize("bad", [[1, 2], "text", None, {}, object(), (1, 2)])
def test_what_is_no_buffer(bad):
    with pytest.raises(TypeError, match="argument"):
        migraphx.argument(bad)


def test_unsupported_elements():
    with pytest.raises(migraphx.Error, match="Unsupported data type"):
        migraphx.argument(np.zeros(2, "M8[s]"))


def test_equality_is_exact():
    a = migraphx.argument(np.array([1, 2], np.float32))
    assert a == migraphx.argument(np.array([1, 2], np.float32))
    assert a != migraphx.argument(np.array([1, 2 + 2**-22], np.float32))
    assert a != migraphx.argument(np.array([1, 2]))
    assert a != migraphx.argument(np.array([[1, 2]], np.float32))
    assert migraphx.argument(np.array([np.inf])) == migraphx.argument(np.array([np.inf]))
    assert migraphx.argument(np.array([np.nan])) != migraphx.argument(np.array([np.nan]))
    assert a != 3


def test_making_arguments():
    s = migraphx.shape(type="int8", lens=[2, 2], strides=[1, 2])
    assert migraphx.create_argument(s, [1, 2, 3, 4]).tolist() == [1, 2, 3, 4]
    assert memory_bytes(migraphx.create_argument(s, [1, 2, 3, 4])) == bytes([1, 3, 2, 4])
    assert migraphx.create_argument(s, [1.7, -1.7, 0, 5]).tolist() == [1, -1, 0, 5]
    assert migraphx.fill_argument(migraphx.shape(type="bool", lens=[2]), 3).tolist() == [1, 1]
    with pytest.raises(migraphx.Error, match="3 values for the 4 elements"):
        migraphx.create_argument(s, [1, 2, 3])
    with pytest.raises(migraphx.Error, match="outside the range of int8_type"):
        migraphx.fill_argument(s, 200)
    dynamic = migraphx.shape(dyn_dims=[migraphx.dynamic_dimension(1, 4)])
    for make in (migraphx.generate_argument, lambda d: migraphx.fill_argument(d, 0)):
        with pytest.raises(migraphx.Error, match="dynamic"):
            make(dynamic)
        with pytest.raises(TypeError, match=r"migraphx\.shape"):
            make([2, 3])


@pytest.mark.parametrize("kind", KINDS, ids=lambda t: t.name)
def test_pointer(kind):
    source = migraphx.generate_argument(migraphx.shape(type=kind, lens=[3, 4]))
    view = migraphx.argument_from_pointer(source.get_shape(), source.data_ptr())
    assert view == source
    assert view.data_ptr() == source.data_ptr()
    turned = migraphx.shape(type=kind, lens=[4, 3], strides=[1, 4])
    seen = np.asarray(migraphx.argument_from_pointer(turned, source.data_ptr()))
    assert np.array_equal(seen, np.asarray(source).T)


def test_pointer_sees_later_writes():
    source = np.zeros(3, np.float32)
    view = migraphx.argument_from_pointer(migraphx.shape(lens=[3]), source.ctypes.data)
    source[1] = 5
    assert view.tolist() == [0, 5, 0]
    with pytest.raises(migraphx.Error, match="address is 0"):
        migraphx.argument_from_pointer(migraphx.shape(lens=[3]), 0)


def test_copies_and_pickles():
    a = migraphx.argument(np.arange(6).reshape(2, 3).T)
    b = copy.deepcopy(a)
    assert a == b
    assert a.data_ptr() != b.data_ptr()
    assert copy.copy(a).data_ptr() == a.data_ptr()
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(a)


def test_copy_keeps_gaps():
    s = migraphx.shape(lens=[3, 2], strides=[4, 2])
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    made = copy_keeping_strides(array, s)
    assert made.strides == (16, 8)
    assert np.array_equal(made, array)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (123456.789, "123457"), (1e10, "1e+10"), (1e-7, "1e-07"), (-0.0, "-0"),
     (np.nan, "nan"), (-np.inf, "-inf"), (2.0, "2"), (1 / 3, "0.333333")],
)  # fmt: skip
def test_numbers_print_with_six_digits(value, text):
    assert repr(migraphx.argument(np.array([value]))) == text


# -- memory of a GPU -------------------------------------------------------------------------------


def test_from_gpu_copies_and_gpu_sync_returns():
    given = migraphx.argument(np.arange(4, dtype=np.float32))
    copy = migraphx.from_gpu(given)
    assert copy == given
    assert copy.data_ptr() != given.data_ptr()
    assert migraphx.gpu_sync() is None


def test_to_gpu_needs_a_gpu(monkeypatch):
    """Here a CPU device plays the GPU; without one the error says how to install support."""
    import jax

    from translate.to_jax import device

    given = migraphx.argument(np.arange(4, dtype=np.int64))
    if all(d.platform == "cpu" for d in jax.devices()):
        with pytest.raises(migraphx.Error, match="finds no GPU"):
            migraphx.to_gpu(given)
        with pytest.raises(migraphx.Error, match="finds no GPU"):
            migraphx.allocate_gpu(given.get_shape())
    monkeypatch.setattr(device, "ACCELERATORS", ("cpu",))
    there = migraphx.to_gpu(given)
    assert there == given
    assert there.get_shape() == given.get_shape()
    zeros = migraphx.allocate_gpu(given.get_shape())
    assert zeros.tolist() == [0, 0, 0, 0]
    assert migraphx.from_gpu(there) == given
