"""A panel of a chart: axes of Matplotlib, and functions that draw on them in the colours of the theme.

Problem. The caller gives the meaning of a colour, not the colour itself. The numbers stand beside a figure, for drawing
or checking. A phone has less room for the figure.

Algorithm. Each function calls Matplotlib at once, and notes the numbers that it draws; the names that axes give to
places are filled in when the numbers are listed (`Panel.rows`). A function that draws a panel ends with `Panel.frame`,
which sets the axes. Marks that are many go into one collection, or into one line with holes: each by itself would carry
its style, and most of the time that a figure takes. On a phone words are larger, long ones are broken or shortened in
the middle, and names below an axis are turned where they would not fit.

Guarantees. A value that is None or not a number is not drawn, and a line is broken there. Importing this module imports
no library of drawing.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from mpiio_ext.common.plots.chart import SCALE, WIDTH, Axis, Number, shortened
from mpiio_ext.common.plots.theme import Lettering, Look, Theme
from mpiio_ext.common.units import digits_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, object]
_PLAIN, _ANY, _WORDS = Look(), Axis(), Lettering()
_FIVE = ("low", "first quartile", "median", "third quartile", "high")
#: On a phone: letters of a line across, of a label and a name at the side; points that a letter takes.
_ACROSS, _LABEL, _SIDE, _LETTER = 28, 26, 14, 6.5
#: On a phone: bars that notes at their ends can explain, and names below an axis.
_MOST_NOTES, _MOST_NAMES = 4, 16


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """A bar.

    Attributes
    ----------
    at : its place on the axis on which it stands.
    value : its length.
    foot : where it begins.
    note : words at its end.
    errors : how far the value may be too large and too small, of all bars of a series or of none.
    """

    at: float
    value: float
    _: dataclasses.KW_ONLY
    foot: float = 0.0
    note: str = ""
    errors: tuple[float, float] | None = None


class Panel:
    """Axes to draw on.

    Series of the same `name` are one entry of the legend. How a thing looks (`look`) and colours are given by what they
    mean (:mod:`mpiio_ext.common.plots.theme`); widths and sizes are points.

    Attributes
    ----------
    axes : of Matplotlib.
    theme : of the colours.
    narrow : it is drawn for a phone.
    x, y : what its axes say, when it is drawn.
    title : above it.
    """

    def __init__(self, axes: Axes, theme: Theme, *, narrow: bool = False) -> None:
        self.axes, self.theme, self.narrow = axes, theme, narrow
        self.x = self.y = _ANY
        self.title = ""
        self._drawn: list[tuple[str, Iterable[Row]]] = []
        self._above = self._collections = False

    def rows(self) -> Iterator[Row]:
        """Return the drawn values, once: a row for each point, bar, box or rectangle, as the axes name their places."""
        for name, rows in self._drawn:
            yield from ({"series": name, **row} for row in rows)

    # ---- what is drawn -----------------------------------------------------------------------------------------------

    def line(
        self,
        x: Sequence[float],
        y: Sequence[Number],
        look: Look = _PLAIN,
        name: str = "",
        *,
        width: float = 1.5,
        clip: bool = True,
        layer: float = 2,
    ) -> None:
        """Draw points that are joined, unless their look has no dash; `layer`: higher ones are on top."""
        rest: dict[str, Any] = {"markerfacecolor": "none"} if look.hollow else {}
        if look.edge:
            rest |= {"markeredgecolor": self.theme.colour(look.edge), "markeredgewidth": 0.6}
        self.axes.plot(
            x,
            [math.nan if value is None else value for value in y],
            color=self.theme.colour(look.colour),
            linestyle=look.dash or "",
            linewidth=width,
            marker=look.marker,
            markersize=look.size,
            clip_on=clip,
            zorder=layer,
            label=name or None,
            **rest,
        )
        self._note(name, ({"x": self.x.named(a), "y": self.y.named(b)} for a, b in zip(x, y, strict=True)))

    def bars(
        self,
        bars: Sequence[Bar],
        look: Look = _PLAIN,
        name: str = "",
        *,
        width: float = 0.8,
        across: bool = False,
        edge: str = "page",
        thin: float = 0.0,
    ) -> None:
        """Draw bars, upright or `across`."""
        from matplotlib import rcParams

        draw: Any = self.axes.barh if across else self.axes.bar
        names = ("width", "height", "left", "xerr") if across else ("height", "width", "bottom", "yerr")
        sizes = [bar.value for bar in bars], width, [bar.foot for bar in bars]
        rest: dict[str, Any] = dict(zip(names, sizes, strict=False))
        errors = [bar.errors for bar in bars if bar.errors is not None]
        if errors:
            ends = list(zip(*errors, strict=True))
            rest |= {names[3]: ends, "error_kw": {"elinewidth": 0.8, "capsize": 1.5, "ecolor": self.theme.ink}}
        rest |= {"hatch": look.hatch or None, "edgecolor": self.theme.colour(edge), "linewidth": thin}
        at, notes = [bar.at for bar in bars], [bar.note for bar in bars]
        drawn = draw(at, facecolor=self.theme.colour(look.colour), label=name or None, **rest)
        if any(notes) and (across or not self.narrow or len(bars) <= _MOST_NOTES):
            room, size = 3 if across else 2, rcParams["xtick.labelsize"]
            self.axes.bar_label(drawn, notes, padding=room, color=self.theme.soft, fontsize=size)
        self._note(name, self._of_bars(bars, across=across))

    def _of_bars(self, bars: Sequence[Bar], *, across: bool) -> Iterator[Row]:
        names, base, length = (("y", "x"), self.y, self.x) if across else (("x", "y"), self.x, self.y)
        for bar in bars:
            ends = {names[0]: base.named(bar.at, 0.5), names[1]: length.named(bar.foot + bar.value)}
            foot = length.named(bar.foot) if bar.foot else ""
            below, above = bar.errors or ("", "")
            yield {**ends, "words": bar.note, "foot": foot, "below": below, "above": above}

    def area(
        self,
        x: Sequence[float],
        low: Sequence[float],
        high: Sequence[float],
        look: Look = _PLAIN,
        name: str = "",
        *,
        alpha: float = 0.35,
    ) -> None:
        """Draw the area between two lines."""
        colour = self.theme.colour(look.colour)
        self.axes.fill_between(x, low, high, facecolor=colour, label=name or None, linewidth=0, alpha=alpha)
        places = zip(x, low, high, strict=True)
        self._note(name, ({"x": self.x.named(at), "low": first, "high": last} for at, first, last in places))

    def segments(
        self,
        lines: Sequence[Sequence[tuple[float, float]]],
        look: Look = _PLAIN,
        name: str = "",
        *,
        width: float = 1.0,
        alpha: float = 1.0,
        words: Sequence[Sequence[str]] = (),
        layer: float = 2,
    ) -> None:
        """Draw many lines of one look; `words`: a text for each point, in the data."""
        from matplotlib.collections import LineCollection

        every = LineCollection(
            list(lines),
            colors=self.theme.colour(look.colour),
            linewidths=width,
            linestyles=[look.dash],
            alpha=alpha,
            label=name,
            zorder=layer,
        )
        self.axes.add_collection(every)
        self._collections = True
        texts = [words[at] if at < len(words) else [""] * len(line) for at, line in enumerate(lines)]
        points = (
            (number, *point, text)
            for number, line in enumerate(lines)
            for point, text in zip(line, texts[number], strict=False)
        )
        self._note(
            name,
            ({"part": part, "x": self.x.named(x), "y": self.y.named(y), "words": text} for part, x, y, text in points),
        )

    def boxes(
        self, at: Sequence[float], numbers: Sequence[Sequence[float]], look: Look = _PLAIN, *, width: float = 0.6
    ) -> None:
        """Draw five numbers at each place: whiskers, first and third quartile, and the median, coloured by the look."""
        if not at:
            return
        half = width / 2
        whiskers: list[tuple[Sequence[float], Sequence[float]]] = []
        for place, five in zip(at, numbers, strict=True):
            whiskers += [((place, place), five[:2]), ((place, place), five[3:])]
            whiskers += [((place - half / 2, place + half / 2), (end, end)) for end in (five[0], five[4])]
        self._joined(whiskers, color=self.theme.soft, linewidth=0.9)
        _, first, medians, third, _ = zip(*numbers, strict=True)
        heights = [b - a for a, b in zip(first, third, strict=True)]
        shape: dict[str, Any] = {"facecolor": self.theme.line, "edgecolor": self.theme.soft, "linewidth": 0.8}
        self.axes.bar(at, heights, width, first, **shape)
        levels = [((place - half, place + half), (end, end)) for place, end in zip(at, medians, strict=True)]
        self._joined(levels, color=self.theme.colour(look.colour), linewidth=1.5)
        each = zip(at, numbers, strict=True)
        self._note("", ({"x": self.x.named(a, 0.5), **dict(zip(_FIVE, five, strict=True))} for a, five in each))

    def spans(self, spans: Sequence[Sequence[float]], colour: str = "line") -> None:
        """Shade parts of the x axis."""
        for start, end in spans:
            self.axes.axvspan(start, end, facecolor=self.theme.colour(colour), linewidth=0, zorder=0)
        self._note("", ({"x": self.x.named(start), "x end": self.x.named(end)} for start, end in spans))

    def rule(self, at: float, look: Look = _PLAIN, *, across: bool = False, width: float = 0.9) -> None:
        """Draw a line through the whole panel, which is no measurement: upright at an x, or across at a y."""
        draw = self.axes.axhline if across else self.axes.axvline
        draw(at, color=self.theme.colour(look.colour), linewidth=width, linestyle=look.dash)

    def tiles(
        self,
        places: Sequence[tuple[float, float, float, float]],
        look: Look = _PLAIN,
        name: str = "",
        *,
        edge: str = "",
        thin: float = 0.0,
    ) -> None:
        """Draw rectangles (left, low, width, height) of one look: the cells of a map; `name` is not in the legend."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        cells = PatchCollection(
            [Rectangle((left, low), width, height) for left, low, width, height in places],
            facecolor=self.theme.colour(look.colour),
            linewidth=thin,
            edgecolor=self.theme.colour(edge) if edge else "none",
            hatch=look.hatch or None,
        )
        cells.set_in_layout(False)  # the ends of the axes are enough; measuring every patch takes seconds
        self.axes.add_collection(cells, autolim=False)
        self._note(name, self._of_tiles(places))

    def _of_tiles(self, places: Iterable[tuple[float, float, float, float]]) -> Iterator[Row]:
        for left, low, width, height in places:
            across = {"x": self.x.named(left), "x end": self.x.named(left + width)}
            yield across | {"y": self.y.named(low, 0.5), "y end": self.y.named(low + height, 0.5)}

    def text(
        self,
        x: float,
        y: float,
        text: str,
        look: Lettering = _WORDS,
        *,
        align: tuple[str, str] = ("center", "center"),
        shift: tuple[float, float] = (0, 0),
        inside: Literal["data", "axes", "x"] = "data",
    ) -> None:
        """Write words at a place, in units of the axes, or in parts of the panel (`inside` "axes", or "x": y alone is).

        `shift` moves them by points; `align` is their end at the place (across, upright).
        """
        place: Any = {"data": "data", "axes": "axes fraction", "x": ("data", "axes fraction")}[inside]
        box = {"boxstyle": "round,pad=0.15", "facecolor": self.theme.page, "edgecolor": "none", "alpha": 0.85}
        words = self.axes.annotate(
            text,
            (x, y),
            xycoords=place,
            xytext=shift,
            textcoords="offset points",
            ha=align[0],
            va=align[1],
            fontsize=look.size * SCALE if self.narrow else look.size,
            color=self.theme.colour(look.colour),
            rotation=look.turn,
            fontweight="bold" if look.bold else "normal",
            bbox=box if look.boxed else None,
            annotation_clip=False,
        )
        words.set_in_layout(False)
        self._above = self._above or (inside != "data" and y >= 1)

    def frame(self, x: Axis = _ANY, y: Axis = _ANY, title: str = "", *, room: float = 6) -> None:
        """Set the axes and the title, when all is drawn; `room`: points between both."""
        if self._collections:
            self.axes.autoscale_view()  # a collection does not do so by itself
        if self.narrow:
            x, y, title = _below(x), _beside(y), _broken(title, _ACROSS) or " " * self._above
        self.x, self.y, self.title = x, y, title
        _set(self.axes, "x", x)
        _set(self.axes, "y", y)
        if title:
            self.axes.set_title(title, pad=room, y=1.0)  # else all that is above the axes would be measured

    def _note(self, name: str, rows: Iterable[Row]) -> None:
        self._drawn.append((name, rows))

    def _joined(self, lines: Sequence[tuple[Sequence[float], Sequence[float]]], **look: Any) -> None:
        """Draw many short lines as one with holes."""
        x = [value for across, _ in lines for value in (*across, math.nan)]
        y = [value for _, up in lines for value in (*up, math.nan)]
        self.axes.plot(x, y, solid_capstyle="butt", **look)


