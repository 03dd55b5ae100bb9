"""Rows of jobs: scalars of what the tools answer, files of every form, joins with a store."""

from __future__ import annotations

import pathlib
import sqlite3
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics.cli_summarize import _FIRST
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.jobs import files, hdf5, row
from mpiio_ext.analytics.jobs.columns import NOTES, SUMMARY
from mpiio_ext.analytics.jobs.table import Jobs
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.series import Series
from mpiio_ext.analytics.tools.traffic import traffic
from mpiio_ext.errors import FileSystemError
from support.job_histories import series, some
from support.monitoring import lmt_table, records, table

FORMS = [".parquet", ".csv", ".csv.gz", ".sqlite"]


def test_columns_have_the_published_names_and_a_meaning_each() -> None:
    names = SUMMARY.names()
    assert len(set(names)) == len(names)
    assert set(names) >= _FIRST
    assert all(column.meaning for column in (*SUMMARY.columns, *NOTES.columns))
    assert {
        "darshan_agg_perf_by_slowest_posix",
        "fs_ave_gibs_read_per_sec",
        "fs_tot_statfs_ops",
        "fs_max_mds_cpu",
        "fshealth_ost_most_full_pct",
        "fshealth_ost_failures_lead_secs",
        "jobsdb_concurrent_nodehrs",
        "topology_job_max_radius",
        "coverage_factor_read_bw",
    } <= set(names)


def test_scalars_of_servers() -> None:
    lmt = lmt_table([(0.0, "a", 100, 0), (0.0, "b", None, 50), (5.0, "a", 0, 20), (5.0, "b", 300, 30)], "f")
    load = table(
        {
            "time": [0, 5, 0],
            "server": ["x", "x", "y"],
            "kind": ["oss"] * 3,
            "quantity": ["cpu"] * 3,
            "value": [10, 30, 50],
        }
    )
    counts = table({"time": [0, 5], "server": ["m", "m"], "operation": ["open"] * 2, "count": [10, 0]})
    source = records("lmt", lmt=lmt, servers=load, operations=counts)
    found = row.servers(traffic([source], Period(0.0, 15.0), {"f"}))
    expected = {
        "fs_tot_bytes_read": 400,
        "fs_tot_gibs_read": 400 / 2**30,
        "fs_ave_bytes_read_per_sec": (20 + 60) / 2,
        "fs_max_bytes_read_per_sec": 60,
        "fs_min_bytes_read_per_sec": 20,
        "fs_frac_zero_read": 1 / 3,
        "fs_tot_bytes_written": 100,
        "fs_max_bytes_written_per_sec": 10,
        "fs_frac_zero_written": 1 / 4,
        "fs_frac_missing": 5 / 12,
        "fs_step_s": 5,
        "fs_targets": 2,
        "fs_ave_oss_cpu": (20 + 50) / 2,
        "fs_max_oss_cpu": 50,
        "fs_tot_open_ops": 10,
        "fs_ave_open_ops_per_sec": 1,
        "fs_max_open_ops_per_sec": 2,
        "fs_min_open_ops_per_sec": 0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert set(found) <= set(SUMMARY.names())
    assert row.servers(traffic([], Period(0.0, 15.0))) == {}


def test_coverage_is_null_where_a_side_is_not_known_or_zero() -> None:
    known = {
        "darshan_tot_bytes_read_posix": 10,
        "darshan_tot_bytes_written_posix": 30,
        "fs_tot_bytes_read": 40.0,
        "fs_tot_bytes_written": 0.0,
        "jobsdb_nodes": 4,
        "darshan_walltime": 1800,
        "jobsdb_concurrent_nodehrs": 8.0,
    }
    assert row.coverage(known) == {
        "coverage_factor_read_bw": 0.25,
        "coverage_factor_write_bw": None,
        "coverage_factor_bw": 1.0,
        "coverage_factor_opens": None,
        "coverage_factor_stats": None,
        "coverage_factor_nodehrs": 0.25,
    }
    assert set(row.coverage({}).values()) == {None}


def test_coverage_of_what_is_known_in_part() -> None:
    whole = {
        "darshan_tot_bytes_read_posix": 10,
        "fs_tot_bytes_read": 20.0,
        "darshan_tot_opens_posix": 5,
        "fs_tot_open_ops": 10.0,
        "jobsdb_nodes": 1,
        "darshan_walltime": 3600,
        "jobsdb_concurrent_nodehrs": 2.0,
    }
    names = ("coverage_factor_read_bw", "coverage_factor_opens", "coverage_factor_nodehrs")
    for gone, jobs, wanted in (
        (0.0, 0.0, [0.5, 0.5, 0.5]),
        (0.16, 0.16, [0.5, 0.5, 0.5]),
        (0.17, 0.0, [None, None, 0.5]),
        (0.0, 0.17, [0.5, 0.5, None]),
    ):
        found = row.coverage({**whole, "fs_frac_missing": gone, "jobsdb_frac_missing": jobs})
        assert [found[name] for name in names] == wanted, (gone, jobs)


def test_what_is_known_in_part_and_what_cannot_be_has_a_note() -> None:
    assert row.doubts({"fs_frac_missing": 0.0, "coverage_factor_bw": 1.2, "coverage_factor_opens": None}) == []
    (part,) = row.doubts({"fs_frac_missing": 0.1})
    assert (str(part), part.damage) == ("servers missing: no value for 10.000% of the targets and steps", False)
    assert "too much for coverage factors" in row.doubts({"fs_frac_missing": 0.2})[0].what
    (above,) = row.doubts({"coverage_factor_bw": 12.6, "coverage_factor_stats": 6e8})
    assert "coverage_factor_bw 12.6, coverage_factor_stats 600,000,000: a job cannot" in above.what and not above.damage


# ---- files -----------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r"), max_size=12)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-(2**62), 2**62),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "string": TEXT,
}
#: Some columns of each type; the others are NULL.
SOME = [column for column in SUMMARY.columns if column.name != "_log_id"][::9]
ROW = st.fixed_dictionaries({column.name: st.none() | VALUES[column.type] for column in SOME})


