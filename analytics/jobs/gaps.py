"""Pauses of a history: times between two jobs so long that something has stopped, or was down.

Problem. A line drawn through weeks without a job shows values that were not measured, and a history that has stopped
looks as quiet as one that is well. How long is too long depends on how often the jobs run.

Algorithm. A gap is an interval of more than `MANY` median intervals of the history, and of more than a day: jobs of one
session follow each other in minutes. Jobs that began at the same time are one.

Guarantees. A history of fewer than three starts has no gap of its own, since it has no usual interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Numbers

#: Median intervals.
MANY = 7
_DAY = 86400.0


def longest_interval(times: Numbers) -> float | None:
    """Return the longest interval between two starts that is no gap, in s; None if there is no usual interval.

    Parameters
    ----------
    times : numpy.ndarray
        Starts in s since 1970, ascending; NaN is passed over.
    """
    apart = np.diff(times[~np.isnan(times)])
    apart = apart[apart > 0]
    if len(apart) < 2:
        return None
    return float(max(MANY * np.median(apart), _DAY))
