"""Root causes of low bandwidth, and methods of the bench, worked by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mpiio_ext.analytics.analyses.layouts import striping
from mpiio_ext.analytics.analyses.methods import explained, methods
from mpiio_ext.analytics.analyses.root_causes import root_causes
from mpiio_ext.analytics.analyses.source import Tables
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.report.drawing import draw
from tests.support.analytics_jobs import source

GB = 10**9


def _job(
    log: int,
    app: str,
    *,
    seconds: float,
    processes: int = 2000,
    written: int = 40 * GB,
    ranks: int = 2000,
    stripes: int = 1,
    small: int = 0,
) -> tuple[dict[str, Any], dict[str, Any]]:
    job = {
        "log_id": log,
        "job_id": 100 + log,
        "app": app,
        "processes": processes,
        "bytes_written": written,
        "bytes_read": 0,
        "uses_mpiio": False,
        "partial": False,
    }
    file = {
        "log_id": log,
        "job_id": 100 + log,
        "file_id": log,
        "file": f"/d/{log}",
        "processes": processes,
        "bytes_written": written,
        "bytes_read": 0,
        "write_start": 1000.0,
        "write_end": 1000.0 + seconds,
        "ranks": ranks,
        "stripe_count": stripes,
        "osts": list(range(stripes)),
        "consec_writes": 10,
        "write_size_100m_1g": 40 - small,
        "write_size_1k_10k": small,
        **{
            f"write_size_{name}": 0
            for name in ("0_100", "100_1k", "10k_100k", "100k_1m", "1m_4m", "4m_10m", "10m_100m", "1g_plus")
        },
    }
    return job, file


def _store() -> Tables:
    rows = [
        _job(1, "slow", seconds=80, small=30),
        _job(2, "slow", seconds=100),
        _job(3, "slow", seconds=160),
        _job(4, "fast", seconds=4),
        _job(5, "few", seconds=100, processes=1000),
        _job(6, "other", seconds=50, stripes=8),
        _job(7, "light", seconds=100, written=19 * GB),
    ]
    return source(
        darshan_job=[job for job, _ in rows],
        darshan_file=[file for _, file in rows],
        slurm=[{"job_id": 102, "node_count": 64}],
    )


def test_slow_large_jobs_are_found_and_the_median_one_stands_for_its_application() -> None:
    found = root_causes(_store())
    rows = found.table.to_pylist()
    assert [(row["direction"], row["application"], row["jobs"]) for row in rows] == [
        ("write", "slow", 3),
        ("write", "other", 1),
    ]
    assert rows[0]["bandwidth"] == 400e6 and rows[0]["nodes"] == 64 and rows[0]["processes"] == 2000
    assert rows[0]["processes_per_ost"] == 2000 and rows[0]["osts"] == 1 and rows[0]["collective"] == 0
    assert rows[0]["small"] == 0 and rows[0]["non_consecutive"] == 0.75
    assert rows[1]["osts"] == 8 and rows[1]["processes_per_ost"] == 250 and rows[1]["nodes"] is None
    assert "Of 5 such jobs writing, 4 were slow, of 2 applications." in found.caption
    assert "Of 0 such jobs reading, 0 were slow." in found.caption


def test_two_kinds_of_jobs_of_an_application_are_seen_in_its_ranges() -> None:
    """Physics1.1 and Physics1.2 of Table II: the median job alone would hide one of them."""
    found = root_causes(_store())
    slow, other = found.table.to_pylist()
    assert (slow["small"], slow["small_least"], slow["small_greatest"]) == (0, 0, 0.75)
    assert (slow["bandwidth_least"], slow["bandwidth_greatest"]) == (250e6, 500e6)
    assert (slow["nodes_least"], slow["nodes_greatest"]) == (64, 64) and other["nodes_least"] is None
    assert (other["osts_least"], other["osts"], other["osts_greatest"]) == (8, 8, 8)
    assert found.shown is not None
    rows = found.shown.to_pylist()
    assert [(row["application"], row["of"], row["jobs"], row["bandwidth"], row["small"]) for row in rows] == [
        ("slow", "median job", 3, 400e6, 0),
        ("slow", "least", None, 250e6, 0),
        ("slow", "greatest", None, 500e6, 0.75),
        ("other", "only job", 1, 800e6, 0),
    ]
    each = root_causes(_store(), each_job=True)
    assert each.shown is None and "small_least" not in each.table.column_names


def test_jobs_without_a_layout_are_not_counted_as_uncrowded() -> None:
    assert "100 % of these have more than 3 processes per OST." in root_causes(_store()).caption
    store = _store()
    files = store.tables["darshan_file"].to_pylist()
    files[0] |= {"stripe_count": None, "osts": None}
    jobs = store.tables["darshan_job"].to_pylist()
    found = root_causes(source(darshan_job=jobs, darshan_file=files))
    assert "100 % of the 3 whose layout is known have more than 3 processes per OST." in found.caption


def test_each_job_has_a_row_with_its_own_factors() -> None:
    rows = root_causes(_store(), each_job=True).table.to_pylist()
    assert [(row["job_id"], row["small"]) for row in rows] == [(106, 0.0), (103, 0.0), (102, 0.0), (101, 0.75)]


def test_parameters_move_the_bounds() -> None:
    assert root_causes(_store(), processes=999, process_bytes=1e6, bandwidth=20e9).table["jobs"].to_pylist() == [
        3,
        1,
        1,
        1,
        1,
    ]


def test_jobs_on_many_osts_and_between_two_bandwidths() -> None:
    """Tables I and II: of the jobs on all OSTs the slow ones, and the fast ones."""
    store = _store()
    found = root_causes(store, osts=8, each_job=True)
    assert [row["job_id"] for row in found.table.to_pylist()] == [106]
    assert "on 8 OSTs or more" in found.caption and "Of 1 such job writing, 1 was slow" in found.caption
    fast = root_causes(store, from_bandwidth=5e9, bandwidth=float("inf"), each_job=True)
    assert [(row["job_id"], row["bandwidth"]) for row in fast.table.to_pylist()] == [(104, 1e10)]
    assert "at 5 GB/s or more of the time" in fast.caption and "1 was at this bandwidth" in fast.caption
    assert root_causes(store, from_bandwidth=500e6, bandwidth=900e6).table["jobs"].to_pylist() == [1, 1]
    assert root_causes(store, osts=9).table.num_rows == 0


def test_a_pause_between_two_files_is_no_slow_job_unless_the_span_is_asked_for() -> None:
    job, file = _job(1, "paused", seconds=10)
    later = {**file, "file_id": 2, "write_start": 2000.0, "write_end": 2010.0}
    paused = source(darshan_job=[{**job, "bytes_written": 80 * GB}], darshan_file=[file, later])
    found = root_causes(paused)
    assert found.table.num_rows == 0 and "of the time in which their files are accessed" in found.caption
    [row] = root_causes(paused, time="span").table.to_pylist()
    assert row["bandwidth"] == pytest.approx(80 * GB / 1010)


def test_an_anonymous_result_names_areas_and_no_jobs() -> None:
    found = root_causes(_store(), each_job=True, areas={"slow": "Physics"})
    text = json.dumps(found.as_json()) + repr(found.charts)
    assert "slow" not in text.replace("were slow", "").replace("Slow", "") and "10" + "6" not in text.split("rows")[1]
    assert set(found.table["application"].to_pylist()) == {"Physics1", "App1"}


def test_the_figure_has_a_line_a_job_and_ends_in_words() -> None:
    chart = root_causes(_store()).charts[0]
    assert [len(line["values"]) for line in chart.data["lines"]] == [len(chart.data["axes"])] * 4
    ends = {axis["name"].split("\n")[0]: (axis["low"], axis["high"]) for axis in chart.data["axes"]}
    assert (
        ends["small"] == ("0 %", "100 %")
        and ends["OSTs"] == ("1", "8")
        and ends["bandwidth"] == ("250 MB/s", "800 MB/s")
    )
    nodes = next(axis for axis in chart.data["axes"] if axis["name"] == "nodes")
    assert (nodes["low"], nodes["high"], nodes["only"]) == ("", "", "64")  # one job's alone: no ends are made up
    places = [line["values"][chart.data["axes"].index(nodes)] for line in chart.data["lines"]]
    assert sorted(places, key=str) == [0.5, None, None, None] and "A dotted line" in root_causes(_store()).caption
    assert all(0 <= value <= 1 for line in chart.data["lines"] for value in line["values"] if value is not None)
    assert "slow (3)" in draw(chart)


def test_striping_counts_files_and_jobs_that_differ_from_the_default() -> None:
    default = {"stripe_size": 1 << 20, "stripe_count": 1, "stripe_offset": 0, "components": 1, "mount": "/a"}
    files = [
        {"log_id": 1, **default},
        {"log_id": 1, **default, "stripe_count": 8},
        {"log_id": 2, **default},
        {"log_id": 3, **default, "stripe_size": 1 << 22},
        {"log_id": 4, "mount": "/home"},
        {"log_id": 5, **default, "stripe_count": 248},
    ]
    found = striping(source(darshan_file=files))
    rows = {row["stripes"]: (row["files"], row["customised"]) for row in found.table.to_pylist() if row["files"]}
    assert rows == {"1": (3, 1), "5–8": (1, 1), "> 128": (1, 1)}
    assert found.caption == (
        "Of 4 jobs with files on Lustre, 3 (75 %) have a file whose layout is not the default; of 5 files, 3 (60 %)."
    )


# ---- our own runs ----------------------------------------------------------------------------------------------------


def _run(method: str, seconds: float, **statistics: float) -> dict[str, Any]:
    return {
        "pattern": "interleaved",
        "interface": "mpiio",
        "operation": "write",
        "method": method,
        "ranks": 4,
        "bytes": 8 * 10**8,
        "seconds": seconds,
        "bandwidth": 8e8 / seconds,
        "source": "bench",
        "statistics": json.dumps(statistics),
    }


def _runs() -> Tables:
    return source(
        runs=[
            {key: value for key, value in row.items() if key != "source"}
            for row in (
                _run(
                    "even", 0.4, exchange_s=0.25, io_s=0.1, wait_s=0.02, rounds=64, requests=4096, request_bytes=2**28
                ),
                _run(
                    "group_cyclic",
                    0.2,
                    exchange_s=0.06,
                    io_s=0.09,
                    wait_s=0.02,
                    rounds=16,
                    requests=256,
                    request_bytes=2**28,
                ),
                _run("native", 0.8),
            )
        ]
    )


#: What is said of the numbers, behind the answer.
MEDIANS = "\nTimes are medians; of the extension's phases, those of the rank that spent longest in each."


def test_why_was_even_slower_than_group_cyclic() -> None:
    found = methods(_runs(), slower="even", faster="group_cyclic")
    assert found.caption == (
        "interleaved, write: even took 2.00× as long as group_cyclic (400 ms against 200 ms): exchange 250 ms against "
        "60 ms; rounds 64 against 16; requests to the file system 4,096 against 256; mean request 65,536 B against "
        f"1,048,576 B.{MEDIANS}"
    )
    rows = {row["quantity"]: row for row in found.table.to_pylist()}
    assert rows["exchange"]["share"] == pytest.approx(0.95) and rows["messages"]["ratio"] is None


def test_methods_that_differ_by_less_than_their_repetitions_are_not_explained() -> None:
    """505 against 502 ms: the ranges overlap. Those of a third method do not, and of one repetition none is known."""

    def of(method: str, seconds: float, low: float, high: float, count: int = 3) -> dict[str, Any]:
        return _run(
            method,
            seconds,
            exchange_s=seconds / 2,
            repetitions=count,
            bandwidth_low=8e8 / high,
            bandwidth_high=8e8 / low,
        )

    rows = (
        of("even", 0.505, 0.49, 0.52),
        of("auto", 0.502, 0.5, 0.51),
        of("best", 0.4, 0.39, 0.45),
        of("once", 0.5, 0.5, 0.5, 1),
    )
    runs = source(runs=[{key: value for key, value in row.items() if key != "source"} for row in rows])
    found = methods(runs, slower="even", faster="auto")
    assert found.caption == (
        "interleaved, write: even and auto: no difference beyond the spread of the repetitions "
        f"(1.54 GB/s to 1.63 GB/s against 1.57 GB/s to 1.6 GB/s).{MEDIANS}"
    )
    assert found.table["share"].null_count == found.table.num_rows
    assert "exchange" in methods(runs, slower="even", faster="best").caption
    assert "exchange" in methods(runs, slower="even", faster="once").caption
    turned = methods(runs, slower="best", faster="even")
    assert "was not slower" in turned.caption and turned.table["share"].null_count == turned.table.num_rows


def test_nothing_is_concluded_from_what_one_method_does_not_count() -> None:
    assert methods(_runs(), slower="native", faster="even").caption.endswith(
        f"no statistic that was kept of both differs with it.{MEDIANS}"
    )
    assert "was not slower" in methods(_runs(), slower="group_cyclic", faster="even").caption


def test_runs_of_different_amounts_are_not_compared() -> None:
    """The bench gives a slow library a smaller file."""
    rows = _runs().tables["runs"].to_pylist()
    small = [{**row, "bytes": 1 if row["method"] == "even" else row["bytes"]} for row in rows]
    one = source(runs=small)
    assert "no times to compare" in methods(one, slower="even", faster="group_cyclic").caption
    assert {found.slower for found in explained(_runs())} == {"even"}
    assert explained(one) == []


def test_phases_of_a_kernel_are_compared_each_with_itself() -> None:
    base = {"kind": "kernel", "pattern": "flash", "interface": "mpiio", "operation": "write", "ranks": 4, "bytes": 8}
    runs = [
        {
            **base,
            "phase": phase,
            "method": method,
            "seconds": seconds,
            "bandwidth": 8 / seconds,
            "statistics": json.dumps({"open_s": opening, "plan_s": 0.5}),
        }
        for phase, method, seconds, opening in (
            ("corners", "even", 4.0, 3.0),
            ("corners", "group_cyclic", 2.0, 1.0),
            ("plotfile", "even", 1.0, 0.1),
            ("plotfile", "group_cyclic", 1.0, 0.1),
        )
    ]
    (found,) = explained(source(runs=runs))
    assert (found.phase, found.slower, found.faster, found.ratio, found.main) == (
        "corners",
        "even",
        "group_cyclic",
        2.0,
        "opening",
    )
    caption = methods(source(runs=runs), slower="even", faster="group_cyclic").caption
    assert "flash, corners, write: even took 2.00×" in caption and "flash, plotfile, write: even was not" in caption


def test_all_methods_beside_each_other() -> None:
    rows = methods(_runs()).table.to_pylist()
    assert [(row["method"], row["of_best"]) for row in rows] == [("group_cyclic", 1.0), ("even", 0.5), ("native", 0.25)]
    assert rows[1]["request_mean_bytes"] == 65536 and rows[2]["rounds"] is None


def test_methods_that_were_not_run_are_named_with_those_that_were() -> None:
    with pytest.raises(AnalyticsError, match="even, group_cyclic, native"):
        methods(_runs(), slower="even", faster="transpose")
    with pytest.raises(AnalyticsError, match="name both"):
        methods(_runs(), slower="even")
    with pytest.raises(AnalyticsError, match="no runs of nosuch"):
        methods(_runs(), pattern="nosuch")
