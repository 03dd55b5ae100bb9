"""Programs' accesses to their files, from logs, of which ``arbitrate curves`` makes bandwidth curves.

Problem.    The arbiter knows a job by its program's name; logs of earlier runs show what that program does.
Algorithm.  Rows of ``darshan_job`` and ``darshan_file`` of single Darshan logs, or of a store (which holds the
            statistics of the extension as well), become access patterns with volumes
            (mpiio_ext.delegates.arbitration.learn). They are added up over all runs of a program. Its compute nodes are
            those of the scheduler, where the store has its log.
Guarantees. A log that cannot be read is named, and left out. The name is that by which the library announces the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.tables.requeued import runs_of_logs
from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.delegates.arbitration.learn import patterns_of_log
from mpiio_ext.delegates.arbitration.pattern import Pattern
from mpiio_ext.delegates.arbitration.program import program_name

Row = Mapping[str, Any]
Learnt = tuple[dict[str, dict[Pattern, int]], list[str]]

_JOB = ("log_id", "job_id", "exe", "app", "processes", "log_file", "start_time")
_FILE = ("log_id", "ranks", "bytes_written", "writes", "consec_writes", "bytes_read", "reads", "consec_reads")


def _name(job: Row) -> str | None:
    words = str(job.get("exe") or "").split()
    return program_name(words) if words else job.get("app") or None


def _joined(jobs: Iterable[Row], files: Iterable[Row], nodes: Mapping[int, int]) -> Learnt:
    """Return the patterns of every program with their bytes, and why some of the runs are left out."""
    by_log: dict[int, list[Row]] = {}
    for file in files:
        by_log.setdefault(file["log_id"], []).append(file)
    found: dict[str, dict[Pattern, int]] = {}
    notes: list[str] = []
    for job in jobs:
        name = _name(job)
        if name is None:
            notes.append(f"{job.get('log_file') or job['log_id']}: the program is not known; left out")
            continue
        try:
            patterns = patterns_of_log(job, by_log.get(job["log_id"], ()), compute_nodes=nodes.get(job["log_id"]))
        except CurveError as error:
            notes.append(f"{error}; left out")
            continue
        mine = found.setdefault(name, {})
        for pattern, volume in patterns.items():
            mine[pattern] = mine.get(pattern, 0) + volume
    return {name: patterns for name, patterns in found.items() if patterns}, notes


def patterns_of_logs(logs: Sequence[Path]) -> Learnt:
    """Return the accesses of programs, from Darshan logs.

    Returns
    -------
    (dict, list)
        Program -> pattern -> bytes; and a line for each log, or run, that is left out.

    Raises
    ------
    AnalyticsError
        The package ``darshan`` is not installed, or there is no memory or process to read with.
    """
    from mpiio_ext.analytics.sources.darshan import convert

    converted = convert([str(path.absolute()) for path in logs], "/")
    found, notes = _joined(
        converted.tables["darshan_job"].select(_JOB).to_pylist(),
        converted.tables["darshan_file"].select(_FILE).to_pylist(),
        {},
    )
    bad = [
        f"{outcome.log}: {outcome.status}: {outcome.reason}"
        for outcome in converted.outcomes
        if outcome.status != "whole"
    ]
    return found, [*bad, *notes]


def patterns_of_store(setup: Path) -> Learnt:
    """Return the accesses of programs, from the store of a set-up; see :func:`patterns_of_logs`.

    Raises
    ------
    AnalyticsError
        The set-up is wrong, or there is no store.
    """
    import pyarrow.parquet as pq

    from mpiio_ext.analytics.setup import load_setup
    from mpiio_ext.analytics.store.catalog import Catalog

    catalog = Catalog(load_setup(setup).store)

    def rows(table: str, columns: Sequence[str]) -> list[Row]:
        return [
            row for path in catalog.files(table) for row in pq.ParquetFile(path).read(columns=list(columns)).to_pylist()
        ]

    jobs = rows("darshan_job", _JOB)
    if not jobs:
        raise AnalyticsError(
            f"{catalog.folder}: the store has no run to learn from; fill it: mpiio-ext analyze init {setup}"
        )
    runs = rows("slurm", ("job_id", "start_time", "end_time", "node_count"))
    nodes = {log: run["node_count"] for log, run in runs_of_logs(jobs, runs).items() if run["node_count"]}
    return _joined(jobs, rows("darshan_file", _FILE), nodes)
