"""Shared parts of the analyses of many jobs: which rows count, words for numbers, shares.

A job of the paper is one log here: one run of a program. A job of the scheduler that runs several programs has several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpiio_ext.analytics.analyses.source import Source, columns_of, expression

if TYPE_CHECKING:
    import ibis.expr.types as ir


def jobs_of(source: Source, origin: str | None, columns: Sequence[str], table: str = "darshan_job") -> ir.Table:
    """Return columns of a table of logs, those of one `origin` (``darshan``, ``bench``, ``library``) or of all (None).

    The column ``source`` is there in any case.
    """
    rows = columns_of(expression(source, table), list(dict.fromkeys([*columns, "source"])))
    return rows if origin is None else rows.filter(rows["source"] == origin)


def share(part: float, whole: float) -> float:
    """Return part / whole in percent; 0 of nothing is 0."""
    return 100.0 * part / whole if whole else 0.0


def share_words(percent: float) -> str:
    """Return a percentage in words: two digits, and 0 % or 100 % only for exact values."""
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"


def leading(names: Sequence[str], values: Sequence[float]) -> tuple[str, float] | None:
    """Return the name of the largest value, and its part of all in percent; None if two are equal, or all are 0."""
    largest = max(values, default=0)
    if not largest or list(values).count(largest) > 1:
        return None
    return names[list(values).index(largest)], share(largest, sum(values))


def count_words(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
