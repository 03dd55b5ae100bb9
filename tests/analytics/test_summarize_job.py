"""A job's row from its Darshan log and the sources of a site: made logs, and every real sample."""

from __future__ import annotations

import csv
import gzip
import pathlib
import random
from typing import Any

import pytest

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.jobs import files
from mpiio_ext.analytics.jobs.joins import joined, tuples
from mpiio_ext.analytics.jobs.summarize import summarize
from mpiio_ext.analytics.miner import IOMiner
from mpiio_ext.analytics.sources.darshan import read_logs
from mpiio_ext.analytics.tools.system import System
from support.darshan_logs import POSIX_DOUBLES, packaged_logs, posix, shared_logs
from support.expected import Expected
from support.job_logs import BYTES_READ, BYTES_WRITTEN, RECORDS, START, WRITE_TIME, log_at
from support.parts import require
from support.traces import shared_data

require("darshan")


def test_scalars_of_records(tmp_path: pathlib.Path, expected: Expected) -> None:
    """Rank 0 has 1.5 s of I/O on one file and 1 s on the other; rank 3 has 2 s."""
    log = log_at(tmp_path / "one.darshan", RECORDS, start=START, end=START + 93, job_id=42, processes=4)
    (row,) = summarize([log]).rows()
    expected({name: value for name, value in row.items() if value is not None and name != "_log_id"})
    assert row["darshan_agg_perf_by_slowest_posix"] == 180 / 2**20 / 2.5


def test_shared_files_count_by_their_slowest_rank(tmp_path: pathlib.Path) -> None:
    from mpiio_ext.common.extras import darshan_library

    names = _double_names(darshan_library("a Darshan log", "pioneer"))
    slowest = names.index("POSIX_F_SLOWEST_RANK_TIME")
    records = [
        posix(7, -1, {BYTES_WRITTEN: 2**20}, {slowest: 3.0, WRITE_TIME: 9.0}),
        posix(8, 1, {}, {WRITE_TIME: 1.0}),
    ]
    (row,) = summarize([log_at(tmp_path / "x.darshan", records)]).rows()
    assert (row["darshan_io_time"], row["darshan_agg_perf_by_slowest_posix"]) == (4.0, 0.25)


def _double_names(library: str) -> list[str]:
    import ctypes

    table = (ctypes.c_char_p * (POSIX_DOUBLES + 1)).in_dll(ctypes.CDLL(library), "posix_f_counter_names")
    return [name.decode() for name in table]


@pytest.mark.parametrize(
    "path",
    list({path.read_bytes(): path for path in [*shared_logs(), *packaged_logs()]}.values()),
    ids=lambda path: path.name,
)
def test_every_real_log_against_pydarshan(path: pathlib.Path) -> None:
    """Sums, extremes and counts over PyDarshan's own records."""
    import darshan

    found = summarize([path])
    if not found.table.num_rows:
        pytest.skip(f"not readable: {found.notes.to_pylist()[0]['what']}")
    (row,) = found.rows()
    report = darshan.DarshanReport(str(path), read_all=False)
    if "POSIX" not in report.modules:
        assert row["darshan_tot_bytes_read_posix"] is None
        return
    report.mod_read_all_records("POSIX", warnings=False)
    frames = report.records["POSIX"].to_df()
    for kind, prefix in (("counters", "POSIX_"), ("fcounters", "POSIX_")):
        frame = frames[kind]
        for name in (
            "bytes_read",
            "bytes_written",
            "reads",
            "opens",
            "stats",
            "seq_writes",
            "mem_not_aligned",
            "f_meta_time",
            "f_write_time",
        ):
            column = prefix + name.upper()
            if column not in frame:
                continue
            values = frame[column][frame[column] >= 0]
            if not len(values):
                assert row[f"darshan_tot_{name}_posix"] is None
                continue
            assert row[f"darshan_tot_{name}_posix"] == pytest.approx(values.sum(), rel=1e-12)
            assert row[f"darshan_num_{name}_posix"] == len(values)
            assert (row[f"darshan_min_{name}_posix"], row[f"darshan_max_{name}_posix"]) == (values.min(), values.max())
    times = frames["fcounters"]
    own = times[times["rank"] >= 0]
    sums = (own["POSIX_F_META_TIME"] + own["POSIX_F_READ_TIME"] + own["POSIX_F_WRITE_TIME"]).groupby(own["rank"]).sum()
    shared = times[times["rank"] < 0]["POSIX_F_SLOWEST_RANK_TIME"]
    assert row["darshan_io_time"] == pytest.approx((sums.max() if len(sums) else 0.0) + shared.sum())


