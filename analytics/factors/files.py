"""The files of whole jobs as a factor sees them: columns as arrays, jobs as groups, exclusive times.

Problem. A factor should be a few lines of array arithmetic, the same for reads and writes, and must not confuse what is
absent with 0.

Content. :class:`Files` gives columns of ``darshan_file`` (and of ``darshan_job``, repeated for each file of the job) as
float64 with NaN for NULL. In their names ``{bytes}``, ``{requests}`` … stand for the columns of the direction at hand.
It also gives the sweep's exclusive times, and reductions by job that know about NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.factors import equations
from mpiio_ext.analytics.sweep.intervals import Sweep, group_starts, sweep
from mpiio_ext.analytics.sweep.paths import Direction, check_direction
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole
from mpiio_ext.analytics.tables.plain import combined, numbers_of, values_of
from mpiio_ext.analytics.tables.schema import OST_WORD_BITS, SIZE_BINS

Kept = TypeVar("Kept")
Values = TypeVar("Values", Numbers, Flags)

#: Share of a file's time spent in calls, and of its job's bytes, below which the file is in the background.
BACKGROUND = 0.01

#: What a placeholder in a column's name stands for, by direction.
COLUMNS: dict[str, dict[str, str]] = {
    "read": {
        "direction": "read",
        "bytes": "bytes_read",
        "requests": "reads",
        "consecutive": "consec_reads",
        "sequential": "seq_reads",
        "time": "read_time",
        "start": "read_start",
        "end": "read_end",
        "collective": "mpiio_coll_reads",
        "independent": "mpiio_indep_reads",
        "nonblocking": "mpiio_nb_reads",
    },
    "write": {
        "direction": "write",
        "bytes": "bytes_written",
        "requests": "writes",
        "consecutive": "consec_writes",
        "sequential": "seq_writes",
        "time": "write_time",
        "start": "write_start",
        "end": "write_end",
        "collective": "mpiio_coll_writes",
        "independent": "mpiio_indep_writes",
        "nonblocking": "mpiio_nb_writes",
    },
}


@functools.cache
def column_name(name: str, direction: str) -> str:
    """Return the name of a column with its placeholders filled in for a direction."""
    return name.format_map(COLUMNS[direction]) if "{" in name else name


def bins(direction: str) -> list[str]:
    """Return the columns of Darshan's histogram of request sizes, smallest first."""
    return [f"{direction}_size_{name}" for name in SIZE_BINS]


