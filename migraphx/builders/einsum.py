"""einsum, as transposes, reductions and matrix products.

All inputs get one axis for every label, in one order; then they are joined one by one, and a
label is summed as soon as no later input and no output has it.
"""

from __future__ import annotations

import re

import numpy as np

from ..dims import product
from ..errors import Error
from ..types import common_type
from .common import add_common_op, builder, common_dim, convert_to, lit


@builder("einsum")
def einsum(m, *xs, equation):
    """The sum of products that an equation such as ``"bij,bjk->bik"`` describes."""
    terms, output = parsed(equation, [rank_of(x) for x in xs])
    kind = common_type(*(x.shape().type() for x in xs))
    xs = [convert_to(m, x, kind) for x in xs]
    xs = [diagonal(m, x, term) for x, term in zip(xs, terms, strict=True)]
    terms = [list(dict.fromkeys(term)) for term in terms]
    check_sizes(xs, terms)
    labels = sorted({*(label for term in terms for label in term)})
    parts = [aligned(m, x, term, labels) for x, term in zip(xs, terms, strict=True)]
    whole, have = parts[0], set(terms[0])
    for k, part in enumerate(parts[1:], 1):
        needed = {*output, *(label for term in terms[k + 1 :] for label in term)}
        whole = joined(m, labels, (whole, have), (part, set(terms[k])), needed)
        have = (have | set(terms[k])) & needed
    whole = summed(m, whole, labels, have - set(output))
    return arranged(m, whole, labels, output)


def rank_of(x) -> int:
    """Number of axes as NumPy counts them."""
    return 0 if x.shape().is_rank0() else x.shape().rank


def dims_of(x) -> tuple:
    """Sizes; () for rank 0."""
    return () if x.shape().is_rank0() else x.shape().dims


# -- the equation --------------------------------------------------------------------------------


def parsed(equation: str, ranks: list) -> tuple:
    """Labels of each input and of the output; those of the ellipsis are ``.0``, ``.1``, ..."""
    text = re.sub(r"\s", "", equation)
    left, arrow, right = text.partition("->")
    words = left.split(",")
    if len(words) != len(ranks):
        raise Error(f"equation {equation!r} has {len(words)} inputs, {len(ranks)} are given")
    terms = [labels_of(w, rank, equation) for w, rank in zip(words, ranks, strict=True)]
    dots = max((sum(label[0] == "." for label in t) for t in terms), default=0)
    if not arrow:
        counts = {}
        for label in (label for term in terms for label in term):
            counts[label] = counts.get(label, 0) + 1
        plain = sorted(label for label, n in counts.items() if n == 1 and label[0] != ".")
        return terms, [*ellipsis(dots), *plain]
    letters = [c for c in right.replace("...", "") if c != "."]
    output = labels_of(right, len(letters) + (dots if "..." in right else 0), equation)
    known = {label for term in terms for label in term}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise Error(f"equation {equation!r}: its output repeats a label or has one of no input")
    return terms, output


def ellipsis(count: int) -> list:
    """Labels of `count` axes; equal ones are equally far from the last."""
    return [f".{99 - k:02d}" for k in range(count - 1, -1, -1)]


def labels_of(word: str, rank: int, equation: str) -> list:
    """The labels of one term for a tensor of `rank` axes."""
    if not re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", word):
        raise Error(f"equation {equation!r}: {word!r} is not a list of labels")
    before, dots, after = word.partition("...")
    missing = rank - len(before) - len(after)
    if missing < 0 or (missing and not dots):
        raise Error(f"equation {equation!r}: {word!r} does not fit an input of {rank} dimensions")
    return [*before, *ellipsis(missing), *after]


def check_sizes(xs, terms) -> None:
    """Refuses a label with two sizes."""
    sizes = {}
    for x, term in zip(xs, terms, strict=True):
        for label, size in zip(term, dims_of(x), strict=True):
            try:
                sizes[label] = common_dim(sizes.get(label, size), size)
            except Error:
                raise Error(f"label {label!r} has sizes {sizes[label]} and {size}") from None


# -- one input -----------------------------------------------------------------------------------


