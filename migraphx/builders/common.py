"""What builders share: literals, NumPy's broadcasting, C++'s common type.

`m` is anything with ``add(name, *inputs, **attributes)`` and ``literal(argument)``: a module, or
the `Before` view of one that inserts in front of an instruction.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np

from ..argument import Argument, array_shape
from ..dims import as_dim, hi, intersect, lo
from ..errors import Error
from ..types import common_type, dtype_of, from_dtype

BUILDERS: dict[str, Builder] = {}


@dataclass(frozen=True)
class Builder:
    """A registered builder: its function, how many inputs it takes, its options."""

    function: object
    least: int
    most: int | None
    options: dict  # name -> default


def builder(name: str):
    """Registers the decorated function ``(m, *inputs, **options)`` as the macro `name`."""

    def register(function):
        least, most, options = 0, 0, {}
        for key, parameter in list(inspect.signature(function).parameters.items())[1:]:
            if parameter.kind is parameter.VAR_POSITIONAL:
                most = None
            elif parameter.kind is parameter.KEYWORD_ONLY:
                options[key] = parameter.default
            else:
                least += parameter.default is parameter.empty
                most += 1
        BUILDERS[name] = Builder(function, least, most, options)
        return function

    return register


def lit(m, value, kind=None):
    """A literal; a number becomes rank 0. `kind` is a type, or an instruction that has it."""
    if kind is not None:
        kind = kind.shape().type() if hasattr(kind, "shape") else kind
        array = np.asarray(value).astype(dtype_of(kind))
    else:
        array = np.asarray(value)
        kind = from_dtype(array.dtype)
    return m.literal(Argument.of(array, array_shape(array.shape, kind)))


def halves(m, x, axis: int) -> tuple:
    """The two halves of a tensor along an axis of even size."""
    size = x.shape().dims[axis]
    if isinstance(size, int) and size % 2:
        raise Error(f"axis {axis} of size {size} cannot be halved")
    half = size // 2
    return (
        m.add("slice", x, axes=[axis], starts=[0], ends=[half]),
        m.add("slice", x, axes=[axis], starts=[half], ends=[size]),
    )


# -- numpy's broadcasting and C++'s common type --------------------------------------------------


def common_dim(a, b):
    """The size of two broadcast axes; an `Error` if no pair of their sizes fits."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    shared = intersect(a, b)
    if shared is not None:
        return shared
    if lo(a) <= 1 <= hi(a):  # only as 1 does it fit
        return b
    if lo(b) <= 1 <= hi(b):
        return a
    raise Error(f"cannot broadcast sizes {a} and {b}")


def common_dims(shapes) -> tuple:
    """The dims that shapes broadcast to, by NumPy's rule."""
    rank = max(s.rank for s in shapes)
    dims = [1] * rank
    for shape in shapes:
        for k, size in enumerate(shape.dims, rank - shape.rank):
            try:
                dims[k] = common_dim(dims[k], size)
            except Error:
                raise Error(
                    "broadcast: dimensions do not match: "
                    + " and ".join(f"{{{', '.join(map(str, s.dims))}}}" for s in shapes)
                ) from None
    return tuple(dims)


def broadcast_common(m, *inputs, types: bool = True, lens: bool = True) -> list:
    """`inputs` broadcast to their common dims and converted to their common type.

    What fits already is not touched. If a shape is dynamic, every input gets a `multibroadcast`
    that finds the sizes at run time from the first one.
    """
    inputs = list(inputs)
    kind = common_type(*(i.shape().type() for i in inputs))
    if lens:
        inputs = _broadcast(m, inputs)
    if types:
        inputs = [convert_to(m, i, kind) for i in inputs]
    return inputs


def _broadcast(m, inputs: list) -> list:
    shapes = [i.shape() for i in inputs]
    if len(inputs) < 2:
        return inputs
    if any(s.dims is None for s in shapes):
        dims = ()
    else:
        dims = common_dims(shapes)
        if not any(s.dynamic() for s in shapes):
            return [
                i if i.shape().dims == dims else m.add("multibroadcast", i, out_lens=dims)
                for i in inputs
            ]
        dims = tuple(map(as_dim, dims))
        if all(s.dims == dims for s in shapes) and all(d.is_symbolic() for d in dims):
            return inputs  # equal expressions are equal sizes
    first = m.add("multibroadcast", *inputs, out_dyn_dims=dims)
    return [first] + [m.add("multibroadcast", i, first, out_dyn_dims=dims) for i in inputs[1:]]


def convert_to(m, x, kind):
    """`x` as type `kind`, itself if it is of that type."""
    return x if x.shape().type() == kind else m.add("convert", x, target_type=kind)


def add_common_op(m, name: str, *inputs, **attributes):
    """The operator `name` on inputs broadcast and converted to a common shape and type."""
    return m.add(name, *broadcast_common(m, *inputs), **attributes)
