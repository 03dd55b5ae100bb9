"""Pictures of file domains: the matrix of servers and stripe rows, as a figure and as text.

The form is that of Figure 2 of the SDCI project's page (docs/explanation/file-domains.md). Columns are I/O servers,
rows are stripe rows (row r has stripes r * S to r * S + S - 1). So the file runs from left to right and then down, and
one column shows the stripes of one server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from mpiio_ext.common.plots import Axis, Chart, Lettering, Look, Panel, save
from mpiio_ext.errors import ArgumentError
from mpiio_ext.partitioning._plan import Plan

#: A picture of more stripes than this has no readable cell.
MAX_STRIPES = 4096

#: Colours of the aggregators; when there are more than colours, the next round of them is hatched.
COLOURS = ("series4", "series5", "series2", "series7", "series3", "series1", "series0")
HATCHES = ("", "///", "...", "\\\\\\", "xxx")
#: The same order for terminals.
TERMINAL_COLOURS = ("cyan", "yellow", "green", "bright_yellow", "magenta", "red", "blue")

_INSET = 0.04  # gap around a cell, as a fraction of it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """The content of one stripe of the matrix: parts as (start, end, aggregator), fractions of the stripe."""

    stripe: int
    row: int
    server: int
    parts: tuple[tuple[float, float, int], ...]


def _cells(plan: Plan) -> list[_Cell]:
    """Return the stripes that the region touches, in file order."""
    geometry = plan.geometry
    if geometry.stripes > MAX_STRIPES:
        raise ArgumentError(f"{geometry.stripes} stripes cannot be drawn (at most {MAX_STRIPES}): choose a part")
    if geometry.aggregators > MAX_STRIPES or geometry.servers > MAX_STRIPES:
        raise ArgumentError(f"more than {MAX_STRIPES} aggregators or servers cannot be drawn")
    parts: dict[int, list[tuple[float, float, int]]] = {}
    size = geometry.stripe_size_bytes
    for offset, length, aggregator, stripe, _server in plan.pieces().tolist():
        start = (offset - stripe * size) / size
        parts.setdefault(stripe, []).append((start, start + length / size, aggregator))
    return [
        _Cell(stripe=s, row=s // geometry.servers, server=s % geometry.servers, parts=tuple(p))
        for s, p in sorted(parts.items())
    ]


def _group_starts(plan: Plan) -> list[int]:
    """Return the first stripe of every sub-region but the first."""
    return [int(o) // plan.geometry.stripe_size_bytes for o in plan.sub_regions()["offset"][1:]]


def _title(plan: Plan) -> str:
    return plan.method.replace("_", "-")


def _facts(plan: Plan) -> str:
    """Return one line below a drawing: the adjustments, and where owners meet."""
    changes = plan.owner_changes()
    geometry = plan.geometry
    span = f"{changes.min()}" if changes.min() == changes.max() else f"{changes.min()} to {changes.max()}"
    used = plan.aggregators_used
    adjusted = f"{used} of {geometry.aggregators} aggregators" if used < geometry.aggregators else f"{used} aggregators"
    return f"{adjusted}; changes of owner on a server: {span}"


# ---- figure ----------------------------------------------------------------------------------------------------------


def draw_figure(plans: Sequence[Plan], path: Path) -> None:
    """Draw plans side by side into a file; the suffix (.svg, .png, .pdf) chooses the format.

    Every stripe is a cell, coloured and labelled by its aggregator, with its index in the file in the corner. Bytes
    outside the region are grey. A heavy bar between two cells of a column, or inside a cell, marks a change of owner on
    that server. Dashed lines part the sub-regions of group-cyclic.

    Parameters
    ----------
    plans : at least one; usually the same geometry under several methods.
    path : file to write.

    Raises
    ------
    ArgumentError
        More than `MAX_STRIPES` stripes, or a format that matplotlib does not know.
    FileSystemError
        The file cannot be written.
    """
    if not path.suffix:
        raise ArgumentError(f"cannot draw {path}: give the file a suffix, as .svg, .png or .pdf")
    cells = [_cells(plan) for plan in plans]
    rows = max((c[-1].row - c[0].row + 1 for c in cells if c), default=1)
    columns = max(plan.geometry.servers for plan in plans)
    cell = min(0.95, 18.0 / (columns * len(plans))), min(0.42, 24.0 / rows)
    width = max(cell[0] * columns + 0.9, 3.3)
    panels = [partial(_draw, plan, found, *cell) for plan, found in zip(plans, cells, strict=True)]
    try:
        save(Chart(name="domains", panels=[panels], width=width * len(plans), height=cell[1] * rows + 1.7), path)
    except ArgumentError as error:
        raise ArgumentError(f"cannot draw {error}") from error


def _draw(plan: Plan, cells: list[_Cell], cell_width: float, cell_height: float, panel: Panel) -> None:
    """Draw one plan; cell_width and cell_height in inches decide which labels fit."""
    servers = plan.geometry.servers
    top = cells[0].row if cells else 0
    bottom = cells[-1].row + 1 if cells else 1
    columns = range(0, servers, max(1, round(0.35 / cell_width)))
    rows = range(top, bottom, max(1, round(0.2 / cell_height)))
    _stripes(panel, cells, cell_width, cell_height)
    _changes(panel, plan)
    _sub_regions(panel, plan)
    look = Lettering(size=7, colour="ink")
    panel.text(1, 1, "file order →", look, inside="axes", shift=(0, 15), align=("right", "bottom"))
    names, numbers = [(s + 0.5, f"S{s}") for s in columns], [(r + 0.5, str(r)) for r in rows]
    panel.frame(
        Axis(label=_facts(plan), low=-0.08, high=servers + 0.08, above=True, line=False, ticks=names),
        Axis(label="stripe row", low=bottom + 0.15, high=top - 0.15, line=False, ticks=numbers),
        _title(plan),
        room=28,
    )


def _stripes(panel: Panel, cells: list[_Cell], cell_width: float, cell_height: float) -> None:
    """Draw the stripes: grey, then the owners' parts from left to right, then labels where they fit.

    Parts of one look are one mark: thousands of single ones would take minutes.
    """
    width = 1 - 2 * _INSET
    size = min(9.0, 30.0 * cell_height, 14.0 * cell_width)
    looks: dict[Look, list[tuple[float, float, float, float]]] = {}
    owned, numbered = Lettering(size=size, colour="ink", boxed=True), Lettering(size=7, colour="ink", boxed=True)
    outside, texts = [], list[tuple[float, float, str, Lettering, tuple[str, str]]]()
    for cell in cells:
        left, low = cell.server + _INSET, cell.row + _INSET
        if sum(end - start for start, end, _ in cell.parts) < 1:
            outside.append((left, low, width, width))
        for start, end, aggregator in cell.parts:
            own = Look(COLOURS[aggregator % len(COLOURS)], hatch=HATCHES[aggregator // len(COLOURS) % len(HATCHES)])
            looks.setdefault(own, []).append((left + start * width, low, (end - start) * width, width))
            label = f"P{aggregator}"
            if size >= 4 and (end - start) * cell_width * 72 > 0.62 * size * len(label):
                middle = left + (start + end) / 2 * width
                texts.append((middle, cell.row + 0.5, label, owned, ("center", "center")))
        if cell_width >= 0.5 and cell_height >= 0.3:
            texts.append((left + 0.03, low + 0.06, str(cell.stripe), numbered, ("left", "top")))
    panel.tiles(outside, Look("line"))
    for own, places in looks.items():
        panel.tiles(places, own, edge="ink", thin=0.5 if size > 3 else 0)
    for x, y, text, look, align in texts:
        panel.text(x, y, text, look, align=align)


def _changes(panel: Panel, plan: Plan) -> None:
    """Draw a heavy bar wherever the owner changes on a server: between two stripes, or inside one."""
    pieces = plan.pieces()
    pieces = pieces[np.argsort(pieces["server"], kind="stable")]
    before, after = pieces[:-1], pieces[1:]
    change = (before["server"] == after["server"]) & (before["aggregator"] != after["aggregator"])
    inside = before["stripe"] == after["stripe"]
    rows, columns = after["stripe"] // plan.geometry.servers, after["server"]
    where = columns + (after["offset"] / plan.geometry.stripe_size_bytes) % 1 * (1 - 2 * _INSET) + _INSET
    bars = [
        [(column + _INSET, row), (column + 1 - _INSET, row)]
        for row, column in zip(rows[change & ~inside].tolist(), columns[change & ~inside].tolist(), strict=True)
    ]
    bars += [
        [(at, row + _INSET), (at, row + 1 - _INSET)]
        for row, at in zip(rows[change & inside].tolist(), where[change & inside].tolist(), strict=True)
    ]
    panel.segments(bars, width=2.4, layer=3)


def _sub_regions(panel: Panel, plan: Plan) -> None:
    """Draw a dashed stair line in front of every sub-region, with a label."""
    servers = plan.geometry.servers
    for number, stripe in enumerate(_group_starts(plan), start=1):
        row, column = divmod(stripe, servers)
        xs: list[float] = [-0.06, column, column, servers + 0.06] if column else [-0.06, servers + 0.06]
        ys: list[float] = [row + 1, row + 1, row, row] if column else [row, row]
        panel.line(xs, ys, Look("changed", (0, (4, 2))), width=1.8, clip=False, layer=4)
        for which, shift, side in [(number, 0.1, "top"), *([(0, -0.1, "bottom")] if number == 1 else [])]:
            look = Lettering(size=7, colour="changed", turn=90)
            panel.text(servers + 0.12, row + shift, f"sub-region {which}", look, align=("left", side))


# ---- text ------------------------------------------------------------------------------------------------------------


def _column_labels(cells: list[_Cell]) -> dict[tuple[int, int], str]:
    """Return the text of each cell by (row, server): owners, "~" in front or behind where the stripe is cut off."""
    labels = {}
    for cell in cells:
        text = "|".join(f"P{aggregator}" for _, _, aggregator in cell.parts)
        before = "~" if cell.parts[0][0] > 0 else ""
        behind = "~" if cell.parts[-1][1] < 1 - 1e-12 else ""
        labels[cell.row, cell.server] = before + text + behind
    return labels


def draw_text(plan: Plan) -> list[tuple[str, list[tuple[int, int, int]]]]:
    """Draw a plan as lines of text.

    Returns
    -------
    list of (line, spans)
        spans are (start, end, aggregator): the columns of the line that name an aggregator, for colouring.
    """
    cells = _cells(plan)
    lines: list[tuple[str, list[tuple[int, int, int]]]] = [(f"{_title(plan)}: {_facts(plan)}", [])]
    if not cells:
        return [*lines, ("the region is empty", [])]
    labels = _column_labels(cells)
    owner: dict[tuple[int, int], int] = {(c.row, c.server): c.parts[0][2] for c in cells}
    servers = plan.geometry.servers
    width = max(len(f"S{servers - 1}"), *(len(text) for text in labels.values())) + 1
    margin = max(len(str(cells[-1].row)), len("row"))
    lines.append(("row".rjust(margin) + " " + "".join(f"S{s}".rjust(width) for s in range(servers)), []))
    starts = {stripe // servers: stripe for stripe in _group_starts(plan)}
    for row in range(cells[0].row, cells[-1].row + 1):
        if row in starts:
            split = starts[row] % servers
            where = f" (inside row {row}, at S{split})" if split else ""
            lines.append((" " * margin + " " + "-" * (width * servers) + f" next sub-region{where}", []))
        line, spans = str(row).rjust(margin) + " ", []
        for server in range(servers):
            text = labels.get((row, server), ".").rjust(width)
            if (row, server) in owner:
                start = len(line) + len(text) - len(text.lstrip())
                spans.append((start, len(line) + len(text), owner[row, server]))
            line += text
        lines.append((line, spans))
    return lines
