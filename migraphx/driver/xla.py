"""What XLA says of a compiled program: its memory, and the work it counts."""

from __future__ import annotations

from ..program import Program

MEMORY = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes",
          "generated_code_size_in_bytes")  # fmt: skip


def compiled_stages(program: Program) -> list:
    """JAX's compiled functions of a program; one if it is static and has run or been compiled."""
    executable = program._executable
    found, pending = [], list(getattr(executable, "roots", {}).values())
    while pending:
        for stage in pending.pop().values():
            if stage.compiled is not None:
                found.append(stage.compiled)
            pending.append(stage.children)
    return found


def work(program: Program) -> tuple[float, float]:
    """Floating-point operations and bytes moved in a run, as XLA counts them."""
    flops = moved = 0.0
    for compiled in compiled_stages(program):
        analysis = compiled.cost_analysis() or {}
        if isinstance(analysis, list):
            analysis = analysis[0] if analysis else {}
        flops += max(0.0, analysis.get("flops", 0.0))
        moved += max(0.0, analysis.get("bytes accessed", 0.0))
    return flops, moved


def memory(program: Program) -> dict:
    """Bytes by kind: weights and inputs, outputs, temporary buffers; and the process's peak."""
    found = dict.fromkeys(MEMORY, 0)
    for compiled in compiled_stages(program):
        stats = compiled.memory_analysis()
        for key in MEMORY:
            found[key] += getattr(stats, key, 0) or 0
    sizes = {key.removesuffix("_size_in_bytes"): value for key, value in found.items()}
    sizes["peak"] = sizes["argument"] + sizes["output"] + sizes["temp"]
    resident = process_peak()
    return sizes | ({"process_peak": resident} if resident else {})


def process_peak() -> int:
    """The most memory this process has held, in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    import sys

    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
