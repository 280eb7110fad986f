"""Sparse tensors of ONNX as dense arguments."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from onnx import SparseTensorProto

from migraphx.argument import Argument, array_shape
from migraphx.errors import Error
from migraphx.types import from_dtype, type_t

from .tensors import as_array

# A sparse tensor of a few bytes can claim to be of any size.
LARGEST = 1 << 34


def dense(sparse: SparseTensorProto, folder: Path | None = None) -> Argument:
    """The argument of a sparse tensor: its values at their indices, zeros elsewhere."""
    array = dense_array(sparse, folder)
    return Argument.of(array, array_shape(array.shape, from_dtype(array.dtype)))


def dense_array(sparse: SparseTensorProto, folder: Path | None = None) -> np.ndarray:
    """The NumPy array of a sparse tensor.

    Indices are linear (`[count]`, positions in row-major order) or coordinates (`[count, rank]`).
    """
    name = sparse.values.name
    dims = tuple(sparse.dims)
    if any(d < 0 for d in dims):
        raise Error(f"sparse tensor {name!r} has negative sizes {list(dims)}")
    values = as_array(sparse.values, folder).reshape(-1)
    if math.prod(dims) * max(values.dtype.itemsize, 1) > LARGEST:
        raise Error(f"sparse tensor {name!r} of sizes {list(dims)} is too large to be made dense")
    places = _places(sparse, folder, len(values), dims)
    if values.dtype == np.dtype(object):  # texts
        out = np.full(dims, "", object)
    else:
        out = np.zeros(dims, values.dtype)
    out.reshape(-1)[places] = values
    return out


def _places(sparse, folder, count: int, dims: tuple) -> np.ndarray:
    """Position of each value in row-major order."""
    name = sparse.values.name
    if not count and not sparse.indices.dims:
        return np.zeros(0, np.int64)
    if sparse.indices.data_type != type_number(type_t.int64_type):
        raise Error(f"sparse tensor {name!r}: its indices must be int64")
    indices = as_array(sparse.indices, folder)
    if indices.shape == (count,):
        if indices.size and not 0 <= indices.min() <= indices.max() < math.prod(dims):
            raise Error(f"sparse tensor {name!r}: an index is outside its {math.prod(dims)} values")
        return indices
    if indices.shape != (count, len(dims)):
        raise Error(
            f"sparse tensor {name!r}: indices of sizes {list(indices.shape)} for {count} values "
            f"of a tensor {list(dims)}; [{count}] or [{count}, {len(dims)}] is accepted"
        )
    if np.any(indices < 0) or np.any(indices >= np.array(dims, np.int64)):
        raise Error(f"sparse tensor {name!r}: an index is outside the sizes {list(dims)}")
    strides = [math.prod(dims[k + 1 :]) for k in range(len(dims))]
    return indices @ np.array(strides, np.int64)


def type_number(kind: type_t) -> int:
    """ONNX's number of an element type."""
    from .tensors import NUMBERS

    return NUMBERS[kind]
