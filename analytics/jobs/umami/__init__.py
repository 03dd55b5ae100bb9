"""The numbers of an UMAMI figure.

Problem. A metric's value is usual or not only beside its values during other jobs of the same kind. It is good or not
only if the good side is known.

Algorithm. For each metric: its values over time; the box of the values of all jobs but this one; the quarter of that
distribution in which this job lies, from the worst (1) to the best (4). The share of the other jobs that are below it
counts equal ones half.

Guarantees. The job is in no statistic. A metric has no quarter if the job lacks it, or if fewer than `LEAST` other jobs
have a value; a metric without a history has no box. Source: Lockwood et al., UMAMI (PDSW-DISCS 2017), Section IV.

The row of a table that is the requested job, and the jobs of its history.

A job of the scheduler may run several programs, each a row: then the motif selects one. The paper leaves the choice of
the history to the reader of the figure. Here the history is the jobs of the same file system, motif and processes that
began before, since later jobs could not shape an expectation. The user can request later jobs, too.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.errors import HistoryError
from mpiio_ext.analytics.jobs.derived import beyond, groups_of
from mpiio_ext.analytics.jobs.files import read
from mpiio_ext.analytics.jobs.filters import Step, select
from mpiio_ext.analytics.jobs.history import name_of
from mpiio_ext.analytics.jobs.metrics import DEFAULT_ROWS, Box, Metric, box, metric
from mpiio_ext.analytics.jobs.table import ID, LOG, MOTIF, SCALE, SYSTEM, Jobs
from mpiio_ext.analytics.sources.darshanheader import start_of
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.common.shown import Shown

__all__ = ["Row", "Umami", "find", "umami"]

#: Other jobs that a quarter needs: of fewer, one of the quarters is empty.
LEAST = 5
#: What a quarter is called: of a metric of which it is known what is good, from the worst to the best; of others.
QUARTERS = ("worst quarter", "below the median", "above the median", "best quarter")
NEUTRAL = ("lowest quarter", "below the median", "above the median", "highest quarter")
#: Of metrics of which small is good.
_REVERSED = ("worst quarter", "above the median", "below the median", "best quarter")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A metric of the job beside its history.

    Attributes
    ----------
    values : numpy.ndarray
        Of all jobs of the history by start, this one included, in the unit of the column; NaN if not known.
    value : float or None
        Of the job.
    box : Box or None
        Of the other jobs.
    quarter : int or None
        1 to 4: from the worst to the best, or from the lowest to the highest if it is not known which end is good. None
        where the job or its history has no value, fewer than `LEAST` other jobs have one, or most of them have the
        job's.
    below : float or None
        Share of the other jobs with a lower value.
    """

    metric: Metric
    values: Numbers
    value: float | None
    box: Box | None
    quarter: int | None
    below: float | None

    @property
    def verdict(self) -> str:
        """The quarter in words; "usual" if most jobs have the same value, "too few" jobs, or "" (unknown)."""
        if self.quarter is None:
            if self.value is None or self.box is None:
                return ""
            return "usual" if self.box.count >= LEAST else "too few"
        names = {True: QUARTERS, False: _REVERSED, None: NEUTRAL}[self.metric.big_is_good]
        return names[self.quarter - 1]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Umami(Shown):
    """A job against its history.

    Attributes
    ----------
    times : numpy.ndarray
        Start of each job of the history, in s since 1970 UTC.
    place : int
        Of the job in `times`.
    metrics : sequence of Row
    absent : sequence of str
        Requested metrics that neither the job nor the history has a value of.
    beyond : sequence of str
        Coverage factors of the job that are not used, because they are beyond `coverage.MOST_COVERAGE`.
    gaps : sequence of str
        Metrics of the servers whose value of the job is a gap of their monitoring (:mod:`..coverage`).
    left_out : sequence of Step
        What the filters of the table left out.
    other_scales : mapping of str to int
        Processes -> jobs of the same motif and file system that are of another history for these.
    """

    job: str
    system: str
    motif: str
    scale: str
    times: Numbers
    place: int
    metrics: Sequence[Row]
    absent: Sequence[str]
    beyond: Sequence[str]
    gaps: Sequence[str]
    left_out: Sequence[Step] = ()
    other_scales: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def about(self) -> str:
        """The kind of the job, its begin, and the number of others."""
        at = datetime.datetime.fromtimestamp(float(self.times[self.place]), datetime.timezone.utc)
        count = len(self.times) - 1
        others = f"against {count_words(count, 'other job')} of the same kind" if count else "without a history"
        return f"{name_of(self.motif, self.system, self.scale)}, {at.strftime('%Y-%m-%d %H:%M UTC')}, {others}"

    @property
    def summary(self) -> str:
        """A sentence on the metrics that were worse than usual while the job ran, and on its performance."""
        first = self.metrics[0]
        if not any(row.box is not None and row.box.count >= LEAST for row in self.metrics):
            return f"Nothing is judged: that needs {LEAST} other jobs."
        bad = [row.metric.label for row in self.metrics[1:] if row.metric.big_is_good is not None and row.quarter == 1]
        good = first.metric.big_is_good is not None and first.quarter is not None
        words = f"{first.metric.label}: {first.verdict}. " if good else ""
        if not bad:
            return f"{words}None of the other metrics is in its worst quarter."
        return f"{words}In their worst quarter: {', '.join(bad)}."

    def lines(self) -> list[str]:
        """Return the job, and the metrics that were worse than usual."""
        return [f"job {self.job}: {self.about}", self.summary]

    def rows(self) -> list[dict[str, object]]:
        """Return the metrics, in the units of their columns, beside quantiles of the other jobs."""
        return [
            {
                "metric": row.metric.name,
                "value": row.value,
                "verdict": row.verdict,
                "share_below": row.below,
                **dict(
                    zip(("p5", "q1", "median", "q3", "p95"), row.box.numbers if row.box else (None,) * 5, strict=True)
                ),
            }
            for row in self.metrics
        ]


