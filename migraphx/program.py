"""Programs: modules, parameters, compiling and running."""

from __future__ import annotations

import weakref

from .errors import Error
from .graph import Instruction, Module
from .shape import Shape


class Program:
    """The computation graph to be compiled and run.

    A program starts with an empty module called ``main``. It is built by hand, parsed
    (`parse_onnx`, `parse_tf`) or loaded (`load`).
    """

    def __init__(self):
        self._modules = {"main": Module(self, "main")}
        self._executable = None
        self._compiled_version = None
        self._target = None
        self._options = {}
        self._normalized = weakref.WeakSet()  # instructions with attributes in normal form

    # -- modules -------------------------------------------------------------------------------

    @property
    def main(self) -> Module:
        """The main module."""
        return self._modules["main"]

    def get_main_module(self) -> Module:
        """The main module; it keeps the program alive."""
        return self.main

    def create_module(self, name: str) -> Module:
        """A new module, or the existing one of that name."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"create_module: the name must be a non-empty str, got {name!r}")
        return self._modules.setdefault(name, Module(self, name))

    def get_modules(self) -> list:
        """All modules: main, those it uses in order of use, then unused ones."""
        order = {"main": self.main}
        _walk(self.main, order)
        return list((order | self._modules).values())

    def sort(self) -> None:
        """Orders the instructions of each module so that none stands before what it reads."""
        for module in self.get_modules():
            module.sort()

    # -- interface -----------------------------------------------------------------------------

    def get_parameter_names(self) -> list:
        """Names of the inputs in the order in which they were added."""
        return self.main.get_parameter_names()

    def get_parameter_shapes(self) -> dict:
        """Name of each input and its shape."""
        return {p.op_.parameter: p.shape() for p in self.main.parameters()}

    def get_output_shapes(self) -> list:
        """Shapes of the results: the standard, packed shapes that `run` gives."""
        return [output_shape(s) for s in self.main.get_output_shapes()]

    # -- compiling and running -----------------------------------------------------------------

    def compile(
        self,
        t,
        offload_copy: bool = True,
        fast_math: bool = True,
        exhaustive_tune: bool = False,
        advance_backend_options: dict | None = None,
    ) -> None:
        """Translates the program for a target and compiles what can be compiled now.

        Parameters
        ----------
        t : target
            ``migraphx.get_target("ref")``, ``"cpu"`` or ``"gpu"``; a name alone will do.
        offload_copy : bool
            Accepted and recorded: results of a GPU are copied to the host when they are read.
        fast_math : bool
            False asks for the highest precision of matrix products and plain formulas.
        exhaustive_tune : bool
            Try several forms of an operator and keep the fastest.
        advance_backend_options : dict
            XLA compile options (``xla_*``) and two of this project: ``shape_cache_size``, how
            many sizes of the inputs stay compiled (512), and ``compile_optimals``, True to
            compile for the optimals of dynamic dimensions in the background. Others are ignored.

        Notes
        -----
        The program as printed stays what it was; compiling works on a copy. A program changed
        after `compile` is compiled anew at its next `run`.
        """
        from .target import as_target

        target = as_target(t)
        self._options = {
            "offload_copy": bool(offload_copy),
            "fast_math": bool(fast_math),
            "exhaustive_tune": bool(exhaustive_tune),
            "advance_backend_options": dict(advance_backend_options or {}),
        }
        self._target = target
        self._build(eager=True)

    def is_compiled(self) -> bool:
        """True after `compile`."""
        return self._target is not None

    def run(self, params: dict | None = None) -> list:
        """Runs the program.

        Parameters
        ----------
        params : dict of str to argument, NumPy or JAX array, DLPack tensor or number
            A value for every input; surplus names are ignored.

        Returns
        -------
        list of argument
            The results, standard and packed.

        Raises
        ------
        Error
            if an input is missing or its type or lens differ from what the program takes.
        """
        return self._ready().run(params or {})

    def run_async(self, params: dict, stream=None, stream_name: str = "") -> list:
        """As `run`, with the arguments of MIGraphX's function for a stream of one's own.

        JAX has its own streams: `stream` (an address) and `stream_name` are accepted and not
        used, and the results are complete when they are handed out.
        """
        return self.run(params)

    def to_jax(self):
        """The program as a pure JAX function, to differentiate, batch, shard and compose.

        Returns
        -------
        function : callable
            ``function(weights, inputs)`` with a dict of inputs by parameter name; a list of JAX
            arrays. It may be given to `jax.jit`, `jax.grad`, `jax.vmap` and the like. Inputs are
            cast to the types that the program takes.
        weights : dict of str to NumPy array
            A pytree of the program's literals that hold two floats or more, and of all of 512
            bytes and more, in the order and with the dims that they have in the program.

        Raises
        ------
        Error
            while tracing, if a size depends on data: such a program runs in stages (`run`).

        Examples
        --------
        >>> function, weights = program.to_jax()
        >>> loss = lambda w, x: function(w, {"x": x})[0].sum()
        >>> slopes = jax.grad(loss)(weights, x)
        """
        from .target import as_jax

        return as_jax(self)

    def export(self, platforms=("cpu", "cuda", "rocm", "tpu")) -> bytes:
        """The program as a StableHLO artifact that runs without this package.

        Parameters
        ----------
        platforms : str or sequence of str
            What the artifact can run on, of ``cpu``, ``cuda``, ``rocm`` and ``tpu``.

        Returns
        -------
        bytes
            For `jax.export.deserialize`; its `call` takes a dict of inputs by parameter name.
            Dynamic sizes stay symbolic, so one artifact serves all of them. 64-bit inputs need
            ``jax.enable_x64``.
        """
        from .target import export_program

        return export_program(self, platforms)

    def _ready(self):
        executable = self._executable
        if executable is None or self._compiled_version != self._version():
            executable = self._build(eager=False)
        return executable

    def _build(self, eager: bool):
        from .target import get_target, translate_program

        if not self.main.instructions:
            raise Error("program: there is nothing to run: the main module is empty")
        version = self._version()
        target = self._target or get_target("ref")
        executable = translate_program(self, target, self._options, eager=eager)
        self._executable, self._compiled_version = executable, version
        return executable

    def _version(self) -> tuple:
        return tuple(m.version for m in self._modules.values())

    def verify(self, target, mode="outputs", params: dict | None = None, **options):
        """Compares the program on a target with plain mathematics on the CPU.

        Parameters
        ----------
        target : target
            What is verified. The reference computes without fast mathematics, at the highest
            precision.
        mode : program_verify_mode
            ``outputs``, ``per_instruction`` or ``bisect``.
        params : dict of str to argument
            Inputs; random ones stand in for those left out. Dynamic parameters must be given.
        rms_tol, atol, rtol : float
            Tolerances. A comparison passes when its RMS error is at most `rms_tol`; the others
            count the elements that differ. By default 0.001, or 0.08 for programs with half or
            bfloat16 (or such a `precision`) and 0.8 for those with 8-bit floats.
        precision : {"fp16", "bf16", "int8", "fp8"}
            Quantises what runs on the target first; int8 and fp8 calibrate with the inputs.
        ref_use_double : bool
            Computes the reference in double, with nothing quantised.
        compiled_model : program or path
            What to run on the target instead of this program.

        Returns
        -------
        program_verify_result
            True if all comparisons passed; prints as a report.

        Raises
        ------
        Error
            for an unknown option, mode or parameter, or a dynamic parameter that is not given.
        """
        from .verify import verify

        try:
            return verify(self, target, mode, params, **options)
        except TypeError as error:
            if "keyword argument" in str(error):
                raise Error(f"verify: {str(error).split('() ')[-1]}") from None
            raise

    # -- copies, comparison, text --------------------------------------------------------------

    def clone(self) -> Program:
        """A copy that shares the literals' data, and the weights on the device once compiled."""
        copy = Program()
        copy_modules(self, copy)
        copy._target, copy._options = self._target, dict(self._options)
        copy._executable = self._executable
        if self._compiled_version == self._version():
            copy._compiled_version = copy._version()
        return copy

    __copy__ = clone

    def __deepcopy__(self, memo):
        return self.clone()

    def __reduce__(self):
        raise TypeError("cannot pickle 'program' object; use migraphx.save or save_buffer")

    def __eq__(self, other):
        if not isinstance(other, Program):
            return NotImplemented
        return same_graph(self, other)

    __hash__ = None

    def __repr__(self):
        from .printing import program_text

        return program_text(self)

    def print(self) -> None:
        """Writes the program to standard output."""
        print(repr(self))

    def to_py(self, weights: bool = False) -> str:
        """Python text that builds this program.

        Parameters
        ----------
        weights : bool
            True writes every literal whole and exactly: the text builds a program that prints and
            computes the same. False writes what MIGraphX writes: 6 digits, and
            ``generate_argument`` in place of literals of 1,024 elements and more.
        """
        from .printing import to_py

        return to_py(self, weights)

    def to_dot(self) -> str:
        """The graph in Graphviz's language, a cluster for each module."""
        from .display import to_dot

        return to_dot(self)

    def _repr_html_(self) -> str:
        from .display import program_html

        return program_html(self)


