"""Logs of LMT that contain different values of the same step: which logs, how often, and when.

Problem. Two logs of the same days should agree where they overlap. Where they do not (a tool with an error, another
file system of the same name, a wrong time zone) one of the values is wrong. One stays, and the other must not go in
silence.

Algorithm. While files are merged (:mod:`mpiio_ext.analytics.store.merge`), rows of the same step and OST stand side by
side. Where two of them know a value and it differs by more than the rounding of rates, the pair of sources gets one
step more.

Guarantees. Each step is counted once for a pair of sources, whichever columns differ. Absent values contradict nothing.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.store.logtable import keys_of

#: What the manifest notes then.
NOTE = "lmt: logs have different values for the same steps; mpiio-ext analyze manifest names them (conflict)"

#: Differences that a rate kept in single precision may make.
_RELATIVE, _BYTES = 1e-6, 1.0


@dataclasses.dataclass(frozen=True)
class Meeting:
    """Two sources that contradict each other.

    Attributes
    ----------
    older, newer : ages of the sources (`mpiio_ext.analytics.store.merge.Source`).
    steps : steps of an OST with other values.
    first, last : of these steps: start of the first and of the last one, s since 1970 UTC.
    """

    older: int
    newer: int
    steps: int
    first: float
    last: float

    def words(self, other: str) -> str:
        """Return the message for one of two logs; `other`: name of the other one."""
        start, end = (
            datetime.datetime.fromtimestamp(time, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
            for time in (self.first, self.last)
        )
        steps = f"{self.steps:,} {'step' if self.steps == 1 else 'steps'} of an OST"
        when = f"at {start} UTC" if start == end else f"from {start} to {end} UTC"
        return f"{steps} {when} with other values than {other}; that which knows both directions counts, else the newer"


class Conflicts:
    """Counts the steps for which sources contradict each other."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], Meeting] = {}

    def look_at(self, rows: pa.Table, identity: Sequence[str], values: Sequence[str]) -> None:
        """Search rows that have a column ``age``: all those of a step, or none."""
        found = pa.concat_tables([_differing(rows, identity, name) for name in values])
        if not found.num_rows:
            return
        steps = found.group_by(found.column_names, use_threads=False).aggregate([])
        pairs = steps.group_by(["older", "newer"], use_threads=False)
        for row in pairs.aggregate([("time", "count"), ("time", "min"), ("time", "max")]).to_pylist():
            pair = row["older"], row["newer"]
            new = Meeting(*pair, row["time_count"], row["time_min"], row["time_max"])
            old = self._found.get(pair, dataclasses.replace(new, steps=0))
            first, last = min(old.first, new.first), max(old.last, new.last)
            self._found[pair] = Meeting(*pair, old.steps + new.steps, first, last)

    def meetings(self) -> list[Meeting]:
        """Return the pairs of sources that contradict each other, in the order of their ages."""
        return [self._found[pair] for pair in sorted(self._found)]


def with_conflicts(logs: pa.Table, meetings: Sequence[Meeting], keys: Mapping[int, str]) -> pa.Table:
    """Return rows of the table of logs in which those that contradict another log have status and reason for it.

    Parameters
    ----------
    meetings : sequence of Meeting
    keys : age -> key (:func:`mpiio_ext.analytics.store.logtable.keys_of`) of the logs that may be among `logs`.
    """
    texts: dict[str, list[str]] = {}
    for one in meetings:
        for age, other in ((one.older, one.newer), (one.newer, one.older)):
            if age in keys:
                name = keys[other].rpartition("\0")[2] if other in keys else "the store had"
                texts.setdefault(keys[age], []).append(one.words(name))
    if not texts:
        return logs
    statuses, reasons = logs.column("status").to_pylist(), logs.column("reason").to_pylist()
    for place, key in enumerate(keys_of(logs).to_pylist()):
        if key in texts:
            statuses[place] = "conflict"
            reasons[place] = "; ".join(filter(None, [reasons[place], *texts[key]]))
    for name, values in (("status", statuses), ("reason", reasons)):
        logs = logs.set_column(logs.column_names.index(name), name, pa.array(values, pa.string()))
    return logs


def _differing(rows: pa.Table, identity: Sequence[str], name: str) -> pa.Table:
    """Return identity and ages (``older``, ``newer``) of neighbours of one identity whose values of a column differ."""
    known = rows.filter(pc.is_valid(rows.column(name)))
    known = known.sort_by([(key, "ascending") for key in (*identity, "age")]).combine_chunks()
    values, ages = np.asarray(known.column(name), dtype=np.float64), np.asarray(known.column("age"))
    differ = np.abs(np.diff(values)) > np.maximum(_BYTES, _RELATIVE * np.maximum(values[1:], values[:-1]))
    for key in identity:
        codes = np.asarray(pc.dictionary_encode(known.column(key).combine_chunks()).indices.fill_null(-1))
        differ &= codes[1:] == codes[:-1]
    places = np.flatnonzero(differ)
    steps = known.select(list(identity)).take(pa.array(places))
    return steps.append_column("older", pa.array(ages[places])).append_column("newer", pa.array(ages[places + 1]))
