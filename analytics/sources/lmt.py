"""The Lustre Monitoring Tool's records of the servers, in any of their forms, to tables.

Problem. The same samples come in three forms: a database with counters that only grow (SQLite, or the text of
``mysqldump``); rates of the interval that *ends* at a stamp (h5lmt); bytes of the interval that *begins* at it (TOKIO's
HDF5). A sample may be lost, come twice or late, and a server that starts again counts from 0.

Rules
-----
- A row of ``lmt`` is one step of 5 s that begins at a multiple of 5, and one OST; of ``operations`` a step, a metadata
  server and an operation. Loads (``servers``) and fullness are samples, and keep their stamps. All forms of one
  interval give the same rows.
- Samples belong to the nearest multiple of 5 s; of two at the same place the later counts.
- A counter's step is known when the samples at both ends are there. Otherwise, and where a counter went back, it is
  NULL, and the outcome says how many steps are.
- HDF5 of TOKIO marks lost values by -0.0 (or NaN), h5lmt in a matrix of its own.
- The index of an OST is the hexadecimal number in its name, ``snx11025-OST000f``; what stands before is the name of the
  file system.

What reads damaged matrices, and parts of them: :mod:`.matrices`; dumps: :mod:`.mysqldump`.

Source: TOKIO, Section "Storage system traffic" (LMT).
"""

from __future__ import annotations

import contextlib
import datetime
import re
import sqlite3
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.readerprocess import is_hdf5
from mpiio_ext.analytics.sources.base import Converted, File, Head, Outcome, Parsed, Period, Source
from mpiio_ext.analytics.sources.content import read_only
from mpiio_ext.analytics.sources.matrices import DAMAGE, Columns, Matrices, open_matrices
from mpiio_ext.analytics.sources.mysqldump import load
from mpiio_ext.analytics.sources.records import LogError, Problems, SourceError
from mpiio_ext.analytics.tables.arrays import Numbers, Whole
from mpiio_ext.analytics.tables.schema import LMT, Column, Table

_STEP_S = 5  # seconds of a step
#: Steps of a gap that get rows of NULL; in a longer one (a day) the OST has no rows.
_LONGEST_GAP = 17280
_HDF5 = b"\x89HDF\r\n\x1a\n"
_NOT_WHOLE = "loads, operations and fullness are not whole"
_OST = re.compile(r"^(?P<fs>.*?)-?OST(?P<ost>[0-9a-fA-F]{1,8})(?:_UUID)?$")

_TIME = Column("time", "float64", "s since 1970 UTC", "of the sample")
SERVERS = Table(
    "servers",
    "one row a sample and a server: its load",
    (
        _TIME,
        Column("server", "string", "", "name of the host; NULL of the metadata server in h5lmt"),
        Column("kind", "string", "", "oss or mds"),
        Column("quantity", "string", "", "cpu or memory"),
        Column("value", "float64", "%", "of the server; NULL where LMT lost it"),
    ),
)
OPERATIONS = Table(
    "operations",
    "one row a step of 5 s, a metadata server and an operation that it knows",
    (
        Column("time", "float64", "s since 1970 UTC", "start of the half-open step"),
        Column("server", "string", "", "name of the host; NULL in h5lmt, which does not have it"),
        Column("operation", "string", "", "open, close, getattr …"),
        Column("count", "float64", "count", "in this step; NULL where LMT lost it"),
    ),
)
FULLNESS = Table(
    "fullness",
    "one row a sample and a target: how full it was",
    (
        _TIME,
        Column("target", "string", "", "snx11025-OST001f"),
        Column("kind", "string", "", "OST or MDT"),
        Column("used_kib", "float64", "KiB", "used"),
        Column("total_kib", "float64", "KiB", "size"),
        Column("inodes_used", "float64", "count", "inodes used"),
        Column("inodes_total", "float64", "count", "inodes"),
    ),
)
_FULL = FULLNESS.names()[3:]
#: Group of TOKIO's HDF5 -> its datasets, and what they are called here; of mdtargets all, which are operations.
_TOKIO = {
    "dataservers": {"cpuload": "cpu", "memused": "memory"},
    "mdservers": {"cpuload": "cpu"},
    "fullness": dict(zip(("bytes", "bytestotal", "inodes", "inodestotal"), _FULL, strict=True)),
}
#: Table of a dump -> the columns that are needed, with MySQL's order in LMT's schema 1.1 for dumps without it.
_DUMPED = {
    "OST_INFO": ("OST_ID", "OSS_ID", "OST_NAME"),
    "TIMESTAMP_INFO": ("TS_ID", "TIMESTAMP"),
    "OST_DATA": ("OST_ID", "TS_ID", "READ_BYTES", "WRITE_BYTES"),
}
#: Rows of a table, by its name.
_Found = tuple[str, pa.Table]
#: Steps of one OST: its name, their numbers (time / 5 s), and bytes read and written, NaN if they are not known.
_Part = tuple[str, Whole, Numbers, Numbers]


