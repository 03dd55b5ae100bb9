"""Whether there is a terminal at the other end: the launcher, between a rank and the terminal, gives the answer.

Open MPI gives ranks a pseudo-terminal as standard output even when mpirun writes to a file. MPICH gives them a pipe
even when mpiexec writes to a terminal. So the launcher's own descriptor is looked at where it runs on the same host.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.common.progress import Advance, progress
from mpiio_ext.launchers import launched_rank

if TYPE_CHECKING:
    from mpi4py import MPI

#: Between two lines of progress in a log, s.
LINES_S = 15.0
#: What stands before the first dot of their processes' names, as in mpirun.openmpi and mpiexec.hydra.
_LAUNCHERS = {"mpirun", "mpiexec", "orterun", "prterun"}


def launch_rank() -> int:
    """Return the rank that the launcher gave this process, without MPI; 0 when there is no launcher."""
    return launched_rank(os.environ)


def _launcher() -> int | None:
    """Return the process id of the launcher above this process on this host, or None."""
    process = os.getppid()
    while process > 1:
        try:
            text = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return None
        name = text[text.index("(") + 1 : text.rindex(")")]
        if name.partition(".")[0] in _LAUNCHERS:
            return process
        process = int(text[text.rindex(")") + 2 :].split()[1])
    return None


def launcher_errors() -> str:
    """Return the file that is the standard error of the launcher on this host, "" without one."""
    launcher = _launcher()
    return "" if launcher is None else f"/proc/{launcher}/fd/2"


def terminal_width(descriptor: int) -> int | None:
    """Return the columns of the terminal behind standard output (1) or error (2), or None without a terminal."""
    launcher = _launcher()
    try:
        if launcher is None:
            return os.get_terminal_size(descriptor).columns or None
        copy = os.open(f"/proc/{launcher}/fd/{descriptor}", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.get_terminal_size(copy).columns or None
    except OSError:
        return None
    finally:
        os.close(copy)


def progress_of_rank_0(
    comm: MPI.Intracomm, shown: bool | None, steps: int, *, about: bool = False
) -> contextlib.AbstractContextManager[Advance]:
    """Return the bar of so many rows on rank 0's terminal.

    Parameters
    ----------
    shown : whether there is a bar; None = when rank 0 has a terminal, and elsewhere a line now and then
    about : whether the number of rows is not known for certain
    """
    if comm.rank != 0:
        return progress(steps, shown=False, every_s=0.0)
    width = terminal_width(2)
    return progress(
        steps,
        shown=width is not None if shown is None else shown,
        width=width or 100,
        step="row",
        every_s=LINES_S if shown is None else 0.0,
        name="mpiio-ext bench",
        about=about,
    )


def within_budget(advance: Advance, *, once: int, most: int, budget_s: float) -> Advance:
    """Return a function that moves a bar of rows that a budget ends: the time left is the budget's.

    There are as many rows as fit into that time at the speed so far, at least those that are run in any case.

    Parameters
    ----------
    advance : moves the bar.
    once : rows that are run in any case, which may take longer; `of` gives another number, and others are behind it.
    most : rows of all repetitions.
    budget_s : 0 = no limit.
    """
    if not budget_s:
        return advance
    since_s = begin_s = time.monotonic()
    since, done, least = 0.0, 0.0, float(once)

    def moved(
        text: str = "", *, by: float = 1, to: float | None = None, of: float | None = None, left_s: float | None = None
    ) -> None:
        nonlocal since_s, since, done, least
        now_s, done = time.monotonic(), done + by if to is None else to
        if of is not None:
            since_s, since, least = now_s, done, of
        row_s = (now_s - since_s) / (done - since) if done > since else 0.0
        if left_s is None:
            left_s = max(budget_s - (now_s - begin_s), row_s * (least - done), 0.0)
        rows = max(least, min(most, round(done + left_s / row_s))) if row_s > 0 else of
        advance(text, by=by, to=to, of=rows, left_s=left_s)

    moved(by=0)
    return moved
