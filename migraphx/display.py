"""What notebooks show: tables of HTML, and the graph in Graphviz's language."""

from __future__ import annotations

import html
import json

import numpy as np

from .argument import elements_text, number_text
from .ops.control import Return
from .printing import op_text, output_names
from .shape import Shape

MAX_ROWS = 400  # instructions of a module that a table shows
MAX_VALUES = 8  # elements along an axis of an argument that a table shows
MAX_LABEL = 60  # characters of attributes in a node of the picture

_STYLE = 'style="text-align:left;font-family:monospace;vertical-align:top"'


def table_html(head, rows, caption: str = "") -> str:
    """A table of HTML; cells are escaped."""
    cells = "".join(f"<th {_STYLE}>{html.escape(h)}</th>" for h in head)
    body = "".join(
        f"<tr>{''.join(f'<td {_STYLE}>{html.escape(str(c))}</td>' for c in row)}</tr>"
        for row in rows
    )
    title = f"<caption {_STYLE}>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def shape_html(shape: Shape) -> str:
    """A shape: a row for each axis, or for each part of a tuple."""
    if shape.subs:
        return table_html(("part", "shape"), enumerate(shape.subs), "tuple")
    if shape.dims is None:
        return table_html(("type",), [(shape.type_string(),)], "shape of unknown rank")
    strides = shape._strides or ("",) * len(shape.dims)
    rows = ((axis, *pair) for axis, pair in enumerate(zip(shape.dims, strides, strict=True)))
    return table_html(("axis", "size", "stride"), rows, shape.type_string())


def argument_html(arg) -> str:
    """An argument: its shape, range of values and first elements."""
    shape = arg.get_shape()
    if shape.subs:
        rows = ((i, p.get_shape(), _few(p.numpy())) for i, p in enumerate(arg.parts))
        return table_html(("part", "shape", "values"), rows, "tuple")
    array = arg.numpy()
    caption = f"{shape}{_range_text(array)}"
    if array.ndim == 0 or array.size == 0:
        return table_html(("value",), [(elements_text(array),)], caption)
    grid = array.reshape(-1, array.shape[-1])
    rows = [(*map(number_text, row[:MAX_VALUES]), *_rest(row)) for row in grid[:MAX_VALUES]]
    if len(grid) > MAX_VALUES:
        rows.append(("...",))
    return table_html(("",) * max(map(len, rows)), rows, caption)


def _few(array: np.ndarray) -> str:
    flat = array.reshape(-1)
    return elements_text(flat[:MAX_VALUES]) + (", ..." if flat.size > MAX_VALUES else "")


def _rest(row) -> tuple:
    return ("...",) if len(row) > MAX_VALUES else ()


def _range_text(array: np.ndarray) -> str:
    if array.size == 0 or array.dtype == object or array.dtype.kind == "c":
        return ""
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    odd = array.size - finite.size
    text = f"; from {finite.min():g} to {finite.max():g}" if finite.size else ""
    return text + (f"; {odd} NaN or infinite" if odd else "")


def program_html(program) -> str:
    """A table for each module: output, operator, inputs, shape, source node."""
    modules = program.get_modules()
    names = output_names(modules)
    return "".join(_module_html(m, names) for m in modules)


def _module_html(module, names: dict) -> str:
    rows = []
    for ins in module.instructions[:MAX_ROWS]:
        inputs = [names.get(i, "?") for i in ins.inputs_] + [f"[{m.name()}]" for m in ins.mods]
        shape = "" if type(ins.op_) is Return else ins.shape()
        rows.append((names[ins], _label(ins), ", ".join(inputs), shape, ", ".join(ins.debug)))
    if len(module.instructions) > MAX_ROWS:
        rows.append(("...", f"{len(module.instructions) - MAX_ROWS} more", "", "", ""))
    head = ("output", "operator", "inputs", "shape", "source")
    return table_html(head, rows, f'module "{module.name()}"')


def _label(ins) -> str:
    if ins.literal is not None:
        return f"@literal {{{_few(ins.literal.numpy())}}}"
    return op_text(ins.op_)


# -- graphs ---------------------------------------------------------------------------------------

_COLOURS = {"@param": "#cfe8ff", "@literal": "#eeeeee", "@return": "#d8f5d0"}


def to_dot(program) -> str:
    """The graph in Graphviz's language: ``dot -Tsvg`` makes a picture of it."""
    modules = program.get_modules()
    numbers = {}
    for module in modules:
        for ins in module.instructions:
            numbers[ins] = f"n{len(numbers)}"
    names = output_names(modules)
    lines = ["digraph program {", "  node [shape=box, style=filled, fillcolor=white];"]
    edges = []
    for place, module in enumerate(modules):
        if module is not program.main:
            lines.append(f"  subgraph cluster_{place} {{ label={json.dumps(module.name())};")
        for ins in module.instructions:
            lines.append(f"  {numbers[ins]} [{_node(ins, names)}];")
            edges += [
                f'  {numbers[i]} -> {numbers[ins]} [label="{_edge(i)}"];' for i in ins.inputs_
            ]
            edges += [
                f"  {numbers[m.instructions[-1]]} -> {numbers[ins]} [style=dashed];"
                for m in ins.mods
                if m.instructions
            ]
        if module is not program.main:
            lines.append("  }")
    return "\n".join([*lines, *edges, "}"]) + "\n"


def _edge(ins) -> str:
    shape = ins.shape()
    if shape.subs or shape.dims is None:
        return ""
    return "x".join(str(d).replace('"', "") for d in shape.dims)


def _node(ins, names: dict) -> str:
    text = op_text(ins.op_)
    name, bracket, attributes = text.partition("[")
    if len(attributes) > MAX_LABEL:
        attributes = attributes[:MAX_LABEL] + "..."
    label = f"{names[ins]}\n{name}" + (f"\n{bracket}{attributes}" if bracket else "")
    colour = _COLOURS.get(ins.op_.op_name)
    fill = f', fillcolor="{colour}"' if colour else ""
    tip = f", tooltip={json.dumps(', '.join(ins.debug))}" if ins.debug else ""
    return f"label={json.dumps(label)}{fill}{tip}"
