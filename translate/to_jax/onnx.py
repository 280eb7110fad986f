"""Lowering of ONNX nodes that are translated while tracing."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from migraphx.errors import Error
from migraphx.passes import complete
from migraphx.target import expand_onnx_node, needed_inputs
from migraphx.types import FLOATS, dtype_of, type_t

from .interpret import Cut, run_module
from .registry import NeedsValue, known, lower


@lower("onnx::node")
def onnx_node(op, xp, *arrays):
    """Translates the node for the shapes and values at hand and computes the result."""
    for k in needed_inputs(op):
        known(arrays[k])
    program = complete(expand_onnx_node(op, arrays))
    env = {p: arrays[int(p.op_.parameter[1:])] for p in program.main.parameters()}
    try:
        results = run_module(program.main, env)
    except Cut as cut:
        if cut.needs is not None and cut.needs in env:
            raise NeedsValue(env[cut.needs]) from None
        raise
    return results[0] if len(results) == 1 else results


@lower("onnx::slice")
def onnx_slice(op, xp, x):
    """A slice whose bounds are plain numbers by now."""
    index = [slice(None)] * x.ndim
    for axis, start, end in zip(op.axes, op.starts, op.ends, strict=True):
        index[axis] = slice(start, end)
    return x[tuple(index)]


@lower("onnx::move_axis")
def move_axis(op, xp, x):
    return xp.moveaxis(x, op.source, op.destination)


@lower("onnx::det", numpy=False)
def det(op, xp, x):
    return jnp.linalg.det(x)


@lower("onnx::inverse", numpy=False)
def inverse(op, xp, x):
    return jnp.linalg.inv(x)


@lower("onnx::decode_image", host=True)
def decode_image(op, xp, encoded):
    """Pixels of a file, decoded by Pillow."""
    import io

    try:
        import PIL.Image
    except ImportError:
        op.fail("reading image files needs Pillow: pip install pillow")
    try:
        picture = PIL.Image.open(io.BytesIO(encoded.tobytes()))
        picture = picture.convert("L" if op.pixel_format == "Grayscale" else "RGB")
    except OSError as bad:
        op.fail(f"this is no image that Pillow reads: {bad}")
    pixels = np.asarray(picture)
    if op.pixel_format == "Grayscale":
        return pixels[:, :, None]
    return pixels[:, :, ::-1] if op.pixel_format == "BGR" else pixels


@lower("onnx::cast_text", host=True)
def cast_text(op, xp, x):
    """Texts to numbers as Python reads them, numbers to texts as ONNX prints them."""
    kind = op.target_type
    out = np.empty(x.shape, object if kind == type_t.string_type else dtype_of(kind))
    flat = out.reshape(-1)
    for k, value in enumerate(x.reshape(-1)):
        flat[k] = (
            number_to_text(value) if kind == type_t.string_type else text_to_number(value, kind)
        )
    return flat.reshape(x.shape)


def number_to_text(value) -> str:
    """Shortest text that reads back as the same number; infinities as INF, as ONNX has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, np.integer):
        return str(int(value))
    if np.isinf(value):
        return "INF" if value > 0 else "-INF"
    return "NaN" if np.isnan(value) else np.format_float_positional(value, trim="-") if (
        1e-4 <= abs(float(value)) < 1e16 or value == 0) else repr(float(str(value)))  # fmt: skip


def text_to_number(text: str, kind):
    """The number that a text says."""
    try:
        if kind in FLOATS:
            return np.float64(text)
        if kind == type_t.bool_type:
            return text.strip().lower() not in ("", "0", "false")
        return int(float(text)) if any(c in text for c in ".eE") else int(text)
    except ValueError:
        raise Error(f"Cast: the text {text!r} is not a number") from None
