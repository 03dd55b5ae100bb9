"""How long the logs of a job have run and were in I/O together: bounds, since logs may lie side by side."""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.diagnosis.together import LogTime, explained, running, stretches, together
from mpiio_ext.analytics.ledger import Interval


def _log(
    start: float, run_time: float, io: tuple[float, float], *parts: tuple[float, float], beside: float = 0
) -> LogTime:
    begin, end = np.array(parts).reshape(-1, 2).T
    return LogTime(start=start, run_time=run_time, in_io=Interval(*io), parts=(begin, end), beside=beside)


def test_times_of_logs_together() -> None:
    """Side by side, at least that of the log with most, at most that of all and no more than there are calls."""
    one, other, later = _log(0, 10, (3, 4), (1, 5)), _log(2, 10, (3, 4), (3, 7)), _log(20, 10, (6, 8), (21, 29))
    assert stretches([later, one, other]) == [[1, 2], [0]]
    assert together([one, other]) == Interval(4, 6), "of 6 s with calls, each of the two may lack one"
    assert together([one, other, later]) == Interval(10, 14)
    assert together([one, _log(2, 10, (4, 4), (3, 7), beside=1)]) == Interval(4, 7)
    assert running([one, other, later]) == 22
    assert explained([one, other, later], [4, 4, 0]) == 5 and explained([one, other, later], [3.5, 0, 7]) == 2.5 + 7
    files = _log(0, 10, (1, 1), (0, 10))  # open for long, hardly any call
    assert together([files]) == Interval(1, 1) and together([files, other]) == Interval(3, 5)
    unknown = _log(np.nan, 10, (3, 3))
    assert stretches([one, unknown]) == [[0], [1]] and running([one, unknown]) == 20
    assert together([one, unknown]) == Interval(3 + 3, 4 + 3)
    assert together([]) == Interval(0, 0) and running([]) == 0
