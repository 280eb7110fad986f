"""Operators of ONNX that build, shape and join tensors."""

from __future__ import annotations

import numpy as np

from migraphx.dims import Dim, product
from migraphx.errors import Error
from migraphx.graph import Instruction
from migraphx.types import dtype_of, type_t

from .reduce import squeeze_axes
from .registry import Const, Deferred, Sizes, onnx_op
from .tensors import element_type


def size_list(sizes) -> list:
    """Sizes as ints and `Dim`s from a one-dimensional array."""
    return [s if isinstance(s, Dim) else int(s) for s in np.asarray(sizes).reshape(-1)]


def int_list(values) -> list:
    """Plain ints from a `Const`."""
    return [int(v) for v in np.asarray(values).reshape(-1)]


@onnx_op("Constant", any_rank=True)
def constant(
    m, *, value=None, value_float=None, value_floats=None, value_int=None, value_ints=None,
    value_string=None, value_strings=None, sparse_value=None,
):  # fmt: skip
    kinds = {
        "value_float": (value_float, np.float32),
        "value_floats": (value_floats, np.float32),
        "value_int": (value_int, np.int64),
        "value_ints": (value_ints, np.int64),
        "value_string": (value_string, object),
        "value_strings": (value_strings, object),
    }
    given = [(v, t) for v, t in kinds.values() if v is not None]
    if value is not None:
        return m.lit(value)
    if sparse_value is not None:
        from .tensors_sparse import dense

        return m.lit(dense(sparse_value, m.folder))
    if len(given) != 1:
        raise Error("exactly one of the value attributes is required")
    array, kind = given[0]
    return m.lit(np.array(array, dtype=kind))


@onnx_op("ConstantOfShape")
def constant_of_shape(m, shape: Sizes, *, value=None):
    value = np.zeros(1, np.float32) if value is None else value.reshape(-1)
    dims = size_list(shape)
    if any(not isinstance(d, Dim) and d < 0 for d in dims):
        raise Error(f"the shape {dims} has negative sizes")
    scalar = m.lit(value[0])
    if not dims:
        return scalar
    if any(isinstance(d, Dim) for d in dims):
        return m.broadcast(scalar, dims)
    if product(dims) <= 16:
        return m.lit(np.full(dims, value[0], value.dtype))
    return m.broadcast(scalar, dims)


@onnx_op("Shape")
def shape_of(m, x, *, start=0, end=None):
    rank = m.rank(x)
    first = min(max(start + rank if start < 0 else start, 0), rank)
    last = rank if end is None else min(max(end + rank if end < 0 else end, 0), rank)
    if not x.shape().dynamic():
        return m.lit(np.array(m.dims(x)[first : max(last, first)], np.int64))
    if last <= first:
        return m.lit(np.zeros(0, np.int64))
    return m.add("dimensions_of", x, start=first, end=last)


@onnx_op("Size")
def size_of(m, x):
    if not x.shape().dynamic():
        return m.lit(np.array(product(m.dims(x)), np.int64))
    sizes = shape_of(m, x)
    return squeeze_axes(m, m.add("reduce_prod", sizes, axes=[0]), [0])


@onnx_op("Reshape")
def reshape(m, x, shape: Sizes, *, allowzero=0):
    """0 copies the input's size (unless `allowzero`), -1 is what is left."""
    have, want = m.dims(x), size_list(shape)
    if not allowzero:
        if any(w == 0 and k >= len(have) for k, w in enumerate(want) if not isinstance(w, Dim)):
            raise Error(f"shape {want} copies a size that the input with {len(have)} lacks")
        if not any(isinstance(d, Dim) for d in (*have, *want)) and 0 not in have:
            check_reshape(have, want)
            if want and not (x.shape().is_rank0() and want == [1]):
                return m.add("reshape", x, dims=want)
        want = [have[k] if not isinstance(w, Dim) and w == 0 else w for k, w in enumerate(want)]
    return reshape_to(m, x, have, want)


