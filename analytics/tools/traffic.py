"""Traffic of the servers of a file system in a period: the same form from every monitoring source.

Problem. LMT has bytes of 5-s steps by OST; GPFS' sensors bytes of the interval that ends at a stamp, by disk and
server, with units as printed; ggiostat counters that only grow; CSV any of these. The question is one.

Algorithm. Each source has a small reader that turns its tables into :class:`~.series.Series` of amounts in half-open
steps (:data:`READERS`); the period is cut out of them. A source of another package needs none when its tables are
called like LMT's (``lmt``, ``servers``, ``operations``) or ``series`` (:mod:`.metrics`), and have their columns.

Stamps begin their interval, unless the site says that they end it (``stamps`` in site.json, and in ``header``).

Counters. The amount of a step is the difference of the counter at both ends; it is unknown if a value is missing or the
counter went back.

Guarantees. Values are the source's; nothing is estimated. An unknown value is NaN, and a note reports it.

Source: TOKIO, Section "Storage system traffic".
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.site import FileSystem
from mpiio_ext.analytics.sources import Records
from mpiio_ext.analytics.sources.mmperfmon import UNITS
from mpiio_ext.analytics.tools.metrics import of_series, unknown
from mpiio_ext.analytics.tools.moments import Period, shown
from mpiio_ext.analytics.tools.rows import Rows, amounts, cut, numbers, of, series_of, split, step_of
from mpiio_ext.analytics.tools.series import Edges, Series, SeriesError

#: Seconds of LMT's steps.
LMT_STEP_S = 5.0
#: Columns of ggiostat -> name of the operation.
_GPFS_OPERATIONS = {
    "open_count": "open",
    "close_count": "close",
    "read_requests": "read",
    "write_requests": "write",
    "read_directory": "readdir",
    "inode_updates": "inode_updates",
}


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Traffic:
    """The traffic of servers in a period.

    Attributes
    ----------
    sources : names of the sources that say it.
    read, written : bytes by data target; None if no source says it.
    cpu : load in % by server, for ``oss`` (data) and ``mds`` (metadata).
    operations : metadata operations by server: open, close, getattr …
    notes : what was left out, and why.
    """

    period: Period
    sources: tuple[str, ...] = ()
    read: Series | None = None
    written: Series | None = None
    cpu: Mapping[str, Series] = dataclasses.field(default_factory=dict)
    operations: Mapping[str, Series] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def series(self) -> dict[str, Series]:
        """Return all series by name: bytes_read, bytes_written, oss_cpu, mds_cpu, open_ops and so on."""
        found = {"bytes_read": self.read, "bytes_written": self.written}
        found |= {f"{kind}_cpu": series for kind, series in self.cpu.items()}
        found |= {f"{name}_ops": series for name, series in self.operations.items()}
        return {name: series for name, series in found.items() if series is not None}


#: ("read", ""), ("written", ""), ("cpu", "oss"), ("operations", "open") …
Key = tuple[str, str]
#: Rows of a quantity, or a text that names its mistake.
Found = Iterable[tuple[Key, Rows] | str]
Reader = Callable[[Records, Period, "Collection[str] | None"], Found]


# ---- sources ---------------------------------------------------------------------------------------------------------


def _lmt(records: Records, period: Period, systems: Collection[str] | None) -> Found:
    """LMT: bytes of the step that begins at a stamp; load at its begin; counts of operations."""
    step = float(records.header.get("step_s", LMT_STEP_S))
    if "lmt" in records.tables:
        table = of(cut(records.tables["lmt"], period, step, 0.0), "file_system", systems)
        for key, name in (("read", "bytes_read"), ("written", "bytes_written")):
            yield (key, ""), Rows(numbers(table, "time"), table["ost_name"], numbers(table, name), step)
    if "servers" in records.tables:
        servers = of(cut(records.tables["servers"], period, step, 0.0), "quantity", {"cpu"})
        for kind, rows in split(servers, "kind"):
            values = numbers(rows, "value")
            yield ("cpu", kind), Rows(numbers(rows, "time"), _called(rows, kind), values, step, "%", level=True)
    if "operations" in records.tables:
        counts = cut(records.tables["operations"], period, step, 0.0)
        for name, rows in split(counts, "operation"):
            yield (
                ("operations", name),
                Rows(numbers(rows, "time"), _called(rows, "mds"), numbers(rows, "count"), step, "count"),
            )


def _called(rows: pa.Table, kind: str) -> pa.ChunkedArray:
    """Return the names of servers; one without a name is called by its kind."""
    return pc.fill_null(rows["server"], kind)


def _mmperfmon(records: Records, period: Period, systems: Collection[str] | None) -> Found:  # noqa: ARG001
    """GPFS' performance monitor: amounts of an interval, in units as printed; of data if the site separates them."""
    table, facts = records.tables["samples"], records.header.get("facts")
    facts = facts if isinstance(facts, FileSystem) else FileSystem()
    step = records.header.get("step_s") or step_of(numbers(table, "time"))
    if not step:
        return
    step = float(step)
    ahead = step if records.header.get("stamps") == "end" else 0.0
    table = cut(table, period, step, 2 * step)
    wanted = {
        "gpfs_nsdds_bytes_read": ("read", ""),
        "gpfs_nsdds_bytes_written": ("written", ""),
        "cpu_user": ("cpu", "user"),
        "cpu_sys": ("cpu", "system"),
    }
    load: dict[str, Rows] = {}
    for metric, rows in split(table, "metric"):
        if metric not in wanted:
            continue
        key = wanted[metric]
        scale = np.array([UNITS.get(unit or "B", np.nan) for unit in rows["unit"].to_pylist()])
        values = numbers(rows, "value") * (scale if key[0] != "cpu" else 1.0)
        host, part = rows["host"].to_pylist(), rows["component"].to_pylist()
        names = host if key[0] == "cpu" else [f"{a}:{b}" for a, b in zip(host, part, strict=True)]
        found = Rows(
            numbers(rows, "time") - ahead, names, values, step, "B" if key[0] != "cpu" else "%", level=key[0] == "cpu"
        )
        if key[0] != "cpu":
            yield key, _only(found, [facts.holds_data(disk or "") for disk in part])
        else:
            load[key[1]] = found
    if len(load) == 2:
        both = _sum_of(load["user"], load["system"])
        metadata = [facts.serves_metadata(str(server)) for server in both.names]
        yield ("cpu", "oss"), _only(both, [not each for each in metadata])
        yield ("cpu", "mds"), _only(both, metadata)


