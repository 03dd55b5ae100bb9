"""The published rows of five file systems from one command, by tables of the columns that the three platforms have."""

from __future__ import annotations

import datetime
import gzip
import json
import zoneinfo
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mpiio_ext.analytics.jobs import Filter, histories, published, read, select
from mpiio_ext.analytics.jobs.statistics.correlation import NORMALISED, correlation_table
from mpiio_ext.cli import main
from support.html_page import Page
from support.parts import require

require("pandas")
PACIFIC = zoneinfo.ZoneInfo("America/Los_Angeles")
PERFORMANCE = "darshan_agg_perf_by_slowest_posix"
#: Metrics of each platform's servers, as their published tables have them: Lustre's twice, and GPFS'.
LUSTRE = (
    "fs_ave_mds_cpu",
    "fs_max_oss_cpu",
    "fs_tot_open_ops",
    "fs_tot_close_ops",
    "fs_tot_getattr_ops",
    "fshealth_ost_overloaded_oss_count",
    "jobsdb_concurrent_nodes",
    "topology_job_avg_radius",
)
GPFS = (
    "fs_tot_open_ops",
    "fs_tot_close_ops",
    "fs_tot_readdir_ops",
    "fs_tot_inode_updates_ops",
    "fs_tot_read_ops",
    "fs_tot_write_ops",
)
PLATFORMS = {
    "edison": (("scratch1", "scratch2", "scratch3"), LUSTRE, (2048,)),
    "cori": (("cscratch",), LUSTRE, (512, 1024, 1025, 4096)),
    "mira": (("mira-fs1",), GPFS, (16384,)),
}


def made(platform: str, rows: int = 260) -> Any:
    """Return a table with the columns of a platform, random values, and everything that the published filter drops."""
    import pandas

    random = np.random.default_rng(len(platform))
    systems, servers, processes = PLATFORMS[platform]
    start = datetime.datetime(2017, 1, 20, tzinfo=PACIFIC).timestamp() + random.integers(0, 420 * 86400, rows)
    written = random.random(rows) < 0.5
    moved = np.where(random.random(rows) < 0.1, 2.0**29, 2.0**40)
    ranks = random.choice(processes, rows)
    alone = np.where(random.random(rows) < 0.5, ranks, 1)
    full = random.uniform(0.3, 0.9, rows)
    columns: dict[str, Any] = {
        "_jobid": np.arange(rows) + 10000 * len(platform),
        "_file_system": random.choice(systems, rows),
        "_datetime_start": start.astype(np.int64),
        "_datetime_end": start.astype(np.int64) + 100,
        "darshan_app": random.choice(["/bin/hacc_io_write", "/bin/ior", "vpicio_uni"], rows),
        "darshan_nprocs": ranks,
        "darshan_walltime": 100,
        PERFORMANCE: 1e4 * ranks * random.uniform(0.5, 1, rows),
        "darshan_total_gibs_posix": moved / 2**30,
        "darshan_tot_bytes_read_posix": np.where(written, 0.0, moved),
        "darshan_tot_bytes_written_posix": np.where(written, moved, 0.0),
        "darshan_tot_opens_posix": ranks,
        "darshan_tot_stats_posix": 0,
        "darshan_tot_reads_posix": np.where(written, 0, 1000),
        "darshan_tot_writes_posix": np.where(written, 1000, 0),
        **{
            f"darshan_biggest_{way}_api_bytes": np.where(written == (way == "write"), moved, 0.0)
            for way in ("read", "write")
        },
        **{
            f"darshan_biggest_{way}_api_files": np.where(written == (way == "write"), alone, 1)
            for way in ("read", "write")
        },
        "fs_tot_bytes_read": 2.0**41 * random.random(rows),
        "fs_tot_bytes_written": 2.0**41 * random.random(rows),
        **{name: 1e6 * random.random(rows) for name in servers},
        "fshealth_ost_most_full_pct": full if platform == "mira" else 100 * full,
        "fshealth_ost_avg_full_pct": 0.9 * full if platform == "mira" else 90 * full,
    }
    if platform == "mira":  # months without samples of the servers are zeros there
        columns["fs_tot_bytes_read"][:60] = columns["fs_tot_bytes_written"][:60] = 0.0
    table = pandas.DataFrame(columns)
    lacking = random.random(rows) < 0.1
    for row in np.flatnonzero(lacking):
        table.loc[row, random.choice([*servers, PERFORMANCE])] = np.nan
    if platform != "edison":  # columns that pandas has left in the files
        table.insert(0, "index", np.arange(rows))
    return table


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("platforms")
    paths = []
    for platform in PLATFORMS:
        path = folder / f"{platform}-summaries.csv.gz"
        with gzip.open(path, "wt") as text:
            made(platform).to_csv(text, index=platform == "mira")  # Mira's has row numbers without a name
        paths.append(path)
    return paths


