"""Trees as msgpack, the way MIGraphX writes them, without copying weights.

A tree is made of dicts with text keys, lists, ints, floats, texts, bools, None and *blobs*
(bytes-like). A blob is an array of bin items of at most `CHUNK` bytes, an empty dict is an empty
array, a float without fraction is an integer.

Reading has its own few lines because the library's reader copies every blob out of a copy of the
file, and trusts the lengths that a file claims. Here a blob goes from the file straight to the
memory that its literal keeps, and no length exceeds what is left of the file.
"""

from __future__ import annotations

import struct

import msgpack
import numpy as np

from .errors import Error

CHUNK = 2**32 - 2  # bytes in one bin item
MAX_NESTING = 400  # levels of a tree; expressions are the deepest
SMALL = 4096  # blobs from this size on are neither copied when written nor left unaligned
ALIGNMENT = 64  # what XLA's CPU backend wants to use memory in place

_BIN = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_TEXT = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAY = {0xDC: ">H", 0xDD: ">I"}
_MAP = {0xDE: ">H", 0xDF: ">I"}
_NUMBER = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_CONSTANT = {0xC0: None, 0xC2: False, 0xC3: True}


# -- writing -------------------------------------------------------------------------------------


def pack(tree) -> list:
    """The document of a tree, as pieces to be written one behind the other.

    Large blobs are pieces of their own and still the caller's memory.
    """
    writer = _Writer()
    writer.value(tree)
    writer.flush()
    return writer.pieces


class _Writer:
    """Collects the pieces of a document."""

    def __init__(self):
        self.pieces = []
        self.packer = msgpack.Packer(autoreset=False)

    def value(self, value) -> None:
        if isinstance(value, dict) and value:
            self.packer.pack_map_header(len(value))
            for key, item in value.items():
                self.packer.pack(key)
                self.value(item)
        elif isinstance(value, (dict, list, tuple)):
            self.packer.pack_array_header(len(value))
            for item in value:
                self.value(item)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            self.blob(memoryview(value))
        elif type(value) is float:
            self.packer.pack(shortest(value))
        else:
            self.packer.pack(value)

    def blob(self, data: memoryview) -> None:
        chunks = [data[at : at + CHUNK] for at in range(0, data.nbytes, CHUNK)] or [data]
        self.packer.pack_array_header(len(chunks))
        for chunk in chunks:
            if chunk.nbytes < SMALL:
                self.packer.pack(bytes(chunk))
                continue
            self.flush()
            self.pieces += [_bin_header(chunk.nbytes), chunk]

    def flush(self) -> None:
        self.pieces.append(self.packer.bytes())
        self.packer.reset()


def shortest(value: float):
    """A float without fraction as an int, as MIGraphX's writer does; -0.0 stays as it is."""
    if value.is_integer() and -(2.0**63) <= value < 2.0**64 and str(value) != "-0.0":
        return int(value)
    return value


def _bin_header(count: int) -> bytes:
    for code, form in _BIN.items():
        if count < 256 ** struct.calcsize(form):
            return bytes([code]) + struct.pack(form, count)
    raise Error(f"save: {count} bytes do not fit in one msgpack item")


# -- reading -------------------------------------------------------------------------------------


def unpack(stream, size: int):
    """The tree of the document at the start of a binary stream that holds `size` more bytes.

    Blobs come as `memoryview`s of memory of their own. What follows the document is ignored.

    Raises
    ------
    Error
        if this is not msgpack, or ends early; the text says at which byte.
    """
    return _Reader(stream, size).value(0)


class _Reader:
    """Reads values one behind the other and counts the bytes that are left."""

    def __init__(self, stream, size: int):
        self.stream, self.size, self.left = stream, size, size

    def fail(self, why: str):
        raise Error(f"{why} (at byte {self.size - self.left} of {self.size})")

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if count > self.left:
            self.fail(f"insufficient bytes: the file ends where {count} more should be")
        data = self.stream.read(count)
        if len(data) != count:
            self.fail("insufficient bytes: the file became shorter while it was read")
        self.left -= count
        return data

    def number(self, form: str):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def value(self, depth: int):
        """The next value."""
        code = self.take(1)[0]
        if code < 0x80:
            return code
        if code < 0x90:
            return self.map(code & 15, depth)
        if code < 0xA0:
            return self.array(code & 15, depth)
        if code < 0xC0:
            return self.text(code & 31)
        if code >= 0xE0:
            return code - 256
        return self.long_form(code, depth)

    def long_form(self, code: int, depth: int):
        if code in _CONSTANT:
            return _CONSTANT[code]
        if code in _NUMBER:
            return self.number(_NUMBER[code])
        if code in _TEXT:
            return self.text(self.number(_TEXT[code]))
        if code in _ARRAY:
            return self.array(self.number(_ARRAY[code]), depth)
        if code in _MAP:
            return self.map(self.number(_MAP[code]), depth)
        if code in _BIN:
            return self.blob(self.number(_BIN[code]))
        return self.fail(f"code {code:#04x} is no msgpack that MIGraphX writes")

    def deeper(self, count: int, depth: int) -> int:
        if count > self.left:
            self.fail(f"insufficient bytes: {count} items are claimed, {self.left} bytes left")
        if depth >= MAX_NESTING:
            self.fail(f"values nested deeper than {MAX_NESTING} levels")
        return depth + 1

    def text(self, count: int) -> str:
        try:
            return self.take(count).decode()
        except UnicodeDecodeError:
            return self.fail("a text is not UTF-8")

    def map(self, count: int, depth: int) -> dict:
        depth, tree = self.deeper(2 * count, depth), {}
        for _ in range(count):
            key = self.value(depth)
            if type(key) is not str:
                self.fail(f"a key is a {type(key).__name__}, not a text")
            if key in tree:
                self.fail(f"the key {key[:60]!r} occurs twice")
            tree[key] = self.value(depth)
        return tree

    def array(self, count: int, depth: int):
        """A list, or the blob that an array of bin items stands for."""
        depth = self.deeper(count, depth)
        if not count:
            return []
        first = self.value(depth)
        if not isinstance(first, memoryview):
            return [first, *(self.value(depth) for _ in range(count - 1))]
        if count == 1:
            return first
        chunks = [first, *(self.value(depth) for _ in range(count - 1))]
        if not all(isinstance(chunk, memoryview) for chunk in chunks):
            self.fail("an array mixes binary data with other values")
        return memoryview(np.concatenate([np.frombuffer(c, np.uint8) for c in chunks]))

    def blob(self, count: int) -> memoryview:
        if count < SMALL:
            return memoryview(self.take(count))
        if count > self.left:
            self.fail(f"insufficient bytes: {count} bytes of data are claimed, {self.left} left")
        memory = memoryview(aligned(count))
        done = 0
        while done < count:
            got = self.stream.readinto(memory[done:])
            if not got:
                self.fail("insufficient bytes: the file became shorter while it was read")
            done += got
        self.left -= count
        return memory.toreadonly()


def aligned(count: int) -> np.ndarray:
    """Fresh memory that starts at a multiple of `ALIGNMENT`."""
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + count]
