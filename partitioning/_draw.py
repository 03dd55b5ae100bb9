"""Pictures of file domains: the matrix of servers and stripe rows, as a figure and as text.

The form is that of Figure 2 of the SDCI project's page (see docs/partitioning.md). Columns are I/O servers, rows are
stripe rows (row r holds stripes r * S to r * S + S - 1), so the file runs from left to right and then down, and one
column is what one server sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.common.files import replacing
from mpiio_ext.errors import ArgumentError
from mpiio_ext.partitioning._plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MAX_STRIPES", "draw_figure", "draw_text"]

#: A picture of more stripes than this has no readable cell.
MAX_STRIPES = 4096

#: Okabe and Ito's palette (distinguishable with every common form of colour blindness), without black.
COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#D55E00", "#0072B2")
#: When there are more aggregators than colours, the next round of colours is hatched.
HATCHES = ("", "///", "...", "\\\\\\", "xxx")
#: The same order for terminals.
TERMINAL_COLOURS = ("cyan", "yellow", "green", "bright_yellow", "magenta", "red", "blue")

_OUTSIDE = "#e8e8e8"
_INK = "#222222"
_INSET = 0.04  # gap around a cell, as a fraction of it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """What one stripe of the matrix shows: parts as (start, end, aggregator), fractions of the stripe."""

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
    """Return one line below a drawing: what was adjusted, and where owners meet."""
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
    plans : sequence of Plan
        At least one; usually the same geometry under several methods.
    path : Path
        File to write.

    Raises
    ------
    ArgumentError
        More than `MAX_STRIPES` stripes, or a format that matplotlib does not know.
    FileSystemError
        The file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not path.suffix:
        raise ArgumentError(f"cannot draw {path}: give the file a suffix, as .svg, .png or .pdf")
    cells = [_cells(plan) for plan in plans]
    rows = max((c[-1].row - c[0].row + 1 for c in cells if c), default=1)
    columns = max(plan.geometry.servers for plan in plans)
    cell_width = min(0.95, 18.0 / (columns * len(plans)))
    cell_height = min(0.42, 24.0 / rows)
    panel = max(cell_width * columns + 0.9, 3.3)
    with mpl.rc_context({"svg.hashsalt": "mpiio_ext", "svg.fonttype": "none", "font.size": 9, "hatch.linewidth": 0.6}):
        figure = Figure(figsize=(panel * len(plans), cell_height * rows + 1.7), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, len(plans), squeeze=False)[0]
        for axis, plan, found in zip(axes, plans, cells, strict=True):
            _draw_panel(axis, plan, found, cell_width, cell_height)
        try:
            with replacing(path, ending=path.suffix) as part:
                figure.savefig(part, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
        except ValueError as error:
            raise ArgumentError(f"cannot draw {path}: {error}") from error


def _draw_panel(axis: Axes, plan: Plan, cells: list[_Cell], cell_width: float, cell_height: float) -> None:
    """Draw one plan; cell_width and cell_height in inches decide which labels fit."""
    servers = plan.geometry.servers
    top = cells[0].row if cells else 0
    bottom = cells[-1].row + 1 if cells else 1
    axis.set_title(_title(plan), fontweight="bold", pad=28)
    axis.set_xlim(-0.08, servers + 0.08)
    axis.set_ylim(bottom + 0.15, top - 0.15)
    _draw_cells(axis, cells, cell_width, cell_height)
    _mark_changes(axis, plan)
    _mark_sub_regions(axis, plan)
    shown = np.arange(servers)[:: max(1, round(0.35 / cell_width))]
    axis.xaxis.tick_top()
    axis.set_xticks(shown + 0.5, [f"S{s}" for s in shown])
    rows = np.arange(top, bottom)[:: max(1, round(0.2 / cell_height))]
    axis.set_yticks(rows + 0.5, [str(r) for r in rows])
    axis.set_ylabel("stripe row")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.annotate(
        "", xy=(1, 1), xytext=(0, 1), xycoords="axes fraction", textcoords="axes fraction",
        arrowprops={"arrowstyle": "->", "color": _INK, "lw": 1.2},
    )  # fmt: skip
    axis.annotate(
        "file order", xy=(1, 1), xytext=(0, 15), xycoords="axes fraction", textcoords="offset points", ha="right",
        fontsize=7, color=_INK,
    )  # fmt: skip
    axis.set_xlabel(_facts(plan), fontsize=8)


def _draw_cells(axis: Axes, cells: list[_Cell], cell_width: float, cell_height: float) -> None:
    """Draw the stripes: grey, then the owners' parts from left to right, then labels where they fit.

    Parts of one look go into one collection: thousands of single patches would take minutes.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    width = 1 - 2 * _INSET
    size = min(9.0, 30.0 * cell_height, 14.0 * cell_width)
    looks: dict[tuple[str, str], list[Rectangle]] = {}
    outside = []
    for cell in cells:
        left, low = cell.server + _INSET, cell.row + _INSET
        if sum(end - start for start, end, _ in cell.parts) < 1:
            outside.append(Rectangle((left, low), width, width))
        for start, end, aggregator in cell.parts:
            look = (COLOURS[aggregator % len(COLOURS)], HATCHES[aggregator // len(COLOURS) % len(HATCHES)])
            part = Rectangle((left + start * width, low), (end - start) * width, width)
            looks.setdefault(look, []).append(part)
            label = f"P{aggregator}"
            if size >= 4 and (end - start) * cell_width * 72 > 0.62 * size * len(label):
                _label(axis, left + (start + end) / 2 * width, cell.row + 0.5, label, size)
        if cell_width >= 0.5 and cell_height >= 0.3:
            text = axis.text(left + 0.03, low + 0.03, str(cell.stripe), ha="left", va="top", fontsize=5, color=_INK)
            text.set_in_layout(False)
    line = 0.5 if size > 3 else 0
    drawn = [PatchCollection(outside, facecolor=_OUTSIDE, edgecolor="none")]
    for (colour, hatch), parts in looks.items():
        drawn.append(PatchCollection(parts, facecolor=colour, edgecolor=_INK, linewidth=line, hatch=hatch or None))
    for collection in drawn:
        collection.set_in_layout(False)  # the axes' limits say all; measuring every patch takes seconds
        axis.add_collection(collection, autolim=False)


def _label(axis: Axes, x: float, y: float, label: str, size: float) -> None:
    """Write an aggregator's name on a light ground, so that it can be read on every colour and hatch."""
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    text = axis.text(x, y, label, ha="center", va="center", fontsize=size, color=_INK, bbox=box)
    text.set_in_layout(False)


def _mark_changes(axis: Axes, plan: Plan) -> None:
    """Draw a heavy bar wherever the owner changes on a server: between two stripes, or inside one."""
    pieces = plan.pieces()
    pieces = pieces[np.argsort(pieces["server"], kind="stable")]
    before, after = pieces[:-1], pieces[1:]
    change = (before["server"] == after["server"]) & (before["aggregator"] != after["aggregator"])
    inside = before["stripe"] == after["stripe"]
    rows, columns = after["stripe"] // plan.geometry.servers, after["server"]
    where = (after["offset"] / plan.geometry.stripe_size_bytes) % 1 * (1 - 2 * _INSET) + _INSET
    style: dict[str, Any] = {"color": "black", "linewidth": 2.4, "zorder": 3}
    at = change & ~inside
    axis.hlines(rows[at], columns[at] + _INSET, columns[at] + 1 - _INSET, **style)
    at = change & inside
    axis.vlines((columns + where)[at], rows[at] + _INSET, rows[at] + 1 - _INSET, **style)


def _mark_sub_regions(axis: Axes, plan: Plan) -> None:
    """Draw a dashed stair line in front of every sub-region, with a label."""
    servers = plan.geometry.servers
    starts = _group_starts(plan)
    for number, stripe in enumerate(starts, start=1):
        row, column = divmod(stripe, servers)
        xs: list[float] = [-0.06, column, column, servers + 0.06]
        ys: list[float] = [row + 1, row + 1, row, row]
        if column == 0:
            xs, ys = [-0.06, servers + 0.06], [row, row]
        axis.plot(xs, ys, color="#B00020", linestyle=(0, (4, 2)), linewidth=1.8, zorder=4, clip_on=False)
        style: dict[str, Any] = {"rotation": 90, "fontsize": 7, "color": "#B00020", "clip_on": False}
        axis.text(servers + 0.12, row + 0.1, f"sub-region {number}", ha="left", va="top", **style)
        if number == 1:
            axis.text(servers + 0.12, row - 0.1, "sub-region 0", ha="left", va="bottom", **style)


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
