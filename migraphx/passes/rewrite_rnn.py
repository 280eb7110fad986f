"""Joins recurrent operators with the operators that read their last states."""

from __future__ import annotations

import numpy as np

from ..argument import Argument, array_shape
from ..graph import Instruction, Module

RECURRENT = ("rnn", "gru", "lstm")
LAST = {"rnn_last_hs_output": 1, "rnn_last_cell_output": 2}


def rewrite_rnn(module: Module, turn_weights: bool = True) -> None:
    """lstm(x, w, r) -> get_tuple_elem(lstm::states(x, transposed w, transposed r)), 0)

    The last states become the other elements of the tuple.
    """
    for ins in [i for i in module.instructions if i.op_.op_name in RECURRENT]:
        name = f"{ins.op_.op_name}::states"
        x, w, r, *rest = ins.inputs_
        turned = [_turned(module, ins, v, turn_weights) for v in (w, r)]
        attributes = {key: getattr(ins.op_, key) for key in ins.op_.kinds}
        states = module.insert(ins, name, x, *turned, *rest, **attributes)
        count = len(states.shape().subs)
        for user in ins.outputs():
            place = LAST.get(user.op_.op_name, 0)
            if 0 < place < count and user.module is module:
                _replace(module, user, states, place)
        _replace(module, ins, states, 0)


def _replace(module: Module, old: Instruction, states: Instruction, place: int) -> None:
    part = module.insert(old, "get_tuple_elem", states, index=place)
    module.redirect(old, part)
    module.remove(old)


def _turned(module: Module, before: Instruction, weights: Instruction, now: bool) -> Instruction:
    """Weights with their last two axes exchanged; a literal at once."""
    if weights.literal is None or not now:
        return module.insert(before, "transpose", weights, permutation=[0, 2, 1])
    array = np.ascontiguousarray(weights.literal.numpy().swapaxes(1, 2))
    shape = array_shape(array.shape, weights.shape().type())
    return module.literal(Argument.of(array, shape))