def _only(rows: Rows, chosen: Sequence[bool]) -> Rows:
    """Return the rows that are chosen."""
    return dataclasses.replace(
        rows,
        times=rows.times[np.array(chosen, bool)],
        names=list(itertools.compress(rows.names, chosen)),
        values=rows.values[np.array(chosen, bool)],
    )


def _sum_of(one: Rows, other: Rows) -> Rows:
    """Return the sums of rows of the same time and name; those that only one has are left out."""
    more = dict(zip(zip(other.times, other.names, strict=True), other.values, strict=True))
    both = [(t, n, v + more[t, n]) for t, n, v in zip(one.times, one.names, one.values, strict=True) if (t, n) in more]
    times, names, values = zip(*both, strict=True) if both else ((), (), ())
    return dataclasses.replace(one, times=np.array(times), names=list(names), values=np.array(values, np.float64))


def _ggiostat(records: Records, period: Period, systems: Collection[str] | None) -> Found:
    """Counters of GPFS clients and servers, by node."""
    table = of(records.tables["node_io"], "filesystem_name", systems)
    step = step_of(numbers(table, "time"))
    if step is None:
        return
    table = cut(table, period, step, 2 * step)
    names = table["node_name"].to_pylist()
    times = numbers(table, "time")
    for column, key in (("bytes_read", "read"), ("bytes_written", "written")):
        yield (key, ""), amounts(times, names, numbers(table, column), step)
    for column, name in _GPFS_OPERATIONS.items():
        found = amounts(times, names, numbers(table, column), step)
        yield ("operations", name), dataclasses.replace(found, unit="count")


#: Source -> function that turns its tables into rows.
READERS: dict[str, Reader] = {"lmt": _lmt, "mmperfmon": _mmperfmon, "ggiostat": _ggiostat, "csv": of_series}


def _reader_of(records: Records) -> Reader | None:
    if records.source in READERS:
        return READERS[records.source]
    if "lmt" in records.tables:
        return _lmt
    return of_series if "series" in records.tables else None


# ---- the question ----------------------------------------------------------------------------------------------------


