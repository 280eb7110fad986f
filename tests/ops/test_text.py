"""Operators on texts, which run on the host."""

import itertools

import numpy as np
import pytest
from checks import case, family, refused
from rows import run_op

import migraphx


def text(*words):
    return np.array(words, object)


def each(function, *arrays):
    """NumPy's broadcasting with a Python function of texts."""
    arrays = np.broadcast_arrays(*arrays)
    out = np.empty(arrays[0].shape, object)
    for at in np.ndindex(out.shape):
        out[at] = function(*(a[at] for a in arrays))
    return out


def normalized(x, stops=None, case="NONE", sensitive=False):
    kept = []
    for word in x.reshape(-1):
        drop = [w if sensitive else w.lower() for w in (stops if stops is not None else [])]
        if (word if sensitive else word.lower()) not in drop:
            kept.append({"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[case](word))
    out = text(*(kept or [""]))
    return out[None] if x.ndim == 2 else out


def split(x, delimiter="", maxsplit=-1):
    """Cut by hand: runs of blanks without a delimiter, each delimiter otherwise."""
    rows = []
    for word in x.reshape(-1):
        if not delimiter:
            pieces = word.split() if maxsplit < 0 else word.split(None, maxsplit)
        else:
            pieces = word.split(delimiter) if maxsplit < 0 else word.split(delimiter, maxsplit)
        rows.append(pieces)
    width = max((len(r) for r in rows), default=0)
    padded = [r + [""] * (width - len(r)) for r in rows]
    out = np.array(padded, object).reshape(*x.shape, width)
    return out, np.array([len(r) for r in rows], np.int64).reshape(x.shape)


def ngrams(x, pool, places, weights=None, *, starts, columns, mode="TF", least=1, most=1, skip=0):
    """Every way to pick the elements of an n-gram at equal distances, compared with the pool."""
    grams, ends = [], [*starts[1:], len(pool)]
    for size, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        for at in range(start, end, size):
            grams.append(tuple(pool[at : at + size].tolist()))
    out = np.zeros((1 if x.ndim == 1 else len(x), columns))
    for row, words in enumerate(x.reshape(len(out), -1).tolist()):
        for (number, gram), gap in itertools.product(enumerate(grams), range(1, skip + 2)):
            if not least <= len(gram) <= most or (len(gram) == 1 and gap > 1):
                continue
            for at in range(len(words)):
                picked = [
                    words[at + k * gap] for k in range(len(gram)) if at + k * gap < len(words)
                ]
                out[row, places[number]] += tuple(picked) == gram
    scale = np.ones(columns) if weights is None else weights
    out = {"TF": out, "IDF": (out > 0) * scale, "TFIDF": out * scale}[mode]
    return out[0] if x.ndim == 1 else out


LINES = [["a b c", "", " x  y "], ["one,two,,three", ",", "ü ö"]]
WORDS = ["Monday", "TUESDAY", "monday", "Ärger", ""]
STOPS = [(), [("s:string[2]", ["monday", "ÄRGER"])], [("s:string[0]", [])]]
SENTENCES = [[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]]
POOL = ("p:int64[10]", [2, 3, 5, 4, 5, 6, 7, 8, 6, 7])
COLUMNS = ("c:int64[7]", [0, 1, 2, 3, 4, 5, 6])
GRAMS = {"starts": [0, 4], "columns": 7}
WEIGHTS = ("w:float[7]", [1, 2, 0.5, 4, 8, 3, 0.25])
CONCAT, SPLIT, MATCH = "onnx::string_concat", "onnx::string_split", "onnx::regex_full_match"
NORMAL, TF = "onnx::string_normalizer", "onnx::tf_idf"

CASES = [
    case(CONCAT, ("x:string[3]", ["a", "", "ü"]), ("y:string[3]", ["b", "c", ""]),
         reference=lambda x, y: each(str.__add__, x, y)),
    case(CONCAT, ("x:string[2,1]", [["a"], ["b"]]), ("y:string[3]", ["x", "y", "z"]),
         reference=lambda x, y: each(str.__add__, x, y), skip="layouts"),
    case(CONCAT, ("x:string[]", "a"), ("y:string[]", "b"),
         reference=lambda x, y: np.array("ab", object)),
    *(case(NORMAL, (f"x:string[{dims}]", words), *stops, case=how, sensitive=exact,
           reference=normalized, skip="layouts")
      for dims, words in (("5", WORDS), ("1,5", [WORDS])) for stops in STOPS
      for how in ("NONE", "LOWER", "UPPER") for exact in (True, False)),
    case(NORMAL, ("x:string[2]", ["a", "A"]), ("s:string[1]", ["a"]), reference=normalized),
    case(SPLIT, ("x:string[2,3]", LINES), reference=split),
    case(SPLIT, ("x:string[2,3]", LINES), delimiter=",", reference=split),
    case(SPLIT, ("x:string[2,3]", LINES), delimiter=",", maxsplit=1, reference=split),
    case(SPLIT, ("x:string[2,3]", LINES), maxsplit=1, reference=split),
    case(SPLIT, ("x:string[2]", ["a--b", "--"]), delimiter="--", reference=split),
    case(SPLIT, ("x:string[]", "a b"),
         reference=lambda x: (np.array(["a", "b"], object), np.array(2))),
    case(SPLIT, ("x:string[2]", ["", " "]), reference=split),
    case(MATCH, ("x:string[2,2]", [["www.a.com", "a.com"], ["www.b.org", "xwww.a.com"]]),
         pattern=r"www\.[\w.-]+\.\bcom\b",
         reference=lambda x, pattern: np.array([[True, False], [False, False]])),
    case(MATCH, ("x:string[3]", ["", "a", "aa"]), pattern="a*",
         reference=lambda x, pattern: np.array([True] * 3)),
    case(MATCH, ("x:string[]", "ab"), pattern="a", reference=lambda x, pattern: np.array(False)),
    *(case(TF, ("x:int64[2,6]", SENTENCES), POOL, COLUMNS, *more, reference=ngrams,
           skip="empty layouts", **GRAMS, **attributes)
      for more, attributes in (
          ((), {}),
          ((), {"least": 2, "most": 2}),
          ((), {"least": 1, "most": 2}),
          ((WEIGHTS,), {"least": 1, "most": 2, "mode": "IDF"}),
          ((WEIGHTS,), {"least": 1, "most": 2, "mode": "TFIDF"}),
          ((), {"least": 1, "most": 2, "mode": "IDF"}))),
    case(TF, ("x:int32[6]", SENTENCES[1]), ("p:int32[10]", POOL[1]), COLUMNS, most=2,
         reference=ngrams, skip="empty layouts", **GRAMS),
    case(TF, ("x:string[3]", ["a", "b", "a"]), ("p:string[4]", ["a", "c", "b", "a"]),
         ("c:int64[3]", [2, 0, 1]), starts=[0, 2], columns=3, most=2, reference=ngrams,
         skip="empty layouts"),
]  # fmt: skip

test_family = family(CASES)


@pytest.mark.parametrize(("least", "gap"), [(1, 5), (2, 1), (2, 5)])
def test_ngrams_with_gaps(least, gap):
    """Not rows: their attribute `skip` has the name of what a row leaves out."""
    arrays = [np.array(v) for v in (SENTENCES, POOL[1], COLUMNS[1])]
    attributes = {"least": least, "most": 2, "skip": gap, **GRAMS}
    got = run_op(migraphx.op(TF, **attributes), arrays)[0]
    np.testing.assert_array_equal(got, ngrams(*arrays, **attributes))


def test_string_normalizer_of_several_rows():
    with pytest.raises(migraphx.Error, match=r"\[C\] or \[1, C\] is needed"):
        run_op(migraphx.op(NORMAL), [text("a", "b").reshape(2, 1)])


def test_a_pattern_that_is_none():
    with pytest.raises(migraphx.Error, match="bad pattern"):
        run_op(migraphx.op(MATCH, pattern="("), [text("a")])


test_refused = refused(
    [
        (CONCAT, {}, ["x:string[2]"], "Wrong number of arguments"),
        (NORMAL, {"case": "TITLE"}, ["x:string[2]"], "case 'TITLE' is none of"),
        (NORMAL, {}, [], "Wrong number of arguments"),
        (SPLIT, {}, [], "Wrong number of arguments"),
        (MATCH, {}, ["x:string[2]", "y:string[2]"], "Wrong number of arguments"),
        (
            TF,
            {"mode": "BM25"},
            ["x:int64[2]", "p:int64[2]", "c:int64[2]"],
            "mode 'BM25' is none of",
        ),
        (TF, {}, ["x:int64[2]"], "Wrong number of arguments"),
    ]
)
