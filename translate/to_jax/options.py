"""XLA compile options, chosen per compiled stage; never set in the environment."""

from __future__ import annotations

# What `performance.md` of the project measured best for float32 programs on CPUs: let YNN fuse
# reductions only. Programs with integer or bfloat16 products keep XLA's default.
REDUCE_ONLY = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_REDUCE"}

LOW_PRECISION = ("quant_dot", "quant_convolution")


def compiler_options(executable, lowered, part) -> dict | None:
    """The options for compiling the instructions `part`."""
    chosen = {}
    if executable.device.platform == "cpu" and not low_precision(part):
        chosen.update(REDUCE_ONLY)
    given = executable.options.get("advance_backend_options") or {}
    chosen.update({k: v for k, v in given.items() if k.startswith("xla_")})
    return chosen or None


def low_precision(part) -> bool:
    """True if a product of integers or small floats is among the instructions."""
    for ins in part:
        if ins.op_.op_name in LOW_PRECISION:
            return True
        if ins.op_.op_name in ("dot", "convolution") and ins.shape().type_size() < 4:
            return True
        if any(low_precision(m.instructions) for m in ins.mods):
            return True
    return False
