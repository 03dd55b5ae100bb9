"""Blind spots of the regression watch: histories that are too short, and those without new jobs.

Problem. A watch of nothing finds nothing, which looks the same as a system that is well: a suite that stopped, a file
system that was taken out of it, a history too short for two levels.

Algorithm. A history is too short with fewer jobs than two levels have at least. It has stopped where the newest job of
the table is later than its own by more than a gap (:mod:`mpiio_ext.analytics.jobs.gaps`): others go on. Whether
all have stopped, only the clock can show it.

Guarantees. A history that began and has no usual interval yet is never called stopped; it is too short.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.jobs.climate.watch import Options, Watched
from mpiio_ext.analytics.jobs.gaps import longest_interval
from mpiio_ext.analytics.jobs.history import History, name_of


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A history without a job since `time` (s since 1970 UTC), while others of the table went on."""

    system: str
    motif: str
    scale: str
    time: float

    @property
    def name(self) -> str:
        """Name for people and for JSON: ``ior_fpp_write on scratch1``."""
        return name_of(self.motif, self.system, self.scale)


def newest(every: Sequence[History]) -> float | None:
    """Return when the newest job of all histories began, in s since 1970 UTC; None if none has a start."""
    starts = [float(np.nanmax(times)) for history in every if not np.isnan(times := history.jobs.times()).all()]
    return max(starts, default=None)


def too_few(every: Sequence[History], watched: Sequence[Watched], options: Options) -> int:
    """Return how many histories cannot have a change: they have fewer known values than two levels."""
    return len(every) - sum(one.jobs >= 2 * options.least for one in watched)


def stopped(every: Sequence[History]) -> list[Stopped]:
    """Return the histories that have stopped while others went on, the one that stopped last first."""
    last = newest(every)
    out = []
    for history in every:
        times = history.jobs.times()
        usual = longest_interval(times)
        if last is not None and usual is not None and last - float(np.nanmax(times)) > usual:
            out.append(
                Stopped(system=history.system, motif=history.motif, scale=history.scale, time=float(np.nanmax(times)))
            )
    return sorted(out, key=lambda one: -one.time)
