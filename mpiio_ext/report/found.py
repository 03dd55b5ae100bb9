"""Results of the bench for callers from Python: as text, as a table in a notebook, as an Arrow table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mpiio_ext.common.results import summary
from mpiio_ext.common.shown import Shown
from mpiio_ext.report.load import ResultSet


@dataclass(frozen=True, slots=True, repr=False)
class Found(Shown):
    """The measurements of the bench.

    Attributes
    ----------
    results : all that is in the file of results.
    """

    results: ResultSet

    def lines(self) -> list[str]:
        """Return a sentence for each row: median bandwidth, and the gain where native was measured."""
        found = []
        for row in self.results.rows:
            gain = f", {row.ratio.median:.2f} times native" if row.ratio is not None else ""
            last = row.last
            found.append(
                f"{last.label} [{last.interface}] {last.operation}, {last.strategy}: "
                f"{row.bandwidth.median:,.0f} MB/s{gain}"
            )
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return the columns of docs/reference/suites.md for each row; medians over the repetitions."""
        return [summary(row) for row in self.results.rows]
