"""Engines by their names, as a set-up has them."""

from __future__ import annotations

import dataclasses
from typing import Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query.engines import DuckDBEngine, Engine
from mpiio_ext.analytics.query.spark import SparkEngine


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
