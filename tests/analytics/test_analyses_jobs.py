"""The analyses over many jobs, worked by hand: Equations 3, 4, 5, applications, middleware."""

from __future__ import annotations

import numpy as np
import pytest

from mpiio_ext.analytics.analyses.applications import NO_NAME, applications, labels
from mpiio_ext.analytics.analyses.counting import share_words
from mpiio_ext.analytics.analyses.middleware import middleware
from mpiio_ext.analytics.analyses.read_ratio import read_ratio
from mpiio_ext.analytics.analyses.sequential import sequential
from mpiio_ext.analytics.analyses.sharing import sharing
from mpiio_ext.analytics.errors import AnalyticsError
from support.analytics_jobs import many, source


def test_applications_are_ranked_in_both_directions() -> None:
    jobs = [
        {"app": "big", "bytes_read": 10, "bytes_written": 500},
        {"app": "big", "bytes_read": None, "bytes_written": 300},
        {"app": "reader", "bytes_read": 90, "bytes_written": 0},
        {"app": None, "bytes_read": 0, "bytes_written": 200},
        {"app": "bench", "bytes_read": 10**9, "bytes_written": 10**9, "source": "bench"},
    ]
    found = applications(source(darshan_job=jobs), top=2)
    rows = [
        (row["direction"], row["rank"], row["application"], row["bytes"], row["percent"], row["jobs"])
        for row in found.table.to_pylist()
    ]
    assert rows == [
        ("read", 1, "reader", 90, 90.0, 1),
        ("read", 2, "big", 10, 10.0, 2),
        ("write", 1, "big", 800, 80.0, 2),
        ("write", 2, NO_NAME, 200, 20.0, 1),
    ]
    assert "3 applications in 4 jobs" in found.caption


def test_applications_of_areas_are_numbered_alike_in_both_directions() -> None:
    jobs = [
        {"app": "secret_a", "bytes_read": 1, "bytes_written": 900},
        {"app": "secret_b", "bytes_read": 50},
        {"app": "secret_c", "bytes_read": 70},
        {"app": "other", "bytes_read": 5, "bytes_written": 6},
    ]
    found = applications(source(darshan_job=jobs), areas={"secret_[ab]": "Physics", "secret_c": "Climate"})
    names = [row["application"] for row in found.table.to_pylist()]
    assert names == ["Climate1", "Physics2", "App1", "Physics1", "Physics1", "App1"]
    assert "secret" not in str(found) and "other" not in str(found.table.to_pylist())


def test_a_caption_says_what_stands_for_names() -> None:
    jobs = [{"app": name, "bytes_written": 5} for name in ("vasp_std", "other", "third")]
    plain, hidden = (applications(source(darshan_job=jobs), anonymous=one).caption for one in (False, True))
    assert "Names" not in plain
    assert "Names are left out." in hidden and "science" not in hidden
    areas = applications(source(darshan_job=jobs), areas={"vasp*": "Materials"}).caption
    assert "Names stand for science areas, App for the 2 applications that no pattern matched." in areas
    assert "science areas." in applications(source(darshan_job=jobs), areas={"*": "All"}).caption


def test_labels_take_the_first_area_that_matches() -> None:
    assert labels(["vasp_std", "vasp_gam", "x"], {"vasp_gam": "A", "vasp*": "B"}) == {
        "vasp_std": "B1",
        "vasp_gam": "A1",
        "x": "App1",
    }


def test_sequential_ratio_is_equation_3_of_posix_requests() -> None:
    # Job 1: 3 of 4 reads, 1 of 6 writes; job 2: writes only, all; job 3 has STDIO alone; job 4 has no requests.
    files = [
        {"log_id": 1, "consec_reads": 3, "consec_writes": 0, "read_size_0_100": 4, "write_size_1k_10k": 2},
        {"log_id": 1, "consec_reads": 0, "consec_writes": 1, "write_size_1g_plus": 4},
        {"log_id": 2, "consec_reads": 0, "consec_writes": 5, "write_size_0_100": 5, "writes": 9},
        {"log_id": 3, "reads": 100, "writes": 100},
        {"log_id": 4, "consec_reads": 0, "consec_writes": 0},
    ]
    found = sequential(source(darshan_file=files, darshan_job=[{} for _ in range(4)]))
    column = {name: found.table[name].to_pylist() for name in ("both", "read", "write")}
    assert column["both"][0] == column["both"][50] == 40.0 and column["both"][51] == column["both"][100] == 100.0
    assert set(column["read"]) == {75.0}
    assert column["write"][50] == 16.6 and column["write"][51] == 100.0
    assert "2 jobs left out" in found.caption and "50 % make fewer than half" in found.caption


def test_sequential_counts_either_counter_and_refuses_others() -> None:
    files = [{"consec_reads": 1, "seq_reads": 3, "read_size_0_100": 4, "consec_writes": 0, "seq_writes": 0}]
    tables = source(darshan_file=files, darshan_job=[{}])
    assert sequential(tables).table["both"][0].as_py() == 25.0
    assert sequential(tables, counter="seq").table["both"][0].as_py() == 75.0
    with pytest.raises(AnalyticsError, match="consec, seq"):
        sequential(tables, counter="random")


def test_sequential_percentiles_are_those_of_numpy_within_the_step() -> None:
    tables = many(800)
    found = sequential(tables).table["both"].to_numpy()
    files = tables.tables["darshan_file"].to_pandas()
    bins = [
        name
        for name in files.columns
        if "_size_" in name and name.split("_")[0] in ("read", "write") and name != "stripe_size"
    ]
    per_log = files.groupby("log_id")[[*bins, "consec_reads", "consec_writes"]].sum()
    total = per_log[bins].sum(axis=1)
    ratio = (100 * (per_log["consec_reads"] + per_log["consec_writes"]) / total)[total > 0]
    expected = np.quantile(ratio, np.arange(101) / 100, method="inverted_cdf")
    assert np.all(found <= expected + 1e-9) and np.all(expected - found < 0.1 + 1e-9)


