"""Figures of histories of jobs: UMAMI, distributions over months, moving averages, correlations.

A figure is plain data (:class:`mpiio_ext.analytics.analyses.result.Chart`), drawn by Matplotlib with the colours of a
theme (:mod:`mpiio_ext.analytics.report.theme`). Many panels stand in one figure, so that what costs time is spared:
boxes are drawn as lines by one collection a panel, and no layout is measured.

``data`` of each kind:

- ``umami``: ``rows`` of ``label``, ``values``, ``value``, ``box`` (low, first, median, third, high), ``quarter`` (0 to
  3, or None), ``words`` (the value), ``verdict``, ``quantity``; ``times`` (s since 1970), ``place``,
  ``heading`` (or ""), ``apart`` (the longest interval in s through which a line is drawn, or None).
- ``months``: ``panels`` of ``title``, ``boxes`` (place and the five numbers), ``changes`` (places); ``months`` (names).
- ``averages``: ``panels`` of ``title``, ``times``, ``values``, ``short``, ``long``, ``spans`` (start, end, low or
  high), ``outliers`` (places), ``apart``.
- ``correlations``: ``rows`` (names), ``columns`` (names), ``values`` (rows of -1 to 1, or None), ``sure`` (flags).
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.report.theme import LIGHT, Theme, dark_style
from mpiio_ext.common.units import size_text

if TYPE_CHECKING:
    from mpiio_ext.analytics.analyses.result import Chart

__all__ = ["KINDS", "draw_panels", "number_words", "png", "svg_file"]

_WIDTH = 8.2
_DAY = 86400.0
#: Jobs that get a mark each; more are a line alone, since marks are most of the bytes of a figure.
_MARKED = 120


def number_words(value: float, quantity: str = "") -> str:
    """Return a value with its unit, in few characters."""
    if value == 0:
        return "0"
    if quantity in ("B", "B/s"):
        return size_text(value) + quantity[1:]
    size = abs(value)
    if size >= 1e5 and not quantity:
        return size_text(value).removesuffix("B").replace(" ", "\u202f")
    text = f"{value:,.0f}" if size >= 1000 or value == round(value) else f"{value:.3g}"
    return f"{text} {quantity}".strip()


def _style(theme: Theme) -> Any:
    return {
        "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 8.5, "axes.spines.top": False,
        "axes.spines.right": False, "axes.edgecolor": theme.soft, "axes.labelcolor": theme.ink,
        "xtick.color": theme.soft, "ytick.color": theme.soft, "text.color": theme.ink, "axes.facecolor": theme.page,
        "figure.facecolor": theme.page, "savefig.facecolor": theme.page, "axes.titlesize": 8.5,
        "axes.titlelocation": "left", "axes.grid": False, "grid.color": theme.line, "grid.linewidth": 0.5,
        "axes.axisbelow": True, "text.parse_math": False, "xtick.labelsize": 8, "ytick.labelsize": 7.5,
    }  # fmt: skip


def _figure(height: float, theme: Theme) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH, height), facecolor=theme.page)


def _box(figure: Any, left: float, top: float, width: float, height: float) -> Any:
    """Return axes at a place in points from the upper left corner."""
    wide, tall = 72 * figure.get_figwidth(), 72 * figure.get_figheight()
    return figure.add_axes((left / wide, 1 - (top + height) / tall, width / wide, height / tall))


def _dates(axes: Any, times: Sequence[float], *, shown: bool = True) -> None:
    """Put marks on an axis of seconds at starts of months, or of days where it is short."""
    import datetime

    zone = datetime.timezone.utc
    first, last = (datetime.datetime.fromtimestamp(end, zone) for end in (min(times), max(times)))
    days = (last - first).total_seconds() / _DAY
    marks: list[float] = []
    names: list[str] = []
    if days > 62:
        step = max(1, round(days / 30.4 / 7))
        at = datetime.datetime(first.year, first.month, 1, tzinfo=zone)
        while at <= last:
            if at >= first:
                marks.append(at.timestamp())
                names.append(at.strftime("%b %Y") if at.month <= step or not names else at.strftime("%b"))
            ahead = at.month - 1 + step
            at = at.replace(year=at.year + ahead // 12, month=ahead % 12 + 1)
    else:
        step = max(1, round(days / 7))
        at = datetime.datetime(first.year, first.month, first.day, tzinfo=zone)
        while at <= last + datetime.timedelta(days=1):
            if at >= first:
                marks.append(at.timestamp())
                names.append(at.strftime("%d %b"))
            at += datetime.timedelta(days=step)
    axes.set_xticks(marks, names if shown else [""] * len(marks))
    room = max((max(times) - min(times)) * 0.02, 3600.0)
    axes.set_xlim(min(times) - room, max(times) + room)


def _broken(times: Sequence[float], values: Sequence[float], apart: float | None) -> tuple[list[float], list[float]]:
    """Return a line with a hole wherever more than `apart` s pass between two jobs."""
    if apart is None:
        return list(times), list(values)
    across, up = list(times[:1]), list(values[:1])
    for before, at, value in zip(times, times[1:], values[1:], strict=False):
        if at - before > apart:
            across.append((before + at) / 2)
            up.append(float("nan"))
        across.append(at)
        up.append(value)
    return across, up


def _alone(values: Sequence[float]) -> list[int]:
    """Return the places of values between two holes, of which a line shows nothing."""
    there = [False, *(value == value for value in values), False]
    return [at for at in range(len(values)) if there[at + 1] and not there[at] and not there[at + 2]]


# ---- UMAMI -----------------------------------------------------------------------------------------------------------


def _colour(quarter: int | None, theme: Theme, judged: bool = True) -> str:
    return theme.neutral if quarter is None or not judged else theme.quarters[quarter]


def _limits(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the ends of a row's axis: a few values far outside must not squash all others to a line.

    It holds the job, and twice the distance of the whiskers on both sides of them.
    """
    known = [value for value in row["values"] if value is not None]
    low, high = min(known), max(known)
    if row["box"] is not None:
        spread = row["box"][4] - row["box"][0]
        if spread > 0:
            low, high = max(low, row["box"][0] - 2 * spread), min(high, row["box"][4] + 2 * spread)
    if row["value"] is not None:
        low, high = min(low, row["value"]), max(high, row["value"])
    if 0 <= low < 0.5 * high or low == high == 0:
        low, high = 0.0, high or 1.0  # what counts from nothing shows it
    room = 0.12 * (high - low) or 0.5 * abs(high)
    return low - (0.06 * (high - low) if low == 0 else room), high + room


