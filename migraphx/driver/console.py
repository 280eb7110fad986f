"""What the driver shows: notes, progress and tables; colours on a terminal, plain text in a pipe.

`rich` draws on terminals; where it is not installed, terminals get the plain text too.
"""

from __future__ import annotations

import sys
import threading
import warnings
from contextlib import ExitStack, contextmanager, suppress

from .options import LEVELS

PATIENCE = 1.0  # seconds before progress is shown


class Log:
    """Notes and warnings, to standard error or to a file, by level."""

    def __init__(self):
        self.level, self.file = LEVELS.index("info"), None

    @contextmanager
    def writing(self, level: int, filename: str | None):
        """Sets level and file inside a `with`."""
        before = self.level, self.file
        self.level = level
        try:
            with ExitStack() as stack:
                if filename is not None:
                    self.file = stack.enter_context(open(filename, "a", encoding="utf-8"))
                stack.enter_context(warnings.catch_warnings())
                warnings.showwarning = self._python_warning
                # The commands refuse such names themselves, by the option that was given.
                warnings.filterwarnings("ignore", message="parse_onnx: .* the model has no input")
                yield
        finally:
            self.level, self.file = before

    def _python_warning(self, message, *_args, **_more) -> None:
        self.warn(str(message))

    def warn(self, text: str) -> None:
        """Something the user should know."""
        self._write("warn", f"migraphx-driver: warning: {text}")

    def note(self, text: str) -> None:
        """Something the user may want to know."""
        self._write("info", text)

    def detail(self, text: str) -> None:
        """Something for whoever asks with ``--log-level debug``."""
        self._write("debug", text)

    def _write(self, level: str, text: str) -> None:
        if LEVELS.index(level) <= self.level:
            print(text, file=self.file or sys.stderr)


log = Log()


def on_terminal(stream) -> bool:
    """True if a person looks at `stream` and rich can draw there."""
    with suppress(ValueError, AttributeError):
        if not stream.isatty():
            return False
        with suppress(ImportError):
            import rich  # noqa: F401

            return True
    return False


class Progress:
    """Says on a terminal what is being done, once it has taken a second."""

    def __init__(self, text: str):
        self.text, self.status, self.over = text, None, False
        self.lock = threading.Lock()
        self.timer = threading.Timer(PATIENCE, self.show)
        self.timer.daemon = True

    def show(self) -> None:
        """Starts the display."""
        from rich.console import Console

        with self.lock:
            if not self.over:
                self.status = Console(stderr=True).status(self.text)
                self.status.start()

    def update(self, text: str) -> None:
        """Changes the text."""
        self.text = text
        if self.status is not None:
            self.status.update(text)

    def stop(self) -> None:
        """Ends the display."""
        self.timer.cancel()
        with self.lock:
            self.over = True
            if self.status is not None:
                self.status.stop()


@contextmanager
def progress(text: str):
    """Shows `text` on a terminal while the body runs, if that takes more than a second."""
    shown = Progress(text)
    if on_terminal(sys.stderr):
        shown.timer.start()
    try:
        yield shown
    finally:
        shown.stop()


# -- tables ----------------------------------------------------------------------------------------


def table(title: str, headings: tuple, rows: list) -> None:
    """Prints rows of texts; columns whose heading starts with ``>`` stand to the right."""
    if on_terminal(sys.stdout):
        _rich_table(title, headings, rows)
    else:
        print(plain_table(title, headings, rows))


def plain_table(title: str, headings: tuple, rows: list) -> str:
    """The table as aligned text."""
    right = [h.startswith(">") for h in headings]
    lines = [tuple(h.removeprefix(">") for h in headings), *rows]
    if not any(lines[0]):
        lines = lines[1:]
    widths = [max((len(line[k]) for line in lines), default=0) for k in range(len(headings))]
    made = [
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right))
        for line in lines
    ]
    return "\n".join([title, *(f"  {line}".rstrip() for line in made)])


def _rich_table(title: str, headings: tuple, rows: list) -> None:
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    shown = any(h.strip(">") for h in headings)
    drawn = Table(box=box.SIMPLE_HEAD if shown else None, header_style="bold cyan",
                  show_header=shown, show_edge=False, pad_edge=False,
                  padding=(0, 1, 0, 0))  # fmt: skip
    for heading in headings:
        right = heading.startswith(">")
        drawn.add_column(
            heading.removeprefix(">"),
            justify="right" if right else "left",
            style="green" if right else None,
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*map(Text, row))
    console = Console()
    console.print(Text(title, style="bold"))
    console.print(Padding(drawn, (0, 0, 1, 2), expand=False))


# -- numbers ---------------------------------------------------------------------------------------


def milliseconds(seconds: float) -> str:
    """A time with three significant digits at least."""
    value = seconds * 1e3
    return f"{value:.4f} ms" if value < 1 else f"{value:.2f} ms"


def amount(value: float, unit: str) -> str:
    """A number with a prefix: ``3.2 GB``."""
    for prefix in ("", "k", "M", "G"):
        if abs(value) < 1000:
            return f"{value:.3g} {prefix}{unit}"
        value /= 1000
    return f"{value:.4g} T{unit}"
