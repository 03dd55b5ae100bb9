"""The page of recordings whose truth is known: who ran, how long, who moved the bytes, and who did beside."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
from typing import Any

import numpy as np
import pytest

import mpiio_ext
from mpiio_ext.analytics.run.gather import of_folder
from mpiio_ext.analytics.run.page import page
from mpiio_ext.common.endings import Ending, Failure, note_failure
from mpiio_ext.common.recordings import STATISTICS, launch_of, note_launch
from mpiio_ext.pioneer.darshan import recordings
from support.recorded_calls import Call, Line, Told, record

SECOND = 10**9
SIZE = 1 << 20
SMALL = 40_000  # more than few bytes a call


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
    assert facts(document)["run time"] == "20 s" and facts(document)["time in I/O"].startswith("2 s (10 %")
    chart = next(one for one in document["charts"] if one["name"] == "bandwidth")
    moved = [at for at, rate in zip(chart["data"]["x"], chart["data"]["series"][0]["y"], strict=True) if rate > 0]
    assert 4.8 < moved[0] < 5.2 and 6.7 < moved[-1] < 7.1
    (tmp_path / "launch.json").write_text("[1")
    assert launch_of(tmp_path) == (None, None)


@pytest.mark.parametrize("folder", ["/d", "/dev/shm/d", "/opt/d", "/var/tmp/d"])
def test_bytes_of_figures_are_those_of_the_files(folder: str, tmp_path: pathlib.Path) -> None:
    """Also of a run that is shorter than a bin of its recording; and files may lie in memory, or in any folder."""
    record(tmp_path, [f"{folder}/a"], writes([1], 0.001, 0.03), begin="RANK 0 1")
    began_ns = recordings.heads([tmp_path])[0].started_ns - SECOND // 140
    note_launch(tmp_path, began_ns, began_ns + SECOND // 25)
    document = of_folder(tmp_path)
    assert facts(document)["read, written by the program"] == "0 B, 21 MB" and "too little" not in document["sentence"]
    (row,) = document["files"]
    assert row["written_bytes"] == 20 * SIZE
    for chart in document["charts"][1:]:
        rows = mpiio_ext.run_report(tmp_path).figures[chart["name"]].rows()
        if chart["kind"] == "steps":
            assert sum(one["written_bytes_per_s"] for one in rows) * chart["data"]["step"] == pytest.approx(20 * SIZE)
        elif chart["name"] == "request-sizes":
            assert {one["requests_of"]: one["writes"] for one in rows if one["writes"]} == {"100 KiB to 1 MiB": 20}
        elif chart["name"] == "places":
            assert len(rows) == 20 and all(one["offset_bytes"] % SIZE == 0 for one in rows)
        else:
            assert sum(one["bytes"] for one in rows) == 20 * SIZE


def test_processes_without_mpi_side_by_side(tmp_path: pathlib.Path) -> None:
    """What runs at the same time are several, what follows each other is one: no rank has more time than the run."""
    for start_s, seconds in ((0.0, 2.0), (1.0, 2.0), (5.0, 1.0)):
        record(tmp_path, ["/d/a"], writes([1], start_s, seconds))
    document = of_folder(tmp_path)
    assert facts(document)["processes"] == "2" and facts(document)["read, written by the program"] == "0 B, 62.9 MB"
    assert document["files"][0]["time_s"] <= 6.001
    (notice,) = document["notices"]
    assert notice.startswith("No MPI-IO here: ") and "doctor" not in notice
    levels = next(one for one in document["charts"] if one["kind"] == "ranks")["data"]["levels"]["writes"]
    assert [any(row) for row in levels] == [True, True]


def test_programs_beside_the_one_with_mpi_are_named(tmp_path: pathlib.Path) -> None:
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 0 1")
    assert not any(" written)" in text for text in of_folder(tmp_path)["notices"])
    record(tmp_path, ["/d/b"], writes([1], 0.0, 2.0, count=9))
    document = of_folder(tmp_path)
    (notice,) = (text for text in document["notices"] if "(9.44 MB written)" in text)
    assert facts(document)["read, written by the program"] == "0 B, 21 MB"
    assert notice.rpartition("`")[2] in page(document)


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
    assert (row["written_bytes"], row["who"], row["opens"]) == (40 * SIZE, "both ranks", 2)
    assert facts(document)["read, written by the program"] == "0 B, 41.9 MB"
    assert row["time_s"] == pytest.approx(2.0, rel=0.01) and document["findings"] == []
    assert "rank 0" not in document["sentence"] and "(2 s of 2.1 s)" in document["sentence"]
    (notice,) = document["notices"]
    assert f"`{name}`" in notice
    if not thread:  # nothing but the statistics tells the thread, and a killed run has none; bytes tell the process
        (tmp_path / STATISTICS).unlink()
        assert any(f"`{name}`" in text for text in of_folder(tmp_path)["notices"])
        assert not any(one["name"] == "bandwidth" for one in document["charts"])


def test_opens_are_the_calls_of_the_ranks_not_of_one_of_them(tmp_path: pathlib.Path) -> None:
    """All four ranks open a file 300 times by MPI-IO; below it, rank 0 opens and syncs it for them all."""
    for rank in range(4):
        calls = []
        for number in range(300):
            at = 10**7 * number
            calls.append(Call(operation="MPI_File_open", start=at, duration=6 * 10**6, comm_size=4, mode=9))
            if rank == 0:
                calls += [
                    Call(operation=name, start=at + 10**6 * step, duration=10**6, depth=1, result=3 * (step < 2))
                    for step, name in enumerate(("open", "open", "fsync"), 1)
                ]
            calls.append(Call(operation="pwrite", start=at + 6 * 10**6 + 200, depth=1, offset=rank, size=1, result=1))
            calls.append(Call(operation="MPI_File_write_at", start=at + 6 * 10**6, duration=2000, offset=rank, size=1))
            calls.append(Call(operation="MPI_File_close", start=at + 7 * 10**6, duration=10**6))
        record(tmp_path, ["/d/a"], calls, begin=f"RANK {rank} 4")
    document = of_folder(tmp_path)
    assert "`a` (300 times" in document["sentence"], document["sentence"]
    told = [finding["title"] for finding in document["findings"]]
    assert not any("rank 0" in title or "syncs" in title for title in told), told


def test_time_of_opening_is_that_of_the_rank_with_most_time(tmp_path: pathlib.Path) -> None:
    """Rank 0 opens for 3 s and writes for 1 s, rank 1 opens for 1 s and writes for 5 s: 1 s of 6 s.

    The table of files has the times of an average rank: 2 s of 5 s.
    """
    for rank, (opens_s, writes_s) in enumerate(((3, 1), (1, 5))):
        opened = Call(operation="MPI_File_open", start=1000, duration=opens_s * SECOND, comm_size=2)
        record(
            tmp_path,
            ["/d/a"],
            [opened, *writes([1], opens_s + 0.1, writes_s, within="MPI_File_write_at")],
            begin=f"RANK {rank} 2",
        )
    document = of_folder(tmp_path)
    (row,) = document["files"]
    assert (row["time_s"], row["opening_s"]) == (pytest.approx(5, abs=0.05), pytest.approx(2, abs=0.05))
    assert float(facts(document)["time in opening, closing, metadata"].split()[0]) == pytest.approx(1, abs=0.05)


def test_percent_are_of_the_run_time_and_of_the_busiest_rank(tmp_path: pathlib.Path) -> None:
    """In the first sentence, in the table, and in the parts of that time."""
    for rank, seconds in enumerate((2.0, 0.5)):
        record(tmp_path, ["/d/a"], writes([1], 0.0, seconds), begin=f"RANK {rank} 2")
    note_launch(tmp_path, (began := recordings.heads([tmp_path])[0].started_ns), began + 4 * SECOND)
    document = of_folder(tmp_path)
    assert document["sentence"].startswith("Rank 0 ") and " 50 % " in document["sentence"]
    assert facts(document)["time in I/O"].startswith("2 s (50 % ")
    assert sum(row["busiest_s"] for row in document["parts"][1:]) == pytest.approx(2.0, rel=0.01)
    assert re.findall(r"([\w ]+) (\d+) %", document["spent_on"]) == [(" the file system", "100")]


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
    assert row["collective_writes"] == 16 and row["asked"].endswith(" of 1 MiB each, strided")
    assert row["who"] == "both ranks" and row["asked_written_bytes"] == 16 * SIZE
    assert (row["writes"], row["mean_write_bytes"], row["write_pattern"]) == (64, SIZE // 8, "random places")
    line = {
        "kind": "file",
        "path": "/d/a",
        "ranks": 2,
        "collective_writes": 16,
        "write_requests": 40,
        "write_request_bytes": 40 * SIZE,
    }
    (tmp_path / STATISTICS).write_text(json.dumps(line) + "\n")
    document = of_folder(tmp_path)
    assert document["files"][0]["reached"].startswith("40 requests of 1 MiB ")
    assert document["files"][0]["asked"] == row["asked"] and document["findings"] == []
    assert "16.8 MB" in facts(document)["read, written by the program"]


def test_waiting_for_a_cpu_makes_a_cause_of_times_alone_unsure(tmp_path: pathlib.Path) -> None:
    """Collective calls that take longer than their requests, on a machine with room, and on one without."""
    for rank in range(2):
        calls = writes([1], 0.1, 1.0, within="MPI_File_write_at_all")
        calls = [
            dataclasses.replace(call, duration=call.duration * (10 if call.depth == 0 else 1))
            if call.size > 0
            else call
            for call in calls
        ]
        calls = [dataclasses.replace(call, start=call.start * 10, offset=call.offset + rank * SIZE) for call in calls]
        record(tmp_path, ["/d/a"], calls, begin=f"RANK {rank} 2")
    quiet = of_folder(tmp_path)
    (sure,) = quiet["findings"]
    assert "confidence medium. " in sure["evidence"][0], sure
    for path in tmp_path.glob("*.mpioxrec"):
        data = bytearray(path.read_bytes())
        header = np.frombuffer(data, recordings._HEADER, 1)
        for name, value in (("stopped", header["started"][0] + 11 * SECOND), ("queued", [1, 8 * SECOND + 1])):
            header[name] = value
        path.write_bytes(data)
    loaded = of_folder(tmp_path)
    assert not re.search(r"\bthe log\b|Darshan", str(loaded))  # the user has none
    (one,) = loaded["findings"]
    assert one["title"] == sure["title"] and "confidence low. " in one["evidence"][0] and " 8 s" in one["evidence"][0]
    assert "possibly " in loaded["sentence"] and " 73 % " in loaded["sentence"]
    assert " 73 % " not in quiet["sentence"]
    assert sum("8 s of the 11 s from MPI_Init to MPI_Finalize (73 %)" in notice for notice in loaded["notices"]) == 1
    assert not any("CPU" in notice for notice in quiet["notices"])
    assert facts(loaded)["wait of the main thread of a rank for a CPU, on average"] == "8 s"


def test_what_the_library_has_chosen_is_not_advised_against(tmp_path: pathlib.Path) -> None:
    """Small collective calls that it carries out as they are; a program that has asked for that is advised to let it,
    but not to set a hint that is in force."""
    for rank in range(2):
        calls = writes([1], 0.1, 2.0, count=400, within="MPI_File_write_at_all")
        small = [
            dataclasses.replace(one, size=SMALL, offset=one.offset + SMALL * rank, result=SMALL if one.depth else 0)
            if "write" in one.operation
            else one
            for one in calls
        ]
        record(tmp_path, ["/d/a"], small, begin=f"RANK {rank} 2")
    line: dict[str, Any] = {"kind": "file", "path": "/d/a", "ranks": 2, "collective_writes": 400}
    off, followed = {"romio_cb_write": "disable"}, {"romio_cb_write": "enable", "mpiox_exchange": "two_phase"}
    for given, advised in (({}, False), (off, True), (followed, False)):
        hints = {hint: {"value": value, "source": "MPI_Info"} for hint, value in given.items()}
        (tmp_path / STATISTICS).write_text(json.dumps(line | {"hints": hints}) + "\n")
        document = of_folder(tmp_path)
        assert "40 kB collective writes" in document["sentence"], document["sentence"]
        steps = " ".join(step for finding in document["findings"] for step in finding["advice"])
        assert ("mpiox_exchange=two_phase" in steps) == advised, steps


def test_files_in_turn_take_the_time_together(tmp_path: pathlib.Path) -> None:
    """A rank writes to four open files in turn, for all of its four seconds."""
    record(tmp_path, [f"/d/{name}" for name in "abcd"], writes([1, 2, 3, 4], 0.1, 4.0, count=80), begin="RANK 0 1")
    document = of_folder(tmp_path)
    assert [row["time_s"] for row in document["files"]] == pytest.approx([1.0] * 4, rel=0.01)
    assert re.search(r"83\.9 MB .* 21(\.\d)? MB/s", document["sentence"]), document["sentence"]


def test_a_run_that_ended_badly_may_be_whole(tmp_path: pathlib.Path) -> None:
    """What was recorded until the end is certain, whatever the exit status; of a rank that was killed it is not."""
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 0 2")
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 1 2")
    began_ns = recordings.heads([tmp_path])[0].started_ns
    note_failure(tmp_path, Failure(whole="the program ended with status 3", moment_ns=began_ns + 3 * SECOND))
    document = of_folder(tmp_path)
    assert f" after 3 s: {document['ended']}. " in document["sentence"] and document["ended"].endswith(" status 3")
    assert document["lacks"] == []
    text = page(document)
    *_, until = document["at_end"]
    assert until.endswith("written 41.9 MB") and until in text and "not complete" not in text
    (tmp_path / "io.html").write_text(text, encoding="utf-8")
    assert until in mpiio_ext.run_report(tmp_path / "io.html").lines()
    (tmp_path / "failure.json").unlink()
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 2 4", end="KILL")
    assert of_folder(tmp_path)["lacks"][0].startswith("rank 2: ")
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 3 4", end="KILL")
    document = of_folder(tmp_path)
    (lack,) = document["lacks"]
    assert lack.startswith("ranks 2, 3, ") and f": 2, 3 on {os.uname().nodename}. As" in document["sentence"]
    assert not any("memory" in text for text in document["unknown"])


def test_a_call_in_which_a_rank_was_killed_counts(tmp_path: pathlib.Path) -> None:
    """Rank 0 waits for 5 s in a collective call for rank 1, which is in a write for as long; rank 2 computes."""
    place = {"offset": 0, "size": SIZE}
    done = Call(operation="MPI_File_write_at_all", start=0, duration=SECOND, **place)
    begun = [Line(words="ENTER MPI_File_write_at_all {at} 0 1", at=SECOND)]
    calls = {
        0: [done, *begun, Told(waiting=True, start=SECOND + SECOND // 2, duration=0)],
        1: [done, *begun, Line(words="ENTER pwrite {at} 1 1", at=2 * SECOND)],
        2: [done, *begun, Line(words="LEAVE 0")],
    }
    for rank, some in calls.items():
        record(tmp_path, ["/d/a"], some, begin=f"RANK {rank} 3", end="KILL")
    heads = recordings.heads([tmp_path])
    began_ns, here = heads[0].started_ns, os.uname().nodename
    ends = {f"{head.host} {head.pid}": head.started_ns + 6 * SECOND for head in heads}
    killed = Ending(rank=2, host=here, number=9, moment_ns=began_ns + 6 * SECOND)
    note_launch(tmp_path, began_ns, began_ns + 6 * SECOND)
    note_failure(tmp_path, Failure(first=[killed], moment_ns=killed.moment_ns, ends=ends))
    document = of_folder(tmp_path)
    facts_of = rf"after 6 s: rank 2 on {here} .*SIGKILL.* 100 % .* 72 %.* 5 s of 6 s .*MPI_File_write_at_all of `a`"
    assert re.search(facts_of, document["sentence"]), document["sentence"]
    assert document["files"][0]["time_s"] == pytest.approx((6 + 6 + 1) / 3, abs=0.01)  # an average rank's
    first, second, third, *_ = document["at_end"]
    assert re.match(r"rank 0 .*MPI_File_write_at_all of `a` for 5 s, waiting ", first), first
    assert re.match(r"rank 1 .*MPI_File_write_at_all of `a` for 5 s, in a request ", second), second
    assert third.startswith("rank 2 ") and "no call" in third
    parts = {row["part"]: row for row in document["parts"]}
    assert (parts["waiting"]["rank"], parts["waiting"]["most_s"]) == (0, pytest.approx(4.5, abs=0.01))
    assert (parts["file_system"]["rank"], parts["file_system"]["most_s"]) == (1, pytest.approx(4.0, abs=0.01))
    assert parts["library"]["most_s"] == pytest.approx(0.5, abs=0.01)  # of rank 0; nobody carries out rank 1's
    assert parts["program"]["most_s"] == pytest.approx(5.0, abs=0.01)
    assert sum(row["mean_s"] for row in document["parts"]) == pytest.approx(6.0, abs=0.01)


def test_recordings_alone_tell_who_has_ended_a_job(tmp_path: pathlib.Path) -> None:
    """The writer was killed, too: the rank that called MPI_Abort has written that down itself."""
    record(tmp_path, ["/d/a"], writes([1], 0.0, 2.0), begin="RANK 0 2", end="KILL")
    calls = [*writes([1], 0.0, 2.0), Line(words="ABORT 5 {at}", at=3 * SECOND)]
    record(tmp_path, ["/d/a"], calls, begin="RANK 1 2", end="KILL")
    report = mpiio_ext.run_report(tmp_path)
    ended = report.document["ended"]
    assert re.fullmatch(rf"rank 1 on {os.uname().nodename} .*MPI_Abort.* 5", ended), ended
    assert re.search(rf" after [23](\.\d+)? s: {ended}\. ", report.sentence)
    assert report.document == of_folder(tmp_path)


def test_an_open_that_never_ended_reached_the_library(tmp_path: pathlib.Path) -> None:
    """The only call of MPI-IO is under way; a rank is in a barrier, which is no I/O."""
    for rank, words in enumerate(("ENTER MPI_File_open {at} 0 1", "ENTER MPI_Barrier {at} 0 0")):
        calls = [Call(operation="open", start=0, file=2, result=3), Line(words=words, at=SECOND)]
        record(tmp_path, ["/d/new.h5", "/d/in"], calls, begin=f"RANK {rank} 2", end="KILL")
    began_ns = recordings.heads([tmp_path])[0].started_ns
    note_launch(tmp_path, began_ns, began_ns + 3 * SECOND)
    document = of_folder(tmp_path)
    first, second, *_ = document["at_end"]
    assert re.match(r"rank 0 .*MPI_File_open of `new.h5` for 2 s$", first), first
    assert re.match(r"rank 1 .*MPI_Barrier for 2 s$", second), second
    assert f"<li>{first.replace('`new.h5`', '<code>new.h5</code>')}</li>" in page(document)
    assert "MPI_File_open of `new.h5`" in document["sentence"]
    assert document["notices"] == []
