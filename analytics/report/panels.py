"""Charts of histories of jobs: UMAMI, distributions over months, moving averages, correlations.

``data`` of each kind:

- ``umami``: ``rows`` of ``label``, ``values``, ``value``, ``box`` (low, first, median, third, high), ``quarter`` (0 to
  3, or None), ``words`` (the value), ``verdict``, ``quantity``. ``times`` (s since 1970), ``place``, ``heading`` (or
  ""), ``apart`` (the longest interval in s through which a line is drawn, or None).
- ``months``: ``panels`` of ``title``, ``boxes`` (place and the five numbers), ``changes`` (places); ``months`` (names).
- ``averages``: ``panels`` of ``title``, ``times``, ``values``, ``short``, ``long``, ``spans`` (start, end, low or
  high), ``outliers`` (places), ``apart``.
- ``correlations``: ``rows`` (names), ``columns`` (names), ``values`` (rows of -1 to 1, or None), ``sure`` (flags).
"""

from __future__ import annotations

import datetime
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mpiio_ext.common.plots import Axis, Bars, Boxes, Line, Look, Mark, Panel, Rule, Segments, Spans, Text
from mpiio_ext.common.plots.phone import SCALE, WIDTH
from mpiio_ext.common.units import number_words

_DAY = 86400.0
#: Jobs that get a mark each; more are a line alone, since marks are most of the bytes of a figure.
_MARKED = 120


