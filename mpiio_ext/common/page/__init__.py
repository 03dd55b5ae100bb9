"""Pages: one self-contained HTML file each, with one style for light, dark, small screens and paper.

Problem. Results of every command are shown on pages that can be sent, opened and printed anywhere.

Algorithm. A page begins with a title, a sentence and a picture, the first figure of its sections; sections of
sentences, facts, findings, figures and tables follow (`document`). A section or table without content does not appear.
A chart becomes a figure by `drawn`: its finding as the title, also as wide as a phone, and its numbers as CSV. Of a
page of more than `MOST_BYTES` the largest forms for phones are left out, but that of the picture: there a drawing
scrolls.

Guarantees. The file contains its style and its drawings, has no script, and loads nothing. All text is escaped;
drawings come from :mod:`mpiio_ext.common.plots`.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

    from mpiio_ext.common.plots import Chart

_FOLDER = Path(__file__).parent
#: Bytes of data from which on they are compressed: a page shall stay below 1 MB.
_MOST_PLAIN = 16_000
MOST_BYTES = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing and its message.

    Attributes
    ----------
    title, caption : what the drawing says, and how it is read.
    drawing : an SVG of :mod:`mpiio_ext.common.plots`.
    narrow : the same for a phone, as wide as that; "": the drawing scrolls there.
    name, data : of the file that the reader can save, with its ending, and what is in it; "": nothing.
    """

    title: str = ""
    drawing: str
    caption: str = ""
    narrow: str = ""
    name: str = ""
    data: str = ""


