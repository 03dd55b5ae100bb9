"""Folding operations that repeat: one line for each operation of a loop, whatever the number of its turns.

Problem.   Loops of a program are a few operations in turn, a seek and a write for one, whose offsets go on by a
           constant step. Printed one by one they hide everything else.
Algorithm. A fold at a row with period p is as many turns of p operations as there are: each operation is but for its
           offset as that p rows before, and its offset goes on by the same step. For each period from 1 to
           `MOST_PERIOD` one pass from behind finds where such a fold that begins at a row would end. From the first row
           on the fold that saves most lines is taken, of several the one with the shortest period. A period of 1 needs
           two turns, longer ones need three: a step that is seen once says nothing.
Guarantee. Folds in order cover all rows; unfolded they give the operations and their offsets in order. What is
           folded does not depend on how many rows are looked at together: a decision that further rows could change is
           left open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_PERIOD = 8
_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds:
    """Folds that follow each other.

    Attributes
    ----------
    begins : int64 of shape (folds,), the first row of each.
    periods : how many operations a turn has.
    turns : how often they are repeated; 1: a single operation.
    end : the row behind the last one.
    """

    begins: _Numbers
    periods: _Numbers
    turns: _Numbers
    end: int

    def lines(self) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers]:
        """Return for each operation of a turn its first row, its period and turns; then all rows, line by line."""
        first_line = np.cumsum(self.periods) - self.periods
        of = np.repeat(np.arange(self.begins.size), self.periods)
        begins = self.begins[of] + np.arange(of.size) - first_line[of]
        lengths = self.periods * self.turns
        fold_of_row = np.repeat(np.arange(self.begins.size), lengths)
        inside = np.arange(self.end) - self.begins[fold_of_row]
        order = np.argsort(first_line[fold_of_row] + inside % self.periods[fold_of_row], kind="stable")
        return begins, self.periods[of], self.turns[of], order


def unfolded(count: int) -> Folds:
    """Return folds of a single operation each."""
    ones = np.ones(count, np.int64)
    return Folds(begins=np.arange(count), periods=ones, turns=ones, end=count)


def _next_false(found: NDArray[np.bool_], beyond: int) -> _Numbers:
    """Return for each row the first one from it on that is not true; `beyond` more rows are not known."""
    places = np.where(found, found.size, np.arange(found.size))
    stops = np.minimum.accumulate(places[::-1])[::-1]
    return np.concatenate([stops, np.full(beyond, found.size, np.int64)])


def _ends(keys: _Numbers, offsets: _Numbers, known: NDArray[np.bool_], period: int) -> _Numbers:
    """Return where a fold that begins at each row would end."""
    count = keys.size
    same, goes_on = np.zeros(count, bool), np.zeros(count, bool)
    same[period:] = keys[period:] == keys[:-period]
    steps = offsets[period:] - offsets[:-period]
    goes_on[2 * period :] = same[2 * period :] & (~known[2 * period :] | (steps[period:] == steps[:-period]))
    second = _next_false(same, period)[period:]
    third = _next_false(goes_on, 2 * period)[2 * period :]
    return np.where(second < np.minimum(np.arange(count) + 2 * period, count), second, third)


def fold(keys: _Numbers, offsets: _Numbers, known: NDArray[np.bool_], *, last: bool) -> Folds:
    """Return the folds of rows.

    Parameters
    ----------
    keys : int64 of shape (rows,): equal where all but the offset is equal, and whether it is known.
    offsets : bytes; where they are not known any number.
    known : whether they are known.
    last : no rows follow. Else the folds end before the first row at which further rows could change what is done.
    """
    count = keys.size
    best, gain = np.ones(count, np.int64), np.zeros(count, np.int64)
    turns, open_ = np.ones(count, np.int64), np.zeros(count, bool)
    for period in range(1, MOST_PERIOD + 1):
        if count <= period:
            open_[:] = True
            break
        ends = _ends(keys, offsets, known, period)
        open_ |= ends == count
        times = (ends - np.arange(count)) // period
        saved = np.where(times >= (2 if period == 1 else 3), (times - 1) * period, 0)
        better = saved > gain
        best[better], turns[better], gain[better] = period, times[better], saved[better]
    lengths, undecided, begins, at = (best * turns).tolist(), open_.tolist(), [], 0
    while at < count and (last or not undecided[at]):
        begins.append(at)
        at += lengths[at]
    chosen = np.array(begins, np.int64)
    return Folds(begins=chosen, periods=best[chosen], turns=turns[chosen], end=at)
