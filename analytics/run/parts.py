"""Where the time of a rank went: the program, this library, the MPI library, other ranks, other nodes, the file system.

Problem. "Is it me, the library or the file system?" The time in MPI-IO calls alone does not answer this.

Algorithm. The recordings have calls on files, which are the file system's time, and the library's events: waits for
other ranks and messages between nodes. The rest of each MPI-IO call is this library's (planning, copying, packing)
where it carried the call out, else the MPI library's. What is in none of these is the program's own time.

Guarantees. Parts do not overlap, and add up to the run time, unless threads of a rank are in calls at the same time.
A rank alone does not wait. Calls of the MPI library are not divided further.

Whether the machine had room for a run: how long its ranks waited for a CPU.

Problem. Where more processes want to run than there are cores, each call takes longer, also one that moves memory, and
ranks wait for others that do not run. That is no fault of the program's I/O.

Algorithm. Each recording has how long its process could run and had no CPU (Linux counts it), from MPI_Init to
MPI_Finalize, and how long that was.

Guarantees. Ranks that have not reached MPI_Finalize do not count. Without this fact of Linux there is no sentence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.analytics.run.opening import TRIVIAL, share_text
from mpiio_ext.common.units import seconds_text
from mpiio_ext.pioneer.darshan.recordings import given

if TYPE_CHECKING:
    from mpiio_ext.pioneer.darshan.steps import Seen

#: Name for programs, words, and the classes of time of recordings that belong to it.
_PARTS = (
    ("file_system", "the file system", (0, 1, 2)),
    ("waiting", "waiting for other ranks", (5,)),
    ("messages", "messages between nodes", (6,)),
    ("library", "mpiio_ext", (4,)),
    ("mpi_library", "the MPI library", (3,)),
)
_MEANT = {
    "program": "all time outside of calls on files and of MPI-IO calls",
    "file_system": "calls on files (read, write, open, sync, stat, lock), by the program and by the library that"
    " carries out its MPI-IO calls",
    "waiting": "in calls that this library carries out, waiting until other ranks have arrived and done their part",
    "messages": "sending messages to other nodes, receiving messages, and waiting for messages",
    "library": "all other time in MPI-IO calls that mpiio_ext carries out: planning, copying, packing, waiting for"
    " delegates",
    "mpi_library": "opening files, closing files, setting views, and the rest of the calls that the MPI library carries"
    " out: exchange, copies and waiting together",
}
#: Share of the time in I/O from which on a part is named.
_LEAST = 0.05


def parts(seen: Seen, run_s: float) -> list[dict[str, Any]]:
    """Return the parts of the time, the program's own first: mean of the ranks (s), least and most of one, and which.

    `busiest_s` is the time of the rank with most time in I/O, which the documents call the run's time in I/O.
    """
    busiest = int(seen.spent_s.sum(axis=1).argmax())
    mine = {name: seen.spent_s[:, list(classes)].sum(axis=1) for name, _, classes in _PARTS}
    named = {"program": "your program"} | {name: words for name, words, _ in _PARTS}
    all_s = {"program": (run_s - sum(mine.values())).clip(0.0), **mine}
    return [
        {
            "part": name,
            "name": named[name],
            "mean_s": float(each.mean()),
            "most_s": float(each.max()),
            "busiest_s": float(each[busiest]),
            "least_s": float(each.min()),
            "least_rank": int(each.argmin()),
            "rank": int(each.argmax()),
            "meaning": _MEANT[name],
        }
        for name, each in all_s.items()
    ]


def sentence(rows: Sequence[Mapping[str, Any]], run_s: float) -> str:
    """Return the parts of the time in I/O, the largest first; "" if the time is too short."""
    inside = sorted(rows[1:], key=lambda row: -row["busiest_s"])
    whole = sum(row["busiest_s"] for row in inside)
    if whole < TRIVIAL * run_s or whole <= 0:
        return ""
    listed = [
        f"{row['name']} {share_text(row['busiest_s'], whole)}" for row in inside if row["busiest_s"] >= _LEAST * whole
    ]
    return f"Parts of the time in I/O: {', '.join(listed)}."


def waiting_s(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the most that a rank waits for others (s)."""
    return max((float(row["most_s"]) for row in rows if row["part"] == "waiting"), default=0.0)


#: Share of the time from which on waiting for a CPU is reported.
LOADED = 0.1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the machine gave the ranks; seconds of a rank, on average.

    Attributes
    ----------
    wall_s, cpu_s, waited_s : from MPI_Init to MPI_Finalize; on a CPU; ready to run, and without one.
    least_s : the last of the rank that waited least: one that sleeps in requests waits for no CPU meanwhile, while
        those that look for its messages do.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    waited_s: float = 0.0
    least_s: float = 0.0

    @property
    def share(self) -> float:
        """Return the share of the time in which a rank waited for a CPU."""
        return min(1.0, self.waited_s / self.wall_s) if self.wall_s > 0 else 0.0

    @property
    def loaded(self) -> bool:
        """Return whether that is so much that times show little about I/O."""
        return self.share >= LOADED

    def notice(self) -> list[str]:
        """Return what a reader has to know."""
        if not self.loaded:
            return []
        return [
            "The CPUs were overloaded: more processes were ready to run than cores were free. On average, a rank"
            f" waited for a CPU for {seconds_text(self.waited_s)} of the {seconds_text(self.wall_s)} from MPI_Init to"
            f" MPI_Finalize ({100 * self.share:.0f} %). Times of calls may include the wait. If only times show a"
            " finding, and each rank waited for half of the finding's time or more, the finding has low confidence."
        ]

    def facts(self) -> list[list[str]]:
        """Return what it gave the ranks, as facts."""
        if not self.wall_s:
            return []
        return [
            [
                "CPU time of a rank, of all its threads, on average",
                f"{seconds_text(self.cpu_s)} of {seconds_text(self.wall_s)} from MPI_Init to MPI_Finalize",
            ],
            ["wait of the main thread of a rank for a CPU, on average", seconds_text(self.waited_s)],
        ]


def machine_of(folder: Path) -> Machine:
    """Return the facts of a folder's recordings; nothing without any."""
    rows = np.array([each for each in given(folder) if each[0] > 0]).reshape(-1, 3)
    if not len(rows):
        return Machine()
    wall_s, cpu_s, waited_s = (float(each) for each in rows.mean(axis=0) / 1e9)
    return Machine(wall_s=wall_s, cpu_s=cpu_s, waited_s=waited_s, least_s=float(rows[:, 2].min() / 1e9))
