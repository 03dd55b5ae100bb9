"""Whether the machine had room for a run: how long its ranks waited for a CPU.

Problem. Where more processes want to run than there are cores, each call takes longer, also one that moves memory, and
ranks wait for others that do not run. That is no fault of the program's I/O.

Algorithm. Each recording has how long its process could run and had no CPU (Linux counts it), from MPI_Init to
MPI_Finalize, and how long that was.

Guarantees. Ranks that have not reached MPI_Finalize do not count. Without this fact of Linux there is no sentence.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from mpiio_ext.common.units import seconds_text

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
            f"The machine was loaded: a rank waited for a CPU for {seconds_text(self.waited_s)} of"
            f" {seconds_text(self.wall_s)} ({100 * self.share:.0f} %), since more processes wanted to run than"
            " there are cores. The times of calls include it, so findings of waiting have low confidence."
        ]

    def facts(self) -> list[list[str]]:
        """Return what it gave the ranks, as facts."""
        if not self.wall_s:
            return []
        return [
            [
                "CPU time of a rank, waiting for a CPU",
                f"{seconds_text(self.cpu_s)}, {seconds_text(self.waited_s)}"
                f" (of {seconds_text(self.wall_s)} from MPI_Init to MPI_Finalize)",
            ]
        ]


def of(folder: Path) -> Machine:
    """Return the facts of a folder's recordings; nothing without any."""
    from mpiio_ext.pioneer.darshan.recordings import given

    rows = np.array([each for each in given(folder) if each[0] > 0]).reshape(-1, 3)
    if not len(rows):
        return Machine()
    wall_s, cpu_s, waited_s = (float(each) for each in rows.mean(axis=0) / 1e9)
    return Machine(wall_s=wall_s, cpu_s=cpu_s, waited_s=waited_s, least_s=float(rows[:, 2].min() / 1e9))
