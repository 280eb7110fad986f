"""ONNX-ML: tables, trees, support vectors, scores, maps."""

import math

import numpy as np
import pytest
from checks import case, family, refused
from rows import run_op, shape_of, single

import migraphx
from migraphx.ops.ml import MODES
from migraphx.shape import Shape

APART = ("onnx::map_to_tensor", "onnx::zip_map")
NAN = math.nan


# -- tables --------------------------------------------------------------------------------------


def looked_up(x, keys, values, default):
    """The first key that is equal, NaN among equals."""
    out = np.empty(x.size, values.dtype)
    for place, v in enumerate(x.reshape(-1).tolist()):
        equal = [k for k, key in enumerate(keys.tolist()) if key == v or (v != v and key != key)]
        out[place] = values[equal[0]] if equal else default.reshape(-1)[0]
    return out.reshape(x.shape)


def table(kind, keys, values_kind, values, default):
    size = len(keys)
    return [(f"k:{kind}[{size}]", keys), (f"v:{values_kind}[{size}]", values),
            (f"d:{values_kind}[1]", [default])]  # fmt: skip


FLOAT_KEYS = table("float", [-1.0, 0.5, 2.0, NAN], "int64", [10, 20, 30, 40], -1)
WORDS = ["a", "", "long word", "ü"]
TABLES = [
    case("onnx::lookup", ("x:float[2,3]", [[0.5, -1, 3], [NAN, 2, 0.4999]]), *FLOAT_KEYS,
         reference=looked_up),
    case("onnx::lookup", ("x:int64[5]", [3, -7, 0, 100, 3]),
         *table("int64", [-7, 0, 3], "float", [0.5, 1.5, 2.5], 9.0), reference=looked_up),
    case("onnx::lookup", ("x:double[n,3]", 2.0),
         *table("double", [1, 2], "double", [0.1, 0.2], 0.0), reference=looked_up),
    case("onnx::lookup", ("x:int64[3]", [1, 2, 3]), *table("int64", [], "int64", [], 4),
         reference=looked_up, skip="empty"),
    case("onnx::lookup", ("x:int64[]", 2), *table("int64", [1, 2], "int64", [5, 6], 0),
         reference=looked_up),
    case("onnx::lookup_text", ("x:string[2,3]", [["a", "b", ""], ["ü", "A", "long word"]]),
         *table("string", WORDS, "int64", [1, 2, 3, 4], -1), reference=looked_up),
    case("onnx::lookup_text", ("x:int64[4]", [2, 9, 1, 2]),
         *table("int64", [1, 2], "string", ["one", "two"], "other"), reference=looked_up),
    case("onnx::lookup_text", ("x:float[3]", [NAN, 1.5, 0]),
         *table("float", [1.5, NAN], "string", ["1.5", "none"], "?"), reference=looked_up),
    case("onnx::one_hot_text", ("x:string[2,2]", [["a", "c"], ["b", "x"]]),
         ("c:string[3]", ["a", "b", "c"]),
         reference=lambda x, c: np.array([[[v == w for w in c] for v in row] for row in x])),
    case("onnx::one_hot_text", ("x:string[1]", ["a"]), ("c:string[2]", ["b", "a"]), zeros=False,
         skip="layouts", reference=lambda x, c, zeros: np.array([[0, 1]])),
]  # fmt: skip
test_tables = family(TABLES)


def test_a_text_that_is_no_category():
    op = migraphx.op("onnx::one_hot_text", zeros=False)
    with pytest.raises(migraphx.Error, match="none of the categories"):
        run_op(op, [np.array(["x"], object), np.array(["a", "b"], object)])


# -- trees ---------------------------------------------------------------------------------------

TESTS = {
    "BRANCH_LEQ": lambda v, s: v <= s,
    "BRANCH_LT": lambda v, s: v < s,
    "BRANCH_GTE": lambda v, s: v >= s,
    "BRANCH_GT": lambda v, s: v > s,
    "BRANCH_EQ": lambda v, s: v == s,
    "BRANCH_NEQ": lambda v, s: v != s,
}


def grown(modes, count, features, depth, seed=0):
    """Random trees as the lists of nodes that the operator reads."""
    rng = np.random.default_rng(seed)
    nodes, leaves = [], 0

    def grow(level):
        nonlocal leaves
        at = len(nodes)
        if level == 0 or (level < depth and rng.random() < 0.3):
            nodes.append((0, 0.0, 0, at, at, False, leaves))
            leaves += 1
            return at
        nodes.append(None)
        mode, feature = MODES.index(rng.choice(modes)), int(rng.integers(features))
        split, missing = round(float(rng.uniform(-1, 1)), 1), bool(rng.random() < 0.5)
        nodes[at] = (feature, split, mode, grow(level - 1), grow(level - 1), missing, -1)
        return at

    roots = [grow(depth) for _ in range(count)]
    return [np.array(roots), *map(np.array, zip(*nodes, strict=True))], leaves


