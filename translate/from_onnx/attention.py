"""Attention of ONNX (Attention, RotaryEmbedding) and the pieces that the contrib ones share."""

from __future__ import annotations

import math

import numpy as np

from migraphx.errors import Error
from migraphx.types import FLOATS, type_t

from .math import where_common
from .registry import onnx_op
from .tensors import element_type

# -- pieces ----------------------------------------------------------------------------------------


def split_heads(m, x, heads: int):
    """(batch, length, heads * size) to (batch, heads, length, size)."""
    batch, length, hidden = m.dims(x)
    if not hasattr(hidden, "min") and hidden % heads:
        raise Error(f"a width of {hidden} does not split into {heads} heads")
    x = m.reshape(x, (batch, length, heads, hidden // heads))
    return m.add("transpose", x, permutation=[0, 2, 1, 3])


def join_heads(m, x):
    """(batch, heads, length, size) to (batch, length, heads * size)."""
    batch, heads, length, size = m.dims(x)
    x = m.add("transpose", x, permutation=[0, 2, 1, 3])
    return m.reshape(x, (batch, length, heads * size))


def repeat_heads(m, x, times: int):
    """Every head `times` times in a row: keys and values shared by groups of queries."""
    if times == 1:
        return x
    batch, heads, length, size = m.dims(x)
    x = m.add("unsqueeze", x, axes=[2])
    x = m.broadcast(x, (batch, heads, times, length, size))
    return m.reshape(x, (batch, heads * times, length, size))


def transposed(m, x):
    """The last two axes exchanged."""
    rank = m.rank(x)
    order = [*range(rank - 2), rank - 1, rank - 2]
    return m.add("transpose", x, permutation=order)


def part(m, x, axis: int, start, end):
    """x from `start` to `end` of one axis."""
    dims = m.dims(x)
    if start == 0 and end == dims[axis]:
        return x
    return m.add("slice", x, axes=[axis], starts=[start], ends=[end])


def softcap(m, x, limit: float):
    """limit * tanh(x / limit)."""
    if not limit:
        return x
    small = m.add("tanh", m.common("div", x, m.lit(limit, x)))
    return m.common("mul", small, m.lit(limit, x))


def additive(m, mask, kind, masked: float = -math.inf):
    """0 where a bool mask holds and `masked` elsewhere, in a float type."""
    zero, low = m.lit(0, kind), m.lit(masked, kind)
    return where_common(m, mask, zero, low)


def sum_of(m, *parts):
    """Sum of what is not None, by NumPy's broadcasting; None if nothing is."""
    total = None
    for value in parts:
        if value is not None:
            total = value if total is None else m.common("add", total, value)
    return total


def seen(rows: int, columns: int, offset: int, left: int = -1, right: int = 0) -> np.ndarray:
    """Which keys a query sees: from `left` before its place (offset + row) to `right` behind it."""
    distance = np.arange(columns)[None, :] - (np.arange(rows)[:, None] + offset)
    allowed = np.ones((rows, columns), bool)
    if right >= 0:
        allowed &= distance <= right
    if left >= 0:
        allowed &= -distance <= left
    return allowed


def probabilities(m, scores, kind=None, guard=None):
    """Softmax over the last axis, in `kind`; rows that `guard` (a bias) masks whole give 0."""
    have = m.type(scores)
    wide = m.convert(scores, kind) if kind is not None else scores
    result = m.add("softmax", wide, axis=m.rank(scores) - 1)
    if guard is not None:
        largest = m.add("reduce_max", guard, axes=[m.rank(guard) - 1])
        empty = m.common("equal", largest, m.lit(-math.inf, guard))
        empty = m.convert(empty, type_t.bool_type)
        result = where_common(m, empty, m.lit(0, result), result)
    return m.convert(result, have)


# -- Attention -------------------------------------------------------------------------------------


@onnx_op("Attention", since=23)
def attention(
    m, q, k, v, mask=None, past_key=None, past_value=None, lengths=None, *, is_causal=0,
    kv_num_heads=None, q_num_heads=None, scale=None, softcap=0.0, softmax_precision=None,
    qk_matmul_output_mode=0, left_window_size=-1, right_window_size=-1,
):  # fmt: skip
    """Scaled dot-product attention with cache, masks, windows and grouped heads."""
    flat = m.rank(q) == 3
    if (past_key is None) != (past_value is None):
        raise Error("past_key and past_value must be given together")
    if lengths is not None and past_key is not None:
        raise Error("nonpad_kv_seqlen cannot be combined with a past key")
    if flat:
        if not q_num_heads or not kv_num_heads:
            raise Error("q_num_heads and kv_num_heads are required for inputs of rank 3")
        q, k, v = (split_heads(m, x, n) for x, n in
                   ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads)))  # fmt: skip
    kind = m.type(q)
    past = 0 if past_key is None else m.dims(past_key)[2]
    if past_key is not None:
        k = m.add("concat", past_key, k, axis=2)
        v = m.add("concat", past_value, v, axis=2)
    present = k, v
    groups = m.static_dims(q)[1] // m.static_dims(k)[1] if m.dims(q)[1] != m.dims(k)[1] else 1
    k, v = repeat_heads(m, k, groups), repeat_heads(m, v, groups)
    if scale is None:
        scale = 1 / math.sqrt(m.static_dims(q)[3])
    root = m.lit(math.sqrt(scale), q)
    scores = m.add("dot", m.common("mul", q, root), m.common("mul", transposed(m, k), root))
    shown = {0: scores}
    scores = _capped(m, scores, softcap)
    shown[1] = scores
    windows = left_window_size, right_window_size
    bias = _bias(m, q, k, mask, lengths, past, is_causal, windows, kind)
    if bias is not None:
        scores = m.common("add", scores, bias)
    shown[2] = scores
    wide = None if not softmax_precision else element_type(softmax_precision)
    weights = probabilities(m, scores, wide, bias)
    shown[3] = weights
    if qk_matmul_output_mode not in shown:
        raise Error(f"qk_matmul_output_mode is {qk_matmul_output_mode}, accepted are 0 to 3")
    result = m.add("dot", weights, v)
    return join_heads(m, result) if flat else result, *present, shown[qk_matmul_output_mode]


