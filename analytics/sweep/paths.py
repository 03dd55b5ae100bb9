"""Critical paths of all jobs of a table: one row a job, or one row a critical file.

Problem. Ten million files of a million jobs, read from Parquet, in bounded memory.

Algorithm. Pieces of whole jobs (:mod:`mpiio_ext.analytics.sweep.ranges`) go through the sweep line in C, several
pieces at a time in threads: reading and sweeping both run without Python's lock. What a job's row says is added up
over its files by segmented reductions.

Guarantees. Rows in the order of job ids. A file without a time that counts is reported in ``not_counted``, never
counted.

Source: IOMiner, Section II-D.
"""

from __future__ import annotations

import concurrent.futures
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from mpiio_ext.analytics.sweep.intervals import group_starts, sweep
from mpiio_ext.analytics.sweep.ranges import ROWS, Files, Piece, job_ranges, opened
from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.analytics.tables.plain import column_of_array, numbers_of, values_of
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

Direction = Literal["read", "write"]
Result = TypeVar("Result")


def check_direction(direction: str) -> None:
    """Raise ArgumentError unless `direction` is ``read`` or ``write``."""
    if direction not in ("read", "write"):
        raise ArgumentError(f"direction is {direction!r}; it is 'read' or 'write'")


def mapped(function: Callable[[pa.Table], Result], pieces: Iterable[Piece], threads: int) -> Iterator[Result]:
    """Yield ``function(piece())`` for each piece in order; at most `threads` are under way, and one waits."""
    if threads <= 1:
        for piece in pieces:
            yield function(piece())
        return
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        waiting: deque[concurrent.futures.Future[Result]] = deque()
        for piece in pieces:
            waiting.append(pool.submit(_compose, function, piece))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _compose(function: Callable[[pa.Table], Result], piece: Piece) -> Result:
    return function(piece())


def critical_paths(
    source: Files, direction: Direction = "write", *, by: str = "job_id", threads: int = 2, rows: int = ROWS
) -> pa.Table:
    """Return the critical path of every job of a table of files.

    Parameters
    ----------
    source : pyarrow.Table, pyarrow.dataset.Dataset, path, or sequence of paths
        Table ``darshan_file``, or any with the columns `by`, ``{direction}_start``, ``{direction}_end`` (seconds).
    direction : {"read", "write"}
    by : str
        What a job is: ``job_id``, or ``log_id`` for each run of a program by itself.
    threads : int
        Pieces that are read and swept at the same time.
    rows : int
        Rows of a piece: what bounds the memory.

    Returns
    -------
    pyarrow.Table
        One row a job with a known id: `by`, ``files`` (rows of the job), ``counted`` (files with a time),
        ``critical_files``, ``start``, ``end`` (first start, last end; NULL without any). ``critical_time`` (s; NULL
        without any) and ``longest_time`` (s, exclusive, of one file). ``not_counted``: files whose start or end is
        unknown or makes no sense. Files that do not move bytes in this direction have neither and are among them.

    Raises
    ------
    ArgumentError, AnalyticsError
        A direction that does not exist; a source that is no such table.
    """
    import pyarrow as pa

    check_direction(direction)
    columns = [by, f"{direction}_start", f"{direction}_end"]
    found = list(mapped(lambda piece: _paths(piece, columns), _pieces(source, columns, by, rows), threads))
    return pa.concat_tables([table for table in found if table is not None] or [_no_paths(by)])


def critical_files(
    source: Files,
    direction: Direction = "write",
    columns: Sequence[str] = ("file_id",),
    *,
    by: str = "job_id",
    threads: int = 2,
    rows: int = ROWS,
) -> pa.Table:
    """Return the critical files of every job, in the order in which they are critical.

    Parameters
    ----------
    source, direction, by, threads, rows
        As for :func:`critical_paths`.
    columns : sequence of str
        Further columns of the table to pass on.

    Returns
    -------
    pyarrow.Table
        `by`, `columns`, ``{direction}_start``, ``{direction}_end``, ``since`` (where the file's part of the critical
        path begins), ``exclusive`` (s), ``share`` (of the job's critical time).
    """
    import pyarrow as pa

    check_direction(direction)
    wanted = list(dict.fromkeys([by, *columns, f"{direction}_start", f"{direction}_end"]))
    pieces = _pieces(source, wanted, by, rows)
    found = list(mapped(lambda piece: _files(piece.select(wanted)), pieces, threads))
    return pa.concat_tables(found or [_files(opened(source).slice(0, 0).select(wanted))])


