"""ai.onnx.preview.training: one step of an optimiser, and gradients."""

from __future__ import annotations

from migraphx.errors import Error
from migraphx.types import type_t

from .math import where_common
from .registry import onnx_op

DOMAIN = "ai.onnx.preview.training"


def _split(tensors, parts: int, who: str):
    """Tuples of what belongs to one tensor: all Xs come first, then all gradients, and so on."""
    if not tensors or len(tensors) % parts:
        raise Error(f"{who}: {len(tensors)} tensors are no multiple of {parts}")
    count = len(tensors) // parts
    return list(zip(*(tensors[k * count : (k + 1) * count] for k in range(parts)), strict=True))


def _joined(results):
    """All new Xs, then all new states of the first kind, and so on."""
    return tuple(value for kind in zip(*results, strict=True) for value in kind)


def _mul(m, x, number):
    return m.common("mul", x, m.lit(number, x))


def _regular(m, x, gradient, coefficient):
    """The gradient with that of an L2 penalty."""
    return m.common("add", gradient, _mul(m, x, coefficient)) if coefficient else gradient


def _started(m, t, yes, no):
    """`yes` from the second step on."""
    late = m.convert(m.common("greater", t, m.lit(0, t)), type_t.bool_type)
    return where_common(m, late, yes, no)


@onnx_op("Adagrad", domain=DOMAIN)
def adagrad(m, rate, t, *tensors, decay_factor=0.0, epsilon=0.0, norm_coefficient=0.0):
    late = m.common("add", _mul(m, m.convert(t, m.type(rate)), decay_factor), m.lit(1.0, rate))
    rate = m.common("div", rate, late)
    results = []
    for x, gradient, squares in _split(tensors, 3, "Adagrad"):
        gradient = _regular(m, x, gradient, norm_coefficient)
        squares = m.common("add", squares, m.common("mul", gradient, gradient))
        root = m.common("add", m.add("sqrt", squares), m.lit(epsilon, x))
        step = m.common("mul", m.convert(rate, m.type(x)), m.common("div", gradient, root))
        results.append((m.common("sub", x, step), squares))
    return _joined(results)


@onnx_op("Adam", domain=DOMAIN)
def adam(
    m, rate, t, *tensors, alpha=0.9, beta=0.999, epsilon=0.0, norm_coefficient=0.0,
    norm_coefficient_post=0.0,
):  # fmt: skip
    steps = m.convert(t, m.type(rate))

    def rest(base):
        return m.common("sub", m.lit(1.0, rate), m.common("pow", m.lit(base, rate), steps))

    ratio = m.common("div", m.add("sqrt", rest(beta)), rest(alpha))
    rate = _started(m, t, m.common("mul", rate, ratio), rate)
    results = []
    for x, gradient, mean, squares in _split(tensors, 4, "Adam"):
        gradient = _regular(m, x, gradient, norm_coefficient)
        mean = m.common("add", _mul(m, mean, alpha), _mul(m, gradient, 1 - alpha))
        new = _mul(m, m.common("mul", gradient, gradient), 1 - beta)
        squares = m.common("add", _mul(m, squares, beta), new)
        root = m.common("add", m.add("sqrt", squares), m.lit(epsilon, x))
        step = m.common("mul", m.convert(rate, m.type(x)), m.common("div", mean, root))
        moved = m.common("sub", x, step)
        if norm_coefficient_post:
            moved = _mul(m, moved, 1 - norm_coefficient_post)
        results.append((moved, mean, squares))
    return _joined(results)


@onnx_op("Momentum", domain=DOMAIN)
def momentum(m, rate, t, *tensors, alpha, beta, mode, norm_coefficient):
    if mode not in ("standard", "nesterov"):
        raise Error(f"mode {mode!r} is neither standard nor nesterov")
    results = []
    for x, gradient, velocity in _split(tensors, 3, "Momentum"):
        gradient = _regular(m, x, gradient, norm_coefficient)
        factor = _started(m, t, m.lit(beta, x), m.lit(1.0, x))
        new = m.common("mul", factor, gradient)
        velocity = m.common("add", _mul(m, velocity, alpha), new)
        way = velocity
        if mode == "nesterov":
            way = m.common("add", gradient, _mul(m, velocity, alpha))
        step = m.common("mul", m.convert(rate, m.type(x)), way)
        results.append((m.common("sub", x, step), velocity))
    return _joined(results)


@onnx_op("Gradient", domain=DOMAIN, any_rank=True)
def gradient(m, *inputs, xs, y, zs=()):
    """Derivatives of the sum of `y` by the tensors `xs`, where these and `zs` are the inputs."""
    names = [*xs, *zs]
    if len(names) != len(inputs):
        raise Error(f"{len(inputs)} inputs for the {len(names)} names in xs and zs")
    given = [m.graph.lookup(name, m.node) for name in names]
    body = m.graph.world.module(f"Gradient_{len(m.module)}")
    copies = {
        old: body.add_parameter(name, old.shape()) for name, old in zip(names, given, strict=True)
    }
    for ins in m.module.instructions:
        if ins in copies or copies.keys().isdisjoint(ins.inputs_):
            continue  # what does not depend on an x is read from outside
        if any(not copies.keys().isdisjoint(mod.captured()) for mod in ins.mods):
            raise Error(f"the control flow {ins.op_.op_name} between {y!r} and its inputs")
        args = [copies.get(i, i) for i in ins.inputs_]
        copies[ins] = body.add_instruction(ins.op(), args, list(ins.mods))
    end = m.graph.lookup(y, m.node)
    body.add_return([copies.get(end, end)])
    whole = m.add("onnx::gradient", *inputs, mods=[body], count=len(xs))
    return tuple(m.add("get_tuple_elem", whole, index=k) for k in range(len(xs)))
