"""Summaries of jobs in memory: the table of scalars, the table of notes, and the slices.

A log has one row; its key is ``_log_id``. Merging with newer summaries replaces rows of the same log. A log that was
cut when it was first read may get another ID when it is whole, so that job, start and file name say, too, that two logs
are the same. The row of a whole log replaces that of a part of it, and never the other way round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from mpiio_ext.analytics.jobs.columns import NOTES, SUMMARY
from mpiio_ext.analytics.tables.schema import Table
from mpiio_ext.analytics.tools.series import Series

__all__ = ["Slice", "Summaries", "arrow_schema", "places_of_logs", "table_of"]

#: Series of a job by name: bytes_read, bytes_written, oss_cpu, open_ops …
Slice = Mapping[str, Series]


def arrow_schema(table: Table) -> Any:
    """Return the Arrow schema of a table; each field says its unit and meaning in its metadata."""
    return pa.schema([
        pa.field(column.name, column.arrow, metadata={"unit": column.unit, "meaning": column.meaning})
        for column in table.columns
    ])  # fmt: skip


def _in_part(row: Mapping[str, Any]) -> bool:
    """Return whether a row is of a part of its log."""
    return any(line.startswith("darshan partial: ") for line in (row.get("_notes") or "").splitlines())


def places_of_logs(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return which rows count where several are of one log: the last one of the whole log, else the last one."""
    kept: dict[int, Mapping[str, Any]] = {}
    places: dict[Any, int] = {}
    for place, row in enumerate(rows):
        names: list[Any] = [row["_log_id"]]
        named = tuple(row.get(name) for name in ("_jobid", "darshan_start_time", "_log"))
        if None not in named:
            names.append(named)
        same = {places[name] for name in names if places.get(name) in kept}
        if _in_part(row) and any(not _in_part(kept[each]) for each in same):
            continue
        for each in same:
            del kept[each]
        kept[place] = row
        places |= dict.fromkeys(names, place)
    return list(kept)


def table_of(table: Table, rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows as an Arrow table; columns that a row does not have are NULL, others that it has are left out."""
    rows = list(rows)
    schema = arrow_schema(table)
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


@dataclasses.dataclass(frozen=True, eq=False)
class Summaries:
    """Summaries of jobs.

    Attributes
    ----------
    table : pyarrow.Table
        A row a log, with the columns of :data:`.columns.SUMMARY`, ordered by ``_datetime_start`` and ``_log_id``.
    notes : pyarrow.Table
        :data:`.columns.NOTES`: what was missing or damaged; of a log without a row ``_log_id`` is NULL.
    slices : mapping of int to Slice
        By ``_log_id``: what the servers did in each step of the job.
    """

    table: Any
    notes: Any
    slices: Mapping[int, Slice] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: Iterable[Mapping[str, Any]],
        notes: Iterable[Mapping[str, Any]] = (),
        slices: Mapping[int, Slice] | None = None,
    ) -> Summaries:
        """Return summaries of rows by column."""
        table = table_of(SUMMARY, rows).sort_by([("_datetime_start", "ascending"), ("_log_id", "ascending")])
        return cls(table, table_of(NOTES, notes), dict(slices or {}))

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows by column."""
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found

    def of_job(self, job_id: int) -> Summaries:
        """Return the summaries of one job of the scheduler, which may have several logs."""
        import pyarrow.compute as pc

        table = self.table.filter(pc.equal(self.table["_jobid"], job_id))
        notes = self.notes.filter(pc.equal(self.notes["_jobid"], job_id))
        logs = set(table["_log_id"].to_pylist())
        return Summaries(table, notes, {log: self.slices[log] for log in self.slices if log in logs})

    def merged(self, newer: Summaries) -> Summaries:
        """Return both; where they have the same log, what is newer, unless only the older one is of the whole log."""
        before, after = self.rows(), newer.rows()
        rows = [*before, *after]
        places = places_of_logs(rows)
        fresh = newer.notes.to_pylist()
        about = {note["what"] for note in fresh if note["_log_id"] is None}
        notes: list[dict[str, Any]] = []
        slices: dict[int, Slice] = {}
        for part, told, first, last in (
            (self, self.notes.to_pylist(), 0, len(before)),
            (newer, fresh, len(before), len(rows)),
        ):
            logs = {rows[place]["_log_id"] for place in places if first <= place < last}
            unread = about if part is self else set()
            notes += [
                note for note in told
                if (note["what"] not in unread if note["_log_id"] is None else note["_log_id"] in logs)
            ]  # fmt: skip
            slices |= {log: found for log, found in part.slices.items() if log in logs}
        return Summaries.of([rows[place] for place in places], notes, slices)
