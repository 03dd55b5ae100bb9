"""A job's row from its Darshan log and the sources of a site: made logs, and every real sample."""

from __future__ import annotations

import csv
import gzip
import json
import pathlib
import random
import struct
from typing import Any

import pytest

pytest.importorskip("darshan")

from click.testing import CliRunner

from mpiio_ext.analytics.cli_summarize import _words
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.jobs import files
from mpiio_ext.analytics.jobs.joins import joined, tuples
from mpiio_ext.analytics.jobs.summarize import summarize
from mpiio_ext.analytics.miner import IOMiner
from mpiio_ext.analytics.sources.darshan import read_logs
from mpiio_ext.analytics.tools.system import Note, System
from mpiio_ext.cli import main
from support import source_texts as texts
from support.darshan_logs import Job, make_log, packaged_logs, shared_logs
from support.traces import shared_data

COUNTERS, DOUBLES = 69, 17
OPENS, READS, WRITES, STATS, BYTES_READ, BYTES_WRITTEN = 0, 3, 4, 6, 14, 15
READ_TIME, WRITE_TIME, META_TIME = 8, 9, 10
#: In the interval of LMT's sample.
START = 1517126400


def posix(key: int, rank: int, integers: dict[int, int], doubles: dict[int, float] | None = None) -> bytes:
    """Return a record of POSIX, version 4; what is not given is 0."""
    numbers = [integers.get(k, 0) for k in range(COUNTERS)]
    times = [(doubles or {}).get(k, 0.0) for k in range(DOUBLES)]
    return struct.pack(f"<Qq{COUNTERS}q{DOUBLES}d", key, rank, *numbers, *times)


def log_at(path: pathlib.Path, records: list[bytes], mount: str = "/scratch1", **job: Any) -> pathlib.Path:
    names = {7: f"{mount}/a", 8: f"{mount}/b"}
    data = make_log(
        Job(**{"mounts": (("lustre", mount), ("ext4", "/")), **job}), names, {"POSIX": (4, b"".join(records))}
    )
    path.write_bytes(data)
    return path


RECORDS = [
    posix(7, 0, {OPENS: 1, BYTES_WRITTEN: 100, WRITES: 2}, {WRITE_TIME: 1.0, META_TIME: 0.5}),
    posix(7, 3, {OPENS: 2, BYTES_WRITTEN: 50, WRITES: 1, STATS: 4}, {WRITE_TIME: 2.0}),
    posix(8, 0, {OPENS: 1, BYTES_READ: 30, READS: -1}, {READ_TIME: 1.0}),
]


def test_scalars_of_records(tmp_path: pathlib.Path) -> None:
    log = log_at(tmp_path / "one.darshan", RECORDS, start=START, end=START + 93, job_id=42, processes=4)
    (row,) = summarize([log]).rows()
    expected = {
        "_jobid": 42,
        "darshan_nprocs": 4,
        "darshan_start_time": START,
        "darshan_end_time": START + 93,
        "darshan_walltime": 94,
        "_datetime_start": START,
        "_datetime_end": START + 98,
        "_log": "one.darshan",
        "darshan_app": "/home/me/bin/app",
        "darshan_tot_bytes_written_posix": 150,
        "darshan_num_bytes_written_posix": 3,
        "darshan_min_bytes_written_posix": 0,
        "darshan_max_bytes_written_posix": 100,
        "darshan_ave_bytes_written_posix": 50.0,
        "darshan_tot_opens_posix": 4,
        "darshan_num_reads_posix": 2,
        "darshan_tot_stats_posix": 4,
        "darshan_tot_f_write_time_posix": 3.0,
        "darshan_io_time": 2.5,  # rank 0: 1.5 s on one file and 1 s on the other; rank 3: 2 s
        "darshan_total_gibs_posix": 180 / 2**30,
        "darshan_agg_perf_by_slowest_posix": 180 / 2**20 / 2.5,
        "darshan_biggest_write_api": "posix",
        "darshan_biggest_write_api_bytes": 150,
        "darshan_biggest_write_api_files": 2,
        "darshan_biggest_read_fs": "/scratch1",
        "darshan_biggest_read_fs_bytes": 30,
    }
    assert {name: row[name] for name in expected} == expected
    assert row["_file_system"] is None
    assert "name its mount point in site.json" in row["_notes"]
    assert [name for name, value in row.items() if name.startswith("fs") and value is not None] == []


