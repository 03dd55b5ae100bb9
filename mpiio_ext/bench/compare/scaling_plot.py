"""The picture of ``scaling``: a column per series; bandwidth, ratio to native and memory, logarithmic axes.

This library is drawn solid, native dashed, and of each native MPI-IO only the better of default and tuned hints.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.common.plots import Area, Axis, Chart, Line, Look, Mark, Panel, Rule, save
from mpiio_ext.common.units import amount_text

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


def _lines(xs: Sequence[int], values: Sequence[dict[str, float]], titles: dict[str, str]) -> list[Mark]:
    """Return a line per name of `values`, which has one dictionary per place."""
    marks: list[Mark] = []
    for name, title in titles.items():
        there = [(x, of_row[name]) for x, of_row in zip(xs, values, strict=True) if name in of_row]
        if there:
            marks.append(
                Line(
                    x=[x for x, _ in there],
                    y=[y for _, y in there],
                    name=title,
                    look=_LOOKS.get(name, _OTHER),
                    width=1.8 if name.startswith("ours") else 1.1,
                )
            )
    return marks


def _ratio(results: Sequence[dict[str, Any]], axis: str, titles: dict[str, str]) -> list[Mark]:
    marks: list[Mark] = []
    for operation, dash in (("write", "-"), ("read", ":")):
        rows = [row for row in results if row["op"] == operation]
        for name in titles:
            there = [row for row in rows if name in row["ratio_native_by_peer"]]
            if not there:
                continue
            xs, own = [row[axis] for row in there], _LOOKS.get(name, _OTHER)
            marks.append(
                Line(
                    x=xs,
                    y=[row["ratio_native_by_peer"][name] for row in there],
                    size=4,
                    look=Look(own.colour, dash, own.marker),
                    hollow=operation == "read",
                )
            )
            spreads = [spread for row in there if (spread := row["spread_ratio_native"].get(name))]
            if len(spreads) == len(there):
                marks.append(
                    Area(
                        x=xs,
                        low=[s[0] for s in spreads],
                        high=[s[1] for s in spreads],
                        alpha=0.15,
                        look=Look(own.colour),
                    )
                )
    return [*marks, Rule(at=1, across=True)]


def _memory(rows: Sequence[dict[str, Any]], titles: dict[str, str]) -> tuple[list[Mark], str]:
    """Return the lines, and the title that says what the one in black is."""
    xs = [row["pieces"] for row in rows]
    values = [
        families({name: value / 2**20 for name, value in row["memory_growth_bytes"].items() if value}, largest=False)
        for row in rows
    ]
    marks = _lines(xs, values, titles)
    claims = [max(row["memory_claim_bytes"].values(), default=0) / 2**20 for row in rows]
    if not any(claims):
        return marks, ""
    return [*marks, Line(x=xs, y=claims, look=Look("ink", "-."), width=1)], "black: collective buffers + 2 MiB"


def _column(
    series: str, results: Sequence[dict[str, Any]], titles: dict[str, str], *, first: bool
) -> list[Panel | None]:
    """Return one series as four panels from top to bottom; the last is for memory, and only for pieces."""
    rows = [row for row in results if row["series"] == series]
    axis = "pieces" if series.startswith("pieces") else "ranks"
    extra = f", {rows[0]['ranks']} ranks" if axis == "pieces" else ""
    ticks = [(tick, str(tick)) for tick in sorted({row["ranks"] for row in rows})] if axis == "ranks" else None
    across = Axis(
        label="pieces in the file" if axis == "pieces" else "ranks",
        scale="log",
        ticks=ticks,
        grid=True,
        low=min(row[axis] for row in rows) / 1.3,
        high=max(row[axis] for row in rows) * 1.3,
    )

    def panel(marks: list[Mark], label: str, title: str = "") -> Panel:
        return Panel(
            marks=marks,
            title=title,
            x=across,
            y=Axis(label=label, scale="log", grid=True, form=lambda value: f"{value:,g}"),
        )

    title = f"{_HEADINGS.get(series, series)}\n{amount_text(rows[0]['file_bytes'])}{extra}"
    panels: list[Panel | None] = []
    for operation in ("write", "read"):
        mine = [row for row in rows if row["op"] == operation]
        marks = _lines([row[axis] for row in mine], [families(row["mbytes_per_s"]) for row in mine], titles)
        panels.append(panel(marks, f"{operation}, MB/s" if first else "", title if operation == "write" else ""))
    ours = {name: title for name, title in titles.items() if name.startswith("ours")}
    label = "bandwidth ÷ best native\n(write solid, read dotted)" if first else ""
    panels.append(panel(_ratio(rows, axis, ours), label))
    if axis != "pieces":
        return [*panels, None]
    marks, note = _memory([row for row in rows if row["op"] == "write"], titles)
    return [*panels, panel(marks, "memory beyond the\nuser's buffers, MiB a rank", note)]


def plot_scaling(results: Sequence[dict[str, Any]], titles: dict[str, str], path: Path) -> None:
    """Draw the results into `path` (.svg, .png or .pdf).

    Parameters
    ----------
    results : as `scaling.summarize` gives them
    titles : {peer: words for people}
    path : file to write
    """
    shown = {name: title for name, title in titles.items() if not name.endswith(_TUNED)}
    series = list(dict.fromkeys(row["series"] for row in results))
    columns = [_column(name, results, shown, first=at == 0) for at, name in enumerate(series)]
    save(
        Chart(
            name="scaling",
            panels=list(zip(*columns, strict=True)),
            width=1 + 3.3 * len(series),
            height=11.5,
            legend="above",
            columns=max(1, min(5, 3 * len(series) // 2)),
        ),
        path,
    )
