"""``migraphx-driver run --demo``: a small trained network reads handwritten digits."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from .. import api
from .compiling import Times, choose_target, compile_program, place
from .timing import timed_runs

DATA = Path(__file__).parents[1] / "data"
SHADES = " .:-=+*#%@"
ACROSS = 4  # pictures side by side
WIDTH = 18


def demo(options) -> None:
    """Runs the digits network on all held-back images; prints answers, accuracy and times."""
    with np.load(DATA / "digits.npz") as file:
        images, labels = file["images"].astype(np.float32), file["labels"]
    times = Times()
    begin = time.perf_counter()
    target = choose_target(options)
    times.place = place(target)
    times.start = time.perf_counter() - begin
    print(times.place)
    batch = options.batch or len(images)
    begin = time.perf_counter()
    program = api.parse_onnx(DATA / "digits.onnx", default_dim_value=batch)
    times.parse = time.perf_counter() - begin
    compile_program(program, target, options, times)
    parts = []
    for part in batches(images, batch):
        (result,) = timed_runs(program, {"image": part}, options.iterations, times.runs)
        parts.append(result.numpy())
    probabilities = np.concatenate(parts)[: len(images)]
    report(images, labels, probabilities)
    times.print(f", {batch} images a run")


def batches(images, size: int) -> list:
    """The images in pieces of `size`, the last filled up with blank ones."""
    blank = -len(images) % size
    filled = np.pad(images, ((0, blank), (0, 0), (0, 0), (0, 0)))
    return np.split(filled, len(filled) // size)


def report(images, labels, probabilities) -> None:
    """Prints some answers, right and wrong ones, and the accuracy."""
    right = probabilities.argmax(1) == labels
    print(f"\nthe first {ACROSS} of {len(labels)} images that the network was not trained on\n")
    _row(range(ACROSS), images, labels, probabilities)
    wrong = np.flatnonzero(~right)[:ACROSS]
    if len(wrong):
        print(f"\n{len(wrong)} of the {np.count_nonzero(~right)} that it gets wrong\n")
        _row(wrong, images, labels, probabilities)
    print(f"\naccuracy {right.sum()} of {len(labels)} = {right.mean():.1%}\n")


def _row(chosen, images, labels, probabilities) -> None:
    cards = [card(images[i, 0], labels[i], probabilities[i]) for i in chosen]
    for lines in zip(*cards, strict=True):
        print("".join(line.ljust(WIDTH) for line in lines).rstrip())


def card(image, label: int, probabilities) -> list:
    """A picture of a digit with its label and the two likeliest answers, as lines of text."""
    shades = (image / 16 * (len(SHADES) - 1)).round().astype(int)
    lines = ["".join(SHADES[s] * 2 for s in row) for row in shades]
    best = np.argsort(probabilities)[::-1][:2]
    lines += [f"{answer} {probabilities[answer]:7.2%}" for answer in best]
    return [*lines, f"label {label}"]
