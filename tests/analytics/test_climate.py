"""The climate and the regression watch: what is told of histories with known changes, and the command's exit status."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mpiio_ext.analytics.jobs import History, HistoryError, Jobs, histories, select
from mpiio_ext.analytics.jobs.bench import bench_table
from mpiio_ext.analytics.jobs.climate.charts import month_boxes, months_of
from mpiio_ext.analytics.jobs.climate.watch import (
    Options,
    Shift,
    contradicts,
    falls,
    largest_lasting,
    newest,
    stopped,
    too_few,
    watch,
)
from mpiio_ext.analytics.jobs.files import write
from mpiio_ext.analytics.jobs.statistics.moved import compared
from mpiio_ext.cli import main
from support import report_results as results
from support.expected import Expected
from support.html_page import Page
from support.job_histories import DAY, PERFORMANCE, START, edison, history, steps
from support.parts import require

require("ruptures")

UTC = datetime.timezone.utc


def _fallen(after: int = 20, *, level: float = 60.0, outlier: int | None = None) -> Jobs:
    """Return 100 nights at 100 MiB/s and some at another level, at which the OSS load has doubled, too."""
    values, load = steps([(100, 100.0), (after, level)]), steps([(100, 10.0), (after, 20.0)], seed=2)
    if outlier is not None:
        values[outlier] = 5.0
    return history(values, {"fs_ave_oss_cpu": load, "fs_ave_mds_cpu": steps([(100 + after, 3.0)], seed=3)})


def _histories(*tables: Jobs) -> list[History]:
    return [one for table in tables for one in histories(select(table)[0])]


# ---- the watch -------------------------------------------------------------------------------------------------------


def _drifting() -> Jobs:
    fullness = 30 + 0.4 * np.arange(120) + steps([(120, 1.0)], seed=4)
    return _fallen().joined(
        {
            "fshealth_ost_avg_full_pct": fullness,
            "fs_ave_mds_cpu": steps([(100, 9.0), (20, 3.0)], seed=6),
            "jobsdb_concurrent_nodes": steps([(100, 50.0), (20, 90.0)], seed=7),
        }
    )


def test_a_metric_that_drifts_differs_before_and_after() -> None:
    table = _drifting()
    (drift,) = [
        one
        for one in compared(table.take(np.arange(80, 100)), table.take(np.arange(100, 120)))
        if one.metric == "fshealth_ost_avg_full_pct"
    ]
    assert drift.effect == 1.0 and drift.p < 1e-6  # a comparison alone names it


def _kind(number: int, fall: int | None, system: str = "scratch1") -> Jobs:
    levels = [(100, 100.0)] if fall is None else [(fall, 100.0), (100 - fall, 70.0)]
    return history(steps(levels, seed=number), darshan_app=f"/bin/app{number}", _file_system=system)


def _kinds() -> list[Jobs]:
    return [_kind(1, 75), _kind(2, 76), _kind(3, 88), _kind(4, None), _kind(5, 80, "b")]


def _quiet(count: int) -> list[Jobs]:
    return [history(steps([(60, 100.0)], seed=seed), _file_system=f"fs{seed}") for seed in range(count)]


def _slow_jobs() -> Jobs:
    values = steps([(100, 100.0)])
    values[[50, 99]] = 10.0
    return history(values)


def _weak() -> Jobs:
    return history(steps([(40, 100.0), (20, 97.0)], seed=16))


def _without_some() -> Jobs:
    values = _fallen().numbers(PERFORMANCE).copy()
    values[10:20] = np.nan
    return _fallen().joined({PERFORMANCE: values})


#: Tables of jobs, and how they are watched.
WATCHED: dict[str, tuple[Callable[[], list[Jobs]], Options]] = {
    "a fall": (lambda: [_fallen()], Options()),
    "a rise": (lambda: [_fallen(level=150.0)], Options()),
    "a recovery": (lambda: [history(steps([(60, 100.0), (30, 60.0), (20, 100.0)]))], Options()),
    "old news": (lambda: [_fallen(60)], Options()),
    "old news, of all days": (lambda: [_fallen(60)], Options(within_days=None)),
    "old news, of 61 days": (lambda: [_fallen(60)], Options(within_days=61)),
    "metrics that drift and contradict": (lambda: [_drifting()], Options()),
    "slow jobs are outliers": (lambda: [_slow_jobs()], Options()),
    "a fast job is an outlier": (lambda: [history(np.r_[steps([(99, 100.0)]), 200.0])], Options()),
    "small is good": (lambda: [_fallen()], Options(target="fs_ave_oss_cpu", metrics=[PERFORMANCE])),
    "jobs without the value": (lambda: [_without_some()], Options()),
    "a weak change": (lambda: [_weak()], Options(step=0.01)),
    "a weak change in 21 histories is chance": (lambda: [_weak(), *_quiet(20)], Options(step=0.01)),
    # 999 orders know no p-value below 0.001, which 41 histories make 0.04.
    "a real change in 41 histories": (lambda: [_fallen(), *_quiet(40)], Options()),
    "falls of several histories": (_kinds, Options()),
}


def _day(time: float) -> float:
    return (time - START) / DAY


def _change(shift: Shift) -> dict[str, Any]:
    """Return a change of level, with the metrics that changed with it and the days of their own changes."""
    moved = [f"{one.metric}{' contradicts' if contradicts(one, worse=shift.worse) else ''}" for one in shift.moved]
    p = f"{shift.change.p:.1g}, corrected {shift.p_corrected:.1g}"
    own = {name: _day(time) for name, time in shift.own.items()}
    ratio = f"{shift.change.ratio:.3f}, {'worse' if shift.worse else 'better'}"
    return {"day": _day(shift.time), "job": shift.job, "ratio": ratio, "p": p, "moved": ", ".join(moved), "own": own}


@pytest.mark.parametrize("name", WATCHED)
def test_what_the_watch_finds(name: str, expected: Expected) -> None:
    tables, options = WATCHED[name]
    every = watch(_histories(*tables()), options)
    assert all(one.regression in (None, one.shifts[-1]) for one in every if one.shifts)
    found = [
        {
            "history": f"{one.motif} on {one.system}, {one.jobs} jobs, level {one.level:.4g}",
            "regression": one.regression is not None,
            "changes": [_change(shift) for shift in one.shifts],
            "outliers": [{**dataclasses.asdict(each), "time": _day(each.time)} for each in one.outliers],
        }
        for one in every
        if one.shifts or len(every) == 1
    ]
    together = [
        {**dataclasses.asdict(fall), **{key: _day(getattr(fall, key)) for key in ("first", "middle", "last")}}
        for fall in falls(every)
    ]
    expected({"histories": len(every), "found": found, "falls": together})


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        ([[100.0, 10.0]], (0, 0)),
        ([[100.0, 60.0], [100.0, 10.0]], (1, 0)),
        ([[100.0, 10.0, 95.0], [100.0, 60.0]], (1, 0)),
        ([[100.0, 10.0, 20.0, 12.0], [100.0, 60.0]], (0, 0)),
        ([[100.0, 500.0], [100.0, 60.0]], (1, 0)),
        ([[100.0, 150.0], [100.0, 300.0]], (1, 0)),
        ([[100.0, 100.0]], None),
    ],
    ids=["one", "the larger", "undone", "undone in part", "a fall before a rise", "no fall: the larger rise", "none"],
)
def test_the_largest_change_that_has_lasted(levels: list[list[float]], found: tuple[int, int] | None) -> None:
    """However long ago: 60 jobs on each level."""
    every = watch(_histories(*(history(steps([(60, level) for level in each])) for each in levels)))
    first = largest_lasting(every, PERFORMANCE)
    assert (first is None) == (found is None)
    if first is not None and found is not None:
        assert first == (every[found[0]], every[found[0]].shifts[found[1]])


def test_the_page_names_an_old_lasting_fall_first(tmp_path: Path) -> None:
    """One history is at a tenth since long ago; another one has fallen by 40 % of late."""
    old = history(steps([(40, 100.0), (80, 10.0)], seed=7), darshan_app="/bin/hacc_io")
    write(Jobs.stacked([_fallen(), old], "both"), tmp_path / "t.parquet")
    assert run(tmp_path / "t.parquet", "-o", tmp_path / "t.html").exit_code == 1
    text = Page((tmp_path / "t.html").read_text()).text
    first = text.index("hacc")
    assert "-90 %" in text[first : text.index("Of the others 1 history has fallen within the last 30 days, first ")]


# ---- what the watch cannot see ---------------------------------------------------------------------------------------


def _gone() -> Jobs:
    return history(steps([(80, 50.0)]), _file_system="scratch9")


def test_a_history_that_stopped_while_others_go_on_is_named() -> None:
    gone = _gone()
    every = _histories(_fallen(), gone)
    assert [(one.name, time) for one, time in stopped(every)] == [("ior_fpp_write on scratch9", START + 79 * DAY)]
    assert newest(every) == START + 119 * DAY
    assert not stopped(_histories(_fallen(), history(steps([(113, 50.0)]), _file_system="scratch9")))
    assert not stopped(_histories(_fallen(), history([1.0], _file_system="scratch9")))


def test_histories_with_too_few_jobs_for_two_levels_are_counted() -> None:
    every = _histories(_fallen(), history([1.0] * 13, _file_system="b"), history([1.0] * 14, _file_system="c"))
    assert too_few(every, watch(every), Options()) == 1
    assert too_few(every, watch(every, Options(least=8)), Options(least=8)) == 2


def test_stale_is_exit_status_1_counted_from_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(history(steps([(60, 100.0)])), tmp_path / "t.csv")  # until 2020-02-29
    monkeypatch.setattr("time.time", lambda: START + 62 * DAY)
    old = run(tmp_path / "t.csv", "--stale", "2.5d")
    assert old.exit_code == 1 and "began 3 days ago, and --stale is 2.5d" in old.stderr
    fresh = run(tmp_path / "t.csv", "--stale", "3.5d")
    assert fresh.exit_code == 0 and not fresh.stderr
    assert run(tmp_path / "t.csv").exit_code == 0


# ---- months ----------------------------------------------------------------------------------------------------------


def test_months_are_those_of_a_time_zone_and_hold_their_jobs() -> None:
    (one,) = _histories(history(np.arange(1.0, 92.0)))  # 2020-01-01 to 2020-03-31 in UTC
    boxes = month_boxes(one, PERFORMANCE, UTC)
    assert [(month, box.count) for month, box in boxes.items()] == [((2020, 1), 31), ((2020, 2), 29), ((2020, 3), 31)]
    assert boxes[2020, 1].median == 16.0 and boxes[2020, 2].low == np.percentile(np.arange(32, 61), 5)
    assert months_of([one], UTC) == [(2020, 1), (2020, 2), (2020, 3)]
    west = datetime.timezone(datetime.timedelta(hours=-8))
    assert months_of([one], west)[0] == (2019, 12)
    assert months_of([], UTC) == []


# ---- results of the bench --------------------------------------------------------------------------------------------


def _night(folder: Path, number: int, bandwidth: float, io_s: float) -> None:
    started = datetime.datetime.fromtimestamp(START + number * DAY, UTC).isoformat()
    place = folder / "tokio-abc" / started[:10] / "02-00-00"
    place.mkdir(parents=True)
    runs = [
        results.run("auto", "write", repetition, bandwidth * (1 + repetition / 1000), io_s=io_s)
        for repetition in range(3)
    ]
    document = results.document(runs)
    document["environment"] = {**document["environment"], "started": started, "file_system_mount": "/scratch"}
    (place / "results.json").write_text(json.dumps(document))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return an archive of 40 nights, of which the last 12 were slow in the file system."""
    speeds = steps([(28, 1000.0), (12, 600.0)])
    for number, speed in enumerate(speeds):
        _night(tmp_path / "archive", number, float(speed), 0.002 if number < 28 else 0.02 + number / 1e4)
    return tmp_path / "archive"