_capped = softcap  # the attribute of the same name hides the function


def _bias(m, q, k, mask, lengths, past, is_causal, windows, kind):
    """What is added to the scores: -inf where a key is not seen."""
    parts = []
    if mask is not None:
        parts.append(_mask(m, mask, m.dims(k)[2], kind))
    if is_causal or max(windows) >= 0:
        rows, columns = m.static_dims(q)[2], m.static_dims(k)[2]
        left, right = windows
        right = min(right, 0) if is_causal and right >= 0 else 0 if is_causal else right
        if lengths is None:
            allowed = m.lit(seen(rows, columns, int(_number(m, past)), left, right))
        else:
            allowed = _seen_by_length(m, rows, columns, lengths, left, right)
        parts.append(additive(m, allowed, kind))
    if lengths is not None:
        columns = m.static_dims(k)[2]
        place = m.lit(np.arange(columns, dtype=np.int64).reshape(1, 1, 1, columns))
        count = m.reshape(m.convert(lengths, type_t.int64_type), (m.dims(lengths)[0], 1, 1, 1))
        inside = m.convert(m.common("less", place, count), type_t.bool_type)
        parts.append(additive(m, inside, kind))
    return sum_of(m, *parts)


def _number(m, size) -> int:
    from .registry import Deferred

    if hasattr(size, "min"):
        if size.min != size.max:
            raise Deferred
        return size.min
    return size


def _seen_by_length(m, rows, columns, lengths, left, right):
    """As `seen`, the offset of batch entry b being lengths[b] - rows."""
    place = m.lit(np.arange(columns, dtype=np.int64).reshape(1, 1, 1, columns))
    row = m.lit(np.arange(rows, dtype=np.int64).reshape(1, 1, rows, 1) - rows)
    count = m.reshape(m.convert(lengths, type_t.int64_type), (m.dims(lengths)[0], 1, 1, 1))
    distance = m.common("sub", place, m.common("add", row, count))
    allowed = None
    for limit, name, sign in ((right, "greater", 1), (left, "less", -1)):
        if limit < 0:
            continue
        outside = m.common(name, distance, m.lit(np.array(sign * limit, np.int64)))
        inside = m.add("not", m.convert(outside, type_t.bool_type))
        allowed = inside if allowed is None else m.common("logical_and", allowed, inside)
    return allowed


