"""Which rank comes late to collective calls, while the records of ranks come one by one.

Problem. All wait for the last one, and a log has the calls of one rank after those of another. Algorithm: of each call
the latest beginning so far is kept, and whose it is. Guarantee: memory is that of the calls of one rank, and of no more
than `_MOST_CALLS` of them.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.tables.arrays import Numbers

#: MPI-IO calls of a rank on a file that are held against those of the others.
_MOST_CALLS = 1 << 14


class Late:
    """Who makes each MPI-IO call of a file last, and how long the others have waited for it, while records come.

    A rank is late by what it does between its calls: where it leaves the call before later than others, as an
    aggregator does, the time in that call is not counted.
    """

    def __init__(self) -> None:
        self.latest, self.pause, self.who = np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
        self.starts, self.pauses = np.zeros(0), np.zeros(0)
        self.ranks: set[int] = set()
        self.alike = True

    def add(self, start: Numbers, end: Numbers, rank: int) -> None:
        """Add the calls of one rank."""
        pause = np.append(0.0, np.maximum(start[1:] - end[:-1], 0.0))[:_MOST_CALLS]
        start = start[:_MOST_CALLS]
        if not self.ranks:
            self.latest, self.pause, self.who = start.copy(), pause.copy(), np.full(len(start), rank)
            self.starts, self.pauses = np.zeros(len(start)), np.zeros(len(start))
        if len(start) != len(self.starts) or rank in self.ranks:
            self.alike = False
            return
        self.ranks.add(rank)
        last = start > self.latest
        self.latest, self.pause = np.where(last, start, self.latest), np.where(last, pause, self.pause)
        self.who = np.where(last, rank, self.who)
        self.starts += start
        self.pauses += pause

    def lost(self, ranks: int) -> tuple[float, int]:
        """Return the seconds that an average rank waits, and for whom most often; 0 where not all make these calls."""
        count = len(self.ranks)
        if not self.alike or count < max(ranks, 2):
            return 0.0, -1
        wait = np.clip(np.minimum(self.latest - self.starts / count, self.pause - self.pauses / count), 0.0, None)
        for_whom = np.bincount(self.who, wait)
        return float(wait.sum()), int(np.argmax(for_whom))
