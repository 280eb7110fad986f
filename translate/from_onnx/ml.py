"""ONNX-ML: features, tables, linear models, maps."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import FLOATS, dtype_of, type_t

from .registry import onnx_op

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
STRING = type_t.string_type


def texts(values) -> np.ndarray:
    """Texts as an array."""
    out = np.empty(len(values), object)
    out[:] = list(values)
    return out


def one_of(**given):
    """The one attribute of several that is given, as an array, and its name."""
    have = {k: v for k, v in given.items() if v is not None and len(v)}
    if len(have) != 1:
        raise Error(f"exactly one of {', '.join(given)} is needed, got {', '.join(have) or 'none'}")
    name, value = next(iter(have.items()))
    if isinstance(value, np.ndarray):
        return value.reshape(-1), name
    if name.endswith(("strings", "vocabulary")) and isinstance(value[0], str):
        return texts(value), name
    kind = np.int64 if isinstance(value[0], int) else np.float32
    return np.asarray(value, kind), name


def float_rows(m, x):
    """Samples as float32 (double stays) in rows: [samples, features]."""
    kind = type_t.double_type if m.type(x) == type_t.double_type else type_t.float_type
    x = m.convert(x, kind)
    rank = m.rank(x)
    if rank == 2:
        return x
    if rank < 2:
        return m.reshape(x, [1, -1])
    return m.add("flatten", x, axis=1)


def post_transform(m, scores, kind: str):
    """Scores after a transform by name."""
    if kind not in TRANSFORMS:
        raise Error(f"post_transform {kind!r} is none of {', '.join(TRANSFORMS)}")
    return scores if kind == "NONE" else m.add("onnx::post_transform", scores, kind=kind)


# -- features ------------------------------------------------------------------------------------


@onnx_op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(m, x, places):
    """The features at given places of the last axis; a vector gives one row."""
    if m.rank(x) < 1:
        raise Error("the input has no axis to take features from")
    places = m.reshape(places, [-1]) if m.rank(places) != 1 else places
    picked = m.add("gather", x, places, axis=m.rank(x) - 1)
    return m.add("unsqueeze", picked, axes=[0]) if m.rank(x) == 1 else picked


@onnx_op("Binarizer", domain=ML)
def binarizer(m, x, *, threshold=0.0):
    """1 above the threshold, else 0, in the type of the input."""
    above = m.common("greater", x, m.lit(np.float32(threshold)))
    return m.convert(above, m.type(x))


@onnx_op("FeatureVectorizer", domain=ML)
def feature_vectorizer(m, *xs, inputdimensions=()):
    """Features of all inputs side by side; each is cut or filled with zeros to its size."""
    columns = list(inputdimensions)
    if not columns:
        columns = [int(np.prod(m.static_dims(x)[1:])) if m.rank(x) > 1 else m.static_dims(x)[0]
                   for x in xs]  # fmt: skip
    if len(columns) != len(xs):
        raise Error(f"inputdimensions has {len(columns)} entries for {len(xs)} inputs")
    return m.add("onnx::feature_rows", *xs, columns=columns)


@onnx_op("Imputer", domain=ML)
def imputer(
    m, x, *, imputed_value_floats=None, imputed_value_int64s=None, replaced_value_float=0.0,
    replaced_value_int64=0,
):  # fmt: skip
    """Other numbers, one for all features or one each, in the place of one."""
    real = m.type(x) in FLOATS
    given = imputed_value_floats if real else imputed_value_int64s
    if not given:
        kind = "floats" if real else "int64s"
        raise Error(f"imputed_value_{kind} is needed for {x.shape().type_string()}")
    wanted = replaced_value_float if real else replaced_value_int64
    columns = m.dims(x)[-1] if m.rank(x) else 1
    if len(given) != 1 and len(given) != columns:
        raise Error(f"{len(given)} imputed values for {columns} features")
    if real and np.isnan(wanted):
        hit = m.add("isnan", x)
    else:
        hit = m.convert(m.common("equal", x, m.lit(wanted, x)), type_t.bool_type)
    value = np.asarray(given, dtype_of(m.type(x)))
    value = m.lit(value[0] if len(given) == 1 else value)
    return m.add("where", hit, m.broadcast(value, m.dims(x)), x)


@onnx_op("Normalizer", domain=ML)
def normalizer(m, x, *, norm="MAX"):
    """Rows divided by their largest number (MAX), by the sum of sizes (L1), by the length (L2)."""
    if norm not in ("MAX", "L1", "L2"):
        raise Error(f"norm {norm!r} is none of MAX, L1, L2")
    x = m.convert(x, type_t.float_type)
    axes = [m.rank(x) - 1]
    if norm == "MAX":
        size = m.add("reduce_max", x, axes=axes)
    elif norm == "L1":
        size = m.add("reduce_sum", m.add("abs", x), axes=axes)
    else:
        size = m.add("sqrt", m.add("reduce_sum", m.add("mul", x, x), axes=axes))
    zero = m.convert(m.common("equal", size, m.lit(0, size)), type_t.bool_type)
    ones = m.broadcast(m.lit(1, size), m.dims(size))
    return m.common("div", x, m.add("where", zero, ones, size))


@onnx_op("Scaler", domain=ML)
def scaler(m, x, *, offset=(), scale=()):
    """(x - offset) * scale, one of each for all features or one each."""
    columns = m.dims(x)[-1] if m.rank(x) else 1
    for what, values in (("offset", offset), ("scale", scale)):
        if len(values) not in (0, 1) and len(values) != columns:
            raise Error(f"{what} has {len(values)} entries for {columns} features")
    x = m.convert(x, type_t.float_type)
    if len(offset):
        x = m.common("sub", x, m.lit(np.asarray(offset, np.float32)))
    if len(scale):
        x = m.common("mul", x, m.lit(np.asarray(scale, np.float32)))
    return x


# -- tables --------------------------------------------------------------------------------------


def look_up(m, x, keys, values, default):
    """What a table says; by search in XLA for numbers, on the host for texts."""
    keys, values = np.asarray(keys).reshape(-1), np.asarray(values).reshape(-1)
    if len(keys) != len(values):
        raise Error(f"{len(keys)} keys and {len(values)} values")
    default = np.asarray(default, values.dtype).reshape(-1)[:1]
    if object in (keys.dtype, values.dtype):
        return m.add("onnx::lookup_text", x, m.lit(keys), m.lit(values), m.lit(default))
    last = {}  # of equal keys the last one counts
    for place, key in enumerate(keys.tolist()):
        last["nan" if key != key else key] = place
    places = np.array(sorted(last.values()), np.int64)
    places = places[np.argsort(keys[places], kind="stable")]
    return m.add("onnx::lookup", x, m.lit(keys[places]), m.lit(values[places]), m.lit(default))


@onnx_op("CategoryMapper", domain=ML)
def category_mapper(
    m, x, *, cats_int64s=(), cats_strings=(), default_int64=-1, default_string="_Unused"
):
    numbers, words = np.asarray(cats_int64s, np.int64), texts(cats_strings)
    if m.type(x) == STRING:
        return look_up(m, x, words, numbers, default_int64)
    return look_up(m, x, numbers, words, texts([default_string]))


@onnx_op("LabelEncoder", domain=ML)
def label_encoder_1(m, x, *, classes_strings=(), default_int64=-1, default_string="_Unused"):
    numbers, words = np.arange(len(classes_strings), dtype=np.int64), texts(classes_strings)
    if m.type(x) == STRING:
        return look_up(m, x, words, numbers, default_int64)
    return look_up(m, x, numbers, words, texts([default_string]))


@onnx_op("LabelEncoder", since=2, domain=ML)
def label_encoder(
    m, x, *, keys_strings=None, keys_int64s=None, keys_floats=None, keys_tensor=None,
    values_strings=None, values_int64s=None, values_floats=None, values_tensor=None,
    default_string="_Unused", default_int64=-1, default_float=-0.0, default_tensor=None,
):  # fmt: skip
    keys, _ = one_of(keys_strings=keys_strings, keys_int64s=keys_int64s, keys_floats=keys_floats,
                     keys_tensor=keys_tensor)  # fmt: skip
    values, _ = one_of(values_strings=values_strings, values_int64s=values_int64s,
                       values_floats=values_floats, values_tensor=values_tensor)  # fmt: skip
    if default_tensor is not None:
        default = np.asarray(default_tensor)
    elif values.dtype == object:
        default = texts([default_string])
    elif values.dtype.kind == "f":
        default = default_float
    else:
        default = default_int64
    return look_up(m, x, keys, values, default)


@onnx_op("OneHotEncoder", domain=ML)
def one_hot_encoder(m, x, *, cats_int64s=None, cats_strings=None, zeros=1):
    """1.0 at the category, by a new last axis; all 0 for a value that is none."""
    categories, _ = one_of(cats_int64s=cats_int64s, cats_strings=cats_strings)
    if m.type(x) == STRING or not zeros:
        if m.type(x) != STRING:
            x = m.convert(x, type_t.int64_type)
        return m.add("onnx::one_hot_text", x, m.lit(categories), zeros=bool(zeros))
    x = m.convert(x, type_t.int64_type)
    x = m.add("unsqueeze", x, axes=[m.rank(x)])
    hit = m.common("equal", x, m.lit(categories))
    return m.convert(hit, type_t.float_type)


# -- linear models -------------------------------------------------------------------------------


def class_labels(ints, strings) -> np.ndarray:
    """Labels of the classes as an array of numbers or texts."""
    if strings:
        return texts(strings)
    return np.asarray(ints or [], np.int64)


def linear_scores(m, x, coefficients, intercepts, count: int):
    """x @ coefficients.T + intercepts."""
    x = float_rows(m, x)
    if not count or len(coefficients) % count:
        raise Error(f"{len(coefficients)} coefficients do not fit {count} rows")
    weights = np.asarray(coefficients, dtype_of(m.type(x))).reshape(count, -1).T
    scores = m.add("dot", x, m.lit(np.ascontiguousarray(weights)))
    if len(intercepts or ()):
        scores = m.common("add", scores, m.lit(np.asarray(intercepts, weights.dtype)))
    return m.convert(scores, type_t.float_type)


@onnx_op("LinearRegressor", domain=ML)
def linear_regressor(m, x, *, coefficients=(), intercepts=(), targets=1, post_transform="NONE"):
    scores = linear_scores(m, x, coefficients, intercepts, targets)
    return _transform(m, scores, post_transform)


_transform = post_transform  # attributes of operators have that name


@onnx_op("LinearClassifier", domain=ML)
def linear_classifier(
    m, x, *, coefficients, intercepts=(), classlabels_ints=None, classlabels_strings=None,
    multi_class=0, post_transform="NONE",
):  # fmt: skip
    labels = class_labels(classlabels_ints, classlabels_strings)
    count = max(len(intercepts or ()), 1)
    if not len(intercepts or ()) and len(labels) > 2:
        count = len(labels)
    scores = linear_scores(m, x, coefficients, intercepts, count)
    if count == 1 and len(labels) == 2:
        return binary_results(m, scores, labels, post_transform)
    best = picked(m, labels, m.add("argmax", scores, axis=1))
    return best, _transform(m, scores, post_transform)


def binary_results(m, score, labels, kind: str) -> tuple:
    """Label and both classes' scores from the score of the second class."""
    if kind in ("LOGISTIC", "PROBIT"):
        score = _transform(m, score, kind)
    chosen = m.common("greater", score, m.lit(0.5 if kind == "LOGISTIC" else 0.0, score))
    label = picked(m, labels, m.convert(chosen, type_t.int64_type))
    other = m.common("sub", m.lit(1, score), score)
    return label, m.add("concat", other, score, axis=1)


