"""ONNX's own conformance suite: node, simple, real and converted PyTorch models."""

import re
import sys
import unittest
from pathlib import Path

import onnx.backend.test
import pytest

from translate.from_onnx import backend

# Bernoulli draws at random by definition: the expected outputs are those of another generator.
EXCLUDED = r"^test_bernoulli|_cuda$"  # CUDA has rows of its own, for a machine with a GPU

suite = onnx.backend.test.BackendTest(backend.Backend, __name__)


NOT_YET = Path(__file__).parents[1] / "data" / "onnx_suite_not_yet.txt"
NOT_YET = {n for n in NOT_YET.read_text().splitlines() if n and not n.startswith("#")}


def cases():
    """One row for each test of the suite that is not excluded."""
    for kind, case in sorted(suite.test_cases.items()):
        for name in sorted(dir(case)):
            if name.startswith("test_") and not re.search(EXCLUDED, name):
                marks = [pytest.mark.xfail(reason="a known fault")] if name in NOT_YET else []
                label = f"{kind.removeprefix('OnnxBackend')}-{name}"
                yield pytest.param(case, name, id=label, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "name"), list(cases()))
def test_suite(case, name):
    result = unittest.TestResult()
    case(name).run(result)
    assert not result.skipped
    for _, trace in result.failures + result.errors:
        print(trace, file=sys.stderr)
        pytest.fail(trace, pytrace=False)
    assert result.testsRun == 1
