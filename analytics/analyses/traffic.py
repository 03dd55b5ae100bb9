"""What questions about ranges of jobs read from each storage target of a placed store, and where the tables lie.

Problem. A store is placed on storage targets so that executors do not meet on one, and so that a question about some
jobs leaves the other targets alone (IOMiner, Section II-C, Figure 2). Whether it does is a matter of bytes.

Algorithm. `placement_of` adds up the manifest. `traffic_of` adds up what the footers say of the row groups that a range
of jobs needs, or carries the join of the tables out and takes what the engine has counted: DuckDB by file, Spark by
task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.analyses.counting import count_words, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.store.placement import target_of, traffic
from mpiio_ext.common.units import size_text

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.miner import IOMiner
    from mpiio_ext.analytics.store.catalog import Catalog

__all__ = ["placement_of", "traffic_of"]

_EVERY = (-(2**62), 2**62)


def _table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, tuple[Any, str]]) -> pa.Table:
    """Return rows as a table whose columns have types and, as metadata, units."""
    import pyarrow as pa

    fields = [pa.field(name, kind, metadata={"unit": unit} if unit else None) for name, (kind, unit) in columns.items()]
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(fields))


def _chart(name: str, title: str, rows: Sequence[Mapping[str, Any]], axis: str) -> list[Chart]:
    """Return the bytes of each target as a figure; none of nothing."""
    total = sum(row["bytes"] for row in rows)
    if not total:
        return []
    return [Chart(kind="bars", name=name, title=title, data={
        "labels": [_label(row["target"]) for row in rows],
        "series": [{"name": "bytes", "values": [row["bytes"] for row in rows]}],
        "notes": [share_words(share(row["bytes"], total)) for row in rows],
        "x_label": "storage target", "y_label": axis,
    })]  # fmt: skip


def _label(target: int) -> str:
    return "store" if target < 0 else str(target)


def _folders(catalog: Catalog) -> dict[int, str]:
    found = dict(enumerate(catalog.manifest.placement.get("folders", ())))
    return found or {-1: str(catalog.folder)}


def placement_of(catalog: Catalog) -> Result:
    """Return what lies on each storage target: ``target``, ``folder``, ``subtables``, ``files``, ``rows``, ``bytes``.

    Target -1 is the store's own folder: what is not placed (yet).
    """
    import pyarrow as pa

    found: dict[int, dict[str, Any]] = {
        target: {"target": target, "folder": folder, "subtables": 0, "files": 0, "rows": 0, "bytes": 0}
        for target, folder in _folders(catalog).items()
    }
    for entry in catalog.manifest.files:
        empty = {"target": -1, "folder": str(catalog.folder), "subtables": 0, "files": 0, "rows": 0, "bytes": 0}
        row = found.setdefault(entry.target, empty)
        for name, value in (("files", 1), ("rows", entry.rows), ("bytes", entry.bytes)):
            row[name] += value
    for target, row in found.items():
        row["subtables"] = len({one.subtable for one in catalog.manifest.files if one.target == target >= 0})
    rows = [found[target] for target in sorted(found)]
    count = int(catalog.manifest.placement.get("subtables", 0))
    words = f"{count_words(len(rows), 'storage target')}, {count_words(count, 'subtable')} of each table."
    number = pa.int64()
    return Result(
        name="place", title="Tables on storage targets", unit="B",
        caption=words if count else "The store is not placed.",
        parameters={"subtables": count}, charts=_chart("place", "Bytes of the tables", rows, "bytes of tables [B]"),
        table=_table(rows, {"target": (number, ""), "folder": (pa.string(), ""), "subtables": (number, ""),
                            "files": (number, ""), "rows": (number, ""), "bytes": (number, "B")}),
    )  # fmt: skip


def traffic_of(
    miner: IOMiner,
    tables: Sequence[str],
    jobs: tuple[int | None, int | None] | None = None,
    *,
    columns: Sequence[str] | None = None,
    measured: bool = False,
) -> Result:
    """Return the bytes that a join of tables for a range of jobs reads from each storage target.

    Parameters
    ----------
    miner : IOMiner
    tables : sequence of str
        Joined by ``job_id``, in this order.
    jobs : pair of int, optional
        Smallest and largest job ID; None: no bound.
    columns : sequence of str, optional
        That the question needs, beside the key; default: all.
    measured : bool
        Carry the join out on the miner's engine, and return what the engine counted, by executor and task on Spark.

    Returns
    -------
    Result
        Rows: ``target``, ``folder``, ``executor`` and ``tasks`` (measured on Spark), ``files`` and ``groups`` (of the
        footers), ``bytes`` [B], ``percent`` of the bytes that the same tables have in all (of the footers).

    Raises
    ------
    AnalyticsError
        A table does not exist or has no jobs, or the range is none.
    """
    import pyarrow as pa

    if not tables:
        raise AnalyticsError("traffic needs a table: darshan_job, darshan_file, slurm or runs")
    catalog = miner.catalog
    tuples = [miner.load(name, jobs) for name in tables]
    low, high = (bound if given is None else given for given, bound in zip(jobs or (None, None), _EVERY, strict=True))
    every = {one.target: one.bytes for one in traffic(catalog, tables, *_EVERY, columns=columns)}
    rows = _counted(catalog, tuples, columns) if measured else [
        {"target": one.target, "folder": one.folder, "files": one.files, "groups": one.groups, "bytes": one.bytes,
         "percent": share(one.bytes, every.get(one.target, 0))}
        for one in traffic(catalog, tables, low, high, columns=columns)
    ]  # fmt: skip
    number = pa.int64()
    kinds: dict[str, tuple[Any, str]] = {"target": (number, ""), "folder": (pa.string(), "")}
    if measured:
        kinds |= {"executor": (pa.string(), ""), "tasks": (number, ""), "bytes": (number, "B")}
    else:
        kinds |= {"files": (number, ""), "groups": (number, ""), "bytes": (number, "B"), "percent": (pa.float64(), "%")}
    return Result(
        name="traffic", title="Bytes read per storage target", unit="B",
        caption=_caption(rows, sum(every.values()), measured),
        parameters={"tables": list(tables), "jobs": None if jobs is None else list(jobs), "measured": measured,
                    "engine": miner.setup.engine.name},
        table=_table(rows, kinds), charts=_chart("traffic", "Bytes read", _by_target(rows), "bytes read [B]"),
    )  # fmt: skip


def _counted(catalog: Catalog, tuples: Sequence[Any], columns: Sequence[str] | None) -> list[dict[str, Any]]:
    """Carry the join out, and return what was read by target and executor."""
    first, *others = [one if columns is None else _few(one, columns) for one in tuples]
    for other in others:
        first = first.join(other, "job_id")
    folders = _folders(catalog)
    places = {folder.rstrip("/") + "/": target for target, folder in folders.items()}
    found: dict[tuple[int, str], dict[str, Any]] = {
        (target, ""): {"target": target, "folder": folder, "executor": None, "tasks": None, "bytes": 0}
        for target, folder in folders.items()
    }
    for read in first.reads():
        by = next((target for folder, target in places.items() if read.path.startswith(folder)), -1)
        target = by if read.unit < 0 else _target(catalog, first.engine.dispatch, read.unit)
        key = (target, read.executor)
        if key not in found:
            found[key] = {
                "target": target,
                "folder": folders.get(target),
                "executor": read.executor,
                "tasks": 0,
                "bytes": 0,
            }
            found.pop((target, ""), None)
        found[key]["bytes"] += read.bytes
        if read.task >= 0:
            found[key]["tasks"] += 1
    return [found[key] for key in sorted(found)]


def _few(tuples: Any, columns: Sequence[str]) -> Any:
    return tuples.project(*dict.fromkeys(["job_id", *(name for name in columns if name in tuples.columns)]))


def _target(catalog: Catalog, dispatch: str, unit: int) -> int:
    placement = catalog.manifest.placement
    return unit if dispatch == "target" else target_of(unit, int(placement["subtables"]), len(placement["folders"]))


def _by_target(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found: dict[int, int] = {}
    for row in rows:
        found[row["target"]] = found.get(row["target"], 0) + row["bytes"]
    return [{"target": target, "bytes": size} for target, size in found.items()]


def _caption(rows: Sequence[Mapping[str, Any]], every: int, measured: bool) -> str:
    targets = _by_target(rows)
    read = [one for one in targets if one["bytes"]]
    total = sum(one["bytes"] for one in read)
    how = "counted by the engine, with footers" if measured else "of the row groups, by their footers"
    words = [f"{size_text(total)} from {len(read)} of {count_words(len(targets), 'target')}, {how}."]
    if not measured and every:
        words.append(f"All of the tables are {size_text(every)}: {share_words(share(total, every))}.")
    return " ".join(words)
