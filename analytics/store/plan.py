"""The work of a fill: which logs of the period are new or have changed, and which are copies of another.

A log with the same content as a known log gives no rows: it is a duplicate, and the manifest names the other log. When
the other log changes, this log is checked again.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.setup import Setup
from mpiio_ext.analytics.store.logtable import compare, keys_of

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Flags, Whole

Date = str | datetime.date | None


def day_of(value: Date, name: str) -> str:
    """Return a date as ``YYYY-MM-DD``; "" for None.

    Raises
    ------
    AnalyticsError
        The value is no date.
    """
    if value is None:
        return ""
    if isinstance(value, datetime.date):
        return value.strftime("%Y-%m-%d")
    try:
        return datetime.datetime.fromisoformat(value).date().isoformat()
    except ValueError as error:
        raise AnalyticsError(f"{name} is {value!r}, and a date as 2018-01-28 is wanted") from error


@dataclasses.dataclass(frozen=True)
class Plan:
    """The work of a fill.

    Attributes
    ----------
    todo : pyarrow.Table
        Logs to convert, as `SEEN` with ``period``.
    replaced : pyarrow.Table
        What the manifest says of those among them that have changed.
    vanished, returned : pyarrow.Table
        What it says of logs that are gone, or there again.
    known : logs that it knows and that are unchanged.
    outside : pyarrow.Table
        Logs that are not of the period, as `SEEN`.
    looked_at : pyarrow.Table
        Those among them that the manifest does not know yet, and whose date is not that of their path.
    """

    todo: Any
    replaced: Any
    vanished: Any
    returned: Any
    known: int
    outside: Any
    looked_at: Any


def _in_period(seen: pa.Table, start: str, end: str) -> Flags:
    dates = seen.column("date")
    inside = np.ones(seen.num_rows, dtype=bool)
    undated = np.asarray(pc.equal(dates, ""))
    if start:
        inside &= np.asarray(pc.greater_equal(dates, start)) | undated
    if end:
        inside &= np.asarray(pc.less_equal(dates, end)) | undated
    return inside


def plan(seen: pa.Table, logs: pa.Table, setup: Setup, start: str, end: str) -> Plan:
    """Compare a scan with the manifest's logs and return the work for the days from `start` to `end`."""
    found = compare(seen, logs)
    before, changed = _with_repeats(seen, logs, found.before, found.changed)
    inside = _in_period(seen, start, end)
    new = found.new[inside[found.new]]
    keep = inside[changed] if len(changed) else np.zeros(0, dtype=bool)
    rows = np.concatenate([new, changed[keep]]).astype(np.int64)
    todo = seen.take(pa.array(rows)).sort_by([("root", "ascending"), ("path", "ascending")])
    length = 7 if setup.period == "month" else 10
    periods = pc.utf8_slice_codeunits(todo.column("date"), 0, length)
    periods = pc.if_else(pc.equal(periods, ""), "undated", periods)
    out_new, out_old = found.new[~inside[found.new]], changed[~keep].astype(np.int64)
    unknown = seen.take(pa.array(out_new))
    scanned = {source.kind for source in setup.inputs}
    vanished = logs.take(pa.array(found.vanished))
    return Plan(
        todo=todo.append_column("period", periods),
        replaced=logs.take(pa.array(before[keep].astype(np.int64))),
        vanished=vanished.filter(pc.is_in(vanished.column("kind"), value_set=pa.array(sorted(scanned), pa.string()))),
        returned=logs.take(pa.array(found.returned)),
        known=found.known - (len(changed) - len(found.changed)),
        outside=pa.concat_tables([unknown, seen.take(pa.array(out_old))]),
        looked_at=unknown.filter(pc.not_equal(unknown.column("dated"), "path")),
    )


def _with_repeats(seen: pa.Table, logs: pa.Table, before: Whole, changed: Whole) -> tuple[Whole, Whole]:
    """Return rows of the manifest and of the scan: those of changed logs, and those of logs that repeated them."""
    if not len(before):
        return before, changed
    old = logs.take(pa.array(before))
    names = pc.binary_join_element_wise(old.column("root"), old.column("path"), "/").combine_chunks()
    repeats = np.flatnonzero(np.asarray(pc.is_in(pc.fill_null(logs.column("same_as"), ""), value_set=names)))
    repeats = np.setdiff1d(repeats, before)
    place = pc.index_in(keys_of(logs.take(pa.array(repeats))), value_set=keys_of(seen).combine_chunks())
    there = np.asarray(pc.is_valid(place))
    places = np.asarray(place.drop_null(), dtype=np.int64)
    return np.concatenate([before, repeats[there]]), np.concatenate([changed, places])


def mark_duplicates(todo: pa.Table, found: pa.Array, logs: pa.Table, replaced: pa.Table) -> pa.Array:
    """Return for each log to convert the log with the same contents, or NULL.

    Parameters
    ----------
    todo, found : pyarrow.Table, pyarrow.Array
        Logs, and the digest of each ("" or "!…" where there is none).
    logs, replaced : those of the manifest, and those of them that do not count any more.
    """
    names = pc.binary_join_element_wise(todo.column("root"), todo.column("path"), "/").combine_chunks()
    marked = pa.table({"kind": todo.column("kind"), "digest": found, "row": np.arange(todo.num_rows)})
    mine = pc.binary_join_element_wise(marked.column("kind"), marked.column("digest"), "\0").combine_chunks()
    alone = np.asarray(pc.or_(pc.equal(found, ""), pc.starts_with(found, "!")))
    out: list[str | None] = [None] * todo.num_rows
    valid = np.asarray(
        pc.and_(
            pc.not_equal(pc.fill_null(logs.column("digest"), ""), ""), pc.not_equal(logs.column("status"), "duplicate")
        )
    )
    if replaced.num_rows:
        valid &= ~np.asarray(pc.is_in(keys_of(logs), value_set=keys_of(replaced).combine_chunks()))
    old = logs.filter(pa.array(valid))
    theirs = pc.binary_join_element_wise(old.column("kind"), old.column("digest"), "\0")
    place = pc.index_in(mine, value_set=theirs.combine_chunks() if old.num_rows else pa.array([], pa.string()))
    unique = pc.unique(mine)
    order = pc.index_in(mine, value_set=unique)
    firsts = np.full(len(unique), -1, dtype=np.int64)
    firsts[np.asarray(order)[::-1]] = np.arange(todo.num_rows)[::-1]
    earliest = firsts[np.asarray(order)]
    again = ~alone & (np.asarray(pc.is_valid(place)) | (earliest < np.arange(todo.num_rows)))
    for row in np.flatnonzero(again).tolist():
        known = place[row].as_py()
        if known is not None:
            out[row] = f"{old.column('root')[known].as_py()}/{old.column('path')[known].as_py()}"
        else:
            out[row] = names[int(earliest[row])].as_py()
    return pa.array(out, pa.string())
