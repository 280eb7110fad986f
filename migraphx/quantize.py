"""Lower precision: half and bfloat16, int8 and fp8 with calibration, int4 weights."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .argument import Argument, array_shape
from .errors import Error, close_matches, warn
from .graph import Instruction, Module
from .ops.base import OPS
from .passes.dead_code import dead_code_elimination
from .passes.optimize import optimize_module
from .passes.simplify import normalize_ops, refresh
from .program import Program
from .target import as_target, evaluate
from .types import FLOATS, dtype_of, type_t

WIDE = (type_t.float_type, type_t.double_type)
QUANTISED = (*WIDE, type_t.half_type)
# The largest numbers of the types that calibration scales to.
LARGEST = {type_t.int8_type: 127.0, type_t.fp8e4m3fn_type: 448.0}
# One over the scale of what calibration has never seen, as MIGraphX has it.
UNSEEN = 64.0
PRODUCTS = frozenset(("dot", "convolution"))


def quantize_fp16(prog: Program, ins_names=("all",)) -> None:
    """Computes a program in half precision; parameters and results keep their types.

    Parameters
    ----------
    prog : program
        Changed in place. Do it before `compile`.
    ins_names : list of str
        Names of the operators to compute in half; ``"all"`` for every one.

    Raises
    ------
    Error
        if a name is no operator.
    """
    _narrow(prog, type_t.half_type, ins_names, "quantize_fp16")


def quantize_bf16(prog: Program, ins_names=("all",)) -> None:
    """Computes a program in bfloat16; parameters and results keep their types.

    Parameters
    ----------
    prog : program
        Changed in place. Do it before `compile`.
    ins_names : list of str
        Names of the operators to compute in bfloat16; ``"all"`` for every one.

    Raises
    ------
    Error
        if a name is no operator.
    """
    _narrow(prog, type_t.bf16_type, ins_names, "quantize_bf16")


def _narrow(prog: Program, kind: type_t, ins_names, who: str) -> None:
    names = _names(prog, ins_names, who)
    modules = prog.get_modules()
    for module in modules:
        normalize_ops(module)
        optimize_module(module)
    for module in modules:
        _truncate(module, kind, names)
        optimize_module(module)


def _names(prog: Program, ins_names, who: str) -> set | None:
    """The operators that are meant; None for all."""
    if not isinstance(prog, Program):
        raise TypeError(f"{who}: expected a migraphx.program, got {type(prog).__name__}")
    if isinstance(ins_names, str):
        raise TypeError(f"{who}: ins_names is a list of operator names, got {ins_names!r}")
    names = set(ins_names)
    if not all(isinstance(n, str) for n in names):
        raise TypeError(f"{who}: ins_names is a list of operator names, got {ins_names!r}")
    for name in sorted(names - {"all", *OPS}):
        raise Error(f"{who}: no operator is called {name!r}{close_matches(name, OPS)}")
    return None if "all" in names else names


def _truncate(module: Module, kind: type_t, names) -> None:
    """Lets operators read their floats in `kind` and give their results back in the old type."""
    for ins in list(module.instructions):
        name = ins.op_.op_name
        if name.startswith("@") or name == "convert" or ins.mods or not ins.inputs_:
            continue  # modules have parameters of their own types
        if names is not None and name not in names:
            continue
        if not any(i.shape().type() in WIDE and not i.shape().subs for i in ins.inputs_):
            continue
        narrow = [_converted(module, ins, i, kind) for i in ins.inputs_]
        try:
            made = module.insert(ins, ins.op_, *narrow)
        except Error:  # an operator of certain types alone
            continue
        old = ins.shape()
        if old.subs:
            _widen_parts(module, ins, made)
            continue
        by = made
        if made.shape().type() != old.type():
            by = module.insert(ins, "convert", made, target_type=old.type())
        module.redirect(ins, by)
    dead_code_elimination(module)
    refresh(module)


def _converted(module: Module, before: Instruction, x: Instruction, kind: type_t) -> Instruction:
    if x.shape().subs or x.shape().type() not in WIDE:
        return x
    return module.insert(before, "convert", x, target_type=kind)


def _widen_parts(module: Module, old: Instruction, new: Instruction) -> None:
    """A tuple's parts get their old types where they are taken out of it."""
    for user in old.outputs():
        if user.op_.op_name != "get_tuple_elem" or user.module is not module:
            return  # the tuple goes elsewhere whole: it stays as it was
    for user in old.outputs():
        part = module.insert(user, user.op_, new)
        if part.shape().type() != user.shape().type():
            part = module.insert(user, "convert", part, target_type=user.shape().type())
        module.redirect(user, part)


