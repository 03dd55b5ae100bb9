"""What the Lustre Monitoring Tool's records have besides ``lmt``: load of servers, metadata operations, fullness.

Problem. The store keeps what OSTs moved. Whether a server was busy, which metadata operations it carried out, and how
full its targets were stands in the same records: as samples and counters in databases, as matrices in HDF5.

Rules. Loads and fullness are samples, and
keep their stamps. Operations are counts of the 5-s step that *begins* at the time. They are the difference of two
samples of a database, the rate of the interval that *ends* at a stamp of h5lmt, or the count of the interval that
begins at a stamp of TOKIO's HDF5. So all forms of one interval give the same rows. What was lost is NULL.

Source: TOKIO, Section "Storage system traffic" (LMT).
"""

from __future__ import annotations

import sqlite3
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.sources.lmtbases import open_bases, steps_of_counters, utc_of_stamps
from mpiio_ext.analytics.sources.lmtcut import cut
from mpiio_ext.analytics.sources.lmthdf5 import (
    DAMAGE,
    Hdf5Problems,
    column_names,
    matrix_values,
    step_places,
    tokio_columns,
)
from mpiio_ext.analytics.sources.lmtsteps import STEP_S, LmtError
from mpiio_ext.analytics.sources.records import Problems
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.analytics.tables.schema import Column, Table

if TYPE_CHECKING:
    import h5py

_TIME = Column("time", "float64", "s since 1970 UTC", "of the sample")
SERVERS = Table(
    "servers",
    "one row a sample and a server: its load",
    (
        _TIME,
        Column("server", "string", "", "name of the host; NULL of the metadata server in h5lmt, which does not say it"),
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
        Column("server", "string", "", "name of the host; NULL in h5lmt, which does not say it"),
        Column("operation", "string", "", "open, close, getattr …"),
        Column("count", "float64", "count", "in this step; NULL where LMT lost it"),
    ),
)
_FULL = (
    ("used_kib", "KiB", "used"),
    ("total_kib", "KiB", "size"),
    ("inodes_used", "count", "inodes used"),
    ("inodes_total", "count", "inodes"),
)
FULLNESS = Table(
    "fullness",
    "one row a sample and a target: how full it was",
    (
        _TIME,
        Column("target", "string", "", "snx11025-OST001f"),
        Column("kind", "string", "", "OST or MDT"),
        *(Column(name, "float64", unit, meaning) for name, unit, meaning in _FULL),
    ),
)
OTHERS = (SERVERS, OPERATIONS, FULLNESS)


class _Parts:
    """Gathers rows of one table, a stretch of them at a time."""

    def __init__(self, table: Table) -> None:
        self._schema = table.schema()
        self._columns: dict[str, list[Any]] = {name: [] for name in table.names()}

    def add(self, times: Numbers, values: dict[str, Numbers], **constants: str | None) -> None:
        """Add rows: an array of times, arrays of values (NaN: NULL), and texts that are the same in all rows."""
        for name, column in self._columns.items():
            if name == "time":
                column.append(pa.array(np.asarray(times, dtype=np.float64)))
            elif name in values:
                found = np.asarray(values[name], dtype=np.float64)
                column.append(pa.array(found, mask=np.isnan(found)))
            elif name in constants:
                column.append(pa.repeat(pa.scalar(constants[name], pa.string()), len(times)))
            else:
                column.append(pa.nulls(len(times), pa.float64()))

    def table(self) -> pa.Table:
        """Return the rows as a table of the form."""
        arrays = [pa.chunked_array(self._columns[field.name], field.type) for field in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)


class _Tables:
    """The tables beside ``lmt``."""

    def __init__(self) -> None:
        self.servers, self.operations, self.fullness = (_Parts(table) for table in OTHERS)

    def tables(self) -> dict[str, pa.Table]:
        """Return them by name."""
        found = (self.servers, self.operations, self.fullness)
        return {table.name: parts.table() for table, parts in zip(OTHERS, found, strict=True)}


# ---- databases -------------------------------------------------------------------------------------------------------


def _samples(base: sqlite3.Connection, query: str, number: int, utc: dict[int, float]) -> tuple[Numbers, list[Numbers]]:
    """Return the times and the columns (NaN: nothing) of one server, in the order of time."""
    rows = [row for row in base.execute(query, (number,)) if row[0] in utc]
    times = np.array([utc[row[0]] for row in rows], dtype=np.float64)
    order = np.argsort(times, kind="stable")
    width = len(rows[0]) if rows else 0
    return times[order], [np.array([row[at] for row in rows], dtype=np.float64)[order] for at in range(1, width)]


def _named(base: sqlite3.Connection, query: str) -> Iterator[tuple[int, str]]:
    for number, name in base.execute(query).fetchall():
        yield number, str(name)


