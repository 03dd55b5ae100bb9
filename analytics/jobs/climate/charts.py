"""The figures of the climate page: months, moving averages, correlations."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.jobs.climate.months import month_at, month_boxes, months_of
from mpiio_ext.analytics.jobs.climate.watch import Watched
from mpiio_ext.analytics.jobs.gaps import longest_interval
from mpiio_ext.analytics.jobs.history import UNKNOWN_SYSTEM, History, kind_of
from mpiio_ext.analytics.jobs.metrics import metric
from mpiio_ext.analytics.jobs.regimes.partition import LONG_LOW, NORMAL, Partition, Rules
from mpiio_ext.analytics.jobs.statistics.correlation import Correlation
from mpiio_ext.analytics.jobs.time_axis import MARKED, broken, date_axis
from mpiio_ext.common.plots import Axis, Bars, Boxes, Chart, Line, Look, Mark, Panel, Rule, Segments, Spans, Text
from mpiio_ext.common.units import number_words

#: Metrics in the figure of correlations; the table has all.
_MOST_ROWS = 16


def _grid(panels: Sequence[Panel], above: float = 18.0) -> dict[str, Any]:
    """Return panels in two columns, under each other."""
    columns = 1 if len(panels) == 1 else 2
    rows = [list(panels[at : at + columns]) for at in range(0, len(panels), columns)]
    return {"panels": rows, "margins": (46, 8, above, 36), "gaps": (44, 36), "height": (above + len(rows) * 120.0) / 72}


def _amount(unit: str, high: float | None = None) -> Axis:
    return Axis(low=0, high=high, most=3, grid=True, form=partial(number_words, quantity=unit))


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
        shown = Boxes(
            at=[places[month] for month in boxes], numbers=list(boxes.values()), width=0.62, look=Look("data")
        )
        changes = _changes(found, zone, places) if found else []
        moved += bool(changes)
        high = 1.12 * max((five[4] for five in boxes.values()), default=1.0) or 1.0
        x = Axis(low=-0.6, high=len(names) - 0.4, ticks=ticks)
        panels.append(Panel(marks=[shown, *changes], title=title, x=x, y=_amount(one.unit, high)))
        rows += [(title, f"{year}-{month:02}", *five) for (year, month), five in boxes.items()]
    numbers = (f"{name} [{one.unit}]" if one.unit else name for name in ("p5", "q1", "median", "q3", "p95"))
    told = (
        f"{moved} of {count_words(len(panels), 'history', 'histories')} changed level"
        if moved
        else "no change of level"
    )
    return Chart(
        name=name,
        title=f"{one.label}{_on(system)} by month: {told}",
        table=(("history", "month", *numbers), rows),
        **_grid(panels),
    )


def _changes(found: Watched, zone: datetime.tzinfo, places: Mapping[tuple[int, int], int]) -> list[Mark]:
    """Return a line wherever the level has changed, with the direction at its top."""
    marks: list[Mark] = []
    for shift in found.shifts:
        at = datetime.datetime.fromtimestamp(shift.time, zone)
        place = places[month_at(shift.time, zone)] - 0.5 + (at.day - 1) / 31  # -0.5 to 0.5 around that of the month
        kind, ends = "▼" if shift.change.after < shift.change.before else "▲", ("center", "top")
        marks += [
            Rule(at=place, look=Look("changed", (0, (3, 2))), width=1.1),
            Text(x=place, y=1, text=kind, inside="x", shift=(0, 2), size=7, colour="changed", align=ends),
        ]
    return marks


# ---- regimes ---------------------------------------------------------------------------------------------------------


def averages_chart(name: str, system: str, every: Sequence[Partition], rules: Rules, *, narrow: bool = False) -> Chart:
    """Return the regimes of a file system: a panel for each history, with both moving averages.

    `narrow`: without the jobs where they are many, to be made as wide as a phone.
    """
    one = metric(rules.target)
    parts = [_regimes(found, rules, most=4 if len(every) > 1 else 7, narrow=narrow) for found in every]
    regions, single = sum(part[1] for part in parts), sum(part[2] for part in parts)
    told = f"{count_words(regions, 'long-term region')}, {count_words(single, 'transient')}"
    return Chart(
        name=name,
        title=f"Regimes of {one.label.lower()}{_on(system)}: {told}",
        legend="above",
        **_grid([panel for panel, *_ in parts], above=34.0),
    )


def _regimes(found: Partition, rules: Rules, *, most: int, narrow: bool) -> tuple[Panel, int, int]:
    """Return the panel of a history, and how many long-term regions and transients it has."""
    one, times = metric(rules.target), found.history.jobs.times().tolist()
    apart = longest_interval(found.history.jobs.times())
    values, long, short = ((each * one.factor).tolist() for each in (found.values, found.long, found.short))
    regions = [region for region in found.regions if region.regime != NORMAL]
    marks: list[Mark] = [
        Spans(
            spans=[(times[region.begin], times[region.end - 1])], colour="low" if region.regime == LONG_LOW else "high"
        )
        for region in regions
    ]
    lines = [
        ("jobs", values, Look("neutral"), 0.5),  # without marks, which are bytes
        (f"mean over {rules.long_days:g} days", long, Look("average", "--"), 1.3),
        (f"over {rules.short_days:g} days", short, Look("data"), 1.2),
    ]
    for name, numbers, look, width in lines[len(times) >= MARKED and narrow :]:
        x, y = broken(times, numbers, apart)
        marks.append(Line(x=x, y=y, look=look, width=width, name=name))
    single = [at for at, regime in enumerate(found.regimes.tolist()) if regime.startswith("transient")]
    crosses = Look("changed", "", "x")
    x, y = [times[at] for at in single], [values[at] for at in single]
    marks.append(Line(x=x, y=y, look=crosses, size=4, name="transient"))
    title = kind_of(found.history.motif, found.history.scale)
    panel = Panel(marks=marks, title=title, x=date_axis(times, most=most), y=_amount(one.unit))
    return panel, len(regions), len(single)


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
    labels = [metric(name).label + (" †" if metric(name).extensive else "") for name in names]
    marks: list[Mark] = [
        Segments(
            lines=[[(at, -0.5), (at, len(names) - 0.5)] for at in range(len(groups))],
            look=Look("line"),
            width=0.8,
            layer=1,
        )
    ]
    cells, rows = {(one.metric, one.group): one for one in mine}, list[tuple[object, ...]]()
    for row, name in enumerate(names):
        for at, group in enumerate(groups):
            if (cell := cells.get((name, group))) is not None:
                sure = cell.p_corrected <= level
                marks += _coefficient(at, row, cell.coefficient, sure=sure)
                rows.append((labels[row], group, cell.coefficient, "yes" if sure else "no"))
    most = max((one for one in mine if one.metric == names[0]), key=lambda one: abs(one.coefficient))
    panel = Panel(
        marks=marks,
        x=Axis(low=-0.5, high=len(groups) - 0.5, ticks=list(enumerate(groups)), above=True, line=False),
        y=Axis(low=len(names) - 0.5, high=-0.5, ticks=list(enumerate(labels)), line=False),
    )
    return Chart(
        name="correlations",
        title=(
            f"Performance and {metric(names[0]).label} correlate most: Spearman's coefficient {most.coefficient:+.2f} "
            f"on {most.group}"
        ),
        panels=[[panel]],
        height=(42 + 17.0 * len(names)) / 72,
        margins=(176, 10, 34, 8),
        table=(("metric", "file system", "Spearman's coefficient", "sure"), rows),
    )


def _coefficient(at: int, row: int, value: float, *, sure: bool) -> list[Mark]:
    colour = ("quarter3" if value >= 0 else "quarter0") if sure else "line"
    text, ink = f"{round(value, 2) + 0.0:+.2f}", "ink" if sure else "soft"
    return [
        Bars(at=[row], values=[value * 0.3], foot=at, width=0.62, across=True, look=Look(colour)),
        Text(x=at + 0.48, y=row, text=text, align=("right", "center"), size=7.5, colour=ink, bold=sure),
    ]
