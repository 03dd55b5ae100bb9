"""Tables with a row per job: every form is read alike, what is damaged is named, missing values stay missing."""

from __future__ import annotations

import datetime
import gzip
import math
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.analytics.jobs import Filter, HistoryError, Jobs, derive, histories, read, select
from mpiio_ext.analytics.jobs.derived import beyond
from mpiio_ext.analytics.jobs.files import write
from mpiio_ext.analytics.jobs.filters import emptied
from mpiio_ext.analytics.jobs.history import longest_interval
from mpiio_ext.analytics.tables.plain import column_of, column_of_array, numbers_of
from support.job_histories import DAY, PERFORMANCE, START, history

CSV = """_jobid,_datetime_start,_file_system,darshan_agg_perf_by_slowest_posix,fs_ave_mds_cpu,note
11,1577836800.0,scratch1,100.5,,
12,1577923200.0,scratch1,,3.5,"two, words"
"""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(CSV)
    return path


def _same(one: Jobs, two: Jobs) -> None:
    assert one.names == two.names and len(one) == len(two)
    for name in one.names:
        assert one.texts(name).tolist() == two.texts(name).tolist()


def _numbered(text: str) -> str:
    """Return CSV as pandas writes it: the number of the row has no name."""
    head, *rows = text.splitlines()
    return "\n".join([head, *(f"{number},{row}" for number, row in enumerate(rows))]) + "\n"


@pytest.mark.parametrize("form", ["csv", "parquet", "sqlite", "gz", "numbered", "unnamed"])
def test_every_form_gives_the_same_table(plain: Path, form: str) -> None:
    table = read(plain)
    other = plain.with_suffix(f".{form}")
    if form == "gz":
        other.write_bytes(gzip.compress(CSV.encode()))
    elif form == "numbered":
        other.write_text(_numbered(CSV))
    elif form == "unnamed":
        other.write_text("," + _numbered(CSV))
    else:
        write(table, other)
    _same(read(other), table)
    _same(read(other, ["fs_ave_mds_cpu"]), Jobs({name: table.table[name] for name in ("_jobid", "fs_ave_mds_cpu")}))


def test_what_is_missing_stays_missing(plain: Path) -> None:
    table = read(plain)
    assert math.isnan(table.numbers("fs_ave_mds_cpu")[0]) and table.numbers("fs_ave_mds_cpu")[1] == 3.5
    assert table.texts("note").tolist() == ["", "two, words"]
    assert table.texts("_jobid").tolist() == ["11", "12"]
    assert np.isnan(table.numbers("no such column")).all() and table.texts("none").tolist() == ["", ""]
    assert select(table)[0].texts("_jobid").tolist() == ["11"]


def test_chosen_rows_keep_their_values_whatever_becomes_of_the_choice() -> None:
    table = history([1.0, 2.0, 3.0], {"note": ["a", None, "c"]})
    mask, places = np.array([True, False, True]), np.array([2, 2, 0])
    some, others = table.take(mask), table.take(places)
    mask[:], places[:] = False, 1
    assert some.numbers(PERFORMANCE).tolist() == [1.0, 3.0] and some.texts("note").tolist() == ["a", "c"]
    assert others.numbers(PERFORMANCE).tolist() == [3.0, 3.0, 1.0] and len(others) == 3 and "note" in others
    again = others.take(np.array([2])).joined({"more": [5]})
    assert again.texts("note").tolist() == ["a"] and again.numbers("more").tolist() == [5.0] and len(again) == 1
    assert again.names == [*table.names, "more"] and len(table.take(np.array([], dtype=np.int64))) == 0


def test_a_text_where_a_number_should_be_is_named(plain: Path) -> None:
    with pytest.raises(HistoryError, match=r"column note holds 'two, words' in row 2"):
        read(plain).numbers("note")


