"""Targets, and the one place from which this package reaches into `translate`."""

from __future__ import annotations

from .argument import Argument
from .errors import Error, close_matches

TARGETS = {
    "ref": "JAX's CPU backend, exact mathematics",
    "cpu": "JAX's CPU backend",
    "gpu": "the GPU that JAX finds: AMD (ROCm) first, then NVIDIA, then any other accelerator",
}


class Target:
    """A compilation target; made by `get_target`."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def name(self) -> str:
        """The name of the target."""
        return self._name

    def __eq__(self, other):
        return self._name == other._name if isinstance(other, Target) else NotImplemented

    def __hash__(self):
        return hash(self._name)

    def __repr__(self):
        return f"target({self._name!r})"


def get_target(name: str) -> Target:
    """The target called `name`.

    Parameters
    ----------
    name : {"ref", "cpu", "gpu"}
        ``ref`` and ``cpu`` run on JAX's CPU backend, ``gpu`` on the GPU that JAX finds.

    Raises
    ------
    Error
        for an unknown name, and for ``gpu`` where JAX finds none: nothing falls back to the CPU.
    """
    if not isinstance(name, str):
        raise TypeError(f"get_target: the name must be a str, got {type(name).__name__}")
    if name not in TARGETS:
        raise Error(
            f"get_target: unknown target {name!r}{close_matches(name, TARGETS)}; accepted: "
            + ", ".join(TARGETS)
        )
    target = Target(name)
    if name == "gpu":
        device_of(target)
    return target


def as_target(t) -> Target:
    """`t` if it is a target, else the target of that name."""
    return t if isinstance(t, Target) else get_target(t)


def device_of(target: Target):
    """The JAX device that a target runs on."""
    from translate.to_jax import find_device

    return find_device(target.name())


def put(array, target: Target):
    """An array on the device of a target, with its type kept."""
    from translate.to_jax import put_on

    return put_on(array, target.name())


def synchronize() -> None:
    """Waits for all devices."""
    from translate.to_jax import wait_for_devices

    wait_for_devices()


def translate_program(program, target: Target, options: dict, eager: bool):
    """The executable form of a program."""
    from translate.to_jax import compile_program

    return compile_program(program, target, options, eager)


def as_jax(program):
    """A program as a pure JAX function and its weights."""
    from translate.to_jax import as_jax

    return as_jax(program)


def export_program(program, platforms) -> bytes:
    """A program as a serialised StableHLO artifact."""
    from translate.to_jax import export_program

    return export_program(program, platforms)


def evaluate(ins) -> Argument | None:
    """The value of an instruction that depends on literals alone, else None."""
    from translate.to_jax import evaluate

    return evaluate(ins)


def parse_onnx_file(filename, **options):
    """A program from an ONNX file."""
    from translate import from_onnx

    return from_onnx.parse(filename, **options)


def parse_onnx_bytes(buffer, **options):
    """A program from the bytes of an ONNX file."""
    from translate import from_onnx

    return from_onnx.parse_buffer(buffer, **options)


def onnx_operators() -> list:
    """Names of the ONNX operators that can be parsed."""
    from translate import from_onnx

    return from_onnx.operators()


def parse_tf_file(filename, **options):
    """A program from a TensorFlow graph."""
    from translate import from_tensorflow

    return from_tensorflow.parse(filename, **options)


def tf_operators() -> list:
    """Names of the TensorFlow operators that can be parsed."""
    from translate import from_tensorflow

    return from_tensorflow.operators()


def fold(ins, values):
    """The value of an instruction from the NumPy values of its inputs, or None if it has none."""
    from translate.to_jax import fold

    return fold(ins, values)


def expand_onnx_node(op, arrays):
    """A program that computes a deferred node, now that shapes and values are known."""
    return _front_end(op).expand(op, arrays)


def needed_inputs(op) -> list:
    """Positions of the inputs whose values a deferred node needs."""
    return _front_end(op).needed_inputs(op)


def _front_end(op):
    """The reader of ONNX, which knows TensorFlow's deferred nodes too once these are registered."""
    from translate import from_onnx

    if "tensorflow=" in op.opsets:
        from translate.from_tensorflow import deferred

        deferred.register_all()
    return from_onnx