def by_the_paper(path: Path) -> Any:
    """Return the rows that the filters of the paper keep, by pandas: each file by itself."""
    import pandas

    table = pandas.read_csv(path).dropna(how="any")
    begin = [datetime.datetime.fromtimestamp(value, PACIFIC).replace(tzinfo=None) for value in table["_datetime_start"]]
    written = table["darshan_biggest_write_api_bytes"] > table["darshan_biggest_read_api_bytes"]
    files = table["darshan_biggest_write_api_files"]
    shared = (files % table["darshan_nprocs"] / files).abs() >= 0.05
    hacc = written & shared & table["darshan_app"].str.endswith("hacc_io_write")
    haswell = (table["_file_system"] == "cscratch") & (table["darshan_nprocs"] <= 1024)
    begin = pandas.Series(begin, index=table.index)
    kept = (begin >= datetime.datetime(2017, 2, 14)) & (begin < datetime.datetime(2018, 2, 15))
    return table[kept & (table["darshan_total_gibs_posix"] > 1) & ~hacc & ~haswell]


@pytest.mark.slow
def test_the_rows_of_five_file_systems_are_those_of_the_paper_in_one_command(
    tables: list[Path], tmp_path: Path
) -> None:
    pytest.importorskip("ruptures", reason="needs ruptures")
    expected: Counter[str] = Counter()
    for path in tables:
        mine = by_the_paper(path)
        kept, _ = published(read(path))
        assert sorted(kept.numbers("_jobid").tolist()) == sorted(mine["_jobid"].tolist()), path.name
        expected += Counter(mine["_file_system"])
    assert len(expected) == 5 and min(expected.values()) > 20
    page = tmp_path / "all.html"
    arguments = ["analyze", "climate", *map(str, tables), "--published"]
    done = CliRunner().invoke(main, [*arguments, "--json"])
    assert done.exit_code in (0, 1), done.output  # of random values one may look like a fall
    found = json.loads(done.stdout)
    assert found["rows"] == sum(expected.values())
    assert {one["system"]: one["rows"] for one in found["completeness"]} == dict(expected)
    assert {one["file"] for one in found["completeness"]} == {path.name for path in tables}
    mira = {one["source"]: one for one in found["completeness"] if one["system"] == "mira-fs1"}
    assert mira["servers' bytes"]["gaps"] > 0 and "servers' load" not in {
        source for source, one in mira.items() if one["known"]
    }
    assert CliRunner().invoke(main, [*arguments, "-o", str(page)]).exit_code == done.exit_code
    text = Page(page.read_text()).text
    assert "Fullness of mira-fs1 is a share in the table, and shown in percent." in text
    assert all(system in text for system in expected)


