"""What a split finds in the folder of its subfiles: another file's subfiles, a swapped folder, leftovers."""

from __future__ import annotations

import errno
import os
import pathlib
import re
from collections.abc import Callable

import pytest
from click.testing import Result

from mpiio_ext.common import files
from mpiio_ext.subfiles import sharing
from mpiio_ext.subfiles.copying import Copier, Copy
from mpiio_ext.subfiles.journal import is_part
from support import strangers
from support.made_subfiles import command


class KilledError(BaseException):
    """The command ends here."""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return the folder in which the commands run, with two plain files."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode() * 200_000)
    return tmp_path


def split(name: str, *more: object) -> list[object]:
    """Return the words of a split to T, in units that are copied one by one."""
    return ["split", name, *([] if "--in-place" in more else ["-o", "T"]), "--unit", 65536, "--count", 3, *more]


def at(step: str, does: Callable[[], object], *words: object) -> Result:
    """Return what a command does, in which something is done at a step."""
    reached = list[str]()

    def at_step(name: str) -> None:
        if name == step and not reached:
            reached.append(name)
            does()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "step", at_step)
        done = command(*words)
    assert reached
    return done


def killed(step: str, *words: object) -> None:
    """Let a command end at a step."""

    def end() -> None:
        raise KilledError

    with pytest.raises(KilledError):
        at(step, end, *words)


def is_whole(name: str, data: bytes) -> bool:
    """Return whether there is an index of these bytes."""
    merged = pathlib.Path("merged")
    done = command("merge", name, "-o", merged)
    assert done.exit_code == 0 and command("check", name).exit_code == 0, done.output
    found = merged.read_bytes()
    merged.unlink()
    return found == data


A, B = b"a" * 200_000, b"b" * 200_000


@pytest.mark.parametrize("change", ["renamed", "damaged", "with its folder"])
@pytest.mark.parametrize("words", [split("b", "--count", 2), split("a"), split("T", "--in-place")])
def test_an_index_that_was_renamed_after_a_kill(change: str, words: list[object], folder: pathlib.Path) -> None:
    """Its subfiles are neither removed nor made those of a second index; the new file has its own."""
    first = split("T", "--in-place") if "--in-place" in words else split("a")
    (folder / "T").write_bytes(A)
    if "--in-place" not in words:
        (folder / "T").unlink()
    killed("split: index", *first)
    (folder / "T").rename(folder / "c")
    held = folder / "T.subfiles"
    if change == "damaged":
        (folder / "c").write_bytes((folder / "c").read_bytes()[:-10])
    elif change == "with its folder":
        held = held.rename(folder / "c.subfiles")
    before = {path: path.stat().st_ino for path in held.iterdir()}
    if "--in-place" in words:
        (folder / "T").write_bytes(B)
    done = command(*words)
    assert done.exit_code == 0 and "gone on with" not in done.output, done.output
    assert {path: path.stat().st_ino for path in before} == before
    assert is_whole("T", A if words == split("a") else B) and not list(folder.glob(".*"))
    assert change == "damaged" or is_whole("c", A)


def test_what_may_be_the_index_cannot_be_read(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is removed then; without the journal the subfiles stay, and the split begins anew."""
    killed("split: index", *split("a"))
    (folder / "T").rename(folder / "c")
    before = {*(folder / "T.subfiles").iterdir()}
    real = sharing.index.is_index

    def refused(path: pathlib.Path, *, missing_ok: bool = True) -> bool:
        if path.name == "c":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(sharing.index, "is_index", refused)
        for words in (split("b"), split("a")):
            done = command(*words)
            assert done.exit_code == 2 and f"{folder}/c: cannot be read, and may be the index of " in done.stderr
            assert f"make it readable, or remove {folder}/.T.splitting.journal to keep" in done.stderr
        patch.setattr(os, "geteuid", lambda: strangers.NOBODY)
        assert sharing.speaking_of(folder, "0") == ([], [], [])  # another user's is no index of this user's
    assert {*(folder / "T.subfiles").iterdir()} == before and is_whole("c", A)
    (folder / ".T.splitting.journal").unlink()
    assert command(*split("b")).exit_code == 0 and is_whole("T", B) and is_whole("c", A)


@pytest.mark.parametrize(("words", "again"), [
    (split("a"), split("a")), (split("a"), split("b")), (split("a", "--in-place"), split("a", "--in-place")),
])  # fmt: skip
def test_an_index_without_its_name_goes_with_the_next_split(
    words: list[object], again: list[object], folder: pathlib.Path
) -> None:
    """What another name's command has left stays, and what is no index of this split."""
    name = "a" if "--in-place" in words else "T"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pathlib.Path, "unlink", lambda *_, **__: None)  # as after a kill
        killed(f"written {name}", *words)
    left = next(folder.glob(".*.tmp"))
    other = folder / f".{name}.0123456789abcdef.tmp"
    other.write_bytes(b"mpiio_ext subfiles 1\n")
    assert command(*again).exit_code == 0
    assert not left.exists() and other.exists() and is_whole(name, B if again == split("b") else A)


