"""mpiio-ext analyze summarize-job: what it prints and writes, what it refuses, and its exit status."""

from __future__ import annotations

import csv
import json
import pathlib
from typing import Any

import pytest
from click.testing import CliRunner

from mpiio_ext.analytics.cli_summarize import _words
from mpiio_ext.analytics.jobs import files
from mpiio_ext.analytics.jobs.summarize import summarize
from mpiio_ext.analytics.miner import IOMiner
from mpiio_ext.analytics.tools.system import Note, System
from mpiio_ext.cli import main
from support import fuzz
from support import source_texts as texts
from support.darshan_logs import posix
from support.expected import Expected
from support.job_logs import BYTES_READ, BYTES_WRITTEN, READS, RECORDS, START, WRITES, log_at
from support.parts import require
from support.traces import shared_data

require("darshan")


SYSTEMS = {"home": {"mounts": ["/home"], "backend": "snx7"}, "work": {"mounts": ["/work"]}}


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["analyze", "summarize-job", *map(str, arguments)], catch_exceptions=False)


def refusal(*arguments: object) -> str:
    """Return the line of a command that is refused."""
    found = run(*arguments)
    assert found.exit_code == 2 and not found.stdout, found.output
    return str(found.stderr.rpartition("Error: ")[2])


def test_the_command_joins_rows_with_a_store(tmp_path: pathlib.Path, expected: Expected) -> None:
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
        "1.darshan": "1.darshan",
        "2.darshan": "2.darshan",
        "3.darshan": None,
    }
    assert rows["1.darshan"]["bytes_written"] == rows["1.darshan"]["darshan_tot_bytes_written_posix"] == 150
    assert f"1 of 3 rows have no counterpart in darshan_job of {setup}" in found.stderr
    files_of = run(
        *logs[:2],
        "--join",
        "darshan_file",
        "--setup",
        setup,
        "--joined",
        tmp_path / "f.csv",
        "-o",
        tmp_path / "jobs.parquet",
    )
    assert files_of.exit_code == 0 and not files_of.stdout, files_of.output
    with (tmp_path / "f.csv").open() as text:
        assert sorted((row["_log"], row["file"]) for row in csv.DictReader(text)) == [
            (f"{job}.darshan", f"/scratch1/{name}") for job in (1, 2) for name in "ab"
        ]
    assert files.read(tmp_path / "jobs.parquet").table.num_rows == 2
    expected(
        [
            refusal(log, *words)
            for log, *words in (
                (logs[0], "--join", "lmt", "--setup", setup),
                (logs[0], "--join", "slurm", "--setup", tmp_path / "none.json"),
                (logs[0], "--joined", tmp_path / "x.csv"),
            )
        ]
    )


def test_the_command(tmp_path: pathlib.Path, expected: Expected) -> None:
    log = log_at(tmp_path / "one.darshan", RECORDS, start=START, end=START + 9)
    found = run(log)
    expected({"status": found.exit_code, "text": found.stdout, "errors": found.stderr})
    (row,) = json.loads(run(log, "--json").stdout)
    entire = run(log, "--all").stdout
    known = {name for name, value in row.items() if name.startswith("darshan_") and value is not None}
    assert all(f"  {name.removeprefix('darshan_')} " in entire for name in known)
    assert f"{len(known) - 8} more columns: --all" in found.stdout and "--all" not in entire
    assert row["darshan_tot_bytes_written_posix"] == 150
    outputs = [tmp_path / f"jobs{form}" for form in (".parquet", ".csv", ".sqlite")]
    more = log_at(tmp_path / "two.darshan", RECORDS, start=START + 100, end=START + 109, job_id=43)
    for each in (log, more, log):
        assert run(each, *(part for path in outputs for part in ("-o", path))).exit_code == 0
    for path in outputs:
        assert [each["_jobid"] for each in files.read(path).rows()] == [42, 43]


def test_the_command_refuses(tmp_path: pathlib.Path, expected: Expected) -> None:
    """Targets before the work: the log is damaged, which the command would tell after the work."""
    log, empty, folder = log_at(tmp_path / "one.darshan", RECORDS), tmp_path / "empty.darshan", tmp_path / "folder.csv"
    empty.write_bytes(b"")
    folder.mkdir()
    (tmp_path / "site.json").write_text(json.dumps({"file_systems": SYSTEMS}))
    every = (
        (empty,),
        (log, "-o", tmp_path / "x.xlsx"),
        (log, "--time-zone", "Mars"),
        (empty, "-o", tmp_path / "none" / "jobs.h5"),
        (empty, "-o", folder),
        (empty, "--join", "slurm", "--joined", tmp_path / "none" / "x.csv"),
        (log, "--allow-missing"),
        (log, "--site", tmp_path / "site.json", "--file-system", "wrk"),
    )
    expected([refusal(*words) for words in every])
    for name in ("work", "snx7"):
        assert run(log, "--site", tmp_path / "site.json", "--file-system", name).exit_code == 0
    assert run(log, "--file-system", "wrk").exit_code == 0, "names in sources are as they are"
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


def test_sizes_are_printed_in_powers_of_1000() -> None:
    for value, unit, words in (
        (13_080.0, "MiB/s", "13.7 GB/s"),
        (51.5e9, "B", "51.5 GB"),
        (2.5, "GiB/s", "2.68 GB/s"),
        (0.5, "GiB", "537 MB"),
        (3e9, "KiB", "3.07 TB"),
        (12.5, "B/s", "12.5 B/s"),
        (3, "count", "3"),
        (1.5, "s", "1.5 s"),
    ):
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
    assert shown.exit_code == 0 and ("read as UTC; --time-zone" in shown.stderr) is local
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
            0,
            strict,
            allowed,
        ], arguments
    osts.write_text(texts.LFS_DF[: len(texts.LFS_DF) // 2])
    damaged = (log, "--source", osts, "--file-system", "snx1", "--strict", "--allow-missing")
    assert run(*damaged).exit_code == 1
    partial = Note(source="topology", status="partial", what="2 nodes are not in the map")
    assert not partial.damage and Note(source="lmt", status="skipped", what="").damage


def test_a_log_that_was_cut_has_one_row_that_the_whole_one_replaces(tmp_path: pathlib.Path) -> None:
    real = shared_data("tokio/samples") / "sample-goodost.darshan"
    log, whole = tmp_path / real.name, real.read_bytes()
    sizes = [size for size in range(len(whole) // 4, len(whole), len(whole) // 16) if _parts(log, whole[:size]) == 1]
    assert sizes, "no cut leaves a part that can be read"
    if not fuzz.all_examples():
        sizes = [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
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
