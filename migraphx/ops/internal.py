"""Operators of compiled programs and placeholders, most of them only so that files load."""

from __future__ import annotations

from ..dims import UNBOUNDED, Dim, fixed, lo
from ..shape import Shape
from ..types import type_t
from . import recurrent, reduce  # noqa: F401 - wrapped below
from .base import OPS, Op, OptShape, OptType, Values, make

NO_SHAPE = Shape.make(type_t.float_type, ())


# -- placeholders --------------------------------------------------------------------------------


class Undefined(Op, name="undefined", inputs=0):
    """Stands for an input that is left out."""

    def rule(self):
        return NO_SHAPE


class Unknown(Op, name="unknown:", inputs=(0, None)):
    """Stands for an operator that a reader did not know and was told to skip."""

    op: str = ""

    def rule(self, *xs):
        return xs[0] if xs else NO_SHAPE

    def name(self) -> str:
        """``unknown:`` and the name of the operator that was skipped."""
        return f"unknown:{self.op}"


class Outline(Op, name="outline", inputs=0):
    """A shape without data."""

    shape: Shape = NO_SHAPE

    def rule(self):
        return self.shape


class OutlineMark(Outline, name="@outline"):
    """A shape without data, in programs made to be looked at."""


class Comment(Op, name="@comment", inputs=(0, None)):
    """A remark in a program."""

    text: str = ""

    def rule(self, *xs):
        return NO_SHAPE


# -- memory --------------------------------------------------------------------------------------


class Allocate(Op, name="allocate", inputs=(0, 1)):
    """A buffer, here of zeros: of a given shape, or of a type with the sizes given as input.

    One size may be -1 if a `reshape` reads the buffer, which then finds it out. Read by anything
    else, such a buffer is an error.
    """

    differentiable = False
    shape: OptShape = None
    buf_type: OptType = None

    def rule(self, *sizes):
        if (self.shape is None) == (self.buf_type is None):
            self.fail("give one of shape and buf_type")
        if self.shape is not None:
            return self.shape
        if not sizes:
            self.fail("buf_type needs an input with the sizes")
        if sizes[0].rank != 1 or not fixed(sizes[0].dims[0]):
            self.fail(f"the sizes should be one list of a fixed length, got {sizes[0]}")
        if sizes[0].is_rank0():
            return Shape.make(self.buf_type, [Dim(0, UNBOUNDED)])
        return Shape.make(self.buf_type, [Dim(0, UNBOUNDED)] * lo(sizes[0].dims[0]))


class Load(Op, name="load", inputs=1):
    """A tensor in a buffer of bytes, from the byte `offset` on."""

    differentiable = False
    shape: Shape = NO_SHAPE
    offset: int = 0

    def rule(self, buffer):
        if not buffer.dynamic():
            end = self.offset + self.shape.bytes()
            if end > buffer.bytes():
                self.fail(f"bytes {self.offset} to {end} are outside the {buffer.bytes()} given")
        return self.shape


class Capture(Op, name="capture", inputs=(1, None)):
    """Passes its first input on; where calibration looks at values."""

    ins_index: int = 0

    def rule(self, x, *rest):
        return x


# -- attention with a cache ----------------------------------------------------------------------


class ConcatPastPresent(Op, name="concat_past_present", inputs=3):
    """Writes new keys or values into the cache behind what it holds.

    Inputs: new ones {batch, heads, steps, size}, per batch the place of the last one, the cache.
    A single step goes to that place, several fill the cache from its start.
    """

    kv_num_heads: int = 0

    def rule(self, present, lens, past):
        if present.rank != 4 or past.rank != 4:
            self.fail(f"new values and cache need 4 dimensions, got {present} and {past}")
        return past


class GqaRotaryEmbedding(Op, name="gqa_rotary_embedding", inputs=4):
    """Rotates queries and keys by their positions; values pass.

    Inputs: queries, keys and values {batch, heads + 2 * kv heads, steps, size} in one, per batch
    the place of the last step, cosines and sines {places, size / 2}.
    """

    num_heads: int = 1
    kv_num_heads: int = 1
    interleaved: bool = False

    def rule(self, qkv, lens, cosines, sines):
        if qkv.rank != 4:
            self.fail(f"the input needs 4 dimensions, got {qkv}")
        return qkv


# -- what MIGraphX's ref target makes of operators -------------------------------------------------


class RefOp(Op, name="ref::op", inputs=(0, None)):
    """Wraps another operator, which it computes."""

    kinds = {"name": str, "operator": Values}

    def __init__(self, name="identity", operator=None):
        object.__setattr__(self, "wrapped", make(name, **(operator or {})))

    @property
    def operator(self) -> dict:
        """The attributes of the wrapped operator."""
        return self.wrapped.values()

    @property
    def name(self):
        """The name of the wrapped operator; called, as `Op.name`, that of this one."""
        return _WrappedName(self.wrapped.op_name)

    def rule(self, *xs):
        return self.wrapped.compute_shape(xs)

    def normalized(self, shapes):
        return RefOp(self.wrapped.op_name, self.wrapped.normalized(shapes).values())


class _WrappedName(str):
    def __call__(self) -> str:
        return RefOp.op_name


# The families of windows and matrix products declare theirs themselves.
REF = ("logsoftmax", "rnn_var_sl_last_output", "softmax")

for _name in REF:
    type(
        f"Ref_{_name}",
        (OPS[_name],),
        {"__doc__": f"`{_name}` in a program compiled by MIGraphX for its ref target."},
        name=f"ref::{_name}",
    )
