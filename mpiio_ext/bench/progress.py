"""A bar on rank 0's terminal while something is measured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mpiio_ext.bench.terminal import terminal_width

__all__ = ["progress"]


@contextlib.contextmanager
def progress(comm: Any, shown: bool | None, steps: int) -> Iterator[Callable[[str], None]]:
    """Yield the function that is called with a text after each of `steps` steps.

    Parameters
    ----------
    shown : whether there is a bar; None = when rank 0 has a terminal
    """
    width = terminal_width(2) if comm.rank == 0 else None
    if comm.rank != 0 or not (shown if shown is not None else width is not None):
        yield lambda _: None
        return
    console = Console(stderr=True, force_terminal=True, width=width or 100)
    columns = (TextColumn("{task.completed}/{task.total}"), BarColumn(), TimeElapsedColumn(),
               TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=steps)
        yield lambda text: bar.update(task, advance=1, description=text)