def test_results_of_the_bench_are_rows_in_the_published_vocabulary(archive: Path) -> None:
    table, left_out, _ = bench_table([archive])
    assert len(table) == 40 and left_out == []
    assert set(table.texts("_benchmark_id").tolist()) == {"interleaved_512_mpiio_auto_write_4x2MB"}
    assert set(table.texts("_file_system").tolist()) == {"/scratch"}
    assert table.numbers("_datetime_start").tolist() == [START + number * DAY for number in range(40)]
    first = steps([(28, 1000.0), (12, 600.0)])[0] * 1.001  # the median of three repetitions
    assert table.numbers(PERFORMANCE)[0] == pytest.approx(first * 1e6 / 2**20)
    assert table.numbers("bench_io_s")[0] == 0.002 and table.numbers("bench_repetitions")[0] == 3
    assert table.numbers("darshan_nprocs")[0] == 4
    assert table.texts("_jobid")[0] == "2020-01-01T00:00:00+00:00"


def test_other_ranks_or_volumes_are_another_history(tmp_path: Path) -> None:
    names = set()
    for number, more in enumerate(({}, {"ranks": 8}, {"data_bytes": 16_000_000})):
        path = tmp_path / str(number) / "results.json"
        path.parent.mkdir()
        path.write_text(json.dumps(results.document([results.run(**more)])))  # type: ignore[arg-type]
        names |= set(bench_table([path])[0].texts("_benchmark_id").tolist())
    assert len(names) == 3