def _loads(base: sqlite3.Connection, utc: dict[int, float], out: _Tables) -> None:
    for number, name in _named(base, "SELECT OSS_ID, HOSTNAME FROM OSS_INFO ORDER BY OSS_ID"):
        query = "SELECT TS_ID, PCT_CPU, PCT_MEMORY FROM OSS_DATA WHERE OSS_ID = ? ORDER BY TS_ID"
        times, values = _samples(base, query, number, utc)
        for quantity, found in zip(("cpu", "memory"), values, strict=False):
            out.servers.add(times, {"value": found}, server=name, kind="oss", quantity=quantity)
    for number, name in _named(base, "SELECT MDS_ID, HOSTNAME FROM MDS_INFO ORDER BY MDS_ID"):
        times, values = _samples(
            base, "SELECT TS_ID, PCT_CPU FROM MDS_DATA WHERE MDS_ID = ? ORDER BY TS_ID", number, utc
        )
        for found in values:
            out.servers.add(times, {"value": found}, server=name, kind="mds", quantity="cpu")


def _fullness(base: sqlite3.Connection, utc: dict[int, float], out: _Tables) -> None:
    for kind, what in (("OST", "OST"), ("MDT", "MDS")):
        names = f"SELECT {what}_ID, {what}_NAME FROM {what}_INFO ORDER BY {what}_ID"
        query = (
            f"SELECT TS_ID, KBYTES_USED, KBYTES_FREE, INODES_USED, INODES_FREE FROM {what}_DATA "
            f"WHERE {what}_ID = ? ORDER BY TS_ID"
        )
        for number, name in _named(base, names):
            times, values = _samples(base, query, number, utc)
            if values:
                used, free, inodes, inodes_free = values
                full = {
                    "used_kib": used,
                    "total_kib": used + free,
                    "inodes_used": inodes,
                    "inodes_total": inodes + inodes_free,
                }
                out.fullness.add(times, full, target=name, kind=kind)


def _operations(base: sqlite3.Connection, utc: dict[int, float], out: _Tables) -> None:
    operations = list(_named(base, "SELECT OPERATION_ID, OPERATION_NAME FROM OPERATION_INFO ORDER BY OPERATION_ID"))
    for server, name in _named(base, "SELECT MDS_ID, HOSTNAME FROM MDS_INFO ORDER BY MDS_ID"):
        rows: dict[Any, list[tuple[float, Any]]] = {}
        for stamp, operation, samples in base.execute(
            "SELECT TS_ID, OPERATION_ID, SAMPLES FROM MDS_OPS_DATA WHERE MDS_ID = ? ORDER BY TS_ID", (server,)
        ):
            if stamp in utc:
                rows.setdefault(operation, []).append((utc[stamp], samples))
        for operation, called in operations:
            found = sorted(rows.get(operation, []), key=lambda row: row[0])
            if len(found) > 1:
                counter = np.array([samples for _, samples in found], dtype=np.float64)
                steps = steps_of_counters(called, np.array([time for time, _ in found]), counter, counter)
                times = steps.steps.astype(np.float64) * STEP_S
                out.operations.add(times, {"count": steps.read}, server=name, operation=called)


