"""What a chart shows, as plain values: panels of axes and marks.

Problem. Bars, lines, boxes and maps of many kinds, in pages, files and papers, shall look alike and be drawn by one
place.

Algorithm. A chart is a grid of panels. A panel has two axes, with their units in the labels, and marks, drawn in their
order (`marks`). Marks with the same name are one series: one entry of the legend.

Guarantees. Importing this module imports no library of drawing.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Sequence
from typing import Literal

from mpiio_ext.common.plots.marks import Mark, Number
from mpiio_ext.common.plots.theme import Look


def digits(value: float) -> str:
    """Return a number as data tell it: whole, or with six digits, which is more than is seen of what was drawn."""
    return f"{value:.0f}" if value == round(value) else f"{value:.6g}"


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

    def told(self, value: Number, reach: float = 1e-9) -> str:
        """Return a value as the axis tells it: a name of a tick within `reach`, a time, or the number."""
        if value is None or value != value:
            return ""
        if self.date:
            return datetime.datetime.fromtimestamp(value, datetime.timezone.utc).isoformat(timespec="seconds")
        names = [(abs(place - value), text) for place, text in self.ticks or () if text and _number(text) != place]
        far, name = min(names, default=(reach, ""))
        return " ".join(name.split()) if far < reach else digits(value)


_ANY = Axis()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Marks between two axes; `legend`: its own, beside it if it is long; `room`: points above it, below its title."""

    marks: Sequence[Mark]
    x: Axis = _ANY
    y: Axis = _ANY
    title: str = ""
    legend: bool = False
    room: float = 6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart.

    Attributes
    ----------
    name : of files and references; letters, digits and hyphens.
    title : what is seen in it, computed from its numbers: its heading, and all that those know who do not see it.
    panels : rows; None leaves a place free.
    width, height : inches.
    margins : (left, right, above, below), optional
        Points around the panels, and `gaps` (across, upright) between them; None: what the words need, which takes
        twice the time.
    widths, heights : parts of the columns and rows; none: all are alike.
    legend : {"", "above", "below", "right"}
        Where all series are named, in `columns`.
    keys : sequence of (str, Look, float)
        Entries of the legend, with widths of lines; none: those of the marks.
    heading : str
    share : panels of a row have the y axis, and those of a column the x axis, in common.
    scale : of all words.
    table : (names of columns, rows), optional
        Its numbers, where the marks are only a form of them.
    """

    name: str
    panels: Sequence[Sequence[Panel | None]]
    title: str = ""
    width: float = 8.2
    height: float = 3.0
    margins: tuple[float, float, float, float] | None = None
    gaps: tuple[float, float] = (0, 0)
    widths: Sequence[float] = ()
    heights: Sequence[float] = ()
    legend: Literal["", "above", "below", "right"] = ""
    columns: int = 4
    keys: Sequence[tuple[str, Look, float]] = ()
    heading: str = ""
    share: bool = False
    scale: float = 1.0
    table: tuple[Sequence[str], Sequence[Sequence[object]]] | None = None


def corners(edges: Sequence[float], values: Sequence[Number]) -> tuple[list[float], list[Number]]:
    """Return a line that is level between edges, of which there is one more than values."""
    return [each for edge in edges for each in (edge, edge)][1:-1], [each for value in values for each in (value,) * 2]


def cumulative(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the cumulative distribution of samples as steps from 0 to 1."""
    known = sorted(values)
    ends = [at for at in range(len(known)) if at + 1 == len(known) or known[at + 1] != known[at]]
    shares = [0.0, *((at + 1) / len(known) for at in ends)]
    return ([known[at] for at in ends for _ in (0, 1)], [each for share in shares for each in (share, share)][1:-1])
