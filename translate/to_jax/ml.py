"""Lowerings for ONNX-ML: trees, support vectors, tables; maps and texts on the host."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np

from migraphx.errors import Error
from migraphx.ops.ml import MODES
from migraphx.types import dtype_of, type_t

from .registry import lower

# -- tables --------------------------------------------------------------------------------------


@lower("onnx::lookup")
def lookup(op, xp, x, keys, values, default):
    """Binary search; keys are sorted, NaN last."""
    default = default.reshape(-1)[0]
    keys, values = xp.asarray(keys), xp.asarray(values)
    if not keys.shape[0]:
        return xp.broadcast_to(default, x.shape)
    x_key = x.astype(keys.dtype)
    place = xp.minimum(xp.searchsorted(keys, x_key), keys.shape[0] - 1)
    found = keys[place]
    same = found == x_key
    if np.issubdtype(keys.dtype, np.floating):
        same = same | (xp.isnan(x_key) & xp.isnan(found))
    return xp.where(same, values[place], default)


@lower("onnx::lookup_text", host=True)
def lookup_text(op, xp, x, keys, values, default):
    table = dict(zip(map(_key, keys.tolist()), values.tolist(), strict=True))
    default = default.reshape(-1).tolist()[0]
    out = np.empty(x.size, values.dtype)
    out[:] = [table.get(_key(v), default) for v in x.reshape(-1).tolist()]
    return out.reshape(x.shape)


def _key(value):
    return "nan" if isinstance(value, float) and value != value else (type(value), value)


@lower("onnx::one_hot_text", host=True)
def one_hot_text(op, xp, x, categories):
    out = x[..., None] == categories
    if not op.zeros and not out.any(-1).all():
        raise Error("OneHotEncoder: a value is none of the categories, and zeros is 0")
    return out.astype(np.float32)


# -- trees ---------------------------------------------------------------------------------------


@lower("onnx::forest")
def forest(op, xp, x, roots, feature, split, mode, then, other, missing, leaf, *members):
    """All trees at once, one level after the other; leaves lead to themselves."""
    x = _rows(x).astype(split.dtype)
    tables = (roots, feature, split, mode, then, other, missing, leaf, *members)
    if xp is not np:  # the known ones are indexed by traced numbers
        roots, feature, split, mode, then, other, missing, leaf, *members = map(xp.asarray, tables)
    node = xp.broadcast_to(roots, (x.shape[0], roots.shape[0]))
    if not feature.shape[0]:
        return node

    def step(node):
        value = xp.take_along_axis(x, feature[node], 1)
        hit = _compare(xp, op, mode[node], value, split[node], node, members)
        hit = hit | (xp.isnan(value) & missing[node])
        return xp.where(hit, then[node], other[node])

    if xp is np:
        for _ in range(op.depth):
            node = step(node)
    else:
        node = jax.lax.fori_loop(0, op.depth, lambda _, n: step(n), node)
    return leaf[node]


def _compare(xp, op, mode, value, split, node, members):
    tests = {
        "BRANCH_LEQ": lambda: value <= split,
        "BRANCH_LT": lambda: value < split,
        "BRANCH_GTE": lambda: value >= split,
        "BRANCH_GT": lambda: value > split,
        "BRANCH_EQ": lambda: value == split,
        "BRANCH_NEQ": lambda: value != split,
        "BRANCH_MEMBER": lambda: (members[0][node] == value[..., None]).any(-1),
    }
    names = [MODES[k] for k in op.modes]
    if len(names) == 1:
        return tests[names[0]]()
    hit = xp.zeros(value.shape, bool)
    for number, name in zip(op.modes, names, strict=True):
        hit = xp.where(mode == number, tests[name](), hit)
    return hit


@lower("onnx::forest_score")
def forest_score(op, xp, leaves, weights, given=None):
    weights = xp.asarray(weights)
    picked = weights[leaves]
    if op.aggregate in ("SUM", "AVERAGE"):
        total = picked.sum(1, dtype=picked.dtype)
        return total / leaves.shape[1] if op.aggregate == "AVERAGE" else total
    there = xp.asarray(given)[leaves]
    low = op.aggregate == "MAX"
    reduced = xp.where(there, picked, -np.inf if low else np.inf)
    reduced = (reduced.max if low else reduced.min)(1)
    return xp.where(there.any(1), reduced, 0).astype(weights.dtype)


def _rows(x):
    return x if x.ndim == 2 else x.reshape((1, -1) if x.ndim < 2 else (x.shape[0], -1))


# -- scores --------------------------------------------------------------------------------------


@lower("onnx::post_transform")
def post_transform(op, xp, x):
    return TRANSFORMS[op.kind](xp, x)


def _softmax(xp, x):
    power = xp.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def _softmax_zero(xp, x):
    """Softmax of what is not zero; zeros stay, and do not count."""
    there = xp.abs(x) > 1e-7
    power = xp.where(there, xp.exp(x - x.max(-1, keepdims=True)), x)
    total = power.sum(-1, keepdims=True)
    return power / xp.where(total == 0, 1, total)


def _logistic(xp, x):
    down = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1, down) / (1 + down)


def _probit(xp, x):
    """sqrt(2) * erfinv(2 * x - 1)."""
    return jax.scipy.special.ndtri(jnp.asarray(x))


TRANSFORMS = {
    "NONE": lambda xp, x: x,
    "SOFTMAX": _softmax,
    "SOFTMAX_ZERO": _softmax_zero,
    "LOGISTIC": _logistic,
    "PROBIT": _probit,
}


@lower("onnx::svm_kernel", numpy=False)
def svm_kernel(op, xp, x, vectors):
    x = _rows(x)
    if op.kind == "RBF":
        square = ((x[:, None] - vectors[None]) ** 2).sum(-1)
        return jnp.exp(-op.gamma * square)
    product = jnp.matmul(x, vectors.T, precision=jax.lax.Precision.HIGHEST)
    if op.kind == "POLY":
        return (op.gamma * product + op.coef0) ** op.degree
    if op.kind == "SIGMOID":
        return jnp.tanh(op.gamma * product + op.coef0)
    return product


@lower("onnx::svm_probability", numpy=False)
def svm_probability(op, xp, pairs):
    """Wu, Lin and Weng's second method: the fixed point of a small quadratic problem."""
    count = pairs.shape[-1]
    off = 1 - jnp.eye(count, dtype=pairs.dtype)
    opposite = jnp.swapaxes(pairs, 1, 2) * off
    q = -opposite * jnp.swapaxes(opposite, 1, 2)
    q = q + jnp.eye(count, dtype=pairs.dtype) * (opposite**2).sum(2)[:, None]
    p = jnp.full((pairs.shape[0], count), 1 / count, pairs.dtype)
    tolerance = 0.005 / count

    def sweep(state):
        p, going, k = state
        fresh = p
        qp = jnp.einsum("nij,nj->ni", q, fresh)
        pqp = jnp.einsum("ni,ni->n", fresh, qp)
        worst = jnp.abs(qp - pqp[:, None]).max(-1)
        going = going & (worst >= tolerance)
        for t in range(count):
            diff = (-qp[:, t] + pqp) / q[:, t, t]
            pqp = (pqp + diff * (diff * q[:, t, t] + 2 * qp[:, t])) / (1 + diff) ** 2
            qp = (qp + diff[:, None] * q[:, t]) / (1 + diff)[:, None]
            fresh = fresh.at[:, t].add(diff) / (1 + diff)[:, None]
        return jnp.where(going[:, None], fresh, p), going, k + 1

    start = (p, jnp.ones(pairs.shape[0], bool), 0)
    return jax.lax.while_loop(lambda s: s[1].any() & (s[2] < 100), sweep, start)[0]