def _umami_line(
    axes: Any, data: Mapping[str, Any], row: Mapping[str, Any], limits: tuple[float, float], theme: Theme
) -> None:
    times, place = data["times"], data["place"]
    values = [float("nan") if value is None else value for value in row["values"]]
    marked = len(times) < _MARKED
    across, up = _broken(times, values, data["apart"])
    axes.plot(across, up, color=theme.data, linewidth=0.8, marker="." if marked else "", markersize=3)
    single = [] if marked else _alone(up)
    axes.plot([across[at] for at in single], [up[at] for at in single], linestyle="", marker=".", markersize=3,
              color=theme.data)  # fmt: skip
    outside = [(at, 1 if value > limits[1] else 0) for at, value in zip(times, values, strict=True)
               if value > limits[1] or value < limits[0]]  # fmt: skip
    for end, mark in ((1, "^"), (0, "v")):
        axes.plot([at for at, side in outside if side == end], [limits[end]] * sum(side == end for _, side in outside),
                  linestyle="", marker=mark, markersize=3.5, color=theme.data, clip_on=False)  # fmt: skip
    if row["value"] is not None:
        colour = _colour(row["quarter"], theme, row["judged"])
        before = [at for at in range(place) if row["values"][at] is not None][-1:]
        if before and (data["apart"] is None or times[place] - times[before[0]] <= data["apart"]):
            axes.plot([times[before[0]], times[place]], [values[before[0]], row["value"]], color=colour, linewidth=1.6)
        axes.plot([times[place]], [row["value"]], marker="*", color=colour, markersize=12, clip_on=False, zorder=5,
                  markeredgecolor=theme.page, markeredgewidth=0.6)  # fmt: skip


def _umami_box(axes: Any, row: Mapping[str, Any], theme: Theme) -> None:
    if row["box"] is not None:
        low, first, median, third, high = row["box"]
        axes.vlines([0.5, 0.5], [low, third], [first, high], color=theme.soft, linewidth=1)
        axes.hlines([low, high], 0.38, 0.62, color=theme.soft, linewidth=1)
        axes.bar([0.5], [third - first], width=0.5, bottom=[first], facecolor=theme.line, edgecolor=theme.soft,
                 linewidth=1)  # fmt: skip
        axes.hlines([median], 0.25, 0.75, color=theme.ink, linewidth=1.4)
    if row["value"] is not None:
        axes.hlines([row["value"]], 0, 1, color=_colour(row["quarter"], theme, row["judged"]), linewidth=1.8,
                    linestyle=(0, (4, 2)), zorder=4)  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_xticks([])


