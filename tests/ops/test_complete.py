"""Every operator can be computed and has a row in a family file."""

import importlib.util
import json
from pathlib import Path

from migraphx.ops import OPS
from translate.to_jax.registry import LOWER

# Nothing to compute: the walk over the graph gives the value, or the operator exists only so that
# files which hold it can be loaded and printed.
NOTHING_TO_COMPUTE = {
    "@param", "@literal", "@return", "@outline", "@comment", "outline",
    "load", "capture", "allocate", "run_on_target", "unknown:", "ref::op",
}  # fmt: skip


def rows() -> set:
    """Names with a row, and those that a family file lists as `APART` with tests of their own."""
    found = set()
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path.stem == "test_complete":
            continue
        spec = importlib.util.spec_from_file_location(f"rows_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for value in vars(module).values():
            found |= getattr(value, "operators", set())
        found |= set(getattr(module, "APART", ()))
    return found


def test_every_operator_has_a_lowering():
    assert sorted(set(OPS) - set(LOWER) - NOTHING_TO_COMPUTE) == []


def recorded() -> set:
    """Names with values recorded from the real module (`test_golden_ops.py` compares them)."""
    path = Path(__file__).parents[1] / "data" / "golden" / "ops.json"
    return {record["op"] for record in json.loads(path.read_text())}


def test_every_operator_has_a_row():
    listed = (Path(__file__).parents[1] / "data" / "operators_without_rows.txt").read_text()
    without = sorted(set(OPS) - rows() - recorded() - NOTHING_TO_COMPUTE)
    # Other tests of a run register operators called test::….
    without = [n for n in without if not n.startswith("test::")]
    assert without == [n for n in listed.splitlines() if not n.startswith("#")]
