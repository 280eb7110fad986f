"""The recorded cases of single operators; see `record.py`."""

# Rows of a table. Defaults of arguments are how a row keeps its weights.
# fmt: off
# ruff: noqa: B008

import numpy as np
import tensorflow as tf
from record import graph_case
from tensorflow import raw_ops as raw

RANDOM = np.random.default_rng(7)


def words(text):
    return text.split()


def f32(*dims, low=-2.0, high=2.0):
    return RANDOM.uniform(low, high, dims).astype(np.float32)


def ints(*dims, low=-9, high=10, dtype=np.int32):
    return RANDOM.integers(low, high, dims).astype(dtype)


def bools(*dims):
    return RANDOM.integers(0, 2, dims).astype(bool)


def cases():
    """Notes all cases."""
    unary()
    binary()
    choices()
    types()
    reductions()
    windows()
    norms()
    products()
    shapes()
    slices()
    indices()
    spaces()
    images()
    quantised()


def unary():
    plain = words("Abs Ceil Cos Cosh Elu Erf Erfc Exp Expm1 Floor Neg Relu Relu6 Rint Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Square Tan Tanh Atan Asinh")
    for name in plain:
        key = "features" if name in ("Elu", "Relu", "Relu6", "Selu", "Softplus", "Softsign") else "x"
        graph_case(f"{name}", lambda x, name=name, key=key: getattr(raw, name)(**{key: x}), {"x": f32(3, 5)})
    for name in words("Log Log1p Sqrt Rsqrt Reciprocal Inv Acosh"):
        graph_case(name, lambda x, name=name: getattr(raw, name)(x=x), {"x": f32(3, 5, low=1.1, high=4)})
    for name in words("Acos Asin Atanh"):
        graph_case(name, lambda x, name=name: getattr(raw, name)(x=x), {"x": f32(3, 5, low=-0.9, high=0.9)})
    tiny = np.array([1e-6, -1e-6, 3e-4, -0.2, 0.4, 5, 30, 0], np.float32)
    graph_case("Expm1_small", lambda x: raw.Expm1(x=x), {"x": tiny})
    graph_case("Log1p_small", lambda x: raw.Log1p(x=x), {"x": tiny})
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49], np.float32)
    graph_case("Round_halves", lambda x: raw.Round(x=x), {"x": halves})
    graph_case("LeakyRelu", lambda x: tf.nn.leaky_relu(x, 0.1), {"x": f32(3, 5)})
    graph_case("LeakyRelu_default", lambda x: raw.LeakyRelu(features=x), {"x": f32(3, 5)})
    special = np.array([np.nan, np.inf, -np.inf, 1, 0], np.float32)
    for name in words("IsNan IsInf IsFinite"):
        graph_case(name, lambda x, name=name: getattr(raw, name)(x=x), {"x": special})
    for name in words("OnesLike ZerosLike Identity StopGradient Snapshot PreventGradient"):
        key = "input" if name in ("Identity", "StopGradient", "Snapshot", "PreventGradient") else "x"
        graph_case(name, lambda x, name=name, key=key: getattr(raw, name)(**{key: x}), {"x": f32(2, 3)})
    graph_case("LogicalNot", lambda x: raw.LogicalNot(x=x), {"x": bools(6)})
    graph_case("Invert", lambda x: raw.Invert(x=x), {"x": ints(6)})
    graph_case("Invert_uint8", lambda x: raw.Invert(x=x), {"x": ints(6, low=0, high=255, dtype=np.uint8)})
    graph_case("ClipByValue", lambda x: raw.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=1.0), {"x": f32(3, 5)})
    graph_case("Relu6_int", lambda x: raw.Relu6(features=x), {"x": ints(8)})
    graph_case("Abs_int", lambda x: raw.Abs(x=x), {"x": ints(8, dtype=np.int64)})
    graph_case("CheckNumerics", lambda x: raw.CheckNumerics(tensor=x, message="no"), {"x": f32(3)})
    graph_case("gelu_erf", lambda x: tf.nn.gelu(x), {"x": f32(3, 5)})
    graph_case("gelu_tanh", lambda x: tf.nn.gelu(x, approximate=True), {"x": f32(3, 5)})
    graph_case("swish", lambda x: x * tf.sigmoid(x), {"x": f32(3, 5)})


