"""The recorded cases of control flow; see `record.py`."""

import numpy as np
import tensorflow as tf
from record import Case, add, frozen_case, function_case, graph_case, lean


def cases():
    """Notes all cases."""
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    for flag in (True, False):
        frozen_case(
            f"If_{flag}",
            lambda x, c: tf.cond(
                c, lambda: tf.matmul(x, x, transpose_b=True), lambda: tf.zeros([2, 2]) - 1.0
            ),
            {"x": x, "c": np.bool_(flag)},
        )
    frozen_case(
        "If_number",
        lambda x: tf.cond(tf.reduce_sum(x) > 20, lambda: [x + 1, x * 2], lambda: [x - 1, x / 2]),
        {"x": x},
    )
    frozen_case("If_nested", nested, {"x": x, "k": np.int32(2)})
    frozen_case("While_count", lambda x: count(x, 5), {"x": x})
    frozen_case(
        "While_data",
        lambda x: tf.while_loop(lambda v: tf.reduce_sum(v) < 100, lambda v: [v * 1.5], [x])[0],
        {"x": x},
    )
    frozen_case("While_never", lambda x: count(x, 0), {"x": x})
    frozen_case("While_collatz", collatz, {"n": np.int32(27)})
    frozen_case("While_rows", rows, {"x": x})
    frozen_case(
        "While_in_if",
        lambda x, c: tf.cond(c, lambda: count(x, 3), lambda: x),
        {"x": x, "c": np.bool_(True)},
    )
    frozen_case("call_inlined", called, {"x": x})
    function_case("call", called, {"x": x})
    function_case("call_twice", lambda x: scaled(scaled(x, 2.0), 3.0), {"x": x})
    function_case("While", lambda x: count(x, 4), {"x": x})
    function_case(
        "Case",
        lambda x: tf.switch_case(tf.size(x) - 5, [lambda: x, lambda: x * 2, lambda: x * 3]),
        {"x": x},
    )
    frozen_case("TensorArray", squares, {"x": x})
    frozen_case("TensorArray_gather", picked, {"x": x})
    frozen_case("map_fn", lambda x: tf.map_fn(lambda r: tf.reduce_sum(r) * r, x), {"x": x})
    for flag in (True, False):
        undecided_case(f"Switch_undecided_{flag}", flag)
    boxes = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11], [0, 10.1, 1, 11.1]])
    graph_case(
        "padded_detections", padded_detections, {"b": boxes, "s": np.float32([0.9, 0.6, 0.95, 0.5])}
    )
    graph_case("boolean_mask", lambda x: boolean_mask(x), {"x": x})
    for flag in (True, False):
        switch_case(f"Switch_{flag}", flag)
    graph_case("control_inputs", control_inputs, {"x": x})


def padded_detections(b, s):
    """Filled up to five rows by the number of boxes that are selected."""
    kept = tf.image.non_max_suppression(b, s, 5, 0.5, 0.3)
    count = tf.shape(kept)[0]
    rows = tf.pad(tf.gather(b, kept), [[0, 5 - count], [0, 0]])
    ranks = tf.range(count) * 2 + kept
    best = tf.nn.top_k(tf.gather(s, kept), tf.minimum(count, 2)).values
    tiled = tf.tile(tf.reshape(tf.gather(s, kept), [count, 1]), [1, 2])
    return rows, ranks, best, tf.reduce_sum(tiled, 0), count, tiled[:1] + tf.fill([count, 2], 1.0)


def boolean_mask(x):
    picked = tf.boolean_mask(x, x > 2.5)
    stacked = tf.stack([picked, picked * 2], 1)
    return picked, stacked, tf.shape(stacked), tf.reduce_max(stacked, 0), tf.split(stacked, 2, 1)[1]


def nested(x, k):
    def inner():
        return tf.cond(k > 1, lambda: x * 10, lambda: x * 100)

    return tf.cond(k > 0, inner, lambda: x)


def count(x, times):
    w = tf.constant(np.eye(3, dtype=np.float32) * 1.1)
    return tf.while_loop(
        lambda i, v: i < times, lambda i, v: [i + 1, tf.matmul(v, w)], [tf.constant(0), x]
    )[1]


def collatz(n):
    def step(n, k):
        return [tf.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1]

    return tf.while_loop(lambda n, k: n > 1, step, [n, tf.constant(0)])


def rows(x):
    """Reads one column after another by the number of the iteration."""

    def step(i, total):
        return [i + 1, total * 2 + x[:, i] + tf.slice(x, [0, i], [2, 1])[:, 0]]

    return tf.while_loop(lambda i, t: i < 3, step, [tf.constant(0), tf.zeros(2)])[1]


@tf.function
def scaled(x, by):
    top = tf.nn.top_k(x, 2)
    return top.values * by + tf.cast(top.indices, tf.float32)


def called(x):
    return scaled(x, 2.0)


def switch_case(name, flag):
    """A dropout of TensorFlow 1, frozen with its flag: dead nodes are on the other side."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2, 3], name="x")
        switched = tf.raw_ops.Switch(data=x, pred=flag)
        on = tf.raw_ops.Mul(x=switched.output_true, y=2.0)
        off = tf.raw_ops.Add(x=switched.output_false, y=1.0)
        merged = tf.raw_ops.Merge(inputs=[off, on])
        out = tf.identity(merged.output, name="out")
        index = tf.identity(merged.value_index, name="index")
    inputs = {"x": np.float32([[1, 2, 3], [4, 5, 6]])}
    add(Case(name, lean(graph.as_graph_def()), inputs, [out.op.name, index.op.name]))


def undecided_case(name, flag):
    """Branches of TensorFlow 1 that an input chooses, one inside another."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2, 3], name="x")
        c = tf.compat.v1.placeholder(tf.bool, [], name="c")
        d = tf.compat.v1.placeholder(tf.bool, [], name="d")
        raw = tf.raw_ops
        outer = raw.Switch(data=x, pred=c)
        inner = raw.Switch(data=outer.output_true * 2.0, pred=d)
        chosen = raw.Merge(inputs=[inner.output_false + 1.0, inner.output_true - 1.0])
        with tf.control_dependencies([tf.identity(outer.output_false)]):
            other = tf.ones([2, 3]) * 7.0
        merged = raw.Merge(inputs=[other, chosen.output])
        out, index = tf.identity(merged.output + x), tf.identity(merged.value_index)
    inputs = {"x": np.float32([[1, 2, 3], [4, 5, 6]]), "c": np.bool_(flag), "d": np.bool_(not flag)}
    add(Case(name, lean(graph.as_graph_def()), inputs, [out.op.name, index.op.name]))


def squares(x):
    def step(i, items):
        return i + 1, items.write(i, x[:, i] * x[:, i])

    items = tf.TensorArray(tf.float32, 3)
    return tf.while_loop(lambda i, a: i < 3, step, [tf.constant(0), items])[1].stack()


def picked(x):
    items = tf.TensorArray(tf.float32, 2).unstack(x)
    return items.gather([1, 0]), items.read(1), items.size()


def control_inputs(x):
    check = tf.debugging.Assert(tf.reduce_all(x > 0), [x])
    with tf.control_dependencies([check, tf.no_op()]):
        return tf.identity(x * 2)
