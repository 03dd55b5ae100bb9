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
from support.analytics_jobs import source
from support.expected import Expected

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


def shown(found: Any) -> dict[str, Any]:
    """Return the caption and the rows of an analysis, and the rows that a table shows in place of these."""
    rows = {"rows": found.table.to_pylist()} | ({} if found.shown is None else {"shown": found.shown.to_pylist()})
    return {"caption": found.caption, **rows}


#: Options, of slow large jobs of applications: the median job stands for its application.
CASES: dict[str, dict[str, Any]] = {
    # Physics1.1 and Physics1.2 of Table II: the median job alone would hide one of the kinds, which the ranges show
    "default": {},
    "each job": {"each_job": True},
    "other bounds": {"processes": 999, "process_bytes": 1e6, "bandwidth": 20e9},
    # Tables I and II: of the jobs on all OSTs the slow ones, and the fast ones
    "on 8 OSTs": {"osts": 8, "each_job": True},
    "on 9 OSTs": {"osts": 9},
    "fast": {"from_bandwidth": 5e9, "bandwidth": float("inf"), "each_job": True},
    "between two bandwidths": {"from_bandwidth": 500e6, "bandwidth": 900e6},
}


@pytest.mark.parametrize("name", CASES)
def test_slow_large_jobs(name: str, expected: Expected) -> None:
    expected(shown(root_causes(_store(), **CASES[name])))


def test_jobs_without_a_layout_are_not_counted_as_uncrowded() -> None:
    store = _store()
    files = store.tables["darshan_file"].to_pylist()
    files[0] |= {"stripe_count": None, "osts": None}
    jobs = store.tables["darshan_job"].to_pylist()
    found = root_causes(source(darshan_job=jobs, darshan_file=files))
    assert "100 % of the 3 whose layout is known have more than 3 processes per OST." in found.caption


@pytest.mark.parametrize("options", [{}, {"time": "span"}], ids=["accessed", "span"])
def test_a_pause_between_two_files_is_no_slow_job_unless_the_span_is_asked_for(
    options: dict[str, Any], expected: Expected
) -> None:
    job, file = _job(1, "paused", seconds=10)
    later = {**file, "file_id": 2, "write_start": 2000.0, "write_end": 2010.0}
    paused = source(darshan_job=[{**job, "bytes_written": 80 * GB}], darshan_file=[file, later])
    expected(shown(root_causes(paused, **options)))


def test_an_anonymous_result_names_areas_and_no_jobs() -> None:
    found = root_causes(_store(), each_job=True, areas={"slow": "Physics"})
    text = json.dumps(found.as_json()) + repr(found.charts)
    assert "slow" not in text.replace("were slow", "").replace("Slow", "") and "10" + "6" not in text.split("rows")[1]
    assert set(found.table["application"].to_pylist()) == {"Physics1", "App1"}


def test_the_figure_has_a_line_a_job_and_ends_in_words(expected: Expected) -> None:
    """Of one job's nodes no ends are made up."""
    chart = root_causes(_store()).charts[0]
    assert all(len(line["values"]) == len(chart.data["axes"]) for line in chart.data["lines"])
    expected({"title": chart.title, "axes": chart.data["axes"], "lines": chart.data["lines"]})
    assert "slow (3)" in draw(chart)


def test_striping_counts_files_and_jobs_that_differ_from_the_default(expected: Expected) -> None:
    default = {"stripe_size": 1 << 20, "stripe_count": 1, "stripe_offset": 0, "components": 1, "mount": "/a"}
    files = [
        {"log_id": 1, **default},
        {"log_id": 1, **default, "stripe_count": 8},
        {"log_id": 2, **default},
        {"log_id": 3, **default, "stripe_size": 1 << 22},
        {"log_id": 4, "mount": "/home"},
        {"log_id": 5, **default, "stripe_count": 248},
    ]
    expected(shown(striping(source(darshan_file=files))))


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


def _of(method: str, seconds: float, low: float, high: float, count: int = 3) -> dict[str, Any]:
    """Return a run with the range of its repetitions."""
    bounds = {"bandwidth_low": 8e8 / high, "bandwidth_high": 8e8 / low}
    run = _run(method, seconds, exchange_s=seconds / 2, repetitions=count, **bounds)
    return {key: value for key, value in run.items() if key != "source"}


#: 505 against 502 ms: the ranges overlap. Those of a third method do not, and of one repetition none is known.
NEAR = [
    _of("even", 0.505, 0.49, 0.52),
    _of("auto", 0.502, 0.5, 0.51),
    _of("best", 0.4, 0.39, 0.45),
    _of("once", 0.5, 0.5, 0.5, 1),
]
KERNEL = {"kind": "kernel", "pattern": "flash", "interface": "mpiio", "operation": "write", "ranks": 4, "bytes": 8}
#: Phases of a kernel, each compared with itself.
PHASES = [
    {
        **KERNEL,
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


def _small() -> list[dict[str, Any]]:
    """Return runs of different amounts: the bench gives a slow library a smaller file."""
    rows = _runs().tables["runs"].to_pylist()
    return [{**row, "bytes": 1 if row["method"] == "even" else row["bytes"]} for row in rows]


@pytest.mark.parametrize(
    ("runs", "pair"),
    [
        ("three", ("even", "group_cyclic")),
        ("three", ("native", "even")),  # nothing is concluded from what one method does not count
        ("three", ("group_cyclic", "even")),
        ("three", None),
        ("near", ("even", "auto")),
        ("near", ("even", "best")),
        ("near", ("even", "once")),
        ("near", ("best", "even")),
        ("small", ("even", "group_cyclic")),
        ("phases", ("even", "group_cyclic")),
    ],
)
def test_why_a_method_was_slower(runs: str, pair: tuple[str, str] | None, expected: Expected) -> None:
    rows = {"near": NEAR, "phases": PHASES, "small": _small()}
    tables = source(runs=rows[runs]) if runs in rows else _runs()
    expected(shown(methods(tables, **(dict(zip(("slower", "faster"), pair, strict=True)) if pair else {}))))


def test_pairs_that_are_explained() -> None:
    assert {found.slower for found in explained(_runs())} == {"even"} and explained(source(runs=_small())) == []
    (found,) = explained(source(runs=PHASES))
    names = ("corners", "even", "group_cyclic")
    assert (found.phase, found.slower, found.faster, found.ratio, found.main) == (*names, 2.0, "opening")


def test_methods_that_were_not_run_are_named_with_those_that_were() -> None:
    with pytest.raises(AnalyticsError, match="even, group_cyclic, native"):
        methods(_runs(), slower="even", faster="transpose")
    with pytest.raises(AnalyticsError, match="name both"):
        methods(_runs(), slower="even")
    with pytest.raises(AnalyticsError, match="no runs of nosuch"):
        methods(_runs(), pattern="nosuch")
