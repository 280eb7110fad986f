"""The recorded cases of layouts, of fused and of rare operators; see `record.py`."""

# Rows of a table.
# fmt: off

import numpy as np
import tensorflow as tf
from record import graph_case
from record_ops import f32, ints
from tensorflow import raw_ops as raw


def cases():
    """Notes all cases."""
    layouts()
    rest()
    combined()


def layouts():
    """Chains in which the layout of images passes through other operators."""
    weights, bias = f32(3, 3, 3, 4), f32(4)

    def conv(x):
        return tf.nn.conv2d(x, weights, 1, "SAME")

    x = {"x": f32(2, 5, 6, 3)}
    rows = {
        "bias_relu": lambda x: tf.nn.relu(tf.nn.bias_add(conv(x), bias)),
        "scale_row": lambda x: conv(x) * f32(6, 4) + f32(5, 1, 1),
        "residual": lambda x: conv(x) + x[..., :1],
        "pad": lambda x: tf.pad(conv(x), [[0, 0], [1, 2], [0, 1], [0, 3]]),
        "mean": lambda x: tf.reduce_mean(conv(x), [1, 2]),
        "mean_keep": lambda x: tf.reduce_mean(conv(x), [1, 2], keepdims=True),
        "mean_channels": lambda x: tf.reduce_mean(conv(x), -1),
        "mean_rows": lambda x: tf.reduce_mean(conv(x), 1),
        "max_batch": lambda x: tf.reduce_max(conv(x), 0),
        "concat": lambda x: tf.concat([conv(x), x, tf.ones([2, 5, 6, 1])], -1),
        "concat_rows": lambda x: tf.concat([conv(x), conv(x)], 1),
        "split": lambda x: [tf.nn.relu(p) for p in tf.split(conv(x), 2, -1)],
        "slice": lambda x: conv(x)[:, 1:, ::2, 1:3],
        "slice_shrink": lambda x: conv(x)[:, 1, :, 0],
        "flatten": lambda x: tf.reshape(conv(x), [2, -1]),
        "squeeze": lambda x: tf.squeeze(tf.reduce_max(conv(x), [1, 2], keepdims=True), [1, 2]),
        "transpose": lambda x: tf.transpose(conv(x), [0, 3, 1, 2]) * 2,
        "transpose_other": lambda x: tf.transpose(conv(x), [0, 2, 1, 3]),
        "softmax": lambda x: tf.nn.softmax(conv(x)),
        "argmax": lambda x: tf.argmax(conv(x), -1),
        "squeeze_excite": lambda x: conv(x) * tf.sigmoid(tf.reshape(tf.reduce_mean(conv(x), [1, 2]), [2, 1, 1, 4])),
        "where": lambda x: tf.where(conv(x) > 0, conv(x), 0.1 * conv(x)),
        "matmul": lambda x: tf.matmul(conv(x), f32(2, 5, 4, 3)),
        "dense": lambda x: tf.tensordot(conv(x), f32(4, 3), 1),
        "gather": lambda x: tf.gather(conv(x), [2, 0], axis=3),
        "unpack": lambda x: tf.unstack(conv(x), axis=3),
        "cumsum": lambda x: tf.cumsum(conv(x), 3),
        "tile": lambda x: tf.tile(conv(x), [1, 1, 2, 1]),
        "mirror": lambda x: tf.pad(conv(x), [[0, 0], [1, 1], [2, 2], [0, 0]], "REFLECT"),
        "reverse": lambda x: tf.reverse(conv(x), [2]),
        "expand": lambda x: tf.expand_dims(conv(x), 1),
        "prelu": lambda x: tf.nn.relu(conv(x)) - f32(1, 1, 4) * tf.nn.relu(-conv(x)),
        "space": lambda x: tf.nn.space_to_depth(conv(x)[:, :4], 2),
        "upsample": lambda x: tf.image.resize(conv(x), (10, 12)) + 1.0,
        "clip": lambda x: tf.clip_by_value(conv(x), -1, 1),
        "dims": lambda x: tf.reshape(conv(x), tf.concat([tf.shape(x)[:1], [30, 4]], 0)),
    }
    for name, call in rows.items():
        graph_case(f"layout_{name}", call, x)


def attribute(value):
    """An AttrValue of bytes, or of a list of bytes or numbers."""
    made = tf.compat.v1.AttrValue()
    if isinstance(value, list):
        getattr(made.list, "s" if isinstance(value[0], bytes) else "i").extend(value)
    else:
        made.s = value
    return made


