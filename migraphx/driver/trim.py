"""Cuts a piece out of a program, to look at it or run it alone."""

from __future__ import annotations

from ..errors import Error
from ..graph import Instruction, Module
from ..passes.dead_code import dead_code_elimination
from ..program import Program


def trim(program: Program, end: int, size: int | None = None) -> Program:
    """Removes the last `end` instructions of the main module and all but `size` before them.

    Parameters, literals and the return do not count. The last instruction that stays is the
    result; what the piece reads from outside becomes a parameter. `program` itself is changed.
    """
    main = program.main
    body = counted(main)
    if end >= len(body):
        raise Error(f"trim: the program has {len(body)} instructions, so that many cannot be cut "
                    f"off: {end}")  # fmt: skip
    last = body[len(body) - 1 - end]
    before = set(used_parameters(main))
    main.remove_all(main.instructions[main.index(last) + 1 :])
    if size is not None:
        cut_start(main, body[: max(0, len(body) - end - size)])
    main.add_return([last])
    clean(program, before)
    return program


def counted(main: Module) -> list:
    """The instructions that compute something."""
    return [i for i in main.instructions if not i.name().startswith("@")]


def used_parameters(main: Module) -> list:
    """The parameters that something reads."""
    return [p for p in main.parameters() if p.outputs()]


def cut_start(main: Module, outside: list) -> None:
    """Lets parameters take the place of the instructions `outside` of the piece."""
    gone = set(outside)
    names = set(main.get_parameter_names())
    for ins in outside:
        if any(user not in gone for user in ins.outputs()):
            replace_by_parameter(main, ins, f"x{len(names)}", names)
    # What read only each other has no reader now.
    main.remove_all(outside)


def replace_by_parameter(main: Module, ins: Instruction, name: str, names: set) -> Instruction:
    """A parameter that everything reads in place of `ins`; `names` are those taken."""
    while name in names:
        name += "_"
    names.add(name)
    return main.replace_instruction(ins, main.add_parameter(name, ins.shape()))


def clean(program: Program, before: set) -> None:
    """Drops dead instructions, parameters that lost their readers, and modules nobody runs."""
    main = program.main
    dead_code_elimination(main)
    for param in before.intersection(main.parameters()):
        if not param.outputs():
            main.remove(param)
    used = reachable(main)
    program._modules = {n: m for n, m in program._modules.items() if m in used}


def reachable(module: Module) -> set:
    """A module and all that its instructions run."""
    found, pending = set(), [module]
    while pending:
        one = pending.pop()
        if one not in found:
            found.add(one)
            pending.extend(m for i in one.instructions for m in i.mods)
    return found
