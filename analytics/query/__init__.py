"""Queries over the store: chainable, lazily executed, the same on DuckDB and on Spark.

Start from :meth:`mpiio_ext.analytics.IOMiner.load`, or from :func:`load` with an engine and a store's catalogue.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query.engines import DuckDBEngine, Engine
from mpiio_ext.analytics.query.keyrange import KeyRange
from mpiio_ext.analytics.query.language import ExpressionError
from mpiio_ext.analytics.query.loaded import Loaded
from mpiio_ext.analytics.query.spark import SparkEngine
from mpiio_ext.analytics.query.tuples import APPROXIMATE_RANK_ERROR, Tuples
from mpiio_ext.analytics.tables.schema import TABLES

__all__ = ["APPROXIMATE_RANK_ERROR", "Engine", "ExpressionError", "StoreFiles", "Tuples", "load", "open_engine"]


class StoreFiles(Protocol):
    """The facts of a store that a query needs: :class:`mpiio_ext.analytics.store.catalog.Catalog`."""

    @property
    def osts(self) -> int:
        """Number of OSTs that the bitmaps of the store have room for."""
        ...

    def files(self, table: str, low: float | None = None, high: float | None = None) -> list[str]:
        """Return the paths of the Parquet files of a table that may contain keys from `low` to `high`."""
        ...


def load(engine: Engine, store: StoreFiles, table: str, jobs: tuple[Any, Any] | None = None) -> Tuples:
    """Return a table of a store as tuples; nothing is read yet.

    Parameters
    ----------
    engine : Engine
    store : StoreFiles
    table : str
    jobs : pair of numbers, optional
        Only jobs with IDs from the first to the second, both included; None for a bound: unbounded. Other files are not
        opened.

    Raises
    ------
    AnalyticsError
        When there is no such table, it has no job IDs, or the jobs are no range.
    """
    if table not in TABLES:
        raise AnalyticsError(f"there is no table '{table}'; there are {', '.join(TABLES)}")
    found = Tuples(engine, Loaded(engine=engine, store=store, name=table), table)
    return found if jobs is None else _of_jobs(found, table, jobs)


def _of_jobs(tuples: Tuples, table: str, jobs: tuple[Any, Any]) -> Tuples:
    if "job_id" not in TABLES[table].names():
        raise AnalyticsError(f"table {table} has no job_id to choose jobs by; filter it by time")
    numbers = isinstance(jobs, (tuple, list)) and all(
        one is None or (isinstance(one, (int, float)) and not isinstance(one, bool)) for one in jobs
    )
    if not numbers or len(jobs) != 2 or KeyRange(*jobs).empty:
        raise AnalyticsError(f"jobs is {jobs!r}; write the smallest and the largest job ID: jobs=(4478000, 4479000)")
    conditions = [f"job_id {sign} {bound}" for sign, bound in zip((">=", "<="), jobs, strict=True) if bound is not None]
    return tuples.filter(*conditions) if conditions else tuples


def open_engine(name: str = "duckdb", **settings: Any) -> Engine:
    """Open an engine.

    Parameters
    ----------
    name : {"duckdb", "spark"}
    **settings
        Of :class:`DuckDBEngine` or :class:`mpiio_ext.analytics.query.spark.SparkEngine`.

    Raises
    ------
    AnalyticsError
        For an unknown engine or setting, a missing package, or a missing Java.
    """
    engines: dict[str, type[Engine]] = {"duckdb": DuckDBEngine, "spark": SparkEngine}
    if name not in engines:
        raise AnalyticsError(f"engine '{name}' is not known; choose duckdb or spark")
    known = {field.name for field in dataclasses.fields(engines[name])}  # type: ignore[arg-type] # both are
    if wrong := sorted(settings.keys() - known):
        raise AnalyticsError(f"engine {name} has no setting '{wrong[0]}'; it has {', '.join(sorted(known))}")
    return engines[name](**settings)
