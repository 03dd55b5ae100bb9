"""Extract the contributing factors of jobs: Algorithm 1, line 25, ``extract_perf_factors(low, high, "write")``.

Problem. Which jobs were slow, and what about their critical files may have made them so; for one job, and for millions.

Algorithm. Pieces of whole jobs. Of each piece the bandwidth of every job on its critical path, then the rows of the
requested jobs alone, and each factor as array arithmetic, weighted by exclusive time (Equation 2).

Which jobs are slow. Bytes over the span from the first access to the last one (Equation 1) "can falsely mark a job as
low-performance", because pauses between files count; "instead, we measure" on the critical path (Section II-D). So that
is the default, and the span an option. Files in the background belong to neither.

What a job is. Each run of a program (a log) by itself, where the rows say which: two runs of one job of the scheduler,
an hour apart, are no slow job. ``by="job_id"`` puts them together.

Guarantees. One row a job, in the order of the jobs. Of a query (tuples with an engine) nothing is read before a result
is requested; wrong arguments are errors immediately. What is unknown is NULL, never 0. Memory is bounded by the size of
a piece; pieces are worked on in threads.

Columns. ``job_id``, ``log_id`` (by run), ``app``, ``processes``, ``files`` (opened, or with bytes moved),
``critical_files``, ``bytes``, ``bandwidth`` (Equation 1, B/s), ``critical_time`` (s), ``critical_bandwidth`` (bytes
over that, B/s), ``read_ratio`` (Equation 4), ``files_per_process`` (Equation 5), and one of each factor.

Source: IOMiner, Section II-D.

Rows of files from the result of a query, in pieces of whole jobs.

Problem. ``extract_perf_factors`` ends a chain of queries: its input is not a stored table but an expression, often a
join of ``darshan_job`` and ``darshan_file``. In a join, columns of the same name were renamed
(``bytes_written_darshan_file``), and a job with several logs has each file once for each of its logs.

Algorithm. Columns of files are searched under the name of their table first, those of jobs likewise; only those that
are needed are fetched. Rows whose two log ids differ are a join's and no file's: they are left out. The engine sorts by
job, and its batches are cut where a job ends; on Spark that and the factors are computed in the executors. Nothing runs
until the factors are read.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.dimensions import BYTES, NUMBER, RATE, SECONDS, Units
from mpiio_ext.analytics.dimensions import read as unit_of
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.factors import equations
from mpiio_ext.analytics.factors.catalogue import find
from mpiio_ext.analytics.factors.files import BACKGROUND, Files, column_name
from mpiio_ext.analytics.factors.registry import Factor
from mpiio_ext.analytics.sweep.paths import Direction, check_direction, mapped
from mpiio_ext.analytics.sweep.ranges import Piece, job_batches, job_ranges, opened
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole
from mpiio_ext.analytics.tables.plain import column_of_array, values_of
from mpiio_ext.common.units import UnitError, bandwidth, number, size, size_text
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow.dataset as ds

    from mpiio_ext.analytics.query import Tuples

#: A query, or a table of files.
Asked: TypeAlias = "Tuples | pa.Table | ds.Dataset"

#: Rows of a piece by default; dozens of columns are processed together.
PIECE = 1 << 18

#: Of the columns of the result that are no factors.
_UNITS = {
    **dict.fromkeys(("job_id", "log_id", "processes", "files", "critical_files", "read_ratio"), NUMBER),
    "files_per_process": NUMBER,
    "bytes": BYTES,
    "critical_time": SECONDS,
    "bandwidth": RATE,
    "critical_bandwidth": RATE,
}

_BASE = (
    "job_id",
    "log_id",
    "file_id",
    "app",
    "processes",
    "bytes_read",
    "bytes_written",
    "opens",
    "{start}",
    "{end}",
    "{time}",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Request:
    """The query, and how a piece of whole jobs answers it; an empty `by`: as the files have it."""

    chosen: Mapping[str, Factor]
    thresholds: Mapping[str, float]
    direction: Direction
    bounds: tuple[float, float]
    jobs: pa.Table | None
    by: str
    time: str
    min_known: float
    background: float

    def result(self, files: Asked, rows: int, threads: int) -> pa.Table:
        """Return the rows of all requested jobs."""
        asked = dataclasses.replace(self, by=self.by or _job_column(files))
        if hasattr(files, "expression"):
            rows_of, keys = rows_of_query(files, base_columns(self.chosen, self.direction), asked.by)
            batches = rows_of.order_by(keys).to_pyarrow().to_batches(rows)
            found = list(asked.work(keys[0], rows, threads)(batches))
        else:
            found = [table for table in mapped(asked.answer, asked.pieces(files, rows), threads) if table.num_rows]
        return pa.concat_tables(found) if found else asked.answer(asked.nothing())

    def on_engine(self, files: Tuples, rows: int, threads: int) -> ir.Table:
        """Return the same from tuples with an engine, as a table of it; Spark computes it in its executors."""
        asked = dataclasses.replace(self, by=self.by or _job_column(files))
        rows_of, keys = rows_of_query(files, base_columns(self.chosen, self.direction), asked.by)
        for one in self.chosen.values():
            files.engine.sendable(one.compute)
        schema = asked.answer(rows_of.schema().to_pyarrow().empty_table()).schema
        return files.engine.by_key(rows_of, keys, asked.work(keys[0], rows, threads), schema, rows)

    def work(self, key: str, rows: int, threads: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.Table]]:
        """Return the function that answers from batches that are ordered by `key`."""
        return functools.partial(_answers, self, key, rows, threads)

    def check(self) -> None:
        """Raise a factor's own error about its thresholds, from a call without a file."""
        asked = dataclasses.replace(self, by=self.by or "job_id")
        try:
            asked.answer(asked.nothing())
        except ArgumentError:
            raise
        except Exception:  # a factor that needs files does not check its thresholds then
            return

    def __str__(self) -> str:
        low, high = (f"{size_text(bound)}/s" if np.isfinite(bound) else "" for bound in self.bounds)
        bounds = " ".join(filter(None, (low and f"from {low}", high and f"below {high}")))
        which = f" of jobs with a bandwidth {bounds}" if bounds else ""
        return f"factors {', '.join(self.chosen)} ({self.direction}){which}"

    def answer(self, piece: pa.Table) -> pa.Table:
        """Return the rows of the requested jobs in a piece."""
        if piece.num_rows and piece[self.by].null_count:
            piece = piece.filter(pc.is_valid(piece[self.by]))
        table = _grouped(with_jobs(piece, self.jobs, self.by), self.by)
        view = Files(table, self.direction, self.by, self.min_known, self.background)
        chosen = _chosen(view, self.bounds, self.time)
        few = 2 * int(view.sizes[chosen].sum()) < len(view)
        if few:  # else it is quicker to leave rows out at the end
            kept = view.per_file(chosen)
            rows_of_chosen = view.table.filter(column_of_array(kept))
            view = Files(rows_of_chosen, self.direction, self.by, self.min_known, self.background)
        rows = _rows(view, self.chosen, self.thresholds)
        return rows if few or bool(np.all(chosen)) else rows.filter(column_of_array(chosen))

    def nothing(self) -> pa.Table:
        """Return no rows of files."""
        return pa.table({name: pa.nulls(0, pa.int64()) for name in dict.fromkeys(["job_id", self.by])})

    def pieces(self, files: pa.Table | ds.Dataset, rows: int) -> list[Piece]:
        """Return the pieces of a table, a dataset or paths, with the columns that are needed."""
        columns = base_columns(self.chosen, self.direction)
        names = files.schema.names
        words = [name for name in names if name.startswith("ost_word_")] if "osts" not in names else []
        key = "job_id" if self.by == "log_id" and "job_id" in names else self.by
        return job_ranges(files, [*columns, self.by, *words], by=key, rows=rows)


