"""The numbers of an UMAMI figure.

Problem. Whether the value of a metric is usual shows only beside its values during other jobs of the same kind. Whether
it is good shows only when it is known which side is good.

Algorithm. For each metric: its values over time; the box of the values of all jobs but this one; the quarter of that
distribution in which this job lies, from the worst (1) to the best (4). The share of the other jobs that are below it
counts equal ones half.

Guarantees. The job is in no statistic. A metric that the job does not have has no quarter, nor one of which fewer than
`LEAST` other jobs have a value; one without a history has no box. Source: Lockwood et al., UMAMI (PDSW-DISCS 2017),
Section IV.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.jobs.boxes import Box, box
from mpiio_ext.analytics.jobs.derived import beyond
from mpiio_ext.analytics.jobs.errors import HistoryError
from mpiio_ext.analytics.jobs.history import name_of
from mpiio_ext.analytics.jobs.metrics import DEFAULT_ROWS, Metric, metric
from mpiio_ext.analytics.jobs.table import ID, MOTIF, SCALE, SYSTEM, Jobs
from mpiio_ext.common.shown import Shown

if TYPE_CHECKING:
    from mpiio_ext.analytics.jobs.filters import Step
    from mpiio_ext.analytics.tables.arrays import Numbers

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
        1 to 4: from the worst to the best, or from the lowest to the highest where it is not known what is good.
        None where the job or its history has no value, fewer than `LEAST` other jobs have one, or most of them have
        the job's.
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
        Metrics that were asked for and of which neither the job nor the history has a value.
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
