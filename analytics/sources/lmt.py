"""The Lustre Monitoring Tool's records of the servers, in any of their forms, to rows of ``lmt``.

Problem. The same samples come in three forms: a database with counters that only grow (SQLite, or the text of
``mysqldump``); rates of the interval that *ends* at a stamp (h5lmt); bytes of the interval that *begins* at it (TOKIO's
HDF5). A sample may be lost, come twice or late, and a server that starts again counts from 0.

Rules
-----
- A row is one step of 5 s that begins at a multiple of 5, and one OST. All forms of one interval give the same rows.
- Samples belong to the nearest multiple of 5 s; of two at the same place the later counts.
- A counter's step is known when the samples at both ends are there. Otherwise, and where a counter went back, it is
  NULL, and the outcome says how many steps are.
- HDF5 of TOKIO marks lost values by -0.0 (or NaN), h5lmt in a matrix of its own.
- The index of an OST is the hexadecimal number in its name, ``snx11025-OST000f``; what stands before is the name of the
  file system.

What stands beside ``lmt`` in the same records: :mod:`.lmttables`; and time series of other tools that pytokio has
archived, which are no OSTs in steps of 5 s: :mod:`.tokiots`.

Source: TOKIO, Section "Storage system traffic" (LMT).
"""

from __future__ import annotations

import re
import sqlite3
import zoneinfo
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.readerprocess import is_hdf5
from mpiio_ext.analytics.sources.base import Converted, File, Head, Outcome, Parsed, Source, taken
from mpiio_ext.analytics.sources.lmtbases import open_bases, steps_of_base
from mpiio_ext.analytics.sources.lmthdf5 import read_hdf5
from mpiio_ext.analytics.sources.lmtsteps import STEP_S, LmtError, Steps
from mpiio_ext.analytics.sources.lmttables import OTHERS, other_tables
from mpiio_ext.analytics.sources.records import SourceError
from mpiio_ext.analytics.sources.tokiots import TIMESERIES, read_timeseries
from mpiio_ext.analytics.tables.schema import LMT

_HDF5 = b"\x89HDF\r\n\x1a\n"
_OST = re.compile(r"^(?P<fs>.*?)-?OST(?P<ost>[0-9a-fA-F]{1,8})(?:_UUID)?$")


def _ost_of(name: str) -> tuple[int, str]:
    match = _OST.match(name)
    if match is None or int(match["ost"], 16) >= 2**31:
        raise LmtError(f"{name[:40]!r} is no name of an OST")
    return int(match["ost"], 16), match["fs"]


def _table(parts: Sequence[Steps]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in LMT.names()}
    for part in parts:
        ost, system = _ost_of(part.name)
        count = len(part.steps)
        columns["time"].append(pa.array(part.steps.astype(np.float64) * STEP_S))
        columns["ost"].append(pa.array(np.full(count, ost, dtype=np.int32)))
        columns["ost_name"].append(pa.repeat(part.name, count))
        columns["file_system"].append(pa.repeat(system, count) if system else pa.nulls(count, pa.string()))
        for name, values in (("bytes_read", part.read), ("bytes_written", part.written)):
            columns[name].append(pa.array(np.rint(values), mask=np.isnan(values)))
    schema = LMT.schema()
    return pa.table([pa.chunked_array(columns[field.name], field.type) for field in schema], schema=schema)


def _missing(parts: Sequence[Steps]) -> int:
    return sum(int((np.isnan(part.read) | np.isnan(part.written)).sum()) for part in parts)


# ---- all forms -------------------------------------------------------------------------------------------------------


def _read(path: Path, zone: zoneinfo.ZoneInfo, between: tuple[float, float] | None) -> tuple[list[Steps], str]:
    """Return the steps of every OST, and what is wrong with the rest of the log."""
    with open_bases(path) as opened:
        if opened is None:
            return read_hdf5(path, between)
        bases, problem = opened
        return [part for base in bases for part in steps_of_base(base, zone)], problem


