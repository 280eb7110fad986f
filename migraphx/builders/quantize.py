"""Builders of quantisation: scales and zero points for a tensor, an axis, or blocks of one."""

from __future__ import annotations

from ..dims import product
from ..errors import Error
from .common import builder, convert_to


def spread(m, given, x, axis: int, block_size: int):
    """A scale or zero point with the dims of `x`."""
    dims, have = x.shape().dims, given.shape().dims
    if given.shape().is_rank0() or product(have) == 1:
        if not given.shape().is_rank0() and len(have) > len(dims):
            given = m.add("reshape", given, dims=[1])
        return m.add("multibroadcast", given, out_lens=dims)
    axis = axis + len(dims) if axis < 0 else axis
    if not 0 <= axis < len(dims):
        raise Error(f"axis {axis} is out of range for {len(dims)} dimensions")
    if not block_size and len(have) == 1:
        if have[0] != dims[axis]:
            raise Error(f"{have[0]} scales or zero points for axis {axis} of size {dims[axis]}")
        return m.add("broadcast", given, axis=axis, out_lens=dims)
    if len(have) != len(dims):
        raise Error(f"scales or zero points {list(have)} do not fit the input {list(dims)}")
    if have == dims:
        return given
    return blocked(m, given, dims, axis, block_size)


def blocked(m, given, dims, axis: int, block_size: int):
    """Each element of `given` for a block of elements along an axis."""
    have = given.shape().dims
    others = [k for k in range(len(dims)) if k != axis and have[k] != dims[k]]
    blocks, size = have[axis], dims[axis]
    block = block_size or -(-size // blocks)
    if others or not (blocks - 1) * block < size <= blocks * block:
        raise Error(
            f"scales or zero points {list(have)} in blocks of {block} along axis {axis} do not "
            f"fit the input {list(dims)}"
        )
    apart = m.add("unsqueeze", given, axes=[axis + 1])
    lens = [*have[: axis + 1], block, *have[axis + 1 :]]
    apart = m.add("multibroadcast", apart, out_lens=lens)
    whole = m.add("reshape", apart, dims=[*have[:axis], blocks * block, *have[axis + 1 :]])
    if blocks * block == size:
        return whole
    return m.add("slice", whole, axes=[axis], starts=[0], ends=[size])


@builder("quantizelinear")
def quantizelinear(m, x, scale, zero=None, *, axis=1, block_size=0, output_type=None):
    """x / scale, rounded, plus zero point; scale and zero point are spread over `x`."""
    scale = convert_to(m, scale, x.shape().type())
    inputs = [x, *(spread(m, g, x, axis, block_size) for g in (scale, zero) if g is not None)]
    return m.add("quantizelinear", *inputs, out_type=output_type)


@builder("dequantizelinear")
def dequantizelinear(m, x, scale, zero=None, *, axis=1, block_size=0):
    """(x - zero point) * scale; scale and zero point are spread over `x`."""
    inputs = [x, *(spread(m, g, x, axis, block_size) for g in (scale, zero) if g is not None)]
    return m.add("dequantizelinear", *inputs)
