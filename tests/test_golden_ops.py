"""Single-operator programs recorded from MIGraphX: output shapes, errors, printed lines, values.

`pytest tests/test_golden_ops.py -k pooling` runs the records of one operator. A record whose
recorded outcome is not followed stands in `data/golden_exceptions.txt` with the reason; a listed
record that agrees after all is a failure.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import migraphx
from migraphx.types import FLOATS, dtype_of

DATA = Path(__file__).parent / "data"
TOLERANCE = {"half_type": 2e-3, "bf16_type": 1e-2, "double_type": 1e-9}


def parse_shape(text: str) -> migraphx.shape:
    """The shape that prints as `text`: static with strides, or dynamic."""
    found = re.fullmatch(r"(dynamic, )?(\w+), \{([^}]*)\}(?:, \{([^}]*)\})?", text)
    dynamic, kind, dims, strides = found.groups()
    sizes = [part.strip() for part in dims.split(",")]
    if dynamic:
        pairs = [[int(n) for n in re.findall(r"\d+", size)] for size in sizes]
        return migraphx.shape(
            kind, dyn_dims=[migraphx.shape.dynamic_dimension(p[0], p[-1]) for p in pairs]
        )
    return migraphx.shape(kind, [int(s) for s in sizes], [int(s) for s in strides.split(",")])


def key_of(record: dict) -> str:
    """A readable, unique name: operator, attributes, shapes."""
    parts = [record["op"]]
    for name, value in record["attrs"].items():
        listed = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        parts.append(f"{name}={listed}")
    for text in record["inputs"]:
        kind, dims, *strides = (
            re.sub("dynamic, ", "", text).split("_type")[0],
            *re.findall(r"\{([^}]*)\}", text),
        )
        name = f"{kind}_{re.sub('[][]', '', dims).replace(', ', 'x')}"
        if strides and repr(migraphx.shape(kind, parse_shape(text).lens())) != text:
            name += f"_s{strides[0].replace(', ', 'x')}"
        parts.append(name)
    return "-".join(parts)


RECORDS = {key_of(r): r for r in json.loads((DATA / "golden" / "ops.json").read_text())}


def exceptions() -> dict:
    """Record key to the reason why its recorded outcome is not followed."""
    lines = (DATA / "golden_exceptions.txt").read_text().splitlines()
    rows = [line.partition("  # ") for line in lines if line.strip() and line[0] != "#"]
    return {key.strip(): reason.strip() for key, _, reason in rows}


EXCEPTIONS = exceptions()


def build(record: dict):
    """The program of a record and its one instruction."""
    program = migraphx.program()
    main = program.get_main_module()
    inputs = [
        main.add_parameter(f"x{k}", parse_shape(text)) for k, text in enumerate(record["inputs"])
    ]
    ins = main.add_instruction(migraphx.op(record["op"], **record["attrs"]), inputs)
    return program, ins


def array_of(shape: migraphx.shape, values: list) -> np.ndarray:
    """The values, which stand in logical order, as an array of the shape's type."""
    return np.array(values).astype(dtype_of(shape.type())).reshape(shape.lens())


def check_record(record: dict) -> None:
    """Shape text, error, values of one record."""
    if "crash" in record:  # the real module died; ours gives a result or refuses
        check_no_crash(record)
        return
    if "shape" not in record:
        with pytest.raises(migraphx.Error):
            build(record)
        return
    program, ins = build(record)
    assert repr(ins.shape()) == record["shape"]
    if "in_values" not in record:
        return
    shapes = program.get_parameter_shapes()
    if "out_values" not in record and "run_shapes" not in record:  # it failed while running
        with pytest.raises(migraphx.Error):
            program.run({n: array_of(shapes[n], v) for n, v in record["in_values"].items()})
        return
    results = program.run({n: array_of(shapes[n], v) for n, v in record["in_values"].items()})
    assert [repr(r.get_shape()) for r in results] == record["run_shapes"]
    for result, wanted in zip(results, record.get("out_values", ())):
        check_values(result, wanted)


def check_no_crash(record: dict) -> None:
    try:
        program, ins = build(record)
    except migraphx.Error:
        return
    inputs = {
        name: migraphx.generate_argument(shape)
        for name, shape in program.get_parameter_shapes().items()
    }
    assert program.run(inputs)[0].get_shape() == ins.shape()


def check_values(result, wanted: list) -> None:
    shape = result.get_shape()
    got = np.array(result.tolist(), dtype=object)
    assert len(got) == len(wanted)
    if shape.type() not in FLOATS:
        assert got.tolist() == wanted
        return
    tolerance = TOLERANCE.get(shape.type_string(), 1e-5 if shape.type_size() > 1 else 0.07)
    np.testing.assert_allclose(
        got.astype(float), np.array(wanted, dtype=float), rtol=tolerance, atol=tolerance / 10
    )


@pytest.mark.parametrize("key", RECORDS)
def test_golden(key):
    if key not in EXCEPTIONS:
        check_record(RECORDS[key])
        return
    try:
        check_record(RECORDS[key])
    except (AssertionError, migraphx.Error, pytest.fail.Exception):
        return
    pytest.fail(f"{key} agrees with the record; remove it from golden_exceptions.txt")


def test_exceptions_are_records_and_have_reasons():
    assert not set(EXCEPTIONS) - set(RECORDS)
    assert all(EXCEPTIONS.values())