def drawn(chart: Chart, *, caption: str = "", narrow: Chart | bool = True) -> Figure:
    """Return a chart as a figure: its title is the message, and its numbers are beside it.

    Parameters
    ----------
    caption : how it is read.
    narrow : whether there is a form for a phone, or which; without one the drawing scrolls there.
    """
    from mpiio_ext.common import plots

    form = plots.phone(chart) if narrow is True else narrow
    drawing, data = plots.with_numbers(chart)
    return Figure(
        title=chart.title,
        caption=caption,
        drawing=drawing,
        narrow=plots.svg(form) if form else "",
        name=f"{chart.name}.csv",
        data=data,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Words of a table with a style: ``up`` (good), ``dn`` (bad), ``ours``, ``best``, or "" for plain."""

    text: str
    style: str


class Number(str):
    """The name of a column of numbers, which are aligned to the right."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of words.

    Attributes
    ----------
    title : its heading.
    columns : sequence of str
        Their names; a `Number` is that of a column of numbers.
    rows : sequence of sequences of str or Cell
    note : a line below it.
    folded : the reader opens it.
    """

    title: str = ""
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    note: str = ""
    folded: bool = False

    @property
    def numbers(self) -> list[bool]:
        """Return which columns have numbers."""
        return [isinstance(name, Number) for name in self.columns]

    @property
    def cards(self) -> bool:
        """Return whether a narrow page shows a table as a list of its rows: if many columns, or several of words."""
        return len(self.columns) > 3 or (len(self.columns) == 3 and not any(self.numbers))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding: a title, its evidence, and an advice; a ``warning``, a ``note`` or ``good``.

    `links` are pairs of the anchor of a `Fold` of the page, and what it is called.
    """

    title: str
    evidence: Sequence[str] = ()
    advice: Sequence[str] = ()
    weight: str = "note"
    links: Sequence[Sequence[str]] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A part that the reader opens, with words `beside` its title: sentences, facts, tables; `body` is our own HTML."""

    anchor: str
    title: str
    beside: str = ""
    body: str = ""
    sentences: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    grids: Sequence[Grid] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page, in the order of its fields.

    Attributes
    ----------
    anchor : name within the page; letters, digits and hyphens.
    title : heading, and what the contents at the top say.
    sentences : paragraphs.
    facts : sequence of (str, str)
        Names and values.
    findings : sequence of Finding
    figures : sequence of Figure
    grids : sequence of Grid
    folds : sequence of Fold
    """

    anchor: str
    title: str
    sentences: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    findings: Sequence[Finding] = ()
    figures: Sequence[Figure] = ()
    grids: Sequence[Grid] = ()
    folds: Sequence[Fold] = ()

    def _shown(self, picture: Figure | None) -> Section:
        """Return the section without the figure that is the picture of its page, and without tables of no row."""
        figures = [one for one in self.figures if one is not picture]
        return dataclasses.replace(self, figures=figures, grids=[one for one in self.grids if one.rows])

    @property
    def _empty(self) -> bool:
        return not any(getattr(self, field.name) for field in dataclasses.fields(self)[2:])


def _breakable(text: str) -> Markup:
    """Return a name in HTML that may be broken behind "_" and before "+"."""
    from markupsafe import Markup, escape

    return Markup(str(escape(text)).replace("_", "_<wbr>").replace("+", "<wbr>+"))


def _coded(text: str) -> Markup:
    """Return text in HTML whose parts between backticks are code."""
    from markupsafe import Markup, escape

    parts = [str(escape(part)) for part in text.split("`")]
    whole = len(parts) % 2 == 1  # else the last backtick has no partner
    return Markup(
        "".join(
            f"<code>{part}</code>" if at % 2 and (whole or at < len(parts) - 1) else part
            for at, part in enumerate(parts)
        )
    )


def _data(values: object) -> Markup:
    """Return JSON that may stand in a script element."""
    from markupsafe import Markup

    return Markup(json.dumps(values, separators=(",", ":")).replace("<", "\\u003c"))


def _saved(data: str, name: str) -> Markup:
    """Return the attributes of a link that saves data in a file; long data are compressed."""
    from markupsafe import Markup, escape

    kind = "application/json" if name.endswith(".json") else "text/csv"
    link = f"data:{kind};charset=utf-8,{quote(data, safe='!$()*,-./:;=?@_~')}"
    if len(data) > _MOST_PLAIN:
        packed = gzip.compress(data.encode(), mtime=0)
        name, link = f"{name}.gz", f"data:application/gzip;base64,{b64encode(packed).decode()}"
    return Markup(f'download="{escape(name)}" href="{escape(link)}"')


@cache
def _template() -> jinja2.Template:
    """Return the template of all pages."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(breakable=_breakable, coded=_coded, data=_data, saved=_saved)
    return environment.get_template("document.html")


def document(
    title: str,
    sections: Sequence[Section],
    *,
    lead: Sequence[str],
    none: str = "",
    head: str = "",
    notices: Sequence[Finding] = (),
    foot: str = "",
    data: object = None,
) -> str:
    """Return a page of sections.

    Parameters
    ----------
    title : heading.
    sections : sequence of Section
        The first figure of them is the picture of the page; one without content does not appear.
    lead : what the page says before all else: sentences, where `code` stands between backticks.
    none : why the page has no picture, if no section has a figure.
    head : what the page is about, below the picture.
    notices : what stands above all sections.
    foot : what stands below them, before the version.
    data : what the page was made of, for programs that read it; None: nothing.

    Raises
    ------
    ValueError
        The page would begin without a sentence or a picture.
    """
    from importlib.metadata import version

    from mpiio_ext.common.plots.theme import dark_style

    while True:
        figures = [one for part in sections for one in part.figures]
        picture = figures[0] if figures else None
        if not any(lead) or not (picture or none):
            raise ValueError(f"{title}: a page begins with a sentence and a picture")
        shown = [part._shown(picture) for part in sections]
        content = {
            "title": title,
            "head": head,
            "sections": [part for part in shown if not part._empty],
            "notices": notices,
            "foot": foot,
            "lead": [text for text in lead if text],
            "picture": picture,
            "without": none,
            "data": data,
            "style": (_FOLDER / "style.css").read_text(encoding="utf-8") + dark_style(".drawing"),
            "version": version("mpiio_ext"),
        }
        text = _template().render(content)
        largest = max(figures[1:], key=lambda one: len(one.narrow), default=None)
        if len(text.encode("utf-8", "replace")) <= MOST_BYTES or largest is None or not largest.narrow:
            return text
        lighter = dataclasses.replace(largest, narrow="")
        sections = [
            dataclasses.replace(part, figures=[lighter if one is largest else one for one in part.figures])
            for part in sections
        ]
