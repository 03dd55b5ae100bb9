"""A file that is stored as several gets another name: by the command, killed at each step, and by hand.

Whatever happens, the bytes are read by the format alone from what has a name; there is always one, and never two.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import shutil
import struct
import zlib

import pytest

from mpiio_ext.cli import main
from mpiio_ext.common import files
from mpiio_ext.subfiles.stored import Files, find, read_range
from support import strangers
from support.made_subfiles import IDENT, child, command, content, index_text, make

#: Of `small_disk`.
DISK_KIB = 300
RUNS, SIZE, UNIT = {0: b"begin", 300: b"x" * 500}, 900, 64


def start(folder: pathlib.Path, count: int = 3, *, whole: bool = True) -> None:
    """Make the folders a and b, and a file in the first."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
    make(folder / "a" / "f", RUNS, SIZE, UNIT, count, whole=whole)
    (folder / "a" / "f").chmod(0o640)


def has_all(path: pathlib.Path) -> bool:
    """Return whether a file can be read, and has every byte."""
    stored = find(path)
    with Files(stored.subfiles) as opened:
        return bytes(read_range(opened, stored.striping, 0, SIZE)) == content(RUNS, SIZE)


def names(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.name.startswith(IDENT))


@pytest.mark.parametrize("target", ["a/g", "b/g", "b"])
@pytest.mark.parametrize(("count", "whole"), [(1, True), (3, True), (3, False), (4096, True)])
def test_a_file_is_renamed(target: str, count: int, whole: bool, tmp_path: pathlib.Path) -> None:
    start(tmp_path, count, whole=whole)
    new = tmp_path / (target if target.endswith("g") else "b/f")
    done = command("mv", tmp_path / "a/f", tmp_path / target)
    assert done.exit_code == 0 and done.stdout == f"{tmp_path / 'a/f'}: is {new} now\n", done.output
    short = str(new.relative_to(tmp_path))
    assert names(tmp_path) == sorted(["a", "b", short, f"{short}.subfiles"])
    assert new.read_bytes() == index_text(new.name, UNIT, count, SIZE if whole else None)
    assert new.stat().st_mode & 0o777 == 0o640 and command("check", new).exit_code == (0 if whole else 1)
    assert not whole or has_all(new)


def test_how_many_have_not_closed_it_is_kept(tmp_path: pathlib.Path) -> None:
    """The index of a file that several programs were writing counts them."""
    start(tmp_path, whole=False)
    lines = (tmp_path / "a/f").read_bytes().replace(b"count 3\n", b"count 3\nwriters 7\n").split(b"\n")[:-2]
    text = b"\n".join(lines) + b"\n"
    (tmp_path / "a/f").write_bytes(text + b"checksum %08x\n" % zlib.crc32(text))
    for old, new in (("a/f", "b/g"), ("b/g", "b/f")):
        assert command("mv", tmp_path / old, tmp_path / new).exit_code == 0
        assert b"\nwriters 7\n" in (tmp_path / new).read_bytes()


def moved_until(step: int, folder: pathlib.Path, target: str) -> bool:
    """Rename in a child that ends at a step; return whether it came so far."""
    process = os.fork()
    if process == 0:
        seen = 0

        def end(_name: str) -> None:
            nonlocal seen
            if seen == step:
                os._exit(9)
            seen += 1

        status = 1
        try:
            files.step = end
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            main(["subfiles", "mv", str(folder / "a/f"), str(folder / target)], standalone_mode=False)
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status in (0, 9)
    return status == 9


