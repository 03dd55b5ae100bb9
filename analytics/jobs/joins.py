"""Summaries joined to the tables of a store: Darshan's jobs and files, the scheduler's jobs, runs of the bench.

Problem. A summary is a log's, and a job of the scheduler may have several. A store has its own IDs of logs, made of
where they lie, which a summary does not know.

Algorithm. The store's row of a log is that of the same job, with the same file name and start, in whole seconds. With
the ID found so, tables that have one are joined by it; the scheduler's jobs by the ID of the job, and of a job that was
requeued by the start of the run that was going when the log began. A measurement of the bench has the ID of the store's
job, of which it is an operation; it is joined only to its own row of ``runs``.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from mpiio_ext.analytics import dimensions
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.jobs.columns import SUMMARY
from mpiio_ext.analytics.jobs.table import TRUE_START, Jobs
from mpiio_ext.analytics.query.tuples import Tuples
from mpiio_ext.analytics.tables.requeued import runs_of_logs
from mpiio_ext.analytics.tables.schema import TABLES

if TYPE_CHECKING:
    from mpiio_ext.analytics.miner import IOMiner

__all__ = ["joined", "tuples"]


def tuples(summaries: Jobs, like: Tuples) -> Tuples:
    """Return summaries as tuples of the same engine as others; ``_jobid`` is called ``job_id``.

    Parameters
    ----------
    summaries : Jobs
    like : Tuples
        Of :meth:`mpiio_ext.analytics.IOMiner.load`.
    """
    return _tuples(summaries.table, like)


def _tuples(table: pa.Table, like: Tuples) -> Tuples:
    units = dimensions.of_table(SUMMARY)
    found = Tuples(like.engine, like.engine.table(table), SUMMARY.name, units=lambda: units)
    return found.rename(job_id="_jobid")


def _log_ids(summaries: Jobs, miner: IOMiner) -> list[int | None]:
    """Return the store's ID of each log; None if the store does not have it."""
    jobs = [job for job in summaries.table["_jobid"].to_pylist() if job is not None]
    if not jobs:
        return [None] * summaries.table.num_rows
    there = miner.load("darshan_job", jobs=(min(jobs), max(jobs)))
    ids = {
        (row["job_id"], PurePath(row["log_file"]).name, math.floor(row["start_time"])): row["log_id"]
        for row in there.project("job_id", "log_id", "log_file", "start_time").rows()
        if row["log_file"] is not None and row["start_time"] is not None
    }
    own = {row["job_id"]: row["log_id"] for row in there.filter("source = 'bench'").project("job_id", "log_id").rows()}
    keys = (summaries.table[name].to_pylist() for name in ("_jobid", "_log", "darshan_start_time"))
    measured = (method is not None for method in summaries.table["bench_method"].to_pylist())
    return [
        own.get(key[0]) if of_bench else ids.get(key)
        for key, of_bench in zip(zip(*keys, strict=True), measured, strict=True)
    ]


def _starts_of_runs(summaries: Jobs, miner: IOMiner) -> list[float | None] | None:
    """Return the start of the scheduler's run of each log; None if no job was requeued."""
    names = ("_jobid", TRUE_START)
    keys = zip(*(summaries.table[name].to_pylist() for name in names), strict=True)
    logs = [{"log_id": row, "job_id": job, "start_time": time} for row, (job, time) in enumerate(keys)]
    jobs = [log["job_id"] for log in logs if log["job_id"] is not None]
    there = (
        miner.load("slurm", jobs=(min(jobs), max(jobs))).project("job_id", "start_time", "end_time").rows()
        if jobs
        else []
    )
    counts = Counter(run["job_id"] for run in there)
    if all(counts[job] <= 1 for job in jobs):
        return None
    runs = runs_of_logs(logs, there)
    return [runs[log["log_id"]]["start_time"] if log["log_id"] in runs else None for log in logs]


def joined(
    summaries: Jobs,
    miner: IOMiner,
    table: str = "darshan_job",
    how: Literal["inner", "left", "right", "outer", "semi", "anti"] = "inner",
) -> Tuples:
    """Return summaries with the columns of a table of a store beside them.

    Parameters
    ----------
    summaries : Jobs
    miner : IOMiner
    table : str
        ``darshan_job`` or ``darshan_file``, joined by log; ``runs``, by measurement of the bench; ``slurm``, by job and
        run.
    how : str
        As of :meth:`.Tuples.join`; the summaries stand on the left.

    Raises
    ------
    AnalyticsError
        The table does not exist, or has no jobs.
    """
    names = TABLES[table].names() if table in TABLES else []
    key = next((name for name in ("log_id", "job_id") if name in names), None)
    if key is None:
        having = [name for name, each in TABLES.items() if "job_id" in each.names()]
        raise AnalyticsError(f"summaries cannot be joined to {table!r}; they can to {', '.join(having)}")
    other = miner.load(table)
    mine = summaries.table
    keys: list[str] = [key]
    if key == "log_id":
        mine = mine.append_column("log_id", pa.array(_log_ids(summaries, miner), pa.int64()))
    if table == "slurm" and (starts := _starts_of_runs(summaries, miner)) is not None:
        mine = mine.append_column("start_time", pa.array(starts, pa.float64()))
        keys.append("start_time")
    if "run_id" in names:
        mine = mine.append_column("run_id", mine["_log"])
        keys.append("run_id")
    return _tuples(mine, other).join(other, keys, how)