def test_in_sqlite_notes_beside_the_table_are_no_second_table(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    write(history([1.0, 2.0]), path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE remarks (_jobid, text)")
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT * FROM summary WHERE _jobid = 1").fetchall()
    assert "summary_by_job" in str(plan)
    assert read(path).numbers(PERFORMANCE).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None, None],
        [1, None, -(2**63)],
        [1, 2**63],
        [0.5, -0.0, None, 3],
        ["", None, "ä", "b"],
        [b"x", None],
        [True, None, 2],
        ["x"] * 9 + [None],
        [datetime.date(2020, 1, 1)],
    ],
)
def test_columns_are_those_of_pyarrow(values: list[Any]) -> None:
    try:
        wanted = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        with pytest.raises(type(error)):
            column_of(values)
        return
    found = column_of(values)
    found.validate(full=True)
    assert found.equals(wanted) and str(found) == str(wanted)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, np.nan, -0.0]),
        np.array([1, 2], np.int16),
        np.array([], np.float64),
        np.arange(20)[::2] % 3 == 0,
        np.array([2**64 - 1], np.uint64),
    ],
)
def test_arrays_go_to_columns_and_back(values: npt.NDArray[Any]) -> None:
    found = column_of_array(values)
    found.validate(full=True)
    assert found.equals(pa.array(values, from_pandas=True))
    np.testing.assert_array_equal(numbers_of(pa.chunked_array([found, found])), np.tile(values.astype(float), 2))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"a,b\n1,2\n",
        b"_jobid,_jobid\n1,2\n",
        b"_jobid,a\n1,2,3,4\n",
        b"_jobid,a\n1\n",
        b"\x1f\x8b\x08broken",
        b"PAR1 and no more",
        b"SQLite format 3\0 and no more",
        b"\xff\xfe_jobid",
        gzip.compress(b"_jobid,a\n1,2\n", mtime=0)[:-9],
        b"\x89HDF\r\n\x1a\n and no more",
    ],
)
def test_what_is_no_table_is_an_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "jobs.any"
    path.write_bytes(content)
    with pytest.raises(HistoryError, match=r"jobs\.any: "):
        read(path)


def test_damage_anywhere_in_a_table_of_others_is_a_table_or_an_error(tmp_path: Path) -> None:
    content = gzip.compress(CSV.encode())
    random = np.random.default_rng(7)
    damaged = tmp_path / "damaged"
    for _ in range(150):
        changed = bytearray(content)
        for at in random.integers(0, len(changed), 3):
            changed[at] = random.integers(256)
        damaged.write_bytes(bytes(changed[: random.integers(1, len(changed) + 1)]))
        try:
            table = read(damaged)
        except HistoryError as error:
            assert str(error).startswith(str(damaged)) and "\n" not in str(error)
        else:
            assert "_jobid" in table


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_fail_otherwise(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "random.csv"
    for text in (content, b"_jobid,a\n" + content):
        path.write_bytes(text)
        try:
            read(path)
        except HistoryError as error:
            assert "random.csv" in str(error)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="cannot be read"):
        read(tmp_path / "none.csv")


def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.sqlite"
    write(history([1.0]), path)

    def broken(*_: Any) -> None:
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr("mpiio_ext.analytics.jobs.files._put_table", broken)
    with pytest.raises(HistoryError, match="disk full"):
        write(history([2.0]), path)
    assert read(path).numbers(PERFORMANCE).tolist() == [1.0] and list(tmp_path.iterdir()) == [path]


def test_columns_of_different_lengths_are_no_table() -> None:
    with pytest.raises(HistoryError, match="columns of 1 and of 2 rows"):
        Jobs({"a": [1], "b": [1, 2]})


# ---- derived ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "read_files", "written", "got", "motif"),
    [
        (64, 0, 10, 0, "ior_fpp_write"),
        (65, 0, 10, 0, "ior_fpp_write"),
        (1, 0, 10, 0, "ior_shared_write"),
        (0, 128, 0, 10, "ior_fpp_read"),
        (0, 1, 5, 10, "ior_shared_read"),
        (0, 0, 0, 0, "ior_shared_read"),
    ],
)
def test_the_motif_of_a_row(files: int, read_files: int, written: float, got: float, motif: str) -> None:
    table = history(
        [1.0],
        {
            "darshan_biggest_write_api_files": [files],
            "darshan_biggest_read_api_files": [read_files],
            "darshan_biggest_write_api_bytes": [written],
            "darshan_biggest_read_api_bytes": [got],
        },
    )
    assert derive(table).texts("_benchmark_id").tolist() == [motif]


def test_coverage_is_the_jobs_share_and_nothing_where_a_term_is_missing() -> None:
    table = derive(
        history(
            [1.0] * 5,
            {
                "darshan_tot_bytes_read_posix": [10.0, 10.0, 10.0, math.nan, 13.0],
                "darshan_tot_bytes_written_posix": [0.0, 30.0, 0.0, 1.0, 0.0],
                "fs_tot_bytes_read": [40.0, 50.0, 0.0, 1.0, 10.0],
                "fs_tot_bytes_written": [0.0, 30.0, 0.0, 1.0, 0.0],
            },
        )
    )
    np.testing.assert_array_equal(table.numbers("coverage_factor_bw"), [0.25, 0.5, math.nan, math.nan, math.nan])
    np.testing.assert_array_equal(table.numbers("contention_bw"), [0.75, 0.5, math.nan, math.nan, math.nan])
    np.testing.assert_array_equal(table.numbers("coverage_factor_read_bw"), [0.25, 0.2, math.nan, math.nan, math.nan])


