"""The climate of a table: changes, correlations, regimes, coverage.

One study is made of a table and options, and then shown as text, as JSON or as a page.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from mpiio_ext.analytics.jobs.climate.watch import Options, Watched, as_json, falls, newest, stopped, too_few, watch
from mpiio_ext.analytics.jobs.derived import beyond
from mpiio_ext.analytics.jobs.filters import Step, completeness
from mpiio_ext.analytics.jobs.history import History, histories, name_of
from mpiio_ext.analytics.jobs.metrics import EXPLAINING, Box, box
from mpiio_ext.analytics.jobs.regimes import REGIMES, Difference, Partition, Rules, explain, named, partition
from mpiio_ext.analytics.jobs.statistics.correlation import NORMALISED, Correlation, correlation_table
from mpiio_ext.analytics.jobs.table import PERFORMANCE, Jobs
from mpiio_ext.common.progress import progress

#: What is printed about the coverage of each history.
COVERAGE = ("coverage_factor_bw", "contention_bw", "contention_opens", "contention_stats", "contention_ops")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """The climate of a table.

    Attributes
    ----------
    table : rows that count, by start.
    steps : what the filters left out.
    every : sequence of History
    watched : sequence of Watched
    correlations : sequence of Correlation
    partitions : sequence of Partition
    differences : those that are sure and large.
    """

    table: Jobs
    steps: Sequence[Step]
    every: Sequence[History]
    watched: Sequence[Watched]
    correlations: Sequence[Correlation]
    partitions: Sequence[Partition]
    differences: Sequence[Difference]
    options: Options
    rules: Rules

    @property
    def regressions(self) -> list[Watched]:
        """Histories whose performance has fallen, the largest loss first."""
        fallen = [one for one in self.watched if one.regression is not None]
        return sorted(fallen, key=lambda one: one.regression.change.ratio if one.regression else 1.0)

    @property
    def unknown(self) -> int:
        """Rows of no history: their file system, motif or number of processes is not known."""
        return len(self.table) - sum(len(history.jobs) for history in self.every)


def study(table: Jobs, steps: Sequence[Step], options: Options, rules: Rules, *, whole: bool = True) -> Study:
    """Make the study of a table.

    Parameters
    ----------
    table : rows that count, by start, with the derived columns.
    steps : what the filters left out.
    options : of the watch.
    rules : of the regimes.
    whole : also correlations and regimes, which the watch alone does not need.
    """
    every = histories(table)
    target = NORMALISED if options.target == PERFORMANCE else options.target
    partitions = []
    with progress(len(every) if whole else 0, step="history", name="mpiio-ext analyze climate") as advance:
        watched = watch(every, options)
        for history in every if whole else ():
            advance(f"regimes of {name_of(history.motif, history.system, history.scale)}")
            partitions.append(partition(history, rules))
    made = Study(
        table=table,
        steps=steps,
        every=every,
        watched=watched,
        partitions=partitions,
        correlations=[],
        differences=[],
        options=options,
        rules=rules,
    )
    if not whole:
        return made
    return dataclasses.replace(
        made,
        correlations=correlation_table(table, options.metrics, target=target),
        differences=named(explain(partitions, options.metrics), options.level),
    )


def coverage(every: Sequence[History]) -> list[tuple[History, dict[str, Box]]]:
    """Return the boxes of coverage factor and contention of each history that has any."""
    out = []
    for history in every:
        found = {name: box(history.jobs.numbers(name)) for name in COVERAGE}
        known = {name: one for name, one in found.items() if one is not None}
        if known:
            out.append((history, known))
    return out


def _quartiles(made: Study) -> list[dict[str, Any]]:
    """Return the distribution of the watched metric and of every other one in each history."""
    metrics = dict.fromkeys([made.options.target, *(made.options.metrics or EXPLAINING)])
    out = []
    for history in made.every:
        boxes = {name: box(history.jobs.numbers(name)) for name in metrics if name in history.jobs}
        out.append(
            {
                "file_system": history.system,
                "motif": history.motif,
                "processes": history.scale or None,
                "metrics": {name: one.as_json() for name, one in boxes.items() if one is not None},
            }
        )
    return out


def document(made: Study) -> dict[str, Any]:
    """Return a study as data for JSON; values are in the units of the columns, times in s since 1970 UTC."""
    regimes = [
        {
            "file_system": one.history.system,
            "motif": one.history.motif,
            "processes": one.history.scale or None,
            "jobs": {regime: int((one.regimes == regime).sum()) for regime in REGIMES},
            "regions": [
                dataclasses.asdict(region)
                | {
                    "from": float(one.history.jobs.times()[region.begin]),
                    "until": float(one.history.jobs.times()[region.end - 1]),
                }
                for region in one.regions
            ],
        }
        for one in made.partitions
    ]
    return {
        "source": made.table.source,
        "rows": len(made.table),
        "rows_of_no_history": made.unknown,
        "filters": [dataclasses.asdict(step) for step in made.steps],
        "falls": [dataclasses.asdict(fall) for fall in falls(made.watched)],
        "regressions": [name_of(one.motif, one.system, one.scale) for one in made.regressions],
        "too_few_jobs": too_few(made.every, made.watched, made.options),
        "newest": newest(made.every),
        "stopped": [
            {"system": one.system, "motif": one.motif, "scale": one.scale, "time": time}
            for one, time in stopped(made.every)
        ],
        "histories": [as_json(one) for one in made.watched],
        "quartiles": _quartiles(made),
        "correlations": [dataclasses.asdict(one) for one in made.correlations],
        "regimes": regimes,
        "differences": [dataclasses.asdict(one) for one in made.differences],
        "coverage_beyond_limit": beyond(made.table),
        "completeness": [dataclasses.asdict(one) for one in completeness(made.table)],
        "coverage": [
            {
                "file_system": history.system,
                "motif": history.motif,
                "processes": history.scale or None,
                **{name: dataclasses.asdict(one) for name, one in found.items()},
            }
            for history, found in coverage(made.every)
        ],
    }
