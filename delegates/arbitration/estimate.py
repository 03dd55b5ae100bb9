"""The curve of a job that was never run with I/O nodes, from its access pattern and measurements of base patterns.

Problem.    Exploring every application with every number of I/O nodes is not affordable; its access pattern is known
            from a trace or from Darshan, and base patterns were measured once.
Algorithm.  A base pattern that is the same gives its curve. Otherwise the nearest ones
            (mpiio_ext.delegates.arbitration.pattern.distance), weighted by 1 / distance, give the geometric mean of
            their bandwidths at each number of I/O nodes that all of them have; their scatter around it is added to
            the spread of the repetitions. Patterns with direct I/O stand for those without only where all base
            patterns have it, and the other way round. Several patterns of one job are joined by their volumes: the
            time of each is its volume divided by its bandwidth, and the job's bandwidth is the whole volume over the
            whole time.
Guarantees. An estimate has 0 repetitions in every point, so that it is never taken for a measurement, and a source
            that says from what it was made, also where reads were estimated from writes.
Source.     Section 3.1 of the arbitration paper; joining by volumes: its reference [11] (Boito, RR-9366).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mpiio_ext.delegates.arbitration.curves import Curve, Point
from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.delegates.arbitration.pattern import Pattern, distance

#: Base patterns that an estimate is made from.
_NEAREST = 4


def estimate(pattern: Pattern, base: Mapping[Pattern, Curve], *, nearest: int = _NEAREST) -> Curve:
    """Return the curve of a pattern from measured base patterns.

    Raises
    ------
    CurveError
        There is no base pattern, or the nearest ones have no number of I/O nodes in common.
    """
    if pattern in base:
        return base[pattern]
    alike = [each for each in base if each.direct == pattern.direct]
    if not alike:  # better than nothing, and the source names the patterns
        alike, pattern = list(base), replace(pattern, direct=not pattern.direct)
        if pattern in base:
            return replace(base[pattern], source=f"{base[pattern].source} as {pattern.name}")
    ranked = sorted(alike, key=lambda each: (distance(pattern, each), each))[: max(nearest, 1)]
    if not ranked:
        raise CurveError("there is no measured base pattern to estimate from")
    counts = set.intersection(*(set(base[each].counts) for each in ranked))
    if not counts:
        raise CurveError(
            f"the patterns nearest to {pattern.name} have no number of I/O nodes in common: measure "
            + ", ".join(each.name for each in ranked)
            + " with the same ones"
        )
    weights = [1 / max(distance(pattern, each), 1e-3) for each in ranked]
    points = {count: _joint_point([base[each].points[count] for each in ranked], weights) for count in counts}
    others = {each.operation for each in ranked} - {pattern.operation}
    of = f"estimated ({pattern.operation}s by {' and '.join(sorted(others))}s)" if others else "estimated"
    return Curve(points, source=f"{of} from {', '.join(each.name for each in ranked)}")


def _joint_point(points: Sequence[Point], weights: Sequence[float]) -> Point:
    """Return the weighted geometric mean, with scatter and repetition spread added in squares."""
    total = sum(weights)
    logs = [math.log(max(point.mean, 1e-9)) for point in points]
    centre = sum(w * x for w, x in zip(weights, logs, strict=True)) / total
    scatter = sum(w * (x - centre) ** 2 for w, x in zip(weights, logs, strict=True)) / total
    noise = (
        sum(
            w * (p.deviation / p.mean) ** 2
            for w, p in zip(weights, points, strict=True)
            if p.deviation is not None and p.mean > 0
        )
        / total
    )
    mean = math.exp(centre)
    return Point(
        mean=mean,
        best=max(mean, *(point.best for point in points)),
        repetitions=0,
        deviation=mean * math.sqrt(scatter + noise),
    )


def joined(parts: Sequence[tuple[float, Curve]]) -> Curve:
    """Return the curve of a job that moves (volume in bytes, curve of its pattern) one after the other.

    Raises
    ------
    CurveError
        No part with a volume, or no number of I/O nodes that all parts have.
    """
    used = [(volume, curve) for volume, curve in parts if volume > 0]
    if not used:
        raise CurveError("there is no access pattern with a volume to estimate from")
    if len(used) == 1:
        return used[0][1]
    counts = set.intersection(*(set(curve.counts) for _, curve in used))
    if not counts:
        raise CurveError("the patterns of the job have no number of I/O nodes in common")
    whole = sum(volume for volume, _ in used)
    points = {}
    for count in counts:
        times = [volume / max(curve.points[count].mean, 1e-9) for volume, curve in used]
        mean = whole / sum(times)
        relative = math.sqrt(
            sum(
                (t / sum(times) * _relative(curve.points[count])) ** 2
                for t, (_, curve) in zip(times, used, strict=True)
            )
        )
        best = whole / sum(volume / max(curve.points[count].best, 1e-9) for volume, curve in used)
        points[count] = Point(mean=mean, best=max(best, mean), deviation=mean * relative, repetitions=0)
    sources = "; ".join(dict.fromkeys(curve.source for _, curve in used))
    return Curve(points, source=f"joined by volume: {sources}")


def _relative(point: Point) -> float:
    return 0.0 if point.deviation is None or point.mean == 0 else point.deviation / point.mean


def anchored(shape: Curve, known: Mapping[int, float], *, source: str) -> Curve:
    """Return `shape` scaled to points in MB/s that are known, and those points themselves instead of estimates.

    The factor is the geometric mean of known over estimated, so that one odd point does not decide. The scaling needs
    numbers that the shape has and that are positive; without any of them the shape is unchanged.
    """
    ratios = [
        math.log(value / shape.points[count].mean)
        for count, value in known.items()
        if count in shape.points and value > 0 and shape.points[count].mean > 0
    ]
    factor = math.exp(sum(ratios) / len(ratios)) if ratios else 1.0
    points = {
        count: Point(
            mean=point.mean * factor,
            best=point.best * factor,
            repetitions=0,
            deviation=None if point.deviation is None else point.deviation * factor,
        )
        for count, point in shape.points.items()
    }
    points |= {count: Point(mean=value, best=value) for count, value in known.items()}
    return Curve(points, source=source)
