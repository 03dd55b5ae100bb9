"""The figures of the climate page: months, moving averages, correlations.

Months are counted in a time zone; the starts of jobs come from :meth:`Jobs.times`. A month without jobs has no box.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.jobs.climate.watch import Watched
from mpiio_ext.analytics.jobs.history import UNKNOWN_SYSTEM, History, kind_of, longest_interval
from mpiio_ext.analytics.jobs.metrics import Box, box, metric
from mpiio_ext.analytics.jobs.regimes import LONG_LOW, NORMAL, Partition, Rules
from mpiio_ext.analytics.jobs.statistics.correlation import Correlation
from mpiio_ext.analytics.jobs.time_axis import MARKED, broken, date_axis
from mpiio_ext.common.plots import Axis, Bar, Chart, Lettering, Look, Panel
from mpiio_ext.common.units import number_words

#: (year, month).
Month = tuple[int, int]


def month_at(time: float, zone: datetime.tzinfo) -> Month:
    """Return the month of a time in s since 1970 UTC."""
    at = datetime.datetime.fromtimestamp(time, zone)
    return at.year, at.month


def months_of(every: Sequence[History], zone: datetime.tzinfo) -> list[Month]:
    """Return all months from the first job of the histories to the last."""
    times = [time for history in every if len(history.jobs) for time in history.jobs.times()[[0, -1]].tolist()]
    if not times:
        return []
    (year, month), end = month_at(min(times), zone), month_at(max(times), zone)
    out = []
    while (year, month) <= end:
        out.append((year, month))
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return out


def month_boxes(history: History, metric: str, zone: datetime.tzinfo) -> dict[Month, Box]:
    """Return the box of each month in which the metric is known of a job."""
    values = history.jobs.numbers(metric)
    where: dict[Month, list[int]] = {}
    for row, time in enumerate(history.jobs.times().tolist()):
        where.setdefault(month_at(time, zone), []).append(row)
    found = {month: box(values[np.array(rows)]) for month, rows in where.items()}
    return {month: one for month, one in found.items() if one is not None}


#: Metrics in the figure of correlations; the table has all.
_MOST_ROWS = 16


def _grid(panels: Sequence[Callable[[Panel], None]], above: float = 18.0) -> dict[str, Any]:
    """Return panels in two columns, under each other."""
    columns = 1 if len(panels) == 1 else 2
    rows = [list(panels[at : at + columns]) for at in range(0, len(panels), columns)]
    return {"panels": rows, "margins": (46, 8, above, 36), "gaps": (44, 36), "height": (above + len(rows) * 120.0) / 72}


def _amount(unit: str, high: float | None = None) -> Axis:
    return Axis(low=0, high=high, most=3, grid=True, form=partial(number_words, quantity=unit))


def label_of(name: str) -> str:
    """Return the name of a metric; † if a slower job has more of it for that alone."""
    one = metric(name)
    return one.label + (" †" if one.extensive else "")


def signed(value: float) -> str:
    """Return a value between -1 and 1 with its sign; a value that rounds to 0 is +0.00."""
    return f"{round(value, 2) + 0.0:+.2f}"


def _on(system: str) -> str:
    return f" on {system}" if system else f", {UNKNOWN_SYSTEM}"


# ---- months ----------------------------------------------------------------------------------------------------------


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
    names = [
        datetime.date(year, month, 1).strftime("%b %y" if month == 1 or at == 0 else "%b")
        for at, (year, month) in enumerate(months)
    ]
    ticks = [(at, names[at]) for at in range(0, len(names), max(1, -(-len(names) // 7)))]
    one, moved = metric(target), 0
    panels, rows = [], list[tuple[object, ...]]()
    for history in every:
        boxes = {
            month: [one.factor * value for value in box.numbers]
            for month, box in sorted(month_boxes(history, target, zone).items())
        }
        title, found = kind_of(history.motif, history.scale), watched.get((history.motif, history.scale))
        changes = _changes(found, zone, places) if found else []
        moved += bool(changes)
        x = Axis(low=-0.6, high=len(names) - 0.4, ticks=ticks)
        known = {float(places[month]): five for month, five in boxes.items()}
        panels.append(partial(_months, known, changes, x, one.unit, title))
        rows += [(title, f"{year}-{month:02}", *five) for (year, month), five in boxes.items()]
    numbers = (f"{name} [{one.unit}]" if one.unit else name for name in ("p5", "q1", "median", "q3", "p95"))
    text = (
        f"{moved} of {count_words(len(panels), 'history', 'histories')} changed level"
        if moved
        else "no change of level"
    )
    return Chart(
        name=name,
        title=f"{one.label}{_on(system)} by month: {text}",
        table=(("history", "month", *numbers), rows),
        **_grid(panels),
    )


def _months(
    boxes: Mapping[float, Sequence[float]],
    changes: Sequence[tuple[float, str]],
    x: Axis,
    unit: str,
    title: str,
    panel: Panel,
) -> None:
    """Draw a history: a box for each month, a line wherever the level has changed, and the direction at its top."""
    panel.boxes(list(boxes), list(boxes.values()), Look("data"), width=0.62)
    for place, kind in changes:
        panel.rule(place, Look("changed", (0, (3, 2))), width=1.1)
        look = Lettering(size=7, colour="changed")
        panel.text(place, 1, kind, look, inside="x", shift=(0, 2), align=("center", "top"))
    panel.frame(x, _amount(unit, 1.12 * max((five[4] for five in boxes.values()), default=1.0) or 1.0), title)


def _changes(found: Watched, zone: datetime.tzinfo, places: Mapping[tuple[int, int], int]) -> list[tuple[float, str]]:
    """Return where the level has changed, and the direction."""
    changes = []
    for shift in found.shifts:
        at = datetime.datetime.fromtimestamp(shift.time, zone)
        place = places[month_at(shift.time, zone)] - 0.5 + (at.day - 1) / 31  # -0.5 to 0.5 around that of the month
        changes.append((place, "▼" if shift.change.after < shift.change.before else "▲"))
    return changes


# ---- regimes ---------------------------------------------------------------------------------------------------------


def averages_chart(name: str, system: str, every: Sequence[Partition], rules: Rules) -> Chart:
    """Return the regimes of a file system: a panel for each history, with both moving averages."""
    regions = sum(region.regime != NORMAL for found in every for region in found.regions)
    text = f"{count_words(regions, 'long-term region')}, {count_words(sum(map(len, map(_single, every))), 'transient')}"
    most = 4 if len(every) > 1 else 7
    return Chart(
        name=name,
        title=f"Regimes of {metric(rules.target).label.lower()}{_on(system)}: {text}",
        legend="above",
        **_grid([partial(_regimes, found, rules, most) for found in every], above=34.0),
    )


def _single(found: Partition) -> list[int]:
    """Return the places of transients."""
    return [at for at, regime in enumerate(found.regimes.tolist()) if regime.startswith("transient")]


def _regimes(found: Partition, rules: Rules, most: int, panel: Panel) -> None:
    """Draw a history: regions, averages, transients, and the jobs, but for a phone where they are many."""
    one, times = metric(rules.target), found.history.jobs.times().tolist()
    apart = longest_interval(found.history.jobs.times())
    values, long, short = ((each * one.factor).tolist() for each in (found.values, found.long, found.short))
    for region in (region for region in found.regions if region.regime != NORMAL):
        ends = times[region.begin], times[region.end - 1]
        panel.spans([ends], "low" if region.regime == LONG_LOW else "high")
    lines = [
        ("jobs", values, Look("neutral"), 0.5),  # without marks, which are bytes
        (f"mean over {rules.long_days:g} days", long, Look("average", "--"), 1.3),
        (f"over {rules.short_days:g} days", short, Look("data"), 1.2),
    ]
    for name, numbers, look, width in lines[len(times) >= MARKED and panel.narrow :]:
        panel.line(*broken(times, numbers, apart), look, name, width=width)
    single = _single(found)
    crosses = Look("changed", "", "x", size=4)
    panel.line([times[at] for at in single], [values[at] for at in single], crosses, "transient")
    title = kind_of(found.history.motif, found.history.scale)
    panel.frame(date_axis(times, most=most), _amount(one.unit), title)


# ---- correlations ----------------------------------------------------------------------------------------------------


def correlation_chart(found: Sequence[Correlation], level: float) -> Chart | None:
    """Return Spearman's coefficients of the metrics with the largest ones; None without any.

    A cell for each: a bar from the middle, its number, bold where it is sure.
    """
    mine = [one for one in found if one.method == "spearman" and one.coefficient == one.coefficient]
    groups = sorted({one.group for one in mine})
    largest: dict[str, float] = {}
    for one in mine:
        if one.p_corrected <= level:
            largest[one.metric] = max(largest.get(one.metric, 0.0), abs(one.coefficient))
    names = sorted(largest, key=lambda name: -largest[name])[:_MOST_ROWS]
    if not names:
        return None
    labels = [label_of(name) for name in names]
    known = {(one.metric, one.group): one for one in mine}
    every = [(name, group) for name in names for group in groups if (name, group) in known]
    cells = [(groups.index(group), names.index(name), known[name, group]) for name, group in every]
    rows = [
        (labels[row], one.group, one.coefficient, "yes" if one.p_corrected <= level else "no") for _, row, one in cells
    ]
    most = max((one for one in mine if one.metric == names[0]), key=lambda one: abs(one.coefficient))

    def draw(panel: Panel) -> None:
        uprights = [[(at, -0.5), (at, len(names) - 0.5)] for at in range(len(groups))]
        panel.segments(uprights, Look("line"), width=0.8, layer=1)
        for at, row, one in cells:
            _coefficient(panel, at, row, one.coefficient, sure=one.p_corrected <= level)
        panel.frame(
            Axis(low=-0.5, high=len(groups) - 0.5, ticks=list(enumerate(groups)), above=True, line=False),
            Axis(low=len(names) - 0.5, high=-0.5, ticks=list(enumerate(labels)), line=False),
        )

    return Chart(
        name="correlations",
        title=(
            f"Performance and {metric(names[0]).label} correlate most: Spearman's coefficient {most.coefficient:+.2f} "
            f"on {most.group}"
        ),
        panels=[[draw]],
        height=(42 + 17.0 * len(names)) / 72,
        margins=(176, 10, 34, 8),
        table=(("metric", "file system", "Spearman's coefficient", "sure"), rows),
    )


def _coefficient(panel: Panel, at: int, row: int, value: float, *, sure: bool) -> None:
    colour = ("quarter3" if value >= 0 else "quarter0") if sure else "line"
    ink = "ink" if sure else "soft"
    panel.bars([Bar(row, value * 0.3, foot=at)], Look(colour), width=0.62, across=True)
    look = Lettering(size=7.5, colour=ink, bold=sure)
    panel.text(at + 0.48, row, signed(value), look, align=("right", "center"))