def _rows(table: Table, times: Numbers, values: Mapping[str, Numbers], **constants: str | int | None) -> _Found:
    """Return rows of a table: an array of times, arrays of values (NaN: NULL), and values that all rows share."""
    columns = {field.name: pa.scalar(constants.get(field.name), field.type) for field in table.schema()}
    columns = {name: pa.repeat(value, len(times)) for name, value in columns.items()} | {"time": pa.array(times)}
    columns |= {name: pa.array(array, mask=np.isnan(array)) for name, array in values.items()}
    return table.name, pa.table(columns, schema=table.schema())


# ---- databases -------------------------------------------------------------------------------------------------------


def _steps_of_counters(times: Numbers, *counters: Numbers) -> tuple[Whole, list[Numbers]]:
    """Return numbers of steps, and how far counters moved in each; `times`: (n,) s, ascending; NaN: no sample."""
    places = np.rint(times / _STEP_S).astype(np.int64)
    last = np.append(places[1:] != places[:-1], True)
    places = places[last]
    gaps, begins = np.diff(places), places[:-1]
    known = gaps == 1
    lost = [np.arange(begins[k], begins[k] + gaps[k]) for k in np.flatnonzero((gaps > 1) & (gaps <= _LONGEST_GAP))]
    kept = np.concatenate([begins[known], *lost])
    nothing = np.full(len(kept) - known.sum(), np.nan)
    moved = [np.diff(counter[last])[known] for counter in counters]
    return kept, [np.concatenate([np.where(each >= 0, each, np.nan), nothing]) for each in moved]


def _utc_of_stamps(stamps: Sequence[tuple[int, str]], zone: zoneinfo.ZoneInfo) -> dict[int, float]:
    """Return seconds since 1970 UTC of local times in the order of their numbers: clocks go back in autumn."""
    out, before = {}, -np.inf
    for number, text in stamps:
        try:
            local = datetime.datetime.fromisoformat(str(text)).replace(tzinfo=zone)
        except ValueError as error:
            raise LogError(f"the time stamp {str(text)[:40]!r} is none") from error
        seconds = local.timestamp()
        if seconds < before <= (later := local.replace(fold=1).timestamp()):
            seconds = later
        out[number] = before = seconds
    return out


