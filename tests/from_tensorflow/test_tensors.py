"""Constants as GraphDefs hold them: raw bytes, lists of values by type, lists that go on."""

import ml_dtypes
import numpy as np
import pytest
from tensorboard.compat.proto import tensor_pb2

import migraphx
from translate.from_tensorflow.tensors import TYPES, read_tensor


def listed(number, values, *dims):
    """A TensorProto with its values in the list of its type."""
    _, kind, field = TYPES[number]
    tensor = tensor_pb2.TensorProto(dtype=number)
    for size in dims:
        tensor.tensor_shape.dim.add(size=size)
    array = np.asarray(values).astype(kind)
    if field == "float8_val":
        tensor.float8_val = array.tobytes()
    elif field == "half_val":
        tensor.half_val.extend(array.view(np.uint16).tolist())
    else:
        getattr(tensor, field).extend(array.tolist())
    return tensor


@pytest.mark.parametrize("number", TYPES)
def test_every_type_as_list_and_as_bytes(number):
    _, kind, field = TYPES[number]
    want = np.array([[1, 0], [1, 1]]).astype(kind)
    tensor = listed(number, want.reshape(-1), 2, 2)
    assert read_tensor(tensor).dtype == np.dtype(kind)
    assert np.array_equal(read_tensor(tensor), want)
    tensor.ClearField(field)
    tensor.tensor_content = want.tobytes()
    assert np.array_equal(read_tensor(tensor), want)


def test_negative_numbers_and_fractions():
    assert read_tensor(listed(6, [-1, -128, 127], 3)).tolist() == [-1, -128, 127]
    assert read_tensor(listed(14, [1.5, -2.0], 2)).tolist() == [1.5, -2.0]
    assert read_tensor(listed(14, [1.5], 1)).dtype == np.dtype(ml_dtypes.bfloat16)


def test_short_lists_go_on_with_their_last_value():
    assert read_tensor(listed(1, [2.5], 2, 2)).tolist() == [[2.5, 2.5], [2.5, 2.5]]
    assert read_tensor(listed(3, [1, 2], 4)).tolist() == [1, 2, 2, 2]
    assert read_tensor(listed(9, [], 2)).tolist() == [0, 0]
    assert read_tensor(listed(1, [7.0])).shape == ()
    assert read_tensor(listed(1, [], 0, 3)).shape == (0, 3)


def test_bad_constants():
    with pytest.raises(migraphx.Error, match="has 3 values"):
        read_tensor(listed(1, [1, 2, 3], 2))
    with pytest.raises(migraphx.Error, match="would have 1073741824 elements"):
        read_tensor(listed(1, [1], 2**15, 2**15))
    with pytest.raises(migraphx.Error, match=r"the shape \[-1\]"):
        read_tensor(listed(1, [1], -1))
    with pytest.raises(migraphx.Error, match="DT_STRING is not supported"):
        read_tensor(tensor_pb2.TensorProto(dtype=7))
    with pytest.raises(migraphx.Error, match="data type 99 is not supported"):
        read_tensor(tensor_pb2.TensorProto(dtype=99))