def quarter_of(value: float, found: Box, metric: Metric) -> int | None:
    """Return 1 to 4; on the border of two quarters a value belongs to the lower one, as published.

    None where there are fewer than `LEAST` values, or where the middle half of the history has one value and the job
    has the same: it is in no quarter of its own.
    """
    if found.count < LEAST:
        return None
    if found.first == found.third == value:
        return None
    ascending = 1 + sum(value > bound for bound in (found.first, found.median, found.third))
    return 5 - ascending if metric.big_is_good is False else ascending


def _row(name: str, values: Numbers, place: int) -> Row:
    one = metric(name)
    own = float(values[place])
    others = np.delete(values, place)
    known = others[~np.isnan(others)]
    found = box(others)
    there = own == own
    below = None
    if there and len(known):
        below = float(((known < own).sum() + 0.5 * (known == own).sum()) / len(known))
    return Row(
        metric=one,
        values=values,
        value=own if there else None,
        box=found,
        below=below,
        quarter=quarter_of(own, found, one) if there and found is not None else None,
    )


def umami(history: Jobs, place: int, metrics: Sequence[str] | None = None) -> Umami:
    """Return the rows of an UMAMI figure.

    Parameters
    ----------
    history : Jobs
        Jobs of one history by start, with the derived columns.
    place : int
        The job of interest.
    metrics : sequence of str, optional
        Columns, in the order of the rows. Default: `DEFAULT_ROWS`, as far as the job or its history has values.

    Raises
    ------
    HistoryError
        A metric is no column of the table, or nothing is known of any.
    """
    if metrics is not None:
        history.need(*metrics)
    every = {name: history.numbers(name) for name in (DEFAULT_ROWS if metrics is None else metrics)}
    known = {name: values for name, values in every.items() if not np.isnan(values).all()}
    if not known:
        raise HistoryError(f"{history.source}: neither the job nor its history has a value of {', '.join(every)}")
    return Umami(
        job=str(history.texts(ID)[place]),
        system=str(history.texts(SYSTEM)[place]),
        motif=str(history.texts(MOTIF)[place]),
        scale=str(history.texts(SCALE)[place]),
        times=history.times(),
        place=place,
        metrics=[_row(name, values, place) for name, values in known.items()],
        absent=[] if metrics is None else [name for name in every if name not in known],
        beyond=[name for name in beyond(history.take(np.array([place]))) if name in every],
        gaps=[
            name
            for name, values in every.items()
            if np.isnan(values[place]) and not np.isnan(history.stored(name)[place])
        ],
    )


#: The job that began last.
LAST = "last"
#: Names in a message.
_MOST_NAMES = 10


def find(table: Jobs, job: str = LAST, *, motif: str | None = None, system: str | None = None) -> int:
    """Return the place of a job's row.

    Parameters
    ----------
    table : Jobs
        By start (:func:`mpiio_ext.analytics.jobs.select`).
    job : str
        Job ID, or ``last``.
    motif, system : str, optional
        Only rows of this motif (a part of its name is enough where that is clear), and of this file system.

    Raises
    ------
    HistoryError
        The job does not exist, or it has rows of several motifs and `motif` is None.
    """
    rows = np.ones(len(table), dtype=np.bool_)
    if system is not None:
        rows &= _named(table, SYSTEM, system, "file system")
    if motif is not None:
        rows &= _named(table, MOTIF, motif, "motif")
    if job != LAST:
        ids = table.texts(ID) == job
        if not ids.any():
            raise HistoryError(f"{table.source}: there is no job {job} among the {len(table):,} rows that count")
        rows &= ids
    places = np.flatnonzero(rows)
    if not len(places):
        raise HistoryError(f"{table.source}: no row is of this job, motif and file system together")
    if job != LAST:
        names = sorted(
            {
                f"{one} on {where}"
                for one, where in zip(
                    table.texts(MOTIF)[places].tolist(), table.texts(SYSTEM)[places].tolist(), strict=True
                )
            }
        )
        if len(names) > 1:
            raise HistoryError(
                f"{table.source}: job {job} has several rows; choose one by --motif or --file-system:{_listed(names)}"
            )
    return int(places[-1])


