"""Base of sources: a source recognises its files, reads one, and returns tables and what could not be read.

A source is an instance of :class:`Source`, under the name ``SOURCE`` in a module of its own. It has no state, and
prints nothing. Sources whose logs the store takes (Darshan, Slurm, LMT, results) also have a function ``convert(logs,
root, **options) -> Converted``. It gets a chunk of logs, so that a loop in C or a vectorised conversion pays. It never
raises an error for a bad log: the log is ``skipped`` with a reason, or ``partial`` with the readable part and the
reason for the rest. It is called in worker processes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from mpiio_ext.analytics.sources.records import Problems, Records, Row, SourceError, make_table
from mpiio_ext.analytics.tables.schema import Table

if TYPE_CHECKING:
    import pyarrow as pa

#: What a source is good for: what servers moved; how full targets are; which server a target is on; jobs; where nodes
#: are; any series over time; runs of programs.
Role = Literal["traffic", "fullness", "failover", "jobs", "topology", "series", "programs"]
#: A half-open period, in seconds since 1970 UTC.
Period = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Head:
    """The beginning of a file, by which it is recognised.

    Attributes
    ----------
    data : bytes
        Up to 64 KiB of it, uncompressed; empty for a folder.
    tables : frozenset of str
        Names of the tables of an SQLite database; empty for other files.
    members : tuple of str
        Names of the first files of a tar archive; empty for other files.
    """

    path: Path
    data: bytes
    tables: frozenset[str] = frozenset()
    members: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The first bytes of the file, as text; bytes that are no text are U+FFFD."""
        return self.data.decode("utf-8", "replace")


@dataclasses.dataclass(frozen=True)
class File:
    """A file to read, the time zone of its times without zone, the wanted part, and the mistakes."""

    path: Path
    problems: Problems
    time_zone: str = "UTC"
    between: Period | None = None


#: Tables by name (or their columns, or rows, of Python values), and the header.
Parsed = tuple[Mapping[str, "pa.Table | Mapping[str, Sequence[object]] | list[Row]"], Mapping[str, object]]


class Source:
    """A source of monitoring data; see :class:`~.records.Records` for its results.

    Attributes
    ----------
    NAME : str
        Name of the source.
    MEANING : str
        One line for people.
    ROLE : str
        One of :data:`Role`.
    TABLES : tuple of Table
        The tables that it returns: names, types, units and meanings of their columns.
    PATTERNS : tuple of str
        Usual names of its files (shell patterns).
    CUTS : bool
        A part of a file can be read.
    """

    NAME: str
    MEANING: str
    ROLE: Role
    TABLES: tuple[Table, ...]
    PATTERNS: tuple[str, ...]
    CUTS = False

    def recognizes(self, head: Head) -> bool:
        """Return whether a file is of this source, by its beginning."""
        raise NotImplementedError

    def local_times(self, head: Head) -> bool:  # noqa: ARG002  (of most sources the times have a zone)
        """Return whether the times of a file have no zone."""
        return False

    def parse(self, file: File) -> Parsed:
        """Return tables and header of a file; its mistakes are added to its problems.

        Raises
        ------
        SourceError
            No part of the file can be read.
        """
        raise NotImplementedError

    def read(self, path: Path, time_zone: str = "UTC", between: Period | None = None) -> Records:
        """Read a file, compressed by gzip or not.

        Parameters
        ----------
        time_zone : str
            Of times without zone, a name as Europe/Berlin.
        between : (float, float), optional
            The part that is wanted, where the source can read one.

        Raises
        ------
        SourceError
            No part of the file can be read. A line that cannot be read is no error: it is among the problems.
        """
        file = File(path, Problems(str(path)), time_zone, between)
        found, header = self.parse(file)
        known = {table.name: table for table in self.TABLES}
        tables = {
            name: make_table(known[name], table) if isinstance(table, (Mapping, list)) else table
            for name, table in found.items()
        }
        return Records(source=self.NAME, path=str(path), tables=tables, header=header, problems=file.problems.all())


# ---- logs of the store -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of one log.

    Attributes
    ----------
    log : str
        Path of the log, relative to its input folder.
    status : {"whole", "partial", "skipped"}
    reason : str
        Why it is partial or skipped, for people; empty when whole.
    log_id : int
        The ID of its rows (``source_log`` where that is not NULL, else ``log_id``); 0 if it has none.
    rows : mapping of str to int
        Rows that it gave, by table.
    """

    log: str
    status: Literal["whole", "partial", "skipped"]
    reason: str = ""
    log_id: int = 0
    rows: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Converted:
    """Tables by name (:mod:`mpiio_ext.analytics.tables.schema`; ``darshan_file`` without OST words), and outcomes."""

    tables: Mapping[str, pa.Table]
    outcomes: Sequence[Outcome]


class Connector(Protocol):
    """Convert logs of one kind: Darshan, Slurm, LMT, results of the bench."""

    def __call__(self, logs: Sequence[str], root: str) -> Converted:
        """Convert `logs` (paths relative to the folder `root`) to Arrow tables of the unified schema."""
        ...


def taken(found: Converted, file: File) -> dict[str, pa.Table]:
    """Return the converted rows of one log; its outcome becomes a problem, of no known number of lines.

    Raises
    ------
    SourceError
        The log is skipped.
    """
    for outcome in found.outcomes:
        if outcome.status == "skipped":
            raise SourceError(str(file.path), 0, outcome.reason)
        if outcome.status == "partial":
            file.problems.add(0, outcome.reason, 0)
    return dict(found.tables)