@pytest.mark.parametrize(
    ("more", "motif"),
    [
        ({"data_bytes": 4 << 22}, "interleaved_512_mpiio_auto_write_4x4MiB"),
        ({"data_bytes": 4 * 1536}, "interleaved_512_mpiio_auto_write_4x1.54kB"),
        ({"data_bytes": 4 << 40}, "interleaved_512_mpiio_auto_write_4x1TiB"),
        ({"variant": "ior_shared-s1-b4194304-t65536-C"}, "ior_shared-s1-b4MiB-t64KiB-C_mpiio_auto_write_4x2MB"),
        ({"variant": "hacc-3974-50328"}, "hacc-3974-50328_mpiio_auto_write_4x2MB"),
        ({"phase": "write"}, "interleaved_512_mpiio_auto_write_4x2MB"),
        ({"phase": "restart"}, "interleaved_512_restart_mpiio_auto_write_4x2MB"),
    ],
)
def test_motifs_of_the_bench_are_short(tmp_path: Path, more: dict[str, Any], motif: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results.document([results.run(**more)])))
    assert set(bench_table([path])[0].texts("_benchmark_id").tolist()) == {motif}


def test_a_night_that_cannot_be_read_is_named_and_the_others_count(archive: Path) -> None:
    broken = archive / "tokio-abc" / "2020-01-05" / "02-00-00" / "results.json"
    broken.write_text(broken.read_text()[:200])
    (archive / "compare").mkdir()
    (archive / "compare" / "results.json").write_text(json.dumps(results.COMPARE))
    table, left_out, _ = bench_table([archive])
    assert len(table) == 39 and len(left_out) == 2
    assert any(str(broken) in line for line in left_out) and any("comparison of peers" in line for line in left_out)
    with pytest.raises(HistoryError, match="no results of the bench"):
        bench_table([archive / "compare"])
    (archive / "empty").mkdir()
    with pytest.raises(HistoryError, match=r"there is no results\.json"):
        bench_table([archive / "empty"])