def test_shared_files_count_by_their_slowest_rank(tmp_path: pathlib.Path) -> None:
    from mpiio_ext.analytics.sources.darshan import library_path

    names = _double_names(library_path())
    slowest = names.index("POSIX_F_SLOWEST_RANK_TIME")
    records = [
        posix(7, -1, {BYTES_WRITTEN: 2**20}, {slowest: 3.0, WRITE_TIME: 9.0}),
        posix(8, 1, {}, {WRITE_TIME: 1.0}),
    ]
    (row,) = summarize([log_at(tmp_path / "x.darshan", records)]).rows()
    assert (row["darshan_io_time"], row["darshan_agg_perf_by_slowest_posix"]) == (4.0, 0.25)


def _double_names(library: str) -> list[str]:
    import ctypes

    table = (ctypes.c_char_p * (DOUBLES + 1)).in_dll(ctypes.CDLL(library), "posix_f_counter_names")
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


def test_the_command_joins_rows_with_a_store(tmp_path: pathlib.Path) -> None:
    logs = [log_at(tmp_path / f"{job}.darshan", RECORDS, job_id=job, start=START, end=START + 9) for job in (1, 2, 3)]
    (tmp_path / "in").mkdir()
    for log in logs[:2]:
        (tmp_path / "in" / log.name).write_bytes(log.read_bytes())
    setup = tmp_path / "setup.json"
    inputs = {"darshan": [str(tmp_path / "in")]}
    setup.write_text(json.dumps({"store": str(tmp_path / "store"), "workers": 0, "inputs": inputs}))
    with IOMiner(str(setup)) as miner:
        miner.init_stores(quiet=True)
    found = run(*logs, "--join", "darshan_job", "--setup", setup, "--json")
    assert found.exit_code == 0, found.output
    rows = {row["_log"]: row for row in json.loads(found.stdout)}
    assert {name: row["log_file"] for name, row in rows.items()} == {
        "1.darshan": "1.darshan", "2.darshan": "2.darshan", "3.darshan": None}  # fmt: skip
    assert rows["1.darshan"]["bytes_written"] == rows["1.darshan"]["darshan_tot_bytes_written_posix"] == 150
    assert f"1 of 3 rows have no counterpart in darshan_job of {setup}" in found.stderr
    files_of = run(*logs[:2], "--join", "darshan_file", "--setup", setup, "--joined", tmp_path / "f.csv", "-o",
                   tmp_path / "jobs.parquet")  # fmt: skip
    assert files_of.exit_code == 0 and not files_of.stdout, files_of.output
    with (tmp_path / "f.csv").open() as text:
        assert sorted((row["_log"], row["file"]) for row in csv.DictReader(text)) == [
            (f"{job}.darshan", f"/scratch1/{name}") for job in (1, 2) for name in "ab"]  # fmt: skip
    assert files.read(tmp_path / "jobs.parquet").table.num_rows == 2
    for arguments, words in ((("--join", "lmt", "--setup", setup), "cannot be joined to 'lmt'"),
                             (("--join", "slurm", "--setup", tmp_path / "none.json"), "none.json"),
                             (("--joined", tmp_path / "x.csv"), "--joined is a file")):  # fmt: skip
        failed = run(logs[0], *arguments)
        assert failed.exit_code == 2 and words in failed.stderr, failed.output


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


# ---- the command -----------------------------------------------------------------------------------------------------


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["analyze", "summarize-job", *map(str, arguments)], catch_exceptions=False)


