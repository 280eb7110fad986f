"""Branches of TensorFlow 1: Switch sends a value to one side, Merge takes what arrives.

With a known predicate the other side is dead. Otherwise both sides are computed, and Merge
chooses: the predicate is found by following the graph back to the Switch that parts the two.
"""

from __future__ import annotations

from migraphx.errors import Error
from migraphx.graph import Instruction
from migraphx.types import type_t

from . import nodes as names
from .registry import tf_op
from .shared import where_common


class Dead:
    """The value of a branch that is not taken, and of all that reads it."""


DEAD = Dead()
SWITCHES, MERGES = {"Switch", "RefSwitch"}, {"Merge", "RefMerge"}


@tf_op(*SWITCHES, outputs=("output_false", "output_true"))
def switch(m, x, predicate):
    known = m.value(predicate)
    if known is None:
        return [x, x]
    return [DEAD, x] if known.reshape(-1)[0] else [x, DEAD]


@tf_op(*MERGES, outputs=("output", "value_index"))
def merge(m, *xs):
    alive = [k for k, x in enumerate(xs) if isinstance(x, Instruction)]
    if len(alive) == 1:
        return xs[alive[0]], m.lit(alive[0], type_t.int32_type)
    if len(xs) != 2 or len(alive) != 2:
        raise Error(f"{len(alive)} of its {len(xs)} inputs have a value; one or both of two can be")
    reference, of_true = parting(m.graph.nodes, names.data_inputs(m.node))
    predicate = m.scalar(m.graph.lookup(reference, m.node))
    yes, no = xs[of_true], xs[1 - of_true]
    if m.dims(yes) != m.dims(no) or m.type(yes) != m.type(no):
        raise Error(f"its inputs differ: {yes.shape()} and {no.shape()}")
    (predicate_, yes, no), images = m.aligned([predicate, yes, no])
    result = m.restored(where_common(m, predicate_, yes, no), images)
    which = m.convert(predicate, type_t.int32_type)
    return result, which if of_true else m.common("sub", m.lit(1, which), which)


def parting(nodes: dict, references) -> tuple:
    """The predicate that parts the two inputs of a Merge, and which of them is its true side."""
    known: dict[str, frozenset] = {}
    first, second = (sides_of(nodes, r, known) for r in references)
    for predicate, side in sorted(first):
        if (predicate, not side) in second:
            return predicate, 0 if side else 1
    raise Error("no Switch is found that parts its inputs")


def sides_of(nodes: dict, reference: str, known: dict) -> frozenset:
    """(predicate, side) of each Switch that a value comes through, also by control inputs."""
    stack, opened = [names.node_of(reference.lstrip("^"))], set()
    while stack:
        name = stack[-1]
        opened.add(name)
        if name in known or name not in nodes:
            known.setdefault(name, frozenset())
            stack.pop()
            continue
        node = nodes[name]
        reads = {names.node_of(r.lstrip("^")) for r in node.input}
        missing = reads - opened - known.keys()
        if missing:
            stack.extend(sorted(missing))
            continue
        sides = frozenset().union(*(_through(nodes, r, known) for r in node.input))
        if node.op in MERGES:
            sides = frozenset((p, s) for p, s in sides if (p, not s) not in sides)
        known[name] = sides
        stack.pop()
    return _through(nodes, reference, known)


def _through(nodes: dict, reference: str, known: dict) -> frozenset:
    """The sides of a value: those of its node and, behind a Switch, one more."""
    name = names.node_of(reference.lstrip("^"))
    node = nodes.get(name)
    if node is None or node.op not in SWITCHES or names.is_control(reference):
        return known.get(name, frozenset())
    side = names.output_of(reference) == 1
    return known[name] | {(_root(nodes, names.data_inputs(node)[1]), side)}


def _root(nodes: dict, reference: str) -> str:
    """The value that a reference stands for behind Identity nodes."""
    while nodes[names.node_of(reference)].op == "Identity":
        reference = names.data_inputs(nodes[names.node_of(reference)])[0]
    return reference.removesuffix(":0")