def check_reshape(have, want) -> None:
    """Refuses targets that do not hold the elements of the input."""
    sizes = [have[k] if w == 0 else w for k, w in enumerate(want)]
    total, rest = product(have), product(s for s in sizes if s != -1)
    if any(s < -1 for s in sizes) or sizes.count(-1) > 1:
        raise Error(f"shape {list(want)} is not a shape: one -1 at most, no other negatives")
    if (rest == 0 or total % rest) if -1 in sizes else total != rest:
        raise Error(f"cannot reshape {list(have)} ({total} elements) to {list(want)}")


def reshape_to(m, x, have, want):
    """`reshape` to sizes in which 0 means no elements and -1 what is left."""
    unknown = [k for k, w in enumerate(want) if not isinstance(w, Dim) and w == -1]
    if len(unknown) > 1:
        raise Error(f"shape {want} has more than one -1")
    if unknown:
        rest = product(w for k, w in enumerate(want) if k != unknown[0])
        total = product(have)
        if not isinstance(rest, Dim) and rest == 0:
            want[unknown[0]] = 0
        else:
            want[unknown[0]] = exact_quotient(total, rest, have, want)
    if x.shape().is_rank0():
        x = m.add("unsqueeze", x, axes=[0])
        have = (1,)
    if not want:
        return squeeze_axes(m, m.add("reshape", x, dims=[1]), [0])
    if not any(isinstance(d, Dim) for d in (*have, *want)):
        check_reshape(have, want) if 0 not in have else None
        if 0 in want:  # `reshape` reads 0 as "copy": no elements need no data
            if product(have):
                raise Error(f"cannot reshape {list(have)} to {want}")
            return m.broadcast(m.lit(np.zeros((), dtype_of(m.type(x)))), want)
    return m.add("reshape", x, dims=want)


def exact_quotient(total, rest, have, want):
    """What stands for -1; an `Error` if plain numbers do not divide."""
    if not isinstance(total, Dim) and not isinstance(rest, Dim) and total % rest:
        raise Error(f"cannot reshape {list(map(str, have))} to {list(map(str, want))}")
    return total // rest


@onnx_op("Reshape", since=1)
def reshape_attribute(m, x, shape: Sizes = None, *, allowzero=0):
    if shape is None:
        raise Error("the shape is required")
    return reshape(m, x, shape, allowzero=allowzero)


@onnx_op("Flatten")
def flatten(m, x, *, axis=1):
    rank = m.rank(x)
    if not rank:
        return m.reshape(x, [1, 1])
    if not -rank <= axis <= rank:
        raise Error(f"axis {axis} is out of range for {rank} dimensions")
    return m.add("flatten", x, axis=axis)


@onnx_op("Transpose")
def transpose(m, x, *, perm=None):
    rank = m.rank(x)
    perm = list(range(rank))[::-1] if perm is None else perm
    if sorted(perm) != list(range(rank)):
        raise Error(f"perm {perm} does not order the {rank} axes of the input")
    return m.add("transpose", x, permutation=perm) if rank else m.add("identity", x)


@onnx_op("Squeeze")
def squeeze(m, x, axes: Const = None):
    rank, dims = m.rank(x), m.dims(x)
    if axes is None:
        chosen = [k for k, d in enumerate(m.static_dims(x)) if d == 1]
        if not chosen:
            return m.add("identity", x)
    else:
        chosen = [m.axis(a, rank) for a in int_list(axes)]
        bad = [k for k in chosen if not isinstance(dims[k], Dim) and dims[k] != 1]
        if bad:
            raise Error(f"axis {bad[0]} has size {dims[bad[0]]}, only axes of size 1 go")
    if not chosen or not rank:
        return m.add("identity", x)
    return squeeze_axes(m, x, chosen)


