"""Two sets of results, row by row.

Rows are matched by workload variant, interface, method, phase and operation. A row's figures are the bandwidths of its
repetitions, and the judgment is by their ranges, which needs no assumption on how noise is distributed:

- "faster" when the slowest new repetition beats the fastest old one, "slower" the other way round;
- "within noise" when the ranges overlap or touch;
- "not judged" when a side has fewer than three repetitions: their range says too little.

The ratio is new median over old median. Its range runs from slowest new over fastest old to fastest new over slowest
old, so that "slower" means that the whole range lies below 1. A limit R generalises that: a row falls under R beyond
noise when the whole range lies below R.

Both sets were measured at different times. How much the MPI library's own rows changed between them says how much of
the change is the machine's.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mpiio_ext.common.results import ENOUGH, Key, Measured, Spread
from mpiio_ext.report.environment import Difference, differences
from mpiio_ext.report.errors import ReportError
from mpiio_ext.report.load import ResultSet
from mpiio_ext.report.words import row_title

RULE = (
    "faster: the slowest new repetition beats the fastest old one; slower: the other way round; within noise: the "
    "ranges overlap; not judged: fewer than three repetitions on a side"
)


def judge_change(old: Spread, new: Spread) -> str:
    """Return "faster", "slower", "within noise" or "not judged"; see the head of this file for the rule."""
    if min(old.count, new.count) < ENOUGH:
        return "not judged"
    if new.low > old.high:
        return "faster"
    return "slower" if new.high < old.low else "within noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A row that both sets have.

    Attributes
    ----------
    key : what it is
    old, new : the two rows
    ratio, ratio_low, ratio_high : new over old, of the medians and at the ends of the ranges; None when the old is 0
    judgment : "faster", "slower", "within noise", "not judged"
    other_size : the rows moved different amounts of data or had other numbers of ranks
    """

    key: Key
    old: Measured
    new: Measured
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    judgment: str
    other_size: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """Differences between the environments of two sets, by their names."""

    old_name: str
    new_name: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything about two sets of results.

    Attributes
    ----------
    matches : rows of both, in the order of the new ones
    only_old, only_new : rows of one of them
    warned : pairs of result sets whose environments differ
    native_drift : median of the ratios of the MPI library's own rows; None without such rows
    """

    matches: tuple[Match, ...]
    only_old: tuple[Measured, ...]
    only_new: tuple[Measured, ...]
    warned: tuple[Warned, ...]
    native_drift: float | None

    def count(self, judgment: str) -> int:
        """Return how many rows were judged so."""
        return sum(match.judgment == judgment for match in self.matches)


def _by_key(sets: Iterable[ResultSet]) -> dict[Key, tuple[ResultSet, Measured]]:
    found: dict[Key, tuple[ResultSet, Measured]] = {}
    for item in sets:
        for row in item.rows:
            if row.key in found:
                raise ReportError(
                    f"{found[row.key][0].path} and {item.path} both hold the row '{row_title(row)}': "
                    "compare one set of results at a time"
                )
            found[row.key] = item, row
    return found


def _match(old: Measured, new: Measured) -> Match:
    def over(above: float, below: float) -> float | None:
        return above / below if below > 0 else None

    return Match(
        key=new.key,
        old=old,
        new=new,
        ratio=over(new.bandwidth.median, old.bandwidth.median),
        ratio_low=over(new.bandwidth.low, old.bandwidth.high),
        ratio_high=over(new.bandwidth.high, old.bandwidth.low),
        judgment=judge_change(old.bandwidth, new.bandwidth),
        other_size=(old.last.data_bytes, old.last.ranks) != (new.last.data_bytes, new.last.ranks),
    )


def compare(old_sets: Sequence[ResultSet], new_sets: Sequence[ResultSet]) -> Comparison:
    """Match the rows of the new sets with those of the old ones.

    Raises
    ------
    ReportError
        A side holds a row twice.
    """
    old, new = _by_key(old_sets), _by_key(new_sets)
    matches = tuple(_match(old[key][1], row) for key, (_, row) in new.items() if key in old)
    natives = [match.ratio for match in matches if match.new.native and match.ratio is not None]
    pairs = {
        (old[match.key][0].path, new[match.key][0].path): (old[match.key][0], new[match.key][0]) for match in matches
    }
    warned = [
        Warned(old_name=before.name, new_name=after.name, differences=tuple(found))
        for before, after in pairs.values()
        if (found := differences(before.environment, after.environment, before.configuration, after.configuration))
    ]
    return Comparison(
        matches=matches,
        only_old=tuple(row for key, (_, row) in old.items() if key not in new),
        only_new=tuple(row for key, (_, row) in new.items() if key not in old),
        warned=tuple(warned),
        native_drift=statistics.median(natives) if natives else None,
    )


def falls_below(match: Match, limit: float) -> bool:
    """Return whether a row of the extension falls under `limit` beyond noise.

    Rows of the MPI library never count: they show the machine. Rows without a judgement do not count, either.
    """
    return (
        not match.new.native
        and match.judgment != "not judged"
        and match.ratio_high is not None
        and match.ratio_high < limit
    )


def as_json(comparison: Comparison, limit: float | None) -> dict[str, Any]:
    """Return the comparison as plain data.

    Parameters
    ----------
    comparison : what was compared.
    limit : of ``--fail-below``, or None.

    Returns
    -------
    `rule`, `fail_below`, `native_drift`, `counts` per judgment, `warnings`, `matched` (bandwidths in 10⁶ bytes a
    second), `only_new`, `only_baseline` (keys).
    """

    def side(spread: Spread) -> dict[str, Any]:
        return {
            "median_mb_per_s": spread.median,
            "min_mb_per_s": spread.low,
            "max_mb_per_s": spread.high,
            "repetitions": spread.count,
        }

    return {
        "schema_version": 1,
        "rule": RULE,
        "fail_below": limit,
        "native_drift": comparison.native_drift,
        "counts": {word: comparison.count(word) for word in ("faster", "within noise", "slower", "not judged")},
        "warnings": [asdict(item) for item in comparison.warned],
        "matched": [
            {
                **asdict(match.key),
                "baseline": side(match.old.bandwidth),
                "new": side(match.new.bandwidth),
                "ratio": match.ratio,
                "ratio_min": match.ratio_low,
                "ratio_max": match.ratio_high,
                "ratio_to_native_baseline": match.old.ratio.median if match.old.ratio else None,
                "ratio_to_native_new": match.new.ratio.median if match.new.ratio else None,
                "judgment": match.judgment,
                "other_size": match.other_size,
                "failed": limit is not None and falls_below(match, limit),
            }
            for match in comparison.matches
        ],
        "only_new": [asdict(row.key) for row in comparison.only_new],
        "only_baseline": [asdict(row.key) for row in comparison.only_old],
    }
