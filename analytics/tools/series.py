"""A quantity of several servers in half-open steps of equal length, and the part of it that lies in a period.

Problem. One source has rows (time, OST, value), another matrices, a third samples at odd times. Questions are about
periods that begin and end anywhere, over samples some of which were lost.

Algorithm. Values lie in a matrix on a grid: step k is [first + k·step, first + (k+1)·step), a missing value is NaN. A
period is cut out by numbers of steps, never by comparing times; steps of the period that the source does not have are
NaN, so that two sources of one period have the same shape. Three ways to treat the steps at the edges:

- ``begin``: the steps that begin in the period. Each step belongs to one period, so that parts add up to the whole;
  this is how TOKIO's tables were made.
- ``touch``: also those that only overlap it. Nothing of a job is missed; what others moved just before and after it is
  counted, too.
- ``share``: as ``touch``, with amounts at the edges in proportion to the overlap. Parts add up to the whole.

Guarantees. No value is interpolated.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.analytics.tools.moments import Period

Edges = Literal["begin", "touch", "share"]
EDGES: tuple[Edges, ...] = ("begin", "touch", "share")
#: Steps of a period, at most (a year of 5-s steps has 6.3 million).
MOST_STEPS = 10_000_000
#: A bound closer to a step's begin than this share of the step is taken for it: times are rounded numbers.
_SAME = 1e-6


class SeriesError(AnalyticsError, ValueError):
    """Values that are no series of equal steps, or a period that is none."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """Values of several components in half-open steps of equal length.

    Attributes
    ----------
    quantity : what: bytes_read, bytes_written, cpu, memory, or the name of an operation.
    unit : of a value: B, count, %.
    level : a state (a load) rather than an amount that was moved in the step.
    step_s : length of a step in seconds.
    first : begin of the first step, in seconds since 1970 UTC.
    names : tuple of str, of length k
        The components: OSTs, servers.
    values : (n, k) array of float64
        NaN where a value is not known.
    """

    quantity: str
    unit: str
    level: bool = False
    step_s: float
    first: float
    names: tuple[str, ...]
    values: Numbers

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names):
            raise SeriesError(f"{self.quantity}: a matrix of {self.values.shape} for {len(self.names)} components")
        if not self.step_s > 0 or not math.isfinite(self.first):
            raise SeriesError(f"{self.quantity}: steps of {self.step_s} s from {self.first}")

    # ---- times -------------------------------------------------------------------------------------------------------

    @property
    def starts(self) -> Numbers:
        """Begins of the steps: (n,) float64, seconds since 1970 UTC."""
        return self.first + self.step_s * np.arange(len(self.values), dtype=np.float64)

    @property
    def period(self) -> Period:
        """From the begin of the first step to the end of the last one."""
        return Period(self.first, self.first + self.step_s * len(self.values))

    def _bounds(self, period: Period) -> tuple[float, float]:
        """Return a period's begin and end in steps from the first one; a time near a step's begin is that begin."""
        low, high = (_near((bound - self.first) / self.step_s) for bound in (period.start, period.end))
        return low, high

    def _numbers(self, period: Period, edges: Edges) -> tuple[int, int]:
        """Return the numbers of the first step of a period and of the one behind the last."""
        if edges not in EDGES:
            raise SeriesError(f"edges cannot be {edges!r}; choose {', '.join(EDGES)}")
        low, high = self._bounds(period)
        if period.end <= period.start:
            return math.ceil(low), math.ceil(low)
        first = math.ceil(low) if edges == "begin" else math.floor(low)
        end = math.ceil(high)
        if end - first > MOST_STEPS:
            raise SeriesError(f"{period}: more than {MOST_STEPS:,} steps of {self.step_s:g} s")
        return first, end

    def within(self, period: Period, edges: Edges = "begin") -> Series:
        """Return the steps of a period, NaN if the series has none; with ``share`` amounts at the edges are cut.

        Raises
        ------
        SeriesError
            For unknown `edges`, or more steps than memory has room for.
        """
        first, end = self._numbers(period, edges)
        values = np.full((end - first, len(self.names)), np.nan)
        low, high = max(first, 0), min(end, len(self.values))
        if low < high:
            values[low - first : high - first] = self.values[low:high]
        start = self.first + first * self.step_s
        if edges == "share" and not self.level:
            # the same bounds as above: the part of a step that one period does not count, the period beside it does
            start_step, end_step = self._bounds(period)
            steps = np.arange(first, end)
            overlap = np.minimum(steps + 1, end_step) - np.maximum(steps, start_step)
            values *= np.clip(overlap, 0.0, 1.0)[:, None]
        return dataclasses.replace(self, first=start, values=values)

    # ---- values ------------------------------------------------------------------------------------------------------

    @property
    def known(self) -> bool:
        """Whether any value is."""
        return bool(np.isfinite(self.values).any())

    @property
    def missing(self) -> float | None:
        """Share of the values that are not known, 0 to 1; None without any step."""
        return float(np.isnan(self.values).mean()) if self.values.size else None

    @property
    def zeros(self) -> float | None:
        """Share of the known values that are 0; None if none is known."""
        known = np.isfinite(self.values)
        return float((self.values[known] == 0).mean()) if known.any() else None

    def total(self) -> float | None:
        """Return the sum of all known values; None if none is known."""
        return float(np.nansum(self.values)) if self.known else None

    def by_component(self) -> dict[str, float | None]:
        """Return the sum of the known values of each component; None if none is known."""
        sums: Numbers = np.nansum(self.values, axis=0)
        known = np.asarray(np.isfinite(self.values).any(axis=0))
        return {name: float(sums[k]) if known[k] else None for k, name in enumerate(self.names)}

    def by_step(self) -> Numbers:
        """Return the sum over the components in each step: (n,) float64, NaN if none is known."""
        sums: Numbers = np.nansum(self.values, axis=1)
        sums[~np.isfinite(self.values).any(axis=1)] = np.nan
        return sums

    def rates(self) -> Numbers:
        """Return amounts a second of all components together: (n,) float64, NaN if none is known."""
        return self.by_step() / self.step_s

    def selected(self, names: Sequence[str]) -> Series:
        """Return the components of these names, NaN for one that the series does not have."""
        at = {name: number for number, name in enumerate(self.names)}
        values = np.full((len(self.values), len(names)), np.nan)
        for column, name in enumerate(names):
            if name in at:
                values[:, column] = self.values[:, at[name]]
        return dataclasses.replace(self, names=tuple(names), values=values)


def _near(number: float) -> float:
    whole = round(number)
    return whole if abs(number - whole) <= _SAME else number
