"""A chart as CSV: the numbers that are drawn, for drawing or checking them.

Algorithm. A row for each point, bar, box or rectangle, in the order in which they are drawn. What the axes call a place
is recognized by its name; seconds since 1970 are printed as times (UTC). Columns that are empty everywhere are left
out. If the drawing shows only a form of the numbers, the chart has a table of its own.

Guarantees. Numbers are whole, or have six digits, more than is seen of what was drawn. Texts and reference lines, which
are no measurement, are not in it.
"""

from __future__ import annotations

import csv as writer
import io
from collections.abc import Sequence

from mpiio_ext.common.plots.chart import Axis, digits
from mpiio_ext.common.plots.panel import Panel, Row

#: Columns, in their order; those of the axes are called by their labels.
_COLUMNS = ("panel", "series", "part", "x", "x end", "y", "y end", "foot", "below", "above", "low", "first quartile")
_REST = ("median", "third quartile", "high", "words")


def _label(axes: Sequence[Axis], name: str) -> str:
    """Return the label that all these axes have, or else the name."""
    labels = {" ".join(axis.label.split()) for axis in axes}
    return labels.pop() or name if len(labels) == 1 else name


def _cell(value: object) -> object:
    return "" if value is None or value != value else digits(value) if isinstance(value, float) else value


def text(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as CSV."""
    out = io.StringIO()
    lines = writer.writer(out, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def of_panels(panels: Sequence[Panel]) -> str:
    """Return the numbers that are drawn on panels as CSV: a line of names, then a row for each thing."""
    rows: list[Row] = []
    for panel in panels:
        title = panel.title or f"{panel.y.label or 'y'} by {panel.x.label or 'x'}"
        rows += [{"panel": " ".join(title.split()) if len(panels) > 1 else "", **row} for row in panel.rows()]
    kept = [name for name in (*_COLUMNS, *_REST) if any(row.get(name, "") not in ("", None) for row in rows)]
    names = {"x": _label([panel.x for panel in panels], "x"), "y": _label([panel.y for panel in panels], "y")}
    return text([names.get(name, name) for name in kept], [[row.get(name, "") for name in kept] for row in rows])
