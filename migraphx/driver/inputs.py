"""Inputs of a program: from files, filled, or generated; and concrete sizes for dynamic ones."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from .. import files
from ..argument import Argument, fill_argument, generate_argument
from ..dims import Dim
from ..errors import Error
from ..program import Program
from ..shape import Shape
from . import sizes
from .options import UsageError


def inputs_of(program: Program, options) -> dict:
    """A value for every input: loaded, filled, or random with a seed from its name."""
    shapes = program.get_parameter_shapes()
    loaded = load_arguments(options.load_arg, program)
    fills = dict.fromkeys(options.fill0, 0) | dict.fromkeys(options.fill1, 1)
    for name, value in fills.items():
        check_name(name, program, f"--fill{value}")
    asked = sizes.input_dims(options.input_dim)
    for name in asked:
        check_name(name, program, "--input-dim")
    concrete = concrete_shapes(shapes, asked, options.batch, loaded)
    return {
        name: loaded[name] if name in loaded else make(shape, name, fills.get(name))
        for name, shape in concrete.items()
    }


def make(shape: Shape, name: str, fill: int | None) -> Argument:
    """An argument filled with a number, or random."""
    if fill is not None:
        return fill_argument(shape, fill)
    return generate_argument(shape, zlib.crc32(name.encode()))


def check_name(name: str, program: Program, option: str) -> None:
    """Refuses a name that the model does not have."""
    known = program.get_parameter_names()
    if name not in known:
        raise UsageError(f"{option}: no input {name!r}; the model has {', '.join(known) or 'none'}")


# -- sizes -----------------------------------------------------------------------------------------


def concrete_shapes(shapes: dict, asked: dict, batch: int | None, loaded: dict) -> dict:
    """Static shapes: of --input-dim, of what was loaded, of --batch, else the smallest allowed."""
    given = {name: tuple(value.get_shape().lens()) for name, value in loaded.items()}
    given |= {name: tuple(dims) for name, dims in asked.items()}
    symbols: dict[str, int] = {}
    for name, shape in shapes.items():
        if name in given and shape.dims is not None:
            _check_sizes(name, shape, given[name])
            _learn(shape, given[name], symbols)
    return {
        name: shape if not shape.dynamic() else Shape.make(
            shape.type(), given[name] if name in given else _pick(name, shape, batch, symbols)
        )
        for name, shape in shapes.items()
    }  # fmt: skip


def _check_sizes(name: str, shape: Shape, dims: tuple) -> None:
    allowed = shape.dims
    if len(dims) != len(allowed) and not (shape.is_rank0() and dims == (1,)):
        raise Error(f"input {name!r} is {shape}; the sizes given are {list(dims)}")
    for axis, (size, limit) in enumerate(zip(dims, allowed)):
        low, high = (limit.min, limit.max) if isinstance(limit, Dim) else (limit, limit)
        if not low <= size <= high:
            raise Error(f"input {name!r}, axis {axis}: size {size} is not {limit}, which the "
                        "program takes")  # fmt: skip


def _learn(shape: Shape, dims: tuple, symbols: dict) -> None:
    for limit, size in zip(shape.dims, dims):
        if isinstance(limit, Dim) and limit.is_symbolic():
            symbols.update(limit.expr.solve(size, symbols) or {})


def _pick(name: str, shape: Shape, batch: int | None, symbols: dict) -> tuple:
    """Sizes for a dynamic shape; `batch` is that of its first axis."""
    if shape.dims is None:
        raise Error(f"input {name!r} has no sizes; load it from a file with --load-arg")
    batches = (batch, *[None] * (len(shape.dims) - 1))
    return tuple(_pick_one(name, d, b, symbols) for d, b in zip(shape.dims, batches))


def _pick_one(name: str, dim, batch: int | None, symbols: dict) -> int:
    if not isinstance(dim, Dim) or dim.is_fixed():
        return dim.min if isinstance(dim, Dim) else dim
    if batch is not None and not dim.min <= batch <= dim.max:
        raise Error(f"input {name!r}: --batch {batch} is not in {dim}")
    if not dim.is_symbolic():
        return dim.min if batch is None else batch
    if batch is not None:
        symbols.update(dim.expr.solve(batch, symbols) or {})
    for symbol in dim.expr.symbols():
        symbols.setdefault(symbol.name, symbol.interval()[0])
    return int(dim.expr.evaluate(symbols))


# -- files -----------------------------------------------------------------------------------------


def load_arguments(words: list, program: Program) -> dict:
    """Arguments by input name from ``["@a", "a.npy", "b.npz"]``; an .npz alone gives all of its."""
    found: dict[str, Argument] = {}
    name = None
    for word in words:
        if word.startswith("@") and len(word) > 1:
            name = word[1:]
            check_name(name, program, "--load-arg")
        elif name is None:
            found.update(_load_all(word, program))
        elif name in found:
            raise UsageError(f"--load-arg: @{name} has a file; {word!r} is a second one")
        else:
            found[name] = load_argument(word, name)
    if name is not None and name not in found:
        raise UsageError(f"--load-arg: @{name} has no file")
    shapes = program.get_parameter_shapes()
    return {name: _fitted(name, value, shapes[name]) for name, value in found.items()}


def _load_all(filename: str, program: Program) -> dict:
    with _numpy_file(filename) as file:
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise UsageError(f"--load-arg: say which input {filename} is for: @name {filename}")
        known = program.get_parameter_names()
        found = {n: Argument(file[n]) for n in file.files if n in known}
        if not found:
            raise Error(f"--load-arg: {filename} holds {', '.join(file.files) or 'nothing'}; "
                        f"the model's inputs are {', '.join(known)}")  # fmt: skip
        return found


def load_argument(filename: str, name: str) -> Argument:
    """The argument in an .npy, .npz, .pb (TensorProto) or .mxr file, told apart by content."""
    with open(filename, "rb") as file:
        head = file.read(8)
    if head.startswith((b"\x93NUMPY", b"PK")):
        with _numpy_file(filename) as file:
            if isinstance(file, np.lib.npyio.NpzFile):
                if name not in file.files and len(file.files) != 1:
                    raise Error(f"{filename} has no array {name!r}; it has "
                                f"{', '.join(file.files) or 'none'}")  # fmt: skip
                return Argument(file[name if name in file.files else file.files[0]])
            return Argument(file.array)
    if head[:1] and 0x80 <= head[0] <= 0x8F:
        return files.load_argument(filename)
    return Argument(_tensor(filename))


class _Plain:
    """An .npy file, to be used in a `with` as an .npz file is."""

    def __init__(self, array):
        self.array = array

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def _numpy_file(filename: str):
    try:
        loaded = np.load(filename, allow_pickle=False)
    except (ValueError, EOFError) as bad:
        raise Error(f"{filename} is not an .npy or .npz file: {bad}") from None
    return _Plain(loaded) if isinstance(loaded, np.ndarray) else loaded


def _tensor(filename: str) -> np.ndarray:
    import onnx
    from onnx import numpy_helper

    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(Path(filename).read_bytes())
        return numpy_helper.to_array(tensor)
    except Exception:
        raise Error(f"{filename} is neither .npy, .npz, a TensorProto (.pb) nor a saved "
                    "argument") from None  # fmt: skip


def _fitted(name: str, value: Argument, shape: Shape) -> Argument:
    """`value`, whose type must be the input's."""
    if not shape.subs and value.get_shape().type() != shape.type():
        raise Error(f"--load-arg: input {name!r} is {shape.type_string()}, the file holds "
                    f"{value.get_shape().type_string()}")  # fmt: skip
    return value
