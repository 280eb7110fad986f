"""Random numbers, drawing from distributions, and the selection of boxes."""

from __future__ import annotations

from ..dims import Dim, fixed, hi, lo
from ..shape import Shape
from ..types import type_t
from .base import Op


class RandomSeed(Op, name="random_seed", inputs=0):
    """A seed that differs at every run."""

    differentiable = False
    dtype: type_t = type_t.uint64_type

    def rule(self):
        return Shape.scalar_of(self.dtype)


class RandomUniform(Op, name="random_uniform", inputs=2):
    """Numbers from a seed in the shape of the second input, as C++'s mt19937 gives them.

    Floats lie in [0, 1), integers between 0 and the largest of their type.
    """

    differentiable = False

    def rule(self, seed, like):
        return like


class OnnxRandom(Op, name="onnx::random", inputs=2, own=True):
    """Random numbers in the shape and float type of the second input, from a seed.

    `distribution` is "normal" with mean `first` and deviation `second`, or "uniform" from `first`
    to `second`. A seed that is a constant gives the numbers of NumPy's `RandomState`.
    """

    differentiable = False
    distribution: str = "uniform"
    first: float = 0.0
    second: float = 1.0

    def rule(self, seed, like):
        if self.distribution not in ("normal", "uniform"):
            self.fail(f"distribution {self.distribution!r} is neither 'normal' nor 'uniform'")
        return like if like.dims is None or like.is_rank0() else like.standard_of()


class Multinomial(Op, name="multinomial", inputs=2):
    """Classes drawn from running sums of probabilities {batch, classes} by numbers in [0, 1)."""

    differentiable = False
    dtype: type_t = type_t.int32_type

    def rule(self, sums, numbers):
        if sums.rank != 2:
            self.fail(f"Only 2d supported, got {sums}")
        if numbers.rank < 2:
            self.fail(f"the numbers need 2 dimensions, got {numbers}")
        if self.dtype == type_t.bool_type:
            self.fail("dtype bool_type holds no class numbers")
        dims = (sums.dims[0], numbers.dims[1])
        if all(fixed(d) for d in dims):
            return Shape.make(self.dtype, map(lo, dims))
        return Shape.make(self.dtype, dims)


class NonMaxSuppression(Op, name="nonmaxsuppression", inputs=(2, 5)):
    """Boxes of each batch and class by falling score, without those that overlap a better one.

    Inputs: boxes {batch, n, 4}, scores {batch, classes, n}, the most boxes per class, the overlap
    from which a box is dropped, and the score that a box must exceed (all scores do, if it is left
    out). The result holds rows [batch, class, box]: as many as can be at most, zeros behind the
    selected ones; with `use_dyn_output` exactly the selected ones.
    """

    differentiable = False
    center_point_box: bool = False
    use_dyn_output: bool = False

    def rule(self, boxes, scores, *limits):
        for shape in (boxes, scores):
            if shape.rank != 3:
                self.fail(f"Only 3d supported, got {shape}")
        pairs = [
            (boxes.dims[1], scores.dims[2], "spatial dimension mismatch between boxes and scores"),
            (boxes.dims[0], scores.dims[0], "number of batches mismatch between boxes and scores"),
            (boxes.dims[2], 4, "boxes need four numbers each"),
        ]
        for a, b, message in pairs:
            if fixed(a) and fixed(b) and lo(a) != lo(b):
                self.fail(f"{message}: {boxes} and {scores}")
        batches, classes, _ = scores.dims
        most = hi(batches) * hi(classes) * hi(boxes.dims[1])
        if self.use_dyn_output or boxes.dynamic() or scores.dynamic():
            return Shape.make(type_t.int64_type, (Dim(0, most), Dim(3, 3)))
        return Shape.make(type_t.int64_type, (most, 3))
