"""Fidelity metrics of two workload paths.

Content.   counts        largest relative difference of the number of an operation
           duplicates    share of the operations of the synthetic path whose global sequence ID another one has, too
           characteristics   Kolmogorov-Smirnov distance of D, OT, SIZE, IRG, ISG, OFF of each class, and of all ST;
                         SIZE and OFF: of the group in which it is largest
           span, holes   relative difference of the span of the IDs, and of the share of operations that are outside of
                         sessions
           order         Jensen-Shannon divergence (base 2) of pairs of successive operations
           arrival       Kolmogorov-Smirnov distance of the numbers of operations in a time unit (the paper's Figure 7);
                         the unit is 1 / `UNITS` of the run
           slack_us      median difference of equal quantiles of ST, us: how exactly pauses are kept where a path is
                         carried out; the distance of ST judges microseconds that no machine repeats
           makespan      relative difference of the root's time from its first operation's start to its last one's end
           touched       of each class of files: how many bytes one touches more often than the other, in relation to
                         those that the original touches (`touched`); of paths the representatives
           in_path       the same of every rank, between a trace and the plans of its own path (`in_path`): whether the
                         path stands for the trace, whatever is made of it
Limits.    `LIMITS` has for each metric what counts as close. A metric that a shuffled order, Poisson slack times or
           uniform offsets do not fail would be of no use; tests see that they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.compare.touched import Touched, touched_by_groups
from mpiio_ext.pioneer.operations import DATA
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile import Distribution, Profile, characterize
from mpiio_ext.pioneer.profile.sessions import flags_of

UNITS = 200

#: Metrics of slack and execution times: they mean nothing for a run at another pace.
TIMED = frozenset({"slack", "slack_us", "arrival", "makespan"})

#: Largest value of each metric with which a sampled path counts as close; of characteristics by their names.
LIMITS: Mapping[str, float] = {
    "counts": 0.005,
    "duration": 0.02,
    "opened": 0.02,
    "size": 0.02,
    "request_gap": 0.02,
    "session_gap": 0.02,
    "offset": 0.02,
    "slack": 0.02,
    "span": 0.01,
    "holes": 0.01,
    "order": 0.02,
    "arrival": 0.05,
    "duplicates": 0.0,
    "makespan": 0.05,
    "slack_us": 100.0,
    "touched": 0.02,
    "in_path": 0.02,
}

#: Part of a limit that a value may be beyond it: sums and differences of doubles are not exact, 0.35 - 0.3 is no 0.05.
_ROUNDING = 1e-9
#: Digits behind the point of numbers that are printed, and those that separate every two doubles.
_DIGITS, _MOST_DIGITS = 4, 17

#: Most different slack times that are stored exactly.
_MOST = 1 << 20
#: Parts into which slack times are cut to be compared.
_QUANTILES = 1000

_OF_CLASS = ("duration", "opened", "size", "request_gap", "session_gap", "offset")


def is_within(value: float, limit: float) -> bool:
    """Return whether a value counts as close: it is not beyond its limit, but for the rounding of doubles."""
    return value <= limit * (1 + _ROUNDING)


def shown(value: float, limit: float, digits: int = _DIGITS) -> str:
    """Return a value for people, with so many digits that it is on the same side of its limit as the value itself.

    Parameters
    ----------
    value, limit : of a metric.
    digits : behind the point, at least.
    """
    texts = [f"{value:.{count}f}" for count in range(digits, _MOST_DIGITS + 1)]
    return next((text for text in texts if is_within(float(text), limit) == is_within(value, limit)), repr(value))


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The differences of two paths.

    Attributes
    ----------
    values : by metric; of characteristics ``CLASS.NAME``.
    """

    values: Mapping[str, float]

    @property
    def failed(self) -> dict[str, float]:
        """Metrics beyond their limits."""
        return {
            name: value for name, value in self.values.items() if not is_within(value, LIMITS[name.rpartition(".")[2]])
        }


