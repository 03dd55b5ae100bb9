"""The published year of Edison's summaries: rows kept; metrics equal those computed from raw columns otherwise."""

from __future__ import annotations

import csv
import datetime
import gzip
import itertools
import math
import posixpath
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpiio_ext.analytics.jobs import Jobs, published, read, select
from mpiio_ext.analytics.jobs.files import write
from mpiio_ext.analytics.jobs.metrics import box
from mpiio_ext.analytics.jobs.statistics.correlation import NORMALISED, correlation_table
from support.job_histories import edison

KEPT = {"scratch1": 2230, "scratch2": 2486, "scratch3": 2503}


@pytest.fixture(scope="module")
def kept() -> Jobs:
    return published(read(edison()))[0]


@pytest.fixture(scope="module")
def raw() -> list[dict[str, str]]:
    """Return the rows that the published filters keep, read by the standard library alone."""
    with gzip.open(edison(), "rt", newline="") as stream:
        names = next(csv.reader([stream.readline()]))
        rows = [dict(zip(names, row[1:], strict=True)) for row in csv.reader(stream)]  # row[0]: pandas' row number
    zone = zoneinfo.ZoneInfo("America/Los_Angeles")
    begin, end = (datetime.datetime(*day, tzinfo=zone).timestamp() for day in ((2017, 2, 14), (2018, 2, 15)))
    return [
        row
        for row in rows
        if all(row.values())
        and begin <= float(row["_datetime_start"]) < end
        and float(row["darshan_total_gibs_posix"]) > 1
        and _motif(row) != "hacc_io_write_shared_write"
    ]


def _motif(row: dict[str, str]) -> str:
    written, read_bytes = (int(row[f"darshan_biggest_{side}_api_bytes"]) for side in ("write", "read"))
    side = "write" if written > read_bytes else "read"
    files = int(row[f"darshan_biggest_{side}_api_files"])
    own = files > 0 and (files % int(row["darshan_nprocs"])) / files < 0.05
    return f"{posixpath.basename(row['darshan_app'])}_{'fpp' if own else 'shared'}_{side}"


def _key(row: dict[str, str]) -> tuple[int, float, str]:
    return int(row["_jobid"]), float(row["darshan_start_time"]), _motif(row)


