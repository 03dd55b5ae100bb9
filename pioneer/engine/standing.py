"""The place of a replay that makes no progress: each rank prints its own on standard error.

Problem.   Ranks wait for each other in collective calls and meetings, a call may wait for a file system or a pipe, and
           a path may have slack times of minutes. From outside, all of these ranks look the same.
Algorithm. A thread beside the engine reads the number of the engine's present row. A row that stays for the requested
time is
           reported, once; the next one only if it stays twice as long as the last one that was reported: lines are few,
           however long the replay.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

from mpiio_ext.common.printing import echo
from mpiio_ext.pioneer.engine.coverage import engine_name
from mpiio_ext.pioneer.engine.plan import Plan

#: Seconds without progress after which a rank reports its place.
REPORT_S = 60.0
_PARTS = ("in", "waits for all ranks to meet before", "in the slack time before")  # as in mpiio_ext_engine.h


def description(plan: Plan, standing: int) -> str:
    """Return where an engine stands, by the number that it reports."""
    row, part = divmod(standing, 4)
    if row >= plan.ids.size:
        return "waits for all ranks to meet behind its last operation"
    file = f" of {plan.paths[plan.file[row]]}" if plan.file[row] >= 0 else ""
    return (
        f"{_PARTS[part]} operation {plan.ids[row]} of the path, {engine_name(int(plan.operation[row]))}{file}; "
        f"{row:,} of {plan.ids.size:,} are behind it"
    )


def _watch(plan: Plan, rank: int, standing: Callable[[], int], report_s: float, ended: threading.Event) -> None:
    patience_s, waited_s, last = report_s, 0.0, -1
    step_s = report_s / 2
    while not ended.wait(step_s):
        now = standing()
        waited_s, last = (waited_s + step_s if now == last else 0.0), now
        if waited_s >= patience_s:
            echo(
                f"mpiio-ext: replay: rank {rank}: no progress for {waited_s:g} s: {description(plan, now)}",
                file=sys.stderr,
            )
            patience_s *= 2


@contextlib.contextmanager
def reported(plan: Plan, rank: int, standing: Callable[[], int], report_s: float) -> Iterator[None]:
    """Say where this rank stands whenever it makes no progress within the block.

    Parameters
    ----------
    standing : returns the number that the engine reports, on any thread.
    report_s : seconds without progress; 0: nothing is said.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(plan, rank, standing, report_s, ended), daemon=True)
    if report_s > 0:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if report_s > 0:
            thread.join()
