"""Operators on texts, against ONNX's own cases and ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper
from onnx_models import check, check_official, official_cases, prepared, same

import migraphx

OFFICIAL = [
    name for name in official_cases()
    if any(part in name for part in ("string", "regex", "tfidf", "strnormalizer"))
    and "ai_onnx_ml" not in name and "cast" not in name
]  # fmt: skip


def words(*values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize("name", OFFICIAL)
def test_official(name):
    check_official(name)


def test_concat_of_computed_texts():
    text = """
    g (string[2] x, string[1] y, float[2] n) => (string[2] z, float[2] m) {
        t = Cast <to = 8> (n)
        a = StringConcat(x, y)
        z = StringConcat(a, t)
        m = Add(n, n)
    }"""
    feeds = [words("a", "b"), words("-"), np.float32([1.5, 2])]
    check(text, *feeds, expected=[words("a-1.5", "b-2"), np.float32([3, 4])])


def test_texts_through_views():
    text = """
    g (string[2,2] x) => (string[4] y, string[2,1] z) <int64[1] shape = {-1}, int64[1] one = {1}> {
        t = Transpose(x)
        y = Reshape(t, shape)
        z = Gather <axis = 1> (x, one)
    }"""
    x = words("a", "b", "c", "d").reshape(2, 2)
    check(text, x, expected=[words("a", "c", "b", "d"), words("b", "d").reshape(2, 1)])


@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize(
    ("action", "change"), [("NONE", str), ("LOWER", str.lower), ("UPPER", str.upper)]
)
def test_string_normalizer(action, change, sensitive):
    text = f"""
    g (string[1,4] x) => (string[1,K] y) {{
        y = StringNormalizer <stopwords = ["the"], case_change_action = "{action}",
                              is_case_sensitive = {sensitive}> (x)
    }}"""
    kept = ["Monday", "ÄPFEL", "The"][: 3 if sensitive else 2]
    x = words("Monday", "the", "ÄPFEL", "The")[None]
    check(text, x, expected=[words(*map(change, kept))[None]])
    check(text, words("the", "the", "the", "the")[None], expected=[words("")[None]])


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skip", [0, 1, 3])
@pytest.mark.parametrize("texts", [False, True])
def test_tf_idf_against_onnxruntime(mode, skip, texts):
    pool = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]
    x = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int64)
    pool_attribute = {"pool_int64s": pool}
    if texts:
        x = x.astype(str).astype(object)
        pool_attribute = {"pool_strings": list(map(str, pool))}
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode=mode, min_gram_length=1, max_gram_length=2,
        max_skip_count=skip, ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5, 6],
        weights=[1.0, 2.0, 3.0, 0.5, 4.0, 5.0, 6.0], **pool_attribute,
    )  # fmt: skip
    kind = 8 if texts else 7
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kind, [2, 6])],
                              [helper.make_tensor_value_info("y", 1, None)])  # fmt: skip
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    same(prepared(model).run([x])[0], wanted[0])


def test_bad_pattern():
    text = """
    g (string[1] x) => (bool[1] y) { y = RegexFullMatch <pattern = "(">(x) }"""
    with pytest.raises(migraphx.Error, match="bad pattern"):
        prepared(text).run([words("a")])


def test_texts_are_refused_where_numbers_are_needed():
    text = "g (string[1] x) => (string[1] y) { y = Identity(x) }"
    with pytest.raises(migraphx.Error, match="should be: string_type"):
        prepared(text).run([np.float32([1])])
