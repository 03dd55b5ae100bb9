"""How far the clocks of hosts are apart, and how much faster one runs: from moments that all ranks have in common.

Problem.   Each rank's times are of its host's clock. Order and slack times between ranks need one clock.
Algorithm. No rank leaves a barrier before the last one has entered it, and all leave it within microseconds: the times
           of leaving, one by each clock, are the same moment but for that. Against the reference's time t the
           difference of two clocks is offset + drift (t - middle). The drift is the median of the slopes between
           moments that are half the trace apart. Then least squares are repeated without what lies more than three
           robust standard deviations away (a rank that was not scheduled at once). Drift counts where it is larger than
           three times its standard error; with fewer than `LEAST` moments the median of the differences is the offset.
Guarantee. Differences are taken in integers; clocks that agree exactly give 0. The estimate says how good the fit is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.table import Clock

#: Moments that are wanted for a drift.
LEAST = 3
_ROUNDS = 20
_DEVIATIONS = 3.0
_MAD = 1.4826  # of the median absolute deviation, for a standard deviation


def _spread(values: NDArray[np.float64]) -> float:
    return _MAD * float(np.median(np.abs(values - np.median(values)))) if values.size else 0.0


def _first_guess(times: NDArray[np.float64], gaps: NDArray[np.float64]) -> tuple[float, float]:
    """Return (value at 0, slope) that a minority of wrong moments does not move."""
    half = times.size // 2
    spans = times[half:] - times[: times.size - half]
    rises = gaps[half:] - gaps[: times.size - half]
    slope = float(np.median(rises[spans > 0] / spans[spans > 0])) if bool((spans > 0).any()) else 0.0
    return float(np.median(gaps - slope * times)), slope


def _line(times: NDArray[np.float64], gaps: NDArray[np.float64]) -> tuple[float, float, float, NDArray[np.float64]]:
    """Return (value at 0, slope, standard error of the slope, residuals of all) of a robust line."""
    value, slope = _first_guess(times, gaps)
    error = np.inf
    kept = np.zeros(times.size, bool)
    for _ in range(_ROUNDS):
        residuals = gaps - value - slope * times
        spread = _spread(residuals if not kept.any() else residuals[kept])
        inside = np.abs(residuals) <= max(_DEVIATIONS * spread, 1.0)
        if inside.sum() < LEAST or bool((inside == kept).all()):
            break
        kept = inside
        x, y = times[kept], gaps[kept]
        middle = float(x.mean())
        square = float(((x - middle) ** 2).sum())
        if square <= 0:
            break
        slope = float(((x - middle) * (y - y.mean())).sum()) / square
        value = float(y.mean()) - slope * middle
        error = float(np.std(y - value - slope * x)) / square**0.5
    return value, slope, error, gaps - value - slope * times


def fit(own: Sequence[int], reference: Sequence[int], *, rank: int, host: str = "") -> Clock:
    """Return how a clock is related to the reference's.

    Parameters
    ----------
    own, reference : times of the same moments by the two clocks, ns.
    rank, host : whose clock it is.
    """
    if not len(own):
        return Clock(rank=rank, host=host)
    origin = int(own[len(own) // 2])
    gaps = np.array([a - b for a, b in zip(own, reference, strict=True)], np.int64)
    base = int(np.sort(gaps)[gaps.size // 2])
    left = (gaps - base).astype(np.float64)  # small: exact in floating point
    clock = Clock(
        rank=rank, host=host, points=gaps.size, origin_ns=origin, offset_ns=base, spread_ns=round(_spread(left))
    )
    if gaps.size < LEAST:
        return clock
    times = (np.array(own, np.int64) - origin).astype(np.float64)
    value, slope, error, residuals = _line(times, left)
    if abs(slope) * float(np.ptp(times)) > 1.0 and abs(slope) > _DEVIATIONS * error:
        clock.offset_ns = base + round(value)
        clock.drift = slope
        clock.spread_ns = round(_spread(residuals))
    return clock


def corrected(times: NDArray[np.int64], clock: Clock) -> NDArray[np.int64]:
    """Return times of a clock as times of the reference's, ns; lengths of time shrink by the drift as well."""
    moved = times - clock.offset_ns
    if clock.drift:
        moved = moved - np.rint(clock.drift * (times - clock.origin_ns)).astype(np.int64)
    return moved
