"""Simplifications of a module: views, conversions, arithmetic with constants, common parts."""

from __future__ import annotations

import numpy as np

from ..argument import Argument, array_shape
from ..graph import Instruction, Module
from ..ops.base import Axes, Axis, Op
from ..ops.broadcast import Multibroadcast
from ..shape import Shape
from ..types import FLOATS, type_t
from .constants import add_spread, repeats, spread_constant
from .dead_code import dead_code_elimination

# Rounds after which no rule is expected to find more.
ROUNDS = 20


def refresh(module: Module) -> None:
    """Computes the shapes anew: strides may have changed where other operators stand."""
    for ins in module.instructions:
        if ins.inputs_ and not ins.op_.op_name.startswith("@"):
            ins._shape = ins.op_.compute_shape([i.shape() for i in ins.inputs_], ins.mods)


def normalize_ops(module: Module) -> None:
    """Counts axes from the front, and writes paddings and bounds out in full."""
    for ins in module.instructions:
        shapes = [i.shape() for i in ins.inputs_]
        op = ins.op_
        if not ins.mods and all(s.dims is not None or s.subs for s in shapes):
            ins.op_ = op.normalized(shapes)
            own = type(op).normalized is not Op.normalized
            if own or not {Axis, Axes}.isdisjoint(op.kinds.values()):
                module.program._normalized.add(ins)  # as files note it
    module.touch()


def apply_rules(module: Module, rules: dict) -> bool:
    """Replaces each instruction by what the rules of its operator give, until none gives anything.

    A rule takes the module and an instruction and gives the instruction that stands for it, or
    None. It may add instructions in front of it.
    """
    changed = False
    for _ in range(ROUNDS):
        before = module.version
        for ins in list(module.instructions):
            for rule in rules.get(ins.op_.op_name, ()):
                by = rule(module, ins) if ins.module is module else None
                if by is not None and by is not ins:
                    module.redirect(ins, by)
                    break
        dead_code_elimination(module)
        if module.version == before:
            break
        changed = True
        refresh(module)
    return changed


# -- views and conversions -------------------------------------------------------------------------


def _flatten(module, ins):
    shape = ins.shape()
    if shape.dynamic():
        return None
    made = _in_front(module, ins, "reshape", dims=tuple(shape.lens()))
    if ins in module.program._normalized:
        module.program._normalized.add(made)
    return made


def _in_front(module, ins, name, *inputs, **attributes):
    return module.insert(ins, name, *(inputs or ins.inputs_), **attributes)


def _reshape(module, ins):
    (source, *others), shape = ins.inputs_, ins.shape()
    if others or shape.dynamic() or source.shape().dynamic():
        return None
    if source.shape() == shape:
        return source
    if source.op_.op_name == "reshape" and len(source.inputs_) == 1:
        return _in_front(module, ins, "reshape", *source.inputs_, dims=tuple(shape.lens()))
    return None


def _transpose(module, ins):
    (source,), order = ins.inputs_, ins.op_.permutation
    if list(order) == list(range(len(order))):
        return source
    if source.op_.op_name == "transpose":
        inner = source.op_.permutation
        order = tuple(inner[k] for k in order)
        return _in_front(module, ins, "transpose", *source.inputs_, permutation=order)
    return None


def _identity(module, ins):
    return ins.inputs_[0] if len(ins.inputs_) == 1 else None


def _contiguous(module, ins):
    source = ins.inputs_[0].shape()
    return ins.inputs_[0] if not source.dynamic() and source.standard() else None


# Types that hold all numbers of another, so that going there and back changes nothing.
HOLDS = {
    type_t.double_type: FLOATS,
    type_t.float_type: FLOATS - {type_t.double_type},
}


def _convert(module, ins):
    source = ins.inputs_[0]
    if source.shape().type() == ins.shape().type():
        return source
    if source.op_.op_name == "convert":
        first = source.inputs_[0].shape().type()
        if first in HOLDS.get(source.shape().type(), ()):
            return _in_front(module, ins, ins.op_, *source.inputs_)
    return None


