"""An UMAMI as a figure, as text, as JSON and as a page: the weather during the job, beside the climate before it.

An UMAMI as a chart: a row for each metric, with its values over time, their box, and the job's value.
"""

from __future__ import annotations

import dataclasses
import datetime
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mpiio_ext.analytics.jobs.coverage import MOST_COVERAGE
from mpiio_ext.analytics.jobs.filters import left_out
from mpiio_ext.analytics.jobs.history import longest_interval
from mpiio_ext.analytics.jobs.metrics import metric
from mpiio_ext.analytics.jobs.time_axis import MARKED, alone, broken, date_axis
from mpiio_ext.analytics.jobs.umami import Row, Umami
from mpiio_ext.common import page as pages
from mpiio_ext.common.page import Grid, Number, Section
from mpiio_ext.common.plots import SCALE, WIDTH, Axis, Chart, Lettering, Look, Panel
from mpiio_ext.common.printing import under_heads
from mpiio_ext.common.units import number_words

_FIVE = ("p5", "q1", "median", "q3", "p95")


def value_words(value: float | None, row: Row) -> str:
    """Return a value of a metric, in the unit of its column, as people read it."""
    return "–" if value is None else number_words(value * row.metric.factor, row.metric.unit)


def _values(row: Row) -> list[float]:
    """Return the values of a metric in the unit that is shown; NaN for unknown ones."""
    return [value * row.metric.factor for value in row.values.tolist()]


def _value(row: Row) -> float | None:
    return None if row.value is None else row.value * row.metric.factor


def _five(row: Row) -> list[float]:
    """Return the numbers of a box in the unit that is shown; none without a history."""
    return [row.metric.factor * value for value in row.box.numbers] if row.box else []


def _colour(row: Row) -> str:
    return "neutral" if row.quarter is None or row.metric.big_is_good is None else f"quarter{row.quarter - 1}"


def _limits(row: Row) -> tuple[float, float]:
    """Return the ends of a row's axis: a few values far outside must not squash all others to a line.

    The axis contains the job, and twice the distance of the whiskers on both sides of them.
    """
    known, five, own = [value for value in _values(row) if value == value], _five(row), _value(row)
    low, high = min(known), max(known)
    if five and five[4] > five[0]:
        spread = five[4] - five[0]
        low, high = max(low, five[0] - 2 * spread), min(high, five[4] + 2 * spread)
    if own is not None:
        low, high = min(low, own), max(high, own)
    if 0 <= low < 0.5 * high or low == high == 0:
        low, high = 0.0, high or 1.0  # what counts from nothing shows it
    room = 0.12 * (high - low) or 0.5 * abs(high)
    return low - (0.06 * (high - low) if low == 0 else room), high + room


def _line(panel: Panel, found: Umami, row: Row, limits: tuple[float, float]) -> None:
    """Draw the values over time, marks at the edges for those far outside, and a star for the job."""
    times, place, apart = found.times.tolist(), found.place, longest_interval(found.times)
    values, own = _values(row), _value(row)
    marked = len(times) < MARKED
    across, up = broken(times, values, apart)
    single = [] if marked else alone(up)
    panel.line(across, up, Look("data", "-", "." if marked else "", size=3), width=0.8)
    panel.line([across[at] for at in single], [up[at] for at in single], Look("data", "", ".", size=3))
    for end, mark in ((1, "^"), (0, "v")):
        beyond = [
            at for at, value in zip(times, values, strict=True) if (value > limits[1] if end else value < limits[0])
        ]
        panel.line(beyond, [limits[end]] * len(beyond), Look("data", "", mark, size=3.5), clip=False)
    if own is None:
        return
    before = [at for at in range(place) if values[at] == values[at]][-1:]
    if before and (apart is None or times[place] - times[before[0]] <= apart):
        x, y = [times[before[0]], times[place]], [values[before[0]], own]
        panel.line(x, y, Look(_colour(row)), width=1.6)
    star = Look(_colour(row), "", "*", size=12, edge="page")
    panel.line([times[place]], [own], star, clip=False, layer=5)


