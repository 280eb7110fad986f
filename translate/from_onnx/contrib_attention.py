"""Attention as exporters write it for onnxruntime (domain com.microsoft)."""

from __future__ import annotations

import math

import numpy as np

from migraphx.errors import Error
from migraphx.types import type_t

from .attention import (
    additive,
    join_heads,
    part,
    probabilities,
    repeat_heads,
    rotate,
    seen,
    softcap,
    split_heads,
    sum_of,
    transposed,
)
from .math import where_common
from .quant import dequantize
from .registry import Const, onnx_op

CONTRIB = "com.microsoft"
LOWEST = float(np.finfo(np.float32).min)


def attend(m, q, k, v, bias, scale, limit=0.0, guard=None, sink=None):
    """softmax(q k' scale + bias) v for (batch, heads, length, size), and the scores."""
    if not scale:
        scale = 1 / math.sqrt(m.static_dims(q)[-1])
    scores = m.add("dot", q, transposed(m, k))
    scores = softcap(m, m.common("mul", scores, m.lit(scale, scores)), limit)
    if bias is not None:
        scores = m.common("add", scores, m.convert(bias, m.type(scores)))
    if sink is not None:
        return m.add("dot", _with_sink(m, scores, sink), v), scores
    return m.add("dot", probabilities(m, scores, guard=guard), v), scores


def _with_sink(m, scores, sink):
    """Softmax with one more score per head that takes part in the sum alone."""
    dims = m.dims(scores)
    column = m.broadcast(m.reshape(sink, (1, -1, 1, 1)), (*dims[:3], 1))
    joined = m.add("concat", scores, m.convert(column, m.type(scores)), axis=3)
    return part(m, m.add("softmax", joined, axis=3), 3, 0, dims[3])


def causal(m, rows, columns, masked, kind):
    """The additive mask under which a query sees no later key; the last query sees them all."""
    allowed = m.lit(seen(rows, columns, columns - rows))
    return additive(m, allowed, kind, masked)


def padding(m, mask, rows, columns, kind, masked):
    """The additive form of a key mask: lengths (B), or 1 where a key counts (B,T), (B,S,T)."""
    if mask is None:
        return None
    dims = m.dims(mask)
    if len(dims) == 1:
        return _by_length(m, mask, columns, kind, masked)
    flags = m.convert(mask, type_t.bool_type)
    if len(dims) == 2:
        flags = m.add("unsqueeze", flags, axes=[1, 2])
    elif len(dims) == 3:
        flags = m.add("unsqueeze", flags, axes=[1])
    else:  # (B, 1, longest, longest): the last `rows` queries
        total = m.static_dims(mask)[2]
        flags = part(
            m, part(m, flags, 3, 0, columns), 2, max(columns - rows, 0), min(columns, total)
        )
    return additive(m, flags, kind, masked)


def _by_length(m, lengths, columns, kind, masked):
    """(B) numbers of keys that count."""
    place = m.lit(np.arange(columns, dtype=np.int32).reshape(1, 1, 1, columns))
    count = m.reshape(m.convert(lengths, type_t.int32_type), (-1, 1, 1, 1))
    inside = m.convert(m.common("less", place, count), type_t.bool_type)
    return additive(m, inside, kind, masked)


def _ends_and_starts(m, mask, batch, columns, kind, masked):
    """(2B) ends, then starts, of the keys that count."""
    ends, starts = part(m, mask, 0, 0, batch), part(m, mask, 0, batch, 2 * batch)
    place = m.lit(np.arange(columns, dtype=np.int32).reshape(1, 1, 1, columns))
    ends, starts = (m.reshape(m.convert(v, type_t.int32_type), (batch, 1, 1, 1))
                    for v in (ends, starts))  # fmt: skip
    before = m.convert(m.common("less", place, ends), type_t.bool_type)
    after = m.add("not", m.convert(m.common("less", place, starts), type_t.bool_type))
    return additive(m, m.common("logical_and", before, after), kind, masked)


# -- Attention, QAttention -------------------------------------------------------------------------


