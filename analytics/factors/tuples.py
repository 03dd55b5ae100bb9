"""Rows of files from the result of a query, in pieces of whole jobs.

Problem. ``extract_perf_factors`` ends a chain of queries: its input is not a stored table but an expression, often a
join of ``darshan_job`` and ``darshan_file``. In a join, columns of the same name were renamed
(``bytes_written_darshan_file``), and a job with several logs has each file once for each of its logs.

Algorithm. Columns of files are searched under the name of their table first, those of jobs likewise; only those that
are needed are fetched. Rows whose two log ids differ are a join's and no file's: they are left out. The engine sorts by
job, and its batches are cut where a job ends; on Spark that and the factors are computed in the executors. Nothing runs
until the factors are read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mpiio_ext.analytics.dimensions import Units
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.sweep.ranges import Piece, job_batches

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from mpiio_ext.analytics.query import Tuples

_FILE, _JOB = "_darshan_file", "_darshan_job"

#: Columns of jobs; a table of files alone does not have them.
JOB_COLUMNS = ("run_time", "uses_mpiio", "partial", "app", "start_time")


def resolve(names: Sequence[str], wanted: str) -> str | None:
    """Return the column for `wanted`, a column of a file (or of its job); None if there is none."""
    order = (wanted + _JOB, wanted) if wanted in JOB_COLUMNS else (wanted + _FILE, wanted)
    return next((name for name in order if name in names), None)


def names_of(names: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """Return {name wanted: name there} of the columns that are there."""
    found = {name: resolve(names, name) for name in wanted}
    return {name: there for name, there in found.items() if there is not None}


def rows_of_query(tuples: Tuples, wanted: Sequence[str], by: str) -> tuple[ir.Table, list[str]]:
    """Return the rows of files of a query's result, and the columns by which they are to be ordered.

    Parameters
    ----------
    tuples : object with ``expression``
        A chain of queries (an Ibis expression).
    wanted : columns of ``darshan_file`` and ``darshan_job``; those that are not there are left out.
    by : column of the job.

    Returns
    -------
    expression : ibis Table
        The columns wanted, under these names.
    keys : list of str
        First what identifies a job; last the file, so that equal files come in the same order on every engine.

    Raises
    ------
    AnalyticsError
        There is no column `by`.
    """
    expression = tuples.expression
    there = names_of(expression.columns, [by, *wanted])
    if by not in there:
        raise AnalyticsError(f"the query has no column {by}; it has {', '.join(expression.columns[:12])}")
    columns = expression.columns
    for suffix in (_FILE, _JOB):
        if "log_id" in columns and f"log_id{suffix}" in columns:
            expression = expression.filter(expression["log_id"] == expression[f"log_id{suffix}"])
    words = [name for name in columns if name.startswith("ost_word_")] if "osts" not in there else []
    chosen = {name: expression[at] for name, at in there.items()} | {name: expression[name] for name in words}
    selected = expression.select(**chosen)
    keys = ["job_id", "log_id"] if by == "log_id" and "job_id" in chosen else [by]
    known = selected.filter([selected[key].notnull() for key in keys])
    return known, [*keys, *(["file_id"] if "file_id" in chosen else [])]


def pieces_of(batches: Iterable[pa.RecordBatch], key: str, rows: int) -> Iterator[Piece]:
    """Yield pieces of whole jobs, of about `rows` rows, of batches that are ordered by `key`."""
    for table in job_batches(batches, key, rows):
        yield functools.partial(_same, table)


def later(tuples: Tuples, compute: Callable[[], ir.Table], what: str, units: Units) -> Tuples:
    """Return tuples of the engine of `tuples` that are computed from these (by `compute`) at their first use.

    Parameters
    ----------
    compute : returns a table of the engine.
    what : what is computed, for people.
    units : mapping
        Units of the columns.
    """
    engine = tuples.engine
    return type(tuples)(engine, compute, "perf_factors", waits_for=what, inputs=(tuples,), units=lambda: units)


def _same(table: pa.Table) -> pa.Table:
    return table
