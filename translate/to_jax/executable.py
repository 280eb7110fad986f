"""Runs a program: jitted stages, cached by what they were given, and the host between them.

A static program is one stage. Where an operator needs a number that depends on data, the stage
ends before it; the host reads that value, and the next stage is traced with it as a known one.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import OrderedDict

import jax
import numpy as np

from migraphx.argument import Argument, host_array
from migraphx.dims import hi, lo
from migraphx.errors import Error, close_matches
from migraphx.graph import Module
from migraphx.program import output_shape
from migraphx.shape import Shape
from migraphx.types import dtype_of, from_dtype

from .device import exact_types, find_device
from .function import is_weight, weights_of
from .interpret import (
    KNOWN_LIMIT,
    Body,
    Cut,
    HostOnly,
    compute,
    fit_rank,
    literal_value,
    run_instructions,
    run_module,
)
from .options import compiler_options
from .registry import Context, using
from .sizes import bind_symbols, cache_size, optimal_sizes
from .stage import (
    Stage,
    aval,
    computed_by_numpy,
    holds_elements,
    holds_tracer,
    is_array,
    keep,
    literals,
    reads,
    signature,
    signature_of,
    to_host,
    used_inputs,
)
from .stored import entry_name, from_disk, to_disk


def compile_program(program, target, options: dict, eager: bool) -> Executable:
    """The executable of a program; with `eager`, a static one is compiled at once."""
    from migraphx.passes import prepare

    exact = target.name() == "ref"  # what the others are compared with
    options = {**options, "fast_math": bool(options.get("fast_math", True)) and not exact}
    prepared = prepare(program, target.name(), options)
    executable = Executable(prepared, program, find_device(target.name()), options)
    if eager:
        executable.warm()
        if (options.get("advance_backend_options") or {}).get("compile_optimals"):
            executable.warm_optimals()
    return executable


class Executable:
    """A program made ready for one device.

    Parameters
    ----------
    prepared : Program
        What runs: the program after the passes.
    program : Program
        What the user sees: its parameters and output shapes are the contract.
    """

    def __init__(self, prepared, program, device, options: dict):
        self.main = prepared.main
        self.device = device
        self.options = options
        self.ctx = Context(platform=device.platform, fast_math=options.get("fast_math", True))
        self.params = program.main.parameters()
        self.names = [p.op_.parameter for p in self.params]
        self.inner = {p.op_.parameter: p for p in self.main.parameters()}
        self.shapes = [p.shape() for p in self.params]
        self.dtypes = [None if s.subs else dtype_of(s.type()) for s in self.shapes]
        self.static = not any(s.dynamic() for s in self.shapes)
        self.outputs = program.get_output_shapes()
        self.lock = threading.RLock()
        self.roots = {}  # module -> OrderedDict of input signature -> Stage
        self.fast = {}  # dims of the inputs -> Stage that is the whole program
        self.weights = None
        self.limit = cache_size(options)
        self.background = None  # the thread that compiles for the optimals
        self.digest = self.numbered = None  # of the program, for the cache on disk
        self.aliases = [i for i in self.main.returned() if i.is_param]

    # -- the way of a call ---------------------------------------------------------------------

    def run(self, params: dict) -> list:
        """The results for inputs by name."""
        if not isinstance(params, dict):
            raise TypeError(f"run: expected a dict of name to value, got {type(params).__name__}")
        arrays = [self.take(params, k, name) for k, name in enumerate(self.names)]
        key = tuple(a.shape if hasattr(a, "shape") else signature_of(a) for a in arrays)
        stage = self.fast.get(key)
        if stage is not None:
            with exact_types():
                results = stage.compiled(*stage.weights, *[arrays[k] for k in stage.places])
        else:
            results = self.run_staged(arrays, key)
        return self.give(results)

    def take(self, params: dict, k: int, name: str):
        """The array for a parameter, its type and lens checked."""
        try:
            value = params[name]
        except KeyError:
            hint = close_matches(name, params)
            raise Error(
                f"run: Parameter not found: {name} (expected {self.shapes[k]}; "
                f"given: {', '.join(map(str, params)) or 'nothing'}){hint}"
            ) from None
        shape = self.shapes[k]
        if shape.dims is None and (value is None or isinstance(value, (list, tuple, dict))):
            if value is None or isinstance(value, dict):  # an empty optional; a map of ONNX-ML
                return value
            return [v if isinstance(v, dict) else self.to_array(v) for v in value]
        if isinstance(value, Argument) and value.parts:
            return [self.to_array(v) for v in value.parts]
        array = self.to_array(value)
        if array.dtype != self.dtypes[k] or array.shape != shape.dims:
            array = self.check(name, array, shape)
        return array

    def to_array(self, value):
        """A NumPy array, or the JAX array if there is one, of a value given to `run`."""
        if type(value) is np.ndarray:
            return value if value.dtype.isnative else host_array(value)
        if isinstance(value, Argument):
            data = value.device_array()
            return value.numpy() if isinstance(data, np.ndarray) else data
        if isinstance(value, jax.Array):
            return value
        try:
            return host_array(value)
        except TypeError as error:
            raise TypeError(f"run: {error}") from None

    def check(self, name: str, array, shape: Shape):
        """`array` in the rank of the shape; an `Error` if its type or lens do not fit."""
        kind = from_dtype(array.dtype)
        if shape.is_rank0() and array.size == 1 and array.ndim <= 1:
            array = array.reshape(())
            if array.dtype == dtype_of(shape.type()):
                return array
        elif array.ndim == 0 and shape.dims == (1,):
            array = array.reshape((1,))
        fits = array.dtype == dtype_of(shape.type()) and (
            shape.dims is None
            or (
                array.ndim == len(shape.dims)
                and all(lo(d) <= n <= hi(d) for d, n in zip(shape.dims, array.shape, strict=True))
            )
        )
        if fits:
            return array
        got = Shape.make(kind, array.shape) if array.ndim else Shape.scalar_of(kind)
        reason = ""
        if array.dtype == dtype_of(shape.type()) and array.ndim == len(shape.dims or ()):
            bad = [
                f"axis {k} has size {n}, allowed is {d}"
                for k, (d, n) in enumerate(zip(shape.dims, array.shape, strict=True))
                if not lo(d) <= n <= hi(d)
            ]
            reason = f" ({'; '.join(bad)})"
        elif array.dtype != dtype_of(shape.type()):
            name_wanted = np.dtype(dtype_of(shape.type())).name
            reason = f" (its type is {array.dtype.name}; convert it: .astype({name_wanted!r}))"
        raise Error(
            f"run: Incorrect shape {{{got}}} for parameter: {name} should be: {shape}{reason}"
        )

    def give(self, results) -> list:
        """The results as arguments of the promised shapes."""
        return [finish(value, shape) for value, shape in zip(results, self.outputs, strict=True)]

    # -- building ------------------------------------------------------------------------------

    def warm(self) -> None:
        """Compiles what a static program will need, without running it."""
        if self.static and not any(s.subs for s in self.shapes):
            self.warm_for([() if s.is_rank0() else s.dims for s in self.shapes])

    def warm_for(self, sizes: list) -> None:
        """Compiles for inputs of these sizes, as far as no value of theirs is needed."""
        avals = [jax.ShapeDtypeStruct(s, d) for s, d in zip(sizes, self.dtypes, strict=True)]
        symbols = {} if self.static else bind_symbols(self.names, self.shapes, avals)
        with self.lock, exact_types():
            env = {self.inner[n]: a for n, a in zip(self.names, avals, strict=True)
                   if n in self.inner}  # fmt: skip
            children, key = self.root(self.main), signature(env)
            stage = children.get(key) or self.stage(self.main, 0, env, {}, children, key, symbols)
            if stage.last and stage.whole:
                self.remember(tuple(a.shape for a in avals), stage)

    def warm_optimals(self) -> None:
        """Compiles for the optimals of the dynamic dimensions in the background."""
        if self.static or any(s.subs or s.dims is None for s in self.shapes):
            return

        def work():
            for sizes in itertools.islice(optimal_sizes(self.shapes), self.limit):
                with contextlib.suppress(Exception):  # `run` compiles these then, and says why not
                    self.warm_for(sizes)

        self.background = threading.Thread(target=work, name="migraphx-optimals", daemon=True)
        self.background.start()

    def remember(self, key, stage) -> None:
        """Makes `stage` the short way for inputs of these dims."""
        order = [self.inner.get(n) for n in self.names]
        stage.places = [order.index(i) for i in stage.inputs]
        stage.weights = [self.weights[i] for i in stage.weight_ins]
        if len(self.fast) >= self.limit:
            self.fast.pop(next(iter(self.fast)))
        self.fast[key] = stage

    def place_weights(self) -> None:
        """Puts the weights on the device, once per program."""
        if self.weights is None:
            self.weights = {ins: device_weight(ins, self.device) for ins in weights_of(self.main)}

    def run_staged(self, arrays, key):
        """A call that is not known to be one stage."""
        env = {self.inner[n]: a for n, a in zip(self.names, arrays, strict=True) if n in self.inner}
        with exact_types():
            symbols = bind_symbols(self.names, self.shapes, arrays) if not self.static else {}
            results, stage = self.execute(self.main, env, symbols)
            if stage is not None:
                with self.lock:
                    self.remember(key, stage)
        return results

    def root(self, module: Module):
        return self.roots.setdefault(module, OrderedDict())

    def execute(self, module: Module, env: dict, symbols: dict):
        """Runs a module on concrete values; its results, and the stage if one was enough."""
        env, known = dict(env), {}
        position, children, key = 0, self.root(module), signature(env)
        first = None
        while True:
            stage = children.get(key)
            if stage is None:
                with self.lock:
                    stage = children.get(key) or self.stage(
                        module, position, env, known, children, key, symbols
                    )
            first = first or stage
            if stage.compiled is not None:
                outs = stage.compiled(
                    *[self.weights[i] for i in stage.weight_ins], *[env[i] for i in stage.inputs]
                )
                env.update(zip(stage.outputs, outs, strict=True))
            known.update(stage.known)
            env.update(stage.known)
            if stage.last:
                results = [env[i] for i in module.returned()]
                return results, first if stage is first and stage.whole else None
            position, children = stage.stop, stage.children
            if stage.needs is not None:
                value = np.asarray(env[stage.needs])
                known[stage.needs] = env[stage.needs] = value
                key = (value.shape, value.tobytes())
            else:
                ins = module.instructions[position]
                env[ins] = self.on_host(ins, env, symbols)
                position += 1
                key = signature({ins: env[ins]})

    def on_host(self, ins, env: dict, symbols: dict):
        """One instruction between stages: a host operator, or control flow with cut bodies."""
        from .control import HOST_CONTROL

        outer = dict(env)
        for module in ins.mods:
            for source in module.captured():
                if source.literal is not None and source not in outer:
                    outer[source] = self.weights.get(source, literal_value(source))
        args = [self.value(i, env) for i in ins.inputs_]
        with using(self.context(symbols, running=True)):
            if ins.op_.op_name in HOST_CONTROL:
                bodies = [HostBody(self, m, outer, symbols) for m in ins.mods]
                result = HOST_CONTROL[ins.op_.op_name](ins.op_, *map(to_host, args), bodies=bodies)
            else:
                result = compute(ins, [to_host(a) for a in args], outer)
        return fit_rank(result, ins.shape())

    def value(self, ins, env):
        if ins in env:
            return env[ins]
        if ins.literal is not None:
            return literal_value(ins)
        raise Error(f"program: {ins!r} is read before it is computed; call program.sort()")

    def context(self, symbols: dict, running: bool = False) -> Context:
        ctx = self.ctx
        return Context(ctx.platform, ctx.fast_math, ctx.tuned, symbols, running)

    def stage(self, module, position, env, known, children, key, symbols=None) -> Stage:
        """Traces and compiles from `position` up to the end or the next cut."""
        self.place_weights()
        instructions = module.instructions
        stop, needs = len(instructions), None
        inputs = [i for i in env if i not in known and is_array(env[i])]
        objects = {i: HostOnly() for i, v in env.items() if i not in known and not is_array(v)}
        avals = [aval(env[i]) for i in inputs]
        ctx = self.context(symbols or {})
        name = entry_name(self, module, position, inputs, env, known, objects, ctx)
        stage = from_disk(self, name, env)
        if stage is not None:
            return keep(children, key, stage, self.limit)
        weight_ins = list(self.weights)
        weight_avals = [aval(self.weights[i]) for i in weight_ins]
        part, notes = instructions[position:], {}
        returned = set(module.returned())
        wanted = [i for i in part if i in returned and i not in objects]
        try:
            jax.eval_shape(
                self.body(part, weight_ins, inputs, known | objects, ctx, wanted, notes),
                *weight_avals, *avals,
            )  # fmt: skip
        except Cut as cut:
            stop, needs = instructions.index(cut.ins), cut.needs
            part = instructions[position:stop]
        if needs is not None and needs not in part and needs in env and needs not in known:
            if stop == position:  # nothing to compute: only read the value
                stage = Stage([], [], [], stop, needs)
                to_disk(self, name, stage)
                return keep(children, key, stage, self.limit)
        if stop < len(instructions):
            later = reads(instructions[stop:], module)
            wanted = [i for i in part if (i in later or i is needs) and i not in objects]
            run = self.body(part, weight_ins, inputs, known | objects, ctx, wanted, notes)
            jax.eval_shape(run, *weight_avals, *avals)  # fills `notes`: which results are known
        outputs = [i for i in wanted if i not in notes["known"]]
        used = used_inputs(part, module)
        kept_weights = [i for i in weight_ins if i in used]
        kept_inputs = [i for i in inputs if i in used]
        last = stop == len(instructions)
        stage = Stage(kept_weights, kept_inputs, outputs, stop, needs, notes["known"], last)
        stage.whole = last and position == 0 and not stage.known and outputs == module.returned()
        if outputs:
            run = self.body(part, kept_weights, kept_inputs, known | objects, ctx, outputs)
            device = jax.sharding.SingleDeviceSharding(self.device)
            lowered = jax.jit(run, in_shardings=device, out_shardings=device).lower(
                *[aval(self.weights[i]) for i in kept_weights], *[aval(env[i]) for i in kept_inputs]
            )
            stage.compiled = lowered.compile(compiler_options=compiler_options(self, lowered, part))
        to_disk(self, name, stage)
        return keep(children, key, stage, self.limit)

    def body(self, part, weight_ins, inputs, known, ctx, wanted, notes=None):
        """The function of one stage, for tracing."""

        def run(*arrays):
            env = dict(zip(weight_ins + inputs, arrays, strict=True)) | known
            for ins in inputs:
                env[ins] = fit_rank(env[ins], ins.shape())
            with using(ctx):
                literals(part, env)
                run_instructions(part, env)
            if notes is not None:
                notes["known"] = {
                    i: env[i] for i in wanted if not holds_tracer(env[i]) and not i.is_param
                }
                return [env[i] for i in wanted if i not in notes["known"]]
            return [env[i] for i in wanted]

        return run


class HostBody:
    """A module run by the executable, stage by stage, for control flow on the host."""

    def __init__(self, executable, module, env, symbols):
        self.executable, self.module, self.env, self.symbols = executable, module, env, symbols
        self.outer = {i: env[i] for i in module.captured() if i in env}
        self.plain = computed_by_numpy(module)

    def __call__(self, *args) -> tuple:
        env = dict(self.outer)
        for param, value in zip(self.module.parameters(), args, strict=True):
            env[param] = fit_rank(value, param.shape())
        if self.plain and holds_elements(env.values()) <= KNOWN_LIMIT:
            # NumPy needs microseconds for an operator on little data, and no compilation for
            # sizes that differ in each iteration.
            return run_module(self.module, {i: to_host(v) for i, v in env.items()})
        results, _ = self.executable.execute(self.module, env, self.symbols)
        return tuple(results)


def device_weight(ins, device):
    """The array of a weight on the device, shared by every program that holds the literal."""
    cache = _WEIGHTS.setdefault(ins.literal, {}) if ins.literal is not None else {}
    if device not in cache:
        cache[device] = jax.device_put(literal_value(ins), device)
    return cache[device]


class _ByIdentity:
    """A weak map from arguments, which are compared by identity here, to what belongs to them."""

    def __init__(self):
        import weakref

        self.entries, self.ref = {}, weakref.ref

    def setdefault(self, key, default):
        found = self.entries.get(id(key))
        if found is None:
            number = id(key)
            drop = self.ref(key, lambda _: self.entries.pop(number, None))
            found = self.entries[id(key)] = (drop, default)
        return found[1]


_WEIGHTS = _ByIdentity()


def finish(value, shape: Shape) -> Argument:
    """A result as an argument of the promised shape, complete when it is handed out.

    A sequence becomes a tuple argument; an optional that holds nothing is None; maps of ONNX-ML
    stay dicts.
    """
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, (tuple, list)):
        if any(isinstance(v, dict) for v in value):
            return list(value)
        subs = shape.subs or [None] * len(value)
        return Argument.tuple_of(
            finish(v, s or Shape.unknown(from_dtype(v.dtype)))
            for v, s in zip(value, subs, strict=True)
        )
    if isinstance(value, jax.Array):
        value.block_until_ready()
    elif isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value) if value.ndim else value
    if shape.dims is None or shape.dynamic():
        kind = shape.type() if shape.type() != from_dtype(value.dtype) else None
        dims = value.shape
        made = Shape.make(kind or from_dtype(value.dtype), dims)
        if not dims:
            made = Shape.scalar_of(made.type())
        return Argument.of(value, made)
    if value.shape != shape.dims and not shape.is_rank0():
        value = value.reshape(shape.dims)
    return Argument.of(value, shape)


__all__ = ["Body", "Executable", "compile_program", "is_weight", "output_shape"]
