"""Which ranks of a run have failed, as the writer of its page sees it from beside."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

from mpiio_ext.cli.endings import TERMINATED, Ending, Endings, text_of
from mpiio_ext.common.recordings import HEAD, states
from mpiio_ext.pioneer.darshan import recordings

HERE = os.uname().nodename


def recording(
    folder: pathlib.Path, rank: int, pid: int, *, host: str = HERE, closed: bool = False, stopped: int = 0,
    status: int | None = None,
) -> None:  # fmt: skip
    """Write the beginning of a recording."""
    header = np.zeros(1, recordings._HEADER)
    values = {"state": int(closed), "stopped": stopped, "pid": pid, "rank": rank, "ranks": 4, "host": host.encode(),
              "exited": int(status is not None), "exit_status": status or 0}  # fmt: skip
    for name, value in values.items():
        header[name] = value
    (folder / f"rank{rank}.{host}.{pid}{recordings.SUFFIX}").write_bytes(header.tobytes())


def test_the_beginning_is_that_of_recordings() -> None:
    fields = recordings._HEADER.fields
    assert fields is not None
    data = bytes(range(256)) * 13
    values = HEAD.unpack_from(data)
    whole = np.frombuffer(data, recordings._HEADER, 1)[0]
    names = ("state", "stopped", "pid", "rank", "host", "exited", "exit_status")
    assert [value for value in values if not isinstance(value, bytes)] == [
        int(whole[name]) for name in names if name != "host"]  # fmt: skip
    assert fields["host"][1] == 128 and values[4][:5] == bytes(range(128, 133))


@pytest.mark.parametrize(("how", "words"), [
    ("exit 7", "rank 2 on {} ended with status 7"), ("kill -9 $$", "rank 2 on {} was ended by signal SIGKILL"),
    ("exit 0", "rank 2 on {} ended without MPI_Finalize"),
])  # fmt: skip
def test_the_first_rank_that_fails_is_told_at_once(tmp_path: pathlib.Path, how: str, words: str) -> None:
    """The others are ended as launchers do it; one has ended well before."""
    failing = subprocess.Popen(["sh", "-c", f"read go; {how}"], stdin=subprocess.PIPE)
    ranks = [subprocess.Popen(["sleep", "60"]), subprocess.Popen(["true"]), failing]
    for rank, process in enumerate(ranks):
        recording(tmp_path, rank, process.pid, stopped=int(rank == 1), closed=rank == 1)
    theirs, ours = os.pipe()
    told: list[Ending | None] = []
    endings = Endings(tmp_path)

    def launcher() -> None:
        until = time.monotonic() + 30
        while len(endings._watched) + len(endings._ended) < 2 and time.monotonic() < until:
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
    assert text_of(endings.failed()) == told[0].text() == words.format(HERE)


def test_a_launcher_that_ends_a_rank_without_another_that_failed(tmp_path: pathlib.Path) -> None:
    theirs, ours = os.pipe()
    os.write(ours, b"12\n" + TERMINATED + b"\n")
    os.close(ours)
    told: list[Ending | None] = []
    assert Endings(tmp_path).wait(theirs, told.append) == [b"12"] and told == [None]
    os.close(theirs)


def test_ranks_of_other_hosts_tell_their_status(tmp_path: pathlib.Path) -> None:
    recording(tmp_path, 0, 10, host="a", stopped=1, closed=True, status=0)
    recording(tmp_path, 1, 11, host="a", closed=True, status=3)
    recording(tmp_path, 2, 12, host="b")  # killed: by whom, nobody knows
    recording(tmp_path, 3, 13, host="b", stopped=1, status=9)
    (tmp_path / f"rank4.b.14{recordings.SUFFIX}").write_bytes(b"cut")
    assert len(states(tmp_path)) == 4
    assert text_of(Endings(tmp_path).failed()) == "rank 1 on a ended with status 3 (further ranks that failed: 3)"
    assert text_of([]) == ""


def test_a_launcher_names_the_signal() -> None:
    killed = Ending(rank=1, host="a", number=0)
    assert killed.text() == "rank 1 on a was ended by a signal"
    assert killed.text(139) == "rank 1 on a was ended by signal SIGSEGV"
    assert Ending(rank=1, host="a", number=40).text() == "rank 1 on a was ended by signal 40"
    many = [Ending(rank=rank, host="a", status=1) for rank in range(11)]
    assert text_of(many).endswith("(further ranks that failed: 1, 2, 3, 4, 5, 6, 7, 8 and 2 more)")