def _numbers(path: WorkloadPath, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return a column of words as numbers, and the words."""
    words, numbers = np.unique(path.words(name).astype(str), return_inverse=True)
    return numbers.reshape(-1).astype(np.int64), words.tolist()


def counts_of(path: WorkloadPath) -> Counter[tuple[str, str]]:
    """Return how often each operation, (layer, name), is in a path."""
    (layers, layer_names), (operations, names) = _numbers(path, "layer"), _numbers(path, "operation")
    return _counted(layers, layer_names, operations, names)


def _counted(
    first: NDArray[np.int64], first_words: Sequence[str], second: NDArray[np.int64], second_words: Sequence[str]
) -> Counter[tuple[str, str]]:
    """Return how often each pair of words occurs."""
    codes, counts = np.unique(first * max(1, len(second_words)) + second, return_counts=True)
    return Counter(
        {
            (first_words[code // len(second_words)], second_words[code % len(second_words)]): count
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
        }
    )


def _largest_difference(first: Counter[tuple[str, str]], second: Counter[tuple[str, str]]) -> float:
    """Return the largest relative difference of a count; 1 for an operation that only one side has."""
    apart = [abs(first[name] - second[name]) / max(first[name], second[name]) for name in first | second]
    return max(apart, default=0.0)


def _pairs(path: WorkloadPath) -> Counter[tuple[str, str]]:
    numbers, words = _numbers(path, "operation")
    return _counted(numbers[:-1], words, numbers[1:], words)


def _entropy(shares: NDArray[np.float64]) -> float:
    known = shares[shares > 0]
    return float(-(known * np.log2(known)).sum())


def _divergence(first: Counter[tuple[str, str]], second: Counter[tuple[str, str]]) -> float:
    """Return the Jensen-Shannon divergence of two tables of counts, 0 .. 1."""
    names = sorted(first | second)
    if not first or not second:
        return float(bool(first) != bool(second))
    p = np.array([first[name] for name in names], float) / first.total()
    q = np.array([second[name] for name in names], float) / second.total()
    return max(0.0, _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2)


def _known(path: WorkloadPath, name: str, group: int) -> NDArray[np.int64]:
    """Return a column of the operations that a group takes part in, 0 for unknown values."""
    takes_part = path.table["groups"].to_numpy() >> group & 1 == 1
    return np.asarray(pc.fill_null(path.table[f"{name}_{group}"], 0).to_numpy()[takes_part])


def _arrivals(path: WorkloadPath) -> Distribution:
    """Return how many operations of the root begin in each time unit, by slack and execution times."""
    slack, duration = _known(path, "slack", 0), _known(path, "duration", 0)
    starts = np.cumsum(slack) + np.concatenate([[0], np.cumsum(duration)[:-1]]) if slack.size else slack
    if not starts.size:
        return Distribution.of([])
    unit = np.minimum(UNITS - 1, starts * UNITS // max(1, int(starts[-1]) + 1))
    return Distribution.of(np.bincount(unit, minlength=UNITS))


def _makespan(path: WorkloadPath) -> int:
    """Return the ns of slack and execution of the root."""
    return int(_known(path, "slack", 0).sum() + _known(path, "duration", 0).sum())


def _duplicates(path: WorkloadPath) -> float:
    count = path.table.num_rows
    return 1 - pc.count_distinct(path.table["id"]).as_py() / count if count else 0.0


def _slack(path: WorkloadPath) -> NDArray[np.int64]:
    """Return the slack times of all groups, ns."""
    return np.concatenate([_known(path, "slack", group) for group in range(path.group_count)])


def _slack_us(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the median difference of equal quantiles of slack times, us; 0 if one path has none."""
    if not first.size or not second.size:
        return 0.0
    at = np.linspace(0, 1, 1 + _QUANTILES)
    return float(np.median(np.abs(np.quantile(first, at) - np.quantile(second, at)))) / 1e3


def _hole_share(profile: Profile) -> float:
    outside = sum(sum(item.outside.values()) for item in profile.classes.values())
    return outside / max(1, profile.operations)


def _relative(first: float, second: float) -> float:
    """Return a difference in relation to the first number, if there is one."""
    return abs(second - first) / (first or 1.0)


def _of_classes(first: Profile, second: Profile) -> dict[str, float]:
    values = {}
    for name in sorted(set(first.classes) | set(second.classes)):
        one, other = first.classes.get(name), second.classes.get(name)
        for item in _OF_CLASS:
            mine = getattr(one, item) if one is not None else Distribution.of([])
            theirs = getattr(other, item) if other is not None else Distribution.of([])
            values[f"{name}.{item}"] = mine.distance(theirs)
    return values


def _of_groups(original: WorkloadPath, synthetic: WorkloadPath) -> dict[str, float]:
    """Return the largest distance of SIZE and OFF of each class among the groups of children that both paths have."""
    found: dict[str, float] = {}
    paths = (original, synthetic)
    data = [flags_of(path, *DATA) for path in paths]
    owners = [path.words("owner") for path in paths]
    for group in range(1, min(path.group_count for path in paths)):
        for item in ("size", "offset"):
            known = [pc.fill_null(path.table[f"{item}_{group}"], -1).to_numpy() for path in paths]
            for owner in sorted({name for own in owners for name in own if name is not None}):
                mine, theirs = (
                    Distribution.of(values[moves & (own == owner) & (values >= 0)], most=_MOST)
                    for values, moves, own in zip(known, data, owners, strict=True)
                )
                name = f"{owner}.{item}"
                found[name] = max(found.get(name, 0.0), mine.distance(theirs))
    return found


def touched_of_classes(original: Touched, synthetic: Touched, classes: Iterable[str]) -> dict[str, float]:
    """Return the metric `touched` of each class of files, those of the workloads and those that are given."""
    names = sorted({*classes, *original.classes, *synthetic.classes})
    return {f"{name}.touched": original.distance(synthetic, name) for name in names}


def compare_paths(original: WorkloadPath, synthetic: WorkloadPath) -> Fidelity:
    """Return the differences of a synthetic path from the original."""
    first, second = characterize(original), characterize(synthetic)
    classes, groups = _of_classes(first, second), _of_groups(original, synthetic)
    slack, other_slack = _slack(original), _slack(synthetic)
    values = {
        "counts": _largest_difference(counts_of(original), counts_of(synthetic)),
        "span": abs(second.span - first.span) / max(1, first.span),
        "holes": _relative(_hole_share(first), _hole_share(second)),
        "duplicates": _duplicates(synthetic),
        "order": _divergence(_pairs(original), _pairs(synthetic)),
        "arrival": _arrivals(original).distance(_arrivals(synthetic)),
        "makespan": abs(_makespan(synthetic) - _makespan(original)) / max(1, _makespan(original)),
        "slack": Distribution.of(slack, most=_MOST).distance(Distribution.of(other_slack, most=_MOST)),
        "slack_us": _slack_us(slack, other_slack),
        **{name: max(value, groups.get(name, 0.0)) for name, value in classes.items()},
        **touched_of_classes(
            touched_by_groups(original), touched_by_groups(synthetic), {*first.classes, *second.classes}
        ),
    }
    return Fidelity(values)
