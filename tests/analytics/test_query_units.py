"""Units follow columns through every operator: mistakes are refused, whatever a column is called, and nothing else."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from mpiio_ext.analytics import dimensions
from mpiio_ext.analytics.dimensions import BYTES, INSTANT, NUMBER, PLAIN, RATE, SECONDS, UNKNOWN, Unit
from mpiio_ext.analytics.query import ExpressionError, Tuples, load
from support import analytics_query
from support.analytics_query import Store
from support.marks import slow
from support.parts import require

require("ibis")

GB = 10**9
DAY = 1517097600.0  # 2018-01-28 UTC
JOBS = [
    {
        "job_id": number,
        "log_id": number,
        "app": "ab"[number % 2],
        "bytes_written": number * GB,
        "reads": number,
        "write_time": float(number),
        "run_time": 2.0 * number,
        "start_time": DAY + number,
        "processes": 4,
    }
    for number in range(1, 5)
]
FILES = [
    {
        "job_id": number,
        "log_id": number,
        "file_id": number,
        "bytes_written": number * GB,
        "opens": 1,
        "bytes_read": 0,
        "write_start": 1.0,
        "write_end": 2.0,
        "write_time": 1.0,
        "processes": 4,
    }
    for number in range(1, 5)
]
SLURM = [{"job_id": number, "start_time": DAY, "run_time": 60.0} for number in range(1, 5)]

Loader = Callable[[str], Tuples]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    found = Store(tmp_path_factory.mktemp("store"))
    for table, rows in (("darshan_job", JOBS), ("darshan_file", FILES), ("slurm", SLURM)):
        found.add(table, rows)
    return found


@pytest.fixture(scope="module", params=["duckdb", *slow("spark")])
def tuples(request: pytest.FixtureRequest, store: Store) -> Loader:
    engine = analytics_query.engine(request.param)
    return lambda table: load(engine, store, table)


def _smallest(frame: Any) -> float:
    return float(frame["write_time"].min())


#: What is chained, a condition that suits, how many rows pass it, one that does not, what the message says.
CHAINS: list[tuple[str, Callable[[Loader], Tuples], str, int, str, str]] = [
    (
        "aggregate",
        lambda t: t("darshan_job").group("app", b="sum(bytes_written)"),
        "b >= 6GB",
        1,
        "b < 5s",
        "in B meets one in s",
    ),
    (
        "misnamed",
        lambda t: t("darshan_job").group("app", write_time="sum(bytes_written)"),
        "write_time < 5GB",
        1,
        "write_time < 1s",
        "in B meets one in s",
    ),
    (
        "computed",
        lambda t: t("darshan_job").project("job_id", two="2 * bytes_written"),
        "two < 5GB",
        2,
        "two < 5s",
        "in B meets one in s",
    ),
    (
        "constant",
        lambda t: t("darshan_job").project("job_id", rate="1GB / write_time"),
        "rate <= 0.5GB/s",
        3,
        "rate < 5s",
        "in B/s meets one in s",
    ),
    ("renamed", lambda t: t("darshan_job").rename(run="run_time"), "run < 5s", 2, "run < 1GB", "in s meets one in B"),
    ("copied", lambda t: t("darshan_job").project("job_id", n="bytes_written"), "n < 2.5GB", 2, "n < 1h", "in B meets"),
    ("counted", lambda t: t("darshan_job").group("app", n="count()"), "n = 2", 2, "n < 1GB", "numbers without a unit"),
    ("ratio", lambda t: t("darshan_job").project(x="bytes_written / 2GB"), "x < 1", 1, "x < 1GB", "without a unit"),
    (
        "first",
        lambda t: t("darshan_job").group("app", first="min(start_time)"),
        "first < '2018-01-28 00:00:01.5'",
        1,
        "first > 5s",
        "in s since 1970 UTC meets one in s",
    ),
    (
        "lasted",
        lambda t: t("darshan_job").group("app", d="max(start_time) - min(start_time)"),
        "d >= 2s",
        2,
        "d > '2018-01-28'",
        "does not compare",
    ),
    (
        "joined",
        lambda t: t("darshan_job").join(t("slurm"), "job_id"),
        "start_time_slurm = '2018-01-28'",
        4,
        "run_time_slurm < 1GB",
        "in s meets one in B",
    ),
    (
        "joined other",
        lambda t: t("slurm").join(t("darshan_job").project("job_id", run_time="2 * bytes_written"), "job_id"),
        "run_time_darshan_job <= 4GB",
        2,
        "run_time_darshan_job < 1s",
        "in B meets one in s",
    ),
    (
        "binned",
        lambda t: t("darshan_job").bin("size", ["2GB", "4GB"], "bytes_written"),
        "size = 1",
        2,
        "size < 1GB",
        "without a unit",
    ),
    (
        "percentile",
        lambda t: t("darshan_job").rename(b="bytes_written").percentile("b", points=[0, 100]),
        "b > 2GB",
        1,
        "b > 2s",
        "in B meets one in s",
    ),
    (
        "files",
        lambda t: t("darshan_job").join(t("darshan_file"), "job_id").files(),
        "bytes_written < 3GB",
        2,
        "bytes_written < 3s",
        "in B meets one in s",
    ),
    (
        "distinct",
        lambda t: t("darshan_job").project(b="bytes_written").distinct().sort("b").limit(3),
        "b > 1GB",
        2,
        "b > 1s",
        "in B meets one in s",
    ),
]


def test_units_follow_columns(tuples: Loader) -> None:
    for name, chain, right, count, wrong, reason in CHAINS:
        found = chain(tuples)
        assert found.filter(right).count() == count, name
        with pytest.raises(ExpressionError, match=reason):
            found.filter(wrong)


def test_units_of_what_is_computed_later(tuples: Loader) -> None:
    """Of factors, and of a function's groups: the keys keep their unit, and what it returns suits everything."""
    factors = tuples("darshan_file").extract_perf_factors(None, None, "write", names=["dominant_file"])
    assert factors.filter("critical_bandwidth > 2.5GB/s and bytes < 4GB and dominant_file = 1").count() == 1
    for wrong in ("critical_time < 1GB", "bytes < 1s", "bandwidth < 1s", "dominant_file < 1GB", "files < 1s"):
        with pytest.raises(ExpressionError, match="meets one in"):
            factors.filter(wrong).count()
    groups = tuples("darshan_job").rename(size="bytes_written").group(["size"], _smallest)
    assert groups.filter("size > 1GB and _smallest < 3").count() == 1
    assert groups.filter("_smallest < 3s or _smallest < 1B").count() == 2
    with pytest.raises(ExpressionError, match="in B meets one in s"):
        groups.filter("size > 1s").count()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("start_time > 5s", "a value in s since 1970 UTC meets one in s"),
        ("reads < 1GB", "a value in numbers without a unit meets one in B"),
        ("bytes_written * run_time < 5s", r"a value in B\*s meets one in s"),
        ("1 / run_time < 5s", "a value in 1/s meets one in s"),
        ("bytes_written * bytes_written < 1GB", r"a value in B\^2 meets one in B"),
        ("coalesce(bytes_written, run_time) < 1GB", "a value in B meets one in s"),
        ("start_time + start_time > 0", "meets one in s since 1970 UTC"),
        ("run_time - start_time > 0", "meets one in s since 1970 UTC"),
        ("bytes_written in (5, 1s)", "a value in B meets one in s"),
        ("run_time between 1s and 1GB", "a value in s meets one in B"),
        ("abs(-bytes_written) < 1s", "a value in B meets one in s"),
        ("length(app) < 1s", "numbers without a unit meets one in s"),
        ("bytes_written % 5s = 0", "a value in B meets one in s"),
    ],
)
def test_refused(text: str, reason: str, store: Store) -> None:
    with pytest.raises(ExpressionError, match=reason):
        load(analytics_query.engine("duckdb"), store, "darshan_job").filter(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("start_time % 1d = 2s", 1),
        ("start_time - start_time % 1d = '2018-01-28'", 4),
        ("start_time > 1517097602", 2),
        ("bytes_written / reads = 1GB", 4),
        ("bytes_written / (2 * run_time) = 250MB/s", 4),
        ("bytes_written - 1GB < 1.5GB and reads * 2 < 100", 2),
        ("log10(bytes_written) = 9", 1),
        ("coalesce(bytes_written, 0) > 3.5GB", 1),
    ],
)
def test_taken(text: str, count: int, store: Store) -> None:
    assert load(analytics_query.engine("duckdb"), store, "darshan_job").filter(text).count() == count