def _points(found: Umami) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """Return the values of the jobs and the boxes as rows."""
    zone, rows = datetime.timezone.utc, list[tuple[object, ...]]()
    times = [datetime.datetime.fromtimestamp(at, zone).isoformat(timespec="seconds") for at in found.times.tolist()]
    for row in found.metrics:
        name, unit = row.metric.label, row.metric.unit
        rows += [
            (name, unit, "this job" if at == found.place else "job", time, value)
            for at, (time, value) in enumerate(zip(times, _values(row), strict=True))
            if value == value
        ]
        rows += [(name, unit, what, "", value) for what, value in zip(_FIVE, _five(row), strict=False)]
    return ("metric", "unit", "what", "time (UTC)", "value"), rows


def _finding(found: Umami) -> str:
    """Return the message of the figure: how many metrics are in their worst and in their best quarter."""
    judged = [row.quarter for row in found.metrics if row.metric.big_is_good is not None and row.quarter is not None]
    if not judged:
        return f"none of {len(found.metrics)} metrics can be judged"
    return f"of {len(judged)} metrics {judged.count(1)} in their worst quarter, {judged.count(4)} in their best"


def _over_time(found: Umami, row: Row, last: bool, narrow: bool, panel: Panel) -> None:
    """Draw the time line of a metric; its name is on the left, or above on a narrow page."""
    label, limits = row.metric.label, _limits(row)
    _line(panel, found, row, limits)
    if not narrow:
        name, look = "\n".join(textwrap.wrap(label, 17)), Lettering(size=8.5, colour="ink", bold=True)
        panel.text(0, 0.5, name, look, inside="axes", shift=(-132, 0), align=("left", "center"))
    text = _verdict(row) if row.value is None else f"{value_words(row.value, row)} – {_verdict(row)}"
    x = date_axis(found.times.tolist(), shown=last, most=2 if narrow else 7)
    y = _axis(found, limits, partial(number_words, quantity=row.metric.unit))
    panel.frame(x, y, f"{label}\n{text}" if narrow else "")


def _box(found: Umami, row: Row, narrow: bool, panel: Panel) -> None:
    """Draw the distribution of the other jobs, the job in it, and, at the right, its value and verdict."""
    five, own, colour = _five(row), _value(row), _colour(row)
    if five:
        panel.boxes([0.5], [five], width=0.5)
    if own is not None:
        panel.segments([[(0, own), (1, own)]], Look(colour, (0, (4, 2))), width=1.8, layer=4)
    if not narrow:
        for words, up, look in (
            (value_words(row.value, row), 4, Lettering(size=9.5, colour=colour, bold=True)),
            (_verdict(row), -9, Lettering(colour=colour)),
        ):
            panel.text(1, 0.5, words, look, inside="axes", shift=(6, up), align=("left", "center"))
    panel.frame(Axis(low=0, high=1, ticks=()), _axis(found, _limits(row), lambda _: ""))


def _verdict(row: Row) -> str:
    return row.verdict or ("not known" if row.box else "no history")


def _axis(found: Umami, limits: tuple[float, float], form: Callable[[float], str]) -> Axis:
    """Return the y axis of both panels of a metric."""
    return Axis(low=limits[0], high=limits[1], most=3 if len(found.metrics) > 3 else 5, grid=True, form=form)


def chart(found: Umami, *, heading: bool = False, narrow: bool = False) -> Chart:
    """Return the figure.

    Parameters
    ----------
    heading : bool
        With a heading, if nothing else names the job.
    narrow : bool
        As wide as a phone.
    """
    rows = found.metrics
    each = 64.0 if len(rows) > 3 else 92.0
    gap, above, below = 44.0 if narrow else 9.0, (34.0 if narrow else 16.0) + 20.0 * heading, 24.0
    shape: dict[str, Any] = {"widths": (4, 1), "margins": (142, 92, above, below)}
    if narrow:
        shape = {"widths": (5, 1), "margins": (58, 8, above, below), "width": WIDTH / 72, "scale": SCALE}
    return Chart(
        name="umami-narrow" if narrow else "umami",
        title=f"Job {found.job}: {_finding(found)}",
        table=_points(found),
        panels=[
            [partial(_over_time, found, row, row is rows[-1], narrow), partial(_box, found, row, narrow)]
            for row in rows
        ],
        **shape,
        gaps=(8, gap),
        height=(above + below + len(rows) * (each + gap) - gap) / 72,
        heading=f"Job {found.job}: {found.about}" if heading else "",
    )


