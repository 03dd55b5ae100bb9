"""Queries over the store: chainable, lazily executed, the same on DuckDB and on Spark.

Start from :meth:`mpiio_ext.analytics.IOMiner.load`, or from :func:`load` with an engine and a store's catalogue.
"""

from __future__ import annotations

from typing import Protocol

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query.engines import Engine, open_engine
from mpiio_ext.analytics.query.language import ExpressionError
from mpiio_ext.analytics.query.tuples import APPROXIMATE_RANK_ERROR, Tuples
from mpiio_ext.analytics.tables.schema import TABLES

__all__ = ["APPROXIMATE_RANK_ERROR", "Engine", "ExpressionError", "Files", "Tuples", "load", "open_engine"]


class Files(Protocol):
    """What a query needs to know of a store: :class:`mpiio_ext.analytics.store.catalog.Catalog`."""

    @property
    def osts(self) -> int:
        """Number of OSTs that the bitmaps of the store have room for."""
        ...

    def files(self, table: str) -> list[str]:
        """Return the paths of the Parquet files of a table."""
        ...


def load(engine: Engine, store: Files, table: str) -> Tuples:
    """Return a table of a store as tuples; nothing is read yet.

    Raises
    ------
    AnalyticsError
        When there is no such table.
    """
    if table not in TABLES:
        raise AnalyticsError(f"there is no table '{table}'; there are {', '.join(TABLES)}")
    found = engine.read(store.files(table), TABLES[table].schema(store.osts))
    engine.sources[found.op()] = table
    return Tuples(engine, found, table)
