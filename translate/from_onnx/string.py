"""Operators of ONNX on texts; they run on the host."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error

from .ml import texts
from .registry import onnx_op


@onnx_op("StringConcat", any_rank=True)
def string_concat(m, x, y):
    return m.add("onnx::string_concat", x, y)


@onnx_op("StringNormalizer", any_rank=True)
def string_normalizer(
    m, x, *, case_change_action="NONE", is_case_sensitive=0, stopwords=(), locale=""
):
    if case_change_action not in ("LOWER", "UPPER", "NONE"):
        raise Error(f"case_change_action {case_change_action!r} is none of LOWER, UPPER, NONE")
    extra = [m.lit(texts(stopwords))] if len(stopwords) else []
    return m.add(
        "onnx::string_normalizer", x, *extra, case=case_change_action,
        sensitive=bool(is_case_sensitive),
    )  # fmt: skip


@onnx_op("StringSplit", any_rank=True)
def string_split(m, x, *, delimiter="", maxsplit=-1):
    """The parts, and how many each text has."""
    both = m.add("onnx::string_split", x, delimiter=delimiter, maxsplit=maxsplit)
    return [m.add("get_tuple_elem", both, index=k) for k in (0, 1)]


@onnx_op("RegexFullMatch", any_rank=True)
def regex_full_match(m, x, *, pattern):
    return m.add("onnx::regex_full_match", x, pattern=pattern)


@onnx_op("TfIdfVectorizer", any_rank=True)
def tf_idf_vectorizer(
    m, x, *, mode, min_gram_length, max_gram_length, max_skip_count, ngram_counts, ngram_indexes,
    pool_int64s=None, pool_strings=None, weights=None,
):  # fmt: skip
    """How often each n-gram of a pool occurs, weighted by `mode`."""
    if mode not in ("TF", "IDF", "TFIDF"):
        raise Error(f"mode {mode!r} is none of TF, IDF, TFIDF")
    pool = texts(pool_strings) if pool_strings else np.asarray(pool_int64s or [], np.int64)
    columns = max(ngram_indexes, default=-1) + 1
    places = np.asarray(ngram_indexes, np.int64)
    extra = []
    if weights is not None and len(weights):
        if len(weights) != len(places):
            raise Error(f"{len(weights)} weights for {len(places)} n-grams")
        scale = np.zeros(columns, np.float32)
        scale[places] = weights
        extra = [m.lit(scale)]
    starts = list(ngram_counts)
    sizes = np.diff([*starts, len(pool)])
    grams = sum(int(s) // n for n, s in enumerate(sizes, 1))
    if any(s % n for n, s in enumerate(sizes, 1)) or grams != len(places):
        raise Error(f"the pool holds {grams} n-grams, ngram_indexes has {len(places)} entries")
    return m.add(
        "onnx::tf_idf", x, m.lit(pool), m.lit(places), *extra, mode=mode, starts=starts,
        least=min_gram_length, most=max_gram_length, skip=max_skip_count, columns=columns,
    )  # fmt: skip
