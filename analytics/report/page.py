"""The HTML of a report: sections of sentences, figures and tables in one file that fetches nothing.

The style is that of ``mpiio-ext report``. The page needs no script, but for ``--interactive``, which puts Plotly into
it once. Text from logs is escaped by the template engine; drawings come from this package.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
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
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, (list, tuple)):
        return ", ".join(cell_words(item) for item in value)
    return str(value)


@functools.cache
def _forms() -> dict[str, str]:
    """Return how columns of the schema are written: ``time`` (a date), ``plain`` (numbers that name something)."""
    from mpiio_ext.analytics.tables.schema import TABLES

    columns = [column for table in TABLES.values() for column in table.columns]
    times = {column.name: "time" for column in columns if column.unit == "s since 1970 UTC"}
    return times | {column.name: "plain" for column in columns if column.type.startswith("int") and not column.unit}


def _formed(values: list[Any], form: str) -> list[str]:
    if form == "plain":
        return [cell_words(None) if value is None else str(value) for value in values]
    if form == "time":
        zone = datetime.timezone.utc
        values = [datetime.datetime.fromtimestamp(value, zone) if value is not None and abs(value) < 2e11 else value
                  for value in values]  # fmt: skip
    return [cell_words(value) for value in values]


def grid(table: Any, *, most: int = MOST_ROWS, folded: bool = True) -> Grid:
    """Return the first rows of an Arrow table as words: counts with separators, IDs plain, times as dates (UTC)."""
    import pyarrow.types as types

    numbers = [types.is_integer(field.type) or types.is_floating(field.type) for field in table.schema]
    forms = ["" if not number else _forms().get(name, "")
             for name, number in zip(table.column_names, numbers, strict=True)]  # fmt: skip
    shown = table.slice(0, most)
    columns = [_formed(column.to_pylist(), form) for column, form in zip(shown.columns, forms, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    left = table.num_rows - shown.num_rows
    names = [name.replace("_", " ") + (" [UTC]" if form == "time" else "")
             for name, form in zip(table.column_names, forms, strict=True)]  # fmt: skip
    return Grid(columns=names, numbers=numbers, rows=rows,
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
