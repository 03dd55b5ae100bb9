"""Equations 1 to 5 of IOMiner, over arrays: bandwidth, weighting by exclusive time, three ratios.

The paper names these and prints some as pictures; they are written out here. NaN stands for NULL: a value that cannot
be known or has no meaning (a bandwidth over no time, a ratio to 0) is NaN and never 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mpiio_ext.analytics.tables.arrays import Numbers, Whole


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Numbers:
    """Return ``part / whole`` elementwise; NaN where `whole` is 0 or either is NaN."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    out = np.full(np.broadcast(part, whole).shape, np.nan)
    np.divide(part, whole, out=out, where=(whole != 0))
    return out


def bandwidth(size: npt.ArrayLike, start: npt.ArrayLike, end: npt.ArrayLike) -> Numbers:
    """Equation 1: ``B = S / (T_end - T_start)``.

    Parameters
    ----------
    size : array_like
        Bytes that a job moved in one direction.
    start, end : array_like
        Start of its first and end of its last access in that direction (s).

    Returns
    -------
    ndarray
        B/s; NaN if the span is not positive.
    """
    span = np.asarray(end, dtype=np.float64) - np.asarray(start, dtype=np.float64)
    return ratio(size, np.where(span > 0, span, np.nan))


def weighted(values: Numbers, exclusive: Numbers, starts: Whole, min_known: float = 0.5) -> Numbers:
    """Equation 2: ``P = sum(p_i t_i) / sum(t_i)`` over the critical files of each job.

    Parameters
    ----------
    values : ndarray
        p_i of every file; NaN if unknown.
    exclusive : ndarray
        t_i (s); 0 for files that are not critical.
    starts : ndarray
        Index of the first file of each job; files of a job stand side by side.
    min_known : where the value is known for a smaller share of a job's critical time than this, the job's is NaN.
        Otherwise the mean is taken over the files whose value is known.

    Returns
    -------
    ndarray
        One value a job.
    """
    if len(starts) == 0:
        return np.zeros(0)
    known = ~np.isnan(values)
    time = np.add.reduceat(exclusive, starts)
    known_time = np.add.reduceat(np.where(known, exclusive, 0.0), starts)
    total = np.add.reduceat(np.where(known, values, 0.0) * exclusive, starts)
    enough = (known_time > 0) & (known_time >= min_known * time)
    return ratio(total, np.where(enough, known_time, np.nan))
