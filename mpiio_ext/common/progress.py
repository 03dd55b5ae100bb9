"""How far a command is, on its standard error: a bar on a terminal; elsewhere nothing, or now and then a line."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Iterator
from typing import Protocol

from mpiio_ext.common.printing import echo, make_console

#: A line so often where there is no bar, s.
LINES_S = 30.0


class Advance(Protocol):
    """Moves the bar."""

    def __call__(
        self,
        text: str = "",
        *,
        by: float = 1,
        to: float | None = None,
        of: float | None = None,
        left_s: float | None = None,
    ) -> None:
        """Move by steps, or to a place.

        Parameters
        ----------
        text : at what the command is; "": as before.
        by, to : steps.
        of : there are so many; None: as before.
        left_s : so long it will take, s; None: as long as the steps that are left, at the speed of all so far.
        """


class _Place:
    """How far it is, and how long it will take."""

    def __init__(self, total: float) -> None:
        self.done, self.total = 0.0, total
        self._begin_s = time.monotonic()

    def move(self, by: float, to: float | None, of: float | None) -> None:
        """Move."""
        self.done = self.done + by if to is None else to
        self.total = self.total if of is None else of

    def left_s(self, given_s: float | None) -> float | None:
        """Return the time that is left; None: unknown."""
        if given_s is not None or not self.done:
            return given_s
        return (time.monotonic() - self._begin_s) * max(self.total - self.done, 0) / self.done

    def share(self, left_s: float | None) -> float:
        """Return the part that is done: of the time, as far as it is known."""
        passed_s = time.monotonic() - self._begin_s
        return 0.0 if left_s is None or passed_s <= 0 else passed_s / (passed_s + left_s)

    def count(self, step: str, between: str) -> str:
        """Return the steps in words."""
        return f"{step} {self.done:,.0f}{between}{self.total:,.0f}".strip()


@contextlib.contextmanager
def progress(
    total: float,
    *,
    shown: bool | None = None,
    width: int | None = None,
    step: str = "",
    every_s: float = LINES_S,
    name: str = "",
    about: bool = False,
) -> Iterator[Advance]:
    """Show a bar within the block; yield the function that moves it.

    Parameters
    ----------
    total : steps; where they are whole numbers their count is shown, else the part of them.
    shown : whether there is a bar; None: when standard error is a terminal, and rich is installed.
    width : columns of a terminal that Python does not see; None: it is asked.
    step : what a step is, "row"; "": only numbers are shown.
    every_s : where there is no bar, a line is printed so often, s; 0: nothing.
    name : of the command, before each line.
    about : whether the number of steps is not known for certain.
    """
    between = " of about " if about else " of " if step else "/"
    if not (sys.stderr.isatty() and importlib.util.find_spec("rich") is not None if shown is None else shown):
        yield _Lines(total, step=step, between=between, every_s=every_s, name=name)
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """The time that is left; the bar's own estimate starts anew when the number of steps changes."""

        def render(self, task: Task) -> Text:
            """Return it as a clock has it."""
            end_s = task.fields["end_s"]
            seconds = 0 if end_s is None else round(max(0.0, end_s - time.monotonic()))
            text = "-:--:--" if end_s is None else f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            return Text(text, style="progress.remaining")

    console = make_console(stderr=True, **({} if width is None else {"force_terminal": True, "width": width}))
    place = _Place(total)
    counted = "{task.fields[count]}" if isinstance(total, int) else "{task.percentage:>3.0f} %"
    left = (Left(), TextColumn("left")) if step else (TimeElapsedColumn(), Left())
    columns = (TextColumn(counted), BarColumn(), *left, TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0, count=place.count(step, between), end_s=None)

        def advance(
            text: str = "",
            *,
            by: float = 1,
            to: float | None = None,
            of: float | None = None,
            left_s: float | None = None,
        ) -> None:
            place.move(by, to, of)
            left = place.left_s(left_s)
            bar.update(
                task,
                description=text or None,
                completed=place.share(left),
                count=place.count(step, between),
                end_s=None if left is None else time.monotonic() + left,
            )

        yield advance


class _Lines:
    """Prints a line now and then; the first one comes after one such time."""

    def __init__(self, total: float, *, step: str, between: str, every_s: float, name: str) -> None:
        self._place, self._step, self._between, self._every_s, self._name = _Place(total), step, between, every_s, name
        self._last_s = time.monotonic()

    def __call__(
        self,
        text: str = "",
        *,
        by: float = 1,
        to: float | None = None,
        of: float | None = None,
        left_s: float | None = None,
    ) -> None:
        """Count a step, and print the progress if that is due."""
        self._place.move(by, to, of)
        now_s = time.monotonic()
        left = self._place.left_s(left_s)
        if not self._every_s or now_s - self._last_s < self._every_s:
            return
        self._last_s = now_s
        line = self._place.count(self._step, self._between) + ("" if left is None else f", about {left:,.0f} s left")
        line += f": {text}" if text else ""
        echo(f"{self._name}: {line}" if self._name else line, err=True)
