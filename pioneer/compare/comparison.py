"""Two workloads compared: every metric with its limit and judgment, and the series of the paper's figures.

Content.   `compare_workloads` gives a `Comparison`; `to_json` is the document of ``mpiio-ext pioneer compare``.
Figures.   Throughput (the paper's Figure 5), file-data operations and their ratio to all operations (Figure 6), arrival
           rates (Figure 7), of all ranks. Both workloads begin at 0.
Choices.   Nothing is sampled: all operations count. Series have `BINS` equal bins of the longer makespan. The time unit
           of the arrival rates is 1 / `UNITS` of the original's makespan, the same for both. Where the numbers of
           processes differ, operations of the synthetic workload's children are weighted so that it has as many as the
           original. The metrics are those of the workload paths (`compare.metrics`), which the weight does not affect;
           metrics of time are the root's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.common.units import digits_text, seconds_text
from mpiio_ext.pioneer.compare.activity import Activity
from mpiio_ext.pioneer.compare.metrics import (
    LIMITS,
    TIMED,
    UNITS,
    compare_paths,
    counts_of,
    is_within,
    shown,
    touched_of_classes,
)
from mpiio_ext.pioneer.compare.workload import Workload
from mpiio_ext.pioneer.engine.unknown import offsets_known, unknown_sizes
from mpiio_ext.pioneer.profile import Distribution

#: Of the JSON document; raised when the meaning of a name in it changes.
VERSION = 1
#: Bins of a series over time.
BINS = 200

#: Of two paths there is no more to be counted than `counts` has; of traces, whether the paths stand for all ranks.
_LIMITS: Mapping[str, float] = {**LIMITS, "total": 0.005}

_MOST_BINS = 100_000
#: Below this a run's time is not judged, ns: 5 % of that are less than a time slice of the scheduler.
_SHORT_NS = 100_000_000
_ARRIVAL_SCALE = 1000

#: Meanings of the metrics, for people; of characteristics without their classes.
MEANINGS: Mapping[str, str] = {
    "total": "relative difference of the number of operations of all ranks",
    "counts": "largest relative difference of the number of an operation",
    "span": "relative difference of the span of the global sequence IDs",
    "holes": "relative difference of the share of operations outside of open sessions",
    "duplicates": "share of operations whose global sequence ID another one has, too",
    "order": "Jensen-Shannon divergence of pairs of successive operations",
    "arrival": f"KS distance of the operations of the root in each {UNITS}th of its run",
    "makespan": "relative difference of the root's time from first start to last end",
    "slack": "KS distance of the slack times (ST) of all groups",
    "slack_us": "median difference of equal quantiles of the slack times (ST), us",
    "duration": "KS distance of the operations of an open session (D)",
    "opened": "KS distance of the open sessions of a file (OT)",
    "size": "KS distance of the request sizes (SIZE)",
    "request_gap": "KS distance of the gaps between requests of a session (IRG)",
    "session_gap": "KS distance of the gaps between sessions of a file (ISG)",
    "offset": "KS distance of the offsets (OFF)",
    "touched": "bytes that one touches more often than the other, in relation to those that the original touches",
    "in_path": "bytes that ranks touch otherwise by the original's own path, in relation to those that they touch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number by which two workloads are compared; 0: no difference.

    Attributes
    ----------
    name : "counts", or CLASS.NAME of a characteristic.
    value : of one to another, without a unit; of "slack_us" us.
    limit : largest value that counts as close.
    judged : it takes part in the verdict (`_not_judged`).
    """

    name: str
    value: float
    limit: float
    judged: bool = True

    @property
    def passed(self) -> bool:
        """Whether the value is within the limit."""
        return is_within(self.value, self.limit)

    @property
    def text(self) -> str:
        """The value for people; it never looks as if it were on the other side of its limit."""
        return shown(self.value, self.limit)

    @property
    def meaning(self) -> str:
        """The metric in words."""
        return MEANINGS[self.name.rpartition(".")[2]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The series of both workloads, the original's first.

    Attributes
    ----------
    bin_ns : width of a bin.
    unit_ns : time unit of the arrival rates.
    throughput : bytes per second in each bin.
    data_operations : data operations that begin in each bin.
    data_ratio : share of them in all operations that begin there; NaN if there are none.
    arrivals : operations that begin in each time unit, ascending.
    """

    bin_ns: float
    unit_ns: float
    throughput: tuple[NDArray[np.float64], NDArray[np.float64]]
    data_operations: tuple[NDArray[np.float64], NDArray[np.float64]]
    data_ratio: tuple[NDArray[np.float64], NDArray[np.float64]]
    arrivals: tuple[NDArray[np.float64], NDArray[np.float64]]

    @property
    def arrival_distance(self) -> float:
        """Kolmogorov-Smirnov distance of the arrival rates of all ranks."""
        scaled = [
            Distribution.of(np.rint(_ARRIVAL_SCALE * one).astype(np.int64), most=_MOST_BINS) for one in self.arrivals
        ]
        return scaled[0].distance(scaled[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences of two workloads.

    Attributes
    ----------
    original, synthetic : what was compared.
    metrics : in a fixed order.
    figures : series over time.
    note : why some metrics are not judged; "": all are.
    """

    original: Workload
    synthetic: Workload
    metrics: tuple[Metric, ...]
    figures: Figures
    note: str = ""

    @property
    def failed(self) -> tuple[Metric, ...]:
        """Metrics that are judged and beyond their limits."""
        return tuple(metric for metric in self.judged if not metric.passed)

    @property
    def passed(self) -> bool:
        """Whether all limits hold."""
        return not self.failed

    @property
    def judged(self) -> tuple[Metric, ...]:
        """Metrics that take part in the verdict."""
        return tuple(metric for metric in self.metrics if metric.judged)

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Why other metrics are not judged, a line for each reason, which names its metrics."""
        reasons: dict[str, list[str]] = {}
        why = _not_judged(self.original, self.synthetic, self.note)
        for metric in self.metrics:
            if not metric.judged:
                reasons.setdefault(why[metric.name], []).append(metric.name)
        return tuple(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())

    @property
    def verdict(self) -> str:
        """How many limits hold, and how many metrics have not been judged."""
        judged, rest = len(self.judged), len(self.metrics) - len(self.judged)
        return f"{judged - len(self.failed)} of {judged} limits hold" + (f"; {rest} metrics not judged" if rest else "")


# ---- figures ---------------------------------------------------------------------------------------------------------


def _ratio(data: NDArray[np.float64], every: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.full(data.size, np.nan)
    known = every > 0
    found[known] = data[known] / every[known]
    return found


def _figures(original: Activity, synthetic: Activity) -> Figures:
    several = (original, synthetic.with_children(original.ranks - 1))
    width = max(1, *(one.makespan for one in several)) / BINS
    unit = max(1, original.makespan) / UNITS
    data = [one.begun(width, BINS, data=True) for one in several]
    every = [one.begun(width, BINS) for one in several]
    rates = [one.moved(width, BINS) * 1e9 / width for one in several]
    units = [min(_MOST_BINS, max(1, int(np.ceil(one.makespan / unit)))) for one in several]
    arrivals = [np.sort(one.begun(unit, count)) for one, count in zip(several, units, strict=True)]
    return Figures(
        bin_ns=width,
        unit_ns=unit,
        throughput=(rates[0], rates[1]),
        data_operations=(data[0], data[1]),
        data_ratio=(_ratio(data[0], every[0]), _ratio(data[1], every[1])),
        arrivals=(arrivals[0], arrivals[1]),
    )


def _offsets_unknown(original: Workload, synthetic: Workload) -> dict[str, str]:
    """Return the metrics of offsets of classes whose offsets one side has and the other lacks, and why."""
    found: dict[str, str] = {}
    known = [offsets_known(one.path) for one in (original, synthetic)]
    for owner in sorted(set(known[0]) & set(known[1])):
        shares = [one[owner] for one in known]
        if is_within(abs(shares[0] - shares[1]), LIMITS["offset"]):
            continue
        side, share = min((("original", shares[0]), ("synthetic", shares[1])), key=lambda one: one[1])
        why = f"the {side} workload has the offsets of {share:.0%} of the accesses to {owner} files"
        found |= {f"{owner}.{name}": why for name in ("offset", "touched")}
    return found


def _not_judged(original: Workload, synthetic: Workload, note: str) -> dict[str, str]:
    """Return the metrics that mean nothing for these two workloads, and why."""
    others = original.activity.ranks != synthetic.activity.ranks
    found = {"total": "the numbers of processes are not the same"} if others else {}
    found |= _offsets_unknown(original, synthetic)
    if note:
        return found | dict.fromkeys(sorted(TIMED), note)
    if synthetic.kind != "path":
        found["slack"] = "no machine repeats single microseconds; of a run slack_us judges the slack times"
        if original.activity.makespan < _SHORT_NS:
            takes = seconds_text(original.activity.makespan / 1e9)
            short = f"the original takes {takes}, which no machine repeats closely"
            found |= dict.fromkeys(("arrival", "makespan"), short)
    if others:
        found |= dict.fromkeys(("arrival", "makespan"), "with another number of processes calls take another time")
    return found


def _of_each_rank(original: Workload, synthetic: Workload) -> bool:
    """Return whether both have equally many ranks, and what each rank touches is known."""
    first, second = original.touched, synthetic.touched
    return first is not None and second is not None and first.members == second.members


def _total(original: Workload, synthetic: Workload) -> float:
    """Return the relative difference of the number of operations of all ranks that are compared."""
    return abs(synthetic.operations - original.operations) / max(1.0, original.operations)


def compare_workloads(
    original: Workload, synthetic: Workload, *, note: str = "", in_path: Mapping[str, float] | None = None
) -> Comparison:
    """Return the differences of two workloads.

    Parameters
    ----------
    original, synthetic : what is compared.
    note : why the metrics of time are not to be judged, a changed pace for one; "": they are.
    in_path : of each class of files how much the original's own path differs from it (`in_path`), where that is known.
    """
    values = {"total": _total(original, synthetic)}
    values |= compare_paths(original.path, synthetic.path).values
    if _of_each_rank(original, synthetic):
        assert original.touched is not None and synthetic.touched is not None
        classes = {name.removesuffix(".touched") for name in values if name.endswith(".touched")}
        values |= touched_of_classes(original.touched, synthetic.touched, classes)
    values |= {f"{owner}.in_path": value for owner, value in (in_path or {}).items()}
    unjudged = _not_judged(original, synthetic, note)
    metrics = tuple(
        Metric(name=name, value=value, limit=_LIMITS[name.rpartition(".")[2]], judged=name not in unjudged)
        for name, value in values.items()
    )
    figures = _figures(original.activity, synthetic.activity)
    return Comparison(original=original, synthetic=synthetic, metrics=metrics, figures=figures, note=note)


# ---- the document ----------------------------------------------------------------------------------------------------


def _side(workload: Workload) -> dict[str, Any]:
    activity = workload.activity
    return {
        "name": workload.name,
        "kind": workload.kind,
        "format": workload.format or None,
        "ranks": activity.ranks,
        "groups": [len(ranks) for ranks in workload.path.info.members],
        "skipped_lines": workload.skipped,
        "path_operations": workload.path.table.num_rows,
        "operations": workload.operations,
        "bytes_written": activity.total_bytes(writes=True),
        "bytes_read": activity.total_bytes(writes=False),
        "makespan_s": activity.makespan / 1e9,
    }


def operation_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return how often each operation is in the two paths, and the relative difference."""
    first, second = counts_of(comparison.original.path), counts_of(comparison.synthetic.path)
    rows = []
    for key in sorted(first | second):
        one, other = first[key], second[key]
        rows.append(
            {
                "layer": key[0],
                "operation": key[1],
                "original": one,
                "synthetic": other,
                "difference": abs(one - other) / max(one, other),
            }
        )
    return rows


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.6g}") for value in values.tolist()]


