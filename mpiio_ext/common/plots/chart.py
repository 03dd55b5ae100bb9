"""Parts of a chart: functions that draw its panels, the places of these, and the texts of its axes.

Problem. Charts of many kinds, in pages, files and papers, shall look alike, and each has a form for a phone.

Algorithm. A chart is a grid of functions, each of which draws one panel (`panel`) by calls of Matplotlib. The form for
a phone has the same functions, under each other instead of beside each other, each as high as before, with the legend
below; what changes within a panel, its panel does.

Guarantees. Importing this module imports no library of drawing.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from mpiio_ext.common.plots.theme import Look

if TYPE_CHECKING:
    from mpiio_ext.common.plots.panel import Panel

Number = float | None
#: Width of a phone less the margins of a page, in points of 96 to the inch; and how much larger words are.
WIDTH, SCALE = 336 * 0.75, 1.3
#: Letters of a name in the legend of a phone, and the least height of a panel (inches).
_KEY, _LEAST = 34, 1.2


def digits(value: float) -> str:
    """Return a number for the table of data: whole, or with six digits, more than a reader sees in the picture."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.6g}"


def shortened(text: str, most: int) -> str:
    """Return a text shortened in its middle: the ends of names differ most."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}…{text[-(most // 2) :]}"


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis.

    Attributes
    ----------
    label : what it is, with its unit.
    scale : {"linear", "log", "log2", "symlog"}
    low, high : ends; None: where the marks end. An axis of which `low` is larger runs the other way.
    ticks : sequence of (float, str), optional
        Places and words; None: round numbers.
    form : words of a round number.
    most : round numbers at most; 0: as many as fit.
    whole : only whole numbers.
    grid, line, above : lines at the ticks, the axis itself, words at the other side.
    turn : degrees by which the words at the ticks are turned.
    date : values are seconds since 1970 (UTC).
    """

    label: str = ""
    scale: Literal["linear", "log", "log2", "symlog"] = "linear"
    low: float | None = None
    high: float | None = None
    ticks: Sequence[tuple[float, str]] | None = None
    form: Callable[[float], str] | None = None
    most: int = 0
    whole: bool = False
    grid: bool = False
    line: bool = True
    above: bool = False
    turn: float = 0
    date: bool = False

    def named(self, value: Number, reach: float = 1e-9) -> str:
        """Return a value as the axis names it: a name of a tick within `reach`, a time, or the number."""
        if value is None or value != value:
            return ""
        if self.date:
            return datetime.datetime.fromtimestamp(value, datetime.timezone.utc).isoformat(timespec="seconds")
        names = [(abs(place - value), text) for place, text in self.ticks or () if text and _number(text) != place]
        far, name = min(names, default=(reach, ""))
        return " ".join(name.split()) if far < reach else digits(value)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart.

    Attributes
    ----------
    name : of files and references; letters, digits and hyphens.
    title : what is seen in it, computed from its numbers: its heading, and all that those know who do not see it.
    panels : rows of functions that draw on a `Panel`; None leaves a place free.
    width, height : inches.
    margins : (left, right, above, below), optional
        Points around the panels, and `gaps` (across, upright) between them; None: computed from the words, which
        doubles the time.
    widths, heights : parts of the columns and rows; none: all are alike.
    legend : {"", "above", "below", "right", "own"}
        Where all series are named, in `columns`; "own": each panel has a legend of its own.
    keys : sequence of (str, Look, float)
        Entries of the legend, with widths of lines; none: those of the marks.
    share : panels of a row have the y axis, and those of a column the x axis, in common.
    scale : of all words.
    narrow : it is the form for a phone.
    table : (names of columns, rows), optional
        The chart's numbers, if the drawing shows only a form of them.
    """

    name: str
    panels: Sequence[Sequence[Callable[[Panel], None] | None]]
    title: str = ""
    width: float = 8.2
    height: float = 3.0
    margins: tuple[float, float, float, float] | None = None
    gaps: tuple[float, float] = (0, 0)
    widths: Sequence[float] = ()
    heights: Sequence[float] = ()
    legend: Literal["", "above", "below", "right", "own"] = ""
    columns: int = 4
    keys: Sequence[tuple[str, Look, float]] = ()
    heading: str = ""
    share: bool = False
    scale: float = 1.0
    narrow: bool = False
    table: tuple[Sequence[str], Sequence[Sequence[object]]] | None = None


def phone(chart: Chart) -> Chart:
    """Return a chart as wide as a phone; its name ends in ``-narrow``."""
    heights = chart.heights or [1.0] * len(chart.panels)
    each = [chart.height * height / sum(heights) for height in heights]
    columns = range(max(map(len, chart.panels)))
    found = [
        (row[column], max(height, _LEAST) + 0.35)
        for column in columns
        for row, height in zip(chart.panels, each, strict=True)
        if column < len(row) and row[column] is not None
    ]
    return dataclasses.replace(
        chart,
        name=f"{chart.name}-narrow",
        panels=[[draw] for draw, _ in found],
        width=WIDTH / 72,
        height=sum(tall for _, tall in found) + 0.5 * bool(chart.legend),
        heights=[tall for _, tall in found],
        widths=(),
        margins=None,
        gaps=(0, 0),
        legend="below" if chart.legend else "",
        keys=[(shortened(name, _KEY), look, width) for name, look, width in chart.keys],
        columns=1,
        heading="",
        share=False,
        scale=SCALE,
        narrow=True,
    )


def corners(edges: Sequence[float], values: Sequence[Number]) -> tuple[list[float], list[Number]]:
    """Return a line that is level between edges, of which there is one more than values."""
    return [each for edge in edges for each in (edge, edge)][1:-1], [each for value in values for each in (value,) * 2]


def cumulative(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the cumulative distribution of samples as steps from 0 to 1."""
    known = sorted(values)
    ends = [at for at in range(len(known)) if at + 1 == len(known) or known[at + 1] != known[at]]
    shares = [0.0, *((at + 1) / len(known) for at in ends)]
    return ([known[at] for at in ends for _ in (0, 1)], [each for share in shares for each in (share, share)][1:-1])
