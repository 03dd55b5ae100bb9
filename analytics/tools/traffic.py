"""What the servers of a file system moved in a period: the same form from every monitoring source.

Problem. LMT has bytes of 5-s steps by OST; GPFS' sensors bytes of the interval that ends at a stamp, by disk and
server, with units as printed; ggiostat and Prometheus counters that only grow. The question is one.

Algorithm. Each source has a small reader that turns its tables into :class:`~.series.Series` of amounts in half-open
steps (:data:`READERS`); the period is cut out of them. A source of another package needs none when its tables are
called like LMT's (``lmt``, ``servers``, ``operations``) or ``series``, and have their columns.

Stamps begin their interval, unless the site says that they end it (``stamps`` in site.json, and in ``header``).

Counters. The amount of a step is the difference of the counter at both ends; it is not known where one is missing or
where the counter went back.

Guarantees. Values are the source's; nothing is estimated. What is not known is NaN, and said in the notes.

Source: TOKIO, Section "Storage system traffic".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mpiio_ext.analytics.tools.moments import Period, shown
from mpiio_ext.analytics.tools.rows import Read, cut, numbers, of, split
from mpiio_ext.analytics.tools.series import Edges, Series, SeriesError, from_rows

__all__ = ["LMT_STEP_S", "METRICS", "READERS", "Traffic", "traffic"]

#: Seconds of LMT's steps.
LMT_STEP_S = 5.0
#: Metrics of series (Prometheus, CSV) that are taken for bytes that servers moved, for their load, in this order.
METRICS: dict[str, tuple[str, ...]] = {
    "bytes_read": ("lustre_read_bytes_total", "bytes_read", "read_bytes", "node_disk_read_bytes_total"),
    "bytes_written": ("lustre_write_bytes_total", "bytes_written", "write_bytes", "node_disk_written_bytes_total"),
    "cpu": ("cpu_percent", "cpu"),
}
#: Labels of a series that name its component, in this order.
_LABELS = ("target", "device", "instance", "server", "host")
#: Powers of 1024, as GPFS' tools print them.
_UNITS = {"": 1.0, "B": 1.0, "kB": 2.0**10, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}
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
    """What servers moved in a period.

    Attributes
    ----------
    period : Period
    sources : tuple of str
        Names of the sources that say it.
    read, written : Series or None
        Bytes by data target; None where no source says it.
    cpu : mapping of str to Series
        Load in % by server, for ``oss`` (data) and ``mds`` (metadata).
    operations : mapping of str to Series
        Metadata operations by server: open, close, getattr …
    notes : tuple of str
        What was left out, and why.
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


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a source: begins of steps, components, values (NaN: not known), and the step."""

    times: Any
    names: Any
    values: Any
    step_s: float
    unit: str = "B"
    level: bool = False


#: ("read", ""), ("written", ""), ("cpu", "oss"), ("operations", "open") …
Key = tuple[str, str]
Found = Iterable[tuple[Key, _Rows]]
Reader = Callable[[Read, Period, "Collection[str] | None"], Found]


# ---- sources ---------------------------------------------------------------------------------------------------------


def _lmt(records: Read, period: Period, systems: Collection[str] | None) -> Found:
    """LMT: bytes of the step that begins at a stamp; load at its begin; counts of operations."""
    step = float(records.header.get("step_s", LMT_STEP_S))
    if "lmt" in records.tables:
        table = of(cut(records.tables["lmt"], period, step, 0.0), "file_system", systems)
        for key, name in (("read", "bytes_read"), ("written", "bytes_written")):
            yield (key, ""), _Rows(numbers(table, "time"), table["ost_name"], numbers(table, name), step)
    if "servers" in records.tables:
        servers = of(cut(records.tables["servers"], period, step, 0.0), "quantity", {"cpu"})
        for kind, rows in split(servers, "kind"):
            values = numbers(rows, "value")
            yield ("cpu", kind), _Rows(numbers(rows, "time"), _called(rows, kind), values, step, "%", level=True)
    if "operations" in records.tables:
        counts = cut(records.tables["operations"], period, step, 0.0)
        for name, rows in split(counts, "operation"):
            yield (
                ("operations", name),
                _Rows(numbers(rows, "time"), _called(rows, "mds"), numbers(rows, "count"), step, "count"),
            )


def _called(rows: Any, kind: str) -> Any:
    """Return the names of servers; one that the source does not name is called by what it is."""
    import pyarrow.compute as pc

    return pc.fill_null(rows["server"], kind)


def _mmperfmon(records: Read, period: Period, systems: Collection[str] | None) -> Found:  # noqa: ARG001
    """GPFS' performance monitor: amounts of an interval, in units as printed."""
    table = records.tables["samples"]
    step = records.header.get("step_s") or _step_of(numbers(table, "time"))
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
    load: dict[str, _Rows] = {}
    for metric, rows in split(table, "metric"):
        if metric not in wanted:
            continue
        key = wanted[metric]
        scale = np.array([_UNITS.get(unit or "", np.nan) for unit in rows["unit"].to_pylist()])
        values = numbers(rows, "value") * (scale if key[0] != "cpu" else 1.0)
        host, part = rows["host"].to_pylist(), rows["component"].to_pylist()
        names = host if key[0] == "cpu" else [f"{a}:{b}" for a, b in zip(host, part, strict=True)]
        found = _Rows(numbers(rows, "time") - ahead, names, values, step, "B" if key[0] != "cpu" else "%",
                      level=key[0] == "cpu")  # fmt: skip
        if key[0] != "cpu":
            yield key, found
        else:
            load[key[1]] = found
    if len(load) == 2:
        yield ("cpu", "oss"), _sum_of(load["user"], load["system"])


