"""How far a command is, on its standard error: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol


class Advance(Protocol):
    """Moves the bar."""

    def __call__(self, text: str = "", *, by: float = 1, to: float | None = None) -> None:
        """Move by steps, or to a place; `text` says at what the command is, "" as before."""


@contextlib.contextmanager
def progress(total: float, *, shown: bool | None = None, width: int | None = None) -> Iterator[Advance]:
    """Show a bar within the block; yield the function that moves it.

    Parameters
    ----------
    total : steps; where they are whole numbers their count is shown, else the part of them.
    shown : whether there is a bar; None: when standard error is a terminal.
    width : columns of a terminal that Python does not see; None: it is asked.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda text="", *, by=1, to=None: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True) if width is None else Console(stderr=True, force_terminal=True, width=width)
    done = "{task.completed:,}/{task.total:,}" if isinstance(total, int) else "{task.percentage:>3.0f} %"
    columns = (TextColumn(done), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
               TextColumn("{task.description}", markup=False))  # fmt: skip
    # the time that is left is guessed from all steps so far, for they differ in speed
    with Progress(*columns, console=console, transient=True, speed_estimate_period=3600) as bar:
        task: TaskID = bar.add_task("", total=total)

        def advance(text: str = "", *, by: float = 1, to: float | None = None) -> None:
            bar.update(task, description=text or None, advance=by if to is None else None, completed=to)

        yield advance
