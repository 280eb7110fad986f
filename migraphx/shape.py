"""Shapes: element type, dimensions and strides of a tensor, or the shapes of a tuple.

`dims` is what rules read: ints for a static shape, `Dim`s for a dynamic one. A tensor whose
strides are all zero is *scalar*; MIGraphX's rank 0 is lens {1}, strides {0}.
"""

from __future__ import annotations

from collections import Counter

from .dims import Dim, as_dim, dim_from_value, dim_to_value, fixed, hi, product
from .errors import Error
from .types import as_type, size_of, type_t

MAX_RANK = 1024  # only hostile input has more axes


class Shape:
    """Describes the shape of a tensor: data type, sizes and layout.

    Parameters
    ----------
    type : str, int, type_t or NumPy dtype
        Element type, e.g. ``"float_type"``, ``"int32"``, ``numpy.float16``.
    lens : sequence of int
        Sizes of a static shape; ``[1]`` if neither `lens` nor `dyn_dims` is given.
    strides : sequence of int, optional
        Elements to step by along each axis; row-major if left out.
    permutation : sequence of int, optional
        Instead of strides: packed, with axes laid out in memory in this order.
    dyn_dims : sequence of dynamic_dimension, str, int or (min, max) pairs, optional
        Sizes of a dynamic shape: all ranges, or all symbolic expressions.
    dyn_strides : sequence of str, optional
        Strides of a symbolic shape.
    """

    __slots__ = ("_hash", "_strides", "_type", "dims", "subs")
    type_t = type_t
    dynamic_dimension = Dim

    def __init__(
        self,
        type="float",
        lens=None,
        strides=None,
        dyn_dims=None,
        dyn_strides=None,
        *,
        permutation=None,
    ):
        kind = as_type(type)
        if dyn_dims is not None and lens is None:
            dims = tuple(as_dim(d) for d in _listed(dyn_dims, "dyn_dims"))
            symbolic = [d.is_symbolic() for d in dims]
            if any(symbolic) and not all(symbolic):
                raise Error(
                    "shape: dyn_dims must be all symbolic or all ranges, got "
                    f"{{{', '.join(map(str, dims))}}}; write a fixed size among symbols as "
                    'a literal such as "3"'
                )
            if strides is not None or permutation is not None:
                raise Error("shape: a dynamic shape takes dyn_strides, not strides")
            if dyn_strides is not None:
                if not (dims and all(symbolic)):
                    raise Error("shape: dyn_strides need symbolic dyn_dims")
                if len(dyn_strides) != len(dims):
                    raise Error(f"shape: {len(dims)} dyn_dims but {len(dyn_strides)} dyn_strides")
                dyn_strides = tuple(as_dim(s).as_symbolic() for s in dyn_strides)
            self._set(kind, dims, dyn_strides or None)
            return
        if dyn_strides is not None:
            raise Error("shape: dyn_strides need dyn_dims")
        lens = (1,) if lens is None else _sizes(lens, "lens")
        if dyn_dims is not None:
            raise Error("shape: give lens or dyn_dims, not both")
        if strides is not None:
            strides = _sizes(strides, "strides")
            if len(strides) != len(lens):
                raise Error(f"shape: lens {list(lens)} and strides {list(strides)} differ in rank")
        elif permutation is not None:
            strides = packed_strides(lens, check_permutation(permutation, len(lens), "shape"))
        self._set(kind, lens, strides)

    def _set(self, kind, dims, strides=None, subs=()):
        if dims is not None and len(dims) > MAX_RANK:
            raise Error(f"shape: {len(dims)} dimensions; at most {MAX_RANK} are accepted")
        self._type = kind
        self.dims = dims
        self.subs = subs
        self._hash = None
        if dims is None:
            self._strides = None
        elif all(type(d) is int for d in dims) or (dims and all(d.is_symbolic() for d in dims)):
            self._strides = packed_strides(dims) if strides is None else tuple(strides)
        else:
            self._strides = None

    # -- making shapes inside the package ------------------------------------------------------

    @classmethod
    def make(cls, kind: type_t, dims, strides=None) -> Shape:
        """A shape from ints and `Dim`s: dynamic if any size is a `Dim`.

        Fixed sizes beside an expression become literal expressions, so one symbol is enough to
        make a shape symbolic; a real range among the sizes makes it a range shape.
        """
        self = cls.__new__(cls)
        dims = tuple(dims)
        if any(isinstance(d, Dim) for d in dims):
            dims = tuple(as_dim(d) for d in dims)
            if any(d.is_symbolic() for d in dims) and all(
                d.is_symbolic() or d.is_fixed() for d in dims
            ):
                dims = tuple(d.as_symbolic() for d in dims)
                if strides is not None:
                    strides = tuple(as_dim(s).as_symbolic() for s in strides)
            else:
                strides = None
        self._set(kind, dims, strides)
        return self

    @classmethod
    def scalar_of(cls, kind: type_t) -> Shape:
        """The rank-0 shape: lens {1}, strides {0}."""
        return cls.make(kind, (1,), (0,))

    @classmethod
    def tuple_of(cls, shapes) -> Shape:
        """The shape of a tuple of tensors."""
        self = cls.__new__(cls)
        self._set(type_t.tuple_type, (), None, tuple(shapes))
        return self

    @classmethod
    def unknown(cls, kind: type_t) -> Shape:
        """A tensor whose rank is known only at run time (this project's own, for ONNX)."""
        self = cls.__new__(cls)
        self._set(kind, None)
        return self

    def packed_like(self, dims=None, kind=None, permutation=None) -> Shape:
        """A packed shape of `dims` (default: these) with axes in the memory order of this one."""
        dims = self.dims if dims is None else tuple(dims)
        kind = self._type if kind is None else kind
        if self._strides is None:
            return Shape.make(kind, self._keep_dynamic(dims))
        order = self.permutation() if permutation is None else permutation
        dims = self._keep_dynamic(dims)
        return Shape.make(kind, dims, packed_strides(dims, order))

    def standard_of(self, dims=None, kind=None) -> Shape:
        """A row-major shape of `dims` (default: these), dynamic if this one is."""
        dims = self.dims if dims is None else tuple(dims)
        return Shape.make(self._type if kind is None else kind, self._keep_dynamic(dims))

    def with_type(self, kind) -> Shape:
        """The same sizes and strides with another element type."""
        return (
            Shape.make(kind, self.dims, self._strides)
            if self.dims is not None
            else (Shape.unknown(kind))
        )

    def as_ranges(self) -> Shape:
        """The same sizes as ranges, without expressions."""
        return Shape.make(self._type, tuple(as_dim(d).as_range() for d in self.dims))

    def _keep_dynamic(self, dims):
        return tuple(as_dim(d) for d in dims) if self.dynamic() and dims else tuple(dims)

    def to_static(self, sizes) -> Shape:
        """The static shape at the given sizes.

        Parameters
        ----------
        sizes : int or dict of str to int
            One number stands for every size that is not fixed (it must lie in each range);
            a map gives the value of each symbol.
        """
        if not self.dynamic():
            return self
        return Shape.make(self._type, tuple(_at(d, sizes, self) for d in self.dims))

    # -- queries -------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Number of axes (as `ndim()`)."""
        if self.dims is None:
            raise Error(f"shape: the rank of {self} is known only at run time")
        return len(self.dims)

    def type(self) -> type_t:
        """The element type."""
        return self._type

    def type_string(self) -> str:
        """The name of the element type, e.g. ``float_type``."""
        return self._type.name

    def type_size(self) -> int:
        """Bytes of one element."""
        return size_of(self._type)

    def ndim(self) -> int:
        """Number of dimensions."""
        return self.rank

    def lens(self) -> list:
        """The sizes of a static shape; an `Error` for a dynamic one."""
        if self.dynamic():
            raise Error(f"SHAPE: lens() called on a dynamic shape: {self}; use dyn_dims()")
        return list(self.dims)

    def strides(self) -> list:
        """The strides of a static shape, in elements; an `Error` for a dynamic one."""
        if self.dynamic():
            raise Error(f"SHAPE: strides() called on a dynamic shape: {self}; use dyn_strides()")
        return list(self._strides)

    def dyn_dims(self) -> list:
        """The dimensions of a dynamic shape; an `Error` for a static one."""
        if not self.dynamic():
            raise Error(f"SHAPE: dyn_dims() called on a static shape: {self}; use lens()")
        return list(self.dims or ())

    def dyn_strides(self) -> list:
        """The strides of a symbolic shape as expression texts; otherwise empty."""
        return [s.expression for s in self._strides] if self.symbolic() else []

    def elements(self) -> int:
        """Number of elements of a static shape."""
        if self.dynamic():
            raise Error(f"SHAPE: elements() called on dynamic shape: {self}")
        return product(self.dims) if self.dims else 0

    def element_space(self) -> int:
        """Number of elements from the first to the last in memory."""
        return element_space(self.dims, self._strides)

    def bytes(self) -> int:
        """Bytes of the tensor in memory; of a dynamic shape at its largest sizes."""
        if self.subs:
            return sum(s.bytes() for s in self.subs)
        if self.dynamic():
            return product(hi(d) for d in self.dims or ()) * self.type_size()
        return self.element_space() * self.type_size()

    def dynamic(self) -> bool:
        """True if some size is given as a range or expression."""
        if self.subs:
            return any(s.dynamic() for s in self.subs)
        return self.dims is None or any(isinstance(d, Dim) for d in self.dims)

    def symbolic(self) -> bool:
        """True if there are dimensions and every one is an expression."""
        return bool(self.dims) and all(isinstance(d, Dim) and d.is_symbolic() for d in self.dims)

    def packed(self) -> bool:
        """True if the elements fill their memory without gaps or repeats."""
        if self._strides is None or self.subs:
            return False
        if not self.dynamic():
            count = self.elements()
            if count == 0:
                return True
            return count == self.element_space() and (1 in self._strides or count == 1)
        order = self.permutation()
        return self._strides == packed_strides(self.dims, order)

    def transposed(self) -> bool:
        """True if the axes are not in row-major order in memory."""
        if self._strides is None or self.subs:
            return False
        steps = [hi(s) for s in self._strides if s != 0]
        return steps != sorted(steps, reverse=True)

    def broadcasted(self) -> bool:
        """True if some stride is zero, so that elements repeat."""
        return self._strides is not None and any(s == 0 for s in self._strides)

    def scalar(self) -> bool:
        """True if all strides are zero: one element stands for all."""
        return bool(self._strides) and all(s == 0 for s in self._strides)

    def standard(self) -> bool:
        """True if row-major and packed (strides of axes of size 1 do not matter)."""
        if self._strides is None or self.subs:
            return False
        if self.is_rank0():
            return True
        return all(
            d == 1 or s == want
            for d, s, want in zip(self.dims, self._strides, packed_strides(self.dims), strict=True)
        )

    def is_rank0(self) -> bool:
        """True for MIGraphX's rank-0 shape, lens {1} and strides {0}."""
        return self.dims == (1,) and self._strides == (0,)

    def is_fixed(self) -> bool:
        """True if every size is one number, also when written as dynamic dimensions."""
        return self.dims is not None and all(fixed(d) for d in self.dims)

    def permutation(self) -> list:
        """Axes in the order of their strides in memory, outermost first."""
        strides = [hi(s) for s in self._strides]
        return sorted(range(len(strides)), key=lambda i: (-strides[i], -hi(self.dims[i]), i))

    # -- comparing and printing ----------------------------------------------------------------

    def _key(self):
        return (self._type, self.dims, self._strides, self.subs)

    def __eq__(self, other):
        if not isinstance(other, Shape):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self):
        if self._hash is None:
            self._hash = hash((self._type, self.dims, self.subs))
        return self._hash

    def __repr__(self):
        if self.subs or self._type == type_t.tuple_type:
            return f"[{', '.join(map(repr, self.subs))}]"
        if self.dims is None:
            return f"dynamic, {self._type.name}, {{...}}"
        text = f"{self._type.name}, {_braced(self.dims)}"
        if self._strides is None:
            return f"dynamic, {text}"
        plain = (s.expr if isinstance(s, Dim) else s for s in self._strides)
        return f"{text}, {_braced(plain)}"

    def _repr_html_(self) -> str:
        from .display import shape_html

        return shape_html(self)

    # -- trees of files ------------------------------------------------------------------------

    def to_value(self) -> dict:
        """The tree of the shape as `.mxr` files hold it (six keys, always in this order)."""
        dynamic = self.dims is None or any(isinstance(d, Dim) for d in self.dims)
        tree = {
            "type": self._type.name,
            "sub_shapes": [s.to_value() for s in self.subs],
            "lens": [] if dynamic else list(self.dims),
            "strides": [] if dynamic else list(self._strides),
            "dynamic_dimensions": [dim_to_value(d) for d in self.dims or ()] if dynamic else [],
            "dyn_strides": [s.expr.to_value() for s in self._strides] if self.symbolic() else [],
        }
        if self.dims is None:
            tree["unknown_rank"] = True
        return tree

    @classmethod
    def from_value(cls, tree, depth: int = 0) -> Shape:
        """The shape of such a tree; an `Error` for anything else."""
        if not isinstance(tree, dict) or "type" not in tree or depth > 32:
            raise Error(f"shape: {str(tree)[:80]!r} is not a serialised shape")
        kind = as_type(tree["type"])
        subs = tree.get("sub_shapes") or ()
        if kind == type_t.tuple_type:
            return cls.tuple_of(cls.from_value(s, depth + 1) for s in _listed(subs, "sub_shapes"))
        if tree.get("unknown_rank"):
            return cls.unknown(kind)
        if tree.get("dynamic_dimensions"):
            dims = tuple(dim_from_value(d) for d in _listed(tree["dynamic_dimensions"], "dims"))
            strides = None
            if tree.get("dyn_strides"):
                from .symbolic import Expr

                strides = [Dim.of_expr(Expr.from_value(s)) for s in tree["dyn_strides"]]
                if len(strides) != len(dims):
                    raise Error(f"shape: {len(dims)} dims but {len(strides)} dyn_strides")
            return cls.make(kind, dims, strides)
        lens, strides = tree.get("lens"), tree.get("strides")
        if lens is None or strides is None:
            raise Error("shape: a serialised static shape needs lens and strides")
        return cls(kind, lens, strides)


