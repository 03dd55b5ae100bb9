"""Stratified draws: random order, but frequencies as they were counted, in small numbers too.

Algorithm. The needed number of values is drawn from n, at equal steps of their cumulative count from a
           random beginning (systematic sampling), and then shuffled. As many draws as there were samples give every
           sample once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def stratified(counts: NDArray[np.int64], number: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return so many indices into `counts`, each about as often as it counts, in random order.

    Each index comes at least floor(number * share) times and at most once more; int64.
    """
    ends = np.cumsum(counts)
    steps = (np.arange(number) + random.random()) * (ends[-1] / max(1, number))
    found = np.minimum(np.searchsorted(ends, steps, side="right"), counts.size - 1)
    return random.permutation(found)