RESHAPES = {
    "contiguous": (_contiguous,),
    "convert": (_convert,),
    "flatten": (_flatten,),
    "identity": (_identity,),
    "reshape": (_reshape,),
    "transpose": (_transpose,),
}


def simplify_reshapes(module: Module) -> bool:
    """Joins views and conversions that follow each other, and drops those that do nothing."""
    return apply_rules(module, RESHAPES)


def eliminate_identity(module: Module) -> bool:
    """Drops what gives its input unchanged."""
    return apply_rules(module, {"identity": (_identity,)})


# -- arithmetic ------------------------------------------------------------------------------------


def parts(ins: Instruction) -> tuple | None:
    """The variable and the constant operand of a sum or product, or None."""
    for x, other in (ins.inputs_, ins.inputs_[::-1]):
        core = spread_constant(other)
        if core is not None and spread_constant(x) is None:
            return x, core
    return None


def once(ins: Instruction, name: str) -> bool:
    """True for an instruction of that operator with a single reader."""
    return ins.op_.op_name == name and len(ins._users) == 1


def _sub_constant(module, ins):
    x, core = ins.inputs_[0], spread_constant(ins.inputs_[1])
    if core is None or spread_constant(x) is not None:
        return None
    return module.insert(ins, "add", x, add_spread(module, ins, -core, ins))


def _div_constant(module, ins):
    x, core = ins.inputs_[0], spread_constant(ins.inputs_[1])
    if core is None or spread_constant(x) is not None:
        return None
    with np.errstate(all="ignore"):
        inverse = (1 / core).astype(core.dtype)
    if not np.isfinite(inverse.astype(np.float64)).all():
        return None  # division by 0, or by what has no inverse of its type
    return module.insert(ins, "mul", x, add_spread(module, ins, inverse, ins))


def _chain(name, join):
    """(x o a) o b = x o (a o b)."""

    def rule(module, ins):
        found = parts(ins)
        if found is None or not once(found[0], name):
            return None
        inner = parts(found[0])
        if inner is None:
            return None
        core = join(inner[1], found[1])
        return module.insert(ins, name, inner[0], add_spread(module, ins, core, ins))

    return rule


def _mul_add(module, ins):
    """(x + a) c = x c + a c."""
    found = parts(ins)
    if found is None or not once(found[0], "add"):
        return None
    inner = parts(found[0])
    if inner is None:
        return None
    factor = add_spread(module, ins, found[1], ins)
    scaled = module.insert(ins, "mul", inner[0], factor)
    return module.insert(ins, "add", scaled, add_spread(module, ins, inner[1] * found[1], ins))


def _mul_convolution(module, ins):
    """A factor for each output channel goes into the weights."""
    found = parts(ins)
    if found is None or not once(found[0], "convolution") or ins.shape().dynamic():
        return None
    conv, core = found
    weights = conv.inputs_[1]
    if weights.literal is None or any(n != 1 for k, n in enumerate(core.shape) if k != 1):
        return None
    array = weights.literal.numpy()
    factor = core.reshape(-1, *[1] * (array.ndim - 1))
    scaled = np.ascontiguousarray(array * factor)
    literal = module.literal(Argument.of(scaled, array_shape(scaled.shape, weights.shape().type())))
    return module.insert(ins, conv.op_, conv.inputs_[0], literal)


ALGEBRA = {
    "add": (_chain("add", np.add),),
    "div": (_div_constant,),
    "mul": (_chain("mul", np.multiply), _mul_add, _mul_convolution),
    "sub": (_sub_constant,),
}


def simplify_algebra(module: Module) -> bool:
    """Gathers constants of sums and products, moves factors into weights, joins products."""
    changed = apply_rules(module, ALGEBRA)
    return join_products(module) or changed


# -- products of one input -------------------------------------------------------------------------


