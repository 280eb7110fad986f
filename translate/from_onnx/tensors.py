"""TensorProto to arguments: raw and typed data, external files, every element type."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from migraphx.argument import Argument, array_shape
from migraphx.errors import Error
from migraphx.types import dtype_of, from_dtype, type_t

# ONNX element type -> ours
TYPES = {
    1: type_t.float_type,
    2: type_t.uint8_type,
    3: type_t.int8_type,
    4: type_t.uint16_type,
    5: type_t.int16_type,
    6: type_t.int32_type,
    7: type_t.int64_type,
    8: type_t.string_type,
    9: type_t.bool_type,
    10: type_t.half_type,
    11: type_t.double_type,
    12: type_t.uint32_type,
    13: type_t.uint64_type,
    14: type_t.complex64_type,
    15: type_t.complex128_type,
    16: type_t.bf16_type,
    17: type_t.fp8e4m3fn_type,
    18: type_t.fp8e4m3fnuz_type,
    19: type_t.fp8e5m2_type,
    20: type_t.fp8e5m2fnuz_type,
    21: type_t.uint4_type,
    22: type_t.int4_type,
    23: type_t.fp4e2m1_type,
    24: type_t.fp8e8m0_type,
    25: type_t.uint2_type,
    26: type_t.int2_type,
}
NUMBERS = {kind: number for number, kind in TYPES.items()}


def element_type(number: int) -> type_t:
    """Our element type for an ONNX one."""
    if number not in TYPES:
        raise Error(f"element type {number} is not an ONNX type that is supported")
    return TYPES[number]


def read_tensor(tensor: TensorProto, folder: Path | None) -> Argument:
    """The argument of a tensor; data in other files are read from `folder`."""
    kind = element_type(tensor.data_type)
    dims = tuple(tensor.dims)
    if any(d < 0 for d in dims):
        raise Error(f"tensor {tensor.name!r} has negative sizes {list(dims)}")
    if tensor.data_location == TensorProto.EXTERNAL:
        array = _external(tensor, kind, dims, folder)
    elif tensor.HasField("raw_data") and kind < 100:
        array = _raw(tensor.raw_data, kind, dims, tensor.name)
    else:
        _check_count(tensor, dims)
        try:
            array = numpy_helper.to_array(tensor)
        except (ValueError, TypeError, KeyError) as error:
            raise Error(f"tensor {tensor.name!r} cannot be read: {error}") from error
        if kind == type_t.string_type:
            array = _texts(array)
        elif array.dtype != dtype_of(kind):
            array = array.astype(dtype_of(kind))
    return Argument.of(array, array_shape(array.shape, kind))


def as_array(tensor: TensorProto, folder: Path | None = None) -> np.ndarray:
    """The NumPy array of a tensor, of rank 0 if the tensor is."""
    return read_tensor(tensor, folder).device_array()


def _raw(data: bytes, kind: type_t, dims: tuple, name: str) -> np.ndarray:
    dtype = dtype_of(kind)
    expected = math.prod(dims) * dtype.itemsize
    if len(data) != expected:
        raise Error(
            f"tensor {name!r} holds {len(data)} bytes of data, its lens {list(dims)} of "
            f"{kind.name} need {expected}"
        )
    return np.frombuffer(data, np.uint8).view(dtype).reshape(dims)


def _check_count(tensor: TensorProto, dims: tuple) -> None:
    """Refuses absurd lens before anything of that size is allocated."""
    count = math.prod(dims)
    if tensor.HasField("raw_data"):
        have = len(tensor.raw_data) * 8
        bits = 2 if tensor.data_type in (25, 26) else 4
        if count * bits > have + 8:
            raise Error(f"tensor {tensor.name!r}: {have // 8} bytes do not fill {list(dims)}")
        return
    field = helper.tensor_dtype_to_field(tensor.data_type)
    have = len(getattr(tensor, field))
    per_entry = {21: 2, 22: 2, 23: 2, 25: 4, 26: 4}.get(tensor.data_type, 1)
    if tensor.data_type in (14, 15):
        have //= 2
    if not count <= have * per_entry < count + per_entry and count != have:
        raise Error(f"tensor {tensor.name!r}: {have} values do not fill {list(dims)}")


def _texts(array: np.ndarray) -> np.ndarray:
    flat = [v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else str(v)
            for v in array.reshape(-1)]  # fmt: skip
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(array.shape)


def _external(tensor: TensorProto, kind: type_t, dims: tuple, folder: Path | None) -> np.ndarray:
    entries = {e.key: e.value for e in tensor.external_data}
    location = entries.get("location", "")
    path = external_path(location, folder, tensor.name)
    try:
        offset, length = int(entries.get("offset", 0)), entries.get("length")
        length = None if length is None else int(length)
    except ValueError as error:
        raise Error(f"tensor {tensor.name!r}: bad external offset or length: {error}") from None
    bits = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}.get(tensor.data_type)
    size = dtype_of(kind).itemsize
    needed = math.prod(dims) * size if bits is None else -(-math.prod(dims) * bits // 8)
    have = path.stat().st_size - offset
    if offset < 0 or needed > have or (length is not None and length != needed):
        raise Error(
            f"tensor {tensor.name!r} needs {needed} bytes from offset {offset} of {path.name}, "
            f"which has {max(have, 0)} there (stated length: {length})"
        )
    data = np.fromfile(path, np.uint8, count=needed, offset=offset)
    if bits is None:
        return data.view(dtype_of(kind)).reshape(dims)
    inline = TensorProto(data_type=tensor.data_type, dims=dims, raw_data=data.tobytes())
    return numpy_helper.to_array(inline)


def external_path(location: str, folder: Path | None, name: str) -> Path:
    """The file of external data, refused if it is not inside the model's folder."""
    if folder is None:
        raise Error(
            f"tensor {name!r} lies in the file {location!r}; give external_data_path its folder"
        )
    base = folder.resolve()
    path = (base / location).resolve()
    if not location or Path(location).is_absolute() or not path.is_relative_to(base):
        raise Error(f"tensor {name!r}: external data {location!r} leave the model's folder {base}")
    if not path.is_file():
        raise Error(f"tensor {name!r}: there is no external data file {path}")
    return path


def type_of_array(array: np.ndarray) -> type_t:
    """The element type of an array."""
    return from_dtype(array.dtype)
