"""ONNX-ML against ONNX Runtime, scikit-learn and ONNX's own cases."""

import warnings

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_models import check, check_official, official_cases, prepared, same

import migraphx

RNG = np.random.default_rng(5)
FLOAT, INT64, TEXT, DOUBLE = (
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.DOUBLE
)  # fmt: skip
OFFICIAL = [n for n in official_cases() if n.startswith("test_ai_onnx_ml")]


def numbers(*dims, kind=np.float32):
    return RNG.normal(size=dims).astype(kind)


def model(kind, arrays, outputs, opset=3, domain="ai.onnx.ml", **attributes):
    """A model of one node; `outputs` are element types."""
    names = [f"x{k}" for k in range(len(arrays))]
    results = [f"y{k}" for k in range(len(outputs))]
    node = helper.make_node(kind, names, results, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, element(a), a.shape)
         for n, a in zip(names, arrays, strict=True)],
        [helper.make_tensor_value_info(r, t, None) for r, t in zip(results, outputs, strict=True)],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def element(array):
    if array.dtype == object:
        return TEXT
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def text(*words):
    return np.array(words, dtype=object)


def agree(kind, arrays, outputs, rtol=1e-5, atol=1e-6, **attributes):
    """The results of both runtimes are the same; gives ours."""
    made = model(kind, arrays, outputs, **attributes)
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    wanted = session.run(None, {f"x{k}": a for k, a in enumerate(arrays)})
    got = prepared(made).run(list(arrays))
    for mine, its in zip(got, wanted, strict=True):
        same(mine, its, rtol=rtol, atol=atol)
    return got


@pytest.mark.parametrize("name", OFFICIAL)
def test_official(name):
    check_official(name)


# -- features ------------------------------------------------------------------------------------


def test_array_feature_extractor():
    for x in (numbers(3, 4), numbers(4), numbers(2, 3, 4), np.arange(8).reshape(2, 4)):
        agree("ArrayFeatureExtractor", [x, np.int64([2, 0, 2])], [element(x)])
    words = text("a", "b", "c", "d").reshape(2, 2)
    agree("ArrayFeatureExtractor", [words, np.int64([1])], [TEXT])


def test_binarizer():
    agree("Binarizer", [numbers(3, 4)], [FLOAT], threshold=0.3)


def test_feature_vectorizer():
    xs = [numbers(3, 2), numbers(3, 4), np.arange(3).reshape(3, 1)]
    got = prepared(model("FeatureVectorizer", xs, [FLOAT], inputdimensions=[3, 2, 1])).run(xs)[0]
    wanted = np.concatenate([np.pad(xs[0], [(0, 0), (0, 1)]), xs[1][:, :2], xs[2]], 1)
    np.testing.assert_array_equal(got, wanted.astype(np.float32))


@pytest.mark.parametrize("values", [[7.0], [1.0, 2.0, 3.0]])
@pytest.mark.parametrize("replaced", [float("nan"), 2.0])
def test_imputer(values, replaced):
    x = np.float32([[1, 2, np.nan], [np.nan, 5, 2]])
    agree("Imputer", [x], [FLOAT], imputed_value_floats=values, replaced_value_float=replaced)
    whole = np.int64([[1, 2, 3], [4, 2, 2]])
    agree("Imputer", [whole], [INT64], imputed_value_int64s=[int(v) for v in values],
          replaced_value_int64=2)  # fmt: skip


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm):
    x = np.concatenate([np.abs(numbers(3, 4)), np.zeros((1, 4), np.float32)])
    agree("Normalizer", [x], [FLOAT], norm=norm)
    agree("Normalizer", [np.arange(8).reshape(2, 4)], [FLOAT], norm=norm)


def test_scaler():
    x = numbers(3, 4)
    agree("Scaler", [x], [FLOAT], offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 2.0, 1.0, -1.0])
    agree("Scaler", [x.astype(np.float64)], [FLOAT], offset=[1.0], scale=[0.5])