@onnx_op("Unsqueeze")
def unsqueeze(m, x, axes: Const):
    chosen = int_list(axes)
    rank = m.rank(x) + len(chosen)
    chosen = sorted(m.axis(a, rank) for a in chosen)
    if len(set(chosen)) != len(chosen):
        raise Error(f"axes {int_list(axes)} name an axis twice")
    if not chosen:
        return m.add("identity", x)
    if not m.rank(x):  # any number of new axes of a rank-0 value
        return m.reshape(x, [1] * rank)
    return m.add("unsqueeze", x, axes=chosen)


@onnx_op("Concat", since=4)
def concat(m, *xs, axis):
    return join(m, [x for x in xs if x is not None], axis)


@onnx_op("Concat")
def concat_1(m, *xs, axis=1):
    return join(m, [x for x in xs if x is not None], axis)


def join(m, xs, axis):
    """`concat` along an axis that may be negative."""
    if not xs:
        raise Error("at least one input is required")
    m.need_ranks(*xs)
    rank = m.rank(xs[0])
    if not rank:
        raise Error("inputs of rank 0 cannot be concatenated")
    if len({m.rank(x) for x in xs}) > 1:
        raise Error(f"inputs of ranks {[m.rank(x) for x in xs]} cannot be concatenated")
    axis = m.axis(axis, rank)
    dynamic = [x.shape().dynamic() for x in xs]
    if any(dynamic) and not all(dynamic):
        xs = [as_symbolic(m, x) for x in xs]
    return m.add("concat", *xs, axis=axis)


def as_symbolic(m, x):
    return x


