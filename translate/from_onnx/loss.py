"""Losses of classifiers."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import type_t

from .reduce import squeeze_axes
from .registry import onnx_op


@onnx_op("NegativeLogLikelihoodLoss")
def nll_loss(m, scores, target, weight=None, *, ignore_index=None, reduction="mean"):
    """Minus the score of the target class (axis 1), times its weight."""
    if reduction not in ("none", "mean", "sum"):
        raise Error(f"reduction {reduction!r} is none of none, mean and sum")
    if m.rank(scores) != m.rank(target) + 1:
        raise Error(f"targets {m.dims(target)} do not fit scores {m.dims(scores)}")
    kind, dims = m.type(scores), m.dims(target)
    target = m.convert(target, type_t.int64_type)
    classes = m.static_dims(scores)[1]
    shape = [1, classes] + [1] * (len(dims) - 1)
    number = m.lit(np.arange(classes, dtype=np.int64).reshape(shape))
    hit = m.common("equal", m.add("unsqueeze", target, axes=[1]), number)
    hit = m.convert(hit, type_t.bool_type)
    zero = m.broadcast(m.lit(0, scores), m.dims(scores))
    picked = m.add("where", hit, scores, zero)
    loss = squeeze_axes(m, m.add("reduce_sum", picked, axes=[1]), [1])
    loss = m.add("neg", loss)
    share = None
    if weight is not None:
        spread = m.broadcast(m.reshape(weight, shape), m.dims(scores))
        share = m.add("where", hit, spread, m.broadcast(m.lit(0, weight), m.dims(scores)))
        share = squeeze_axes(m, m.add("reduce_sum", share, axes=[1]), [1])
    if ignore_index is not None:
        kept = m.common("equal", target, m.lit(ignore_index, target))
        kept = m.convert(m.add("not", m.convert(kept, type_t.bool_type)), kind)
        # What is ignored counts nothing; `hit` may be empty for it.
        share = kept if share is None else m.add("mul", share, kept)
    if share is not None:
        loss = m.add("mul", loss, share)
    if reduction == "none":
        return loss
    total = _sum(m, loss)
    if reduction == "sum":
        return total
    if share is None:
        share = m.broadcast(m.lit(1, scores), dims)
    return m.add("div", total, _sum(m, share))


def _sum(m, x):
    """The sum of all elements, of rank 0."""
    axes = list(range(m.rank(x)))
    return squeeze_axes(m, m.add("reduce_sum", x, axes=axes), axes)


@onnx_op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(m, scores, labels, weight=None, *, ignore_index=None, reduction="mean"):
    """The log of the softmax over axis 1, and `nll_loss` of it; gives both."""
    logs = m.add("logsoftmax", scores, axis=1)
    loss = nll_loss(m, logs, labels, weight, ignore_index=ignore_index, reduction=reduction)
    return loss, logs