def _answers(
    asked: _Request, key: str, rows: int, threads: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.Table]:
    """Yield the answers of batches that are ordered by `key`."""
    pieces = (lambda whole=table: whole for table in job_batches(batches, key, rows))
    found = mapped(asked.answer, pieces, threads)
    return (table for table in found if table.num_rows)


def extract(
    files: Any,
    low: str | float | None = None,
    high: str | float | None = None,
    direction: Direction = "write",
    *,
    jobs: Any = None,
    by: str | None = None,
    names: Sequence[str] | None = None,
    time: Literal["critical", "span"] = "critical",
    min_known: float = 0.5,
    background: float = BACKGROUND,
    threads: int = 2,
    rows: int = PIECE,
    **thresholds: str | float,
) -> Any:
    """Return the contributing factors of the jobs whose bandwidth lies in [low, high): an Arrow table, or tuples.

    Parameters
    ----------
    files : query, pyarrow.Table, pyarrow.dataset.Dataset, path, sequence of paths
    low, high : str or float, optional
        Bounds of the bandwidth (B/s, or as "1GB/s"); None: no bound.
    direction : {"read", "write"}
    jobs : pyarrow.Table, optional
        Rows of ``darshan_job``, for what only they know (run time, modules); found by ``log_id``, else by `by`.
    by : str, optional
        What a job is: ``log_id`` (each run of a program by itself; default where the files have it) or ``job_id``.
    names : sequence of str, optional
        Factors; None: all of the direction.
    time : {"critical", "span"}
        What bytes are divided by for the bounds: the critical time, which leaves pauses out, or the span of Equation 1.
    min_known : float
        Share of the critical time for which a factor must be known; below it is NULL.
    background : float
        See :class:`mpiio_ext.analytics.factors.files.Files`; 0: the sweep takes all files, as in the paper.
    threads, rows : int
        Pieces worked on at the same time; rows of a piece.
    **thresholds : str or float
        Thresholds of factors, by their names; those that end with ``_bytes`` are sizes: ``small_bytes="10KiB"``.

    Raises
    ------
    ArgumentError, AnalyticsError
        A direction, factor or threshold that does not exist; `files` is no table of files.
    """
    check_direction(direction)
    chosen = find(names, direction)
    limits = read_thresholds(chosen, thresholds)
    if time not in ("span", "critical"):
        raise ArgumentError(f"time is {time!r}; it is 'critical' or 'span'")
    bounds = -np.inf if low is None else float(bandwidth(low)), np.inf if high is None else float(bandwidth(high))
    request = _Request(
        chosen=chosen,
        thresholds=limits,
        direction=direction,
        bounds=bounds,
        jobs=jobs,
        by=by or "",
        time=time,
        min_known=min_known,
        background=background,
    )
    if hasattr(files, "engine"):
        request.check()
        units = _UNITS | {name: unit_of(one.unit) for name, one in chosen.items()}
        return later(files, lambda: request.on_engine(files, rows, threads), str(request), units)
    return request.result(files if hasattr(files, "expression") else opened(files), rows, threads)