@pytest.mark.parametrize("form", FORMS)
@given(st.lists(ROW, max_size=3))
@settings(max_examples=8)
def test_a_file_gives_back_what_was_written(tmp_path_factory: Any, form: str, rows: list[dict[str, Any]]) -> None:
    path = tmp_path_factory.mktemp("summaries") / f"jobs{form}"
    written = Jobs.of_rows([{**each, "_log_id": number} for number, each in enumerate(rows)])
    files.write(written, path)
    found = files.read(path)
    assert found.rows() == written.rows()
    assert found.table.schema == written.table.schema
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], "nothing is left beside it"


@pytest.mark.parametrize("form", [*FORMS, ".h5"])
def test_update_replaces_rows_of_the_same_log(tmp_path: pathlib.Path, form: str) -> None:
    if form == ".h5":
        pytest.importorskip("h5py")
    path = tmp_path / f"jobs{form}"
    files.update(some(3), path)
    newer = Jobs.of_rows([{"_jobid": 40, "_log_id": 2**61, "_datetime_start": 1.6e9}, {"_jobid": 50, "_log_id": 1}])
    whole = files.update(newer, path)
    found = files.read(path)
    assert found.rows() == whole.rows()
    assert {each["_log_id"]: each["_datetime_start"] for each in found.rows()} == {
        2**61: 1.6e9,
        2**61 + 1: 1.5e9 + 1,
        2**61 + 2: 1.5e9 + 2,
        1: None,
    }
    if form not in (".csv", ".csv.gz"):
        assert [note["source"] for note in found.notes.to_pylist()] == ["darshan"], "notes of the old row are gone"


#: Adds a row to a file; between reading and writing it is long enough for others to do the same.
SLOW_UPDATE = """
import sys, time
from mpiio_ext.analytics.jobs import files
from mpiio_ext.analytics.jobs.table import Jobs
write = files.write
def slowly(*arguments):
    time.sleep(0.5)
    write(*arguments)
files.write = slowly
print("ready", flush=True)
sys.stdin.readline()
number = int(sys.argv[2])
files.update(Jobs.of_rows([{"_jobid": number, "_log_id": number}]), sys.argv[1])
"""


