"""Compiled stages on disk, in a directory of the user's own.

Machine code is written to and read from this directory alone, never from a program's file. It is
keyed by the program, all shapes and known values, options, device, processor and versions, so that
a program that was compiled here once runs in a new process without translation or compilation.
Entries are msgpack; nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import stat
import tempfile
from pathlib import Path

import jax
import jaxlib
import msgpack
import numpy as np

import migraphx
from migraphx.types import dtype_of, from_dtype

from .function import all_modules, is_weight

VARIABLE = "MIGRAPHX_JAX_CACHE"  # a directory, or "off"
LIMIT = 2 << 30  # bytes of all entries together; the longest unused go first
FORMAT = 1
OFF = ("", "0", "off", "false", "no")
SOURCES = ("translate/to_jax", "migraphx/passes", "migraphx/ops")


def directory() -> Path | None:
    """Where entries lie; None if the cache is off or the place cannot be trusted."""
    given = os.environ.get(VARIABLE)
    if given is not None and given.strip().lower() in OFF:
        return None
    if given:
        path = Path(given).expanduser()
    else:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        path = Path(home) / "migraphx-jax"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path if _trusted(path) else None
    except (OSError, RuntimeError):
        return None


def _trusted(path: Path) -> bool:
    """True if nobody but the user can write there: what is read from it is executed."""
    found = path.stat()
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


# -- keys ------------------------------------------------------------------------------------------


@functools.cache
def environment(device) -> bytes:
    """What decides about machine code besides the program: versions, device, processor, flags."""
    text = [
        FORMAT, migraphx.__version__, jax.__version__, jaxlib.__version__, device.platform,
        device.device_kind, getattr(device.client, "platform_version", ""), _processor(),
        os.environ.get("XLA_FLAGS", ""), os.environ.get("LIBTPU_INIT_ARGS", ""), _sources(),
    ]  # fmt: skip
    return hashlib.blake2b(repr(text).encode(), digest_size=32).digest()


def _processor() -> str:
    lines = [platform.machine(), platform.system()]
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        wanted = ("flags", "model name", "Features", "CPU part")
        lines += sorted({line for line in file if line.startswith(wanted)})
    return "".join(lines)


def _sources() -> str:
    """Names, sizes and times of this project's own files: a change of theirs changes the code."""
    root = Path(__file__).parents[2]
    found = []
    for folder in SOURCES:
        for path in sorted((root / folder).glob("*.py")):
            info = path.stat()
            found.append(f"{path.name} {info.st_size} {info.st_mtime_ns}")
    return "\n".join(found)


def program_digest(main) -> tuple:
    """`(digest, numbers)`: of the program without its weights' data, and of each instruction.

    The digest is None for a program with attributes that have no lasting text.
    """
    made = hashlib.blake2b(digest_size=32)
    modules = all_modules(main)
    places = {module: k for k, module in enumerate(modules)}
    numbers = {ins: k for k, ins in enumerate(i for module in modules for i in module.instructions)}
    for module in modules:
        made.update(f"module {module.name()}\n".encode())
        for ins in module.instructions:
            op = ins.op_
            values = [getattr(op, key) for key in op.kinds]
            text = (
                f"{op.op_name} {values} {ins._shape} {[numbers.get(i, -1) for i in ins.inputs_]} "
                f"{[places[m] for m in ins.mods]}\n"
            )
            if " at 0x" in text:
                return None, numbers
            made.update(text.encode())
            if ins.literal is not None and not is_weight(ins):
                array = ins.literal.numpy()
                data = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
                made.update(data)
    return made.digest(), numbers