def _umami(data: Mapping[str, Any], theme: Theme) -> Any:
    """Draw a row per metric: time line, box (4:1), value; the name on the left."""
    rows = data["rows"]
    each = 64.0 if len(rows) > 3 else 92.0
    gap, left, right, top, bottom = 9.0, 142.0, 92.0, 16.0 + 20.0 * bool(data.get("heading")), 24.0
    height = top + bottom + len(rows) * (each + gap)
    figure = _figure(height / 72, theme)
    if data.get("heading"):
        figure.text(10 / 72 / _WIDTH, 1 - 12 / height, data["heading"], fontsize=9.5, va="center")
    free = 72 * _WIDTH - left - right - 8
    for number, row in enumerate(rows):
        above = top + number * (each + gap)
        line = _box(figure, left, above, free * 0.8, each)
        beside = _box(figure, left + free * 0.8 + 8, above, free * 0.2, each)
        limits = _limits(row)
        _umami_line(line, data, row, limits, theme)
        _umami_box(beside, row, theme)
        for axes in (line, beside):
            axes.set_ylim(*limits)
            axes.yaxis.set_major_locator(_few(3 if each < 80 else 5))
            axes.grid(True, axis="y")
        line.yaxis.set_major_formatter(lambda value, _, unit=row["quantity"]: number_words(value, unit))
        beside.tick_params(axis="y", length=0, labelleft=False)
        _dates(line, data["times"], shown=number == len(rows) - 1)
        line.annotate(row["label"], (0, 0.5), xycoords="axes fraction", xytext=(-132, 0), textcoords="offset points",
                      ha="left", va="center", fontsize=8.5, fontweight="bold")  # fmt: skip
        colour = _colour(row["quarter"], theme, row["judged"])
        for text, below, size in ((row["words"], 4, 9.5), (row["verdict"], -9, 8)):
            beside.annotate(text, (1, 0.5), xycoords="axes fraction", xytext=(6, below), textcoords="offset points",
                            ha="left", va="center", fontsize=size, color=colour,
                            fontweight="bold" if size > 9 else "normal")  # fmt: skip
    return figure


def _few(most: int = 3) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10])


# ---- climate ---------------------------------------------------------------------------------------------------------


