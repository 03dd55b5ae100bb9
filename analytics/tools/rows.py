"""Rows from connectors: their selection by time, system and column, for every query."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.series import from_rows


def numbers(table: pa.Table, name: str) -> Numbers:
    """Return a column as (n,) float64, NaN for NULL."""
    return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)


def cut(table: pa.Table, period: Period, before_s: float, after_s: float) -> pa.Table:
    """Return the rows whose time is in a period, or less than so many seconds before or after it."""
    times = numbers(table, "time")
    inside = (times > period.start - before_s) & (times < period.end + after_s)
    return table if inside.all() else table.filter(pa.array(inside))


def of(table: pa.Table, column: str, wanted: Collection[str] | None) -> pa.Table:
    """Return the rows with one of these values, or NULL, in a column; all where nothing is wanted or it is missing."""
    if wanted is None or column not in table.column_names:
        return table
    mine = pc.is_in(table[column], value_set=pa.array(sorted(wanted), pa.string()))
    return table.filter(pc.or_(mine, pc.is_null(table[column])))


def split(table: pa.Table, column: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield each value of a column, and its rows; rows without a value are left out."""
    for value in pc.unique(table[column]).to_pylist():
        if value is not None:
            yield value, table.filter(pc.equal(table[column], value))


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a source: begins of steps, components, values (NaN: not known), and the step in seconds.

    `dropped` is how many samples of the source have no place among them.
    """

    times: Numbers
    names: Sequence[str] | pa.ChunkedArray
    values: Numbers
    step_s: float
    unit: str = "B"
    level: bool = False
    dropped: int = 0


def step_of(times: Numbers) -> float | None:
    """Return the usual distance of neighbouring times in seconds; None with fewer than two."""
    steps = np.diff(np.unique(times[np.isfinite(times)]))
    return float(np.median(steps)) if len(steps) else None


def amounts(times: Numbers, names: Sequence[str], counters: Numbers, step_s: float) -> Rows:
    """Return the counts between neighbouring samples of each component, at the earlier one's time."""
    if not np.isfinite(times).any():
        return Rows(times, names, counters, step_s)
    grid, dropped = from_rows(times, names, counters, quantity="counter", unit="", step_s=step_s)
    moved = np.diff(grid.values, axis=0)
    moved[moved < 0] = np.nan
    column = np.tile(np.arange(len(grid.names)), len(moved))
    return Rows(
        np.repeat(grid.starts[:-1], len(grid.names)),
        [grid.names[k] for k in column],
        moved.ravel(),
        step_s,
        dropped=dropped,
    )