@onnx_op("Attention", domain=CONTRIB)
def attention(
    m, x, weights, bias=None, mask=None, past=None, attention_bias=None, past_length=None, *,
    num_heads, unidirectional=0, qkv_hidden_sizes=None, scale=0.0, mask_filter_value=-10000.0,
    do_rotary=0, rotary_embedding_dim=0, past_present_share_buffer=0,
):  # fmt: skip
    """Self-attention with one weight matrix for queries, keys and values."""
    packed = m.add("dot", x, m.broadcast(weights, (m.dims(x)[0], *m.dims(weights))))
    if bias is not None:
        packed = m.common("add", packed, bias)
    return _self_attention(
        m, packed, mask, past, attention_bias, num_heads, unidirectional, qkv_hidden_sizes, scale,
        mask_filter_value, do_rotary,
    )  # fmt: skip


@onnx_op("QAttention", domain=CONTRIB)
def qattention(
    m, x, weights, bias, x_scale, w_scale, mask=None, x_zero=None, w_zero=None, past=None, *,
    num_heads, unidirectional=0, scale=0.0, mask_filter_value=-10000.0, do_rotary=0,
    past_present_share_buffer=0,
):  # fmt: skip
    """Attention of quantised inputs and weights."""
    real = dequantize(m, x, x_scale, x_zero)
    matrix = dequantize(m, weights, w_scale, w_zero, axis=1)
    packed = m.add("dot", real, m.broadcast(matrix, (m.dims(x)[0], *m.dims(matrix))))
    packed = m.common("add", packed, bias)
    return _self_attention(
        m, packed, mask, past, None, num_heads, unidirectional, None, scale, mask_filter_value,
        do_rotary,
    )  # fmt: skip


