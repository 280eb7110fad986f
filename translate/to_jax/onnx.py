"""Lowering of ONNX nodes that are translated while tracing."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from migraphx.passes import complete
from migraphx.target import expand_onnx_node, needed_inputs
from migraphx.types import FLOATS, INTEGERS, SMALL_FLOATS, dtype_of, from_dtype, limits, type_t

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


@lower("onnx::cast")
def cast(op, xp, x):
    """ONNX's conversion of numbers; see the operator."""
    kind, have = op.target_type, from_dtype(x.dtype)
    target = dtype_of(kind)
    if kind in SMALL_FLOATS:
        return to_small_float(xp, x, kind, op.saturate)
    if kind == type_t.fp8e8m0_type:
        return to_power_of_two(xp, x, op)
    if kind == type_t.bool_type:
        return x.astype(xp.float32) != 0 if have in SMALL_FLOATS or have > 100 else x != 0
    if have in INTEGERS or have == type_t.bool_type or kind in FLOATS:
        return x.astype(target)  # integers drop high bits, floats overflow to infinity
    wide = x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)
    if kind >= 100 and kind not in (type_t.fp4e2m1_type, *(104, 105, 106)):
        return wrap_small_int(xp, wide, kind)
    if kind in INTEGERS:
        return to_integer(xp, wide, kind)
    return wide.astype(target)


def to_integer(xp, x, kind):
    """Cut towards zero; beyond the range the nearest end, NaN 0."""
    low, high = limits(kind)
    target = dtype_of(kind)
    whole = xp.trunc(xp.where(xp.isnan(x), xp.zeros((), x.dtype), x))
    # The ends are compared as floats, where the highest 32- and 64-bit integers do not exist.
    too_high, too_low = whole >= float(high), whole <= float(low)
    inside = xp.where(too_high | too_low, xp.zeros((), x.dtype), whole).astype(target)
    ends = xp.where(too_high, np.array(high, target), np.array(low, target))
    return xp.where(too_high | too_low, ends, inside)


def wrap_small_int(xp, x, kind):
    """Floats to 2- and 4-bit integers: cut towards zero, high bits dropped."""
    return to_integer(xp, x, type_t.int32_type).astype(np.int8).astype(dtype_of(kind))


def to_small_float(xp, x, kind, saturate: bool):
    """To an 8-bit float: out of range is the largest number, or infinity or NaN if not."""
    target = dtype_of(kind)
    wide = x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)
    if not saturate:
        return wide.astype(target)
    low, high = limits(kind)
    held = xp.clip(wide, low, high)  # NaN stays NaN
    return held.astype(target)


def to_power_of_two(xp, x, op):
    """To float8e8m0, whose numbers are the powers of two from 2**-127 to 2**127."""
    wide = xp.abs(x.astype(np.float32))
    mantissa, exponent = xp.frexp(wide)  # wide = mantissa * 2**exponent, mantissa in [0.5, 1)
    exponent = exponent - 1
    exact = mantissa == 0.5
    up = {"up": ~exact, "down": exact & ~exact, "nearest": mantissa >= 0.75}[op.round_mode]
    exponent = xp.where(up, exponent + 1, exponent)
    exponent = xp.where(wide == 0, -127, exponent)
    invalid = xp.isnan(wide) | (xp.isinf(wide) if not op.saturate else xp.isnan(wide))
    if not op.saturate:
        invalid = invalid | (exponent > 127)
    exponent = xp.where(xp.isinf(wide), 127, exponent)
    bits = xp.clip(exponent, -127, 127) + 127
    bits = xp.where(invalid, 255, bits).astype(np.uint8)
    if xp is np:
        return bits.view(dtype_of(op.target_type))
    import jax

    return jax.lax.bitcast_convert_type(bits, dtype_of(op.target_type))


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
    from migraphx.errors import Error

    try:
        if kind in FLOATS:
            return np.float64(text)
        if kind == type_t.bool_type:
            return text.strip().lower() not in ("", "0", "false")
        return int(float(text)) if any(c in text for c in ".eE") else int(text)
    except ValueError:
        raise Error(f"Cast: the text {text!r} is not a number") from None
