"""Results of a run: in a few words, and in a file."""

from __future__ import annotations

import io

import numpy as np

from ..errors import Error
from ..files import replace_file
from .options import UsageError

SUFFIXES = (".npz", ".npy")


def kind(result) -> str:
    """The shape of a result, or what it is if it has none."""
    return str(result.get_shape()) if hasattr(result, "get_shape") else type(result).__name__


def describe(result) -> str:
    """The range and mean of a result."""
    if not hasattr(result, "get_shape") or result.get_shape().type_string() == "tuple_type":
        return ""
    array = result.numpy()
    if array.dtype.kind in "OUSc" or not array.size:
        return ""
    wide = array.astype(np.float64)
    bad = np.count_nonzero(~np.isfinite(wide))
    note = f", {bad} not finite" if bad else ""
    return f"{wide.min():.5g} to {wide.max():.5g}, mean {wide.mean():.5g}{note}"


def check_results_file(filename: str | None) -> None:
    """Refuses a file name that results cannot be written to, before anything is computed."""
    if filename and not filename.endswith(SUFFIXES):
        raise UsageError(f"run: results are written to FILE.npz or FILE.npy, not {filename}; "
                         "'compile' saves the program")  # fmt: skip


def save_results(results: list, filename: str) -> None:
    """Writes results to an .npz, or the only one to an .npy, at once or not at all."""
    arrays = {}
    for number, result in enumerate(results):
        collect(f"output_{number}", result, arrays)
    stream = io.BytesIO()
    if filename.endswith(".npy"):
        if len(arrays) != 1:
            raise Error(f"{filename}: an .npy file holds one array, there are {len(arrays)} "
                        "results; use .npz")  # fmt: skip
        np.save(stream, next(iter(arrays.values())), allow_pickle=False)
    else:
        np.savez(stream, **arrays)
    replace_file(filename, [stream.getbuffer()], "run")


def collect(name: str, result, arrays: dict) -> None:
    """Adds a result to `arrays`; parts of a tuple get a number each."""
    if not hasattr(result, "get_shape"):
        raise Error(f"run: {name} is a {type(result).__name__}, which an .npz file cannot hold")
    if result.get_shape().type_string() == "tuple_type":
        for number, part in enumerate(result.parts):
            collect(f"{name}_{number}", part, arrays)
        return
    array = result.numpy()
    if array.dtype == np.dtype(object):
        array = array.astype(str)
    elif array.dtype.isbuiltin == 2:  # bf16, fp8: NumPy's files have no letter for them
        array = array.astype(np.float32)
    arrays[name] = array
