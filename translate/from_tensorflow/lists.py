"""TensorFlow's lists of tensors, in which its loops gather their results.

A list is one tensor whose first axis counts the elements. A list that has been reserved without
saying what shape its elements have is `Reserved` until the first of them is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from migraphx.dims import Dim
from migraphx.errors import Error
from migraphx.graph import Instruction
from migraphx.types import dtype_of, type_t

from .registry import tf_op
from .shared import Const, gather
from .tensors import INT32, element_type


@dataclass(frozen=True)
class Reserved:
    """A list of `count` elements whose shape is not known yet."""

    count: int
    kind: type_t

    def filled(self, m, dims) -> Instruction:
        """The list as a tensor of zeros, for elements of these dims."""
        zero = m.lit(np.zeros((), dtype_of(self.kind)))
        return m.broadcast(zero, [self.count, *dims])


def known_dims(shape) -> list | None:
    """The dims of elements by a node's input, None if they are not all given."""
    dims = np.asarray(shape)
    if not dims.ndim or any(int(d) < 0 for d in dims):
        return None
    return [int(d) for d in dims]


def settled(m, items, dims) -> Instruction:
    """A list as a tensor."""
    if not isinstance(items, Reserved):
        return items
    if dims is None:
        raise Error("the shape of the list's elements is not known")
    return items.filled(m, dims)


@tf_op("TensorListReserve")
def reserve(m, shape: Const, count: Const, *, element_dtype):
    made = Reserved(int(count.reshape(())), element_type(element_dtype))
    dims = known_dims(shape)
    return made if dims is None else made.filled(m, dims)


@tf_op("TensorListFromTensor")
def from_tensor(m, x, shape):
    return x


@tf_op("TensorListStack")
def stack(m, items, shape, *, num_elements=-1):
    dims = m.value(shape) if isinstance(items, Reserved) else None
    return settled(m, items, None if dims is None else known_dims(dims))


@tf_op("TensorListGetItem")
def get_item(m, items, index, shape):
    dims = m.value(shape) if isinstance(items, Reserved) else None
    items = settled(m, items, None if dims is None else known_dims(dims))
    return gather(m, items, m.scalar(index), axis=0)


@tf_op("TensorListSetItem")
def set_item(m, items, index, x, *, resize_if_index_out_of_bounds=False):
    items = settled(m, items, m.dims(x))
    place = m.reshape(m.convert(index, type_t.int64_type), [1, 1])
    row = m.add("unsqueeze", x, axes=[0]) if m.rank(x) else m.reshape(x, [1])
    return m.add("scatternd_none", m.add("contiguous", items), place, row)


@tf_op("TensorListGather")
def gather_(m, items, indices, shape):
    return gather(m, settled(m, items, None), indices, axis=0)


@tf_op("TensorListScatterV2")
def scatter(m, x, indices, shape, count: Const):
    """Elements in the places of `indices`; as many as there are, if `count` is negative."""
    rows = int(count.reshape(()))
    rows = m.static_dims(x)[0] if rows < 0 else rows
    zeros = m.zeros(x, [rows, *m.dims(x)[1:]])
    places = m.add("unsqueeze", indices, axes=[1])
    return m.add("scatternd_none", m.add("contiguous", zeros), places, x)


@tf_op("TensorListLength")
def length(m, items):
    count = items.count if isinstance(items, Reserved) else m.dims(items)[0]
    if isinstance(count, Dim):
        raise Error("the length of the list depends on data")
    return m.lit(np.int32(count))


@tf_op("TensorListElementShape")
def element_shape(m, items, *, shape_type=INT32):
    if isinstance(items, Reserved):
        raise Error("the shape of the list's elements is not known")
    return m.lit(np.array(m.static_dims(items)[1:]), element_type(shape_type))
