"""The numbers of a box plot: quartiles, and whiskers at the 5th and the 95th percentile.

Source: Lockwood et al., UMAMI (PDSW-DISCS 2017), Section IV: "whiskers represent the 5th and 95th percentiles".
Percentiles are interpolated linearly between neighbours (NumPy's default).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Numbers


@dataclasses.dataclass(frozen=True, slots=True)
class Box:
    """Statistics of a metric, all in the unit of its column; `count` values are known."""

    low: float
    first: float
    median: float
    third: float
    high: float
    count: int

    @property
    def numbers(self) -> tuple[float, float, float, float, float]:
        """The five numbers, from the lowest to the highest."""
        return self.low, self.first, self.median, self.third, self.high

    def as_json(self) -> dict[str, float]:
        """Return the numbers by name: ``jobs``, ``p5``, ``q1``, ``median``, ``q3``, ``p95``."""
        return {"jobs": self.count, **dict(zip(("p5", "q1", "median", "q3", "p95"), self.numbers, strict=True))}


def box(values: Numbers) -> Box | None:
    """Return the box of the known values; None without any."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    low, first, median, third, high = np.percentile(known, (5, 25, 50, 75, 95)).tolist()
    return Box(low, first, median, third, high, len(known))
