"""This project's own operators for ONNX-ML: models of trees and vectors, tables, maps, texts.

A map is a Python dict while a program runs; what reads or makes maps or texts runs on the host.
"""

from __future__ import annotations

from ..dims import UNBOUNDED, Dim, fixed, lo
from ..shape import Shape
from ..types import type_t
from .base import Ints, Op

# The comparisons of tree nodes, by ONNX's numbers.
MODES = (
    "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ",
    "BRANCH_MEMBER",
)  # fmt: skip


AGGREGATES = ("SUM", "AVERAGE", "MIN", "MAX")
TRANSFORMS = ("NONE", "SOFTMAX", "SOFTMAX_ZERO", "LOGISTIC", "PROBIT")
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def check_word(op: Op, key: str, words) -> None:
    """Refuses a text attribute that is none of `words`."""
    value = getattr(op, key)
    if value not in words:
        op.fail(f"{key} {value!r} is none of {', '.join(words)}")


def rows_of(x: Shape):
    """The number of samples: the first size, 1 for a vector; None if the rank is not known."""
    if x.dims is None:
        return None
    return x.dims[0] if x.rank > 1 else 1


class Lookup(Op, name="onnx::lookup", inputs=4, own=True):
    """Values that belong to keys: (x, sorted keys, values, default). NaN is a key like others."""

    differentiable = False

    def rule(self, x, keys, values, default):
        if x.is_rank0():
            return Shape.scalar_of(values.type())
        return Shape.unknown(values.type()) if x.dims is None else x.standard_of(kind=values.type())


class LookupText(Lookup, name="onnx::lookup_text", own=True):
    """`onnx::lookup` where keys or values are texts; keys in any order."""


class Forest(Op, name="onnx::forest", inputs=(9, 10), own=True):
    """The leaf that each sample reaches in each tree: [samples, trees].

    Inputs: samples, roots, and for every node the feature it tests, what it compares with, the
    comparison (`MODES`), the next node if it is true and if it is false, whether NaN counts as
    true, and the leaf's number (-1 for inner nodes); optionally the members of sets.
    """

    differentiable = False
    depth: int = 1
    modes: Ints = ()  # the comparisons that occur

    def rule(self, x, roots, *nodes):
        if any(not 0 <= mode < len(MODES) for mode in self.modes):
            self.fail(f"modes {list(self.modes)} are positions in {', '.join(MODES)}")
        if MODES.index("BRANCH_MEMBER") in self.modes and len(nodes) < 8:
            self.fail("BRANCH_MEMBER needs the members of sets")
        rows = rows_of(x)
        if rows is None:
            return Shape.unknown(type_t.int32_type)
        return Shape.make(type_t.int32_type, (rows, roots.dims[0]))


class ForestScore(Op, name="onnx::forest_score", inputs=(2, 3), own=True):
    """Leaves' weights put together over the trees: SUM, AVERAGE, MIN or MAX.

    Inputs: leaves [samples, trees], weights [leaves, targets], and which of them are given.
    Targets without any weight get 0.
    """

    differentiable = False
    aggregate: str = "SUM"

    def rule(self, leaves, weights, *given):
        check_word(self, "aggregate", AGGREGATES)
        if self.aggregate in ("MIN", "MAX") and not given:
            self.fail(f"{self.aggregate} needs to be told which weights are given")
        if leaves.dims is None:
            return Shape.unknown(weights.type())
        return Shape.make(weights.type(), (leaves.dims[0], weights.dims[1]))


class PostTransform(Op, name="onnx::post_transform", inputs=1, own=True):
    """SOFTMAX, SOFTMAX_ZERO (zeros stay), LOGISTIC or PROBIT of scores; softmax by rows."""

    kind: str = "NONE"

    def rule(self, x):
        check_word(self, "kind", TRANSFORMS)
        return x if x.dims is None else x.standard_of()


class SvmKernel(Op, name="onnx::svm_kernel", inputs=2, own=True):
    """Products of samples and support vectors in the space of a kernel: [samples, vectors]."""

    kind: str = "LINEAR"
    gamma: float = 0.0
    coef0: float = 0.0
    degree: float = 3.0

    def rule(self, x, vectors):
        check_word(self, "kind", KERNELS)
        rows = rows_of(x)
        if rows is None:
            return x
        wide = vectors.dims[1]
        if x.rank < 3 and fixed(x.dims[-1]) and fixed(wide) and lo(x.dims[-1]) != lo(wide):
            self.fail(f"{x} has {x.dims[-1]} features, the support vectors {vectors} {wide}")
        return Shape.make(x.type(), (rows, vectors.dims[0]))


