"""A chart as a figure of Matplotlib: its axes, its legends, and where its panels stand.

Layouts with margins of their own are not measured, since that is half of the time that a figure takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.plots.chart import Axis, Chart, Panel
from mpiio_ext.common.plots.marks import Segments
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
        mark.draw(axes, theme)
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
