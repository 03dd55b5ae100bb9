"""Files that exist, are written behind their close, and are written by others when everything was killed.

What a cache on a disk still holds is older than what was written since: it must not come over it.
"""

from __future__ import annotations

import os
import pathlib
import time

import pytest

from support.launch import launcher, marked_processes, preload_environment
from support.processes import job
from support.staged import CHECKPOINTS, RANKS, asked, checkpoint, kill_at_once
from support.tiers import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
LIMIT_S, GRACE_S = 60.0, 60.0
PAGE = 16 << 10


def leave(folder: pathlib.Path, *, per_node: int = 0, rate: int = 1, after_s: float = 0) -> str:
    """Kill all of a job that has closed a file which existed before. Returns the hints of the next one.

    It is written with that rate, or, for 0, so slowly that somebody is killed in the middle of it.
    """
    for name in ("files", "first", "second"):
        (folder / name).mkdir()
    (folder / "files/checkpoint0").write_bytes(bytes(1000))
    where = f"{folder}/first" + (f";{folder}/second" if per_node else "")
    hints = f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page={PAGE}:striping_unit={PAGE}:" \
            f"mpiox_delegate_cache_dir={where}:mpiox_close=staged"  # fmt: skip
    env = {**preload_environment(), "MPIOX_HINTS": f"{hints}:mpiox_drain_rate={rate}",
           "MPIOX_RANKS_PER_NODE": str(per_node),
           "MPIOX_FAULT": "" if rate else "op=write,path=*checkpoint0,delay_ms=100"}  # fmt: skip
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(folder / "files"), "1", "600"]
    with job(command, folder / "log", env) as running:
        running.wait_for("closed 0", LIMIT_S)
        time.sleep(after_s)
        kill_at_once(marked_processes(running.marker))
        assert not running.left(GRACE_S)
    return hints


def over(before: bytes) -> bytes:
    """Return what a file holds when what is left of a checkpoint is written over it: every sixth kilobyte is a hole."""
    left = bytes(2 * PAGE) + checkpoint(0)[2 * PAGE :]
    return bytes(new or old for new, old in zip(left, before.ljust(len(left), b"\0"), strict=True))


def later(path: pathlib.Path, seconds: float) -> None:
    """Let a file be written so long after now."""
    now = time.time() + seconds
    os.utime(path, (now, now))


@pytest.mark.parametrize(("rate", "after_s"), [(1, 0), (20_000, 1), (0, 1), *slow((0, 0), (0, 0.5), (0, 2))])
def test_nobody_else_has_written(tmp_path: pathlib.Path, rate: int, after_s: float) -> None:
    """Nothing of it, or a part, is in the file; whoever was killed in the middle of a write is believed."""
    leave(tmp_path, rate=rate, after_s=after_s)
    status, text = asked("recover", tmp_path / "first")
    assert (status, text.count("brought to their files")) == (0, 2), text
    assert (tmp_path / "files/checkpoint0").read_bytes() == checkpoint(0)
    assert not list((tmp_path / "first").iterdir())


@pytest.mark.parametrize("seconds", [0.0, 3600.0])
def test_what_others_have_written_since_stays(tmp_path: pathlib.Path, seconds: float) -> None:
    """It is named, with both times; --force takes what the cache has: all but the first page of each delegate."""
    leave(tmp_path, after_s=0.5)
    path, newer = tmp_path / "files/checkpoint0", os.urandom(len(checkpoint(0)))
    path.write_bytes(newer)
    if seconds:
        later(path, seconds)
    for _ in range(2):
        status, text = asked("recover", tmp_path / "first")
        assert status == 1
        assert f"{path} was written by others on 20" in text, text
        assert f"; its bytes are in {tmp_path}/first/mpiox." in text and text.count("--force") == 2, text
        assert path.read_bytes() == newer
    assert len(list((tmp_path / "first").iterdir())) == 2
    status, text = asked("recover", "--force", tmp_path / "first")
    assert (status, text.count("brought to their files")) == (0, 2), text
    assert path.read_bytes() == over(newer)
    assert not list((tmp_path / "first").iterdir())