def test_a_column_that_is_there_is_kept() -> None:
    table = history([1.0, 2.0], {"coverage_factor_opens": [0.5, 1.1], "_benchmark_id": ["mine", "mine"]})
    assert derive(table).numbers("coverage_factor_opens").tolist() == [0.5, 1.1]
    assert derive(table).texts("_benchmark_id").tolist() == ["mine", "mine"]


def test_what_a_row_of_stacked_tables_lacks_is_derived_and_what_it_has_is_kept() -> None:
    terms = {
        "darshan_tot_bytes_read_posix": [10.0],
        "darshan_tot_bytes_written_posix": [0.0],
        "fs_tot_bytes_read": [40.0],
        "fs_tot_bytes_written": [0.0],
        "darshan_tot_opens_posix": [1.0],
        "fs_tot_open_ops": [4.0],
    }
    old = history(
        [1.0],
        {
            "_benchmark_id": ["ior_fpp_write"],
            "coverage_factor_bw": [0.5],
            "contention_bw": [0.4],
            "coverage_factor_opens": [0.9],
            "fs_tot_bytes": [7.0],
        },
    )
    both = Jobs.stacked([old, history([2.0], terms)], "both")
    found = derive(both)
    assert found.texts("_benchmark_id").tolist() == ["ior_fpp_write", "ior_fpp_write"]
    assert found.numbers("coverage_factor_bw").tolist() == [0.5, 0.25]
    assert found.numbers("contention_bw").tolist() == [0.4, 0.75]
    assert found.numbers("coverage_factor_opens").tolist() == [0.9, 0.25]
    assert found.numbers("fs_tot_bytes").tolist() == [7.0, 40.0]
    assert [(one.motif, len(one.jobs)) for one in histories(found)] == [("ior_fpp_write", 2)]
    assert len(select(Jobs.stacked([old, history([2.0])], "both"), Filter(complete=True))[0]) == 2


def test_the_limit_of_the_coverage_holds_for_a_stored_column_too() -> None:
    stored = {"coverage_factor_bw": [0.5, 1.2, 1.5]}
    table = derive(history([1.0] * 3, stored))
    np.testing.assert_array_equal(table.numbers("coverage_factor_bw"), [0.5, 1.2, math.nan])
    np.testing.assert_array_equal(table.numbers("contention_bw"), [0.5, 1 - 1.2, math.nan])
    both = derive(history([1.0] * 3, {**stored, "contention_bw": [0.4, -0.3, -0.1]}))
    np.testing.assert_array_equal(both.numbers("contention_bw"), [0.4, math.nan, math.nan])


def test_the_limit_holds_for_each_factor_and_its_contention_and_is_counted() -> None:
    table = history(
        [1.0] * 3,
        {
            "darshan_tot_opens_posix": [1.0, 12.0, 4098.0],
            "fs_tot_open_ops": [10.0, 10.0, 1.0],
            "coverage_factor_stats": [0.5, 1.3, 0.2],
            "contention_ops": [0.1, 0.2, -0.9],
            "coverage_factor_nodehrs": [0.5, 1.3, 0.2],
        },
    )
    found = derive(table)
    np.testing.assert_array_equal(found.numbers("coverage_factor_opens"), [0.1, 1.2, math.nan])
    np.testing.assert_array_equal(found.numbers("contention_opens"), [0.9, 1 - 1.2, math.nan])
    for name in ("coverage_factor_stats", "coverage_factor_nodehrs"):
        np.testing.assert_array_equal(found.numbers(name), [0.5, math.nan, 0.2])
    np.testing.assert_array_equal(found.numbers("contention_stats"), [0.5, math.nan, 0.8])
    np.testing.assert_array_equal(found.numbers("contention_ops"), [0.1, 0.2, math.nan])
    assert beyond(found) == {"coverage_factor_opens": 1} == beyond(table)


@pytest.mark.parametrize("form", ["parquet", "sqlite", "csv"])
def test_what_depends_on_the_other_rows_is_neither_stored_nor_believed(tmp_path: Path, form: str) -> None:
    table = select(history([10.0, 40.0, 20.0]))[0]
    path = tmp_path / f"jobs.{form}"
    write(table, path)
    assert "darshan_normalized_perf_by_max" in table and "darshan_normalized_perf_by_max" not in read(path)
    alone = read(path).take(np.array([0, 2])).joined({"darshan_normalized_perf_by_max": np.array([0.25, 0.5])})
    assert derive(alone).numbers("darshan_normalized_perf_by_max").tolist() == [0.5, 1.0]


