"""A chart as a figure of Matplotlib: one function for each kind of mark.

This and `files` are the places that import Matplotlib. Marks that are many go into one collection, and layouts with
margins of their own are not measured, since both are most of the time that a figure takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.plots.chart import Area, Axis, Bars, Boxes, Chart, Line, Panel, Rule, Segments, Spans, Text, Tiles
from mpiio_ext.common.plots.theme import LIGHT, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Series that a legend inside the axes names at most.
_MOST_INSIDE = 3


def style(theme: Theme, chart: Chart) -> Any:
    """Return the settings of Matplotlib that a chart is drawn with."""
    from matplotlib.rcsetup import cycler

    size, small = 8.5 * chart.scale, 8 * chart.scale

    return {
        "axes.prop_cycle": cycler(color=[theme.ink]),  # no colour that is not of the theme
        "svg.fonttype": "none",
        "svg.hashsalt": chart.name,
        "font.family": "sans-serif",
        "font.size": size,
        "font.sans-serif": ["DejaVu Sans"],  # each text of an SVG names all of them
        "axes.edgecolor": theme.soft,
        "axes.labelcolor": theme.ink,
        "axes.facecolor": theme.page,
        "xtick.color": theme.soft,
        "ytick.color": theme.soft,
        "xtick.labelsize": small,
        "ytick.labelsize": small,
        "text.color": theme.ink,
        "figure.facecolor": theme.page,
        "savefig.facecolor": theme.page,
        "axes.titlesize": size,
        "axes.titlelocation": "left",
        "axes.axisbelow": True,
        "grid.color": theme.line,
        "grid.linewidth": 0.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "hatch.linewidth": 0.5,
        "path.simplify_threshold": 1 / 9 if chart.scale == 1 else 0.5,  # of a phone most of a long line is not seen
        "legend.frameon": False,
        "legend.fontsize": small,
        "text.parse_math": False,  # names of files may hold dollars
    }


# ---- marks -----------------------------------------------------------------------------------------------------------


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _line(axes: Axes, mark: Line, theme: Theme) -> None:
    colour, y = theme.colour(mark.look.colour), _numbers(mark.y)
    ground: dict[str, Any] = {"markerfacecolor": "none"} if mark.hollow else {}
    rim: dict[str, Any] = {"markeredgecolor": theme.colour(mark.edge), "markeredgewidth": 0.6} if mark.edge else {}
    axes.plot(
        mark.x,
        y,
        color=colour,
        linestyle=mark.look.dash or "",
        linewidth=mark.width,
        marker=mark.look.marker,
        markersize=mark.size,
        clip_on=mark.clip,
        zorder=mark.layer,
        label=mark.name or None,
        **ground,
        **rim,
    )


def _bars(axes: Axes, mark: Bars, theme: Theme) -> None:
    draw: Any
    draw, length, width, foot, spread = (
        (axes.barh, "width", "height", "left", "xerr")
        if mark.across
        else (axes.bar, "height", "width", "bottom", "yerr")
    )
    rest: dict[str, Any] = (
        {}
        if mark.errors is None
        else {spread: mark.errors, "error_kw": {"elinewidth": 0.8, "capsize": 1.5, "ecolor": theme.ink}}
    )
    drawn = draw(
        mark.at,
        **{length: mark.values, width: mark.width, foot: mark.foot},
        hatch=mark.look.hatch or None,
        facecolor=theme.colour(mark.look.colour),
        edgecolor=theme.colour(mark.edge or "page"),
        linewidth=mark.thin,
        label=mark.name or None,
        **rest,
    )
    if mark.notes:
        from matplotlib import rcParams

        axes.bar_label(
            drawn,
            list(mark.notes),
            padding=3 if mark.across else 2,
            color=theme.soft,
            fontsize=rcParams["xtick.labelsize"],
        )


def _area(axes: Axes, mark: Area, theme: Theme) -> None:
    axes.fill_between(
        mark.x,
        mark.low,
        mark.high,
        facecolor=theme.colour(mark.look.colour),
        linewidth=0,
        alpha=mark.alpha,
        label=mark.name or None,
    )


def _segments(axes: Axes, mark: Segments, theme: Theme) -> None:
    from matplotlib.collections import LineCollection

    lines = LineCollection(
        list(mark.lines),
        colors=theme.colour(mark.look.colour),
        linewidths=mark.width,
        linestyles=[mark.look.dash],
        alpha=mark.alpha,
        label=mark.name,
        zorder=mark.layer,
    )
    axes.add_collection(lines)


def _joined(axes: Axes, lines: Sequence[tuple[Sequence[float], Sequence[float]]], **look: Any) -> None:
    """Draw many short lines as one with holes: each by itself would carry its style."""
    x = [value for across, _ in lines for value in (*across, math.nan)]
    y = [value for _, up in lines for value in (*up, math.nan)]
    axes.plot(x, y, solid_capstyle="butt", **look)


def _boxes(axes: Axes, mark: Boxes, theme: Theme) -> None:
    if not mark.at:
        return
    half = mark.width / 2
    _, first, median, third, _ = zip(*mark.numbers, strict=True)
    whiskers: list[tuple[Sequence[float], Sequence[float]]] = []
    for at, numbers in zip(mark.at, mark.numbers, strict=True):
        low, high = numbers[0], numbers[4]
        whiskers += [((at, at), numbers[:2]), ((at, at), numbers[3:])]
        whiskers += [((at - half / 2, at + half / 2), (end, end)) for end in (low, high)]
    _joined(axes, whiskers, color=theme.soft, linewidth=0.9)
    axes.bar(
        mark.at,
        [b - a for a, b in zip(first, third, strict=True)],
        mark.width,
        first,
        facecolor=theme.line,
        edgecolor=theme.soft,
        linewidth=0.8,
    )
    _joined(
        axes,
        [((at - half, at + half), (end, end)) for at, end in zip(mark.at, median, strict=True)],
        color=theme.colour(mark.look.colour),
        linewidth=1.5,
    )


def _spans(axes: Axes, mark: Spans, theme: Theme) -> None:
    for start, end in mark.spans:
        axes.axvspan(start, end, facecolor=theme.colour(mark.colour), linewidth=0, zorder=0)


def _rule(axes: Axes, mark: Rule, theme: Theme) -> None:
    (axes.axhline if mark.across else axes.axvline)(
        mark.at, color=theme.colour(mark.look.colour), linewidth=mark.width, linestyle=mark.look.dash
    )


def _tiles(axes: Axes, mark: Tiles, theme: Theme) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    patches = [Rectangle((left, low), width, height) for left, low, width, height in mark.places]
    cells = PatchCollection(
        patches,
        facecolor=theme.colour(mark.look.colour),
        linewidth=mark.thin,
        edgecolor=theme.colour(mark.edge) if mark.edge else "none",
        hatch=mark.look.hatch or None,
    )
    cells.set_in_layout(False)  # the ends of the axes say all; measuring every patch takes seconds
    axes.add_collection(cells, autolim=False)


def _text(axes: Axes, mark: Text, theme: Theme) -> None:
    place: Any = {"data": "data", "axes": "axes fraction", "x": ("data", "axes fraction")}[mark.inside]
    box = {"boxstyle": "round,pad=0.15", "facecolor": theme.page, "edgecolor": "none", "alpha": 0.85}
    text = axes.annotate(
        mark.text,
        (mark.x, mark.y),
        xycoords=place,
        xytext=mark.shift,
        textcoords="offset points",
        ha=mark.align[0],
        va=mark.align[1],
        fontsize=mark.size,
        color=theme.colour(mark.colour),
        rotation=mark.turn,
        fontweight="bold" if mark.bold else "normal",
        bbox=box if mark.boxed else None,
        annotation_clip=False,
    )
    text.set_in_layout(False)


_MARKS: dict[type, Callable[[Axes, Any, Theme], None]] = {
    Area: _area,
    Bars: _bars,
    Boxes: _boxes,
    Line: _line,
    Rule: _rule,
    Segments: _segments,
    Spans: _spans,
    Text: _text,
    Tiles: _tiles,
}


# ---- axes ------------------------------------------------------------------------------------------------------------


def _axis(axes: Axes, which: str, axis: Axis) -> None:
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
    form = axis.form or (None if axis.scale == "linear" else "{:,.12g}".format)  # not a power, which is a formula
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


def _panel(axes: Axes, panel: Panel, theme: Theme) -> None:
    for mark in panel.marks:
        _MARKS[type(mark)](axes, mark, theme)
    if any(isinstance(mark, Segments) for mark in panel.marks):
        axes.autoscale_view()  # a collection does not do so by itself
    _axis(axes, "x", panel.x)
    _axis(axes, "y", panel.y)
    if panel.title:
        axes.set_title(panel.title, pad=panel.room, y=1.0)  # else all that is above the axes would be measured
    if panel.legend and len(axes.get_legend_handles_labels()[1]) > _MOST_INSIDE:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)  # it would hide the lines
    elif panel.legend:
        axes.legend()


# ---- the whole -------------------------------------------------------------------------------------------------------


def _places(figure: Figure, chart: Chart) -> Any:
    rows, columns = len(chart.panels), max(map(len, chart.panels))
    place: dict[str, Any] = {}
    if chart.margins is not None:
        wide, tall = 72 * chart.width, 72 * chart.height
        left, right, above, below = chart.margins
        across = (wide - left - right - chart.gaps[0] * (columns - 1)) / columns
        upright = (tall - above - below - chart.gaps[1] * (rows - 1)) / rows
        place = {
            "left": left / wide,
            "right": 1 - right / wide,
            "top": 1 - above / tall,
            "bottom": below / tall,
            "wspace": chart.gaps[0] / across,
            "hspace": chart.gaps[1] / upright,
        }
    grid = figure.add_gridspec(
        rows, columns, width_ratios=chart.widths or None, height_ratios=chart.heights or None, **place
    )
    return grid.subplots(squeeze=False, sharex="col" if chart.share else False, sharey="row" if chart.share else False)


def _legend(figure: Figure, chart: Chart, every: Sequence[Axes], theme: Theme) -> None:
    from matplotlib.lines import Line2D

    found: dict[str, Any] = {}
    for axes in every if not chart.keys else ():
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    dash: Any
    for name, look, width in chart.keys:
        dash = look.dash
        found[name] = Line2D(
            [],
            [],
            color=theme.colour(look.colour),
            linewidth=width,
            linestyle=dash,
            marker=look.marker,
            markerfacecolor="none",
        )
    if not found:
        return
    where: Any = {"above": "upper left", "below": "lower center", "right": "upper right"}[chart.legend]
    if chart.margins is None:  # room is made for it
        where = f"outside {where}"
    figure.legend(
        list(found.values()),
        list(found),
        loc=where,
        ncols=1 if chart.legend == "right" else chart.columns,
        borderaxespad=0.3,
    )


def figure(chart: Chart, theme: Theme = LIGHT) -> Figure:
    """Return a chart as a figure of Matplotlib, to be drawn within the settings of `style`."""
    from matplotlib.figure import Figure

    drawn = Figure(
        figsize=(chart.width, chart.height), facecolor=theme.page, layout=None if chart.margins else "constrained"
    )
    every = []
    for row, places in zip(chart.panels, _places(drawn, chart), strict=True):
        for panel, axes in zip([*row, *[None] * (len(places) - len(row))], places, strict=True):
            if panel is None:
                axes.remove()
                continue
            _panel(axes, panel, theme)
            every.append(axes)
    if chart.heading:
        if chart.margins is None:
            drawn.suptitle(chart.heading, fontsize=10)
        else:
            drawn.text(10 / 72 / chart.width, 1 - 12 / 72 / chart.height, chart.heading, fontsize=9.5, va="center")
    if chart.legend:
        _legend(drawn, chart, every, theme)
    return drawn
