"""Stages in the cache on disk: their names, and how they are written and read."""

from __future__ import annotations

from . import cache
from .stage import Stage, aval, signature


def entry_name(executable, module, position, inputs, env, known, objects, ctx) -> str | None:
    """The name of a stage in the cache on disk; None if it has none."""
    if executable.digest is None:
        executable.digest = cache.program_digest(executable.main)
        executable.numbered = {number: ins for ins, number in executable.digest[1].items()}
    digest, numbers = executable.digest
    values = [(numbers.get(i, -1), cache.packed(v)) for i, v in known.items()]
    outside = any(i not in numbers for i in (*inputs, *known, *objects))
    if digest is None or outside or any(v is None for _, v in values):
        return None
    options = {k: v for k, v in executable.options.items() if k != "offload_copy"}
    parts = (
        digest, cache.environment(executable.device), sorted(options.items()),
        module.name(), position, values,
        [(numbers[i], signature({i: aval(env[i])})) for i in inputs],
        sorted(numbers[i] for i in objects), sorted(ctx.symbols.items()), ctx.tuned,
    )  # fmt: skip
    return cache.entry_key(parts)


def from_disk(executable, name: str | None, env: dict) -> Stage | None:
    """The stage of that name, ready to run; None if there is none that fits."""
    entry = cache.read(name) if name is not None else None
    if entry is None:
        return None
    at = executable.numbered
    try:
        weights, inputs, outputs = ([at[k] for k in entry[f]] for f in ("w", "i", "o"))
        known = {at[k]: cache.unpacked(v) for k, v in entry["known"]}
        needs = None if entry["needs"] is None else at[entry["needs"]]
        stage = Stage(weights, inputs, outputs, entry["stop"], needs, known, entry["last"])
        stage.whole = entry["whole"]
        if type(stage.stop) is not int or {type(stage.last), type(stage.whole)} != {bool}:
            raise TypeError("damaged")
        if entry["compiled"] is not None:
            avals = [aval(executable.weights[i]) for i in weights] + [aval(env[i]) for i in inputs]
            stage.compiled = cache.loaded(entry["compiled"], executable.device, avals)
    except (KeyError, TypeError, ValueError, IndexError):
        stage = None
    if stage is None or (outputs and stage.compiled is None):
        cache.forget(name)
        return None
    return stage


def to_disk(executable, name: str | None, stage: Stage) -> None:
    """Stores a stage under a name, if all of it can be written as data."""
    if name is None or cache.directory() is None:
        return
    numbers = executable.digest[1]
    known = [(numbers.get(i), cache.packed(v)) for i, v in stage.known.items()]
    compiled = None if stage.compiled is None else cache.serialized(stage.compiled)
    everything = (*stage.weight_ins, *stage.inputs, *stage.outputs)
    if (
        any(k is None or v is None for k, v in known)
        or (stage.compiled is not None and compiled is None)
        or any(i not in numbers for i in everything)
    ):
        return
    lists = {
        letter: [numbers[i] for i in part]
        for letter, part in (
            ("w", stage.weight_ins), ("i", stage.inputs), ("o", stage.outputs)
        )
    }  # fmt: skip
    needs = None if stage.needs is None else numbers.get(stage.needs)
    if stage.needs is not None and needs is None:
        return
    cache.write(name, {**lists, "known": known, "needs": needs, "stop": stage.stop,
                      "last": stage.last, "whole": stage.whole, "compiled": compiled})  # fmt: skip