def _grid(panels: int, each: float, theme: Theme, top: float = 18.0) -> tuple[Any, list[Any]]:
    """Return a figure with so many panels in two columns, under each other."""
    columns = 1 if panels == 1 else 2
    rows = -(-panels // columns)
    left, gap, below = 46.0, 32.0, 22.0
    figure = _figure((top + rows * (each + below + 14)) / 72, theme)
    width = (72 * _WIDTH - left - 8 - (columns - 1) * (gap + 12)) / columns
    return figure, [_box(figure, left + (number % columns) * (width + gap + 12),
                         top + (number // columns) * (each + below + 14), width, each)
                    for number in range(panels)]  # fmt: skip


def _months(data: Mapping[str, Any], theme: Theme) -> Any:
    figure, every = _grid(len(data["panels"]), 84.0, theme)
    for axes, panel in zip(every, data["panels"], strict=True):
        places = [box[0] for box in panel["boxes"]]
        low, first, median, third, high = ([box[at] for box in panel["boxes"]] for at in range(1, 6))
        axes.vlines(places, low, high, color=theme.soft, linewidth=0.9)
        axes.bar(places, [b - a for a, b in zip(first, third, strict=True)], width=0.62, bottom=first,
                 facecolor=theme.line, edgecolor=theme.soft, linewidth=0.7)  # fmt: skip
        axes.hlines(median, [place - 0.31 for place in places], [place + 0.31 for place in places], color=theme.data,
                    linewidth=1.6)  # fmt: skip
        for place, kind in panel["changes"]:
            axes.axvline(place, color=theme.changed, linewidth=1.1, linestyle=(0, (3, 2)))
            axes.annotate(kind, (place, 1), xycoords=("data", "axes fraction"), xytext=(0, 2), fontsize=7,
                          textcoords="offset points", ha="center", va="top", color=theme.changed)  # fmt: skip
        names = data["months"]
        step = max(1, -(-len(names) // 7))
        axes.set_xticks(range(0, len(names), step), [names[at] for at in range(0, len(names), step)])
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.set_ylim(0, 1.12 * max(high, default=1.0) or 1.0)
        axes.grid(True, axis="y")
        axes.yaxis.set_major_locator(_few())
        axes.yaxis.set_major_formatter(lambda value, _, unit=data["quantity"]: number_words(value, unit))
        axes.set_title(panel["title"], y=1.0)  # of its own accord it would measure all that is above the axes
    return figure


def _averages(data: Mapping[str, Any], theme: Theme) -> Any:
    figure, every = _grid(len(data["panels"]), 84.0, theme, top=34.0)
    for axes, panel in zip(every, data["panels"], strict=True):
        times, values, apart = panel["times"], panel["values"], panel["apart"]
        for start, end, kind in panel["spans"]:
            axes.axvspan(start, end, facecolor=theme.low if kind == "low" else theme.high, linewidth=0, zorder=0)
        axes.plot(*_broken(times, values, apart), linewidth=0.5, color=theme.neutral, label="jobs")  # marks are bytes
        axes.plot(*_broken(times, panel["long"], apart), color=theme.average, linewidth=1.3, linestyle="--",
                  label=f"mean over {data['long_days']:g} days")  # fmt: skip
        axes.plot(*_broken(times, panel["short"], apart), color=theme.data, linewidth=1.2,
                  label=f"over {data['short_days']:g} days")  # fmt: skip
        axes.plot([times[at] for at in panel["outliers"]], [values[at] for at in panel["outliers"]], linestyle="",
                  marker="x", markersize=4, color=theme.changed, label="transient")  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.grid(True, axis="y")
        axes.yaxis.set_major_locator(_few())
        axes.yaxis.set_major_formatter(lambda value, _, unit=data["quantity"]: number_words(value, unit))
        _dates(axes, times)
        axes.set_title(panel["title"], y=1.0)  # of its own accord it would measure all that is above the axes
    handles, names = every[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="upper left", ncols=4, frameon=False, borderaxespad=0.2, fontsize=8)
    return figure


def _correlations(data: Mapping[str, Any], theme: Theme) -> Any:
    """Draw a cell per coefficient: a bar from the middle, its number, bold where it is sure."""
    rows, columns = data["rows"], data["columns"]
    left, top, each = 176.0, 34.0, 17.0
    figure = _figure((top + each * len(rows) + 8) / 72, theme)
    axes = _box(figure, left, top, 72 * _WIDTH - left - 10, each * len(rows))
    for at in range(len(columns)):
        axes.vlines([at], -0.5, len(rows) - 0.5, color=theme.line, linewidth=0.8)
    for row, values in enumerate(data["values"]):
        for at, value in enumerate(values):
            if value is None:
                continue
            sure = data["sure"][row][at]
            colour = theme.quarters[3] if value >= 0 else theme.quarters[0]
            axes.barh([row], [value * 0.3], left=at, height=0.62, facecolor=colour if sure else theme.line, linewidth=0)
            axes.annotate(f"{round(value, 2) + 0.0:+.2f}", (at + 0.48, row), ha="right", va="center", fontsize=7.5,
                          color=theme.ink if sure else theme.soft, fontweight="bold" if sure else "normal")  # fmt: skip
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(columns)), columns)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    return figure


KINDS: dict[str, Callable[[Mapping[str, Any], Theme], Any]] = {
    "umami": _umami, "months": _months, "averages": _averages, "correlations": _correlations,
}  # fmt: skip

# ---- output ----------------------------------------------------------------------------------------------------------


def draw_panels(chart: Chart) -> str:
    """Return the SVG of a chart as Matplotlib writes it, in the light colours.

    Raises
    ------
    KeyError
        There is no such kind of chart.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with matplotlib.rc_context({**_style(LIGHT), "svg.hashsalt": chart.name}):
        figure = KINDS[chart.kind](chart.data, LIGHT)
        out = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return out.getvalue()


def svg_file(element: str) -> str:
    """Return an SVG element as a file that is dark where the reader prefers that."""
    style = f"<style>\n{dark_style('.themed')}\n</style>"
    head, _, rest = element.partition(">")
    return re.sub(r"^<svg ", '<svg class="themed" ', head) + f">\n{style}{rest}\n"


def png(chart: Chart, theme: Theme, *, dots_per_inch: int = 144) -> bytes:
    """Return a chart as PNG in the colours of a theme."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with matplotlib.rc_context(_style(theme)):
        figure = KINDS[chart.kind](chart.data, theme)
        figure.set_dpi(dots_per_inch)
        out = io.BytesIO()
        canvas: Any = FigureCanvasAgg(figure)
        canvas.print_png(out, metadata={"Software": None})
    return out.getvalue()
