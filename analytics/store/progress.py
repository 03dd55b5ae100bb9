"""Progress on the standard error stream: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

__all__ = ["progress"]


@contextlib.contextmanager
def progress(logs: int, quiet: bool | None) -> Iterator[Callable[[int], None]]:
    """Show how many of `logs` logs are done; the value is called with how many more are."""
    if quiet or (quiet is None and not sys.stderr.isatty()):
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("converting logs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=logs)
        yield lambda count: bar.advance(task, count)
