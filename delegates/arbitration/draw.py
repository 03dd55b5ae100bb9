"""Figures of the simulations as SVG: Figures 2, 3 and 9 of the arbitration paper, and curves.

Colours are those of Okabe and Ito; every line has a marker of its own besides, so that none is told by colour alone.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.queue import QueueResult
from mpiio_ext.delegates.arbitration.simulate import Simulation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_curves", "draw_gain", "draw_medians", "draw_queue"]

#: Policy -> (colour, marker).
_LOOKS = {
    "zero": ("#56B4E9", "o"), "one": ("#CC79A7", "v"), "static": ("#D55E00", "s"), "size": ("#E69F00", "D"),
    "process": ("#999999", "P"), "oracle": ("#222222", ""), "mckp": ("#0072B2", "^"),
}
_CYCLE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#222222", "#F0E442")


def _svg(paint: Callable[[Axes], None], width: float = 7.0, height: float = 3.6) -> str:
    """Return one plot as SVG, the same bytes for the same data."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "mpiio_ext", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        axis: Any = figure.subplots()
        paint(axis)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", linewidth=0.4, alpha=0.6)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg"):]  # without the XML heading: it is set into a page as it is


def _legend_above(axis: Axes, columns: int) -> None:
    axis.legend(ncols=columns, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)


def draw_medians(simulation: Simulation) -> str:
    """Return Figure 2: the median aggregate bandwidth of each policy by size of the pool."""

    def paint(axis: Axes) -> None:
        for name, values in simulation.bandwidth.items():
            colour, marker = _LOOKS[name]
            axis.plot(simulation.pools, np.median(values, axis=0) / 1000, color=colour, marker=marker or None,
                      markersize=4, linestyle="--" if name == "oracle" else "-", label=name.upper())
        axis.set_xlabel("I/O nodes in the pool")
        axis.set_ylabel("median aggregate bandwidth (GB/s)")
        axis.set_ylim(bottom=0)
        _legend_above(axis, 7)

    return _svg(paint)


def draw_gain(simulation: Simulation) -> str:
    """Return Figure 3: the bandwidth of MCKP over STATIC's, smallest, median and largest of the sets."""

    def paint(axis: Axes) -> None:
        ratio = simulation.ratio("mckp", "static")
        low, middle, high = ratio.min(axis=0), np.median(ratio, axis=0), ratio.max(axis=0)
        axis.fill_between(simulation.pools, low, high, color="#56B4E9", alpha=0.35, label="smallest to largest")
        axis.plot(simulation.pools, middle, color="#0072B2", marker="^", markersize=4, label="median")
        axis.axhline(1, color="#222222", linewidth=0.8, linestyle="--")
        axis.set_yscale("log")
        axis.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
        axis.set_xlabel("I/O nodes in the pool")
        axis.set_ylabel("MCKP over STATIC")
        axis.legend(fontsize=8)

    return _svg(paint)


def draw_queue(results: Sequence[QueueResult]) -> str:
    """Return the aggregate bandwidth of the running jobs over time, a line for each policy."""

    def paint(axis: Axes) -> None:
        for result in results:
            colour, marker = _LOOKS[result.policy.lower()]
            axis.step([step.time_s for step in result.steps], [step.bandwidth / 1000 for step in result.steps],
                      where="post", color=colour, marker=marker or None, markersize=4, label=result.policy,
                      linestyle="--" if result.policy == "ORACLE" else "-")
        axis.set_xlabel("time (s)")
        axis.set_ylabel("bandwidth of running jobs (GB/s)")
        axis.set_yscale("log")  # short jobs with much bandwidth stand beside long ones with little
        axis.set_xlim(left=0)
        _legend_above(axis, len(results))

    return _svg(paint)


def draw_curves(curves: Mapping[str, Curve]) -> str:
    """Return curves of bandwidth by I/O nodes, with the standard deviation of a repetition."""

    def paint(axis: Axes) -> None:
        for index, (name, curve) in enumerate(curves.items()):
            points = list(curve.points.values())
            axis.errorbar(curve.counts, [p.mean for p in points], yerr=[p.deviation or 0.0 for p in points],
                          color=_CYCLE[index % len(_CYCLE)], marker="osv^DPX"[index % 7], markersize=4, capsize=2,
                          linewidth=1, label=name)
        axis.set_xlabel("I/O nodes")
        axis.set_ylabel("bandwidth (MB/s)")
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=6)

    return _svg(paint, height=4.2)
