"""The recorded networks; see `record.py`."""

import numpy as np
import tensorflow as tf
from record import CASES, frozen_case

RANDOM = np.random.default_rng(3)

# name: (size of the image, arguments, slow)
APPLICATIONS = {
    "MobileNetV2": (48, {"alpha": 0.35}, False),
    "ResNet50": (32, {}, True),
    "InceptionV3": (75, {}, True),
    "EfficientNetB0": (32, {}, True),
    "DenseNet121": (32, {}, True),
    "MobileNetV3Small": (32, {"minimalistic": False}, True),
}


def f32(*dims):
    return RANDOM.uniform(-1, 1, dims).astype(np.float32)


def cases():
    """Notes all cases."""
    for name, (size, arguments, slow) in APPLICATIONS.items():
        tf.keras.backend.clear_session()
        build = getattr(tf.keras.applications, name)
        model = build(input_shape=(size, size, 3), weights=None, classes=10, **arguments)
        network(name, model, {"x": f32(1, size, size, 3)}, slow=slow)
    tf.keras.backend.clear_session()
    network("residual", residual(), {"x": f32(2, 16, 16, 3)})
    network("inception", inception(), {"x": f32(1, 16, 16, 3)})
    network("unet", unet(), {"x": f32(1, 16, 16, 3)})
    network("lstm", recurrent(layers.LSTM), {"x": f32(2, 5, 6)})
    network("gru", recurrent(layers.GRU), {"x": f32(2, 5, 6)})
    frozen_case("ssd", ssd, {"x": f32(1, 32, 32, 3)}, stripped=True, tolerance=1e-3)
    frozen_case(
        "bert",
        bert,
        {
            "ids": np.int32([[2, 7, 1, 9, 0, 0], [4, 4, 8, 3, 6, 1]]),
            "mask": np.int32([[1, 1, 1, 1, 0, 0], [1] * 6]),
        },
        stripped=True,
        tolerance=1e-3,
        shapes={"ids": [None, 6], "mask": [None, 6]},
        parse={"batch_size": 2},
    )


def network(name, model, inputs, **options):
    shapes = {k: [None, *v.shape[1:]] for k, v in inputs.items()}
    batch = next(iter(inputs.values())).shape[0]
    frozen_case(name, lambda x: model(x, training=False), inputs, shapes=shapes, stripped=True,
                tolerance=1e-3, parse={"batch_size": batch}, **options)  # fmt: skip
    return CASES[name]


layers = tf.keras.layers


def residual():
    x = start = layers.Input((16, 16, 3))
    x = layers.Conv2D(8, 3, 2, "same", activation="relu")(x)
    for step in (1, 2):
        short = layers.Conv2D(12, 1, step)(x) if step > 1 else x
        width = 12 if step > 1 else 8
        y = layers.BatchNormalization()(layers.Conv2D(width, 3, step, "same", use_bias=False)(x))
        y = layers.Conv2D(width, 3, 1, "same")(layers.ReLU()(y))
        x = layers.ReLU()(layers.Add()([y, short]))
    return tf.keras.Model(start, layers.Dense(5)(layers.GlobalAveragePooling2D()(x)))


def inception():
    x = start = layers.Input((16, 16, 3))
    x = layers.Conv2D(8, 3, activation="relu")(x)
    for _ in range(2):
        parts = [
            layers.Conv2D(4, 1, padding="same")(x),
            layers.Conv2D(4, (1, 5), padding="same")(layers.Conv2D(3, (5, 1), padding="same")(x)),
            layers.Conv2D(4, 1)(layers.AveragePooling2D(3, 1, "same")(x)),
            layers.MaxPooling2D(3, 1, "same")(x),
        ]
        x = layers.LeakyReLU()(layers.Concatenate()(parts))
    return tf.keras.Model(start, layers.Dense(5, "softmax")(layers.Flatten()(x)))