def test_logs_that_cannot_be_read_are_named(tmp_path: pathlib.Path) -> None:
    good = log_at(tmp_path / "good.darshan", RECORDS)
    empty = tmp_path / "empty.darshan"
    empty.write_bytes(b"")
    found = summarize([empty, good, tmp_path / "none.darshan"])
    assert [row["_log"] for row in found.rows()] == ["good.darshan"]
    skipped = [note for note in found.notes.to_pylist() if note["status"] == "skipped"]
    assert [str(empty) in skipped[0]["what"], str(tmp_path / "none.darshan") in skipped[1]["what"]] == [True, True]
    cut = tmp_path / "cut.darshan"
    for size in range(0, good.stat().st_size, 97):
        cut.write_bytes(good.read_bytes()[:size])
        assert len(summarize([cut]).rows()) + len(summarize([cut]).notes) > 0


# ---- with sources ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["sqlite3", "hdf5", "h5lmt"])
def test_a_job_in_the_interval_of_lmts_sample(tmp_path: pathlib.Path, form: str) -> None:
    pytest.importorskip("h5py")
    sample = shared_data("tokio/samples") / f"snx11025_2018-01-28.{form}"
    records = [posix(7, 0, {BYTES_WRITTEN: 10**9, BYTES_READ: 10**8}, {WRITE_TIME: 1.0})]
    log = log_at(tmp_path / "one.darshan", records, start=START + 2, end=START + 95)
    system = System(None, [sample], time_zone="America/Los_Angeles")
    found = summarize([log], system, file_system="snx11025")
    (row,) = found.rows()
    (slice_,) = found.slices.values()
    read, written = slice_["bytes_read"], slice_["bytes_written"]
    assert (read.first, read.values.shape) == (START + 5, (19, 24))  # begins in [2, 100): 5, 10 … 95
    assert row["fs_tot_bytes_read"] == read.values.sum()
    assert row["fs_max_bytes_written_per_sec"] == written.values.sum(axis=1).max() / 5
    assert row["coverage_factor_write_bw"] == 10**9 / row["fs_tot_bytes_written"]
    assert row["coverage_factor_bw"] == 1.1e9 / (row["fs_tot_bytes_written"] + row["fs_tot_bytes_read"])
    assert (row["fs_frac_missing"], row["fs_step_s"], row["fs_targets"]) == (0.0, 5.0, 24)
    assert row["_file_system"] == "snx11025"
    assert row["fs_ave_oss_cpu"] > 0
    assert row["_sources"].split(",")[:2] == ["darshan", "lmt"]


def samples() -> list[pathlib.Path]:
    folder = shared_data("tokio/samples")
    left_out = {"LICENSE", "sample-badost.README", "site.json"}
    return sorted(path for path in folder.iterdir() if path.name not in left_out and path.suffix != ".darshan")


def test_every_sample_is_read_summarised_and_joined(tmp_path: pathlib.Path) -> None:
    """All sources of the samples at once; logs of the samples, and made ones at the times that the sources are of."""
    pytest.importorskip("h5py")
    pytest.importorskip("duckdb")
    folder = shared_data("tokio/samples")
    logs = [*sorted(folder.glob("*.darshan"))]
    logs.append(
        log_at(tmp_path / "spring.darshan", RECORDS, "/scratch2", start=1490000345, end=1490000410, job_id=4478544)
    )
    logs.append(log_at(tmp_path / "winter.darshan", RECORDS, "/scratch1", start=START + 100, end=START + 200, job_id=5))
    system = System(None, samples(), time_zone="America/Los_Angeles")
    found = summarize(logs, system)
    rows = {row["_log"]: row for row in found.rows()}
    assert set(rows) == {log.name for log in logs}

    bad = rows["sample-badost.darshan"]
    assert (bad["_jobid"], bad["darshan_nprocs"], bad["_file_system"]) == (6265799, 2048, "snx11025")
    assert bad["darshan_io_time"] > 100 * rows["sample-goodost.darshan"]["darshan_io_time"]
    assert {
        name for name, value in bad.items() if value is not None and name.startswith(("fs", "jobsdb", "topology"))
    } == set()
    for question in ("servers", "fullness", "failovers", "jobs", "topology"):
        assert f"{question} missing" in bad["_notes"], "no sample is of its day"
    assert rows["noposix.darshan"]["darshan_tot_bytes_read_posix"] is None

    spring = rows["spring.darshan"]
    assert spring["_file_system"] == "snx11035", "lfs df prints that this is /scratch2"
    assert (spring["fshealth_ost_count"], spring["fshealth_ost_overloaded_ost_count"]) == (24, 2)
    assert 0 < spring["fshealth_ost_fullness_lead_secs"] <= 905
    assert 0 < spring["fshealth_ost_failures_lead_secs"] <= 905
    assert spring["jobsdb_concurrent_jobs"] > 1
    assert spring["jobsdb_nodes"] == 128
    assert 0 < spring["topology_job_min_radius"] < spring["topology_job_avg_radius"] < spring["topology_job_max_radius"]
    assert spring["fs_tot_bytes_read"] is None

    winter = rows["winter.darshan"]
    assert (winter["_file_system"], winter["fs_targets"], winter["fs_frac_missing"]) == ("snx11025", 24, 0.0)
    assert 0 < winter["fshealth_ost_fullness_lead_secs"] <= 5, "LMT says how full targets were, too"
    assert winter["fs_tot_open_ops"] > 0
    assert winter["fs_ave_mds_cpu"] > 0

    files.write(found, tmp_path / "jobs.h5")
    assert files.read(tmp_path / "jobs.h5").rows() == found.rows()
    joins_of(found, [folder, tmp_path], folder / "sample.slurm", tmp_path / "store")


