"""Resizing along any axes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..dims import UNBOUNDED, Dim
from ..shape import Shape
from .base import Floats, Ints, Op
from .index import INDEX_TYPES

COORDINATES = (
    "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
)  # fmt: skip
NEAREST = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


class Resize(Op, name="resize", inputs=(1, 2)):
    """A tensor sampled at another size: `sizes`, or the old ones times `scales`.

    The mode is ``nearest`` (rounded by `nearest_mode`), ``linear`` or ``cubic`` (Keys, with
    `cubic_coeff_a`; places outside repeat the edge), along every axis whose size or scale
    changes. A second input holds sizes (whole numbers) or scales, known when the program runs.
    `coordinate_transformation_mode` says where in the input an output element lies; it must be
    set before the program runs.
    """

    scales: Floats = ()
    sizes: Ints = ()
    nearest_mode: str = "floor"
    mode: str = "nearest"
    coordinate_transformation_mode: str = ""
    cubic_coeff_a: float = -0.75

    def rule(self, x, target=None):
        if self.mode not in ("nearest", "linear", "cubic"):
            self.fail(f"mode {self.mode!r} is not nearest, linear or cubic")
        if self.nearest_mode not in NEAREST:
            self.fail(f"nearest_mode {self.nearest_mode!r} is not one of {', '.join(NEAREST)}")
        if self.coordinate_transformation_mode not in ("", *COORDINATES):
            self.fail(
                f"coordinate_transformation_mode {self.coordinate_transformation_mode!r} is not "
                f"one of {', '.join(COORDINATES)}"
            )
        if target is not None:
            return self.at_run_time(x, target)
        if bool(self.scales) == bool(self.sizes):
            self.fail("either scales or sizes must be given")
        if x.dims is None:
            return x
        if x.dynamic() and not x.symbolic():
            self.fail(f"Dynamic shapes not supported: {x}")
        given = self.sizes or self.scales
        if len(given) != x.rank:
            self.fail(f"{len(given)} sizes or scales for {x.rank} dimensions")
        if self.sizes:
            if min(self.sizes) < 0:
                self.fail(f"sizes must not be negative: {list(self.sizes)}")
            return Shape.make(x.type(), self.sizes)
        dims = [scaled(d, s) for d, s in zip(x.dims, self.scales, strict=True)]
        if any(isinstance(d, int) and d < 0 for d in dims):
            self.fail(f"scales must not be negative: {list(self.scales)}")
        return x.packed_like(dims)

    def at_run_time(self, x, target):
        if x.dims is None:
            return x
        if target.dims is not None and (target.rank != 1 or target.dims[0] != x.rank):
            self.fail(f"the second input must hold {x.rank} sizes or scales, got {target}")
        if target.type() not in INDEX_TYPES and self.sizes:
            self.fail("sizes are given, but the second input holds scales")
        return Shape.make(x.type(), [Dim(0, UNBOUNDED)] * x.rank)


def scaled(size, scale: float):
    """The size after scaling: computed in float32 and cut, exact for symbolic sizes."""
    if isinstance(size, Dim):
        ratio = Fraction(scale).limit_denominator(1 << 20)
        return (size * ratio.numerator) // ratio.denominator
    return int(np.float32(size) * np.float32(scale))
