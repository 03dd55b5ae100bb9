"""Logs of Darshan, to the rows of the store's tables ``darshan_job`` and ``darshan_file``.

What is read, and how: :mod:`mpiio_ext.analytics.connectors.darshan`. The form of a log is written by Darshan alone.

Source: TOKIO, Section "Application behavior".
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.analytics.connectors.sources.records import Problems, Records
from mpiio_ext.analytics.connectors.sources.stored import converted, no_form
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB

if TYPE_CHECKING:
    from mpiio_ext.analytics.connectors.sources.registry import Head, Role

__all__ = ["MEANING", "NAME", "PATTERNS", "ROLE", "TABLES", "read", "recognizes", "write"]

NAME = "darshan"
MEANING = "runs of programs: logs of Darshan"
ROLE: Role = "programs"
PATTERNS = ("*.darshan", "*.darshan_partial")
TABLES = (DARSHAN_JOB, DARSHAN_FILE)


def recognizes(head: Head) -> bool:
    """Return whether a file is called as Darshan calls its logs."""
    return head.path.suffix in (".darshan", ".darshan_partial")


def read(path: Path, time_zone: str = "UTC") -> Records:
    """Read a log.

    Parameters
    ----------
    path : Path
    time_zone : str
        Not used: the times are seconds since 1970.

    Raises
    ------
    SourceError
        Nothing of it can be read.
    """
    problems = Problems(str(path))
    tables = converted(NAME, path, time_zone, problems)
    return Records(source=NAME, path=str(path), tables=tables, problems=problems.all())


def write(records: Records, path: Path) -> None:  # noqa: ARG001
    """Raise SourceError: a log is written by Darshan alone."""
    raise no_form(NAME, path)