def rest():
    """Operators that need a graph of their own to appear."""
    x, w, bias = f32(2, 5, 6, 3), f32(3, 3, 3, 4), f32(4)
    window = {"strides": [1, 1, 1, 1], "padding": b"SAME", "data_format": b"NHWC"}
    for ops in ([b"BiasAdd"], [b"BiasAdd", b"Relu"], [b"BiasAdd", b"Relu6"], [b"BiasAdd", b"Elu"], [b"BiasAdd", b"LeakyRelu"]):
        label = "_".join(o.decode() for o in ops)
        graph_case(f"FusedConv2D_{label}", lambda x, ops=ops: with_args("_FusedConv2D", [x, w, bias], ops, window), {"x": x})
    per = f32(4), f32(4), f32(4), f32(4, low=0.5)
    graph_case("FusedConv2D_norm", lambda x: with_args("_FusedConv2D", [x, w, *per], [b"FusedBatchNorm", b"Relu"], window), {"x": x})
    for ops in ([b"BiasAdd"], [b"BiasAdd", b"Relu"], [b"BiasAdd", b"Tanh"]):
        label = "_".join(o.decode() for o in ops)
        graph_case(f"FusedMatMul_{label}", lambda a, ops=ops: with_args("_FusedMatMul", [a, f32(5, 4), bias], ops, {}), {"a": f32(3, 5)})
    graph_case("BiasAddV1", lambda x: raw.BiasAddV1(value=x, bias=bias), {"x": f32(2, 3, 4)})
    graph_case("Diag", lambda x: raw.Diag(diagonal=x), {"x": f32(3)})
    graph_case("DiagPart", lambda x: raw.DiagPart(input=x), {"x": f32(3, 3)})
    graph_case("Mod", lambda x, y: raw.Mod(x=x, y=y), {"x": ints(9), "y": np.int32([3, -3, 2, -2, 5, 5, -5, 1, 7])})
    graph_case("PlaceholderWithDefault", lambda x: x * tf.compat.v1.placeholder_with_default(tf.constant([1.0, 2.0, 3.0]), [3]), {"x": f32(2, 3)})
    graph_case("Rank_Size", lambda x: [tf.rank(x), tf.size(x), tf.size(x, tf.int64)], {"x": f32(2, 3)}, shapes={"x": [None, 3]}, parse={"batch_size": 2})
    graph_case("UniqueV2", lambda x: list(raw.UniqueV2(x=x, axis=[0])), {"x": np.int64([3, 1, 3, 2, 1])})
    graph_case("SparseMatMul", lambda a, b: raw.SparseMatMul(a=a, b=b), {"a": f32(3, 4), "b": f32(4, 5)})
    graph_case("QuantizeAndDequantizeV2_raw", lambda x: raw.QuantizeAndDequantizeV2(input=x, input_min=-1.5, input_max=1.2, range_given=True), {"x": f32(3, 4)})
    def items(x):
        return raw.TensorListFromTensor(tensor=x, element_shape=[3])
    graph_case("TensorListLength", lambda x: [raw.TensorListLength(input_handle=items(x)), raw.TensorListElementShape(input_handle=items(x), shape_type=tf.int32)], {"x": f32(4, 3)})
    def call(x):
        return raw.TensorListStack(input_handle=raw.TensorListScatterV2(tensor=x, indices=[2, 0, 1], element_shape=[3], num_elements=-1), element_shape=[3], element_dtype=tf.float32)
    graph_case("TensorListScatterV2", call, {"x": f32(3, 3)})


def with_args(op, inputs, ops, attributes):
    """A fused node; its further inputs are typed as a list."""
    graph = tf.compat.v1.get_default_graph()
    names = {key: attribute(value) for key, value in attributes.items()}
    names["T"] = tf.compat.v1.AttrValue(type=1)
    names["num_args"] = tf.compat.v1.AttrValue(i=len(inputs) - 2)
    names["fused_ops"] = attribute(ops)
    if op == "_FusedConv2D":
        names["TArgs"] = tf.compat.v1.AttrValue()
        names["TArgs"].list.type.extend([1] * (len(inputs) - 2))
        names["num_host_args"] = tf.compat.v1.AttrValue(i=0)
    placed = list(map(tf.convert_to_tensor, inputs))
    return graph.create_op(op, placed, [tf.float32], attrs=names, name="fused").outputs[0]


def combined():
    """CombinedNonMaxSuppression: boxes shared by the classes or not, clipped or not."""
    for kinds in (1, 3):
        corner = f32(2, 12, kinds, 2, low=0, high=0.8)
        boxes = np.concatenate([corner, corner + f32(2, 12, kinds, 2, low=0.1, high=0.4)], -1)
        scores = f32(2, 12, 3, low=0, high=1)
        for pad, clip, total in ((False, True, 8), (True, False, 20), (False, False, 50)):
            def call(b, s, pad=pad, clip=clip, total=total):
                return list(raw.CombinedNonMaxSuppression(boxes=b, scores=s, max_output_size_per_class=4, max_total_size=total, iou_threshold=0.4, score_threshold=0.3, pad_per_class=pad, clip_boxes=clip))
            graph_case(f"CombinedNonMaxSuppression_{kinds}_{total}", call, {"b": boxes, "s": scores})