def reached(x, roots, feature, split, mode, then, other, missing, leaf, *sets, **_):
    """From each root down, one comparison after the other."""
    x = x.reshape(1, -1) if x.ndim < 2 else x
    out = np.empty((len(x), len(roots)), np.int32)
    for row, tree in np.ndindex(out.shape):
        at = roots[tree]
        while leaf[at] < 0:
            value, name = x[row, feature[at]], MODES[mode[at]]
            if name == "BRANCH_MEMBER":
                yes = value in sets[0][at]
            else:
                yes = TESTS[name](value, split[at])
            at = then[at] if yes or (value != value and missing[at]) else other[at]
        out[row, tree] = leaf[at]
    return out


def forest(modes, kind="float", count=3, depth=4, samples=(6, 5), **more):
    """A row of trees with the given comparisons; every tenth value is missing, many are equal."""
    lists, _ = grown(modes, count, samples[-1], depth)
    size = len(lists[1])
    types = ("int32", "int32", kind, "int32", "int32", "int32", "bool", "int32")
    names = [(f"{n}:{t}[{count if k == 0 else size}]", v)
             for k, (n, t, v) in enumerate(zip("rfsmtocl", types, lists, strict=True))]  # fmt: skip

    def values(rng, lens):
        found = np.round(rng.uniform(-1, 1, lens), 1)
        found[rng.random(lens) < 0.1] = NAN
        return found

    if "BRANCH_MEMBER" in modes:
        sets = np.round(np.random.default_rng(1).uniform(-1, 1, (size, 8)), 1)
        names.append((f"sets:{kind}[{size},8]", sets))
    dims = ",".join(map(str, samples))
    return case("onnx::forest", (f"x:{kind}[{dims}]", values), *names, depth=depth,
                modes=sorted(MODES.index(m) for m in modes), reference=reached, symbolic=False,
                skip="layouts empty", **more)  # fmt: skip


def scored(leaves, weights, given=None, aggregate="SUM"):
    out = np.zeros((len(leaves), weights.shape[1]))
    for row, target in np.ndindex(out.shape):
        used = [k for k in leaves[row] if given is None or given[k, target]]
        found = [weights[k, target] for k in used]
        if aggregate in ("SUM", "AVERAGE"):
            out[row, target] = sum(found) / (len(used) if aggregate == "AVERAGE" else 1)
        elif found:
            out[row, target] = min(found) if aggregate == "MIN" else max(found)
    return out


LEAVES = ("l:int32[4,3]", [[0, 2, 4], [1, 1, 0], [3, 3, 4], [4, 4, 4]])
GIVEN = ("g:bool[5,2]", [[1, 0], [1, 1], [0, 0], [1, 0], [0, 0]])
TREES = [
    *(forest([name]) for name in TESTS),
    forest(list(TESTS), count=5),
    forest(["BRANCH_MEMBER"]),
    forest(["BRANCH_LEQ", "BRANCH_MEMBER", "BRANCH_EQ"], kind="double"),
    forest(["BRANCH_LEQ"], count=1, depth=1, samples=(4,)),
    forest(["BRANCH_LEQ"], count=2, depth=0),
    *(case("onnx::forest_score", LEAVES, "w[5,2]", aggregate=how, reference=scored,
           types="float double") for how in ("SUM", "AVERAGE")),
    *(case("onnx::forest_score", LEAVES, "w[5,2]", GIVEN, aggregate=how, reference=scored,
           types="float double") for how in ("MIN", "MAX")),
]  # fmt: skip
test_trees = family(TREES)


# -- scores --------------------------------------------------------------------------------------


def softmax_rows(x):
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def softmax_zero(x):
    """As onnxruntime: the exponentials of what is not zero, divided by their sum."""
    out = np.zeros_like(x)
    for place, row in enumerate(x):
        there = np.abs(row) > 1e-7
        power = np.exp(row[there] - row.max())
        out[place, there] = power / power.sum() if power.sum() else 0
    return out


def probit(x):
    """The number below which a normal variable lies with probability x, by bisection."""
    out = []
    for p in x.reshape(-1).tolist():
        low, high = -40.0, 40.0
        for _ in range(200):
            middle = (low + high) / 2
            below = math.erfc(-middle / math.sqrt(2)) / 2 < p
            low, high = (middle, high) if below else (low, middle)
        out.append(low)
    return np.array(out).reshape(x.shape)


