"""Summaries with newer ones added to them.

A log has one row; its key is ``_log_id``. Merging with newer summaries replaces rows of the same log. A log that was
cut when it was first read may get another ID when it is whole, so that job, start and file name say, too, that two logs
are the same. The row of a whole log replaces that of a part of it, and never the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mpiio_ext.analytics.jobs.table import ID, LOG, LOG_ID, TRUE_START, Jobs, Slice


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
