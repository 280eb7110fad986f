"""The MIGraphX Python API on JAX and XLA.

Start with `parse_onnx` or `load`, then ``p.compile(migraphx.get_target("ref"))`` and ``p.run``.
Importing this package loads no JAX and changes no setting of the process.
"""

from __future__ import annotations

from .api import (
    allocate_gpu,
    from_gpu,
    get_onnx_operators,
    get_tf_operators,
    gpu_sync,
    load,
    load_buffer,
    parse_onnx,
    parse_onnx_buffer,
    parse_tf,
    save,
    save_buffer,
    to_gpu,
)
from .argument import Argument as argument
from .argument import argument_from_pointer, create_argument, fill_argument, generate_argument
from .dims import Dim as dynamic_dimension
from .errors import Error
from .graph import Instruction as instruction_ref
from .graph import Module as module
from .macros import Macro as macro
from .ops import Op as op
from .program import Program as program
from .quantize import (
    autocast_fp8,
    quantize_bf16,
    quantize_fp8,
    quantize_fp16,
    quantize_int4_weights,
    quantize_int8,
)
from .shape import Shape as shape
from .target import Target as target
from .target import get_target
from .verify import VerifyMode as program_verify_mode
from .verify import VerifyResult as program_verify_result

__version__ = "0.1.0"

__all__ = [
    "Error",
    "allocate_gpu",
    "argument",
    "argument_from_pointer",
    "autocast_fp8",
    "create_argument",
    "dynamic_dimension",
    "fill_argument",
    "from_gpu",
    "generate_argument",
    "get_onnx_operators",
    "get_target",
    "get_tf_operators",
    "gpu_sync",
    "instruction_ref",
    "load",
    "load_buffer",
    "macro",
    "module",
    "op",
    "parse_onnx",
    "parse_onnx_buffer",
    "parse_tf",
    "program",
    "program_verify_mode",
    "program_verify_result",
    "quantize_bf16",
    "quantize_fp16",
    "quantize_fp8",
    "quantize_int4_weights",
    "quantize_int8",
    "save",
    "save_buffer",
    "shape",
    "target",
    "to_gpu",
]
