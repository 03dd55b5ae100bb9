"""Files of delegates: who owns which pages, ranges that change hands, errors of the file system that come later."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
from typing import Any

import numpy as np
import pytest

from support.cbuild import mpi_program
from support.launch import PROGRAMS, Launch, json_lines, python_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
MODES = ("spawn", "thread")
SMALL = "mpiox_delegate_page=4k:mpiox_delegate_cache=400k"


def run(
    case: str, path: pathlib.Path, ranks: int, hints: str, *words: object, **environment: str
) -> tuple[list[Any], Launch]:
    """Run one case of the program; what each rank saw."""
    env = {"MPIOX_HINTS": f"*:{hints}", **environment}
    launch = python_run([PROGRAMS / "delegates_files.py", case, path, *map(str, words)], ranks, env=env, timeout_s=120)
    line = next(line for line in launch.stdout.splitlines() if line.startswith("SEEN "))
    return json.loads(line[5:]), launch


# ---- owners ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delegates", "servers", "owners"), [(3, 4, 2), *slow((4, 4, 4)), (5, 2, 4), *slow((2, 7, 1), (3, 6, 3), (5, 1, 5))]
)
def test_owners_suit_the_servers(
    extension: str, tmp_path: pathlib.Path, delegates: int, servers: int, owners: int
) -> None:
    """Their number divides that of the I/O servers, or is a multiple of it: one-to-many, one-to-one, many-to-one."""
    hints = f"mpiox_delegates={delegates}:mpiox_delegate_mode=thread:striping_factor={servers}:striping_unit=64k"
    preload = f"{mpi_program('inject', '-shared', '-fPIC')}:{extension}"
    seen, launch = run("owners", tmp_path / "file", 2, hints, LD_PRELOAD=preload, PRETEND_FS="0BD00BD0")  # Lustre
    assert seen == [list(range(owners))] * 2, launch.describe()


def test_every_delegate_owns_pages_of_a_local_file(tmp_path: pathlib.Path) -> None:
    """One kernel serves it: there is nothing to suit."""
    seen, launch = run("owners", tmp_path / "file", 3, "mpiox_delegates=3:mpiox_delegate_mode=thread:striping_factor=2")
    assert seen == [[0, 1, 2]] * 3, launch.describe()


# ---- balance ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow_with("3-0-spawn", "4-2-thread")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("ranks", "per_node"), [(3, 0), (4, 2), *slow((1, 0))])
def test_a_busy_delegate_gives_ranges_away(tmp_path: pathlib.Path, ranks: int, per_node: int, mode: str) -> None:
    """All accesses meet pages of delegate 0: after a sync delegate 1 has a part of them, and no byte is wrong."""
    hints = f"mpiox_delegates=2:mpiox_delegate_mode={mode}:mpiox_delegate_page=4k:striping_unit=4k"
    seen, launch = run("balance", tmp_path / "file", ranks, hints, MPIOX_RANKS_PER_NODE=str(per_node))
    assert [rank["wrong"] for rank in seen] == [0] * ranks, launch.describe()
    assert sum(rank["moved"] for rank in seen) > 0, seen
    assert not any(rank["holes"] for rank in seen), seen
    if not per_node:  # else a rank sees the delegates of its own node only
        assert all(written > 0 for written in seen[0]["written"]), seen


@pytest.mark.slow_except("4-2-spawn")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("ranks", "per_node"), [(4, 2), (5, 1)])
def test_collected_writes_follow_their_pages(tmp_path: pathlib.Path, ranks: int, per_node: int, mode: str) -> None:
    """What was collected for a delegate of another node is not lost when it has given the pages away."""
    hints = f"mpiox_delegates=2:mpiox_delegate_mode={mode}:mpiox_delegate_page=4k:striping_unit=4k"
    seen, launch = run("behind", tmp_path / "file", ranks, hints, MPIOX_RANKS_PER_NODE=str(per_node))
    assert [rank["wrong"] for rank in seen] == [0] * ranks, launch.describe()
    assert sum(rank["moved"] for rank in seen) > 0, seen


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow_except("3-0-memory-thread", "3-0-replica-spawn", "2-1-disk-thread")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ack", ["memory", "replica", "disk"])
@pytest.mark.parametrize(("ranks", "per_node"), [(3, 0), (2, 1), *slow((1, 0))])
def test_calls_are_told_before_the_sync(tmp_path: pathlib.Path, ranks: int, per_node: int, ack: str, mode: str) -> None:
    """As beyond ulimit -f: a write says that bytes were refused, a read does not return what was never written."""
    hints = f"mpiox_delegates=2:mpiox_delegate_mode={mode}:mpiox_delegate_ack={ack}:{SMALL}"
    seen, launch = run(
        "refused",
        tmp_path / "file",
        ranks,
        hints,
        MPIOX_FAULT="op=write,path=*/file,errno=EFBIG",
        MPIOX_RANKS_PER_NODE=str(per_node),
    )
    for rank in seen:
        assert "errno 27" in rank["write"], launch.describe()
        assert rank["writes"] == 1 or ack != "disk", launch.describe()
        assert "wrong" not in rank["read"], launch.describe()
        assert "errno 27" in rank["sync"] and rank["after"] == "fine", launch.describe()
    assert any("errno 27" in text for rank in seen for text in rank["read"]), launch.describe()
    assert len({rank["sync"] for rank in seen}) == 1, launch.describe()


@pytest.mark.parametrize(("ranks", "per_node"), [(2, 0), (2, 1)])
def test_a_limit_of_the_rank_alone(tmp_path: pathlib.Path, ranks: int, per_node: int) -> None:
    """Up to it bytes are written, beyond it none: the delegates have no limit. A limit that is raised again is gone."""
    hints = f"mpiox_delegates=2:mpiox_delegate_mode=spawn:{SMALL}"
    seen, launch = run("limited", tmp_path / "file", ranks, hints, MPIOX_RANKS_PER_NODE=str(per_node))
    said = f"failed at offset {(1 << 26) + 32868}, length 8092: File too large (errno 27)"
    assert said in seen[1]["said"][0], launch.describe()
    assert [rank["said"][1:] for rank in seen] == [["fine"] * 3] * ranks, launch.describe()
    assert {rank["size"] for rank in seen} == {8 * 4096 + 100}, launch.describe()
    assert {rank["stored"] for rank in seen} == {14 * 4096}, launch.describe()


@pytest.mark.slow_except("3-2-spawn")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("ranks", "delegates"), [(3, 2), (2, 3), *slow((1, 2))])
def test_every_refused_range_is_told(tmp_path: pathlib.Path, ranks: int, delegates: int, mode: str) -> None:
    """The error has the lowest range, the number of the others and where they end; each is a line on standard error."""
    hints = f"mpiox_delegates={delegates}:mpiox_delegate_mode={mode}:striping_unit=4k:{SMALL}"
    seen, launch = run("scattered", tmp_path / "file", ranks, hints, MPIOX_FAULT="op=write,path=*/file,errno=EIO")
    assert len({rank["text"] for rank in seen}) == 1, launch.describe()
    expected = f"failed at offset 0, length 64, and 11 more up to byte {22 * 4096 + 64}"
    assert expected in seen[0]["text"], launch.describe()
    assert re.search(r"I/O delegate \d: write of ", seen[0]["text"]), launch.describe()
    assert [rank["ranges"] for rank in seen] == [12] * ranks, launch.describe()
    said = re.findall(r"lost bytes: I/O delegate \d: \w+ of \S+ failed at offset (\d+), length 64: ", launch.stderr)
    left = re.findall(r"lost bytes: (\d+) more ranges of ", launch.stderr)
    assert len(said) + sum(map(int, left)) == 12, launch.describe()
    assert set(map(int, said)) <= {page * 4096 for page in range(0, 24, 2)}, launch.describe()


@pytest.mark.slow_with("*-thread")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ranks", [3, *slow(1)])
def test_errors_of_closing_are_told(tmp_path: pathlib.Path, ranks: int, mode: str) -> None:
    """A file system may say only when the delegate closes the file that it could not keep the bytes."""
    hints = f"mpiox_delegates=2:mpiox_delegate_mode={mode}:striping_unit=4k:{SMALL}"
    seen, launch = run("closing", tmp_path / "file", ranks, hints, MPIOX_FAULT="op=close,path=*/file,errno=ENOSPC")
    assert len(set(seen)) == 1, launch.describe()
    assert re.search(r"I/O delegate \d: close of \S+ failed.*errno 28", seen[0]), launch.describe()


# ---- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.slow_with("thread")
@pytest.mark.parametrize("mode", MODES)
def test_settings_that_come_too_late(tmp_path: pathlib.Path, mode: str) -> None:
    """A job has one group of delegates: another file's wishes are said to be ignored, and info has what is in force."""
    environment = {"MPIOX_SITE_FILE": str(tmp_path / "site")}
    wishes = (
        "mpiox_delegates = 2",
        f"mpiox_delegate_mode = {mode}",
        "mpiox_delegate_page = 8k",
        "mpiox_delegate_cache = 4m",
    )
    (tmp_path / "site").write_text("\n".join(["[*]", *wishes, ""]), encoding="utf-8")
    launch = python_run(
        [PROGRAMS / "delegates_files.py", "settings", tmp_path / "file"], 3, env=environment, timeout_s=120
    )
    seen = json.loads(next(line for line in launch.stdout.splitlines() if line.startswith("SEEN "))[5:])
    late = "not in force, since the delegates had been started: "
    for rank in seen:
        assert late not in rank["delegation"][0], launch.describe()
        for text in (late, "mpiox_delegates=1", "mpiox_delegate_cache=1048576", "mpiox_delegate_page=4096"):
            assert text in rank["delegation"][1], launch.describe()
        assert rank["info"] == {
            "mpiox_delegates": "2",
            "mpiox_delegate_cache": str(4 << 20),
            "mpiox_delegate_page": "8192",
            "mpiox_delegate_mode": mode,
            "mpiox_delegate_ack": "memory",
        }
    assert launch.stderr.count(late) == 1, launch.describe()


