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
from mpiio_ext.delegates.arbitration.rules import policy_classes
from mpiio_ext.delegates.arbitration.simulation import Simulation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_curves", "draw_gain", "draw_medians", "draw_queue"]

_CYCLE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#222222", "#F0E442")
_MOST_TICKS = 12


def _svg(*paints: Callable[[Axes], None], width: float = 7.0, height: float = 3.6) -> str:
    """Return plots, one below the other, as SVG, the same bytes for the same data."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "mpiio_ext", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes: Any = figure.subplots(len(paints), squeeze=False)
        for axis, paint in zip(axes[:, 0], paints, strict=True):
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
            policy = policy_classes()[name]
            axis.plot(simulation.pools, np.median(values, axis=0) / 1000, color=policy.colour,
                      marker=policy.marker or None, markersize=4, linestyle=policy.line, label=policy.name)
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


def _in_pairs(values: Sequence[float], edges: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return a step function as corners: times and values."""
    times = [each for edge in edges for each in (edge, edge)][1:-1]
    return times, [each for value in values for each in (value, value)]


def draw_queue(results: Sequence[QueueResult]) -> str:
    """Return the aggregate bandwidth of the running jobs over time, and the mean bandwidth of each job, by policy.

    Both axes of the first are logarithmic: short jobs with much bandwidth stand beside long ones with little. It begins
    at a tenth of the first change's time.
    """

    def over_time(axis: Axes) -> None:
        first = min((each.time_s for result in results for each in result.steps if each.time_s > 0), default=1.0) / 10
        for result in results:
            policy = policy_classes()[result.policy.lower()]
            steps = [each for each in result.steps if each.grants]
            edges = [max(each.time_s, first) for each in steps] + [result.makespan_s]
            times, values = _in_pairs([each.bandwidth / 1000 for each in steps], edges)
            axis.plot(times, values, color=policy.colour, linewidth=1.4, label=result.policy, linestyle=policy.line)
            axis.plot(times[-1], values[-1], color=policy.colour, marker="|", markersize=9)  # the queue is empty
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim(left=first)
        axis.set_xlabel("time (s), logarithmic; | the end of the queue")
        axis.set_ylabel("running jobs (GB/s)")
        _legend_above(axis, len(results))

    def by_job(axis: Axes) -> None:
        names = list(dict.fromkeys(job.name for result in results
                                   for job in sorted(result.jobs, key=lambda job: (job.start_s, job.name))))
        width = 0.8 / max(len(results), 1)
        for index, result in enumerate(results):
            means = {job.name: job.bandwidth / 1000 for job in result.jobs}
            axis.bar([at + (index + 0.5) * width - 0.4 for at in range(len(names))], [means[name] for name in names],
                     width, color=policy_classes()[result.policy.lower()].colour, label=result.policy)
        axis.set_yscale("log")
        axis.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
        axis.set_ylabel("mean of the job (GB/s)")
        axis.set_axisbelow(True)

    return _svg(over_time, by_job, height=5.6)


def draw_curves(curves: Mapping[str, Curve]) -> str:
    """Return curves of bandwidth by I/O nodes, with the standard deviation of a repetition.

    More than nine stand in panels of nine, so that each line has a colour of its own.
    """
    names = list(curves)
    groups = [names[at:at + len(_CYCLE)] for at in range(0, len(names), len(_CYCLE))] or [[]]

    def panel(group: Sequence[str]) -> Callable[[Axes], None]:
        def paint(axis: Axes) -> None:
            counts = sorted({count for name in group for count in curves[name].counts})
            for index, name in enumerate(group):
                curve = curves[name]
                points = list(curve.points.values())
                axis.errorbar(curve.counts, [p.mean for p in points], yerr=[p.deviation or 0.0 for p in points],
                              color=_CYCLE[index], marker="osv^DPX"[index % 7], markersize=4, capsize=2, linewidth=1,
                              label=name)
            axis.set_xlabel("I/O nodes")
            axis.set_ylabel("bandwidth (MB/s)")
            axis.set_ylim(bottom=0)
            _ticks_at(axis, counts)
            axis.legend(fontsize=6)

        return paint

    return _svg(*(panel(group) for group in groups), height=4.2 * len(groups))


def _ticks_at(axis: Axes, counts: Sequence[int]) -> None:
    """Set ticks at numbers that were measured; where there are many, at some of them."""
    step = -(-len(counts) // _MOST_TICKS) or 1
    axis.set_xticks(list(counts)[::step])
