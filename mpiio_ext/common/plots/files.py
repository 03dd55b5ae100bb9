"""A chart as SVG, alone or in a page, and as a file: SVG, PNG or PDF by its suffix.

Text stays text: it can be searched and copied, and no outlines of letters fill the file. The same chart gives the same
bytes. An interactive SVG carries what its points are (`data-marks`), which `interactive.js` in the page shows.
"""

from __future__ import annotations

import html
import io
import itertools
import json
import operator
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.files import replacing
from mpiio_ext.common.plots import draw
from mpiio_ext.common.plots.chart import Axis, Bars, Chart, Line, Panel, Segments
from mpiio_ext.common.plots.theme import LIGHT, Theme, dark_style
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".pdf")
_REFERENCE = re.compile(r'(?:url\(#|href="#)([^)"]+)')
_IDENTIFIER = re.compile(r' id="([^"]+)"')
_HEAD = re.compile(r"^.*?(?=<svg )|<metadata>.*?</metadata>", re.DOTALL)
#: Places, of which tenths of a point are enough, and hundredths to zoom: more digits are most of the bytes of a path.
_PLACES = re.compile(r'(?<= d=")[^"]+|(?<= [xy]=")[^"]+')
_TENTHS, _HUNDREDTHS = (re.compile(rf"(\.\d{{{digits}}})\d+") for digits in (1, 2))
#: What says nothing, or what the whole says once: the font, turns by nothing, groups of no name and no style.
_FONT = "'DejaVu Sans', sans-serif"
_NOTHING = re.compile(rf' transform="rotate\(-?0 [^"]*"|font-family: {_FONT}; ')
_GROUP = re.compile(r"\s*<(/?)g( [^>]*)?>")
_BETWEEN = re.compile(r"\s+(?=[MLCQz])|(?<=[MLCQ])\s+|\s+$")
_LINE = re.compile(r"M(-?[\d.]+ -?[\d.]+(?:L-?[\d.]+ -?[\d.]+)+)")
#: Between two numbers no blank is needed before a sign, nor before a point where the first number has one.
_JOINT = re.compile(r" (?=-)|(?<=\.\d) (?=\.)|(?<=\.\d\d) (?=\.)")
_SHAPE = re.compile(r"<(?:use|path) [^<>]*?((?: clip-path=\"[^\"]+\")? style=\"[^\"]+\")[^<>]*/>")
#: Points of an interactive chart that can be pointed at: more would be most of the page.
_MOST_POINTS = 5000


def _tidy(text: str, name: str, *, interactive: bool) -> str:
    """Return the SVG element alone, without names that nothing uses, and with those that are used made unique.

    Several charts stand on one page, and Matplotlib calls the first text of each one ``text_1``.
    """
    text = _HEAD.sub("", text)
    used = set(_REFERENCE.findall(text))

    def renamed(found: re.Match[str]) -> str:
        own = found[1].startswith((draw.SERIES_ID, "key-"))
        if own:
            return f' class="{found[1]}"' if interactive else ""
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    text = _IDENTIFIER.sub(renamed, text)
    text = _REFERENCE.sub(lambda found: found[0].replace(f"#{found[1]}", f"#{name}-{found[1]}"), text)
    text = _grouped(_NOTHING.sub("", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)))
    digits = _HUNDREDTHS if interactive else _TENTHS
    text = _PLACES.sub(lambda found: _steps(_BETWEEN.sub("", digits.sub(r"\1", found[0]))), text)
    return _alike(re.sub(r"\n\s*", "\n", text).strip())


def _steps(path: str) -> str:
    """Return a path of straight lines by the steps from point to point, which take half the bytes of their places.

    Steps are differences of rounded places, so that no error grows along a line.
    """

    def short(value: int) -> str:
        return f"{value / 100:.2f}".rstrip("0").rstrip(".").replace("0.", ".", 1 if abs(value) < 100 else 0)

    def line(found: re.Match[str]) -> str:
        places = [round(float(one) * 100) for one in re.split("[ L]", found[1])]
        steps = "".join(map(" {}".format, map(short, map(operator.sub, places[2:], places[:-2]))))
        return f"M{short(places[0])} {short(places[1])}l{_JOINT.sub('', steps[1:])}"

    return _LINE.sub(line, path)


def _alike(text: str) -> str:
    """Return an SVG where the look of shapes that follow one another stands once, at a group of them."""
    out: list[str] = []
    for look, lines in itertools.groupby(text.split("\n"), _look):
        shapes = list(lines)
        if look and len(shapes) > 1:
            shapes = [f"<g{look}>", *(one.replace(look, "") for one in shapes), "</g>"]
        out.extend(shapes)
    return "\n".join(out)


def _look(line: str) -> str:
    """Return the style, and the clip before it, of a shape that is a line of an SVG, or no text for another line."""
    found = _SHAPE.fullmatch(line)
    return found[1] if found else ""


def _grouped(text: str) -> str:
    """Return an SVG without its groups of no name and no style."""
    kept: list[bool] = []

    def one(found: re.Match[str]) -> str:
        if not found[1]:
            kept.append(bool(found[2]))
            return found[0] if found[2] else ""
        return found[0] if kept.pop() else ""

    return _GROUP.sub(one, text)