class SvmProbability(Op, name="onnx::svm_probability", inputs=1, own=True):
    """Class probabilities from those of all pairs of classes, [samples, classes, classes]."""

    def rule(self, x):
        if x.dims is None:
            return x
        if x.rank != 3:
            self.fail(f"the probabilities of pairs need 3 dimensions, got {x}")
        return x.standard_of(x.dims[:-1])


class FeatureRows(Op, name="onnx::feature_rows", inputs=(1, None), own=True):
    """Features of several inputs side by side; each takes as many columns as it is given."""

    columns: Ints = ()

    def rule(self, *xs):
        if len(self.columns) != len(xs):
            self.fail(f"{len(self.columns)} columns for {len(xs)} inputs")
        rows = rows_of(xs[0])
        if rows is None:
            return Shape.unknown(type_t.float_type)
        return Shape.make(type_t.float_type, (rows, sum(self.columns)))


# -- on the host ---------------------------------------------------------------------------------


class OneHotText(Op, name="onnx::one_hot_text", inputs=2, own=True):
    """1 where a text is the category, by a new last axis."""

    differentiable = False
    zeros: bool = True

    def rule(self, x, categories):
        if x.dims is None:
            return Shape.unknown(type_t.float_type)
        dims = () if x.is_rank0() else x.dims
        return Shape.make(type_t.float_type, (*dims, categories.dims[0]))


class MapToTensor(Op, name="onnx::map_to_tensor", inputs=(1, 2), own=True):
    """The values of a map in the order of its keys: of those given, or all of them.

    `size` beyond 0 means: whole numbers are positions in a tensor of that size.
    """

    differentiable = False
    size: int = 0
    target_type: type_t = type_t.float_type

    def rule(self, x, *vocabulary):
        if vocabulary:
            return Shape.make(self.target_type, (1, vocabulary[0].dims[0]))
        columns = self.size or Dim(0, UNBOUNDED)
        return Shape.make(self.target_type, (1, columns))


class ZipMap(Op, name="onnx::zip_map", inputs=2, own=True):
    """A sequence of maps, one for each row: labels to the row's numbers."""

    differentiable = False

    def rule(self, x, labels):
        return Shape.unknown(x.type())


class StringConcat(Op, name="onnx::string_concat", inputs=2, own=True):
    """Texts joined element by element, with NumPy's broadcasting."""

    differentiable = False

    def rule(self, x, y):
        return Shape.unknown(type_t.string_type)


class StringNormalizer(Op, name="onnx::string_normalizer", inputs=(1, 2), own=True):
    """Texts in lower or upper case, without those that are stop words."""

    differentiable = False
    case: str = "NONE"
    sensitive: bool = False

    def rule(self, x, *stop_words):
        check_word(self, "case", ("NONE", "LOWER", "UPPER"))
        return Shape.unknown(type_t.string_type)


class StringSplit(Op, name="onnx::string_split", inputs=1, own=True):
    """Parts of texts along a new last axis, filled up with empty ones, and how many there are."""

    differentiable = False
    delimiter: str = ""
    maxsplit: int = -1

    def rule(self, x):
        counts = Shape.unknown(type_t.int64_type) if x.dims is None else x.standard_of(
            kind=type_t.int64_type
        )  # fmt: skip
        if x.is_rank0():
            counts = Shape.scalar_of(type_t.int64_type)
        return Shape.tuple_of([Shape.unknown(type_t.string_type), counts])


class RegexFullMatch(Op, name="onnx::regex_full_match", inputs=1, own=True):
    """True where a whole text matches a pattern."""

    differentiable = False
    pattern: str = ""

    def rule(self, x):
        return x.with_type(type_t.bool_type)


class TfIdf(Op, name="onnx::tf_idf", inputs=(3, 4), own=True):
    """Counts of n-grams: (x, pool of all n-grams, column of each, weights of the columns).

    `starts` says where the n-grams of each length begin in the pool; gaps between the parts of
    an n-gram go up to `skip`.
    """

    differentiable = False
    mode: str = "TF"
    starts: Ints = ()
    least: int = 1
    most: int = 1
    skip: int = 0
    columns: int = 0

    def rule(self, x, *pool):
        check_word(self, "mode", ("TF", "IDF", "TFIDF"))
        if x.dims is None:
            return Shape.unknown(type_t.float_type)
        front = x.dims[:1] if x.rank > 1 else ()
        return Shape.make(type_t.float_type, (*front, self.columns))
