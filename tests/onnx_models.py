"""Checks of whole ONNX models: what `migraphx` gives against the reference or given values."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

import migraphx
from migraphx.argument import Argument
from translate.from_onnx import parse_buffer
from translate.from_onnx.backend import Prepared

ANY_SIZE = migraphx.shape.dynamic_dimension(0, 1 << 20)


def model_of(text_or_model, opset: int = 21) -> onnx.ModelProto:
    """A model from its text (``g (float[2] x) => (float[2] y) { ... }``) or itself."""
    if not isinstance(text_or_model, str):
        return text_or_model
    text = text_or_model.strip()
    if not text.startswith("<"):
        text = (
            f'<ir_version: 10, opset_import: ["" : {opset}, "ai.onnx.ml" : 5, '
            f'"com.microsoft" : 1]>\n{text}'
        )
    return onnx.parser.parse_model(text)


def prepared(text_or_model, opset: int = 21, **options) -> Prepared:
    """A compiled model; open sizes may be any."""
    model = model_of(text_or_model, opset)
    if "default_dim_value" not in options:
        options.setdefault("default_dyn_dim_value", ANY_SIZE)
    program = parse_buffer(model.SerializeToString(), **options)
    program.compile("ref")
    return Prepared(program, model.graph.output)


def check(text_or_model, *feeds, opset: int = 21, expected=None, rtol=1e-5, **options):
    """Runs a model on inputs by position and compares all results; gives the program."""
    model = model_of(text_or_model, opset)
    ready = prepared(model, opset, **options)
    got = ready.run(list(feeds))
    if expected is None:
        names = [i.name for i in model.graph.input]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = ReferenceEvaluator(model).run(None, dict(zip(names, feeds, strict=True)))
    assert len(got) == len(expected)
    for mine, wanted in zip(got, expected, strict=True):
        same(mine, wanted, rtol=rtol)
    return ready.program


def same(mine, wanted, rtol=1e-5, atol=1e-6) -> None:
    """Compares results: lists, dicts and None by structure, arrays by shape, type and value."""
    if wanted is None:
        assert mine is None
        return
    if isinstance(wanted, (list, tuple)):
        assert len(mine) == len(wanted)
        for a, b in zip(mine, wanted, strict=True):
            same(a, b, rtol, atol)
        return
    if isinstance(wanted, dict):
        assert list(mine) == list(wanted)
        same(list(mine.values()), list(wanted.values()), rtol, atol)
        return
    mine = mine.numpy() if isinstance(mine, Argument) else np.asarray(mine)
    wanted = np.asarray(wanted)
    assert mine.shape == wanted.shape
    if wanted.dtype.kind in "OUS":
        assert mine.tolist() == wanted.tolist()
        return
    assert mine.dtype == wanted.dtype
    exact = wanted.dtype.kind in "biu"
    wide = (lambda x: x) if exact or wanted.dtype.kind == "c" else (lambda x: x.astype(np.float64))
    np.testing.assert_allclose(wide(mine), wide(wanted), rtol=0 if exact else rtol,
                               atol=0 if exact else atol)  # fmt: skip


@functools.cache
def official_cases() -> dict:
    """ONNX's own test cases of single operators, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {c.name: c for c in collect_testcases(None)}


def check_official(name: str) -> None:
    """Runs one of ONNX's own cases as its runner does, with open sizes where a model has them."""
    found = official_cases()[name]
    ready = prepared(found.model)
    for inputs, outputs in found.data_sets:
        got = ready.run(inputs)
        for mine, wanted in zip(got, outputs, strict=True):
            same(mine, wanted, rtol=found.rtol, atol=found.atol)
