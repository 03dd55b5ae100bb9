"""Which row comes when: everything once, then everything again, as often as the budget allows.

A repetition runs every pattern and every kernel. A figure that was measured fewer than `ENOUGH` times says nothing of
its noise. So fewer rows are repeated before rows are repeated less often. Where the first repetition shows that
`ENOUGH` of them would end after the budget, the first cases whose repetitions fit are repeated so often, and the others
stay with one. No further repetition is begun that would probably end after it; the first always runs.
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
    replanned : receives the cases that are repeated
    repetitions_done : begun ones
    repeated : the cases of all repetitions but the first
    """

    comm: MPI.Intracomm
    cases: Sequence[Case]
    run_case: Callable[[Case, int], None]
    repetitions: int
    budget_s: float = 0.0
    replanned: Callable[[Sequence[Case]], None] = lambda _: None
    repetitions_done: int = 0
    repeated: Sequence[Case] = ()
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
        for number in range(self.repetitions):
            if number == 1:
                self._choose(time.perf_counter() - start)
            if number and not self._affords(number, time.perf_counter() - start):
                break
            self.repetitions_done = number + 1
            self._seconds = [self._timed(case, number) for case in self.repeated]

    def _timed(self, case: Case, number: int) -> float:
        begin = time.perf_counter()
        self.run_case(case, number)
        return time.perf_counter() - begin

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