REOPENED = """
import sys
import mpiio_ext
from mpi4py import MPI
mode = MPI.MODE_CREATE | MPI.MODE_RDWR
asked = MPI.Info.Create({"mpiox_delegates": "1", "mpiox_delegate_mode": "split"})
first = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], mode, asked)
in_force = first.Get_info()
assert in_force.Get("mpiox_delegate_mode") == "process"
second = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1] + ".2", mode, in_force)
second.Close()
first.Close()
"""


def test_settings_in_force_are_none_that_come_too_late(tmp_path: pathlib.Path) -> None:
    """HDF5 and PnetCDF open another file with the info object of the first, whose delegates ranks have started."""
    launch = python_run(["-c", REOPENED, tmp_path / "file"], 2, timeout_s=120)
    assert "mode process is in force" in launch.stderr, launch.describe()
    assert "not in force" not in launch.stderr, launch.describe()


# ---- a real disk -----------------------------------------------------------------------------------------------------


#: Size of `small_disk`.
DISK_KIB = 128


@pytest.mark.slow_with("thread")
@pytest.mark.parametrize("mode", MODES)
def test_caches_on_disks(small_disk: pathlib.Path, tmp_path: pathlib.Path, mode: str) -> None:
    """Of three delegates in turn: a folder that holds the cache, one that has no room for it, one that is not there."""
    (first := tmp_path / "first").mkdir()
    folders = f"{first};{small_disk};{tmp_path / 'missing'}"
    hints = f"mpiox_delegates=3:mpiox_delegate_mode={mode}:{SMALL}:mpiox_delegate_cache_dir={folders}"
    seen, launch = run("disk", tmp_path / "file", 3, hints)
    assert seen == [{"folders": [str(first)], "wrong": 0, "said": folders}] * 3, launch.describe()
    told = [line for line in launch.stderr.splitlines() if "mpiox_delegate_cache_dir" in line]
    assert len(told) == 1 and "No space left on device (409600 bytes)" in told[0], launch.describe()
    assert "of I/O delegate 1 on " in told[0] and "and of 1 more, is in memory, 409600 bytes" in told[0]
    assert not list(first.iterdir()) and not list(small_disk.iterdir())


