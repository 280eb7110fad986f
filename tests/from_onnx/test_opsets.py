"""Operators whose meaning changed from opset to opset: one row for each that differs.

What is right says onnxruntime, or where it does not take the old version: onnx.reference
("reference"), NumPy (a function), or onnxruntime for another opset of the same meaning (a number).
"""

import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_models import prepared, same

ORT, REFERENCE = "onnxruntime", "reference"


def row(opsets, inputs, body, out="float[] y", *, weights="", by=ORT, rtol=1e-5, low=-2.0, **feeds):
    """Inputs, body, outputs and initializers in ONNX's text form; inputs are random numbers.

    `feeds` are inputs given as they are; `low` bounds the random floats, whose width is 4.
    """
    opsets = (opsets,) if isinstance(opsets, int) else opsets
    return [(opset, inputs, body, out, weights, by, rtol, low, feeds) for opset in opsets]


def axis_after(x, b, function=np.add):
    """What `axis=1, broadcast=1` meant: b's axes stand from axis 1 of x on."""
    return function(x, b[:, None])


def one_hot_rows(x):
    """Hardmax of the rows of a matrix."""
    return np.eye(x.shape[1], dtype=x.dtype)[x.argmax(1)]


def normalised(x, scale, bias, mean, var, each=True):
    """Batch normalisation with numbers per channel (`each`), or per element without the batch."""
    if each:
        scale, bias, mean, var = (v[:, None] for v in (scale, bias, mean, var))
    return (x - mean) / np.sqrt(var + np.float32(0.01)) * scale + bias


def batch_first(name):
    """What a recurrence with `layout=1` is by onnxruntime, which knows only `layout=0`."""

    def expected(x, w, r):
        model = model_of(14, "float[4,2,3] x, float[2,N,3] w, float[2,N,5] r",
                         f'y, h = {name} <hidden_size = 5, direction = "bidirectional"> (x, w, r)',
                         "float[] y, float[] h")  # fmt: skip
        y, h = right(model, ORT, {"x": x.transpose(1, 0, 2), "w": w, "r": r})
        return y.transpose(2, 0, 1, 3), h.transpose(1, 0, 2)

    return expected


def nhwc_conv(x, w):
    """The convolution of channels last (NHWC; weights OHWI) that onnxruntime has no kernel for."""
    settings = "group = 2, strides = [2, 1], pads = [1, 0, 1, 1]"
    model = model_of(11, "float[1,4,5,6] x, float[6,2,3,2] w", f"y = Conv <{settings}> (x, w)",
                     "float[] y")  # fmt: skip
    feeds = {"x": x.transpose(0, 3, 1, 2), "w": w.transpose(0, 3, 1, 2)}
    return right(model, ORT, feeds)[0].transpose(0, 2, 3, 1)


