"""Copies of an index, and hard links to it: what they say while the file is written, and that nothing goes from them.

A program that opens a file for writing puts another index in the place of the old one; that is done here by hand.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from mpiio_ext.subfiles import index
from support import mounts
from support.made_subfiles import IDENT, command, index_text, make

RUNS, SIZE = {0: b"a" * 900}, 900


def copy(one: pathlib.Path, other: pathlib.Path) -> None:
    shutil.copy(one, other)


def link(one: pathlib.Path, other: pathlib.Path) -> None:
    os.link(one, other)


WAYS = pytest.mark.parametrize("way", [copy, link])


def write_half(path: pathlib.Path, name: str = "aa") -> None:
    """As a program does that opens the file for writing, writes a part, and is killed."""
    part = path.with_name("part")
    part.write_bytes(index_text(name, 64, 3, None))
    part.rename(path)
    with (path.parent / f"{name}.subfiles" / f"{IDENT}.0").open("r+b") as stream:
        stream.write(b"b" * 100)


@contextlib.contextmanager
def writer(path: pathlib.Path) -> Iterator[None]:
    """Hold the lock of a program that has the file open for writing."""
    with (path.parent / "aa.subfiles" / f"{IDENT}.0").open("r+b") as stream:
        fcntl.fcntl(stream, 37, struct.pack("@hhqqi4x", fcntl.F_RDLCK, 0, 2**62 + 1, 1, 0))
        yield


def refused(path: pathlib.Path, words: str, *, merged: bool = True) -> None:
    done = command("check", path)
    assert done.exit_code == 1 and words in done.stdout and ": whole" not in done.stdout, done.output
    if merged:
        done = command("merge", path, "-o", path.with_name("plain"))
        assert done.exit_code == 2 and words in done.stderr and not path.with_name("plain").exists(), done.output


@WAYS
def test_half_written_and_killed(way: Callable[[pathlib.Path, pathlib.Path], None], tmp_path: pathlib.Path) -> None:
    """Also by --unfinished, which has to be asked of the file itself; written again, both are whole."""
    aa, other = tmp_path / "aa", tmp_path / "other"
    make(aa, RUNS, SIZE, 64, 3)
    text = aa.read_bytes()
    way(aa, other)
    assert command("check", aa, other).stdout.count(": whole") == 2
    write_half(aa)
    assert b"state whole" in other.read_bytes()
    refused(other, f"other: has the subfiles of {aa}, which is not whole: the index says 'state writing'")
    refused(aa, "aa: is not whole")
    assert command("merge", other, "--unfinished").exit_code == 2
    assert command("check", tmp_path).stdout.count("not whole") == 2
    aa.unlink()
    aa.write_bytes(text)
    assert command("merge", other, "-o", tmp_path / "plain").exit_code == 0
    assert command("check", tmp_path).stdout.count(": whole") == 2


@WAYS
def test_a_program_that_writes(way: Callable[[pathlib.Path, pathlib.Path], None], tmp_path: pathlib.Path) -> None:
    """It has the lock; that counts for the other one also where its own index says nothing of it."""
    aa, other = tmp_path / "aa", tmp_path / "other"
    make(aa, RUNS, SIZE, 64, 3)
    way(aa, other)
    with writer(aa):
        refused(other, f"other: has the subfiles of {aa}, which is being written: a program has it open")
        write_half(aa)
        refused(other, f"other: has the subfiles of {aa}, which is being written: a program has it open")


def test_written_by_the_other_name(tmp_path: pathlib.Path) -> None:
    """Then this is the newer index, whether the folder is called after the old one or after none."""
    aa, other = tmp_path / "aa", tmp_path / "other"
    for renamed in (False, True):
        make(aa, RUNS, SIZE, 64, 3)
        os.utime(aa, (1, 1))
        os.link(aa, other)
        one = aa.rename(tmp_path / "one") if renamed else aa
        write_half(other)
        refused(one, f"{one.name}: has the subfiles of {other}, which is not whole")
        shutil.rmtree(tmp_path / "aa.subfiles")
        one.unlink()
        other.unlink()


def test_a_copy_that_was_made_meanwhile(tmp_path: pathlib.Path) -> None:
    """It says that the file is written, which is over: that is no word against the file."""
    make(tmp_path / "aa", RUNS, SIZE, 64, 3)
    (tmp_path / "snapshot").write_bytes(index_text("aa", 64, 3, None))
    os.utime(tmp_path / "snapshot", (1, 1))
    assert command("check", tmp_path / "aa").exit_code == 0
    assert command("merge", tmp_path / "aa", "-o", tmp_path / "plain").exit_code == 0


def test_through_a_mount(tmp_path: pathlib.Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "at").mkdir()
    aa = tmp_path / "files" / "aa"
    make(aa, RUNS, SIZE, 64, 3)
    shutil.copy(aa, aa.with_name("copy"))
    try:
        mounts.mount(aa.parent, tmp_path / "at")
    except mounts.NoMountError as error:
        pytest.skip(str(error))
    try:
        assert (tmp_path / "at" / "copy").read_bytes() == b"a" * SIZE
        write_half(aa)
        for name in ("aa", "copy"):
            with pytest.raises(OSError, match="Input/output error"):
                (tmp_path / "at" / name).read_bytes()
    finally:
        mounts.unmount(tmp_path / "at")


@WAYS
@pytest.mark.parametrize("renamed", [False, True])
def test_nothing_goes_from_them(
    way: Callable[[pathlib.Path, pathlib.Path], None], renamed: bool, tmp_path: pathlib.Path
) -> None:
    """Each command that takes subfiles from a name refuses, by either name; the other one alone removed, it does it."""
    make(tmp_path / "aa", RUNS, SIZE, 64, 3)
    way(tmp_path / "aa", tmp_path / "other")
    aa = (tmp_path / "aa").rename(tmp_path / "one") if renamed else tmp_path / "aa"
    what = "copy of" if way is copy else "hard link to"
    before = sorted(map(str, tmp_path.rglob("*")))
    for path, more in ((aa, tmp_path / "other"), (tmp_path / "other", aa)):
        for words in (["rm", path], ["mv", path, tmp_path / "new"], ["merge", path, "--in-place"]):
            done = command(*words)
            said = f"{path.name}: its subfiles are those of {more}, too, by a copy of its index or a hard link"
            if path.name == "other" and not renamed:
                said = f"other: is a {what} the index of {aa}, whose subfiles these are: remove the"
            assert done.exit_code == 2 and said in done.stderr, done.output
    assert sorted(map(str, tmp_path.rglob("*"))) == before and command("check", aa).exit_code == 0
    (tmp_path / "other").unlink()
    (tmp_path / "linked").symlink_to(aa)
    assert command("rm", aa).exit_code == 0
    assert not list(tmp_path.glob("*.subfiles")) and not aa.exists()


def test_a_folder_is_read_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` of a folder reads each index a few times, and not once for each other one."""
    count = 40
    for number in range(count):
        path = tmp_path / f"f{number}"
        path.write_bytes(index_text(path.name, 64, 3, 0, ident=f"{number:016x}"))
    os.utime(tmp_path, (time.time() - 100,) * 2)
    reads, read = [], index.read
    monkeypatch.setattr(index, "read", lambda path: (reads.append(path), read(path))[1])
    assert command("check", tmp_path).exit_code == 1
    assert count <= len(reads) <= 4 * count
