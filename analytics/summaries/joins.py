"""Summaries joined to the tables of a store: Darshan's jobs and files, the scheduler's jobs, runs of the bench.

A summary is a log's. Tables with ``log_id`` are joined by it, which the store makes in the same way; others by the ID of
the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mpiio_ext.analytics import dimensions
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query.tuples import Tuples
from mpiio_ext.analytics.summaries.columns import SUMMARY
from mpiio_ext.analytics.summaries.model import Summaries
from mpiio_ext.analytics.tables.schema import TABLES

if TYPE_CHECKING:
    from mpiio_ext.analytics.miner import IOMiner

__all__ = ["joined", "tuples"]


def tuples(summaries: Summaries, like: Tuples) -> Tuples:
    """Return summaries as tuples of the same engine as others; ``_jobid`` and ``_log_id`` are ``job_id`` and ``log_id``.

    Parameters
    ----------
    summaries : Summaries
    like : Tuples
        Of :meth:`mpiio_ext.analytics.IOMiner.load`.
    """
    units = dimensions.of_table(SUMMARY)
    found = Tuples(like.engine, like.engine.table(summaries.table), SUMMARY.name, units=lambda: units)
    return found.rename(job_id="_jobid", log_id="_log_id")


def joined(
    summaries: Summaries,
    miner: IOMiner,
    table: str = "darshan_job",
    how: Literal["inner", "left", "right", "outer", "semi", "anti"] = "inner",
) -> Tuples:
    """Return summaries with the columns of a table of a store beside them.

    Parameters
    ----------
    summaries : Summaries
    miner : IOMiner
    table : str
        ``darshan_job``, ``darshan_file``, ``slurm`` or ``runs``.
    how : str
        As of :meth:`.Tuples.join`; the summaries stand on the left.

    Raises
    ------
    AnalyticsError
        There is no such table, or it has no jobs.
    """
    names = TABLES[table].names() if table in TABLES else []
    key = next((name for name in ("log_id", "job_id") if name in names), None)
    if key is None:
        having = [name for name, each in TABLES.items() if "job_id" in each.names()]
        raise AnalyticsError(f"summaries cannot be joined to {table!r}; they can to {', '.join(having)}")
    other = miner.load(table)
    return tuples(summaries, other).join(other, key, how)
