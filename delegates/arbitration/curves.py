"""Bandwidth of one job or access pattern as a function of its number of I/O nodes, with its known spread.

Problem.    Policies ask what a number of I/O nodes is worth; measurements answer for some numbers, with repetitions
            that differ.
Guarantees. A curve says nothing about numbers outside those it has; between two of them it interpolates linearly and
            only when asked to. The lower confidence bound is that of Student's t for the mean of the repetitions. A
            point with one repetition uses the relative spread of the curve's other points; if no point has two
            repetitions, `UNKNOWN_SPREAD`.
Source.     Figure 1 of the arbitration paper (see mpiio_ext.delegates.arbitration), repetitions as in its Section 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mpiio_ext.errors import ArgumentError

#: Relative standard deviation of a repetition that is assumed where nothing was repeated.
UNKNOWN_SPREAD = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The measurements with one number of I/O nodes.

    Attributes
    ----------
    mean : bandwidth, MB/s (10^6 bytes)
    best : of the repetitions, MB/s
    deviation : standard deviation of a repetition, MB/s; None = unknown
    repetitions : 0 = estimated, not measured
    """

    mean: float
    best: float
    deviation: float | None = None
    repetitions: int = 1

    def __post_init__(self) -> None:
        for name, value in (("mean", self.mean), ("best", self.best), ("deviation", self.deviation or 0.0)):
            if not math.isfinite(value) or value < 0:
                raise ArgumentError(f"{name} of a point must be a finite number >= 0, not {value!r}")

    @staticmethod
    def of(bandwidths: Iterable[float]) -> Point:
        """Return the point of repetitions (at least one), in MB/s."""
        values = sorted(bandwidths)
        if not values:
            raise ArgumentError("a point needs at least one repetition")
        return Point(
            mean=fmean(values),
            best=values[-1],
            deviation=stdev(values) if len(values) > 1 else None,
            repetitions=len(values),
        )


class Columns(NamedTuple):
    """A curve as arrays over its points, for decisions about many jobs at once.

    Attributes
    ----------
    counts, means : number of I/O nodes, ascending; MB/s
    errors : standard error of the mean, MB/s, with what stands in for an unknown spread
    freedom : degrees of freedom of that error
    """

    counts: npt.NDArray[np.int64]
    means: npt.NDArray[np.float64]
    errors: npt.NDArray[np.float64]
    freedom: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """Bandwidth by number of I/O nodes; 0 is the direct way to the file system.

    Attributes
    ----------
    points : number of I/O nodes -> point; at least one
    source : where it is from, for people: "measured", "estimated from 3 patterns", ...
    """

    points: Mapping[int, Point]
    source: str = field(default="measured", kw_only=True)
    _columns: Columns | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.points:
            raise ArgumentError("a curve needs at least one point")
        if min(self.points) < 0:
            raise ArgumentError(f"a number of I/O nodes is >= 0, not {min(self.points)}")
        object.__setattr__(self, "points", dict(sorted(self.points.items())))

    @staticmethod
    def of(bandwidths: Mapping[int, float], *, source: str = "measured") -> Curve:
        """Return the curve of single figures in MB/s by number of I/O nodes."""
        return Curve({count: Point(mean=value, best=value) for count, value in bandwidths.items()}, source=source)

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of I/O nodes that have a point, ascending."""
        return tuple(self.points)

    def bandwidth(self, io_nodes: int) -> float:
        """Return the mean bandwidth in MB/s, linearly interpolated between two points.

        Raises
        ------
        ArgumentError
            The number lies outside the curve.
        """
        if io_nodes in self.points:
            return self.points[io_nodes].mean
        below = max((count for count in self.points if count < io_nodes), default=None)
        above = min((count for count in self.points if count > io_nodes), default=None)
        if below is None or above is None:
            raise ArgumentError(f"the curve has no point at {io_nodes} I/O nodes, only at {list(self.points)}")
        part = (io_nodes - below) / (above - below)
        return (1 - part) * self.points[below].mean + part * self.points[above].mean

    def relative_spread(self) -> float:
        """Return the standard deviation of a repetition relative to the mean, pooled over the points."""
        known = [
            (p.repetitions - 1, p.deviation / p.mean)
            for p in self.points.values()
            if p.deviation is not None and p.mean > 0 and p.repetitions > 1
        ]
        freedom = sum(n for n, _ in known)
        return math.sqrt(sum(n * s * s for n, s in known) / freedom) if freedom else UNKNOWN_SPREAD

    def _error(self, point: Point) -> tuple[float, int]:
        """Return the standard error of a point's mean, MB/s, and its degrees of freedom."""
        if point.deviation is not None and point.repetitions > 1:
            deviation, freedom = point.deviation, point.repetitions - 1
        else:
            pooled = sum(p.repetitions - 1 for p in self.points.values() if p.repetitions > 1)
            deviation, freedom = self.relative_spread() * point.mean, max(pooled, 1)
        return deviation / math.sqrt(max(point.repetitions, 1)), freedom

    def columns(self) -> Columns:
        """Return the curve as arrays; made once."""
        if self._columns is None:
            errors, freedom = zip(*(self._error(point) for point in self.points.values()), strict=True)
            made = Columns(
                np.array(self.counts),
                np.array([point.mean for point in self.points.values()]),
                np.array(errors),
                np.array(freedom, dtype=float),
            )
            object.__setattr__(self, "_columns", made)
            return made
        return self._columns
