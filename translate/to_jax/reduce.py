"""Lowerings along axes: reductions, argmax, softmax, prefix sums, topk."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .numeric import (
    BOOL,
    FLOAT32,
    FLOAT64,
    OBJECT,
    divide_ints,
    in_floats,
    int_limits,
    is_float,
    is_small,
    is_tiny,
)
from .registry import context, known_ints, lower

# -- reductions ----------------------------------------------------------------------------------

# From how many elements on a float32 sum on CPUs is a product with ones (see `sum_by_dot`).
DOT_SIZE = 1 << 12


def reduced_axes(op, x, axes) -> tuple | None:
    """The axes to reduce, counted from the front; None if there is nothing to do."""
    listed = known_ints(axes[0]) if axes else op.axes
    return tuple(sorted({a % x.ndim if x.ndim else a for a in listed})) or None


def reduction(name: str):
    """Registers a function `(xp, x, axes)` of numbers that NumPy and XLA compute with."""

    def register(function):
        @lower(name)
        def reduce(op, xp, x, *axes):
            chosen = reduced_axes(op, x, axes)
            if chosen is None or not x.ndim:
                return x
            return function(xp, x, chosen)

        return function

    return register


def widened(x):
    """Floats below 32 bits as float32, integers below 8 as int32."""
    if is_small(x.dtype):
        return x.astype(FLOAT32)
    return x.astype(np.int32) if is_tiny(x.dtype) else x


@reduction("reduce_sum")
def reduce_sum(xp, x, axes):
    if x.dtype == BOOL:
        return xp.any(x, axes, keepdims=True)
    return total(xp, widened(x), axes).astype(x.dtype)


@reduction("reduce_mean")
def reduce_mean(xp, x, axes):
    count = int(np.prod([x.shape[a] for a in axes]))
    if x.dtype == BOOL:
        return xp.all(x, axes, keepdims=True)
    if is_float(x.dtype) or x.dtype.kind == "c":
        wide = widened(x)
        return (total(xp, wide, axes) / wide.dtype.type(count)).astype(x.dtype)
    wide = np.uint64 if x.dtype.kind == "u" else np.int64
    summed = total(xp, x.astype(wide), axes)
    return divide_ints(xp, summed, xp.asarray(count, wide)).astype(x.dtype)


@reduction("reduce_prod")
def reduce_prod(xp, x, axes):
    if x.dtype == BOOL:
        return xp.all(x, axes, keepdims=True)
    wide = widened(x)
    return xp.prod(wide, axes, dtype=wide.dtype, keepdims=True).astype(x.dtype)


@reduction("reduce_max")
def reduce_max(xp, x, axes):
    return extreme(xp, x, axes, "max")


@reduction("reduce_min")
def reduce_min(xp, x, axes):
    return extreme(xp, x, axes, "min")


@reduction("reduce_any")
def reduce_any(xp, x, axes):
    return xp.any(x != 0, axes, keepdims=True).astype(x.dtype)


@reduction("reduce_all")
def reduce_all(xp, x, axes):
    return xp.all(x != 0, axes, keepdims=True).astype(x.dtype)


def total(xp, x, axes):
    """The sum over `axes`, which stay with size 1, in the type of `x`."""
    on_cpu = xp is jnp and context().platform == "cpu"
    if on_cpu and x.dtype == FLOAT32 and x.size >= DOT_SIZE and adjacent(axes):
        return sum_by_dot(x, axes)
    return xp.sum(x, axes, dtype=x.dtype, keepdims=True)


def adjacent(axes) -> bool:
    """True for axes that stand side by side."""
    return axes[-1] - axes[0] == len(axes) - 1


def sum_by_dot(x, axes):
    """A float32 sum as a product with ones: on CPUs up to twice as fast as a reduction.

    Nor does it, as XLA's reductions do, draw the operators before it into one slow fusion.
    """
    before, after = x.shape[: axes[0]], x.shape[axes[-1] + 1 :]
    rows, columns = int(np.prod(before)), int(np.prod(after))
    length = x.size // max(rows * columns, 1)
    if columns == 1:
        found = x.reshape(rows, length) @ jnp.ones((length,), x.dtype)
    elif rows == 1:
        found = jnp.ones((length,), x.dtype) @ x.reshape(length, columns)
    else:
        ones = jnp.ones((rows, 1, length), x.dtype)
        found = ones @ x.reshape(rows, length, columns)
    return found.reshape((*before, *(1 for _ in axes), *after))


def extreme(xp, x, axes, name: str):
    """The largest or smallest element; over nothing the lowest or highest value of the type."""
    if x.dtype == OBJECT:
        return getattr(np, name)(x, axes, keepdims=True)
    if x.dtype == BOOL:
        return getattr(xp, "any" if name == "max" else "all")(x, axes, keepdims=True)
    wide = widened(x)
    if is_float(wide.dtype):
        start = -np.inf if name == "max" else np.inf
    else:
        start = int_limits(wide.dtype)[0 if name == "max" else 1]
    return getattr(xp, name)(wide, axes, keepdims=True, initial=start).astype(x.dtype)


# -- argmax --------------------------------------------------------------------------------------


@lower("argmax")
def argmax(op, xp, x):
    return best_index(op, xp, x, "max")


@lower("argmin")
def argmin(op, xp, x):
    return best_index(op, xp, x, "min")


def best_index(op, xp, x, name: str):
    """Where the largest or smallest element stands; NaN counts as best, as in NumPy."""
    if not x.ndim:
        return xp.zeros((), np.int64)
    axis = op.axis % x.ndim
    if x.size == 0:
        if x.shape[axis] == 0 and all(n for k, n in enumerate(x.shape) if k != axis):
            op.fail(f"axis {axis} of {list(x.shape)} is empty")
        return xp.zeros([1 if k == axis else n for k, n in enumerate(x.shape)], np.int64)
    wide = x.astype(np.uint8) if x.dtype == BOOL else widened(x)
    last_axis = axis == x.ndim - 1 and context().platform == "cpu"
    if op.select_last_index or (xp is jnp and last_axis):
        return index_of_best(xp, wide, axis, name, op.select_last_index)
    found = getattr(xp, f"arg{name}")(wide, axis)
    return xp.expand_dims(found, axis).astype(np.int64)


def index_of_best(xp, x, axis: int, name: str, last: bool):
    """The same by comparing with the best value: on CPUs 6 times as fast along the last axis."""
    best = getattr(xp, name)(x, axis, keepdims=True)
    hit = (x == best) | (x != x)  # with NaN, `best` is NaN and nothing equals it
    dims = [-1 if k == axis else 1 for k in range(x.ndim)]
    places = xp.arange(x.shape[axis], dtype=np.int32).reshape(dims)
    if last:
        found = xp.max(xp.where(hit, places, np.int32(-1)), axis, keepdims=True)
    else:
        found = xp.min(xp.where(hit, places, np.int32(2**31 - 1)), axis, keepdims=True)
    return found.astype(np.int64)


# -- softmax -------------------------------------------------------------------------------------


@lower("softmax")
def softmax(op, xp, x):
    def function(v):
        powers = xp.exp(below_zero(xp, v, op.axis))
        return powers / powers.sum(op.axis, keepdims=True)

    return in_floats(xp, function, x) if x.size else x


@lower("logsoftmax")
def logsoftmax(op, xp, x):
    def function(v):
        below = below_zero(xp, v, op.axis)
        return below - xp.log(xp.exp(below).sum(op.axis, keepdims=True))

    return in_floats(xp, function, x) if x.size else x


def below_zero(xp, x, axis: int):
    """x less its largest element along `axis`; the derivative ignores which one that was."""
    largest = xp.max(x, axis, keepdims=True)
    return x - largest if xp is np else _less_largest(x, largest)


@jax.custom_jvp
def _less_largest(x, largest):
    """x - largest, 0 at the largest for certain.

    Where x is a product, XLA joins product and difference without rounding in between: what is
    left of a large number is then its rounding error, whose exponential may overflow.
    """
    return jnp.where(x >= largest, largest - largest, x - largest)


@_less_largest.defjvp
def _less_largest_jvp(primals, tangents):
    return _less_largest(*primals), jnp.broadcast_to(tangents[0], primals[0].shape)


# -- prefix sums ---------------------------------------------------------------------------------


@lower("prefix_scan_sum")
def prefix_scan_sum(op, xp, x):
    axis = op.axis % max(x.ndim, 1)
    if not x.ndim:
        return xp.zeros_like(x) if op.exclusive else x
    if x.dtype == BOOL:
        wide = x.astype(np.int32)
    else:
        wide = widened(x)
    summed = running_sum(xp, wide, axis, op.reverse)
    if op.exclusive:
        summed = shifted(xp, summed, axis, op.reverse)
    return summed != 0 if x.dtype == BOOL else summed.astype(x.dtype)


def running_sum(xp, x, axis: int, reverse: bool):
    """The sums up to and with each element, from the front or from the back."""
    if xp is np:
        x = np.flip(x, axis) if reverse else x
        found = np.cumsum(x, axis, dtype=x.dtype)
        return np.flip(found, axis) if reverse else found
    if context().platform != "cpu":
        return lax.cumsum(x, axis, reverse)
    inner = int(np.prod(x.shape[axis + 1 :]))
    if inner >= 16 and x.shape[axis] > 8:
        return sum_by_scan(x, axis, reverse)
    return lax.associative_scan(jnp.add, x, reverse, axis)


def sum_by_scan(x, axis: int, reverse: bool):
    """Along an axis that is not the last: one vector addition for each step of the axis."""

    def add(carry, row):
        carry = carry + row
        return carry, carry

    rows = jnp.moveaxis(x, axis, 0)
    _, found = lax.scan(add, jnp.zeros(rows.shape[1:], x.dtype), rows, reverse=reverse)
    return jnp.moveaxis(found, 0, axis)


def shifted(xp, x, axis: int, reverse: bool):
    """x moved by one element along `axis`, with 0 in the free place."""
    if x.shape[axis] == 0:
        return x
    kept = [slice(None)] * x.ndim
    kept[axis] = slice(1, None) if reverse else slice(None, -1)
    zero = xp.zeros([1 if k == axis else n for k, n in enumerate(x.shape)], x.dtype)
    pieces = [x[tuple(kept)], zero]
    return xp.concatenate(pieces if reverse else pieces[::-1], axis)


# -- topk ----------------------------------------------------------------------------------------


@lower("topk")
def topk(op, xp, x, indices=None):
    if not x.ndim:
        x = x.reshape((1,))
    axis = op.axis % x.ndim
    if op.k > x.shape[axis]:
        op.fail(f"k is {op.k}, but axis {axis} of {list(x.shape)} has {x.shape[axis]} elements")
    rows = xp.moveaxis(x, axis, -1)
    places = topk_places(xp, rows, op.k, op.largest)
    values = xp.take_along_axis(rows, places, -1)
    if indices is not None:
        labels = xp.moveaxis(indices.reshape(x.shape), axis, -1)
        places = xp.take_along_axis(labels, places, -1)
    values, places = (xp.moveaxis(v, -1, axis) for v in (values, places))
    return values, places.astype(np.int64)


def topk_places(xp, x, k: int, largest: bool):
    """Indices of the k best along the last axis, best first, of equal ones the smaller first."""

    def by_keys(x):
        keys = order_keys(xp, x)
        keys = keys if largest else ~keys
        if xp is np:
            return np.argsort(~keys, -1, kind="stable")[..., :k]
        if context().platform == "cpu" and keys.dtype.itemsize == 4 and 4 * k > x.shape[-1]:
            return places_by_sort(~keys)[..., :k]
        return lax.top_k(keys, k)[1]

    if xp is np or context().platform != "cpu" or not fits_float32(x.dtype) or 4 * k > x.shape[-1]:
        return by_keys(x)
    return topk_of_floats(lax.stop_gradient(x), k, largest, by_keys)


def fits_float32(dtype) -> bool:
    """True for types whose numbers are all numbers of float32."""
    whole = not is_float(dtype) and dtype != BOOL
    return dtype != FLOAT64 and (not whole or np.dtype(dtype).itemsize <= 2)


def topk_of_floats(x, k: int, largest: bool, otherwise):
    """Where nothing is NaN: XLA finds the best of float32 40 times as fast as of whole numbers."""
    wide = x.astype(FLOAT32)
    wide = jnp.where(wide == 0, jnp.zeros((), FLOAT32), wide)  # -0.0 equals 0.0
    wide = wide if largest else -wide
    if not is_float(x.dtype):
        return lax.top_k(wide, k)[1]
    return lax.cond(
        jnp.isnan(wide).any(), lambda x, wide: otherwise(x), lambda x, wide: lax.top_k(wide, k)[1],
        x, wide,
    )  # fmt: skip


def places_by_sort(keys):
    """A stable argsort of int32 keys: key and index sorted as one int64, 5 times as fast."""
    places = jnp.arange(keys.shape[-1], dtype=np.int64)
    packed = (keys.astype(np.int64) << 32) | places
    return (lax.sort(packed, dimension=-1, is_stable=False) & 0xFFFFFFFF).astype(np.int32)


def order_keys(xp, x):
    """Whole numbers in the order of `x`: -0.0 equals 0.0, NaN is above everything."""
    if x.dtype == BOOL:
        return x.astype(np.int32)
    if not is_float(x.dtype):
        if x.dtype.kind == "u" and x.dtype.itemsize == 8:
            return (x ^ np.uint64(2**63)).astype(np.int64)
        return x.astype(np.int64 if x.dtype.itemsize >= 4 and x.dtype != np.int32 else np.int32)
    wide = x if x.dtype == FLOAT64 else x.astype(FLOAT32)
    whole = np.int64 if wide.dtype == FLOAT64 else np.int32
    wide = xp.where(wide == 0, xp.zeros((), wide.dtype), wide)
    wide = xp.where(wide != wide, xp.full((), np.nan, wide.dtype), wide)
    bits = wide.view(whole) if xp is np else jax.lax.bitcast_convert_type(wide, whole)
    return xp.where(bits < 0, bits ^ int_limits(whole)[1], bits)
