"""One picture: ratio to native per pattern or kernel's phase and method, write above and read below, in bands.

Colours are those of M. Okabe and K. Ito ("Color Universal Design", 2008), which people with any kind of colour vision
can tell apart; hatches tell the bars apart without colour. The axis is logarithmic, so that 2× and ½× look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpiio_ext.bench.results.table import interface_title, parts
from mpiio_ext.common.results import Measured

__all__ = ["plot_ratios"]

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++", "oo")


_PER_BAND = 10


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Bars that stand together: rows of one pattern, kernel or phase, by (method, operation)."""

    label: str
    rows: dict[tuple[str, str], Measured]


def _label(rows: Sequence[Measured], phase: str) -> str:
    last = rows[0].last
    interface = "" if last.kind == "pattern" and last.interface == "mpiio" else "\n" + interface_title(last.interface)
    text = last.label.replace(" of ", "\n").replace(" with ", "\nwith ").replace(" (", "\n(").replace(", ", "\n")
    return text + (f"\n{phase}" if phase else "") + interface


def _clusters(rows: Sequence[Measured]) -> list[_Cluster]:
    return [
        _Cluster(_label(group, phase),
                 {(row.key.strategy, "read" if row.key.operation == "read" else "write"): row for row in group})
        for (_, _, phase), group in parts(rows).items()
    ]


def _bars(axes: Any, clusters: Sequence[_Cluster], methods: Sequence[str], operation: str) -> None:
    width = 0.84 / len(methods)
    for k, method in enumerate(methods):
        places, heights, low, high = [], [], [], []
        for x, cluster in enumerate(clusters):
            row = cluster.rows.get((method, operation))
            if row is None or row.ratio is None:
                continue
            places.append(x - 0.42 + (k + 0.5) * width)
            heights.append(row.ratio.median)
            low.append(row.ratio.median - row.ratio.low)
            high.append(row.ratio.high - row.ratio.median)
        # A bar on a logarithmic axis has no natural foot: it grows from 1, up or down.
        axes.bar(
            places, [height - 1 for height in heights], width, bottom=1, label=method, yerr=(low, high),
            color=_COLOURS[k % len(_COLOURS)], hatch=_HATCHES[k // len(_COLOURS) + k % len(_HATCHES)] if k else "",
            edgecolor="black", linewidth=0.4, error_kw={"elinewidth": 0.8, "capsize": 1.5},
        )


def _band(all_axes: Sequence[Any], clusters: Sequence[_Cluster], methods: Sequence[str], places: int) -> None:
    """Draw clusters, for which there are `places`: write into the first axes, read into the second."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axes, operation in zip(all_axes, ("write", "read"), strict=True):
        axes.set_yscale("log", base=2)
        _bars(axes, clusters, methods, operation)
        axes.axhline(1, color="black", linewidth=1)
        axes.yaxis.set_major_locator(LogLocator(base=2))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(axis="y", linewidth=0.4, alpha=0.6)
        axes.set_axisbelow(True)
        axes.set_ylabel(f"{operation}: bandwidth\nrelative to native")
        axes.set_xlim(-0.6, places - 0.4)
        axes.set_xticks(range(len(clusters)), [""] * len(clusters))
    all_axes[1].set_xticks(range(len(clusters)), [cluster.label for cluster in clusters])


def plot_ratios(summaries: Sequence[Measured], folder: Path) -> list[Path]:
    """Write ratios.svg and ratios.png into `folder` and return their paths; none when there is nothing to compare."""
    rows = [row for row in summaries if row.ratio is not None and row.key.strategy != "native"]
    if not rows:
        return []
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    clusters = _clusters(rows)
    methods = list(dict.fromkeys(row.key.strategy for row in rows))
    bands = [clusters[k : k + _PER_BAND] for k in range(0, len(clusters), _PER_BAND)]
    with mpl.rc_context({"font.size": 9, "svg.hashsalt": "mpiio_ext", "hatch.linewidth": 0.5}):
        size = (max(7.0, 1.6 * len(bands[0])), 6.4 * len(bands))
        figure, all_axes = plt.subplots(2 * len(bands), 1, figsize=size)
        for k, band in enumerate(bands):
            _band(all_axes[2 * k : 2 * k + 2], band, methods, len(bands[0]))
        handles, names = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="upper center", ncols=min(len(names), 5), frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 1 - (0.02 + 0.035 * -(-len(names) // 5)) / len(bands)))
        paths = [folder / "ratios.svg", folder / "ratios.png"]
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=150 if len(bands) == 1 else 100)
        plt.close(figure)
    return paths