def find_log(table: Jobs, log: Path, *, motif: str | None = None, system: str | None = None) -> int:
    """Return the place of the row of a Darshan log: of its name, or else that which began when the log's job did.

    Raises
    ------
    HistoryError
        The log cannot be read, or no row is its.
    """
    places = np.flatnonzero(_rows_of(table, log))
    if not len(places):
        raise HistoryError(f"{table.source}: no row that counts is of {log}; mpiio-ext analyze summarize-job adds it")
    return int(places[find(table.take(places), motif=motif, system=system)])


def _rows_of(table: Jobs, log: Path) -> Flags:
    """Return the rows of a log's name that began when its job did; without one of this name all that began then."""
    try:
        start = start_of(log)
    except OSError as error:
        raise HistoryError(f"{log}: cannot be read: {error.strerror}") from error
    if start is None:
        raise HistoryError(f"{log}: not a Darshan log, or damaged: it has no start time of the job")
    with np.errstate(invalid="ignore"):
        rows: Flags = np.abs(table.times() - start) < 1
    named = rows & (table.texts(LOG) == log.name)
    return named if named.any() else rows


def has_log(table: Jobs, log: Path) -> bool:
    """Return whether a row is of this Darshan log; HistoryError where the log cannot be read."""
    return bool(_rows_of(table, log).any())


def with_log(table: Jobs, log: Path, system: str | None = None) -> Jobs:
    """Return the table with the row of a Darshan log behind it, which has the columns of Darshan and no others.

    Parameters
    ----------
    system : str, optional
        The file system by its name in the table, which the log does not know: it has mount points.

    Raises
    ------
    HistoryError
        The log cannot be read.
    """
    from mpiio_ext.analytics.jobs.summarize import summarize

    found = summarize([log])
    if not len(found):
        what = [str(note["what"]) for note in found.notes.to_pylist()]
        raise HistoryError(what[0] if what else f"{log}: cannot be read")
    if system is not None:
        found = found.joined({SYSTEM: [system] * len(found)})
    known = found.table.select([name for name in found.names if not found.missing(name).all()])
    return Jobs.stacked([table, Jobs(known, str(log))], table.source)


def _named(table: Jobs, column: str, wanted: str, what: str) -> Flags:
    """Return the rows of a name; if it is no complete name, those of the only name that contains it."""
    texts = table.texts(column)
    known = sorted(set(texts.tolist()))
    holding = [name for name in known if wanted in name]
    if wanted not in known and len(holding) == 1:
        wanted = holding[0]
    if wanted not in known:
        which = f"several names hold it:{_listed(holding)}" if holding else f"there are:{_listed(known)}"
        raise HistoryError(f"{table.source}: there is no {what} '{wanted}'; {which}")
    out: Flags = texts == wanted
    return out


def _listed(names: Sequence[str]) -> str:
    """Return names as lines."""
    more = [f"and {len(names) - _MOST_NAMES:,} more"] if len(names) > _MOST_NAMES else []
    return "".join(f"\n  {name}" for name in [*(name or "(not known)" for name in names[:_MOST_NAMES]), *more])


def history_of(table: Jobs, place: int, *, later: bool = False, days: float | None = None) -> tuple[Jobs, int]:
    """Return the jobs of the same file system, motif and scale, by start, and the place of the job among them.

    A job of which one of these is not known, while that of others is, has no history.

    Parameters
    ----------
    table : Jobs
        By start.
    place : int
        Row of the job.
    later : bool
        Also jobs that began after it.
    days : float, optional
        Only jobs that began within so many days of it.
    """
    times, rows = table.times(), np.zeros(len(table), dtype=np.bool_)
    rows[next((places for places in groups_of(table).values() if place in places), place)] = True
    if days is not None:
        rows &= np.abs(times - times[place]) <= days * 86400
    if not later:
        rows &= np.arange(len(table)) <= place
    places = np.flatnonzero(rows)
    return table.take(places), int(np.flatnonzero(places == place)[0])


def other_scales(table: Jobs, place: int) -> dict[str, int]:
    """Return processes -> jobs of the same file system and motif that are of another history than this one."""
    system, motif, scale = (str(table.texts(name)[place]) for name in (SYSTEM, MOTIF, SCALE))
    return {
        key[2]: len(rows) for key, rows in groups_of(table).items() if key[:2] == (system, motif) and key[2] != scale
    }


def of_job(
    history: str | Path,
    job: str = LAST,
    *,
    motif: str | None = None,
    system: str | None = None,
    metrics: Sequence[str] | None = None,
) -> Umami:
    """Return a job of a table against the jobs like it that began before.

    Parameters
    ----------
    history : table of jobs, as ``mpiio-ext analyze summarize-job`` makes it.
    job, motif, system : of `find`.
    metrics : columns; None: those of the paper.

    Raises
    ------
    HistoryError
        The table cannot be used, or there is no such job.
    """
    table, _ = select(read(history, slices=False))
    before, place = history_of(table, find(table, job, motif=motif, system=system))
    return umami(before, place, metrics)
