"""Operators that read or write at places given by other tensors."""

from __future__ import annotations

from ..dims import UNBOUNDED, Dim, fixed, hi, lo
from ..shape import Shape
from ..types import type_t
from .base import Axis, Op, OptInt, PoolingMode, define

INDEX_TYPES = (
    type_t.int8_type, type_t.int16_type, type_t.int32_type, type_t.int64_type,
    type_t.uint8_type, type_t.uint16_type, type_t.uint32_type, type_t.uint64_type,
)  # fmt: skip


def _standard(kind: type_t, dims, *inputs) -> Shape:
    """A standard shape; ranges, if sizes are ranges while others are plain."""
    dims = list(dims)
    if not dims:
        return Shape.scalar_of(kind)
    if any(isinstance(d, Dim) for d in dims):
        dims = [d if isinstance(d, Dim) else Dim(d, d) for d in dims]
    return Shape.make(kind, dims)


class Gather(Op, name="gather", inputs=2):
    """Slices of the first input along `axis`, at the places that the second input lists.

    Places below 0 count from the end. A scalar place (lens {1}, strides {0}) takes the axis away.
    A place outside is an error if the places are constants or sizes. Compiled code cannot raise:
    among places known only when the program runs it means the nearest element (in MIGraphX it is
    an error then too).
    """

    axis: Axis = 0

    def rule(self, x, places):
        self.whole(places)
        if x.dims is None or places.dims is None:
            return Shape.unknown(x.type())
        axis = self.axis_of(self.axis, x.rank)
        if x.is_rank0():
            return _standard(x.type(), () if places.is_rank0() else places.dims)
        middle = () if places.is_rank0() else places.dims
        return _standard(x.type(), (*x.dims[:axis], *middle, *x.dims[axis + 1 :]))

    def whole(self, places):
        if places.type() not in INDEX_TYPES:
            self.fail(f"indices must be whole numbers, got {places}")


class GatherND(Op, name="gathernd", inputs=2):
    """Parts of the first input at the places in the last axis of the second.

    The first `batch_dims` axes of both go together. Places below 0 count from the end; those
    outside are as in `gather`.
    """

    batch_dims: int = 0

    def rule(self, x, places):
        Gather.whole(self, places)
        if x.dims is None or places.dims is None:
            return Shape.unknown(x.type())
        if not fixed(places.dims[-1]):
            self.fail(f"the last dimension of the indices must be fixed, got {places}")
        length, batch = lo(places.dims[-1]), self.batch_dims
        if not 0 <= batch < min(x.rank, places.rank):
            self.fail(f"batch_dims {batch} is not below the ranks {x.rank} and {places.rank}")
        if length > x.rank - batch:
            self.fail(f"places of length {length} in {x} with batch_dims {batch}: too long")
        return _standard(x.type(), (*places.dims[:-1], *x.dims[batch + length :]))


class Scatter(Op):
    """What the operators that write single elements along an axis share."""

    axis: Axis = 0
    skip_out_of_bounds: bool = False

    def rule(self, x, places, updates):
        Gather.whole(self, places)
        for shape in (x, places, updates):
            if shape.dynamic() and not shape.symbolic():
                self.fail(f"Dynamic shapes not supported: {shape}")
        if updates.type() != x.type():
            self.fail(f"updates are {updates.type_string()}, data are {x.type_string()}")
        if x.dims is None or places.dims is None or updates.dims is None:
            return x
        self.axis_of(self.axis, x.rank)
        if places.rank != x.rank or tuple(places.dims) != tuple(updates.dims):
            self.fail(
                f"indices and updates need the same dims and the rank of the data: {x}, "
                f"{places}, {updates}"
            )
        return x.packed_like()


class ScatterND(Op):
    """What the operators that write slices at places share."""

    def rule(self, x, places, updates):
        Gather.whole(self, places)
        if updates.type() != x.type():
            self.fail(f"updates are {updates.type_string()}, data are {x.type_string()}")
        if x.dims is None or places.dims is None or updates.dims is None:
            return x
        if not fixed(places.dims[-1]):
            self.fail(f"the last dimension of the indices must be fixed, got {places}")
        length = lo(places.dims[-1])
        if length > x.rank:
            self.fail(f"index of size {length} is too large for tensor of rank {x.rank}")
        expected = [*places.dims[:-1], *x.dims[length:]]
        got = () if updates.is_rank0() and not expected else updates.dims
        if len(expected) != len(got):
            self.fail(
                f"ranks of inputs don't match: updates of rank {len(got)}, "
                f"{len(expected)} dims are needed"
            )
        if any(_differ(a, b) for a, b in zip(expected, got, strict=True)):
            self.fail(f"incorrect update shape: {updates}, {expected} is needed")
        if x.dynamic():
            return x
        return x.standard_of() if x.broadcasted() else x.packed_like()


def _differ(a, b) -> bool:
    return hi(a) < lo(b) or hi(b) < lo(a)


_COMBINE = {
    "none": "replaces the element; of several for one place the last one stays",
    "add": "is added to the element",
    "mul": "multiplies the element",
    "min": "replaces the element if it is smaller",
    "max": "replaces the element if it is larger",
}