def test_the_command(tmp_path: pathlib.Path) -> None:
    log = log_at(tmp_path / "one.darshan", RECORDS, start=START, end=START + 9)
    found = run(log)
    assert found.exit_code == 0, found.output
    assert "one.darshan: job 42, 2018-01-28 08:00:00Z to 2018-01-28 08:00:14Z, file system not known" in found.stdout
    assert "tot_bytes_written_posix                150 B" in found.stdout
    assert "Not known, or in part" in found.stdout
    (row,) = json.loads(run(log, "--json").stdout)
    entire = run(log, "--all").stdout
    lines = {line.split()[0] for line in found.stdout.splitlines() if line.startswith("  ")}
    known = {name for name, value in row.items() if name.startswith("darshan_") and value is not None}
    assert "io_time" in lines and "min_opens_posix" not in lines
    assert all(f"  {name.removeprefix('darshan_')} " in entire for name in known)
    assert f"{len(known) - 8} more columns: --all" in found.stdout and "--all" not in entire
    assert row["darshan_tot_bytes_written_posix"] == 150
    outputs = [tmp_path / f"jobs{form}" for form in (".parquet", ".csv", ".sqlite")]
    more = log_at(tmp_path / "two.darshan", RECORDS, start=START + 100, end=START + 109, job_id=43)
    for each in (log, more, log):
        assert run(each, *(part for path in outputs for part in ("-o", path))).exit_code == 0
    for path in outputs:
        assert [each["_jobid"] for each in files.read(path).rows()] == [42, 43]


def test_the_command_refuses(tmp_path: pathlib.Path) -> None:
    log = log_at(tmp_path / "one.darshan", RECORDS)
    empty = tmp_path / "empty.darshan"
    empty.write_bytes(b"")
    for arguments, words in (
        ((empty,), "none of the logs could be read"),
        ((log, "-o", tmp_path / "x.xlsx"), "ends in .parquet"),
        ((log, "--time-zone", "Mars"), "is no time zone"),
    ):
        found = run(*arguments)
        assert found.exit_code == 2
        assert words in found.stderr
    assert run(log, empty).exit_code == 0


@pytest.mark.parametrize(("seconds", "missing", "factor"), [(100, 0.0, 0.5), (90, 0.1, 10 / 18), (50, 0.5, None)])
def test_a_period_that_samples_cover_in_part(
    tmp_path: pathlib.Path, seconds: int, missing: float, factor: float | None
) -> None:
    """Of the servers are samples of so many of 100 s; the job has half of what they would have moved in all of it."""
    record = posix(7, 0, {BYTES_WRITTEN: 50, BYTES_READ: 50, WRITES: 1, READS: 1})
    log, series = log_at(tmp_path / "x.darshan", [record], start=START, end=START + 95), tmp_path / "io.csv"
    lines = [f"{START + at},5,5" for at in range(0, seconds, 5)]
    series.write_text("\n".join(["time,bytes_read,bytes_written", *lines, ""]))
    found = run(log, "--source", series, "--file-system", "x", "--json", "--strict", "--allow-missing")
    assert found.exit_code == 0, found.output
    (row,) = json.loads(found.stdout)
    assert row["fs_frac_missing"] == pytest.approx(missing)
    assert row["coverage_factor_bw"] == (None if factor is None else pytest.approx(factor))
    assert (f"no value for {missing:.3%} of the targets and steps" in row["_notes"]) is (missing > 0)
    assert ("too much for coverage factors" in row["_notes"]) is (factor is None)


def test_targets_are_refused_before_the_work(tmp_path: pathlib.Path) -> None:
    """The log is damaged, which would be told after the work."""
    log, folder = tmp_path / "x.darshan", tmp_path / "folder.csv"
    log.write_bytes(b"")
    folder.mkdir()
    for arguments, words in (
        (("-o", tmp_path / "none" / "jobs.h5"), f"jobs.h5: cannot be written: there is no folder {tmp_path / 'none'}"),
        (("-o", folder), "folder.csv: is a folder"),
        (("--join", "slurm", "--joined", tmp_path / "none" / "x.csv"), f"there is no folder {tmp_path / 'none'}"),
    ):
        found = run(log, *arguments)
        assert found.exit_code == 2
        assert words in found.stderr and "darshan" not in found.stderr


