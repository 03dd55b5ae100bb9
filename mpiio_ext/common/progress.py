"""The progress of a command, on its standard error: a bar on a terminal; elsewhere no line, or now and then one."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
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
    """Progress of a task; `show` gets the text and the remaining seconds, None if unknown."""

    def __init__(
        self, total: float, between: str, step: str, show: Callable[[_Place, str, float | None], None]
    ) -> None:
        self.done, self.total, self._between, self._step, self._show = 0.0, total, between, step, show
        self._begin_s = time.monotonic()

    def __call__(
        self,
        text: str = "",
        *,
        by: float = 1,
        to: float | None = None,
        of: float | None = None,
        left_s: float | None = None,
    ) -> None:
        """Move, and show it."""
        self.done = self.done + by if to is None else to
        self.total = self.total if of is None else of
        if left_s is None and self.done:
            left_s = (time.monotonic() - self._begin_s) * max(self.total - self.done, 0) / self.done
        self._show(self, text, left_s)

    def share(self, left_s: float | None) -> float:
        """Return the part of the work that is done, as a share of the time; 0 if the remaining time is unknown."""
        passed_s = time.monotonic() - self._begin_s
        return 0.0 if left_s is None or passed_s <= 0 else passed_s / (passed_s + left_s)

    def count(self) -> str:
        """Return the steps in words."""
        return f"{self._step} {self.done:,.0f}{self._between}{self.total:,.0f}".strip()


def _lines(every_s: float, name: str) -> Callable[[_Place, str, float | None], None]:
    """Return the function that prints a line now and then; the first one comes after one such time."""
    last_s = time.monotonic()

    def show(place: _Place, text: str, left_s: float | None) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if not every_s or now_s - last_s < every_s:
            return
        last_s = now_s
        line = place.count() + ("" if left_s is None else f", about {left_s:,.0f} s left")
        line += f": {text}" if text else ""
        echo(f"{name}: {line}" if name else line, err=True)

    return show


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
        yield _Place(total, between, step, _lines(every_s, name))
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
    counted = "{task.fields[count]}" if isinstance(total, int) else "{task.percentage:>3.0f} %"
    left = (Left(), TextColumn("left")) if step else (TimeElapsedColumn(), Left())
    columns = (TextColumn(counted), BarColumn(), *left, TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as bar:

        def show(place: _Place, text: str, left_s: float | None) -> None:
            bar.update(
                task,
                description=text or None,
                completed=place.share(left_s),
                count=place.count(),
                end_s=None if left_s is None else time.monotonic() + left_s,
            )

        place = _Place(total, between, step, show)
        task = bar.add_task("", total=1.0, count=place.count(), end_s=None)
        yield place