def traffic(
    records: Sequence[Records], period: Period, file_systems: Collection[str] | None = None, edges: Edges = "begin"
) -> Traffic:
    """Return the traffic of the servers in a period.

    Parameters
    ----------
    records : of any sources and days; those that say nothing about traffic are left out. Where several say the same
        value, the later record counts.
    file_systems : names of the file system in sources that have several; default: all of them.
    edges : {"begin", "touch", "share"}
        What becomes of the steps at the edges of the period; see :mod:`.series`.

    Returns
    -------
    Traffic
        Its series cover the whole period, with NaN where no source has a value.
    """
    gathered: dict[Key, list[tuple[Rows, Records]]] = {}
    notes: list[str] = []
    for each in records:
        reader = _reader_of(each)
        for each_found in reader(each, period, file_systems) if reader is not None else ():
            if isinstance(each_found, str):
                notes.append(each_found)
            elif len(each_found[1].times):
                gathered.setdefault(each_found[0], []).append((each_found[1], each))
    found: dict[Key, Series] = {}
    sources: dict[str, None] = {}
    for key, parts in gathered.items():
        try:
            series, left_out = _joined(key, parts)
            series = series.within(period, edges)
        except SeriesError as error:
            notes.append(str(error))
            continue
        if series.known:
            found[key] = series
            notes += left_out
            sources |= dict.fromkeys(each.source for _, each in parts)
    if not found and not notes:
        notes.append(_nothing(records, period))
    return Traffic(
        period=period,
        sources=tuple(sources),
        read=found.get(("read", "")),
        written=found.get(("written", "")),
        cpu={name: series for (kind, name), series in found.items() if kind == "cpu"},
        operations={name: series for (kind, name), series in found.items() if kind == "operations"},
        notes=tuple(notes),
    )


def _joined(key: Key, parts: Sequence[tuple[Rows, Records]]) -> tuple[Series, list[str]]:
    """Return one series of rows of several records; a value that is not known never hides one that is.

    Returns
    -------
    series : Series
    notes : list of str
        Of each record with rows that have no place of their own.

    Raises
    ------
    SeriesError
        The records have steps of different length.
    """
    quantity = {"read": "bytes_read", "written": "bytes_written"}.get(key[0], key[1])
    steps = sorted({rows.step_s for rows, _ in parts})
    if len(steps) > 1:
        raise SeriesError(f"{quantity}: sources with steps of {' and '.join(f'{step:g}' for step in steps)} s")
    step, first = steps[0], min(float(np.nanmin(rows.times)) for rows, _ in parts)
    columns = [_texts(rows.names) for rows, _ in parts]
    order = sorted({name for column in columns for name in column.unique().to_pylist() if name is not None})
    pieces, notes = [], []
    for (rows, record), column in zip(parts, columns, strict=True):
        known = np.isfinite(rows.values)
        number = round((float(np.nanmin(rows.times)) - first) / step)
        shown = dataclasses.replace(
            rows, times=rows.times[known], names=column.filter(known), values=rows.values[known]
        )
        piece, dropped = series_of(shown, quantity, first=first + number * step, order=order)
        pieces.append((number, piece.values))
        if dropped + rows.dropped:
            notes.append(
                f"{record.path}: {dropped + rows.dropped:,} values of {quantity} are left out, of a time and server "
                f"that has another one, or between steps of {step:g} s"
            )
    values = np.full((max(number + len(mine) for number, mine in pieces), len(order)), np.nan)
    for number, mine in pieces:
        np.copyto(values[number : number + len(mine)], mine, where=np.isfinite(mine))
    rows = parts[0][0]
    return Series(
        quantity=quantity, unit=rows.unit, level=rows.level, step_s=step, first=first, names=tuple(order), values=values
    ), notes


def _texts(names: Sequence[str] | pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(names, pa.ChunkedArray):
        return names.combine_chunks() if names.num_chunks else pa.array([], pa.string())
    return names if isinstance(names, pa.Array) else pa.array(names, pa.string())


def _nothing(records: Sequence[Records], period: Period) -> str:
    """Return why there is no traffic: no source, or none with samples of the period."""
    spans = []
    unused = [text for each in records if _reader_of(each) is of_series and (text := unknown(each))]
    if unused:
        return "; ".join(unused[:3])
    for each in records:
        for name in ("lmt", "samples", "node_io", "series"):
            if _reader_of(each) is not None and name in each.tables and each.tables[name].num_rows:
                times = numbers(each.tables[name], "time")
                times = times[np.isfinite(times)]
                if len(times):
                    spans.append(f"{each.path} begins at {shown(times.min())}")
    return f"no samples of servers from {period}" + (f" ({'; '.join(spans[:3])})" if spans else "")
