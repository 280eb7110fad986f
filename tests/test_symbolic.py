"""Symbolic sizes: texts row by row; arithmetic and round trips by generated expressions."""

import copy
import pickle
import subprocess
import sys
from functools import reduce

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from migraphx.errors import Error
from migraphx.symbolic import (
    Expr,
    exact_quotient,
    from_sympy,
    largest,
    parse,
    smallest,
    to_sympy,
    valid_name,
)

TOP = 2**64 - 1
BOUNDS = {"h": (4, 12), "k": (0, 3), "m": (1, 5), "n": (1, 8)}
SYMBOLS = {name: Expr.symbol(name, (bounds,)) for name, bounds in BOUNDS.items()}
n, m, h = SYMBOLS["n"], SYMBOLS["m"], SYMBOLS["h"]

# A recipe is a nested tuple, so that several algebras can follow it.
LEAVES = st.sampled_from(sorted(BOUNDS)) | st.integers(-3, 6)
RECIPES = st.recursive(
    LEAVES,
    lambda inner: st.tuples(
        st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]), inner, inner
    ),
    max_leaves=8,
)
SIZES = st.fixed_dictionaries({name: st.integers(*bounds) for name, bounds in BOUNDS.items()})

OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def follow(recipe, symbols, low=smallest, high=largest):
    """The recipe carried out on what `symbols` has for the names."""
    if isinstance(recipe, str):
        return symbols[recipe]
    if isinstance(recipe, int):
        return recipe
    kind, *args = recipe
    a, b = (follow(x, symbols, low, high) for x in args)
    return {**OPERATIONS, "min": low, "max": high}[kind](a, b)


def expression(recipe) -> Expr:
    try:
        expr = follow(recipe, SYMBOLS) + Expr.literal(0)
        expr.interval()
    except (Error, ZeroDivisionError):  # division by zero, in the recipe or at all sizes
        assume(False)
    return expr


def number(recipe, sizes) -> int:
    try:
        return follow(recipe, sizes, min, max)
    except ZeroDivisionError:
        assume(False)


PRINTED = [
    ("n + 1", "n + 1"),
    ("1+n", "n + 1"),
    ("-m + 3*n - 2", "-m + 3*n - 2"),
    ("m*n + n", "n + m*n"),
    ("n*m*6 + 1", "6*(m*n) + 1"),
    ("6*m*n", "6*m*n"),
    ("n*m*n", "m*n*n"),
    ("m + n + B", "B + m + n"),
    ("(n+1)*(m+2)", "m + 2*n + m*n + 2"),
    ("2*(n + 1)", "2*n + 2"),
    ("(n + 1)/m", "(n + 1)/m"),
    ("3*(n/2)", "3*(n/2)"),
    ("n/2*2", "2*(n/2)"),
    ("(n/2)/3", "(n/2)/3"),
    ("(2*n+1)/2", "(2*n + 1)/2"),
    ("2*n/2", "n"),
    ("(2*n)//2", "n"),
    ("(4*n + 2*m - 6)/2", "m + 2*n - 3"),
    ("n*m/n", "m"),
    ("6*n*m/(2*n)", "3*m"),
    ("n*n*m/(n*m)", "n"),
    ("(n + 1)/(n + 1)", "1"),
    ("n/(n*m)", "n/(m*n)"),
    ("0/n", "0"),
    ("7/2", "3"),
    ("-7/2", "-4"),
    ("n - n", "0"),
    ("-n", "-n"),
    ("-m*n", "-m*n"),
    ("-(n/2)", "-(n/2)"),
    ("1 - n/2", "-(n/2) + 1"),
    ("-n/2", "(-n)/2"),
    ("m - n/2", "m - n/2"),
    ("a - (b - c)", "a - b + c"),
    (
        "(2*((h-1)/2) + 2) * (2*((h-1)/2) + 2)",
        "4*(((h - 1)/2)*((h - 1)/2)) + 8*((h - 1)/2) + 4",
    ),
    ("n % 2", "n%2"),
    ("(n+1) % 2 * 3", "3*((n + 1)%2)"),
    ("(4*n + m + 5) % 4", "(m + 5)%4"),
    ("(4*n + 5) % 4", "1"),
    ("n*m % n", "0"),
    ("n % 1", "0"),
    ("min(n, m, min(k, n))", "min(k, m, n)"),
    ("max(n, 3, 2)", "max(3, n)"),
    ("max(n, 1)", "n"),
    ("min(n[1..8], 9)", "n"),
    ("min(n + 1, n)", "n"),
    ("2*max(m, n) + min(m, n)/2", "min(m, n)/2 + 2*max(m, n)"),
    ("min + max", "max + min"),
    ("  n\n*\t2 ", "2*n"),
    ("--n", "n"),
]


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_plain_text(text, printed):
    assert str(parse(text)) == printed