def _self_attention(
    m, packed, mask, past, attention_bias, heads, unidirectional, sizes, scale, masked, do_rotary
):
    if do_rotary:
        raise Error("do_rotary is not supported here: use RotaryEmbedding or GroupQueryAttention")
    width = m.static_dims(packed)[-1]
    sizes = list(sizes) if sizes else [width // 3] * 3
    edges = np.cumsum([0, *sizes])
    if edges[-1] != width:
        raise Error(f"qkv_hidden_sizes {sizes} do not add up to {width}")
    q, k, v = (
        split_heads(m, part(m, packed, 2, int(a), int(b)), heads)
        for a, b in zip(edges[:-1], edges[1:], strict=True)
    )
    if past is not None:
        old = [m.add("squeeze", part(m, past, 0, n, n + 1), axes=[0]) for n in (0, 1)]
        k, v = (m.add("concat", a, b, axis=2) for a, b in zip(old, (k, v), strict=True))
    kind = m.type(packed)
    bias = attention_bias
    if mask is not None or unidirectional:
        batch, _, rows, _ = m.static_dims(q)
        columns = m.static_dims(k)[2]
        keys = None
        if mask is not None and m.rank(mask) == 1 and m.static_dims(mask)[0] == 2 * batch:
            keys = _ends_and_starts(m, mask, batch, columns, kind, masked)
        elif mask is not None:
            keys = padding(m, mask, rows, columns, kind, masked)
        order = causal(m, rows, columns, LOWEST, kind) if unidirectional else None
        bias = _bounded(m, sum_of(m, order, keys), order, keys)
        bias = sum_of(m, bias, attention_bias)
    result, _ = attend(m, q, k, v, bias, scale)
    if m.outputs < 2:
        return join_heads(m, result)
    both = [m.add("unsqueeze", t, axes=[0]) for t in (k, v)]
    return join_heads(m, result), m.add("concat", *both, axis=0)


def _bounded(m, total, *parts):
    """Two masks together stay finite: below the lowest number lies -inf, and a row of it NaN."""
    if sum(p is not None for p in parts) < 2:
        return total
    return m.common("max", total, m.lit(LOWEST, total))


# -- MultiHeadAttention ----------------------------------------------------------------------------


@onnx_op("MultiHeadAttention", "DecoderMaskedMultiHeadAttention", domain=CONTRIB)
def multi_head_attention(
    m, q, k=None, v=None, bias=None, key_mask=None, attention_bias=None, past_key=None,
    past_value=None, past_length=None, *more, num_heads, scale=0.0, mask_filter_value=-10000.0,
    unidirectional=0, **ignored,
):  # fmt: skip
    """Attention of given queries, keys and values, also packed ones, with a cache."""
    if any(x is not None for x in more):
        raise Error("cache_indirection and later inputs (beam search) are not supported")
    q, k, v = _unpacked(m, q, k, v, bias, num_heads)
    if past_key is not None:
        k = m.add("concat", past_key, k, axis=2)
        v = m.add("concat", past_value, v, axis=2)
    kind = m.type(q)
    total = attention_bias
    if key_mask is not None or unidirectional:
        batch, _, rows, _ = m.static_dims(q)
        columns = m.static_dims(k)[2]
        if key_mask is not None and m.rank(key_mask) == 1:
            size = m.static_dims(key_mask)[0]
            if size == 3 * batch + 2:  # lengths, then cumulated offsets
                key_mask = part(m, key_mask, 0, 0, batch)
        keys = padding(m, key_mask, rows, columns, kind, mask_filter_value)
        order = causal(m, rows, columns, LOWEST, kind) if unidirectional else None
        total = sum_of(m, _bounded(m, sum_of(m, order, keys), order, keys), attention_bias)
    result, scores = attend(m, q, k, v, total, scale)
    return join_heads(m, result), k, v, scores


def _unpacked(m, q, k, v, bias, heads):
    """Queries, keys and values as (batch, heads, length, size)."""
    biases = [None] * 3
    if m.rank(q) == 5:  # (B, S, N, 3, H)
        q, k, v = _from_packed(m, q, 3)
        if bias is not None:
            raise Error("a bias with packed queries, keys and values is not supported")
        return q, k, v
    if bias is not None:
        width = m.static_dims(q)[-1]
        last = m.static_dims(bias)[0] - 2 * width
        edges = (0, width, 2 * width, 2 * width + last)
        biases = [part(m, bias, 0, a, b) for a, b in zip(edges, edges[1:])]

    def placed(x, extra):
        if m.rank(x) == 4:
            return x
        return split_heads(m, x if extra is None else m.common("add", x, extra), heads)

    if k is None:
        raise Error("a key is required unless the query is packed")
    if m.rank(k) == 5:  # (B, L, N, 2, H)
        k, v = _from_packed(m, k, 2)
        return placed(q, biases[0]), k, v
    return placed(q, biases[0]), placed(k, biases[1]), placed(v, biases[2])


def _from_packed(m, x, count):
    moved = m.add("transpose", x, permutation=[3, 0, 2, 1, 4])
    return [m.add("squeeze", part(m, moved, 0, n, n + 1), axes=[0]) for n in range(count)]


# -- GroupQueryAttention ---------------------------------------------------------------------------


@onnx_op("GroupQueryAttention", domain=CONTRIB)
def group_query_attention(
    m, q, k=None, v=None, past_key=None, past_value=None, last=None, total: Const = None,
    cos=None, sin=None, positions=None, attention_bias=None, sink=None, *more, num_heads,
    kv_num_heads, scale=0.0, softcap=0.0, local_window_size=-1, do_rotary=0, rotary_interleaved=0,
    smooth_softmax=0, qk_output=0, **ignored,
):  # fmt: skip
    """Causal attention with a cache, whose keys and values serve groups of query heads.

    `last` (seqlens_k) holds each entry's total length less one; `total` is the longest.
    """
    q, k, v = _grouped_inputs(m, q, k, v, num_heads, kv_num_heads)
    batch, _, rows, size = m.static_dims(q)
    longest = int(np.asarray(total).reshape(-1)[0])
    old = 0 if past_key is None else m.static_dims(past_key)[2]
    # how many keys lie before the first query of each entry: (batch, 1)
    last = m.reshape(m.convert(last, type_t.int64_type), (batch, 1))
    prompt = rows == longest
    before = m.lit(np.zeros((batch, 1), np.int64)) if prompt else m.common(
        "sub", last, m.lit(np.array(rows - 1)))  # fmt: skip
    if do_rotary:
        place = positions
        if place is None:
            steps = m.lit(np.arange(rows, dtype=np.int64).reshape(1, rows))
            place = m.common("add", before, steps)
        q, k = (_turned(m, x, cos, sin, place, bool(rotary_interleaved)) for x in (q, k))
    columns = max(old, longest)
    grows = batch == 1 and old + rows == columns and not (prompt and old)
    if past_key is None or (prompt and not old):
        present = k, v
        columns = rows
    elif grows:
        present = tuple(m.add("concat", a, b, axis=2) for a, b in ((past_key, k), (past_value, v)))
    else:
        present = tuple(
            _merged(m, a, b, before, columns) for a, b in ((past_key, k), (past_value, v))
        )
    keys, values = (repeat_heads(m, x, num_heads // kv_num_heads) for x in present)
    bias = _window_bias(m, before, rows, columns, local_window_size, m.type(q))
    if attention_bias is not None:
        have = m.static_dims(attention_bias)[-1]
        if have < columns:
            attention_bias = m.add("pad", attention_bias, pads=[0] * 7 + [columns - have])
        bias = m.common("add", bias, part(m, attention_bias, 3, 0, columns))
    if smooth_softmax and sink is None:
        sink = m.lit(np.zeros(num_heads, np.float32), q)
    result, scores = attend(m, q, keys, values, bias, scale, softcap, sink=sink)
    return join_heads(m, result), *present, scores


def _grouped_inputs(m, q, k, v, heads, kv_heads):
    if heads % kv_heads:
        raise Error(f"{heads} heads are no multiple of {kv_heads} key and value heads")
    if k is not None:
        return split_heads(m, q, heads), split_heads(m, k, kv_heads), split_heads(m, v, kv_heads)
    size = m.static_dims(q)[-1] // (heads + 2 * kv_heads)
    edges = (0, heads * size, (heads + kv_heads) * size, (heads + 2 * kv_heads) * size)
    counts = heads, kv_heads, kv_heads
    return tuple(
        split_heads(m, part(m, q, 2, a, b), n) for a, b, n in zip(edges, edges[1:], counts)
    )


def _turned(m, x, cos, sin, place, interleaved):
    """Rotary embedding at the positions `place` (batch, length)."""
    if cos is None or sin is None:
        raise Error("do_rotary needs cos_cache and sin_cache")
    cos, sin = (m.add("unsqueeze", m.add("gather", t, place, axis=0), axes=[1]) for t in (cos, sin))
    return rotate(m, x, cos, sin, interleaved)


def _merged(m, old, new, before, columns):
    """The cache with the new entries behind the `before[b]` old ones of each batch entry."""
    batch, _, past, _ = m.static_dims(old)
    rows = m.static_dims(new)[2]
    joined = m.add("concat", old, new, axis=2)
    joined = m.add("transpose", joined, permutation=[0, 2, 1, 3])
    place = m.lit(np.arange(columns, dtype=np.int64).reshape(1, columns))
    fresh = m.common("sub", m.common("add", place, m.lit(np.array(past))), before)
    is_old = m.convert(m.common("less", place, before), type_t.bool_type)
    index = where_common(m, is_old, place, fresh)
    index = m.common("min", index, m.lit(np.array(past + rows - 1)))
    index = m.reshape(index, (batch, columns, 1))
    taken = m.add("gathernd", joined, index, batch_dims=1)
    return m.add("transpose", taken, permutation=[0, 2, 1, 3])


def _window_bias(m, before, rows, columns, window, kind):
    """(batch, 1, rows, columns): each query sees keys up to itself, at most `window` of them."""
    batch = m.static_dims(before)[0]
    place = np.arange(columns, dtype=np.int64).reshape(1, 1, 1, columns)
    row = np.arange(rows, dtype=np.int64).reshape(1, 1, rows, 1)
    own = m.common("add", m.reshape(before, (batch, 1, 1, 1)), m.lit(row))
    place = m.lit(place)
    allowed = m.add("not", m.convert(m.common("greater", place, own), type_t.bool_type))
    if window > 0:
        first = m.common("sub", own, m.lit(np.array(window)))
        near = m.convert(m.common("greater", place, first), type_t.bool_type)
        allowed = m.common("logical_and", allowed, near)
    return additive(m, allowed, kind, LOWEST if kind != type_t.half_type else -65504.0)


@onnx_op("RotaryEmbedding", domain=CONTRIB)
def rotary_embedding(
    m, x, positions, cos, sin, *, interleaved=0, num_heads=0, rotary_embedding_dim=0, scale=1.0,
    is_packed_batching=0,
):  # fmt: skip
    """Rotary embedding; one offset for all, or a position per (batch, step)."""
    flat = m.rank(x) == 3
    if flat:
        size = m.static_dims(cos)[-1] * 2
        heads = num_heads or m.static_dims(x)[-1] // (rotary_embedding_dim or size)
        x = split_heads(m, x, heads)
    batch, _, length, _ = m.static_dims(x)
    if m.rank(positions) < 2 and m.dims(positions) in ((), (1,)):
        start = m.reshape(m.convert(positions, type_t.int64_type), (1, 1))
        steps = m.lit(np.arange(length, dtype=np.int64).reshape(1, length))
        positions = m.common("add", start, steps)
    result = _turned(m, x, cos, sin, positions, bool(interleaved))
    return join_heads(m, result) if flat else result