def joins_of(found: Any, folders: list[pathlib.Path], slurm: pathlib.Path, store: pathlib.Path) -> None:
    """Check the joins of the summaries of all samples with a store of their logs and the scheduler's job."""
    rows = {row["_log"] for row in found.rows()}
    setup = {
        "store": str(store),
        "workers": 0,
        "site": {"time_zone": "America/Los_Angeles"},
        "inputs": {"darshan": [str(folder) for folder in folders], "slurm": [str(slurm)]},
    }
    with IOMiner(setup) as miner:
        miner.init_stores(quiet=True)
        both = {row["_log"]: row for row in joined(found, miner).rows()}
        assert set(both) == rows
        for name, row in both.items():
            assert row["log_file"] == name
            assert row["start_time"] // 1 == row["darshan_start_time"]
        slow = tuples(found, miner.load("darshan_job")).filter("darshan_io_time > 100s").project("job_id", "_log")
        assert [row["_log"] for row in slow.rows()] == ["sample-badost.darshan"]
        (scheduled,) = joined(found, miner, "slurm").rows()
        assert (scheduled["_log"], len(scheduled["nodes"])) == ("spring.darshan", 128)
        assert {row["_log"] for row in joined(found, miner, "darshan_file").rows()} == rows
        with pytest.raises(AnalyticsError, match="cannot be joined to 'lmt'"):
            joined(found, miner, "lmt")


def published(job_id: int) -> list[dict[str, str]]:
    """Return the rows of a job in the published table of Edison (its first column has no name in the header)."""
    with gzip.open(shared_data("tokio/summaries") / "edison-summaries_2017-02-14-2018-02-15.csv.gz", "rt") as text:
        lines = csv.reader(text)
        names = next(lines)
        rows = [dict(zip(names, line[1:], strict=True)) for line in lines]
    return [row for row in rows if row["_jobid"] == str(job_id)]


def test_state_and_place_of_a_published_job_are_what_was_published(tmp_path: pathlib.Path) -> None:
    """The samples are of the day of job 4478544, whose eight programs have a row each in the published table.

    Not compared: the time of the next sample (published: one second behind the sample), the age of the sample of
    fullness (published: of the map of OSTs, a second later), and concurrent jobs, of which the sample has a part.
    """
    folder = shared_data("tokio/samples")
    rows = published(4478544)
    assert len(rows) == 8
    logs = [
        log_at(
            tmp_path / f"{number}.darshan",
            RECORDS,
            "/scratch2",
            start=int(float(row["darshan_start_time"])),
            end=int(float(row["darshan_end_time"])),
            job_id=4478544,
        )
        for number, row in enumerate(rows)
    ]
    names = ("ost-fullness.txt.gz", "ost-map.txt.gz", "nersc_jobsdb.sqlite3")
    given = [*(folder / f"sample_{name}" for name in names), folder / "sample.slurm", folder / "sample.xtdb2proc.gz"]
    found = {row["_log"]: row for row in summarize(logs, System(None, given, time_zone="America/Los_Angeles")).rows()}
    left_out = {"fshealth_ost_next_timestamp", "fshealth_ost_actual_timestamp", "fshealth_ost_fullness_lead_secs"}
    for number, theirs in enumerate(rows):
        ours = found[f"{number}.darshan"]
        compared = [name for name in theirs if name.startswith(("fshealth_", "topology_")) and name not in left_out]
        assert len(compared) == 21
        for name in compared:
            wanted = theirs[name] if name.endswith("_name") else pytest.approx(float(theirs[name]), rel=1e-9)
            assert ours[name] == wanted, name
        assert ours["fshealth_ost_fullness_lead_secs"] - ours["fshealth_ost_failures_lead_secs"] == 1
        assert 0 < ours["jobsdb_concurrent_jobs"] <= int(theirs["jobsdb_concurrent_jobs"])
        assert ours["darshan_walltime"] == int(theirs["darshan_walltime"])


