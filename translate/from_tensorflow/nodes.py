"""Nodes of a GraphDef: names, what they read, their order, which are outputs."""

from __future__ import annotations

import difflib

from migraphx.errors import Error

# Nodes that hold no data. An Assert checks what is known to hold in a frozen graph.
NO_DATA = {"NoOp", "Assert"}
# Operators of graphs that are not frozen, or frozen with the control flow of TensorFlow 1.
VARIABLES = {
    "VarHandleOp", "ReadVariableOp", "ResourceGather", "VariableV2", "Variable",
    "AssignVariableOp", "HashTableV2", "LookupTableFindV2", "VarIsInitializedOp",
}  # fmt: skip
TF1_LOOPS = {"Enter", "Exit", "NextIteration", "LoopCond", "RefEnter", "RefExit"}


def describe(node) -> str:
    """`parse_tf: node 'name' (Operator)` for messages."""
    return f"parse_tf: node {node.name!r} ({node.op})"


def is_control(reference: str) -> bool:
    """True for an input that only orders the nodes."""
    return reference.startswith("^")


def node_of(reference: str) -> str:
    """The node that a reference names: ``a``, ``a:1`` and, in functions, ``a:output:1``."""
    return reference.split(":", 1)[0]


def output_of(reference: str) -> int:
    """Which output a reference of a graph names."""
    _, _, number = reference.partition(":")
    if not number:
        return 0
    if not number.isdigit():
        raise Error(f"the reference {reference!r} does not end with a number")
    return int(number)


def data_inputs(node) -> list:
    """References to the values that a node reads."""
    return [r for r in node.input if not is_control(r)]


def by_name(nodes) -> dict:
    """Nodes by their names; a name that is given twice is an `Error`."""
    found = {}
    for node in nodes:
        if node.name in found:
            raise Error(f"{describe(node)}: the name is given twice")
        found[node.name] = node
    return found


def holds_no_data(node) -> bool:
    """True for nodes that MIGraphX skips too: NoOp, and what has to do with assertions."""
    return node.op in NO_DATA or "Assert" in node.name


def default_outputs(nodes) -> list:
    """Names of the nodes whose values nobody reads, in the order of the graph."""
    read = {node_of(r) for node in nodes for r in data_inputs(node)}
    return [
        n.name for n in nodes if n.name not in read and n.op != "Const" and not holds_no_data(n)
    ]


def close(name: str, names) -> str:
    """A hint for an unknown name."""
    found = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def needed(found: dict, targets, given=()) -> list:
    """The nodes that `targets` depend on, each behind those that it reads.

    Parameters
    ----------
    found : dict of str to NodeDef
        All nodes.
    targets : iterable of str
        Names of nodes.
    given : container of str
        Names that have a value already (the arguments of a function).

    Raises
    ------
    Error
        for an input that no node gives, and for a cycle.
    """
    order, state = [], {}
    for target in targets:
        if target in given:
            continue
        stack = [(target, None, None)]
        while stack:
            name, rest, reader = stack.pop()
            if rest is None:
                if state.get(name) == "done":
                    continue
                if state.get(name) == "open":
                    raise Error(f"{describe(found[name])}: it reads its own result: "
                                "the graph has a cycle")  # fmt: skip
                state[name] = "open"
                if name not in found:
                    raise Error(
                        f"{describe(reader)}: input {name!r} is missing: no node has that name"
                        f"{close(name, found)}"
                    )
                rest = iter([node_of(r) for r in data_inputs(found[name])])
            following = next((n for n in rest if n not in given), None)
            if following is None:
                state[name] = "done"
                order.append(found[name])
                continue
            stack.append((name, rest, reader))
            if state.get(following) != "done":
                stack.append((following, None, found[name]))
    return order


def reachable(found: dict, targets) -> list:
    """The nodes that `targets` depend on, in the order of the graph; cycles do not matter."""
    seen, stack = set(), list(targets)
    while stack:
        name = stack.pop()
        if name in seen or name not in found:
            continue
        seen.add(name)
        stack.extend(map(node_of, data_inputs(found[name])))
    return [node for name, node in found.items() if name in seen]


def hint(operators) -> str:
    """What to do about unknown operators, where it is known."""
    if VARIABLES & set(operators):
        return "; the graph is not frozen: it holds variables or tables, freeze it first"
    if TF1_LOOPS & set(operators):
        return (
            "; these are loops of TensorFlow 1: freeze with "
            "convert_variables_to_constants_v2(..., lower_control_flow=False)"
        )
    return ""
