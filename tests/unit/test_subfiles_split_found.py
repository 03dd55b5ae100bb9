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
from mpiio_ext.subfiles.copying import Copier
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


@pytest.mark.parametrize(("name", "part"), [
    (".f.0123456789abcdef.tmp", True), (".f.index-0123456789abcdef", True), (".f\n.0123456789abcdef.tmp", True),
    (".f.tmp", False), (".f.index-1", False), ("f.0123456789abcdef.tmp", False), (".f.0123456789ABCDEF.tmp", False),
])  # fmt: skip
def test_names_of_indexes_that_are_not_there_yet(name: str, part: bool) -> None:
    """A user's own name is none of them: his index counts."""
    assert is_part(name) == part
