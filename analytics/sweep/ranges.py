"""A table of files in pieces of whole jobs, so that memory is bounded whatever the table's size.

Problem. An analysis by job needs all rows of a job at once, but never all jobs. A table of a store has millions of jobs
in many Parquet files; a job may have rows in two of them.

Algorithm. The Parquet files' statistics give the range of jobs of each row group. Job ids are cut into ranges of about
as many rows as asked for; each range is read by a filter, for which Arrow reads only row groups that can match. A table
in memory is sliced at the ends of jobs; it is sorted first if it is not ordered by job.

Guarantees. Every row whose job is known comes exactly once, all rows of a job in the same piece. Rows without a job
come in a piece of their own, the last. Memory: a piece, and on either side of it a row group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.sweep.intervals import group_starts
from mpiio_ext.analytics.tables.plain import values_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

#: Rows of a piece by default; of a dozen columns about 200 MB.
ROWS = 1 << 20

#: A table of files in memory, a dataset, or paths of Parquet files.
Files: TypeAlias = "pa.Table | pa.RecordBatch | ds.Dataset | str | Path | Sequence[str | Path]"
#: Reads one piece of it.
Piece: TypeAlias = "Callable[[], pa.Table]"


def job_ranges(
    source: Files, columns: Sequence[str] | None = None, *, by: str = "job_id", rows: int = ROWS
) -> list[Piece]:
    """Return functions that each read one piece of a table: whole jobs, about `rows` rows.

    Parameters
    ----------
    source : pyarrow.Table, pyarrow.dataset.Dataset, path, or sequence of paths
        A table of files; paths are Parquet files or folders of them.
    columns : sequence of str, optional
        Columns to read; those that the source does not have are left out. `by` is always read. None: all.
    by : str
        Column of the job.
    rows : int
        Rows of a piece; a job with more is a piece by itself.

    Returns
    -------
    list of callable
        Each returns a :class:`pyarrow.Table`; they may be called in any order, from several threads.

    Raises
    ------
    AnalyticsError
        The source has no column `by`, or cannot be read as a table.
    """
    import pyarrow as pa

    source = opened(source)
    names = source.schema.names
    if by not in names:
        raise AnalyticsError(f"the table of files has no column {by}; it has {', '.join(names[:12])}")
    chosen = names if columns is None else [name for name in names if name in {*columns, by}]
    if isinstance(source, pa.Table):
        return list(_slices(source.select(chosen), by, rows))
    return list(_filters(source, chosen, by, rows))


def opened(source: Files) -> pa.Table | ds.Dataset:
    """Return a table in memory as it is, a batch as a table, and paths of Parquet files as one dataset."""
    import pyarrow as pa

    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    import pyarrow.dataset as ds  # it imports pandas

    if isinstance(source, (str, Path)):
        return ds.dataset(str(source), format="parquet")
    if isinstance(source, (list, tuple)):
        return ds.dataset([str(path) for path in source], format="parquet")
    if not isinstance(source, ds.Dataset):
        raise AnalyticsError(
            f"{type(source).__name__} is no table of files: pass an Arrow table or dataset, or paths of Parquet files"
        )
    return source


def _slices(table: pa.Table, by: str, rows: int) -> Iterator[Piece]:
    import pyarrow.compute as pc

    known = table.filter(pc.is_valid(table[by])) if table[by].null_count else table
    job = values_of(known[by])
    if not bool(np.all(job[1:] >= job[:-1])):
        order = np.argsort(job, kind="stable")
        known, job = known.take(order), job[order]
    starts = group_starts(job)
    at = 0
    while at < len(job):
        after = int(np.searchsorted(starts, at + rows, side="left"))
        end = int(starts[after]) if after < len(starts) else len(job)
        yield functools.partial(known.slice, at, end - at)
        at = end
    if table[by].null_count:
        yield (lambda: table.filter(pc.is_null(table[by])))


def _filters(source: ds.Dataset, columns: Sequence[str], by: str, rows: int) -> Iterator[Piece]:
    import pyarrow.dataset as ds

    def read(condition: ds.Expression) -> Piece:
        return lambda: source.to_table(columns=list(columns), filter=condition, use_threads=False)

    groups = _row_groups(source, by)
    cuts: list[int] = []
    filled = 0
    for low, count in groups:
        if filled >= rows and (not cuts or low > cuts[-1]):
            cuts.append(low)
            filled = 0
        filled += count
    field = ds.field(by)
    for low_cut, high_cut in zip([None, *cuts], [*cuts, None], strict=True):
        condition = field.is_valid()
        if low_cut is not None:
            condition = condition & (field >= low_cut)
        if high_cut is not None:
            condition = condition & (field < high_cut)
        yield read(condition)
    yield read(field.is_null())


def _row_groups(source: ds.Dataset, by: str) -> list[tuple[int, int]]:
    """Return (lowest job, rows) of each row group, ascending; of a file without statistics, of all of it by reading."""
    found: list[tuple[int, int]] = []
    for fragment in source.get_fragments():
        for group in getattr(fragment, "row_groups", [None]):
            low = (getattr(group, "statistics", None) or {}).get(by, {}).get("min")
            if group is None or low is None:
                column = fragment.to_table(columns=[by])[by].drop_null().to_numpy()
                parts = np.array_split(np.sort(column), max(1, len(column) // (1 << 16)))
                found += [(int(part[0]), len(part)) for part in parts if len(part)]
                break
            found.append((int(low), group.num_rows))
    return sorted(found)


def job_batches(batches: Iterable[pa.RecordBatch], by: str, rows: int = ROWS) -> Iterator[pa.Table]:
    """Yield tables of whole jobs from record batches that are ordered by job, about `rows` rows each.

    Raises
    ------
    AnalyticsError
        The batches are not ordered by `by`.
    """
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    count, last = 0, None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        job = batch.column(batch.schema.get_field_index(by)).to_numpy()
        if not bool(np.all(job[1:] >= job[:-1])) or (last is not None and job[0] < last):
            raise AnalyticsError(f"rows are not ordered by {by}: sort them first")
        last = job[-1]
        end = int(np.searchsorted(job, last))  # the last job may go on in the next batch
        if waiting and count + end >= rows and not (end == 0 and job[0] == _last(waiting, by)):
            yield pa.Table.from_batches([*waiting, batch.slice(0, end)])
            waiting, count = [], 0
            batch = batch.slice(end)
        waiting.append(batch)
        count += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)


def _last(batches: Sequence[pa.RecordBatch], by: str) -> int:
    column = batches[-1].column(batches[-1].schema.get_field_index(by))
    return int(column[len(column) - 1].as_py())