def test_one_hot_encoder():
    agree("OneHotEncoder", [np.int64([3, 5, 9])], [FLOAT], cats_int64s=[5, 3, 4])
    agree("OneHotEncoder", [np.float32([[3, 5], [4, 4]])], [FLOAT], cats_int64s=[5, 3, 4])
    agree("OneHotEncoder", [text("b", "z", "a")], [FLOAT], cats_strings=["a", "b"])
    with pytest.raises(migraphx.Error, match="none of the categories"):
        made = model("OneHotEncoder", [text("z")], [FLOAT], cats_strings=["a", "b"], zeros=0)
        prepared(made).run([text("z")])


# -- tables --------------------------------------------------------------------------------------


def test_category_mapper():
    options = {"cats_int64s": [1, 2, 3], "cats_strings": ["a", "b", "c"], "default_int64": 9,
               "default_string": "?"}  # fmt: skip
    agree("CategoryMapper", [text("b", "x", "a")], [INT64], **options)
    agree("CategoryMapper", [np.int64([3, 7, 1])], [TEXT], **options)


def test_label_encoder_1():
    agree("LabelEncoder", [text("b", "x", "a")], [INT64], opset=1, classes_strings=["a", "b"])
    agree("LabelEncoder", [np.int64([1, 5, 0])], [TEXT], opset=1, classes_strings=["a", "b"])


KEYS = {
    "keys_strings": (["b", "a"], text("a", "zz", "b")),
    "keys_int64s": ([5, 3], np.int64([3, 4, 5, 2**40])),
    "keys_floats": ([1.5, float("nan"), 0.25], np.float32([1.5, np.nan, 7, 0.25])),
}
VALUES = {"values_strings": ["B", "A", "C"], "values_int64s": [-7, 2**40, 3],
          "values_floats": [0.5, 1.5, 2.5]}  # fmt: skip
RESULTS = {"values_strings": TEXT, "values_int64s": INT64, "values_floats": FLOAT}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("values", VALUES)
def test_label_encoder_2(keys, values):
    names, x = KEYS[keys]
    options = {keys: names, values: VALUES[values][: len(names)]}
    agree("LabelEncoder", [x], [RESULTS[values]], opset=4, **options)
    if keys != "keys_floats":
        agree("LabelEncoder", [x], [RESULTS[values]], opset=2, **options)


def test_label_encoder_4_in_doubles():
    def tensor(*v):
        return helper.make_tensor("t", DOUBLE, [len(v)], v)

    agree("LabelEncoder", [np.float64([1, 0.1, 3])], [DOUBLE], opset=4,
          keys_tensor=tensor(0.1, 3), values_tensor=tensor(1e-300, 2), default_tensor=tensor(-1.5),
          )  # fmt: skip


# -- linear models -------------------------------------------------------------------------------

TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_regressor(transform):
    agree("LinearRegressor", [numbers(5, 3)], [FLOAT], targets=2, post_transform=transform,
          coefficients=numbers(6).tolist(), intercepts=[0.5, -1.0])  # fmt: skip


