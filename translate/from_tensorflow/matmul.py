"""Matrix products of TensorFlow."""

from __future__ import annotations

from .registry import tf_op
from .shared import product
from .tensors import element_type


def swapped(m, x):
    """`x` with its last two axes exchanged."""
    order = list(range(m.rank(x)))
    order[-2:] = order[:-3:-1]
    return m.permuted(x, order)


@tf_op("MatMul", "SparseMatMul")
def mat_mul(m, a, b, *, transpose_a=False, transpose_b=False):
    return product(
        m, "dot", swapped(m, a) if transpose_a else a, swapped(m, b) if transpose_b else b
    )


@tf_op("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(m, a, b, *, adj_x=False, adj_y=False, Tout=None):
    """Batches broadcast; with `Tout` the product is of wider numbers."""
    if Tout is not None:
        a, b = m.convert(a, element_type(Tout)), m.convert(b, element_type(Tout))
    return product(m, "dot", swapped(m, a) if adj_x else a, swapped(m, b) if adj_y else b)


@tf_op("Einsum")
def einsum(m, *xs, equation, N=None):
    return m.call("einsum", *xs, equation=equation)