def _pieces(source: Files, columns: Sequence[str], by: str, rows: int) -> list[Piece]:
    """Return pieces by job; also where each run is one by itself, because tables are ordered by job."""
    source = opened(source)
    key = "job_id" if by == "log_id" and "job_id" in source.schema.names else by
    return job_ranges(source, columns, by=key, rows=rows)


def _paths(piece: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """Return the row of each job of a piece, or None if it has no job."""
    import pyarrow as pa
    import pyarrow.compute as pc

    by, start_name, end_name = columns
    piece = piece.filter(pc.is_valid(piece[by])) if piece[by].null_count else piece
    if piece.num_rows == 0:
        return None
    job, start, end = values_of(piece[by]), numbers_of(piece[start_name]), numbers_of(piece[end_name])
    starts = group_starts(job)
    if not bool(np.all(np.diff(job[starts]) > 0)):  # a run of a program may stand in two places
        order = np.argsort(job, kind="stable")
        job, start, end = job[order], start[order], end[order]
        starts = group_starts(job)
    found = sweep(start, end, job)
    sizes = np.diff(np.append(starts, len(job)))
    counted = np.add.reduceat(found.counted.astype(np.int64), starts)
    nothing = counted == 0
    first = np.minimum.reduceat(np.where(found.counted, start, np.inf), starts)
    last = np.maximum.reduceat(np.where(found.counted, end, -np.inf), starts)

    def known(values: Numbers) -> pa.Array:
        return column_of_array(values, ~nothing)

    return pa.table(
        {
            by: column_of_array(job[starts]),
            "files": column_of_array(sizes),
            "counted": column_of_array(counted),
            "critical_files": column_of_array(np.add.reduceat(found.critical.astype(np.int64), starts)),
            "start": known(first),
            "end": known(last),
            "critical_time": known(np.add.reduceat(found.exclusive, starts)),
            "longest_time": known(np.maximum.reduceat(found.exclusive, starts)),
            "not_counted": column_of_array(sizes - counted),
        }
    )


def _no_paths(by: str) -> pa.Table:
    import pyarrow as pa

    counts = {name: pa.nulls(0, pa.int64()) for name in (by, "files", "counted", "critical_files")}
    times = {name: pa.nulls(0, pa.float64()) for name in ("start", "end", "critical_time", "longest_time")}
    return pa.table({**counts, **times, "not_counted": pa.nulls(0, pa.int64())})


def _files(piece: pa.Table) -> pa.Table:
    """Return the critical files of a piece, whose first column is the job and whose last two are the times."""
    import pyarrow.compute as pc

    names = piece.schema.names
    by, start_name, end_name = names[0], names[-2], names[-1]
    piece = piece.filter(pc.is_valid(piece[by])) if piece[by].null_count else piece
    job = values_of(piece[by])
    found = sweep(numbers_of(piece[start_name]), numbers_of(piece[end_name]), job, segments=True)
    rows = np.flatnonzero(found.critical)
    assert found.since is not None, "segments were asked for"
    rows = rows[np.lexsort((found.since[rows], job[rows]))]
    exclusive, since = found.exclusive[rows], found.since[rows]
    starts = group_starts(job[rows])
    total = np.add.reduceat(exclusive, starts) if len(starts) else exclusive
    share = exclusive / np.repeat(total, np.diff(np.append(starts, len(rows))))
    table = piece.take(column_of_array(rows))
    for name, values in (("since", since), ("exclusive", exclusive), ("share", share)):
        table = table.append_column(name, column_of_array(values))
    return table
