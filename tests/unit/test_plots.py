"""Charts: every mark, theme and format; and one place that draws, one that makes pages."""

from __future__ import annotations

import math
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

from mpiio_ext.common import page, plots
from mpiio_ext.common.plots import Axis, Bar, Chart, Lettering, Panel, theme
from mpiio_ext.common.plots import draw as draw_of
from mpiio_ext.errors import ArgumentError, FileSystemError
from support.cbuild import ROOT
from support.html_page import Page

Drawn = Callable[[Panel], None]
MARKS: dict[str, Drawn] = {
    "area": lambda panel: panel.area([0, 1], [0, 1], [1, 2], name="a"),
    "bars": lambda panel: panel.bars(
        [Bar(0, 2, note="two", errors=(1, 1)), Bar(1, 3, note="three", errors=(1, 1))], plots.look(1)
    ),
    "across": lambda panel: panel.bars([Bar(0, 2, foot=1)], across=True, name="a"),
    "boxes": lambda panel: panel.boxes([0, 1], [(0, 1, 2, 3, 4)] * 2),
    "line": lambda panel: panel.line([0, 1, 2], [1, None, math.nan], plots.look(2), "<a> $b$"),
    "rule": lambda panel: panel.rule(0.5),
    "segments": lambda panel: panel.segments([[(0, 0), (1, 1)]], name="a", words=[["first", "second"]]),
    "spans": lambda panel: panel.spans([(0, 1)]),
    "text": lambda panel: panel.text(0, 0, "<here>", Lettering(boxed=True)),
    "tiles": lambda panel: panel.tiles([(0, 0, 1, 1)], plots.Look("series7", hatch="xx"), edge="ink"),
}
#: What each of them tells, as CSV.
TOLD = {
    "area": "series,time [s],low,high\na,0,0,1\na,1,1,2\n",
    "bars": "time [s],y,below,above,words\n0,2,1,1,two\n1,3,1,1,three\n",
    "across": "series,time [s],y,foot\na,3,0,1\n",
    "boxes": "time [s],low,first quartile,median,third quartile,high\n0,0,1,2,3,4\n1,0,1,2,3,4\n",
    "line": "series,time [s],y\n<a> $b$,0,1\n<a> $b$,1,\n<a> $b$,2,\n",
    "rule": "\n",
    "segments": "series,part,time [s],y,words\na,0,0,0,first\na,0,1,1,second\n",
    "spans": "time [s],x end\n0,1\n",
    "text": "\n",
    "tiles": "time [s],x end,y,y end\n0,1,0,1\n",
}


