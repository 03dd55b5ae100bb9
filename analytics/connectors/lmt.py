"""The Lustre Monitoring Tool's records of the servers, in any of their forms, to rows of ``lmt``.

Problem. The same samples come as a database with counters that only grow (SQLite, or the text of ``mysqldump``), as
rates of the interval that *ends* at a stamp (h5lmt), or as bytes of the interval that *begins* at it (TOKIO's HDF5). A
sample may be lost, come twice or late, and a server that starts again counts from 0.

Rules
-----
- A row is one step of 5 s that begins at a multiple of 5, and one OST. All forms of one interval give the same rows.
- Samples belong to the nearest multiple of 5 s; of two at the same place the later counts.
- A counter's step is known when the samples at both ends are there. Otherwise, and where a counter went back, it is
  NULL, and the outcome says how many steps are.
- HDF5 of TOKIO marks lost values by -0.0 (or NaN), h5lmt in a matrix of its own.
- The index of an OST is the hexadecimal number in its name, ``snx11025-OST000f``; what stands before is the name of the
  file system.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import sqlite3
import zoneinfo
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.connectors.base import Converted, Outcome
from mpiio_ext.analytics.connectors.lmtdump import DumpError, load_dump
from mpiio_ext.analytics.connectors.lmthdf5 import read_hdf5
from mpiio_ext.analytics.connectors.lmtsteps import STEP_S, LmtError, Steps
from mpiio_ext.analytics.tables.schema import LMT

__all__ = ["STEP_S", "convert", "open_bases", "steps_of_counters", "utc_of_stamps"]

#: Steps of a gap that get rows of NULL; in a longer one (a day) the OST has no rows.
_LONGEST_GAP = 17280
_OST = re.compile(r"^(?P<fs>.*?)-?OST(?P<ost>[0-9a-fA-F]{1,8})(?:_UUID)?$")


def _ost_of(name: str) -> tuple[int, str]:
    match = _OST.match(name)
    if match is None or int(match["ost"], 16) >= 2**31:
        raise LmtError(f"{name[:40]!r} is no name of an OST")
    return int(match["ost"], 16), match["fs"]


def _table(parts: Sequence[Steps]) -> Any:
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


# ---- counters --------------------------------------------------------------------------------------------------------


def steps_of_counters(name: str, times: Any, read: Any, written: Any) -> Steps:
    """Return the steps of one OST.

    Parameters
    ----------
    times : (n,) array of seconds, ascending
    read, written : (n,) arrays of counters, NaN where they are absent
    """
    places = np.rint(times / STEP_S).astype(np.int64)
    last = np.append(places[1:] != places[:-1], True)
    places, read, written = places[last], read[last], written[last]
    gaps = np.diff(places)
    begins = places[:-1]
    known = gaps == 1
    values = []
    for counter in (read, written):
        moved = np.diff(counter)
        values.append(np.where(known & (moved >= 0), moved, np.nan))
    lost = [np.arange(begins[k], begins[k] + gaps[k]) for k in np.flatnonzero((gaps > 1) & (gaps <= _LONGEST_GAP))]
    kept = np.concatenate([begins[known], *lost])
    nothing = np.full(len(kept) - known.sum(), np.nan)
    return Steps(name, kept, *(np.concatenate([value[known], nothing]) for value in values))


def utc_of_stamps(stamps: Sequence[tuple[int, str]], zone: zoneinfo.ZoneInfo) -> dict[int, float]:
    """Return seconds since 1970 UTC of local times in the order of their numbers: clocks go back in autumn."""
    out, before = {}, -np.inf
    for number, text in stamps:
        try:
            local = datetime.datetime.fromisoformat(str(text)).replace(tzinfo=zone)
        except ValueError as error:
            raise LmtError(f"the time stamp {str(text)[:40]!r} is none") from error
        seconds = local.timestamp()
        if seconds < before <= (later := local.replace(fold=1).timestamp()):
            seconds = later
        out[number] = before = seconds
    return out


def _database(base: sqlite3.Connection, zone: zoneinfo.ZoneInfo) -> list[Steps]:
    try:
        names = base.execute("SELECT OST_ID, OST_NAME FROM OST_INFO ORDER BY OST_ID").fetchall()
        stamps = base.execute("SELECT TS_ID, TIMESTAMP FROM TIMESTAMP_INFO ORDER BY TS_ID").fetchall()
        utc = utc_of_stamps(stamps, zone)
        parts = []
        for number, name in names:
            rows = base.execute(
                "SELECT TS_ID, READ_BYTES, WRITE_BYTES FROM OST_DATA WHERE OST_ID = ? ORDER BY TS_ID", (number,)
            ).fetchall()
            rows = [row for row in rows if row[0] in utc]
            if rows:
                times = np.array([utc[row[0]] for row in rows])
                order = np.argsort(times, kind="stable")
                read, written = (np.array([row[k] for row in rows], dtype=np.float64)[order] for k in (1, 2))
                parts.append(steps_of_counters(str(name), times[order], read, written))
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise LmtError(f"no LMT database (OST_INFO, TIMESTAMP_INFO, OST_DATA), or a damaged one: {error}") from error
    return parts


# ---- all forms -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as base:
        yield base


@contextlib.contextmanager
def open_bases(path: Path) -> Iterator[tuple[list[sqlite3.Connection], str] | None]:
    """Open the LMT databases in a file, and say what is wrong with the rest of it; None: it is HDF5.

    Raises
    ------
    LmtError
        It is empty, or neither SQLite, HDF5 nor the text of ``mysqldump``.
    """
    with path.open("rb") as stream:
        head = stream.read(16)
    if not head:
        raise LmtError("empty")
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        yield None
        return
    with contextlib.ExitStack() as stack:
        if head.startswith(b"SQLite format 3"):
            yield [stack.enter_context(_sqlite(path))], ""
            return
        try:
            bases, problem = load_dump(path)
        except DumpError as error:
            raise LmtError(str(error)) from error
        yield [stack.enter_context(contextlib.closing(base)) for base in bases], problem


def _read(path: Path, zone: zoneinfo.ZoneInfo, between: tuple[float, float] | None) -> tuple[list[Steps], str]:
    """Return the steps of every OST, and what is wrong with the rest of the log."""
    with open_bases(path) as opened:
        if opened is None:
            return read_hdf5(path, between)
        bases, problem = opened
        return [part for base in bases for part in _database(base, zone)], problem


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
    logs : sequence of str
        Relative to `root`.
    root : str
    time_zone : str
        Of the time stamps in databases, which have none.
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
