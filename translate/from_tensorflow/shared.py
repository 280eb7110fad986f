"""The one place from which this front end reaches into the ONNX one: what both say alike.

The builder and the functions behind ONNX operators that mean the same in TensorFlow are used as
they are; everything about nodes, names, types and layout is this package's own.
"""

from __future__ import annotations

from ..from_onnx.builder import Builder
from ..from_onnx.calls import checked
from ..from_onnx.control import LoopShape, discard, elements
from ..from_onnx.index import gather, gather_nd, non_zero, unique
from ..from_onnx.math import cast_to, clip_between, softplus, softsign, where_common
from ..from_onnx.nn import add_bias, batch_norm_training, conv_transpose, product, window
from ..from_onnx.reduce import cum_prod, reduction, squeeze_axes
from ..from_onnx.registry import HANDLERS as ONNX_HANDLERS
from ..from_onnx.registry import Const, Deferred, Sizes
from ..from_onnx.registry import Handler as OnnxHandler
from ..from_onnx.resize import along, matrix, resize, weights_of
from ..from_onnx.tensor import (
    constant_of_shape,
    cut,
    expand,
    join,
    make_range,
    pad_by,
    reshape,
    reverse_sequence,
    shape_of,
    size_of,
    slice_by,
    tile,
)

__all__ = [
    "ONNX_HANDLERS",
    "Builder",
    "Const",
    "Deferred",
    "LoopShape",
    "OnnxHandler",
    "Sizes",
    "add_bias",
    "along",
    "batch_norm_training",
    "cast_to",
    "checked",
    "clip_between",
    "constant_of_shape",
    "conv_transpose",
    "cum_prod",
    "cut",
    "discard",
    "elements",
    "expand",
    "gather",
    "gather_nd",
    "join",
    "make_range",
    "matrix",
    "non_zero",
    "pad_by",
    "product",
    "reduction",
    "reshape",
    "resize",
    "reverse_sequence",
    "shape_of",
    "size_of",
    "slice_by",
    "softplus",
    "softsign",
    "squeeze_axes",
    "tile",
    "unique",
    "weights_of",
    "where_common",
    "window",
]
