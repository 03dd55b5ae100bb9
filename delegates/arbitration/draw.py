"""Figures of the simulations: Figures 2, 3 and 6 to 9 of the arbitration paper, and curves (its Figures 1 and 5).

Every policy has a colour and a mark of its own, so that no policy is recognized by colour alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

from mpiio_ext.common.plots import SERIES, Axis, Bar, Chart, Look, Panel, corners, look
from mpiio_ext.common.results import ENOUGH
from mpiio_ext.delegates.arbitration.comparison import Comparison
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.queue import QueueResult
from mpiio_ext.delegates.arbitration.rules import policy_classes
from mpiio_ext.delegates.arbitration.simulation import Simulation

_MOST_TICKS = 12
_IN_POOL = Axis(label="I/O nodes in the pool")


def _look(policy: str) -> Look:
    """Return the look of a policy."""
    found = policy_classes()[policy.lower()]
    return Look(found.colour, found.line, found.marker, size=4)


def medians_words(simulation: Simulation) -> str:
    """Return the message of `draw_medians`: the policy, except ORACLE, that most often has the largest median."""
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
    """Return the message of `draw_gain`: the range of the medians, and the largest gain of all."""
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
    """Return the number of I/O nodes that is best beyond the deviations of the repetitions; None if there is none."""
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
    """Return the message of `draw_curves`: the number of I/O nodes that is most often best beyond deviations."""
    found = Counter(best for curve in curves.values() if (best := _best(curve)) is not None)
    number = f"{len(curves):,} curve{'' if len(curves) == 1 else 's'}"
    if not found:
        return f"No number of I/O nodes is best beyond the deviation of {ENOUGH} repetitions, in any of {number}"
    ((count, times),) = found.most_common(1)
    nodes = f"{count} I/O node{'' if count == 1 else 's'}"
    return f"{times:,} of {number} {'is' if times == 1 else 'are'} best with {nodes}, beyond the deviations"


def draw_medians(simulation: Simulation) -> Chart:
    """Return Figure 2: the median aggregate bandwidth of each policy by size of the pool."""

    def draw(panel: Panel) -> None:
        for name, values in simulation.bandwidth.items():
            medians = (np.median(values, axis=0) / 1000).tolist()
            panel.line(simulation.pools.tolist(), medians, _look(name), policy_classes()[name].name)
        panel.frame(_IN_POOL, Axis(label="median aggregate bandwidth [GB/s]", low=0, grid=True))

    return Chart(
        name="medians", title=medians_words(simulation), panels=[[draw]], width=7, height=3.6, legend="above", columns=7
    )


def draw_gain(simulation: Simulation) -> Chart:
    """Return Figure 3: the bandwidth of MCKP over STATIC's, smallest, median and largest of the sets."""
    pools, ratio = simulation.pools.tolist(), simulation.ratio("mckp", "static")
    low, middle, high = (part.tolist() for part in (ratio.min(axis=0), np.median(ratio, axis=0), ratio.max(axis=0)))

    def draw(panel: Panel) -> None:
        panel.area(pools, low, high, Look("series4"), "smallest to largest")
        panel.line(pools, middle, _look("mckp"), "median")
        panel.rule(1, Look("ink", "--"), across=True, width=0.8)
        ticks = [(n, str(n)) for n in (1, 2, 5, 10, 20)]
        panel.frame(_IN_POOL, Axis(label="bandwidth of MCKP over STATIC [×]", scale="log", grid=True, ticks=ticks))

    return Chart(name="gain", title=gain_words(simulation), panels=[[draw]], width=7, height=3.6, legend="own")


