"""Input and output of tuning: the plan, each run, the result."""

from __future__ import annotations

from dataclasses import dataclass

from mpiio_ext.tune.evidence import Evidence
from mpiio_ext.tune.setting import Setting
from mpiio_ext.tune.trial import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The user's request.

    Attributes
    ----------
    budget_s : seconds for everything.
    trials : settings that the search runs at most; None: as many as the budget holds.
    confidence : of the decision.
    may_fall : whether a lower one will do where the budget holds no more; `budget.LEAST_CONFIDENCE` at least.
    seed : of all random choices.
    subject : what is run, in messages.
    """

    budget_s: float
    trials: int | None = None
    confidence: float = 0.95
    may_fall: bool = False
    seed: int = 0
    subject: str = "the program"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run.

    Attributes
    ----------
    number : counts all runs from 1.
    phase : "baseline", "search", "race", "prune", "confirm", or "check" (the baseline again, after several failures).
    setting : what was laid over the baseline.
    status, reason, exit_status, elapsed_s : as in `Outcome`; status may also be "unjudged".
    cost : by the metric, lower is better; None when there is none.
    """

    number: int
    phase: str
    setting: Setting
    status: str
    reason: str
    exit_status: int
    elapsed_s: float
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The knowledge at the end, or at an interruption.

    Attributes
    ----------
    verdict : "wins", "nothing" (wins) or "unconfirmed".
    reason : one line, for a verdict other than "wins".
    candidate : the setting that came to the decision, or the best so far; None when there is none.
    evidence : the decision's numbers; None when it did not come to that.
    records : every run.
    baseline : the first run; None when it did not end.
    interrupted : whether the user ended it.
    broken_status : exit status with which the program failed as it is after it had run well; 0: it never did.
    spent_s : seconds used.
    delegates : what delegates would gain, by the first statistics of a run that contain it; "": nothing.
    """

    verdict: str
    reason: str
    candidate: Setting | None
    evidence: Evidence | None
    records: tuple[Record, ...]
    baseline: Outcome | None
    interrupted: bool
    broken_status: int
    spent_s: float
    delegates: str = ""