def test_read_ratio_has_bins_for_nothing_read_and_nothing_written() -> None:
    moved = [(0, 10), (0, 1), (10, 0), (1, 999), (1, 99), (99, 1), (999, 1), (50, 50), (0, 0), (None, 5), (5, None)]
    found = read_ratio(source(darshan_job=[{"bytes_read": r, "bytes_written": w} for r, w in moved]))
    assert found.table.num_rows == 102
    counts = {row["bin"]: row["jobs"] for row in found.table.to_pylist() if row["jobs"]}
    assert counts == {"0": 2, "0-1": 1, "1-2": 1, "50-51": 1, "99-100": 2, "100": 1}
    assert "3 jobs left out" in found.caption and sum(found.table["percent"].to_pylist()) == pytest.approx(100)


def test_read_ratio_of_huge_jobs_does_not_overflow() -> None:
    found = read_ratio(source(darshan_job=[{"bytes_read": 2**61, "bytes_written": 2**61}]))
    assert [row["bin"] for row in found.table.to_pylist() if row["jobs"]] == ["50-51"]


def _files(log: int, processes: int, ranks: list[int | None], **more: object) -> list[dict[str, object]]:
    return [
        {"log_id": log, "processes": processes, "ranks": one, "file": f"/d/{k}", "bytes_written": 1} | more
        for k, one in enumerate(ranks)
    ]


def test_sharing_is_equation_5_with_lists_of_shared_files_as_n_1() -> None:
    files = [
        *_files(1, 4, [4]),
        *_files(2, 4, [4, 4, 4]),  # one file; files shared by all one after another
        *_files(3, 4, [1, 1, 1, 1]),  # a file for each process
        *_files(4, 4, [2, 2]),
        *_files(5, 4, [1] * 5),
        *_files(6, 400, [9, 9, 9]),
        *_files(7, 4, [None, None]),
        *_files(8, 1, [1]),
        *_files(9, 4, [1, 1, 1]),
        {"log_id": 9, "processes": 4, "ranks": 1, "file": "<STDOUT>", "bytes_written": 5},
        *_files(10, 4, [4], bytes_written=0),
    ]
    jobs = [{"processes": 1 if k == 8 else 4} for k in range(1, 11)]
    found = sharing(source(darshan_file=files, darshan_job=jobs))
    counts = {(row["pattern"], row["ratio"]): row["jobs"] for row in found.table.to_pylist() if row["jobs"]}
    assert counts == {
        ("N-1", "1/P, or all files shared by all"): 2,
        ("N-M", "R < 0.01"): 1,
        ("N-M", "0.1 ≤ R < 1"): 3,
        ("N-N", "R = 1"): 1,
        ("N-M", "1 < R ≤ 10"): 1,
    }
    assert "1 job of one process left out" in found.caption
    assert "1 job left out that moved no bytes" in found.caption


def test_a_file_for_each_process_and_a_shared_input_is_told_beside_the_figure() -> None:
    files = [*_files(1, 4, [1, 1, 1, 1, 4]), *_files(2, 4, [1] * 4), *_files(3, 4, [1, 1, 1, 4]), *_files(4, 4, [4])]
    found = sharing(source(darshan_file=files, darshan_job=[{"processes": 4}] * 4))
    rows = {row["ratio"]: (row["jobs"], row["n_n_beside_shared"]) for row in found.table.to_pylist() if row["jobs"]}
    assert rows == {"1 < R ≤ 10": (1, 1), "R = 1": (2, 0), "1/P, or all files shared by all": (1, 0)}
    assert "Of N-M, 1 job has a file for each process beside files that all share" in found.caption


def test_middleware_by_class_of_processes() -> None:
    jobs = [
        {"processes": 1, "uses_posix": True},
        {"processes": 1024, "uses_stdio": True},
        {"processes": 1025, "uses_posix": True, "uses_mpiio": True},
        {"processes": 8193, "uses_mpiio": True, "uses_hdf5": True},
        {"processes": 8192},
        {"uses_posix": True},
    ]
    files = [{"log_id": 4, "mpiio_coll_writes": 7}, {"log_id": 4, "mpiio_coll_reads": 7}, {"log_id": 3}]
    found = middleware(source(darshan_job=jobs, darshan_file=files))
    counts = {
        (row["class"], row["interface"]): (row["jobs"], row["percent"], row["hdf5"])
        for row in found.table.to_pylist()
        if row["jobs"]
    }
    assert counts == {
        ("One", "POSIX"): (1, 100.0, 0),
        ("Small", "POSIX"): (1, 100.0, 0),
        ("Medium", "MPI-IO, independent"): (1, 50.0, 0),
        ("Medium", "none"): (1, 50.0, 0),
        ("Large", "MPI-IO, collective"): (1, 100.0, 1),
    }
    assert "HDF5 in 1 job," in found.caption and "1 job left out" in found.caption


@pytest.mark.parametrize("analysis", [applications, sequential, read_ratio, sharing, middleware])
def test_an_empty_store_gives_empty_results(analysis: object) -> None:
    assert callable(analysis)
    found = analysis(source())
    assert found.charts == [] and found.caption


def test_words_never_round_to_nothing_or_all() -> None:
    assert [share_words(value) for value in (0, 0.04, 9.96, 50, 99.96, 100)] == [
        "0.0 %",
        "< 0.1 %",
        "10 %",
        "50 %",
        "> 99.9 %",
        "100 %",
    ]
