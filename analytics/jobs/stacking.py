"""Several tables of summaries as one, each job once.

Problem. Tables overlap: a year that was saved, the months since, the archive that both were made of. A row that is
there twice counts twice in each median, and two levels of half as many jobs look sure.

Algorithm. Rows of different tables are of the same run where job, file system, motif and start (to the second) are the
same, unless both name their log and the names differ: programs of a job that began together. Of such rows that of the
last table stays, which is the one that was made last where tables are given in their order.

Guarantees. Rows of one table are never taken for each other, nor rows without a start. The number of those left out is
reported. Each row has the name of its file, since what a complete row has differs from file to file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from mpiio_ext.analytics.jobs.derived import motifs
from mpiio_ext.analytics.jobs.table import FILE, ID, LOG, SYSTEM, Jobs

#: Job, file system, motif, start in s.
_Run = tuple[str, str, str, int]


def stack(tables: Sequence[Jobs], source: str) -> tuple[Jobs, int]:
    """Return the rows of several tables as one, and how many were left out because a later table has their run.

    Parameters
    ----------
    tables : in the order in which they were made.
    source : name of the whole in messages.
    """
    logs: dict[_Run, set[str]] = {}
    kept: list[Jobs] = []
    for table in reversed(tables):
        runs, names = _runs(table), table.texts(LOG).tolist()
        keep = np.array(
            [run is None or not _there(logs.get(run), name) for run, name in zip(runs, names, strict=True)],
            dtype=np.bool_,
        )
        for run, name in zip(runs, names, strict=True):
            if run is not None:
                logs.setdefault(run, set()).add(name)
        kept.append(table if keep.all() else table.take(keep))
    left_out = sum(map(len, tables)) - sum(map(len, kept))
    if len(kept) == 1:
        return kept[0], left_out
    names = [PurePath(table.source).name for table in kept]
    named = [
        _named(table, name if names.count(name) == 1 else table.source) for table, name in zip(kept, names, strict=True)
    ]
    return Jobs.stacked(reversed(named), source), left_out


def _named(table: Jobs, name: str) -> Jobs:
    """Return the table with the name of its file in each row that does not have one of an earlier stacking."""
    return table.joined({FILE: [known or name for known in table.texts(FILE).tolist()]})


def _there(logs: set[str] | None, name: str) -> bool:
    """Return whether one of the logs of a run may be the log of this name; "" is a log that is not known."""
    return logs is not None and (not name or "" in logs or name in logs)


def _runs(table: Jobs) -> list[_Run | None]:
    """Return the run of each row; None if its start is not known."""
    columns = (table.texts(ID), table.texts(SYSTEM), motifs(table))
    return [
        (job, system, motif, round(start)) if start == start else None
        for job, system, motif, start in zip(
            *(column.tolist() for column in columns), table.times().tolist(), strict=True
        )
    ]