def _aligned(kept: Jobs, raw: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the raw rows in the order of the table."""
    found = {_key(row): row for row in raw}
    assert len(found) == len(raw)
    keys = zip(
        kept.texts("_jobid").tolist(),
        kept.numbers("darshan_start_time").tolist(),
        kept.texts("_benchmark_id").tolist(),
        strict=True,
    )
    return [found[int(job), start, motif] for job, start, motif in keys]


def test_the_published_filters_keep_the_published_numbers_of_rows(kept: Jobs) -> None:
    systems = kept.texts("_file_system")
    assert {name: int((systems == name).sum()) for name in KEPT} == KEPT
    assert len(kept) == sum(KEPT.values()) == 7219


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_saved_table_gives_the_same_rows_and_values(tmp_path: Path, kept: Jobs, form: str) -> None:
    path = tmp_path / f"year.{form}"
    write(select(read(edison()))[0], path)
    again = published(read(path))[0]
    systems = again.texts("_file_system")
    assert {name: int((systems == name).sum()) for name in KEPT} == KEPT
    for name in (NORMALISED, "coverage_factor_bw", "contention_bw"):
        np.testing.assert_allclose(again.numbers(name), kept.numbers(name), rtol=1e-12, equal_nan=True)


def test_a_saved_table_and_a_newer_one_without_derived_columns_are_one_year(tmp_path: Path, kept: Jobs) -> None:
    whole = read(edison())
    late = whole.times() >= np.median(whole.times())
    write(select(whole.take(~late))[0], tmp_path / "old.parquet")
    both = Jobs.stacked([read(tmp_path / "old.parquet"), whole.take(late)], "both")
    again = published(both)[0]
    assert len(again) == len(kept)
    for name in (NORMALISED, "coverage_factor_bw", "contention_bw", "coverage_factor_opens", "fs_tot_bytes"):
        np.testing.assert_allclose(again.numbers(name), kept.numbers(name), rtol=1e-12, equal_nan=True)
    assert again.texts("_benchmark_id").tolist() == kept.texts("_benchmark_id").tolist()


def test_the_filters_say_what_each_of_them_left_out() -> None:
    table = read(edison())
    _, steps = published(table)
    assert len(table) == 7500
    assert steps[0].name == "no column missing" and steps[0].left == 7500 - steps[0].dropped == 7281
    assert all(before.left - after.dropped == after.left for before, after in itertools.pairwise(steps))
    assert steps[-1].left == 7219


def test_rows_and_motifs_are_those_of_an_independent_reading(kept: Jobs, raw: list[dict[str, str]]) -> None:
    assert len(raw) == len(kept)
    rows = _aligned(kept, raw)
    for name in ("darshan_agg_perf_by_slowest_posix", "fs_tot_bytes_read", "fshealth_ost_most_full_pct"):
        assert kept.stored(name).tolist() == [float(row[name]) for row in rows]
        if name != "fs_tot_bytes_read":
            assert kept.numbers(name).tolist() == kept.stored(name).tolist()


@pytest.mark.parametrize(
    ("name", "own", "servers", "count"),
    [
        ("fs_tot_bytes_read", ["darshan_tot_bytes_read_posix"], ["fs_tot_bytes_read"], 11),
        ("fs_max_bytes_written_per_sec", ["darshan_tot_bytes_written_posix"], ["fs_tot_bytes_written"], 6),
        (
            "fs_tot_bytes",
            ["darshan_tot_bytes_read_posix", "darshan_tot_bytes_written_posix"],
            ["fs_tot_bytes_read", "fs_tot_bytes_written"],
            16,
        ),
        ("fs_tot_unlink_ops", ["darshan_tot_opens_posix"], ["fs_tot_open_ops"], 845),
    ],
)
def test_what_the_servers_saw_is_no_value_where_the_job_itself_moved_more(
    kept: Jobs, raw: list[dict[str, str]], name: str, own: list[str], servers: list[str], count: int
) -> None:
    rows = _aligned(kept, raw)
    gaps = np.array(
        [sum(float(row[one]) for one in own) > 1.2 * sum(float(row[one]) for one in servers) for row in rows]
    )
    assert gaps.sum() == count and not np.isnan(kept.stored(name)).any()
    np.testing.assert_array_equal(np.isnan(kept.numbers(name)), gaps)
    np.testing.assert_array_equal(kept.numbers(name)[~gaps], kept.stored(name)[~gaps])


def _ratio(above: float, below: float) -> float:
    """Return a share; NaN where there is none, or beyond the limit of 1.2."""
    return above / below if below and above / below <= 1.2 else math.nan


def test_coverage_factors_and_contention_equal_those_from_raw_columns(kept: Jobs, raw: list[dict[str, str]]) -> None:
    rows = _aligned(kept, raw)
    expected: dict[str, list[float]] = {"bw": [], "opens": [], "stats": [], "read_bw": []}
    for row in rows:
        number = {name: float(value) for name, value in row.items() if name.startswith(("darshan_tot", "fs_tot"))}
        cover = _ratio(
            number["darshan_tot_bytes_read_posix"] + number["darshan_tot_bytes_written_posix"],
            number["fs_tot_bytes_read"] + number["fs_tot_bytes_written"],
        )
        expected["bw"].append(cover)
        expected["read_bw"].append(_ratio(number["darshan_tot_bytes_read_posix"], number["fs_tot_bytes_read"]))
        expected["opens"].append(_ratio(number["darshan_tot_opens_posix"], number["fs_tot_open_ops"]))
        expected["stats"].append(_ratio(number["darshan_tot_stats_posix"], number["fs_tot_getattr_ops"]))
    for name, values in expected.items():
        np.testing.assert_allclose(kept.numbers(f"coverage_factor_{name}"), values, rtol=1e-12, equal_nan=True)
    for name in ("bw", "opens", "stats"):
        np.testing.assert_allclose(kept.numbers(f"contention_{name}"), 1 - np.array(expected[name]), atol=1e-12)
    assert np.isnan(kept.numbers("coverage_factor_opens"))[kept.texts("_file_system") == "scratch3"].sum() > 800
    assert np.isnan(kept.numbers("contention_ops")).all()  # Lustre's servers do not count requests


def test_quartiles_equal_scipys(kept: Jobs, raw: list[dict[str, str]]) -> None:
    import scipy.stats

    motifs, systems = kept.texts("_benchmark_id"), kept.texts("_file_system")
    for motif in sorted(set(motifs.tolist())):
        mine = [row for row in raw if _motif(row) == motif and row["_file_system"] == "scratch2"]
        values = sorted(float(row["darshan_agg_perf_by_slowest_posix"]) for row in mine)
        found = box(kept.numbers("darshan_agg_perf_by_slowest_posix")[(motifs == motif) & (systems == "scratch2")])
        assert found is not None and found.count == len(values)
        expected = scipy.stats.mstats.mquantiles(values, (0.05, 0.25, 0.5, 0.75, 0.95), alphap=1, betap=1)
        np.testing.assert_allclose(found.numbers, expected, rtol=1e-12)


def _normalised(rows: list[dict[str, str]]) -> list[float]:
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        key = row["_file_system"], _motif(row)
        best[key] = max(best.get(key, 0.0), float(row["darshan_agg_perf_by_slowest_posix"]))
    return [float(row["darshan_agg_perf_by_slowest_posix"]) / best[row["_file_system"], _motif(row)] for row in rows]


def _pearson(x: Any, y: Any) -> tuple[float, float]:
    """Return the coefficient and its p-value by their textbook formulas."""
    import scipy.stats

    x, y = x - x.mean(), y - y.mean()
    r = float((x * y).sum() / math.sqrt((x * x).sum() * (y * y).sum()))
    t = r * math.sqrt((len(x) - 2) / (1 - r * r))
    return r, 2 * float(scipy.stats.t.sf(abs(t), len(x) - 2))


def test_the_correlation_table_equals_textbook_formulas(kept: Jobs, raw: list[dict[str, str]]) -> None:
    import scipy.stats

    metrics = ["fshealth_ost_most_full_pct", "fs_ave_oss_cpu", "coverage_factor_bw", "topology_job_max_radius"]
    found = correlation_table(kept, metrics)
    assert len(found) == 3 * len(metrics) * 2
    performance = np.array(_normalised(_aligned(kept, raw)))
    np.testing.assert_allclose(kept.numbers(NORMALISED), performance, rtol=1e-12)
    systems = kept.texts("_file_system")
    p_values = []
    for one in found:
        rows = (systems == one.group) & ~np.isnan(kept.numbers(one.metric))
        x, y = kept.numbers(one.metric)[rows], performance[rows]
        if one.method == "spearman":
            x, y = scipy.stats.rankdata(x), scipy.stats.rankdata(y)
        r, p = _pearson(x, y)
        assert one.pairs == rows.sum()
        assert one.coefficient == pytest.approx(r, abs=1e-10)
        assert one.p == pytest.approx(p, rel=1e-6, abs=1e-300)
        width = math.sqrt((1 if one.method == "pearson" else 1 + r * r / 2) / (one.pairs - 3))
        ends = [math.tanh(math.atanh(r) + side * scipy.stats.norm.ppf(0.975) * width) for side in (-1, 1)]
        assert [one.low, one.high] == pytest.approx(ends, abs=1e-10)
        p_values.append(p)
    order = np.argsort(p_values)
    ranked = np.array(p_values)[order] * len(p_values) / np.arange(1, len(p_values) + 1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1, np.minimum.accumulate(ranked[::-1])[::-1])
    np.testing.assert_allclose([one.p_corrected for one in found], adjusted, rtol=1e-6, atol=1e-300)


def test_the_year_shows_the_upgrade_of_august_and_the_emptied_file_system(kept: Jobs) -> None:
    """IOR's shared-file read fell to a seventh when Edison was upgraded in August 2017; scratch3 emptied in October."""
    pytest.importorskip("ruptures", reason="needs ruptures")
    from mpiio_ext.analytics.jobs import histories
    from mpiio_ext.analytics.jobs.climate.watch import Options, watch

    every = {(one.motif, one.system): one for one in watch(histories(kept), Options(within_days=None))}
    for system in KEPT:
        found = every["ior_shared_read", system]
        assert found.regression is not None
        assert found.regression.change.ratio < 0.25
        day = datetime.datetime.fromtimestamp(found.regression.time, datetime.timezone.utc).date()
        assert datetime.date(2017, 8, 1) <= day <= datetime.date(2017, 8, 31)
    vpic = every["vpicio_uni_shared_write", "scratch3"]
    purged = vpic.shifts[-1]
    assert not purged.worse and vpic.regression is None
    assert {"fshealth_ost_avg_full_pct"} <= {one.metric for one in purged.moved if one.effect < -0.9}
