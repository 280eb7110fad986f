"""Networks as PyTorch exports them to ONNX, built with fixed seeds at any width.

`MODELS` names them; each is a function of keyword sizes that gives a `ModelProto`. The axes "batch"
and, for texts, "sequence" are open, and shapes are computed in the graph as exporters do
(Shape, Gather, Concat, Reshape).
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17

# Blocks and channels of the stages of ResNet-50.
RESNET = ((3, 64), (4, 128), (6, 256), (3, 512))
# Expansion, channels, repeats and first stride of MobileNetV2.
MOBILENET = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


class Graph:
    """A graph under construction: `add` a node by name, `weight` a random initializer."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs = [], [], []
        self.count = 0

    def name(self, text: str) -> str:
        self.count += 1
        return f"{text}_{self.count}"

    def input(self, name: str, kind, dims) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def add(self, kind: str, *inputs: str, **attributes) -> str:
        out = self.name(kind)
        self.nodes.append(helper.make_node(kind, inputs, [out], name=out, **attributes))
        return out

    def constant(self, value, dtype=np.int64) -> str:
        name = self.name("value")
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *dims: int, fan: int | None = None) -> str:
        """Normal numbers that keep the variance of what they multiply (`fan` terms)."""
        fan = fan or int(np.prod(dims[1:]))
        value = self.random.standard_normal(dims, np.float32) * np.sqrt(2 / fan)
        return self.constant(value, np.float32)

    def near(self, centre: float, *dims: int) -> str:
        value = centre + 0.1 * self.random.standard_normal(dims, np.float32)
        return self.constant(value, np.float32)

    def model(self, **outputs) -> onnx.ModelProto:
        """The model; `outputs` are name=(value, element type, dims)."""
        values = []
        for name, (value, kind, dims) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
            values.append(helper.make_tensor_value_info(name, kind, dims))
        graph = helper.make_graph(self.nodes, "model", self.inputs, values, self.weights)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


# -- images ----------------------------------------------------------------------------------------