_CAPTION = (
    "Left: each job of the history, by its start; the star is this job. Right: the distribution of the other jobs: box "
    "from the first to the third quartile with the median, whiskers at the 5th and the 95th percentile; dashed: this "
    "job. The colour shows its quarter, from red (worst) to blue (best); if small values are good, they are blue. "
    "Triangles at the edge: jobs far outside. No line goes through more than seven usual intervals without a job."
)


def document(found: Umami) -> dict[str, Any]:
    """Return the UMAMI as data for JSON; values are in the units of the columns."""
    rows = []
    for row in found.metrics:
        box = row.box
        rows.append(
            {
                "metric": row.metric.name,
                "label": row.metric.label,
                "big_is_good": row.metric.big_is_good,
                "value": row.value,
                "quarter": row.quarter,
                "verdict": row.verdict,
                "share_below": row.below,
                "history": box and box.as_json(),
            }
        )
    return {
        "job": found.job,
        "file_system": found.system,
        "motif": found.motif,
        "processes": found.scale or None,
        "start": float(found.times[found.place]),
        "history_jobs": len(found.times) - 1,
        "metrics": rows,
        "without_values": list(found.absent),
        "beyond_limit": list(found.beyond),
        "gaps": list(found.gaps),
        "other_processes": dict(found.other_scales),
        "filters": [dataclasses.asdict(step) for step in found.left_out],
    }


def _table(found: Umami) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in found.metrics:
        below = "–" if row.below is None else f"{100 * row.below:.0f} %"
        spread = "–" if row.box is None else f"{value_words(row.box.first, row)} to {value_words(row.box.third, row)}"
        rows.append(
            (
                row.metric.label,
                value_words(row.value, row),
                row.verdict or "–",
                value_words(row.box.median if row.box else None, row),
                spread,
                below,
            )
        )
    return rows


_COLUMNS = (
    "metric",
    Number("this job"),
    "lies in",
    Number("median of the others"),
    Number("their middle half"),
    Number("others below"),
)


def text(found: Umami) -> str:
    """Return the weather of the job as text: a line for each metric."""
    lines = under_heads(_COLUMNS, _table(found))
    return "\n".join([f"job {found.job}: {found.about}", "", *lines, "", found.summary, *_unused(found)])


def _unused(found: Umami) -> list[str]:
    """Return which values of the job are not used, and which rows are not compared."""
    names = {
        "Not used, as a factor above {0:g} means that samples of the servers are missing or a cache answered: "
        "{1}.": found.beyond,
        "Not used, as the servers saw less than the job itself moved or nothing at all: {1}.": found.gaps,
    }
    lines = [
        words.format(MOST_COVERAGE, ", ".join(metric(name).label for name in some))
        for words, some in names.items()
        if some
    ]
    others = [f"{count:,} of {scale} processes" for scale, count in found.other_scales.items()]
    lines += [f"Not compared: jobs of the same motif on the same file system, {', '.join(others)}."] if others else []
    return [*lines, *(f"{line}." for line in left_out(found.left_out))]


def page(found: Umami) -> str:
    """Return one page: the UMAMI, also narrow, and the weather as a table; the page loads nothing."""
    grid = Grid(columns=_COLUMNS, rows=_table(found))
    figure = pages.drawn(chart(found), caption=_CAPTION, narrow=chart(found, narrow=True))
    missing = [f"Without a value in the history: {', '.join(found.absent)}."] if found.absent else []
    sections = [
        Section(
            anchor="weather",
            title="Weather during the job",
            figures=[figure],
            grids=[grid],
            sentences=[
                "Each metric while this job ran, beside all other jobs of the history.",
                *_unused(found),
                *missing,
            ],
        )
    ]
    head = f"{found.about}: one job against the history of its application, file system, motif and processes."
    return pages.document(f"Job {found.job}", sections, lead=[found.summary], head=head)