ANNOTATED = [
    ("n[1..8] * 3 + 1", "3*n[1..8] + 1", (4, 25), set()),
    ("n", "n", (1, TOP), set()),
    ("n{2, 4}", "n{2, 4}", (1, TOP), {2, 4}),
    ("n{4,2,4}", "n{2, 4}", (1, TOP), {2, 4}),
    ("n[1..20][2..10]{4}", "n[1..20][2..10]{4}", (2, 10), {4}),
    ("n[2..10][1..20][2..10]", "n[1..20][2..10]", (2, 10), set()),
    ("n[1..20]{4} + n[2..10]{5}", "2*n[1..20][2..10]{4, 5}", (4, 20), {8, 10}),
    ("n[1..8]*n", "n[1..8]*n[1..8]", (1, 64), set()),
    ("n[1..8]/2 + n{2}", "n[1..8]{2} + n[1..8]{2}/2", (1, 12), {3}),
    ("n[0..8]", "n[0..8]", (0, 8), set()),
    ("n[1..8]{2, 4}*2 + 1", "2*n[1..8]{2, 4} + 1", (3, 17), {5, 9}),
    ("n[1..8]{2} + m[1..4]", "m[1..4] + n[1..8]{2}", (2, 12), set()),
    ("n[1..8]{2, 40}", "n[1..8]{2, 40}", (1, 8), {2}),
    ("n[3..3]", "n[3..3]", (3, 3), {3}),
    ("3", "3", (3, 3), set()),
    ("n[1..8] - n/2", "n[1..8] - n[1..8]/2", (1, 4), set()),
    ("(h[4..64] - 3)/2 + 1", "(h[4..64] - 3)/2 + 1", (1, 31), set()),
    ("(h[1..64] - 3)/2 + 1", "(h[1..64] - 3)/2 + 1", (0, 31), set()),
    ("12/n[1..4]", "12/n[1..4]", (3, 12), set()),
    ("5/k[0..4]", "5/k[0..4]", (1, 5), set()),
    ("k[0..4] - 1/k", "k[0..4] - 1/k[0..4]", (-1, 4), set()),
    ("n[1..8] - m[1..8]", "-m[1..8] + n[1..8]", (-7, 7), set()),
    ("n[1..8] % 4 + m[1..3]", "m[1..3] + n[1..8]%4", (1, 6), set()),
    ("n[1..8]*(9 - n)", "9*n[1..8] - n[1..8]*n[1..8]", (-55, 71), set()),
    ("max(n[1..8], m[3..4])", "max(m[3..4], n[1..8])", (3, 8), set()),
]


@pytest.mark.parametrize(("text", "printed", "interval", "optimals"), ANNOTATED)
def test_annotated_text(text, printed, interval, optimals):
    expr = parse(text)
    assert expr.text() == printed
    assert expr.interval() == interval
    assert expr.optimals() == optimals
    assert parse(printed) == expr


ERRORS = [
    ("", 1, "expected a number, a name"),
    ("n +", 4, "expected a number, a name"),
    ("n + * 2", 5, "expected a number, a name"),
    ("(n", 3, "expected an operator or ')'"),
    ("n)", 2, "expected an operator or the end"),
    ("n m", 3, "expected an operator or the end"),
    ("2n", 2, "expected an operator or the end"),
    ("n.m", 2, "expected an operator or the end"),
    ("n ? 2", 3, "expected an operator or the end"),
    ("é", 1, "expected a number, a name"),
    ("n[1..", 6, "expected a whole number"),
    ("n[-1..8]", 3, "expected a whole number"),
    ("n[1,8]", 4, "expected '..'"),
    ("n[1..8", 7, "expected ']'"),
    ("n[8..1]", 3, "interval 8..1 is empty"),
    ("n[1..4][6..8]", 1, "no size satisfies n[1..4][6..8]"),
    ("n[1..4] + n[6..8]", 11, "no size satisfies n[1..4][6..8]"),
    ("n{}", 3, "expected a whole number"),
    ("n{4", 4, "expected ',' or '}'"),
    ("n{4}[1..8]", 5, "intervals stand before the optimals"),
    ("2*foo(n)", 3, "unknown function 'foo'; there are min and max"),
    ("min(n", 6, "expected ',' or ')'"),
    ("min()", 5, "expected a number, a name"),
    ("n/0", 3, "division by zero"),
    ("n % (m - m)", 5, "division by zero"),
    ("18446744073709551616", 1, "number above 2**64 - 1"),
    ("9" * 5000, 1, "number above 2**64 - 1"),
    ("(" * 5000, 101, "nested deeper than 100 levels"),
]


