"""Operators that show the same elements under other dims or in another memory order."""

from __future__ import annotations

import dataclasses

from ..dims import Dim, fixed, hi, lo, product
from ..shape import Shape, check_permutation, packed_strides
from .base import Axes, Ints, Op, Sizes


class Identity(Op, name="identity", inputs=(1, None)):
    """The first input, unchanged; further inputs only order the program."""

    def rule(self, x, *_):
        return x


class Contiguous(Op, name="contiguous", inputs=1):
    """The same elements in row-major order."""

    def rule(self, x):
        return x if x.dims is None or x.is_rank0() else x.standard_of()


class Layout(Op, name="layout", inputs=1, static_only=True):
    """The same elements, laid out in memory in the order `permutation` of the axes."""

    permutation: Ints = ()

    def rule(self, x):
        if len(self.permutation) != x.rank:
            self.fail(f"Only {len(self.permutation)}d supported: got {x}")
        order = check_permutation(self.permutation, x.rank, self.op_name)
        return Shape.make(x.type(), x.dims, packed_strides(x.dims, order))


class AsShape(Op, name="as_shape", inputs=1):
    """The data of a row-major input under another shape, strides included."""

    shape: Shape = dataclasses.field(default_factory=lambda: Shape(lens=[]))

    def rule(self, x):
        if x.dims is not None and not x.standard() and not x.dynamic():
            self.fail(f"Shapes are not in standard layout: {x}")
        if self.shape.dynamic() and not self.shape.symbolic():
            self.fail(f"the target {self.shape} has ranges; a static or symbolic shape is needed")
        space = self.shape.element_space()
        if not x.dynamic() and not isinstance(space, Dim) and space > x.elements():
            self.fail(f"{self.shape} reaches {space} elements, the input {x} has {x.elements()}")
        return self.shape


class Transpose(Op, name="transpose", inputs=1):
    """Axes in another order; the data stay in place."""

    permutation: Ints = ()

    def rule(self, x):
        if x.dims is None:
            return x
        if len(self.permutation) != x.rank:
            self.fail(
                f"Permutation has wrong number of axes: {list(self.permutation)} "
                f"for {x.rank} dimensions"
            )
        order = check_permutation(self.permutation, x.rank, self.op_name)
        strides = x._strides
        return Shape.make(
            x.type(),
            [x.dims[k] for k in order],
            None if strides is None else [strides[k] for k in order],
        )


# -- dims --------------------------------------------------------------------------------------


class Reshape(Op, name="reshape", inputs=(1, 2)):
    """The elements in row-major order under other dims.

    `dims` may hold 0 (copy the input's size) and one -1 (what is left). With a second input the
    result has that input's shape.
    """

    dims: Sizes = ()

    def rule(self, x, target=None):
        if target is not None:
            return target
        if x.dims is None:
            return x.standard_of(self.dims) if _plain(self.dims) else x
        dims = target_dims(self, x)
        if x.dynamic() or any(isinstance(d, Dim) for d in dims):
            return Shape.make(x.type(), x._keep_dynamic(dims))
        if not dims:
            return Shape.scalar_of(x.type())
        if not x.standard() and not x.broadcasted():
            strides = lazy_strides(x.dims, x._strides, dims)
            if strides is not None:
                order = Shape.make(x.type(), dims, strides).permutation()
                return Shape.make(x.type(), dims, packed_strides(dims, order))
        return Shape.make(x.type(), dims)