def _job_column(files: Asked) -> str:
    """Return the column that identifies a run, or else a job."""
    source: Any = files
    names = source.expression.columns if hasattr(source, "expression") else source.schema.names
    return "job_id" if resolve(names, "log_id") is None else "log_id"


def read_thresholds(chosen: Mapping[str, Factor], given: Mapping[str, str | float]) -> dict[str, float]:
    """Return thresholds as numbers; raise ArgumentError for one that no chosen factor has, or that is no number."""
    known = {name for one in chosen.values() for name in one.thresholds}
    found: dict[str, float] = {}
    for name, value in given.items():
        if name not in known:
            raise ArgumentError(f"no factor has a threshold {name}; there are {', '.join(sorted(known)) or 'none'}")
        try:
            found[name] = size(value) if name.endswith("_bytes") else number(value)
        except UnitError as error:
            raise ArgumentError(f"threshold {name}: {error}") from None
    return found


def base_columns(chosen: Mapping[str, Factor], direction: str) -> list[str]:
    """Return the columns that factors need, and those of the result itself."""
    needed = [column_name(name, direction) for name in _BASE]
    return list(dict.fromkeys([*needed, *sorted(set().union(*(one.needs(direction) for one in chosen.values())))]))


def with_jobs(table: pa.Table, jobs: pa.Table | None, by: str) -> pa.Table:
    """Add columns of ``darshan_job`` to rows of files, where these do not have them."""
    if jobs is None:
        return table
    key = "log_id" if "log_id" in table.schema.names and "log_id" in jobs.schema.names else by
    place = pc.index_in(table[key], value_set=jobs[key].combine_chunks())
    for name in (*JOB_COLUMNS, "processes"):
        if name in jobs.schema.names and name not in table.schema.names:
            table = table.append_column(name, jobs[name].take(place))
    return table


def _grouped(table: pa.Table, by: str) -> pa.Table:
    """Return a table in which the rows of a job stand side by side."""
    one = values_of(table[by])
    job = values_of(table["job_id"]) if by == "log_id" and "job_id" in table.schema.names else one
    if bool(np.all((job[1:] > job[:-1]) | ((job[1:] == job[:-1]) & (one[1:] >= one[:-1])))):
        return table
    return table.take(column_of_array(np.lexsort((one, job))))


def _chosen(view: Files, bounds: tuple[float, float], time: str) -> Flags:
    """Return for each job whether its bandwidth lies within the bounds; without bounds, whether it has any I/O time."""
    if bounds == (-np.inf, np.inf):
        return ~np.isnan(view.critical_time)
    speed = _bandwidth(view) if time == "span" else equations.ratio(view.sum(view["{bytes}"]), view.critical_time)
    return np.asarray((speed >= bounds[0]) & (speed < bounds[1]))


def _bandwidth(view: Files) -> Numbers:
    return equations.bandwidth(view.sum(view["{bytes}"]), *view.counted_span)


def _rows(view: Files, chosen: Mapping[str, Factor], thresholds: Mapping[str, float]) -> pa.Table:
    """Return the row of each job."""
    keys = [name for name in ("job_id", "log_id") if name in view.table.schema.names] if view.by == "log_id" else []
    table = view.table.select(keys or [view.by]).take(column_of_array(view.starts)).combine_chunks()
    known = "app" in view.table.schema.names
    app = view.table["app"].take(column_of_array(view.starts)) if known else pa.nulls(view.jobs, pa.string())
    table = table.append_column("app", app)
    moved, read = view.sum(view["{bytes}"]), view.sum(view["bytes_read"])
    processes = view.largest(view["processes"])
    files = view.count(~((view["opens"] == 0) & (view["bytes_read"] == 0) & (view["bytes_written"] == 0)))
    columns: dict[str, Numbers | Whole] = {
        "processes": processes,
        "files": files,
        "critical_files": view.count(view.critical),
        "bytes": moved,
        "bandwidth": _bandwidth(view),
        "critical_time": view.critical_time,
        "critical_bandwidth": equations.ratio(moved, view.critical_time),
        "read_ratio": equations.ratio(read, read + view.sum(view["bytes_written"])),
        "files_per_process": equations.ratio(files, processes),
    }
    for name, one in chosen.items():
        columns[name] = one.of_jobs(view, thresholds)
    for name, values in columns.items():
        table = table.append_column(name, column_of_array(values))
    return table


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
