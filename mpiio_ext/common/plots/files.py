"""A chart as SVG, alone or in a page, and as a file: SVG, PNG or PDF by its suffix.

Text stays text: it can be searched and copied, and no outlines of letters fill the file. The same chart gives the same
bytes.
"""

from __future__ import annotations

import html
import io
import itertools
import operator
import re
from pathlib import Path
from typing import Any

from mpiio_ext.common.files import replacing
from mpiio_ext.common.plots import data, draw
from mpiio_ext.common.plots.chart import Chart
from mpiio_ext.common.plots.panel import Panel
from mpiio_ext.common.plots.theme import LIGHT, Theme, dark_style
from mpiio_ext.errors import ArgumentError

SUFFIXES = (".svg", ".png", ".pdf")
_REFERENCE = re.compile(r'(?:url\(#|href="#)([^)"]+)')
_IDENTIFIER = re.compile(r' id="([^"]+)"')
_HEAD = re.compile(r"^.*?(?=<svg )|<metadata>.*?</metadata>", re.DOTALL)
#: Places, of which tenths of a point are enough: more digits are most of the bytes of a path.
_PLACES = re.compile(r'(?<= d=")[^"]+|(?<= [xy]=")[^"]+')
_TENTHS = re.compile(r"(\.\d)\d+")
#: Parts without effect, or that the whole has once: the font, turns by nothing, groups of no name and no style.
_FONT = "'DejaVu Sans', sans-serif"
_NOTHING = re.compile(rf' transform="rotate\(-?0 [^"]*"|font-family: {_FONT}; ')
_GROUP = re.compile(r"\s*<(/?)g( [^>]*)?>")
_BETWEEN = re.compile(r"\s+(?=[MLCQz])|(?<=[MLCQ])\s+|\s+$")
_LINE = re.compile(r"M(-?[\d.]+ -?[\d.]+(?:L-?[\d.]+ -?[\d.]+)+)")
#: Between two numbers no blank is needed before a sign, nor before a point where the first number has one.
_JOINT = re.compile(r" (?=-)|(?<=\.\d) (?=\.)")
_SHAPE = re.compile(r"<(?:use|path) [^<>]*?((?: clip-path=\"[^\"]+\")? style=\"[^\"]+\")[^<>]*/>")


def _tidy(text: str, name: str) -> str:
    """Return the SVG element alone, without names that nothing uses, and with those that are used made unique.

    Several charts stand on one page, and Matplotlib calls the first text of each one ``text_1``.
    """
    text = _HEAD.sub("", text)
    used = set(_REFERENCE.findall(text))

    def renamed(found: re.Match[str]) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    text = _IDENTIFIER.sub(renamed, text)
    text = _REFERENCE.sub(lambda found: found[0].replace(f"#{found[1]}", f"#{name}-{found[1]}"), text)
    text = _grouped(_NOTHING.sub("", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)))
    text = _PLACES.sub(lambda found: _steps(_BETWEEN.sub("", _TENTHS.sub(r"\1", found[0]))), text)
    return _alike(re.sub(r"\n\s*", "\n", text).strip())


def _steps(path: str) -> str:
    """Return a path of straight lines by the steps from point to point, which take half the bytes of their places.

    Steps are differences of rounded places, so that no error grows along a line.
    """

    def short(value: int) -> str:
        return f"{value / 10:.1f}".removesuffix(".0").replace("0.", ".", 1 if abs(value) < 10 else 0)

    def line(found: re.Match[str]) -> str:
        places = [round(float(one) * 10) for one in re.split("[ L]", found[1])]
        steps = "".join(map(" {}".format, map(short, map(operator.sub, places[2:], places[:-2]))))
        return f"M{short(places[0])} {short(places[1])}l{_JOINT.sub('', steps[1:])}"

    return _LINE.sub(line, path)


def _alike(text: str) -> str:
    """Return an SVG in which a group gives the look of the consecutive shapes inside it once."""
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


def _drawn(chart: Chart) -> tuple[str, list[Panel]]:
    """Return a chart as an SVG element, which is also a file of its own, and its panels."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with matplotlib.rc_context(draw.style(LIGHT, chart)):
        out = io.StringIO()
        figure, panels = draw.figure(chart)
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    head = f'<svg font-family="{_FONT}" role="img" aria-label="{html.escape(chart.title or chart.name)}" '
    return _tidy(out.getvalue(), chart.name).replace("<svg ", head, 1), panels


def svg(chart: Chart) -> str:
    """Return a chart as an SVG element."""
    return _drawn(chart)[0]


def with_numbers(chart: Chart) -> tuple[str, str]:
    """Return a chart as an SVG element, and its numbers as CSV."""
    text, panels = _drawn(chart)
    return text, data.of_panels(panels) if chart.table is None else data.text(*chart.table)


def svg_file(chart: Chart) -> str:
    """Return a chart as an SVG file that is dark where the reader prefers that."""
    head, _, rest = svg(chart).partition(">")
    return head.replace("<svg ", '<svg class="drawing" ', 1) + (
        f">\n<style>\n{dark_style('.drawing')}\n</style>{rest}\n"
    )


def _printed(chart: Chart, kind: str, theme: Theme, dots_per_inch: int) -> bytes:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    out = io.BytesIO()
    with matplotlib.rc_context(draw.style(theme, chart)):
        figure, _ = draw.figure(chart, theme)
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
    content = svg_file(chart).encode() if kind == "svg" else _printed(chart, kind, LIGHT, dots_per_inch)
    with replacing(path, ending=path.suffix) as part:
        part.write_bytes(content)
