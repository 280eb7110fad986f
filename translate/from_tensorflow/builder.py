"""What a handler works with: the ONNX front end's builder, and the layout of images.

Values are handed from node to node in TensorFlow's layout, channels last. Operators over windows
compute channels-first: they take `first(x)` and give `last(y)`. Both are transposes, and a
transpose of a transpose is folded, so that between two such operators nothing is left of them.
A value that stems from one (an *image*) is a transpose of channels-first data; what works
element by element then works on that data, which lets the layout pass through whole networks
while other tensors of rank 4 (attention heads, say) stay as they are.
"""

from __future__ import annotations

import numpy as np

from migraphx.dims import Dim, fixed
from migraphx.graph import Instruction
from migraphx.types import type_t

from .shared import Builder, Deferred, cut, squeeze_axes

NEWEST = 10**6  # the opset that borrowed functions see
IMAGE_RANKS = (4, 5)
NOT_FOLDED = {"@literal", "@param", "broadcast", "multibroadcast"}  # these would only grow


def first_order(rank: int) -> list:
    """Axes of channels-last data in channels-first order."""
    return [0, rank - 1, *range(1, rank - 1)]


def last_order(rank: int) -> list:
    """Axes of channels-first data in channels-last order."""
    return [0, *range(2, rank), 1]


class Unknown(Deferred):
    """The value of an input is not known yet."""


class TfBuilder(Builder):
    """Adds instructions for TensorFlow nodes to a module."""

    def __init__(self, module, graph):
        super().__init__(module, graph)
        self.opset = NEWEST
        self._moved: dict[tuple, Instruction] = {}

    # -- layout --------------------------------------------------------------------------------

    def permuted(self, x: Instruction, order) -> Instruction:
        """A transpose: of a literal at once, of a transpose folded into one or none."""
        order = list(order)
        if order == list(range(len(order))):
            return x
        if x.name() == "transpose":
            before = x.op_.permutation
            return self.permuted(x.inputs_[0], [before[k] for k in order])
        key = (x, tuple(order))
        if key not in self._moved:
            if x.literal is not None:
                array = np.transpose(x.literal.numpy(), order)
                self._moved[key] = self.lit(np.ascontiguousarray(array))
            else:
                self._moved[key] = self.add("transpose", x, permutation=order)
        return self._moved[key]

    def first(self, x: Instruction, data_format: str = "NHWC") -> Instruction:
        """`x` channels-first, if the format says that it is not."""
        if data_format.startswith("NC"):
            return x
        return self.permuted(x, first_order(self.rank(x)))

    def last(self, x: Instruction, data_format: str = "NHWC") -> Instruction:
        """Channels-first `x` in the format of a node."""
        if data_format.startswith("NC"):
            return x
        return self.permuted(x, last_order(self.rank(x)))

    def is_image(self, x) -> bool:
        """True for a value that is stored channels-first, seen channels-last."""
        if not isinstance(x, Instruction) or x.name() != "transpose":
            return False
        order = list(x.op_.permutation)
        return len(order) in IMAGE_RANKS and order == last_order(len(order))

    def aligned(self, xs) -> tuple:
        """Inputs of an element-wise operator, and the rank of images (0: no images among them).

        If one is an image, all come channels-first; those of smaller rank get axes of size 1.
        """
        ranks = {self.rank(x) for x in xs if self.is_image(x)}
        if len(ranks) != 1:
            return list(xs), 0
        rank = ranks.pop()
        if any(isinstance(x, Instruction) and self.rank(x) > rank for x in xs):
            return list(xs), 0
        return [self._spread(x, rank) for x in xs], rank

    def _spread(self, x, rank: int):
        if not isinstance(x, Instruction) or not self.rank(x):
            return x
        missing = rank - self.rank(x)
        if missing == rank - 1:  # one number per channel
            return self.shaped(x, [1, self.dims(x)[0], *[1] * (rank - 2)])
        if missing:
            x = self.shaped(x, [1] * missing + list(self.dims(x)))
        return self.permuted(x, first_order(rank))

    def restored(self, x, rank: int):
        """The result of an element-wise operator on `aligned` inputs, channels-last again."""
        if not rank or not isinstance(x, Instruction) or self.rank(x) != rank:
            return x
        return self.permuted(x, last_order(rank))

    # -- adding --------------------------------------------------------------------------------

    def shaped(self, x: Instruction, dims) -> Instruction:
        """`x` with other dims; a literal becomes another literal."""
        if x.literal is not None and not any(isinstance(d, Dim) for d in dims):
            return self.lit(x.literal.numpy().reshape([int(d) for d in dims]))
        return self.reshape(x, dims)

    def folded(self, x):
        """A literal for what is computed from literals alone and is small; else `x` itself.

        Frozen graphs compute the scales of batch normalisation, for example.
        """
        if not isinstance(x, Instruction) or x.name() in NOT_FOLDED or x.mods or x.shape().subs:
            return x
        if x.shape().dims is None or x.shape().dynamic():
            return x
        value = self.value(x)
        return x if value is None or value.dtype == object else self.lit(value, x)

    def zeros(self, like: Instruction, dims) -> Instruction:
        """A tensor of zeros in the type of `like`."""
        return self.broadcast(self.lit(0, like), dims)

    def compare(self, name: str, x, y) -> Instruction:
        """less, greater or equal as a tensor of bool."""
        return self.convert(self.common(name, x, y), type_t.bool_type)

    def inverted(self, x: Instruction) -> Instruction:
        """The opposite of a tensor of bool."""
        return self.convert(self.add("not", x), type_t.bool_type)

    def scalar(self, x: Instruction) -> Instruction:
        """A value of one element as rank 0."""
        return x if not self.rank(x) else self.reshape(x, [])

    # -- asking --------------------------------------------------------------------------------

    def known(self, x: Instruction, name: str) -> np.ndarray:
        """The value of an input that must be known; one that is not yet defers the node."""
        value = self.value(x) if isinstance(x, Instruction) else x
        if value is None:
            raise Unknown(f"its input {name!r} depends on data")
        return value

    def entries(self, x: Instruction) -> list:
        """The elements of a small vector: ints where they are known, else rank-0 instructions.

        Begins and sizes are often packed from a few numbers of which only some are computed.
        """
        value = self.value(x) if isinstance(x, Instruction) else x
        if value is not None:
            return [v if isinstance(v, Dim) else int(v) for v in value.reshape(-1)]
        if x.name() == "concat" and self.rank(x) == 1:
            return [e for part in x.inputs_ for e in self.entries(part)]
        if x.name() in ("convert", "identity") and self.rank(x) == 1:
            inner = self.entries(x.inputs_[0])
            if any(isinstance(e, int) for e in inner):
                return inner
        dims = self.dims(x)
        if not dims:
            return [x]
        if len(dims) != 1 or not fixed(dims[0]):
            raise Deferred
        count = self.static_dims(x)[0]
        if count == 1:
            return [squeeze_axes(self, x, [0])]
        parts = (cut(self, x, [0], [k], [k + 1]) for k in range(count))
        return [squeeze_axes(self, p, [0]) for p in parts]
