"""The picture of ``scaling``: a column per series; bandwidth, ratio to native and memory, logarithmic axes.

This library is drawn solid, native dashed, and of each native MPI-IO only the better of default and tuned hints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mpiio_ext.common.plots import Axis, Chart, Look, Panel, save
from mpiio_ext.common.units import amount_text, digits_text

_LOOKS = {
    "ours_openmpi": Look("series0", "-", "o"),
    "ours_mpich": Look("series4", "-", "s"),
    "ompio": Look("series5", "--", "^"),
    "ompi_romio": Look("series1", "--", "v"),
    "mpich_romio": Look("series3", "--", "D"),
}
_OTHER = Look("ink", "--", "x")
_TUNED = "_tuned"
_HEADINGS = {
    "ranks_inter64": "64 B interleaved",
    "ranks_inter4096": "4 KiB interleaved",
    "pieces_inter": "interleaved, fixed file size",
    "pieces_random": "random, fixed file size",
}


def families(values: dict[str, float], *, largest: bool = True) -> dict[str, float]:
    """Return one value per MPI-IO of {peer: value}: the largest (or smallest) of default and tuned."""
    found: dict[str, float] = {}
    choose = max if largest else min
    for name, value in values.items():
        family = name.removesuffix(_TUNED)
        found[family] = choose(found[family], value) if family in found else value
    return found


def _lines(panel: Panel, xs: Sequence[int], values: Sequence[dict[str, float]], titles: dict[str, str]) -> None:
    """Draw a line per name of `values`, which has one dictionary per place."""
    for name, title in titles.items():
        there = [(x, of_row[name]) for x, of_row in zip(xs, values, strict=True) if name in of_row]
        if there:
            x, y = [x for x, _ in there], [y for _, y in there]
            panel.line(x, y, _LOOKS.get(name, _OTHER), title, width=1.8 if name.startswith("ours") else 1.1)


def _ratio(panel: Panel, results: Sequence[dict[str, Any]], axis: str, titles: dict[str, str]) -> None:
    for operation, dash in (("write", "-"), ("read", ":")):
        rows = [row for row in results if row["op"] == operation]
        for name in (name for name in titles if name.startswith("ours")):
            there = [row for row in rows if name in row["ratio_native_by_peer"]]
            if not there:
                continue
            xs, own = [row[axis] for row in there], _LOOKS.get(name, _OTHER)
            ratios = [row["ratio_native_by_peer"][name] for row in there]
            panel.line(xs, ratios, Look(own.colour, dash, own.marker), size=4, hollow=operation == "read")
            spreads = [spread for row in there if (spread := row["spread_ratio_native"].get(name))]
            if len(spreads) == len(there):
                low, high = zip(*spreads, strict=True)
                panel.area(xs, low, high, Look(own.colour), alpha=0.15)
    panel.rule(1, across=True)


def _memory(panel: Panel, rows: Sequence[dict[str, Any]], titles: dict[str, str]) -> str:
    """Draw the lines of a rank's memory, and return the title that explains the black one."""
    xs = [row["pieces"] for row in rows]
    values = [
        families({name: value / 2**20 for name, value in row["memory_growth_bytes"].items() if value}, largest=False)
        for row in rows
    ]
    _lines(panel, xs, values, titles)
    claims = [max(row["memory_claim_bytes"].values(), default=0) / 2**20 for row in rows]
    if not any(claims):
        return ""
    panel.line(xs, claims, Look("ink", "-."), width=1)
    return "black: collective buffers + 2 MiB"


#: Panels of a series from top to bottom; memory is only of pieces.
_PANELS = {
    "write": "write, MB/s",
    "read": "read, MB/s",
    "ratio": "bandwidth ÷ best native\n(write solid, read dotted)",
    "memory": "memory beyond the\nuser's buffers, MiB a rank",
}


def _draw(what: str, rows: Sequence[dict[str, Any]], titles: dict[str, str], first: bool, panel: Panel) -> None:
    """Draw one of `_PANELS` of a series; the `first` series has the labels."""
    axis, title = "pieces" if rows[0]["series"].startswith("pieces") else "ranks", ""
    if what == "memory":
        title = _memory(panel, [row for row in rows if row["op"] == "write"], titles)
    elif what == "ratio":
        _ratio(panel, rows, axis, titles)
    else:
        mine = [row for row in rows if row["op"] == what]
        _lines(panel, [row[axis] for row in mine], [families(row["mbytes_per_s"]) for row in mine], titles)
    if what == "write":
        series, extra = rows[0]["series"], f", {rows[0]['ranks']} ranks" if axis == "pieces" else ""
        title = f"{_HEADINGS.get(series, series)}\n{amount_text(rows[0]['file_bytes'])}{extra}"
    ticks = [(tick, str(tick)) for tick in sorted({row["ranks"] for row in rows})] if axis == "ranks" else None
    low, high = min(row[axis] for row in rows) / 1.3, max(row[axis] for row in rows) * 1.3
    across = "pieces in the file" if axis == "pieces" else "ranks"
    label = _PANELS[what] if first or what == "memory" else ""
    panel.frame(
        Axis(label=across, scale="log", ticks=ticks, grid=True, low=low, high=high),
        Axis(label=label, scale="log", grid=True, form=digits_text),
        title,
    )


def plot_scaling(results: Sequence[dict[str, Any]], titles: dict[str, str], path: Path) -> None:
    """Draw the results into `path` (.svg, .png or .pdf).

    Parameters
    ----------
    results : as `scaling.summarize` gives them
    titles : {peer: words for people}
    path : file to write
    """
    shown = {name: title for name, title in titles.items() if not name.endswith(_TUNED)}
    columns: dict[str, list[dict[str, Any]]] = {}
    for row in results:
        columns.setdefault(row["series"], []).append(row)

    def one(what: str, series: str) -> Callable[[Panel], None] | None:
        if what == "memory" and not series.startswith("pieces"):
            return None
        return partial(_draw, what, columns[series], shown, series == next(iter(columns)))

    save(
        Chart(
            name="scaling",
            panels=[[one(what, series) for series in columns] for what in _PANELS],
            width=1 + 3.3 * len(columns),
            height=11.5,
            legend="above",
            columns=max(1, min(5, 3 * len(columns) // 2)),
        ),
        path,
    )