def test_edges_of_bins_have_the_columns_unit(store: Store) -> None:
    jobs = load(analytics_query.engine("duckdb"), store, "darshan_job")
    with pytest.raises(ExpressionError, match="the edge '1s' is in s, and 'bytes_written' is in B"):
        jobs.bin("size", ["1s", "10s"], "bytes_written")
    assert [row["n"] for row in jobs.bin("n", [0, 2, "3s"], "write_time").sort("job_id").rows()] == [1, 2, 3, 3]


def test_a_filter_of_a_loaded_table_leaves_files_unopened(tmp_path: pathlib.Path) -> None:
    """The units of a table are known without a look at its files: those of other jobs need not even be there."""
    asked: list[tuple[Any, Any]] = []

    class Asked(Store):
        def files(self, table: str, low: float | None = None, high: float | None = None) -> list[str]:
            asked.append((low, high))
            return super().files(table, low, high)

    store = Asked(tmp_path)
    store.add("darshan_job", JOBS)
    jobs = load(analytics_query.engine("duckdb"), store, "darshan_job").filter("job_id = 3 and bytes_written > 1GB")
    assert jobs.project("job_id", b="bytes_written").filter("b > 2GB").count() == 1
    assert set(asked) == {(3, 3)}


@pytest.mark.parametrize(
    ("found", "unit"),
    [
        (dimensions.product("/", BYTES, SECONDS), RATE),
        (dimensions.product("*", RATE, SECONDS), BYTES),
        (dimensions.product("/", BYTES, RATE), SECONDS),
        (dimensions.product("*", PLAIN, RATE), RATE),
        (dimensions.product("/", BYTES, BYTES), NUMBER),
        (dimensions.product("/", NUMBER, PLAIN), NUMBER),
        (dimensions.total("-", INSTANT, INSTANT), SECONDS),
        (dimensions.total("+", SECONDS, INSTANT), INSTANT),
        (dimensions.total("-", PLAIN, INSTANT), UNKNOWN),
        (dimensions.total("-", INSTANT, UNKNOWN), UNKNOWN),
        (dimensions.total("+", PLAIN, PLAIN), PLAIN),
        (dimensions.total("+", UNKNOWN, BYTES), BYTES),
        (dimensions.by_name("start_time_slurm"), INSTANT),
        (dimensions.by_name("nobody"), UNKNOWN),
        (dimensions.aggregated("std", INSTANT), SECONDS),
        (dimensions.aggregated("sum", INSTANT), UNKNOWN),
        (str(Unit(1, -2)), "B/s^2"),
        (str(Unit(0, -1)), "1/s"),
        (str(INSTANT), "s since 1970 UTC"),
    ],
)
def test_arithmetic_of_units(found: Unit | str, unit: Unit | str) -> None:
    assert found == unit


@pytest.mark.parametrize("one", [NUMBER, BYTES, SECONDS, RATE, INSTANT, PLAIN, UNKNOWN], ids=str)
def test_arithmetic_of_units_commutes(one: Unit) -> None:
    for other in (NUMBER, BYTES, SECONDS, RATE, INSTANT, PLAIN, UNKNOWN):
        assert dimensions.suit(one, other) == dimensions.suit(other, one)
        assert dimensions.total("+", one, other) == dimensions.total("+", other, one), (one, other)
        assert dimensions.product("*", one, other) == dimensions.product("*", other, one)