def binary():
    for name in words("Add AddV2 Sub Mul Maximum Minimum SquaredDifference RealDiv FloorDiv FloorMod TruncateMod DivNoNan Atan2"):
        keys = ("y", "x") if name == "Atan2" else ("x", "y")
        def call(x, y, name=name, keys=keys):
            return getattr(raw, name)(**dict(zip(keys, (x, y))))
        graph_case(name, call, {"x": f32(3, 4), "y": f32(3, 4, low=0.5)})
        graph_case(f"{name}_broadcast", call, {"x": f32(2, 3, 4), "y": f32(4, low=-2, high=-0.5)})
    for name in words("Add Sub Mul Div FloorDiv FloorMod TruncateDiv TruncateMod Maximum SquaredDifference"):
        def call(x, y, name=name):
            return getattr(raw, name)(x=x, y=y)
        graph_case(f"{name}_int32", call, {"x": ints(20), "y": np.where(ints(20) > 0, 4, -3).astype(np.int32)})
    graph_case("FloorMod_int64", lambda x, y: raw.FloorMod(x=x, y=y), {"x": ints(9, dtype=np.int64), "y": np.int64([3, -3, 2, -2, 5, 5, -5, 1, 7])})
    graph_case("Mod_uint", lambda x, y: raw.FloorMod(x=x, y=y), {"x": ints(9, low=0, dtype=np.uint16), "y": ints(9, low=1, dtype=np.uint16)})
    graph_case("Pow", lambda x, y: raw.Pow(x=x, y=y), {"x": f32(3, 4, low=0.1), "y": f32(4)})
    graph_case("Pow_int", lambda x, y: raw.Pow(x=x, y=y), {"x": ints(8), "y": ints(8, low=0, high=4)})
    zeros = np.array([0, 0, 1, 2], np.float32)
    for name in words("Xlogy Xdivy Xlog1py"):
        graph_case(name, lambda x, y, name=name: getattr(raw, name)(x=x, y=y), {"x": zeros, "y": np.float32([0, 3, 2, 0.5])})
    graph_case("DivNoNan_zero", lambda x, y: raw.DivNoNan(x=x, y=y), {"x": f32(4), "y": zeros})
    graph_case("MulNoNan_zero", lambda x, y: raw.MulNoNan(x=x, y=y), {"x": np.float32([np.nan, np.inf, 2, 3]), "y": zeros})
    quadrants = np.float32([1, 1, -1, -1, 0, 0, 2, -2, 0]), np.float32([1, -1, 1, -1, 2, -2, 0, 0, 0])
    graph_case("Atan2_quadrants", lambda x, y: raw.Atan2(y=y, x=x), {"y": quadrants[0], "x": quadrants[1]})
    mixed = np.float32([1, 2, np.nan, 3]), np.float32([1, 3, np.nan, 2])
    for name in words("Equal NotEqual Less LessEqual Greater GreaterEqual"):
        def call(x, y, name=name):
            return getattr(raw, name)(x=x, y=y)
        graph_case(name, call, {"x": mixed[0], "y": mixed[1]})
        graph_case(f"{name}_int", call, {"x": ints(3, 8, low=0, high=3), "y": ints(8, low=0, high=3)})
    graph_case("ApproximateEqual", lambda x, y: raw.ApproximateEqual(x=x, y=y, tolerance=0.3), {"x": f32(9), "y": f32(9)})
    for name in words("LogicalAnd LogicalOr"):
        graph_case(name, lambda x, y, name=name: getattr(raw, name)(x=x, y=y), {"x": bools(4, 3), "y": bools(3)})
    for name in words("BitwiseAnd BitwiseOr BitwiseXor"):
        def call(x, y, name=name):
            return getattr(raw, name)(x=x, y=y)
        graph_case(name, call, {"x": ints(8), "y": ints(8)})
    graph_case("scalars", lambda x, y: [x + y, tf.shape(x * y), tf.rank(x)], {"x": np.float32(3), "y": np.float32(4)})
    graph_case("scalar_with_vector", lambda x, y: x * y + 1.0, {"x": np.float32(3), "y": f32(4)})


def choices():
    for count in (1, 2, 6):
        graph_case(f"AddN_{count}", lambda **xs: raw.AddN(inputs=list(xs.values())), {f"x{k}": f32(2, 3) for k in range(count)})
    def select(c, x, y):
        return raw.Select(condition=c, x=x, y=y)
    graph_case("Select", select, {"c": bools(2, 3), "x": f32(2, 3), "y": f32(2, 3)})
    graph_case("Select_rows", select, {"c": bools(4), "x": f32(4, 3, 2), "y": f32(4, 3, 2)})
    graph_case("Select_scalar", select, {"c": np.bool_(True), "x": f32(4, 3), "y": f32(4, 3)})
    graph_case("SelectV2", lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y), {"c": bools(2, 1), "x": f32(3), "y": np.float32(1)})
    graph_case("IdentityN", lambda x, y: raw.IdentityN(input=[x, y]), {"x": f32(2), "y": ints(3)})


