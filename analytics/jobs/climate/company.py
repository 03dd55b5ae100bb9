"""Which metrics changed together with performance.

Problem. A file system fills for months: its fullness before any day differs from that after it, surely and by much, and
is named with whatever else happened on that day.

Algorithm. For a change of performance, each metric is compared between the jobs near before and near after it
(:mod:`mpiio_ext.analytics.jobs.statistics.moved`; p-values corrected over all changes). It is named where the
difference is sure and large, and where the metric has a change of its own within a few jobs of that of performance.
That change is found by ruptures, with the dependence of its values on those before them. A slow drift has no such
change. A metric that became better where performance became worse, or conversely, is reported as contradicting: it is
no explanation, and comes behind the others. What is counted over the job's time comes last: a job has more of it for
being slow.

Guarantees. What is named changed at the same time, which does not make it the cause.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.jobs.metrics import metric
from mpiio_ext.analytics.jobs.statistics.changes import Change, breaks
from mpiio_ext.analytics.jobs.statistics.dependence import dependences
from mpiio_ext.analytics.jobs.statistics.moved import LARGE_EFFECT, Moved, adjusted, compared
from mpiio_ext.analytics.jobs.table import Jobs

#: Jobs on either side that are compared, over those that a level has at least.
_NEAR = 4


def _near(jobs: Jobs, change: Change, least: int, metrics: Sequence[str] | None) -> list[Moved]:
    first, last = max(change.begin, change.place - _NEAR * least), min(change.end, change.place + _NEAR * least)
    return compared(jobs.take(np.arange(first, change.place)), jobs.take(np.arange(change.place, last)), metrics)


def in_company(
    every: Sequence[tuple[Jobs, Change]],
    *,
    least: int = 7,
    level: float = 0.01,
    metrics: Sequence[str] | None = None,
    big_is_good: bool = True,
) -> list[dict[str, tuple[Moved, int]]]:
    """Return, for each change, the metrics that changed with it, and the first job of the new level of each.

    Parameters
    ----------
    every : sequence of (Jobs, Change)
        Jobs of a history by start, and a change of their performance.
    least : jobs that a level has at least; half as far from the change of performance a metric's own may be.
    level : largest corrected p-value.
    metrics : columns; default: all that are listed as explaining.
    big_is_good : of what is called performance.

    Returns
    -------
    list of mapping of str to (Moved, int)
        By the size of the effect; those that contradict behind the others, those counted over the job's time last.
    """
    tests = adjusted([_near(jobs, change, least, metrics) for jobs, change in every])
    out = []
    for (jobs, change), found in zip(every, tests, strict=True):
        large = [item for item in found if item.p_corrected <= level and abs(item.effect) >= LARGE_EFFECT]
        own = {item.metric: _own(jobs, item.metric, change.place, least) for item in large}
        worse = (change.after < change.before) is big_is_good
        large.sort(key=lambda one: (metric(one.metric).extensive, contradicts(one, worse=worse)))
        out.append({item.metric: (item, place) for item in large if (place := own[item.metric]) is not None})
    return out


def _own(jobs: Jobs, name: str, near: int, least: int) -> int | None:
    """Return the place of a metric's own change that is nearest to that of performance; None: all are too far away."""
    values = jobs.numbers(name)
    known = np.flatnonzero(~np.isnan(values))
    values = values[known]
    places = known[breaks(values, least=least, dependence=dependences([values])[0])]
    close = places[np.abs(places - near) <= least // 2]
    return int(close[np.argmin(np.abs(close - near))]) if len(close) else None


def contradicts(item: Moved, *, worse: bool) -> bool:
    """Return whether a metric moved to the side that is good where performance became worse, or conversely."""
    good = metric(item.metric).big_is_good
    return good is not None and ((item.effect > 0) == good) == worse
