"""Marks of charts: what each kind is, how Matplotlib draws it, and which numbers it tells.

Marks are plain values; Matplotlib is imported when one is drawn. Marks that are many go into one collection, or into
one line with holes: each by itself would carry its style, and most of the time that a figure takes.

Guarantees. A value that is None or not a number is not drawn, and a line is broken there.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from mpiio_ext.common.plots.theme import Look, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mpiio_ext.common.plots.chart import Panel

Number = float | None
Row = Mapping[str, object]
_PLAIN = Look()
_FIVE = ("low", "first quartile", "median", "third quartile", "high")


def _numbers(values: Sequence[Number]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _joined(axes: Axes, lines: Sequence[tuple[Sequence[float], Sequence[float]]], **look: Any) -> None:
    """Draw many short lines as one with holes."""
    x = [value for across, _ in lines for value in (*across, math.nan)]
    y = [value for _, up in lines for value in (*up, math.nan)]
    axes.plot(x, y, solid_capstyle="butt", **look)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that is drawn between two axes; marks with the same name are one series of the legend."""

    look: Look = _PLAIN
    name: str = ""

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw it in the colours of a theme."""
        raise NotImplementedError

    def rows(self, panel: Panel) -> Iterator[Row]:
        """Return its numbers as the axes of its panel tell them; there are none of what is no measurement."""
        raise NotImplementedError

    def _filled(self, theme: Theme, **rest: Any) -> dict[str, Any]:
        """Return how Matplotlib fills its area."""
        return {"facecolor": theme.colour(self.look.colour), "label": self.name or None, **rest}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line(Mark):
    """Points that are joined, unless their look has no dash; `layer`: what lies on top."""

    x: Sequence[float]
    y: Sequence[Number]
    width: float = 1.5
    size: float = 4.5
    hollow: bool = False
    edge: str = ""
    clip: bool = True
    layer: float = 2

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw it."""
        rest: dict[str, Any] = {"markerfacecolor": "none"} if self.hollow else {}
        if self.edge:
            rest |= {"markeredgecolor": theme.colour(self.edge), "markeredgewidth": 0.6}
        axes.plot(
            self.x,
            _numbers(self.y),
            color=theme.colour(self.look.colour),
            linestyle=self.look.dash or "",
            linewidth=self.width,
            marker=self.look.marker,
            markersize=self.size,
            clip_on=self.clip,
            zorder=self.layer,
            label=self.name or None,
            **rest,
        )

    def rows(self, panel: Panel) -> Iterator[Row]:
        """Return a row for each point."""
        yield from ({"x": panel.x.told(a), "y": panel.y.told(b)} for a, b in zip(self.x, self.y, strict=True))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Mark):
    """Bars from `foot`, upright or `across`; `notes` stand at their ends, `errors` are the parts below and above."""

    at: Sequence[float]
    values: Sequence[float]
    width: float = 0.8
    foot: float | Sequence[float] = 0.0
    across: bool = False
    notes: Sequence[str] = ()
    errors: tuple[Sequence[float], Sequence[float]] | None = None
    edge: str = ""
    thin: float = 0.0

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw them."""
        from matplotlib import rcParams

        draw: Any = axes.barh if self.across else axes.bar
        names = ("width", "height", "left", "xerr") if self.across else ("height", "width", "bottom", "yerr")
        look: dict[str, Any] = dict(zip(names, (self.values, self.width, self.foot), strict=False))
        if self.errors is not None:
            look |= {names[3]: self.errors, "error_kw": {"elinewidth": 0.8, "capsize": 1.5, "ecolor": theme.ink}}
        look |= self._filled(
            theme, hatch=self.look.hatch or None, edgecolor=theme.colour(self.edge or "page"), linewidth=self.thin
        )
        bars, size = draw(self.at, **look), rcParams["xtick.labelsize"]
        if self.notes:
            room = 3 if self.across else 2
            axes.bar_label(bars, list(self.notes), padding=room, color=theme.soft, fontsize=size)

    def rows(self, panel: Panel) -> Iterator[Row]:
        """Return a row for each bar."""
        feet = [self.foot] * len(self.at) if isinstance(self.foot, (int, float)) else self.foot
        none: Sequence[object] = [""] * len(self.at)
        low, high = self.errors or (none, none)
        names, base, length = (("y", "x"), panel.y, panel.x) if self.across else (("x", "y"), panel.x, panel.y)
        for at, value, foot, below, above, note in zip(
            self.at, self.values, feet, low, high, self.notes or none, strict=True
        ):
            yield {
                names[0]: base.told(at, 0.5),
                names[1]: length.told(foot + value),
                "words": note,
                "foot": length.told(foot) if foot else "",
                "below": below,
                "above": above,
            }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Area(Mark):
    """What lies between two lines."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    alpha: float = 0.35

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw it."""
        axes.fill_between(self.x, self.low, self.high, **self._filled(theme, linewidth=0, alpha=self.alpha))

    def rows(self, panel: Panel) -> Iterator[Row]:
        """Return a row for each place."""
        for at, low, high in zip(self.x, self.low, self.high, strict=True):
            yield {"x": panel.x.told(at), "low": low, "high": high}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Segments(Mark):
    """Many lines of one look; `words`: a text for each point, in the data."""

    lines: Sequence[Sequence[tuple[float, float]]]
    width: float = 1.0
    alpha: float = 1.0
    words: Sequence[Sequence[str]] = ()
    layer: float = 2

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw them."""
        from matplotlib.collections import LineCollection

        lines = LineCollection(
            list(self.lines),
            colors=theme.colour(self.look.colour),
            linewidths=self.width,
            linestyles=[self.look.dash],
            alpha=self.alpha,
            label=self.name,
            zorder=self.layer,
        )
        axes.add_collection(lines)

    def rows(self, panel: Panel) -> Iterator[Row]:
        """Return a row for each point."""
        for number, line in enumerate(self.lines):
            words = self.words[number] if number < len(self.words) else [""] * len(line)
            for (a, b), text in zip(line, words, strict=False):
                yield {"part": number, "x": panel.x.told(a), "y": panel.y.told(b), "words": text}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Boxes(Mark):
    """Five numbers at each place: whiskers, first and third quartile, and the median, coloured by the look."""

    at: Sequence[float]
    numbers: Sequence[Sequence[float]]
    width: float = 0.6

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw them."""
        if not self.at:
            return
        half = self.width / 2
        whiskers: list[tuple[Sequence[float], Sequence[float]]] = []
        for at, five in zip(self.at, self.numbers, strict=True):
            whiskers += [((at, at), five[:2]), ((at, at), five[3:])]
            whiskers += [((at - half / 2, at + half / 2), (end, end)) for end in (five[0], five[4])]
        _joined(axes, whiskers, color=theme.soft, linewidth=0.9)
        _, first, medians, third, _ = zip(*self.numbers, strict=True)
        heights = [b - a for a, b in zip(first, third, strict=True)]
        look: dict[str, Any] = {"facecolor": theme.line, "edgecolor": theme.soft, "linewidth": 0.8}
        axes.bar(self.at, heights, self.width, first, **look)
        levels = [((at - half, at + half), (end, end)) for at, end in zip(self.at, medians, strict=True)]
        _joined(axes, levels, color=theme.colour(self.look.colour), linewidth=1.5)

    def rows(self, panel: Panel) -> Iterator[Row]:
        """Return a row for each box."""
        for at, five in zip(self.at, self.numbers, strict=True):
            yield {"x": panel.x.told(at, 0.5), **dict(zip(_FIVE, five, strict=True))}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spans(Mark):
    """Shades over parts of the x axis."""

    spans: Sequence[Sequence[float]]
    colour: str = "line"

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw them."""
        for start, end in self.spans:
            axes.axvspan(start, end, facecolor=theme.colour(self.colour), linewidth=0, zorder=0)

    def rows(self, panel: Panel) -> Iterator[Row]:
        """Return a row for each part."""
        yield from ({"x": panel.x.told(start), "x end": panel.x.told(end)} for start, end in self.spans)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Mark):
    """A line through the whole panel at a value: upright at an x, or `across` at a y."""

    at: float
    across: bool = False
    width: float = 0.9

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw it."""
        (axes.axhline if self.across else axes.axvline)(
            self.at, color=theme.colour(self.look.colour), linewidth=self.width, linestyle=self.look.dash
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tiles(Mark):
    """Rectangles (left, low, width, height) of one look: the cells of a map; `name`: what they are, in the data."""

    places: Sequence[tuple[float, float, float, float]]
    edge: str = ""
    thin: float = 0.0

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw them."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        cells = PatchCollection(
            [Rectangle((left, low), width, height) for left, low, width, height in self.places],
            facecolor=theme.colour(self.look.colour),
            linewidth=self.thin,
            edgecolor=theme.colour(self.edge) if self.edge else "none",
            hatch=self.look.hatch or None,
        )
        cells.set_in_layout(False)  # the ends of the axes say all; measuring every patch takes seconds
        axes.add_collection(cells, autolim=False)

    def rows(self, panel: Panel) -> Iterator[Row]:
        """Return a row for each rectangle."""
        for left, low, width, height in self.places:
            across = {"x": panel.x.told(left), "x end": panel.x.told(left + width)}
            yield across | {"y": panel.y.told(low, 0.5), "y end": panel.y.told(low + height, 0.5)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Text(Mark):
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

    def draw(self, axes: Axes, theme: Theme) -> None:
        """Draw them."""
        place: Any = {"data": "data", "axes": "axes fraction", "x": ("data", "axes fraction")}[self.inside]
        box = {"boxstyle": "round,pad=0.15", "facecolor": theme.page, "edgecolor": "none", "alpha": 0.85}
        text = axes.annotate(
            self.text,
            (self.x, self.y),
            xycoords=place,
            xytext=self.shift,
            textcoords="offset points",
            ha=self.align[0],
            va=self.align[1],
            fontsize=self.size,
            color=theme.colour(self.colour),
            rotation=self.turn,
            fontweight="bold" if self.bold else "normal",
            bbox=box if self.boxed else None,
            annotation_clip=False,
        )
        text.set_in_layout(False)
