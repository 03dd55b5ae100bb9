"""Histories: jobs of the same application, layout and direction (the motif) on the same file system, by start."""

from __future__ import annotations

import dataclasses

from mpiio_ext.analytics.histories.derived import groups_of
from mpiio_ext.analytics.histories.table import Jobs

__all__ = ["History", "histories"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Jobs that can be compared with each other.

    Attributes
    ----------
    system, motif : str
        File system, and kind of I/O such as ``ior_fpp_write``.
    jobs : Jobs
        A row per job, by start, with the derived columns.
    """

    system: str
    motif: str
    jobs: Jobs

    @property
    def name(self) -> str:
        """Name for people and for JSON: ``ior_fpp_write on scratch1``."""
        return f"{self.motif} on {self.system}" if self.system else self.motif


def histories(table: Jobs, *, least: int = 1) -> list[History]:
    """Return the histories of a table whose rows are in order (:func:`mpiio_ext.analytics.histories.select`).

    Parameters
    ----------
    table : Jobs
        With the derived columns.
    least : int
        Jobs that a history has at least; shorter ones are left out.
    """
    return [History(system=system, motif=motif, jobs=table.take(rows))
            for (system, motif), rows in groups_of(table).items() if len(rows) >= least]  # fmt: skip