@pytest.mark.parametrize("step", ["split: folder", "split: journal", "split: made", "copy", "split: copied"])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_folder_that_is_swapped(
    step: str, in_place: bool, again: bool, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who owns it puts a link in its place: nothing is made, changed or removed where that leads."""
    words = split("T", "--in-place") if in_place else split("a")
    if in_place:
        (folder / "T").write_bytes(A)
    if again:
        killed("split: made", *words)
    (folder / "T.subfiles").mkdir(exist_ok=True)
    (folder / "victim").mkdir()
    for one in (folder / "T.subfiles").iterdir():  # names that are known by then
        (folder / "victim" / one.name).write_bytes(b"old")
    before = {path.name: b"old" for path in (folder / "victim").iterdir()}
    real = Copy.run

    def swap() -> None:
        (folder / "T.subfiles").rename(folder / "moved")
        (folder / "T.subfiles").symlink_to("victim")

    def run(copy: Copy) -> None:
        if step == "copy":
            swap()
        real(copy)

    monkeypatch.setattr(Copy, "run", run)
    done = command(*words) if step == "copy" else at(step, swap, *words)
    said = "Not a directory" if step == "split: folder" else "T.subfiles: was removed or replaced while "
    assert done.exit_code == 2 and said in done.stderr and "stays" not in done.stderr, done.output
    assert {path.name: path.read_bytes() for path in (folder / "victim").iterdir()} == before
    assert (folder / "T").exists() == in_place and (not in_place or (folder / "T").read_bytes() == A)
    if step != "split: folder":
        assert not list((folder / "moved").iterdir()) and not list(folder.glob(".*"))


@pytest.mark.parametrize(("step", "left"), [("split: copied", 0), ("renamed T", 3)])
def test_an_error_when_the_folder_has_gone(step: str, left: int, folder: pathlib.Path) -> None:
    """What was copied cannot be gone on with and does not stay, unless an index has it by then."""

    def full() -> None:
        (folder / "T.subfiles").rename(folder / "moved")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    done = at(step, full, *split("a"))
    assert done.exit_code == 2 and "T: cannot be written: No space left on device\n" in done.stderr, done.output
    assert len(list((folder / "moved").iterdir())) == left
    (folder / "moved").rename(folder / "T.subfiles")
    assert not left or is_whole("T", A)


@pytest.mark.parametrize("how", ["link", "another user"])
def test_a_subfile_that_is_swapped(how: str, folder: pathlib.Path) -> None:
    """A split that goes on writes to no file that an earlier one has not left."""
    killed("split: made", *split("a"))
    (folder / "old").write_bytes(b"old")
    first = min((folder / "T.subfiles").iterdir())

    def swap() -> None:
        first.unlink()
        if how == "link":
            first.hardlink_to(folder / "old")
        else:
            (folder / "old").rename(first)
            os.chown(first, strangers.NOBODY, -1)

    if how == "another user":
        strangers.need()
    done = at("split: journal", swap, *split("a"))
    assert done.exit_code == 2 and f"{first}: is in the way, and not a file that this command " in done.stderr
    assert first.read_bytes() == b"old"


def test_what_stays_of_a_full_disk(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file's subfiles in the folder are not counted, nor to be removed."""
    assert command(*split("a")).exit_code == 0
    (folder / "T").rename(folder / "c")
    others = {*(folder / "T.subfiles").iterdir()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Copier, "copy", full)
    done = command(*split("b"))
    found = re.search(r"What was copied stays, 0 B in (.+)/([0-9a-f]{16}\.\*): the same command", done.stderr)
    assert done.exit_code == 2 and found is not None, done.output
    left = {*(folder / "T.subfiles").iterdir()} - others
    assert pathlib.Path(found[1]) == folder / "T.subfiles" and len(left) == 3
    assert {*(folder / "T.subfiles").glob(found[2])} == left
    assert any(f"{path}: cannot be written: No space left" in done.stderr for path in left)


@pytest.mark.parametrize(("name", "part"), [
    (".f.0123456789abcdef.tmp", True), (".f.index-0123456789abcdef", True), (".f\n.0123456789abcdef.tmp", True),
    (".f.tmp", False), (".f.index-1", False), ("f.0123456789abcdef.tmp", False), (".f.0123456789ABCDEF.tmp", False),
])  # fmt: skip
def test_names_of_indexes_that_are_not_there_yet(name: str, part: bool) -> None:
    """A user's own name is none of them: his index counts."""
    assert is_part(name) == part
