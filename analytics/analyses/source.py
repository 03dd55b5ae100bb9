"""The source of an analysis' tables: an IOMiner, or another object that loads tables by name.

An analysis is written as Ibis expressions over tables, and runs on whatever engine the tables live in. `Tables` is such
a source for Arrow tables in memory: for a few logs without a store, for one job, for tests.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mpiio_ext.analytics.errors import AnalyticsError

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from mpiio_ext.analytics.query import Tuples
    from mpiio_ext.analytics.query.engines import Engine


class Source(Protocol):
    """Load tables by name, as :class:`mpiio_ext.analytics.miner.IOMiner` does."""

    def load(self, table: str) -> Tuples:
        """Return the tuples of a table."""
        ...


class Tables:
    """Arrow tables in memory as a source, on DuckDB.

    Parameters
    ----------
    tables : by the names of the unified schema.
    """

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = dict(tables)
        self._engine: Engine | None = None
        self._made: dict[str, Tuples] = {}

    def load(self, table: str) -> Tuples:
        """Return the tuples of the table.

        Raises
        ------
        AnalyticsError
            There is no table of this name.
        """
        if table not in self.tables:
            raise AnalyticsError(f"no table {table}: there are {', '.join(sorted(self.tables)) or 'none'}")
        from mpiio_ext.analytics.query import Tuples, open_engine

        if self._engine is None:
            self._engine = open_engine("duckdb")
        if table not in self._made:
            self._made[table] = Tuples(self._engine, self._engine.table(self.tables[table]), table)
        return self._made[table]


class Remembered:
    """A source that loads each table of another one once, for all parts of a report.

    Loading a table inspects its files, which costs as much time as a short query.
    """

    def __init__(self, source: Source) -> None:
        self.setup: Any = getattr(source, "setup", None)
        self.catalog: Any = getattr(source, "catalog", None)
        self._source = source
        self._loaded: dict[str, Tuples] = {}

    def load(self, table: str) -> Tuples:
        """Return the tuples of the table."""
        if table not in self._loaded:
            self._loaded[table] = self._source.load(table)
        return self._loaded[table]


#: Engines by the identity of their Ibis backend, which each keeps alive.
_ENGINES: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def expression(source: Source, table: str) -> ir.Table:
    """Return a table of a source as an Ibis expression."""
    loaded = source.load(table)
    engine = getattr(loaded, "engine", None)
    if engine is not None:
        _ENGINES[id(engine.backend)] = engine
    return getattr(loaded, "expression", loaded)


def columns_of(rows: ir.Table, names: Sequence[str]) -> ir.Table:
    """Return a table with these columns alone.

    A table of the store is a projection of some hundred columns. Ibis needs as much time to make SQL of all columns as
    the engine needs for the query, so that unused columns are removed first.
    """
    import ibis.expr.operations as ops

    made = rows.op()
    if isinstance(made, ops.Project) and isinstance(made.parent, ops.PhysicalTable):
        return made.parent.to_expr().select(**{name: made.values[name].to_expr() for name in names})
    return rows.select(*names)


def has(source: Source, table: str) -> bool:
    """Return whether a source has a table with rows."""
    try:
        loaded = expression(source, table)
    except (AnalyticsError, KeyError, FileNotFoundError):
        return False
    return bool(fetch(loaded.limit(1).count().name("rows").as_table())["rows"][0].as_py())


def fetch(query: ir.Table) -> pa.Table:
    """Carry an Ibis expression of a table out and return its rows.

    The engine of the tables fetches them, because Ibis' own function imports pandas, which costs more time than the
    queries of a report.
    """
    engine = _ENGINES.get(id(query.get_backend()))
    return query.to_pyarrow() if engine is None else engine.arrow(query)
