"""Connectors of the store as connectors of sources: their tables, and what they say of a log as problems.

The connectors of Darshan, Slurm, LMT and results (:mod:`mpiio_ext.analytics.connectors.registry`) make tables of the
store's schema. Here they read one file, of which an outcome that is not whole becomes a :class:`~.records.Problem`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpiio_ext.analytics.connectors.registry import connector_for
from mpiio_ext.analytics.connectors.sources.records import Problems, SourceError

__all__ = ["converted", "no_form"]


def converted(
    kind: str, path: Path, time_zone: str, problems: Problems, between: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Return the tables that a connector of the store makes of one log.

    Parameters
    ----------
    kind : str
        darshan, slurm, lmt or results.
    path : Path
    time_zone : str
        Of times without zone.
    problems : Problems
        What the log's outcome says is added; how many lines are lost by it is not known (0).
    between : (float, float), optional
        Of lmt: the period that is read, in seconds since 1970 UTC.

    Raises
    ------
    SourceError
        The log is skipped.
    """
    options = {"time_zone": time_zone} | ({} if between is None else {"between": between})
    found = connector_for(kind, options)([path.name], str(path.parent))
    for outcome in found.outcomes:
        if outcome.status == "skipped":
            raise SourceError(str(path), 0, outcome.reason)
        if outcome.status == "partial":
            problems.add(0, outcome.reason, 0)
    return dict(found.tables)


def no_form(source: str, path: Path) -> SourceError:
    """Return the error of a source whose own form is not written here."""
    return SourceError(str(path), 0, f"{source} has no form that is written here; Records.save writes JSON")