def _named(parts: Sequence[Steps], problem: str) -> tuple[list[Steps], str]:
    """Return the parts that have the name of an OST, and what is wrong with the others."""
    kept, lines = [], [problem]
    for part in parts:
        try:
            _ost_of(part.name)
            kept.append(part)
        except LmtError as error:
            lines.append(f"left out: {error}")
    if not kept and len(lines) > 1:
        raise LmtError(lines[1].removeprefix("left out: "))
    return kept, "; ".join(filter(None, lines[:3]))


def _outcome(log: str, parts: Sequence[Steps], problem: str) -> Outcome:
    missing = _missing(parts)
    if missing:
        lost = f"{missing:,} steps of an OST are NULL"
        problem = f"{problem}; {lost}" if problem else f"{lost}: samples were lost, or a counter started again"
    rows = {"lmt": sum(len(part.steps) for part in parts)}
    return Outcome(log, "partial" if problem else "whole", problem, 0, rows)


def convert(
    logs: Sequence[str], root: str, time_zone: str = "UTC", between: tuple[float, float] | None = None
) -> Converted:
    """Convert records of LMT to rows of ``lmt``.

    Parameters
    ----------
    logs : relative to `root`.
    root : str
    time_zone : of the time stamps in databases, which have none.
    between : (float, float), optional
        Read the steps of this half-open period only (s since 1970 UTC), and some around it; of HDF5, other forms are
        read as a whole.
    """
    zone = zoneinfo.ZoneInfo(time_zone)
    tables, outcomes = [LMT.schema().empty_table()], []
    for log in logs:
        try:
            parts, problem = _read(Path(root) / log, zone, between)
            parts, problem = _named([part for part in parts if len(part.steps)], problem)
            if not parts:
                raise LmtError("; ".join(filter(None, ["no two samples of an OST", problem])))
            tables.append(_table(parts))
            outcomes.append(_outcome(log, parts, problem))
        except LmtError as error:
            outcomes.append(Outcome(log, "skipped", str(error)))
        except (OSError, EOFError, sqlite3.Error) as error:
            outcomes.append(Outcome(log, "skipped", f"cannot be read: {error}"))
    return Converted({"lmt": pa.concat_tables(tables)}, outcomes)


class Lmt(Source):
    """A database of LMT (SQLite, or the text of ``mysqldump``), h5lmt, or TOKIO's HDF5."""

    NAME = "lmt"
    MEANING = "what servers moved: LMT's database (SQLite, mysqldump), h5lmt, or TOKIO's HDF5 (of any tool)"
    ROLE = "traffic"
    PATTERNS = ("*.h5lmt", "*.hdf5", "*.h5", "*.sqlite3", "*.sql", "*.sql.gz")
    TABLES = (LMT, *OTHERS, TIMESERIES)
    CUTS = True

    def recognizes(self, head: Head) -> bool:
        is_dump = "OST_INFO" in head.text and "CREATE TABLE" in head.text
        return "OST_INFO" in head.tables or head.data.startswith(_HDF5) or is_dump

    def local_times(self, head: Head) -> bool:
        return not head.data.startswith(_HDF5)  # in which times are seconds since 1970

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        try:
            zone = zoneinfo.ZoneInfo(file.time_zone)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError) as error:
            raise SourceError(str(path), 0, f"{file.time_zone!r} is no time zone of this machine") from error
        empty = {table.name: table.schema().empty_table() for table in self.TABLES}
        try:
            tables = taken(convert([path.name], str(path.parent), file.time_zone, file.between), file)
        except SourceError:
            found = read_timeseries(path, file.between, problems, everything=True) if is_hdf5(path) else None
            if found is None or not found.num_rows:
                raise
            return {**empty, "timeseries": found}, {}
        found = read_timeseries(path, file.between, problems, everything=False) if is_hdf5(path) else None
        tables = {**tables, **other_tables(path, zone, problems, file.between)}
        return {**empty, **tables, **({} if found is None else {"timeseries": found})}, {}


SOURCE = Lmt()