@pytest.mark.parametrize("rate", [20_000, 0])
def test_a_part_was_drained_before_others_wrote(tmp_path: pathlib.Path, rate: int) -> None:
    """Later than the time in which a write that was begun may have come."""
    leave(tmp_path, rate=rate, after_s=1)
    path = tmp_path / "files/checkpoint0"
    newer = os.urandom(len(path.read_bytes()))
    path.write_bytes(newer)
    later(path, 60)
    status, text = asked("recover", tmp_path / "first")
    assert (status, f"{path} was written by others" in text) == (1, True), text
    assert path.read_bytes() == newer


def test_a_file_that_was_made_anew(tmp_path: pathlib.Path) -> None:
    """Another file has its name: not even by force."""
    leave(tmp_path)
    path = tmp_path / "files/checkpoint0"
    path.rename(path.with_name("old"))
    path.write_bytes(b"new")
    for words in ([], ["--force"]):
        status, text = asked("recover", *words, tmp_path / "first")
        assert (status, f"{path} cannot be written: another file has its name by now" in text) == (1, True), text
        assert path.read_bytes() == b"new"
    path.unlink()
    path.with_name("old").rename(path)
    assert asked("recover", tmp_path / "first")[0] == 0
    assert path.read_bytes() == checkpoint(0)


def test_the_next_job_leaves_it(tmp_path: pathlib.Path) -> None:
    """Its delegates say so and write the rest; its own files are written. recover finds what is left."""
    hints = leave(tmp_path, after_s=0.5)
    path, newer = tmp_path / "files/checkpoint0", os.urandom(1000)
    path.write_bytes(newer)
    (tmp_path / "other").mkdir()
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(tmp_path / "other"), "2", "0"]
    with job(command, tmp_path / "again", {**preload_environment(), "MPIOX_HINTS": hints}) as running:
        assert running.status(LIMIT_S) == 0, running.text()
        assert not running.left(GRACE_S)
        said = running.text()
    assert f"{path} was written by others on 20" in said
    assert f"{tmp_path}/first/mpiox." in said and "recover --force writes them all the same" in said, said
    assert path.read_bytes() == newer
    assert [(tmp_path / f"other/checkpoint{number}").read_bytes() == checkpoint(number) for number in range(2)]
    assert len(list((tmp_path / "first").iterdir())) == 2
    assert asked("recover", "--force", tmp_path / "first")[0] == 0
    assert path.read_bytes() == over(newer)


def test_the_next_job_writes_the_same_file(tmp_path: pathlib.Path) -> None:
    """What was left comes into the file before the job writes it, not after."""
    hints = leave(tmp_path)
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(tmp_path / "files"), "1", "0"]
    with job(command, tmp_path / "again", {**preload_environment(), "MPIOX_HINTS": hints}) as running:
        assert running.status(LIMIT_S) == 0, running.text()
        assert not running.left(GRACE_S)
        assert "written by others" not in running.text()
    assert (tmp_path / "files/checkpoint0").read_bytes() == checkpoint(0)
    assert not list((tmp_path / "first").iterdir())


@pytest.mark.parametrize("changed", [False, True])
def test_nodes_one_after_the_other(tmp_path: pathlib.Path, changed: bool) -> None:
    """What one node's recovery has written is not taken for others' by the next node's; what others wrote is."""
    leave(tmp_path, per_node=1)
    path = tmp_path / "files/checkpoint0"
    status, text = asked("recover", tmp_path / "first")
    assert status == 0, text
    time.sleep(3)
    if changed:
        path.write_bytes(bytes(10))
    status, text = asked("recover", tmp_path / "second")
    assert status == changed, text
    assert path.read_bytes() == (bytes(10) if changed else checkpoint(0))