def draw_queue(results: Sequence[QueueResult]) -> Chart:
    """Return the aggregate bandwidth of the running jobs over time, and the mean bandwidth of each job, by policy.

    Both axes of the first are logarithmic: short jobs with much bandwidth stand beside long ones with little. It begins
    at a tenth of the first change's time.
    """
    first = min((each.time_s for result in results for each in result.steps if each.time_s > 0), default=1.0) / 10
    every = (job for result in results for job in sorted(result.jobs, key=lambda job: (job.start_s, job.name)))
    names = list(dict.fromkeys(job.name for job in every))

    def over_time(panel: Panel) -> None:
        for result in results:
            own = _look(result.policy)
            steps = [each for each in result.steps if each.grants]
            times, values = corners(
                [max(each.time_s, first) for each in steps] + [result.makespan_s],
                [each.bandwidth / 1000 for each in steps],
            )
            panel.line(times, values, Look(own.colour, own.dash), result.policy, width=1.4)
            panel.line(times[-1:], values[-1:], Look(own.colour, "", "|", size=9))  # the queue is empty
        panel.frame(
            Axis(label="time [s], logarithmic; | the end of the queue", scale="log", low=first),
            Axis(label="running jobs [GB/s]", scale="log", grid=True),
        )

    def by_job(panel: Panel) -> None:
        width = 0.8 / max(len(results), 1)
        for index, result in enumerate(results):
            means = {job.name: job.bandwidth / 1000 for job in result.jobs}
            bars = [Bar(at + (index + 0.5) * width - 0.4, means[name]) for at, name in enumerate(names)]
            panel.bars(bars, Look(_look(result.policy).colour), result.policy, width=width)
        panel.frame(
            Axis(ticks=list(enumerate(names)), turn=30), Axis(label="mean of the job [GB/s]", scale="log", grid=True)
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
    """Return the message of `draw_sums`: the policy within the pool that has most with the most pools."""
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


def _beside(label: str, high: float, *, first: bool) -> Axis:
    """Return the y axis of a panel whose row has one scale: the first one has the words."""
    shown: dict[str, Any] = {"label": label} if first else {"form": lambda _: ""}
    return Axis(low=0, high=1.05 * high, grid=True, **shown)


def _of_pools(found: Comparison) -> Axis:
    return Axis(label=_IN_POOL.label, ticks=[(at, str(pool)) for at, pool in enumerate(found.pools)])


def draw_sums(found: Comparison) -> Chart:
    """Return Figure 6: the bandwidths of the jobs on top of each other, a panel a policy, a bar a size of the pool."""
    at, names = list(range(len(found.pools))), list(found.allocations)
    most = max(one.bandwidth for allocations in found.allocations.values() for one in allocations) / 1000

    def draw(name: str, panel: Panel) -> None:
        foot = np.zeros(len(at))
        for index, job in enumerate(found.alone):
            values = np.array(found.bandwidth(name, job)) / 1000
            places = zip(at, values.tolist(), foot.tolist(), strict=True)
            panel.bars([Bar(place, value, foot=low) for place, value, low in places], look(index), job)
            foot = foot + values
        beside = _beside("bandwidth of the jobs [GB/s]", most, first=name == names[0])
        panel.frame(_of_pools(found), beside, policy_classes()[name].name)

    return Chart(
        name="sums",
        title=comparison_words(found),
        panels=[[partial(draw, name) for name in names]],
        width=8.2,
        height=3.6,
        legend="above",
        columns=min(len(found.alone), SERIES),
    )


def draw_shares(found: Comparison) -> Chart:
    """Return Figure 7: the bandwidth of each job under MCKP over its bandwidth alone with the same pool."""
    names = list(found.alone)

    def draw(index: int, panel: Panel) -> None:
        shares = [100 * found.shares("mckp", job)[index] for job in names]
        panel.bars(list(starmap(Bar, enumerate(shares))), _look("mckp"))
        x, y = Axis(ticks=list(enumerate(names)), turn=90), _beside("of its best alone [%]", 100, first=index == 0)
        panel.frame(x, y, f"{found.pools[index]} I/O nodes")

    least = min(min(found.shares("mckp", job)) for job in names)
    return Chart(
        name="shares",
        title=f"Under MCKP each job has {least:.0%} of its best bandwidth alone, or more",
        panels=[[partial(draw, index) for index in range(len(found.pools))]],
        width=8.2,
        height=3.2,
    )


def draw_differences(found: Comparison) -> Chart:
    """Return Figure 8: the bandwidth of each job under MCKP less that under STATIC, by size of the pool."""
    differences = {
        job: [a - b for a, b in zip(found.bandwidth("mckp", job), found.bandwidth("static", job), strict=True)]
        for job in found.alone
    }

    def draw(job: str, panel: Panel) -> None:
        values = differences[job]
        panel.bars(list(starmap(Bar, enumerate(values))), _look("mckp"))
        panel.frame(_of_pools(found), Axis(label="MCKP - STATIC [MB/s]", grid=True), job)

    panels = [*(partial(draw, job) for job in differences), *[None] * (-len(differences) % 3)]
    rows = [panels[at : at + 3] for at in range(0, len(panels), 3)]
    lost = sum(min(values) < 0 for values in differences.values())
    return Chart(
        name="differences",
        width=8.2,
        height=2.4 * len(rows),
        panels=rows,
        title=f"{lost} of {len(differences)} jobs have less under MCKP than under STATIC with some size of the pool",
    )


def draw_curves(curves: Mapping[str, Curve]) -> Chart:
    """Return curves of bandwidth by I/O nodes, with the standard deviation of a repetition.

    Many stand in several panels, so that each line has a colour of its own.
    """
    names = list(curves)
    groups = [names[at : at + SERIES] for at in range(0, len(names), SERIES)] or [[]]
    return Chart(
        name="curves",
        title=curves_words(curves),
        panels=[[partial(_curves, {name: curves[name] for name in group})] for group in groups],
        width=8.2,
        height=4.2 * len(groups),
        legend="own",
    )


def _curves(curves: Mapping[str, Curve], panel: Panel) -> None:
    for index, (name, curve) in enumerate(curves.items()):
        own, points = look(index), list(curve.points.values())
        deviations = [
            [(count, point.mean - point.deviation), (count, point.mean + point.deviation)]
            for count, point in zip(curve.counts, points, strict=True)
            if point.deviation
        ]
        means = [point.mean for point in points]
        panel.line(curve.counts, means, Look(own.colour, "-", own.marker, size=4), name, width=1)
        panel.segments(deviations, Look(own.colour), width=0.8)
    counts = sorted({count for curve in curves.values() for count in curve.counts})
    step = -(-len(counts) // _MOST_TICKS) or 1
    ticks = [(count, str(count)) for count in counts[::step]]
    panel.frame(Axis(label="I/O nodes", ticks=ticks), Axis(label="bandwidth [MB/s]", low=0, grid=True))