def _told(panel: Panel, mark: Bars | Line | Segments) -> list[tuple[float, float, str]]:
    """Return the points of a mark in units of the axes, and what each one is."""

    def words(x: float, y: float) -> str:
        def one(value: float, axis: Axis) -> str:
            named = [text for place, text in axis.ticks or () if text and abs(place - value) < reach]
            return named[0] if named else axis.form(value) if axis.form else f"{value:,.6g}"

        told = [
            f"{axis.label}: {one(value, axis)}" if axis.label else one(value, axis)
            for value, axis in ((x, panel.x), (y, panel.y))
        ]
        return "\n".join([*([mark.name] if mark.name else []), *told])

    reach = 0.5 if isinstance(mark, Bars) else 1e-9  # bars of several series stand around their place
    if isinstance(mark, Segments):
        return [
            (x, y, f"{mark.name}\n{text}")
            for line, texts in zip(mark.lines, mark.words, strict=False)
            for (x, y), text in zip(line, texts, strict=False)
        ]
    if isinstance(mark, Line):
        pairs = [(x, y) for x, y in zip(mark.x, mark.y, strict=True) if y is not None and y == y]
        told = mark.words if len(mark.words) == len(pairs) else [words(x, y) for x, y in pairs]
        return [(x, y, text) for (x, y), text in zip(pairs, told, strict=True)]
    feet = [mark.foot] * len(mark.at) if isinstance(mark.foot, (int, float)) else mark.foot
    ends = [
        (foot + value, at) if mark.across else (at, foot + value)
        for at, value, foot in zip(mark.at, mark.values, feet, strict=True)
    ]
    return [(x, y, words(x, y)) for x, y in ends]


def _points(chart: Chart, figure: Figure, axes: list[Axes]) -> list[list[Any]]:
    """Return [x, y, series, words] of every point, in points of the SVG."""
    names, out = draw.series(chart), []
    panels = [panel for row in chart.panels for panel in row if panel is not None]
    for panel, one in zip(panels, axes, strict=True):
        for mark in panel.marks:
            if not isinstance(mark, (Bars, Line, Segments)):
                continue
            number = names.index(mark.name) if mark.name else -1
            for x, y, words in _told(panel, mark):
                across, up = one.transData.transform((x, y)) / figure.dpi * 72
                out.append([round(float(across), 1), round(72 * chart.height - float(up), 1), number, words])
    step = -(-len(out) // _MOST_POINTS) or 1
    return out[::step]


def svg(chart: Chart, *, interactive: bool = False) -> str:
    """Return a chart as an SVG element, which is also a file of its own.

    Parameters
    ----------
    interactive : with what its points are and which parts are of which series, for the script of `script`.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with matplotlib.rc_context(draw.style(LIGHT, chart)):
        figure = draw.figure(chart)
        out = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        points = _points(chart, figure, figure.axes) if interactive else []
    head = f'<svg font-family="{_FONT}" role="img" aria-label="{html.escape(chart.title or chart.name)}" '
    if interactive:
        head += f'data-marks="{html.escape(json.dumps(points, separators=(",", ":")))}" '
    return _tidy(out.getvalue(), chart.name, interactive=interactive).replace("<svg ", head, 1)


def svg_file(chart: Chart) -> str:
    """Return a chart as an SVG file that is dark where the reader prefers that."""
    head, _, rest = svg(chart).partition(">")
    return head.replace("<svg ", '<svg class="drawing" ', 1) + (
        f">\n<style>\n{dark_style('.drawing')}\n</style>{rest}\n"
    )


def script() -> str:
    """Return the script of interactive charts; it fetches nothing."""
    return Path(__file__).with_name("interactive.js").read_text(encoding="utf-8")


def _printed(chart: Chart, kind: str, theme: Theme, dots_per_inch: int) -> bytes:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    out = io.BytesIO()
    with matplotlib.rc_context(draw.style(theme, chart)):
        figure = draw.figure(chart, theme)
        FigureCanvasAgg(figure)
        none = {"Software": None} if kind == "png" else {"CreationDate": None, "Creator": None, "Producer": None}
        figure.savefig(out, format=kind, dpi=dots_per_inch, metadata=none)
    return out.getvalue()


def png(chart: Chart, theme: Theme = LIGHT, *, dots_per_inch: int = 144) -> bytes:
    """Return a chart as PNG in the colours of a theme."""
    return _printed(chart, "png", theme, dots_per_inch)


def check_suffix(path: Path) -> None:
    """Raise an ArgumentError for a file that is no picture by its name."""
    if path.suffix.lower() not in SUFFIXES:
        raise ArgumentError(f"{path}: a picture ends in {', '.join(SUFFIXES)}")


def save(chart: Chart, path: Path, *, dots_per_inch: int = 150) -> None:
    """Write a chart as SVG, PNG or PDF by the suffix of the file, whole or not at all.

    Raises
    ------
    ArgumentError
        The suffix is another one.
    FileSystemError
        The file cannot be written.
    """
    check_suffix(path)
    kind = path.suffix.lower()[1:]
    data = svg_file(chart).encode() if kind == "svg" else _printed(chart, kind, LIGHT, dots_per_inch)
    with replacing(path, ending=path.suffix) as part:
        part.write_bytes(data)
