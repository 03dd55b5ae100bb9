"""Which repetition comes when: everything once, then everything again, as often as the budget allows.

A repetition runs every pattern and every kernel. None is begun that would probably end after the budget, judged by
those that are done; the first always runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(slots=True, kw_only=True)
class Schedule:
    """Repeats; collective over `comm`.

    Attributes
    ----------
    comm : mpi4py communicator
    repetition : runs everything once; is called with the number of the repetition
    repetitions : at least 1
    budget_s : no repetition is begun that would probably end later than this after the start; 0 = no limit
    repetitions_done : begun ones
    """

    comm: MPI.Intracomm
    repetition: Callable[[int], None]
    repetitions: int
    budget_s: float = 0.0
    repetitions_done: int = 0

    def run(self) -> None:
        """Run every repetition.

        Raises
        ------
        BenchError
            On every rank of `comm`.
        """
        start = time.perf_counter()
        for number in range(self.repetitions):
            if number and not self._affords(number, time.perf_counter() - start):
                break
            self.repetitions_done = number + 1
            self.repetition(number)

    def _affords(self, done: int, elapsed_s: float) -> bool:
        """Return rank 0's judgement whether one more repetition like the ones done fits the budget; collective."""
        return bool(self.comm.bcast(not self.budget_s or elapsed_s * (done + 1) / done <= self.budget_s))
