"""A chart as a figure of Matplotlib: its axes, its legends, and where its panels stand.

Layouts with margins of their own are not measured, since that is half of the time that a figure takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.plots.chart import Chart
from mpiio_ext.common.plots.panel import Panel
from mpiio_ext.common.plots.theme import LIGHT, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec

#: Series that a legend inside the axes names at most.
_MOST_INSIDE = 3
#: Inches that turned names below an axis take on a phone.
_TURNED = 0.8


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
        "text.parse_math": False,  # names of files may contain dollars
    }


def _grid(figure: Figure, chart: Chart) -> GridSpec:
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
    return figure.add_gridspec(
        rows, columns, width_ratios=chart.widths or None, height_ratios=chart.heights or None, **place
    )


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


def figure(chart: Chart, theme: Theme = LIGHT) -> tuple[Figure, list[Panel]]:
    """Return a chart as a figure of Matplotlib, drawn within the settings of `style`, and its panels."""
    from matplotlib.figure import Figure

    drawn = Figure(
        figsize=(chart.width, chart.height), facecolor=theme.page, layout=None if chart.margins else "constrained"
    )
    grid, panels = _grid(drawn, chart), list[Panel]()
    share: Any = {"sharex": "col", "sharey": "row"} if chart.share else {}
    for row, places in zip(chart.panels, grid.subplots(squeeze=False, **share), strict=True):
        for draw, axes in zip([*row, *[None] * (len(places) - len(row))], places, strict=True):
            if draw is None:
                axes.remove()
                continue
            panels.append(Panel(axes, theme, narrow=chart.narrow))
            draw(panels[-1])
            if chart.legend == "own":
                _own_legend(axes)
    turned = [_TURNED * bool(panel.x.turn) for panel in panels]
    if chart.narrow and any(turned):
        grid.set_height_ratios([height + more for height, more in zip(chart.heights, turned, strict=True)])
        drawn.set_size_inches(chart.width, chart.height + sum(turned))
    if chart.heading:
        if chart.margins is None:
            drawn.suptitle(chart.heading, fontsize=10)
        else:
            drawn.text(10 / 72 / chart.width, 1 - 12 / 72 / chart.height, chart.heading, fontsize=9.5, va="center")
    if chart.legend not in ("", "own"):
        _legend(drawn, chart, [panel.axes for panel in panels], theme)
    return drawn, panels


def _own_legend(axes: Axes) -> None:
    """Name the series of a panel in it; many beside it, where they do not hide the lines."""
    many = len(axes.get_legend_handles_labels()[1]) > _MOST_INSIDE
    axes.legend(**({"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0} if many else {}))