def test_sizes_are_printed_in_powers_of_1000() -> None:
    for value, unit, words in ((13_080.0, "MiB/s", "13.7 GB/s"), (51.5e9, "B", "51.5 GB"), (2.5, "GiB/s", "2.68 GB/s"),
                               (0.5, "GiB", "537 MB"), (3e9, "KiB", "3.07 TB"), (12.5, "B/s", "12.5 B/s"),
                               (3, "count", "3"), (1.5, "s", "1.5 s")):  # fmt: skip
        assert _words(value, unit) == words


@pytest.mark.parametrize(
    ("name", "text", "local"),
    [
        ("io.csv", "time,read [B/s]\n2018-01-28T00:00:00,5\n2018-01-28T00:00:05,7.5\n", True),
        ("io.csv", "time,read [B/s]\n2018-01-28T00:00:00-08:00,5\n2018-01-28T00:00:05-08:00,7.5\n", False),
        ("io.csv", "time,read [B/s]\n1517126400,5\n1517126405,7.5\n", False),
        ("jobs.sacct", "JobIDRaw|Start|End\n5|2018-01-28T00:00:00|2018-01-28T00:10:00\n", True),
        ("jobs.sacct", "JobIDRaw|Start|End\n5|2018-01-28T00:00:00Z|2018-01-28T00:10:00Z\n", False),
        ("mm.txt", texts.USAGE, True),
        ("osts.txt", texts.LFS_DF, False),
    ],
)
def test_local_times_are_refused_where_no_zone_is_known(
    tmp_path: pathlib.Path, name: str, text: str, local: bool
) -> None:
    log, source = log_at(tmp_path / "one.darshan", RECORDS), tmp_path / name
    source.write_text(text)
    found = run(log, "--source", source)
    assert found.exit_code == (2 if local else 0), found.output
    if local:
        (line,) = found.stderr.splitlines()
        assert str(source) in line and "--time-zone" in line
        (row,) = summarize([log], System(None, [source]), file_system="x").rows()
        assert "local times" in row["_notes"]
    assert run(log, "--source", source, "--time-zone", "America/Los_Angeles").exit_code == 0
    shown = CliRunner().invoke(main, ["analyze", "connector", "show", str(source)])
    assert shown.exit_code == 0 and ("taken for UTC; --time-zone" in shown.stderr) is local
    for zone in ("UTC", "America/Los_Angeles"):
        shown = CliRunner().invoke(main, ["analyze", "connector", "show", str(source), "--time-zone", zone])
        assert "taken for" not in shown.stderr


@pytest.mark.parametrize(("form", "local"), [("sqlite3", True), ("hdf5", False), ("h5lmt", False)])
def test_stamps_of_lmts_databases_are_local(tmp_path: pathlib.Path, form: str, local: bool) -> None:
    pytest.importorskip("h5py")
    sample = shared_data("tokio/samples") / f"snx11025_2018-01-28.{form}"
    found = run(log_at(tmp_path / "one.darshan", RECORDS), "--source", sample)
    assert (found.exit_code, "--time-zone" in found.stderr) == ((2, True) if local else (0, False))


