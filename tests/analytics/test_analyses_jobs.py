"""The analyses over many jobs, worked by hand: Equations 3, 4, 5, applications, middleware."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mpiio_ext.analytics.analyses.applications import applications, labels
from mpiio_ext.analytics.analyses.counting import share_words
from mpiio_ext.analytics.analyses.middleware import middleware
from mpiio_ext.analytics.analyses.read_ratio import read_ratio
from mpiio_ext.analytics.analyses.result import Result
from mpiio_ext.analytics.analyses.sequential import sequential
from mpiio_ext.analytics.analyses.sharing import sharing
from mpiio_ext.analytics.errors import AnalyticsError
from support.analytics_jobs import many, source
from support.expected import Expected


def _files(log: int, processes: int, ranks: list[int | None], **more: object) -> list[dict[str, object]]:
    return [
        {"log_id": log, "processes": processes, "ranks": one, "file": f"/d/{k}", "bytes_written": 1} | more
        for k, one in enumerate(ranks)
    ]


RANKED: list[dict[str, object]] = [
    {"app": "big", "bytes_read": 10, "bytes_written": 500},
    {"app": "big", "bytes_read": None, "bytes_written": 300},
    {"app": "reader", "bytes_read": 90, "bytes_written": 0},
    {"app": None, "bytes_read": 0, "bytes_written": 200},
    {"app": "bench", "bytes_read": 10**9, "bytes_written": 10**9, "source": "bench"},
]
SECRET: list[dict[str, object]] = [
    {"app": "secret_a", "bytes_read": 1, "bytes_written": 900},
    {"app": "secret_b", "bytes_read": 50},
    {"app": "secret_c", "bytes_read": 70},
    {"app": "other", "bytes_read": 5, "bytes_written": 6},
]
#: Job 1: 3 of 4 reads, 1 of 6 writes; job 2: writes only, all; job 3 has STDIO alone; job 4 has no requests.
REQUESTS: list[dict[str, object]] = [
    {"log_id": 1, "consec_reads": 3, "consec_writes": 0, "read_size_0_100": 4, "write_size_1k_10k": 2},
    {"log_id": 1, "consec_reads": 0, "consec_writes": 1, "write_size_1g_plus": 4},
    {"log_id": 2, "consec_reads": 0, "consec_writes": 5, "write_size_0_100": 5, "writes": 9},
    {"log_id": 3, "reads": 100, "writes": 100},
    {"log_id": 4, "consec_reads": 0, "consec_writes": 0},
]
EITHER = {"consec_reads": 1, "seq_reads": 3, "read_size_0_100": 4, "consec_writes": 0, "seq_writes": 0}
MOVED = [(0, 10), (0, 1), (10, 0), (1, 999), (1, 99), (99, 1), (999, 1), (50, 50), (0, 0), (None, 5), (5, None)]
SHARED = [
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
BESIDE = [*_files(1, 4, [1, 1, 1, 1, 4]), *_files(2, 4, [1] * 4), *_files(3, 4, [1, 1, 1, 4]), *_files(4, 4, [4])]
CLASSES: list[dict[str, object]] = [
    {"processes": 1, "uses_posix": True},
    {"processes": 1024, "uses_stdio": True},
    {"processes": 1025, "uses_posix": True, "uses_mpiio": True},
    {"processes": 8193, "uses_mpiio": True, "uses_hdf5": True},
    {"processes": 8192},
    {"uses_posix": True},
]
CALLS = [{"log_id": 4, "mpiio_coll_writes": 7}, {"log_id": 4, "mpiio_coll_reads": 7}, {"log_id": 3}]
AREAS = {"secret_[ab]": "Physics", "secret_c": "Climate"}
#: Analyses of small stores, with their options.
ANALYSES: dict[str, Callable[[], Result]] = {
    "applications are ranked in both directions": lambda: applications(source(darshan_job=RANKED), top=2),
    "applications of areas are numbered alike": lambda: applications(source(darshan_job=SECRET), areas=AREAS),
    "sequential: Equation 3": lambda: sequential(source(darshan_file=REQUESTS, darshan_job=[{} for _ in range(4)])),
    "sequential: consecutive": lambda: sequential(source(darshan_file=[EITHER], darshan_job=[{}])),
    "sequential: seq": lambda: sequential(source(darshan_file=[EITHER], darshan_job=[{}]), counter="seq"),
    "read ratio": lambda: read_ratio(source(darshan_job=[{"bytes_read": r, "bytes_written": w} for r, w in MOVED])),
    "read ratio of huge jobs": lambda: read_ratio(source(darshan_job=[{"bytes_read": 2**61, "bytes_written": 2**61}])),
    # Equation 5, with lists of shared files as N-1
    "sharing: Equation 5": lambda: sharing(
        source(darshan_file=SHARED, darshan_job=[{"processes": 1 if k == 8 else 4} for k in range(1, 11)])
    ),
    "sharing beside a shared input": lambda: sharing(source(darshan_file=BESIDE, darshan_job=[{"processes": 4}] * 4)),
    "middleware by class of processes": lambda: middleware(source(darshan_job=CLASSES, darshan_file=CALLS)),
}


@pytest.mark.parametrize("name", ANALYSES)
def test_analyses(name: str, expected: Expected) -> None:
    """The caption, and the rows that have jobs; of percentiles those that differ from the ones before."""
    found = ANALYSES[name]()
    rows = [row for row in found.table.to_pylist() if row.get("jobs", 1)]
    values = [{**row, "percentile": None} for row in rows]
    shown = [row for at, row in enumerate(rows) if at == 0 or "percentile" not in row or values[at] != values[at - 1]]
    expected({"caption": found.caption, "rows": shown})
    if found.name == "applications" and "areas" in name:
        assert "secret" not in str(found)  # nor in parameters and charts


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


def test_sequential_refuses_other_counters() -> None:
    with pytest.raises(AnalyticsError, match="consec, seq"):
        sequential(source(darshan_file=[EITHER], darshan_job=[{}]), counter="random")


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
