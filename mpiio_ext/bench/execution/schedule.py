"""The order of the rows: every case once, then every case again, as often as the budget allows.

A repetition runs every pattern and every kernel. A figure that was measured fewer than `ENOUGH` times does not show its
noise. If the first repetition shows that `ENOUGH` repetitions would end after the budget, the cases that may be smaller
become so small that `ENOUGH` repetitions fit into the rest. Then all cases begin anew. Otherwise the first cases whose
repetitions fit are repeated that often, and each of the other cases runs once. No further repetition is begun that
would probably end after the budget; the first always runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from mpiio_ext.common.results import ENOUGH

if TYPE_CHECKING:
    from mpi4py import MPI

Case = TypeVar("Case")
#: Least share of its size that a case gets: smaller files take hardly less time, and measure noise.
_LEAST_SHARE = 1 / 4


def affordable_cases(seconds: Sequence[float], *, more: int, budget_s: float) -> list[int]:
    """Return the cases, in their order, that can be repeated `more` times within a budget.

    Parameters
    ----------
    seconds : that one repetition of each case takes.
    more : repetitions beside the one that was made.
    budget_s : seconds that are left; 0 or less: none can.
    """
    chosen, left_s = [], budget_s
    for number, each_s in enumerate(seconds):
        if more * each_s <= left_s:
            chosen.append(number)
            left_s -= more * each_s
    return chosen


@dataclass(slots=True, kw_only=True)
class Schedule(Generic[Case]):
    """Repeats; collective over `comm`.

    Attributes
    ----------
    comm : mpi4py communicator
    cases : what a repetition has
    run_case : runs a case once; is called with it and the number of the repetition
    repetitions : at least 1
    budget_s : no repetition is begun that would probably end later than this after the start; 0 = no limit
    smaller : returns the cases with a share of their sizes, and forgets what was measured; None: sizes are fixed
    replanned : receives the cases that are repeated
    repetitions_done : begun ones
    repeated : the cases of all repetitions but the first
    share : of their sizes that the cases have
    """

    comm: MPI.Intracomm
    cases: Sequence[Case]
    run_case: Callable[[Case, int], None]
    repetitions: int
    budget_s: float = 0.0
    smaller: Callable[[float], Sequence[Case]] | None = None
    replanned: Callable[[Sequence[Case]], None] = lambda _: None
    repetitions_done: int = 0
    repeated: Sequence[Case] = ()
    share: float = 1.0
    _seconds: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Run every repetition.

        Raises
        ------
        BenchError
            On every rank of `comm`.
        """
        start = time.perf_counter()
        self.repeated = self.cases
        self._repeat(0)
        again = self.repetitions > 1 and self._become_smaller(time.perf_counter() - start)
        if not again and self.repetitions > 1:
            self._choose(time.perf_counter() - start)
        for number in range(0 if again else 1, self.repetitions):
            if number and not self._affords(number, time.perf_counter() - start):
                break
            self._repeat(number)

    def _repeat(self, number: int) -> None:
        self.repetitions_done = number + 1
        self._seconds = [self._timed(case, number) for case in self.repeated]

    def _timed(self, case: Case, number: int) -> float:
        begin = time.perf_counter()
        self.run_case(case, number)
        return time.perf_counter() - begin

    def _become_smaller(self, elapsed_s: float) -> bool:
        """Return whether the cases are smaller from now on, by rank 0's clock; collective."""
        if not self.budget_s or self.smaller is None:
            return False
        share = self.comm.bcast((self.budget_s - elapsed_s) / (ENOUGH * elapsed_s))
        if share >= (ENOUGH - 1) / ENOUGH:
            return False
        self.share = max(share, _LEAST_SHARE)
        self.cases = self.repeated = self.smaller(self.share)
        return True

    def _choose(self, elapsed_s: float) -> None:
        """Leave out further repetitions that the budget does not allow, by rank 0's clock; collective."""
        if not self.budget_s:
            return
        more = min(self.repetitions, ENOUGH) - 1
        chosen = self.comm.bcast(affordable_cases(self._seconds, more=more, budget_s=self.budget_s - elapsed_s))
        self.repeated = [self.cases[number] for number in chosen]
        self._seconds = [self._seconds[number] for number in chosen]
        if len(self.repeated) < len(self.cases):
            self.replanned(self.repeated)

    def _affords(self, done: int, elapsed_s: float) -> bool:
        """Return rank 0's judgement whether one more repetition like the last fits the budget; collective."""
        if not self.repeated:
            return False
        promised = done < ENOUGH  # a chosen row is measured often enough, also where the machine has become slower
        return promised or bool(self.comm.bcast(not self.budget_s or elapsed_s + sum(self._seconds) <= self.budget_s))