def output_shape(shape: Shape) -> Shape:
    """The standard, packed form of a shape; rank 0 stays lens {1}, strides {0}."""
    if shape.subs:
        return Shape.tuple_of(output_shape(s) for s in shape.subs)
    if shape.dims is None or shape.is_rank0():
        return shape
    return shape.standard_of()


def _walk(module: Module, order: dict) -> None:
    for ins in module.instructions:
        for mod in ins.mods:
            if mod.name() not in order:
                order[mod.name()] = mod
                _walk(mod, order)


def copy_modules(source: Program, into: Program) -> dict:
    """Copies all modules of `source` into the empty program `into`; old to new instructions."""
    modules = {}
    for module in source._modules.values():
        modules[module] = into.create_module(module.name())
    done: dict[Instruction, Instruction] = {}

    def fill(module):
        new = modules[module]
        for ins in module.instructions:
            for mod in ins.mods:
                if not modules[mod].instructions:
                    fill(mod)
            copy = Instruction(
                ins.op_,
                [done[i] for i in ins.inputs_],
                [modules[m] for m in ins.mods],
                ins._shape,
                ins.literal,
            )
            copy.order, copy.debug = ins.order, ins.debug
            done[ins] = new._place(copy, len(new.instructions))
            if ins in source._normalized:
                into._normalized.add(copy)
            if ins.is_param:
                while next(new._counter) < ins.order:
                    pass

    for module in source.get_modules():
        if not modules[module].instructions:
            fill(module)
    return done


def same_graph(a: Program, b: Program) -> bool:
    """True if two programs have equal modules: structure, attributes, shapes and literal data."""
    left, right = a.get_modules(), b.get_modules()
    if [m.name() for m in left] != [m.name() for m in right]:
        return False
    place = {}
    for side in (left, right):
        for number, module in enumerate(side):
            for index, ins in enumerate(module.instructions):
                place[ins] = (number, index)
    for one, two in zip(left, right, strict=True):
        if len(one) != len(two):
            return False
        if not all(_same(x, y, place) for x, y in zip(one, two, strict=True)):
            return False
    return True


def _same(x: Instruction, y: Instruction, place: dict) -> bool:
    if x.op_ != y.op_ or x._shape != y._shape:
        return False
    if [place.get(i) for i in x.inputs_] != [place.get(i) for i in y.inputs_]:
        return False
    if [m.name() for m in x.mods] != [m.name() for m in y.mods]:
        return False
    if x.literal is None:
        return True
    one, two = x.literal.numpy(), y.literal.numpy()
    return one.dtype == two.dtype and one.tobytes() == two.tobytes()
