"""``migraphx-driver perf``: how fast a compiled model is, and where its time goes."""

from __future__ import annotations

import json
import time

import numpy as np

from ..errors import Error
from ..files import replace_file
from . import model, plot
from .compiling import Ready, prepare
from .console import amount, log, milliseconds, progress, table
from .operators import by_operator, measure
from .options import UsageError
from .rival import OnnxRuntime, largest_difference
from .timing import explaining, run_once
from .xla import memory, work

PERCENTILES = (50, 90, 95, 99)
TABLE = ("", ">", "")
OURS, THEIRS = "migraphx", "onnxruntime"


def perf(options) -> None:
    """The command."""
    plot.check(options.plot)
    rival_file = _rival_file(options)
    ready = prepare(options)
    rival = None
    if rival_file:
        with progress("starting onnxruntime"):
            rival = OnnxRuntime(rival_file, ready.inputs, ready.target.name())
    report = measured(ready, rival, options)
    if options.plot:
        plot.draw(report, options.plot)
    if options.output:
        data = json.dumps(report, indent=2) + "\n"
        replace_file(options.output, [data.encode()], "perf")
    if options.json and not options.output:
        print(json.dumps(report, indent=2))
    elif not options.json:
        show(report, options.detailed)


def _rival_file(options) -> str | None:
    if not options.compare:
        return None
    if options.test or not options.file:
        raise UsageError("--compare: it needs an ONNX file")
    if (options.kind or model.kind_of(options.file)) != "onnx":
        raise UsageError(f"--compare: onnxruntime reads ONNX files, which {options.file} is not")
    if options.trim_end is not None or options.trim_size is not None:
        raise UsageError("--compare: onnxruntime would run the whole model, not the trimmed one")
    return options.file


# -- measuring -------------------------------------------------------------------------------------


def measured(ready: Ready, rival: OnnxRuntime | None, options) -> dict:
    """Everything that is reported, as a tree for JSON."""
    begin = time.perf_counter()
    with explaining(ready, options):
        results = run_once(ready.program, ready.inputs)
    first = time.perf_counter() - begin
    works = {OURS: lambda: run_once(ready.program, ready.inputs)}
    if rival is not None:
        works[THEIRS] = rival.run
    seconds = in_turns(works, options.warm_up, options.iterations)
    flops, moved = work(ready.program)
    median = float(np.median(seconds[OURS]))
    report = {
        "model": options.file or "test",
        "place": ready.times.place,
        "batch": options.batch or 1,
        "iterations": options.iterations,
        "parse_ms": ready.times.parse * 1e3,
        "quantize_ms": ready.times.quantize * 1e3,
        "compile_ms": ready.times.compile * 1e3,
        "first_run_ms": first * 1e3,
        "run_ms": statistics(seconds[OURS]),
        "rate_per_second": (options.batch or 1) / median,
        "flops": flops,
        "bytes_moved": moved,
        "memory_bytes": memory(ready.program),
        "runs_ms": {name: [t * 1e3 for t in values] for name, values in seconds.items()},
    }
    if rival is not None:
        report["compare"] = {
            "name": f"{THEIRS} {rival.version} ({rival.provider})",
            "run_ms": statistics(seconds[THEIRS]),
            "ratio": median / float(np.median(seconds[THEIRS])),
            "largest_difference": largest_difference(results, rival.run()),
        }
    if not options.no_operators:
        report |= operators(ready, options)
    return report


def in_turns(works: dict, warm_up: int, count: int) -> dict:
    """Seconds of `count` runs of each, in turns, so that a busy moment meets all of them."""
    for run in works.values():
        for _ in range(warm_up):
            run()
    seconds = {name: [] for name in works}
    with progress("running") as shown:
        for number in range(count):
            shown.update(f"running: {number + 1} of {count}")
            for name, run in works.items():
                begin = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - begin)
    return seconds


def statistics(seconds: list) -> dict:
    """Minimum, mean, percentiles and maximum in milliseconds."""
    values = np.array(seconds) * 1e3
    found = {"min": float(values.min()), "mean": float(values.mean())}
    found |= {f"p{p}": float(np.percentile(values, p)) for p in PERCENTILES}
    return found | {"max": float(values.max())}


