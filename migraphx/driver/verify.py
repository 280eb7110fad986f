"""``migraphx-driver verify``: a compiled model against the reference."""

from __future__ import annotations

from ..errors import Error
from ..program import Program
from . import inputs as inputs_
from . import model
from .compiling import asked_quantization, choose_target
from .console import progress
from .options import UsageError
from .trim import counted, trim

TOLERANCES = ("rms_tol", "atol", "rtol")
FAILED = 1


def verify(options) -> int:
    """The command; 1 if the results differ."""
    if options.reduce and options.mode:
        raise UsageError("verify: give one of --per-instruction, --bisect and --reduce")
    program = model.read(options)
    values = inputs_.inputs_of(program, options)
    target = choose_target(options, program)
    chosen = _options(program, options)
    if options.reduce:
        return FAILED * (not _reduced(program, target, values, options, chosen))
    result = _verify(program, target, options.mode or "outputs", values, chosen)
    print(str(result).rstrip())
    return FAILED * (not result)


def _verify(program: Program, target, mode: str, values: dict, chosen: dict):
    import migraphx

    modes = getattr(migraphx, "program_verify_mode", None)
    if modes is None or not hasattr(program, "verify"):
        raise Error("verify: this version cannot verify yet")
    with progress("verifying"):
        return program.verify(target, mode=getattr(modes, mode), params=values, **chosen)


def _options(program: Program, options) -> dict:
    """The options for `program.verify`; those that were not given keep its defaults."""
    chosen = {k: getattr(options, k) for k in TOLERANCES if getattr(options, k) is not None}
    kinds = asked_quantization(options)
    if len(kinds) > 1:
        raise UsageError(
            "verify: give one of " + ", ".join(f"--{k.replace('_', '-')}" for k in kinds)
        )
    if kinds:
        chosen["precision"] = kinds[0]
    if options.ref_use_double:
        chosen["ref_use_double"] = True
    if options.compiled_model:
        chosen["compiled_model"] = options.compiled_model
    return chosen


def _reduced(program: Program, target, values: dict, options, chosen: dict) -> bool:
    """Verifies the program without its last instruction, its last two, and so on."""
    passed = True
    for end in range(1, len(counted(program.main))):
        piece = trim(program.clone(), end)
        given = {n: values[n] for n in piece.get_parameter_names()}
        result = _verify(piece, target, "outputs", given, chosen)
        print(f"without the last {end}: {'passed' if result else 'FAILED'}")
        if not result:
            print(str(result).rstrip())
            passed = False
    return passed
