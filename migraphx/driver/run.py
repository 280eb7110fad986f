"""``migraphx-driver run``: compile, run on inputs, and say what came out and how long it took."""

from __future__ import annotations

from .compiling import Times, prepare
from .console import progress, table
from .options import UsageError
from .results import check_results_file, describe, kind, save_results
from .timing import explaining, timed_runs

OWN_INPUTS = ("file", "test", "input_dim", "fill0", "fill1", "load_arg", "output")


def run(options) -> None:
    """The command: the demo, or a model on inputs."""
    if options.demo:
        from .demo import demo

        if any(getattr(options, name) for name in OWN_INPUTS):
            raise UsageError("run --demo brings its own model and inputs; leave out FILE and these")
        demo(options)
        return
    check_results_file(options.output)
    ready = prepare(options)
    with progress("running"), explaining(ready, options):
        results = timed_runs(ready.program, ready.inputs, options.iterations, ready.times.runs)
    shapes = ready.program.get_parameter_shapes().items()
    rows = [("input", f"{name}: {shape}", "") for name, shape in shapes]
    rows += [("output", f"{k}: {kind(r)}", describe(r)) for k, r in enumerate(results)]
    table(options.file or "test", ("", "", ""), rows)
    ready.times.print()
    if options.output:
        save_results(results, options.output)


__all__ = ["Times", "run"]
