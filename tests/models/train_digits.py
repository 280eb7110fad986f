"""Trains the small network of ``migraphx-driver run --demo`` and writes it as ONNX.

Run ``python tests/models/train_digits.py`` from the root of the repository. It writes
``migraphx/data/digits.onnx`` and ``migraphx/data/digits.npz``: the handwritten digits that come
with scikit-learn, of which every fourth in a shuffled order is held back from training. Seeds are
fixed; on another machine the weights may differ in their last digits.
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DATA = Path(__file__).parents[2] / "migraphx" / "data"
SEED = 8
EPOCHS = 60
BATCH = 64
SCALE = 1 / 16  # pixels are numbers from 0 to 16
LAYERS = {"conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "conv3": (32, 32, 3, 3)}


def load_digits() -> tuple:
    """Images and labels to train with, and those held back."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    images = digits.images.astype(np.uint8)[order, None]
    labels = digits.target.astype(np.int64)[order]
    held = np.arange(len(labels)) % 4 == 0
    return (images[~held], labels[~held]), (images[held], labels[held])


def first_weights(rng) -> dict:
    """Random weights, scaled to the number of inputs of each layer."""
    shapes = LAYERS | {"fc": (10, 128)}
    weights = {}
    for name, shape in shapes.items():
        spread = np.sqrt(2 / np.prod(shape[1:]))
        weights[f"{name}.weight"] = rng.normal(0, spread, shape).astype(np.float32)
        weights[f"{name}.bias"] = np.zeros(shape[0], np.float32)
    return {name: jnp.asarray(value) for name, value in weights.items()}


def logits(weights: dict, images):
    """The network up to the softmax; the same layers as in `onnx_model`."""
    x = images * SCALE
    for name in LAYERS:
        x = jax.lax.conv(x, weights[f"{name}.weight"], (1, 1), "SAME")
        x = jax.nn.relu(x + weights[f"{name}.bias"][:, None, None])
        if name != "conv1":
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(len(x), -1) @ weights["fc.weight"].T + weights["fc.bias"]


def loss(weights: dict, images, labels):
    """Mean cross-entropy, with a little decay of the weights."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits(weights, images)), labels[:, None], 1)
    return -chosen.mean() + 1e-4 * sum((w**2).sum() for w in weights.values())


@jax.jit
def step(state: tuple, images, labels, rate) -> tuple:
    """One step of Adam."""
    weights, mean, square, count = state
    count = count + 1
    slopes = jax.grad(loss)(weights, images, labels)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, slopes)

    def moved(w, m, s):
        return w - rate * (m / (1 - 0.9**count)) / (jnp.sqrt(s / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(moved, weights, mean, square), mean, square, count


def shifted(images, rng):
    """Images moved by up to one pixel in each direction."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    corners = rng.integers(0, 3, (len(images), 2))
    return np.stack([p[:, y : y + 8, x : x + 8] for p, (y, x) in zip(padded, corners, strict=True)])


def train(images, labels) -> dict:
    """The trained weights."""
    rng = np.random.default_rng(SEED)
    weights = first_weights(rng)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state = (weights, zeros, zeros, jnp.float32(0))
    whole = len(labels) // BATCH * BATCH
    for epoch in range(EPOCHS):
        rate = 2e-3 * (1 + np.cos(np.pi * epoch / EPOCHS)) / 2
        for chosen in rng.permutation(len(labels))[:whole].reshape(-1, BATCH):
            batch = shifted(images[chosen], rng).astype(np.float32)
            state = step(state, batch, labels[chosen], jnp.float32(rate))
    return {name: np.asarray(value) for name, value in state[0].items()}


def onnx_model(weights: dict) -> onnx.ModelProto:
    """The network as ONNX: ``image`` float[N, 1, 8, 8] to ``probabilities`` float[N, 10]."""
    node = helper.make_node
    nodes = [node("Mul", ["image", "scale"], ["x0"], name="scale")]
    for i, name in enumerate(LAYERS):
        inputs = [f"x{i}", f"{name}.weight", f"{name}.bias"]
        last = f"x{i + 1}"
        nodes += [
            node("Conv", inputs, [f"{name}.out"], name=name, kernel_shape=[3, 3], pads=[1] * 4),
            node("Relu", [f"{name}.out"], [f"relu{i + 1}" if i else last], f"relu{i + 1}"),
        ]
        if i:
            window = {"kernel_shape": [2, 2], "strides": [2, 2]}
            nodes.append(node("MaxPool", [f"relu{i + 1}"], [last], name=f"pool{i + 1}", **window))
    nodes += [
        node("Flatten", [f"x{len(LAYERS)}"], ["flat"], name="flatten"),
        node("Gemm", ["flat", "fc.weight", "fc.bias"], ["logits"], name="fc", transB=1),
        node("Softmax", ["logits"], ["probabilities"], name="softmax", axis=1),
    ]
    tensors = weights | {"scale": np.array(SCALE, np.float32)}
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
        doc_string="Handwritten digits, 8 by 8 pixels from 0 to 16; tests/models/train_digits.py",
    )
    model = helper.make_model(
        graph,
        producer_name="migraphx-jax",
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)],
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def accuracy(model: onnx.ModelProto, images, labels) -> float:
    """The share of right answers, by onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString())
    (found,) = session.run(None, {"image": images.astype(np.float32)})
    return float((found.argmax(1) == labels).mean())


def main() -> None:
    """Trains, checks and writes."""
    training, (images, labels) = load_digits()
    model = onnx_model(train(*training))
    DATA.mkdir(exist_ok=True)
    onnx.save(model, DATA / "digits.onnx")
    np.savez_compressed(DATA / "digits.npz", images=images, labels=labels.astype(np.uint8))
    print(f"trained on {len(training[1])} images: {accuracy(model, *training):.1%} right")
    print(f"held back  {len(labels)} images: {accuracy(model, images, labels):.1%} right")


if __name__ == "__main__":
    main()
