"""ONNX-ML: support vector machines."""

from __future__ import annotations

import itertools

import numpy as np

from migraphx.errors import Error
from migraphx.types import dtype_of, type_t

from .ml import ML, class_labels, float_rows, linear_scores, picked, post_transform
from .registry import onnx_op

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
_transform = post_transform


def kernel_products(m, x, vectors, count: int, kind: str, params):
    """Products [samples, vectors] of samples and support vectors."""
    if kind not in KERNELS:
        raise Error(f"kernel_type {kind!r} is none of {', '.join(KERNELS)}")
    if not count or len(vectors) % count:
        raise Error(f"{len(vectors)} numbers do not fit {count} support vectors")
    gamma, coef0, degree = params if len(params) == 3 else (0.0, 0.0, 3.0)
    x = float_rows(m, x)
    table = np.asarray(vectors, dtype_of(m.type(x))).reshape(count, -1)
    return m.add("onnx::svm_kernel", x, table, kind=kind, gamma=gamma, coef0=coef0, degree=degree)


@onnx_op("SVMRegressor", domain=ML)
def svm_regressor(
    m, x, *, coefficients=(), support_vectors=(), n_supports=0, rho=(), kernel_type="LINEAR",
    kernel_params=(), one_class=0, post_transform="NONE",
):  # fmt: skip
    """Without support vectors, the coefficients are those of a linear function."""
    if n_supports:
        products = kernel_products(m, x, support_vectors, n_supports, kernel_type, kernel_params)
        weights = np.asarray(coefficients, dtype_of(m.type(products))).reshape(n_supports, 1)
        scores = m.add("dot", products, weights)
        if len(rho):
            scores = m.common("add", scores, m.lit(rho[0], scores))
    else:
        scores = linear_scores(m, x, coefficients, rho[:1], 1)
    scores = m.convert(scores, type_t.float_type)
    if one_class:
        above = m.convert(m.common("greater", scores, m.lit(0, scores)), type_t.float_type)
        return m.common("sub", m.common("mul", above, m.lit(2, scores)), m.lit(1, scores))
    return _transform(m, scores, post_transform)


@onnx_op("SVMClassifier", domain=ML)
def svm_classifier(
    m, x, *, coefficients, support_vectors=(), vectors_per_class=(), rho=(), prob_a=(), prob_b=(),
    classlabels_ints=None, classlabels_strings=None, kernel_type="LINEAR", kernel_params=(),
    post_transform="NONE",
):  # fmt: skip
    """One machine for each pair of classes, or (without support vectors) one for each class."""
    labels = class_labels(classlabels_ints, classlabels_strings)
    if not len(vectors_per_class):
        return linear(m, x, coefficients, rho, labels, post_transform)
    decisions = pair_scores(
        m, x, coefficients, support_vectors, list(vectors_per_class), rho, kernel_type,
        kernel_params,
    )  # fmt: skip
    count = len(vectors_per_class)
    if len(labels) != count:
        raise Error(f"{len(labels)} labels for {count} classes")
    best = picked(m, labels, m.add("argmax", votes(m, decisions, count), axis=1))
    if len(prob_a):
        chances = probabilities(m, decisions, count, prob_a, prob_b)
        return best, _transform(m, m.convert(chances, type_t.float_type), post_transform)
    scores = m.convert(decisions, type_t.float_type)
    if count == 2:
        if post_transform == "LOGISTIC":
            score = _transform(m, scores, "LOGISTIC")
            return best, m.add("concat", m.common("sub", m.lit(1, score), score), score, axis=1)
        scores = m.add("concat", m.add("neg", scores), scores, axis=1)
    return best, _transform(m, scores, post_transform)


def linear(m, x, coefficients, rho, labels, kind: str) -> tuple:
    """A linear score for each class, the same constant added to all."""
    scores = linear_scores(m, x, coefficients, rho[:1], len(labels))
    best = picked(m, labels, m.add("argmax", scores, axis=1))
    return best, _transform(m, scores, kind)


def pair_scores(m, x, coefficients, vectors, per_class: list, rho, kernel: str, params):
    """Decision values [samples, pairs]: positive for the first class of a pair."""
    total, count = sum(per_class), len(per_class)
    products = kernel_products(m, x, vectors, total, kernel, params)
    kind = dtype_of(m.type(products))
    if len(coefficients) != (count - 1) * total:
        raise Error(f"{len(coefficients)} coefficients, {(count - 1) * total} are needed")
    alpha = np.asarray(coefficients, kind).reshape(count - 1, total)
    ends = np.cumsum([0, *per_class])
    pairs = list(itertools.combinations(range(count), 2))
    weights = np.zeros((total, len(pairs)), kind)
    for column, (one, two) in enumerate(pairs):
        first, second = slice(*ends[one : one + 2]), slice(*ends[two : two + 2])
        weights[first, column] = alpha[two - 1, first]
        weights[second, column] = alpha[one, second]
    scores = m.add("dot", products, weights)
    if len(rho) not in (1, len(pairs)):
        raise Error(f"rho has {len(rho)} entries for {len(pairs)} pairs of classes")
    return m.common("add", scores, m.lit(np.asarray(rho, kind)))


def votes(m, decisions, count: int):
    """How many pairs each class wins; of equals, the first class counts."""
    pairs = list(itertools.combinations(range(count), 2))
    kind = dtype_of(m.type(decisions))
    win, lose = np.zeros((len(pairs), count), kind), np.zeros((len(pairs), count), kind)
    for row, (one, two) in enumerate(pairs):
        win[row, one], lose[row, two] = 1, 1
    won = m.common("greater", decisions, m.lit(0, decisions))
    lost = m.common("sub", m.lit(1, won), won)
    return m.add("add", m.add("dot", won, win), m.add("dot", lost, lose))


def probabilities(m, decisions, count: int, prob_a, prob_b):
    """Class probabilities: a logistic curve for each pair, then the pairs put together."""
    pairs = list(itertools.combinations(range(count), 2))
    if not len(prob_a) == len(prob_b) == len(pairs):
        raise Error(f"prob_a and prob_b need {len(pairs)} entries")
    kind = dtype_of(m.type(decisions))
    slope, shift = (np.asarray(v, kind) for v in (prob_a, prob_b))
    inner = m.common("add", m.common("mul", decisions, m.lit(-slope)), m.lit(-shift))
    first = m.add("onnx::post_transform", inner, kind="LOGISTIC")
    low = m.lit(1e-7, first)
    first = m.common("clip", first, low, m.lit(1 - 1e-7, first))
    second = m.common("sub", m.lit(1, first), first)
    if count == 2:
        return m.add("concat", first, second, axis=1)
    up, down = (np.zeros((len(pairs), count * count), kind) for _ in range(2))
    for row, (one, two) in enumerate(pairs):
        up[row, one * count + two], down[row, two * count + one] = 1, 1
    table = m.add("add", m.add("dot", first, up), m.add("dot", second, down))
    return m.add("onnx::svm_probability", m.reshape(table, [-1, count, count]))