@pytest.mark.parametrize(("text", "column", "message"), ERRORS)
def test_parser_errors(text, column, message):
    with pytest.raises(Error) as caught:
        parse(text)
    what, line, caret = str(caught.value).split("\n")
    assert message in what
    assert what.endswith(f"column {column}")
    assert caret.endswith("^")
    assert len(line) <= 102


def test_wrong_arguments():
    with pytest.raises(TypeError, match="is a str"):
        parse(3)
    with pytest.raises(TypeError, match="dynamic_dimension"):
        parse("n", {"n": 3})
    with pytest.raises(TypeError):
        n + 1.5
    with pytest.raises(TypeError, match="expected a whole number"):
        smallest(n, "m")
    for name, intervals in [("a.b", ()), ("", ()), ("n", [(3, 2)]), ("n", [(-1, 2)])]:
        with pytest.raises(Error):
            Expr.symbol(name, intervals)
    with pytest.raises(Error, match="64 bits"):
        n * 2**70
    with pytest.raises(Error, match="no single value"):
        int(n)
    with pytest.raises(Error, match=r"division by zero: \(n\[1..8\]\)/0"):
        n // 0


class Range:
    min, max, optimals = 1, 8, {4}


def test_symbols_bind_bare_names():
    assert parse("2*n + m", {"n": Range(), "x": Range()}).text() == "m + 2*n[1..8]{4}"
    assert parse("n[1..4] + n", {"n": Range()}).text() == "2*n[1..4][1..8]{4}"
    assert parse("n{2}", {"n": Range()}).text() == "n{2}"
    assert parse("n", {"n": parse("n[1..20][2..10]{4}")}).text() == "n[1..20][2..10]{4}"
    assert parse("n", {"n": parse("2*m[1..4]{3}")}).text() == "n[2..8]{6}"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("batch.size", "batch_size"),
        ("0_d0", "_0_d0"),
        ("n", "n"),
        ("", "_"),
        ("größe", "gr__e"),
        ("²", "_"),
        ("a b/c:0", "a_b_c_0"),
    ],
)
def test_valid_name(text, name):
    assert valid_name(text) == name
    assert parse(name).text() == name


def test_equality():
    assert parse("n[1..8]") != parse("n[1..9]")
    assert parse("n[1..8]{4}") == parse("n[1..8]")
    assert hash(parse("n[1..8]{4}")) == hash(parse("n[1..8]"))
    assert parse("n + m") == parse("m + n")
    assert Expr.literal(3) == 3 == Expr.literal(3)
    assert hash(Expr.literal(3)) == hash(3)
    assert n != 3
    assert n != "n"
    assert n + 0 == n
    assert Expr.literal(3).value == 3
    assert list(range(5))[Expr.literal(2)] == 2
    assert {n + 1, 1 + n, n} == {n, n + 1}


def test_comparisons():
    assert n < 9
    assert n <= 8
    assert n + m > n
    assert not n < 1
    assert not n > 8
    assert n >= n
    with pytest.raises(Error, match=r"comparison undetermined: n\[1..8\] < 4"):
        assert n < 4


