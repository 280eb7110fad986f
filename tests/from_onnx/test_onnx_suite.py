"""ONNX's own conformance suite: node, simple, real and converted PyTorch models."""

import re
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx.backend.test
import pytest
from onnx.backend.test.loader import load_model_tests

from translate.from_onnx import backend

# Bernoulli draws at random by definition: the expected outputs are those of another generator.
# The suite's runner takes the length of each element of a sequence, which a scalar has not: that
# case is compared by `test_sequence_with_scalar`. CUDA has rows of its own, for a machine with one.
EXCLUDED = r"^test_bernoulli|^test_loop16_seq_none_cpu|_cuda$"

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


def test_sequence_with_scalar():
    (case,) = (c for c in load_model_tests(kind="node") if c.name == "test_loop16_seq_none")
    prepared = backend.Backend.prepare(case.model)
    for inputs, (expected,) in case.data_sets:
        (got,) = prepared.run(inputs)
        assert [x.shape for x in got] == [x.shape for x in expected]
        assert all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))
