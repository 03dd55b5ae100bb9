"""Merge sorted Parquet files into sorted Parquet files, in bounded memory.

Algorithm. Each source holds one batch. The bound is the smallest last key of the batches; all rows up to it leave their
sources, are sorted together and written. A source whose batch is used up reads the next. Where rows of one key must be
seen together, because the best of them stays (`best_rows`), only rows below the bound leave, and sources that end at
the bound read on.

Memory. One batch a source, and one row group of the output. The more sources there are, the smaller are their batches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mpiio_ext.analytics.store.conflicts import Conflicts
from mpiio_ext.analytics.tables.parquet import KEYS, key_of

#: Rows of the batches of all sources together; of one source at least and at most.
_ROWS, _LEAST_ROWS, _MOST_ROWS = 1 << 17, 1024, 8192

#: Tables whose rows are facts that several logs may contain: by what two rows are known to be of the same thing (the
#: first alternative of which no column is NULL), and the facts that make a row better. Runs of a job that was requeued
#: may have one time of submission: it only counts for a row without a start.
IDENTITY: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "slurm": ((("job_id", "start_time"), ("job_id", "submit_time")), ("start_time", "end_time")),
    "lmt": ((("time", "ost_name"),), ("bytes_read", "bytes_written")),
}


@dataclasses.dataclass(frozen=True)
class Source:
    """A sorted file, and the logs whose rows in it do not count any more; a larger `age` is newer."""

    path: Path
    without: frozenset[int] = frozenset()
    age: int = 0


class _Reader:
    """The rows of one source that have not left yet."""

    def __init__(self, source: Source, schema: pa.Schema, key: str, batch_rows: int) -> None:
        self._file = pq.ParquetFile(source.path, memory_map=True)
        self._batches: Iterator[Any] = self._file.iter_batches(batch_size=batch_rows)
        self._schema, self._key, self._source = schema, key, source
        self.rows = schema.empty_table()
        self.keys: Any = np.array([])
        self.ended = False
        self.read_on()

    def read_on(self) -> None:
        """Append the next batch that has rows."""
        while not self.ended:
            batch = next(self._batches, None)
            if batch is None:
                self.ended = True
                self._file.close()
                return
            table = self._with_columns(pa.Table.from_batches([batch]))
            if table.num_rows:
                self.rows = pa.concat_tables([self.rows, table])
                self.keys = np.asarray(self.rows.column(self._key))
                return

    def _with_columns(self, table: pa.Table) -> pa.Table:
        if self._source.without:
            gone = pa.array(sorted(self._source.without), pa.int64())
            table = table.filter(pc.invert(pc.is_in(table.column("source_log"), value_set=gone)))
        columns = [
            table.column(field.name)
            if field.name in table.column_names
            else pa.array(np.full(table.num_rows, self._source.age))
            if field.name == "age"
            else _absent(field, table)
            for field in self._schema
        ]
        return pa.table(columns, schema=self._schema)

    def leave(self, bound: float, *, whole: bool) -> pa.Table:
        """Take out the rows up to `bound`: with it if `whole`."""
        count = int(np.searchsorted(self.keys, bound, side="right" if whole else "left"))
        out, self.rows, self.keys = self.rows.slice(0, count), self.rows.slice(count), self.keys[count:]
        if not self.rows.num_rows:
            self.read_on()
        return out


def _absent(field: pa.Field, table: pa.Table) -> pa.Array:
    """Return a column that older files lack: words of an existing bitmap are 0, others are NULL."""
    if field.name.startswith("ost_word_") and "osts" in table.column_names:
        lacks = np.asarray(pc.is_null(table.column("osts")))
        return pa.array(np.zeros(table.num_rows, dtype=np.int64), mask=lacks)
    return pa.nulls(table.num_rows, field.type)


def best_rows(table: str, rows: pa.Table) -> pa.Table:
    """Return one row for each fact: the one that knows more, then the newer one; sorted as the table is.

    Parameters
    ----------
    table : one of `IDENTITY`.
    rows : with a column ``age`` beside those of the table.
    """
    alternatives, wanted = IDENTITY[table]
    known = np.zeros(rows.num_rows, dtype=np.int64)
    for name in rows.column_names:
        known += np.asarray(pc.is_valid(rows.column(name))).astype(np.int64) * (1000 if name in wanted else 1)
    ranked = rows.append_column("known", pa.array(-known))
    for place, identity in enumerate(alternatives):
        ranked = _first_of_each(ranked, identity, alternatives[:place])
    return ranked.sort_by([(key, "ascending") for key in KEYS[table]]).drop_columns(["known", "age"])


def _best(table: str, rows: pa.Table, conflicts: Conflicts | None) -> pa.Table:
    if conflicts is not None and table == "lmt":
        (identity,), values = IDENTITY[table]
        conflicts.look_at(rows, identity, values)
    return best_rows(table, rows)


def _first_of_each(rows: pa.Table, identity: Sequence[str], earlier: Sequence[Sequence[str]]) -> pa.Table:
    """Return the row of each identity that knows most and is newest, and every row that the identity is not for.

    It is not for rows without a value in a column of it, and for those that have an `earlier` identity.
    """
    order = [(name, "ascending") for name in identity] + [("known", "ascending"), ("age", "descending")]
    rows = rows.sort_by(order)
    first = np.zeros(rows.num_rows, dtype=bool)
    first[:1] = True
    for name in identity:
        column = rows.column(name).combine_chunks()
        codes = np.asarray(pc.fill_null(pc.dictionary_encode(column).indices, -1))
        first[1:] |= codes[1:] != codes[:-1]
        first |= codes < 0
    for columns in earlier:
        first |= np.all([np.asarray(pc.is_valid(rows.column(name))) for name in columns], axis=0)
    return rows.filter(pa.array(first))


def merged(
    table: str, sources: Sequence[Source], schema: pa.Schema, conflicts: Conflicts | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of the sources in the order of the table's key, as Arrow tables.

    Parameters
    ----------
    sources : sequence of Source
    schema : of the result; columns that a source lacks are NULL (words of the OST bitmap 0).
    conflicts : is shown the rows of ``lmt``.
    """
    together = table in IDENTITY
    inner = schema.append(pa.field("age", pa.int64())) if together else schema
    order = [(key, "ascending") for key in KEYS[table]]
    finish: Callable[[Any], Any] = (
        (lambda rows: _best(table, rows, conflicts)) if together else (lambda rows: rows.sort_by(order))
    )
    size = max(_LEAST_ROWS, min(_MOST_ROWS, _ROWS // max(1, len(sources))))
    opened = (_Reader(source, inner, key_of(table), size) for source in sources)
    readers = [reader for reader in opened if reader.rows.num_rows]
    while readers:
        going = [reader for reader in readers if not reader.ended]
        bound = min((reader.keys[-1] for reader in going), default=None)
        if bound is None:
            yield finish(pa.concat_tables([reader.rows for reader in readers]))
            return
        taken = [reader.leave(bound, whole=not together) for reader in readers]
        rows = pa.concat_tables(taken)
        if rows.num_rows:
            yield finish(rows)
        else:
            for reader in going:
                if reader.keys[-1] == bound:
                    reader.read_on()
        readers = [reader for reader in readers if reader.rows.num_rows]