def _chart(*marks: Drawn, **rest: object) -> Chart:
    def draw(panel: Panel) -> None:
        for mark in marks:
            mark(panel)
        panel.frame(x=Axis(label="time [s]", grid=True))

    return Chart(name="c", title="A <chart>", panels=[[draw]], legend="above", **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("margins", [None, (40, 8, 20, 30)], ids=["measured", "given"])
def test_every_mark_is_drawn_the_same_each_time(mark: str, margins: object) -> None:
    text, numbers = plots.with_numbers(_chart(MARKS[mark], margins=margins))
    root = ET.fromstring(text)
    assert root.get("aria-label") == "A <chart>" and "time [s]" in "".join(root.itertext())
    assert text == plots.svg(_chart(MARKS[mark], margins=margins)) and "nan" not in text
    assert numbers == TOLD[mark]


def test_a_phone_has_larger_words_and_turned_names() -> None:
    names = [(at, f"a name of {at} that is long") for at in range(6)]

    def draw(panel: Panel) -> None:
        panel.bars([Bar(at, 1.0, note="note") for at in range(6)])
        panel.text(0, 1, "above", inside="x")
        panel.frame(Axis(label="x", ticks=names), Axis(label="a label of many words that is broken"))

    wide = Chart(name="c", panels=[[draw, draw]], legend="own")
    (thin,) = [plots.phone(wide)]
    figure, panels = draw_of.figure(thin)
    assert [panel.x.turn for panel in panels] == [50, 50] and "\n" in panels[0].y.label
    assert figure.get_size_inches()[0] == pytest.approx(plots.WIDTH / 72)
    assert figure.get_size_inches()[1] == pytest.approx(2 * (wide.height + 0.35 + 0.8) + 0.5)
    assert not [text for text in panels[0].axes.texts if text.get_text() == "note"]
    (above,) = [text for text in panels[0].axes.texts if text.get_text() == "above"]
    assert above.get_fontsize() == pytest.approx(8 * plots.SCALE) and panels[0].title == " "


def test_numbers_that_are_not_finite_are_told() -> None:
    numbers = plots.with_numbers(_chart(lambda panel: panel.area([1, 2.5], [0, 1], [1, math.inf])))[1]
    assert numbers == "time [s],low,high\n1,0,1\n2.5,1,inf\n"


def _places(path: str) -> list[tuple[float, float]]:
    """Return the points of an SVG path of absolute starts and relative lines."""
    points: list[tuple[float, float]] = []
    for command, numbers in re.findall(r"([Ml])([^Mlz]*)", path):
        values = [float(one) for one in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", numbers)]
        for x, y in zip(values[::2], values[1::2], strict=True):
            points.append((x, y) if command == "M" else (points[-1][0] + x, points[-1][1] + y))
    return points


def test_a_long_line_is_where_its_points_are_to_its_end() -> None:
    from matplotlib import rc_context

    y = [math.sin(7 * at) * 10 ** (at % 5 - 2) for at in range(2000)]
    chart = _chart(lambda panel: panel.line(range(2000), y, plots.look(0)), margins=(40, 8, 20, 30))
    with rc_context(draw_of.style(plots.LIGHT, chart)):
        figure, _ = draw_of.figure(chart)
        figure.axes[0].autoscale_view()
        exact = figure.axes[0].transData.transform(list(enumerate(y))) / figure.dpi * 72
    told = [(x, 72 * chart.height - up) for x, up in exact.tolist()]
    line = ET.fromstring(plots.svg(chart))
    drawn = max((one.get("d", "") for one in line.iter() if one.tag.endswith("path")), key=len)
    places = _places(drawn)
    assert len(places) > 500 and drawn.count("M") == 1
    assert math.dist(places[0], told[0]) <= 0.15 and math.dist(places[-1], told[-1]) <= 0.15
    near = [min(math.dist(place, one) for one in told) for place in places]
    assert max(near) <= 0.15, "a point is drawn where none is"


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_files_by_their_suffix(tmp_path: pathlib.Path, suffix: str) -> None:
    for name in "ab":
        plots.save(_chart(*MARKS.values()), tmp_path / f"{name}{suffix}")
    data = (tmp_path / f"a{suffix}").read_bytes()
    assert data.startswith({".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix])
    assert data == (tmp_path / f"b{suffix}").read_bytes()


def test_a_file_that_cannot_be_drawn_or_written(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ArgumentError, match=r"x\.jpg: a picture ends in \.svg, \.png, \.pdf"):
        plots.save(_chart(), tmp_path / "x.jpg")
    with pytest.raises(FileSystemError):
        plots.save(_chart(), tmp_path / "none" / "x.svg")


def test_series_differ_by_more_than_their_colour() -> None:
    looks = [plots.look(number) for number in range(plots.SERIES)]
    for values in zip(*((look.colour, look.dash, look.marker, look.hatch) for look in looks), strict=True):
        assert len(set(values)) == plots.SERIES
    colours = plots.LIGHT.colours()
    assert len(set(colours)) == len(colours) == len(plots.DARK.colours())


def test_all_colours_of_a_chart_have_dark_ones() -> None:
    text = plots.svg_file(_chart(*MARKS.values()))
    ET.fromstring(text)
    drawn = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text.partition("</style>")[2]))
    assert drawn and drawn <= set(plots.LIGHT.colours())
    assert "prefers-color-scheme: dark" in text and theme.dark_style(".drawing") in text


def test_steps_and_distributions() -> None:
    assert plots.corners([0, 1, 2], [5, None]) == ([0, 1, 1, 2], [5, 5, None, None])
    assert plots.cumulative([1, 3, 1]) == ([1, 1, 3, 3], [0, 2 / 3, 2 / 3, 1]) and plots.cumulative([]) == ([], [])


# ---- pages -----------------------------------------------------------------------------------------------------------


def test_a_page_says_all_and_fetches_nothing() -> None:
    grid = page.Grid(
        columns=("name", page.Number("n")),
        rows=[("a_<b>", "1"), ("c", page.Cell(text="✖ FAILED", style="dn"))],
        note="a note",
    )
    found = page.Finding(title="slow & odd", evidence=["seen"], advice=["mend it"], weight="warning")
    drawing = plots.svg(_chart(*MARKS.values()))
    figures = [page.Figure(title="fig", drawing=drawing, caption="what")]
    section = page.Section(
        anchor="one",
        title="One <1>",
        sentences=["s & t"],
        facts=[("name", "value")],
        findings=[found],
        figures=figures,
        grids=[grid],
    )
    last = page.Section(anchor="two", title="Two", grids=[page.Grid(columns=("no row",), rows=[])])
    text = page.document(
        "T <t>",
        [section, last],
        lead=["first `code`"],
        none="No picture: none.",
        head="below",
        notices=[found],
        foot="by X.",
    )
    read = Page(text)
    assert read.problems == [] and read.data == [] and "script" not in read.elements
    assert read.of_class("plain") == [[["name", "n"], ["a_<b>", "1"], ["c", "✖ FAILED"]]]
    for words in (
        "T <t>",
        "first code",
        "fig",
        "below",
        "One <1>",
        "s & t",
        "value",
        "slow & odd",
        "→ mend it",
        "what",
        "a note",
        "by X.",
    ):
        assert words in read.text, words
    assert not any(words in read.text for words in ("No picture", "Two", "no row")), "nothing of what is not there"
    assert text.index("<figcaption>what") < text.index('id="one"'), "the first figure is the picture"
    assert "No picture: none." in page.document("T", [last], lead=["first"], none="No picture: none.")
    with pytest.raises(ValueError, match="begins with a sentence and a picture"):
        page.document("T", [last], lead=["first"])
    assert "prefers-color-scheme: dark" in read.raw and "@media print" in read.raw


# ---- one of each -----------------------------------------------------------------------------------------------------


def test_one_place_draws_and_one_makes_pages() -> None:
    """Nothing else imports the library of drawing or that of templates, and nothing else begins an HTML document."""
    found: dict[str, set[str]] = {"matplotlib": set(), "jinja2": set(), "plotly": set(), "<!DOCTYPE": set()}
    folders = ("mpiio_ext", "analytics", "delegates", "partitioning", "pioneer")
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*")):
        if path.suffix not in (".py", ".html", ".js"):
            continue
        text = path.read_text(encoding="utf-8")
        for word, places in found.items():
            pattern = word if word[0] == "<" else rf"^\s*(?:import|from) {word}\b"
            if re.search(pattern, text, re.MULTILINE):
                places.add(path.relative_to(ROOT).as_posix())
    own = {f"mpiio_ext/common/plots/{name}.py" for name in ("draw", "files", "panel")}
    assert found == {
        "matplotlib": own,
        "jinja2": {"mpiio_ext/common/page/__init__.py"},
        "plotly": set(),
        "<!DOCTYPE": {"mpiio_ext/common/page/document.html"},
    }


def test_describing_a_chart_or_a_page_imports_no_library() -> None:
    program = (
        "import sys; import mpiio_ext.common.page, mpiio_ext.common.plots; "
        "print([name for name in ('matplotlib', 'numpy', 'jinja2') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
