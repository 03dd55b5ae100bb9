"""Gaps of monitoring: what the servers did not see is no value, and how complete each source is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mpiio_ext.analytics.jobs import Filter, Jobs, read, select
from mpiio_ext.analytics.jobs.coverage import judged_by, terms
from mpiio_ext.analytics.jobs.files import write
from mpiio_ext.analytics.jobs.filters import completeness, in_words
from mpiio_ext.analytics.jobs.statistics.correlation import correlation_table
from mpiio_ext.analytics.jobs.statistics.moved import compared
from mpiio_ext.analytics.jobs.umami import show, umami
from mpiio_ext.cli import main
from support.html_page import Page
from support.job_histories import history, steps

#: Jobs without samples of the servers, of 40.
GAPS = 12


def _monitored(**more: Any) -> Jobs:
    """Return 40 jobs that write 1 TB each; in the last 12 the servers saw next to nothing."""
    seen = steps([(40 - GAPS, 2e12), (GAPS, 1e10)])
    own = {
        "darshan_tot_bytes_written_posix": np.full(40, 1e12),
        "darshan_tot_bytes_read_posix": np.zeros(40),
        "darshan_tot_opens_posix": np.full(40, 100.0),
    }
    return history(
        steps([(40 - GAPS, 100.0), (GAPS, 80.0)], seed=3),
        {
            **own,
            "fs_tot_bytes_written": seen,
            "fs_ave_bytes_written_per_sec": seen / 100,
            "fs_tot_bytes_read": steps([(40, 1e9)], seed=4),
            "fs_tot_open_ops": np.full(40, 500.0),
            **more,
        },
    )


@pytest.mark.parametrize(
    ("name", "factors"),
    [
        ("fs_tot_bytes_read", ("read_bw",)),
        ("fs_max_gibs_written_per_sec", ("write_bw",)),
        ("fs_tot_bytes", ("bw",)),
        ("fs_tot_write_ops", ("ops",)),
        ("fs_tot_getattr_ops", ("opens", "stats")),
        ("fs_ave_unlink_ops_per_sec", ("opens",)),
        ("fs_tot_openclose_ops", ("opens",)),
        ("fs_ave_oss_cpu", ()),
        ("fs_frac_missing", ()),
        ("darshan_io_time", ()),
    ],
)
def test_which_factor_judges_a_column(name: str, factors: tuple[str, ...]) -> None:
    assert judged_by(name) == factors and bool(terms(name)) == bool(factors)


def test_a_gap_is_no_value_in_quartiles_correlations_and_explanations() -> None:
    table = select(_monitored())[0]
    gap = np.arange(40) >= 40 - GAPS
    for name in ("fs_tot_bytes_written", "fs_ave_bytes_written_per_sec", "fs_tot_bytes", "coverage_factor_bw"):
        np.testing.assert_array_equal(np.isnan(table.numbers(name)), gap)
    assert not np.isnan(table.numbers("fs_tot_bytes_read")).any()
    found = umami(table, 39, ["fs_tot_bytes_written", "fs_tot_bytes_read"])
    written, got = found.metrics
    assert written.value is None and written.box is not None and written.box.count == 40 - GAPS
    assert got.value is not None and list(found.gaps) == ["fs_tot_bytes_written"]
    assert "Not used, as the servers saw less than the job itself moved" in show.text(found)
    (pearson, _) = correlation_table(table, ["fs_tot_bytes_written"])
    assert pearson.pairs == 40 - GAPS
    names = [one.metric for one in compared(table.take(~gap), table.take(gap))]
    assert "fs_tot_bytes_read" in names and "fs_tot_bytes_written" not in names


def test_what_is_not_known_to_be_a_gap_is_a_value() -> None:
    servers = [1.0, 0.0, 0.0, 10.0, math.nan]
    own = [1.2, 0.0, math.nan, 12.1, 1.0]
    table = history([1.0] * 5, {"fs_tot_bytes_read": servers, "darshan_tot_bytes_read_posix": own})
    np.testing.assert_array_equal(table.numbers("fs_tot_bytes_read"), [1.0, 0.0, 0.0, math.nan, math.nan])
    assert table.stored("fs_tot_bytes_read").tolist()[:4] == servers[:4]


def test_what_is_0_in_all_rows_of_a_file_system_was_not_measured() -> None:
    load = {
        "fs_ave_mds_cpu": [0.0, 0.0, 0.0, 2.0],
        "fshealth_ost_overloaded_oss_count": [0.0] * 4,
        "fs_frac_missing": [0.0] * 4,
        "_file_system": ["a", "a", "b", "b"],
    }
    table = history([1.0] * 4, load)
    np.testing.assert_array_equal(table.numbers("fs_ave_mds_cpu"), [math.nan, math.nan, 0.0, 2.0])
    for name in ("fshealth_ost_overloaded_oss_count", "fs_frac_missing"):
        assert table.numbers(name).tolist() == [0.0] * 4


def test_a_saved_table_keeps_what_was_stored_and_stays_complete(tmp_path: Path) -> None:
    table = select(_monitored())[0]
    write(table, tmp_path / "t.parquet")
    again = select(read(tmp_path / "t.parquet"), Filter(complete=True))[0]
    assert len(again) == 40
    for name in ("fs_tot_bytes_written", "fs_tot_bytes"):
        np.testing.assert_array_equal(again.numbers(name), table.numbers(name))
        assert not np.isnan(again.stored(name)).any()


@pytest.mark.parametrize(
    ("most", "log_id", "factor"),
    [
        ([0.658, 0.7, 1.0], None, 100),
        ([0.658, 0.7, 1.01], None, 1),
        ([65.8, 70.0, 71.0], None, 1),
        ([0.658, 0.7, 0.71], [1, 2, 3], 1),
    ],
)
def test_fullness_that_is_a_share_is_shown_in_percent(most: list[float], log_id: list[int] | None, factor: int) -> None:
    more: dict[str, Any] = {"fshealth_ost_most_full_pct": most, "fshealth_ost_avg_full_pct": [0.5] * 3}
    table = select(history([1.0] * 3, more | ({"_log_id": log_id} if log_id else {})))[0]
    assert table.numbers("fshealth_ost_most_full_pct").tolist() == [factor * value for value in most]
    assert table.numbers("fshealth_ost_avg_full_pct").tolist() == [factor * 0.5] * 3
    words = ["fullness of scratch1 is a share in the table, and shown in percent"] if factor == 100 else []
    assert in_words(table) == words


def test_completeness_is_told_of_each_source(tmp_path: Path) -> None:
    table = select(_monitored(fs_ave_oss_cpu=[math.nan] * 10 + [3.0] * 30))[0]
    found = {one.source: (one.rows, one.known, one.gaps) for one in completeness(table)}
    assert found == {
        "program's log": (40, 40, 0),
        "servers' bytes": (40, 28, 12),
        "servers' load": (40, 30, 0),
        "metadata operations": (40, 40, 0),
    }
    pytest.importorskip("ruptures", reason="needs ruptures")
    write(table, tmp_path / "t.parquet")
    page = tmp_path / "t.html"
    told = CliRunner().invoke(main, ["analyze", "climate", str(tmp_path / "t.parquet"), "-o", str(page)]).stdout
    assert "gaps of monitoring in 40 rows, used nowhere: servers' bytes of 12\n" in told
    assert "70 % (12 gaps)" in Page(page.read_text()).text
    told = (
        CliRunner()
        .invoke(
            main,
            [
                "analyze",
                "umami",
                "--history",
                str(tmp_path / "t.parquet"),
                "--json",
                "--metric",
                "fs_tot_bytes_written",
                "--metric",
                "performance",
            ],
        )
        .stdout
    )
    assert json.loads(told)["gaps"] == ["fs_tot_bytes_written"]