def diagonal(m, x, term: list):
    """The input with one axis for each label: diagonals where a label stands twice."""
    term = list(term)
    while len(set(term)) < len(term):
        label = next(label for label in term if term.count(label) > 1)
        one, two = [k for k, other in enumerate(term) if other == label][:2]
        rest = [k for k in range(len(term)) if k not in (one, two)]
        moved = m.add("transpose", x, permutation=[*rest, one, two])
        *dims, rows, columns = moved.shape().dims
        if rows != columns or not isinstance(rows, int):
            raise Error(f"label {label!r} has sizes {rows} and {columns} in one input")
        flat = m.add("reshape", moved, dims=[*dims, rows * columns])
        places = lit(m, np.arange(rows, dtype=np.int64) * (rows + 1))
        taken = m.add("gather", flat, places, axis=len(dims))
        back = list(range(len(dims)))
        back.insert(one, len(dims))
        x = m.add("transpose", taken, permutation=back)
        del term[two]
    return x


def aligned(m, x, term: list, labels: list):
    """The input with an axis for every label, of size 1 where it lacks one."""
    order = sorted(range(len(term)), key=lambda k: labels.index(term[k]))
    if term:
        x = m.add("transpose", x, permutation=order)
    missing = [k for k, label in enumerate(labels) if label not in term]
    if not term:  # rank 0
        return m.add("reshape", x, dims=[1] * len(labels)) if labels else x
    return m.add("unsqueeze", x, axes=missing) if missing else x


def summed(m, x, labels: list, gone: set):
    """Sums over labels; their axes stay with size 1."""
    axes = [k for k, label in enumerate(labels) if label in gone and x.shape().dims[k] != 1]
    return m.add("reduce_sum", x, axes=axes) if axes else x


def arranged(m, x, labels: list, output: list):
    """Only the axes of the output, in its order."""
    if not labels:
        return x
    left = [label for label in labels if label in output]
    gone = [k for k, label in enumerate(labels) if label not in output]
    if gone:
        x = m.add("squeeze", x, axes=gone)
    if not output:
        return x
    return m.add("transpose", x, permutation=[left.index(label) for label in output])


# -- two inputs ----------------------------------------------------------------------------------


def joined(m, labels: list, one: tuple, two: tuple, needed: set):
    """The product of two inputs, summed over the labels that are not needed any more."""
    (x, mine), (y, its) = one, two
    x = summed(m, x, labels, mine - its - needed)
    y = summed(m, y, labels, its - mine - needed)
    shared = [label for label in labels if label in mine & its]
    sums = [
        label for label in shared
        if label not in needed and axis_size(x, labels, label) == axis_size(y, labels, label)
    ]  # fmt: skip
    odd = {label for label in shared if label not in needed and label not in sums}
    if not sums:
        return summed(m, add_common_op(m, "mul", x, y), labels, odd)
    result = matrix_product(m, labels, (x, mine), (y, its), sums)
    return summed(m, result, labels, odd)


def axis_size(x, labels: list, label: str):
    """The size of a label's axis."""
    return x.shape().dims[labels.index(label)]


def matrix_product(m, labels: list, one: tuple, two: tuple, sums: list):
    """A batch of matrix products over the labels `sums`, which then have size 1."""
    (x, mine), (y, its) = one, two
    sizes = {
        label: common_dim(axis_size(x, labels, label), axis_size(y, labels, label))
        for label in labels
    }
    batch = [label for label in labels if label in mine & its and label not in sums]
    left = [label for label in labels if label in mine - its]
    right = [label for label in labels if label in its - mine]
    empty = [label for label in labels if label not in mine | its]
    order = [*batch, *left, *right, *empty, *sums]
    places = [labels.index(label) for label in order]
    parts = []
    for part, own in ((x, left), (y, right)):
        wanted = tuple(sizes[label] if label in {*batch, *own, *sums} else 1 for label in labels)
        if part.shape().dims != wanted:
            part = m.add("multibroadcast", part, out_lens=wanted)
        parts.append(m.add("transpose", part, permutation=places))
    depth, count = product(sizes[s] for s in sums), product(sizes[b] for b in batch)
    flat = []
    for part, own in zip(parts, (left, right), strict=True):
        rows = product(sizes[label] for label in own)
        free = -1 if isinstance(rows, int) and isinstance(depth, int) and (
            isinstance(count, int) and rows * depth * count
        ) else rows  # fmt: skip
        flat.append(m.add("reshape", part, dims=[count, free, depth]))
    flat[1] = m.add("transpose", flat[1], permutation=[0, 2, 1])
    dims = [sizes[label] if label in {*batch, *left, *right} else 1 for label in order]
    whole = m.add("reshape", m.add("dot", *flat), dims=dims)
    back = [order.index(label) for label in labels]
    return m.add("transpose", whole, permutation=back)
