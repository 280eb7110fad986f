"""``perf --plot``: a picture of where the time goes."""

from __future__ import annotations

import io

from ..errors import Error
from ..files import replace_file
from .options import UsageError

KINDS = (".png", ".svg", ".pdf")
SHOWN = 12  # operators with a bar of their own


def check(filename: str | None) -> None:
    """Refuses, before anything is measured, what could not be drawn."""
    if filename is None:
        return
    if not filename.endswith(KINDS):
        raise UsageError(f"--plot: a picture is written to {', '.join(KINDS)}, not {filename}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise Error("--plot: matplotlib is not installed; pip install matplotlib") from None


def draw(report: dict, filename: str) -> None:
    """Writes the picture: runs in order, and the operators by time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    operators = report.get("operators", [])
    figure = Figure(figsize=(9, 6.5 if operators else 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subplots(2 if operators else 1, squeeze=False)[:, 0]
    _runs(rows[0], report)
    if operators:
        _operators(rows[1], operators)
    figure.suptitle(f"{report['model']} on {report['place']}")
    stream = io.BytesIO()
    figure.savefig(stream, format=filename.rsplit(".", 1)[1], dpi=120)
    replace_file(filename, [stream.getbuffer()], "perf")


def _runs(axes, report: dict) -> None:
    for name, values in report["runs_ms"].items():
        axes.plot(range(1, len(values) + 1), values, ".-", label=name, linewidth=0.8, markersize=4)
    axes.set(xlabel="run", ylabel="ms", ylim=(0, None))
    axes.legend(loc="lower right")


def _operators(axes, operators: list) -> None:
    first, rest = operators[:SHOWN], operators[SHOWN:]
    names = [f"{o['operator']} ({o['count']})" for o in first]
    times = [o["ms"] for o in first]
    if rest:
        names.append(f"{len(rest)} others")
        times.append(sum(o["ms"] for o in rest))
    axes.barh(names[::-1], times[::-1])
    axes.set(xlabel="ms, each operator alone")