class ReshapeLazy(Op, name="reshape_lazy", inputs=1):
    """`reshape` as a view: refused where the strides cannot express it."""

    dims: Sizes = ()

    def rule(self, x):
        if x.dims is None:
            return x
        dims = target_dims(self, x)
        if x.dynamic():
            self.check_dynamic(x)
            return Shape.make(x.type(), x._keep_dynamic(dims))
        strides = lazy_strides(x.dims, x._strides, dims)
        if strides is None:
            self.fail(f"reshape_lazy on axis that is not packed: {x} to {list(dims)}")
        return Shape.make(x.type(), dims, strides)

    def check_dynamic(self, x):
        """Only one axis may vary, and it stays where it is."""
        moving = [k for k, d in enumerate(x.dims) if not fixed(d)]
        if len(moving) > 1:
            self.fail(f"only one size may vary, got {x}")
        if moving and (len(self.dims) <= moving[0] or self.dims[moving[0]] not in (0, -1)):
            self.fail(f"the size that varies in {x} must be 0 or -1 in dims {list(self.dims)}")


def target_dims(op, x: Shape) -> list:
    """The sizes that `dims` of a reshape stand for."""
    want = list(op.dims)
    for k, w in enumerate(want):
        if isinstance(w, Dim):
            continue
        if w < -1:
            op.fail(f"size {w} in dims {want}: only -1 (what is left) may be negative")
        if w == 0:
            if k >= x.rank:
                op.fail(f"dims {want} copy axis {k}, but the input {x} has {x.rank} dimensions")
            want[k] = x.dims[k]
    unknown = [k for k, w in enumerate(want) if not isinstance(w, Dim) and w == -1]
    if len(unknown) > 1:
        op.fail(f"Dimensions for {op.op_name} can only have one -1 dim: {want}")
    if unknown:
        rest = [w for k, w in enumerate(want) if k != unknown[0]]
        want[unknown[0]] = quotient(x.dims, rest)
    dynamic = x.dynamic() or any(isinstance(w, Dim) for w in want)
    if not dynamic and product(want) != product(x.dims):
        op.fail(
            f"Wrong number of elements for {op.op_name}: {op.op_name} has {product(want)} "
            f"elements whereas the input has {product(x.dims)}"
        )
    return want


