"""Quantising operators of TensorFlow."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import limits, type_t

from .registry import tf_op
from .shared import Const
from .tensors import FLOAT, element_type

TINY = 1e-37  # keeps divisors from 0
MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")


def checked_range(low, high) -> None:
    """Refuses ranges that hold nothing."""
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.all(low < high)):
        raise Error(f"{np.asarray(low).tolist()} to {np.asarray(high).tolist()} is not a range")


def along_axis(m, x, values, axis: int):
    """Numbers for all of x, or one for each entry of an axis, ready to broadcast."""
    values = np.asarray(values, np.float32)
    if axis < 0:
        return m.lit(values.reshape(()))
    return m.lit(values.reshape([-1 if k == axis else 1 for k in range(m.rank(x))]))


@tf_op("Dequantize")
def dequantize(
    m, x, low: Const, high: Const, *, mode="MIN_COMBINED", narrow_range=False, axis=-1, dtype=FLOAT
):
    """The range low to high stands for that of the integer type."""
    checked_range(low, high)
    least, most = limits(m.type(x))
    value = m.convert(x, type_t.float_type)
    if mode == "SCALED":
        least += narrow_range
        scale = high / most if least == 0 else np.maximum(low / least, high / most)
        result = m.common("mul", value, along_axis(m, x, scale, axis))
    elif mode in MODES:
        scale = (high - low) / np.float32(most - least)
        if mode == "MIN_FIRST":  # whose 0 is a level
            low = np.round(low / scale) * scale
        value = m.common("add", value, m.lit(float(-least), value))
        result = m.common("mul", value, along_axis(m, x, scale, axis))
        result = m.common("add", result, along_axis(m, x, low, axis))
    else:
        raise Error(f"mode {mode!r} is none of {', '.join(MODES)}")
    return m.convert(result, element_type(dtype))


def fake_quant(m, x, low, high, num_bits: int, narrow_range: bool):
    """Rounds to the levels of a range that is moved so that 0 is one of them."""
    checked_range(low, high)
    least, most = float(narrow_range), float(2**num_bits - 1)
    low, high = (np.asarray(v, np.float32) for v in (low, high))
    scale = (high - low) / np.float32(most - least)
    zero = np.clip(np.floor(least - low / scale + np.float32(0.5)), least, most)
    low, high = (least - zero) * scale, (most - zero) * scale
    low, high, scale = (m.lit(v.astype(np.float32), x) for v in (low, high, scale))
    held = m.common("min", m.common("max", x, low), high)
    steps = m.common("div", m.common("sub", held, low), scale)
    steps = m.add("floor", m.common("add", steps, m.lit(0.5, x)))
    return m.common("add", m.common("mul", steps, scale), low)


@tf_op("FakeQuantWithMinMaxArgs", images=True)
def fake_quant_args(m, x, *, min=-6.0, max=6.0, num_bits=8, narrow_range=False):
    return fake_quant(m, x, min, max, num_bits, narrow_range)


@tf_op("FakeQuantWithMinMaxVars")
def fake_quant_vars(m, x, low: Const, high: Const, *, num_bits=8, narrow_range=False):
    (y,), images = m.aligned([x])
    return m.restored(
        fake_quant(m, y, low.reshape(()), high.reshape(()), num_bits, narrow_range), images
    )


@tf_op("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_channels(m, x, low: Const, high: Const, *, num_bits=8, narrow_range=False):
    """One range for each channel, the last axis."""
    return fake_quant(m, x, low, high, num_bits, narrow_range)


@tf_op("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
def quantize_dequantize(
    m, x, low: Const, high: Const, *, signed_input=True, num_bits=8, range_given=False,
    round_mode="HALF_TO_EVEN", narrow_range=False, axis=-1,
):  # fmt: skip
    """Rounds to the levels of a symmetric range (an unsigned one starts at 0)."""
    if not range_given:
        raise Error("range_given must be true: a range taken from the data is not supported")
    checked_range(low, high)
    bits = num_bits - signed_input
    most = float(2**bits - 1)
    least = -most - (not narrow_range) if signed_input else 0.0
    with np.errstate(divide="ignore"):
        scales = [least / low if least else np.full_like(low, np.inf), most / high]
    scale = np.minimum(*(np.where(s > 0, s, np.inf) for s in scales))
    factor = along_axis(m, x, scale, axis)
    bound = (along_axis(m, x, v / scale, axis) for v in (np.float32(least), np.float32(most)))
    lowest, highest = bound
    held = m.common("min", m.common("max", x, lowest), highest)
    steps = m.common("mul", held, factor)
    if round_mode == "HALF_UP":
        steps = m.add("floor", m.common("add", steps, m.lit(0.5, x)))
    else:
        steps = m.add("nearbyint", steps)
    return m.common("div", steps, factor)


@tf_op("QuantizeV2", outputs=("output", "output_min", "output_max"))
def quantize_v2(
    m, x, low: Const, high: Const, *, T, mode="MIN_COMBINED", round_mode="HALF_AWAY_FROM_ZERO",
    narrow_range=False, axis=-1, ensure_minimum_range=0.01,
):  # fmt: skip
    """Integers that stand for the floats between low and high."""
    checked_range(low, high)
    kind = element_type(T)
    least, most = limits(kind)
    if mode == "SCALED":
        least += narrow_range
        scale = most / high
        if least:
            scale = np.minimum(least / np.minimum(low, -TINY), most / np.maximum(high, TINY))
        low, high = least / scale, most / scale
        value = m.common("mul", x, along_axis(m, x, scale, axis))
    elif mode in MODES:
        low = np.minimum(low, 0)
        near = np.maximum(np.abs(low), np.abs(high)) * ensure_minimum_range
        high = np.maximum(np.maximum(high, low + np.maximum(near, TINY)), 0)
        scale = (most - least) / (high - low)
        first = mode == "MIN_FIRST"  # whose 0 is a level
        value = x if first else m.common("sub", x, along_axis(m, x, low, axis))
        value = m.common("mul", value, along_axis(m, x, scale, axis))
        start = least - (np.round(low * scale) if first else 0)
        value = m.common("add", value, along_axis(m, x, start, axis))
    else:
        raise Error(f"mode {mode!r} is none of {', '.join(MODES)}")
    if round_mode == "HALF_TO_EVEN":
        value = m.add("nearbyint", value)
    else:
        away = m.common("add", m.add("abs", value), m.lit(0.5, value))
        value = m.common("mul", m.add("floor", away), m.add("sign", value))
    value = m.common("min", m.common("max", value, m.lit(least, value)), m.lit(most, value))
    ends = (m.lit(np.asarray(v, np.float32)) for v in (low, high))
    return m.convert(value, kind), *ends