def test_performance_is_normalised_within_a_history() -> None:
    table = history([10.0, 20.0, 1.0, 4.0], {"_file_system": ["a", "a", "b", "b"]})
    assert derive(table).numbers("darshan_normalized_perf_by_max").tolist() == [0.5, 1.0, 0.25, 1.0]
    assert [(one.system, len(one.jobs)) for one in histories(derive(table))] == [("a", 2), ("b", 2)]


def test_jobs_of_an_unknown_file_system_or_motif_are_of_no_history() -> None:
    names = {"_file_system": ["a", "", "a", None], "darshan_app": ["ior", "ior", "", "x"]}
    table = history([1.0, 2.0, 3.0, 4.0], names)
    found = derive(table)
    assert [(one.name, len(one.jobs)) for one in histories(found)] == [("ior_fpp_write on a", 1)]
    np.testing.assert_array_equal(found.numbers("darshan_normalized_perf_by_max"), [1.0] + [math.nan] * 3)
    (one,) = histories(derive(history([1.0, 2.0], {"_file_system": ["", ""]})))
    assert one.name == "ior_fpp_write, file system not known" and len(one.jobs) == 2
    (one,) = histories(derive(history([1.0, 2.0], {"darshan_app": ["", None]})))
    assert one.name == "motif not known on scratch1" and len(one.jobs) == 2


def test_no_concurrent_jobs_or_nodes_is_unknown_but_not_missing() -> None:
    table = history([1.0, 2.0], {"jobsdb_concurrent_nodes": [0, 5], "jobsdb_concurrent_jobs": [0.0, 2.0]})
    for name, value in (("jobsdb_concurrent_nodes", 5.0), ("jobsdb_concurrent_jobs", 2.0)):
        np.testing.assert_array_equal(table.numbers(name), [math.nan, value])
        assert not table.missing(name).any() and table.table[name][0].as_py() == 0
    assert len(select(table, Filter(complete=True))[0]) == 2


def test_a_gap_is_seven_usual_intervals_and_more_than_a_day() -> None:
    assert longest_interval(START + DAY * np.array([0.0, 1, 1, 2, 3, 50])) == 7 * DAY
    assert longest_interval(START + 60 * np.arange(9.0)) == DAY
    assert longest_interval(START + DAY * np.array([0.0, 9.0])) is None


# ---- filters ---------------------------------------------------------------------------------------------------------


def test_filters_are_half_open_days_of_a_time_zone_and_rows_come_by_start() -> None:
    import datetime

    starts = [START + 3 * DAY, START, START + DAY - 1, START + DAY]
    table = history([1.0, 2.0, 3.0, 4.0], {"_datetime_start": starts})
    day = datetime.date(2020, 1, 1)
    kept, steps = select(table, Filter(since=day, until=day + datetime.timedelta(days=1)))
    assert kept.texts("_jobid").tolist() == ["1001", "1002"]
    assert [(step.dropped, step.left) for step in steps] == [(0, 4), (0, 4), (2, 2)]
    west, _ = select(table, Filter(until=day, time_zone="America/Los_Angeles"))
    assert west.texts("_jobid").tolist() == ["1001"]  # midnight there is 08:00 UTC
    with pytest.raises(HistoryError, match="no time zone"):
        select(table, Filter(since=day, time_zone="Mars/Olympus"))


def test_the_true_start_goes_before_the_clock_of_the_wall() -> None:
    table = history([1.0, 2.0], {"darshan_start_time": [START + 28800, math.nan]})
    assert table.times().tolist() == [START + 28800, START + DAY]


def test_only_complete_rows_where_that_is_asked_for() -> None:
    table = history([1.0, 2.0], {"fs_ave_mds_cpu": [math.nan, 1.0], "_notes": [None, None]})
    assert len(select(table)[0]) == 2
    assert select(table, Filter(complete=True))[0].texts("_jobid").tolist() == ["1001"]
    with pytest.raises(HistoryError, match="there is no column darshan_agg"):
        select(Jobs({"_jobid": [1]}))


def test_derived_and_wholly_empty_columns_make_no_row_incomplete() -> None:
    table = history(
        [1.0, 2.0],
        {
            "coverage_factor_ops": [math.nan, 1.0],
            "fs_ave_mds_cpu": [math.nan, math.nan],
            "fs_ave_oss_cpu": [math.nan, 1.0],
        },
    )
    assert select(table, Filter(complete=True))[0].texts("_jobid").tolist() == ["1001"]


def test_the_filter_that_left_no_row_is_named() -> None:
    table = history([1.0, 2.0])
    kept, steps = select(table, Filter(above_gib=1e6))
    assert not len(kept)
    assert emptied("t", steps) == "t: no row counts: the filter 'more than 1,000,000 GiB' left out the last 2"
    assert emptied("t", select(table.take(np.array([], dtype=np.int64)))[1]).endswith("the table is empty")
