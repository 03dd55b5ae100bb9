"""The climate: how a metric was distributed in each month.

Months are those of a time zone, the starts of jobs those of :meth:`Jobs.times`. A month without jobs has no box.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.jobs.boxes import Box, box
from mpiio_ext.analytics.jobs.history import History

#: (year, month).
Month = tuple[int, int]


def month_at(time: float, zone: datetime.tzinfo) -> Month:
    """Return the month of a time in s since 1970 UTC."""
    at = datetime.datetime.fromtimestamp(time, zone)
    return at.year, at.month


def months_of(every: Sequence[History], zone: datetime.tzinfo) -> list[Month]:
    """Return all months from the first job of the histories to the last."""
    times = [time for history in every if len(history.jobs) for time in history.jobs.times()[[0, -1]].tolist()]
    if not times:
        return []
    (year, month), end = month_at(min(times), zone), month_at(max(times), zone)
    out = []
    while (year, month) <= end:
        out.append((year, month))
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return out


def month_boxes(history: History, metric: str, zone: datetime.tzinfo) -> dict[Month, Box]:
    """Return the box of each month in which the metric is known of a job."""
    values = history.jobs.numbers(metric)
    where: dict[Month, list[int]] = {}
    for row, time in enumerate(history.jobs.times().tolist()):
        where.setdefault(month_at(time, zone), []).append(row)
    found = {month: box(values[np.array(rows)]) for month, rows in where.items()}
    return {month: one for month, one in found.items() if one is not None}
