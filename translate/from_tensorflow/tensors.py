"""Element types, constants and attribute values of a GraphDef."""

from __future__ import annotations

import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from migraphx.errors import Error
from migraphx.types import from_dtype, type_t

# DataType: (its name, NumPy type, the field of TensorProto that lists values)
TYPES = {
    1: ("DT_FLOAT", np.float32, "float_val"),
    2: ("DT_DOUBLE", np.float64, "double_val"),
    3: ("DT_INT32", np.int32, "int_val"),
    4: ("DT_UINT8", np.uint8, "int_val"),
    5: ("DT_INT16", np.int16, "int_val"),
    6: ("DT_INT8", np.int8, "int_val"),
    9: ("DT_INT64", np.int64, "int64_val"),
    10: ("DT_BOOL", np.bool_, "bool_val"),
    11: ("DT_QINT8", np.int8, "int_val"),
    12: ("DT_QUINT8", np.uint8, "int_val"),
    13: ("DT_QINT32", np.int32, "int_val"),
    14: ("DT_BFLOAT16", ml_dtypes.bfloat16, "half_val"),
    15: ("DT_QINT16", np.int16, "int_val"),
    16: ("DT_QUINT16", np.uint16, "int_val"),
    17: ("DT_UINT16", np.uint16, "int_val"),
    19: ("DT_HALF", np.float16, "half_val"),
    22: ("DT_UINT32", np.uint32, "uint32_val"),
    23: ("DT_UINT64", np.uint64, "uint64_val"),
    24: ("DT_FLOAT8_E5M2", ml_dtypes.float8_e5m2, "float8_val"),
    25: ("DT_FLOAT8_E4M3FN", ml_dtypes.float8_e4m3fn, "float8_val"),
}
OTHER_TYPES = {
    7: "DT_STRING", 8: "DT_COMPLEX64", 18: "DT_COMPLEX128", 20: "DT_RESOURCE", 21: "DT_VARIANT",
}  # fmt: skip
FLOAT, INT32, INT64 = 1, 3, 9  # the DataTypes that are defaults of attributes
MOST = 1 << 28  # elements of an array that a few bytes of a graph may ask for
REFERENCE = 100  # added to the DataType of a variable's reference


def numpy_type(number: int) -> np.dtype:
    """The NumPy type of a DataType, or an `Error`."""
    row = TYPES.get(number % REFERENCE)
    if row is None:
        name = OTHER_TYPES.get(number % REFERENCE, f"data type {number}")
        raise Error(f"{name} is not supported")
    return np.dtype(row[1])


def element_type(number: int) -> type_t:
    """The element type of a DataType, or an `Error`."""
    return from_dtype(numpy_type(number))


@dataclass(frozen=True)
class Function:
    """A reference to a function of the library, with the attributes of the call."""

    name: str
    attributes: dict


def read_tensor(tensor) -> np.ndarray:
    """The array of a TensorProto; a shorter list of values goes on with its last one."""
    dims = read_shape(tensor.tensor_shape)
    dtype = numpy_type(tensor.dtype)
    if dims is None or any(d < 0 for d in dims):
        raise Error(f"a constant with the shape {dims}")
    count = math.prod(dims)
    if tensor.tensor_content:
        given = len(tensor.tensor_content)
        if given != count * dtype.itemsize:
            raise Error(
                f"a constant of shape {dims} and {dtype.name} needs {count * dtype.itemsize} "
                f"bytes, it has {given}"
            )
        array = np.frombuffer(tensor.tensor_content, dtype.newbyteorder("<"))
        return array.astype(dtype, copy=False).reshape(dims)
    values = _listed(tensor, dtype)
    limited(count, f"a constant of shape {dims}")
    if len(values) > count:
        raise Error(f"a constant of shape {dims} has {len(values)} values")
    array = np.zeros(count, dtype)
    array[: len(values)] = values
    if len(values):
        array[len(values) :] = values[-1]
    return array.reshape(dims)


def limited(count, what: str) -> int:
    """A number of elements, if it is not absurd."""
    if not 0 <= count <= MOST:
        raise Error(f"{what} would have {count} elements")
    return int(count)


def _listed(tensor, dtype) -> np.ndarray:
    field = TYPES[tensor.dtype % REFERENCE][2]
    values = getattr(tensor, field)
    if field == "half_val":  # the bits as integers
        return np.array(values, np.uint16).view(dtype)
    if field == "float8_val":
        return np.frombuffer(values, np.uint8).view(dtype)
    if field == "int_val":
        return np.array(values, np.int64).astype(dtype)
    return np.array(values, dtype)


def read_shape(shape) -> list | None:
    """Sizes with -1 for unknown ones, or None for an unknown rank."""
    return None if shape.unknown_rank else [d.size for d in shape.dim]


def attribute_value(value):
    """An AttrValue as a Python value; types stay numbers, functions become `Function`."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    found = getattr(value, kind)
    if kind == "list":
        return _list_value(found)
    return _one_value(kind, found)


def _one_value(kind, found):
    if kind == "s":
        return found.decode("utf-8", "surrogateescape")
    if kind == "shape":
        return read_shape(found)
    if kind == "func":
        return Function(found.name, dict(found.attr))
    return found  # numbers; a tensor is read where it is used


def _list_value(found) -> list:
    for kind in ("s", "i", "f", "b", "type", "shape", "tensor", "func"):
        values = getattr(found, kind)
        if len(values):
            return [_one_value(kind, v) for v in values]
    return []