@pytest.mark.parametrize("there", [True, False])
def test_rows_that_processes_add_at_the_same_time_are_all_there(tmp_path: pathlib.Path, there: bool) -> None:
    path = tmp_path / "jobs.parquet"
    if there:
        files.update(Jobs.of_rows([{"_jobid": 0, "_log_id": 0}]), path)
    adders = [
        subprocess.Popen(
            [sys.executable, "-c", SLOW_UPDATE, str(path), str(number)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(1, 5)
    ]
    for adder in adders:
        assert adder.stdout is not None and adder.stdout.readline() == "ready\n"
    for adder in adders:
        assert adder.stdin is not None
        adder.stdin.write("go\n")
        adder.stdin.flush()
    for adder in adders:
        adder.communicate()
        assert adder.returncode == 0
    assert sorted(row["_log_id"] for row in files.read(path).rows()) == list(range(0 if there else 1, 5))
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name], "no lock is left"


def test_slices_by_job(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("h5py")
    path = tmp_path / "jobs.h5"
    files.write(some(3), path)
    found = files.slices_of(path, 40)
    assert {log: set(slice_) for log, slice_ in found.items()} == {2**61: {"bytes_read"}, 2**61 + 1: {"oss_cpu"}}
    one, wanted = found[2**61]["bytes_read"], series()
    np.testing.assert_array_equal(one.values, wanted.values)
    assert (one.names, one.first, one.step_s, one.unit, one.level) == (
        wanted.names,
        wanted.first,
        wanted.step_s,
        wanted.unit,
        wanted.level,
    )
    assert files.slices_of(path, 99) == {}
    assert files.read(path).rows() == some(3).rows()


def test_slices_of_other_logs_are_not_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where a log is added, nor for a table of the history."""
    pytest.importorskip("h5py")
    path = tmp_path / "jobs.h5"
    files.write(some(3), path)
    newer = Jobs.of_rows(
        [{"_jobid": 40, "_log_id": 2**61, "_datetime_start": 1.6e9}, {"_jobid": 50, "_log_id": 1}],
        [],
        {1: {"oss_cpu": series(3)}},
    )
    with monkeypatch.context() as patched:
        patched.setattr(hdf5, "_get_series", lambda _: pytest.fail("a slice is read"))
        files.update(newer, path)
        assert len(files.read(path, slices=False)) == 4
    found = files.read(path)
    assert {log: list(slice_) for log, slice_ in found.slices.items()} == {1: ["oss_cpu"], 2**61 + 1: ["oss_cpu"]}
    np.testing.assert_array_equal(found.slices[1]["oss_cpu"].values, series(3).values)
    np.testing.assert_array_equal(found.slices[2**61 + 1]["oss_cpu"].values, series(2).values)


def test_a_file_does_not_grow_where_rows_are_replaced(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("h5py")
    path = tmp_path / "jobs.h5"
    files.write(some(50), path)
    once = path.stat().st_size
    for _ in range(12):
        files.update(some(50), path)
    assert path.stat().st_size < 1.5 * once
    assert files.read(path).rows() == some(50).rows()


def test_an_error_in_the_middle_leaves_the_file_as_it_was(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("h5py")
    path = tmp_path / "jobs.h5"
    files.write(some(3), path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(hdf5, "_put_slices", full)
    with pytest.raises(FileSystemError, match=r"jobs\.h5: cannot be written: No space left"):
        files.update(some(5), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_names_of_servers_are_there_once_and_may_be_many(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "jobs.h5"
    many = Series(
        quantity="bytes_read",
        unit="B",
        step_s=5.0,
        first=0.0,
        values=np.ones((2, 9000)),
        names=tuple(f"snx11025-OST{number:04x}" for number in range(9000)),
    )
    files.write(Jobs.of_rows([{"_jobid": 1, "_log_id": 1}], [], {1: {"a": many, "b": many}}), path)
    files.update(Jobs.of_rows([{"_jobid": 2, "_log_id": 2}], [], {2: {"a": many}}), path)
    with h5py.File(path) as file:
        assert len(file["servers"]) == 1
    assert files.slices_of(path, 2)[2]["a"].names == many.names


def test_hdf5_that_another_program_has_changed_is_refused(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "jobs.h5"
    files.write(some(3), path)
    with h5py.File(path, "r+") as file:
        file["summary"]["_jobid"][0] = 41
    with pytest.raises(AnalyticsError, match=r"jobs\.h5: not a table of jobs: its checksum is wrong"):
        files.read(path)
    with pytest.raises(AnalyticsError, match="its checksum is wrong"):
        files.update(some(4), path)
    with pytest.raises(AnalyticsError, match="its checksum is wrong"):
        files.slices_of(path, 40)
    with h5py.File(path, "w") as file:
        file["summary"] = 1
    with pytest.raises(AnalyticsError, match="it does not begin with a checksum"):
        files.read(path)


def test_sqlite_has_an_index_and_units(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "jobs.sqlite"
    files.write(some(3), path)
    with sqlite3.connect(path) as base:
        plan = base.execute('EXPLAIN QUERY PLAN SELECT * FROM summary WHERE "_jobid" = 40').fetchall()
        assert "summary_by_job" in str(plan)
        unit = base.execute("SELECT unit FROM columns WHERE name = 'fs_ave_gibs_read_per_sec'").fetchone()
    assert unit == ("GiB/s",)


@pytest.mark.parametrize("form", [*FORMS, ".h5"])
def test_damaged_files_are_named(tmp_path: pathlib.Path, form: str) -> None:
    if form == ".h5":
        pytest.importorskip("h5py")
    path = tmp_path / f"jobs{form}"
    files.write(some(3), path)
    data = path.read_bytes()
    source = np.random.default_rng(7)
    for number in range(40):
        broken = bytearray(data)
        if number % 2:
            broken = broken[: source.integers(0, len(data))]
        else:
            for place in source.integers(0, len(data), 8):
                broken[place] = source.integers(0, 256)
        path.write_bytes(broken)
        try:
            found = files.read(path)
        except AnalyticsError as error:
            assert str(path) in str(error)
        else:
            assert found.table.column_names[: len(SUMMARY.columns)] == SUMMARY.names()
    path.write_bytes(b"")
    with pytest.raises(AnalyticsError, match=r"jobs\."):
        files.update(some(1), path)
    assert path.read_bytes() == b"", "a file that cannot be read is not replaced"


def test_other_names_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(AnalyticsError, match=r"ends in \.parquet"):
        files.write(some(1), tmp_path / "jobs.xlsx")
    with pytest.raises(FileSystemError, match="cannot be written"):
        files.write(some(1), tmp_path / "nowhere" / "jobs.csv")
    for form in (*FORMS, ".h5"):
        with pytest.raises(FileSystemError) as error:  # a name that is too long
            files.write(some(1), tmp_path / f"{'x' * 254}{form}")
        assert str(error.value).endswith(f"x{form}: cannot be written: File name too long")
