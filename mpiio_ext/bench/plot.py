"""One picture: ratio to native per workload and method, write above and read below.

Colours are those of M. Okabe and K. Ito ("Color Universal Design", 2008), which people with any kind of colour vision
can tell apart; hatches tell the bars apart without colour. The axis is logarithmic, so that 2× and ½× look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.bench.results import Summary

__all__ = ["plot_ratios"]

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++", "oo")


def _case_label(row: Summary) -> str:
    interface = {"mpiio": "", "hdf5": "\nHDF5"}.get(row.interface, "\n" + row.interface)
    return row.label.replace(" of ", "\n").replace(" with ", "\nwith ").replace(" (", "\n(") + interface


def _bars(axes: Any, rows: Sequence[Summary], cases: list[tuple[str, str]], strategies: list[str]) -> None:
    width = 0.84 / len(strategies)
    by_place = {(row.variant, row.interface, row.strategy): row for row in rows}
    for k, strategy in enumerate(strategies):
        places, heights, low, high = [], [], [], []
        for x, case in enumerate(cases):
            row = by_place.get((*case, strategy))
            if row is None or row.ratio_to_native is None:
                continue
            places.append(x - 0.42 + (k + 0.5) * width)
            heights.append(row.ratio_to_native)
            low.append(row.ratio_to_native - (row.ratio_to_native_min or row.ratio_to_native))
            high.append((row.ratio_to_native_max or row.ratio_to_native) - row.ratio_to_native)
        # A bar on a logarithmic axis has no natural foot: it grows from 1, up or down.
        axes.bar(
            places, [height - 1 for height in heights], width, bottom=1, label=strategy, yerr=(low, high),
            color=_COLOURS[k % len(_COLOURS)], hatch=_HATCHES[k // len(_COLOURS) + k % len(_HATCHES)] if k else "",
            edgecolor="black", linewidth=0.4, error_kw={"elinewidth": 0.8, "capsize": 1.5},
        )


def plot_ratios(summaries: Sequence[Summary], folder: Path) -> list[Path]:
    """Write ratios.svg and ratios.png into `folder` and return their paths; none when there is nothing to compare."""
    rows = [row for row in summaries if row.ratio_to_native is not None and row.strategy != "native"]
    if not rows:
        return []
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    cases = list(dict.fromkeys((row.variant, row.interface) for row in rows))
    labels = {(row.variant, row.interface): _case_label(row) for row in rows}
    strategies = list(dict.fromkeys(row.strategy for row in rows))
    with mpl.rc_context({"font.size": 9, "svg.hashsalt": "mpiio_ext", "hatch.linewidth": 0.5}):
        figure, all_axes = plt.subplots(2, 1, figsize=(max(7.0, 1.6 * len(cases)), 6.4), sharex=True)
        for axes, operation in zip(all_axes, ("write", "read"), strict=True):
            axes.set_yscale("log", base=2)
            _bars(axes, [row for row in rows if row.operation == operation], cases, strategies)
            axes.axhline(1, color="black", linewidth=1)
            axes.yaxis.set_major_locator(LogLocator(base=2))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.grid(axis="y", linewidth=0.4, alpha=0.6)
            axes.set_axisbelow(True)
            axes.set_ylabel(f"{operation}: bandwidth\nrelative to native")
        all_axes[1].set_xticks(range(len(cases)), [labels[case] for case in cases])
        handles, names = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="upper center", ncols=min(len(names), 5), frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 0.98 - 0.035 * -(-len(names) // 5)))
        paths = [folder / "ratios.svg", folder / "ratios.png"]
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=150)
        plt.close(figure)
    return paths