def quotient(have, rest):
    """The product of `have` divided by that of `rest`; equal sizes cancel first."""
    have, left = list(have), []
    for size in rest:
        if size in have:
            have.remove(size)
        else:
            left.append(size)
    if any(isinstance(d, Dim) and not d.is_symbolic() for d in (*have, *left)):
        bounds = [product(map(f, have)) // max(product(map(f, left)), 1) for f in (lo, hi)]
        return Dim(min(bounds), max(bounds))
    below = product(left)
    if not isinstance(below, Dim) and below == 0:
        return 0
    return product(have) // below


def lazy_strides(dims, strides, target) -> list | None:
    """Strides under which `target` shows the same memory, or None if there are none.

    Runs of axes with equal products are matched from the front: a run of the input that is
    contiguous in itself may be merged, and any merged run may be split again.
    """
    if 0 in dims:
        return list(packed_strides(target))
    result, i, j = [], 0, 0
    while i < len(dims) and j < len(target):
        first, total, begin, wanted = i, dims[i], j, target[j]
        while total != wanted:
            if total < wanted:
                i += 1
                if i == len(dims):
                    return None
                total *= dims[i]
            else:
                j += 1
                if j == len(target):
                    return None
                wanted *= target[j]
        if not mergeable(dims[first : i + 1], strides[first : i + 1]):
            return None
        step = strides[i] * total
        for size in target[begin : j + 1]:
            step //= size
            result.append(step)
        i, j = i + 1, j + 1
    if any(d != 1 for d in (*dims[i:], *target[j:])):
        return None
    last = result[-1] if result else 1
    return result + [last] * (len(target) - len(result))


def mergeable(dims, strides) -> bool:
    """True if each axis steps over exactly what the next one covers."""
    steps = [(d, s) for d, s in zip(dims, strides, strict=True) if d != 1]
    return all(a[1] == b[1] * b[0] for a, b in zip(steps, steps[1:]))


class Flatten(Op, name="flatten", inputs=1):
    """Two dims: the product of those before `axis` and of those from it on."""

    axis: int = 1

    def place(self, x) -> int:
        if not -x.rank <= self.axis <= x.rank:
            self.fail(f"axis: value out of range! {self.axis} for {x.rank} dimensions")
        return self.axis + x.rank if self.axis < 0 else self.axis

    def rule(self, x):
        if x.dims is None:
            return Shape.unknown(x.type())
        axis = self.place(x)
        return x.standard_of([product(x.dims[:axis]), product(x.dims[axis:])])

    def normalized(self, shapes):
        return dataclasses.replace(self, axis=self.place(shapes[0]))


class Squeeze(Op, name="squeeze", inputs=1):
    """Removes axes of size 1: those in `axes`, or all of them."""

    axes: Axes = ()

    def rule(self, x):
        if x.dims is None:
            return x
        axes = self.axes_of(self.axes, x.rank)
        if not axes:
            axes = tuple(k for k, d in enumerate(x.dims) if not isinstance(d, Dim) and d == 1)
            axes = axes or tuple(k for k, d in enumerate(x.dims) if fixed(d) and lo(d) == 1)
        for axis in axes:
            self.check_one(x, axis)
        kept = [k for k in range(x.rank) if k not in axes]
        if not kept:
            return Shape.scalar_of(x.type())
        dims = [x.dims[k] for k in kept]
        if x.dynamic() or x._strides is None:
            return x.standard_of(dims)
        return Shape.make(x.type(), dims, [x._strides[k] for k in kept])

    def check_one(self, x, axis: int):
        size = x.dims[axis]
        if not isinstance(size, Dim) and size != 1:
            self.fail(f"static axis dimension should be equal to 1: axis {axis} of {x}")
        if not lo(size) <= 1 <= hi(size):
            self.fail(
                "dynamic axis dimension should have an intersection with {1, 1}: "
                f"axis {axis} of {x}"
            )


class Unsqueeze(Op, name="unsqueeze", inputs=1):
    """New axes at the places `axes` of the output.

    A new axis has size 1, or `steps[i]`: then it takes that factor from the axis that follows.
    A rank-0 value becomes lens {1} whatever the axes are.
    """

    axes: Axes = ()
    steps: Ints = ()

    def normal_rank(self, shapes) -> int:
        return shapes[0].rank + len(self.axes)

    def rule(self, x):
        if len(self.steps) > len(self.axes):
            self.fail(f"{len(self.steps)} steps for {len(self.axes)} axes")
        if x.dims is None:
            return x
        if x.is_rank0():
            if any(s != 1 for s in self.steps):
                self.fail(f"a scalar cannot be split in steps {list(self.steps)}")
            return Shape.make(x.type(), (1,))
        dims, strides = self.spread(x)
        return Shape.make(x.type(), x._keep_dynamic(dims), strides)

    def spread(self, x) -> tuple:
        """Sizes, and strides where the input has them."""
        rank = x.rank + len(self.axes)
        axes = self.axes_of(self.axes, rank)
        if len(set(axes)) != len(axes):
            self.fail(f"axes {list(self.axes)} name an axis twice")
        if self.steps and x.dynamic():
            self.fail(f"steps need a static shape, got {x}")
        steps = dict(zip(axes, self.steps))
        static = not x.dynamic()
        left, dims, strides = list(x.dims), [], []
        old = 0
        for k in range(rank):
            more = old < x.rank
            if k not in axes:
                dims.append(left[old])
                strides.append(x._strides[old] if static else None)
                old += 1
                continue
            step = steps.get(k, 1)
            if step == 0 or (step != 1 and (not more or left[old] % step)):
                self.fail(f"step {step} does not divide the axis after axis {k} of {x}")
            if step != 1:
                left[old] //= step
            dims.append(step)
            strides.append((x._strides[old] * left[old] if more else 1) if static else None)
        return dims, strides if static else None


def _plain(sizes) -> bool:
    return bool(sizes) and all(not isinstance(s, Dim) and s > 0 for s in sizes)
