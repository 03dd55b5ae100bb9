"""Logs of programs that use DAOS: made ones, whose counters PyDarshan reads, too."""

from __future__ import annotations

import pathlib
import struct
import warnings
from typing import Any

import pytest

from mpiio_ext.analytics.diagnosis import diagnose
from mpiio_ext.analytics.sources.darshan import convert
from support.darshan_logs import Job, make_log, posix

DFS, DAOS = 16, 17
JOB = Job(processes=4, start=1_700_000_000, end=1_700_000_010)
#: Counters of DFS: opens, bytes read and written, requests of 1 to 4 MiB each way; times.
MIB = 1 << 20
COUNTERS = {0: 1, 14: 3 * MIB, 15: 8 * MIB, 24: 3, 34: 8}
TIMES = {1: 1.0, 5: 2.0, 2: 3.0, 6: 9.0, 8: 0.5, 9: 4.0, 10: 0.25}


def record(file: int, rank: int, counters: dict[int, int], sizes: tuple[int, int] = (52, 32)) -> bytes:
    numbers = [counters.get(place, 0) for place in range(sizes[0])]
    times = [TIMES.get(place, 0.0) for place in range(15)]
    return struct.pack(f"<Qq{sizes[0]}q15d", file, rank, *numbers, *times) + bytes(sizes[1])


def converted(
    tmp_path: pathlib.Path, modules: dict[str | int, tuple[int, bytes]]
) -> tuple[Any, dict[str, Any], list[dict[str, Any]]]:
    (tmp_path / "a.darshan").write_bytes(make_log(JOB, {7: "/pool/out", 8: "/scratch/other"}, modules))
    found = convert(["a.darshan"], str(tmp_path))
    (job,) = found.tables["darshan_job"].to_pylist()
    return found.outcomes[0], job, found.tables["darshan_file"].to_pylist()


def test_files_of_dfs_are_counted(tmp_path: pathlib.Path) -> None:
    """Of two ranks that write 8 MiB each; beside a file of POSIX."""
    parts = b"".join(record(7, rank, COUNTERS) for rank in (0, 1))
    outcome, job, files = converted(tmp_path, {"POSIX": (4, posix(8, 0, {0: 1, 4: 2, 15: 100})), DFS: (1, parts)})
    assert (outcome.status, outcome.rows["darshan_file"]) == ("whole", 2) and not job["partial"]
    (row,) = [each for each in files if each["file"] == "/pool/out"]
    assert (row["bytes_read"], row["bytes_written"], row["reads"], row["writes"]) == (6 * MIB, 16 * MIB, 6, 16)
    assert (row["ranks"], row["opens"], row["fs_type"], row["write_size_1m_4m"]) == (2, 2, "daos", 16)
    assert (row["write_start"] - JOB.start, row["write_end"] - JOB.start) == (3, 9) and row["write_time"] == 8
    assert (row["root_bytes_written"], row["slowest_rank_time"]) == (8 * MIB, None)
    assert (job["bytes_written"], job["writes"], job["files_written"]) == (16 * MIB + 100, 18, 2)
    assert job["write_end"] - JOB.start == 9
    assert diagnose(job, files, "write").facts[0].value == pytest.approx(16 * MIB, rel=1e-4)
    assert "DFS" not in " ".join(diagnose(job, files).unknown)


def test_counters_of_damaged_logs_are_any_numbers(tmp_path: pathlib.Path) -> None:
    wild = COUNTERS | {14: 1 << 62, 49: 1 << 40, 50: 1 << 40, 51: 1 << 40}
    parts = b"".join(record(7, rank, wild) for rank in (0, 1, -1))
    outcome, job, (row,) = converted(tmp_path, {DFS: (1, parts)})
    assert outcome.status == "whole"
    assert (row["bytes_read"], job["bytes_read"], row["slowest_rank"]) == ((1 << 63) - 1, (1 << 63) - 1, None)


def test_pydarshan_reads_the_same(tmp_path: pathlib.Path) -> None:
    darshan = pytest.importorskip("darshan")
    _, _, (row,) = converted(tmp_path, {DFS: (1, record(7, 2, COUNTERS))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = darshan.DarshanReport(str(tmp_path / "a.darshan"), read_all=False)
        report.mod_read_all_records("DFS")
    frame = report.records["DFS"].to_df()
    counters, times = frame["counters"].iloc[0], frame["fcounters"].iloc[0]
    assert (row["bytes_written"], row["opens"]) == (counters["DFS_BYTES_WRITTEN"], counters["DFS_OPENS"])
    assert row["writes"] == counters["DFS_SIZE_WRITE_1M_4M"] and row["write_time"] == times["DFS_F_WRITE_TIME"]
    assert row["write_end"] - JOB.start == times["DFS_F_WRITE_END_TIMESTAMP"]


@pytest.mark.parametrize(
    ("objects", "status"),
    [(16, "whole"), (40, "partial")],  # the objects of the files, and others beside them
)
def test_objects_below_files_are_not_counted_twice(objects: int, status: str, tmp_path: pathlib.Path) -> None:
    below = record(9, -1, {9: 1, 25: objects * MIB, 44: objects}, (64, 48))
    above = record(7, -1, {**COUNTERS, 14: 0, 15: 16 * MIB})
    outcome, job, files = converted(tmp_path, {DFS: (1, above), DAOS: (1, below)})
    assert [each["bytes_written"] for each in files] == [16 * MIB] and outcome.status == status
    assert files[0]["ranks"] == 4 and files[0]["root_bytes_written"] is None
    told = " ".join(diagnose(job, files).unknown)
    assert ("DAOS" in told) == ("objects" in outcome.reason) == (status == "partial")


def test_objects_alone(tmp_path: pathlib.Path) -> None:
    below = record(9, -1, {9: 1, 25: 4 * MIB, 44: 4}, (64, 48))
    outcome, job, files = converted(tmp_path, {DAOS: (1, below)})
    assert outcome.status == "whole" and (files[0]["bytes_written"], job["bytes_written"]) == (4 * MIB, 4 * MIB)


@pytest.mark.parametrize("region", [(7, record(7, 0, COUNTERS)), (1, record(7, 0, COUNTERS)[:-5])])
def test_what_cannot_be_counted_is_said(region: tuple[int, bytes], tmp_path: pathlib.Path) -> None:
    """Another version of the module, a record that is cut."""
    outcome, job, files = converted(tmp_path, {"POSIX": (4, posix(8, 0, {0: 1, 4: 2, 15: 100})), DFS: region})
    assert outcome.status == "partial" and "DAOS is not counted" in outcome.reason and job["partial"]
    assert len(files) == 1 and "the modules of DAOS do not count all of them" in " ".join(diagnose(job, files).unknown)