def join_products(module: Module) -> bool:
    """Products of one input with several constants become one product, and slices of it."""
    changed = False
    for x in list(module.instructions):
        groups: dict = {}
        for user in x.outputs():
            key = _joinable(user, x)
            if key is not None and user.module is module:
                groups.setdefault(key, []).append(user)
        for group in groups.values():
            if len(group) > 1:
                _join(module, x, sorted(group, key=module.index))
                changed = True
    if changed:
        dead_code_elimination(module)
        refresh(module)
    return changed


def _joinable(ins: Instruction, x: Instruction):
    """What the products of a group have in common; None for what is no such product."""
    if ins.op_.op_name not in ("dot", "convolution") or ins.inputs_[0] is not x:
        return None
    weights, shape = _core(ins.inputs_[1]), ins.inputs_[1].shape()
    if weights is None or ins.shape().dynamic():
        return None
    lens = tuple(shape.lens())
    if ins.op_.op_name == "dot":
        return "dot", shape.type(), lens[:-1], weights.shape().rank
    if ins.op_.group != 1 or ins.inputs_[1].literal is None:
        return None
    return "convolution", ins.op_, shape.type(), lens[1:]


def _core(weights: Instruction) -> Instruction | None:
    """The literal of at least two axes that weights are, or are a broadcast of."""
    if weights.literal is None and type(weights.op_) is Multibroadcast:
        weights = weights.inputs_[0]
    return weights if weights.literal is not None and weights.shape().rank >= 2 else None


def _join(module: Module, x: Instruction, group: list) -> None:
    first = group[0]
    dot = first.op_.op_name == "dot"
    arrays = [_core(ins.inputs_[1]).literal.numpy() for ins in group]
    joined = np.concatenate(arrays, -1 if dot else 0)
    kind, wide = first.inputs_[1].shape().type(), list(first.inputs_[1].shape().lens())
    after = module.instructions[module.index(x) + 1]
    shape = array_shape(joined.shape, kind)
    strides = [ins.inputs_[1].shape()._strides for ins in group]
    if joined.ndim == len(wide):  # an axis of one element that was broadcast stays so
        kept = [
            0 if not any(axis) else s for s, *axis in zip(shape._strides, *strides, strict=True)
        ]
        shape = Shape.make(kind, joined.shape, tuple(kept))
    if dot:
        wide[-1] = joined.shape[-1]
    if dot and list(joined.shape) != wide:
        spread = Shape.make(kind, wide, (0,) * (len(wide) - joined.ndim) + shape._strides)
        literal = module.literal(Argument.of(joined, shape))
        weights = module.insert(after, "multibroadcast", literal, out_lens=tuple(wide))
        if not repeats(weights):
            view = np.broadcast_to(joined, wide)
            module.redirect(weights, module.literal(Argument.of(view, spread)))
            weights = module.instructions[0]
    else:
        weights = module.literal(Argument.of(joined, shape))
    whole = module.insert(after, first.op_, x, weights)
    axis, start = (first.shape().rank - 1 if dot else 1), 0
    for ins in group:
        size = ins.shape().lens()[axis]
        part = module.insert(ins, "slice", whole, axes=(axis,), starts=(start,),
                             ends=(start + size,))  # fmt: skip
        module.redirect(ins, part)
        start += size


# -- common parts ----------------------------------------------------------------------------------


def eliminate_common_subexpression(module: Module) -> bool:
    """Lets equal operators of the same inputs be computed once."""
    seen, changed = {}, False
    for ins in list(module.instructions):
        name = ins.op_.op_name
        if name.startswith(("@", "random")) or ins.mods or not ins.inputs_:
            continue
        key = (ins.op_, tuple(map(id, ins.inputs_)))
        first = seen.setdefault(key, ins)
        if first is not ins:
            module.redirect(ins, first)
            changed = True
    if changed:
        dead_code_elimination(module)
    return changed
