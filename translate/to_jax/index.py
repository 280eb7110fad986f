"""Lowering of operators that read or write at places given by other tensors.

Places below 0 count from the end once. Places outside are an error where the places are known
while tracing; where they are not, reading takes the nearest element and writing leaves out the
update, since compiled code cannot raise.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from migraphx.errors import Error

from .numeric import BOOL, FLOAT32, is_small, is_tiny
from .registry import context, is_known, known, known_ints, lower
from .view import with_axes


def index_type(size: int):
    """The narrowest type that addresses `size` elements; 64 bits only where needed."""
    return np.int32 if size < 2**31 else np.int64


def wrapped(xp, places, size: int, what: str):
    """Places from 0 on. Known ones are checked against the size."""
    if is_known(places):
        places = np.asarray(places)
        if places.dtype == object:
            places = places.astype(np.int64)
        if places.size and (places.min() < -size or places.max() >= size):
            bad = places[(places < -size) | (places >= size)].flat[0]
            raise Error(f"{what}: Out of bounds index detected: {bad} on an axis of {size}")
        return np.where(places < 0, places + size, places).astype(index_type(size))
    kind = index_type(size)
    most = np.iinfo(places.dtype).max
    if places.dtype.kind == "u":
        return jnp.minimum(places, places.dtype.type(min(size, most))).astype(kind)
    if places.dtype.itemsize > np.dtype(kind).itemsize:  # else huge numbers would wrap around
        places = jnp.clip(places, -size - 1, size)
    places = places.astype(kind)
    return jnp.where(places < 0, places + size, places)


def movable(x):
    """`x` in a type that XLA moves on every backend, and the way back."""
    if not isinstance(x, np.ndarray) and is_tiny(x.dtype):
        kind = x.dtype
        carrier = np.int8 if "int" in kind.name else FLOAT32
        return x.astype(carrier), lambda y: y.astype(kind)
    return x, lambda y: y


def take(xp, x, places, axis: int):
    """`x` at `places` (from 0 on) along an axis."""
    if is_known(x) and is_known(places):
        return np.take(np.asarray(x), places, axis)
    x, back = movable(x if not is_known(x) else jnp.asarray(x))
    if is_known(places):
        run = _run_of(places)
        if run is not None:
            start, count, step = run
            part = jax.lax.slice_in_dim(x, start, start + (count - 1) * step + 1, step, axis)
            dims = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
            return back(part.reshape(dims))
    if x.shape[axis] == 0 and 0 not in np.shape(places):
        raise Error(f"gather: an axis without elements has no place {np.shape(places)}")
    return back(jnp.take(x, jnp.asarray(places), axis, mode="clip"))


def _run_of(places: np.ndarray):
    """(start, count, step) if the places go up evenly, so that a slice reads them."""
    flat = places.reshape(-1).astype(np.int64)
    if not flat.size:
        return None
    if flat.size == 1:
        return int(flat[0]), 1, 1
    steps = np.diff(flat)
    if steps[0] < 1 or (steps != steps[0]).any():
        return None
    return int(flat[0]), flat.size, int(steps[0])


@lower("gather")
def gather(op, xp, x, places):
    x = with_axes(x)
    axis = op.axis % x.ndim
    return take(xp, x, wrapped(xp, places, x.shape[axis], "gather"), axis)


@lower("gathernd")
def gathernd(op, xp, x, places):
    """One gather of flat rows."""
    x, places = with_axes(x), with_axes(places)
    batch, length = op.batch_dims, places.shape[-1]
    indexed, rest = x.shape[batch : batch + length], x.shape[batch + length :]
    groups = math.prod(x.shape[:batch])
    rows = math.prod(indexed)
    flat = flat_places(xp, places, indexed, "gathernd")
    out = (*places.shape[:-1], *rest)
    if batch:
        base = np.arange(groups).reshape((*x.shape[:batch],) + (1,) * (flat.ndim - batch))
        base = (base * rows).astype(index_type(groups * rows))
        flat = flat.astype(base.dtype) + base
    table = x.reshape((groups * rows, *rest))
    return take(xp, table, flat, 0).reshape(out)


def flat_places(xp, places, dims, what: str):
    """Numbers of the rows that the places in the last axis mean, each in bounds."""
    kind = index_type(math.prod(dims))
    flat = 0
    for k, size in enumerate(dims):
        place = wrapped(xp, places[..., k], size, what)
        if not is_known(place):
            place = jnp.clip(place, 0, max(size - 1, 0))
        flat = flat * size + place.astype(kind)
    if not dims:
        return np.zeros(places.shape[:-1], kind)
    return flat


# -- writing -------------------------------------------------------------------------------------

_UFUNCS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def write(xp, rows, flat, updates, kind: str):
    """`rows` [n, …] with `updates` put in at the row numbers `flat`; n and more are left out."""
    dtype = rows.dtype
    wide = FLOAT32 if is_small(dtype) else np.int32 if is_tiny(dtype) else dtype
    if kind != "none" and dtype == BOOL:
        wide = np.dtype(np.int32)
    if kind == "none" and not (is_tiny(dtype) and xp is not np):
        wide = dtype
    rows, updates = rows.astype(wide), updates.astype(wide)
    if is_known(rows) and is_known(flat) and is_known(updates):
        out = np.array(rows)
        inside = flat < len(rows)
        if kind == "none":
            out[flat[inside]] = updates[inside]
        else:
            _UFUNCS[kind].at(out, flat[inside], updates[inside])
    else:
        out = _write_traced(jnp.asarray(rows), jnp.asarray(flat), jnp.asarray(updates), kind)
    return out != 0 if dtype == BOOL and wide != dtype else out.astype(dtype)


def _write_traced(rows, flat, updates, kind: str):
    if kind == "none":
        if context().platform != "cpu" and flat.size > 1:
            return _last_wins(rows, flat, updates)
        return rows.at[flat].set(updates, mode="drop")
    at = rows.at[flat]
    function = {"add": at.add, "mul": at.multiply, "min": at.min, "max": at.max}[kind]
    return function(updates, mode="drop")


def _last_wins(rows, flat, updates):
    """Accelerators write in any order, so the last update of each row is found first."""
    order = jnp.full(rows.shape[0], -1, np.int32)
    order = order.at[flat].max(jnp.arange(flat.size, dtype=np.int32), mode="drop")
    chosen = jnp.take(updates, jnp.maximum(order, 0), 0, mode="clip")
    hit = (order >= 0).reshape((-1,) + (1,) * (rows.ndim - 1))
    return jnp.where(hit, chosen, rows)


KINDS = ("none", "add", "mul", "min", "max")


@lower(*(f"scatter_{k}" for k in KINDS))
def scatter(op, xp, x, places, updates):
    """Every element is a row of its own: its flat number is computed."""
    shape = x.shape
    x, places, updates = with_axes(x), with_axes(places), with_axes(updates)
    if places.shape != updates.shape or places.ndim != x.ndim:
        raise Error(f"{op.name()}: {places.shape} indices and {updates.shape} updates do not fit")
    axis, total = op.axis % x.ndim, x.size
    size = x.shape[axis]
    if any(a > b for k, (a, b) in enumerate(zip(places.shape, x.shape)) if k != axis):
        raise Error(f"{op.name()}: indices {places.shape} reach beyond the data {x.shape}")
    if op.skip_out_of_bounds and is_known(places):
        outside = (places < -size) | (places >= size)
        places = np.where(outside, 0, places)
        place = wrapped(xp, places, size, op.name())
    else:
        place = wrapped(xp, places, size, op.name())
        outside = None if is_known(places) else (place < 0) | (place >= size)
    kind = index_type(total + 1)
    strides = [math.prod(x.shape[k + 1 :]) for k in range(x.ndim)]
    flat = place.astype(kind) * strides[axis]
    for k in range(x.ndim):
        if k != axis:
            index = np.arange(places.shape[k], dtype=kind) * kind(strides[k])
            flat = flat + index.reshape([-1 if n == k else 1 for n in range(x.ndim)])
    if outside is not None:
        flat = xp.where(outside, kind(total), flat)
    out = write(xp, x.reshape(-1), flat.reshape(-1), updates.reshape(-1), _kind(op))
    return out.reshape(shape)


@lower(*(f"scatternd_{k}" for k in KINDS))
def scatternd(op, xp, x, places, updates):
    """Slices are rows of a table."""
    shape = x.shape
    x, places = with_axes(x), with_axes(places)
    length = places.shape[-1]
    indexed, rest = x.shape[:length], x.shape[length:]
    rows = math.prod(indexed)
    flat, outside = 0, False
    kind = index_type(rows + 1)
    for k, size in enumerate(indexed):
        place = wrapped(xp, places[..., k], size, op.name())
        if not is_known(place):
            outside = outside | (place < 0) | (place >= size)
        flat = flat * size + place.astype(kind)
    if not indexed:
        flat = np.zeros(places.shape[:-1], kind)
    if outside is not False:
        flat = xp.where(outside, kind(rows), flat)
    flat = flat.reshape(-1)
    updates = updates.reshape((flat.size, *rest))
    out = write(xp, x.reshape((rows, *rest)), flat, updates, _kind(op))
    return out.reshape(shape)


def _kind(op) -> str:
    return op.name().rsplit("_", 1)[1]


# -- sizes that depend on data -------------------------------------------------------------------


@lower("nonzero")
def nonzero(op, xp, x):
    """A running count gives each element that is not zero its column."""
    x = with_axes(x)
    mask = (x != xp.zeros((), x.dtype)).reshape(-1)
    total = mask.size
    if xp is np:
        flat = np.flatnonzero(mask)
        flat = np.concatenate([flat, np.zeros(total - flat.size, flat.dtype)])
    else:
        kind = index_type(total)
        column = jnp.where(mask, jnp.cumsum(mask, dtype=kind) - 1, kind(total))
        flat = jnp.zeros(total, kind).at[column].set(jnp.arange(total, dtype=kind), mode="drop")
    rows = []
    for size in reversed(x.shape):
        rows.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    return xp.stack(rows[::-1]).astype(np.int64)


@lower("onehot")
def onehot(op, xp, indices, *more):
    values = more[-1].reshape(-1)
    if values.size != 2:
        raise Error(f"onehot: the values are off and on, got {values.size} of them")
    depth = op.depth if op.depth is not None else known_ints(more[0])[0]
    if depth < 0:
        raise Error(f"onehot: depth {depth} is negative")
    axis = op.axis % (indices.ndim + 1)
    if indices.dtype.kind != "f":
        indices = indices.astype(np.int64)
    place = xp.where(indices < 0, indices + depth, indices)
    steps = np.arange(depth).astype(place.dtype)
    steps = steps.reshape([-1 if k == axis else 1 for k in range(indices.ndim + 1)])
    return xp.where(xp.expand_dims(place, axis) == steps, values[1], values[0])


@lower("unique", host=True)
def unique(op, xp, x):
    """NumPy's, on the host: the sizes depend on the data."""
    x = with_axes(known(x))
    kind = x.dtype
    plain = x.astype(FLOAT32) if kind.isbuiltin == 2 and "int" not in kind.name else x
    plain = plain.astype(np.int32) if plain.dtype.isbuiltin == 2 else plain
    if op.axis is None:
        x, plain = x.reshape(-1), plain.reshape(-1)
    _, first, inverse, counts = np.unique(
        plain, return_index=True, return_inverse=True, return_counts=True,
        axis=None if op.axis is None else 0,
    )  # fmt: skip
    inverse = inverse.reshape(-1)
    if not op.sorted:
        order = np.argsort(first, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        first, counts, inverse = first[order], counts[order], place[inverse]
    return (x[first], *(v.astype(np.int64) for v in (first, inverse, counts)))


@lower("dynamic_range")
def dynamic_range(op, xp, start, limit, delta):
    """The count comes from the values, the numbers are start + k * delta."""
    first, last, step = (known(v).reshape(-1)[0] for v in (start, limit, delta))
    if step == 0:
        raise Error("dynamic_range: delta is 0")
    if start.dtype.kind in "iu":
        count = -((int(first) - int(last)) // int(step))
    else:
        count = float(np.float64(last) - np.float64(first)) / float(step)
        if not math.isfinite(count):
            raise Error(f"dynamic_range: from {first} to {last} by {step} has no end")
        count = math.ceil(count)
    count = min(max(count, 0), op.max_output)
    dtype = start.dtype
    wide = dtype if dtype.kind in "iu" or dtype == np.float64 else FLOAT32
    steps = np.arange(count).astype(wide)
    return (np.asarray(first).astype(wide) + steps * np.asarray(step).astype(wide)).astype(dtype)
