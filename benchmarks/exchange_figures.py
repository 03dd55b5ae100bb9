"""Figures of `exchange.py scale`: time against nodes and by phase; memory against nodes and by term.

Colours are those of M. Okabe and K. Ito ("Color Universal Design", 2008). This library is drawn solid, native dashed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["draw"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
_MARKERS = "osD^v"
_STYLES = {"ours": "-", "native": "--"}
_TERMS = {"windows": "collective buffers", "destinations": "message destinations, data of a round",
          "views": "views, lists of pieces",
          "ranges": "ranges, ranks, nodes"}


def _chosen(rows: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _against_nodes(axes: Any, rows: list[dict[str, Any]]) -> None:
    for k, pattern in enumerate(dict.fromkeys(row["pattern"] for row in rows)):
        own = _chosen(rows, pattern=pattern)
        for way, style in _STYLES.items():
            axes.plot([row["nodes"] for row in own], [row[way]["seconds"] for row in own], style, color=_COLOURS[k],
                      marker=_MARKERS[k], markersize=4, label=f"{pattern}, {'mpiio_ext' if way == 'ours' else 'ROMIO'}",
                      markerfacecolor="white" if way == "native" else None)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({row["nodes"] for row in rows})
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(linewidth=0.4, alpha=0.6)
    axes.set_xlabel("nodes of 64 ranks")


def _phases(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Draw the phases of the busiest node, one pair of bars for each pattern, on the largest number of nodes."""
    most = max(row["nodes"] for row in rows)
    rows = _chosen(rows, nodes=most)
    names = list(rows[0]["ours"]["phases_s"])
    for at, row in enumerate(rows):
        for side, way in ((-0.2, "ours"), (0.2, "native")):
            bottom = 0.0
            for k, name in enumerate(names):
                height = 1e3 * row[way]["phases_s"][name]
                axes.bar(at + side, height, 0.36, bottom=bottom, color=_COLOURS[k], edgecolor="black", linewidth=0.3,
                         hatch="" if way == "ours" else "//", label=name if at == 0 and way == "ours" else None)
                bottom += height
            axes.plot([at + side - 0.18, at + side + 0.18], 2 * [1e3 * row[way]["seconds"]], color="black",
                      linewidth=1.6, label="elapsed" if at == 0 and way == "ours" else None)
    axes.set_xticks(range(len(rows)), [f"{row['pattern']}" for row in rows])
    axes.set_title(f"write, {most:,} nodes: busy time of the busiest node\nby phase, ms (left mpiio_ext, right ROMIO)",
                   fontsize=9)
    axes.legend(fontsize=7, frameon=False)


def _draw_times(document: dict[str, Any], path: Path, plt: Any) -> None:
    machines = list(document["machines"])
    figure, grid = plt.subplots(len(machines), 3, figsize=(13, 4.2 * len(machines)), squeeze=False)
    for line, machine in zip(grid, machines, strict=True):
        for axes, operation in zip(line, ("write", "read"), strict=False):
            _against_nodes(axes, _chosen(document["times"], machine=machine, operation=operation))
            axes.set_title(f"{machine}: {operation}, s", fontsize=9)
        _phases(line[2], _chosen(document["times"], machine=machine, operation="write"))
    figure.legend(*grid[0, 0].get_legend_handles_labels(), fontsize=8, frameon=False, loc="upper center", ncols=8)
    figure.tight_layout(rect=(0, 0, 1, 0.97))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _draw_memory(document: dict[str, Any], path: Path, plt: Any) -> None:
    patterns = list(dict.fromkeys(row["pattern"] for row in document["memory"]))
    figure, line = plt.subplots(1, len(patterns), figsize=(3.3 * len(patterns), 4), sharey=True, squeeze=False)
    for axes, pattern in zip(line[0], patterns, strict=True):
        rows = _chosen(document["memory"], pattern=pattern)
        for at, row in enumerate(rows):
            for side, way in ((-0.27, "ours"), (0.0, "each"), (0.27, "native")):
                values = {name: row[way].get(name, 0.0) / 2**20 for name in _TERMS}
                bottom = 0.0
                for k, (name, words) in enumerate(_TERMS.items()):
                    axes.bar(at + side, values[name], 0.25, bottom=bottom, color=_COLOURS[k], edgecolor="black",
                             linewidth=0.3, label=words if at == 0 and way == "ours" else None,
                             hatch={"ours": "", "each": "..", "native": "//"}[way])
                    bottom += values[name]
        axes.set_xticks(range(len(rows)), [f"{row['nodes']:,}" for row in rows])
        axes.set_xlabel("nodes of 64 ranks")
        axes.set_title(pattern, fontsize=9)
        axes.axhline(256, color="black", linewidth=0.8, linestyle=":")
        axes.set_axisbelow(True)
        axes.grid(axis="y", linewidth=0.4, alpha=0.6)
    line[0, 0].set_ylabel("MiB: leader, leader with an area for\neach node, aggregator of ROMIO")
    line[0, len(patterns) // 3].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw(document: dict[str, Any], folder: Path) -> None:
    """Draw what `exchange.py scale --json` writes into exchange-scale.svg and exchange-memory.svg of a folder."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context({"font.size": 9, "svg.hashsalt": "mpiio_ext"}):
        _draw_times(document, folder / "exchange-scale.svg", plt)
        _draw_memory(document, folder / "exchange-memory.svg", plt)