# fmt: off
ROWS = [
    # -- broadcasting by attributes, up to opset 6
    *row(6, "float[2,3,4] x, float[3] b", "y = Add <axis = 1, broadcast = 1> (x, b)", by=axis_after),
    *row(6, "float[2,3,4] x, float[3] b", "y = Mul <axis = 1, broadcast = 1> (x, b)",
         by=lambda x, b: axis_after(x, b, np.multiply)),
    *row(6, "float[2,3,4] x, float[3,4] b", "y = Sub <broadcast = 1> (x, b)", by=np.subtract),
    *row(6, "float[2,3,4] x, float[2] b", "y = Div <axis = 0, broadcast = 1> (x, b)",
         by=lambda x, b: x / b[:, None, None]),
    *row(1, "float[2,3,4] x, float[3] b", "y = Add <axis = 1, broadcast = 1> (x, b)", by=axis_after),
    *row(6, "float[2,3] x, float[3] b", "y = Pow <broadcast = 1, axis = 1> (x, b)", by=np.power, low=1),
    *row(6, "float[2,3,4] x, float[3] b", "y = Greater <axis = 1, broadcast = 1> (x, b)", "bool[] y",
         by=lambda x, b: axis_after(x, b, np.greater)),
    *row(6, "float[2,3] a, float[3,4] b, float[4] c", "y = Gemm <broadcast = 1> (a, b, c)",
         by=lambda a, b, c: a @ b + c),
    *row((7, 9), "float[2,3] a, float[3,4] b, float[1,4] c", "y = Gemm <alpha = 2.0, beta = 0.5> (a, b, c)"),
    *row(11, "float[3,2] a, float[3,4] b", "y = Gemm <transA = 1> (a, b)"),
    *row((7, 9, 16), "float[2,3,4] x, float[3,1] s", "y = PRelu (x, s)"),
    *row(6, "float[2,3,4] x, float[3] s", "y = PRelu (x, s)",
         by=lambda x, s: np.where(x < 0, x * s[:, None], x)),
    *row(6, "float[2,3] a, float[2,3] b", "y = Max (a, b)", by=np.maximum),
    *row((8, 12, 13), "float[2,3] a, float[3] b, float[2,1] c", "y = Max (a, b, c)"),
    *row((8, 13), "float[2,3] a, float[3] b", "y = Mean (a, b)"),
    *row((12, 13), "int32[4] a, int32[4] b", "y = Min (a, b)", "int32[] y"),
    *row((7, 12, 13), "float[2,3] a, float[3] b", "y = Pow (a, b)", low=1),
    *row((12, 15), "float[4] a, int64[4] b", "y = Pow (a, b)", low=1),
    *row((7, 11, 13), "int64[4] a, int64[4] b", "y = Equal (a, b)", "bool[] y"),
    # -- axes as attributes, then as inputs; negative ones from opset 11 (13)
    *row((1, 7, 11, 12), "float[2,3,4] x", "y = Softmax (x)"),  # over axes 1 and 2
    *row((13, 24), "float[2,3,4] x", "y = Softmax (x)"),
    *row((7, 11, 12, 13), "float[2,3,4] x", "y = Softmax <axis = 0> (x)"),
    *row((11, 12, 13), "float[2,3,4] x", "y = LogSoftmax <axis = -2> (x)"),
    *row((7, 12, 13), "float[2,3,4] x", "y = LogSoftmax <axis = 1> (x)"),
    *row((7, 11, 12, 13), "float[2,3,4] x", "y = Hardmax <axis = 1> (x)"),
    *row(12, "float[2,3,4] x", "y = Hardmax (x)",
         by=lambda x: one_hot_rows(x.reshape(2, 12)).reshape(x.shape)),
    *row(13, "float[2,3,4] x", "y = Hardmax (x)"),
    *row((7, 9, 11, 13, 21), "float[2,3,4] x", "y = Flatten <axis = 2> (x)"),
    *row((11, 13, 21), "float[2,3,4] x", "y = Flatten <axis = -1> (x)"),
    *row((1, 11, 12), "float[2,3,4] x", "y = ReduceSum <axes = [1], keepdims = 0> (x)"),
    *row((11, 12), "float[2,3,4] x", "y = ReduceSum <axes = [-1]> (x)"),
    *row((12, 13), "float[2,3,4] x", "y = ReduceSum (x)"),
    *row(13, "float[2,3,4] x", "y = ReduceSum <keepdims = 0> (x, a)", weights="int64[1] a = {-1}"),
    *row(13, "float[2,3,4] x", "y = ReduceSum <noop_with_empty_axes = 1> (x)"),
    *row(13, "float[2,3,4] x", "y = ReduceSum <noop_with_empty_axes = 1> (x, a)", weights="int64[0] a = {}"),
    *row(13, "float[2,3,4] x, int64[1] a", "y = ReduceSum (x, a)", a=np.array([1])),
    *[r for name in ("Max", "Min", "Mean", "Prod", "L1", "L2", "SumSquare")
      for r in [*row((7, 11, 13), "float[2,3,4] x", f"y = Reduce{name} <axes = [0, 2]> (x)"),
                *row(18, "float[2,3,4] x", f"y = Reduce{name} (x, a)", weights="int64[2] a = {0, 2}")]],
    *[r for name in ("LogSum", "LogSumExp")
      for r in [*row((7, 13), "float[2,3,4] x", f"y = Reduce{name} <axes = [1]> (x)", low=0.5),
                *row(18, "float[2,3,4] x", f"y = Reduce{name} (x, a)", weights="int64[1] a = {1}", low=0.5)]],
    *row(18, "float[2,3] x", "y = ReduceMax <noop_with_empty_axes = 1> (x)"),
    *row(20, "bool[2,3] x", "y = ReduceMax (x, a)", "bool[] y", weights="int64[1] a = {1}"),
    *row((7, 11, 12), "float[1,3,1] x", "y = Squeeze <axes = [0]> (x)"),
    *row((11, 12), "float[1,3,1] x", "y = Squeeze <axes = [-1]> (x)"),
    *row((7, 13), "float[1,3,1] x", "y = Squeeze (x)"),
    *row((13, 21), "float[1,3,1] x", "y = Squeeze (x, a)", weights="int64[1] a = {-1}"),
    *row((7, 11), "float[3,4] x", "y = Unsqueeze <axes = [0, 3]> (x)"),
    *row(11, "float[3,4] x", "y = Unsqueeze <axes = [-1]> (x)"),
    *row((13, 21), "float[3,4] x", "y = Unsqueeze (x, a)", weights="int64[2] a = {-1, 0}"),
    *row(1, "float[6,2] x", "y, z = Split <axis = 0, split = [2, 4]> (x)", "float[] y, float[] z",
         by=lambda x: (x[:2], x[2:])),
    *row((2, 11), "float[6,2] x", "y, z = Split <axis = 0, split = [2, 4]> (x)", "float[] y, float[] z"),
    *row((2, 11, 13), "float[6,2] x", "y, z = Split (x)", "float[] y, float[] z"),
    *row(11, "float[6,2] x", "y, z = Split <axis = -2> (x)", "float[] y, float[] z"),
    *row((13, 18), "float[6,2] x", "y, z = Split (x, s)", "float[] y, float[] z", weights="int64[2] s = {1, 5}"),
    *row(18, "float[7,2] x", "y, z, v = Split <num_outputs = 3> (x)", "float[] y, float[] z, float[] v"),
    *row((1, 11, 13), "float[4,3] x", "y = Gather <axis = 1> (x, i)", weights="int64[2] i = {2, 0}"),
    *row((11, 13), "float[4,3] x", "y = Gather (x, i)", weights="int64[2] i = {-1, 0}"),
    *row(1, "float[2,3] a, float[2,3] b", "y = Concat (a, b)", by=lambda a, b: np.concatenate([a, b], 1)),
    *row((4, 11, 13), "float[2,3] a, float[2,3] b", "y = Concat <axis = 0> (a, b)"),
    *row((9, 11), "float[4,3] x, bool[3] c", "y = Compress <axis = 1> (x, c)", c=np.array([True, False, True])),
    *row(11, "float[4,3] x, bool[3] c", "y = Compress <axis = -1> (x, c)", c=np.array([True, False, True])),
    # -- indices
    *row((1, 7, 9), "float[4,5] x", "y = Slice <starts = [1, -3], ends = [9, -1]> (x)"),
    *row(9, "float[4,5] x", "y = Slice <axes = [1], starts = [-9], ends = [2]> (x)"),
    *row((10, 11, 13), "float[4,5] x", "y = Slice (x, s, e, a, t)",
         weights="int64[2] s = {-1, 0}, int64[2] e = {-9, 5}, int64[2] a = {0, 1}, int64[2] t = {-2, 2}"),
    *row((11, 13), "float[4,5] x", "y = Slice (x, s, e, a)",
         weights="int64[1] s = {1}, int64[1] e = {-1}, int64[1] a = {-1}"),
    *row((1, 9), "float[3,6] x", "y, i = TopK <k = 2> (x)", "float[] y, int64[] i"),
    *row((10, 11), "float[3,6] x", "y, i = TopK <axis = 0> (x, k)", "float[] y, int64[] i", weights="int64[1] k = {2}"),
    *row((11, 24), "float[3,6] x", "y, i = TopK <largest = 0> (x, k)", "float[] y, int64[] i", weights="int64[1] k = {3}"),
    *row(11, "int64[3,6] x", "y, i = TopK (x, k)", "int64[] y, int64[] i", weights="int64[1] k = {3}",
         x=np.array([[3, 1, 3, 2, 5, 5], [0, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6]])),
    *[r for name in ("ArgMax", "ArgMin") for r in [
        *row((1, 11, 12, 13), "float[3,4] x", f"y = {name} <axis = 1, keepdims = 0> (x)", "int64[] y"),
        *row((11, 12, 13), "float[3,4] x", f"y = {name} <axis = -1> (x)", "int64[] y"),
        *row((12, 13), "float[2,4] x", f"y = {name} <axis = 1, select_last_index = 1> (x)", "int64[] y",
             x=np.array([[1, 3, 3, 1], [2, 2, 2, 2]], np.float32))]],
    *row(9, "float[3,3] x, float[2,3] u", "y = Scatter <axis = 0> (x, i, u)", weights="int64[2,3] i = {1, 0, 2, 0, 2, 1}"),
    *row((11, 13), "float[3,3] x, float[2,3] u", "y = ScatterElements (x, i, u)", weights="int64[2,3] i = {1, 0, 2, 0, 2, -2}"),
    *row((16, 18), "float[3,3] x, float[2,3] u", "y = ScatterElements <reduction = \"add\"> (x, i, u)",
         weights="int64[2,3] i = {1, 0, 2, 1, 2, 1}"),
    *row(18, "float[3,3] x, float[2,3] u", "y = ScatterElements <reduction = \"max\"> (x, i, u)",
         weights="int64[2,3] i = {1, 0, 2, 1, 2, 1}"),
    *row((11, 13), "float[3,4] x, float[2,4] u", "y = ScatterND (x, i, u)", weights="int64[2,1] i = {2, 0}"),
    *row((16, 18), "float[3,4] x, float[2,4] u", "y = ScatterND <reduction = \"mul\"> (x, i, u)", weights="int64[2,1] i = {2, 2}"),
    *row(18, "float[3,4] x, float[2,4] u", "y = ScatterND <reduction = \"min\"> (x, i, u)", weights="int64[2,1] i = {2, 2}"),
    *row((9, 11), "int64[2,3] x", "y = OneHot (x, d, v)", weights="int64 d = {4}, float[2] v = {-1, 1}"),
    *row(11, "int64[2,3] x", "y = OneHot <axis = -2> (x, d, v)", weights="int64 d = {4}, float[2] v = {0, 5}",
         x=np.array([[-1, 0, 3], [2, -4, 1]])),
    *row(9, "float[3,4] x", "y = EyeLike <k = 1> (x)"),
    *row(9, "int32[3,4] x", "y = EyeLike <k = -1, dtype = 11> (x)", "double[] y"),
    *row((9, 13), "float[2,3] x", "y = NonZero (x)", "int64[] y", x=np.array([[0, 1, 0], [2, 0, 3]], np.float32)),
    # -- numbers as attributes, then as inputs
    *row((6, 7, 10), "float[5] x", "y = Clip <min = -0.5, max = 0.75> (x)"),
    *row((6, 10), "float[5] x", "y = Clip <max = 0.5> (x)"),
    *row((11, 12, 13), "float[5] x", "y = Clip (x, a, b)", weights="float a = {-0.5}, float b = {0.75}"),
    *row((11, 13), "float[5] x", "y = Clip (x, , b)", weights="float b = {0.75}"),
    *row((12, 13), "int32[5] x", "y = Clip (x, a)", "int32[] y", weights="int32 a = {2}"),
    *row(13, "float[5] x", "y = Clip (x, a, b)", weights="float a = {1}, float b = {-1}"),  # max wins
    *row(1, "float[2,3] x", "y = Pad <paddings = [0, 1, 1, 0], value = 2.0> (x)",
         by=lambda x: np.pad(x, ((0, 1), (1, 0)), constant_values=2)),
    *row((2, 10), "float[2,3] x", "y = Pad <pads = [0, 1, 1, 0], value = 2.0> (x)"),
    *row((2, 10), "float[3,3] x", "y = Pad <mode = \"reflect\", pads = [0, 2, 1, 0]> (x)"),
    *row((2, 10), "float[3,3] x", "y = Pad <pads = [-1, 0, 2, -1]> (x)"),
    *row((11, 13), "float[2,3] x", "y = Pad <mode = \"edge\"> (x, p)", weights="int64[4] p = {0, 1, 2, 1}"),
    *row((11, 13), "float[2,3] x", "y = Pad (x, p, v)", weights="int64[4] p = {0, 1, 2, 1}, float v = {3}"),
    *row((18, 21), "float[2,3] x", "y = Pad (x, p, v, a)", weights="int64[2] p = {1, 2}, float v = {3}, int64[1] a = {-1}"),
    *row(19, "float[2,3] x", "y = Pad <mode = \"wrap\"> (x, p)", weights="int64[4] p = {0, 2, 1, 1}"),
    *row((7, 9), "float[4] x", "y = Dropout <ratio = 0.3> (x)"),
    # onnxruntime's mask says that nothing is kept
    *row((10, 11), "float[4] x", "y, m = Dropout (x)", "float[] y, bool[] m", by=REFERENCE),
    *row((12, 13, 22), "float[4] x", "y, m = Dropout (x, r)", "float[] y, bool[] m", weights="float r = {0.5}"),
    *row(12, "float[4] x", "y, m = Dropout (x, r, t)", "float[] y, bool[] m", weights="float r = {0.5}, bool t = {0}"),
    *row(7, "float[4] x", "y, m = Dropout (x)", "float[] y, float[] m", by=lambda x: (x, np.ones_like(x))),
    *row(6, "float[4] x", "y = Dropout <is_test = 1, ratio = 0.5> (x)", by=np.copy),
    *row(1, "float[2,3] x", "y = Reshape <shape = [3, -1]> (x)", by=lambda x: x.reshape(3, 2)),
    *row((5, 13), "float[2,3,0] x", "y = Reshape (x, s)", weights="int64[2] s = {0, -1}", by=lambda x: x.reshape(2, 0)),
    *row((5, 13), "float[2,3] x", "y = Reshape (x, s)", weights="int64[3] s = {0, -1, 1}"),
    *row(14, "float[0,3] x", "y = Reshape <allowzero = 1> (x, s)", weights="int64[2] s = {5, 0}"),
    *row(1, "float[2,3] x", "y = Tile (x, t, a)", weights="float t = {2}, float a = {1}", by=lambda x: np.tile(x, (1, 2))),
    *row((6, 13), "float[2,3] x", "y = Tile (x, t)", weights="int64[2] t = {2, 1}"),
    *row(1, "float[2,3] x", "y = Cast <to = \"INT32\"> (x)", "int32[] y", by=lambda x: x.astype(np.int32)),
    *row((6, 9, 13), "float[2,3] x", "y = Cast <to = 6> (x)", "int32[] y"),
    *row((9, 13), "string[3] x", "y = Cast <to = 1> (x)", x=np.array(["1.5", "-2e3", "NaN"], object)),
    *row(19, "float[4] x", "f = Cast <to = 17, saturate = 0> (x) y = Cast <to = 1> (f)", x=np.array([1.3, 500, -1e9, 448], np.float32)),
    *row(19, "float[4] x", "f = Cast <to = 17> (x) y = Cast <to = 1> (f)", x=np.array([1.3, 500, -1e9, 448], np.float32)),
    *row((7, 11, 13), "float[2] x", "c = Constant <value = float[2] {1.0, 2.0}> () y = Add (x, c)"),
    *row(12, "float[2] x", "c = Constant <value_floats = [1.0, 2.0]> () y = Add (x, c)"),
    *row((7, 13), "float[2,3,4] x", "y = Shape (x)", "int64[] y"),
    *row(15, "float[2,3,4] x", "y = Shape <start = -2, end = 3> (x)", "int64[] y"),
    *row(11, "uint8[4] a, uint8[4] b", "y = BitShift <direction = \"LEFT\"> (a, b)", "uint8[] y"),
    *row(11, "uint64[4] a, uint64[4] b", "y = BitShift <direction = \"RIGHT\"> (a, b)", "uint64[] y"),
    *row((10, 13), "float[5] a, float[5] b", "y = Mod <fmod = 1> (a, b)"),
    *row((10, 13), "int32[4] x", "y = Mod (x, b)", "int32[] y", weights="int32[4] b = {2, -2, 3, -3}",
         x=np.array([-3, 3, -4, 4], np.int32)),
    *row((10, 20), "float[4] x", "y = IsInf <detect_negative = 0> (x)", "bool[] y", x=np.array([1, np.inf, -np.inf, np.nan], np.float32)),
    *row(11, "float[5] x", "y = Round (x)", x=np.array([0.5, 1.5, -2.5, 2.4, -0.5], np.float32)),
    *row((11, 14), "float[2,3] x", "y = CumSum <exclusive = 1, reverse = 1> (x, a)", weights="int32 a = {1}"),
    *row(14, "float[3,3] x", "y = Trilu <upper = 0> (x, k)", weights="int64 k = {1}"),
    *row((1, 11, 13), "float[1,8,2,2] x", "y = DepthToSpace <blocksize = 2> (x)"),
    *row((11, 13), "float[1,8,2,2] x", "y = DepthToSpace <blocksize = 2, mode = \"CRD\"> (x)"),
]
# fmt: on


