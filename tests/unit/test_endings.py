"""Which ranks of a run have failed, as the writer of its page sees it from beside."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from mpiio_ext.cli.endings import TERMINATED, Endings
from mpiio_ext.common.endings import Ending, Failure, failure_of, judged, note_failure
from mpiio_ext.common.recordings import HEAD, states
from mpiio_ext.pioneer.darshan import recordings

HERE = os.uname().nodename
SINCE = 10**18


def recording(
    folder: pathlib.Path,
    rank: int,
    pid: int,
    *,
    host: str = HERE,
    closed: bool = False,
    stopped: int = 0,
    status: int | None = None,
    aborted: int = 0,
    left: int = 0,
    parent: int = 1,
) -> pathlib.Path:
    """Write the beginning of a recording."""
    header = np.zeros(1, recordings._HEADER)
    values = {
        "state": int(closed),
        "stopped": stopped,
        "pid": pid,
        "rank": rank,
        "ranks": 4,
        "host": host.encode(),
        "exited": int(status is not None),
        "exit_status": status or 0,
        "unix_minus_monotonic": SINCE,
        "left": left,
        "aborted": aborted,
        "abort_code": 7,
        "parent": parent,
    }
    for name, value in values.items():
        header[name] = value
    path = folder / f"rank{rank}.{host}.{pid}{recordings.SUFFIX}"
    path.write_bytes(header.tobytes())
    return path


def sleepers(count: int) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen(["sleep", "60"]) for _ in range(count)]


def test_the_beginning_is_that_of_recordings() -> None:
    fields = recordings._HEADER.fields
    assert fields is not None
    data = bytes(range(256)) * 13
    values = HEAD.unpack_from(data)
    whole = np.frombuffer(data + bytes(1000), recordings._HEADER, 1)[0]
    names = (
        "state",
        "unix_minus_monotonic",
        "stopped",
        "pid",
        "parent",
        "rank",
        "host",
        "exited",
        "exit_status",
        "left",
        "aborted",
        "abort_code",
    )
    assert [value for value in values if not isinstance(value, bytes)] == [
        int(whole[name]) for name in names if name != "host"
    ]
    assert fields["heard"][1] == HEAD.size  # what is written to
    assert fields["host"][1] == 128 and values[6][:5] == bytes(range(128, 133))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("exit 7", "rank 2 on {} ended with status 7"),
        ("kill -9 $$", "rank 2 on {} was ended by signal SIGKILL"),
        ("exit 0", "rank 2 on {} ended without MPI_Finalize"),
    ],
)
def test_the_first_rank_that_fails_is_told_at_once(tmp_path: pathlib.Path, how: str, words: str) -> None:
    """The others are ended as launchers do it; one has ended well before. Recordings come after the watch began."""
    failing = subprocess.Popen(["sh", "-c", f"read go; {how}"], stdin=subprocess.PIPE)
    ranks = [*sleepers(1), subprocess.Popen(["true"]), failing]
    theirs, ours = os.pipe()
    told: list[Failure | None] = []
    endings = Endings(tmp_path)

    def launcher() -> None:
        for rank, process in enumerate(ranks):
            recording(tmp_path, rank, process.pid, stopped=int(rank == 1), closed=rank == 1)
        until = time.monotonic() + 30
        while len(endings._watched) + len(endings._codes) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        failing.communicate(b"go\n")
        while not told and time.monotonic() < until:
            time.sleep(0.01)
        ranks[0].send_signal(signal.SIGTERM)
        ranks[0].wait()
        os.write(ours, b"1\n" + TERMINATED + b"\nended -15\n")
        os.close(ours)

    other = threading.Thread(target=launcher)
    other.start()
    assert endings.wait(theirs, told.append) == [b"1", b"ended", b"-15"]
    other.join()
    os.close(theirs)
    ranks[1].wait()
    assert len(told) == 1 and told[0] is not None
    assert endings.failure().text() == told[0].reason() == words.format(HERE)
    assert set(endings.failure().ends) == {f"{HERE} {process.pid}" for process in ranks}


def test_the_order_is_that_of_the_ends_however_late_one_looks(tmp_path: pathlib.Path) -> None:
    """All end by the same signal, at once; nobody has looked meanwhile."""
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        endings, ranks = Endings(folder), sleepers(6)
        for rank, process in enumerate(ranks):
            recording(folder, rank, process.pid)
        assert not endings.failure()  # they are watched from now on
        order = random.Random(attempt).sample(range(6), 6)
        for rank in order:
            ranks[rank].kill()
            ranks[rank].wait()
        assert [each.rank for each in endings.failure().first] == order[:1]


def test_what_a_rank_tells_is_before_the_ends_that_follow(tmp_path: pathlib.Path) -> None:
    """A rank calls MPI_Abort; the launcher kills it last."""
    endings, ranks = Endings(tmp_path), sleepers(3)
    files = [recording(tmp_path, rank, process.pid) for rank, process in enumerate(ranks)]
    assert not endings.failure()
    recording(tmp_path, 2, ranks[2].pid, aborted=5)
    os.utime(files[2])
    for process in ranks:
        process.kill()
        process.wait()
    failure = endings.failure(over=True)
    assert failure.text() == f"rank 2 on {HERE} called MPI_Abort with error code 7"
    assert failure.moment_ns == SINCE + 5


def test_a_rank_that_closes_its_connection_lives(tmp_path: pathlib.Path) -> None:
    """Programs close descriptors that are not theirs."""
    code = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
        " s.connect('\\0' + sys.argv[1]); print(flush=True); input(); s.close(); print(flush=True); input()"
    )
    endings = Endings(tmp_path)
    assert endings._door is not None
    words = [sys.executable, "-c", code, endings._door.getsockname().decode()[1:]]
    ranks = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
    for rank, process in enumerate(ranks):
        recording(tmp_path, rank, process.pid)
        assert process.stdout is not None and process.stdout.readline() == b"\n"
    assert not endings.failure() and len(endings._guests) == 3
    first = ranks[0]
    assert first.stdin is not None and first.stdout is not None
    first.stdin.write(b"\n")
    first.stdin.flush()
    assert first.stdout.readline() == b"\n" and not endings.failure() and len(endings._guests) == 2
    for rank in (1, 0, 2):
        ranks[rank].kill()
        ranks[rank].communicate()
    assert [each.rank for each in endings.failure().first] == [1]


def test_children_of_ranks_are_no_ranks(tmp_path: pathlib.Path) -> None:
    endings, (rank, child) = Endings(tmp_path), sleepers(2)
    recording(tmp_path, 0, rank.pid)
    recording(tmp_path, 0, child.pid, parent=rank.pid)
    child.kill()
    child.wait()
    assert not endings.failure()
    rank.kill()
    rank.wait()


def test_a_launcher_that_ends_a_rank_without_another_that_failed(tmp_path: pathlib.Path) -> None:
    theirs, ours = os.pipe()
    os.write(ours, b"12\n" + TERMINATED + b"\n")
    os.close(ours)
    told: list[Failure | None] = []
    assert Endings(tmp_path).wait(theirs, told.append) == [b"12"] and told == [None]
    os.close(theirs)


def test_ranks_of_other_hosts_tell_their_status(tmp_path: pathlib.Path) -> None:
    recording(tmp_path, 0, 10, host="a", stopped=1, closed=True, status=0)
    recording(tmp_path, 1, 11, host="a", closed=True, status=3, left=4)
    recording(tmp_path, 2, 12, host="b")  # killed: by whom, nobody knows
    recording(tmp_path, 3, 13, host="b", stopped=1, status=9, left=5)
    (tmp_path / f"rank4.b.14{recordings.SUFFIX}").write_bytes(b"cut")
    assert len(states(tmp_path)) == 4
    found = Endings(tmp_path).failure(over=True)
    assert found.text() == "rank 1 on a ended with status 3; further ranks that failed: 3"
    assert failure_of(tmp_path) == found  # what a later reader finds
    note_failure(tmp_path, found)
    assert failure_of(tmp_path) == found
    assert Failure().text() == "" and not Failure()


def ending(rank: int, number: int | None = None, **more: int | str) -> Ending:
    return Ending(**({"rank": rank, "host": "a", "number": number, "moment_ns": rank} | more))  # type: ignore[arg-type]


def test_what_nobody_has_seen_is_not_told_for_certain() -> None:
    """Ranks of another host may have ended before the first one of this host that was killed."""
    far = [ending(rank, 0, host="b", moment_ns=None) for rank in (2, 3)]  # type: ignore[arg-type]
    first, others = judged([ending(1, 9), ending(0, 15)], far)
    assert Failure(first=first, others=others).text() == (
        "one of these ranks was ended by a signal, which one first is not known: 1 on a; 2, 3 on b"
    )
    for certain in (ending(1, 11), ending(1, status=3), ending(1, abort_code=2)):  # no launcher ends ranks so
        assert judged([certain], far)[0] == [certain]
    told = ending(2, abort_code=4, host="b", moment_ns=0)
    assert judged([ending(1, 9)], [*far[1:], told])[0] == [told]
    assert judged([ending(1, 9)], [ending(2, status=4, host="b", moment_ns=9)])[0] == [ending(1, 9)]


def test_a_whole_job_is_ended_from_outside() -> None:
    """By the same signal, each rank; or one alone, and the others as a launcher does it."""
    for number, words in (
        (
            15,
            "signal SIGTERM ended its ranks, rank 1 on a first; a launcher sends this signal when a rank fails, at a"
            " time limit, or at Ctrl-C",
        ),
        (9, "rank 1 on a was ended by signal SIGKILL"),
    ):
        first, others = judged([ending(1, number), ending(0, number)], [])
        assert Failure(first=first, others=others).text() == words
    first, others = judged([ending(1, 15), ending(0, 9)], [])
    assert Failure(first=first, others=others).text() == "rank 1 on a was ended by signal SIGTERM"


def test_a_launcher_names_the_signal() -> None:
    killed = Ending(rank=1, host="a", number=0)
    assert killed.text() == "rank 1 on a was ended by a signal"
    assert judged([killed], [], 139)[0][0].text() == "rank 1 on a was ended by signal SIGSEGV"
    assert judged([ending(0, 9)], [ending(1, 0)], 139)[0] == [ending(1, 11)]  # the first is the launcher's
    assert Ending(rank=1, host="a", number=40).text() == "rank 1 on a was ended by signal 40"
    many = [Ending(rank=rank, host="a", status=1) for rank in range(11)]
    first, others = judged(many, [])
    assert Failure(first=first, others=others).text().endswith("failed: 1, 2, 3, 4, 5, 6, 7, 8 and 2 more")
