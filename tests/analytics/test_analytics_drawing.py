"""Figures as SVG: every kind is drawn, holds its texts as text, and shares no identifiers with its neighbours."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.report.drawing import draw, pieces
from mpiio_ext.analytics.report.interactive import interactive
from mpiio_ext.analytics.report.pen import Pen

CHARTS = {
    "ranking": {"panels": [{"title": "most read", "labels": ["a<b>", "c"], "values": [3e12, 1e9], "axis": "bytes read",
                            "notes": ["75 %", "25 %"], "quantity": "bytes"}]},
    "bars": {"labels": ["One", "Two"], "series": [{"name": "p", "values": [1, 2]}, {"name": "q", "values": [0, 5]}],
             "x_label": "processes", "y_label": "jobs [%]", "legend": True},
    "lines": {"series": [{"name": "reads", "x": [0, 50, 100], "y": [0, 40, 100]}], "x_label": "jobs [%]",
              "y_label": "sequential [%]", "x_range": [0, 100], "y_range": [0, 100]},
    "parallel": {"axes": [{"name": "small", "low": "0 %", "high": "100 %"}, {"name": "OSTs", "low": "1", "high": "8"}],
                 "groups": ["A", "B"], "lines": [{"group": "A", "values": [0.1, 0.9], "words": ["10 %", "7"]},
                                                 {"group": "B", "values": [None, 0.9], "words": ["", "7"]},
                                                 {"group": "A", "values": [0.2, 0.5], "words": ["20 %", "4"]}]},
    "files": {"bars": [{"row": 0, "start": 0, "end": 10, "critical": False},
                       {"row": 0, "start": 0, "end": 10, "critical": True},
                       {"row": 1, "start": 4, "end": 8, "critical": False}], "labels": ["File1", "File3"],
              "x_label": "time since the start [s]", "y_label": ""},
    "steps": {"x": [0, 5, 10], "step": 5, "series": [{"name": "writes", "y": [1e9, None, 2e9]}], "spans": [[2, 8]],
              "quantity": "rate", "x_label": "time [s]", "y_label": "bytes per second"},
}  # fmt: skip


def _chart(kind: str) -> Chart:
    return Chart(kind=kind, name=f"fig-{kind}", title=f"A {kind} & more", data=CHARTS[kind])


@pytest.mark.parametrize("kind", CHARTS)
def test_a_drawing_is_an_svg_element_with_its_texts(kind: str) -> None:
    text = draw(_chart(kind))
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.get("aria-label") == f"A {kind} & more"
    seen = " ".join("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))
    for wanted in re.findall(r"'(?:x_label|y_label|axis)': '([^']+)'", str(CHARTS[kind])):
        assert wanted in seen
    assert len(text) < 40_000


def test_drawings_do_not_share_identifiers_and_refer_to_their_own() -> None:
    every = [draw(_chart(kind)) for kind in CHARTS]
    names = [re.findall(r' id="([^"]+)"', text) for text in every]
    assert len({name for group in names for name in group}) == sum(map(len, names))
    for text, group in zip(every, names, strict=True):
        assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text)) <= set(group)


def test_interactive_parallel_coordinates_have_an_axis_each_with_its_ends() -> None:
    pytest.importorskip("plotly", reason="needs Plotly")
    text = interactive(_chart("parallel"))
    call = r'Plotly.newPlot\(\s*"chart-fig-parallel",\s*(\[.*?\]),\s*(\{.*?\}),\s*\{"displaylogo"'
    found = re.search(call, text, re.DOTALL)
    assert found is not None, text
    traces, layout = json.loads(found[1]), json.loads(found[2])
    lines = [tuple(line[end] for end in ("x0", "x1", "y0", "y1")) for line in layout["shapes"]]
    assert lines == [(0, 0, 0, 1), (1, 1, 0, 1)]
    ends = {(one["x"], one["y"]): one["text"] for one in layout["annotations"]}
    assert ends == {(0, 0): "0 %", (0, 1): "100 %", (1, 0): "1", (1, 1): "8"}
    assert layout["xaxis"]["ticktext"] == ["small", "OSTs"]
    assert [(one["name"], one["x"], one["y"]) for one in traces] == [
        ("A", [0, 1, None, 0, 1, None], [0.1, 0.9, None, 0.2, 0.5, None]), ("B", [1, None], [0.9, None])]  # fmt: skip
    assert traces[0]["text"] == ["10 %", "7", "", "20 %", "4", ""]


def test_a_line_of_parallel_coordinates_is_broken_where_nothing_is_known() -> None:
    assert pieces([0.1, 0.2, None, 0.4, None, 0.6]) == (
        [[(0, 0.1), (1, 0.2)], [(3, 0.4)], [(5, 0.6)]], [[(1, 0.2), (3, 0.4)], [(3, 0.4), (5, 0.6)]])  # fmt: skip
    assert pieces([None, 0.2, 0.3, None]) == ([[(1, 0.2), (2, 0.3)]], []) and pieces([None, None]) == ([], [])
    axes = [{"name": name, "low": "", "high": "", "only": "128" if name == "b" else ""} for name in "abc"]
    lines = [{"group": "A", "values": [0.1, None, 0.9], "words": ["a: 1", "", "c: 9"]}]
    chart = Chart(kind="parallel", name="p", title="", data={"axes": axes, "groups": ["A"], "lines": lines})
    text = draw(chart)
    assert "stroke-dasharray: 1.1" in text and ">128<" in text
    page = interactive(chart)
    assert '"dash":"dot"' in page and "128" in page


def test_series_of_plotly_differ_by_more_than_their_colour() -> None:
    for kind, words in (("bars", '"shape":"\\u002f"'), ("lines", '"dash":"solid"'), ("parallel", '"symbol":"square"'),
                        ("steps", '"ticksuffix":"B\\u002fs"'), ("ranking", '"ticksuffix":"B"')):  # fmt: skip
        data = CHARTS[kind]
        for line in data.get("lines", ()):
            line.setdefault("words", ["", ""])
        assert words in interactive(_chart(kind)), kind
    assert '"textposition":"outside"' in interactive(_chart("ranking"))


def test_a_drawing_is_the_same_every_time() -> None:
    assert draw(_chart("ranking")) == draw(_chart("ranking"))


def test_the_pen_draws_what_it_is_given_in_another_process() -> None:
    with Pen() as pen:
        for kind in CHARTS:
            pen.take(_chart(kind))
        found = pen.drawings()
    assert found == {f"fig-{kind}": draw(_chart(kind)) for kind in CHARTS}


def test_the_pen_names_what_it_cannot_draw() -> None:
    with Pen() as pen, pytest.raises(AnalyticsError, match=r"figure odd: cannot be drawn: KeyError: 'nosuch'"):
        pen.take(Chart(kind="nosuch", name="odd", title="", data={}))
        pen.drawings()


def test_the_pen_says_when_its_process_died() -> None:
    with Pen() as pen, pytest.raises(AnalyticsError, match="draws the figures ended with an error"):
        pen._process.kill()
        pen.drawings()