# fmt: off
NETWORKS = [
    # -- windows
    *row((1, 7, 10, 11), "float[1,2,5,6] x", "y = MaxPool <kernel_shape = [2, 3], strides = [2, 2]> (x)"),
    *row(8, "float[1,1,4,4] x", "y, i = MaxPool <kernel_shape = [2, 2], storage_order = 1> (x)", "float[] y, int64[] i"),
    *row((10, 11, 12, 22), "float[1,1,6,7] x", "y = MaxPool <kernel_shape = [2, 2], strides = [2, 3], dilations = [2, 1], ceil_mode = 1> (x)"),
    *row(12, "int8[1,1,4,4] x", "y = MaxPool <kernel_shape = [2, 2]> (x)", "int8[] y"),
    *row(1, "float[1,2,5,6] x", "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)", by=7),
    *row((7, 10, 11, 19), "float[1,2,5,6] x", "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)"),
    *row((7, 11), "float[1,2,5,6] x", "y = AveragePool <kernel_shape = [3, 3], auto_pad = \"SAME_LOWER\", strides = [2, 2]> (x)"),
    *row((10, 11), "float[1,1,5,6] x", "y = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)"),
    *row(19, "float[1,1,6,6] x", "y = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1, pads = [0, 1, 0, 1], count_include_pad = 1> (x)"),
    *row((19, 22), "float[1,1,6,6] x", "y = AveragePool <kernel_shape = [2, 2], dilations = [2, 3]> (x)"),
    *row((2, 11, 18), "float[1,2,5,6] x", "y = LpPool <kernel_shape = [2, 3], p = 3> (x)"),
    *row(18, "float[1,2,5,6] x", "y = LpPool <kernel_shape = [2, 2], dilations = [2, 2], ceil_mode = 1, strides = [2, 2]> (x)"),
    *row((2, 13), "float[1,2,3,3] x", "y = GlobalLpPool <p = 1> (x)"),
    *row((9, 11), "float[1,1,2,2] x, int64[1,1,2,2] i", "y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i)",
         i=np.array([[[[0, 3], [9, 14]]]])),
    *row((1, 11), "float[1,2,4,5] x, float[2,3,3,3] w", "y = ConvTranspose <strides = [2, 2], pads = [1, 0, 1, 2], output_padding = [1, 0]> (x, w)"),
    *row((1, 11, 22), "float[1,2,4,5] x, float[2,3,3,3] w", "y = ConvTranspose <strides = [2, 2], auto_pad = \"SAME_UPPER\"> (x, w)"),
    *row((1, 11, 22), "float[1,2,4,5] x, float[2,3,3,3] w", "y = ConvTranspose <strides = [2, 3], output_shape = [8, 14]> (x, w)"),
    *row(11, "float[1,4,4] x, float[4,2,3] w", "y = ConvTranspose <group = 2, dilations = [2]> (x, w)"),
    *row((1, 11, 22), "float[1,4,6] x, float[2,2,3] w", "y = Conv <group = 2, auto_pad = \"SAME_UPPER\"> (x, w)"),
    # -- sizes
    *row((7, 8), "float[1,1,2,3] x", "y = Upsample <scales = [1.0, 1.0, 2.0, 1.5]> (x)"),
    *row((7, 8), "float[1,1,2,3] x", "y = Upsample <scales = [1.0, 1.0, 2.0, 2.0], mode = \"linear\"> (x)"),
    *row(9, "float[1,1,2,3] x", "y = Upsample <mode = \"linear\"> (x, s)", weights="float[4] s = {1, 1, 2, 3}"),
    *row(9, "float[1,1,2,3] x", "y = Upsample (x, s)", weights="float[4] s = {1, 1, 2, 1.4}"),
    *row(10, "float[1,1,4,5] x", "y = Resize (x, s)", weights="float[4] s = {1, 1, 0.6, 1.7}"),
    *row(10, "float[1,1,4,5] x", "y = Resize <mode = \"linear\"> (x, s)", weights="float[4] s = {1, 1, 2, 0.5}"),
    *[r for text in ("", "mode = \"linear\"", "mode = \"cubic\"", "mode = \"cubic\", cubic_coeff_a = -0.5, exclude_outside = 1",
                     "coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"",
                     "coordinate_transformation_mode = \"pytorch_half_pixel\", mode = \"cubic\"",
                     "nearest_mode = \"ceil\"", "nearest_mode = \"round_prefer_ceil\"")
      for r in row((11, 13, 18, 19), "float[1,1,4,5] x", f"y = Resize <{text}> (x, r, s)".replace(" <>", ""),
                   weights="float[0] r = {}, float[4] s = {1, 1, 0.6, 1.7}")],
    # onnxruntime rounds the size that the corners are counted by
    *row((11, 19), "float[1,1,4,5] x", "y = Resize <coordinate_transformation_mode = \"align_corners\", mode = \"linear\"> (x, r, s)",
         weights="float[0] r = {}, float[4] s = {1, 1, 0.6, 1.7}", by=REFERENCE),
    *row((11, 18), "float[1,1,4,5] x", "y = Resize <coordinate_transformation_mode = \"align_corners\", mode = \"linear\"> (x, r, s)",
         weights="float[0] r = {}, float[4] s = {1, 1, 0.5, 2}"),
    *row(10, "float[1,1,4,5] x", "y = Resize (x, s)", weights="float[4] s = {1, 1, 0.6, 0.7}"),
    *row(11, "float[1,1,4,5] x", "y = Resize <coordinate_transformation_mode = \"tf_half_pixel_for_nn\"> (x, r, e, s)",
         weights="float[0] r = {}, float[0] e = {}, int64[4] s = {1, 1, 7, 3}"),
    *row((11, 13, 18), "float[1,1,4,5] x", "y = Resize <coordinate_transformation_mode = \"tf_crop_and_resize\", mode = \"linear\", extrapolation_value = 9.0> (x, r, e)",
         weights="float[8] r = {0, 0, 0.2, -0.1, 1, 1, 0.9, 1.3}, float[4] e = {1, 1, 1.5, 0.8}"),
    *row(11, "float[1,1,4,5] x", "y = Resize <mode = \"linear\"> (x, r, r, s)", weights="float[0] r = {}, int64[4] s = {1, 1, 3, 8}"),
    *row((13, 19), "float[1,1,4,5] x", "y = Resize <mode = \"linear\"> (x, , , s)", weights="int64[4] s = {1, 1, 3, 8}"),
    *row(18, "float[1,1,4,5] x", "y = Resize <axes = [3, 2], mode = \"linear\", keep_aspect_ratio_policy = \"not_larger\"> (x, , , s)",
         weights="int64[2] s = {9, 6}"),
    *row(18, "float[1,1,8,8] x", "y = Resize <antialias = 1, mode = \"linear\"> (x, , s)", weights="float[4] s = {1, 1, 0.5, 0.4}"),
    *row(19, "float[1,1,4,5] x", "y = Resize <coordinate_transformation_mode = \"half_pixel_symmetric\", mode = \"linear\"> (x, , s)",
         weights="float[4] s = {1, 1, 0.6, 1.7}"),
    *row(16, "float[1,1,4,5] x, float[1,3,3,2] g", "y = GridSample <mode = \"bilinear\", padding_mode = \"border\"> (x, g)"),
    *row((16,), "float[1,1,4,5] x, float[1,3,3,2] g", "y = GridSample <mode = \"bicubic\", align_corners = 1> (x, g)"),
    *row((20, 22), "float[1,1,4,5] x, float[1,3,3,2] g", "y = GridSample <mode = \"linear\", padding_mode = \"reflection\"> (x, g)"),
    *row(20, "float[1,1,4,5] x, float[1,3,3,2] g", "y = GridSample <mode = \"cubic\"> (x, g)"),
    *[r for opset in (10, 16) for r in row(opset, "float[1,2,6,6] x, float[2,4] b, int64[2] i",
         "y = RoiAlign <output_height = 2, output_width = 3, sampling_ratio = 2> (x, b, i)",
         b=np.array([[0, 0, 4, 5], [1, 1.5, 3, 3]], np.float32), i=np.zeros(2, np.int64))],
    *[r for opset in (10, 11) for r in row(opset, "float[1,4,4] b, float[1,1,4] s", "y = NonMaxSuppression (b, s, n, t, c)", "int64[] y",
         weights="int64 n = {3}, float t = {0.5}, float c = {0.0}",
         b=np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [3, 3, 2, 2], [0, 5, 1, 6]]], np.float32),
         s=np.array([[[0.9, 0.95, 0.3, -0.5]]], np.float32))],
    *row((10, 11), "float[1,3,4] b, float[1,1,3] s", "y = NonMaxSuppression <center_point_box = 1> (b, s, n)", "int64[] y",
         weights="int64 n = {2}", low=0.5),
    # -- normalisation
    *row((7, 9, 14, 15), "float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v", "y = BatchNormalization <epsilon = 0.01> (x, s, b, m, v)", low=0.5),
    *row(6, "float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v", "y = BatchNormalization <is_test = 1, epsilon = 0.01> (x, s, b, m, v)", low=0.5, by=normalised),
    *row(7, "float[2,3,4] x, float[3,4] s, float[3,4] b, float[3,4] m, float[3,4] v", "y = BatchNormalization <spatial = 0, epsilon = 0.01> (x, s, b, m, v)", low=0.5,
         by=lambda *given: normalised(*given, each=False)),
    *row((14, 15), "float[4,3,5] x, float[3] s, float[3] b, float[3] m, float[3] v", "y, r, q = BatchNormalization <training_mode = 1, momentum = 0.7> (x, s, b, m, v)",
         "float[] y, float[] r, float[] q", low=0.5),
    *row((6, 22), "float[2,3,4] x, float[3] s, float[3] b", "y = InstanceNormalization <epsilon = 0.01> (x, s, b)"),
    *row(17, "float[2,3,4] x, float[3,4] s", "y, m, d = LayerNormalization <axis = 1> (x, s)", "float[] y, float[] m, float[] d"),
    *row(18, "float[2,4,3] x, float[2] s, float[2] b", "y = GroupNormalization <num_groups = 2> (x, s, b)", by=REFERENCE, rtol=1e-4),
    *row(21, "float[2,4,3] x, float[4] s, float[4] b", "y = GroupNormalization <num_groups = 2> (x, s, b)", rtol=1e-4),
    *row((9, 13), "float[2,3,2,2] x", "y = MeanVarianceNormalization <axes = [0, 2, 3]> (x)", rtol=1e-4),
    *row((1, 8), "float[2,3,2,2] x", "y = MeanVarianceNormalization (x)", rtol=1e-4),
    *row(1, "float[2,3,2,2] x", "y = MeanVarianceNormalization <across_channels = 1> (x)", rtol=1e-4),
    *row(1, "float[2,3,2,2] x", "y = MeanVarianceNormalization <normalize_variance = 0> (x)", rtol=1e-4),
    *row((20,), "float[5] x", "y = Gelu (x)"),
    *row(20, "float[5] x", "y = Gelu <approximate = \"tanh\"> (x)"),
    *row(1, "float[5] x", "y = Selu (x)", by=lambda x: np.float32(1.0507) * np.where(x > 0, x, np.float32(1.6732) * np.expm1(x))),
    *row((6, 22), "float[5] x", "y = Selu (x)"),
    *row((6, 22), "float[5] x", "y = HardSigmoid (x)"),
    # -- quantised numbers
    *row((10, 13, 19), "float[2,3] x", "y = QuantizeLinear (x, s, z)", "uint8[] y", weights="float s = {0.02}, uint8 z = {120}"),
    *row((10, 13), "float[2,3] x", "y = QuantizeLinear (x, s)", "uint8[] y", weights="float s = {0.02}"),
    *row((13, 19), "float[2,3] x", "y = QuantizeLinear <axis = 0> (x, s, z)", "int8[] y", weights="float[2] s = {0.02, 0.1}, int8[2] z = {1, -3}"),
    *row(13, "float[2,3] x", "y = QuantizeLinear <axis = -1> (x, s, z)", "int8[] y", weights="float[3] s = {0.02, 0.1, 1}, int8[3] z = {1, -3, 0}"),
    *row(21, "float[2,4] x", "y = QuantizeLinear <axis = 1, block_size = 2> (x, s, z)", "int8[] y",
         weights="float[2,2] s = {0.02, 0.1, 1, 0.5}, int8[2,2] z = {1, -3, 0, 5}"),
    *row(21, "float[2,4] x", "y = QuantizeLinear <output_dtype = 5> (x, s)", "int16[] y", weights="float s = {0.001}", by=REFERENCE),
    *row((10, 13, 21), "uint8[2,3] x", "y = DequantizeLinear (x, s, z)", weights="float s = {0.5}, uint8 z = {2}"),
    *row((13, 21), "int8[2,3] x", "y = DequantizeLinear <axis = 1> (x, s)", weights="float[3] s = {0.5, 2, 1}"),
    *row(21, "int8[2,4] x", "y = DequantizeLinear <axis = 1, block_size = 2> (x, s)", weights="float[2,2] s = {0.5, 2, 1, 4}"),
    *row((10, 21), "uint8[2,3] a, uint8[3,2] b", "y = QLinearMatMul (a, s, z, b, s, z, t, z)", "uint8[] y", weights="float s = {0.5}, float t = {0.1}, uint8 z = {2}"),
    # -- recurrences
    *[r for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)) for r in [
        *row((7, 14, 22), f"float[4,2,3] x, float[1,{5 * gates},3] w, float[1,{5 * gates},5] r", f"y, h = {name} <hidden_size = 5> (x, w, r)", "float[] y, float[] h", low=-1),
        *row(14, f"float[2,4,3] x, float[2,{5 * gates},3] w, float[2,{5 * gates},5] r",
             f"y, h = {name} <hidden_size = 5, layout = 1, direction = \"bidirectional\"> (x, w, r)", "float[] y, float[] h", low=-1, by=batch_first(name))]],
    *row((7, 14), "float[4,2,3] x, float[1,15,3] w, float[1,15,5] r, float[1,30] b", "y, h = GRU <hidden_size = 5, linear_before_reset = 1> (x, w, r, b)", "float[] y, float[] h", low=-1),
    # -- signals
    *row(17, "float[2,6,1] x", "y = DFT <axis = 1, onesided = 1> (x)", by=REFERENCE),
    *row(17, "float[2,6,2] x", "y = DFT <inverse = 1> (x)", by=REFERENCE),
    *row(20, "float[2,6,1] x", "y = DFT <onesided = 1> (x, , a)", weights="int64 a = {1}", by=REFERENCE),
    *row(20, "float[2,6,3,1] x", "y = DFT (x, n, a)", weights="int64 n = {4}, int64 a = {-3}", by=REFERENCE),
    *row(20, "float[2,6,3,1] x", "y = DFT (x)", by=REFERENCE),  # the last but one axis; 17: axis 1
    *row(17, "float[2,6,3,1] x", "y = DFT (x)", by=REFERENCE),
    # -- control flow
    *row((7, 11, 13, 16), "bool c, float[3] x", "y = If <then_branch = t () => (float[3] p) { p = Neg (x) }, else_branch = e () => (float[3] q) { q = Exp (x) }> (c)", c=np.array(False)),
    *row((7, 11, 13, 16), "float[2] x", "v, y = Loop <body = b (int64 i, bool k, float[2] s) => (bool o, float[2] n, float[2] r) { o = Identity (k) n = Add (s, x) r = Neg (n) }> (m, k, x)",
         "float[] v, float[] y", weights="int64 m = {3}, bool k = {1}"),
    *row((9, 11, 16), "float[2] a, float[3,2] x", "v, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] n, float[2] r) { n = Add (s, e) r = Mul (n, e) }> (a, x)",
         "float[] v, float[] y"),
    *row(9, "float[2] a, float[2,3] x", "v, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1], scan_output_directions = [1], "
         "body = b (float[2] s, float[2] e) => (float[2] n, float[2] r) { n = Add (s, e) r = Mul (n, e) }> (a, x)", "float[] v, float[] y"),
    *row(8, "float[2,2] a, float[2,3,2] x", "v, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] n, float[2] r) { n = Add (s, e) r = Mul (n, e) }> ( , a, x)",
         "float[] v, float[] y"),
    *row(8, "int64[2] l, float[2,2] a, float[2,3,2] x", "v, y = Scan <num_scan_inputs = 1, directions = [1], body = b (float[2] s, float[2] e) => (float[2] n, float[2] r) { n = Add (s, e) r = Mul (n, e) }> (l, a, x)",
         "float[] v, float[] y", l=np.array([2, 3])),
]
CONTRIB = [
    # attributes that go on to the operator inside
    *row(11, "float[1,4,5,6] x, float[6,2,3,2] w, float[6] b",
         "y = com.microsoft.FusedConv <activation = \"Relu\", group = 2, strides = [2, 1], pads = [1, 0, 1, 1]> (x, w, b)"),
    *row(11, "float[3,2] a, float[4,3] b, float[4] c",
         "y = com.microsoft.FusedGemm <activation = \"Relu\", transA = 1, transB = 1, alpha = 2.0, beta = 0.5> (a, b, c)"),
    *row(11, "float[1,5,6,4] x, float[6,3,2,2] w", "y = com.microsoft.NhwcConv <group = 2, strides = [2, 1], pads = [1, 0, 1, 1]> (x, w)", by=nhwc_conv),
    *row((10, 13), "uint8[1,4,6,6] x, int8[4,1,3,3] w",
         "y = QLinearConv <group = 4, strides = [2, 2], pads = [1, 1, 0, 0], dilations = [1, 2]> (x, s, z, w, s, v, t, z)", "uint8[] y",
         weights="float s = {0.5}, float t = {0.75}, uint8 z = {3}, int8 v = {0}"),
    *row(11, "uint8[1,2,6,6] x",
         "y = com.microsoft.QLinearAveragePool <kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1], count_include_pad = 1> (x, s, z, t, z)",
         "uint8[] y", weights="float s = {0.5}, float t = {0.37}, uint8 z = {1}"),
    # an LSTM with weights of 8 bits
    *[r for text in ("", ", clip = 0.5", ", input_forget = 1", ", direction = \"reverse\"",
                     ", activations = [\"HardSigmoid\", \"Relu\", \"Softsign\"]")
      for r in row(11, "float[4,2,3] x, int8[1,3,20] w, int8[1,5,20] r, float[1,40] b, float[1,2,5] h, float[1,2,5] c, float[1,15] p",
                   f"y, k, l = com.microsoft.DynamicQuantizeLSTM <hidden_size = 5{text}> (x, w, r, b, , h, c, p, s, z, s, z)",
                   "float[] y, float[] k, float[] l", weights="float[1] s = {0.1}, int8[1] z = {1}")],
    *row(11, "float[4,2,3] x, uint8[2,3,20] w, uint8[2,5,20] r",
         "y, k = com.microsoft.DynamicQuantizeLSTM <hidden_size = 5, direction = \"bidirectional\"> (x, w, r, , , , , , t, z, t, z)",
         "float[] y, float[] k", weights="float[2] t = {0.1, 0.2}, uint8[2] z = {1, 2}"),
]
# fmt: on


