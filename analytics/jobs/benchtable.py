"""Results of the bench as a table of summaries: the nightly suite for the regression watch.

A row is a measurement (:mod:`mpiio_ext.analytics.jobs.bench`); its job is the time at which the bench was started.
With the sources of a site the rows have what the servers did meanwhile, so that a change can be explained by them, too.

Guarantees. A file that is no results of the bench, or is cut off, is named, and the others are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.jobs import bench
from mpiio_ext.analytics.jobs.errors import HistoryError
from mpiio_ext.analytics.jobs.table import ID, LOG, START, Jobs
from mpiio_ext.analytics.tools.system import Note, System

#: Columns of a summary that a history of the bench does without: a measurement has no log.
_LEFT_OUT = frozenset((LOG, "_log_id", "_notes", "_sources", "_edges"))


def _row(found: bench.Measurement, system: System | None, notes: list[Note]) -> dict[str, Any]:
    begin = found.periods[0][0] if found.periods else found.started_unix_s
    if system is None:
        row: dict[str, Any] = {**found.scalars, START: begin}
    else:
        row, wrong = bench.joined(found, system)
        notes += wrong
    return {name: value for name, value in row.items() if name not in _LEFT_OUT} | {ID: found.started}


def bench_table(paths: Sequence[Path], system: System | None = None) -> tuple[Jobs, list[str], list[Note]]:
    """Return the table of results of the bench, by start.

    Parameters
    ----------
    paths : files of results, or folders such as the archive of a suite.
    system : sources that are asked what the servers did during each measurement; without, there are no columns of them.

    Returns
    -------
    table : Jobs
    left_out : list of str
        A line for each file that was left out.
    notes : list of Note
        What the sources do not know, of all rows.

    Raises
    ------
    HistoryError
        There are no results that can be read, or they have no possible start.
    """
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []
    notes: list[Note] = []
    every: set[Path] = set()
    for file in (file for path in paths for file in bench.result_files(path)):
        if file.resolve() in every:
            left_out.append(f"{file}: is read already")
            continue
        every.add(file.resolve())
        try:
            rows += [_row(each, system, notes) for each in bench.read(file)]
        except AnalyticsError as error:
            left_out.append(str(error))
    if not rows:
        reason = left_out[0] if left_out else f"{', '.join(map(str, paths))}: there is no results.json"
        raise HistoryError(f"no results of the bench: {reason}")
    rows.sort(key=lambda row: row[START])
    names = dict.fromkeys(name for row in rows for name in row)
    table = Jobs({name: [row.get(name) for row in rows] for name in names}, str(paths[0]))
    table.times()  # refuses clocks that were never set
    return table, left_out, notes
