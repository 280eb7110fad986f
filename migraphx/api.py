"""The module-level functions: reading and writing models."""

from __future__ import annotations

from .program import Program


def parse_onnx(
    filename,
    default_dim_value: int = 0,
    default_dyn_dim_value=None,
    map_input_dims: dict | None = None,
    map_dyn_input_dims: dict | None = None,
    skip_unknown_operators: bool = False,
    print_program_on_error: bool = False,
    max_loop_iterations: int = 10,
    limit_max_iterations: int = 65535,
    use_debug_symbols: bool = False,
    dim_params: dict | None = None,
) -> Program:
    """Loads and parses an ONNX file.

    Parameters
    ----------
    filename : str or Path
        The model; its external data must lie in the same folder or below.
    default_dim_value : int
        Size for every dimension that the model leaves open.
    default_dyn_dim_value : dynamic_dimension
        Instead: a range for each of them.
    map_input_dims : dict of str to list of int
        Sizes of single inputs.
    map_dyn_input_dims : dict of str to list of dynamic_dimension
        Dynamic sizes of single inputs.
    skip_unknown_operators : bool
        Let unknown operators stand as ``unknown:NAME`` instead of refusing the model.
    print_program_on_error : bool
        Print what has been parsed when parsing fails.
    max_loop_iterations, limit_max_iterations : int
        Iterations of a loop without trip count, and the most that are allowed.
    use_debug_symbols : bool
        Note the ONNX node on each instruction.
    dim_params : dict of str to dynamic_dimension
        Sizes of named dimensions.

    Raises
    ------
    Error
        if the file cannot be read, or a node cannot be translated (the text names it).
    """
    from .target import parse_onnx_file

    options = dict(locals())
    options.pop("parse_onnx_file")
    return parse_onnx_file(options.pop("filename"), **options)


def parse_onnx_buffer(
    buffer,
    default_dim_value: int = 0,
    default_dyn_dim_value=None,
    map_input_dims: dict | None = None,
    map_dyn_input_dims: dict | None = None,
    skip_unknown_operators: bool = False,
    print_program_on_error: bool = False,
    max_loop_iterations: int = 10,
    limit_max_iterations: int = 65535,
    use_debug_symbols: bool = False,
    external_data_path: str = "",
    dim_params: dict | None = None,
) -> Program:
    """As `parse_onnx`, from the bytes of a model; external data lie in `external_data_path`."""
    from .target import parse_onnx_bytes

    options = dict(locals())
    options.pop("parse_onnx_bytes")
    return parse_onnx_bytes(options.pop("buffer"), **options)


def parse_tf(
    filename,
    is_nhwc: bool = True,
    batch_size: int = 1,
    map_input_dims: dict | None = None,
    output_names: list | None = None,
) -> Program:
    """Loads and parses a frozen TensorFlow graph.

    Parameters
    ----------
    filename : str or Path
        A GraphDef, ``.pb`` or ``.pbtxt``.
    is_nhwc : bool
        Parameters and results of rank 4 are images: they have the channels last in the graph and
        second in the program. If false, they stay as they are in the graph.
    batch_size : int
        Size for dimensions that the graph leaves open.
    map_input_dims : dict of str to list of int
        Sizes of single inputs, as the program's parameter has them (channels second).
    output_names : list of str
        Nodes whose results are the outputs, ``node`` or ``node:1``; by default those that
        nothing reads. Only what they need is read.

    Raises
    ------
    Error
        if the file cannot be read, is a SavedModel, or a node cannot be translated (the text
        names it).
    """
    from .target import parse_tf_file

    return parse_tf_file(
        filename,
        is_nhwc=is_nhwc,
        batch_size=batch_size,
        map_input_dims=map_input_dims,
        output_names=output_names,
    )


def get_onnx_operators() -> list:
    """Names of the ONNX operators that can be parsed, sorted."""
    from .target import onnx_operators

    return onnx_operators()


def get_tf_operators() -> list:
    """Names of the TensorFlow operators that can be parsed, sorted."""
    from .target import tf_operators

    return tf_operators()


def load(filename, format: str = "msgpack") -> Program:
    """Loads a program from a file; `format` is ``"msgpack"`` or ``"json"``."""
    from .files import load as load_file

    return load_file(filename, format)


def load_buffer(buffer) -> Program:
    """Loads a program from the bytes of a msgpack file."""
    from .files import load_buffer as load_bytes

    return load_bytes(buffer)


def save(p: Program, filename, format: str = "msgpack") -> None:
    """Saves a program to a file; `format` is ``"msgpack"`` or ``"json"``."""
    from .files import save as save_file

    save_file(p, filename, format)


def save_buffer(p: Program) -> bytes:
    """The bytes of the msgpack file of a program."""
    from .files import save_buffer as save_bytes

    return save_bytes(p)


def to_gpu(arg, host: bool = False):
    """A copy of an argument on the GPU that `get_target("gpu")` means.

    Parameters
    ----------
    arg : argument
        Or whatever an argument is made of.
    host : bool
        Accepted for scripts: memory of the host that a GPU can reach is not told apart.

    Raises
    ------
    Error
        if JAX finds no GPU.
    """
    from .argument import Argument
    from .target import get_target, put

    arg = arg if isinstance(arg, Argument) else Argument(arg)
    return Argument.of(put(arg.numpy(), get_target("gpu")), arg.get_shape())


def from_gpu(arg, host: bool = False):
    """A copy of an argument on the host."""
    from .argument import Argument

    arg = arg if isinstance(arg, Argument) else Argument(arg)
    return Argument.of(arg.numpy().copy(), arg.get_shape())


def allocate_gpu(shape, host: bool = False):
    """An argument of zeros on the GPU.

    Raises
    ------
    Error
        if JAX finds no GPU.
    """
    from .argument import fill_argument

    return to_gpu(fill_argument(shape, 0), host)


def gpu_sync() -> None:
    """Waits until everything that was started on a device is done."""
    from .target import synchronize

    synchronize()
