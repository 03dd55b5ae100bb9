"""Figures as SVG, by Matplotlib: one function for each kind of chart.

A chart is plain data (:class:`mpiio_ext.analytics.analyses.result.Chart`). Text stays text: it can be searched and
copied, and no outlines of letters fill the file. Colours are those of M. Okabe and K. Ito; where a colour tells two
series apart, a hatch, a line style or a place does so too.

``data`` of each kind:

- ``ranking``: ``panels``, each with ``title``, ``labels``, ``values``, ``notes`` (beside the bars), ``axis``,
  ``quantity`` ("bytes", "rate" or "").
- ``bars``: ``series`` of ``name`` and ``values``, over ``labels`` or ``x``; ``notes`` above the bars, ``ends`` (bars of
  their own at both ends), ``log``, ``legend``.
- ``lines``: ``series`` of ``name``, ``x``, ``y``.
- ``parallel``: ``axes`` of ``name``, ``low``, ``high``, ``log``, and ``only`` (its one value, which is in the middle);
  ``lines`` of ``group``, ``values`` (0 to 1, None where not known) and ``words`` (what each value is, to point at);
  ``groups`` in order of their colours.
- ``files``: ``bars`` of ``row``, ``start``, ``end``, ``critical``, ``label``; ``quantity``.
- ``steps``: ``x``, and ``series`` of ``name`` and ``y``, level over ``step`` from each x on; ``spans`` to shade.

Figures of histories of jobs, which follow light and dark: :mod:`mpiio_ext.analytics.report.panels`.

``x_label``, ``y_label`` (with units), ``x_range`` and ``y_range`` go for all.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.report import panels
from mpiio_ext.common.units import size_text

if TYPE_CHECKING:
    from mpiio_ext.analytics.analyses.result import Chart

__all__ = ["COLOURS", "draw", "logarithmic", "pieces"]

#: Okabe and Ito, without the yellow, which is too light for lines.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555c66")
_HATCHES = ("", "///", "\\\\\\", "xx", "--", "||", "++")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 3)))
#: The same without dots, which pass axes without a value.
_STROKES = ("-", "--", "-.", (0, (9, 2)), (0, (2, 1)), (0, (6, 1, 1, 1, 1, 1)), (0, (4, 4)))
_INK, _SOFT, _LINE = "#16191d", "#555c66", "#d5d9df"
_WIDTH = 8.2
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "axes.spines.top": False,
    "axes.spines.right": False, "axes.edgecolor": _SOFT, "axes.labelcolor": _INK, "xtick.color": _SOFT,
    "ytick.color": _SOFT, "text.color": _INK, "axes.titlesize": 9.5, "axes.titlelocation": "left",
    "axes.grid": False, "grid.color": _LINE, "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False,
    "legend.fontsize": 8.5, "hatch.linewidth": 0.5,
    "text.parse_math": False,  # names of files may hold dollars
}  # fmt: skip


def _figure(
    height: float, left: Sequence[float], *, right: float = 8, bottom: float = 34, top: float = 8
) -> tuple[Any, list[Any]]:
    """Return a figure of so many inches with axes side by side, and points left free: before each of them, and around.

    Matplotlib's own layouts draw each figure twice to measure texts, which is half of the time that figures take; and
    what they measure is its font, while the reader's browser takes another.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height))
    FigureCanvasSVG(figure)
    width, tall = 72 * _WIDTH, 72 * height
    each = (width - sum(left) - right * len(left)) / len(left)
    axes, at = [], 0.0
    for free in left:
        at += free
        axes.append(figure.add_axes((at / width, bottom / tall, each / width, (tall - bottom - top) / tall)))
        at += each + right
    return figure, axes


def _room(texts: Iterable[str], size: float = 9) -> float:
    """Return the points that the longest of these texts takes, at most but for texts of capital letters."""
    return max((len(line) for text in texts for line in text.split("\n")), default=0) * size * 0.62


