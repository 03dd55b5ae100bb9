"""The figures of the climate page: months, moving averages, correlations."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.jobs.climate.months import month_at, month_boxes, months_of
from mpiio_ext.analytics.jobs.climate.watch import Watched
from mpiio_ext.analytics.jobs.gaps import longest_interval
from mpiio_ext.analytics.jobs.history import UNKNOWN_SYSTEM, History, kind_of
from mpiio_ext.analytics.jobs.metrics import metric
from mpiio_ext.analytics.jobs.regimes.partition import LONG_LOW, NORMAL, Partition, Rules
from mpiio_ext.analytics.jobs.statistics.correlation import Correlation

#: Metrics in the figure of correlations; the table has all.
_MOST_ROWS = 16


def months_chart(
    name: str,
    system: str,
    every: Sequence[History],
    watched: Mapping[tuple[str, str], Watched],
    target: str,
    zone: datetime.tzinfo,
) -> Chart:
    """Return the distribution of performance over months: a panel for each history of a file system.

    Parameters
    ----------
    name, system : of the figure, and of the file system.
    every : of this file system.
    watched : mapping of (str, str) to Watched
        Motif and scale -> what the watch found; its changes are marked.
    target : column.
    zone : whose months these are.
    """
    months = months_of(every, zone)
    places = {month: at for at, month in enumerate(months)}
    one = metric(target)
    panels = []
    for history in every:
        boxes = [
            [places[month], *(one.factor * value for value in box.numbers)]
            for month, box in sorted(month_boxes(history, target, zone).items())
        ]
        found = watched.get((history.motif, history.scale))
        changes = [
            [_within(shift.time, zone, places), "▼" if shift.change.after < shift.change.before else "▲"]
            for shift in (found.shifts if found else ())
        ]
        panels.append({"title": kind_of(history.motif, history.scale), "boxes": boxes, "changes": changes})
    names = [
        datetime.date(year, month, 1).strftime("%b %y" if month == 1 or at == 0 else "%b")
        for at, (year, month) in enumerate(months)
    ]
    moved = sum(bool(panel["changes"]) for panel in panels)
    told = (
        f"{moved} of {count_words(len(panels), 'history', 'histories')} changed level"
        if moved
        else ("no change of level")
    )
    return Chart(
        kind="months",
        name=name,
        title=f"{one.label}{_on(system)} by month: {told}",
        data={
            "panels": panels,
            "months": names,
            "quantity": one.unit,
            "dates": [f"{year}-{month:02}" for year, month in months],
        },
    )


def _on(system: str) -> str:
    return f" on {system}" if system else f", {UNKNOWN_SYSTEM}"


def _within(time: float, zone: datetime.tzinfo, places: Mapping[tuple[int, int], int]) -> float:
    """Return where on an axis of months a time is: -0.5 to 0.5 around the month's place."""
    at = datetime.datetime.fromtimestamp(time, zone)
    return places[month_at(time, zone)] - 0.5 + (at.day - 1) / 31


def averages_chart(name: str, system: str, every: Sequence[Partition], rules: Rules) -> Chart:
    """Return the regimes of a file system: a panel for each history, with both moving averages."""
    one = metric(rules.target)
    panels = []
    for found in every:
        times = found.history.jobs.times().tolist()
        spans = [
            [times[region.begin], times[region.end - 1], "low" if region.regime == LONG_LOW else "high"]
            for region in found.regions
            if region.regime != NORMAL
        ]
        outliers = [at for at, regime in enumerate(found.regimes.tolist()) if regime.startswith("transient")]
        panels.append(
            {
                "title": kind_of(found.history.motif, found.history.scale),
                "times": times,
                "values": (found.values * one.factor).tolist(),
                "short": (found.short * one.factor).tolist(),
                "long": (found.long * one.factor).tolist(),
                "spans": spans,
                "outliers": outliers,
                "apart": longest_interval(found.history.jobs.times()),
            }
        )
    regions, alone = (sum(len(panel[what]) for panel in panels) for what in ("spans", "outliers"))
    told = f"{count_words(regions, 'long-term region')}, {count_words(alone, 'transient')}"
    return Chart(
        kind="averages",
        name=name,
        title=f"Regimes of {one.label.lower()}{_on(system)}: {told}",
        data={"panels": panels, "quantity": one.unit, "short_days": rules.short_days, "long_days": rules.long_days},
    )


def correlation_chart(found: Sequence[Correlation], level: float) -> Chart | None:
    """Return Spearman's coefficients of the metrics with the largest ones; None without any."""
    mine = [one for one in found if one.method == "spearman" and one.coefficient == one.coefficient]
    if not mine:
        return None
    groups = sorted({one.group for one in mine})
    largest: dict[str, float] = {}
    for one in mine:
        if one.p_corrected <= level:
            largest[one.metric] = max(largest.get(one.metric, 0.0), abs(one.coefficient))
    names = sorted(largest, key=lambda name: -largest[name])[:_MOST_ROWS]
    if not names:
        return None
    cells = {(one.metric, one.group): one for one in mine}
    rows = [[cells.get((name, group)) for group in groups] for name in names]
    labels = [metric(name).label + (" †" if metric(name).extensive else "") for name in names]
    most = max((one for one in mine if one.metric == names[0]), key=lambda one: abs(one.coefficient))
    title = (
        f"Performance and {metric(names[0]).label} correlate most: Spearman's coefficient "
        f"{most.coefficient:+.2f} on {most.group}"
    )
    return Chart(
        kind="correlations",
        name="correlations",
        title=title,
        data={
            "rows": labels,
            "columns": groups,
            "values": [[None if cell is None else cell.coefficient for cell in row] for row in rows],
            "sure": [[cell is not None and cell.p_corrected <= level for cell in row] for row in rows],
        },
    )