# -- scales by calibration -------------------------------------------------------------------------


def quantize_int8(prog: Program, t, calibration=(), ins_names=PRODUCTS) -> None:
    """Rounds the inputs of products to int8, by scales that calibration finds.

    Each input x of a `dot` or `convolution` becomes
    ``dequantizelinear(quantizelinear(x, s, 0), s, 0)`` with s = largest magnitude / 127: one scale
    for a tensor, symmetric, weights included. Parameters and results keep their types.

    Parameters
    ----------
    prog : program
        Changed in place. Do it before `compile`.
    t : target
        Where calibration runs the program.
    calibration : list of dict of str to argument
        Sets of inputs that are typical. Parameters that are left out are zero. Without any, every
        scale is 1/64, with a warning.
    ins_names : set of str
        ``{"dot", "convolution"}``, or one of both.

    Raises
    ------
    Error
        for other names in `ins_names`.
    """
    if isinstance(ins_names, str) or not set(ins_names) or not set(ins_names) <= PRODUCTS:
        raise Error(f"QUANTIZE_INT8: only support DOT and CONVOLUTION operation, got {ins_names!r}")
    _calibrated(prog, t, calibration, type_t.int8_type, set(ins_names), "quantize_int8")


def quantize_fp8(prog: Program, t, calibration=()) -> None:
    """Rounds the inputs of every operator to fp8e4m3fn, by scales that calibration finds.

    Parameters
    ----------
    prog : program
        Changed in place. Do it before `compile`.
    t : target
        Where calibration runs the program.
    calibration : list of dict of str to argument
        As for `quantize_int8`; the largest magnitude becomes 448.
    """
    if not isinstance(prog, Program):
        raise TypeError(f"quantize_fp8: expected a migraphx.program, got {type(prog).__name__}")
    names = {i.op_.op_name for i in prog.get_main_module().instructions}
    names = {n for n in names if n != "convert" and not n.startswith("@")}
    _calibrated(prog, t, calibration, type_t.fp8e4m3fn_type, names, "quantize_fp8")


def _calibrated(prog: Program, t, calibration, kind: type_t, names: set, who: str) -> None:
    if not isinstance(prog, Program):
        raise TypeError(f"{who}: expected a migraphx.program, got {type(prog).__name__}")
    target = as_target(t)
    sets = _calibration_sets(prog, calibration, who)
    for module in prog.get_modules():
        normalize_ops(module)
        optimize_module(module)
    main = prog.get_main_module()
    found = [
        (ins, k)
        for ins in main.instructions
        if ins.op_.op_name in names and not ins.mods
        for k, x in enumerate(ins.inputs_)
        if not x.shape().subs and x.shape().type() in QUANTISED
    ]
    largest = _largest(prog, target, [ins.inputs_[k] for ins, k in found], sets)
    if not sets and found:
        warn(
            f"{who}: no calibration data, so every scale is 1/{UNSEEN:.0f}; pass a list of dicts "
            "with typical inputs",
        )
    for ins, k in found:
        x = ins.inputs_[k]
        rounded = _rounded(main, ins, x, kind, largest.get(x))
        ins.inputs_[k] = rounded
        x._users.remove(ins)
        rounded._users.append(ins)
    refresh(main)
    main.touch()