# ---- the command -----------------------------------------------------------------------------------------------------


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["analyze", "climate", *map(str, arguments)])


def test_the_nightly_suite_is_watched_and_a_fall_is_exit_status_1(
    archive: Path, tmp_path: Path, expected: Expected
) -> None:
    store = tmp_path / "store.parquet"
    done = run(archive, "--save", store)
    expected({"status": done.exit_code, "text": done.stdout})
    again = run(store)
    assert again.exit_code == 1 and again.stdout == done.stdout
    assert run(archive, "--within", "5d").exit_code == 0


def test_exit_status_0_without_a_regression_and_2_for_what_cannot_be_used(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    write(history(steps([(60, 100.0)])), table)
    broken, empty = tmp_path / "broken.csv", tmp_path / "empty"
    broken.write_text("no table")
    empty.mkdir()
    for arguments, words in (
        ((broken,), "no column _jobid"),
        ((table, "--motif", "x"), "no row counts"),
        ((table, "--watch", "x"), "no column x"),
        ((table, "-o", "x.svg"), ".html"),
        ((table, "--time-zone", "Mars", "--since", "2020-01-01"), "no time zone"),
        ((empty,), "no results.json"),
        ((table, "--save", "x.doc"), "x.doc: name"),
    ):
        failed = run(*arguments)
        assert failed.exit_code == 2 and words in failed.stderr, (arguments, failed.output)
    assert run(table, "--short", "60d").exit_code == 2
    assert run(tmp_path / "none.csv").exit_code == 2


@pytest.mark.parametrize("start", [1577836800e3, 1e15, -1e10, 18262.0, 4102444800.0, float("inf")])
@pytest.mark.parametrize("column", ["_datetime_start", "darshan_start_time"])
def test_a_start_that_is_no_time_of_a_job_is_an_error_that_names_it(tmp_path: Path, column: str, start: float) -> None:
    table = history([1.0, 2.0])
    write(table.joined({column: np.array([START, start])}), tmp_path / "t.csv")
    done = run(tmp_path / "t.csv")
    assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.output
    assert f"t.csv: column {column} holds " in done.stderr and "in row 2" in done.stderr
    done = CliRunner().invoke(main, ["analyze", "umami", "--history", str(tmp_path / "t.csv")])
    assert done.exit_code == 2 and f"column {column} holds " in done.stderr


def _outliers() -> Jobs:
    values = steps([(100, 100.0)])
    values[[50, 98, 99]] = 10.0, 20.0, 300.0
    return history(values)


def _old_fall() -> Jobs:
    """Return a history that fell long ago, and a quiet one."""
    return Jobs.stacked([_fallen(60), history(steps([(160, 9.0)]), _file_system="quiet")], "both")


#: Tables, and the options with which the command judges them.
TEXTS: dict[str, tuple[Callable[[], Jobs], list[str]]] = {
    "no change": (lambda: history(steps([(60, 100.0)])), []),
    "slow jobs of the last days": (_outliers, []),
    "slow jobs of all days": (_outliers, ["--within", "0"]),
    "an old fall": (_old_fall, []),
    "an old fall of all days": (_old_fall, ["--within", "0"]),
    "a metric that contradicts": (_drifting, []),
    "falls of several histories": (lambda: Jobs.stacked(_kinds(), "all"), []),
    "a history that stopped": (lambda: Jobs.stacked([_fallen(), _gone()], "both"), []),
    "too few jobs": (lambda: history([1.0]), []),
    "jobs of no history": (lambda: history([1.0] * 3, {"_file_system": ["a", "", ""]}), []),
    "jobs without performance": (lambda: history([1.0, np.nan, 2.0, np.nan]), []),
    "jobs before a date": (lambda: history([1.0, np.nan, 2.0, np.nan]), ["--since", "2020-01-02"]),
    "all rows count": (lambda: history([1.0, 2.0]), []),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, tmp_path: Path, expected: Expected) -> None:
    table, options = TEXTS[name]
    write(table(), tmp_path / "t.csv")
    done = run(tmp_path / "t.csv", *options)
    expected({"status": done.exit_code, "text": done.stdout, "errors": done.stderr})


def _refused(name: str) -> Any:
    raise AssertionError(name)


@pytest.mark.parametrize("name", ["a fall", "falls of several histories", "a history that stopped"])
def test_json_holds_no_nan(name: str, tmp_path: Path, expected: Expected) -> None:
    """It has the falls, and what has stopped; with one metric alone each change is compared with this one."""
    table, options = TEXTS.get(name, (_fallen, ["--metric", "fs_ave_oss_cpu"]))
    write(table(), tmp_path / "t.parquet")
    found = json.loads(run(tmp_path / "t.parquet", "--json", *options).stdout, parse_constant=_refused)
    moved = [one for each in found["histories"] for change in each["changes"] for one in change["moved"]]
    told = {key: found[key] for key in ("rows", "regressions", "falls", "stopped", "too_few_jobs")}
    told["since"] = [one["regression_since"] for one in found["histories"]]
    told["metrics"] = {one["metric"] for one in moved} | {one["metric"] for one in found["correlations"]}
    expected({**told, "regimes": [one["jobs"] for one in found["regimes"]]})


def test_what_nobody_expects_is_no_regression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(history([1.0, 2.0]), tmp_path / "t.csv")
    for error, status in ((ZeroDivisionError("a defect"), 3), (MemoryError(), 3), (KeyboardInterrupt(), 130)):

        def broken(*_: Any, raised: BaseException = error, **__: Any) -> None:
            raise raised

        monkeypatch.setattr("mpiio_ext.analytics.jobs.climate.study.study", broken)
        done = run(tmp_path / "t.csv")
        assert done.exit_code == status, done.output
        assert type(error).__name__ in done.stderr or status == 130


def test_several_tables_are_one(tmp_path: Path, archive: Path) -> None:
    write(_fallen(), tmp_path / "one.parquet")
    write(history(steps([(50, 9.0)]), _file_system="scratch9"), tmp_path / "two.sqlite")
    done = run(tmp_path / "one.parquet", tmp_path / "two.sqlite", archive, "--json", "--within", "0")
    found = json.loads(done.stdout)
    assert done.exit_code == 1 and found["rows"] == 120 + 50 + 40
    assert {one["file_system"] for one in found["histories"]} == {"scratch1", "scratch9", "/scratch"}


def test_a_run_that_several_tables_have_counts_once(tmp_path: Path, archive: Path, expected: Expected) -> None:
    year, more = _fallen(), _fallen().take(np.arange(90, 120))
    write(year, tmp_path / "year.parquet")
    write(more.joined({PERFORMANCE: np.full(30, 7.0)}), tmp_path / "more.csv")
    expected(run(tmp_path / "year.parquet", tmp_path / "year.parquet").stdout)
    found = json.loads(run(tmp_path / "year.parquet", tmp_path / "more.csv", "--json", "--within", "0").stdout)
    assert found["rows"] == 120 and found["filters"][0]["dropped"] == 30
    assert found["histories"][0]["changes"][-1]["after"] == 7.0  # of the last table
    again = run(archive, archive)
    assert "40 jobs" in again.stdout and again.stderr.count(": is read already") == 40
    run(archive, "--save", tmp_path / "saved.parquet")
    assert "40 of 80 rows left out" in run(tmp_path / "saved.parquet", archive).stdout


def test_runs_of_one_job_that_began_together_are_told_apart_by_their_logs() -> None:
    from mpiio_ext.analytics.jobs.merging import stack

    def one(log: str | None, job: int = 1) -> Jobs:
        return history([1.0], {"_jobid": [job], "_log": [log]})

    for tables, left in (
        ([one("a"), one("a")], 1),
        ([one("a"), one("b")], 0),
        ([one("a"), one(None)], 1),
        ([one(None), one("a")], 1),
        ([one("a"), one("a", 2)], 0),
    ):
        assert stack(tables, "both")[1] == left
    alone = Jobs.stacked([one("a"), one("a")], "one table")
    assert len(stack([alone], "x")[0]) == 2 and len(stack([alone, one("b")], "x")[0]) == 3
    unknown = one("a").joined({"_datetime_start": np.array([np.nan])})
    assert stack([unknown, unknown], "both")[1] == 0


def test_jobs_of_no_history_are_told(tmp_path: Path) -> None:
    write(history([1.0] * 3, {"_file_system": ["a", "", ""]}), tmp_path / "t.csv")
    assert json.loads(run(tmp_path / "t.csv", "--json").stdout)["rows_of_no_history"] == 2
    write(history([1.0] * 3, {"_file_system": [""] * 3}), tmp_path / "t.csv")
    assert run(tmp_path / "t.csv", "-o", tmp_path / "t.html").exit_code == 0
    assert "Performance, file system not known by month" in (tmp_path / "t.html").read_text()


def test_the_page_is_whole_and_follows_light_and_dark(tmp_path: Path) -> None:
    table = tmp_path / "table.parquet"
    other = history(steps([(90, 50.0)], seed=5), _file_system='<b>&"', darshan_app="/bin/hacc_io")
    write(Jobs.stacked([_fallen(outlier=50), other], "both"), table)
    target = tmp_path / "climate.html"
    done = run(table, "-o", target)
    assert done.exit_code == 1, done.output
    page = Page(target.read_text())
    assert not page.problems
    assert page.elements["figure"] == 5  # months and regimes of two file systems, and correlations
    assert "since 2020-04-10" in page.text and "OSS CPU load, mean: " in page.text and '<b>&"' in page.text
    assert "@media screen and (prefers-color-scheme: dark)" in page.raw
    for title in (
        "What changed",
        "Climate",
        "Coverage and contention",
        "Correlation with performance",
        "Variation explained",
        "Rows that count",
    ):
        assert title in page.text


def test_how_many_coverage_factors_are_no_shares_is_told(tmp_path: Path) -> None:
    opens = {"darshan_tot_opens_posix": [5.0, 5.0, 90.0], "fs_tot_open_ops": [10.0] * 3}
    write(history([1.0] * 3, opens), tmp_path / "t.parquet")
    found = json.loads(run(tmp_path / "t.parquet", "--json", "-o", tmp_path / "t.html").stdout)
    assert found["coverage_beyond_limit"] == {"coverage_factor_opens": 1}
    assert found["coverage"][0]["contention_opens"]["count"] == 2
    page = Page((tmp_path / "t.html").read_text())
    assert "Beyond 1.2 a factor is not used" in page.text and "opens (1)." in page.text


def test_the_page_has_no_columns_without_values_and_no_negative_zeros(tmp_path: Path) -> None:
    write(history([1.0, 2.0], {"contention_bw": [-1e-9, -1e-9]}), tmp_path / "t.parquet")
    run(tmp_path / "t.parquet", "-o", tmp_path / "t.html")
    page = Page((tmp_path / "t.html").read_text())
    assert "Bandwidth contention" in page.text and "0.000 (0.000 to 0.000)" in page.text and "-0.0" not in page.text
    for absent in ("Operations contention", "Contention, opens", "Coverage factor, bytes"):
        assert absent not in page.text


@pytest.mark.slow
def test_the_published_year_as_a_page(tmp_path: Path) -> None:
    target = tmp_path / "climate.html"
    done = run(edison(), "--published", "-o", target)
    assert done.exit_code in (0, 1), done.output
    page = Page(target.read_text())
    assert not page.problems and page.elements["figure"] == 7
    assert "2,230" in page.text and "2,486" in page.text and "2,503" in page.text
    assert target.stat().st_size <= 1_000_000
