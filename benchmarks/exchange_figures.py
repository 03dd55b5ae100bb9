"""Figures of `exchange.py scale`: time against nodes and by phase; memory against nodes and by term.

This library is drawn solid, native dashed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.common.plots import Axis, Bars, Chart, Line, Look, Mark, Panel, Rule, look, save

__all__ = ["draw"]

_TERMS = {"windows": "collective buffers", "destinations": "message destinations, data of a round",
          "views": "views, lists of pieces",
          "ranges": "ranges, ranks, nodes"}


def _chosen(rows: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _against_nodes(rows: list[dict[str, Any]], title: str) -> Panel:
    marks = []
    for k, pattern in enumerate(dict.fromkeys(row["pattern"] for row in rows)):
        own = _chosen(rows, pattern=pattern)
        for way, dash, name in (("ours", "-", "mpiio_ext"), ("native", "--", "ROMIO")):
            marks.append(Line(x=[row["nodes"] for row in own], y=[row[way]["seconds"] for row in own], size=4,
                              look=Look(look(k).colour, dash, look(k).marker), name=f"{pattern}, {name}",
                              hollow=way == "native"))
    ticks = [(nodes, f"{nodes:,}") for nodes in sorted({row["nodes"] for row in rows})]
    return Panel(marks=marks, title=title, x=Axis(label="nodes of 64 ranks", scale="log2", ticks=ticks, grid=True),
                 y=Axis(scale="log", grid=True))


def _stacked(
    rows: Sequence[tuple[float, Mapping[str, float], str]], names: Mapping[str, str], width: float
) -> list[Mark]:
    """Return bars of (place, heights by name, hatch) whose parts stand on each other; `names` are in the legend."""
    marks: list[Mark] = []
    for at, heights, hatch in rows:
        foot = 0.0
        for k, (name, words) in enumerate(names.items()):
            marks.append(Bars(at=[at], values=[heights[name]], foot=[foot], width=width, edge="ink", thin=0.3,
                              look=Look(look(k).colour, hatch=hatch), name=words))
            foot += heights[name]
    return marks


def _phases(rows: list[dict[str, Any]]) -> Panel:
    """Return the phases of the busiest node, one pair of bars for each pattern, on the largest number of nodes."""
    most = max(row["nodes"] for row in rows)
    rows = _chosen(rows, nodes=most)
    sides = [(at + side, row[way], hatch) for at, row in enumerate(rows)
             for side, way, hatch in ((-0.2, "ours", ""), (0.2, "native", "//"))]
    marks = _stacked([(at, {name: 1e3 * value for name, value in one["phases_s"].items()}, hatch)
                      for at, one, hatch in sides], {name: name for name in rows[0]["ours"]["phases_s"]}, 0.36)
    marks += [Line(x=[at - 0.18, at + 0.18], y=2 * [1e3 * one["seconds"]], width=1.6, name="elapsed")
              for at, one, _ in sides]
    title = f"write, {most:,} nodes: busy time of the busiest node\nby phase, ms (left mpiio_ext, right ROMIO)"
    return Panel(marks=marks, title=title,
                 x=Axis(ticks=[(at, row["pattern"]) for at, row in enumerate(rows)]))


def _times(document: dict[str, Any]) -> Chart:
    rows = [[*(_against_nodes(_chosen(document["times"], machine=machine, operation=operation),
                              f"{machine}: {operation}, s") for operation in ("write", "read")),
             _phases(_chosen(document["times"], machine=machine, operation="write"))]
            for machine in document["machines"]]
    return Chart(name="exchange-scale", panels=rows, width=13, height=4.2 * len(rows), legend="above", columns=8)


def _memory(document: dict[str, Any]) -> Chart:
    panels = []
    for pattern in dict.fromkeys(row["pattern"] for row in document["memory"]):
        rows = _chosen(document["memory"], pattern=pattern)
        bars = [(at + side, {name: row[way].get(name, 0.0) / 2**20 for name in _TERMS}, hatch)
                for at, row in enumerate(rows)
                for side, way, hatch in ((-0.27, "ours", ""), (0.0, "each", ".."), (0.27, "native", "//"))]
        label = "" if panels else "MiB: leader, leader with an area for\neach node, aggregator of ROMIO"
        panels.append(Panel(marks=[*_stacked(bars, _TERMS, 0.25), Rule(at=256, across=True, look=Look("ink", ":"))],
                            title=pattern, y=Axis(label=label, grid=True),
                            x=Axis(label="nodes of 64 ranks",
                                   ticks=[(at, f"{row['nodes']:,}") for at, row in enumerate(rows)])))
    return Chart(name="exchange-memory", panels=[panels], width=3.3 * len(panels), height=4, legend="above",
                 share=True)


def draw(document: dict[str, Any], folder: Path) -> None:
    """Draw what `exchange.py scale --json` writes into exchange-scale.svg and exchange-memory.svg of a folder."""
    for chart in (_times(document), _memory(document)):
        save(chart, folder / f"{chart.name}.svg")