def _date_axis(times: Sequence[float], *, shown: bool = True, most: int = 7) -> Axis:
    """Return an axis of seconds with some `most` marks at starts of months, or of days where it is short."""
    zone = datetime.timezone.utc
    first, last = (datetime.datetime.fromtimestamp(end, zone) for end in (min(times), max(times)))
    days = (last - first).total_seconds() / _DAY
    marks: list[tuple[float, str]] = []
    if days > 62:
        step = max(1, math.ceil(days / 30.4 / most))
        at = datetime.datetime(first.year, first.month, 1, tzinfo=zone)
        while at <= last:
            if at >= first:
                year = at.month <= step or not marks
                marks.append((at.timestamp(), at.strftime("%b %Y" if year else "%b")))
            ahead = at.month - 1 + step
            at = at.replace(year=at.year + ahead // 12, month=ahead % 12 + 1)
    else:
        step = max(1, math.ceil(days / most))
        at = datetime.datetime(first.year, first.month, first.day, tzinfo=zone)
        while at <= last + datetime.timedelta(days=1):
            if at >= first:
                marks.append((at.timestamp(), at.strftime("%d %b")))
            at += datetime.timedelta(days=step)
    room = max((max(times) - min(times)) * 0.02, 3600.0)
    return Axis(
        ticks=[(place, words if shown else "") for place, words in marks],
        low=min(times) - room,
        high=max(times) + room,
        date=True,
    )


def _broken(times: Sequence[float], values: Sequence[float], apart: float | None) -> tuple[list[float], list[float]]:
    """Return a line with a hole wherever more than `apart` s pass between two jobs."""
    if apart is None:
        return list(times), list(values)
    across, up = list(times[:1]), list(values[:1])
    for before, at, value in zip(times, times[1:], values[1:], strict=False):
        if at - before > apart:
            across.append((before + at) / 2)
            up.append(float("nan"))
        across.append(at)
        up.append(value)
    return across, up


def _alone(values: Sequence[float]) -> list[int]:
    """Return the places of values between two holes, of which a line shows nothing."""
    there = [False, *(value == value for value in values), False]
    return [at for at in range(len(values)) if there[at + 1] and not there[at] and not there[at + 2]]


# ---- UMAMI -----------------------------------------------------------------------------------------------------------


def _colour(row: Mapping[str, Any]) -> str:
    return "neutral" if row["quarter"] is None or not row["judged"] else f"quarter{row['quarter']}"


def _limits(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the ends of a row's axis: a few values far outside must not squash all others to a line.

    It holds the job, and twice the distance of the whiskers on both sides of them.
    """
    known = [value for value in row["values"] if value is not None]
    low, high = min(known), max(known)
    if row["box"] is not None:
        spread = row["box"][4] - row["box"][0]
        if spread > 0:
            low, high = max(low, row["box"][0] - 2 * spread), min(high, row["box"][4] + 2 * spread)
    if row["value"] is not None:
        low, high = min(low, row["value"]), max(high, row["value"])
    if 0 <= low < 0.5 * high or low == high == 0:
        low, high = 0.0, high or 1.0  # what counts from nothing shows it
    room = 0.12 * (high - low) or 0.5 * abs(high)
    return low - (0.06 * (high - low) if low == 0 else room), high + room


def _umami_line(data: Mapping[str, Any], row: Mapping[str, Any], limits: tuple[float, float]) -> list[Mark]:
    times, place = data["times"], data["place"]
    values = [float("nan") if value is None else value for value in row["values"]]
    marked = len(times) < _MARKED
    across, up = _broken(times, values, data["apart"])
    single = [] if marked else _alone(up)
    dots = Look("data", "", ".")
    marks: list[Mark] = [
        Line(x=across, y=up, look=Look("data", "-", "." if marked else ""), width=0.8, size=3),
        Line(x=[across[at] for at in single], y=[up[at] for at in single], look=dots, size=3),
    ]
    for end, mark in ((1, "^"), (0, "v")):
        beyond = [
            at for at, value in zip(times, values, strict=True) if (value > limits[1] if end else value < limits[0])
        ]
        marks.append(Line(x=beyond, y=[limits[end]] * len(beyond), look=Look("data", "", mark), size=3.5, clip=False))
    if row["value"] is not None:
        colour = _colour(row)
        before = [at for at in range(place) if row["values"][at] is not None][-1:]
        if before and (data["apart"] is None or times[place] - times[before[0]] <= data["apart"]):
            marks.append(
                Line(
                    x=[times[before[0]], times[place]],
                    y=[values[before[0]], row["value"]],
                    look=Look(colour),
                    width=1.6,
                )
            )
        marks.append(
            Line(
                x=[times[place]],
                y=[row["value"]],
                look=Look(colour, "", "*"),
                size=12,
                clip=False,
                edge="page",
                layer=5,
            )
        )
    return marks


def _umami_box(row: Mapping[str, Any], *, told: bool) -> list[Mark]:
    marks: list[Mark] = []
    colour = _colour(row)
    if row["box"] is not None:
        marks.append(Boxes(at=[0.5], numbers=[row["box"]], width=0.5, look=Look("ink")))
    if row["value"] is not None:
        marks.append(
            Segments(lines=[[(0, row["value"]), (1, row["value"])]], look=Look(colour, (0, (4, 2))), width=1.8, layer=4)
        )
    return [
        *marks,
        *(
            Text(
                x=1,
                y=0.5,
                text=text,
                inside="axes",
                shift=(6, below),
                size=size,
                colour=colour,
                bold=size > 9,
                align=("left", "center"),
            )
            for text, below, size in ((row["words"], 4, 9.5), (row["verdict"], -9, 8))
            if told
        ),
    ]


def _umami_table(data: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """Return the values of the jobs and the boxes as rows."""
    zone, rows = datetime.timezone.utc, list[tuple[object, ...]]()
    times = [datetime.datetime.fromtimestamp(at, zone).isoformat(timespec="seconds") for at in data["times"]]
    for row in data["rows"]:
        name = row["label"]
        rows += [
            (name, row["quantity"], "this job" if at == data["place"] else "job", time, value)
            for at, (time, value) in enumerate(zip(times, row["values"], strict=True))
            if value is not None
        ]
        box = row["box"] or ()
        rows += [
            (name, row["quantity"], what, "", value)
            for what, value in zip(("p5", "q1", "median", "q3", "p95"), box, strict=False)
        ]
    return ("metric", "unit", "what", "time (UTC)", "value"), rows


def _umami(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row per metric: time line, box (4:1), value; the name on the left, or above where it is narrow."""
    rows, narrow = data["rows"], bool(data.get("narrow"))
    each = 64.0 if len(rows) > 3 else 92.0
    gap, above, below = 44.0 if narrow else 9.0, (34.0 if narrow else 16.0) + 20.0 * bool(data.get("heading")), 24.0
    panels = []
    for number, row in enumerate(rows):
        low, high = limits = _limits(row)
        label = Text(
            x=0,
            y=0.5,
            text="\n".join(textwrap.wrap(row["label"], 17)),
            inside="axes",
            shift=(-132, 0),
            size=8.5,
            colour="ink",
            bold=True,
            align=("left", "center"),
        )
        few = 3 if each < 80 else 5
        told = row["verdict"] if row["value"] is None else f"{row['words']} – {row['verdict']}"
        line = Panel(
            marks=_umami_line(data, row, limits) + ([] if narrow else [label]),
            title=f"{row['label']}\n{told}" if narrow else "",
            x=_date_axis(data["times"], shown=number == len(rows) - 1, most=2 if narrow else 7),
            y=Axis(low=low, high=high, most=few, grid=True, form=partial(number_words, quantity=row["quantity"])),
        )
        box = Panel(
            marks=_umami_box(row, told=not narrow),
            x=Axis(low=0, high=1, ticks=()),
            y=Axis(low=low, high=high, most=few, grid=True, form=lambda _: ""),
        )
        panels.append([line, box])
    shape: dict[str, Any] = {"widths": (4, 1), "margins": (142, 92, above, below)}
    if narrow:
        shape = {"widths": (5, 1), "margins": (58, 8, above, below), "width": WIDTH / 72, "scale": SCALE}
    return {
        "table": _umami_table(data),
        "panels": panels,
        **shape,
        "gaps": (8, gap),
        "height": (above + below + len(rows) * (each + gap) - gap) / 72,
        "heading": data.get("heading", ""),
    }


# ---- climate ---------------------------------------------------------------------------------------------------------


def _grid(panels: Sequence[Panel], above: float = 18.0) -> dict[str, Any]:
    """Return panels in two columns, under each other."""
    columns = 1 if len(panels) == 1 else 2
    rows = [list(panels[at : at + columns]) for at in range(0, len(panels), columns)]
    return {"panels": rows, "margins": (46, 8, above, 36), "gaps": (44, 36), "height": (above + len(rows) * 120.0) / 72}


def _amount(unit: str, high: float | None = None) -> Axis:
    return Axis(low=0, high=high, most=3, grid=True, form=partial(number_words, quantity=unit))


def _months(data: Mapping[str, Any]) -> dict[str, Any]:
    names, panels = data["months"], []
    step = max(1, -(-len(names) // 7))
    for panel in data["panels"]:
        boxes = panel["boxes"]
        marks: list[Mark] = [
            Boxes(at=[box[0] for box in boxes], numbers=[box[1:6] for box in boxes], width=0.62, look=Look("data"))
        ]
        for place, kind in panel["changes"]:
            marks += [
                Rule(at=place, look=Look("changed", (0, (3, 2))), width=1.1),
                Text(
                    x=place, y=1, text=kind, inside="x", shift=(0, 2), size=7, colour="changed", align=("center", "top")
                ),
            ]
        panels.append(
            Panel(
                marks=marks,
                title=panel["title"],
                x=Axis(low=-0.6, high=len(names) - 0.4, ticks=[(at, names[at]) for at in range(0, len(names), step)]),
                y=_amount(data["quantity"], 1.12 * max((box[5] for box in boxes), default=1.0) or 1.0),
            )
        )
    rows = [(panel["title"], data["dates"][box[0]], *box[1:6]) for panel in data["panels"] for box in panel["boxes"]]
    names = ("p5", "q1", "median", "q3", "p95")
    columns = ("history", "month", *(f"{name} [{data['quantity']}]" if data["quantity"] else name for name in names))
    return _grid(panels) | {"table": (columns, rows)}


def _averages(data: Mapping[str, Any]) -> dict[str, Any]:
    panels = []
    alone = len(data["panels"]) == 1
    long, short = f"mean over {data['long_days']:g} days", f"over {data['short_days']:g} days"
    for panel in data["panels"]:
        times, values, apart = panel["times"], panel["values"], panel["apart"]
        marks: list[Mark] = [
            Spans(spans=[(start, end)], colour="low" if kind == "low" else "high")
            for start, end, kind in panel["spans"]
        ]
        lines = [
            ("jobs", values, Look("neutral"), 0.5),  # without marks, which are bytes
            (long, panel["long"], Look("average", "--"), 1.3),
            (short, panel["short"], Look("data"), 1.2),
        ]
        many = len(times) >= _MARKED and bool(data.get("narrow"))
        for name, numbers, shape, width in lines[many:]:
            x, y = _broken(times, numbers, apart)
            marks.append(Line(x=x, y=y, look=shape, width=width, name=name))
        marks.append(
            Line(
                x=[times[at] for at in panel["outliers"]],
                y=[values[at] for at in panel["outliers"]],
                look=Look("changed", "", "x"),
                size=4,
                name="transient",
            )
        )
        panels.append(
            Panel(
                marks=marks,
                title=panel["title"],
                x=_date_axis(times, most=7 if alone else 4),
                y=_amount(data["quantity"]),
            )
        )
    return _grid(panels, above=34.0) | {"legend": "above"}


def _correlations(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell per coefficient: a bar from the middle, its number, bold where it is sure."""
    rows, columns = data["rows"], data["columns"]
    marks: list[Mark] = [
        Segments(
            lines=[[(at, -0.5), (at, len(rows) - 0.5)] for at in range(len(columns))],
            look=Look("line"),
            width=0.8,
            layer=1,
        )
    ]
    for row, values in enumerate(data["values"]):
        for at, value in enumerate(values):
            if value is None:
                continue
            sure = data["sure"][row][at]
            colour = ("quarter3" if value >= 0 else "quarter0") if sure else "line"
            marks += [
                Bars(at=[row], values=[value * 0.3], foot=at, width=0.62, across=True, look=Look(colour)),
                Text(
                    x=at + 0.48,
                    y=row,
                    text=f"{round(value, 2) + 0.0:+.2f}",
                    align=("right", "center"),
                    size=7.5,
                    colour="ink" if sure else "soft",
                    bold=sure,
                ),
            ]
    panel = Panel(
        marks=marks,
        x=Axis(low=-0.5, high=len(columns) - 0.5, ticks=list(enumerate(columns)), above=True, line=False),
        y=Axis(low=len(rows) - 0.5, high=-0.5, ticks=list(enumerate(rows)), line=False),
    )
    return {
        "panels": [[panel]],
        "height": (42 + 17.0 * len(rows)) / 72,
        "margins": (176, 10, 34, 8),
        "table": (
            ("metric", "file system", "Spearman's coefficient", "sure"),
            [
                (name, column, value, "yes" if sure else "no")
                for name, values, flags in zip(rows, data["values"], data["sure"], strict=True)
                for column, value, sure in zip(columns, values, flags, strict=True)
                if value is not None
            ],
        ),
    }


KINDS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "umami": _umami,
    "months": _months,
    "averages": _averages,
    "correlations": _correlations,
}
