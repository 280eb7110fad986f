"""Arguments: a buffer with a shape, on the host or on a device.

An argument keeps whatever it was made from alive and copies nothing it can borrow.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from .errors import Error
from .shape import Shape, element_space
from .types import (
    FLOATS,
    INTEGERS,
    dtype_of,
    from_dtype,
    limits,
    size_of,
    type_t,
)


class Argument:
    """A tensor (or tuple of tensors) with its shape.

    Parameters
    ----------
    data : buffer, NumPy array or scalar, JAX array, DLPack object, Argument
        Strides are kept; memory is shared where it can be, and kept alive. Arrays with negative
        strides, foreign byte order or without alignment are copied.

    Raises
    ------
    TypeError
        for what is not a buffer (a list, say).
    Error
        for an element type that MIGraphX has not.
    """

    __slots__ = ("__weakref__", "_data", "_host", "_shape")

    def __init__(self, data):
        if isinstance(data, Argument):
            self._shape, self._data, self._host = data._shape, data._data, data._host
            return
        if _is_jax(data):
            self._data, self._host = data, None
            self._shape = array_shape(data.shape, from_dtype(data.dtype))
            return
        array = host_array(data)
        self._data = self._host = array
        self._shape = strided_shape(array)

    @classmethod
    def of(cls, data, shape: Shape) -> Argument:
        """An argument of a known shape around an array (NumPy or JAX) without any check."""
        self = cls.__new__(cls)
        self._data, self._shape = data, shape
        self._host = data if isinstance(data, np.ndarray) else None
        return self

    @classmethod
    def tuple_of(cls, parts) -> Argument:
        """A tuple argument."""
        parts = tuple(parts)
        return cls.of(parts, Shape.tuple_of(p.get_shape() for p in parts))

    # -- queries -------------------------------------------------------------------------------

    def get_shape(self) -> Shape:
        """The shape of the argument."""
        return self._shape

    @property
    def parts(self) -> tuple:
        """The elements of a tuple argument, as arguments; empty for a tensor."""
        return self._data if isinstance(self._data, tuple) else ()

    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array of the shape's lens, without a copy on the host.

        fp4x2 comes as uint8; fp8 and bf16 as the types of `ml_dtypes`.
        """
        if self._host is None:
            if isinstance(self._data, tuple):
                raise TypeError("argument: a tuple is not one array; use its .parts")
            self._host = np.asarray(self._data)
        host = self._host
        # Rank 0 is lens {1} in this API; arrays inside the package may be of rank 0.
        return host.reshape((1,)) if host.ndim == 0 else host

    def device_array(self):
        """The array as it lies: a JAX array for a result of a device, else NumPy."""
        return self._data

    def data_ptr(self) -> int:
        """The address of the first element."""
        if isinstance(self._data, tuple):
            raise TypeError("argument: a tuple has no single address; use its .parts")
        if self._host is None and hasattr(self._data, "unsafe_buffer_pointer"):
            return self._data.unsafe_buffer_pointer()
        return self.numpy().__array_interface__["data"][0]

    def tolist(self) -> list:
        """The elements in row-major order as a flat list of Python numbers.

        A tuple gives a list of such lists.
        """
        if isinstance(self._data, tuple):
            return [p.tolist() for p in self._data]
        flat = self.numpy().reshape(-1)
        if flat.dtype.isbuiltin == 2:  # ml_dtypes floats and small ints
            flat = flat.astype(np.float64 if _is_float(self._shape.type()) else np.int64)
        return flat.astype(int).tolist() if flat.dtype == np.bool_ else flat.tolist()

    # -- exchange ------------------------------------------------------------------------------

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("argument: this conversion needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **kwargs):
        source = self._data if not isinstance(self._data, np.ndarray) else self.numpy()
        if isinstance(source, np.ndarray) and source.dtype.isbuiltin == 2:
            import jax.numpy as jnp  # NumPy's own DLPack does not know bf16 and fp8

            source = jnp.asarray(source)
        elif isinstance(source, np.ndarray) and not source.flags.writeable:
            source = source.copy()  # DLPack consumers may write
        return source.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        if hasattr(self._data, "__dlpack_device__"):
            return self._data.__dlpack_device__()
        return (1, 0)

    if sys.version_info >= (3, 12):

        def __buffer__(self, flags):
            array = self.numpy()
            if array.dtype.isbuiltin == 2:  # no PEP 3118 letter for bf16 and fp8: their bits
                array = array.view(np.dtype(f"u{array.dtype.itemsize}"))
            return memoryview(array)

    def __len__(self):
        if isinstance(self._data, tuple):
            return len(self._data)
        return self._shape.lens()[0] if self._shape.lens() else 0

    def __getitem__(self, key):
        return self._data[key] if isinstance(self._data, tuple) else self.numpy()[key]

    def __float__(self):
        return float(self.numpy().reshape(()))

    def __int__(self):
        return int(self.numpy().reshape(()))

    def __copy__(self):
        return Argument(self)

    def __deepcopy__(self, memo):
        if isinstance(self._data, tuple):
            return Argument.tuple_of(p.__deepcopy__(memo) for p in self._data)
        return Argument.of(copy_keeping_strides(self.numpy(), self._shape), self._shape)

    def __reduce__(self):
        raise TypeError("cannot pickle 'argument' object; use argument.save or numpy.asarray")

    def __eq__(self, other):
        if not isinstance(other, Argument):
            return NotImplemented
        if self._shape != other._shape:
            return False
        if isinstance(self._data, tuple):
            return all(a == b for a, b in zip(self._data, other._data, strict=True))
        return bool(np.all(self.numpy() == other.numpy()))

    __hash__ = None

    def __repr__(self):
        if isinstance(self._data, tuple):
            return "".join(f"{{ {p!r} }}, " for p in self._data)
        return elements_text(self.numpy())

    def _repr_html_(self) -> str:
        from .display import argument_html

        return argument_html(self)

    # -- files ---------------------------------------------------------------------------------

    @staticmethod
    def save(arg: Argument, filename) -> None:
        """Saves an argument to a file in MIGraphX's msgpack form."""
        from .files import save_argument

        save_argument(arg, filename)

    @staticmethod
    def load(filename) -> Argument:
        """Loads an argument that `save` (of this project or of MIGraphX) wrote."""
        from .files import load_argument

        return load_argument(filename)


def _is_jax(data) -> bool:
    jax = sys.modules.get("jax")  # whoever holds a JAX array has imported jax
    return jax is not None and isinstance(data, jax.Array)


def _is_float(kind: type_t) -> bool:
    return kind in FLOATS or 104 <= kind <= 107


def host_array(data) -> np.ndarray:
    """A NumPy array over the memory of a buffer, DLPack object or NumPy-like scalar."""
    if isinstance(data, np.ndarray):
        array = data
    elif isinstance(data, (bool, int, float, np.generic)):
        array = np.asarray(data)
    elif isinstance(data, (bytes, bytearray, memoryview)):
        array = np.asarray(memoryview(data))
    elif hasattr(data, "__dlpack__"):
        array = _from_dlpack(data)
    elif hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        array = np.asarray(data)
    else:
        try:
            array = np.asarray(memoryview(data))
        except TypeError:
            raise TypeError(
                "argument(): incompatible constructor arguments: expected a buffer, a NumPy or JAX "
                f"array, a DLPack object, a number or an argument, got {type(data).__name__}; "
                "for a list use numpy.array(...) or migraphx.create_argument(shape, list)"
            ) from None
    from_dtype(array.dtype)  # refuses types that MIGraphX has not
    if array.dtype.kind in "US":
        return array.astype(object)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    size = array.dtype.itemsize
    if not array.flags.aligned or any(s < 0 or s % size for s in array.strides):
        array = np.ascontiguousarray(array) if array.ndim else array.copy()
    return array


def _from_dlpack(data) -> np.ndarray:
    detached = data.detach() if hasattr(data, "requires_grad") else data
    try:
        return np.from_dlpack(detached)
    except (RuntimeError, BufferError, TypeError, ValueError):
        pass  # a device tensor, or a type that NumPy's DLPack does not know (bf16)
    import jax

    return np.asarray(jax.dlpack.from_dlpack(detached))


def array_shape(dims, kind: type_t) -> Shape:
    """The standard shape of an array of these dims; rank 0 is lens {1}, strides {0}."""
    return Shape.make(kind, tuple(dims)) if len(dims) else Shape.scalar_of(kind)


def strided_shape(array: np.ndarray) -> Shape:
    """The shape of a NumPy array with its strides in elements."""
    kind = from_dtype(array.dtype)
    if array.ndim == 0:
        return Shape.scalar_of(kind)
    if array.flags.c_contiguous:
        return Shape.make(kind, array.shape)
    return Shape.make(kind, array.shape, tuple(s // array.dtype.itemsize for s in array.strides))


def buffer_array(shape: Shape, memory) -> np.ndarray:
    """The array of a static `shape` over `memory`: bytes in *memory* order, as files hold them."""
    dtype = dtype_of(shape.type())
    if shape.is_rank0():
        return np.ndarray((), dtype, memory)
    # not as_strided: it goes through __array_interface__, which has no letter for fp8e5m2
    strides = tuple(s * dtype.itemsize for s in shape.strides())
    return np.ndarray(tuple(shape.lens()), dtype, memory, 0, strides)


def memory_bytes(arg: Argument) -> bytes:
    """The elements in memory order, gaps included as zeros, as files hold them."""
    shape, array = arg.get_shape(), arg.numpy()
    if shape.standard() and not shape.is_rank0():
        return np.ascontiguousarray(array).tobytes()
    memory = bytearray(element_space(shape.dims, shape.strides()) * array.dtype.itemsize)
    buffer_array(shape, memory)[...] = array if array.ndim == len(shape.lens()) else array[0]
    return bytes(memory)


def copy_keeping_strides(array: np.ndarray, shape: Shape) -> np.ndarray:
    """A copy of `array` in memory of its own, laid out as `shape` says."""
    return buffer_array(shape, memory_bytes(Argument.of(array, shape)))


# -- text ----------------------------------------------------------------------------------------


def number_text(value) -> str:
    """A number as a C++ stream prints it: 6 significant digits, `nan`, `inf`, 1/0 for bool."""
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    if isinstance(value, (int, np.integer)):
        return str(value)
    if isinstance(value, (str, bytes)):
        return repr(value)
    if isinstance(value, (complex, np.complexfloating)):
        return f"({value.real:g},{value.imag:g})"
    return f"{float(value):g}"


def elements_text(array: np.ndarray) -> str:
    """All elements in row-major order joined by ", "."""
    return ", ".join(map(number_text, array.reshape(-1)))


# -- making arguments ----------------------------------------------------------------------------


def _static(shape: Shape, who: str) -> Shape:
    if not isinstance(shape, Shape):
        raise TypeError(f"{who}: expected a migraphx.shape, got {type(shape).__name__}")
    if shape.dynamic():
        raise Error(f"{who}: the shape {shape} is dynamic; give a static one (shape.to_static)")
    return shape


def create_argument(s: Shape, values) -> Argument:
    """An argument of shape `s` holding `values` in row-major order.

    Numbers are cast to the type of the shape; fractions of integers are dropped.
    """
    shape = _static(s, "create_argument")
    values = list(np.asarray(values, dtype=object).reshape(-1))
    if len(values) != shape.elements():
        raise Error(
            f"create_argument: Values and shape elements do not match: {len(values)} values for "
            f"the {shape.elements()} elements of {shape}"
        )
    array = np.empty(shape.lens(), dtype_of(shape.type()))
    array.reshape(-1)[:] = [cast_number(v, shape.type()) for v in values]
    return Argument.of(copy_keeping_strides(array, shape), shape)


def fill_argument(s: Shape, value) -> Argument:
    """An argument of shape `s` with every element `value`, cast to its type."""
    shape = _static(s, "fill_argument")
    array = np.full(shape.lens(), cast_number(value, shape.type()), dtype_of(shape.type()))
    return Argument.of(copy_keeping_strides(array, shape), shape)


def cast_number(value, kind: type_t):
    """`value` as C's cast to `kind` gives it; out of range integers are refused."""
    if kind == type_t.bool_type:
        return bool(value)
    if kind not in INTEGERS and kind != type_t.fp4x2_type:
        return value
    number = int(value)
    low, high = limits(kind)
    if not low <= number <= high:
        raise Error(f"argument: {number} is outside the range of {kind.name}, {low} to {high}")
    return number


def argument_from_pointer(shape: Shape, address: int) -> Argument:
    """An argument over memory at `address`, without a copy; the caller keeps it alive."""
    shape = _static(shape, "argument_from_pointer")
    if not address and shape.bytes():
        raise Error("argument_from_pointer: the address is 0")
    memory = (ctypes.c_char * shape.bytes()).from_address(address) if shape.bytes() else b""
    return Argument.of(buffer_array(shape, memory), shape)


_MASK = 2**64 - 1


def _scramble(x):
    x = x ^ (x << 16 & _MASK)
    x = x ^ (x >> 5)
    return x ^ (x << 1 & _MASK)


def random_bits(count: int, seed: int) -> np.ndarray:
    """`count` numbers of the generator xorshift96 with 64-bit state that MIGraphX uses.

    z[n] = F z[n-3] + z[n-2] + z[n-1] with addition XOR and F linear over bits. Squaring such a
    recurrence k times gives z[n] = F^(2^k) z[n-3*2^k] + z[n-2*2^k] + z[n-2^k], so blocks of 2^k
    numbers follow from the 3*2^k before them in a few array operations.
    """
    head = [123456789, 362436069, 521288629 ^ (seed & _MASK)]
    for _ in range(48):
        head.append(_scramble(head[-3]) ^ head[-2] ^ head[-1])
    out = np.zeros(max(count, 48) + 3, np.uint64)
    out[:51] = head
    columns = [_scramble(1 << bit) for bit in range(64)]  # F as the images of the single bits
    done, block = 51, 1
    while done < len(out):
        while 6 * block <= done:
            columns = [_apply(columns, c) for c in columns]
            block *= 2
        tables = _byte_tables(columns)
        stop = min(done + block, len(out))
        far, mid, near = (out[done - k * block : stop - k * block] for k in (3, 2, 1))
        out[done:stop] = _lookup(tables, far) ^ mid ^ near
        done = stop
    return out[3 : 3 + count]


def _apply(columns, bits: int) -> int:
    result = 0
    for place in range(64):
        if bits >> place & 1:
            result ^= columns[place]
    return result


def _byte_tables(columns) -> np.ndarray:
    tables = np.zeros((8, 256), np.uint64)
    for byte in range(8):
        for place in range(8):
            half = 1 << place
            column = np.uint64(columns[8 * byte + place])
            tables[byte, half : 2 * half] = tables[byte, :half] ^ column
    return tables


def _lookup(tables, values) -> np.ndarray:
    result = np.zeros(len(values), np.uint64)
    for byte in range(8):
        result ^= tables[byte][(values >> np.uint64(8 * byte)) & np.uint64(255)]
    return result


def generate_argument(s: Shape, seed: int = 0) -> Argument:
    """An argument of shape `s` with the pseudo-random data that MIGraphX makes for `seed`."""
    shape = _static(s, "generate_argument")
    if shape.subs:
        return Argument.tuple_of(generate_argument(sub, seed) for sub in shape.subs)
    kind, space = shape.type(), shape.element_space()
    bits = random_bits(space, int(seed))
    if kind == type_t.bool_type:
        flat = (bits % np.uint64(2)).astype(np.bool_)
    elif _is_float(kind):
        flat = (-1.0 + (bits % np.uint64(32)).astype(np.float64) / 16).astype(dtype_of(kind))
    elif kind in INTEGERS or kind == type_t.fp4x2_type:
        width = 5 * size_of(kind)
        part = bits % np.uint64(2**width)
        if limits(kind)[0] < 0:
            flat = (2 ** (width - 1) - part.astype(np.int64)).astype(dtype_of(kind))
        else:
            flat = part.astype(dtype_of(kind))
    else:
        raise Error(f"generate_argument: no random data for {kind.name}")
    return Argument.of(buffer_array(shape, flat.tobytes()), shape)
