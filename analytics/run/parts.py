"""Where the time of a rank went: the program, this library, the MPI library, other ranks, other nodes, the file system.

Problem. "Is it me, the library or the file system?" The time in MPI-IO calls alone does not answer this.

Algorithm. The recordings have calls on files, which are the file system's time, and the library's events: waits for
other ranks and messages between nodes. The rest of each MPI-IO call is this library's (planning, copying, packing)
where it carried the call out, else the MPI library's. What is in none of these is the program's own time.

Guarantees. Parts do not overlap, and add up to the run time, unless threads of a rank are in calls at the same time.
A rank alone does not wait. Calls of the MPI library are not divided further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.run.opening import TRIVIAL, share_text

if TYPE_CHECKING:
    from mpiio_ext.pioneer.darshan.steps import Seen

#: Name for programs, words, and the classes of time of recordings that belong to it.
_PARTS = (
    ("file_system", "the file system", (0, 1, 2)),
    ("waiting", "waiting for other ranks", (5,)),
    ("messages", "messages between nodes", (6,)),
    ("library", "this library", (4,)),
    ("mpi_library", "the MPI library", (3,)),
)
_MEANT = {
    "program": "outside of calls on files and of MPI-IO calls",
    "file_system": "calls to read, write, open, sync and ask: of the program, and of who carries its MPI-IO calls out",
    "waiting": "in calls that this library carries out: until other ranks have come, and have done their part",
    "messages": "sending to other nodes, receiving, and until the messages have come",
    "library": "planning, copying, packing; through delegates also waiting for them",
    "mpi_library": "opening, closing, views, and what it carries out itself: exchange, copies, waiting, together",
}
#: Share of the time in I/O from which on a part is named.
_LEAST = 0.05


def parts(seen: Seen, run_s: float) -> list[dict[str, Any]]:
    """Return the parts of the time, the program's own first: mean of the ranks (s), least and most of one, and which.

    `busiest_s` is that of the rank with most time in I/O, which is what is called the run's time in I/O.
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
    """Return of what the time in I/O consists, most of it first; "" where it is too little."""
    inside = sorted(rows[1:], key=lambda row: -row["busiest_s"])
    whole = sum(row["busiest_s"] for row in inside)
    if whole < TRIVIAL * run_s or whole <= 0:
        return ""
    listed = [
        f"{row['name']} {share_text(row['busiest_s'], whole)}" for row in inside if row["busiest_s"] >= _LEAST * whole
    ]
    return f"Of that time: {', '.join(listed)}."


def waiting_s(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the most that a rank waits for others (s)."""
    return max((float(row["most_s"]) for row in rows if row["part"] == "waiting"), default=0.0)
