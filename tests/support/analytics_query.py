"""Small stores and engines for the tests of queries: a catalogue that stands for a store's, tables as Parquet files."""

from __future__ import annotations

import atexit
import functools
import pathlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mpiio_ext.analytics.tables.schema import TABLES

#: The engines that every query runs on; `engine` starts them.
ENGINES = ("duckdb", "spark")


class Store:
    """Parquet files by table, as a store's catalogue lists them."""

    def __init__(self, folder: pathlib.Path, osts: int = 80) -> None:
        self.folder = folder
        self.osts = osts
        self._files: dict[str, list[str]] = {}

    def add(self, table: str, rows: Any, osts: int = 0, row_group: int = 1 << 20) -> None:
        """Write one more file of a table (rows as mappings, or an Arrow table), with the words of `osts` OSTs."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        known = self._files.setdefault(table, [])
        path = self.folder / f"{table}_{len(known)}.parquet"
        whole = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), TABLES[table].schema(osts))
        pq.write_table(whole, path, row_group_size=row_group)
        known.append(str(path))

    def files(self, table: str, low: float | None = None, high: float | None = None) -> list[str]:
        return self._files.get(table, [])


@functools.cache
def engine(name: str) -> Any:
    """Return the engine, started once a process; skip the test, with the reason, where it cannot be."""
    pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    from mpiio_ext.analytics.query import open_engine
    from mpiio_ext.analytics.query.spark import java_missing

    if name == "duckdb":
        return open_engine("duckdb", threads=2, memory="1GB")
    pytest.importorskip("pyspark")
    if reason := java_missing():
        pytest.skip(reason)
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    # Java compiles each method quickly: tests are over before better code would pay.
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": java}
    spark = open_engine("spark", master="local[2]", configuration=settings)
    atexit.register(spark.close)
    return spark


def comparable(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return rows as sorted tuples, NULL last."""
    tuples = [tuple(row.values()) for row in rows]
    return sorted(tuples, key=lambda row: [(value is None, 0 if value is None else value) for value in row])
