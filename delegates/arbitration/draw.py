"""Figures of the simulations: Figures 2, 3 and 6 to 9 of the arbitration paper, and curves (its Figures 1 and 5).

Every policy has a colour and a mark of its own, so that none is told by colour alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from mpiio_ext.common.plots import (
    SERIES,
    Area,
    Axis,
    Bars,
    Chart,
    Line,
    Look,
    Mark,
    Panel,
    Rule,
    Segments,
    corners,
    look,
)
from mpiio_ext.common.results import ENOUGH
from mpiio_ext.delegates.arbitration.comparison import Comparison
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.queue import QueueResult
from mpiio_ext.delegates.arbitration.rules import policy_classes
from mpiio_ext.delegates.arbitration.simulation import Simulation

_MOST_TICKS = 12


def _look(policy: str) -> Look:
    """Return how a policy looks."""
    found = policy_classes()[policy.lower()]
    return Look(found.colour, found.line, found.marker)


def medians_words(simulation: Simulation) -> str:
    """Return what `draw_medians` shows: which policy, but for ORACLE, has the largest median most often."""
    names = [name for name in simulation.bandwidth if name != "oracle"]
    medians = np.array([np.median(simulation.bandwidth[name], axis=0) for name in names])
    near = medians >= medians.max(axis=0) * (1 - 1e-9)  # sums in different orders
    alone = (near & (near.sum(axis=0) == 1)).sum(axis=1)
    best, pools = int(alone.argmax()), len(simulation.pools)
    if not alone[best]:
        return f"No policy alone has the largest median bandwidth with any of {pools} sizes of the pool"
    return (
        f"{policy_classes()[names[best]].name} alone has the largest median bandwidth with {alone[best]} of "
        f"{pools} sizes of the pool"
    )


def gain_words(simulation: Simulation) -> str:
    """Return what `draw_gain` shows: the range of the medians, and the largest gain of all."""
    ratio = simulation.ratio("mckp", "static")
    medians = np.median(ratio, axis=0)
    return (
        f"MCKP has {medians.min():.2f} to {medians.max():.2f} times the bandwidth of STATIC in the median of the "
        f"sets, {ratio.max():.1f} times at most"
    )


def queue_words(results: Sequence[QueueResult]) -> str:
    """Return under which policies the queue is empty first and last."""
    ordered = sorted(results, key=lambda result: result.makespan_s)
    first, last = ordered[0], ordered[-1]
    if first.makespan_s >= last.makespan_s * (1 - 1e-9):
        return f"The queue is empty after {first.makespan_s:,.0f} s under every policy"
    return (
        f"The queue is empty after {first.makespan_s:,.0f} s under {first.policy}, the first, and after "
        f"{last.makespan_s:,.0f} s under {last.policy}, the last"
    )


def _best(curve: Curve) -> int | None:
    """Return the number of I/O nodes that is best beyond the deviations of its repetitions; None where none is."""
    ends = {
        count: (point.mean - point.deviation, point.mean + point.deviation)
        for count, point in curve.points.items()
        if point.deviation is not None and point.repetitions >= ENOUGH
    }
    if len(ends) < max(2, len(curve.points)):
        return None
    best = max(ends, key=lambda count: ends[count][0])
    return best if all(high < ends[best][0] for count, (_, high) in ends.items() if count != best) else None


def curves_words(curves: Mapping[str, Curve]) -> str:
    """Return what `draw_curves` shows: with how many I/O nodes most curves are best beyond their deviations."""
    found = Counter(best for curve in curves.values() if (best := _best(curve)) is not None)
    number = f"{len(curves):,} curve{'' if len(curves) == 1 else 's'}"
    if not found:
        return f"No number of I/O nodes is best beyond the deviation of {ENOUGH} repetitions, in any of {number}"
    ((count, times),) = found.most_common(1)
    nodes = f"{count} I/O node{'' if count == 1 else 's'}"
    return f"{times:,} of {number} {'is' if times == 1 else 'are'} best with {nodes}, beyond the deviations"


def draw_medians(simulation: Simulation) -> Chart:
    """Return Figure 2: the median aggregate bandwidth of each policy by size of the pool."""
    marks = [
        Line(
            x=simulation.pools.tolist(),
            y=(np.median(values, axis=0) / 1000).tolist(),
            look=_look(name),
            size=4,
            name=policy_classes()[name].name,
        )
        for name, values in simulation.bandwidth.items()
    ]
    panel = Panel(
        marks=marks,
        x=Axis(label="I/O nodes in the pool"),
        y=Axis(label="median aggregate bandwidth [GB/s]", low=0, grid=True),
    )
    return Chart(
        name="medians",
        title=medians_words(simulation),
        panels=[[panel]],
        width=7,
        height=3.6,
        legend="above",
        columns=7,
    )


def draw_gain(simulation: Simulation) -> Chart:
    """Return Figure 3: the bandwidth of MCKP over STATIC's, smallest, median and largest of the sets."""
    pools, ratio = simulation.pools.tolist(), simulation.ratio("mckp", "static")
    low, middle, high = (part.tolist() for part in (ratio.min(axis=0), np.median(ratio, axis=0), ratio.max(axis=0)))
    marks: list[Mark] = [
        Area(x=pools, low=low, high=high, look=Look("series4"), name="smallest to largest"),
        Line(x=pools, y=middle, look=_look("mckp"), size=4, name="median"),
        Rule(at=1, across=True, look=Look("ink", "--"), width=0.8),
    ]
    panel = Panel(
        marks=marks,
        legend=True,
        x=Axis(label="I/O nodes in the pool"),
        y=Axis(
            label="bandwidth of MCKP over STATIC [×]",
            scale="log",
            grid=True,
            ticks=[(n, str(n)) for n in (1, 2, 5, 10, 20)],
        ),
    )
    return Chart(name="gain", title=gain_words(simulation), panels=[[panel]], width=7, height=3.6)


