"""The rows of the table of operators: sizes as they come in networks for images, texts and sound."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto


@dataclass(frozen=True)
class Value:
    """An input of a node: what makes its array, and whether the model holds it."""

    make: object
    constant: bool = False


@dataclass(frozen=True)
class Row:
    name: str
    kind: str
    inputs: tuple
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    result: int = TensorProto.FLOAT


def x(*dims):
    return Value(lambda random: random.standard_normal(dims, np.float32))


def positive(*dims):
    return Value(lambda random: random.uniform(0.1, 2, dims).astype(np.float32))


def unit(*dims):
    return Value(lambda random: random.uniform(-0.9, 0.9, dims).astype(np.float32))


def w(*dims):
    return Value(lambda random: (random.standard_normal(dims) * 0.05).astype(np.float32), True)


def c(values, dtype=np.int64):
    return Value(lambda random: np.array(values, dtype), True)


def whole(low, high, *dims, dtype=np.int64, constant=False):
    return Value(lambda random: random.integers(low, high, dims).astype(dtype), constant)


def flags(*dims):
    return Value(lambda random: random.random(dims) > 0.5)


def row(name, *inputs, kind=None, outputs=1, result=TensorProto.FLOAT, **attributes):
    return Row(name, kind or name.split()[0], inputs, attributes, outputs, result)


def conv(size, channels, out, kernel=1, stride=1, group=1, dilation=1):
    """A convolution of a square image."""
    pad = dilation * (kernel // 2)
    text = f"Conv {channels}→{out} k{kernel} {size}²"
    text += (
        f" s{stride}" * (stride > 1) + f" g{group}" * (group > 1) + f" d{dilation}" * (dilation > 1)
    )
    return row(
        text, x(1, channels, size, size), w(out, channels // group, kernel, kernel), w(out),
        strides=[stride] * 2, pads=[pad] * 4, group=group, dilations=[dilation] * 2,
    )  # fmt: skip


IMAGE, TEXT = (1, 64, 56, 56), (1, 128, 768)
BIG = (8, 64, 56, 56)

CONVOLUTIONS = [
    conv(224, 3, 64, 7, 2), conv(224, 3, 32, 3, 2), conv(56, 64, 64, 3), conv(28, 128, 128, 3),
    conv(14, 256, 256, 3), conv(7, 512, 512, 3), conv(56, 128, 128, 3, 2), conv(56, 64, 256),
    conv(14, 1024, 256), conv(56, 256, 512, 1, 2), conv(28, 256, 256, 3, dilation=2),
    conv(56, 96, 96, 3, group=96), conv(56, 96, 96, 3, 2, 96), conv(14, 384, 384, 5, group=384),
    conv(14, 384, 384, 7, group=384), conv(56, 128, 128, 3, group=32),
    conv(28, 256, 256, 3, group=32), conv(14, 512, 512, 3, group=32), conv(14, 256, 256, 3, group=2),
    row("Conv 1-D 256 k3", x(1, 256, 1000), w(256, 256, 3), pads=[1, 1]),
    row("Conv 1-D 1→512 k10 s5", x(1, 1, 16000), w(512, 1, 10), strides=[5]),
    row("Conv 1-D depthwise k31", x(1, 256, 500), w(256, 1, 31), pads=[15, 15], group=256),
    row("Conv 3-D 32 k3", x(1, 32, 16, 28, 28), w(32, 32, 3, 3, 3), pads=[1] * 6),
    row("ConvTranspose k2 s2", x(1, 128, 32, 32), w(128, 64, 2, 2), strides=[2, 2]),
    row("ConvTranspose k4 s2", x(1, 128, 32, 32), w(128, 64, 4, 4), strides=[2, 2], pads=[1] * 4),
    row("ConvTranspose k3 s2", x(1, 128, 32, 32), w(128, 64, 3, 3), strides=[2, 2], pads=[1] * 4),
    row("MaxPool k3 s2", x(1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    row("MaxPool k2 s2", x(1, 64, 112, 112), kernel_shape=[2, 2], strides=[2, 2]),
    row("MaxPool k5 s1", x(1, 128, 20, 20), kernel_shape=[5, 5], pads=[2] * 4),
    row("AveragePool k3", x(1, 192, 28, 28), kernel_shape=[3, 3], pads=[1] * 4),
    row("GlobalAveragePool", x(1, 2048, 7, 7)), row("GlobalMaxPool", x(1, 512, 14, 14)),
    row("LpPool k2 s2", x(*IMAGE), kernel_shape=[2, 2], strides=[2, 2], p=2),
    row("LRN", x(1, 96, 54, 54), size=5),
]  # fmt: skip

PRODUCTS = [
    row("Gemm 1x2048x1000 transB", x(1, 2048), w(1000, 2048), w(1000), transB=1),
    row("Gemm 32x2048x1000 transB", x(32, 2048), w(1000, 2048), w(1000), transB=1),
    row("MatMul 128x768x3072", x(*TEXT), w(768, 3072)),
    row("MatMul 128x3072x768", x(1, 128, 3072), w(3072, 768)),
    row("MatMul 512x512x512", x(512, 512), x(512, 512)), row("MatMul 1x4096x4096", x(1, 4096), w(4096, 4096)),
    row("MatMul heads", x(1, 12, 128, 64), x(1, 12, 64, 128)),
    row("Einsum bhqd,bhkd", x(1, 12, 128, 64), x(1, 12, 128, 64), equation="bhqd,bhkd->bhqk"),
    row("MatMulInteger", whole(-128, 128, 128, 768, dtype=np.int8), whole(-128, 128, 768, 768, dtype=np.int8, constant=True), result=TensorProto.INT32),
    row("LSTM 256 T50", x(50, 1, 256), w(1, 1024, 256), w(1, 1024, 256), hidden_size=256),
    row("GRU 256 T50", x(50, 1, 256), w(1, 768, 256), w(1, 768, 256), hidden_size=256),
]  # fmt: skip

NORMALISATIONS = [
    row("Softmax last", x(1, 12, 128, 128), axis=-1), row("Softmax channels", x(1, 21, 128, 128), axis=1),
    row("LogSoftmax", x(128, 1000), axis=-1), row("Hardmax", x(128, 1000), axis=-1),
    row("LayerNormalization", x(*TEXT), w(768), w(768), axis=-1),
    row("BatchNormalization", x(*IMAGE), w(64), w(64), w(64), c(np.ones(64), np.float32)),
    row("InstanceNormalization", x(*IMAGE), w(64), w(64)),
    row("GroupNormalization", x(*IMAGE), w(64), w(64), num_groups=8),
    row("LpNormalization", x(128, 768), axis=-1, p=2),
    row("MeanVarianceNormalization", x(4, 64, 28, 28)),
]  # fmt: skip

REDUCTIONS = [
    *(row(f"{kind} last", x(128, 4096), c([-1])) for kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceProd")),
    row("ReduceMean spatial", x(1, 256, 28, 28), c([2, 3])), row("ReduceSum first", x(64, 128, 256), c([0])),
    row("ReduceSum all", x(128, 4096)), row("ReduceMax spatial", x(1, 256, 28, 28), c([2, 3])),
    row("ArgMax last", x(128, 4096), axis=-1, result=TensorProto.INT64),
    row("ArgMax channels", x(1, 21, 128, 128), axis=1, result=TensorProto.INT64),
    row("CumSum last", x(128, 4096), c(1)), row("CumSum first", x(512, 1024), c(0)),
]  # fmt: skip

ONE_INPUT = ("Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish",
             "LeakyRelu", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign",
             "Sin", "Softplus", "Softsign", "Sinh", "Cosh", "Tan", "Tanh", "Atan", "Asinh")  # fmt: skip
ELEMENTWISE = [
    *(row(kind, x(*BIG)) for kind in ONE_INPUT),
    *(row(kind, positive(*BIG)) for kind in ("Log", "Sqrt")),
    *(row(kind, unit(*BIG)) for kind in ("Acos", "Asin", "Atanh")),
    *(row(kind, x(*BIG), x(*BIG)) for kind in ("Add", "Mul", "Sub", "Div", "Max", "Min")),
    row("Add channels", x(*BIG), w(64, 1, 1)), row("Mul scalar", x(*BIG), c(0.5, np.float32)),
    row("Pow 2", x(*BIG), c(2, np.float32)), row("Pow 0.5", positive(*BIG), c(0.5, np.float32)),
    row("Pow tensor", positive(*BIG), x(*BIG)), row("PRelu", x(*BIG), w(64, 1, 1)),
    row("Mod fmod", x(*BIG), positive(*BIG), fmod=1),
    row("Clip", x(*BIG), c(0, np.float32), c(6, np.float32)), row("Where", flags(*BIG), x(*BIG), x(*BIG)),
    row("Greater", x(*BIG), x(*BIG), result=TensorProto.BOOL), row("Equal", x(*BIG), x(*BIG), result=TensorProto.BOOL),
    row("And", flags(*BIG), flags(*BIG), result=TensorProto.BOOL), row("Not", flags(*BIG), result=TensorProto.BOOL),
    row("IsNaN", x(*BIG), result=TensorProto.BOOL), row("Cast int32", x(*BIG), to=TensorProto.INT32, result=TensorProto.INT32),
    row("Cast half", x(*BIG), to=TensorProto.FLOAT16, result=TensorProto.FLOAT16),
    row("QuantizeLinear", x(*BIG), c(0.02, np.float32), c(3, np.uint8), result=TensorProto.UINT8),
    row("DequantizeLinear", whole(0, 255, *BIG, dtype=np.uint8), c(0.02, np.float32), c(3, np.uint8)),
    row("Add int64", whole(0, 9, 512, 1024), whole(0, 9, 512, 1024), result=TensorProto.INT64),
]  # fmt: skip

VIEWS = [
    row("Transpose heads", x(1, 128, 12, 64), perm=[0, 2, 1, 3]), row("Transpose 1024²", x(1024, 1024), perm=[1, 0]),
    row("Transpose NHWC", x(*IMAGE), perm=[0, 2, 3, 1]), row("Concat channels", x(*IMAGE), x(*IMAGE), axis=1),
    row("Split channels", x(*IMAGE), outputs=2, axis=1, num_outputs=2),
    row("Slice", x(*BIG), c([0, 0]), c([56, 56]), c([2, 3]), c([2, 2])), row("Pad", x(*IMAGE), c([0, 0, 1, 1, 0, 0, 1, 1])),
    row("Pad reflect", x(*IMAGE), c([0, 0, 3, 3, 0, 0, 3, 3]), mode="reflect"),
    row("Expand", x(1, 64, 1, 1), c([8, 64, 56, 56])), row("Tile", x(1, 64, 56, 56), c([2, 1, 1, 1])),
    row("DepthToSpace", x(1, 256, 56, 56), blocksize=2), row("SpaceToDepth", x(1, 64, 112, 112), blocksize=2),
    row("Reshape", x(*BIG), c([8, -1])),
]  # fmt: skip

INDEXED = [
    row("Gather rows", w(30522, 768), whole(0, 30522, 1, 128)), row("Gather axis 1", x(64, 1000, 32), whole(0, 1000, 100), axis=1),
    row("GatherElements", x(128, 4096), whole(0, 4096, 128, 1024), axis=1),
    row("GatherND", x(64, 64, 64), whole(0, 64, 4096, 2)),
    row("ScatterElements", x(128, 4096), whole(0, 4096, 128, 512), x(128, 512), axis=1),
    row("ScatterND", x(4096, 64), whole(0, 4096, 1024, 1), x(1024, 64)),
    row("OneHot", whole(0, 1000, 512), c(1000), c([0, 1], np.float32)),
    row("TopK 5 of 1000", x(64, 1000), c([5]), outputs=2), row("TopK 100 of 8400", x(1, 8400), c([100]), outputs=2),
    row("NonZero", flags(1000, 1000), result=TensorProto.INT64), row("Unique", whole(0, 500, 20000), result=TensorProto.INT64),
    row("Trilu", x(12, 512, 512)), row("ReverseSequence", x(128, 32, 256), whole(1, 128, 32)),
    row("Range", c(0.0, np.float32), Value(lambda r: np.array(100000, np.float32)), c(1.0, np.float32)),
]  # fmt: skip

PICTURES = [
    row("Resize nearest x2", x(*IMAGE), None, c([1, 1, 2, 2], np.float32), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    row("Resize linear x2", x(*IMAGE), None, c([1, 1, 2, 2], np.float32), mode="linear", coordinate_transformation_mode="half_pixel"),
    row("Resize cubic x2", x(1, 3, 112, 112), None, c([1, 1, 2, 2], np.float32), mode="cubic"),
    row("GridSample", x(1, 64, 56, 56), unit(1, 56, 56, 2), align_corners=0),
    row("RoiAlign", x(1, 64, 56, 56), Value(lambda r: np.sort(r.uniform(0, 55, (100, 2, 2)), 1).reshape(100, 4).astype(np.float32)),
        Value(lambda r: np.zeros(100, np.int64)), output_height=7, output_width=7, sampling_ratio=2),
    row("NonMaxSuppression", Value(lambda r: np.sort(r.uniform(0, 1, (1, 300, 2, 2)), 2).reshape(1, 300, 4).astype(np.float32)),
        positive(1, 1, 300), c([50]), c([0.5], np.float32), result=TensorProto.INT64),
]  # fmt: skip

ROWS = [*CONVOLUTIONS, *PRODUCTS, *NORMALISATIONS, *REDUCTIONS, *ELEMENTWISE, *VIEWS, *INDEXED,
        *PICTURES]  # fmt: skip
