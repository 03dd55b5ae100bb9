"""Histories: jobs of the same application, layout and direction (the motif), file system and processes, by start.

Pauses of a history: times between two jobs so long that something has stopped, or was down.

Problem. A line drawn through weeks without a job shows values that were not measured, and a history that has stopped
looks as quiet as one that is well. How long is too long depends on how often the jobs run.

Algorithm. A gap is an interval of more than `MANY` median intervals of the history, and of more than a day: jobs of one
session follow each other in minutes. Jobs that began at the same time are one.

Guarantees. A history of fewer than three starts has no gap of its own, since it has no usual interval.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpiio_ext.analytics.jobs.derived import groups_of
from mpiio_ext.analytics.jobs.table import Jobs
from mpiio_ext.analytics.tables.arrays import Numbers

UNKNOWN_MOTIF, UNKNOWN_SYSTEM = "motif not known", "file system not known"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Jobs that can be compared with each other.

    Attributes
    ----------
    system, motif : str
        File system, and kind of I/O such as ``ior_fpp_write``.
    scale : str
        Its processes, such as ``512`` or ``512 to 1024``; "" if the motif has no other history on the file system.
    jobs : Jobs
        A row per job, by start, with the derived columns.
    """

    system: str
    motif: str
    scale: str = ""
    jobs: Jobs

    @property
    def name(self) -> str:
        """Name for people and for JSON: ``ior_fpp_write on scratch1``."""
        return name_of(self.motif, self.system, self.scale)

    def having(self, column: str) -> History:
        """Return the jobs of which a column of numbers has a value."""
        return dataclasses.replace(self, jobs=self.jobs.take(~np.isnan(self.jobs.numbers(column))))


def kind_of(motif: str, scale: str) -> str:
    """Return motif and processes of a history: ``ior_fpp_write (512 processes)``."""
    return (motif or UNKNOWN_MOTIF) + (f" ({scale} processes)" if scale else "")


def name_of(motif: str, system: str, scale: str = "") -> str:
    """Return the name of a history; unknown parts are called so."""
    return kind_of(motif, scale) + (f" on {system}" if system else f", {UNKNOWN_SYSTEM}")


def histories(table: Jobs, *, least: int = 1) -> list[History]:
    """Return the histories of a table whose rows are in order (:func:`mpiio_ext.analytics.jobs.select`).

    Rows whose file system, motif or processes are not known, while those of others are, are of none.

    Parameters
    ----------
    table : Jobs
        With the derived columns.
    least : int
        Jobs that a history has at least; shorter ones are left out.
    """
    return [
        History(system=system, motif=motif, scale=scale, jobs=table.take(rows))
        for (system, motif, scale), rows in groups_of(table).items()
        if len(rows) >= least
    ]


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
