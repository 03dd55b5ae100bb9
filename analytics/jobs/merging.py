"""Summaries with newer ones added to them.

A log has one row; its key is ``_log_id``. Merging with newer summaries replaces rows of the same log. A log that was
cut off when it was first read may get another ID when it is complete; so two logs are also the same if job, start and
file name agree. The row of a complete log replaces the row of a part of it, and never the other way round.

Several tables of summaries as one, each job once.

Problem. Tables overlap: a saved year, the months since, the archive from which both were made. A row in two tables
counts twice in each median, and two levels of half as many jobs seem sure.

Algorithm. Rows of different tables belong to the same run if job, file system, motif and start (to the second) are
equal, unless both name their log and the names differ: programs of a job that began together. Of such rows the row of
the last table stays, which is the newest if tables are given in their order.

Guarantees. Rows of one table are never merged, nor rows without a start. The number of dropped rows is reported. Each
row has the name of its file, since the columns of a complete row differ from file to file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from mpiio_ext.analytics.jobs.derived import motifs
from mpiio_ext.analytics.jobs.table import FILE, ID, LOG, LOG_ID, SYSTEM, TRUE_START, Jobs, Slice


def _in_part(row: Mapping[str, Any]) -> bool:
    """Return whether a row is of a part of its log."""
    return any(line.startswith("darshan partial: ") for line in (row.get("_notes") or "").splitlines())


def places_of_logs(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return which rows count where several are of one log: the last one of the whole log, else the last one."""
    kept: dict[int, Mapping[str, Any]] = {}
    places: dict[Any, int] = {}
    for place, row in enumerate(rows):
        names: list[Any] = [row[LOG_ID]]
        named = tuple(row.get(name) for name in (ID, TRUE_START, LOG))
        if None not in named:
            names.append(named)
        same = {places[name] for name in names if places.get(name) in kept}
        if _in_part(row) and any(not _in_part(kept[each]) for each in same):
            continue
        for each in same:
            del kept[each]
        kept[place] = row
        places |= dict.fromkeys(names, place)
    return list(kept)


def merged(older: Jobs, newer: Jobs) -> Jobs:
    """Return both tables as one; of the same log the newer row, unless only the older one is of the whole log."""
    before, after = older.rows(), newer.rows()
    rows = [*before, *after]
    places = places_of_logs(rows)
    fresh = newer.notes.to_pylist()
    about = {note["what"] for note in fresh if note[LOG_ID] is None}
    notes: list[dict[str, Any]] = []
    slices: dict[int, Slice] = {}
    for part, noted, first, last in (
        (older, older.notes.to_pylist(), 0, len(before)),
        (newer, fresh, len(before), len(rows)),
    ):
        logs = {rows[place][LOG_ID] for place in places if first <= place < last}
        unread = about if part is older else set()
        notes += [
            note for note in noted if (note["what"] not in unread if note[LOG_ID] is None else note[LOG_ID] in logs)
        ]
        slices |= {log: found for log, found in part.slices.items() if log in logs}
    return Jobs.of_rows([rows[place] for place in places], notes, slices)


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
    named = []
    for table, name in zip(kept, names, strict=True):
        file = name if names.count(name) == 1 else table.source
        named.append(table.joined({FILE: [known or file for known in table.texts(FILE).tolist()]}))
    return Jobs.stacked(reversed(named), source), left_out


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
