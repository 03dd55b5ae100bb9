"""Placed stores: the same rows as ever on both engines, and files that are never opened."""

from __future__ import annotations

import functools
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from mpiio_ext.analytics.analyses.placed import placement_of
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query import Tuples, load
from mpiio_ext.analytics.setup import PlacementPlan, Setup
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.fill import fill
from mpiio_ext.analytics.store.placement import place
from support import analytics_query, fake_logs
from support.analytics_query import ENGINES, comparable
from support.parts import require

require("ibis")

JOBS, TARGETS = 48, 4
#: The last job on the first target; each has as many rows of files, and job 7 has more than others.
LAST = 10


FILES = 4


def made(folder: pathlib.Path, store: str = "store") -> Setup:
    """Return a store of jobs 0 to 47 for four targets, eight subtables; later jobs have files on more OSTs."""
    for job in range(JOBS):
        osts = " ".join(str(ost) for ost in range(1 + 20 * (job // 12)))
        fake_logs.write(folder / "logs", f"{job:03}", f"job {job} {FILES} {osts}")
    fake_logs.write(folder / "logs", "again", "job 7 2 3")  # a second log of a job
    targets = [str(folder / f"t{k}") for k in range(TARGETS)]
    setup = fake_logs.set_up(folder, store=store, placement={"targets": targets, "subtables": 8})
    fill(setup, connectors={"darshan": fake_logs.convert})
    return setup


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def setup(folder: pathlib.Path) -> Setup:
    found = made(folder)
    assert found.placement is not None
    place(found.store, found.placement)
    return found


@pytest.fixture(scope="module")
def whole(folder: pathlib.Path) -> Setup:
    """Return a store of the same logs that is not placed."""
    return made(folder, "whole")


Loader = Callable[..., Tuples]


@functools.cache
def _load(engine: str, store: pathlib.Path, name: str, jobs: Any) -> Tuples:
    return load(analytics_query.engine(engine), Catalog(store), name, jobs)


def loader(engine: str, setup: Setup) -> Loader:
    """Return what loads a table, once a table."""
    return lambda name, jobs=None: _load(engine, setup.store, name, jobs)


def count_files(frame: Any) -> int:
    return len(frame)


QUERIES: dict[str, Callable[[Loader], Tuples]] = {
    "a table": lambda load: load("darshan_file").project("job_id", "file_id", "ost_word_0"),
    "a join": lambda load: (
        load("darshan_job")
        .join(load("darshan_file"), "job_id")
        .project("job_id", "log_id", "log_id_darshan_file", "file_id")
    ),
    "groups by job of a join": lambda load: (
        load("darshan_job")
        .project("job_id")
        .distinct()
        .join(load("darshan_file").filter("file_id > 0"), "job_id")
        .group("job_id", files="count()", osts="ost_count()")
    ),
    "OSTs that jobs have in common": lambda load: (
        load("darshan_file").filter("job_id between 3 and 30").ost_union("job_id").ost_intersection()
    ),
    "groups by another column": lambda load: load("darshan_file").group("file_id", files="count()"),
    "a left join and a sort": lambda load: (
        load("darshan_job")
        .join(load("darshan_file").filter("job_id < 20"), "job_id", "left")
        .project("job_id", "file_id")
        .sort("-job_id")
    ),
    "groups behind an outer join": lambda load: (
        load("darshan_job")
        .filter("job_id > 5")
        .join(load("darshan_file").project(job_id="job_id", other="file_id").filter("job_id < 9"), "job_id", "outer")
        .group("job_id", n="count()", some="max(other)")
    ),
    "groups by a key that a left join made NULL": lambda load: (
        load("darshan_job")
        .join(load("darshan_file").filter("job_id < 2").project("job_id", "file_id", key="job_id"), "job_id", "left")
        .group("key", n="count()")
    ),
    "a join that is not by job": lambda load: (
        load("darshan_file")
        .filter("job_id % 16 = 1")
        .project("job_id", "file_id")
        .join(load("darshan_file").filter("job_id % 16 = 5").project("file_id", other="job_id"), "file_id")
    ),
    "a limit": lambda load: (
        load("darshan_file").sort("job_id", "log_id", "file_id").limit(7).project("job_id", "file_id")
    ),
    "a window": lambda load: (
        load("darshan_job").filter("job_id != 7").project("job_id", rank=lambda table: table.job_id.rank())
    ),
    "percentiles": lambda load: load("darshan_file").percentile("job_id", points=[0, 50, 100]),
    "a function of rows": lambda load: (
        load("darshan_job").bin("odd", lambda job: job % 2, "job_id", type="int64").group("odd", n="count()")
    ),
    "a function of groups": lambda load: load("darshan_file").project("job_id", "file_id").group("job_id", count_files),
    "a table with itself": lambda load: (
        load("darshan_job")
        .project("job_id", "log_id")
        .join(load("darshan_job").project("job_id", other="log_id"), "job_id")
    ),
    "no job": lambda load: load("darshan_job", (1000, 2000)).join(load("darshan_file"), "job_id").project("job_id"),
    "an empty table": lambda load: (
        load("darshan_job").join(load("slurm"), "job_id", "left").project("job_id", "node_count")
    ),
}


@pytest.mark.slow_with("spark-*")
@pytest.mark.parametrize("name", list(QUERIES))
@pytest.mark.parametrize("engine", ENGINES)
def test_placed_tables_give_the_same_rows(engine: str, name: str, setup: Setup, whole: Setup) -> None:
    query = QUERIES[name]
    expected = comparable(query(loader("duckdb", whole)).rows())
    placed = query(loader(engine, setup))
    assert comparable(placed.rows()) == expected
    assert expected or name == "no job"


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_range_of_jobs_does_not_need_may_be_gone(engine: str, tmp_path: pathlib.Path) -> None:
    """Not a byte of the other targets is read: they are taken away."""
    setup = made(tmp_path)
    assert setup.placement is not None
    place(setup.store, setup.placement)
    for target in range(1, TARGETS):
        shutil.rmtree(tmp_path / f"t{target}")
    load = loader(engine, setup)
    asked = {
        "load": load("darshan_job", (2, LAST)).join(load("darshan_file"), "job_id"),
        "filter": load("darshan_job").filter("job_id between 2 and 10").join(load("darshan_file"), "job_id"),
        "other side": load("darshan_job").join(load("darshan_file").filter("job_id <= 10", "job_id > 1"), "job_id"),
        "behind": load("darshan_job", (2, LAST)).sort("job_id").join(load("darshan_file"), "job_id"),
        "three": load("darshan_job")
        .filter("10 >= job_id and (job_id = 2 or job_id > 2)")
        .project("job_id")
        .join(load("darshan_job"), "job_id")
        .join(load("darshan_file"), "job_id"),
    }
    # Job 7 has two logs with 4 and 2 files, and a join by job pairs each with the files of both.
    rows = 8 * FILES + 2 * (FILES + 2)
    expected = dict.fromkeys(asked, rows) | {"three": 8 * FILES + 2 * 2 * (FILES + 2)}
    assert {name: len(tuples.project("job_id").rows()) for name, tuples in asked.items()} == expected
    with pytest.raises(AnalyticsError, match="could not carry out the query"):
        load("darshan_job").rows()


def test_fewer_jobs_read_fewer_bytes_on_duckdb(setup: Setup) -> None:
    load = loader("duckdb", setup)

    def by_target(tuples: Tuples) -> list[int]:
        found = [0] * TARGETS
        for read in tuples.reads():
            target = next(k for k in range(TARGETS) if f"/t{k}/" in read.path)
            found[target] += read.bytes
        return found

    every = by_target(load("darshan_job").join(load("darshan_file"), "job_id"))
    few = by_target(load("darshan_job", (0, 5)).join(load("darshan_file"), "job_id"))
    assert all(every) and few[0] < every[0] and few[1:] == [0, 0, 0]
    assert [entry.subtable for entry in Catalog(setup.store).entries("darshan_file", 0, 5)] == [0]


def test_fewer_jobs_read_fewer_bytes_on_spark(setup: Setup) -> None:
    load = loader("spark", setup)
    every = load("darshan_job").join(load("darshan_file"), "job_id").reads()
    few = load("darshan_job", (0, LAST)).join(load("darshan_file"), "job_id").reads()
    assert all(read.executor and read.task >= 0 and not read.path for read in (*every, *few))
    assert 0 < sum(read.bytes for read in few) < sum(read.bytes for read in every)


def test_what_lies_on_each_target(setup: Setup, whole: Setup) -> None:
    found = placement_of(Catalog(setup.store))
    rows = found.table.to_pylist()
    assert [(row["target"], row["subtables"], row["files"]) for row in rows] == [(k, 2, 4) for k in range(TARGETS)]
    assert sum(row["rows"] for row in rows) == JOBS + 1 + FILES * JOBS + 2
    assert "4 storage targets, 8 subtables" in found.caption and found.charts[0].data["labels"] == ["0", "1", "2", "3"]
    assert found.table.schema.field("bytes").metadata == {b"unit": b"B"}
    assert [row["target"] for row in placement_of(Catalog(whole.store)).table.to_pylist()] == [-1]


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ((5, 4), "write the smallest and the largest"),
        ((1,), "write the smallest"),
        (("a", 2), "write the smallest"),
        (7, "write the smallest"),
    ],
)
def test_ranges_that_are_none(jobs: Any, words: str, setup: Setup) -> None:
    with pytest.raises(AnalyticsError, match=words):
        loader("duckdb", setup)("darshan_job", jobs)
    with pytest.raises(AnalyticsError, match="lmt has no job_id"):
        loader("duckdb", setup)("lmt", (1, 2))


def test_a_half_open_range(setup: Setup) -> None:
    load = loader("duckdb", setup)
    assert load("darshan_job", (40, None)).count() == JOBS - 40
    assert load("darshan_job", (None, 5)).count() == 6
    assert load("darshan_job", (None, None)).count() == JOBS + 1


def test_a_placement_that_is_not_finished_is_read_as_ever(tmp_path: pathlib.Path) -> None:
    setup = made(tmp_path)
    place(setup.store, PlacementPlan(targets=(str(tmp_path / "one"),), subtables=1))
    fake_logs.write(tmp_path / "logs", "new", "job 100 1")
    fill(setup, connectors={"darshan": fake_logs.convert})
    spark = loader("spark", setup)("darshan_job")
    assert spark.count() == JOBS + 2
