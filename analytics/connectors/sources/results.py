"""Our own runs: results of the bench, and statistics of the library, to the store's tables.

What is read, and how: :mod:`mpiio_ext.analytics.connectors.results`. These forms are written by the bench and the
library alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.analytics.connectors.sources.content import first_lines
from mpiio_ext.analytics.connectors.sources.records import Problems, Records
from mpiio_ext.analytics.connectors.sources.stored import converted, no_form
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB, RUNS

if TYPE_CHECKING:
    from mpiio_ext.analytics.connectors.sources.registry import Head, Role

__all__ = ["MEANING", "NAME", "PATTERNS", "ROLE", "TABLES", "read", "recognizes", "write"]

NAME = "results"
MEANING = "our own runs: results of the bench (results.json), statistics of the library (JSON lines)"
ROLE: Role = "programs"
PATTERNS = ("results.json", "*.jsonl")
TABLES = (RUNS, DARSHAN_JOB, DARSHAN_FILE)

_LINE = re.compile(r'"kind"\s*:\s*"(?:file|run)"')


def recognizes(head: Head) -> bool:
    """Return whether a file is called results.json, or its first line is one of the library's statistics."""
    if head.path.name == "results.json":
        return True
    lines = first_lines(head.text, 1)
    return bool(lines) and lines[0].startswith("{") and _LINE.search(lines[0]) is not None


def read(path: Path, time_zone: str = "UTC") -> Records:
    """Read results or statistics.

    Parameters
    ----------
    path : Path
    time_zone : str
        Not used: the times are seconds since 1970.

    Raises
    ------
    SourceError
        It is neither.
    """
    problems = Problems(str(path))
    tables = converted(NAME, path, time_zone, problems)
    return Records(source=NAME, path=str(path), tables=tables, problems=problems.all())


def write(records: Records, path: Path) -> None:  # noqa: ARG001
    """Raise SourceError: these are written by the bench and the library alone."""
    raise no_form(NAME, path)