for _kind, _how in _COMBINE.items():
    define(
        f"scatter_{_kind}",
        Scatter,
        f"""The first input, where along `axis` each update {_how}.

    Inputs: data, places of the shape of the updates, updates. Places below 0 count from the end.
    What is outside is left out, if `skip_out_of_bounds` is set or the places are known only when
    the program runs; otherwise it is an error (MIGraphX writes outside of its memory).
    """,
        inputs=3,
    )
    define(
        f"scatternd_{_kind}",
        ScatterND,
        f"""The first input, where each update, a slice, {_how}.

    Inputs: data, places (the last axis holds one place each), updates. Places below 0 count from
    the end. A place outside is an error if the places are constants or sizes; its update is left
    out if they are known only when the program runs (MIGraphX writes outside of its memory).
    """,
        inputs=3,
    )


class NonZero(Op, name="nonzero", inputs=1):
    """Coordinates of the elements that are not zero, in row-major order: [rank, elements].

    The result has room for all elements, filled with zeros behind the last one found, as in
    MIGraphX. ONNX's NonZero, which has the exact size, is this operator and a slice.
    """

    differentiable = False

    def rule(self, x):
        if x.dims is None:
            return Shape.unknown(type_t.int64_type)
        if x.dynamic() and not x.symbolic():
            self.fail(f"Dynamic shapes not supported: {x}")
        if not x.dynamic() and not x.standard() and not x.is_rank0():
            self.fail(f"the input must have standard layout, got {x}")
        total = 1
        for d in x.dims:
            total = total * d
        return Shape.make(
            type_t.int64_type, [x.rank, total] if not x.dynamic() else [Dim(x.rank, x.rank), total]
        )


class OneHot(Op, name="onehot", inputs=(2, 3)):
    """A new axis in which the place of each index has the value "on", the others "off".

    Inputs: indices, the size of the new axis (where `depth` is not given), values [off, on].
    Indices below 0 count from the end; those outside leave their row "off".
    """

    axis: int = -1
    depth: OptInt = None

    def rule(self, indices, *more):
        values = more[-1]
        if len(more) != (1 if self.depth is not None else 2):
            self.fail("the depth must come once, as attribute or as input")
        if self.depth is not None and self.depth < 0:
            self.fail(f"depth {self.depth} is negative")
        if indices.dims is None:
            return Shape.unknown(values.type())
        dims = [] if indices.is_rank0() else list(indices.dims)
        rank = len(dims) + 1
        if not -rank <= self.axis < rank:
            self.fail(f"axis {self.axis} is out of range for {rank} dimensions")
        size = Dim(0, UNBOUNDED) if self.depth is None else self.depth
        dims.insert(self.axis % rank, size)
        return _standard(values.type(), dims)


class Unique(Op, name="unique", inputs=1):
    """The distinct slices along axis 0, or the distinct elements: exact sizes, known when run.

    Gives a tuple: the values, the index of the first of each, for each input its place among the
    values, and how often each occurs. `sorted` orders them, otherwise the first seen comes first.
    """

    differentiable = False
    axis: OptInt = None
    sorted: bool = True

    def rule(self, x):
        if x.dims is None:
            whole = Shape.unknown(type_t.int64_type)
            return Shape.tuple_of([x, whole, whole, whole])
        if x.dynamic() and not x.symbolic():
            self.fail(f"Dynamic shapes not supported: {x}")
        if self.axis is not None and self.axis % x.rank != 0:
            self.fail(f"axis {self.axis}: only the first axis can be compared")
        most, dims = 1, []
        if self.axis is None:
            for d in x.dims:
                most = most * hi(d)
        else:
            most, dims = hi(x.dims[0]), [Dim(lo(d), hi(d)) for d in x.dims[1:]]
        some = Dim(min(1, most), most)
        count = Shape.make(type_t.int64_type, [some])
        return Shape.tuple_of([Shape.make(x.type(), [some, *dims]), count, count, count])


class DynamicRange(Op, name="dynamic_range", inputs=3, same_type=True):
    """start, start + delta, … up to limit (excluded): its length is known when it runs."""

    max_output: int = 2147483647

    def rule(self, start, limit, delta):
        for x in (start, limit, delta):
            if x.dims is not None and (x.dynamic() or x.elements() != 1):
                self.fail(f"start, limit and delta must be single static numbers, got {x}")
        return Shape.make(start.type(), [Dim(0, self.max_output)])


class RoiAlign(Op, name="roialign", inputs=3):
    """Parts of images, of any size, as pictures of one size: [rois, C, height, width].

    Inputs: x [N, C, H, W], rois [n, 4] (x1, y1, x2, y2), the image of each roi [n]. Each output
    element is the average or maximum of bilinear samples; `sampling_ratio` of them per axis, or
    as many as input pixels if it is 0. As ONNX's RoiAlign.
    """

    coordinate_transformation_mode: str = "half_pixel"
    mode: PoolingMode = PoolingMode.average
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    spatial_scale: float = 1.0

    def rule(self, x, rois, images):
        for shape in (x, rois, images):
            if shape.dynamic() and not shape.symbolic():
                self.fail(f"Dynamic shapes not supported: {shape}")
        if self.coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
            self.fail(
                f"coordinate_transformation_mode {self.coordinate_transformation_mode!r} is not "
                "half_pixel or output_half_pixel"
            )
        if x.dims is None or rois.dims is None or images.dims is None:
            return Shape.unknown(x.type())
        if x.rank != 4 or rois.rank != 2 or images.rank != 1:
            self.fail(f"needs x [N, C, H, W], rois [n, 4], images [n]; got {x}, {rois}, {images}")
        if rois.dims[1] != 4 or _differ(rois.dims[0], images.dims[0]):
            self.fail(f"rois must be [n, 4] and images [n], got {rois} and {images}")
        dims = (rois.dims[0], x.dims[1], self.output_height, self.output_width)
        return _standard(x.type(), dims)
