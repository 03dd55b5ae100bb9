"""Which run of a job a log is of: a job that the scheduler has requeued has several, under one ID."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def run_at(runs: Sequence[Row], time: float | None) -> Row | None:
    """Return the run at a time, or the nearest one; of several the last one; None if there is no run.

    Parameters
    ----------
    runs : rows of ``slurm`` of one job, with ``start_time`` and ``end_time``.
    time : seconds since 1970, as when a log began; None: not known.
    """

    def apart(run: Row) -> tuple[float, float]:
        start, end = run["start_time"], run["end_time"]
        if start is None or time is None:
            return math.inf, -(start or 0.0)
        return max(start - time, time - (math.inf if end is None else end), 0.0), -start

    return min(runs, key=apart, default=None)


def runs_of_logs(logs: Sequence[Row], runs: Sequence[Row]) -> dict[Any, Row]:
    """Return the run of each log by ``log_id``; of logs whose job has one.

    Parameters
    ----------
    logs : rows with ``log_id``, ``job_id`` and ``start_time``.
    runs : rows of ``slurm`` of any jobs.
    """
    by_job: dict[Any, list[Row]] = {}
    for run in runs:
        by_job.setdefault(run["job_id"], []).append(run)
    found = {log["log_id"]: run_at(by_job.get(log["job_id"], ()), log["start_time"]) for log in logs}
    return {log: run for log, run in found.items() if run is not None}