def test_notes_are_counted_on_stderr_and_strict_exits_with_1(tmp_path: pathlib.Path) -> None:
    osts, table = tmp_path / "osts.txt", tmp_path / "jobs.parquet"
    osts.write_text(texts.LFS_DF[: len(texts.LFS_DF) // 2])
    logs = [log_at(tmp_path / f"{job}.darshan", RECORDS, job_id=job) for job in (1, 2)]
    for more in (("-o", table), ("--json",), ()):
        found = run(*logs, "--source", osts, "--file-system", "snx1", *more)
        assert found.exit_code == 0
        assert "mpiio-ext: notes about servers: 2 missing" in found.stderr
        assert "mpiio-ext: notes about lfs-df: 2 partial" in found.stderr
        assert run(*logs, "--source", osts, *more, "--strict").exit_code == 1
    assert table.exists()


def test_missing_sources_may_be_no_error_and_damaged_ones_stay_one(tmp_path: pathlib.Path) -> None:
    log, osts, cut = log_at(tmp_path / "1.darshan", RECORDS), tmp_path / "osts.txt", tmp_path / "cut.darshan"
    osts.write_text(texts.LFS_DF)
    cut.write_bytes(log.read_bytes()[:40])
    for arguments, strict, allowed in (
        ((log, "--source", osts, "--file-system", "snx1"), 1, 0),  # neither servers nor jobs
        ((log,), 1, 0),  # a file system that nobody knows
        ((log, cut), 1, 1),
        ((log, "--source", tmp_path / "none.txt"), 1, 1),
    ):
        assert [run(*arguments, *more).exit_code for more in ((), ("--strict",), ("--strict", "--allow-missing"))] == [
            0, strict, allowed], arguments  # fmt: skip
    osts.write_text(texts.LFS_DF[: len(texts.LFS_DF) // 2])
    damaged = (log, "--source", osts, "--file-system", "snx1", "--strict", "--allow-missing")
    assert run(*damaged).exit_code == 1
    alone = run(log, "--allow-missing")
    assert alone.exit_code == 2 and "give both" in alone.stderr
    assert not Note("topology", "partial", "2 nodes are not in the map").damage and Note("lmt", "skipped", "").damage


def test_a_log_that_was_cut_has_one_row_that_the_whole_one_replaces(tmp_path: pathlib.Path) -> None:
    real = shared_data("tokio/samples") / "sample-goodost.darshan"
    log, whole = tmp_path / real.name, real.read_bytes()
    sizes = [size for size in range(len(whole) // 4, len(whole), len(whole) // 16) if _parts(log, whole[:size]) == 1]
    assert sizes, "no cut leaves a part that can be read"
    table = tmp_path / "jobs.parquet"
    for size in sizes:
        table.unlink(missing_ok=True)
        for data, parts in ((whole[:size], 1), (whole, 0), (whole[:size], 0), (whole, 0)):
            log.write_bytes(data)
            assert run(log, "-o", table).exit_code == 0
            found = files.read(table)
            assert found.table.num_rows == 1
            assert len([note for note in found.notes.to_pylist() if note["source"] == "darshan"]) == parts
            assert ("darshan partial" in found.rows()[0]["_notes"]) is bool(parts)
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / log.name).write_bytes(whole[: sizes[0]])
    for logs in ((log, folder / log.name), (folder / log.name, log)):
        (row,) = summarize(logs).rows()
        assert "darshan partial" not in row["_notes"]


def _parts(log: pathlib.Path, data: bytes) -> int:
    """Return how many notes say that a log is there in part; 0 where it cannot be read, or is whole."""
    log.write_bytes(data)
    found = summarize([log])
    return len([note for note in found.notes.to_pylist() if note["status"] == "partial"]) if found.rows() else 0


def test_a_file_system_that_the_site_does_not_have_is_refused(tmp_path: pathlib.Path) -> None:
    log, site = log_at(tmp_path / "one.darshan", RECORDS), tmp_path / "site.json"
    systems = {"home": {"mounts": ["/home"], "backend": "snx7"}, "work": {"mounts": ["/work"]}}
    site.write_text(json.dumps({"file_systems": systems}))
    for name in ("work", "snx7"):
        assert run(log, "--site", site, "--file-system", name).exit_code == 0
    found = run(log, "--site", site, "--file-system", "wrk")
    assert found.exit_code == 2
    (line,) = found.stderr.splitlines()
    assert "no file system 'wrk'" in line and "home (snx7), work" in line
    assert run(log, "--file-system", "wrk").exit_code == 0, "names in sources are as they are"


def test_the_reader_gives_summaries_beside_its_tables(tmp_path: pathlib.Path) -> None:
    log = log_at(tmp_path / "one.darshan", RECORDS)
    found = read_logs([log.name], str(tmp_path))
    found.tables["summary"].validate(full=True)
    (row,) = found.tables["summary"].to_pylist()
    assert row["log_id"] == found.tables["darshan_job"]["log_id"][0].as_py()
    assert (row["posix_bytes_written"], row["posix_records_written"], row["stdio_bytes_read"]) == (150, 2, None)
    assert (row["unique_time"], row["shared_time"]) == (2.5, None)
