"""Charts of analyses: what their data are, and how each kind is drawn.

A chart of an analysis is plain data (:class:`mpiio_ext.analytics.analyses.result.Chart`). ``data`` of each kind:

- ``ranking``: ``panels``, each with ``title``, ``labels``, ``values``, ``notes`` (beside the bars), ``axis``,
  ``quantity`` ("bytes", "rate" or "").
- ``bars``: ``series`` of ``name`` and ``values``, over ``labels`` or ``x``; ``notes`` above the bars, ``ends`` (bars of
  their own at both ends), ``log``, ``legend``.
- ``lines``: ``series`` of ``name``, ``x``, ``y``.
- ``parallel``: ``axes`` of ``name``, ``low``, ``high``, ``log``, and ``only`` (its one value, which is in the middle).
  ``lines`` of ``group``, ``values`` (0 to 1, None where not known) and ``words`` (what each value is).
  ``groups`` in order of their colours.
- ``files``: ``bars`` of ``row``, ``start``, ``end``, ``critical``, ``label``; ``quantity``.
- ``steps``: ``series`` of ``name``, ``y`` and ``look`` over ``x`` (begins of steps) and ``step``; ``spans`` (shaded),
  ``quantity``; ``wide``: as wide as the time line of ranks.
- ``places``: ``series`` of ``name``, ``x``, ``y`` (points).
- ``ranks``: ``levels`` of ``reads``, ``writes``, ``metadata``, and ``waiting`` where it is known,
  rows of bands of 0 to 24, each on those before it; ``exact``, the numbers behind them; ``edges`` of the bands, and
  ``run_time`` (:mod:`mpiio_ext.analytics.report.timeline`).

``x_label``, ``y_label`` (with units), ``x_range``, ``y_range``, and ``caption`` (how it is read) go for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.report import timeline
from mpiio_ext.common import page, plots
from mpiio_ext.common.plots import Axis, Bar, Lettering, Look, Panel, corners, look, shortened
from mpiio_ext.common.units import number_words

#: Points of the tick marks, of what stands upright before them (the name of the axis), and of a legend above the axes.
_TICK, _NAME, _ABOVE = 8, 18, 22
_UNITS = {"bytes": "B", "rate": "B/s"}


def _room(texts: Iterable[str], size: float = 9) -> float:
    """Return the points that the longest of these texts takes, at most but for texts of capital letters."""
    return max((len(line) for text in texts for line in text.split("\n")), default=0) * size * 0.62


def _rows(texts: Iterable[str]) -> float:
    """Return the points that the rows of these texts take."""
    return 11.5 * max((text.count("\n") + 1 for text in texts), default=1)


def _form(quantity: str) -> Callable[[float], str] | None:
    return partial(number_words, quantity=_UNITS[quantity]) if quantity else None


def _axis(data: Mapping[str, Any], which: str, **rest: Any) -> Axis:
    low, high = data.get(f"{which}_range") or (rest.pop("low", None), rest.pop("high", None))
    return Axis(label=data.get(f"{which}_label", ""), low=low, high=high, **rest)


def _noted(at: Sequence[float], values: Sequence[float], notes: Sequence[str] | None) -> list[Bar]:
    """Return bars, with notes if there are any."""
    every = zip(at, values, notes or [""] * len(at), strict=True)
    return [Bar(place, value, note=note) for place, value, note in every]


def _ranking(data: Mapping[str, Any]) -> dict[str, Any]:
    panels = data["panels"]
    most = max(len(panel["labels"]) for panel in panels)
    names = [[shortened(label, 26) for label in panel["labels"]] for panel in panels]
    left = max(_TICK + 2 + _room(labels) for labels in names)

    def draw(number: int, panel: Panel) -> None:
        one, labels = panels[number], names[number]
        bars = _noted(range(len(labels)), one["values"], one.get("notes"))
        panel.bars(bars, Look(f"series{number}"), across=True, width=0.7)
        high = 1.16 * max(one["values"], default=1) or 1
        panel.frame(
            Axis(label=one["axis"], low=0, high=high, most=4, grid=True, form=_form(one.get("quantity", ""))),
            Axis(low=most - 0.4, high=-0.6, ticks=list(enumerate(labels))),
            one["title"],
        )

    every = [partial(draw, number) for number in range(len(panels))]
    return {"panels": [every], "height": 0.9 + 0.24 * most, "margins": (left, 14, _ABOVE, 38), "gaps": (left + 14, 0)}


def logarithmic(data: Mapping[str, Any]) -> bool:
    """Return whether bars stand on a logarithmic axis: where that is asked for, and counts are large enough for it."""
    return bool(data.get("log")) and max((value for one in data["series"] for value in one["values"]), default=0) > 50


def _bars(data: Mapping[str, Any]) -> dict[str, Any]:
    series, ends, labels = data["series"], data.get("ends"), data.get("labels", ())
    every = [value for one in series for value in one["values"]]
    largest = max(every, default=0)
    rest: dict[str, Any] = {}
    if logarithmic(data):
        largest = 10 ** math.ceil(math.log10(largest))  # the axis may go on to there
        rest = {"scale": "log", "low": 0.7}
    elif all(float(value).is_integer() for value in every):
        rest = {"whole": True, "form": lambda value: f"{value:,.0f}"}  # there are no parts of jobs
    places = data.get("x") or list(range(len(labels)))
    width = (0.98 if ends else 0.75) / len(series)

    def draw(panel: Panel) -> None:
        for number, one in enumerate(series):
            own, name = (look(number), one["name"]) if data.get("legend") else (Look(look(number).colour), "")
            at = [place + (number - (len(series) - 1) / 2) * width for place in places]
            panel.bars(_noted(at, one["values"], data.get("notes")), own, name, width=width * 0.96)
        if ends:
            panel.bars(list(map(Bar, ends["x"], ends["values"])), Look("series1"), width=2.4)
            for place, name in zip(ends["x"], ends["names"], strict=True):
                side = "left" if place < 50 else "right"
                panel.text(place, 1, name, Lettering(colour="ink"), inside="x", align=(side, "bottom"))
        ticks = list(zip(places, labels, strict=True)) if labels else None
        panel.frame(_axis(data, "x", ticks=ticks), _axis(data, "y", grid=True, **rest))

    left = _NAME + _TICK + max(_room([f"{largest:,.0f}"]), 24)
    return {
        "panels": [[draw]],
        "height": 2.9,
        "legend": "above" if data.get("legend") else "",
        "margins": (left, 8, _ABOVE if data.get("legend") or ends else 14, 22 + _rows(labels)),
    }


def _curves(
    data: Mapping[str, Any],
    curve: Callable[[Panel, Look, Mapping[str, Any]], None],
    left: float,
    height: float,
    **y: Any,
) -> dict[str, Any]:
    """Return how series over time are drawn, each by `curve`; `left`: room for the numbers at the y axis."""

    def draw(panel: Panel) -> None:
        panel.spans(data.get("spans", ()))
        for number, one in enumerate(data["series"]):
            curve(panel, look(one.get("look", number)), one)
        panel.frame(_axis(data, "x", grid=True), _axis(data, "y", grid=True, **y))

    margins = (_NAME + _TICK + left, 8, _ABOVE, 34)
    return {"panels": [[draw]], "height": height, "margins": margins, "legend": "above", "columns": 3}


def _lines(data: Mapping[str, Any]) -> dict[str, Any]:
    def curve(panel: Panel, own: Look, one: Mapping[str, Any]) -> None:
        panel.line(one["x"], one["y"], Look(own.colour, own.dash), one["name"], width=1.6, clip=False)

    return _curves(data, curve, 24, 2.9)


def pieces(values: Sequence[float | None]) -> tuple[list[list[tuple[int, float]]], list[list[tuple[int, float]]]]:
    """Return the parts of a line of parallel coordinates: between known neighbours, and past axes without a value."""
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    whole: list[list[tuple[int, float]]] = []
    past = []
    for point in known:
        if whole and point[0] == whole[-1][-1][0] + 1:
            whole[-1].append(point)
            continue
        if whole:
            past.append([whole[-1][-1], point])
        whole.append([point])
    return whole, past


def _parallel(data: Mapping[str, Any]) -> dict[str, Any]:
    columns = data["axes"]

    def draw(panel: Panel) -> None:
        for number, group in enumerate(data["groups"]):
            own = look(number)
            _group(panel, [line for line in data["lines"] if line["group"] == group], group, own, len(data["lines"]))
        _columns(panel, columns)
        ticks = [(place, f"\n{column['name']}") for place, column in enumerate(columns)]
        panel.frame(
            Axis(low=-0.25, high=len(columns) - 0.75, line=False, ticks=ticks),
            Axis(low=-0.02, high=1.04, ticks=(), line=False),
        )

    right = 48 + _room(data["groups"], 8.5)
    return {
        "panels": [[draw]],
        "height": 3.6,
        "legend": "right",
        "margins": (8, right, 16, 26 + _rows(one["name"] for one in columns)),
    }


def _group(panel: Panel, every: Sequence[Mapping[str, Any]], name: str, own: Look, all_lines: int) -> None:
    """Draw the lines of a group of parallel coordinates; the fewer there are of all groups, the wider they are."""
    lines: list[list[tuple[int, float]]] = []
    words: list[list[str]] = []
    gaps = []
    for line in every:
        whole, past = pieces(line["values"])
        lines += whole
        words += [[line["words"][place] for place, _ in one] for one in whole]
        gaps += past
    alpha, width, thin = (0.9, 1.4, 1.1) if all_lines < 60 else (0.45, 0.8, 0.6)
    panel.segments(lines, Look(own.colour, own.dash), name, words=words, alpha=alpha, width=width)
    panel.segments(gaps, Look(own.colour, ":"), alpha=alpha, width=thin)
    alone = [line[0] for line in lines if len(line) == 1]  # between two axes without a value
    panel.line([place for place, _ in alone], [value for _, value in alone], Look(own.colour, "", ".", size=4))


def _columns(panel: Panel, columns: Sequence[Mapping[str, Any]]) -> None:
    """Draw the axes of parallel coordinates: an upright line each, with what its ends, or its one value, are."""
    uprights = [[(place, 0), (place, 1)] for place in range(len(columns))]
    panel.segments(uprights, Look("soft"), width=0.8, layer=0)
    for place, column in enumerate(columns):
        for key, height, shift, align in (
            ("high", 1, (0, 4), ("center", "bottom")),
            ("low", 0, (0, -4), ("center", "top")),
            ("only", 0.5, (4, 4), ("left", "bottom")),
        ):
            panel.text(place, height, column.get(key, ""), shift=shift, align=align)


def _files(data: Mapping[str, Any]) -> dict[str, Any]:
    rows = 1 + max(bar["row"] for bar in data["bars"])
    labels = [shortened(label, 34) for label in data["labels"]]

    def draw(panel: Panel) -> None:
        for which, name, colour, width in (
            (False, "I/O time of the file", "series0", 0.78),
            (True, "on the critical path", "series1", 0.42),
        ):
            shown = [bar for bar in data["bars"] if bar["critical"] is which]
            if shown:
                bars = [Bar(bar["row"], bar["end"] - bar["start"], foot=bar["start"]) for bar in shown]
                panel.bars(bars, Look(colour), name, width=width, across=True, edge=colour, thin=0.6)
        ticks = list(enumerate(labels))
        panel.frame(
            _axis(data, "x", grid=True), Axis(label=data.get("y_label", ""), low=rows - 0.4, high=-0.6, ticks=ticks)
        )

    return {
        "panels": [[draw]],
        "height": 1.1 + 0.24 * max(rows, 2),
        "legend": "above",
        "columns": 2,
        "margins": (_TICK + 2 + max(_NAME, _room(labels)), 8, _ABOVE, 34),
    }


def _steps(data: Mapping[str, Any]) -> dict[str, Any]:
    edges = [*data["x"], data["x"][-1] + data["step"]]

    def curve(panel: Panel, own: Look, one: Mapping[str, Any]) -> None:
        panel.line(*corners(edges, one["y"]), Look(own.colour, own.dash), one["name"])

    width = {"width": timeline.WIDTH_IN} if data.get("wide") else {}
    return _curves(data, curve, 54, 2.3, low=0, form=_form(data.get("quantity", ""))) | width


def _places(data: Mapping[str, Any]) -> dict[str, Any]:
    def curve(panel: Panel, own: Look, one: Mapping[str, Any]) -> None:
        panel.line(one["x"], one["y"], Look(own.colour, "", ".", size=3), one["name"])

    return _curves(data, curve, 40, 2.9, low=0, form=_form("bytes")) | {"width": timeline.WIDTH_IN}


_KINDS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "bars": _bars,
    "files": _files,
    "lines": _lines,
    "parallel": _parallel,
    "places": _places,
    "ranking": _ranking,
    "steps": _steps,
    "ranks": timeline.ranks,
}


def chart_of(chart: Chart) -> plots.Chart:
    """Return a chart of an analysis as functions that draw its panels.

    Raises
    ------
    KeyError
        The kind of the chart is unknown.
    """
    return plots.Chart(name=chart.name, title=chart.title, **_KINDS[chart.kind](chart.data))


def draw(chart: Chart) -> str:
    """Return a chart of an analysis as an SVG element; errors are those of `chart_of`."""
    return plots.svg(chart_of(chart))


def figure(chart: Chart) -> page.Figure:
    """Return a chart of an analysis as a figure of a page, also for a phone, with its numbers."""
    narrow = chart.kind != "parallel"  # upright axes need their distance: it scrolls
    return page.drawn(chart_of(chart), caption=chart.data.get("caption", ""), narrow=narrow)