def types():
    for kind in (np.float64, np.float16, np.int32, np.int64, np.int8, np.uint8, np.bool_):
        graph_case(f"Cast_{np.dtype(kind).name}", lambda x, kind=kind: tf.cast(x, kind), {"x": f32(9, low=0, high=90)})
        start = f32(9, low=0, high=90).astype(kind)
        graph_case(f"Cast_from_{np.dtype(kind).name}", lambda x: tf.cast(x, tf.float32), {"x": start})
    graph_case("Cast_negative", lambda x: tf.cast(x, tf.int32), {"x": f32(9, low=-9, high=9)})
    graph_case("Cast_wraps", lambda x: tf.cast(x, tf.uint8), {"x": ints(9, low=-500, high=500)})
    graph_case("Cast_bfloat16", lambda x: tf.cast(tf.cast(x, tf.bfloat16) * 2, tf.float32), {"x": f32(9)})
    bf16 = tf.bfloat16.as_numpy_dtype
    graph_case("bfloat16_input", lambda x: x * tf.constant([1.5, 2, 3], tf.bfloat16), {"x": f32(2, 3).astype(bf16)}, tolerance=1e-2)
    graph_case("Bitcast", lambda x: tf.bitcast(x, tf.int32), {"x": f32(5)})
    for kind in (np.uint8, np.uint16, np.int16, np.uint32, np.uint64, np.int64, np.bool_, np.float16, np.float64):
        values = np.array([1, 0, 3, 1]).astype(kind)
        graph_case(f"constant_{np.dtype(kind).name}", lambda x, values=values: tf.concat([x, tf.constant(values), tf.zeros(3, values.dtype)], 0), {"x": values[::-1].copy()})
    graph_case("constant_repeated", lambda x: x + tf.fill([3, 4], 2.5) + tf.constant(1.5, shape=[3, 4]), {"x": f32(3, 4)})


def reductions():
    for name in words("Sum Mean Max Min Prod EuclideanNorm"):
        for axes, keep in (([0], False), ([-1], True), ([0, 2], False), ([], False), ([0, 1, 2], False), ([0, 1, 2], True)):
            label = f"{name}_{''.join(map(str, axes)) or 'none'}{'_keep' if keep else ''}"
            def call(x, name=name, axes=axes, keep=keep):
                return getattr(raw, name)(input=x, axis=np.int32(axes), keep_dims=keep)
            graph_case(label, call, {"x": f32(2, 3, 4)})
    for name in words("All Any"):
        for axis in (0, [1], [0, 1]):
            def call(x, name=name, axis=axis):
                return getattr(raw, name)(input=x, axis=axis)
            graph_case(f"{name}_{axis}", call, {"x": bools(4, 3)})
    graph_case("Sum_int", lambda x: tf.reduce_sum(x, 1), {"x": ints(3, 4)})
    graph_case("Mean_int", lambda x: tf.reduce_mean(x, 1), {"x": ints(3, 4, low=0)})
    graph_case("reduce_all_axes", lambda x: tf.reduce_sum(x), {"x": f32(3, 4)})
    graph_case("logsumexp", lambda x: tf.reduce_logsumexp(x, -1), {"x": f32(3, 4)})
    graph_case("L2Loss", lambda x: tf.nn.l2_loss(x), {"x": f32(3, 4)})
    for name in words("ArgMax ArgMin"):
        for axis, kind in ((0, tf.int64), (-1, tf.int32)):
            def call(x, name=name, axis=axis, kind=kind):
                return getattr(raw, name)(input=x, dimension=axis, output_type=kind)
            graph_case(f"{name}_{axis}", call, {"x": f32(3, 4)})
    graph_case("ArgMax_ties", lambda x: tf.argmax(x, 1), {"x": np.float32([[1, 3, 3], [2, 2, 2]])})
    for name in words("Softmax LogSoftmax"):
        graph_case(name, lambda x, name=name: getattr(raw, name)(logits=x), {"x": f32(3, 5)})
    graph_case("Softmax_rank3", lambda x: tf.nn.softmax(x), {"x": f32(2, 3, 5)})
    graph_case("softmax_axis", lambda x: tf.nn.softmax(x, axis=1), {"x": f32(2, 3, 5)})
    for exclusive in (False, True):
        for reverse in (False, True):
            label = f"{'_exclusive' if exclusive else ''}{'_reverse' if reverse else ''}"
            graph_case(f"Cumsum{label}", lambda x, e=exclusive, r=reverse: tf.cumsum(x, 1, e, r), {"x": f32(2, 5)})
            graph_case(f"Cumprod{label}", lambda x, e=exclusive, r=reverse: tf.math.cumprod(x, 1, e, r), {"x": f32(2, 5)})
    graph_case("TopKV2", lambda x: tf.nn.top_k(x, 3), {"x": f32(4, 6)})
    graph_case("TopKV2_ties", lambda x: list(tf.nn.top_k(x, 2)), {"x": np.float32([[1, 3, 3, 0], [2, 2, 2, 2]])})


