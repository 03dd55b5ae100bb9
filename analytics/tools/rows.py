"""Rows from connectors: their selection by time, system and column, for every query."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.tables.arrays import Numbers, Whole
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.series import MOST_STEPS, Series, SeriesError

#: Share of a step by which stamps may be off the grid.
_OFF = 0.25


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
    names: Sequence[str] | pa.Array | pa.ChunkedArray
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
    grid, dropped = series_of(Rows(times, names, counters, step_s), "counter")
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


def series_of(
    rows: Rows,
    quantity: str,
    *,
    first: float | None = None,
    steps: int | None = None,
    order: Sequence[str] | None = None,
) -> tuple[Series, int]:
    """Return the series of rows, which are in any order.

    Parameters
    ----------
    rows : Rows
    quantity : see :class:`mpiio_ext.analytics.tools.series.Series`.
    first : begin of the grid; default: the first time.
    steps : length of the grid; default: up to the last time.
    order : the components; default: those of the rows, sorted.

    Returns
    -------
    series : Series
    dropped : int
        Rows that are left out: without time, off the grid by more than a quarter of a step, outside of it, of another
        component, or a second one of the same place (the later row counts).

    Raises
    ------
    SeriesError
        There is no row with a time, or the times ask for more steps than memory has room for.
    """
    usable = np.isfinite(rows.times)
    first = _first(quantity, rows.times, first)
    column, labels = _numbered(rows.names, order)
    relative = (np.where(usable, rows.times, first) - first) / rows.step_s
    usable &= (np.abs(relative - np.rint(relative)) <= _OFF) & (relative > -0.5) & (column >= 0)
    usable &= relative < (MOST_STEPS if steps is None else steps - 0.5)
    place = np.rint(relative[usable]).astype(np.int64)
    length = steps if steps is not None else (int(place.max()) + 1 if len(place) else 0)
    matrix = np.full((length, len(labels)), np.nan)
    matrix[place, column[usable]] = rows.values[usable]
    filled = _filled(matrix.shape, place, column[usable])
    series = Series(
        quantity=quantity,
        unit=rows.unit,
        level=rows.level,
        step_s=rows.step_s,
        first=first,
        names=tuple(labels),
        values=matrix,
    )
    return series, len(rows.times) - filled


def _filled(shape: tuple[int, int], rows: Whole, columns: Whole) -> int:
    """Return how many cells of a matrix some places are."""
    cells = np.zeros(shape, dtype=bool)
    cells[rows, columns] = True
    return int(cells.sum())


def _first(quantity: str, times: Numbers, first: float | None) -> float:
    if first is not None:
        return first
    if not np.isfinite(times).any():
        raise SeriesError(f"{quantity}: no row has a time")
    return float(np.nanmin(times))


def _numbered(
    names: Sequence[str] | pa.Array | pa.ChunkedArray, order: Sequence[str] | None
) -> tuple[Whole, list[str]]:
    """Return the number of each name (-1: not among these), and the names."""
    if isinstance(names, pa.ChunkedArray):
        names = pa.concat_arrays(names.chunks) if names.num_chunks else pa.array([], pa.string())
    coded = (names if isinstance(names, pa.Array) else pa.array(names, pa.string())).dictionary_encode()
    found = coded.dictionary.to_pylist()
    labels = sorted(found) if order is None else list(order)
    at = {name: number for number, name in enumerate(labels)}
    numbers = np.array([*(at.get(name, -1) for name in found), -1], dtype=np.int64)
    codes = np.asarray(coded.indices.fill_null(len(found)), dtype=np.int64)
    return numbers[codes], labels