def _rows(texts: Iterable[str]) -> float:
    """Return the points that the rows of these texts take."""
    return 11.5 * max((text.count("\n") + 1 for text in texts), default=1)


#: Points of the tick marks and of what stands upright before them: the name of the axis.
_TICK, _NAME = 8, 18
#: Points of a legend, or a title, above the axes.
_ABOVE = 22


def _quantity(axis: Any, quantity: str) -> None:
    if quantity:
        end = "/s" if quantity == "rate" else ""
        axis.set_major_formatter(lambda value, _: size_text(value) + end)


def _frame(axes: Any, data: Mapping[str, Any], grid: str = "y") -> None:
    axes.set_xlabel(data.get("x_label", ""))
    axes.set_ylabel(data.get("y_label", ""))
    axes.grid(True, axis=grid)
    if data.get("x_range"):
        axes.set_xlim(*data["x_range"])
    if data.get("y_range"):
        axes.set_ylim(*data["y_range"])


def _short(text: str, most: int = 34) -> str:
    """Shorten a label in its middle: the ends of names tell them apart."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}…{text[-(most // 2) :]}"


def _ranking(data: Mapping[str, Any]) -> Any:
    panels = data["panels"]
    most = max(len(panel["labels"]) for panel in panels)
    left = [_TICK + 2 + _room(_short(label, 26) for label in panel["labels"]) for panel in panels]
    figure, every = _figure(0.9 + 0.24 * most, left, right=14, bottom=38, top=_ABOVE)
    for number, (axes, panel) in enumerate(zip(every, panels, strict=True)):
        places = list(range(len(panel["labels"])))
        bars = axes.barh(places, panel["values"], height=0.7, color=COLOURS[number])
        axes.set_yticks(places, [_short(label, 26) for label in panel["labels"]])
        axes.set_ylim(most - 0.4, -0.6)
        axes.bar_label(bars, panel.get("notes"), padding=3, color=_SOFT, fontsize=8)
        axes.margins(x=0.16)
        axes.set_title(panel["title"])
        axes.set_xlabel(panel["axis"])
        axes.locator_params(axis="x", nbins=4)
        axes.grid(True, axis="x")
        _quantity(axes.xaxis, panel.get("quantity", ""))
    return figure


def logarithmic(data: Mapping[str, Any]) -> bool:
    """Return whether bars stand on a logarithmic axis: where that is asked for, and counts are large enough for it."""
    return bool(data.get("log")) and max((value for one in data["series"] for value in one["values"]), default=0) > 50


def _bars(data: Mapping[str, Any]) -> Any:
    from matplotlib.ticker import NullLocator

    series = data["series"]
    largest = max((value for one in series for value in one["values"]), default=0)
    if logarithmic(data):
        largest = 10 ** math.ceil(math.log10(largest))  # the axis may go on to there
    left = _NAME + _TICK + max(_room([f"{largest:,.0f}"]), 24)
    top = _ABOVE if data.get("legend") or data.get("ends") else 14
    figure, (axes,) = _figure(2.9, [left], bottom=22 + _rows(data.get("labels", ())), top=top)
    places = data.get("x") or list(range(len(data["labels"])))
    ends = data.get("ends")
    width = (0.98 if ends else 0.75) / len(series)
    for number, one in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * width
        bars = axes.bar([place + shift for place in places], one["values"], width=width * 0.96, label=one["name"],
                        color=COLOURS[number], hatch=_HATCHES[number] if data.get("legend") else "",
                        edgecolor="white", linewidth=0)  # fmt: skip
        if data.get("notes"):
            axes.bar_label(bars, data["notes"], padding=2, color=_SOFT, fontsize=8)
    if ends:
        bars = axes.bar(ends["x"], ends["values"], width=2.4, color=COLOURS[1])
        for place, name in zip(ends["x"], ends["names"], strict=True):
            axes.annotate(name, (place, 1.0), xycoords=("data", "axes fraction"), rotation=0, fontsize=8, color=_INK,
                          ha="left" if place < 50 else "right", va="bottom")  # fmt: skip
    if "labels" in data:
        axes.set_xticks(places, data["labels"])
    if logarithmic(data):
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.7)
        axes.yaxis.set_minor_locator(NullLocator())  # a tenth of the time of a drawing
    elif all(float(value).is_integer() for one in series for value in one["values"]):
        axes.yaxis.get_major_locator().set_params(integer=True)  # there are no parts of jobs
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _frame(axes, data)
    if data.get("legend"):
        figure.legend(loc="outside upper left", borderaxespad=0.3, ncols=4)
    return figure


def _lines(data: Mapping[str, Any]) -> Any:
    figure, (axes,) = _figure(2.9, [_NAME + _TICK + 24], top=_ABOVE)
    for number, one in enumerate(data["series"]):
        axes.plot(one["x"], one["y"], label=one["name"], color=COLOURS[number % 7], linestyle=_DASHES[number % 7],
                  linewidth=1.6, clip_on=False)  # fmt: skip
    _frame(axes, data, "both")
    figure.legend(loc="outside upper left", borderaxespad=0.3, ncols=3)
    return figure


def pieces(values: Sequence[float | None]) -> tuple[list[list[tuple[int, float]]], list[list[tuple[int, float]]]]:
    """Return the parts of a line of parallel coordinates: between known neighbours, and past axes without a value."""
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    whole: list[list[tuple[int, float]]] = []
    past = []
    for point in known:
        if whole and point[0] == whole[-1][-1][0] + 1:
            whole[-1].append(point)
            continue
        if whole:
            past.append([whole[-1][-1], point])
        whole.append([point])
    return whole, past


def _parallel(data: Mapping[str, Any]) -> Any:
    from matplotlib.collections import LineCollection

    right = 40 + _room(data["groups"], 8.5)
    figure, (axes,) = _figure(3.6, [8], right=right, bottom=26 + _rows(one["name"] for one in data["axes"]), top=16)
    few = len(data["lines"]) < 60
    for number, group in enumerate(data["groups"]):
        whole, past = [], []
        for line in data["lines"]:
            if line["group"] == group:
                parts = pieces(line["values"])
                whole += parts[0]
                past += parts[1]
        colour, alpha = COLOURS[number % 7], 0.9 if few else 0.45
        axes.add_collection(LineCollection(
            [line for line in whole if len(line) > 1], colors=colour, linestyles=_STROKES[number % 7],
            linewidths=1.4 if few else 0.8, alpha=alpha, label=group))  # fmt: skip
        axes.add_collection(LineCollection(past, colors=colour, linestyles=":", linewidths=1.1 if few else 0.6,
                                           alpha=alpha))  # fmt: skip
        alone = [line[0] for line in whole if len(line) == 1]  # between two axes without a value
        axes.plot([place for place, _ in alone], [value for _, value in alone], ".", color=colour, markersize=4)
    _columns(axes, data["axes"])
    figure.legend(loc="upper right")
    return figure


def _columns(axes: Any, columns: Sequence[Mapping[str, Any]]) -> None:
    """Draw the axes of parallel coordinates: an upright line each, with what its ends, or its one value, are."""
    for place, column in enumerate(columns):
        axes.plot([place, place], [0, 1], color=_SOFT, linewidth=0.8, zorder=0)
        for height, text, side in ((1, column["high"], "bottom"), (0, column["low"], "top")):
            axes.annotate(text, (place, height), textcoords="offset points", xytext=(0, 4 if height else -4),
                          ha="center", va=side, fontsize=8, color=_SOFT)  # fmt: skip
        axes.annotate(column.get("only", ""), (place, 0.5), textcoords="offset points", xytext=(4, 4), fontsize=8,
                      color=_SOFT, ha="left", va="bottom")  # fmt: skip
    axes.set_xticks(range(len(columns)), [column["name"] for column in columns])
    axes.tick_params(axis="x", length=0, pad=16)
    axes.set_xlim(-0.25, len(columns) - 0.75)
    axes.set_ylim(-0.02, 1.04)
    axes.set_yticks([])
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _files(data: Mapping[str, Any]) -> Any:
    bars = data["bars"]
    rows = 1 + max(bar["row"] for bar in bars)
    left = _TICK + 2 + max(_NAME, _room(_short(label) for label in data["labels"]))
    figure, (axes,) = _figure(1.1 + 0.24 * max(rows, 2), [left], top=_ABOVE)
    for number, (which, label) in enumerate(((False, "I/O time of the file"), (True, "on the critical path"))):
        shown = [bar for bar in bars if bar["critical"] is which]
        if shown:
            axes.barh([bar["row"] for bar in shown], [bar["end"] - bar["start"] for bar in shown],
                      left=[bar["start"] for bar in shown], height=0.42 if which else 0.78, label=label,
                      color=COLOURS[1] if which else "#9ccbe8", linewidth=0.6,
                      edgecolor=COLOURS[1] if which else "#4a93bf", zorder=2 + number)  # fmt: skip
    axes.set_yticks(range(rows), [_short(label) for label in data["labels"]])
    axes.set_ylim(rows - 0.4, -0.6)
    _frame(axes, data, "x")
    figure.legend(loc="outside upper left", borderaxespad=0.3, ncols=2)
    return figure


def _steps(data: Mapping[str, Any]) -> Any:
    figure, (axes,) = _figure(2.3, [_NAME + _TICK + 54], top=_ABOVE)
    edges = [*data["x"], data["x"][-1] + data["step"]]
    for number, one in enumerate(data["series"]):
        values = [float("nan") if value is None else value for value in one["y"]]
        axes.stairs(values, edges, label=one["name"], color=COLOURS[number], linewidth=1.5, baseline=None,
                    linestyle=_DASHES[number])  # fmt: skip
    for start, end in data.get("spans", ()):
        axes.axvspan(start, end, color=_LINE, alpha=0.55, linewidth=0, zorder=0)
    _frame(axes, data, "both")
    axes.set_ylim(bottom=0)
    _quantity(axes.yaxis, data.get("quantity", ""))
    axes.yaxis.labelpad = 9
    figure.legend(loc="outside upper left", borderaxespad=0.3, ncols=3)
    return figure


_KINDS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "bars": _bars, "files": _files, "lines": _lines, "parallel": _parallel, "ranking": _ranking, "steps": _steps,
}  # fmt: skip


# ---- SVG -------------------------------------------------------------------------------------------------------------

_REFERENCE = re.compile(r'(?:url\(#|href="#)([^)"]+)')
_IDENTIFIER = re.compile(r' id="([^"]+)"')
_HEAD = re.compile(r"^.*?(?=<svg )|<metadata>.*?</metadata>", re.DOTALL)


def _tidy(text: str, name: str) -> str:
    """Return the SVG element alone, without names that nothing uses, and with those that are used made unique.

    Several figures stand on one page, and Matplotlib calls the first text of each one ``text_1``.
    """
    text = _HEAD.sub("", text)
    used = set(_REFERENCE.findall(text))
    text = _IDENTIFIER.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    text = _REFERENCE.sub(lambda found: found[0].replace(f"#{found[1]}", f"#{name}-{found[1]}"), text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"\n\s*", "\n", text).strip()


def draw(chart: Chart) -> str:
    """Return a chart as an SVG element, which is also a file of its own.

    Raises
    ------
    KeyError
        There is no such kind of chart.
    """
    import matplotlib
    from markupsafe import escape

    label = f'<svg role="img" aria-label="{escape(chart.title)}" '
    if chart.kind in panels.KINDS:
        return _tidy(panels.draw_panels(chart), chart.name).replace("<svg ", label, 1)
    style: Any = {**_STYLE, "svg.hashsalt": chart.name}
    with matplotlib.rc_context(style):
        figure = _KINDS[chart.kind](chart.data)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _tidy(out.getvalue(), chart.name).replace("<svg ", label, 1)