def _mask(m, mask, columns, kind):
    """An attention mask as an additive one, filled up with -inf to the number of keys."""
    if m.type(mask) == type_t.bool_type:
        mask = additive(m, mask, kind)
    mask = m.convert(mask, kind)
    have = m.dims(mask)[-1]
    if hasattr(have, "min") or hasattr(columns, "min"):
        return mask
    if have == columns or have == 1:
        return mask
    pads = [0] * (2 * m.rank(mask) - 1) + [columns - have]
    return m.add("pad", mask, pads=pads, value=-math.inf)


# -- rotary embeddings -----------------------------------------------------------------------------


def rotate(m, x, cos, sin, interleaved: bool):
    """Turns pairs of the last axis of x; cos and sin broadcast to half of it."""
    dims = m.dims(x)
    size = m.static_dims(cos)[-1] * 2
    rest = part(m, x, len(dims) - 1, size, dims[-1]) if size != dims[-1] else None
    x = part(m, x, len(dims) - 1, 0, size)
    if interleaved:
        pairs = m.reshape(x, (*dims[:-1], size // 2, 2))
        last = len(dims)
        first, second = (
            m.add("squeeze", part(m, pairs, last, k, k + 1), axes=[last]) for k in (0, 1)
        )
    else:
        first, second = (
            part(m, x, len(dims) - 1, k * size // 2, (k + 1) * size // 2) for k in (0, 1)
        )
    real = m.common("sub", m.common("mul", cos, first), m.common("mul", sin, second))
    imaginary = m.common("add", m.common("mul", sin, first), m.common("mul", cos, second))
    if interleaved:
        both = [m.add("unsqueeze", v, axes=[len(dims)]) for v in (real, imaginary)]
        turned = m.reshape(m.add("concat", *both, axis=len(dims)), (*dims[:-1], size))
    else:
        turned = m.add("concat", real, imaginary, axis=len(dims) - 1)
    return turned if rest is None else m.add("concat", turned, rest, axis=len(dims) - 1)


@onnx_op("RotaryEmbedding", since=23)
def rotary_embedding(
    m, x, cos, sin, positions=None, *, interleaved=0, num_heads=0, rotary_embedding_dim=0
):
    """Rotary position embedding of (batch, heads, length, size) or (batch, length, width)."""
    flat = m.rank(x) == 3
    if flat and not num_heads:
        raise Error("num_heads is required for an input of rank 3")
    heads = split_heads(m, x, num_heads) if flat else x
    if positions is not None:
        cos, sin = (m.add("gather", v, positions, axis=0) for v in (cos, sin))
    half = rotary_embedding_dim // 2
    if half:
        cos, sin = (part(m, v, m.rank(v) - 1, 0, half) for v in (cos, sin))
    cos, sin = (m.add("unsqueeze", v, axes=[1]) for v in (cos, sin))
    result = rotate(m, heads, cos, sin, bool(interleaved))
    return join_heads(m, result) if flat else result


# -- norms without a mean --------------------------------------------------------------------------


def rms_norm(m, x, axes, epsilon, kind=None):
    """x / sqrt(mean(x²) + epsilon), computed in `kind`, and 1 / that root."""
    have = m.type(x)
    wide = m.convert(x, kind) if kind is not None else x
    square = m.add("reduce_mean", m.add("mul", wide, wide), axes=axes)
    inverse = m.add("rsqrt", m.common("add", square, m.lit(epsilon, square)))
    return m.convert(m.common("mul", wide, inverse), have), inverse


@onnx_op("RMSNormalization", since=23)
def rms_normalization(m, x, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    """Normalises by the root of the mean square over the axes from `axis` on."""
    if m.type(x) not in FLOATS:
        raise Error("the input must be of a float type")
    rank = m.rank(x)
    axes = list(range(m.axis(axis, rank), rank))
    wide = type_t.double_type if m.type(x) == type_t.double_type else element_type(stash_type)
    result, _ = rms_norm(m, x, axes, epsilon, wide)
    kind = m.type(scale)
    return m.common("mul", m.convert(result, kind), scale)
