"""The phases of tuning: baseline, search, race, prune, confirm.

Problem: within a budget of time, find the hints under which a program is fastest, when one run costs seconds, its
time is noisy, and the fastest of many noisy times is mostly lucky.

How. 1. *Baseline*: the program as it is; it shows ranks, files, kinds of access, and what a run costs. 2. *Search*: the
optimiser proposes, every proposal runs once. 3. *Race*: the settings close to the best, and the baseline if it is one
of them, run again in rounds of random order; after every second round the slower half leaves (successive halving;
K. Jamieson, A. Talwalkar, AISTATS 2016). Only the new times count, which no selection has touched. 4. *Prune*: hints
without which the winner is as fast are dropped, several at a time where possible. 5. *Confirm*: baseline and winner run
in new pairs of random order, as many as the rest of the budget holds, and `mpiio_ext.tune.evidence` decides.

Guarantees. A setting is kept only if the confidence interval of its gain over the baseline lies above 1 and the gain is
at least `LEAST_GAIN`. The pairs are new and the test is made once, so that the chance of keeping a setting that is no
better is at most (1 - confidence) / 2, however many were tried. The tuner never chooses a setting under which the
program failed or was stopped. No run begins that would probably end after the budget, and a run at the end of the
budget is stopped.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mpiio_ext.common.units import digits_text
from mpiio_ext.tune.budget import (
    FIRST_RUNS,
    LEAST_CANDIDATES,
    LEAST_CONFIDENCE,
    RESERVE_MARGIN,
    confidence_for,
    least_seconds,
)
from mpiio_ext.tune.errors import ProgramError, TooShort, TuneError
from mpiio_ext.tune.evidence import Evidence, evidence, least_pairs
from mpiio_ext.tune.objective import Metric, Unjudged
from mpiio_ext.tune.outcome import Plan, Record, Result
from mpiio_ext.tune.search import Search
from mpiio_ext.tune.setting import BASELINE, Setting
from mpiio_ext.tune.space import Space
from mpiio_ext.tune.trial import Outcome, Runner

LEAST_GAIN = 1.01
#: A run is stopped after this multiple of the best time so far; never before LEAST_LIMIT_S.
STOP_FACTOR = 5.0
LEAST_LIMIT_S = 5.0
#: Search ends when this share of the free budget is left, the race when this one is.
AFTER_SEARCH, AFTER_RACE = 0.55, 0.25
#: "Close": within this factor of the best; the most settings in a race.
CLOSE = 1.4
RACERS = 8
RACE_ROUNDS = 12
#: A hint is dropped when this many pairs show, a standard error aside, that its loss is smaller than this.
PRUNE_PAIRS = 5
PRUNE_LOSS = 1.05
MOST_PAIRS = 20
#: Pairs that are worth it to the confirmation in advance, while they fit into this share of the budget.
GOOD_PAIRS, CONFIRM_SHARE = 12, 0.25
#: A gain that shows in fewer pairs.
CLEAR_GAIN = 1.5
#: Factor by which runs are expected to take longer than their median; for the confirmation see `budget`.
MARGIN = 1.2
REPEATS = 3
#: Number of consecutive failed runs after which the program runs as it is, to check whether it is to blame.
MANY_FAILURES = 3
MOST_DUPLICATES = 25
#: Begin of the statistics' line on a file without delegates that would gain by them.
WOULD_PAY = "would pay here: "
#: Begins the reason of a run that was stopped where it was not its fault.
_CUT = "the budget ended"


class _Broken(Exception):  # noqa: N818  (never leaves this module)
    """The program fails without changes after it had run well: a full disk, a deleted folder, a cluster in trouble."""


@dataclass(slots=True)
class _Known:
    """The measurements of one setting."""

    costs: list[float] = field(default_factory=list)
    elapsed_s: list[float] = field(default_factory=list)
    lost: str = ""


class Tuner:
    """Tunes one program.

    Parameters
    ----------
    runner : runs a setting.
    metric : judges a run.
    plan : budget and confidence.
    space_of : makes the space when the baseline has run.
    judge : chooses another metric from the baseline; None: `metric` it is.
    notify : called after each run.
    clock : monotonic seconds.
    """

    def __init__(
        self,
        *,
        runner: Runner,
        metric: Metric,
        plan: Plan,
        space_of: Callable[[Outcome], Space],
        judge: Callable[[Outcome], Metric] | None = None,
        notify: Callable[[Record], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runner, self._metric, self._plan = runner, metric, plan
        self._space_of, self._judge, self._notify, self._clock = space_of, judge, notify, clock
        self._random = random.Random(plan.seed)
        self._confidence, self._least_pairs = plan.confidence, least_pairs(plan.confidence)
        self._begin_s = clock()
        self._records: list[Record] = []
        self._known: dict[Setting, _Known] = {}
        self._baseline: Outcome | None = None
        self._delegates = ""
        self._candidate: Setting | None = None
        self._pairs: list[tuple[float, float]] = []
        self._elapsed_pairs: list[tuple[float, float]] = []

    def run(self) -> Result:
        """Do all phases.

        Raises
        ------
        ProgramError
            The program fails as it is.
        TuneError
            The budget is too short (`TooShort`), or the metric cannot judge the program.
        """
        interrupted = False
        broken: Record | None = None
        try:
            space = self._run_baseline()
            free_s = self._remaining_s() - self._reserve_s()
            self._search(space, free_s)
            self._candidate = self._race(self._close_ones(), free_s)
            if self._candidate is not None and self._candidate != BASELINE:
                self._candidate = self._prune(self._candidate)
                self._confirm(self._candidate)
        except KeyboardInterrupt:
            interrupted = True
            if not self._pairs and self._baseline is not None:
                self._candidate = self._best()
        except _Broken:
            broken = self._records[-1]
        except TooShort as error:
            if self._known[BASELINE].costs:
                error.result = self._result_of("unconfirmed", str(error))
            raise
        return self._result(interrupted, broken)

    # ---- one run ----------------------------------------------------------------------------------------------------

    def _remaining_s(self) -> float:
        return self._plan.budget_s - (self._clock() - self._begin_s)

    def _typical_s(self, setting: Setting) -> float:
        """Return the median time of a setting, or of the best one if it has none."""
        times = self._known[setting].elapsed_s if setting in self._known else []
        if times:
            return statistics.median(times)
        return min(statistics.median(known.elapsed_s) for known in self._known.values() if known.elapsed_s)

    def _affords(self, settings: Sequence[Setting], keep_s: float) -> bool:
        seconds = sum(self._typical_s(setting) + self._runner.start_s(setting) for setting in settings)
        return self._remaining_s() - keep_s > MARGIN * seconds

    def _reserve_s(self) -> float:
        """Return the seconds reserved for the confirmation: the least that it needs, more in a large budget."""
        pair_s = RESERVE_MARGIN * (self._typical_s(BASELINE) + self._typical_s(self._best() or BASELINE))
        good = min(int(CONFIRM_SHARE * self._plan.budget_s / pair_s), GOOD_PAIRS)
        return pair_s * max(self._least_pairs, good)

    def _measure(self, phase: str, setting: Setting, keep_s: float = 0.0) -> float | None:
        """Run a setting once and return its cost; None if the run failed, was stopped or cannot be judged."""
        limit_s, ours = self._remaining_s() - keep_s, True
        if self._known and limit_s > (factor_s := max(STOP_FACTOR * self._typical_s(setting), LEAST_LIMIT_S)):
            limit_s, ours = factor_s, False
        limit_s = min(limit_s + self._runner.start_s(setting), self._remaining_s())
        number = len(self._records) + 1
        outcome = self._runner(setting, number, max(limit_s, 0.01), keep=phase in ("baseline", "confirm"))
        status, reason, cost = outcome.status, outcome.reason, None
        paying = (f"{use.path}: {use.delegation}" for use in outcome.files if use.delegation.startswith(WOULD_PAY))
        self._delegates = self._delegates or next(paying, "")
        if phase == "baseline" and status == "ok" and self._judge is not None:
            self._metric = self._judge(outcome)
        if status == "ok":
            try:
                cost = self._metric.cost(outcome)
            except Unjudged as error:
                status, reason = "unjudged", str(error)
        elif status == "stopped" and ours:
            reason = f"{_CUT}; {reason}"
        record = Record(
            number=number,
            phase=phase,
            setting=setting,
            status=status,
            reason=reason,
            cost=cost,
            exit_status=outcome.exit_status,
            elapsed_s=outcome.elapsed_s,
        )
        self._records.append(record)
        if phase == "baseline":
            self._baseline = outcome
        known = self._known.setdefault(setting, _Known())
        if cost is not None:
            known.costs.append(cost)
            known.elapsed_s.append(outcome.elapsed_s)
        elif not (status == "stopped" and ours and known.costs):
            known.lost = reason
        if self._notify is not None:
            self._notify(record)
        if setting == BASELINE and status == "failed" and phase != "baseline":
            raise _Broken
        if number > MANY_FAILURES and all(record.status == "failed" for record in self._records[-MANY_FAILURES:]):
            self._measure("check", BASELINE)  # is it the settings, or does everything fail by now?
        return cost

    # ---- phases -----------------------------------------------------------------------------------------------------

    def _run_baseline(self) -> Space:
        cost = self._measure("baseline", BASELINE)
        record, outcome = self._records[0], self._baseline
        assert outcome is not None
        if record.status == "failed":
            raise ProgramError(
                f"{self._plan.subject} fails as it is, without any change: {record.reason}", record.exit_status
            )
        if record.status == "stopped":
            least_s = least_seconds(record.elapsed_s, LEAST_CONFIDENCE if self._plan.may_fall else self._confidence)
            raise TooShort(
                f"the first run, without any change, did not end within the budget of "
                f"{self._plan.budget_s:g} s: use a larger --budget or a smaller case",
                run_s=record.elapsed_s,
                left_s=0.0,
                more_s=max(least_s, self._plan.budget_s),
            )
        if cost is None:
            raise TuneError(record.reason)
        space = self._space_of(outcome)
        self._choose_confidence(self._records[-1].elapsed_s)
        return space

    def _choose_confidence(self, run_s: float) -> None:
        """Choose the confidence whose pairs fit the budget."""
        asked, left_s = self._plan.confidence, self._remaining_s()
        found = confidence_for(left_s, run_s, asked, may_fall=self._plan.may_fall)
        if found is None:
            needed_s = least_seconds(run_s, LEAST_CONFIDENCE if self._plan.may_fall else asked) - FIRST_RUNS * run_s
            more_s = (needed_s - left_s) * 1.1
            needed = math.ceil(self._plan.budget_s + more_s)
            raise TooShort(
                f"the budget of {self._plan.budget_s:g} s is too short: a run takes {run_s:.1f} s, and a "
                f"decision takes {needed_s / run_s:.0f} times that; {max(left_s, 0):.0f} s are left: use "
                f"--budget {needed}s at least, better twice that",
                run_s=run_s,
                left_s=left_s,
                more_s=more_s,
            )
        self._confidence, self._least_pairs = found, least_pairs(found)

    def _search(self, space: Space, free_s: float) -> None:
        reference = self._known[BASELINE].costs[0]
        search = Search(space, reference, self._plan.seed)
        trials = duplicates = 0
        while trials != self._plan.trials and duplicates < MOST_DUPLICATES:
            best = self._best() or BASELINE
            least_s = MARGIN * LEAST_CANDIDATES * self._typical_s(best)  # of little, the search has its part first
            keep_s = self._reserve_s()
            if not self._affords([best], keep_s + AFTER_SEARCH * max(free_s - least_s, 0.0)):
                break
            setting, token = search.ask()
            known = self._known.get(setting)
            dear = self._runner.start_s(setting) > 0.0 and not self._affords([setting], keep_s)  # a start of its own
            if dear or (known is not None and not self._worth_repeating(known)):
                duplicates += 1
                costs = known.costs if known is not None and not known.lost else []
                search.tell(token, statistics.median(costs) if costs else None)
                continue
            trials, duplicates = trials + 1, 0
            search.tell(token, self._measure("search", setting, keep_s))

    def _worth_repeating(self, known: _Known) -> bool:
        """Whether a setting that is proposed again runs again: it is close to the best and not yet known well."""
        best = self._best()
        if known.lost or best is None or len(known.costs) >= REPEATS:
            return False
        return statistics.median(known.costs) <= CLOSE * statistics.median(self._known[best].costs)

    def _fit(self) -> list[Setting]:
        """Return the settings that never failed, best median first."""
        fit = [setting for setting, known in self._known.items() if known.costs and not known.lost]
        return sorted(fit, key=lambda setting: (statistics.median(self._known[setting].costs), len(setting.hints)))

    def _best(self) -> Setting | None:
        fit = self._fit()
        return fit[0] if fit else None

    def _close_ones(self) -> list[Setting]:
        fit = self._fit()
        if not fit:
            return []
        worst = CLOSE * statistics.median(self._known[fit[0]].costs)
        close = [setting for setting in fit if statistics.median(self._known[setting].costs) <= worst]
        racers = close[:RACERS]
        if BASELINE in close and BASELINE not in racers:
            racers[-1] = BASELINE
        return racers

    def _race(self, racers: list[Setting], free_s: float) -> Setting | None:
        """Return the winner of repeated runs; None if no racer is left."""
        alive, costs = list(racers), {setting: list[float]() for setting in racers}
        rounds = 0
        while len(alive) > 1 and rounds < RACE_ROUNDS:
            keep_s = self._reserve_s() + AFTER_RACE * free_s
            if not self._affords(alive, keep_s):
                if rounds or len(alive) == 2:
                    break
                alive = alive[: (len(alive) + 1) // 2]  # fewer racers rather than none
                continue
            found = {s: self._measure("race", s, self._reserve_s()) for s in self._random.sample(alive, len(alive))}
            alive = [setting for setting in alive if not self._known[setting].lost]
            logs = {setting: math.log(cost) for setting, cost in found.items() if cost is not None}
            for setting, value in logs.items():  # against the others of the round: drift cancels
                costs[setting].append(value - statistics.median(logs.values()))
            rounds += 1
            if rounds % 2 == 0:
                alive = [setting for setting in alive if costs[setting]]
                alive.sort(key=lambda setting: statistics.median(costs[setting]))
                alive = alive[: (len(alive) + 1) // 2]
        alive = [setting for setting in alive if costs[setting]] or alive
        return min(alive, key=lambda s: statistics.median(costs[s] or self._known[s].costs), default=None)

    def _prune(self, whole: Setting) -> Setting:
        """Return the winner without hints that are not missed. All is compared with the whole: losses do not add up."""
        winner, groups = whole, [[name for name, _ in whole.hints]]
        while groups:
            group = groups.pop()
            shorter = winner
            for name in group:
                shorter = shorter.without(name)
            if shorter != BASELINE:
                missed = self._is_missed(whole, shorter)
                if missed is None:
                    break
                if not missed:
                    winner = shorter
                    continue
            if len(group) > 1:
                middle = len(group) // 2
                groups += [group[:middle], group[middle:]]
        return winner

    def _is_missed(self, whole: Setting, shorter: Setting) -> bool | None:
        """Whether the shorter setting may be slower than the whole one; None if the budget does not show it."""
        losses = []
        for _ in range(PRUNE_PAIRS):
            if not self._affords([whole, shorter], self._reserve_s()):
                return None
            costs = {s: self._measure("prune", s) for s in self._random.sample([whole, shorter], 2)}
            full, less = costs[whole], costs[shorter]
            if less is None:
                return True
            if full is None:
                return None
            losses.append(math.log(less / full))
        error = statistics.stdev(losses) / math.sqrt(len(losses))
        return statistics.fmean(losses) + error > math.log(PRUNE_LOSS)

    def _confirm(self, winner: Setting) -> None:
        pair = [BASELINE, winner]
        expected = statistics.median(self._known[BASELINE].costs) / statistics.median(self._known[winner].costs)
        most = GOOD_PAIRS if expected >= CLEAR_GAIN else MOST_PAIRS  # from older runs: no peeking at the new ones
        left_s = self._remaining_s() - sum(map(self._runner.start_s, pair))
        wanted = int(left_s / (MARGIN * sum(map(self._typical_s, pair))))
        wanted = min(max(wanted, self._least_pairs), max(most, self._least_pairs))
        orders = [index % 2 == 0 for index in range(wanted)]
        self._random.shuffle(orders)
        for as_is in orders:
            enough = len(self._pairs) >= self._least_pairs
            left_s = self._remaining_s() - sum(map(self._typical_s, pair)) * (MARGIN if enough else 1.0)
            if self._known[winner].lost or left_s <= 0:
                break
            costs = {setting: self._measure("confirm", setting) for setting in (pair if as_is else pair[::-1])}
            before, after = costs[BASELINE], costs[winner]
            if before is not None and after is not None:
                self._pairs.append((before, after))
                elapsed_s = {record.setting: record.elapsed_s for record in self._records[-2:]}
                self._elapsed_pairs.append((elapsed_s[BASELINE], elapsed_s[winner]))

    # ---- the end ----------------------------------------------------------------------------------------------------

    def _decide(self, interrupted: bool) -> tuple[str, str, Evidence | None]:
        """Return verdict, reason and evidence."""
        candidate = self._candidate
        if self._baseline is None:
            return "unconfirmed", "the first run did not end", None
        others = [record for record in self._records if record.setting != BASELINE]
        if not interrupted and all(record.reason.startswith(_CUT) for record in others):
            return "unconfirmed", "the budget has ended before any other setting had run", None
        if not interrupted and (candidate is None or candidate == BASELINE):
            return "nothing", "no setting was faster than the program as it is when the close ones were repeated", None
        if candidate is None or candidate == BASELINE:
            return "unconfirmed", "no setting was faster than the program as it is so far", None
        if lost := self._known[candidate].lost:
            return "nothing", f"the best setting did not pass the confirmation: {lost}", None
        if len(self._pairs) < self._least_pairs:
            text = f"only {len(self._pairs)} of at least {self._least_pairs} pairs of runs that a decision needs"
            return "unconfirmed", text, None
        found = evidence([a for a, _ in self._pairs], [b for _, b in self._pairs], self._confidence)
        if not found.wins:
            return "nothing", "the best setting is not faster beyond chance", found
        if found.gain < LEAST_GAIN:
            return "nothing", f"the best setting gains less than {LEAST_GAIN - 1:.0%}", found
        if self._judge is not None:  # a metric that the user did not choose must not make the whole command slower
            before_s, after_s = zip(*self._elapsed_pairs, strict=True)
            whole = evidence(before_s, after_s, self._confidence)
            if whole.high < 1:
                text = f"the best setting makes the command take {digits_text(1 / whole.gain)} times as long"
                return "nothing", text, found
        return "wins", "", found

    def _result(self, interrupted: bool, broken: Record | None) -> Result:
        if broken is None:
            verdict, reason, found = self._decide(interrupted)
        else:
            verdict, found = "unconfirmed", None
            reason = f"{self._plan.subject}, which ran at first, fails as it is: {broken.reason}"
        return self._result_of(verdict, reason, found, interrupted, 0 if broken is None else broken.exit_status)

    def _result_of(
        self,
        verdict: str,
        reason: str,
        found: Evidence | None = None,
        interrupted: bool = False,
        broken_status: int = 0,
    ) -> Result:
        return Result(
            verdict=verdict,
            reason=reason,
            candidate=None if self._candidate == BASELINE else self._candidate,
            evidence=found,
            records=tuple(self._records),
            baseline=self._baseline,
            interrupted=interrupted,
            broken_status=broken_status,
            spent_s=self._clock() - self._begin_s,
            delegates=self._delegates,
        )