def test_linear_regressor_of_integers_and_probit():
    x = np.int64([[1, 2], [3, -4]])
    made = model("LinearRegressor", [x], [FLOAT], coefficients=[0.5, 0.25])
    check(made, x, expected=[np.float32([[1], [0.5]])])
    x = np.float32([[0.1], [0.5], [0.975]])
    made = model("LinearRegressor", [x], [FLOAT], coefficients=[1.0], post_transform="PROBIT")
    got = prepared(made).run([x])[0]
    np.testing.assert_allclose(got[:, 0], [-1.2815516, 0, 1.959964], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("labels", [{"classlabels_ints": [4, 2, 9]},
                                    {"classlabels_strings": ["a", "b", "c"]}])  # fmt: skip
def test_linear_classifier(transform, labels):
    result = INT64 if "classlabels_ints" in labels else TEXT
    agree("LinearClassifier", [numbers(6, 4)], [result, FLOAT], coefficients=numbers(12).tolist(),
          intercepts=numbers(3).tolist(), post_transform=transform, **labels)  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_classifier_of_two_classes(transform):
    agree("LinearClassifier", [numbers(6, 4)], [INT64, FLOAT], coefficients=numbers(4).tolist(),
          intercepts=[0.25], classlabels_ints=[0, 1], post_transform=transform)  # fmt: skip
    row = numbers(4)
    agree("LinearClassifier", [numbers(6, 4)], [INT64, FLOAT],
          coefficients=[*(-row).tolist(), *row.tolist()], intercepts=[-0.25, 0.25],
          classlabels_ints=[0, 1], post_transform=transform)  # fmt: skip


# -- trees ---------------------------------------------------------------------------------------


def forest(trees, leaves, prefix="target"):
    """Attributes of ONNX's tree ensembles for scikit-learn's trees."""
    nodes = {f"nodes_{k}": [] for k in ("treeids", "nodeids", "featureids", "modes", "values",
                                        "truenodeids", "falsenodeids")}  # fmt: skip
    weights = {f"{prefix}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    for t, tree in enumerate(trees):
        for n in range(tree.node_count):
            leaf = tree.children_left[n] < 0
            row = (t, n, max(int(tree.feature[n]), 0), "LEAF" if leaf else "BRANCH_LEQ",
                   float(tree.threshold[n]), max(int(tree.children_left[n]), 0),
                   max(int(tree.children_right[n]), 0))  # fmt: skip
            for column, value in zip(nodes.values(), row, strict=True):
                column.append(value)
            if leaf:
                for k, weight in enumerate(leaves(tree, n)):
                    for column, value in zip(weights.values(), (t, n, k, weight), strict=True):
                        column.append(value)
    return nodes | weights


def samples(classes=3):
    x = numbers(300, 5)
    return x, (np.abs(x[:, 0] + x[:, 1] * x[:, 2]) * 2).astype(int) % classes


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(aggregate):
    from sklearn.ensemble import RandomForestRegressor

    x, y = samples()
    fitted = RandomForestRegressor(7, max_depth=6, random_state=0).fit(x, np.stack([y, -y * 2], 1))
    trees = [e.tree_ for e in fitted.estimators_]
    attributes = forest(trees, lambda t, n: t.value[n, :, 0].tolist())
    got = agree("TreeEnsembleRegressor", [x], [FLOAT], n_targets=2, aggregate_function=aggregate,
                base_values=[0.5, -0.5], **attributes)  # fmt: skip
    if aggregate == "AVERAGE":
        np.testing.assert_allclose(got[0] - [0.5, -0.5], fitted.predict(x), rtol=1e-4, atol=1e-4)


def test_tree_classifier_of_two_classes():
    from sklearn.ensemble import RandomForestClassifier

    x, y = samples(2)
    fitted = RandomForestClassifier(5, max_depth=5, random_state=0).fit(x, y)
    trees = [e.tree_ for e in fitted.estimators_]
    attributes = forest(trees, lambda t, n: (t.value[n, 0] / t.value[n, 0].sum() / 5).tolist(),
                        "class")  # fmt: skip
    made = model("TreeEnsembleClassifier", [x], [INT64, FLOAT], classlabels_int64s=[0, 1],
                 **attributes)  # fmt: skip
    label, chances = prepared(made).run([x])
    clear = np.abs(chances[:, 0] - 0.5) > 1e-4
    np.testing.assert_array_equal(label[clear], fitted.predict(x)[clear])
    np.testing.assert_allclose(chances, fitted.predict_proba(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_tree_classifier(transform):
    from sklearn.ensemble import RandomForestClassifier

    x, y = samples()
    fitted = RandomForestClassifier(5, max_depth=5, random_state=0).fit(x, y)
    trees = [e.tree_ for e in fitted.estimators_]
    attributes = forest(trees, lambda t, n: (t.value[n, 0] / t.value[n, 0].sum() / 5).tolist(),
                        "class")  # fmt: skip
    best = np.sort(fitted.predict_proba(x), 1)
    x = x[best[:, -1] - best[:, -2] > 1e-4]  # of equal scores, rounding decides
    label, _ = agree("TreeEnsembleClassifier", [x], [INT64, FLOAT], post_transform=transform,
                     classlabels_int64s=[0, 1, 2], **attributes)  # fmt: skip
    np.testing.assert_array_equal(label, fitted.predict(x))
    agree("TreeEnsembleClassifier", [x], [TEXT, FLOAT], post_transform=transform,
          classlabels_strings=["a", "b", "c"], **attributes)  # fmt: skip


STUMP = {
    "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}  # fmt: skip


@pytest.mark.parametrize("weights", [[0.2, 0.9], [-1.5, 2.0]])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("labels", [[0, 1], [7, 3]])
@pytest.mark.parametrize("scored", [0, 1])
def test_tree_classifier_with_weights_for_one_class(weights, transform, labels, scored):
    agree("TreeEnsembleClassifier", [np.float32([[0.1], [0.5], [0.7]])], [INT64, FLOAT],
          nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], classlabels_int64s=labels,
          class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[scored] * 2, class_weights=weights,
          post_transform=transform, **STUMP)  # fmt: skip


@pytest.mark.parametrize(
    "mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
)
@pytest.mark.parametrize("missing", [0, 1])
def test_tree_modes(mode, missing):
    options = {"nodes_modes": [mode, "LEAF", "LEAF"], "target_treeids": [0, 0],
               "nodes_missing_value_tracks_true": [missing, 0, 0], "target_nodeids": [1, 2],
               "target_ids": [0, 0], "target_weights": [1.0, 2.0], "n_targets": 1,
               **STUMP}  # fmt: skip
    x = np.array([[0], [np.nan], [1], [0.5]])
    for kind in (np.float32, np.float64):
        (wanted,) = agree("TreeEnsembleRegressor", [x.astype(kind)], [FLOAT], **options)
    for kind in (np.int32, np.int64):
        whole = x[::2].astype(kind)
        check(model("TreeEnsembleRegressor", [whole], [FLOAT], **options), whole,
              expected=[wanted[::2]])  # fmt: skip


def test_trees_that_are_broken():
    x = np.float32([[0.1]])
    good = {"nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "target_treeids": [0, 0],
            "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0],
            "n_targets": 1, **STUMP}  # fmt: skip
    for change, message in [
        ({"nodes_truenodeids": [9, 0, 0]}, "does not exist"),
        ({"nodes_truenodeids": [0, 0, 0]}, "lead back"),
        ({"target_ids": [0, 3]}, "class or target 3 of 1"),
        ({"target_nodeids": [0, 2]}, "not a leaf"),
        ({"nodes_modes": ["BRANCH_X", "LEAF", "LEAF"]}, "BRANCH_X"),
        ({"nodes_featureids": [4, 0, 0]}, "feature 4 is tested"),
    ]:
        with pytest.raises(migraphx.Error, match=message):
            prepared(model("TreeEnsembleRegressor", [x], [FLOAT], **(good | change)))


# -- support vectors -----------------------------------------------------------------------------


def kernel_options(kernel):
    return {"kernel_type": kernel.upper(), "kernel_params": [0.3, 0.5, 2.0]}


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_svm_regressor(kernel):
    from sklearn.svm import SVR

    x, y = samples()
    fitted = SVR(kernel=kernel, gamma=0.3, coef0=0.5, degree=2).fit(x, y)
    got = agree("SVMRegressor", [x], [FLOAT], n_supports=len(fitted.support_),
                support_vectors=fitted.support_vectors_.ravel().tolist(),
                coefficients=fitted.dual_coef_.ravel().tolist(), rho=fitted.intercept_.tolist(),
                rtol=1e-3, atol=1e-3, **kernel_options(kernel))  # fmt: skip
    np.testing.assert_allclose(got[0][:, 0], fitted.predict(x), rtol=1e-2, atol=1e-2)


def test_svm_regressor_of_one_class():
    x = numbers(6, 2)
    agree("SVMRegressor", [x], [FLOAT], n_supports=2, support_vectors=[1.0, 0, 0, 1.0],
          coefficients=[1.0, -1.0], rho=[0.1], one_class=1, kernel_params=[0.5, 0.0, 1.0],
          )  # fmt: skip


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("probability", [False, True])
def test_svm_classifier(kernel, classes, probability):
    from sklearn.svm import SVC

    x, y = samples(classes)
    fitted = SVC(kernel=kernel, gamma=0.3, coef0=0.5, degree=2, probability=probability,
                 random_state=0)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(x, y)
    coefficients, rho = fitted._dual_coef_, fitted._intercept_
    options = dict(kernel_options(kernel))
    if probability:
        options |= {"prob_a": fitted.probA_.tolist(), "prob_b": fitted.probB_.tolist()}
    agree("SVMClassifier", [x[:50]], [INT64, FLOAT], classlabels_ints=list(range(classes)),
          coefficients=coefficients.ravel().tolist(), rho=rho.tolist(),
          support_vectors=fitted.support_vectors_.ravel().tolist(),
          vectors_per_class=fitted.n_support_.tolist(), rtol=2e-2 if probability else 2e-3,
          atol=2e-3, **options)  # fmt: skip


def test_svm_classifier_without_support_vectors():
    agree("SVMClassifier", [numbers(6, 4)], [INT64, FLOAT], coefficients=numbers(12).tolist(),
          rho=[0.25], classlabels_ints=[4, 2, 9], kernel_params=[0.5, 0.0, 1.0])  # fmt: skip


# -- maps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [4, 2]},
                                    {"classlabels_strings": ["a", "b"]}])  # fmt: skip
def test_zip_map(labels):
    names = next(iter(labels.values()))
    x = numbers(3, 2)
    node = helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", **labels)
    key = INT64 if isinstance(names[0], int) else TEXT
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, []))
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", FLOAT, [3, 2])],
        [helper.make_value_info("z", helper.make_sequence_type_proto(kind))],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)])
    (got,) = prepared(made).run([x])
    assert got == [dict(zip(names, row, strict=True)) for row in x.tolist()]