class Images(Graph):
    """Convolutions with their normalisation, folded into bias as exporters do, or left in."""

    def __init__(self, seed: int, norm: bool):
        super().__init__(seed)
        self.norm = norm

    def conv(self, x, cin, cout, k=1, stride=1, group=1, act="Relu", scale=1.0):
        pad = k // 2
        fan = int(cin // group * k * k / scale**2)
        inputs = [x, self.weight(cout, cin // group, k, k, fan=max(fan, 1))]
        if not self.norm:
            inputs.append(self.near(0, cout))
        x = self.add(
            "Conv", *inputs, kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, group=group,
            dilations=[1, 1],
        )  # fmt: skip
        if self.norm:
            stats = [self.near(1, cout), self.near(0, cout), self.near(0, cout)]
            x = self.add("BatchNormalization", x, *stats, self.near(1, cout), epsilon=1e-5)
        if act == "Clip":
            return self.add("Clip", x, self.six[0], self.six[1])
        return self.add(act, x) if act else x

    @property
    def six(self):
        if not hasattr(self, "_six"):
            self._six = self.constant(0, np.float32), self.constant(6, np.float32)
        return self._six

    def classify(self, x, cin, classes):
        x = self.add("GlobalAveragePool", x)
        x = self.add("Flatten", x, axis=1)
        return self.add("Gemm", x, self.weight(classes, cin), self.near(0, classes), transB=1)


def resnet50(width: int = 64, size: int = 224, classes: int = 1000, norm: bool = False, seed=1):
    """ResNet-50: `width` channels in the first stage, 64 in the real one."""
    g = Images(seed, norm)
    x = g.input("x", TensorProto.FLOAT, ["batch", 3, size, size])
    x = g.conv(x, 3, width, 7, 2)
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    have = width
    for stage, (blocks, channels) in enumerate(RESNET):
        inner = channels * width // 64
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = g.conv(x, have, inner)
            y = g.conv(y, inner, inner, 3, stride)
            y = g.conv(y, inner, 4 * inner, act=None, scale=0.5)
            if not block:
                x = g.conv(x, have, 4 * inner, 1, stride, act=None)
            have = 4 * inner
            x = g.add("Relu", g.add("Add", y, x))
    return g.model(y=(g.classify(x, have, classes), TensorProto.FLOAT, ["batch", classes]))


def mobilenet_v2(width: float = 1.0, size: int = 224, classes: int = 1000, norm=False, seed=2):
    """MobileNetV2: depthwise convolutions between pointwise ones."""
    g = Images(seed, norm)

    def scaled(channels):
        return max(8, int(channels * width + 4) // 8 * 8)

    x = g.input("x", TensorProto.FLOAT, ["batch", 3, size, size])
    have = scaled(32)
    x = g.conv(x, 3, have, 3, 2, act="Clip")
    for expand, channels, repeats, first in MOBILENET:
        out = scaled(channels)
        for k in range(repeats):
            stride = 1 if k else first
            inner, y = have * expand, x
            if expand > 1:
                y = g.conv(y, have, inner, act="Clip")
            y = g.conv(y, inner, inner, 3, stride, group=inner, act="Clip")
            y = g.conv(y, inner, out, act=None)
            x = g.add("Add", x, y) if stride == 1 and have == out else y
            have = out
    last = max(64, int(1280 * width))
    x = g.conv(x, have, last, act="Clip")
    return g.model(y=(g.classify(x, last, classes), TensorProto.FLOAT, ["batch", classes]))


def unet(width: int = 32, size: int = 128, depth: int = 3, norm: bool = False, seed=3):
    """U-Net: down by max pooling, up by transposed convolutions, joined by Concat."""
    g = Images(seed, norm)

    def double(x, cin, cout):
        return g.conv(g.conv(x, cin, cout, 3), cout, cout, 3)

    x = g.input("x", TensorProto.FLOAT, ["batch", 3, size, size])
    x, kept, have = double(x, 3, width), [], width
    for _ in range(depth):
        kept.append((x, have))
        x = g.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x, have = double(x, have, 2 * have), 2 * have
    for skip, channels in reversed(kept):
        w = g.weight(have, channels, 2, 2, fan=have)
        x = g.add("ConvTranspose", x, w, g.near(0, channels), kernel_shape=[2, 2], strides=[2, 2])
        x = g.add("Concat", skip, x, axis=1)
        x, have = double(x, 2 * channels, channels), channels
    x = g.add("Sigmoid", g.conv(x, have, 1, act=None))
    return g.model(y=(x, TensorProto.FLOAT, ["batch", 1, size, size]))


# -- texts -----------------------------------------------------------------------------------------


class Texts(Graph):
    """Layers of transformers on (batch, sequence, width)."""

    def __init__(self, seed: int, width: int, heads: int):
        super().__init__(seed)
        self.width, self.heads = width, heads

    def linear(self, x, cin, cout):
        w = self.constant(self.random.standard_normal((cin, cout), np.float32) / cin**0.5,
                          np.float32)  # fmt: skip
        return self.add("Add", self.near(0, cout), self.add("MatMul", x, w))

    def normal(self, x):
        stats = self.near(1, self.width), self.near(0, self.width)
        return self.add("LayerNormalization", x, *stats, axis=-1, epsilon=1e-5)

    def number(self, value) -> str:
        return self.constant(value, np.float32)

    def size(self, x, axis: int) -> str:
        """The size of one axis as a vector of one element."""
        size = self.add("Gather", self.add("Shape", x), self.constant(axis), axis=0)
        return self.add("Unsqueeze", size, self.constant([0]))

    def split_heads(self, x, like, perm):
        dims = [self.size(like, 0), self.size(like, 1), self.constant([self.heads]),
                self.constant([self.width // self.heads])]  # fmt: skip
        x = self.add("Reshape", x, self.add("Concat", *dims, axis=0))
        return self.add("Transpose", x, perm=perm)

    def attention(self, x, mask):
        q, k, v = (self.linear(x, self.width, self.width) for _ in range(3))
        q = self.split_heads(q, x, (0, 2, 1, 3))
        k = self.split_heads(k, x, (0, 2, 3, 1))
        v = self.split_heads(v, x, (0, 2, 1, 3))
        scores = self.add("MatMul", q, k)
        scores = self.add("Div", scores, self.number((self.width // self.heads) ** 0.5))
        weights = self.add("Softmax", self.add("Add", scores, mask), axis=-1)
        y = self.add("Transpose", self.add("MatMul", weights, v), perm=(0, 2, 1, 3))
        dims = [self.size(x, 0), self.size(x, 1), self.constant([self.width])]
        y = self.add("Reshape", y, self.add("Concat", *dims, axis=0))
        return self.linear(y, self.width, self.width)

    def gelu(self, x):
        y = self.add("Erf", self.add("Div", x, self.number(2**0.5)))
        y = self.add("Mul", x, self.add("Add", y, self.number(1)))
        return self.add("Mul", y, self.number(0.5))

    def gelu_tanh(self, x):
        cube = self.add("Mul", self.add("Pow", x, self.number(3)), self.number(0.044715))
        y = self.add("Mul", self.add("Add", x, cube), self.number(0.7978845608))
        y = self.add("Add", self.add("Tanh", y), self.number(1))
        return self.add("Mul", self.add("Mul", x, self.number(0.5)), y)

    def feed_forward(self, x, act):
        return self.linear(act(self.linear(x, self.width, 4 * self.width)), 4 * self.width,
                           self.width)  # fmt: skip

    def positions(self, ids, table):
        """The first rows of a table, as many as the sequence is long."""
        length = self.size(ids, 1)
        return self.add("Slice", table, self.constant([0]), length, self.constant([0]))

    def embed(self, ids, words: int, places: int):
        scale = self.width**0.5
        table = self.weight(words, self.width, fan=scale)
        places = self.weight(places, self.width, fan=scale)
        x = self.add("Gather", table, ids, axis=0)
        return self.add("Add", x, self.positions(ids, places)), table


def bert(width=768, layers=12, heads=12, words=30522, places=512, seed=4):
    """BERT: the normalisation stands after each sum; a mask hides the padding."""
    g = Texts(seed, width, heads)
    ids = g.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    given = g.input("attention_mask", TensorProto.INT64, ["batch", "sequence"])
    mask = g.add("Unsqueeze", given, g.constant([1, 2]))
    mask = g.add("Sub", g.number(1), g.add("Cast", mask, to=TensorProto.FLOAT))
    mask = g.add("Mul", mask, g.number(-10000))
    x, _ = g.embed(ids, words, places)
    x = g.normal(x)
    for _ in range(layers):
        x = g.normal(g.add("Add", g.attention(x, mask), x))
        x = g.normal(g.add("Add", g.feed_forward(x, g.gelu), x))
    first = g.add("Gather", x, g.constant(0), axis=1)
    pooled = g.add("Tanh", g.linear(first, width, width))
    return g.model(
        last_hidden_state=(x, TensorProto.FLOAT, ["batch", "sequence", width]),
        pooler_output=(pooled, TensorProto.FLOAT, ["batch", width]),
    )


def gpt(width=768, layers=12, heads=12, words=50257, places=1024, seed=5):
    """GPT-2: the normalisation stands before each part; a triangle hides what comes later."""
    g = Texts(seed, width, heads)
    ids = g.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    triangle = g.constant(np.tril(np.ones((1, 1, places, places), bool)), bool)
    length, axes = g.size(ids, 1), [g.constant([2]), g.constant([3])]
    seen = triangle
    for axis in axes:
        seen = g.add("Slice", seen, g.constant([0]), length, axis)
    mask = g.add("Where", seen, g.number(0), g.number(np.finfo(np.float32).min))
    x, table = g.embed(ids, words, places)
    for _ in range(layers):
        x = g.add("Add", x, g.attention(g.normal(x), mask))
        x = g.add("Add", x, g.feed_forward(g.normal(x), g.gelu_tanh))
    logits = g.add("MatMul", g.normal(x), g.add("Transpose", table, perm=(1, 0)))
    return g.model(logits=(logits, TensorProto.FLOAT, ["batch", "sequence", words]))


class Cached(Texts):
    """The same layers for the words that follow a past, whose keys and values are given."""

    def __init__(self, seed: int, width: int, heads: int, layers: int):
        super().__init__(seed, width, heads)
        dims = ["batch", heads, "past", width // heads]
        self.pasts = [
            [self.input(f"past.{k}.{part}", TensorProto.FLOAT, dims) for part in ("key", "value")]
            for k in range(layers)
        ]
        self.past = self.size(self.pasts[0][0], 2)
        self.presents = []

    def total(self, ids) -> str:
        """How long the past and the new words are together."""
        return self.add("Add", self.past, self.size(ids, 1))

    def positions(self, ids, table):
        """The rows of a table from the end of the past on."""
        return self.add("Slice", table, self.past, self.total(ids), self.constant([0]))

    def attention(self, x, mask):
        q, k, v = (self.split_heads(self.linear(x, self.width, self.width), x, (0, 2, 1, 3))
                   for _ in range(3))  # fmt: skip
        before = self.pasts[len(self.presents)]
        k, v = (self.add("Concat", *pair, axis=2) for pair in zip(before, (k, v), strict=True))
        self.presents.append((k, v))
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=(0, 1, 3, 2)))
        scores = self.add("Div", scores, self.number((self.width // self.heads) ** 0.5))
        weights = self.add("Softmax", self.add("Add", scores, mask), axis=-1)
        y = self.add("Transpose", self.add("MatMul", weights, v), perm=(0, 2, 1, 3))
        dims = [self.size(x, 0), self.size(x, 1), self.constant([self.width])]
        y = self.add("Reshape", y, self.add("Concat", *dims, axis=0))
        return self.linear(y, self.width, self.width)


def gpt_cached(width=768, layers=12, heads=12, words=50257, places=1024, seed=5):
    """`gpt` with its own weights (of one seed) and a cache of keys and values that grows.

    A mask over the past and the new words says which of them count.
    """
    g = Cached(seed, width, heads, layers)
    ids = g.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    given = g.input("attention_mask", TensorProto.INT64, ["batch", "past + sequence"])
    triangle = g.constant(np.tril(np.ones((1, 1, places, places), bool)), bool)
    starts, ends = g.constant([0]), g.total(ids)
    seen = g.add("Slice", triangle, g.past, ends, g.constant([2]))
    seen = g.add("Slice", seen, starts, ends, g.constant([3]))
    shown = g.add("Unsqueeze", g.add("Cast", given, to=TensorProto.BOOL), g.constant([1, 2]))
    seen = g.add("And", seen, shown)
    mask = g.add("Where", seen, g.number(0), g.number(np.finfo(np.float32).min))
    x, table = g.embed(ids, words, places)
    for _ in range(layers):
        x = g.add("Add", x, g.attention(g.normal(x), mask))
        x = g.add("Add", x, g.feed_forward(g.normal(x), g.gelu_tanh))
    logits = g.add("MatMul", g.normal(x), g.add("Transpose", table, perm=(1, 0)))
    dims = ["batch", heads, "past + sequence", width // heads]
    presents = {
        f"present.{k}.{part}": (value, TensorProto.FLOAT, dims)
        for k, pair in enumerate(g.presents)
        for part, value in zip(("key", "value"), pair, strict=True)
    }
    return g.model(logits=(logits, TensorProto.FLOAT, ["batch", "sequence", words]), **presents)


MODELS = {
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "unet": unet,
    "bert": bert,
    "gpt": gpt,
    "gpt_cached": gpt_cached,
}

# Sizes at which each model takes a second, for tests.
SMALL = {
    "resnet50": {"width": 16, "size": 64, "classes": 10},
    "mobilenet_v2": {"width": 0.25, "size": 64, "classes": 10},
    "unet": {"width": 8, "size": 32},
    "bert": {"width": 64, "layers": 2, "heads": 4, "words": 100, "places": 32},
    "gpt": {"width": 64, "layers": 2, "heads": 4, "words": 100, "places": 32},
    "gpt_cached": {"width": 64, "layers": 2, "heads": 4, "words": 100, "places": 64},
}


def build(name: str, **sizes) -> onnx.ModelProto:
    """The model called `name`."""
    return MODELS[name](**sizes)


def random_inputs(model: onnx.ModelProto, sizes: dict, seed: int = 0) -> dict:
    """Inputs for the open axes `sizes`: normal floats, small whole numbers, masks of ones."""
    random = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if "mask" in value.name:
            array = np.ones(dims, dtype)
            array[:, (dims[1] + 1) // 2 + 1 :] = 0
        elif dtype.kind == "f":
            array = random.standard_normal(dims).astype(dtype)
        else:
            array = random.integers(0, 100, dims).astype(dtype)
        feeds[value.name] = array
    return feeds