def _sum_of(one: _Rows, other: _Rows) -> _Rows:
    """Return the sums of rows of the same time and name; those that only one has are left out."""
    more = dict(zip(zip(other.times, other.names, strict=True), other.values, strict=True))
    both = [(t, n, v + more[t, n]) for t, n, v in zip(one.times, one.names, one.values, strict=True) if (t, n) in more]
    times, names, values = zip(*both, strict=True) if both else ((), (), ())
    return dataclasses.replace(one, times=np.array(times), names=list(names), values=np.array(values, np.float64))


def _ggiostat(records: Read, period: Period, systems: Collection[str] | None) -> Found:
    """Counters of GPFS clients and servers, by node."""
    table = of(records.tables["node_io"], "filesystem_name", systems)
    step = _step_of(numbers(table, "time"))
    if step is None:
        return
    table = cut(table, period, step, 2 * step)
    names = table["node_name"].to_pylist()
    times = numbers(table, "time")
    for column, key in (("bytes_read", "read"), ("bytes_written", "written")):
        yield (key, ""), _amounts(times, names, numbers(table, column), step)
    for column, name in _GPFS_OPERATIONS.items():
        found = _amounts(times, names, numbers(table, column), step)
        yield ("operations", name), dataclasses.replace(found, unit="count")


def _series(records: Read, period: Period, systems: Collection[str] | None) -> Found:  # noqa: ARG001
    """Series of Prometheus or CSV: the first known metric of each quantity; names that end in _total are counters."""
    import json

    import pyarrow.compute as pc

    table = records.tables["series"]
    there = set(pc.unique(table["metric"]).to_pylist())
    for quantity, metrics in METRICS.items():
        metric = next((name for name in metrics if name in there), None)
        if metric is None:
            continue
        rows = table.filter(pc.equal(table["metric"], metric))
        step = _step_of(numbers(rows, "time"))
        if step is None:
            continue
        rows = cut(rows, period, step, 2 * step)
        labels = {text: json.loads(text or "{}") for text in pc.unique(rows["labels"]).to_pylist()}
        called = {
            text: next((str(each[k]) for k in _LABELS if k in each), records.path) for text, each in labels.items()
        }
        names = [called[text] for text in rows["labels"].to_pylist()]
        values, times = numbers(rows, "value"), numbers(rows, "time")
        key = ("read" if quantity == "bytes_read" else "written", "")
        if metric.endswith("_total"):
            yield key, _amounts(times, names, values, step)
            continue
        begins = times - step if records.header.get("stamps") == "end" else times
        if quantity == "cpu":
            yield ("cpu", "oss"), _Rows(begins, names, values, step, "%", level=True)
        else:
            yield key, _Rows(begins, names, values, step)


def _step_of(times: Any) -> float | None:
    """Return the usual distance of neighbouring times in seconds; None with fewer than two."""
    steps = np.diff(np.unique(times[np.isfinite(times)]))
    return float(np.median(steps)) if len(steps) else None