def of_map(kind, key, value, result, **attributes):
    node = helper.make_node(kind, ["m"], ["y"], domain="ai.onnx.ml", **attributes)
    given = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    graph = helper.make_graph([node], "g", [helper.make_value_info("m", given)],
                              [helper.make_tensor_value_info("y", result, None)])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)])


def test_dict_vectorizer():
    made = of_map("DictVectorizer", TEXT, INT64, INT64, string_vocabulary=["a", "c", "b", "z"])
    check(made, {"a": 4, "b": 7, "q": 1}, expected=[np.int64([[4, 0, 7, 0]])])
    made = of_map("DictVectorizer", INT64, FLOAT, FLOAT, int64_vocabulary=[7, 3])
    check(made, {3: 0.5}, expected=[np.float32([[0, 0.5]])])


def test_cast_map():
    check(of_map("CastMap", INT64, FLOAT, FLOAT), {7: 1.5, 2: 0.5},
          expected=[np.float32([[0.5, 1.5]])])  # fmt: skip
    made = of_map("CastMap", INT64, TEXT, FLOAT, map_form="SPARSE", max_map=4)
    check(made, {2: "0.5"}, expected=[np.float32([[0, 0, 0.5, 0]])])
    made = of_map("CastMap", INT64, TEXT, TEXT, cast_to="TO_STRING")
    check(made, {2: "b", 1: "a"}, expected=[text("a", "b")[None]])