@lower("onnx::feature_rows")
def feature_rows(op, xp, *xs):
    rows = []
    for x, columns in zip(xs, op.columns, strict=True):
        x = _rows(x).astype(np.float32)[:, :columns]
        missing = columns - x.shape[1]
        rows.append(xp.pad(x, [(0, 0), (0, missing)]) if missing else x)
    return xp.concatenate(rows, 1)


# -- maps ----------------------------------------------------------------------------------------


@lower("onnx::map_to_tensor", host=True)
def map_to_tensor(op, xp, x, vocabulary=None):
    kind = dtype_of(op.target_type)
    blank = "" if op.target_type == type_t.string_type else 0
    if not isinstance(x, dict):
        raise Error(f"a map (a dict) is needed, got {type(x).__name__}")
    if vocabulary is not None:
        values = [x.get(k, blank) for k in vocabulary.tolist()]
    elif op.size:
        values = [x.get(k, blank) for k in range(op.size)]
    else:
        values = [x[k] for k in sorted(x)]
    if op.target_type == type_t.string_type:
        values = [v if isinstance(v, str) else _text(v) for v in values]
    elif op.target_type in (type_t.float_type, type_t.double_type, type_t.int64_type):
        values = [float(v) if isinstance(v, str) else v for v in values]
    out = np.empty((1, len(values)), kind)
    out[0] = values
    return out


