"""The page of recordings whose truth is known: who ran, how long, who moved the bytes, and who did beside."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import mpiio_ext
from mpiio_ext.analytics.run.gather import of_folder
from mpiio_ext.analytics.run.page import page
from mpiio_ext.common.recordings import STATISTICS, launch_of, note_launch
from mpiio_ext.pioneer.darshan import recordings
from support.recorded_calls import Call, record

SECOND = 10**9
SIZE = 1 << 20


def writes(names: list[int], start_s: float, seconds: float, *, count: int = 20, within: str = "") -> list[Call]:
    """Return writes that go to files in turn, one behind the other; `within`: each in such a call of MPI-IO."""
    each, depth = int(seconds * SECOND / count), int(bool(within))
    found = [Call(operation="open", start=int(start_s * SECOND) - 2000, file=name, result=3) for name in set(names)]
    for number in range(count):
        file, at = names[number % len(names)], int(start_s * SECOND) + number * each
        place = {"file": file, "offset": number // len(names) * 2 * SIZE, "size": SIZE}
        found.append(Call(operation="pwrite", start=at, duration=each - 10, depth=depth, result=SIZE, **place))
        if within:
            found.append(Call(operation=within, start=at, duration=each - 5, **place))
    return found


def facts(document: dict[str, Any]) -> dict[str, str]:
    return dict(document["facts"])


def test_a_run_lasts_as_long_as_its_program(tmp_path: pathlib.Path) -> None:
    """Two seconds of I/O after five of work, and thirteen more afterwards: 10 %, not all of it."""
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 0 1")
    assert facts(of_folder(tmp_path))["run time"] == "2 s"
    (head,) = recordings.heads([tmp_path])
    began_ns = head.started_ns - 5 * SECOND
    note_launch(tmp_path, began_ns)
    assert launch_of(tmp_path) == (began_ns, None)  # killed: its end is that of the last call
    assert facts(of_folder(tmp_path))["run time"] == "7 s"
    note_launch(tmp_path, began_ns, began_ns + 20 * SECOND)
    document = of_folder(tmp_path)
    assert (facts(document)["run time"], facts(document)["time in I/O"]) == (
        "20 s", "2 s (10 % of the run time), of the rank with most of it")  # fmt: skip
    chart = next(one for one in document["charts"] if one["name"] == "bandwidth")
    moved = [at for at, rate in zip(chart["data"]["x"], chart["data"]["series"][0]["y"], strict=True) if rate > 0]
    assert 4.8 < moved[0] < 5.2 and 6.7 < moved[-1] < 7.1
    (tmp_path / "launch.json").write_text("[1")
    assert launch_of(tmp_path) == (None, None)


def test_processes_without_mpi_side_by_side(tmp_path: pathlib.Path) -> None:
    """What runs at the same time are several, what follows each other is one: no rank has more time than the run."""
    for start_s, seconds in ((0.0, 2.0), (1.0, 2.0), (5.0, 1.0)):
        record(tmp_path, ["/d/a"], writes([1], start_s, seconds))
    document = of_folder(tmp_path)
    assert facts(document)["processes"] == "2" and facts(document)["read, written"] == "0 B, 62.9 MB"
    assert document["files"][0]["time_s"] <= 6.001
    levels = next(one for one in document["charts"] if one["kind"] == "ranks")["data"]["levels"]["writes"]
    assert [any(row) for row in levels] == [True, True]


def test_programs_beside_the_one_with_mpi_are_named(tmp_path: pathlib.Path) -> None:
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 0 1")
    assert not any("ran beside" in text for text in of_folder(tmp_path)["notices"])
    record(tmp_path, ["/d/b", "/d/ompi.node/x", "/proc/self/maps"], writes([1, 2, 3], 0.0, 2.0, count=9))
    document = of_folder(tmp_path)
    (notice,) = (text for text in document["notices"] if "ran beside" in text)
    assert "(3.15 MB written)" in notice and "are not in these numbers" in notice
    assert facts(document)["read, written"] == "0 B, 21 MB" and "beside the one with it" in page(document)


@pytest.mark.parametrize("thread", [False, True], ids=["process", "thread"])
def test_what_delegates_write_is_the_programs(thread: bool, tmp_path: pathlib.Path) -> None:
    """Two ranks write as much each; a process that nobody records does it for them, or a thread of rank 0."""
    name = "/d/run/small.dat"
    for rank in range(2):
        calls = [one for one in writes([1], 0.1, 2.0, within="MPI_File_write_at") if one.operation != "pwrite"]
        calls += [one for one in writes([1], 0.1, 2.0, count=4) if thread and rank == 0]
        calls.insert(0, Call(operation="MPI_File_open", start=1000, comm_size=2))
        record(tmp_path, [name], calls, begin=f"RANK {rank} 2")
    line = {"kind": "file", "path": "ufs:small.dat", "ranks": 2, "independent_writes": 40, "delegated_writes": 40}
    (tmp_path / STATISTICS).write_text(json.dumps(line) + "\n")
    document = of_folder(tmp_path)
    (row,) = document["files"]
    assert (row["written_bytes"], row["who"], row["opens"]) == (40 * SIZE, "all 2 ranks", 2)
    assert facts(document)["read, written"] == "0 B, 41.9 MB"
    assert row["time_s"] == pytest.approx(2.0, rel=0.01) and document["findings"] == []
    assert "rank 0" not in document["sentence"] and "(2 s of 2.1 s)" in document["sentence"]
    (notice,) = document["notices"]
    assert f"carried out the accesses to `{name}`" in notice
    if not thread:  # nothing but the statistics tells the thread, and a killed run has none; bytes tell the process
        (tmp_path / STATISTICS).unlink()
        assert any("carried out the accesses" in text for text in of_folder(tmp_path)["notices"])
        assert not any(one["name"] == "bandwidth" for one in document["charts"])


def test_opens_are_the_calls_of_the_ranks_not_of_one_of_them(tmp_path: pathlib.Path) -> None:
    """All four ranks open a file 300 times by MPI-IO; below it, rank 0 opens and syncs it for them all."""
    for rank in range(4):
        calls = []
        for number in range(300):
            at = 10**7 * number
            calls.append(Call(operation="MPI_File_open", start=at, duration=6 * 10**6, comm_size=4, mode=9))
            if rank == 0:
                calls += [Call(operation=name, start=at + 10**6 * step, duration=10**6, depth=1, result=3 * (step < 2))
                          for step, name in enumerate(("open", "open", "fsync"), 1)]  # fmt: skip
            calls.append(Call(operation="pwrite", start=at + 6 * 10**6 + 200, depth=1, offset=rank, size=1, result=1))
            calls.append(Call(operation="MPI_File_write_at", start=at + 6 * 10**6, duration=2000, offset=rank, size=1))
            calls.append(Call(operation="MPI_File_close", start=at + 7 * 10**6, duration=10**6))
        record(tmp_path, ["/d/a"], calls, begin=f"RANK {rank} 4")
    document = of_folder(tmp_path)
    assert "opens of `a`, 300 times by each rank" in document["sentence"], document["sentence"]
    told = [finding["title"] for finding in document["findings"]]
    assert not any("rank 0" in title or "syncs" in title for title in told), told


def test_percent_are_of_the_run_time_and_of_the_busiest_rank(tmp_path: pathlib.Path) -> None:
    """In the first sentence, in the table, and in the parts of that time."""
    for rank, seconds in enumerate((2.0, 0.5)):
        record(tmp_path, ["/d/a"], writes([1], 0.0, seconds), begin=f"RANK {rank} 2")
    note_launch(tmp_path, (began := recordings.heads([tmp_path])[0].started_ns), began + 4 * SECOND)
    document = of_folder(tmp_path)
    assert document["sentence"].startswith("Your program spent 50 % of its time in I/O")
    assert facts(document)["time in I/O"].startswith("2 s (50 % of the run time)")
    assert sum(row["busiest_s"] for row in document["parts"][1:]) == pytest.approx(2.0, rel=0.01)
    assert document["spent_on"] == "Of that time: the file system 100 %."


def test_what_the_program_asked_for_is_not_what_reached_the_file_system(tmp_path: pathlib.Path) -> None:
    """Both ranks write large pieces in turn, collectively; below, rank 0 alone writes small ones, here and there."""
    for rank in range(2):
        calls = []
        for number in range(8):
            at = number * SECOND // 10
            place = {"offset": (2 * number + rank) * SIZE, "size": SIZE}
            for part in range(8 * (rank == 0)):
                below = {"offset": (16 * number + 5 * part % 8) * SIZE // 4, "size": SIZE // 8, "result": SIZE // 8}
                calls.append(Call(operation="pwrite", start=at + part * 10**6, duration=10**5, depth=1, **below))
            calls.append(Call(operation="MPI_File_write_at_all", start=at, duration=SECOND // 12, **place))
        record(tmp_path, ["/d/a"], calls, begin=f"RANK {rank} 2")
    (row,) = of_folder(tmp_path)["files"]
    assert row["asked"] == "written: 16 collective calls of 1 MiB each, strided"
    assert row["who"] == "all 2 ranks" and row["asked_written_bytes"] == 16 * SIZE
    assert row["reached"] == "written: 64 requests, 100 % of 100 KiB to 1 MiB, random places"
    line = {"kind": "file", "path": "/d/a", "ranks": 2, "collective_writes": 16, "write_requests": 40,
            "write_request_bytes": 40 * SIZE}  # fmt: skip
    (tmp_path / STATISTICS).write_text(json.dumps(line) + "\n")
    document = of_folder(tmp_path)
    assert document["files"][0]["reached"].startswith("40 requests of 1 MiB on average, some of them through mapped")
    assert document["files"][0]["asked"] == row["asked"] and document["findings"] == []
    assert "16.8 MB" in facts(document)["read, written"]


def test_waiting_for_a_cpu_is_no_cause(tmp_path: pathlib.Path) -> None:
    """Collective calls that take longer than their requests, on a machine with room, and on one without."""
    for rank in range(2):
        calls = writes([1], 0.1, 1.0, within="MPI_File_write_at_all")
        calls = [dataclasses.replace(call, duration=call.duration * (10 if call.depth == 0 else 1)) if call.size > 0
                 else call for call in calls]  # fmt: skip
        calls = [dataclasses.replace(call, start=call.start * 10, offset=call.offset + rank * SIZE) for call in calls]
        record(tmp_path, ["/d/a"], calls, begin=f"RANK {rank} 2")
    quiet = of_folder(tmp_path)
    assert "no rank was in a request" in quiet["sentence"], quiet["sentence"]
    for path in tmp_path.glob("*.mpioxrec"):
        data = bytearray(path.read_bytes())
        header = np.frombuffer(data, recordings._HEADER, 1)
        for name, value in (("stopped", header["started"][0] + 11 * SECOND), ("queued", [1, 8 * SECOND + 1])):
            header[name] = value
        path.write_bytes(data)
    loaded = of_folder(tmp_path)
    assert loaded["findings"] == []
    assert "while a rank waited for a CPU for 73 % of the time; nothing to change." in loaded["sentence"]
    assert sum("waited for a CPU for 8 s of 11 s (73 %)" in notice for notice in loaded["notices"]) == 1
    assert not any("CPU" in notice for notice in quiet["notices"])
    assert ", 8 s (of 11 s " in facts(loaded)["CPU time of a rank, waiting for a CPU"]


def test_what_the_library_has_chosen_is_not_advised_against(tmp_path: pathlib.Path) -> None:
    """Small collective calls that it carries out as they are; a program that has asked for that is told to let it."""
    for rank in range(2):
        calls = writes([1], 0.1, 2.0, count=400, within="MPI_File_write_at_all")
        small = [dataclasses.replace(one, size=64, offset=one.offset + 64 * rank, result=64 if one.depth else 0)
                 if "write" in one.operation else one for one in calls]  # fmt: skip
        record(tmp_path, ["/d/a"], small, begin=f"RANK {rank} 2")
    line: dict[str, Any] = {"kind": "file", "path": "/d/a", "ranks": 2, "collective_writes": 400}
    for hints in ({}, {"romio_cb_write": {"value": "disable", "source": "MPI_Info"}}):
        (tmp_path / STATISTICS).write_text(json.dumps(line | {"hints": hints}) + "\n")
        document = of_folder(tmp_path)
        assert "64 B collective writes to `a`" in document["sentence"], document["sentence"]
        steps = " ".join(step for finding in document["findings"] for step in finding["advice"])
        assert ("mpiox_exchange=two_phase" in steps) == bool(hints), steps


def test_files_in_turn_take_the_time_together(tmp_path: pathlib.Path) -> None:
    """A rank writes to four open files in turn, for all of its four seconds."""
    record(tmp_path, [f"/d/{name}" for name in "abcd"], writes([1, 2, 3, 4], 0.1, 4.0, count=80), begin="RANK 0 1")
    document = of_folder(tmp_path)
    assert [row["time_s"] for row in document["files"]] == pytest.approx([1.0] * 4, rel=0.01)
    assert "83.9 MB were written at 21" in document["sentence"]


def test_a_run_that_ended_badly_may_be_whole(tmp_path: pathlib.Path) -> None:
    """What was recorded until the end is certain, whatever the exit status; of a rank that was killed it is not."""
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 0 2")
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 1 2")
    document = of_folder(tmp_path, ended="the program ended with status 3")
    assert document["sentence"].startswith("Your program spent") and document["lacks"] == []
    text = page(document)
    told = "he program ended with status 3; recorded until then: 0 B read, 41.9 MB written, in 2 s"
    assert f"T{told}." in text and "not whole" not in text
    (tmp_path / "io.html").write_text(text, encoding="utf-8")
    assert f"t{told}" in mpiio_ext.run_report(tmp_path / "io.html").lines()
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 2 4", end="KILL")
    assert of_folder(tmp_path)["lacks"][0] == "rank 2: its recording has no end: it was killed"
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 3 4", end="KILL")
    document = of_folder(tmp_path)
    assert document["lacks"] == ["ranks 2, 3, each: its recording has no end: it was killed"]
    assert document["sentence"].startswith("As far as was recorded")
    assert not any("memory" in text for text in document["unknown"])