# -- a whole pipeline ----------------------------------------------------------------------------


def test_texts_numbers_and_maps_in_one_program():
    """Texts to categories, into a linear model, whose labels and scores come back as maps."""
    nodes = [
        helper.make_node("OneHotEncoder", ["word"], ["hot"], domain="ai.onnx.ml",
                         cats_strings=["red", "green", "blue"]),
        helper.make_node("Concat", ["hot", "size"], ["row"], axis=1),
        helper.make_node("LinearClassifier", ["row"], ["label", "scores"], domain="ai.onnx.ml",
                         coefficients=numbers(8).tolist(), intercepts=[0.0, 0.5],
                         classlabels_strings=["no", "yes"], post_transform="SOFTMAX"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("word", TEXT, ["n"]),
         helper.make_tensor_value_info("size", FLOAT, ["n", 1])],
        [helper.make_tensor_value_info("label", TEXT, ["n"]),
         helper.make_tensor_value_info("scores", FLOAT, ["n", 2])],
    )  # fmt: skip
    made = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)])  # fmt: skip
    session = onnxruntime.InferenceSession(made.SerializeToString())
    ready = prepared(made)
    for words in (["red", "blue", "pink"], ["green"]):
        feeds = [text(*words), numbers(len(words), 1)]
        wanted = session.run(None, dict(zip(["word", "size"], feeds, strict=True)))
        for mine, its in zip(ready.run(feeds), wanted, strict=True):
            same(mine, its)
