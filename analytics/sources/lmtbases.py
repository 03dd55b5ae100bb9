"""LMT's databases: opening one (SQLite, or the text of ``mysqldump``), its stamps, and counters to steps of OSTs."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
import zoneinfo
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mpiio_ext.analytics.sources.content import read_only
from mpiio_ext.analytics.sources.lmtdump import DumpError, load_dump
from mpiio_ext.analytics.sources.lmtsteps import STEP_S, LmtError, Steps
from mpiio_ext.analytics.tables.arrays import Numbers

#: Steps of a gap that get rows of NULL; in a longer one (a day) the OST has no rows.
_LONGEST_GAP = 17280


def steps_of_counters(name: str, times: Numbers, read: Numbers, written: Numbers) -> Steps:
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


def steps_of_base(base: sqlite3.Connection, zone: zoneinfo.ZoneInfo) -> list[Steps]:
    """Return the steps of every OST of a database.

    Raises
    ------
    LmtError
        It is none, or damaged.
    """
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
            yield [stack.enter_context(contextlib.closing(read_only(path)))], ""
            return
        try:
            bases, problem = load_dump(path)
        except DumpError as error:
            raise LmtError(str(error)) from error
        yield [stack.enter_context(contextlib.closing(base)) for base in bases], problem
