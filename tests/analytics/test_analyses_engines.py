"""The paper's analyses give the same tables and words on Spark, on a placed store too, as on DuckDB."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from mpiio_ext.analytics.analyses import ANALYSES, analysis
from mpiio_ext.analytics.analyses.methods import methods
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.factors import factor, unregister
from mpiio_ext.analytics.query import Tuples, load
from support import analytics_query
from support.analytics_jobs import many
from support.analytics_query import Store
from support.parts import require

require("ibis")

JOBS, UNITS = 300, 2


class Source:
    """A store with an engine, as IOMiner is; `units`: with tables that lie in units by job ID."""

    def __init__(self, engine: str, folder: pathlib.Path) -> None:
        self.engine = analytics_query.engine(engine)
        self.store = Store(folder, osts=0)
        self.made: dict[str, Tuples] = {}

    def load(self, name: str) -> Tuples:
        if name not in self.made:
            self.made[name] = load(self.engine, self.store, name)
        return self.made[name]


class Placed(Store):
    """A store whose tables lie in units: jobs up to a bound, and the others."""

    def units(self, table: str, by: str, low: float | None, high: float | None) -> list[list[str]]:
        return [[file] for file in self.files(table)] or [[]] * UNITS


def _write(source: Source) -> Source:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = many(JOBS).tables
    runs = [
        {
            "job_id": 1 + k,
            "log_id": 1 + k,
            "pattern": "interleaved",
            "interface": "mpiio",
            "operation": "write",
            "method": method,
            "ranks": 4,
            "bytes": 8 * 10**8,
            "seconds": seconds,
            "bandwidth": 8e8 / seconds,
            "statistics": json.dumps({"exchange_s": seconds / 2, "rounds": 3 + k}),
        }
        for k, (method, seconds) in enumerate([("even", 0.4), ("even", 0.5), ("group_cyclic", 0.2)])
    ]
    rows["runs"] = pa.Table.from_pylist(runs, rows["runs"].schema)
    for name, table in rows.items():
        if name == "lmt" or not table.num_rows:
            continue
        early = pc.less(table["job_id"], JOBS // 3)
        for part in (table.filter(early), table.filter(pc.invert(early))):
            source.store.add(name, part)
    return source


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return _write(Source("duckdb", tmp_path_factory.mktemp("duckdb")))


@pytest.fixture(scope="module", params=["spark", "spark, placed"])
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    source = Source("spark", tmp_path_factory.mktemp("spark"))
    if request.param == "spark, placed":
        source.store = Placed(source.store.folder, osts=0)
    return _write(source)


def _same(found: Any, expected: Any) -> None:
    assert found.caption == expected.caption and found.unit == expected.unit
    rows, others = found.table.to_pylist(), expected.table.to_pylist()
    assert found.table.schema == expected.table.schema and len(rows) == len(others)
    for row, other in zip(rows, others, strict=True):  # sums of floats depend on their order
        for column, value in row.items():
            close = pytest.approx(other[column], rel=1e-12) if isinstance(value, float) else other[column]
            assert value == close, (column, row, other)
    assert [chart.name for chart in found.charts] == [chart.name for chart in expected.charts]


PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "applications": [{"top": 5}, {"areas": {"code1*": "Physics"}}],
    "sequential": [{"counter": "consec"}, {"counter": "seq"}],
    "root-causes": [
        {"processes": 3, "process_bytes": 1e3, "bandwidth": 1e12},
        {"processes": 3, "process_bytes": 1e3, "bandwidth": 1e12, "each_job": True},
    ],
}


@pytest.mark.slow_except("spark-applications", "spark-striping", "spark-root-causes")
@pytest.mark.parametrize("name", list(ANALYSES))
def test_an_analysis_is_the_same(name: str, duckdb: Source, spark: Source) -> None:
    run = analysis(name)
    for parameters in PARAMETERS.get(name, [{}]):
        expected = run(duckdb, **parameters)
        assert expected.table.num_rows and expected.charts, "the jobs have what the analysis counts"
        _same(run(spark, **parameters), expected)


@pytest.mark.slow
def test_methods_are_the_same(duckdb: Source, spark: Source) -> None:
    for parameters in ({}, {"slower": "even", "faster": "group_cyclic"}):
        _same(methods(spark, **parameters), methods(duckdb, **parameters))


def _half(files: Any, *, least: float = 0.5) -> Any:
    """A factor of one's own: what it is made of lies in this module alone."""
    return files.job * 0 + max(HALF, least)


HALF = 0.5


@pytest.fixture
def own() -> Iterator[None]:
    factor("half", "always a half")(_half)
    yield
    unregister("half")


@pytest.mark.slow_except("spark-options1")
@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("options", [{}, {"by": "job_id", "low": "1kB/s", "high": "1GB/s"}])
def test_factors_are_the_same(
    duckdb: Source, spark: Source, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are computed in the executors: no row of a file comes here."""
    rest = {name: value for name, value in options.items() if name not in ("low", "high")}
    tables = []
    for source in (duckdb, spark):
        if source is spark:
            for name in ("arrow", "batches"):
                monkeypatch.setattr(type(source.engine), name, lambda *_: pytest.fail("rows are fetched"))
        both = source.load("darshan_job").join(source.load("darshan_file"), "job_id")
        factors = both.extract_perf_factors(options.get("low"), options.get("high"), "write", **rest)
        assert factors.columns[0] == "job_id"
        monkeypatch.undo()
        tables.append(factors.sort("job_id").arrow())
    expected, found = tables
    assert 0 < expected.num_rows <= JOBS and set(expected["half"].to_pylist()) - {None} == {HALF}
    assert found.schema == expected.schema and found.to_pylist() == expected.to_pylist()


@pytest.mark.slow_with("spark, placed")
def test_what_a_factor_says_comes_back_from_an_executor(spark: Source) -> None:
    def broken(files: Any) -> Any:
        if len(files):
            raise ValueError("no such thing")
        return files.job * 0.0

    factor("broken", "fails where there are files")(broken)
    try:
        found = spark.load("darshan_file").extract_perf_factors(None, None, "write", names=["broken"])
        with pytest.raises(AnalyticsError, match=r"^no such thing$"):
            found.rows()
    finally:
        unregister("broken")


@pytest.mark.slow_with("spark, placed")
def test_batches_of_spark_stream(spark: Source) -> None:
    """Order, types and values are those of the whole."""
    files = spark.load("darshan_file").project("job_id", "file_id", "osts", "bytes_read").sort("file_id")
    whole = files.arrow()
    batches = list(files.batches(97))
    assert all(batch.num_rows <= 97 for batch in batches)
    assert [row for batch in batches for row in batch.to_pylist()] == whole.to_pylist()
    assert {batch.schema for batch in batches} == {whole.schema}
    assert not list(spark.load("lmt").batches())


@pytest.mark.slow
def test_batches_of_spark_hold_two_partitions(spark: Source) -> None:
    """Tasks run as their partitions are asked for: of twelve, two or three when the first batch is taken."""
    session = spark.engine.session
    done = session.sparkContext.accumulator(0)

    def count(batches: Any) -> Any:
        done.add(1)
        yield from batches

    frame = session.range(0, 1200, 1, 12).mapInArrow(count, "id long")
    name = "counted_partitions"
    frame.createOrReplaceTempView(name)
    stream = spark.engine.batches(spark.engine.backend.table(name), 1000)
    first = next(stream)
    assert first.num_rows == 100 and 1 <= done.value <= 3
    assert 100 + sum(batch.num_rows for batch in stream) == 1200 and done.value == 12
