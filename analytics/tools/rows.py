"""Rows of what connectors returned: what every question needs to take them by time, system and column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from mpiio_ext.analytics.tools.moments import Period

__all__ = ["Read", "cut", "numbers", "of", "split"]


class Read(Protocol):
    """What a connector returned: :class:`mpiio_ext.analytics.connectors.sources.records.Records`."""

    @property
    def source(self) -> str:
        """Name of the connector."""
        ...

    @property
    def path(self) -> str:
        """The file."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """Arrow tables by name."""
        ...

    @property
    def header(self) -> Mapping[str, Any]:
        """Facts about all rows."""
        ...


def numbers(table: Any, name: str) -> Any:
    """Return a column as (n,) float64, NaN for NULL."""
    return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)


def cut(table: Any, period: Period, before_s: float, after_s: float) -> Any:
    """Return the rows whose time is in a period, or less than so many seconds before or after it."""
    import pyarrow as pa

    times = numbers(table, "time")
    inside = (times > period.start - before_s) & (times < period.end + after_s)
    return table if inside.all() else table.filter(pa.array(inside))


def of(table: Any, column: str, wanted: Collection[str] | None) -> Any:
    """Return the rows with one of these values, or NULL, in a column; all where nothing is wanted or it is missing."""
    if wanted is None or column not in table.column_names:
        return table
    import pyarrow as pa
    import pyarrow.compute as pc

    mine = pc.is_in(table[column], value_set=pa.array(sorted(wanted), pa.string()))
    return table.filter(pc.or_(mine, pc.is_null(table[column])))


def split(table: Any, column: str) -> Iterator[tuple[str, Any]]:
    """Yield each value of a column, and its rows; rows without a value are left out."""
    import pyarrow.compute as pc

    for value in pc.unique(table[column]).to_pylist():
        if value is not None:
            yield value, table.filter(pc.equal(table[column], value))