def draw_queue(results: Sequence[QueueResult]) -> Chart:
    """Return the aggregate bandwidth of the running jobs over time, and the mean bandwidth of each job, by policy.

    Both axes of the first are logarithmic: short jobs with much bandwidth stand beside long ones with little. It begins
    at a tenth of the first change's time.
    """
    first = min((each.time_s for result in results for each in result.steps if each.time_s > 0), default=1.0) / 10
    lines: list[Mark] = []
    for result in results:
        own = _look(result.policy)
        steps = [each for each in result.steps if each.grants]
        times, values = corners(
            [max(each.time_s, first) for each in steps] + [result.makespan_s], [each.bandwidth / 1000 for each in steps]
        )
        lines += [
            Line(x=times, y=values, look=Look(own.colour, own.dash), width=1.4, name=result.policy),
            Line(x=times[-1:], y=values[-1:], look=Look(own.colour, "", "|"), size=9),
        ]  # the queue is empty
    over_time = Panel(
        marks=lines,
        x=Axis(label="time [s], logarithmic; | the end of the queue", scale="log", low=first),
        y=Axis(label="running jobs [GB/s]", scale="log", grid=True),
    )
    names = list(
        dict.fromkeys(
            job.name for result in results for job in sorted(result.jobs, key=lambda job: (job.start_s, job.name))
        )
    )
    width = 0.8 / max(len(results), 1)
    bars = []
    for index, result in enumerate(results):
        means = {job.name: job.bandwidth / 1000 for job in result.jobs}
        bars.append(
            Bars(
                at=[at + (index + 0.5) * width - 0.4 for at in range(len(names))],
                width=width,
                values=[means[name] for name in names],
                look=Look(_look(result.policy).colour),
                name=result.policy,
            )
        )
    by_job = Panel(
        marks=bars,
        x=Axis(ticks=list(enumerate(names)), turn=30),
        y=Axis(label="mean of the job [GB/s]", scale="log", grid=True),
    )
    return Chart(
        name="queue",
        title=queue_words(results),
        panels=[[over_time], [by_job]],
        width=7,
        height=5.6,
        legend="above",
        columns=len(results),
    )


def comparison_words(found: Comparison) -> str:
    """Return what `draw_sums` shows: which policy within the pool has most with the most pools."""
    inside = {
        name: [one.bandwidth if one.is_within_pool else 0.0 for one in allocations]
        for name, allocations in found.allocations.items()
    }
    most = [max(each) for each in zip(*inside.values(), strict=True)]
    reached = {
        name: sum(own >= best * (1 - 1e-9) for own, best in zip(values, most, strict=True))
        for name, values in inside.items()
    }
    first = max(reached, key=lambda name: reached[name])
    return (
        f"{policy_classes()[first].name} has the most bandwidth within the pool with {reached[first]} of "
        f"{len(found.pools)} sizes of the pool"
    )


def _beside(panels: Sequence[Panel | None], label: str, high: float) -> Axis:
    """Return the y axis of a panel whose row has one scale: the first one has the words."""
    if panels:
        return Axis(form=lambda _: "", low=0, high=1.05 * high, grid=True)
    return Axis(label=label, low=0, high=1.05 * high, grid=True)


def _of_pools(found: Comparison) -> Axis:
    return Axis(label="I/O nodes in the pool", ticks=[(at, str(pool)) for at, pool in enumerate(found.pools)])


