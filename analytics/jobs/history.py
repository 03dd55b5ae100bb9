"""Histories: jobs of the same application, layout and direction (the motif) on the same file system, by start."""

from __future__ import annotations

import dataclasses

from mpiio_ext.analytics.jobs.derived import groups_of
from mpiio_ext.analytics.jobs.table import Jobs

__all__ = ["UNKNOWN_MOTIF", "UNKNOWN_SYSTEM", "History", "histories", "name_of"]

UNKNOWN_MOTIF, UNKNOWN_SYSTEM = "motif not known", "file system not known"


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
        return name_of(self.motif, self.system)


def name_of(motif: str, system: str) -> str:
    """Return the name of a history; what is not known is said to be so."""
    return f"{motif or UNKNOWN_MOTIF} on {system}" if system else f"{motif or UNKNOWN_MOTIF}, {UNKNOWN_SYSTEM}"


def histories(table: Jobs, *, least: int = 1) -> list[History]:
    """Return the histories of a table whose rows are in order (:func:`mpiio_ext.analytics.jobs.select`).

    Rows whose file system or motif is not known, while that of others is, are of none.

    Parameters
    ----------
    table : Jobs
        With the derived columns.
    least : int
        Jobs that a history has at least; shorter ones are left out.
    """
    return [History(system=system, motif=motif, jobs=table.take(rows))
            for (system, motif), rows in groups_of(table).items() if len(rows) >= least]  # fmt: skip