def _text(value) -> str:
    from .onnx import number_to_text

    return number_to_text(np.asarray(value)[()])


@lower("onnx::zip_map", host=True)
def zip_map(op, xp, x, labels):
    names = labels.tolist()
    return [dict(zip(names, row, strict=True)) for row in _rows(x).tolist()]


# -- texts ---------------------------------------------------------------------------------------


@lower("onnx::string_concat", host=True)
def string_concat(op, xp, x, y):
    out = np.add(x.astype(object), y.astype(object), dtype=object)
    return out if isinstance(out, np.ndarray) else np.array(out, object)


@lower("onnx::string_normalizer", host=True)
def string_normalizer(op, xp, x, stop_words=None):
    """Keeps [columns] or [1, columns]; without any text left, one empty text."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise Error(f"StringNormalizer: [C] or [1, C] is needed, got {list(x.shape)}")
    words = x.reshape(-1).tolist()
    if stop_words is not None and stop_words.size:
        fold = str if op.sensitive else str.lower
        stops = {fold(w) for w in stop_words.tolist()}
        words = [w for w in words if fold(w) not in stops]
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[op.case]
    words = [change(w) for w in words] or [""]
    out = np.empty(len(words), object)
    out[:] = words
    return out if x.ndim == 1 else out[None]


@lower("onnx::string_split", host=True)
def string_split(op, xp, x):
    limit = op.maxsplit if op.maxsplit >= 0 else -1
    parts = [t.split(op.delimiter or None, limit) for t in x.reshape(-1).tolist()]
    width = max(map(len, parts), default=0)
    out = np.full((len(parts), width), "", object)
    for k, row in enumerate(parts):
        out[k, : len(row)] = row
    counts = np.array([len(p) for p in parts], np.int64).reshape(x.shape)
    return out.reshape(*x.shape, width), counts


@lower("onnx::regex_full_match", host=True)
def regex_full_match(op, xp, x):
    try:
        pattern = re.compile(op.pattern)
    except re.error as error:
        raise Error(f"RegexFullMatch: bad pattern {op.pattern!r}: {error}") from None
    found = [pattern.fullmatch(t) is not None for t in x.reshape(-1).tolist()]
    return np.array(found, bool).reshape(x.shape)


@lower("onnx::tf_idf", host=True)
def tf_idf(op, xp, x, pool, places, weights=None):
    """Counts the n-grams of every row, then weighs them."""
    if x.ndim not in (1, 2):
        raise Error(f"TfIdfVectorizer: [C] or [N, C] is needed, got {list(x.shape)}")
    table = _ngrams(op, pool.tolist(), places.tolist())
    counts = np.zeros((1 if x.ndim == 1 else x.shape[0], op.columns), np.float32)
    for row, words in zip(counts, x.reshape(counts.shape[0], -1).tolist(), strict=True):
        for length in range(op.least, op.most + 1):
            gaps = [0] if length == 1 else range(op.skip + 1)
            for step in (gap + 1 for gap in gaps):
                for at in range(len(words) - (length - 1) * step):
                    column = table.get(tuple(words[at : at + (length - 1) * step + 1 : step]))
                    if column is not None:
                        row[column] += 1
    scale = np.ones(op.columns, np.float32) if weights is None else weights
    if op.mode == "IDF":
        counts = (counts > 0) * scale
    elif op.mode == "TFIDF":
        counts = counts * scale
    counts = counts.astype(np.float32)
    return counts[0] if x.ndim == 1 else counts


def _ngrams(op, pool: list, places: list) -> dict:
    """Each n-gram of the lengths that count, and its column."""
    table, number = {}, 0
    ends = [*op.starts[1:], len(pool)]
    for length, (start, end) in enumerate(zip(op.starts, ends, strict=True), 1):
        for at in range(start, end - length + 1, length):
            if op.least <= length <= op.most:
                table[tuple(pool[at : at + length])] = places[number]
            number += 1
    return table