class _Bases:
    """LMT's databases of a file."""

    def __init__(self, bases: Sequence[sqlite3.Connection], problem: str, zone: zoneinfo.ZoneInfo) -> None:
        self._bases, self._problem, self._zone = bases, problem, zone

    def osts(self) -> tuple[list[_Part], str]:
        """Return the steps of every OST, and the mistakes of the rest."""
        parts = []
        try:
            for base in self._bases:
                names = self._names(base, "OST", "OST_NAME")
                utc = self._utc(base)
                for number, name in names:
                    times, columns = _samples(base, "OST", "READ_BYTES, WRITE_BYTES", number, utc)
                    if columns:
                        steps, (read, written) = _steps_of_counters(times, *columns)
                        parts.append((name, steps, read, written))
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise LogError(f"no LMT database ({', '.join(_DUMPED)}), or a damaged one: {error}") from error
        return parts, self._problem

    @staticmethod
    def _names(base: sqlite3.Connection, what: str, column: str) -> list[tuple[int, str]]:
        query = f"SELECT {what}_ID, {column} FROM {what}_INFO ORDER BY {what}_ID"
        return [(number, str(name)) for number, name in base.execute(query).fetchall()]

    def _utc(self, base: sqlite3.Connection) -> dict[int, float]:
        stamps = base.execute("SELECT TS_ID, TIMESTAMP FROM TIMESTAMP_INFO ORDER BY TS_ID").fetchall()
        return _utc_of_stamps(stamps, self._zone)

    def others(self, problems: Problems) -> Iterator[_Found]:
        """Yield the other tables of the databases; older ones lack tables, which is no damage."""
        steps: tuple[tuple[Callable[..., Iterator[_Found]], set[str]], ...] = (
            (self._loads, {"OSS_INFO", "OSS_DATA", "MDS_INFO", "MDS_DATA"}),
            (self._operations, {"MDS_INFO", "OPERATION_INFO", "MDS_OPS_DATA"}),
            (self._fullness, {"OST_INFO", "OST_DATA", "MDS_INFO", "MDS_DATA"}),
        )
        for base in self._bases:
            present = {str(row[0]) for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            utc = self._utc(base)
            for step, wanted in steps:
                if wanted <= present:
                    try:
                        yield from step(base, utc)
                    except (sqlite3.Error, ValueError, TypeError) as error:
                        problems.add(0, f"{', '.join(sorted(wanted))} cannot be read: {error}", 0)

    def _loads(self, base: sqlite3.Connection, utc: dict[int, float]) -> Iterator[_Found]:
        for what, loads in (("OSS", {"cpu": "PCT_CPU", "memory": "PCT_MEMORY"}), ("MDS", {"cpu": "PCT_CPU"})):
            for number, name in self._names(base, what, "HOSTNAME"):
                times, values = _samples(base, what, ", ".join(loads.values()), number, utc)
                for quantity, found in zip(loads, values, strict=False):
                    yield _rows(SERVERS, times, {"value": found}, server=name, kind=what.lower(), quantity=quantity)

    def _fullness(self, base: sqlite3.Connection, utc: dict[int, float]) -> Iterator[_Found]:
        for kind, what in (("OST", "OST"), ("MDT", "MDS")):
            for number, name in self._names(base, what, f"{what}_NAME"):
                columns = "KBYTES_USED, KBYTES_FREE, INODES_USED, INODES_FREE"
                times, values = _samples(base, what, columns, number, utc)
                if values:
                    kib, kib_free, inodes, inodes_free = values
                    full = dict(zip(_FULL, (kib, kib + kib_free, inodes, inodes + inodes_free), strict=True))
                    yield _rows(FULLNESS, times, full, target=name, kind=kind)

    def _operations(self, base: sqlite3.Connection, utc: dict[int, float]) -> Iterator[_Found]:
        operations = self._names(base, "OPERATION", "OPERATION_NAME")
        for server, name in self._names(base, "MDS", "HOSTNAME"):
            rows: dict[Any, list[tuple[float, Any]]] = {}
            query = "SELECT TS_ID, OPERATION_ID, SAMPLES FROM MDS_OPS_DATA WHERE MDS_ID = ? ORDER BY TS_ID"
            for stamp, operation, samples in base.execute(query, (server,)):
                if stamp in utc:
                    rows.setdefault(operation, []).append((utc[stamp], samples))
            for operation, called in operations:
                found = sorted(rows.get(operation, ()), key=lambda row: row[0])
                if len(found) > 1:
                    counter = np.array([samples for _, samples in found], dtype=np.float64)
                    steps, (count,) = _steps_of_counters(np.array([time for time, _ in found]), counter)
                    begins = steps * np.float64(_STEP_S)
                    yield _rows(OPERATIONS, begins, {"count": count}, server=name, operation=called)


def _samples(
    base: sqlite3.Connection, what: str, columns: str, number: int, utc: dict[int, float]
) -> tuple[Numbers, list[Numbers]]:
    """Return the times and the columns (NaN: nothing) of one server, in the order of time; no columns without rows."""
    query = f"SELECT TS_ID, {columns} FROM {what}_DATA WHERE {what}_ID = ? ORDER BY TS_ID"
    rows = [row for row in base.execute(query, (number,)).fetchall() if row[0] in utc]
    times = np.array([utc[row[0]] for row in rows], dtype=np.float64)
    order = np.argsort(times, kind="stable")
    width = len(rows[0]) if rows else 0
    return times[order], [np.array([row[at] for row in rows], dtype=np.float64)[order] for at in range(1, width)]


# ---- HDF5 ------------------------------------------------------------------------------------------------------------


class _Hdf5:
    """A file of either form. It is opened anew for each query: HDF5 may then return what it has refused once."""

    def __init__(self, path: Path, between: Period | None) -> None:
        self._path, self._between = path, between

    def osts(self) -> tuple[list[_Part], str]:
        """Return the steps of every OST, and the parts that cannot be read."""
        try:
            with open_matrices(self._path, self._between) as m:
                if "OSTReadGroup" in m.file or "OSTWriteGroup" in m.file:
                    return _h5lmt(m), m.noted()
                if "datatargets" in m.file:
                    return _tokio(m), m.noted()
        except (*DAMAGE, MemoryError) as error:
            raise LogError(f"HDF5 that cannot be read: {error}") from error
        raise LogError("HDF5, but neither h5lmt nor TOKIO's: it has neither OSTReadGroup nor datatargets")

    def others(self, problems: Problems) -> Iterator[_Found]:
        """Yield the other tables."""
        m = None
        try:
            with open_matrices(self._path, self._between) as m:
                yield from _h5lmt_others(m) if "FSStepsGroup" in m.file else _tokio_others(m)
        except (LogError, MemoryError, *DAMAGE) as error:
            problems.add(0, f"{_NOT_WHOLE}: {error}", 0)
        if m is not None and (noted := m.noted()):
            problems.add(0, noted, 0)


def _found(m: Matrices, paths: Mapping[str, str], read: Callable[[str], Columns]) -> dict[str, Columns]:
    """Return read and written bytes of OSTs, as far as they can be read."""
    found = {}
    for column, path in paths.items():
        try:
            found[column] = read(path)
        except DAMAGE as error:
            m.note(f"{path} cannot be read: {str(error)[:120]}")
    return found


def _h5lmt(m: Matrices) -> list[_Part]:
    """Read h5lmt: (OST, time) rates of the interval that ends at the stamp; the first column has no interval."""
    places, odd = m.steps(m.file["FSStepsGroup/FSStepsDataSet"], _STEP_S)
    paths = {"read": "OSTReadGroup/OSTBulkReadDataSet", "written": "OSTWriteGroup/OSTBulkWriteDataSet"}
    found = _found(m, paths, lambda path: m.rows(m.file[path], "OSTNames", len(places)))
    if not found:
        raise LogError(m.noted())
    names = [name for name, _ in next(iter(found.values()))]
    gone = np.broadcast_to(odd, (len(names), len(places)))
    if "FSMissingGroup" in m.file:
        marks = m.values(m.file["FSMissingGroup/FSMissingDataSet"], (len(names), len(places)))
        gone = gone | np.isnan(marks) | (marks != 0)
    nothing = np.full(len(places), np.nan)
    read, written = (dict(found.get(key, ())) for key in paths)
    parts = []
    for name, lost in zip(names, gone, strict=True):
        moved = [np.where(lost, np.nan, each.get(name, nothing))[1:] * _STEP_S for each in (read, written)]
        parts.append((name, places[1:] - 1, moved[0], moved[1]))
    return [part for part in parts if part[0]]


def _tokio(m: Matrices) -> list[_Part]:
    """Read TOKIO's HDF5: (time, OST) bytes of the interval that begins at the stamp (rates: bytes a second)."""
    group = m.file["datatargets"]
    places, odd = m.steps(group["timestamps"], _STEP_S)
    scales = {"rates": _STEP_S, "bytes": 1}
    paths = {key: f"{key}{form}" for key in ("read", "write") for form in scales if f"{key}{form}" in group}
    found = _found(m, paths, lambda path: m.columns(group[path], odd, scales[path[-5:]]))
    if not found:
        nothing_there = "HDF5 without readbytes, readrates, writebytes or writerates of data targets"
        raise LogError(m.noted() or nothing_there)
    nothing = np.full(len(places), np.nan)
    read, written = (dict(found.get(key, ())) for key in ("read", "write"))
    return [(name, places, read.get(name, nothing), written.get(name, nothing)) for name in {**read, **written}]


def _h5lmt_others(m: Matrices) -> Iterator[_Found]:
    places, odd = m.steps(m.file["FSStepsGroup/FSStepsDataSet"], _STEP_S)
    times = places * np.float64(_STEP_S)
    if "OSSCPUGroup/OSSCPUDataSet" in m.file:
        for name, row in m.rows(m.file["OSSCPUGroup/OSSCPUDataSet"], "OSSNames", len(times)):
            if name:
                values = {"value": np.where(odd, np.nan, row)}
                yield _rows(SERVERS, times, values, server=name, kind="oss", quantity="cpu")
    if "MDSCPUGroup/MDSCPUDataSet" in m.file:
        row = m.read(m.file["MDSCPUGroup/MDSCPUDataSet"]).reshape(-1)
        if len(row) != len(times):
            raise LogError(f"MDSCPUDataSet has {len(row):,} values for {len(times):,} time stamps")
        row = np.where(odd | ~np.isfinite(row) | (row < 0), np.nan, row)
        yield _rows(SERVERS, times, {"value": row}, kind="mds", quantity="cpu")
    if "MDSOpsGroup/MDSOpsDataSet" in m.file:
        for name, row in m.rows(m.file["MDSOpsGroup/MDSOpsDataSet"], "OpNames", len(times)):
            counts = np.where(odd, np.nan, row)[1:] * _STEP_S
            if name and np.nansum(counts) > 0:  # all operations that Lustre knows stand there, and few ever happen
                yield _rows(OPERATIONS, times[:-1], {"count": counts}, operation=name)


def _datasets(m: Matrices, group: str) -> Iterator[tuple[str, Numbers, Columns]]:
    """Yield the datasets of a group of TOKIO's HDF5 under our names, with their times and columns."""
    if group in m.file and "timestamps" in m.file[group]:
        found = m.file[group]
        places, odd = m.steps(found["timestamps"], _STEP_S)
        names = _TOKIO.get(group) or {name: name.removesuffix("s") for name in sorted(set(found) - {"timestamps"})}
        for name, ours in names.items():
            if name in found:
                yield ours, places * np.float64(_STEP_S), m.columns(found[name], odd)


def _tokio_others(m: Matrices) -> Iterator[_Found]:
    for group, kind in (("dataservers", "oss"), ("mdservers", "mds")):
        for quantity, times, columns in _datasets(m, group):
            for server, values in columns:
                yield _rows(SERVERS, times, {"value": values}, server=server, kind=kind, quantity=quantity)
    for operation, times, columns in _datasets(m, "mdtargets"):
        for server, values in columns:
            yield _rows(OPERATIONS, times, {"count": values}, server=server, operation=operation)
    full: dict[str, tuple[Numbers, dict[str, Numbers]]] = {}
    for name, times, columns in _datasets(m, "fullness"):
        for target, values in columns:
            full.setdefault(target, (times, {}))[1][name] = values
    for target, found in full.items():
        yield _rows(FULLNESS, *found, target=target, kind="OST")


# ---- all forms -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(path: Path, zone: zoneinfo.ZoneInfo, between: Period | None) -> Iterator[_Bases | _Hdf5]:
    """Open records in any form; `LogError`: they are empty, in no known form, or cannot be read, even later."""
    with contextlib.ExitStack() as stack:
        try:
            with path.open("rb") as stream:
                head = stream.read(16)
            if not head:
                raise LogError("empty")
            if is_hdf5(path):
                yield _Hdf5(path, between)
            elif head.startswith(b"SQLite format 3"):
                yield _Bases([stack.enter_context(contextlib.closing(read_only(path)))], "", zone)
            else:
                bases, problem = load(path, _DUMPED, ["OSS_ID"])
                for base in bases:
                    stack.callback(base.close)
                    base.execute("CREATE INDEX by_ost ON OST_DATA (OST_ID, TS_ID)")
                if not bases:
                    what = "no SQLite, no HDF5, and no dump of an LMT database"
                    raise LogError(f"{what}: it has no rows of {', '.join(_DUMPED)}")
                yield _Bases(bases, problem, zone)
        except SourceError as error:
            raise LogError(error.what) from error
        except (OSError, EOFError, sqlite3.Error) as error:
            raise LogError(f"cannot be read: {error}") from error


def _lmt(log: _Bases | _Hdf5) -> tuple[pa.Table, str]:
    """Return the rows of ``lmt``, and the mistakes of the other records; `LogError`: there are no rows."""
    parts, problem = log.osts()
    found, wrong, missing = [LMT.schema().empty_table()], [], 0
    for name, steps, read, written in (part for part in parts if len(part[1])):
        match = _OST.match(name)
        if match is None or int(match["ost"], 16) >= 2**31:
            wrong.append(f"{name[:40]!r} is no name of an OST")
            continue
        values = {"bytes_read": np.rint(read), "bytes_written": np.rint(written)}
        names: dict[str, str | int | None] = {"ost_name": name, "file_system": match["fs"] or None}
        found.append(_rows(LMT, steps * np.float64(_STEP_S), values, ost=int(match["ost"], 16), **names)[1])
        missing += int((np.isnan(read) | np.isnan(written)).sum())
    if len(found) == 1:
        raise LogError(wrong[0] if wrong else "; ".join(filter(None, ["no two samples of an OST", problem])))
    problem = "; ".join(filter(None, [problem, *(f"left out: {line}" for line in wrong[:2])]))
    if missing:
        lost = f"{missing:,} steps of an OST are NULL"
        problem = f"{problem}; {lost}" if problem else f"{lost}: samples were lost, or a counter started again"
    return pa.concat_tables(found), problem


def convert(logs: Sequence[str], root: str, time_zone: str = "UTC", between: Period | None = None) -> Converted:
    """Convert records of LMT to rows of ``lmt``.

    Parameters
    ----------
    logs : relative to `root`.
    time_zone : of the time stamps in databases, which have none.
    between : (float, float), optional
        Of HDF5, read the steps of this half-open period only (s since 1970 UTC), and some around it.
    """
    zone = zoneinfo.ZoneInfo(time_zone)
    tables, outcomes = [LMT.schema().empty_table()], []
    for log in logs:
        try:
            with _opened(Path(root) / log, zone, between) as opened:
                table, problem = _lmt(opened)
            tables.append(table)
            outcomes.append(Outcome(log, "partial" if problem else "whole", problem, 0, {"lmt": table.num_rows}))
        except LogError as error:
            outcomes.append(Outcome(log, "skipped", str(error)))
    return Converted(tables={"lmt": pa.concat_tables(tables)}, outcomes=outcomes)


class Lmt(Source):
    """A database of LMT (SQLite, or the text of ``mysqldump``), h5lmt, or TOKIO's HDF5."""

    NAME = "lmt"
    MEANING = "what servers moved: LMT's database (SQLite, mysqldump), h5lmt, or TOKIO's HDF5"
    ROLE = "traffic"
    PATTERNS = ("*.h5lmt", "*.hdf5", "*.h5", "*.sqlite3", "*.sql", "*.sql.gz")
    TABLES = (LMT, SERVERS, OPERATIONS, FULLNESS)
    CUTS = True

    def recognizes(self, head: Head) -> bool:
        is_dump = "OST_INFO" in head.text and "CREATE TABLE" in head.text
        return "OST_INFO" in head.tables or head.data.startswith(_HDF5) or is_dump

    def local_times(self, head: Head) -> bool:
        return not head.data.startswith(_HDF5)  # in which times are seconds since 1970

    def parse(self, file: File) -> Parsed:
        path = file.path
        try:
            zone = zoneinfo.ZoneInfo(file.time_zone)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError) as error:
            raise SourceError(str(path), 0, f"{file.time_zone!r} is no time zone of this machine") from error
        try:
            with _opened(path, zone, file.between) as opened:
                found = self._tables(opened, file)
        except LogError as error:
            raise SourceError(str(path), 0, str(error)) from error
        return {name: pa.concat_tables(parts) for name, parts in found.items()}, {}

    def _tables(self, log: _Bases | _Hdf5, file: File) -> dict[str, list[pa.Table]]:
        """Return the parts of all tables."""
        found = {table.name: [table.schema().empty_table()] for table in self.TABLES}
        lmt, problem = _lmt(log)
        found["lmt"].append(lmt)
        if problem:
            file.problems.add(0, problem, 0)
        try:
            for name, rows in log.others(file.problems):
                found[name].append(rows)
        except (LogError, OSError, EOFError, sqlite3.Error, ValueError, TypeError) as error:
            file.problems.add(0, f"{_NOT_WHOLE}: {error}", 0)
        return found


SOURCE = Lmt()
