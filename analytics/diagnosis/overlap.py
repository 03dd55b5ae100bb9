"""Shares of the time in which several files are accessed, by the part of that time that calls on a file take.

Problem. The sweep line gives the time in which several files are accessed to as few of them as cover it. Where calls go
to one file after the other in turn, or ranks have a file each, the first and the last one would have it all.

Algorithm. A file's rate is its time in calls over that from its first access to its last one. At each moment, the files
that are accessed share the time by their rates. The files that have nearly all of it are critical, and those of which
the sweep line says so and that have most of what it gives them; among these the time is shared once more. Where the
files of the sweep line are of one rank each, and most such files are accessed for much shorter, the job waits for the
last ones: the answer is that of the sweep line.

Guarantees. If accesses to files do not overlap, the answer is the sweep line's. O(n log n) for n files.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.sweep.intervals import CRITICAL, Sweep
from mpiio_ext.analytics.tables.arrays import Flags, Numbers

#: Least rate of a file, so that one without any time in calls has what nobody else claims.
_LEAST = 1e-6
#: Share of the time whose files are critical, and how much less than the last one of these the others may have.
_NEARLY, _ALIKE = 0.95, 0.5
#: Files of one rank each are accessed together when half of them are for at least this share of the time of all.
_TOGETHER = 0.8


def _shared(start: Numbers, end: Numbers, rate: Numbers) -> Numbers:
    """Return the share of the time of each of some intervals, all of them known and not empty."""
    edges = np.unique(np.concatenate([start, end]))
    first, last = np.searchsorted(edges, start), np.searchsorted(edges, end)
    together, there = np.zeros(len(edges)), np.zeros(len(edges), np.int64)
    for at, sign in ((first, 1), (last, -1)):
        np.add.at(together, at, sign * rate)
        np.add.at(there, at, sign)
    together, there = np.cumsum(together)[:-1], np.cumsum(there)[:-1]
    parts = np.where(there > 0, np.diff(edges) / np.maximum(together, _LEAST), 0.0)
    so_far = np.append(0.0, np.cumsum(parts))
    found: Numbers = rate * (so_far[last] - so_far[first])
    return found


def _critical(found: Numbers, plain: Numbers) -> Flags:
    """Return the critical ones among some intervals, by their shares and by their times in the sweep line."""
    order = np.sort(found)[::-1]
    least = order[min(int(np.searchsorted(np.cumsum(order), _NEARLY * found.sum())), len(order) - 1)]
    return np.asarray((found >= _ALIKE * least) | ((plain > 0) & (found >= _ALIKE * plain)))


def shared(start: Numbers, end: Numbers, calls: Numbers, ranks: Numbers, plain: Sweep) -> Sweep:
    """Return the shares of the files of one job as a sweep line's answer.

    Parameters
    ----------
    start, end : of the files' accesses.
    calls : time in calls on each file (s); NaN where it is not known: all the time.
    ranks : that access each file; NaN where that is not known.
    plain : what the sweep line says of them.
    """
    rows = np.flatnonzero(plain.counted)
    if len(rows) < 2 or plain.exclusive.sum() >= (1 - 1e-9) * (end[rows] - start[rows]).sum():
        return plain
    start, end = start[rows], end[rows]
    alone = ranks[rows] == 1
    waited_for = alone[plain.exclusive[rows] > 0].all()
    if waited_for and np.median((end - start)[alone]) < _TOGETHER * (end.max() - start.min()):
        return plain
    rate = np.clip(np.nan_to_num(calls[rows] / (end - start), nan=1.0), _LEAST, 1.0)
    kept = _critical(_shared(start, end, rate), plain.exclusive[rows])
    exclusive, state = np.zeros(len(calls)), np.where(plain.counted, 0, plain.state).astype(np.int8)
    exclusive[rows[kept]] = _shared(start[kept], end[kept], rate[kept])
    state[rows[kept]] = CRITICAL
    return Sweep(exclusive=exclusive, since=None, state=state)
