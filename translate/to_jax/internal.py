"""Lowerings of placeholders, buffers, and what compiled programs hold."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from migraphx.errors import Error
from migraphx.ops.internal import REF
from migraphx.shape import element_space
from migraphx.types import dtype_of

from . import recurrent, reduce  # noqa: F401 - wrapped below
from .numeric import wide_type
from .registry import LOWER, NeedsHost, is_known, known_ints, lower
from .view import OpenBuffer

for _name in REF:
    LOWER[f"ref::{_name}"] = LOWER[_name]


@lower("ref::op")
def ref_op(op, xp, *args):
    """The wrapped operator."""
    name = op.wrapped.op_name
    found = LOWER.get(name)
    if found is None or found.bodies:
        raise Error(f"ref::op: the wrapped operator {name} cannot be computed")
    if found.host and not is_known(args):
        raise NeedsHost
    return found.function(op.wrapped, xp if found.numpy else jnp, *args)


@lower("undefined")
def undefined(op, xp):
    """No elements; operators with optional inputs take it as left out."""
    return np.zeros((0,), np.float32)


@lower("unknown:", "outline", "@outline", "@comment")
def placeholder(op, xp, *args):
    raise Error(f"{op.name()}: this stands for an operator without a meaning here")


@lower("capture")
def capture(op, xp, x, *rest):
    return x


# -- memory --------------------------------------------------------------------------------------


@lower("allocate")
def allocate(op, xp, *sizes):
    """Zeros; the sizes must be known. One of them may be -1 where `reshape` reads the buffer."""
    if op.shape is None:
        dims, dtype = known_ints(sizes[0]), dtype_of(op.buf_type)
        if min(dims, default=0) < -1 or dims.count(-1) > 1:
            op.fail(f"sizes are 0 and more, one of them may be -1 (what is left), got {dims}")
        return OpenBuffer(tuple(dims), dtype) if -1 in dims else xp.zeros(dims, dtype)
    if op.shape.subs:
        return tuple(xp.zeros(_dims(s), dtype_of(s.type())) for s in op.shape.subs)
    return xp.zeros(_dims(op.shape), dtype_of(op.shape.type()))


def _dims(shape) -> tuple:
    return () if shape.is_rank0() else tuple(shape.lens())


@lower("load", numpy=False)
def load(op, xp, buffer):
    """Bytes of the buffer as elements; strides other than row-major by their places."""
    shape = op.shape
    dtype, dims = dtype_of(shape.type()), _dims(shape)
    space = element_space(shape.dims, shape._strides) if shape.dims else 1
    raw = jax.lax.bitcast_convert_type(jnp.asarray(buffer).reshape(-1), np.uint8).reshape(-1)
    raw = raw[op.offset : op.offset + space * dtype.itemsize]
    if dtype.kind == "b":
        flat = raw != 0
    elif dtype.itemsize == 1:
        flat = jax.lax.bitcast_convert_type(raw, dtype)
    else:
        flat = jax.lax.bitcast_convert_type(raw.reshape(-1, dtype.itemsize), dtype)
    if shape.standard():
        return flat.reshape(dims)
    places = sum(
        np.arange(n).reshape([-1 if a == axis else 1 for a in range(shape.rank)]) * step
        for axis, (n, step) in enumerate(zip(shape.dims, shape._strides, strict=True))
    )
    return flat[np.broadcast_to(places, dims)]


# -- attention with a cache ----------------------------------------------------------------------


def places_of(xp, lens, batch: int, steps: int):
    """The place of each new step, {batch, steps}: one goes to the end, several to the start."""
    if steps != 1:
        return xp.broadcast_to(xp.arange(steps), (batch, steps))
    return xp.broadcast_to(lens.reshape(-1, 1), (batch, 1)).astype(np.int32)


@lower("concat_past_present")
def concat_past_present(op, xp, present, lens, past):
    batch, heads, steps, _ = present.shape
    places = places_of(xp, lens, batch, steps)[:, None, :]
    rows, columns = xp.arange(batch)[:, None, None], xp.arange(heads)[None, :, None]
    if xp is np:
        past = past.copy()
        past[rows, columns, places] = present
        return past
    return jnp.asarray(past).at[rows, columns, places].set(present)


@lower("gqa_rotary_embedding")
def gqa_rotary_embedding(op, xp, qkv, lens, cosines, sines):
    batch, _, steps, _ = qkv.shape
    turned = op.num_heads + op.kv_num_heads
    places = places_of(xp, lens, batch, steps)
    cos, sin = (xp.asarray(v)[places][:, None] for v in (cosines, sines))
    wide = wide_type(qkv.dtype)  # rounded once, after the sum
    cos, sin, x = cos.astype(wide), sin.astype(wide), qkv[:, :turned].astype(wide)
    size = 2 * cosines.shape[-1]
    if op.interleaved:
        a, b = x[..., 0:size:2], x[..., 1:size:2]
    else:
        a, b = x[..., : size // 2], x[..., size // 2 : size]
    pair = [a * cos - b * sin, b * cos + a * sin]
    if op.interleaved:
        head = xp.stack(pair, -1).reshape(*a.shape[:-1], size)
    else:
        head = xp.concatenate(pair, -1)
    whole = xp.concatenate([head, x[..., size:]], -1).astype(qkv.dtype)
    return xp.concatenate([whole, qkv[:, turned:]], 1)