def windows():
    rows = [(1, 3, "SAME"), (2, 3, "SAME"), (2, 3, "VALID"), (3, 2, "SAME"), (2, 1, "SAME"), (1, (3, 2), "VALID")]
    for step, kernel, padding in rows:
        high, wide = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        label = f"s{step}_k{high}{wide}_{padding}"
        weights, deep = f32(high, wide, 3, 4), f32(high, wide, 3, 2)
        x = f32(2, 7, 8, 3)
        graph_case(f"Conv2D_{label}", lambda x, w=weights, s=step, p=padding: tf.nn.conv2d(x, w, s, p), {"x": x})
        graph_case(f"Depthwise_{label}", lambda x, w=deep, s=step, p=padding: tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], p), {"x": x})
        graph_case(f"MaxPool_{label}", lambda x, k=(high, wide), s=step, p=padding: tf.nn.max_pool2d(x, k, s, p), {"x": x})
        graph_case(f"AvgPool_{label}", lambda x, k=(high, wide), s=step, p=padding: tf.nn.avg_pool2d(x, k, s, p), {"x": x})
    x = f32(2, 7, 8, 4)
    graph_case("Conv2D_dilated", lambda x, w=f32(3, 3, 4, 2): tf.nn.conv2d(x, w, 1, "SAME", dilations=2), {"x": x})
    graph_case("Conv2D_groups", lambda x, w=f32(3, 3, 2, 6): tf.nn.conv2d(x, w, 2, "VALID"), {"x": x})
    pads = [[0, 0], [1, 2], [0, 3], [0, 0]]
    graph_case("Conv2D_explicit", lambda x, w=f32(3, 3, 4, 2): tf.nn.conv2d(x, w, 2, pads), {"x": x})
    graph_case("MaxPool_explicit", lambda x: tf.nn.max_pool(x, 3, 2, [[0, 0], [1, 1], [0, 1], [0, 0]]), {"x": x})
    graph_case("Depthwise_dilated", lambda x, w=f32(3, 3, 4, 1): tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", dilations=[2, 2]), {"x": x})
    graph_case("Conv2D_dilated_by_batch", lambda x, w=f32(3, 3, 4, 2): tf.nn.convolution(x, w, 1, "SAME", dilations=[2, 3]), {"x": x})
    graph_case("Conv2D_by_input", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), {"x": x, "w": f32(3, 3, 4, 2)})
    graph_case("MaxPoolV2", lambda x: raw.MaxPoolV2(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"), {"x": x})
    for step, padding, size in ((2, "SAME", (14, 16)), (2, "SAME", (13, 15)), (2, "VALID", (15, 17)), (2, "VALID", (16, 17)), (1, "SAME", (7, 8)), (3, "SAME", (21, 22))):
        def call(x, w=f32(3, 3, 2, 4), s=step, p=padding, n=size):
            return tf.nn.conv2d_transpose(x, w, [2, *n, 2], s, p)
        graph_case(f"Conv2DBackpropInput_s{step}_{padding}_{size[0]}", call, {"x": x})
    def call(x, w=f32(4, 4, 3, 4)):
        return tf.nn.conv2d_transpose(x, w, tf.stack([tf.shape(x)[0], tf.shape(x)[1] * 2, tf.shape(x)[2] * 2, 3]), 2, "SAME")
    graph_case("Conv2DBackpropInput_computed_size", call, {"x": x}, shapes={"x": [None, 7, 8, 4]}, parse={"batch_size": 2})
    cube = f32(1, 5, 6, 7, 2)
    for step, padding in ((1, "SAME"), (2, "SAME"), (2, "VALID")):
        steps = [1, step, step, step, 1]
        graph_case(f"Conv3D_s{step}_{padding}", lambda x, w=f32(3, 2, 3, 2, 3), s=steps, p=padding: tf.nn.conv3d(x, w, s, p), {"x": cube})
        graph_case(f"MaxPool3D_s{step}_{padding}", lambda x, s=step, p=padding: tf.nn.max_pool3d(x, 2, s, p), {"x": cube})
        graph_case(f"AvgPool3D_s{step}_{padding}", lambda x, s=step, p=padding: tf.nn.avg_pool3d(x, 2, s, p), {"x": cube})
    graph_case("Conv3DBackpropInputV2", lambda x, w=f32(2, 3, 2, 3, 2): tf.nn.conv3d_transpose(x, w, [1, 10, 12, 14, 3], 2, "SAME"), {"x": cube})
    graph_case("conv3d_bias_relu", lambda x, w=f32(3, 2, 3, 2, 3), b=f32(3): tf.nn.relu(tf.nn.conv3d(x, w, [1] * 5, "SAME") + b), {"x": cube})


def norms():
    x = f32(2, 4, 5, 3)
    per = f32(3), f32(3), f32(3), f32(3, low=0.5)
    for name in words("FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"):
        def call(x, name=name):
            return getattr(raw, name)(x=x, scale=per[0], offset=per[1], mean=per[2], variance=per[3], is_training=False, epsilon=0.01)[0]
        graph_case(name, call, {"x": x})
    def call(x):
        return raw.FusedBatchNormV3(x=x, scale=per[0], offset=per[1], mean=np.zeros(0, np.float32), variance=np.zeros(0, np.float32), is_training=True)[:3]
    graph_case("FusedBatchNormV3_training", call, {"x": x})
    graph_case("BiasAdd", lambda x: tf.nn.bias_add(x, per[0]), {"x": x})
    graph_case("BiasAdd_rank2", lambda x: tf.nn.bias_add(x, per[0]), {"x": f32(4, 3)})
    graph_case("BiasAdd_rank3", lambda x: tf.nn.bias_add(x, per[0]), {"x": f32(2, 4, 3)})
    graph_case("LRN", lambda x: raw.LRN(input=x), {"x": f32(1, 3, 3, 14)})
    graph_case("LRN_radius2", lambda x: raw.LRN(input=x, depth_radius=2, bias=2, alpha=0.3, beta=0.75), {"x": f32(1, 3, 3, 9)})
    graph_case("layer_norm", lambda x: (x - tf.reduce_mean(x, -1, keepdims=True)) * tf.math.rsqrt(tf.math.reduce_variance(x, -1, keepdims=True) + 1e-3), {"x": f32(2, 3, 8)})
    graph_case("batch_norm_by_parts", lambda x: tf.nn.batch_normalization(x, per[2], per[3], per[1], per[0], 1e-3), {"x": x})


def products():
    for ta in (False, True):
        for tb in (False, True):
            a, b = f32(4, 3) if ta else f32(3, 4), f32(5, 4) if tb else f32(4, 5)
            graph_case(f"MatMul_{ta:d}{tb:d}", lambda a, b, ta=ta, tb=tb: tf.matmul(a, b, ta, tb), {"a": a, "b": b})
            a, b = f32(2, 4, 3) if ta else f32(2, 3, 4), f32(2, 5, 4) if tb else f32(2, 4, 5)
            for name in words("BatchMatMul BatchMatMulV2"):
                graph_case(f"{name}_{ta:d}{tb:d}", lambda a, b, ta=ta, tb=tb, name=name: getattr(raw, name)(x=a, y=b, adj_x=ta, adj_y=tb), {"a": a, "b": b})
    graph_case("BatchMatMulV2_broadcast", lambda a, b: raw.BatchMatMulV2(x=a, y=b), {"a": f32(3, 1, 2, 4), "b": f32(5, 4, 2)})
    graph_case("BatchMatMulV3", lambda a, b: raw.BatchMatMulV3(x=a, y=b, Tout=tf.int32), {"a": ints(2, 3, 4, dtype=np.int8), "b": ints(2, 4, 5, dtype=np.int8)})
    graph_case("MatMul_int", lambda a, b: tf.matmul(a, b), {"a": ints(3, 4), "b": ints(4, 5)})
    for equation, *dims in (("ab,bc->ac", (2, 3), (3, 4)), ("abc,cd->abd", (2, 3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4)), ("...ij,jk->...ik", (2, 3, 4), (4, 2)), ("ij->ji", (2, 3)), ("ij->", (2, 3))):
        label = equation.replace("...", "dots").replace(",", "_").replace("->", "_to_")
        def call(equation=equation, **xs):
            return raw.Einsum(inputs=list(xs.values()), equation=equation)
        graph_case(f"Einsum_{label}", call, {f"x{k}": f32(*d) for k, d in enumerate(dims)})


def shapes():
    x = f32(2, 3, 4)
    for dims in ([6, 4], [-1], [2, -1, 2], [1, 24, 1, 1], [4, 3, 2]):
        graph_case(f"Reshape_{'_'.join(map(str, dims))}", lambda x, dims=dims: tf.reshape(x, dims), {"x": x})
    graph_case("Reshape_scalar", lambda x: tf.reshape(x, []), {"x": f32(1, 1)})
    graph_case("Reshape_empty", lambda x: tf.reshape(x, [0, 3]), {"x": f32(3, 0, 2)}, parse={"map_input_dims": {"x": [3, 0, 2]}})
    graph_case("Reshape_from_shape", lambda x: tf.reshape(x, [tf.shape(x)[0], -1]), {"x": x}, shapes={"x": [None, 3, 4]}, parse={"batch_size": 2})
    for axis in (0, 1, -1):
        graph_case(f"ExpandDims_{axis}", lambda x, axis=axis: tf.expand_dims(x, axis), {"x": f32(2, 3)})
        graph_case(f"Pack_{axis}", lambda x, y, axis=axis: tf.stack([x, y, x], axis), {"x": f32(2, 3), "y": f32(2, 3)})
        graph_case(f"ConcatV2_{axis}", lambda x, y, axis=axis: tf.concat([x, y, x], axis), {"x": f32(2, 3), "y": f32(2, 3)})
        graph_case(f"Unpack_{axis}", lambda x, axis=axis: tf.unstack(x, axis=axis), {"x": f32(2, 3, 4)})
    graph_case("ExpandDims_scalar", lambda x: tf.expand_dims(x, 0), {"x": np.float32(3)})
    graph_case("Pack_scalars", lambda x, y: tf.stack([x, y]), {"x": np.float32(3), "y": np.float32(4)})
    graph_case("Concat", lambda x, y: raw.Concat(concat_dim=1, values=[x, y]), {"x": f32(2, 3), "y": f32(2, 1)})
    graph_case("Squeeze", lambda x: tf.squeeze(x), {"x": f32(1, 3, 1, 2, 1)})
    graph_case("Squeeze_axes", lambda x: tf.squeeze(x, [0, -1]), {"x": f32(1, 3, 1, 2, 1)})
    graph_case("Squeeze_all", lambda x: tf.squeeze(x), {"x": f32(1, 1)})
    for order in ([1, 0, 2], [2, 1, 0], [0, 1, 2]):
        graph_case(f"Transpose_{''.join(map(str, order))}", lambda x, order=order: tf.transpose(x, order), {"x": x})
    graph_case("Shape", lambda x: [tf.shape(x), tf.shape(x, tf.int64), tf.size(x), tf.rank(x)], {"x": x})
    graph_case("ShapeN", lambda x, y: raw.ShapeN(input=[x, y]), {"x": x, "y": f32(5)})
    graph_case("Tile", lambda x: tf.tile(x, [2, 1, 3]), {"x": x})
    graph_case("Tile_zero", lambda x: tf.tile(x, [2, 0, 1]), {"x": x})
    graph_case("BroadcastTo", lambda x: tf.broadcast_to(x, [2, 3, 4]), {"x": f32(3, 1)})
    graph_case("Fill", lambda x: tf.fill([2, 3], x), {"x": np.float32(2.5)})
    graph_case("Fill_like", lambda x: tf.fill(tf.shape(x), 7) + x, {"x": ints(2, 3)})
    graph_case("Range", lambda x: tf.cast(tf.range(tf.shape(x)[0]), tf.float32) + x + tf.range(0.0, 2.5, 0.5), {"x": f32(5)})
    graph_case("LinSpace", lambda x: raw.LinSpace(start=1.0, stop=3.0, num=5) + x, {"x": f32(5)})
    for pads in ([[1, 0], [0, 2], [1, 1]], [[0, 0], [2, 1], [0, 0]]):
        label = "_".join(str(p[0]) + str(p[1]) for p in pads)
        graph_case(f"Pad_{label}", lambda x, pads=pads: tf.pad(x, pads), {"x": x})
        graph_case(f"PadV2_{label}", lambda x, pads=pads: tf.pad(x, pads, constant_values=1.5), {"x": x})
        for mode in ("REFLECT", "SYMMETRIC"):
            graph_case(f"MirrorPad_{mode}_{label}", lambda x, pads=pads, mode=mode: tf.pad(x, pads, mode), {"x": x})
    graph_case("Pad_int", lambda x: tf.pad(x, [[1, 1]]), {"x": ints(4)})
    graph_case("ReverseV2", lambda x: tf.reverse(x, [0, -1]), {"x": x})
    graph_case("Reverse", lambda x: raw.Reverse(tensor=x, dims=[True, False, True]), {"x": x})
    graph_case("ReverseSequence", lambda x: tf.reverse_sequence(x, [2, 4, 1], seq_axis=1, batch_axis=0), {"x": f32(3, 4, 2)})
    graph_case("Roll", lambda x: tf.roll(x, [1, -2], [0, 2]), {"x": x})
    graph_case("MatrixBandPart", lambda x: tf.linalg.band_part(x, 1, 0), {"x": f32(2, 4, 5)})
    graph_case("MatrixBandPart_all", lambda x: tf.linalg.band_part(x, -1, 1), {"x": f32(4, 4)})
    graph_case("MatrixDiag", lambda x: raw.MatrixDiag(diagonal=x), {"x": f32(2, 3)})
    graph_case("MatrixDiagPart", lambda x: raw.MatrixDiagPart(input=x), {"x": f32(2, 3, 4)})
    graph_case("InvertPermutation", lambda x: tf.transpose(x, tf.math.invert_permutation([2, 0, 1])), {"x": x})
    graph_case("BroadcastArgs", lambda x: tf.broadcast_to(x, tf.broadcast_dynamic_shape([3, 1], [1, 4])), {"x": f32(4)})
    graph_case("EnsureShape", lambda x: tf.ensure_shape(x, [2, 3, 4]), {"x": x})


def slices():
    x = f32(5, 6, 7)
    rows = {
        "plain": lambda x: x[1:3, 2:, :4],
        "steps": lambda x: x[::2, 1:6:3, ::-1],
        "backwards": lambda x: x[4:0:-2, ::-1, -2::-3],
        "negative": lambda x: x[-3:-1, :-2, -1:],
        "shrink": lambda x: x[2, :, -1],
        "shrink_all": lambda x: x[2, 3, 1],
        "new_axis": lambda x: x[:, tf.newaxis, 1:3, tf.newaxis],
        "ellipsis": lambda x: x[..., 1],
        "ellipsis_middle": lambda x: x[1:2, ..., ::2],
        "ellipsis_new": lambda x: x[tf.newaxis, ..., tf.newaxis, 2:4],
        "mixed": lambda x: x[tf.newaxis, 3, ..., ::-2],
        "beyond": lambda x: x[3:99, -99:2],
        "empty": lambda x: x[3:1],
        "ellipsis_only": lambda x: x[...],
        "shrink_new": lambda x: x[0, tf.newaxis, 1, 2],
    }
    for name, call in rows.items():
        graph_case(f"StridedSlice_{name}", call, {"x": x})
    graph_case("StridedSlice_computed", lambda x, k: x[:, k], {"x": x, "k": np.int32(4)})
    graph_case("Slice", lambda x: tf.slice(x, [1, 0, 2], [2, 6, 3]), {"x": x})
    graph_case("Slice_rest", lambda x: tf.slice(x, [1, 2, 0], [-1, 2, -1]), {"x": x})
    graph_case("Slice_computed", lambda x, k: tf.slice(x, [1, k, 0], [2, 3, -1]), {"x": x, "k": np.int32(2)})
    graph_case("Split", lambda x: tf.split(x, 3, 1), {"x": x})
    graph_case("Split_last", lambda x: tf.split(x, 2, -1), {"x": f32(3, 4)})
    graph_case("SplitV", lambda x: tf.split(x, [1, 2, 3], 1), {"x": x})
    graph_case("SplitV_rest", lambda x: tf.split(x, [1, -1, 2], -1), {"x": x})


def indices():
    x = f32(4, 5, 6)
    graph_case("Gather", lambda x, i: raw.Gather(params=x, indices=i), {"x": x, "i": ints(3, low=0, high=4)})
    for axis in (0, 1, -1):
        graph_case(f"GatherV2_{axis}", lambda x, i, axis=axis: tf.gather(x, i, axis=axis), {"x": x, "i": ints(2, 3, low=0, high=4)})
    graph_case("GatherV2_scalar", lambda x, i: tf.gather(x, i), {"x": x, "i": np.int32(2)})
    graph_case("GatherV2_vector_scalar", lambda x, i: tf.gather(x, i), {"x": f32(4), "i": np.int32(2)})
    graph_case("GatherV2_batch", lambda x, i: tf.gather(x, i, batch_dims=1), {"x": x, "i": ints(4, 3, low=0, high=5)})
    graph_case("GatherV2_batch_axis", lambda x, i: tf.gather(x, i, axis=2, batch_dims=1), {"x": x, "i": ints(4, 3, low=0, high=6)})
    graph_case("GatherV2_batch2", lambda x, i: tf.gather(x, i, batch_dims=2), {"x": x, "i": ints(4, 5, 2, low=0, high=6)})
    for depth in (1, 2, 3):
        graph_case(f"GatherNd_{depth}", lambda x, i: tf.gather_nd(x, i), {"x": x, "i": ints(3, depth, low=0, high=4)})
    graph_case("GatherNd_batch", lambda x, i: tf.gather_nd(x, i), {"x": x, "i": ints(2, 3, 2, low=0, high=4)})
    graph_case("ScatterNd", lambda i, u: tf.scatter_nd(i, u, [6, 3]), {"i": np.int32([[0], [2], [0]]), "u": f32(3, 3)})
    graph_case("ScatterNd_full", lambda i, u: tf.scatter_nd(i, u, [3, 4]), {"i": np.int32([[0, 1], [2, 3]]), "u": f32(2)})
    for name in words("Update Add Sub Max Min"):
        def call(x, i, u, name=name):
            return getattr(raw, f"TensorScatter{name}")(tensor=x, indices=i, updates=u)
        graph_case(f"TensorScatter{name}", call, {"x": f32(5, 3), "i": np.int32([[1], [4]]), "u": f32(2, 3)})
    graph_case("UnsortedSegmentSum", lambda x, i: tf.math.unsorted_segment_sum(x, i, 4), {"x": f32(5, 2), "i": np.int32([0, 2, 0, -1, 3])})
    for axis in (-1, 0, 1):
        graph_case(f"OneHot_{axis}", lambda i, axis=axis: tf.one_hot(i, 4, axis=axis), {"i": np.int32([[0, 3], [-1, 4]])})
    graph_case("OneHot_values", lambda i: tf.one_hot(i, 3, on_value=5, off_value=-2), {"i": ints(4, low=0, high=3)})
    graph_case("OneHot_scalar", lambda i: tf.one_hot(i, 3), {"i": np.int32(1)})
    graph_case("Where", lambda x: tf.where(x), {"x": np.array([[1, 0, 1], [0, 0, 1]], bool)})
    graph_case("Unique", lambda x: tf.unique(x), {"x": np.int32([3, 1, 3, 2, 1])})
    boxes = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]])
    scores = np.float32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])
    feed = {"b": boxes, "s": scores}
    graph_case("NonMaxSuppression", lambda b, s: raw.NonMaxSuppression(boxes=b, scores=s, max_output_size=3), feed)
    graph_case("NonMaxSuppressionV2", lambda b, s: raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=3, iou_threshold=0.5), feed)
    graph_case("NonMaxSuppressionV3", lambda b, s: tf.image.non_max_suppression(b, s, 10, 0.5, 0.4), feed)
    graph_case("NonMaxSuppressionV3_gather", lambda b, s: tf.gather(b, tf.image.non_max_suppression(b, s, 2, 0.5)), feed)
    for pad in (False, True):
        graph_case(f"NonMaxSuppressionV4_{pad:d}", lambda b, s, pad=pad: list(raw.NonMaxSuppressionV4(boxes=b, scores=s, max_output_size=8, iou_threshold=0.5, score_threshold=0.4, pad_to_max_output_size=pad)), feed)
        graph_case(f"NonMaxSuppressionV5_{pad:d}", lambda b, s, pad=pad: list(raw.NonMaxSuppressionV5(boxes=b, scores=s, max_output_size=4, iou_threshold=0.5, score_threshold=0.4, soft_nms_sigma=0.0, pad_to_max_output_size=pad)), feed)


