"""Copies of an index, and hard links to it: what they say while the file is written, and that nothing goes from them.

A program that opens a file for writing puts another index in the place of the old one; that is done here by hand.
"""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Callable

import pytest

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


@WAYS
@pytest.mark.parametrize("half", [False, True])
def test_nothing_goes_on_with_either(
    way: Callable[[pathlib.Path, pathlib.Path], None], half: bool, tmp_path: pathlib.Path
) -> None:
    """Also where one is half written: the other says whole. The other one alone removed, all is as it was."""
    aa, other = tmp_path / "aa", tmp_path / "other"
    make(aa, RUNS, SIZE, 64, 3)
    way(aa, other)
    if half:
        write_half(aa)
    before = sorted(map(str, tmp_path.rglob("*")))
    for path, more in ((aa, other), (other, aa)):
        words = f"{path}: its subfiles are those of {more}, too, a copy of its index or a hard link: remove the one"
        for work in (["rm", path], ["merge", path, "--in-place"], ["merge", path, "-o", tmp_path / "plain"]):
            done = command(*work)
            assert done.exit_code == 2 and words in done.stderr, done.output
        done = command("check", path)
        assert done.exit_code == 1 and words in done.stdout and ": whole" not in done.stdout
    assert command("merge", other, "--unfinished").exit_code == 2
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    other.unlink()
    (tmp_path / "linked").symlink_to(aa)
    assert command("check", aa).exit_code == half
    assert command("rm", aa).exit_code == 0 and not list(tmp_path.glob("*.subfiles")) and not aa.exists()


def test_a_copy_with_its_folder_is_a_file_of_its_own(tmp_path: pathlib.Path) -> None:
    aa, other = tmp_path / "aa", tmp_path / "other"
    make(aa, RUNS, SIZE, 64, 3)
    shutil.copy(aa, other)
    shutil.copytree(tmp_path / "aa.subfiles", tmp_path / "other.subfiles")
    assert command("check", aa, other).exit_code == 0
    assert command("rm", other).exit_code == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["aa", "aa.subfiles"]
    assert command("merge", aa, "--in-place").exit_code == 0 and aa.read_bytes() == b"a" * SIZE


@pytest.mark.parametrize("folder_too", [False, True])
def test_what_was_renamed_by_hand(folder_too: bool, tmp_path: pathlib.Path) -> None:
    """The index alone, or its folder, too: it is the same file; a kill while it is removed is gone on with."""
    make(tmp_path / "aa", RUNS, SIZE, 64, 3)
    one = (tmp_path / "aa").rename(tmp_path / "one")
    if folder_too:
        (tmp_path / "aa.subfiles").rename(tmp_path / "one.subfiles")
    assert command("merge", one, "-o", tmp_path / "plain").exit_code == 0
    assert (tmp_path / "plain").read_bytes() == b"a" * SIZE
    folder = tmp_path / ("one.subfiles" if folder_too else "aa.subfiles")
    (folder / f"{IDENT}.2").unlink()
    assert command("rm", one).exit_code == 0 and [path.name for path in tmp_path.iterdir()] == ["plain"]


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
        write_half(aa)
        for name in ("aa", "copy"):
            with pytest.raises(OSError, match="Input/output error"):
                (tmp_path / "at" / name).read_bytes()
    finally:
        mounts.unmount(tmp_path / "at")
