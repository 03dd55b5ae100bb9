"""Results that show themselves: text at a prompt, a table in a notebook, an Arrow table for everything else.

Guarantees. All forms are made of the same rows; PyArrow is imported for `Shown.table` only.
"""

from __future__ import annotations

import html
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mpiio_ext.common.units import digits_text

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a table that a notebook shows, at most.
MOST_SHOWN = 60


def _cell(value: object) -> str:
    return "" if value is None else digits_text(value, 6) if isinstance(value, float) else html.escape(str(value))


def html_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as a table of HTML, the names of the first one as its head."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in (rows[0] if rows else ()))
    body = "".join("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_of(
    lines: Sequence[str], rows: Sequence[Mapping[str, object]], count: int | None = None, rest: str = ".table()"
) -> str:
    """Return sentences, and the first rows as a table of HTML.

    Parameters
    ----------
    lines, rows : sentences, and facts row by row
    count : of all rows, where not all are given
    rest : what has all rows
    """
    more = (len(rows) if count is None else count) - min(len(rows), MOST_SHOWN)
    paragraphs = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    return f"{paragraphs}{html_table(rows[:MOST_SHOWN])}{f'<p>… {more:,} more rows: {rest}</p>' if more else ''}"


class Shown:
    """The findings of a tool."""

    __slots__ = ()

    @abstractmethod
    def lines(self) -> list[str]:
        """Return it in sentences."""

    @abstractmethod
    def rows(self) -> Sequence[Mapping[str, object]]:
        """Return it as rows of the same columns, whose names carry the units."""

    def table(self) -> pa.Table:
        """Return the rows as an Arrow table; ``.table().to_pandas()`` gives pandas' form."""
        import pyarrow as pa

        return pa.Table.from_pylist([dict(row) for row in self.rows()])

    def __repr__(self) -> str:
        """Return the sentences, behind the name of the class."""
        return "\n  ".join([f"{type(self).__name__}:", *self.lines()])

    def _repr_html_(self) -> str:
        """Return the sentences, and the first rows as a table."""
        return html_of(self.lines(), list(self.rows()))