def spaces():
    x = f32(2, 4, 6, 3)
    graph_case("SpaceToBatchND", lambda x: tf.space_to_batch(x, [2, 3], [[0, 0], [1, 2]]), {"x": x})
    graph_case("SpaceToBatchND_rank3", lambda x: tf.space_to_batch(x, [2], [[1, 1]]), {"x": f32(2, 4, 3)})
    graph_case("BatchToSpaceND", lambda x: tf.batch_to_space(x, [2, 2], [[0, 1], [2, 0]]), {"x": f32(8, 3, 4, 2)})
    graph_case("SpaceToBatch", lambda x: raw.SpaceToBatch(input=x, paddings=[[0, 0], [1, 1]], block_size=2), {"x": x})
    graph_case("BatchToSpace", lambda x: raw.BatchToSpace(input=x, crops=[[0, 1], [0, 0]], block_size=2), {"x": f32(8, 3, 4, 2)})
    graph_case("SpaceToDepth", lambda x: tf.nn.space_to_depth(x, 2), {"x": x})
    graph_case("DepthToSpace", lambda x: tf.nn.depth_to_space(x, 2), {"x": f32(2, 3, 4, 8)})
    for padding in ("SAME", "VALID"):
        graph_case(f"ExtractImagePatches_{padding}", lambda x, padding=padding: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], padding), {"x": x})