def unet():
    x = start = layers.Input((16, 16, 3))
    a = layers.SeparableConv2D(8, 3, padding="same", activation="swish")(x)
    b = layers.Conv2D(12, 3, padding="same", activation="elu")(layers.MaxPooling2D()(a))
    c = layers.Conv2DTranspose(8, 3, 2, "same")(b)
    d = layers.UpSampling2D(2, interpolation="bilinear")(layers.ZeroPadding2D(0)(b))
    x = layers.Concatenate()([a, c, d])
    x = layers.LayerNormalization()(layers.PReLU(shared_axes=[1, 2])(x))
    return tf.keras.Model(start, layers.Conv2D(2, 1, activation="sigmoid")(x))


def recurrent(layer):
    """Loops that gather their results in lists, forwards and backwards."""
    x = start = layers.Input((5, 6))
    x = layers.Bidirectional(layer(7, return_sequences=True))(x)
    return tf.keras.Model(start, layers.Dense(3)(layer(5)(x)))


def variable(*dims):
    return tf.Variable(f32(*dims))


SSD = [
    variable(3, 3, 3, 8),
    variable(3, 3, 8, 12),
    variable(3, 3, 12, 12),
    variable(3, 3, 12, 8),
    variable(3, 3, 12, 6),
]


def ssd(x):
    """Feature maps of two sizes, box and class heads, decoded boxes, suppression per image."""
    a = tf.nn.relu6(tf.nn.conv2d(x, SSD[0], 2, "SAME"))
    b = tf.nn.relu6(tf.nn.conv2d(a, SSD[1], 2, "SAME"))
    c = tf.nn.relu6(tf.nn.conv2d(b, SSD[2], 2, "SAME"))
    boxes = [
        tf.reshape(tf.nn.conv2d(f, SSD[3], 1, "SAME"), [tf.shape(x)[0], -1, 4]) for f in (b, c)
    ]
    scores = [
        tf.reshape(tf.nn.conv2d(f, SSD[4], 1, "SAME"), [tf.shape(x)[0], -1, 3]) for f in (b, c)
    ]
    boxes, scores = tf.concat(boxes, 1), tf.sigmoid(tf.concat(scores, 1))
    ticks = (tf.range(tf.shape(boxes)[1]) % 8, tf.range(tf.shape(boxes)[1]) // 8)
    anchors = tf.cast(tf.stack(ticks, 1), tf.float32) / 8
    center = boxes[..., :2] * 0.1 + anchors
    half = tf.exp(boxes[..., 2:] * 0.2) * 0.1
    corners = tf.concat([center - half, center + half], -1)
    best = tf.reduce_max(scores, -1)
    kept = tf.image.non_max_suppression(corners[0], best[0], 10, 0.4, 0.2)
    chosen = tf.gather(corners[0], kept)
    return corners, best, kept, chosen, tf.gather(tf.argmax(scores[0], -1), kept)


WIDTH, HEADS = 16, 4
BERT = {
    "words": variable(12, WIDTH), "places": variable(6, WIDTH), "first": variable(WIDTH, 32),
    "second": variable(32, WIDTH), "scale": variable(WIDTH), "shift": variable(WIDTH),
    **{f"{key}{k}": variable(WIDTH, WIDTH) for key in "qkvo" for k in (0, 1)},
}  # fmt: skip


def normal(x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, BERT["shift"], BERT["scale"], 1e-6)


def bert(ids, mask):
    """Two transformer blocks: gathers, batched products of rank 4, masks, GELU."""
    x = normal(tf.gather(BERT["words"], ids) + BERT["places"])
    batch, length = tf.shape(ids)[0], tf.shape(ids)[1]
    bias = (1.0 - tf.cast(mask, tf.float32)[:, tf.newaxis, tf.newaxis, :]) * -10000.0

    def heads(y):
        return tf.transpose(tf.reshape(y, [batch, length, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])

    for k in (0, 1):
        q, key, v = (heads(tf.einsum("bsd,de->bse", x, BERT[f"{n}{k}"])) for n in "qkv")
        scores = tf.matmul(q, key, transpose_b=True) / float(WIDTH // HEADS) ** 0.5 + bias
        mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3])
        x = normal(x + tf.matmul(tf.reshape(mixed, [batch, length, WIDTH]), BERT[f"o{k}"]))
        hidden = tf.nn.gelu(tf.tensordot(x, BERT["first"], 1))
        x = normal(x + tf.tensordot(hidden, BERT["second"], 1))
    return x, tf.tanh(x[:, 0])
