"""Convolution, pooling, normalisation and matrix products of ONNX."""

from __future__ import annotations

from migraphx.dims import Dim
from migraphx.errors import Error
from migraphx.types import FLOATS, type_t

from .registry import Deferred, onnx_op

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def spatial(values, count: int, default: int, name: str) -> list:
    """An attribute with one number per spatial axis, or its default."""
    if values is None or not len(values):
        return [default] * count
    if len(values) != count:
        raise Error(f"{name} {list(values)} needs {count} numbers")
    return list(values)


def window(m, x, kernel, strides, pads, dilations, auto_pad) -> dict:
    """Strides, dilations and pads (all begins, then all ends) of a window, written out."""
    count = len(kernel)
    if m.rank(x) != count + 2:
        raise Error(f"kernel {list(kernel)} does not fit an input with {m.rank(x)} dimensions")
    strides = spatial(strides, count, 1, "strides")
    dilations = spatial(dilations, count, 1, "dilations")
    if auto_pad not in AUTO_PADS:
        raise Error(f"auto_pad {auto_pad!r} is none of {', '.join(AUTO_PADS)}")
    if any(s < 1 for s in strides) or any(d < 1 for d in dilations) or any(k < 1 for k in kernel):
        raise Error("kernel sizes, strides and dilations must be positive")
    if auto_pad in ("NOTSET", "VALID"):
        pads = [0] * (2 * count) if auto_pad == "VALID" or not pads else list(pads)
        if len(pads) != 2 * count:
            raise Error(f"pads {pads} needs {2 * count} numbers")
        return {"strides": strides, "dilations": dilations, "pads": pads}
    begin, end = [], []
    for size, k, s, d in zip(m.static_dims(x)[2:], kernel, strides, dilations, strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        small, large = total // 2, total - total // 2
        begin.append(small if auto_pad == "SAME_UPPER" else large)
        end.append(large if auto_pad == "SAME_UPPER" else small)
    return {"strides": strides, "dilations": dilations, "pads": begin + end}


def add_bias(m, x, bias):
    """x plus one number per channel (axis 1)."""
    if x.shape().dynamic() and not x.shape().symbolic():
        return m.add("add", x, m.add("broadcast", bias, x, axis=1))
    if x.shape().dynamic():
        spread = m.add("broadcast", bias, axis=1, out_dyn_dims=x.shape().dims)
    else:
        spread = m.add("broadcast", bias, axis=1, out_lens=x.shape().dims)
    return m.add("add", x, spread)


@onnx_op("Conv")
def conv(
    m, x, w, bias=None, *, kernel_shape=None, strides=None, pads=None, dilations=None, group=1,
    auto_pad="NOTSET",
):  # fmt: skip
    if m.rank(w) < 3 or m.rank(x) != m.rank(w):
        raise Error(f"an input of rank {m.rank(x)} and weights of rank {m.rank(w)} do not fit")
    kernel = list(kernel_shape or m.static_dims(w)[2:])
    if kernel != list(m.static_dims(w)[2:]):
        raise Error(f"kernel_shape {kernel} differs from the weights' {m.dims(w)}")
    at = window(m, x, kernel, strides, pads, dilations, auto_pad)
    result = m.add(
        "convolution", x, w, padding=at["pads"], stride=at["strides"], dilation=at["dilations"],
        group=group,
    )  # fmt: skip
    return result if bias is None else add_bias(m, result, bias)


@onnx_op("ConvTranspose")
def conv_transpose(
    m, x, w, bias=None, *, kernel_shape=None, strides=None, pads=None, dilations=None, group=1,
    auto_pad="NOTSET", output_padding=None, output_shape=None,
):  # fmt: skip
    """The gradient of a convolution: `convolution_backwards`, then a crop or pad."""
    kernel = list(m.static_dims(w)[2:])
    count = len(kernel)
    if m.rank(x) != count + 2 or not count:
        raise Error(f"an input of rank {m.rank(x)} and weights of rank {m.rank(w)} do not fit")
    strides = spatial(strides, count, 1, "strides")
    dilations = spatial(dilations, count, 1, "dilations")
    extra = spatial(output_padding, count, 0, "output_padding")
    begin, end = transpose_pads(
        m, x, kernel, strides, pads, dilations, auto_pad, extra, output_shape
    )
    shared = [max(min(a, b), 0) for a, b in zip(begin, end, strict=True)]
    result = m.add(
        "convolution_backwards", x, w, padding=shared, stride=strides, dilation=dilations,
        group=group,
    )  # fmt: skip
    result = trim(m, result, [a - p for a, p in zip(begin, shared, strict=True)],
                  [b - p for b, p in zip(end, shared, strict=True)])  # fmt: skip
    return result if bias is None else add_bias(m, result, bias)


def transpose_pads(m, x, kernel, strides, pads, dilations, auto_pad, extra, output_shape):
    """What is cut off at the begins and ends of each axis; negative numbers add zeros."""
    count = len(kernel)
    full = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if output_shape or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        sizes = m.static_dims(x)[2:]
        if output_shape:
            wanted = list(output_shape)[-count:]
        else:
            wanted = [n * s for n, s in zip(sizes, strides, strict=True)]
        begin, end = [], []
        for n, s, f, e, w in zip(sizes, strides, full, extra, wanted, strict=True):
            total = s * (n - 1) + e + f - w
            small, large = total // 2, total - total // 2
            first = large if auto_pad == "SAME_LOWER" else small
            # ONNX: SAME_UPPER puts the odd one at the end, everything else at the begin
            if auto_pad != "SAME_UPPER":
                first = total - small if auto_pad == "SAME_LOWER" else total - total // 2
            begin.append(first)
            end.append(total - first - e)
        return begin, end
    pads = [0] * (2 * count) if auto_pad == "VALID" or not pads else list(pads)
    if len(pads) != 2 * count:
        raise Error(f"pads {pads} needs {2 * count} numbers")
    return pads[:count], [p - e for p, e in zip(pads[count:], extra, strict=True)]


def trim(m, x, begin, end):
    """Cuts (or, where negative, zero-pads) the spatial axes."""
    if not any(begin) and not any(end):
        return x
    axes = [k + 2 for k in range(len(begin))]
    if any(v > 0 for v in begin + end):
        chosen = [k for k in range(len(axes)) if begin[k] > 0 or end[k] > 0]
        dims = m.dims(x)
        first = [max(begin[k], 0) for k in chosen]
        last = [dims[axes[k]] - max(end[k], 0) for k in chosen]
        from .tensor import narrow

        x = narrow(m, x, dims, [axes[k] for k in chosen], first, last)
    grow = [0, 0] + [max(-v, 0) for v in begin] + [0, 0] + [max(-v, 0) for v in end]
    return m.add("pad", x, pads=grow) if any(grow) else x


# -- normalisation ---------------------------------------------------------------------------------


@onnx_op("BatchNormalization", since=14)
def batch_normalization(
    m, x, scale, bias, mean, var, *, epsilon=1e-5, momentum=0.9, training_mode=0
):
    if training_mode:
        return batch_norm_training(m, x, scale, bias, mean, var, epsilon, momentum)
    return m.call("batchnorm", x, scale, bias, mean, var, epsilon=epsilon)


@onnx_op("BatchNormalization")
def batch_normalization_1(
    m, x, scale, bias, mean, var, *, epsilon=1e-5, momentum=0.9, is_test=1, spatial=1,
    consumed_inputs=None,
):  # fmt: skip
    """Before opset 9 there may be numbers for each element of a sample, not only per channel."""
    if spatial or m.rank(scale) == 1:
        return m.call("batchnorm", x, scale, bias, mean, var, epsilon=epsilon)
    inverse = m.add("rsqrt", m.common("add", var, m.lit(epsilon, var)))
    whole = m.common("mul", m.common("sub", x, mean), m.common("mul", inverse, scale))
    return m.common("add", whole, bias)


def batch_norm_training(m, x, scale, bias, mean, var, epsilon, momentum):
    """Normalises by the batch's own statistics, and moves the running ones."""
    axes = [k for k in range(m.rank(x)) if k != 1]
    center = m.add("reduce_mean", x, axes=axes)
    spread = m.add("reduce_mean", m.common("sqdiff", x, center), axes=axes)
    batch_mean, batch_var = (m.add("squeeze", v, axes=axes) for v in (center, spread))
    result = m.call("batchnorm", x, scale, bias, batch_mean, batch_var, epsilon=epsilon)

    def moved(old, new):
        kept = m.common("mul", old, m.lit(momentum, old))
        return m.common("add", kept, m.common("mul", new, m.lit(1 - momentum, new)))

    return result, moved(mean, batch_mean), moved(var, batch_var)


def normalize(m, x, axes, epsilon):
    """(x - mean) / sqrt(variance + epsilon) over `axes`, and the mean and 1/deviation."""
    center = m.add("reduce_mean", x, axes=axes)
    distance = m.common("sub", x, center)
    variance = m.add("reduce_mean", m.common("sqdiff", x, center), axes=axes)
    inverse = m.add("rsqrt", m.common("add", variance, m.lit(epsilon, x)))
    return m.common("mul", distance, inverse), center, inverse


def in_float(m, x, function):
    """`function` of x in float32 where x is a smaller float, the result in x's type again."""
    kind = m.type(x)
    if kind in (type_t.float_type, type_t.double_type):
        return function(x)
    result = function(m.convert(x, type_t.float_type))
    if isinstance(result, tuple):
        return tuple(m.convert(r, kind) for r in result)
    return m.convert(result, kind)


@onnx_op("InstanceNormalization")
def instance_normalization(m, x, scale, bias, *, epsilon=1e-5, consumed_inputs=None):
    def function(y):
        axes = list(range(2, m.rank(y)))
        result, _, _ = normalize(m, y, axes, epsilon)
        return scale_shift(m, result, m.convert(scale, m.type(y)), m.convert(bias, m.type(y)), 1)

    return in_float(m, x, function)


def scale_shift(m, x, scale, bias, axis):
    """x * scale + bias with one number per entry of `axis`."""
    x = m.add("mul", x, spread(m, scale, x, axis))
    return x if bias is None else m.add("add", x, spread(m, bias, x, axis))


def spread(m, v, like, axis):
    """A 1-D v along `axis` of the dims of `like`."""
    if like.shape().symbolic():
        return m.add("broadcast", v, axis=axis, out_dyn_dims=like.shape().dims)
    if like.shape().dynamic():
        raise Deferred
    return m.add("broadcast", v, axis=axis, out_lens=like.shape().dims)


@onnx_op("LayerNormalization")
def layer_normalization(m, x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1):
    """Normalises over the axes from `axis` on; computed in the type of `stash_type`."""
    kind = m.type(x)
    rank = m.rank(x)
    axes = list(range(m.axis(axis, rank), rank))
    wide = type_t.float_type if stash_type == 1 and kind != type_t.double_type else kind
    result, center, inverse = normalize(m, m.convert(x, wide), axes, epsilon)
    result = m.convert(result, kind)
    if len(axes) == 1 and m.rank(scale) == 1:
        result = m.add("mul", result, spread(m, scale, result, axes[0]))
        if bias is not None:
            result = m.add("add", result, spread(m, bias, result, axes[0]))
    else:
        result = m.common("mul", result, scale)
        result = result if bias is None else m.common("add", result, bias)
    if m.outputs == 1:
        return result
    return result, m.convert(center, wide), m.convert(inverse, wide)


@onnx_op("GroupNormalization")
def group_normalization(m, x, scale, bias, *, num_groups, epsilon=1e-5, stash_type=1):
    """Normalises over groups of channels; scale and bias are per channel (21) or group (18)."""
    kind, dims = m.type(x), m.dims(x)
    channels = dims[1]
    if channels % num_groups:
        raise Error(f"{channels} channels do not split into {num_groups} groups")
    small = kind not in (type_t.float_type, type_t.double_type)
    work = m.convert(x, type_t.float_type) if small and stash_type == 1 else x
    grouped = m.reshape(work, [dims[0], num_groups, channels // num_groups, -1])
    result, _, _ = normalize(m, grouped, [2, 3], epsilon)
    per_group = m.opset < 21

    def placed(v):
        v = m.convert(v, m.type(work))
        return m.reshape(v, [1, num_groups, 1 if per_group else channels // num_groups, 1])

    result = m.common("add", m.common("mul", result, placed(scale)), placed(bias))
    return m.convert(m.reshape(result, dims), kind)


@onnx_op("MeanVarianceNormalization")
def mean_variance_normalization_1(m, x, *, across_channels=0, normalize_variance=1):
    """All samples together, and their channels if so told."""
    axes = [k for k in range(m.rank(x)) if k != 1 or across_channels]
    if normalize_variance:
        return mean_variance_normalization(m, x, axes=axes)
    return m.common("sub", x, m.add("reduce_mean", x, axes=axes))


@onnx_op("MeanVarianceNormalization", since=9)
def mean_variance_normalization(m, x, *, axes=None):
    chosen = [0, 2, 3] if axes is None else axes
    center = m.add("reduce_mean", x, axes=chosen)
    distance = m.common("sub", x, center)
    variance = m.add("reduce_mean", m.add("mul", distance, distance), axes=chosen)
    deviation = m.common("add", m.add("sqrt", variance), m.lit(1e-9, x))
    return m.common("div", distance, deviation)


@onnx_op("LpNormalization")
def lp_normalization(m, x, *, axis=-1, p=2):
    if p not in (1, 2):
        raise Error(f"p is {p}, accepted are 1 and 2")
    axis = m.axis(axis, m.rank(x))
    if p == 1:
        norm = m.add("reduce_sum", m.add("abs", x), axes=[axis])
    else:
        norm = m.add("sqrt", m.add("reduce_sum", m.add("mul", x, x), axes=[axis]))
    zero = m.convert(m.common("equal", norm, m.lit(0, x)), type_t.bool_type)
    from .math import where_common

    return m.common("div", x, where_common(m, zero, m.lit(1, x), norm))


@onnx_op("LRN")
def lrn(m, x, *, size, alpha=1e-4, beta=0.75, bias=1.0):
    return m.add("lrn", x, size=size, alpha=alpha, beta=beta, bias=bias)


# -- matrix products -------------------------------------------------------------------------------


@onnx_op("MatMul")
def mat_mul(m, a, b):
    return product(m, "dot", a, b)


def product(m, name, a, b, *more):
    """A matrix product with NumPy's rules for vectors and batches."""
    if not m.rank(a) or not m.rank(b):
        raise Error("inputs of rank 0 cannot be multiplied as matrices")
    drop = []
    if m.rank(a) == 1:
        a = m.add("unsqueeze", a, axes=[0])
        drop.append(-2)
    if m.rank(b) == 1:
        b = m.add("unsqueeze", b, axes=[1])
        drop.append(-1)
    inner = m.dims(a)[-1], m.dims(b)[-2]
    if not any(isinstance(d, Dim) for d in inner) and inner[0] != inner[1]:
        raise Error(f"inner dimensions differ: {list(m.dims(a))} x {list(m.dims(b))}")
    a, b = batch_broadcast(m, a, b)
    result = m.add(name, a, b, *more)
    if drop:
        rank = m.rank(result)
        from .reduce import squeeze_axes

        result = squeeze_axes(m, result, sorted(rank + k for k in drop))
    return result


def batch_broadcast(m, a, b) -> tuple:
    """Both inputs with the same batch dims."""
    from migraphx.macros import common_dims
    from migraphx.shape import Shape

    left, right = m.dims(a), m.dims(b)
    if left[:-2] == right[:-2]:
        return a, b
    if any(isinstance(d, Dim) and not d.is_symbolic() for d in (*left, *right)):
        return m.add("broadcast_for_dot", a, b), m.add("broadcast_for_dot", b, a)
    kind = type_t.float_type
    batch = common_dims([Shape.make(kind, d[:-2] or (1,)) for d in (left, right)])
    batch = batch if max(len(left), len(right)) > 2 else ()
    return m.broadcast(a, (*batch, *left[-2:])), m.broadcast(b, (*batch, *right[-2:]))


@onnx_op("Gemm")
def gemm(m, a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0, broadcast=0):
    if m.rank(a) != 2 or m.rank(b) != 2:
        raise Error(f"inputs of rank {m.rank(a)} and {m.rank(b)}; matrices are needed")
    rows, inner = m.dims(a)[::-1] if transA else m.dims(a)
    depth, columns = m.dims(b)[::-1] if transB else m.dims(b)
    if not isinstance(inner, Dim) and not isinstance(depth, Dim) and inner != depth:
        raise Error(f"inner dimensions differ: {inner} and {depth}")
    inputs = [a, b] if c is None else [a, b, c]
    if m.type(a) in FLOATS:
        return m.call(
            "gemm", *inputs, alpha=alpha, beta=beta, transA=bool(transA), transB=bool(transB)
        )
    if transA:
        a = m.add("transpose", a, permutation=[1, 0])
    if transB:
        b = m.add("transpose", b, permutation=[1, 0])
    result = m.add("dot", a, b)
    result = result if alpha == 1 else m.common("mul", result, m.lit(int(alpha), result))
    if c is None or not beta:
        return result
    c = c if beta == 1 else m.common("mul", c, m.lit(int(beta), c))
    return m.common("add", result, c)


@onnx_op("Einsum")
def einsum(m, *xs, equation):
    return m.call("einsum", *xs, equation=equation)


@onnx_op("Det")
def det(m, x):
    """Determinants of the last two axes, by elimination with row exchange."""
    return m.add("onnx::det", x)