def entry_key(parts) -> str:
    """The name of an entry."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=32).hexdigest()


# -- arrays as data --------------------------------------------------------------------------------


def packed(array) -> list | None:
    """A known value as data; None if it is no plain array."""
    if not isinstance(array, np.ndarray) or array.dtype == object:
        return None
    return [int(from_dtype(array.dtype)), list(array.shape), array.tobytes()]


def unpacked(data) -> np.ndarray:
    """The value of `packed`."""
    kind, shape, raw = data
    dtype = dtype_of(migraphx.types.type_t(kind))
    return np.frombuffer(raw, dtype).reshape(shape).copy()


# -- entries ---------------------------------------------------------------------------------------


def read(key: str) -> dict | None:
    """The entry of that name, or None; a damaged one is removed."""
    folder = directory()
    if folder is None:
        return None
    path = folder / key
    try:
        if not _trusted(path):
            return None
        data = path.read_bytes()
    except OSError:
        return None
    try:
        if hashlib.blake2b(data[32:], digest_size=32).digest() != data[:32]:
            raise ValueError("damaged")
        entry = msgpack.unpackb(data[32:], strict_map_key=False)
        with contextlib.suppress(OSError):
            os.utime(path)
        return entry
    except (ValueError, msgpack.UnpackException):
        forget(key)
        return None


def write(key: str, entry: dict) -> None:
    """Stores an entry, whole or not at all; what cannot be stored is left out silently."""
    folder = directory()
    if folder is None:
        return
    with contextlib.suppress(OSError, ValueError, OverflowError):
        data = msgpack.packb(entry)
        if len(data) > LIMIT // 4:
            return
        handle, name = tempfile.mkstemp(dir=folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.blake2b(data, digest_size=32).digest() + data)
            os.replace(name, folder / key)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        _shrink(folder)


def forget(key: str) -> None:
    """Removes an entry."""
    folder = directory()
    if folder is not None:
        with contextlib.suppress(OSError):
            (folder / key).unlink()


def _shrink(folder: Path) -> None:
    entries = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            info = path.stat()
            entries.append((info.st_mtime, info.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= LIMIT:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


# -- machine code ----------------------------------------------------------------------------------


def serialized(compiled) -> dict | None:
    """Machine code of a compiled function and what a call needs; None if it has no such form.

    Written through JAX's client, as `jax.experimental.serialize_executable` does, which however
    pickles the rest.
    """
    try:
        unloaded = compiled._executable._unloaded_executable
        if (
            compiled._params.const_args or unloaded.host_callbacks or unloaded.keepalive
            or unloaded.ordered_effects or unloaded.unordered_effects
            or getattr(unloaded, "mut", None) is not None
        ):  # fmt: skip
            return None
        code = unloaded.xla_executable
        client = unloaded.backend
        blob = code.serialize() if hasattr(code, "serialize") else client.serialize_executable(code)
        outputs = [_aval_data(a) for a in unloaded.output_avals]
        return {
            "code": bytes(blob),
            "inputs": [_aval_data(a) for a in unloaded.input_avals],
            "outputs": outputs,
            "kept": sorted(unloaded.kept_var_idx),
            "tree": _tree_data(jax.tree.unflatten(compiled.out_tree, range(len(outputs)))),
        }
    except Exception:  # JAX's insides differ between versions: then there is no entry
        return None


def _aval_data(aval) -> list:
    return [int(from_dtype(np.dtype(aval.dtype))), list(aval.shape), bool(aval.weak_type)]


def _tree_data(tree):
    """Nested tuples and lists of numbers as data."""
    if isinstance(tree, (tuple, list)):
        return [isinstance(tree, tuple), [_tree_data(t) for t in tree]]
    return tree


def _tree(data):
    if not isinstance(data, list):
        return data
    parts = [_tree(d) for d in data[1]]
    return tuple(parts) if data[0] else parts


def loaded(data: dict, device, arguments: list):
    """The function of `serialized` again, for arguments of these shapes and types.

    None if this version of JAX cannot read it.
    """
    try:
        from jax._src.interpreters import pxla
        from jax._src.lib import xla_client

        client = device.client
        devices = xla_client.DeviceList((device,))
        code = client.deserialize_executable(data["code"], executable_devices=devices)
        inputs, outputs = ([_aval(a) for a in data[k]] for k in ("inputs", "outputs"))
        sharding = jax.sharding.SingleDeviceSharding(device)
        unloaded = pxla.UnloadedMeshExecutable(
            xla_executable=code, device_list=devices, backend=client, input_avals=inputs,
            input_shardings=[sharding] * len(inputs), output_avals=outputs,
            output_shardings=[sharding] * len(outputs), committed=True, name="migraphx",
            unordered_effects=[], ordered_effects=[], keepalive=[], host_callbacks=[],
            kept_var_idx=set(data["kept"]), mut=None, xla_in_layouts=[None] * len(inputs),
            dispatch_in_layouts=[None] * len(inputs), xla_out_layouts=[None] * len(outputs),
            all_args_info=None, pgle_profiler=None,
        )  # fmt: skip
        from jax._src.stages import ArgInfo

        info = jax.tree.map(
            lambda a: ArgInfo(jax.core.ShapedArray(a.shape, a.dtype), False), tuple(arguments)
        )
        tree = jax.tree.structure(_tree(data["tree"]))
        return jax.stages.Compiled(unloaded.load(), [], (info, {}), tree, no_kwargs=True)
    except Exception:
        return None


def _aval(data):
    kind, shape, weak = data
    dtype = dtype_of(migraphx.types.type_t(kind))
    return jax.core.ShapedArray(tuple(shape), dtype, weak_type=weak)
