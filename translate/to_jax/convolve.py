"""Convolutions with the channels last, in the forms that XLA runs fast on CPUs.

All functions take x (N, spatial…, C) and w (kernel…, C/group, O) and give (N, spatial…, O).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import jax.numpy as jnp
from jax import lax

from .registry import context

# Multiplications of shifted slices beat XLA's grouped convolution (by 2 to 30 times) up to this
# many channels of a group, and terms in one sum.
SHIFTED_CHANNELS = 8
SHIFTED_TERMS = 160
# The same for few input channels without groups, such as the first layer of a network.
FIRST_TERMS = 32
SPLIT_GROUPS = 8  # more groups than this take long to compile one by one
NARROW = 64  # channels below which the depth of a kernel is joined to them


@dataclass(frozen=True)
class Window:
    """Attributes of a convolution, with an entry per spatial axis."""

    stride: tuple
    pads: tuple  # (before, after)
    dilation: tuple
    group: int = 1
    spread: tuple = ()  # steps between the elements of x, for transposed convolutions

    def places(self, x, w) -> list:
        """Sizes of the spatial axes of the result."""
        return [
            (n + sum(p) - (d * (k - 1) + 1)) // s + 1
            for n, p, k, s, d in zip(
                x.shape[1:-1], self.pads, w.shape, self.stride, self.dilation, strict=False
            )
        ]


def convolve_last(x, w, window: Window, out):
    """The convolution summed in `out`, in the form that suits the sizes."""
    rank, group = x.ndim - 2, window.group
    terms = math.prod(w.shape[:-1])  # of each sum
    spread = any(s > 1 for s in window.spread)
    if group > 1 and not spread:
        if w.shape[-2] <= SHIFTED_CHANNELS and terms <= SHIFTED_TERMS:
            return shifted(x.astype(out), w.astype(out), window)
        if group <= SPLIT_GROUPS:
            return by_group(x, w, window, out)
    if group == 1 and terms <= FIRST_TERMS and max(w.shape[:-2]) > 1 and not spread:
        return from_planes(x.astype(out), w.astype(out), window)
    if rank == 3 and group == 1 and not spread:
        return by_depth(x, w, window, out)
    return plain(x, w, window, out)


def plain(x, w, window: Window, out):
    """XLA's own convolution."""
    letters = "DHW"[-(x.ndim - 2) :]
    names = f"N{letters}C", f"{letters}IO", f"N{letters}C"
    return lax.conv_general_dilated(
        x, w, window.stride, window.pads, window.spread or None, window.dilation, names,
        feature_group_count=window.group, precision=context().precision,
        preferred_element_type=out,
    )  # fmt: skip


def padded(x, window: Window):
    """Zeros around the spatial axes; a barrier keeps XLA from padding anew for each slice."""
    grow = [(0, 0, 0), *[(before, after, 0) for before, after in window.pads], (0, 0, 0)]
    if not any(map(any, grow)):
        return x
    return lax.optimization_barrier(lax.pad(x, jnp.zeros((), x.dtype), grow))


def slices(x, w, window: Window):
    """For each tap of the kernel its index, and what it meets in the padded input."""
    places = window.places(x, w)
    x = padded(x, window)
    for tap in itertools.product(*map(range, w.shape[: x.ndim - 2])):
        begin = [t * d for t, d in zip(tap, window.dilation, strict=True)]
        end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, places, window.stride, strict=True)]
        yield (
            tap,
            lax.slice(x, (0, *begin, 0), (x.shape[0], *end, x.shape[-1]), (1, *window.stride, 1)),
        )


def shifted(x, w, window: Window):
    """Few channels in each group: a sum of slices times weights, which XLA makes one loop."""
    group, inner, outer = window.group, w.shape[-2], w.shape[-1]
    total = 0
    if inner == 1 and outer == group:
        for tap, part in slices(x, w, window):
            total = total + part * w[tap][0]
        return total
    for tap, part in slices(x, w, window):
        part = part.reshape(*part.shape[:-1], group, inner)
        for channel in range(inner):
            weights = w[tap][channel].reshape(group, outer // group)
            total = total + part[..., channel : channel + 1] * weights
    return total.reshape(*total.shape[:-2], outer)


def from_planes(x, w, window: Window):
    """Few input channels: the sum of planes times rows of weights.

    The planes are cut from the channels-first input of the network, where they are contiguous.
    """
    total = 0
    x = x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))[..., None]
    planes = x.reshape(-1, *x.shape[2:])
    inner = w.shape[-2]
    for tap, part in slices(planes, w, window):
        part = part.reshape(-1, inner, *part.shape[1:])
        for channel in range(inner):
            total = total + part[:, channel] * w[tap][channel]
    return total


def by_group(x, w, window: Window, out):
    """A few wide groups: one convolution for each."""
    one = Window(window.stride, window.pads, window.dilation, 1, window.spread)
    parts = zip(jnp.split(x, window.group, -1), jnp.split(w, window.group, -1), strict=True)
    return jnp.concatenate([plain(a, b, one, out) for a, b in parts], -1)


def by_depth(x, w, window: Window, out):
    """Three spatial axes: planes are a batch of two-dimensional convolutions.

    The taps along the depth are joined to the channels where those are few, else added up.
    """
    flat = Window(window.stride[1:], window.pads[1:], window.dilation[1:])
    depth = Window((window.stride[0], 1, 1), (window.pads[0], (0, 0), (0, 0)),
                   (window.dilation[0], 1, 1))  # fmt: skip
    line = w[:, :1, :1]  # a kernel of the same depth
    count = depth.places(x, line)[0]
    planes = [part.reshape(-1, *part.shape[2:]) for _, part in slices(x, line, depth)]
    if len(planes) > 1 and x.shape[-1] < NARROW:
        kernel = jnp.concatenate(list(w), -2)
        result = plain(jnp.concatenate(planes, -1), kernel, flat, out)
    else:
        result = sum(plain(p, w[k], flat, out) for k, p in enumerate(planes))
    return result.reshape(x.shape[0], count, *result.shape[1:])
