"""Dead code elimination."""

from __future__ import annotations


def dead_code_elimination(module) -> None:
    """Removes instructions that nothing reads; parameters and the results stay."""
    kept = set(module.returned())
    unwanted = []
    readers = {ins: len(ins._users) for ins in module.instructions}
    for ins in reversed(module.instructions):
        if readers[ins] or ins in kept or ins.is_param or ins.op_.op_name == "@return":
            continue
        unwanted.append(ins)
        for source in ins.inputs_:
            if source in readers:
                readers[source] -= 1
    if unwanted:
        module.remove_all(unwanted)