@onnx_op("Split")
def split(m, x, split: Const = None, *, axis=0, num_outputs=None):
    axis = m.axis(axis, m.rank(x))
    if split is None:
        size = m.static_dims(x)[axis]
        count = num_outputs or m.outputs
        chunk = -(-size // count)
        sizes = [max(min(chunk, size - k * chunk), 0) for k in range(count)]
        if num_outputs is None and size % count:
            raise Error(f"axis {axis} of size {size} does not split into {count} equal parts")
    else:
        sizes = int_list(split)
        size = m.dims(x)[axis]
        if any(s < 0 for s in sizes) or (not isinstance(size, Dim) and sum(sizes) != size):
            raise Error(f"split {sizes} does not add up to the size {size} of axis {axis}")
    parts, at = [], 0
    for s in sizes:
        parts.append(cut(m, x, [axis], [at], [at + s]))
        at += s
    return tuple(parts)


def cut(m, x, axes, starts, ends):
    """A `slice` whose one-element results keep rank 1."""
    result = m.add("slice", x, axes=axes, starts=starts, ends=ends)
    if result.shape().is_rank0():
        return m.add("reshape", result, dims=[1])
    return result


@onnx_op("Slice", since=10)
def slice_10(m, x, starts: Sizes, ends: Sizes, axes: Const = None, steps: Const = None):
    starts, ends = size_list(starts), size_list(ends)
    axes = None if axes is None else int_list(axes)
    steps = [1] * len(starts) if steps is None else int_list(steps)
    return slice_by(m, x, starts, ends, axes, steps)


@onnx_op("Slice")
def slice_1(m, x, *, starts, ends, axes=None):
    return slice_by(m, x, starts, ends, axes, [1] * len(starts))


def slice_by(m, x, starts, ends, axes, steps):
    """Slices, then reverses and steps where a step is not 1."""
    dims = m.dims(x)
    rank = len(dims)
    axes = list(range(len(starts))) if axes is None else [m.axis(a, rank) for a in axes]
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Error("starts, ends, axes and steps differ in length")
    if 0 in steps:
        raise Error("a step of 0")
    if len(set(axes)) != len(axes):
        raise Error(f"axes {axes} name an axis twice")
    first, last = [], []
    for k, axis in enumerate(axes):
        size = dims[axis]
        begin, end = bounds(starts[k], ends[k], steps[k], size)
        first.append(begin)
        last.append(end)
    result = narrow(m, x, dims, axes, first, last)
    backwards = [a for a, s in zip(axes, steps, strict=True) if s < 0]
    if backwards:
        result = m.add("reverse", result, axes=backwards)
    wide = [(a, abs(s)) for a, s in zip(axes, steps, strict=True) if abs(s) > 1]
    if wide:
        result = m.add("step", result, axes=[a for a, _ in wide], steps=[s for _, s in wide])
    return result


def bounds(start, end, step, size) -> tuple:
    """Begin and end of the range that a slice covers, in growing order."""
    if isinstance(size, Dim):
        begin, stop = place(start, size), place(end, size)
        if step < 0:
            raise Deferred
        return begin, stop
    if isinstance(start, Dim) or isinstance(end, Dim):
        raise Deferred
    span = range(size)[slice(start, end, step)]
    if not len(span):
        return 0, 0
    return (span[0], span[-1] + 1) if step > 0 else (span[-1], span[0] + 1)


def place(at, size: Dim):
    """A slice bound on an axis of symbolic size, or a deferral where it cannot be decided."""
    if isinstance(at, Dim):
        if at == size:
            return size
        if at.max <= size.min:
            return at
        raise Deferred
    if at >= size.max or at >= 2**31 - 1:
        return size
    if 0 <= at <= size.min:
        return at
    if at < 0 and size.min + at >= 0:
        return size + at
    if at <= -(2**31) or -at >= size.max:
        return 0
    raise Deferred


def narrow(m, x, dims, axes, first, last):
    """A `slice` of the axes that really lose something."""
    chosen = [
        k for k, axis in enumerate(axes) if not (is_zero(first[k]) and same(last[k], dims[axis]))
    ]
    if not chosen and axes and not any(isinstance(d, Dim) for d in dims):
        chosen = list(range(len(axes)))
    if not chosen:
        return m.add("identity", x)
    picked = [axes[k] for k in chosen]
    begin, end = [first[k] for k in chosen], [last[k] for k in chosen]
    symbolic = any(isinstance(v, Dim) for v in (*begin, *end, *(dims[a] for a in picked)))
    if not symbolic:
        return cut(m, x, picked, begin, end)
    return m.add("onnx::slice", x, axes=picked, starts=begin, ends=end)


def is_zero(value) -> bool:
    return not isinstance(value, Dim) and value == 0


def same(a, b) -> bool:
    return a is b or a == b


@onnx_op("Expand")
def expand(m, x, shape: Sizes):
    have, want = m.dims(x), size_list(shape)
    rank = max(len(have), len(want))
    have = (1,) * (rank - len(have)) + tuple(have)
    want = [1] * (rank - len(want)) + want
    dims = []
    for a, b in zip(have, want, strict=True):
        if isinstance(a, Dim) or isinstance(b, Dim):
            if same(a, b) or is_one(b):
                dims.append(a)
            elif is_one(a):
                dims.append(b)
            else:
                raise Deferred
            continue
        if a != b and 1 not in (a, b):
            raise Error(f"cannot expand {list(m.dims(x))} to {size_list(shape)}")
        dims.append(b if a == 1 else a)
    if not dims:
        return m.add("identity", x)
    return m.broadcast(x, dims)


def is_one(value) -> bool:
    return not isinstance(value, Dim) and value == 1


@onnx_op("Tile", since=6)
def tile(m, x, repeats: Const):
    counts = int_list(repeats)
    if len(counts) != m.rank(x):
        raise Error(f"{len(counts)} repeats for {m.rank(x)} dimensions")
    if not counts:
        return m.add("identity", x)
    if any(isinstance(d, Dim) for d in m.dims(x)):
        result = x
        for axis, count in enumerate(counts):
            result = join(m, [result] * count, axis) if count > 1 else result
            if count == 0:
                raise Deferred
        return result
    dims = m.static_dims(x)
    if 0 in counts or 0 in dims:
        out = [d * c for d, c in zip(dims, counts, strict=True)]
        return m.broadcast(m.lit(np.zeros((), dtype_of(m.type(x)))), out)
    return m.call("tile", x, repeats=counts)


@onnx_op("Tile")
def tile_1(m, x, tiles: Const, axis: Const):
    counts = [1] * m.rank(x)
    counts[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    return tile(m, x, np.array(counts))


PAD_MODES = {"constant": 0, "reflect": 1, "edge": 2}  # of `pad`; it knows no "wrap"


@onnx_op("Pad", since=11)
def pad(m, x, pads: Const, constant_value: Const = None, axes: Const = None, *, mode="constant"):
    value = 0 if constant_value is None else constant_value.reshape(-1)[0]
    return pad_by(m, x, int_list(pads), value, None if axes is None else int_list(axes), mode)


@onnx_op("Pad")
def pad_1(m, x, *, pads=None, paddings=None, value=0.0, mode="constant"):
    pads = paddings if pads is None else pads
    if pads is None:
        raise Error("attribute 'pads' is required")
    return pad_by(m, x, pads, value, None, mode)


def pad_by(m, x, pads, value, axes, mode):
    """Pads at both ends of axes; negative pads cut off."""
    rank = m.rank(x)
    if mode not in (*PAD_MODES, "wrap"):
        raise Error(f"mode {mode!r} is none of {', '.join(PAD_MODES)}, wrap")
    axes = list(range(rank)) if axes is None else [m.axis(a, rank) for a in axes]
    if len(pads) != 2 * len(axes):
        raise Error(f"{len(pads)} pads for {len(axes)} axes; two for each are needed")
    begin, end = [0] * rank, [0] * rank
    for k, axis in enumerate(axes):
        begin[axis], end[axis] = pads[k], pads[k + len(axes)]
    if not any(begin) and not any(end):
        return m.add("identity", x)
    if mode == "wrap":
        return wrapped(m, x, begin, end)
    if any(p < 0 for p in begin + end):
        dims = m.static_dims(x)
        chosen = [k for k in range(rank) if begin[k] < 0 or end[k] < 0]
        first = [max(-begin[k], 0) for k in chosen]
        last = [dims[k] - max(-end[k], 0) for k in chosen]
        x = cut(m, x, chosen, first, [max(a, b) for a, b in zip(first, last, strict=True)])
        begin, end = [max(p, 0) for p in begin], [max(p, 0) for p in end]
        if not any(begin) and not any(end):
            return x
    kind = m.type(x)
    exact = mode != "constant" or _pads_exactly(value, kind)
    if exact and kind < 100:
        number = float(value) if mode == "constant" else 0.0
        return m.add("pad", x, pads=begin + end, mode=PAD_MODES[mode], value=number)
    return _pad_with(m, x, begin, end, value)


def wrapped(m, x, begin, end):
    """Repeats x in both directions along each axis; negative pads cut off."""
    dims = m.static_dims(x)
    for axis, (size, before, after) in enumerate(zip(dims, begin, end, strict=True)):
        if not before and not after:
            continue
        if not size and before + after > 0:
            raise Error(f"axis {axis} of size 0 has nothing to repeat")
        places = np.arange(-before, size + after) % max(size, 1)
        x = m.add("gather", x, m.lit(places.astype(np.int64)), axis=axis)
    return x


def _pads_exactly(value, kind) -> bool:
    """True if the float32 attribute of `pad` can hold the value."""
    if kind in (type_t.float_type, type_t.half_type, type_t.bf16_type, type_t.bool_type):
        return True
    return float(np.float32(float(value))) == float(value) and abs(float(value)) < 2**24


def _pad_with(m, x, begin, end, value):
    """Constant padding with a value that the float32 attribute of `pad` cannot hold."""
    for axis, (before, after) in enumerate(zip(begin, end, strict=True)):
        parts = []
        for count in (before, None, after):
            if count is None:
                parts.append(x)
            elif count:
                dims = list(m.dims(x))
                dims[axis] = count
                number = m.lit(np.asarray(value), x)
                parts.append(m.broadcast(number, dims))
        x = join(m, parts, axis) if len(parts) > 1 else x
    return x


@onnx_op("Range")
def make_range(m, start: Const, limit: Const, delta: Const):
    start, limit, delta = (v.reshape(()) for v in (start, limit, delta))
    if delta == 0:
        raise Error("a delta of 0")
    count = max(int(np.ceil((limit - start).astype(np.float64) / delta.astype(np.float64))), 0)
    if start.dtype.kind in "iu":
        values = start + np.arange(count, dtype=start.dtype) * delta
    else:
        values = (start + np.arange(count) * delta).astype(start.dtype)
    return m.lit(values.astype(start.dtype))


@onnx_op("EyeLike")
def eye_like(m, x, *, dtype=None, k=0):
    rows, columns = m.static_dims(x)
    kind = m.type(x) if dtype is None else element_type(dtype)
    return m.lit(np.eye(rows, columns, k, dtype=np.float32).astype(dtype_of(kind)))


@onnx_op("Trilu")
def trilu(m, x, k: Const = None, *, upper=1):
    """Keeps the upper (or lower) triangle of the last two axes."""
    rows, columns = m.static_dims(x)[-2:]
    offset = 0 if k is None else int(k.reshape(-1)[0])
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    keep = column - row >= offset if upper else column - row <= offset
    from .math import where_common

    return where_common(m, m.lit(keep), x, m.lit(np.zeros((), dtype_of(m.type(x)))))


@onnx_op("ReverseSequence")
def reverse_sequence(m, x, lengths, *, batch_axis=1, time_axis=0):
    """Reverses the first `lengths[b]` steps of batch entry b: a gather with computed indices."""
    dims = m.static_dims(x)
    rank = len(dims)
    steps = m.lit(np.arange(dims[time_axis], dtype=np.int64))
    shape_t = [-1 if a == time_axis else 1 for a in range(rank)]
    shape_b = [-1 if a == batch_axis else 1 for a in range(rank)]
    time = m.reshape(steps, shape_t)
    length = m.reshape(m.convert(lengths, type_t.int64_type), shape_b)
    mirrored = m.common("sub", m.common("sub", length, m.lit(np.array(1))), time)
    from .index import gather_elements
    from .math import where_common

    inside = m.convert(m.common("less", time, length), type_t.bool_type)
    index = where_common(m, inside, mirrored, time)
    return gather_elements(m, x, m.broadcast(index, dims), axis=time_axis)


@onnx_op("Dropout", since=12)
def dropout(m, x, ratio: Const = None, training_mode: Const = None, *, seed=None):
    """Inference passes x on; training drops elements by NumPy's generator, as ONNX's does."""
    training = training_mode is not None and bool(training_mode.reshape(-1)[0])
    rate = 0.5 if ratio is None else float(ratio.reshape(-1)[0])
    dims = m.static_dims(x) if training and rate else m.dims(x)
    if not training or not rate:
        return m.add("identity", x), m.broadcast(m.lit(np.array(True)), dims)
    generator = np.random.RandomState(seed)
    keep = generator.uniform(0, 1.0, dims) >= rate
    mask = m.lit(keep)
    scale = m.lit(1 / (1 - rate), x)
    kept = m.add("mul", x, m.convert(mask, m.type(x)))
    return m.common("mul", scale, kept), mask


@onnx_op("Dropout")
def dropout_1(m, x, *, ratio=0.5, is_test=1, consumed_inputs=None):
    """The mask has the type of x; from opset 10 on it is bool."""
    kept = m.lit(np.array(True)) if m.opset >= 10 else m.lit(1, x)
    return m.add("identity", x), m.broadcast(kept, m.dims(x))


def is_instruction(x) -> bool:
    """True for a value that is a node of the graph."""
    return isinstance(x, Instruction)