@pytest.mark.parametrize("size", ["64m", *slow("more than the memory")])
def test_size_of_caches_on_disks(tmp_path: pathlib.Path, size: str) -> None:
    """The disk bounds it, not the memory; the smallest one is that of the test above."""
    (folder := tmp_path / "caches").mkdir()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    cache = memory + memory // 16 if size != "64m" else 64 << 20
    if shutil.disk_usage(folder).free < cache + cache // 4:
        pytest.skip("no disk with that much room")
    hints = f"mpiox_delegates=1:mpiox_delegate_cache={cache}:mpiox_delegate_cache_dir={folder}"
    seen, launch = run("disk", tmp_path / "file", 3, hints)
    assert seen == [{"folders": [str(folder)], "wrong": 0, "said": str(folder)}] * 3, launch.describe()
    assert "mpiio_ext:" not in launch.stderr, launch.describe()
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("level", "keep"),
    [("memory", "0"), ("disk", "0"), *slow(("memory", "0.3"), ("memory", "0.1"), ("disk", "0.3"), ("replica", "0.3"))],
)
def test_caches_that_cannot_be_read_any_more(tmp_path: pathlib.Path, level: str, keep: str) -> None:
    """Their tables, or pages alone. No rank ends; a close names what is lost. At level disk nothing is."""
    (folder := tmp_path / "caches").mkdir()
    hints = (
        f"mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page=4k:mpiox_delegate_cache_dir={folder}:"
        f"mpiox_close=staged:striping_unit=4k:mpiox_delegate_ack={level}"
    )
    (tmp_path / "file").touch()
    seen, launch = run("torn", tmp_path / "file", 3, hints, folder, keep)
    assert launch.stderr.count("cannot be read any more: the disk has failed, or the file was truncated") == 2
    assert len(set(seen)) == 1 and (seen[0] == "fine" or level != "disk"), launch.describe()
    if seen[0] == "fine":
        stored = np.fromfile(tmp_path / "file", np.uint8)
        places = np.arange(80 * 4096)  # as record() of the program
        wrong = np.flatnonzero(stored != (places * 7 + (places >> 12)) % 251 + 1)
        assert not len(wrong), f"{wrong}\n{launch.describe()}"
    else:
        assert (
            f"in a cache that is lost of {tmp_path / 'file'} failed at" in seen[0]
            or f"reading the cache of {tmp_path / 'file'} failed at" in seen[0]
        ), launch.describe()