def _pair(values: tuple[NDArray[np.float64], NDArray[np.float64]]) -> dict[str, list[float | None]]:
    return {"original": _numbers(values[0]), "synthetic": _numbers(values[1])}


def choices(comparison: Comparison) -> dict[str, str]:
    """Return how the numbers were made, in words."""
    figures = comparison.figures
    bin_s, unit_s = (digits_text(width_ns / 1e9, 6) for width_ns in (figures.bin_ns, figures.unit_ns))
    ranks = comparison.original.activity.ranks, comparison.synthetic.activity.ranks
    found = {
        "sampling": "none: every operation counts",
        "bins": f"{figures.throughput[0].size} equal bins of {bin_s} s, from the longer makespan",
        "time_unit": f"{unit_s} s for the arrival rates of both: 1/{UNITS} of the original's run",
        "throughput": "bytes of read and write operations, spread evenly over their execution times",
        "metrics": "of the generic workload paths, each operation once; those of time are the root's",
        "touched": (
            "of every rank, by the traces"
            if _of_each_rank(comparison.original, comparison.synthetic)
            else "of the representatives, by the paths; of every rank where there are two traces of as many ranks"
        ),
        "processes": "all that are in the trace; of a path each group's operations count for all of its members",
    }
    for name, side in (("original", comparison.original), ("synthetic", comparison.synthetic)):
        if side.left_out:
            words = ", ".join(f"{count:,} {operation}" for operation, count in sorted(side.left_out.items()))
            found[f"left_out_of_{name}"] = f"{words}: the engine does not make them; they are not compared"
        if unknown := unknown_sizes(side.path):
            words = ", ".join(f"{count:,} {operation}" for operation, count in sorted(unknown.items()))
            found[f"sizes_of_{name}"] = (
                f"{words}: the tracer could not record how many bytes they move, as ltrace of "
                "derived types; these sizes are not compared, others are"
            )
    if comparison.not_judged:
        found["not_judged"] = "; ".join(comparison.not_judged)
    if ranks[0] != ranks[1]:
        found["scaling"] = (
            f"figures: operations of the synthetic workload's {ranks[1] - 1} children are weighted as "
            f"if they were {ranks[0] - 1}, as many as the original has"
        )
    return found


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON object; units are in its part ``units``."""
    figures = comparison.figures
    return {
        "pioneer_comparison": VERSION,
        "passed": comparison.passed,
        "failed": [metric.name for metric in comparison.failed],
        "note": comparison.note,
        "units": {
            "value": "1",
            "limit": "1",
            "value of slack_us": "us",
            "difference": "1",
            "makespan_s": "s",
            "bytes_written": "bytes",
            "bytes_read": "bytes",
            "bin_s": "s",
            "time_unit_s": "s",
            "throughput": "bytes/s",
            "data_operations": "operations per bin",
            "data_ratio": "1",
            "arrivals": "operations per time unit",
        },
        "choices": choices(comparison),
        "original": _side(comparison.original),
        "synthetic": _side(comparison.synthetic),
        "metrics": [
            {
                "name": metric.name,
                "value": metric.value,
                "limit": metric.limit,
                "judged": metric.judged,
                "passed": metric.passed,
                "meaning": metric.meaning,
            }
            for metric in comparison.metrics
        ],
        "operations": operation_rows(comparison),
        "figures": {
            "bin_s": figures.bin_ns / 1e9,
            "time_unit_s": figures.unit_ns / 1e9,
            "throughput": _pair(figures.throughput),
            "data_operations": _pair(figures.data_operations),
            "data_ratio": _pair(figures.data_ratio),
            "arrivals": _pair(figures.arrivals),
            "arrival_distance": figures.arrival_distance,
        },
    }