def test_gpfs_samples_are_taken_for_the_file_system_that_is_named(tmp_path: pathlib.Path) -> None:
    archive = shared_data("tokio/samples") / "mmperfmon.2019-05-15-micro.tgz"
    log = log_at(tmp_path / "x.darshan", RECORDS, "/gpfs", start=1557947700, end=1557949000)
    system = System(None, [archive], time_zone="America/Los_Angeles")
    (row,) = summarize([log], system).rows()
    assert row["fs_tot_bytes_read"] is None
    (row,) = summarize([log], system, file_system="project2").rows()
    assert (row["fs_step_s"], row["_sources"]) == (60.0, "darshan,mmperfmon")
    assert row["fs_tot_bytes_read"] > 0
    assert row["fs_tot_bytes_read"] == pytest.approx(row["fs_ave_bytes_read_per_sec"] * 60 * 22), (
        "steps that begin in 1305 s"
    )


def test_damaged_sources_are_named_and_the_rest_goes_on(tmp_path: pathlib.Path) -> None:
    folder = shared_data("tokio/samples")
    full = tmp_path / "osts.txt"
    text = gzip.decompress((folder / "sample_ost-fullness.txt.gz").read_bytes()).decode().splitlines(keepends=True)
    text[10] = "snx11035-OST0007_UUID 907676x1352 damaged\n"
    full.write_text("".join(text))
    (tmp_path / "lmt.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 9)
    given = [
        full,
        tmp_path / "lmt.hdf5",
        tmp_path / "noise.bin",
        tmp_path / "none",
        folder / "sample_nersc_jobsdb.sqlite3",
    ]
    log = log_at(tmp_path / "spring.darshan", RECORDS, "/scratch2", start=1490000345, end=1490000410, job_id=4478544)
    found = summarize([log], System(None, given))
    (row,) = found.rows()
    assert row["fshealth_ost_count"] is not None
    assert row["jobsdb_concurrent_jobs"] > 1
    for name in ("osts.txt:11", "lmt.hdf5", "noise.bin", "none"):
        assert name in row["_notes"]


@pytest.mark.slow
def test_no_damage_of_a_source_costs_another(tmp_path: pathlib.Path) -> None:
    """Every sample in turn is cut or has bytes changed: all rows are there, with what other sources say."""
    pytest.importorskip("h5py")
    source = random.Random(11)
    spring = log_at(tmp_path / "spring.darshan", RECORDS, "/scratch2", start=1490000345, end=1490000410, job_id=4478544)
    winter = log_at(tmp_path / "winter.darshan", RECORDS, start=START + 100, end=START + 200, job_id=5)
    whole = {path.name: path.read_bytes() for path in samples()}
    health = [path for path in samples() if path.name.startswith("sample_ost")]
    for name, data in whole.items():
        for how in ("cut", "changed"):
            broken = bytearray(data[: source.randrange(len(data))] if how == "cut" else data)
            for _ in range(20 if how == "changed" else 0):
                broken[source.randrange(len(broken))] = source.randrange(256)
            (tmp_path / name).write_bytes(broken)
            given = [tmp_path / name, *(path for path in health if path.name != name)]
            found = summarize([spring, winter], System(None, given, time_zone="America/Los_Angeles"))
            rows = {row["_log"]: row for row in found.rows()}
            assert set(rows) == {"spring.darshan", "winter.darshan"}
            if not name.startswith("sample_ost"):
                assert rows["spring.darshan"]["fshealth_ost_count"] == 24
                assert rows["spring.darshan"]["fshealth_ost_overloaded_ost_count"] == 2


def test_the_reader_gives_summaries_beside_its_tables(tmp_path: pathlib.Path) -> None:
    log = log_at(tmp_path / "one.darshan", RECORDS)
    found = read_logs([log.name], str(tmp_path))
    found.tables["summary"].validate(full=True)
    (row,) = found.tables["summary"].to_pylist()
    assert row["log_id"] == found.tables["darshan_job"]["log_id"][0].as_py()
    assert (row["posix_bytes_written"], row["posix_records_written"], row["stdio_bytes_read"]) == (150, 2, None)
    assert (row["unique_time"], row["shared_time"]) == (2.5, None)
