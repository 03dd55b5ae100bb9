"""Figures as SVG: every kind is drawn, holds its texts as text, and shares no identifiers with its neighbours."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.jobs import histories, select
from mpiio_ext.analytics.jobs.climate.charts import averages_chart
from mpiio_ext.analytics.jobs.regimes import Rules, partition
from mpiio_ext.analytics.report.drawing import draw, pieces
from mpiio_ext.common import plots
from mpiio_ext.common.plots import draw as draw_of
from support.job_histories import history

CHARTS = {
    "ranking": {
        "panels": [
            {
                "title": "most read",
                "labels": ["a<b>", "c"],
                "values": [3e12, 1e9],
                "axis": "bytes read",
                "notes": ["75 %", "25 %"],
                "quantity": "bytes",
            }
        ]
    },
    "bars": {
        "labels": ["One", "Two"],
        "series": [{"name": "p", "values": [1, 2]}, {"name": "q", "values": [0, 5]}],
        "x_label": "processes",
        "y_label": "jobs [%]",
        "legend": True,
    },
    "lines": {
        "series": [{"name": "reads", "x": [0, 50, 100], "y": [0, 40, 100]}],
        "x_label": "jobs [%]",
        "y_label": "sequential [%]",
        "x_range": [0, 100],
        "y_range": [0, 100],
    },
    "parallel": {
        "axes": [{"name": "small", "low": "0 %", "high": "100 %"}, {"name": "OSTs", "low": "1", "high": "8"}],
        "groups": ["A", "B"],
        "lines": [
            {"group": "A", "values": [0.1, 0.9], "words": ["10 %", "7"]},
            {"group": "B", "values": [None, 0.9], "words": ["", "7"]},
            {"group": "A", "values": [0.2, 0.5], "words": ["20 %", "4"]},
        ],
    },
    "files": {
        "bars": [
            {"row": 0, "start": 0, "end": 10, "critical": False},
            {"row": 0, "start": 0, "end": 10, "critical": True},
            {"row": 1, "start": 4, "end": 8, "critical": False},
        ],
        "labels": ["File1", "File3"],
        "x_label": "time since the start [s]",
        "y_label": "",
    },
    "steps": {
        "x": [0, 5, 10],
        "step": 5,
        "series": [{"name": "writes", "y": [1e9, None, 2e9]}],
        "spans": [[2, 8]],
        "quantity": "rate",
        "x_label": "time [s]",
        "y_label": "bytes per second",
    },
}


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


def test_a_line_of_parallel_coordinates_is_broken_where_nothing_is_known() -> None:
    assert pieces([0.1, 0.2, None, 0.4, None, 0.6]) == (
        [[(0, 0.1), (1, 0.2)], [(3, 0.4)], [(5, 0.6)]],
        [[(1, 0.2), (3, 0.4)], [(3, 0.4), (5, 0.6)]],
    )
    assert pieces([None, 0.2, 0.3, None]) == ([[(1, 0.2), (2, 0.3)]], []) and pieces([None, None]) == ([], [])
    axes = [{"name": name, "low": "", "high": "", "only": "128" if name == "b" else ""} for name in "abc"]
    lines = [{"group": "A", "values": [0.1, None, 0.9], "words": ["a: 1", "", "c: 9"]}]
    chart = Chart(kind="parallel", name="p", title="", data={"axes": axes, "groups": ["A"], "lines": lines})
    text = draw(chart)
    assert "stroke-dasharray: 1.1" in text and ">128<" in text


def test_a_drawing_is_the_same_every_time() -> None:
    assert draw(_chart("ranking")) == draw(_chart("ranking"))


def test_a_kind_that_nobody_draws_is_named() -> None:
    with pytest.raises(KeyError, match="nosuch"):
        draw(Chart(kind="nosuch", name="odd", title="", data={}))


@pytest.mark.parametrize("days", [1, 10, 45, 61, 63, 200, 400, 730, 1200, 4000])
@pytest.mark.parametrize("panels", [1, 2])
def test_dates_below_an_axis_do_not_overlap(days: int, panels: int) -> None:
    """Neither beside each other in two columns nor on a phone."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    times = [1.5e9 + part * days * 86400 / 29 for part in range(30)]
    table = history([2.0**-20] * 30, {"_datetime_start": np.array(times)})  # 1 B/s
    found = partition(histories(select(table)[0])[0], Rules())
    chart = averages_chart("a", "a", [found] * panels, Rules())
    for one in (chart, plots.phone(chart)):
        with rc_context(draw_of.style(plots.LIGHT, one)):
            figure, _ = draw_of.figure(one)
            FigureCanvasAgg(figure).draw()
            for axes in figure.axes:
                boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
                assert boxes, days
                assert all(before.x1 < after.x0 for before, after in itertools.pairwise(boxes))