def operators(ready: Ready, options) -> dict:
    """The costs of operators, and with ``--detailed`` of instructions, for the report."""
    try:
        with progress("measuring operators") as shown:
            costs = measure(
                ready.program, ready.target, ready.inputs, ready.program._options, shown
            )
    except Exception as bad:  # the rest of the report stands without them
        if options.debug:
            raise
        why = str(bad) if isinstance(bad, Error) else f"{type(bad).__name__}: {bad}"
        log.warn(f"operators are not measured alone: {' '.join(why.split())}; --debug shows where")
        return {}
    total = sum(c.seconds for c in costs) or 1.0
    found = {
        "operators": [
            {"operator": name, "count": count, "ms": t * 1e3, "share": t / total, "flops": flops,
             "bytes_moved": moved}
            for name, count, t, flops, moved in by_operator(costs)
        ]
    }  # fmt: skip
    if options.detailed:
        found["instructions"] = [
            {"name": c.name, "operator": c.operator, "text": c.text, "shape": c.shape,
             "ms": c.seconds * 1e3, "share": c.seconds / total, "flops": c.flops,
             "bytes_moved": c.moved}
            for c in costs
        ]  # fmt: skip
    return found


# -- showing ---------------------------------------------------------------------------------------


def show(report: dict, detailed: bool) -> None:
    """Prints the report as tables."""
    table(f"{report['model']} on {report['place']}", TABLE, _stage_rows(report))
    _show_runs(report)
    table("memory", TABLE, _memory_rows(report["memory_bytes"]))
    if "operators" in report:
        title = "operators, each alone (XLA fuses many of them, so a run takes less than the sum)"
        table(title, (*COST_HEADINGS[:1], ">count", *COST_HEADINGS[1:]), [
            (o["operator"], str(o["count"]), *_cost(o)) for o in report["operators"]
        ])  # fmt: skip
    if detailed and "instructions" in report:
        table("instructions, each alone", ("", *COST_HEADINGS, "shape"), [
            (i["name"], i["operator"], *_cost(i), i["shape"]) for i in report["instructions"]
        ])  # fmt: skip


COST_HEADINGS = ("operator", ">time", ">share", ">work", ">speed", ">moved")


def _cost(tree: dict) -> tuple:
    seconds = tree["ms"] / 1e3
    speed = amount(tree["flops"] / seconds, "FLOP/s") if seconds and tree["flops"] else ""
    return (
        milliseconds(seconds),
        f"{tree['share']:.1%}",
        amount(tree["flops"], "FLOP") if tree["flops"] else "",
        speed,
        amount(tree["bytes_moved"], "B"),
    )


def _stage_rows(report: dict) -> list:
    rows = [("parse", report["parse_ms"]), ("quantise", report["quantize_ms"]),
            ("compile", report["compile_ms"]), ("first run", report["first_run_ms"])]  # fmt: skip
    found = [(name, milliseconds(ms / 1e3), "") for name, ms in rows if ms]
    batch = f"batch {report['batch']}" if report["batch"] > 1 else ""
    found.append(("rate", f"{report['rate_per_second']:.4g} /s", batch))
    if report["flops"]:
        speed = report["flops"] / report["run_ms"]["p50"] * 1e3
        found.append(("work", amount(report["flops"], "FLOP"), f"({amount(speed, 'FLOP/s')})"))
    return found


def _show_runs(report: dict) -> None:
    ours = report["run_ms"]
    title = f"{report['iterations']} runs"
    other = report.get("compare")
    if other is None:
        rows = [(LABELS.get(k, k), milliseconds(v / 1e3), "") for k, v in ours.items()]
        table(title, TABLE, rows)
        return
    rows = [
        (LABELS.get(k, k), milliseconds(v / 1e3), milliseconds(theirs / 1e3), f"{v / theirs:.2f}")
        for (k, v), theirs in zip(ours.items(), other["run_ms"].values())
    ]
    table(f"{title}, in turns with {other['name']}",
          ("", f">{OURS}", f">{THEIRS}", ">ratio"), rows)  # fmt: skip
    if other["largest_difference"] is not None:
        print(f"largest difference of results {other['largest_difference']:.3g}")


LABELS = {"min": "minimum", "mean": "mean", "p50": "median", "max": "maximum"} | {
    f"p{p}": f"{p} %" for p in PERCENTILES[1:]
}


def _memory_rows(sizes: dict) -> list:
    labels = {
        "argument": ("inputs and weights", ""),
        "output": ("outputs", ""),
        "temp": ("temporary", ""),
        "peak": ("sum", ""),
        "process_peak": ("process", "(most it has held, with Python and JAX)"),
    }
    return [(label, amount(sizes[k], "B"), note) for k, (label, note) in labels.items()
            if k in sizes]  # fmt: skip