def picked(m, labels: np.ndarray, places):
    """The labels at places [samples, 1], as a vector."""
    places = m.add("squeeze", places, axes=[1])
    return m.add("gather", m.lit(labels), m.rank_of_result([places], places), axis=0)


# -- maps ----------------------------------------------------------------------------------------


@onnx_op("CastMap", domain=ML, any_rank=True)
def cast_map(m, x, *, cast_to="TO_FLOAT", map_form="DENSE", max_map=1):
    """A map as a row of its values: by rising keys, or (SPARSE) each at its key's place."""
    kinds = {"TO_FLOAT": type_t.float_type, "TO_STRING": STRING, "TO_INT64": type_t.int64_type}
    if cast_to not in kinds or map_form not in ("DENSE", "SPARSE"):
        raise Error(f"cast_to {cast_to!r} or map_form {map_form!r} is not known")
    size = max_map if map_form == "SPARSE" else 0
    return m.add("onnx::map_to_tensor", x, size=size, target_type=kinds[cast_to])


@onnx_op("DictVectorizer", domain=ML, any_rank=True)
def dict_vectorizer(m, x, *, int64_vocabulary=None, string_vocabulary=None):
    """A map as a row of the values of given keys, 0 for those it lacks."""
    words, _ = one_of(int64_vocabulary=int64_vocabulary, string_vocabulary=string_vocabulary)
    return m.add("onnx::map_to_tensor", x, m.lit(words), target_type=x.shape().type())


@onnx_op("ZipMap", domain=ML)
def zip_map(m, x, *, classlabels_int64s=None, classlabels_strings=None):
    """A sequence of maps from labels to a row's numbers."""
    labels = class_labels(classlabels_int64s, classlabels_strings)
    columns = m.dims(x)[-1] if m.rank(x) else 1
    if isinstance(columns, int) and columns != len(labels):
        raise Error(f"{len(labels)} labels for {columns} columns")
    return m.add("onnx::zip_map", x, m.lit(labels))