# ---- axes ------------------------------------------------------------------------------------------------------------


def _broken(text: str, most: int) -> str:
    return "\n".join(textwrap.wrap(text, most)) if len(text) > most else text


def _below(axis: Axis) -> Axis:
    """Return an axis below, for a phone: few round numbers, or names that are turned where they are long."""
    axis = dataclasses.replace(axis, label=_broken(axis.label, _ACROSS))
    if axis.ticks is None:
        return dataclasses.replace(axis, most=3)
    named = [(place, " ".join(text.split())) for place, text in axis.ticks if text]
    crowded = (1 + max((len(text) for _, text in named), default=0)) * _LETTER * len(named) / (WIDTH - 60)
    if crowded < 1 or axis.date:  # of times some are enough
        return dataclasses.replace(axis, ticks=axis.ticks if crowded < 1 else named[:: math.ceil(crowded)], turn=0)
    step = -(-len(named) // _MOST_NAMES)
    return dataclasses.replace(axis, ticks=[(at, shortened(text, 22)) for at, text in named[::step]], turn=50)


def _beside(axis: Axis) -> Axis:
    """Return an axis at the side, for a phone."""
    names = axis.ticks and [(place, shortened(text, _SIDE)) for place, text in axis.ticks]
    return dataclasses.replace(axis, ticks=names, label=_broken(axis.label, _LABEL))


def _set(axes: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    """Set up the x or the y axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    one = axes.xaxis if which == "x" else axes.yaxis
    if axis.scale != "linear":
        rest: dict[str, Any] = {"log": {"base": 10}, "log2": {"base": 2}, "symlog": {"linthresh": 1}}[axis.scale]
        getattr(axes, f"set_{which}scale")(axis.scale.removesuffix("2"), **rest)
    limits = getattr(axes, f"set_{which}lim")
    if axis.low is not None or axis.high is not None:
        limits(axis.low, axis.high)
    if axis.scale != "linear":
        low, high = getattr(axes, f"get_{which}lim")()
        if axis.scale == "log2":
            one.set_major_locator(LogLocator(base=2))
        elif axis.scale == "log" and high < 50 * low:  # less than two decades: more ticks than the powers of ten
            one.set_major_locator(LogLocator(subs=(1, 2, 5)))
        one.set_minor_formatter(NullFormatter())
        one.set_minor_locator(NullLocator())  # a tenth of the time of a drawing
    elif axis.most or axis.whole:
        one.set_major_locator(
            MaxNLocator(
                nbins=axis.most or "auto", integer=axis.whole, steps=[1, 2, 5, 10] if axis.whole else [1, 2, 2.5, 5, 10]
            )
        )
    # Not a power, which is a formula.
    form = axis.form or (None if axis.scale == "linear" else partial(digits_text, digits=12))
    if form is not None:
        one.set_major_formatter(FuncFormatter(lambda value, _: form(value)))
    if axis.ticks is not None:
        turned: dict[str, Any] = {"rotation": axis.turn, "ha": "right"} if axis.turn else {}
        one.set_ticks([place for place, _ in axis.ticks], [words for _, words in axis.ticks], **turned)
    if axis.above:
        axes.xaxis.tick_top()
    one.set_label_text(axis.label)
    if axis.grid:
        axes.grid(True, axis="x" if which == "x" else "y")
    if not axis.line:
        axes.spines["bottom" if which == "x" else "left"].set_visible(False)
        axes.tick_params(axis="x" if which == "x" else "y", length=0)