@pytest.mark.parametrize("together", [(), ("together",)], ids=["after", "with"])
def test_a_full_disk_and_a_lost_cache(
    tmp_path: pathlib.Path, small_disk: pathlib.Path, together: tuple[str, ...]
) -> None:
    """Of one delegate the cache is lost: what another one cannot write fails the sync all the same."""
    for folder in (first := tmp_path / "first", second := tmp_path / "second"):
        folder.mkdir()
    hints = (
        "mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page=4k:mpiox_close=staged:striping_unit=4k:"
        f"mpiox_delegate_cache_dir={first};{second}"
    )
    (small_disk / "file").touch()
    seen, launch = run("lost_before", small_disk / "file", 3, hints, first, *together)
    assert together or all("in a cache that is lost" in rank["first"] for rank in seen), launch.describe()
    assert all("No space left on device" in rank["second"] for rank in seen), launch.describe()
    said = re.findall(r"lost bytes: (?!I/O).*in a cache that is lost.*at offset 0, length \d+", launch.stderr)
    assert len(said) == len(together), launch.describe()
    assert all((" more up to byte" in rank["second"]) for rank in seen), launch.describe()


@pytest.mark.parametrize("per_node", [*slow(0), 1])
@pytest.mark.parametrize("level", [*slow("memory"), "replica"])
def test_a_full_disk_and_a_killed_delegate(
    small_disk: pathlib.Path, tmp_path: pathlib.Path, level: str, per_node: int
) -> None:
    """No bytes of the delegate can be written, nor their copies: sync fails, and the statistics count the death."""
    hints = (
        f"mpiox_delegates=2:mpiox_delegate_page=4k:mpiox_delegate_cache=400k:striping_unit=4k:"
        f"mpiox_delegate_ack={level}"
    )
    statistics = tmp_path / "statistics"
    environment = {"MPIOX_RANKS_PER_NODE": str(per_node), "MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(statistics)}
    seen, launch = run("restored", small_disk / "file", 2, hints, **environment)
    (totals,) = (line["delegates"] for line in json_lines(statistics) if line["kind"] == "run")
    assert (totals["delegates"], totals["died"]) == (2, 1)
    assert all("fine" in rank["written"] for rank in seen), launch.describe()
    assert {rank["sync"] for rank in seen} == {"MPI_ERR_NO_SPACE"}, launch.describe()