def _amounts(times: Any, names: Sequence[str], counters: Any, step_s: float) -> _Rows:
    """Return what was counted between neighbouring samples of each component, at the earlier one's time."""
    if not np.isfinite(times).any():
        return _Rows(times, names, counters, step_s)
    grid, _ = from_rows(times, names, counters, quantity="counter", unit="", step_s=step_s)
    moved = np.diff(grid.values, axis=0)
    moved[moved < 0] = np.nan
    column = np.tile(np.arange(len(grid.names)), len(moved))
    return _Rows(np.repeat(grid.starts[:-1], len(grid.names)), [grid.names[k] for k in column], moved.ravel(), step_s)


#: Source -> what turns its tables into rows.
READERS: dict[str, Reader] = {
    "lmt": _lmt,
    "mmperfmon": _mmperfmon,
    "ggiostat": _ggiostat,
    "prometheus": _series,
    "csv": _series,
}


def _reader_of(records: Read) -> Reader | None:
    if records.source in READERS:
        return READERS[records.source]
    if "lmt" in records.tables:
        return _lmt
    return _series if "series" in records.tables else None


# ---- the question ----------------------------------------------------------------------------------------------------


def traffic(
    records: Sequence[Read],
    period: Period,
    file_systems: Collection[str] | None = None,
    edges: Edges = "begin",
) -> Traffic:
    """Return what the servers moved in a period.

    Parameters
    ----------
    records : sequence of Records
        Of any sources and days; those that say nothing about traffic are left out. Where several say the same value,
        the later record counts.
    period : Period
    file_systems : collection of str, optional
        Names of the file system in sources that have several; default: all of them.
    edges : {"begin", "touch", "share"}
        What becomes of the steps at the edges of the period; see :mod:`.series`.

    Returns
    -------
    Traffic
        Its series cover the whole period, with NaN where no source has a value.
    """
    gathered: dict[Key, list[tuple[_Rows, Read]]] = {}
    notes: list[str] = []
    for each in records:
        reader = _reader_of(each)
        for key, rows in reader(each, period, file_systems) if reader is not None else ():
            if len(rows.times):
                gathered.setdefault(key, []).append((rows, each))
    found: dict[Key, Series] = {}
    sources: dict[str, None] = {}
    for key, parts in gathered.items():
        try:
            series = _joined(key, [rows for rows, _ in parts]).within(period, edges)
        except SeriesError as error:
            notes.append(str(error))
            continue
        if series.known:
            found[key] = series
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


def _joined(key: Key, parts: Sequence[_Rows]) -> Series:
    """Return one series of rows of several records; a value that is not known never hides one that is.

    Raises
    ------
    SeriesError
        The records have steps of different length.
    """
    quantity = {"read": "bytes_read", "written": "bytes_written"}.get(key[0], key[1])
    steps = sorted({rows.step_s for rows in parts})
    if len(steps) > 1:
        raise SeriesError(f"{quantity}: sources with steps of {' and '.join(f'{step:g}' for step in steps)} s")
    import pyarrow as pa

    pieces: list[Any] = []
    for rows in parts:
        pieces += rows.names.chunks if isinstance(rows.names, pa.ChunkedArray) else [pa.array(rows.names, pa.string())]
    names = pa.chunked_array(pieces, pa.string())
    times, values = (np.concatenate([getattr(rows, name) for rows in parts]) for name in ("times", "values"))
    known = np.isfinite(values)
    order = sorted(name for name in names.unique().to_pylist() if name is not None)
    first = parts[0]
    series, _ = from_rows(
        times[known],
        names.filter(pa.array(known)),
        values[known],
        quantity=quantity,
        unit=first.unit,
        level=first.level,
        step_s=first.step_s,
        first=float(np.nanmin(times)),
        order=order,
    )
    return series


def _nothing(records: Sequence[Read], period: Period) -> str:
    """Say why there is no traffic: no source, or none with samples of the period."""
    spans = []
    for each in records:
        for name in ("lmt", "samples", "node_io", "series"):
            if _reader_of(each) is not None and name in each.tables and each.tables[name].num_rows:
                times = numbers(each.tables[name], "time")
                times = times[np.isfinite(times)]
                if len(times):
                    spans.append(f"{each.path} begins at {shown(times.min())}")
    return f"no samples of servers from {period}" + (f" ({'; '.join(spans[:3])})" if spans else "")
