"""Which JAX device a target means, and the scoped settings for our own calls."""

from __future__ import annotations

import jax

from migraphx.errors import Error

# In the order in which `gpu` looks for them; a Neuron or other plug-in counts as an accelerator.
ACCELERATORS = ("rocm", "cuda", "gpu", "tpu")


def find_device(target: str):
    """The JAX device of a target.

    Raises
    ------
    Error
        if JAX has no such device; the text says how to install support.
    """
    if target in ("ref", "cpu"):
        return jax.local_devices(backend="cpu")[0]
    for platform in ACCELERATORS:
        try:
            devices = jax.local_devices(backend=platform)
        except RuntimeError:
            continue
        if devices:
            return devices[0]
    raise Error(
        "get_target: JAX finds no GPU here. Install its support beside this package: "
        'the extra "rocm" for AMD or "cuda" for NVIDIA (pip install -e ".[rocm]" in a clone); '
        'or use migraphx.get_target("ref") to run on the CPU'
    )


def exact_types():
    """64-bit types inside a `with` of our own; the user's setting is left alone."""
    return jax.enable_x64(True)


def put_on(array, target: str):
    """An array on the device that runs a target."""
    device = find_device(target)
    with exact_types():
        return jax.device_put(array, device)


def wait_for_devices() -> None:
    """Returns when all that was started has ended."""
    jax.effects_barrier()
    for array in jax.live_arrays():
        array.block_until_ready()
