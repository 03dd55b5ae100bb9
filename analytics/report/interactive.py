"""Figures of Plotly, for ``--interactive``: the same charts, to zoom and to point at.

Plotly's script (4.5 MB) is put into the page once; nothing is fetched. What each kind of chart holds stands in
:mod:`mpiio_ext.analytics.report.drawing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.report.drawing import COLOURS, logarithmic, pieces

__all__ = ["interactive", "script"]

Traces = list[dict[str, Any]]
#: What tells series apart besides their colours; dots pass axes without a value.
_DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star")
_PATTERNS = ("", "/", "\\", "x", "-", "|", "+")
_LAYOUT: dict[str, Any] = {
    "plot_bgcolor": "#fff", "height": 330, "margin": {"l": 70, "r": 20, "t": 20, "b": 60},
    "colorway": list(COLOURS), "font": {"family": "system-ui, sans-serif", "size": 12},
    "legend": {"orientation": "h", "y": 1.12},
}  # fmt: skip


def _lined(text: str) -> str:
    return text.replace("\n", "<br>")


def _quantity(quantity: str) -> dict[str, Any]:
    """Return the format of an axis of bytes, or of bytes a second; that of numbers otherwise."""
    end = {"bytes": "B", "rate": "B/s"}.get(quantity, "")
    return {"tickformat": "~s", "ticksuffix": end} if end else {}


def _ranking(data: Mapping[str, Any]) -> tuple[Traces, dict[str, Any]]:
    traces, layout = [], {"grid": {"rows": 1, "columns": len(data["panels"]), "pattern": "independent", "xgap": 0.4},
                          "showlegend": False}  # fmt: skip
    for number, panel in enumerate(data["panels"], 1):
        end = "" if number == 1 else str(number)
        traces.append({"type": "bar", "orientation": "h", "x": panel["values"], "y": panel["labels"],
                       "text": panel["notes"], "textposition": "outside", "cliponaxis": False,
                       "xaxis": f"x{end}", "yaxis": f"y{end}"})  # fmt: skip
        layout[f"xaxis{end}"] = {"title": {"text": panel["axis"]}, **_quantity(panel.get("quantity", ""))}
        layout[f"yaxis{end}"] = {"autorange": "reversed", "automargin": True}
    return traces, layout


def _bars(data: Mapping[str, Any]) -> tuple[Traces, dict[str, Any]]:
    places = data.get("x") or [_lined(label) for label in data["labels"]]
    several = len(data["series"]) > 1
    traces: Traces = [{"type": "bar", "name": one["name"], "x": places, "y": one["values"],
                       "marker": {"pattern": {"shape": _PATTERNS[number % len(_PATTERNS)] if several else ""}}}
                      for number, one in enumerate(data["series"])]  # fmt: skip
    ends = data.get("ends")
    if ends:
        traces.append({"type": "bar", "name": " and ".join(ends["names"]), "x": ends["x"], "y": ends["values"],
                       "text": ends["names"], "width": 2.4})  # fmt: skip
    layout = {"barmode": "overlay" if ends else "group", "showlegend": bool(data.get("legend"))}
    return traces, layout | ({"yaxis": {"type": "log"}} if logarithmic(data) else {})


def _lines(data: Mapping[str, Any]) -> tuple[Traces, dict[str, Any]]:
    return [{"type": "scatter", "mode": "lines", "line": {"dash": _DASHES[number % len(_DASHES)]}, **one}
            for number, one in enumerate(data["series"])], {}  # fmt: skip


def _steps(data: Mapping[str, Any]) -> tuple[Traces, dict[str, Any]]:
    shapes = [{"type": "rect", "x0": start, "x1": end, "yref": "paper", "y0": 0, "y1": 1, "fillcolor": "#d5d9df",
               "opacity": 0.5, "line": {"width": 0}, "layer": "below"}
              for start, end in data.get("spans", ())]  # fmt: skip
    traces = [{"type": "scatter", "mode": "lines", "line": {"shape": "hv", "dash": _DASHES[number % len(_DASHES)]},
               "x": data["x"], **one} for number, one in enumerate(data["series"])]  # fmt: skip
    return traces, {"shapes": shapes, "yaxis": _quantity(data.get("quantity", ""))}


def _files(data: Mapping[str, Any]) -> tuple[Traces, dict[str, Any]]:
    traces = []
    for which, name, colour in ((False, "I/O time of the file", "#9ccbe8"), (True, "on the critical path", COLOURS[1])):
        shown = [bar for bar in data["bars"] if bar["critical"] is which]
        traces.append({"type": "bar", "orientation": "h", "name": name, "marker": {"color": colour},
                       "y": [bar["row"] for bar in shown], "base": [bar["start"] for bar in shown],
                       "x": [bar["end"] - bar["start"] for bar in shown], "width": 0.4 if which else 0.8})  # fmt: skip
    rows = list(range(len(data["labels"])))
    return traces, {"barmode": "overlay", "yaxis": {"autorange": "reversed", "automargin": True, "tickvals": rows,
                                                    "ticktext": data["labels"]}}  # fmt: skip


def _parallel(data: Mapping[str, Any]) -> tuple[Traces, dict[str, Any]]:
    """Return a trace a group, whose lines are apart by a gap, and the axes: a line each with both ends beside it."""
    traces: Traces = []
    for number, group in enumerate(data["groups"]):
        x: list[int | None] = []
        y: list[float | None] = []
        texts: list[str] = []
        past: tuple[list[int | None], list[float | None]] = [], []
        for line in data["lines"]:
            if line["group"] == group:  # what is not known is passed by a dotted line, as in the drawing
                whole, gaps = pieces(line["values"])
                for points in whole:
                    x += [*(place for place, _ in points), None]
                    y += [*(value for _, value in points), None]
                    texts += [*(line["words"][place] for place, _ in points), ""]
                for points in gaps:
                    past[0].extend([*(place for place, _ in points), None])
                    past[1].extend([*(value for _, value in points), None])
        if past[0]:
            traces.append({"type": "scatter", "mode": "lines", "x": past[0], "y": past[1], "opacity": 0.6,
                           "legendgroup": group, "showlegend": False, "hoverinfo": "skip",
                           "line": {"color": COLOURS[number % len(COLOURS)], "width": 1, "dash": "dot"}})  # fmt: skip
        traces.append({"type": "scatter", "mode": "lines+markers", "name": group, "legendgroup": group, "x": x, "y": y,
                       "text": texts, "opacity": 0.6, "hovertemplate": "%{text}",
                       "marker": {"size": 6, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
                       "line": {"color": COLOURS[number % len(COLOURS)], "width": 1.2,
                                "dash": _DASHES[number % len(_DASHES)]}})  # fmt: skip
    places = range(len(data["axes"]))
    shapes = [{"type": "line", "x0": place, "x1": place, "y0": 0, "y1": 1, "layer": "below",
               "line": {"color": "#555c66", "width": 1}} for place in places]  # fmt: skip
    ends = [{"x": place, "y": height, "text": data["axes"][place][end], "showarrow": False, "yanchor": anchor,
             "font": {"size": 11, "color": "#555c66"}}
            for place in places for height, end, anchor in ((1, "high", "bottom"), (0, "low", "top"))]  # fmt: skip
    ends += [{"x": place, "y": 0.5, "text": axis["only"], "showarrow": False, "xanchor": "left", "yanchor": "bottom",
              "font": {"size": 11, "color": "#555c66"}}
             for place, axis in enumerate(data["axes"]) if axis.get("only")]  # fmt: skip
    names = [_lined(axis["name"]) for axis in data["axes"]]
    return traces, {
        "shapes": shapes, "annotations": ends, "hovermode": "closest", "height": 400, "showlegend": True,
        "xaxis": {"tickvals": list(places), "ticktext": names, "range": [-0.3, len(names) - 0.7], "showgrid": False,
                  "zeroline": False, "showline": False},
        "yaxis": {"visible": False, "range": [-0.1, 1.1], "fixedrange": True},
        "legend": {"orientation": "v"}, "margin": {"l": 20, "r": 20, "t": 20, "b": 70},
    }  # fmt: skip


_KINDS: dict[str, Callable[[Mapping[str, Any]], tuple[Traces, dict[str, Any]]]] = {
    "bars": _bars, "files": _files, "lines": _lines, "parallel": _parallel, "ranking": _ranking, "steps": _steps,
}  # fmt: skip


def _plotly() -> Any:
    try:
        import plotly
    except ImportError as error:
        raise AnalyticsError("--interactive needs Plotly: pip install plotly") from error
    return plotly


def script() -> str:
    """Return Plotly's script.

    Raises
    ------
    AnalyticsError
        Plotly is not installed.
    """
    _plotly()
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def interactive(chart: Chart) -> str:
    """Return a chart as an element that Plotly's script fills; AnalyticsError where Plotly is not installed.

    The element's ID differs from the chart's name, which the page uses as an anchor: Plotly fills the first of an ID.
    """
    _plotly()
    from plotly.io import to_html

    traces, own = _KINDS[chart.kind](chart.data)
    layout = {**_LAYOUT, **own}
    for axis, key in (("xaxis", "x"), ("yaxis", "y")):
        named = {"title": {"text": chart.data[f"{key}_label"]}} if chart.data.get(f"{key}_label") else {}
        ranged = {"range": chart.data[f"{key}_range"]} if chart.data.get(f"{key}_range") else {}
        layout[axis] = {"gridcolor": "#d5d9df", "linecolor": "#555c66", **named, **ranged, **layout.get(axis, {})}
    return str(to_html({"data": traces, "layout": layout}, full_html=False, include_plotlyjs=False, validate=False,
                       div_id=f"chart-{chart.name}", config={"displaylogo": False, "responsive": True}))  # fmt: skip
