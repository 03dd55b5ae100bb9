"""Many jobs at a glance: how many there are, which have findings, and which spend the most time in I/O.

Problem. A folder may have the logs of a month. A reader of all reports, one after the other, does not find the few
jobs that matter.

Algorithm. One line counts jobs, logs, findings, and logs that cannot be read. A table follows: the job with most time
in I/O comes first, and the first sentence of each job's report stands below its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from mpiio_ext.analytics.diagnosis.model import wrapped
from mpiio_ext.analytics.diagnosis.words import rounded, worded
from mpiio_ext.analytics.report.findings import Known
from mpiio_ext.analytics.report.logs import JobReport
from mpiio_ext.common.units import amount_text, count_text

#: Jobs of the table.
MOST_JOBS = 20
_HEADS = ("time in I/O", "run time", "processes", "read", "written", "job")
#: The time in I/O of a log, in seconds.
Seconds = Callable[["Mapping[str, pa.Table]", "Known"], float]


def overview(jobs: Sequence[tuple[str, JobReport]], unread: int, seconds: Seconds) -> str:
    """Return the counts and the table as text.

    Parameters
    ----------
    jobs : name and report of each job.
    unread : logs that could not be read.
    seconds : of the time in I/O of a job that has one log.
    """
    ordered = sorted(((_in_io(one, seconds), name, one) for name, one in jobs), key=lambda row: -row[0])
    rows = [_cells(io_s, name, one) for io_s, name, one in ordered[:MOST_JOBS]]
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    lines = [*wrapped(_counts([one for _, one in jobs], unread)), "", _row(_HEADS, widths)]
    for cells, (_, _, one) in zip(rows, ordered, strict=False):
        lines += [_row(cells, widths), *(f"      {line}" for line in wrapped(one.sentence))]
    if left := len(jobs) - len(rows):
        lines.append(f"  {count_text(left, 'more job')} with less time in I/O.")
    return "\n".join(lines)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    *numbers, name = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
    return f"  {'  '.join([*numbers, name.lstrip()])}"


def _in_io(one: JobReport, seconds: Seconds) -> float:
    if one.steps is not None:
        return one.steps.in_io.middle
    return seconds(one.tables, one.known) if one.has_files else 0.0


def _cells(io_s: float, name: str, one: JobReport) -> tuple[str, ...]:
    logs = one.tables["darshan_job"].to_pylist()
    run_s = one.steps.run_time if one.steps is not None else logs[0]["run_time"]
    sums = [[row[column] for row in logs] for column in ("processes", "bytes_read", "bytes_written")]
    processes, *moved = [None if None in values else sum(values) for values in sums]

    def cell(value: float | None, unit: str) -> str:
        if value is None or value != value:
            return "–"
        return worded(rounded(value, 2) if one.known.anonymous else value, unit)

    known = one.has_files
    return (
        cell(io_s if known else None, "s"),
        cell(run_s, "s"),
        cell(processes, "count"),
        *("–" if value is None or not known else amount_text(value) for value in moved),
        name,
    )


def _counts(jobs: Sequence[JobReport], unread: int) -> str:
    """Return one line: jobs and logs, those with findings, logs that cannot be read or lack records."""
    logs = [row for one in jobs for row in one.tables["darshan_job"].to_pylist()]
    having = sum(one.has_findings for one in jobs)
    partial = sum(bool(row["partial"]) for row in logs)
    named = f"{count_text(having, 'job')} {'has' if having == 1 else 'have'}" if having else "no job has"
    text = f"{count_text(len(jobs), 'job')} with {count_text(len(logs), 'log')}: {named} findings."
    if unread:
        text += f" {count_text(unread, 'more log')} cannot be read."
    return text + (f" {count_text(partial, 'log')} {'lacks' if partial == 1 else 'lack'} records." if partial else "")
