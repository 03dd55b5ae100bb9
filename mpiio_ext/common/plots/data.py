"""A chart as CSV: the numbers that are drawn, for who wants to draw or to check them.

Algorithm. A row for each point, bar, box or rectangle, in the order of the marks. What the axes call a place is told by
its name; seconds since 1970 are told as times (UTC). Columns that are empty everywhere are left out. Where marks are
only a form of the numbers, the chart has a table of its own.

Guarantees. Numbers are whole, or have six digits, more than is seen of what was drawn. Texts and reference lines, which
are no measurement, are not in it.
"""

from __future__ import annotations

import csv as writer
import datetime
import io
from collections.abc import Iterator, Sequence

from mpiio_ext.common.plots.chart import Area, Axis, Bars, Boxes, Chart, Line, Mark, Panel, Segments, Spans, Tiles

_Row = dict[str, object]
#: Columns behind those of the axes.
_REST = ("foot", "below", "above", "low", "first quartile", "median", "third quartile", "high", "words")


def _digits(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.6g}"


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _told(axis: Axis, value: float | None, reach: float) -> object:
    """Return a value as the axis tells it: a name, a time, or the number."""
    if value is None or value != value:
        return ""
    if axis.date:
        return datetime.datetime.fromtimestamp(value, datetime.timezone.utc).isoformat(timespec="seconds")
    names = [(abs(place - value), text) for place, text in axis.ticks or () if text and _number(text) != place]
    far, name = min(names, default=(reach, ""))
    return " ".join(name.split()) if far < reach else _digits(value)


def _bars(mark: Bars, panel: Panel) -> Iterator[_Row]:
    feet = [mark.foot] * len(mark.at) if isinstance(mark.foot, (int, float)) else mark.foot
    none: Sequence[object] = [""] * len(mark.at)
    low, high = mark.errors or (none, none)
    notes = list(mark.notes) or [""] * len(mark.at)
    base, length = (panel.y, panel.x) if mark.across else (panel.x, panel.y)
    names = ("y", "x") if mark.across else ("x", "y")
    for at, value, foot, below, above, note in zip(mark.at, mark.values, feet, low, high, notes, strict=True):
        yield {
            names[0]: _told(base, at, 0.5),
            names[1]: _told(length, foot + value, 1e-9),
            "words": note,
            "foot": _told(length, foot, 1e-9) if foot else "",
            "below": below,
            "above": above,
        }


def _rows(mark: Mark, panel: Panel) -> Iterator[_Row]:
    x, y = panel.x, panel.y
    if isinstance(mark, Bars):
        yield from _bars(mark, panel)
    elif isinstance(mark, Line):
        yield from ({"x": _told(x, a, 1e-9), "y": _told(y, b, 1e-9)} for a, b in zip(mark.x, mark.y, strict=True))
    elif isinstance(mark, Segments):
        for number, line in enumerate(mark.lines):
            words = mark.words[number] if number < len(mark.words) else [""] * len(line)
            yield from (
                {"part": number, "x": _told(x, a, 1e-9), "y": _told(y, b, 1e-9), "words": text}
                for (a, b), text in zip(line, words, strict=False)
            )
    elif isinstance(mark, Area):
        yield from (
            {"x": _told(x, a, 1e-9), "low": low, "high": high}
            for a, low, high in zip(mark.x, mark.low, mark.high, strict=True)
        )
    elif isinstance(mark, Boxes):
        names = ("low", "first quartile", "median", "third quartile", "high")
        yield from (
            {"x": _told(x, at, 0.5), **dict(zip(names, five, strict=True))}
            for at, five in zip(mark.at, mark.numbers, strict=True)
        )
    elif isinstance(mark, Spans):
        yield from ({"x": _told(x, start, 1e-9), "x end": _told(x, end, 1e-9)} for start, end in mark.spans)
    elif isinstance(mark, Tiles):
        yield from (
            {
                "x": _told(x, left, 1e-9),
                "x end": _told(x, left + width, 1e-9),
                "y": _told(y, low, 0.5),
                "y end": _told(y, low + height, 0.5),
            }
            for left, low, width, height in mark.places
        )


def _label(axes: Sequence[Axis], name: str) -> str:
    """Return the label that all these axes have, or else the name."""
    labels = {" ".join(axis.label.split()) for axis in axes}
    return labels.pop() or name if len(labels) == 1 else name


def _cell(value: object) -> object:
    return "" if value is None or value != value else _digits(value) if isinstance(value, float) else value


def _text(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    lines = writer.writer(out, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def csv(chart: Chart) -> str:
    """Return the numbers of a chart as CSV: a line of names, then a row for each thing that is drawn."""
    if chart.table is not None:
        return _text(*chart.table)
    panels = [panel for row in chart.panels for panel in row if panel is not None]
    rows: list[_Row] = []
    for panel in panels:
        title = panel.title or f"{panel.y.label or 'y'} by {panel.x.label or 'x'}"
        for mark in panel.marks:
            common = {"panel": " ".join(title.split()) if len(panels) > 1 else "", "series": getattr(mark, "name", "")}
            rows += [common | row for row in _rows(mark, panel)]
    kept = [
        name
        for name in ("panel", "series", "part", "x", "x end", "y", "y end", *_REST)
        if any(row.get(name, "") not in ("", None) for row in rows)
    ]
    names = {"x": _label([panel.x for panel in panels], "x"), "y": _label([panel.y for panel in panels], "y")}
    return _text([names.get(name, name) for name in kept], [[row.get(name, "") for name in kept] for row in rows])
