"""Which repetition comes when: everything once, then everything again, as often as the budget allows.

A repetition runs every pattern and every kernel. None is begun that would probably end after the budget, judged by
those that are done; the first always runs. Rows are numbered in the order in which the runs took place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mpiio_ext.bench.results import Row

__all__ = ["Schedule", "Stage"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stage:
    """A part of every repetition: `run` is called with the number of the repetition and adds to `rows`."""

    run: Callable[[int], None]
    rows: list[Row]


@dataclass(slots=True, kw_only=True)
class Schedule:
    """Runs stages in turn; collective over `comm`.

    Attributes
    ----------
    comm : mpi4py communicator
    stages : run one behind the other in every repetition
    repetitions : at least 1
    budget_s : no repetition is begun that would probably end later than this after the start; 0 = no limit
    rows : of all stages, on rank 0 of `comm`, in the order of the runs
    repetitions_done : begun ones
    """

    comm: Any
    stages: Sequence[Stage]
    repetitions: int
    budget_s: float = 0.0
    rows: list[Row] = field(default_factory=list)
    repetitions_done: int = 0
    _order: int = 0

    def run(self) -> None:
        """Run every repetition; `rows` holds what was measured also when an error ends it early.

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
            for stage in self.stages:
                known = len(stage.rows)
                try:
                    stage.run(number)
                finally:
                    self._take(stage.rows[known:])

    def _affords(self, done: int, elapsed_s: float) -> bool:
        """Return rank 0's judgement whether one more repetition like the ones done fits the budget; collective."""
        return bool(self.comm.bcast(not self.budget_s or elapsed_s * (done + 1) / done <= self.budget_s))

    def _take(self, rows: Sequence[Row]) -> None:
        """Keep new rows; each stage counts its own runs, here they are counted together."""
        runs = dict.fromkeys(row.order for row in rows)
        place = {order: self._order + k for k, order in enumerate(runs)}
        self.rows += [replace(row, order=place[row.order]) for row in rows]
        self._order += len(runs)
