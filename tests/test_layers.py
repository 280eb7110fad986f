"""Who may import whom: the table of the layout, checked on every import statement."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(p for top in ("migraphx", "translate") for p in (ROOT / top).rglob("*.py"))


def imports(path):
    """(top-level package or dotted name, inside a function?) of every import in a file."""
    tree = ast.parse(path.read_text())
    functions = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(node)
    }
    package = list(path.relative_to(ROOT).with_suffix("").parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node in functions
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, *(node.module or "").split(".")]).strip("."), node in functions


def forbidden(path, name):
    """Why a file may not import a module, or None."""
    place = path.relative_to(ROOT).as_posix()
    top = name.split(".")[0]
    if place.startswith("migraphx/"):
        if top == "translate" and place != "migraphx/target.py":
            return "only migraphx/target.py reaches into translate"
        if top in ("onnx", "onnxruntime", "tensorflow") and "driver" not in place:
            return "the representation knows no file format's library"
    if place.startswith("translate/from_"):
        own = ".".join(place.split("/")[:2])
        if top == "jax":
            return "front ends know no JAX"
        # What ONNX and TensorFlow say alike is written once: one file reaches over for it.
        shared = place == "translate/from_tensorflow/shared.py"
        if top == "translate" and not name.startswith(own) and not shared:
            return "front ends know neither the back end nor each other"
    if place.startswith("translate/to_jax/") and name.startswith("translate.from_"):
        return "the back end knows no front end"
    return None


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_follow_the_layers(path):
    faults = [f"{name}: {why}" for name, _ in imports(path) if (why := forbidden(path, name))]
    assert not faults


def test_nothing_of_jax_at_module_level():
    outside = {("jax", p.name) for p in SOURCES if p.is_relative_to(ROOT / "migraphx")
               for name, inside in imports(p) if name.split(".")[0] == "jax" and not inside}  # fmt: skip
    assert outside == set()


def fresh(code):
    """What a new interpreter prints for `code`."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_importing_loads_no_jax_and_little_else():
    heavy = fresh(
        "import sys, migraphx;"
        "print([m for m in ('jax', 'sympy', 'onnx', 'rich') if m in sys.modules])"
    )
    assert heavy == "[]"


def test_importing_changes_nothing_of_the_process():
    code = (
        "import os, sys, logging, warnings\n"
        "import numpy, jax\n"
        "def state():\n"
        "    return (dict(os.environ), jax.config.values.copy(), logging.root.level,\n"
        "            logging.root.handlers[:], numpy.geterr(), list(warnings.filters))\n"
        "before = state()\n"
        "import migraphx\n"
        "p = migraphx.program(); m = p.get_main_module()\n"
        "x = m.add_parameter('x', migraphx.shape(type='double', lens=[2]))\n"
        "m.add_return([m.add_instruction(migraphx.op('add'), [x, x])])\n"
        "p.compile(migraphx.get_target('ref'))\n"
        "p.run({'x': numpy.ones(2)})\n"
        "print(before == state(), jax.numpy.arange(3).dtype)"
    )
    assert fresh(code) == "True int32"
