"""Simple moving averages over time, and the times at which two of these cross.

Source: Lockwood et al., "A Year in the Life of a Parallel File System" (SC18, Section IV), and its published tools
(``sma_by_value``, ``find_sma_intercepts``): a window is a span of time, not a number of jobs, and stands around each
job. Its value is the mean over all jobs that began in the half-open time from half a window before it to half a window
after it. Two averages cross at the first job at which the short one is on the other side of the long one than at the
job before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Numbers, Whole


def windows(times: Numbers, width_s: float) -> tuple[Whole, Whole]:
    """Return, for each job, the first job of its window and the one after the last.

    Parameters
    ----------
    times : numpy.ndarray, shape (jobs,)
        Starts in s, ascending.
    width_s : of the window, in s.
    """
    first = np.searchsorted(times, times - width_s / 2, side="left")
    return first.astype(np.int64), np.searchsorted(times, times + width_s / 2, side="left").astype(np.int64)


def moving_average(times: Numbers, values: Numbers, width_s: float) -> Numbers:
    """Return the mean of the known values around each job.

    Parameters
    ----------
    times, values : numpy.ndarray, shape (jobs,)
        Starts in s, ascending, and values, all known.
    width_s : of the window, in s.
    """
    first, end = windows(times, width_s)
    # Sums of the distances from the mean: a sum of large numbers would lose their differences.
    middle = values.mean() if len(values) else 0.0
    sums = np.concatenate([[0.0], np.cumsum(values - middle)])
    out: Numbers = middle + (sums[end] - sums[first]) / (end - first)
    return out


def moving_median(times: Numbers, values: Numbers, width_s: float) -> Numbers:
    """Return the median of the values around each job; as `moving_average`."""
    if not len(values):
        return values
    first, end = windows(times, width_s)
    # A row for each window, filled up with infinity, sorted together: a median by itself takes longer than its values.
    count = end - first
    places = first[:, None] + np.arange(int(count.max()))
    rows = np.where(places < end[:, None], values[np.minimum(places, len(values) - 1)], np.inf)
    rows.sort(axis=1)
    jobs = np.arange(len(values))
    out: Numbers = (rows[jobs, (count - 1) // 2] + rows[jobs, count // 2]) / 2
    return out


def crossings(short: Numbers, long: Numbers) -> Whole:
    """Return the jobs at which the short average is above the long one and was not at the job before, or conversely."""
    above = short > long
    return np.flatnonzero(above[1:] != above[:-1]).astype(np.int64) + 1
