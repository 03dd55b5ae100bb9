"""Who else ran at the time of a job: jobs of the scheduler that overlap a period.

A job that ended before the period, or begins behind it, does not; one that still runs does. Node hours are those inside
the period only.

A list covers the time from its first start to its last end. The part of the period that no list covers is reported, as
a share; a gap of up to a step of the servers is none, since a job's own end may be the last thing in a list.

Source: TOKIO, Section "Job scheduling".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.sources import Records
from mpiio_ext.analytics.sources.topology import JobRadius, job_radius
from mpiio_ext.analytics.tables.requeued import run_at
from mpiio_ext.analytics.tools.moments import Period, shown
from mpiio_ext.analytics.tools.rows import numbers
from mpiio_ext.analytics.tools.traffic import LMT_STEP_S


def placement(records: Sequence[Records], names: Sequence[str] | None) -> tuple[JobRadius | None, list[str]]:
    """Return the places of nodes, and the unknown parts.

    Parameters
    ----------
    records : of a map of the network: tables ``processors``; the first that knows most of the nodes counts.
    names : of the nodes; None: no source says which nodes the job had.
    """
    maps = [each for each in records if "processors" in each.tables]
    if not maps:
        return None, ["no map of the network"]
    if not names:
        return None, ["no source names the nodes of the job"]
    found = [(job_radius(each.tables["processors"], names), each) for each in maps]
    best, where = max(found, key=lambda pair: pair[0].nodes)
    if not best.nodes:
        return None, [f"{where.path}: knows none of the job's {len(names):,} nodes, such as {names[0]}"]
    notes = []
    if best.unknown:
        notes.append(
            f"{where.path}: does not know {len(best.unknown):,} of {len(names):,} nodes, such as {best.unknown[0]}"
        )
    return best, notes


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Others:
    """Jobs that ran in a period.

    Attributes
    ----------
    jobs : columns of the store's table ``slurm``: a row a job that overlaps the period.
    nodes : nodes of all these jobs together; None if none of them says how many it had.
    node_hours : nodes by the time inside the period, in hours.
    unknown : jobs of which the number of nodes is not known: they are not in the sums.
    missing : share of the period that no list covers, 0 to 1.
    """

    jobs: pa.Table
    nodes: int | None
    node_hours: float | None
    unknown: int
    missing: float = 0.0

    def without(self, job_id: int) -> pa.Table:
        """Return the jobs other than one."""
        import pyarrow.compute as pc

        return self.jobs.filter(pc.not_equal(self.jobs["job_id"], job_id))


def _tables(records: Sequence[Records]) -> list[tuple[Records, pa.Table]]:
    return [(each, each.tables["slurm"]) for each in records if "slurm" in each.tables]


def _span(table: pa.Table) -> tuple[float, float] | None:
    """Return the period that a dump of jobs covers: first start to last end."""
    starts, ends = numbers(table, "start_time"), numbers(table, "end_time")
    both = np.concatenate([starts, ends])
    both = both[np.isfinite(both)]
    return (float(both.min()), float(both.max())) if len(both) else None


def _gaps(spans: Sequence[tuple[float, float]], period: Period) -> list[tuple[float, float]]:
    """Return the parts of a period that no span covers, but for those of up to a step of the servers."""
    found, at = [], period.start
    for low, high in [*sorted(spans), (period.end, period.end)]:
        if min(low, period.end) - at > LMT_STEP_S:
            found.append((at, min(low, period.end)))
        at = max(at, high)
    return found


def jobs_in(records: Sequence[Records], period: Period) -> tuple[Others | None, list[str]]:
    """Return the jobs that ran in a period, and why that is not known.

    Parameters
    ----------
    records : of the scheduler: tables ``slurm``. A dump that covers no moment of the period says nothing about it and
        is left out; a run that several dumps have counts once, as the last of them has it.

    Returns
    -------
    others : Others or None
        None: no dump covers any moment of the period, or each is of a single job.
    notes : list of str
    """
    notes, parts, spans = [], [], []
    for each, table in _tables(records):
        span = _span(table)
        if table.num_rows < 2 or span is None:
            continue  # what a job says about itself
        if span[1] <= period.start or span[0] >= period.end:
            notes.append(f"{each.path}: jobs from {shown(span[0])} to {shown(span[1])} only")
            continue
        spans.append(span)
        starts, ends = numbers(table, "start_time"), numbers(table, "end_time")
        ends = np.where(np.isfinite(ends), ends, np.inf)
        parts.append(table.filter(pa.array((starts < period.end) & (ends > period.start))))
    if not parts:
        return None, notes or ["no list of the scheduler's jobs"]
    jobs = pa.concat_tables(parts)
    runs = zip(jobs["job_id"].to_pylist(), jobs["start_time"].to_pylist(), strict=True)
    last = {run: number for number, run in enumerate(runs)}
    jobs = jobs.take(pa.array(sorted(last.values()), pa.int64()))
    nodes = numbers(jobs, "node_count")
    ends = numbers(jobs, "end_time")
    ends = np.minimum(np.where(np.isfinite(ends), ends, np.inf), period.end)
    hours = nodes * (ends - np.maximum(numbers(jobs, "start_time"), period.start)) / 3600.0
    known = np.isfinite(nodes)
    gaps = _gaps(spans, period)
    lacking = sum(end - start for start, end in gaps) / (period.end - period.start) if gaps else 0.0
    where = ", ".join(f"from {shown(start)} to {shown(end)}" for start, end in gaps[:3])
    total = int(pc.sum(jobs["node_count"]).as_py() or 0) if known.any() else None
    return Others(
        jobs=jobs,
        nodes=total,
        node_hours=float(hours[known].sum()) if known.any() else None,
        unknown=int((~known).sum()),
        missing=lacking,
    ), [f"the lists of jobs do not cover {lacking:.1%} of the period: {where}"] if gaps else []


def job_of(records: Sequence[Records], job_id: int, when: float | None = None) -> dict[str, Any] | None:
    """Return the scheduler's row of one job (columns of ``slurm``); values that a dump lacks come from another.

    Of a job that was requeued, it is that of the run at the time `when` (s since 1970), or else of the last one.
    """
    rows = [row for _, table in _tables(records) for row in table.filter(pc.equal(table["job_id"], job_id)).to_pylist()]
    run, found = run_at(rows, when), dict[str, Any]()
    for row in sorted(rows, key=lambda row: row["start_time"] is not None):  # without a start: of any run
        if run is not None and row["start_time"] in (None, run["start_time"]):
            known = {name: value for name, value in row.items() if value is not None}
            found = {**row, **found, **known}
    return found or None
