"""How far a command is, on its standard error: a bar on a terminal; elsewhere nothing, or now and then a line."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Protocol


class Advance(Protocol):
    """Moves the bar."""

    def __call__(self, text: str = "", *, by: float = 1, to: float | None = None, of: float | None = None) -> None:
        """Move by steps, or to a place; `text` says at what the command is, "" as before; `of`: there are so many."""


@contextlib.contextmanager
def progress(
    total: float, *, shown: bool | None = None, width: int | None = None, step: str = "", every_s: float = 0.0,
    name: str = "",
) -> Iterator[Advance]:
    """Show a bar within the block; yield the function that moves it.

    Parameters
    ----------
    total : steps; where they are whole numbers their count is shown, else the part of them.
    shown : whether there is a bar; None: when standard error is a terminal.
    width : columns of a terminal that Python does not see; None: it is asked.
    step : what a step is, "row"; "": only numbers are shown.
    every_s : where there is no bar, a line is printed so often, s; 0: nothing.
    name : of the command, before each line.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield _Lines(total, step=step, every_s=every_s, name=name)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True) if width is None else Console(stderr=True, force_terminal=True, width=width)
    between = " of " if step else "/"
    done = f"{step} {{task.completed:,}}{between}{{task.total:,}}" if isinstance(total, int) else (
        "{task.percentage:>3.0f} %")
    left = (TimeRemainingColumn(), TextColumn("left")) if step else (TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn(done.strip()), BarColumn(), *left, TextColumn("{task.description}", markup=False))
    # the time that is left is guessed from all steps so far, for they differ in speed
    with Progress(*columns, console=console, transient=True, speed_estimate_period=3600) as bar:
        task: TaskID = bar.add_task("", total=total)

        def advance(text: str = "", *, by: float = 1, to: float | None = None, of: float | None = None) -> None:
            bar.update(task, description=text or None, advance=by if to is None else None, completed=to, total=of)

        yield advance


class _Lines:
    """Prints a line now and then; the first one comes after one such time."""

    def __init__(self, total: float, *, step: str, every_s: float, name: str) -> None:
        self._total, self._step, self._every_s, self._name = total, step, every_s, name
        self._done = 0.0
        self._begin_s = self._last_s = time.monotonic()

    def __call__(self, text: str = "", *, by: float = 1, to: float | None = None, of: float | None = None) -> None:
        """Count a step, and say how far it is where that is due."""
        self._done = self._done + by if to is None else to
        self._total = self._total if of is None else of
        now_s = time.monotonic()
        if not self._every_s or now_s - self._last_s < self._every_s or not self._done:
            return
        self._last_s = now_s
        left_s = (now_s - self._begin_s) * max(self._total - self._done, 0) / self._done
        words = [f"{self._step} {self._done:,.0f} of {self._total:,.0f}".strip(), f"about {left_s:,.0f} s left"]
        line = f"{', '.join(words)}{f': {text}' if text else ''}"
        print(f"{self._name}: {line}" if self._name else line, file=sys.stderr, flush=True)
