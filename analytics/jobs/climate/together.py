"""Falls of many histories at the same time, put together: a file system fell, not thirty programs.

Algorithm. The regressions of a file system are sorted by their day; where the next is no more than a few days later, it
belongs to the same fall: noise moves each day a little. Groups of two or more histories are reported, the largest
first.

Guarantees. Each regression is in one group at most; the regressions themselves stay as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.jobs.climate.watch import Watched

#: Longest time between two that belong together, in s.
_APART = 3 * 86400.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """Histories of a file system that fell together.

    Attributes
    ----------
    first, middle, last : earliest, median and latest change, in s since 1970 UTC.
    fallen, watched : histories that fell, and all of the file system.
    ratio : median of the medians after over those before.
    """

    system: str
    first: float
    middle: float
    last: float
    fallen: int
    watched: int
    ratio: float


def falls(every: Sequence[Watched]) -> list[Fall]:
    """Return the falls of two histories or more, the largest first."""
    out = []
    for system in dict.fromkeys(one.system for one in every):
        mine = [one for one in every if one.system == system]
        fallen = sorted((one.regression for one in mine if one.regression is not None), key=lambda shift: shift.time)
        times = np.array([shift.time for shift in fallen])
        for places in np.split(np.arange(len(fallen)), np.flatnonzero(np.diff(times) > _APART) + 1):
            if len(places) > 1:
                ratio = float(np.median([fallen[at].change.ratio for at in places.tolist()]))
                out.append(
                    Fall(
                        system=system,
                        first=float(times[places[0]]),
                        middle=float(np.median(times[places])),
                        last=float(times[places[-1]]),
                        fallen=len(places),
                        watched=len(mine),
                        ratio=ratio,
                    )
                )
    return sorted(out, key=lambda fall: -fall.fallen)
