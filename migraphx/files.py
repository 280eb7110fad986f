"""Files of programs and arguments: msgpack or JSON around the trees of `values`.

A file is replaced at once or not at all, and nothing in one is ever executed or unpickled.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path

from .argument import Argument
from .errors import Error, close_matches
from .packing import pack, unpack
from .program import Program
from .values import (
    argument_from_value,
    argument_to_value,
    program_from_value,
    program_to_value,
)

FORMATS = ("msgpack", "json")


# -- programs and arguments ------------------------------------------------------------------------


def load(filename, format: str = "msgpack") -> Program:
    """The program in a file.

    Parameters
    ----------
    filename : str or Path
        A file that `save` (of this package or of MIGraphX) wrote.
    format : {"msgpack", "json"}
        What the file is written in.

    Raises
    ------
    Error
        if the file cannot be opened, is of a newer version, or is not a program in this format.
    """
    _check_format(format, "load")
    with _opened(filename, "load") as file, _telling(f"load: {os.fsdecode(filename)}"):
        return program_from_value(_read(file, format))


def save(p: Program, filename, format: str = "msgpack") -> None:
    """Writes a program to a file, which is replaced at once or not at all.

    Parameters
    ----------
    p : program
        A compiled one is saved with its target and options, and compiled again when it is loaded
        and run.
    filename : str or Path
        Where to; an existing file keeps its permissions.
    format : {"msgpack", "json"}
        JSON is for people: data takes three to five bytes of text for each byte.
    """
    _check_format(format, "save")
    _check_program(p, "save")
    with _telling("save"):
        pieces = _written(program_to_value(p), format)
    replace_file(filename, pieces, "save")


def load_buffer(buffer) -> Program:
    """The program in the bytes of a msgpack file.

    Parameters
    ----------
    buffer : bytes-like
        It may be changed afterwards; data are copied out of it once.
    """
    stream = io.BytesIO(_bytes(buffer))
    with _telling("load_buffer"):
        return program_from_value(_read(stream, "msgpack"))


def save_buffer(p: Program) -> bytes:
    """The bytes of the msgpack file of a program."""
    _check_program(p, "save_buffer")
    with _telling("save_buffer"):
        return b"".join(pack(program_to_value(p)))


def load_argument(filename) -> Argument:
    """The argument in a file that `save_argument` (or MIGraphX) wrote."""
    who = "argument.load"
    with _opened(filename, who) as file, _telling(f"{who}: {os.fsdecode(filename)}"):
        return argument_from_value(_read(file, "msgpack"))


def save_argument(arg: Argument, filename) -> None:
    """Writes an argument to a msgpack file."""
    if not isinstance(arg, Argument):
        raise TypeError(f"argument.save: expected an argument, got {type(arg).__name__}")
    with _telling("argument.save"):
        pieces = pack(argument_to_value(arg))
    replace_file(filename, pieces, "argument.save")


def _check_program(p, who: str) -> None:
    if not isinstance(p, Program):
        raise TypeError(f"{who}: expected a program, got {type(p).__name__}")


def _check_format(format: str, who: str) -> None:
    if format not in FORMATS:
        hint = close_matches(format, FORMATS)
        raise Error(f"{who}: Unknown format: {format}{hint}; accepted: {', '.join(FORMATS)}")


def _bytes(buffer) -> bytes:
    if isinstance(buffer, bytes):
        return buffer
    if isinstance(buffer, str):
        raise TypeError("load_buffer: expected bytes, got a str; use load for a file name")
    return bytes(memoryview(buffer))


@contextmanager
def _telling(who: str):
    """Puts `who` in front of an error; what trees can still provoke becomes an error too."""
    try:
        yield
    except Error as bad:
        raise Error(f"{who}: {bad}") from None
    except (ValueError, OverflowError, RecursionError, MemoryError, TypeError) as bad:
        raise Error(f"{who}: {type(bad).__name__}: {str(bad)[:200]}") from bad


# -- formats ---------------------------------------------------------------------------------------


def _written(tree, format: str) -> list:
    return pack(tree) if format == "msgpack" else [to_json(tree).encode()]


def _read(file, format: str):
    """The tree in a binary stream that can be sought."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    _check_kind(file.read(64), format)
    file.seek(0)
    return unpack(file, size) if format == "msgpack" else from_json(file.read())


def _check_kind(head: bytes, format: str) -> None:
    """Refuses, with advice, what is evidently another kind of file."""
    if not head:
        raise Error("the file is empty")
    text = head.lstrip()[:1] in (b"{", b"[") and head.lstrip()[1:2] in (b'"', b"{", b"\n", b" ")
    if format == "msgpack" and text:
        raise Error('this looks like JSON, not msgpack; use format="json"')
    if format == "json" and b"version" in head and not text:
        raise Error('this looks like msgpack, not JSON; use format="msgpack"')
    if head[:1] == b"\x08" and format == "msgpack":
        raise Error("this looks like an ONNX model, not msgpack; use parse_onnx")


def to_json(tree) -> str:
    """A tree as MIGraphX writes JSON: compact, keys sorted, blobs as ``{"bytes": [...]}``.

    Infinite and undefined attributes are written as ``Infinity`` and ``NaN``, which this package
    reads (MIGraphX writes null and loses them).
    """
    return json.dumps(
        tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_blob_to_json
    )


def from_json(text: bytes):
    """The tree of a JSON document."""
    try:
        return json.loads(text, object_hook=_blob_from_json)
    except (ValueError, RecursionError) as bad:
        raise Error(f"this is not JSON: {str(bad)[:200]}") from None


def _blob_to_json(value) -> dict:
    if isinstance(value, memoryview):
        return {"bytes": value.tolist()}
    raise TypeError(f"a {type(value).__name__} cannot be saved")


def _blob_from_json(tree: dict):
    if tree.keys() == {"bytes"} and isinstance(tree["bytes"], list):
        try:
            return bytes(tree["bytes"])
        except (TypeError, ValueError):
            raise Error("binary data should be a list of numbers from 0 to 255") from None
    return tree


# -- files -----------------------------------------------------------------------------------------


@contextmanager
def _opened(filename, who: str):
    """The file, open to be read from its start; a pipe is read at once."""
    try:
        file = open(filename, "rb")  # noqa: SIM115 - closed below
    except OSError as bad:
        raise Error(f"{who}: Failure opening file: {filename}: {bad.strerror}") from None
    except ValueError as bad:  # a null character in the name
        raise Error(f"{who}: Failure opening file: {filename!r}: {bad}") from None
    with file:
        try:
            yield file if file.seekable() else io.BytesIO(file.read())
        except OSError as bad:
            raise Error(f"{who}: Failure reading file: {filename}: {bad}") from None


def replace_file(filename, pieces, who: str) -> None:
    """Writes `pieces` to a file such that a kill at any moment leaves the old file or the new one.

    They go to a temporary file in the same folder, which then takes the place of the old one. A
    symbolic link stays one; a pipe or device is written to as it is.
    """
    try:
        path = Path(os.path.realpath(os.fsdecode(filename)))
        mode = path.stat().st_mode if path.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            with open(path, "wb") as file:
                file.writelines(pieces)
        else:
            _replace_regular(path, mode, pieces)
    except OSError as bad:
        raise Error(f"{who}: Failure opening file: {filename}: {bad.strerror or bad}") from None
    except ValueError as bad:
        raise Error(f"{who}: Failure opening file: {filename!r}: {bad}") from None


def _replace_regular(path: Path, mode: int | None, pieces) -> None:
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(0, "it is write-protected")
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.writelines(pieces)
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