def images():
    x = f32(2, 4, 5, 3)
    for size in ((8, 10), (7, 3), (2, 5), (1, 1)):
        for corners, half in ((False, False), (True, False), (False, True)):
            label = f"{size[0]}x{size[1]}{'_corners' if corners else ''}{'_half' if half else ''}"
            for name in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
                def call(x, name=name, size=size, c=corners, h=half):
                    return getattr(raw, name)(images=x, size=np.int32(size), align_corners=c, half_pixel_centers=h)
                graph_case(f"{name}_{label}", call, {"x": x}, tolerance=1e-4 if name == "ResizeBicubic" else 1e-5)
    graph_case("ResizeNearestNeighbor_uint8", lambda x: tf.image.resize(x, (6, 6), "nearest"), {"x": ints(1, 3, 3, 2, low=0, high=255, dtype=np.uint8)})
    boxes = np.float32([[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.7], [-0.3, 0.5, 1.4, 0.9], [0.9, 0.8, 0.1, 0.2]])
    for method in ("bilinear", "nearest"):
        for size in ((3, 4), (1, 2)):
            def call(x, b, method=method, size=size):
                return tf.image.crop_and_resize(x, b, [0, 1, 1, 0], size, method, 0.5)
            graph_case(f"CropAndResize_{method}_{size[0]}", call, {"x": f32(2, 6, 7, 2), "b": boxes})


