"""Which rank comes late to collective calls, while the records of ranks come one by one.

Problem. All wait for the last one, and a log has the calls of one rank after those of another. Algorithm: for each call
the latest beginning so far is stored, with its rank. Guarantee: the memory holds the calls of one rank, and no more
than `_MOST_CALLS` of them.
"""

from __future__ import annotations

import math

import numpy as np

from mpiio_ext.analytics.tables.arrays import Numbers

#: MPI-IO calls of a rank on a file that are held against those of the others.
_MOST_CALLS = 1 << 14


def all_but_one(least: float, mean: float, most: float, ranks: float) -> float:
    """Return how much longer than the fastest rank an average one needs, where all others need as long as the slowest.

    Else 0: then ranks differ, and do not wait for one.
    """
    return mean - least if ranks > 1 and mean - least >= (1 - 1.5 / ranks) * (most - least) > 0 else 0.0


class Late:
    """Who makes each MPI-IO call of a file last, and how long the others have waited for it, while records come.

    A rank is late by what it does between its calls: where it leaves the call before later than others, as an
    aggregator does, the time in that call is not counted. Before the first call that is since `opened`, when the last
    rank has opened the file; infinite: that is not known, and the first call does not count.
    """

    def __init__(self, opened: float = math.inf) -> None:
        self.latest, self.pause, self.who = np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
        self.starts, self.pauses = np.zeros(0), np.zeros(0)
        self.opened = opened
        self.ranks: set[int] = set()
        self.alike = True

    def add(self, start: Numbers, end: Numbers, rank: int) -> None:
        """Add the calls of one rank."""
        pause = np.maximum(start - np.append(self.opened, end[:-1]), 0.0)[:_MOST_CALLS]
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

    def lost(self, ranks: int) -> tuple[float, int, float]:
        """Return the seconds that each other rank waits, on average, for whom most, and the share of that one.

        0 where not all make these calls.
        """
        count = len(self.ranks)
        if not self.alike or count < max(ranks, 2):
            return 0.0, -1, 0.0
        of_all = np.minimum(self.latest - self.starts / count, self.pause - self.pauses / count)
        wait = np.clip(of_all, 0.0, None) * count / (count - 1)  # the last one does not wait
        for_whom = np.bincount(self.who, wait)
        most = int(np.argmax(for_whom))
        return float(wait.sum()), most, float(for_whom[most]) / max(float(wait.sum()), 1e-12)