class Files:
    """Files of whole jobs, in one direction.

    Parameters
    ----------
    table : pyarrow.Table
        Rows of ``darshan_file``; rows of a job stand side by side. Columns that are missing count as NULL.
    direction : {"read", "write"}
    by : str
        Column of the job, without NULL.
    min_known : float
        See :func:`mpiio_ext.analytics.factors.equations.weighted`.
    background : float
        Files that are in the background do not take part in the sweep. In those less than this share of their time is
        spent in calls (of all ranks together), and they have less than this share of the job's bytes. A log that is
        written to now and then, as standard output is, would else cover the job from beginning to end and be its only
        critical file. Where all files of a job are so, all take part. 0: none is, as in the paper.
    """

    def __init__(
        self,
        table: pa.Table,
        direction: Direction,
        by: str = "job_id",
        min_known: float = 0.5,
        background: float = BACKGROUND,
    ) -> None:
        check_direction(direction)
        self.table = table
        self.direction: Direction = direction
        self.by = by
        self.min_known = min_known
        self.background_share = background
        self.job = values_of(table[by])
        self.starts = group_starts(self.job)
        self.sizes = np.diff(np.append(self.starts, len(self.job)))
        self._columns: dict[str, Numbers] = {}
        self._kept: dict[str, object] = {}

    def __len__(self) -> int:
        return len(self.job)

    @property
    def jobs(self) -> int:
        """Return the number of jobs."""
        return len(self.starts)

    def __getitem__(self, name: str) -> Numbers:
        """Return a column as float64 with NaN for NULL; all NaN where the table does not have it."""
        if name not in self._columns:
            self._columns[name] = self._read(column_name(name, self.direction))
        return self._columns[name]

    def _read(self, name: str) -> Numbers:
        if name not in self.table.schema.names:
            return np.full(len(self), np.nan)
        return numbers_of(self.table[name])

    def kept(self, name: str, compute: Callable[[], Kept]) -> Kept:
        """Return a value that several factors need, computed once under `name`."""
        if name not in self._kept:
            self._kept[name] = compute()
        return cast("Kept", self._kept[name])

    def requests(self, direction: str | None = None) -> Numbers:
        """Return the POSIX requests of each file: the histogram's sum, which STDIO is not in; NaN if unknown."""
        way = direction or self.direction
        return self.kept(f"{way} requests", lambda: functools.reduce(np.add, [self[name] for name in bins(way)]))

    def timed(self, direction: str | None = None) -> Flags:
        """Return for each file whether it has a time that can count: known, finite, not empty, not reversed."""
        way = COLUMNS[direction or self.direction]
        start, end = self[way["start"]], self[way["end"]]
        return np.isfinite(start) & np.isfinite(end) & (end > start)

    def background(self, direction: str | None = None) -> Flags:
        """Return for each file whether it is in the background (see above), for a direction."""
        way = COLUMNS[direction or self.direction]
        timed = self.timed(direction)
        if not self.background_share or not self.jobs:
            return np.zeros(len(self), dtype=bool)
        span, total = self[way["end"]] - self[way["start"]], self.per_file(self.sum(self[way["bytes"]]))
        rare = self[way["time"]] < self.background_share * span
        found = timed & rare & (self[way["bytes"]] < self.background_share * total)
        return found & self.per_file(self.count(timed & ~found) > 0)

    def intervals(self, direction: str | None = None) -> tuple[Numbers, Numbers]:
        """Return start and end of each file that takes part in the sweep; NaN for the others."""
        way = COLUMNS[direction or self.direction]
        taking_part = self.timed(direction) & ~self.background(direction)
        return np.where(taking_part, self[way["start"]], np.nan), np.where(taking_part, self[way["end"]], np.nan)

    @functools.cached_property
    def found(self) -> Sweep:
        """Return the sweep of the direction at hand."""
        return sweep(*self.intervals(), self.job)

    @property
    def exclusive(self) -> Numbers:
        """Return the exclusive time of each file (s); 0 unless critical."""
        return self.found.exclusive

    @property
    def critical(self) -> Flags:
        """Return for each file whether it is critical."""
        return self.found.critical

    @property
    def counted(self) -> Flags:
        """Return for each file whether it takes part in the sweep: it has a time, and is not in the background."""
        return self.found.counted

    @functools.cached_property
    def duration(self) -> Numbers:
        """Return the time from a file's first access to its last one (s); NaN unless it counts."""
        return np.where(self.counted, self["{end}"] - self["{start}"], np.nan)

    @functools.cached_property
    def critical_time(self) -> Numbers:
        """Return the critical time of each job (s); NaN if no file has a time."""
        return self.sum(np.where(self.counted, self.exclusive, np.nan))

    @functools.cached_property
    def span(self) -> tuple[Numbers, Numbers]:
        """Return each job's first start and last end, of background files too; NaN without any."""
        return self._first_and_last(self.timed())

    @functools.cached_property
    def counted_span(self) -> tuple[Numbers, Numbers]:
        """Return each job's first start and last end of the files that count (Equation 1); NaN without any.

        A log file that is written to from the first second to the last would else make any job slow.
        """
        return self._first_and_last(self.counted)

    def _first_and_last(self, timed: Flags) -> tuple[Numbers, Numbers]:
        first = self.smallest(np.where(timed, self["{start}"], np.nan))
        return first, self.largest(np.where(timed, self["{end}"], np.nan))

    def weighted(self, values: Numbers) -> Numbers:
        """Return Equation 2 for each job."""
        return equations.weighted(values, self.exclusive, self.starts, self.min_known)

    def per_file(self, values: Values) -> Values:
        """Return a value of each job, repeated for its files."""
        return np.repeat(values, self.sizes)

    def sum(self, values: Numbers) -> Numbers:
        """Return the sum of the known values of each job; NaN if none is known."""
        if not self.jobs:
            return np.zeros(0)
        known = ~np.isnan(values)
        total = np.add.reduceat(np.where(known, values, 0.0), self.starts)
        return np.where(self.count(known) > 0, total, np.nan)

    def count(self, chosen: Flags) -> Whole:
        """Return how many files of each job are chosen."""
        return np.add.reduceat(chosen.astype(np.int64), self.starts) if self.jobs else np.zeros(0, dtype=np.int64)

    def largest(self, values: Numbers) -> Numbers:
        """Return the largest known value of each job; NaN if none is known."""
        if not self.jobs:
            return np.zeros(0)
        found = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), self.starts)
        return np.where(np.isinf(found), np.nan, found)

    def smallest(self, values: Numbers) -> Numbers:
        """Return the smallest known value of each job; NaN if none is known."""
        return -self.largest(-values)

    def median(self, values: Numbers) -> Numbers:
        """Return the median of the known values of each job; NaN if none is known."""
        rows = np.flatnonzero(~np.isnan(values))
        index = np.repeat(np.arange(self.jobs), self.sizes)[rows]
        order = np.lexsort((values[rows], index))
        ordered = values[rows][order]
        counts = np.bincount(index, minlength=self.jobs)
        first = np.cumsum(counts) - counts
        out = np.full(self.jobs, np.nan)
        some = counts > 0
        low, high = first[some] + (counts[some] - 1) // 2, first[some] + counts[some] // 2
        out[some] = (ordered[low] + ordered[high]) / 2
        return out

    def by_log(self, name: str) -> Numbers:
        """Return the sum over a job's logs of a column of ``darshan_job``, which is the same for all files of a log."""
        values = self[name].copy()
        if "log_id" in self.table.schema.names and self.by != "log_id":
            log = self["log_id"]
            order = np.lexsort((log, self.job))
            again = np.zeros(len(self), dtype=bool)
            same = (log[order][1:] == log[order][:-1]) & (self.job[order][1:] == self.job[order][:-1])
            again[order[1:][same]] = True
            values[again] = np.nan
        else:
            first = np.zeros(len(self), dtype=bool)
            first[self.starts] = True
            values[~first] = np.nan
        return self.sum(values)

    @functools.cached_property
    def ost_pairs(self) -> tuple[Whole, Whole]:
        """Return (file's row, OST) for every OST of every file, from the lists or else from the bitmap."""
        names = self.table.schema.names
        if "osts" in names and not pa.types.is_null(self.table.schema.field("osts").type):
            column = combined(self.table["osts"])
            rows, osts = (values_of(each) for each in (pc.list_parent_indices(column), pc.list_flatten(column)))
            return rows.astype(np.int64), osts.astype(np.int64)
        words = sorted((name for name in names if name.startswith("ost_word_")), key=lambda name: int(name[9:]))
        rows_of, osts_of = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for number, name in enumerate(words):
            word = self.table[name].fill_null(0).to_numpy()
            for bit in range(OST_WORD_BITS):
                rows = np.flatnonzero(word >> bit & 1)
                rows_of.append(rows)
                osts_of.append(np.full(len(rows), number * OST_WORD_BITS + bit))
        return np.concatenate(rows_of), np.concatenate(osts_of)