def _calibration_sets(prog: Program, calibration, who: str) -> list:
    """The sets of inputs, those that are left out filled with zeros."""
    known = prog.get_parameter_names()
    if isinstance(calibration, dict):
        raise TypeError(f"{who}: calibration is a list of dicts of inputs, got one dict")
    shapes, sets = prog.get_parameter_shapes(), []
    for given in calibration:
        if not isinstance(given, dict):
            raise TypeError(f"{who}: calibration is a list of dicts, got {type(given).__name__}")
        for name in given:
            if name not in known:
                hint = close_matches(name, known)
                raise Error(f"{who}: calibration: no parameter {name!r}{hint}")
        full = dict(given)
        for name, shape in shapes.items():
            if name not in full:
                if shape.dynamic():
                    raise Error(f"{who}: calibration data for {name!r}, of {shape}, are needed")
                full[name] = np.zeros(tuple(shape.lens()), dtype_of(shape.type()))
        sets.append(full)
    return sets


def _largest(prog: Program, target, wanted: list, sets: list) -> dict:
    """The largest magnitude of each instruction over all sets of inputs."""
    wanted = list(dict.fromkeys(wanted))
    if not sets or not wanted:
        return {}
    largest = {ins: most for ins in wanted if (most := _largest_known(ins)) is not None}
    wanted = [ins for ins in wanted if ins not in largest]
    copy, places = prog.clone(), {}
    main = copy.get_main_module()
    twins = dict(zip(prog.get_main_module().instructions, main.instructions, strict=True))
    results = []
    for ins in wanted:
        if ins.shape().dynamic() or ins.shape().elements():
            places[ins] = len(results)
            sizes = main.add("abs", twins[ins])
            results.append(main.add("reduce_max", sizes, axes=tuple(range(ins.shape().rank or 1))))
    main.replace_return(results)
    copy.compile(target)
    for given in sets if places else ():
        values = copy.run(given)
        for ins, place in places.items():
            most = float(np.asarray(values[place]).reshape(-1)[0])
            if np.isfinite(most):
                largest[ins] = max(largest.get(ins, 0.0), most)
    return largest


def _largest_known(ins: Instruction) -> float | None:
    """The largest magnitude of what depends on literals alone, found on the host."""
    while ins.op_.op_name in ("broadcast", "multibroadcast") and len(ins.inputs_) == 1:
        ins = ins.inputs_[0]
    value = evaluate(ins)
    if value is None:
        return None
    array = np.abs(np.asarray(value.numpy(), np.float64))
    array = array[np.isfinite(array)]
    return float(array.max()) if array.size else None


def _rounded(main: Module, before: Instruction, x: Instruction, kind: type_t, most):
    """x quantised and back, as a program says it."""
    shape = x.shape()
    dtype = dtype_of(shape.type())
    one = np.float32(1)
    factor = np.float32(UNSEEN if most is None else LARGEST[kind] / np.float32(most) if most else 1)
    limits = ml_dtypes.finfo(dtype)
    scale = np.clip(one / factor, float(limits.eps), float(limits.max))
    zero = main.literal(Argument.of(np.zeros((), dtype_of(kind)), array_shape((), kind)))
    step = main.literal(Argument.of(np.asarray(scale, dtype), array_shape((), shape.type())))
    step, zero = (_spread(main, before, v, x) for v in (step, zero))
    whole = main.insert(before, "quantizelinear", x, step, zero)
    return main.insert(before, "dequantizelinear", whole, step, zero)


def _spread(main: Module, before: Instruction, value: Instruction, x: Instruction) -> Instruction:
    shape = x.shape()
    if shape.symbolic():
        return main.insert(before, "multibroadcast", value, out_dyn_dims=shape.dims)
    if shape.dynamic():
        return main.insert(before, "multibroadcast", value, x)
    return main.insert(before, "multibroadcast", value, out_lens=tuple(shape.lens()))


