"""The capacity of a budget of time: how many runs, of how much of the work, and how sure a decision is. Pure.

Problem.   A decision takes pairs of runs, and what a run costs is known late: a refusal then has wasted the time.
Algorithm. A decision takes one start of the ranks, `FIRST_RUNS` run of the work as it is, candidates, and twice as
           many pairs of runs as the confidence needs at least, some seconds more each, since runs vary. If the whole
           plan does not fit, these parts are cut in this order: some candidates; the pauses of the work; a part of the
           work; the confidence, if a lower one is allowed. `LEAST_CONFIDENCE` needs three pairs; no decision has fewer.
Guarantee. A plan never needs more than the budget, by the costs that it is given. Where there is none, the refusal
           names the least budget for which there is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mpiio_ext.tune.evidence import least_pairs

#: Factor by which runs are expected to take longer than their median; those of the decision must not be missing.
RESERVE_MARGIN = 1.5
#: Of the work as it is, before anything is tried.
FIRST_RUNS = 1
#: Least and most candidates of a search.
LEAST_CANDIDATES, MOST_CANDIDATES = 3, 60
LEAST_CONFIDENCE = 0.75
_STEPS = (0.95, 0.9, 0.875, LEAST_CONFIDENCE)
#: Parts of the work that are tried: below the last one the start of the calls is all that is seen.
_SHARES = (1.0, 0.5, 0.25, 0.125)
#: Ratio of a run to its I/O time above which pauses are left out.
_PAUSES_COUNT = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The cost of runs, seconds.

    Attributes
    ----------
    start_s : until the ranks have started, once.
    run_s : a run of the whole work.
    io_s : the same without the pauses between its calls; at most `run_s`.
    """

    start_s: float
    run_s: float
    io_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The runs that fit into a budget.

    Attributes
    ----------
    candidates : settings that are searched.
    pairs : of the decision, at least.
    confidence : of the decision.
    pauses : whether the work has its pauses.
    share : of the work, in (0, 1].
    seconds : that all of it takes.
    """

    candidates: int
    pairs: int
    confidence: float
    pauses: bool
    share: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No plan fits; `needed_s` is the least budget that allows a decision."""

    needed_s: float


def least_seconds(run_s: float, confidence: float, candidates: int = LEAST_CANDIDATES) -> float:
    """Return the seconds of a decision without the start: runs as it is, candidates, and pairs."""
    return run_s * (FIRST_RUNS + candidates + 2 * RESERVE_MARGIN * least_pairs(confidence))


def _confidences(asked: float, may_fall: bool) -> list[float]:
    return [asked, *(step for step in _STEPS if step < asked and may_fall)]


def confidence_for(left_s: float, run_s: float, asked: float, *, may_fall: bool) -> float | None:
    """Return the highest confidence, up to the requested one, whose pairs fit beside the candidates; None if none fits.

    Parameters
    ----------
    left_s : seconds that are left after the first runs.
    run_s : of a run.
    may_fall : whether a lower one than `asked` will do.
    """
    done_s = FIRST_RUNS * run_s
    return next((one for one in _confidences(asked, may_fall) if least_seconds(run_s, one) - done_s <= left_s), None)


def choose_runs(
    budget_s: float, costs: Costs, confidence: float, *, may_fall: bool, may_shorten: bool = True
) -> Runs | Refusal:
    """Return the runs that fit into a budget.

    Parameters
    ----------
    confidence : that is asked for.
    may_fall : whether a lower one will do.
    may_shorten : whether a part of the work will do.
    """
    works = [(True, 1.0, costs.run_s)]
    if costs.run_s > _PAUSES_COUNT * costs.io_s:
        works.append((False, 1.0, costs.io_s))
    works += [(works[-1][0], share, works[-1][2] * share) for share in _SHARES[1:] if may_shorten]
    needed_s = math.inf
    for level in _confidences(confidence, may_fall):
        for pauses, share, run_s in works:
            least_s = costs.start_s + least_seconds(run_s, level)
            needed_s = min(needed_s, least_s)
            if least_s <= budget_s:
                more = MOST_CANDIDATES if run_s <= 0 else int((budget_s - least_s) / run_s)
                candidates = min(LEAST_CANDIDATES + more, MOST_CANDIDATES)
                seconds = costs.start_s + least_seconds(run_s, level, candidates)
                return Runs(
                    candidates=candidates,
                    pairs=least_pairs(level),
                    confidence=level,
                    pauses=pauses,
                    share=share,
                    seconds=min(seconds, budget_s),
                )
    return Refusal(needed_s=needed_s)