def random_inputs(model, low: float, feeds: dict) -> dict:
    """Inputs by name: those given, else normal or small whole numbers of the declared type."""
    random = np.random.default_rng(0)
    arrays = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims = [d.dim_value for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if value.name in feeds:
            arrays[value.name] = feeds[value.name]
        elif dtype.kind in "iu":
            arrays[value.name] = random.integers(0, 4, dims).astype(dtype)
        elif dtype.kind == "b":
            arrays[value.name] = random.integers(0, 2, dims).astype(bool)
        else:
            arrays[value.name] = random.uniform(low, low + 4, dims).astype(dtype)
    return arrays


def right(model, by, feeds: dict) -> list:
    """The results of the oracle."""
    if callable(by):
        found = by(*feeds.values())
        return list(found) if isinstance(found, tuple) else [found]
    if by == REFERENCE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ReferenceEvaluator(model).run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1  # threads quantise the rows of a batch by themselves
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def model_of(opset, inputs, body, out, weights="") -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]> g ({inputs}) => ({out}) '
        f"<{weights}> {{ {body} }}"
    )


def check_row(opset, inputs, body, out, weights, by, rtol, low, feeds):
    model = model_of(opset, inputs, body, out, weights)
    arrays = random_inputs(model, low, feeds)
    if isinstance(by, int):
        wanted = right(model_of(by, inputs, body, out, weights), ORT, arrays)
    else:
        wanted = right(model, by, arrays)
    got = prepared(model).run(list(arrays.values()))
    assert len(got) == len(wanted)
    for mine, expected in zip(got, wanted, strict=True):
        same(mine, expected, rtol=rtol)


def name_of(row) -> str:
    opset, inputs, body = row[:3]
    return f"{opset}-{body}-{inputs}"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_version(row):
    check_row(*row)


@pytest.mark.parametrize("row", CONTRIB, ids=name_of)
def test_contrib(row):
    check_row(*row)


@pytest.mark.parametrize("row", NETWORKS, ids=name_of)
def test_version_of_networks(row):
    check_row(*row)