# -- fp8 at the borders ----------------------------------------------------------------------------

FP8 = frozenset(t for t in FLOATS if t.name.startswith("fp8"))


def autocast_fp8(prog: Program) -> None:
    """Lets a program of fp8 parameters and results take and give float instead.

    Parameters
    ----------
    prog : program
        Changed in place: parameters keep their names, a conversion follows each.
    """
    if not isinstance(prog, Program):
        raise TypeError(f"autocast_fp8: expected a migraphx.program, got {type(prog).__name__}")
    main = prog.get_main_module()
    for param in main.parameters():
        shape = param.shape()
        if shape.subs or shape.type() not in FP8:
            continue
        readers = list(dict.fromkeys(param._users))
        param._shape = shape.with_type(type_t.float_type)
        if not readers:
            continue
        after = main.instructions[main.index(param) + 1]
        cast = main.insert(after, "convert", param, target_type=shape.type())
        for user in readers:
            user.inputs_ = [cast if i is param else i for i in user.inputs_]
            cast._users.extend([user] * user.inputs_.count(cast))
        param._users = [cast]
    last = main.instructions[-1] if main.instructions else None
    if last is not None and last.op_.op_name == "@return":
        results = [
            main.insert(last, "convert", i, target_type=type_t.float_type)
            if not i.shape().subs and i.shape().type() in FP8
            else i
            for i in main.returned()
        ]
        main.replace_return(results)
    elif last is not None and last.shape().type() in FP8:
        main.add("convert", last, target_type=type_t.float_type)
    main.touch()


# -- weights of four bits --------------------------------------------------------------------------


def quantize_int4_weights(prog: Program) -> None:
    """Holds the constant weights of products in four bits, with a scale for each output.

    The weights of a `dot` (its second input) and of a `convolution` become
    ``dequantizelinear(unpack_int4(literal), scale)``; the literal takes an eighth of the memory of
    float. Weights with an odd last axis stay.

    Parameters
    ----------
    prog : program
        Changed in place. Do it before `compile`.
    """
    if not isinstance(prog, Program):
        raise TypeError(f"quantize_int4_weights: expected a program, got {type(prog).__name__}")
    for module in prog.get_modules():
        normalize_ops(module)
        optimize_module(module)
        for ins in list(module.instructions):
            if ins.op_.op_name in PRODUCTS and len(ins.inputs_) == 2:
                _four_bits(module, ins)
        dead_code_elimination(module)
        refresh(module)


def _four_bits(module: Module, ins: Instruction) -> None:
    weights = ins.inputs_[1]
    if weights.literal is None or weights.shape().type() not in QUANTISED:
        return
    array = np.asarray(weights.literal.numpy(), np.float64)
    if not array.size or array.shape[-1] % 2 or not np.isfinite(array).all():
        return
    dot = ins.op_.op_name == "dot"
    axes = (array.ndim - 2,) if dot else tuple(range(1, array.ndim))
    scale = np.maximum(np.abs(array).max(axes, keepdims=True) / 7, np.finfo(np.float32).tiny)
    numbers = np.clip(np.rint(array / scale), -8, 7).astype(np.int8) & 15
    packed = (numbers[..., ::2] | numbers[..., 1::2] << 4).view(np.uint8)
    kind, lens = weights.shape().type(), array.shape

    def literal(values, element):
        values = np.ascontiguousarray(values)
        return module.literal(Argument.of(values, array_shape(values.shape, element)))

    steps = literal(scale.astype(dtype_of(kind)), kind)
    nibbles = literal(packed.view(np.int8), type_t.int8_type)
    whole = module.insert(ins, "unpack_int4", nibbles, axis=array.ndim - 1)
    steps = module.insert(ins, "multibroadcast", steps, out_lens=lens)
    back = module.insert(ins, "dequantizelinear", whole, steps)
    ins.inputs_[1] = back
    weights._users.remove(ins)
    back._users.append(ins)