def _listed(value, who: str):
    if isinstance(value, (list, tuple)):
        return value
    raise Error(f"shape: {who} must be a list, got {value!r}")


def _sizes(values, who: str) -> tuple:
    """A tuple of plain ints from any sequence of whole numbers, none negative."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise Error(f"shape: {who} must be a list of whole numbers, got {values!r}")
    result = []
    for value in values:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise Error(f"shape: {who} must be whole numbers, got {value!r}; use dyn_dims=[...]")
        number = value.__index__()
        if not 0 <= number < 2**63:
            raise Error(f"shape: {who} must lie between 0 and 2**63 - 1, got {number}")
        result.append(number)
    return tuple(result)


def _braced(items) -> str:
    return f"{{{', '.join(map(str, items))}}}"


def _at(dim: Dim, sizes, shape: Shape) -> int:
    if dim.is_fixed():
        return dim.min
    if isinstance(sizes, dict):
        if not dim.is_symbolic():
            raise Error(f"shape: {shape} has ranges; give to_static one size, not names")
        return dim.expr.evaluate(sizes)
    if dim.is_symbolic() and len(dim.expr.symbols()) == 1:
        found = dim.expr.evaluate({dim.expr.symbols()[0].name: sizes})
    else:
        found = sizes
    if not dim.min <= found <= dim.max:
        raise Error(f"shape: size {found} is outside {dim} of {shape}")
    return found


def packed_strides(dims, permutation=None) -> tuple:
    """Strides of a packed tensor whose axes lie in memory in the order `permutation`."""
    order = range(len(dims)) if permutation is None else permutation
    strides, step = [0] * len(dims), 1
    for axis in reversed(list(order)):
        strides[axis] = step
        step = step * dims[axis]
    if any(isinstance(d, Dim) for d in dims):
        return tuple(as_dim(s).as_symbolic() for s in strides)
    return tuple(strides)


def element_space(dims, strides):
    """Elements from the first to the last in memory; 0 if some size is 0."""
    if not dims or any(d == 0 for d in dims):
        return 0
    return 1 + sum((d - 1) * s for d, s in zip(dims, strides, strict=True))


def common_permutation(shapes) -> list:
    """The most common memory order among the shapes that are not broadcast.

    Ties go to the lexicographically smallest; without candidates the order is row-major.
    """
    votes = Counter(tuple(s.permutation()) for s in shapes if not s.broadcasted())
    if not votes:
        return list(range(shapes[0].rank))
    best = max(votes.values())
    return list(min(p for p, n in votes.items() if n == best))


def check_permutation(permutation, rank: int, who: str) -> tuple:
    """`permutation` as a tuple, refused unless it orders the axes 0 … rank - 1."""
    order = tuple(permutation)
    if sorted(order) != list(range(rank)):
        raise Error(f"{who}: Invalid permutation {list(order)} for {rank} dimensions")
    return order