def kernel(x, vectors, kind="LINEAR", gamma=0.0, coef0=0.0, degree=3.0):
    gamma, coef0 = float(np.float32(gamma)), float(np.float32(coef0))
    x = x.reshape(1, -1) if x.ndim < 2 else x
    out = np.empty((len(x), len(vectors)))
    for i, j in np.ndindex(out.shape):
        dot = sum(a * b for a, b in zip(x[i], vectors[j], strict=True))
        out[i, j] = {
            "LINEAR": dot,
            "POLY": (gamma * dot + coef0) ** degree,
            "SIGMOID": math.tanh(gamma * dot + coef0),
            "RBF": math.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x[i], vectors[j]))),
        }[kind]
    return out


def coupled(pairs):
    """Minimises sum (r_ji p_i - r_ij p_j)^2 over probabilities, by its linear equations."""
    found = []
    for r in pairs:
        n = len(r)
        q = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                if i != j:
                    q[i, j] = -r[j, i] * r[i, j]
                    q[i, i] += r[j, i] ** 2
        system = np.block([[q, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        found.append(np.linalg.solve(system, np.append(np.zeros(n), 1))[:n])
    return np.array(found)


def pair_probabilities(rng, lens):
    upper = np.triu(rng.uniform(0.1, 0.9, lens), 1)
    lower = np.swapaxes(np.triu(np.ones(lens), 1) - upper, 1, 2)
    return upper + lower * np.tril(np.ones(lens), -1)


def side_by_side(*xs, columns):
    rows = max(x.shape[0] if x.ndim > 1 else 1 for x in xs)
    out = np.zeros((rows, sum(columns)))
    at = 0
    for x, width in zip(xs, columns, strict=True):
        x = x.reshape(rows, -1)[:, :width]
        out[:, at : at + x.shape[1]] = x
        at += width
    return out


SOME_ZEROS = [[0, 1, -2, 0], [0, 0, 0, 0], [3, 3, 0, 1e-8]]
SCORES = [
    case("onnx::post_transform", "x[n,4]", reference=lambda x: x, types="float double"),
    case("onnx::post_transform", "x[n,4]", kind="SOFTMAX", types="float double",
         reference=lambda x, kind: softmax_rows(x)),
    case("onnx::post_transform", ("x[2,3]", [[1000, 999, -1000], [-500, -500, -501]]),
         kind="SOFTMAX", reference=lambda x, kind: softmax_rows(x), types="float double"),
    case("onnx::post_transform", ("x[3,4]", SOME_ZEROS), kind="SOFTMAX_ZERO", grad=False,
         reference=lambda x, kind: softmax_zero(np.where(np.abs(x) > 1e-7, x, 0)), tol=1e-5),
    case("onnx::post_transform", "x[n,4]", kind="LOGISTIC", types="float double",
         reference=lambda x, kind: 1 / (1 + np.exp(-x))),
    case("onnx::post_transform", ("x[4]", [-1000, 1000, 0, -20]), kind="LOGISTIC",
         reference=lambda x, kind: np.array([0, 1, 0.5, math.exp(-20) / (1 + math.exp(-20))])),
    case("onnx::post_transform", ("x[2,4]", [[0.5, 0.1, 0.9, 0.01], [0.999, 0.3, 0.7, 1e-4]]),
         kind="PROBIT", reference=lambda x, kind: probit(x), types="float double"),
    *(case("onnx::svm_kernel", "x[n,3]", "v[4,3]", kind=kind, reference=kernel, **more)
      for kind, more in (("LINEAR", {"types": "float double"}),
                         ("POLY", {"gamma": 0.3, "coef0": 1.5, "degree": 2.0}),
                         ("POLY", {"gamma": 0.25, "coef0": 0.5}),
                         ("SIGMOID", {"gamma": 0.3, "coef0": -0.5, "types": "float double"}),
                         ("RBF", {"gamma": 0.7, "types": "float double"}))),
    case("onnx::svm_kernel", "x[3]", "v[4,3]", reference=kernel, symbolic=False),
    # It stops at changes of 0.005 / classes, which libsvm has set.
    case("onnx::svm_probability", ("x[3,3,3]", pair_probabilities), reference=coupled, tol=1e-2,
         types="float double", symbolic=False, skip="layouts empty gradient"),
    case("onnx::svm_probability", ("x[2,2,2]", pair_probabilities), tol=1e-2, symbolic=False,
         reference=coupled, skip="layouts empty gradient"),
    # The result is float32 whatever comes in: too coarse for measuring slopes.
    case("onnx::feature_rows", "x[n,2]", "y[n,3]", columns=[2, 3], grad=False, reference=side_by_side),
    case("onnx::feature_rows", "x[2,4]", "y:int64[2,3]", "z:double[2,1]", columns=[3, 5, 1],
         grad=False, reference=side_by_side, symbolic=False),
    case("onnx::feature_rows", "x[4]", columns=[2], grad=False, reference=side_by_side, symbolic=False),
    case("onnx::feature_rows", "x[2,3,2]", columns=[7], grad=False, reference=side_by_side, symbolic=False),
]  # fmt: skip
test_scores = family(SCORES)

NINE = [f"n{k}:int32[5]" for k in range(8)]
test_refused = refused(
    [
        ("onnx::lookup", {}, ["x[2]", "k[2]", "v[2]"], "Wrong number of arguments"),
        ("onnx::lookup_text", {}, ["x:string[2]"], "Wrong number of arguments"),
        ("onnx::one_hot_text", {}, ["x:string[2]"], "Wrong number of arguments"),
        ("onnx::forest", {}, ["x[2,3]", "r:int32[1]"], "Wrong number of arguments"),
        ("onnx::forest", {"modes": [6]}, ["x[2,3]", *NINE], "needs the members of sets"),
        ("onnx::forest", {"modes": [7]}, ["x[2,3]", *NINE], "are positions in BRANCH_LEQ"),
        ("onnx::forest_score", {}, ["l:int32[2,3]"], "Wrong number of arguments"),
        ("onnx::post_transform", {}, [], "Wrong number of arguments"),
        ("onnx::post_transform", {"kind": "SQUARE"}, ["x[2,3]"], "kind 'SQUARE' is none of"),
        ("onnx::svm_kernel", {}, ["x[2,3]"], "Wrong number of arguments"),
        ("onnx::svm_kernel", {"kind": "COSINE"}, ["x[2,3]", "v[4,3]"], "kind 'COSINE' is none of"),
        ("onnx::svm_kernel", {}, ["x[2,3]", "v[4,2]"], "3 features"),
        ("onnx::svm_probability", {}, ["x[2,3]"], "need 3 dimensions"),
        ("onnx::feature_rows", {"columns": [1]}, ["x[2,3]", "y[2,3]"], "1 columns for 2 inputs"),
        ("onnx::forest_score", {"aggregate": "MIN"}, ["l:int32[2,3]", "w[5,2]"], "are given"),
        ("onnx::forest_score", {"aggregate": "MEDIAN"}, ["l:int32[2,3]", "w[5,2]"], "is none of"),
        ("onnx::map_to_tensor", {}, [], "Wrong number of arguments"),
        ("onnx::zip_map", {}, ["x[2]"], "Wrong number of arguments"),
    ]
)


# -- maps ----------------------------------------------------------------------------------------


def from_map(given, *vocabulary, kind="float", **attributes):
    """`onnx::map_to_tensor` of a dict that the program is run with."""
    op = migraphx.op("onnx::map_to_tensor", target_type=kind, **attributes)
    program = migraphx.program()
    main = program.get_main_module()
    inputs = [main.add_parameter("x", Shape.unknown(migraphx.shape.type_t.float_type))]
    inputs += [main.add_literal(migraphx.argument(np.array(v))) for v in vocabulary]
    main.add_return([main.add_instruction(op, inputs)])
    program.compile(migraphx.get_target("ref"))
    return np.asarray(program.run({"x": given})[0])


@pytest.mark.parametrize("kind", ["float", "double", "int64"])
def test_map_to_tensor(kind):
    """All values by rising key; a dense tensor of a size; those that a list of keys asks for."""
    found = from_map({7: 1.0, -2: 2.0, 3: 4.0}, kind=kind)
    np.testing.assert_array_equal(found, [[2, 4, 1]])
    found = from_map({3: 5.0, 0: 2.0}, kind=kind, size=5)
    np.testing.assert_array_equal(found, [[2, 0, 0, 5, 0]])
    found = from_map({3: 5.0, 0: 2.0, 9: 1.0}, [9, 4, 3], kind=kind)
    np.testing.assert_array_equal(found, [[1, 0, 5]])


def test_map_to_tensor_of_texts():
    np.testing.assert_array_equal(from_map({2: "1.5", 1: "-3"}), [[-3, 1.5]])
    np.testing.assert_array_equal(from_map({2: 1.5, 1: 7.0}, kind="string"), [["7", "1.5"]])
    found = from_map({0: "a", 2: "b"}, kind="string", size=3)
    np.testing.assert_array_equal(found, [["a", "", "b"]])


def test_map_to_tensor_needs_a_map():
    with pytest.raises(migraphx.Error, match=r"a map \(a dict\) is needed"):
        from_map([np.zeros(2, np.float32)])


@pytest.mark.parametrize("labels", [np.array([3, 8]), np.array(["no", "yes"], object)])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_zip_map(labels, kind):
    """A map for each row."""
    rows = np.array([[1, 2], [3, 4], [5, 6]], kind)
    shapes = [shape_of(rows), shape_of(labels)]
    program, ins = single(migraphx.op("onnx::zip_map"), shapes)
    assert ins.shape().dims is None
    program.compile(migraphx.get_target("ref"))
    got = program.run({"x0": rows, "x1": labels})[0]
    assert list(got) == [dict(zip(labels.tolist(), row, strict=True)) for row in rows.tolist()]