def test_substitute_and_solve():
    expr = 2 * n + m - 1
    assert expr.substitute({"n": 3}) == m + 5
    assert expr.substitute({"n": m, "m": 2 * n}) == 2 * m + 2 * n - 1
    assert expr.substitute({"x": 3}) is expr
    assert parse("n[3..3] + 1").evaluate({}) == 4
    with pytest.raises(Error, match="the size of m is not given"):
        expr.evaluate({"n": 3})
    with pytest.raises(Error, match="division by zero"):
        parse("1/n[0..1]").evaluate({"n": 0})
    assert expr.solve(12, {"m": 3}) == {"n": 5}
    assert expr.solve(12, {}) is None
    assert expr.solve(12, {"m": 3, "n": 1}) == {}
    assert (2 * n).solve(5, {}) == {"n": 2}
    assert (n // 2).solve(5, {}) is None
    assert (n * n).solve(4, {}) is None
    assert (n * m).solve(12, {"m": 3}) == {"n": 4}
    assert (n - n).solve(0, {}) == {}
    assert parse("n + k[2..2]").solve(5, {}) == {"n": 3}


def test_exact_quotient():
    a, b = (h - 1) // 2 + 1, n * m + 3
    assert exact_quotient(a * b * 6, a * 2) == 3 * b
    assert exact_quotient(n * m + n, n) == m + 1
    assert exact_quotient(n * m + n, m) is None
    assert exact_quotient(2 * n, Expr.literal(3)) is None
    assert exact_quotient(Expr.literal(6), Expr.literal(3)) == 2
    assert exact_quotient(n * n - m * m, n - m) == n + m


def test_limits():
    with pytest.raises(Error, match="deeper"):
        reduce(lambda deep, _: (deep + 1) // 2, range(200), n)
    wide = sum(Expr.symbol(f"s{i}") for i in range(80))
    with pytest.raises(Error, match="terms"):
        wide * wide
    with pytest.raises(Error, match="power"):
        parse("*".join("n" * 65))
    assert parse("+".join(f"n{i}{{1, 2}}" for i in range(13))).optimals() == set()


TREES = [
    ("3", {"type": "int", "value": 3}),
    ("n[1..8]", {"type": "sym", "name": "n", "min": 1, "max": 8}),
    ("n[1..8]{2, 4}", {"type": "sym", "name": "n", "min": 1, "max": 8, "optimals": [2, 4]}),
    (
        "3*n[1..8] + 1",
        {
            "type": "add",
            "constant": 1,
            "terms": [{"expr": {"type": "sym", "name": "n", "min": 1, "max": 8}, "coeff": 3}],
        },
    ),
    (
        "2*n[1..8]*n",
        {
            "type": "mul",
            "coeff": 2,
            "factors": [{"expr": {"type": "sym", "name": "n", "min": 1, "max": 8}, "exp": 2}],
        },
    ),
    (
        "n[1..8]/2",
        {
            "type": "tdiv",
            "num": {"type": "sym", "name": "n", "min": 1, "max": 8},
            "den": {"type": "int", "value": 2},
        },
    ),
]


@pytest.mark.parametrize(("text", "tree"), TREES)
def test_files_hold(text, tree):
    assert parse(text).to_value() == tree
    assert Expr.from_value(tree).text() == parse(text).text()


@pytest.mark.parametrize("text", ["n", "n{2}", "n[1..20][2..10]{4}", "min(n, m) % 3", "max(n, m)"])
def test_files_extended(text):
    assert Expr.from_value(parse(text).to_value()).text() == parse(text).text()


def test_files_are_made_canonical():
    one = {"type": "int", "value": 1}
    total = {"type": "add", "constant": 1, "terms": [{"expr": n.to_value(), "coeff": 1}]}
    twice = {"type": "mul", "coeff": 2, "factors": [{"expr": total, "exp": 1}]}
    assert str(Expr.from_value(twice)) == "2*n + 2"
    assert Expr.from_value({"type": "tdiv", "num": total, "den": one}) == n + 1
    assert Expr.from_value({"type": "sym", "name": "n"}).interval() == (1, 1)


def nested(levels):
    tree = n.to_value()
    for _ in range(levels):
        tree = {"type": "tdiv", "num": tree, "den": {"type": "int", "value": 2}}
    return tree


def powers(levels):
    tree = {"type": "int", "value": TOP}
    for _ in range(levels):
        tree = {"type": "mul", "coeff": 1, "factors": [{"expr": tree, "exp": 64}]}
    return tree


@pytest.mark.parametrize(
    "tree",
    [
        None,
        [],
        "n",
        {},
        {"type": "pow"},
        {"type": []},
        {"type": "int"},
        {"type": "int", "value": "3"},
        {"type": "int", "value": True},
        {"type": "int", "value": 1.0},
        {"type": "int", "value": 2**80},
        {"type": "sym"},
        {"type": "sym", "name": "a.b"},
        {"type": "sym", "name": 3},
        {"type": "sym", "name": "n", "min": -1, "max": 8},
        {"type": "sym", "name": "n", "min": 9, "max": 8},
        {"type": "sym", "name": "n", "min": 1, "max": 8, "optimals": 3},
        {"type": "sym", "name": "n", "min": 1, "max": 8, "optimals": ["x"]},
        {"type": "sym", "name": "n", "intervals": [3]},
        {"type": "sym", "name": "n", "intervals": [[1, 2], [3, 4]]},
        {"type": "add", "constant": 1},
        {"type": "add", "constant": 1, "terms": [3]},
        {"type": "add", "constant": 1, "terms": [{"expr": n.to_value()}]},
        {"type": "mul", "coeff": 1, "factors": [{"expr": n.to_value(), "exp": 0}]},
        {"type": "mul", "coeff": 1, "factors": [{"expr": n.to_value(), "exp": 10**9}]},
        {"type": "tdiv", "num": n.to_value()},
        {"type": "tdiv", "num": n.to_value(), "den": {"type": "int", "value": 0}},
        {"type": "min", "args": []},
        nested(5000),
        {**nested(5000), "type": "?"},
        powers(50),
    ],
    ids=range(31),
)
def test_hostile_trees(tree):
    with pytest.raises(Error):
        Expr.from_value(tree)


def test_copies():
    expr = parse("n[1..20][2..10]{4}/2 + 1")
    for same in (pickle.loads(pickle.dumps(expr)), copy.deepcopy(expr)):
        assert same.text() == expr.text()


def test_import_leaves_sympy_alone():
    code = (
        "import sys, migraphx.symbolic as s; s.parse('n + 1').text(); print('sympy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@given(RECIPES)
def test_text_round_trip(recipe):
    expr = expression(recipe)
    assert parse(expr.text()) == expr
    assert parse(expr.text()).text() == expr.text()
    assert parse(str(expr), SYMBOLS) == expr
    assert eval(repr(expr)) == expr


@given(RECIPES)
def test_value_round_trip(recipe):
    expr = expression(recipe)
    assert Expr.from_value(expr.to_value()) == expr
    assert Expr.from_value(expr.to_value()).text() == expr.text()


@settings(max_examples=300)
@given(RECIPES, SIZES)
def test_agrees_with_python(recipe, sizes):
    expr = expression(recipe)
    expected = number(recipe, sizes)
    assert expr.evaluate(sizes) == expected
    assert expr.substitute(sizes) == expected
    low, high = expr.interval()
    assert low <= expected <= high


@given(RECIPES, SIZES)
def test_partial_substitution(recipe, sizes):
    expr = expression(recipe)
    expected = number(recipe, sizes)
    first = {name: sizes[name] for name in ("m", "n")}
    assert expr.substitute(first).evaluate(sizes) == expected


@given(RECIPES, RECIPES, RECIPES)
def test_commuted_is_equal(x, y, z):
    a, b, c = map(expression, (x, y, z))
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert smallest(a, b) == smallest(b, a)
    assert largest(a, b) == largest(b, a)
    assert hash(a + b) == hash(b + a)


@given(RECIPES, RECIPES)
def test_exact_quotient_undoes_products(x, y):
    a, b = expression(x), expression(y)
    assume(b != 0)
    assert exact_quotient(a * b, b) == a


@settings(max_examples=40, deadline=None)
@given(RECIPES, SIZES)
def test_agrees_with_sympy(recipe, sizes):
    sympy = pytest.importorskip("sympy")
    expr = expression(recipe)
    expected = number(recipe, sizes)
    other = to_sympy(expr)
    values = {s: sizes[s.name] for s in other.free_symbols}
    assert other.subs(values) == expected
    assert from_sympy(other, SYMBOLS).evaluate(sizes) == expected
    assert isinstance(to_sympy(n // 2), sympy.floor)


def test_sympy_normal_forms_come_back():
    for text in ["(h - 1)/2 + 1", "4*(n/2)*(n/2)", "min(m, n) + max(m, 3)", "n*n*m - 2", "n%3"]:
        expr = parse(text, SYMBOLS)
        assert from_sympy(to_sympy(expr), SYMBOLS) == expr
    with pytest.raises(Error, match="no whole-number expression"):
        from_sympy(to_sympy(n) / 2)


JAX = [
    ("n", "n"),
    ("2*n + 1", "2*n + 1"),
    ("n/2", "floordiv(n, 2)"),
    ("n%2", "mod(n, 2)"),
    ("6*m*n - m - 3", "-m + 6*m*n - 3"),
    ("max(k, m, n)", "max(max(k, m), n)"),
    ("1 - (h - 1)/2*n", "-n*floordiv(h - 1, 2) + 1"),
]


@pytest.mark.parametrize(("text", "spelt"), JAX)
def test_jax_text(text, spelt):
    export = pytest.importorskip("jax.export")
    expr = parse(text)
    assert expr.to_jax_text() == spelt
    (size,) = export.symbolic_shape(spelt)
    sizes = {"h": 7, "k": 2, "m": 3, "n": 5}
    assert int(size._evaluate(sizes)) == expr.evaluate(sizes)
