"""Merges and splits on file systems that share blocks, and between file systems: loop mounts of XFS and Btrfs.

Needs root, loop devices and mkfs.xfs or mkfs.btrfs; else the tests are skipped with that reason.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from support import fuzz
from support.made_subfiles import command, content, make

SIZE = (40 << 20) + 12345
MAKE = {"xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"], "btrfs": ["mkfs.btrfs", "-q"]}


@pytest.fixture(params=MAKE)
def disk(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    words = MAKE[request.param]
    image, at = tmp_path / "image", tmp_path / "disk"
    at.mkdir()
    image.touch()
    os.truncate(image, 400 << 20)
    if os.geteuid() != 0 or shutil.which(words[0]) is None:
        pytest.skip(f"needs root and {words[0]}")
    done = subprocess.run([*words, image], capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        done = subprocess.run(["mount", "-o", "loop", image, at], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        pytest.skip(f"{request.param} cannot be mounted here: {done.stderr.strip()}")
    yield at
    subprocess.run(["umount", at], check=True, timeout=60)


def used(path: pathlib.Path) -> int:
    os.sync()
    state = os.statvfs(path)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def test_blocks_are_shared(disk: pathlib.Path) -> None:
    """There is no room for a second file of that size; what does not fit the blocks is copied."""
    runs = {5 << 20: fuzz.data(20 << 20), SIZE - 10_000: b"x" * 9_999}
    make(disk / "f", runs, SIZE, 1 << 20, 3)
    before = used(disk)
    done = command("merge", disk / "f", "-o", disk / "g")
    assert done.exit_code == 0 and "reflink" in done.stdout, done.output
    assert used(disk) - before < 8 << 20
    assert command("merge", disk / "f", "--in-place").exit_code == 0
    assert (disk / "f").read_bytes() == (disk / "g").read_bytes() == content(runs, SIZE)
    assert (disk / "f").stat().st_blocks * 512 < 24 << 20


def test_units_that_fit_no_block(disk: pathlib.Path) -> None:
    runs = {0: fuzz.data(3_000_000)}
    make(disk / "f", runs, 3_000_000, 100_000, 3)
    done = command("merge", disk / "f", "-o", disk / "g")
    assert done.exit_code == 0 and "(copy_file_range)" in done.stdout, done.output


def test_to_another_file_system(disk: pathlib.Path, tmp_path: pathlib.Path) -> None:
    runs = {0: fuzz.data(8 << 20)}
    make(disk / "f", runs, SIZE, 1 << 20, 3)
    done = command("merge", disk / "f", "-o", tmp_path / "g")
    assert done.exit_code == 0 and "reflink" not in done.stdout
    assert (tmp_path / "g").read_bytes() == content(runs, SIZE) and (tmp_path / "g").stat().st_blocks * 512 < 9 << 20


def test_a_disk_that_gets_full(disk: pathlib.Path) -> None:
    """Units of no whole block have to be copied: there is no room; what is there stays, and no name is taken."""
    make(disk / "f", {0: bytes(range(1, 251)) * 1_000_000}, 250_000_000, 1_000_000, 3)
    done = command("merge", disk / "f", "-o", disk / "g")
    assert done.exit_code == 2 and "cannot be written: No space left on device" in done.stderr, done.output
    assert not (disk / "g").exists() and command("check", disk / "f").exit_code == 0
    done = command("merge", disk / "f", "--in-place")
    assert done.exit_code == 2 and "No space left on device" in done.stderr, done.output
    assert command("check", disk / "f").exit_code == 0