def test_quartiles_and_correlations_of_each_scale_are_scipys(tables: list[Path]) -> None:
    """Cori's table has runs of four sizes, which are four histories."""
    import pandas
    import scipy.stats

    cori = read(tables[1])
    table, _ = select(cori, Filter(complete=True))
    raw = {row["_jobid"]: row for row in pandas.read_csv(tables[1]).to_dict("records")}
    every = histories(table)
    assert {one.scale for one in every} == {"512", "1024", "1025", "4096"}
    for one in every:
        mine = [raw[job] for job in one.jobs.numbers("_jobid").astype(int).tolist()]
        assert {row["darshan_nprocs"] for row in mine} == {int(one.scale)}
        values = [row[PERFORMANCE] for row in mine]
        assert one.jobs.numbers(NORMALISED) == pytest.approx(np.array(values) / max(values))
    best = {
        job: value / max(raw[int(other)][PERFORMANCE] for other in one.jobs.numbers("_jobid"))
        for one in every
        for job, value in zip(
            one.jobs.numbers("_jobid").astype(int).tolist(), one.jobs.numbers(PERFORMANCE).tolist(), strict=True
        )
    }
    metric = "fs_ave_mds_cpu"
    x = [best[job] for job in table.numbers("_jobid").astype(int).tolist()]
    y = [raw[job][metric] for job in table.numbers("_jobid").astype(int).tolist()]
    wanted = {"pearson": scipy.stats.pearsonr(x, y), "spearman": scipy.stats.spearmanr(x, y)}
    for found in correlation_table(table, [metric]):
        expected = wanted[found.method]
        assert found.coefficient == pytest.approx(expected.statistic, rel=1e-12)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_quartiles_of_a_scale_in_json_are_scipys(tables: list[Path]) -> None:
    import pandas
    import scipy.stats

    pytest.importorskip("ruptures", reason="needs ruptures")
    done = CliRunner().invoke(main, ["analyze", "climate", str(tables[1]), "--complete", "--json"])
    raw = pandas.read_csv(tables[1]).dropna(how="any")
    names = raw["darshan_app"].str.rpartition("/")[2]
    checked = 0
    for one in json.loads(done.stdout)["quartiles"]:
        mine = raw[(raw["darshan_nprocs"] == int(one["processes"]))]
        motif = one["motif"]
        app = next(name for name in set(names) if motif.startswith(name))
        way = motif.rpartition("_")[2]
        written = mine["darshan_biggest_write_api_bytes"] > mine["darshan_biggest_read_api_bytes"]
        alone = mine[f"darshan_biggest_{way}_api_files"] % mine["darshan_nprocs"] == 0
        mine = mine[(names[mine.index] == app) & (written == (way == "write")) & (alone == ("_fpp_" in motif))]
        box = one["metrics"][PERFORMANCE]
        values = scipy.stats.mstats.mquantiles(mine[PERFORMANCE], (0.05, 0.25, 0.5, 0.75, 0.95), alphap=1, betap=1)
        assert box["jobs"] == len(mine)
        assert [box[name] for name in ("p5", "q1", "median", "q3", "p95")] == pytest.approx(values.tolist(), rel=1e-12)
        checked += 1
    assert checked > 8


def test_a_server_that_saw_less_than_the_job_is_no_value_of_mira_anywhere(tables: list[Path]) -> None:
    import pandas

    table = read(tables[2])
    raw = pandas.read_csv(tables[2])
    for name, own, server in (
        ("fs_tot_bytes_read", "darshan_tot_bytes_read_posix", "fs_tot_bytes_read"),
        ("fs_tot_bytes_written", "darshan_tot_bytes_written_posix", "fs_tot_bytes_written"),
        ("fs_tot_readdir_ops", "darshan_tot_opens_posix", "fs_tot_open_ops"),
    ):
        gap = (raw[own] > 1.2 * raw[server]).to_numpy()
        unknown = raw[name].isna().to_numpy()
        np.testing.assert_array_equal(np.isnan(table.numbers(name)), gap | unknown, err_msg=name)
        assert gap.any()
    kept, _ = select(table)
    pairs = {one.metric: one.pairs for one in correlation_table(kept, ["fs_tot_bytes_read", "fs_tot_open_ops"])}
    known = ~np.isnan(kept.numbers("fs_tot_bytes_read")) & ~np.isnan(kept.numbers(NORMALISED))
    assert pairs["fs_tot_bytes_read"] == int(known.sum()) < len(kept)