def _database(base: sqlite3.Connection, zone: zoneinfo.ZoneInfo, out: _Tables, problems: Problems) -> None:
    """Add what a database has; older ones lack tables, which is no damage."""
    present = {str(row[0]) for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    utc = utc_of_stamps(base.execute("SELECT TS_ID, TIMESTAMP FROM TIMESTAMP_INFO ORDER BY TS_ID").fetchall(), zone)
    for step, wanted in (
        (_loads, {"OSS_INFO", "OSS_DATA", "MDS_INFO", "MDS_DATA"}),
        (_operations, {"MDS_INFO", "OPERATION_INFO", "MDS_OPS_DATA"}),
        (_fullness, {"OST_INFO", "OST_DATA", "MDS_INFO", "MDS_DATA"}),
    ):
        if wanted <= present:
            try:
                step(base, utc, out)
            except (sqlite3.Error, ValueError, TypeError) as error:
                problems.add(0, f"{', '.join(sorted(wanted))} cannot be read: {error}", 0)


# ---- HDF5 ------------------------------------------------------------------------------------------------------------


def _h5lmt(file: h5py.File, out: _Tables, problems: Hdf5Problems) -> None:
    places, odd = step_places(file["FSStepsGroup/FSStepsDataSet"], problems)
    times = places.astype(np.float64) * STEP_S
    if "OSSCPUGroup/OSSCPUDataSet" in file:
        data = file["OSSCPUGroup/OSSCPUDataSet"]
        names = column_names(data, "OSSNames", problems)
        for name, row in zip(names, matrix_values(data, (len(names), len(times)), problems), strict=True):
            if name:
                out.servers.add(times, {"value": np.where(odd, np.nan, row)}, server=name, kind="oss", quantity="cpu")
    if "MDSCPUGroup/MDSCPUDataSet" in file:
        row = np.asarray(file["MDSCPUGroup/MDSCPUDataSet"][()], dtype=np.float64).reshape(-1)
        if len(row) != len(times):
            raise LmtError(f"MDSCPUDataSet has {len(row):,} values for {len(times):,} time stamps")
        row = np.where(odd | ~np.isfinite(row) | (row < 0), np.nan, row)
        out.servers.add(times, {"value": row}, server=None, kind="mds", quantity="cpu")
    if "MDSOpsGroup/MDSOpsDataSet" in file:
        data = file["MDSOpsGroup/MDSOpsDataSet"]
        names = column_names(data, "OpNames", problems)
        for name, row in zip(names, matrix_values(data, (len(names), len(times)), problems), strict=True):
            counts = np.where(odd, np.nan, row)[1:] * STEP_S
            if name and np.nansum(counts) > 0:  # all operations that Lustre knows stand there, and few ever happen
                out.operations.add(times[:-1], {"count": counts}, server=None, operation=name)


def _group(file: h5py.File, name: str, problems: Hdf5Problems) -> tuple[h5py.Group, Numbers, Flags] | None:
    """Return a group of TOKIO's HDF5, its times, and which are damaged."""
    if name not in file or "timestamps" not in file[name]:
        return None
    places, odd = step_places(file[name]["timestamps"], problems)
    return file[name], places.astype(np.float64) * STEP_S, odd


def _columns(group: h5py.Group, name: str, odd: Flags, problems: Hdf5Problems) -> Iterator[tuple[str, Numbers]]:
    if name in group:
        names, values = tokio_columns(group, name, odd, problems)
        yield from ((column, values[:, at]) for at, column in enumerate(names) if column)


def _tokio(file: h5py.File, out: _Tables, problems: Hdf5Problems) -> None:
    loads = (
        ("dataservers", "oss", "cpuload", "cpu"),
        ("dataservers", "oss", "memused", "memory"),
        ("mdservers", "mds", "cpuload", "cpu"),
    )
    for name, kind, dataset, quantity in loads:
        if (found := _group(file, name, problems)) is not None:
            for server, values in _columns(found[0], dataset, found[2], problems):
                out.servers.add(found[1], {"value": values}, server=server, kind=kind, quantity=quantity)
    if (found := _group(file, "mdtargets", problems)) is not None:
        for dataset in sorted(set(found[0]) - {"timestamps"}):
            for server, values in _columns(found[0], dataset, found[2], problems):
                out.operations.add(found[1], {"count": values}, server=server, operation=dataset.removesuffix("s"))
    if (found := _group(file, "fullness", problems)) is not None:
        datasets = {
            "used_kib": "bytes",
            "total_kib": "bytestotal",
            "inodes_used": "inodes",
            "inodes_total": "inodestotal",
        }
        full: dict[str, dict[str, Numbers]] = {}
        for ours, dataset in datasets.items():
            for target, values in _columns(found[0], dataset, found[2], problems):
                full.setdefault(target, {})[ours] = values
        for target, columns in full.items():
            out.fullness.add(found[1], columns, target=target, kind="OST")


def _hdf5(path: Path, out: _Tables, problems: Problems, between: tuple[float, float] | None) -> None:
    import h5py

    noted = Hdf5Problems()
    try:
        with h5py.File(path, "r") as opened:
            file = cut(opened, between)
            (_h5lmt if "FSStepsGroup" in file else _tokio)(file, out, noted)
    except (LmtError, MemoryError, *DAMAGE) as error:
        problems.add(0, f"loads, operations and fullness are not whole: {error}", 0)
    if noted.lines:
        problems.add(0, str(noted), 0)


# ---- all forms -------------------------------------------------------------------------------------------------------


def other_tables(
    path: Path, zone: zoneinfo.ZoneInfo, problems: Problems, between: tuple[float, float] | None
) -> dict[str, pa.Table]:
    """Return the tables beside ``lmt`` of a file in any form; what is wrong with them is added to the problems."""
    out = _Tables()
    try:
        with open_bases(path) as opened:
            if opened is None:
                _hdf5(path, out, problems, between)
            for base in opened[0] if opened is not None else ():
                _database(base, zone, out, problems)
    except (LmtError, OSError, EOFError, sqlite3.Error, ValueError, TypeError) as error:
        problems.add(0, f"loads, operations and fullness are not whole: {error}", 0)
    return out.tables()