@pytest.mark.parametrize("target", ["a/g", "b/g"])
def test_killed_at_each_step(target: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    folder = tmp_path / "one"
    for step in range(99):
        start(folder)
        killed = moved_until(step, folder, target)
        there = [path for path in (folder / "a/f", folder / target) if path.exists()]
        assert len(there) == 1 and has_all(there[0])
        for directory in {folder / "a", there[0].parent} if killed else ():  # nobody takes them for orphans
            done = command("rm", "--orphans", "--yes", directory)
            assert done.exit_code == 0 or "start it again: mpiio-ext subfiles mv" in done.stderr, done.output
        assert has_all(there[0])
        if not killed:
            break
        if step % 2 and (folder / "a/f").exists():
            moved_until(1, folder, target)
        done = command("mv", folder / "a/f", folder / target)
        assert done.exit_code == 0 or "a/f: cannot be read" in done.stderr, done.output
        for left in folder.rglob(".*.tmp"):
            left.unlink()
        assert names(folder) == sorted(["a", "b", target, f"{target}.subfiles"])
        assert (folder / target).read_bytes() == index_text("g", UNIT, 3, SIZE)
    assert step > 5


@pytest.mark.parametrize("order", ["index", "folder", "both"])
def test_what_was_renamed_by_hand(order: str, tmp_path: pathlib.Path) -> None:
    """Both, or the index alone in its folder: it is the file. The folder alone: words say what to do."""
    start(tmp_path)
    if order != "folder":
        (tmp_path / "a/f").rename(tmp_path / "a/g")
    if order != "index":
        (tmp_path / "a/f.subfiles").rename(tmp_path / "a/g.subfiles")
    path = tmp_path / ("a/f" if order == "folder" else "a/g")
    done = command("check", path)
    if order == "folder":
        assert done.exit_code == 1 and done.stdout.startswith(f"{path}: the folder {path}.subfiles that this index")
        assert "`mpiio-ext subfiles mv` moves both" in done.stdout
        return
    assert done.exit_code == 0 and has_all(path)
    assert command("merge", path, "-o", tmp_path / "h").exit_code == 0
    assert command("mv", tmp_path / "a/f", path).exit_code == 0  # the text follows, and the folder
    assert path.read_bytes() == index_text("g", UNIT, 3, SIZE) and (tmp_path / "a/g.subfiles").is_dir()
    assert command("rm", path).exit_code == 0 and names(tmp_path) == ["a", "b", "h"]


def test_the_index_alone_in_another_folder(tmp_path: pathlib.Path) -> None:
    start(tmp_path)
    (tmp_path / "a/f").rename(tmp_path / "b/g")
    assert "is not there: was one of the two moved or renamed?" in command("merge", tmp_path / "b/g").stderr
    assert command("mv", tmp_path / "a/f", tmp_path / "b/g").exit_code == 0
    assert has_all(tmp_path / "b/g") and names(tmp_path) == ["a", "b", "b/g", "b/g.subfiles"]


@pytest.mark.parametrize("work", [["rm"], ["merge", "--in-place"]])
def test_a_copy_with_its_folder_is_a_file_of_its_own(work: list[str], tmp_path: pathlib.Path) -> None:
    """Renamed by hand, too: what is done to it leaves the first one alone."""
    start(tmp_path)
    shutil.copy(tmp_path / "a/f", tmp_path / "a/g")
    shutil.copytree(tmp_path / "a/f.subfiles", tmp_path / "a/g.subfiles")
    assert command(work[0], tmp_path / "a/g", *work[1:]).exit_code == 0
    assert has_all(tmp_path / "a/f") and not (tmp_path / "a/g.subfiles").exists()


def test_rm_of_a_renamed_file_that_is_killed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started again it finds the rest, though the first subfile, by which folders are told, is gone."""
    start(tmp_path)
    (tmp_path / "a/f").rename(tmp_path / "a/g")
    (tmp_path / "a/f.subfiles").rename(tmp_path / "a/g.subfiles")

    def step(name: str) -> None:
        if name == "subfile removed":
            raise KeyboardInterrupt

    monkeypatch.setattr(files, "step", step)
    assert command("rm", tmp_path / "a/g").exit_code != 0
    monkeypatch.undo()
    assert command("rm", tmp_path / "a/g").exit_code == 0 and names(tmp_path) == ["a", "b"]


def test_what_is_refused(tmp_path: pathlib.Path) -> None:
    start(tmp_path)
    old, before = tmp_path / "a/f", (tmp_path / "a/f").read_bytes()
    (tmp_path / "there").write_bytes(b"")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "folder.subfiles").mkdir()
    (tmp_path / "link").symlink_to(old)
    for source, target, words in (
        (old, "there", "there: is there already, and is not replaced"), (old, "dangling", "is there already"),
        (old, "folder", "folder.subfiles: is there already"), (old, "a", "is there already"),
        (old, "no/f", "there is no folder"), (old, "n" * 250, "File name too long"),
        (tmp_path / "link", "g", "link: is a link: rename the index"), (tmp_path / "there", "g", "is no index"),
        (tmp_path / "none", "g", "none: cannot be read"),
    ):  # fmt: skip
        done = command("mv", source, tmp_path / target)
        assert done.exit_code == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.output
    shutil.copy(old, tmp_path / "a/copy")
    assert "is a copy of the index" in command("mv", tmp_path / "a/copy", tmp_path / "g").stderr
    (tmp_path / "a/copy").unlink()
    (tmp_path / f"a/f.subfiles/{15 * '0'}1.0").write_bytes(b"")
    done = command("mv", old, tmp_path / "g")
    assert done.exit_code == 2 and "has subfiles of other files, which would go along" in done.stderr
    assert f"`rm --orphans {tmp_path / 'a/f.subfiles'}` lists those that no index has, merge the others" in done.stderr
    assert old.read_bytes() == before and has_all(old)


def test_another_file_system(tmp_path: pathlib.Path, small_disk: pathlib.Path) -> None:
    start(tmp_path / "one")
    path = tmp_path / "one/a/f"
    done = command("mv", path, small_disk)
    assert done.exit_code == 2 and "is on another file system: copy" in done.stderr and has_all(path)


@pytest.mark.parametrize("target", ["a/g", "b/g"])
def test_a_full_disk(target: str, small_disk: pathlib.Path) -> None:
    """Without room for another index a file is renamed within its folder all the same, its text is as it was."""
    start(small_disk / "one")
    with contextlib.suppress(OSError), (small_disk / "full").open("wb", buffering=0) as stream:
        while stream.write(bytes(4096)):
            pass
    new = small_disk / "one" / target
    done = command("mv", small_disk / "one/a/f", new)
    assert done.exit_code == 2 and "No space left on device" in done.stderr, done.output
    there = [path for path in (small_disk / "one/a/f", new) if path.exists()]
    assert len(there) == 1 and has_all(there[0])
    (small_disk / "full").unlink()
    assert command("mv", small_disk / "one/a/f", new).exit_code == 0
    assert new.read_bytes() == index_text("g", UNIT, 3, SIZE)
    assert names(small_disk / "one") == sorted(["a", "b", target, f"{target}.subfiles"])


def test_a_folder_that_cannot_go_along(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index has its old name again, and its text."""
    from mpiio_ext.subfiles import move

    start(tmp_path)
    before, rename = (tmp_path / "a/f").read_bytes(), files.give_name

    def give_name(old: pathlib.Path, new: pathlib.Path) -> None:
        if old.is_dir():
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(old, new)

    monkeypatch.setattr(move, "give_name", give_name)
    for target in ("a/g", "b/g"):
        done = command("mv", tmp_path / "a/f", tmp_path / target)
        assert done.exit_code == 2 and f"cannot be renamed to {tmp_path / target}: Invalid" in done.stderr, done.output
        assert (tmp_path / "a/f").read_bytes() == before and names(tmp_path) == ["a", "a/f", "a/f.subfiles", "b"]


def test_a_file_system_that_cannot_promise_it(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.ctypes, "CDLL", lambda *_, **__: None)
    start(tmp_path)
    assert command("mv", tmp_path / "a/f", tmp_path / "b/g").exit_code == 0 and has_all(tmp_path / "b/g")
    with pytest.raises(FileExistsError):
        files.give_name(tmp_path / "b/g", tmp_path / "a")


def test_a_program_that_writes_it(tmp_path: pathlib.Path) -> None:
    """It keeps its name."""
    start(tmp_path, whole=False)
    with (tmp_path / f"a/f.subfiles/{IDENT}.0").open("r+b") as stream:
        fcntl.fcntl(stream, 37, struct.pack("@hhqqi4x", fcntl.F_RDLCK, 0, 2**62 + 1, 1, 0))
        done = command("mv", tmp_path / "a/f", tmp_path / "b")
        assert done.exit_code == 2 and "is being written: a program has it open" in done.stderr, done.output


def test_another_user_may_not(tmp_path: pathlib.Path) -> None:
    strangers.need()
    start(tmp_path)
    for one in (tmp_path, *tmp_path.parents):
        if one.stat().st_uid == os.geteuid() and len(one.parts) > 2:
            one.chmod(one.stat().st_mode | 0o011)
    (tmp_path / "b").chmod(0o777)
    change = f"import difflib, os; import mpiio_ext.subfiles.move, mpiio_ext.cli.tables; os.setuid({strangers.NOBODY})"
    with child("mv", tmp_path / "a/f", tmp_path / "b/g", before=change) as process:
        err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 2 and "Permission denied" in err, err
    assert names(tmp_path) == ["a", "a/f", "a/f.subfiles", "b"] and has_all(tmp_path / "a/f")