def draw_sums(found: Comparison) -> Chart:
    """Return Figure 6: the bandwidths of the jobs on top of each other, a panel a policy, a bar a size of the pool."""
    at, panels = list(range(len(found.pools))), list[Panel | None]()
    most = max(one.bandwidth for allocations in found.allocations.values() for one in allocations) / 1000
    for name in found.allocations:
        foot, marks = np.zeros(len(at)), list[Mark]()
        for index, job in enumerate(found.alone):
            values = np.array(found.bandwidth(name, job)) / 1000
            marks.append(Bars(at=at, values=values.tolist(), foot=foot.tolist(), look=look(index), name=job))
            foot = foot + values
        panels.append(
            Panel(
                marks=marks,
                title=policy_classes()[name].name,
                x=_of_pools(found),
                y=_beside(panels, "bandwidth of the jobs [GB/s]", most),
            )
        )
    return Chart(
        name="sums",
        title=comparison_words(found),
        panels=[panels],
        width=8.2,
        height=3.6,
        legend="above",
        columns=min(len(found.alone), SERIES),
    )


def draw_shares(found: Comparison) -> Chart:
    """Return Figure 7: the bandwidth of each job under MCKP over what it has alone with the same pool."""
    names, panels = list(found.alone), list[Panel | None]()
    for index, pool in enumerate(found.pools):
        shares = [100 * found.shares("mckp", job)[index] for job in names]
        panels.append(
            Panel(
                marks=[Bars(at=list(range(len(names))), values=shares, look=_look("mckp"))],
                title=f"{pool} I/O nodes",
                x=Axis(ticks=list(enumerate(names)), turn=90),
                y=_beside(panels, "of its best alone [%]", 100),
            )
        )
    least = min(min(found.shares("mckp", job)) for job in names)
    return Chart(
        name="shares",
        title=f"Under MCKP each job has {least:.0%} of its best bandwidth alone, or more",
        panels=[panels],
        width=8.2,
        height=3.2,
    )


def draw_differences(found: Comparison) -> Chart:
    """Return Figure 8: the bandwidth of each job under MCKP less that under STATIC, by size of the pool."""
    panels, lost = list[Panel | None](), 0
    for job in found.alone:
        values = [
            mckp - static
            for mckp, static in zip(found.bandwidth("mckp", job), found.bandwidth("static", job), strict=True)
        ]
        lost += min(values) < 0
        panels.append(
            Panel(
                marks=[Bars(at=list(range(len(values))), values=values, look=_look("mckp"))],
                title=job,
                x=_of_pools(found),
                y=Axis(label="MCKP - STATIC [MB/s]", grid=True),
            )
        )
    number = len(panels)
    panels += [None] * (-number % 3)
    rows = [panels[at : at + 3] for at in range(0, len(panels), 3)]
    return Chart(
        name="differences",
        width=8.2,
        height=2.4 * len(rows),
        panels=rows,
        title=f"{lost} of {number} jobs have less under MCKP than under STATIC with some size of the pool",
    )


def draw_curves(curves: Mapping[str, Curve]) -> Chart:
    """Return curves of bandwidth by I/O nodes, with the standard deviation of a repetition.

    Many stand in several panels, so that each line has a colour of its own.
    """
    names = list(curves)
    groups = [names[at : at + SERIES] for at in range(0, len(names), SERIES)] or [[]]
    panels = [[_curves({name: curves[name] for name in group})] for group in groups]
    return Chart(name="curves", title=curves_words(curves), panels=panels, width=8.2, height=4.2 * len(groups))


def _curves(curves: Mapping[str, Curve]) -> Panel:
    marks: list[Mark] = []
    for index, (name, curve) in enumerate(curves.items()):
        own, points = look(index), list(curve.points.values())
        bars = [
            [(count, point.mean - point.deviation), (count, point.mean + point.deviation)]
            for count, point in zip(curve.counts, points, strict=True)
            if point.deviation
        ]
        marks += [
            Line(
                x=curve.counts,
                y=[point.mean for point in points],
                look=Look(own.colour, "-", own.marker),
                width=1,
                size=4,
                name=name,
            ),
            Segments(lines=bars, look=Look(own.colour), width=0.8),
        ]
    counts = sorted({count for curve in curves.values() for count in curve.counts})
    step = -(-len(counts) // _MOST_TICKS) or 1
    return Panel(
        marks=marks,
        legend=True,
        x=Axis(label="I/O nodes", ticks=[(count, str(count)) for count in counts[::step]]),
        y=Axis(label="bandwidth [MB/s]", low=0, grid=True),
    )
