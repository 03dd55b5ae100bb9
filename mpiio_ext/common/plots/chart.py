"""What a chart shows, as plain values: panels of axes and marks.

Problem. Bars, lines, boxes and maps of many kinds, in pages, files and papers, shall look alike and be drawn by one
place.

Algorithm. A chart is a grid of panels. A panel has two axes, with their units in the labels, and marks, drawn in their
order. Marks with the same name are one series: one entry of the legend.

Guarantees. Importing this module imports no library of drawing. A value that is None or not a number is not drawn, and
a line is broken there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

from mpiio_ext.common.plots.theme import Look

Number = float | None
_PLAIN = Look()


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


_ANY = Axis()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points that are joined, unless their look has no dash; `layer`: what lies on top."""

    x: Sequence[float]
    y: Sequence[Number]
    look: Look = _PLAIN
    name: str = ""
    width: float = 1.5
    size: float = 4.5
    hollow: bool = False
    edge: str = ""
    clip: bool = True
    layer: float = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Bars from `foot`, upright or `across`; `notes` stand at their ends, `errors` are the parts below and above."""

    at: Sequence[float]
    values: Sequence[float]
    look: Look = _PLAIN
    name: str = ""
    width: float = 0.8
    foot: float | Sequence[float] = 0.0
    across: bool = False
    notes: Sequence[str] = ()
    errors: tuple[Sequence[float], Sequence[float]] | None = None
    edge: str = ""
    thin: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """What lies between two lines."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    look: Look = _PLAIN
    name: str = ""
    alpha: float = 0.35


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Many lines of one look; `words`: a text for each point, in the data."""

    lines: Sequence[Sequence[tuple[float, float]]]
    look: Look = _PLAIN
    name: str = ""
    width: float = 1.0
    alpha: float = 1.0
    words: Sequence[Sequence[str]] = ()
    layer: float = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Five numbers at each place: whiskers, first and third quartile, and the median, coloured by the look."""

    at: Sequence[float]
    numbers: Sequence[Sequence[float]]
    look: Look = _PLAIN
    width: float = 0.6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Shades over parts of the x axis."""

    spans: Sequence[Sequence[float]]
    colour: str = "line"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A line through the whole panel at a value: upright at an x, or `across` at a y."""

    at: float
    across: bool = False
    look: Look = _PLAIN
    width: float = 0.9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Rectangles (left, low, width, height) of one look: the cells of a map; `name`: what they are, in the data."""

    places: Sequence[tuple[float, float, float, float]]
    look: Look = _PLAIN
    name: str = ""
    edge: str = ""
    thin: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Words at a place, in units of the axes, or in parts of the panel where `inside` is "axes" (or "x": y alone is).

    `shift` moves them by points; `align` is their end at the place (across, upright); `boxed` gives a light ground.
    """

    x: float
    y: float
    text: str
    size: float = 8
    colour: str = "soft"
    bold: bool = False
    align: tuple[str, str] = ("center", "center")
    shift: tuple[float, float] = (0, 0)
    inside: Literal["data", "axes", "x"] = "data"
    turn: float = 0
    boxed: bool = False


Mark = Area | Bars | Boxes | Line | Rule | Segments | Spans | Text | Tiles


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