def quantised():
    x = f32(3, 4)
    graph_case("FakeQuantArgs", lambda x: tf.quantization.fake_quant_with_min_max_args(x, -1.3, 1.7), {"x": x})
    graph_case("FakeQuantVars", lambda x: tf.quantization.fake_quant_with_min_max_vars(x, -1.3, 1.7, num_bits=4, narrow_range=True), {"x": x})
    graph_case("FakeQuantChannels", lambda x: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, np.float32([-1, -2, -0.5, -1]), np.float32([1, 1, 2, 0.7])), {"x": x})
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for kind in (tf.quint8, tf.qint8):
            def call(x, mode=mode, kind=kind):
                return tf.quantization.dequantize(tf.bitcast(x, kind), -1.5, 2.0, mode)
            data = ints(3, 4, low=0, high=255, dtype=np.uint8) if kind == tf.quint8 else ints(3, 4, low=-128, high=127, dtype=np.int8)
            graph_case(f"Dequantize_{mode}_{kind.name}", call, {"x": data})
            def call(x, mode=mode, kind=kind):
                return tf.bitcast(raw.QuantizeV2(input=x, min_range=-1.5, max_range=1.75, T=kind, mode=mode)[0], kind.name[1:])
            graph_case(f"QuantizeV2_{mode}_{kind.name}", call, {"x": x})
    graph_case("QuantizeAndDequantizeV2", lambda x: tf.quantization.quantize_and_dequantize_v2(x, -1.5, 1.2, range_given=True), {"x": x})
    graph_case("QuantizeAndDequantizeV2_unsigned", lambda x: tf.quantization.quantize_and_dequantize_v2(x, 0.0, 1.2, signed_input=False, range_given=True, round_mode="HALF_UP"), {"x": x})
