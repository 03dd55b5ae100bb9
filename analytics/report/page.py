"""The HTML of a report: sections of sentences, figures and tables in one file that fetches nothing.

The style is that of ``mpiio-ext report``. The page needs no script, but for ``--interactive``, which puts Plotly into
it once. Text from logs is escaped by the template engine; drawings come from this package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["Figure", "Grid", "Section", "cell_words", "grid", "render"]

#: Rows of a table on a page; the whole table comes from the command line.
MOST_ROWS = 25


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing, as SVG or as HTML of Plotly, and what is seen in it."""

    title: str
    drawing: str
    caption: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of words; `numbers` tells which columns are aligned to the right."""

    columns: Sequence[str]
    numbers: Sequence[bool]
    rows: Sequence[Sequence[str]]
    note: str = ""
    folded: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    anchor : str
        Name within the page.
    title : str
    facts : sequence of (str, str)
        Names and values.
    sentences : sequence of str
        Paragraphs.
    findings : sequence of mapping
        Of a diagnosis: ``weight`` (warning or note), ``title``, ``evidence`` and ``advice``.
    figures : sequence of Figure
    grids : sequence of Grid
    """

    anchor: str
    title: str
    facts: Sequence[tuple[str, str]] = ()
    sentences: Sequence[str] = ()
    findings: Sequence[dict[str, Any]] = ()
    figures: Sequence[Figure] = ()
    grids: Sequence[Grid] = ()


def cell_words(value: Any) -> str:
    """Return a value of a table in words; what is not known is a dash."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e5 or value == round(value) else f"{value:,.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(cell_words(item) for item in value)
    return str(value)


def grid(table: Any, *, most: int = MOST_ROWS, folded: bool = True) -> Grid:
    """Return the first rows of an Arrow table as words."""
    import pyarrow.types as types

    numbers = [types.is_integer(field.type) or types.is_floating(field.type) for field in table.schema]
    rows = [[cell_words(value) for value in row.values()] for row in table.slice(0, most).to_pylist()]
    left = table.num_rows - len(rows)
    return Grid(columns=[name.replace("_", " ") for name in table.column_names], numbers=numbers, rows=rows,
                note=f"{left:,} more rows are not shown." if left > 0 else "", folded=folded)  # fmt: skip


def render(title: str, head: str, sections: Sequence[Section], *, script: str = "") -> str:
    """Return the page.

    Parameters
    ----------
    title, head : str
        Heading, and the line below it.
    sections : sequence of Section
    script : str
        Plotly's source, for interactive figures.
    """
    import jinja2

    import mpiio_ext
    import mpiio_ext.report

    shared = Path(mpiio_ext.report.__file__).parent / "templates"  # head, foot and style of every page
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([Path(__file__).parent / "templates", shared]), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    style = (shared / "style.css").read_text(encoding="utf-8")
    return environment.get_template("analytics.html").render(
        title=title, head=head, sections=sections, style=style, script=script, version=mpiio_ext.__version__
    )
