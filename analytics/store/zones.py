"""Times that are off by whole hours: a wrong ``site.time_zone`` shows when sources are compared.

Problem. sacct and LMT's databases write times without a zone. In the wrong zone every join by time is wrong, and
nothing else shows it: a Slurm job from two forms is in the store twice, eight hours apart.

Algorithm. (1) A run of Darshan, whose clock is UTC, lies within its Slurm job. Where it lies within none of the job's
rows, but would after a shift by a multiple of a quarter of an hour (of up to 14 hours), the run speaks for that shift.
The shift with most runs is reported when a tenth of all have it: whole hours first, then the smallest. (2) Two rows of
a Slurm job with the same duration whose starts differ so. (3) A log of LMT that covers a day and has a date in its
path, but does not begin at midnight of that day. The same holds of two logs of LMT of one fill with the same rows and
bytes at times that differ so.

Guarantees. The module changes nothing: it reports its findings as lines for people.
"""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mpiio_ext.analytics.store.manifest import Manifest

#: Steps in which zones differ, how far at most, and how far clocks may be apart [s].
_STEP, _MOST, _SLACK = 900, 14 * 3600, 60.0
_DAY = 86400.0
#: Share of the runs that Slurm knows, too, which must speak for a shift.
_SHARE = 0.1


def _words(shift: float) -> str:
    """Return a shift in hours."""
    return f"{abs(shift) / 3600:g} h {'late' if shift > 0 else 'early'}"


def _advice(zone: str) -> str:
    return f"is site.time_zone ({zone}) right? If not, correct it and fill a new folder"


def _times(folder: Path, manifest: Manifest, table: str) -> pa.Table:
    """Return job, start and end of the rows of a table that have all three, ordered by job and start."""
    columns = ["job_id", "start_time", "end_time"]
    tables = [
        pq.read_table(folder / entry.path, columns=columns, memory_map=True)
        for entry in manifest.files
        if entry.table == table
    ]
    if not tables:
        return pa.table({name: pa.array([], pa.int64() if name == "job_id" else pa.float64()) for name in columns})
    return pa.concat_tables(tables).drop_null().sort_by([(name, "ascending") for name in columns[:2]])


def _twice(slurm: pa.Table) -> tuple[float, int]:
    """Return the usual difference of rows of the same job, and the number of such jobs; 0 if none differ."""
    job, start, end = (column.to_numpy() for column in slurm.columns)
    apart = np.diff(start)
    same = (np.diff(job) == 0) & (np.abs(np.diff(end - start)) <= 1) & (apart > 0) & (apart <= _MOST)
    shifts, counts = np.unique(apart[same & (apart % _STEP == 0)], return_counts=True)
    return (float(shifts[counts.argmax()]), int(counts.max())) if len(shifts) else (0.0, 0)


def _off(slurm: pa.Table, darshan: pa.Table) -> tuple[float, int, int]:
    """Return by how much Slurm's times are late, how many runs show that, and how many runs Slurm knows."""
    darshan = darshan.append_column("run", pa.array(np.arange(darshan.num_rows)))
    both = darshan.join(slurm, "job_id", join_type="inner", right_suffix="_slurm")
    if not both.num_rows:
        return 0.0, 0, 0
    names = ("run", "start_time", "end_time", "start_time_slurm", "end_time_slurm")
    run, first, last, start, end = (both[name].to_numpy() for name in names)
    lowest, highest = start - first - _SLACK, end - last + _SLACK  # Slurm minus these is around the run
    right = np.unique(run[(lowest <= 0) & (highest >= 0)])
    wrong = ~np.isin(run, right)
    known = len(np.unique(run))
    found = [(0, True, 0, 0.0)]
    for by in range(-_MOST, _MOST + 1, _STEP):
        runs = len(np.unique(run[wrong & (lowest <= by) & (highest >= by)])) if by else 0
        found.append((runs, by % 3600 == 0, -abs(by), float(by)))
    runs, _, _, shift = max(found)
    return (shift, runs, known) if runs >= max(1, _SHARE * known) else (0.0, 0, known)


def zone_notes(folder: Path, manifest: Manifest, zone: str) -> list[str]:
    """Return lines about Slurm's times that are off by whole hours; none if they are right.

    Parameters
    ----------
    folder : of the store.
    zone : the site's time zone, for the advice.
    """
    slurm = _times(folder, manifest, "slurm")
    if not slurm.num_rows:
        return []
    notes = []
    shift, runs, known = _off(slurm, _times(folder, manifest, "darshan_job"))
    if runs:
        notes.append(f"slurm is {_words(shift)} against Darshan, for {runs:,} of {known:,} runs: {_advice(zone)}")
    shift, jobs = _twice(slurm)
    if jobs:
        many = f"{jobs:,} {'job' if jobs == 1 else 'jobs'}"
        notes.append(f"slurm has {many} twice, {shift / 3600:g} h apart: {_advice(zone)}")
    return notes


class Days:
    """The logs of LMT that a fill has read: their begins relative to midnight, and which are equal at other times.

    Parameters
    ----------
    zone : the site's time zone.
    """

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self._seen: dict[tuple[int, float, float], tuple[float, str]] = {}
        self._notes: dict[tuple[str, float], str] = {}

    def look_at(self, log: str, parts: Sequence[str], date: str) -> None:
        """Look at a log: Parquet files with its rows, and the day in its path (``YYYY-MM-DD``) or ""."""
        names = ["time", "bytes_read", "bytes_written"]
        rows = pa.concat_tables([pq.read_table(path, columns=names) for path in parts])
        ends = pc.min_max(rows["time"]).as_py()
        read, written = (float(pc.sum(rows[name]).as_py() or 0.0) for name in names[1:])
        late = self._after_midnight(ends["min"], ends["max"], date) if date else 0.0
        if late:
            when = f"{abs(late) / 3600:g} h {'after' if late > 0 else 'before'} midnight of the day in its path"
            self._notes.setdefault(("day", late), f"lmt: {log} begins {when}: {_advice(self.zone)}")
        first, other = self._seen.setdefault((rows.num_rows, read, written), (ends["min"], log))
        apart = abs(ends["min"] - first)
        if apart and apart <= _MOST and apart % _STEP == 0 and read + written:
            words = f"lmt: {log} is equal to {other}, {apart / 3600:g} h apart: {_advice(self.zone)}"
            self._notes.setdefault(("same", apart), words)

    def _after_midnight(self, first: float, last: float, date: str) -> float:
        """Return by how much rows that cover a day begin after midnight of that day [s]; 0: not."""
        midnight = datetime.datetime.fromisoformat(date).replace(tzinfo=zoneinfo.ZoneInfo(self.zone)).timestamp()
        shift = first - midnight
        whole_day = 0.9 * _DAY <= last - first <= 1.1 * _DAY
        return shift if whole_day and abs(shift) <= _MOST and shift % _STEP == 0 else 0.0

    def notes(self) -> list[str]:
        """Return the findings, a line each, an example of each shift."""
        return list(self._notes.values())
