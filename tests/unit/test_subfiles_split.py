"""Splits that meet other commands, or what a killed one has left; whose the new files are; locks that there are not.

A command is stopped at a step by an exception that nothing catches: what is on the disk stays as after a kill.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import stat
import tempfile
import types
from collections.abc import Callable, Iterator

import pytest

from mpiio_ext.common import files
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles import journal
from mpiio_ext.subfiles.journal import give_owner, lock
from support import strangers
from support.made_subfiles import IDENT, child, command, make

AT_WORK = "T: another command is at work on it"
ALREADY = "T: is an index of subfiles already"
#: What a command runs first to be another user, who cannot read the modules of this one.
AS_ANOTHER = ("import difflib, encodings.ascii, fractions, os; from mpiio_ext.common import files; "
              "import mpiio_ext.subfiles.split, mpiio_ext.subfiles.merge, mpiio_ext.cli.tables; os.setgroups([4242]); "
              f"os.setgid({strangers.NOBODY}); os.setuid({strangers.NOBODY})")  # fmt: skip


class KilledError(BaseException):
    """The command ends here."""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return the folder in which the commands run, with two plain files of one length."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode() * 700)
    return tmp_path


def split(name: str, *more: object) -> list[object]:
    """Return the words of a split to T."""
    return ["split", name, *([] if "--in-place" in more else ["-o", "T"]), "--unit", 64, "--count", 3, *more]


@contextlib.contextmanager
def at(step: str, does: Callable[[], object]) -> Iterator[list[object]]:
    """Do something once, at a step of the commands of the block; yield what it returned."""
    found: list[object] = []

    def reached(name: str) -> None:
        if name == step and not found:
            found.append(None)
            found[0] = does()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "step", reached)
        yield found
    assert found


def killed(step: str, *words: object) -> None:
    """Let a command end at a step."""

    def end() -> None:
        raise KilledError

    with at(step, end), pytest.raises(KilledError):
        command(*words)


def second(words: list[object]) -> str:
    """Return why a command is refused that another process runs."""
    with child(*words) as process:
        err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 2, err
    return err


def is_whole(name: str, data: bytes) -> bool:
    """Return whether there is an index of these bytes, and nothing else in the folder of its subfiles."""
    merged = pathlib.Path("merged")
    done, merge = command("check", name), command("merge", name, "-o", merged)
    assert done.exit_code == merge.exit_code == 0 and not done.stderr, (done.output, merge.output)
    found = merged.read_bytes()
    merged.unlink()
    return found == data


def names(path: pathlib.Path) -> set[str]:
    """Return what is in a folder."""
    return {one.name for one in path.iterdir()}


@pytest.mark.parametrize("step", ["split: journal", "split: copied"])
@pytest.mark.parametrize(("first", "other"), [(split("a"), split("b")), (split("T", "--in-place"), split("b"))])
def test_two_to_one_target(step: str, first: list[object], other: list[object], folder: pathlib.Path) -> None:
    """The second one is refused; also where the first had to remove what a killed one has left, and the folder."""
    (folder / "T").write_bytes(b"a" * 700)
    killed("split: made", *split("b", "--count", 2))
    with at(step, lambda: second(other)) as said:
        assert command(*first).exit_code == 0
    assert AT_WORK in str(said[0])
    assert is_whole("T", b"a" * 700) and len(names(folder / "T.subfiles")) == 3
    assert names(folder) == {"a", "b", "T", "T.subfiles"}
    assert (folder / "b").read_bytes() == b"b" * 700


def test_the_folder_is_removed_before_it_is_locked(folder: pathlib.Path) -> None:
    """Another command that ends removes it, where it is empty."""
    with at("split: folder", (folder / "T.subfiles").rmdir):
        assert command(*split("a")).exit_code == 0
    assert is_whole("T", b"a" * 700)


def test_the_folder_is_another_one_when_it_is_locked(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of the removed one would keep nobody away."""
    real, seen = fcntl.flock, 0

    def late(descriptor: int, operation: int) -> None:
        nonlocal seen
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) and not seen:
            (folder / "T.subfiles").rename(folder / "removed")
            (folder / "T.subfiles").mkdir()
        seen += stat.S_ISDIR(os.fstat(descriptor).st_mode)
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with at("split: copied", lambda: second(split("b"))) as said:
        assert command(*split("a")).exit_code == 0
    assert seen == 2 and AT_WORK in str(said[0]) and is_whole("T", b"a" * 700)


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_subfiles_that_have_gone_meanwhile(what: str, folder: pathlib.Path) -> None:
    """An index would name what is another's: there is none. What is not of this split stays."""

    def change() -> str:
        path = min((folder / "T.subfiles").iterdir())
        if what == "replaced":
            (folder / "mine").write_bytes(b"mine")
            (folder / "mine").replace(path)
        else:
            path.unlink()
        (folder / ".T.splitting.journal").unlink()
        (folder / ".T.splitting.journal").write_bytes(b"other")
        return path.name

    with at("split: copied", change) as name:
        done = command(*split("a"))
    assert done.exit_code == 2 and f"{name[0]}: was removed or replaced while " in done.stderr, done.output
    assert not (folder / "T").exists() and (folder / ".T.splitting.journal").read_bytes() == b"other"
    if what == "replaced":
        assert names(folder / "T.subfiles") == {*name}
        assert (folder / "T.subfiles" / str(name[0])).read_bytes() == b"mine"
    else:
        assert not (folder / "T.subfiles").exists()


@pytest.mark.parametrize("step", ["split: folder", "split: made", "split: copied"])
def test_a_target_that_a_program_makes_meanwhile(step: str, folder: pathlib.Path) -> None:
    """The index of a program stays, with its subfiles, whenever it comes."""

    def program() -> None:
        held = (folder / "T.subfiles").rename(folder / "held")  # a program uses the folder that is there
        make(folder / "T", {0: b"c" * 600}, 600, 64, 3)
        for one in (folder / "T.subfiles").iterdir():
            one.rename(held / one.name)
        held.replace(folder / "T.subfiles")

    with at(step, program):
        done = command(*split("a"))
    assert done.exit_code == 2 and ALREADY in done.stderr, done.output
    assert is_whole("T", b"c" * 600) and names(folder / "T.subfiles") == {f"{IDENT}.{one}" for one in range(3)}
    assert names(folder) == {"a", "b", "T", "T.subfiles"}


def test_another_split_is_killed_meanwhile(folder: pathlib.Path) -> None:
    """The journal that it leaves is of subfiles that its index names: they are not removed."""
    with at("split: folder", lambda: killed("split: index", *split("a"))):
        done = command(*split("b"))
    assert done.exit_code == 2 and ALREADY in done.stderr and is_whole("T", b"a" * 700), done.output


def test_a_killed_one_that_is_started_again(folder: pathlib.Path) -> None:
    """Only the same command is told that it is done: of the same source, as it was then, and in the same subfiles."""
    others = [split("b"), split("a", "--unit", 65), split("a", "--count", 2), split("T", "--in-place")]
    for words in (split("a"), *others, split("a", "--verify")):
        killed("split: index", *split("a"))
        assert (folder / ".T.splitting.journal").exists()
        done = command(*words)
        if words in others:
            assert done.exit_code == 2 and ALREADY in done.stderr, done.output
        else:
            assert done.exit_code == 0 and "nothing to copy, gone on with" in done.stdout, done.output
        assert not (folder / ".T.splitting.journal").exists() and is_whole("T", b"a" * 700)
        assert command("rm", "T").exit_code == 0
    killed("split: index", *split("a"))
    (folder / "a").write_bytes(b"A" * 700)
    done = command(*split("a"))
    assert done.exit_code == 2 and ALREADY in done.stderr and is_whole("T", b"a" * 700)
    for words, status in (([], 0), (["--count", 2], 2)):
        (folder / "f").write_bytes(b"f" * 700)
        killed("split: index", *split("f", "--in-place"))
        assert command(*split("f", "--in-place", *words)).exit_code == status
        assert not (folder / ".f.splitting.journal").exists() and is_whole("f", b"f" * 700)
        assert command("rm", "f").exit_code == 0


@pytest.mark.parametrize(("kept", "mode"), [(True, 0o754), (False, 0o704)])
def test_owner_group_and_permissions(
    kept: bool, mode: int, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the group cannot be given, another one does not get its permissions."""

    def fchown(_descriptor: int, _user: int, _group: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", fchown)
    status = (folder / "a").stat()
    with (folder / "a").open("r+b") as stream:
        given = types.SimpleNamespace(st_mode=stat.S_IFREG | 0o754, st_uid=status.st_uid + 1,
                                      st_gid=status.st_gid + (not kept))  # fmt: skip
        give_owner(stream.fileno(), given)
    assert stat.S_IMODE((folder / "a").stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o640, 0o444, 0o755])
def test_permissions_in_place(mode: int, folder: pathlib.Path) -> None:
    """Whatever the umask; a split that is killed goes on with subfiles that have them already."""
    old = os.umask(0o077)
    try:
        (folder / "a").chmod(mode)
        killed("split: copied", *split("a", "--in-place"))
        done = command(*split("a", "--in-place"))
    finally:
        os.umask(old)
    assert done.exit_code == 0 and "gone on with" in done.stdout, done.output
    own = [folder / "a", *(folder / "a.subfiles").iterdir()]
    assert {stat.S_IMODE(one.stat().st_mode) for one in own} == {mode} and is_whole("a", b"a" * 700)


def test_root_splits_a_file_of_another_user(folder: pathlib.Path) -> None:
    """It stays the other's, who can remove it; files of root's beside the subfiles do not become the other's."""
    strangers.need()
    for foreign in (False, True):
        (folder / "f").write_bytes(b"f" * 700)
        (folder / "f").chmod(0o640)
        os.chown(folder / "f", strangers.NOBODY, 0)
        killed("split: copied", *split("f", "--in-place"))
        if foreign:
            (folder / "f.subfiles" / "notes").write_bytes(b"")
            os.chown(folder / "f.subfiles", 0, 0)
        done = command(*split("f", "--in-place"))
        assert done.exit_code == 0 and "gone on with" in done.stdout, done.output
        own = [folder / "f", *(one for one in (folder / "f.subfiles").iterdir() if one.name != "notes")]
        found = {(one.stat().st_uid, one.stat().st_gid, stat.S_IMODE(one.stat().st_mode)) for one in own}
        assert found == {(strangers.NOBODY, 0, 0o640)} and len(own) == 4
        assert (folder / "f.subfiles").stat().st_uid == (0 if foreign else strangers.NOBODY)
        assert command("rm", "f").exit_code == 0


@pytest.fixture
def others_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """Yield a folder of another user's; those of pytest are closed whenever another one starts."""
    strangers.need()
    with tempfile.TemporaryDirectory() as name, monkeypatch.context() as patch:
        os.chown(name, strangers.NOBODY, strangers.NOBODY)
        patch.chdir(name)
        yield pathlib.Path(name)


@pytest.mark.parametrize("in_place", [False, True])
def test_the_folder_of_another_user(in_place: bool, folder: pathlib.Path) -> None:
    """In a sticky folder it is not used, unless the file that is replaced is his, too."""
    strangers.need()
    (folder / "T").write_bytes(b"old")
    (folder / "T.subfiles").mkdir()
    os.chown(folder / "T.subfiles", strangers.NOBODY, -1)
    folder.chmod(0o1777)
    words = split("T", "--in-place") if in_place else split("a")
    done = command(*words)
    assert done.exit_code == 2 and "T.subfiles belongs to another user" in done.stderr
    assert (folder / "T").read_bytes() == b"old" and not list((folder / "T.subfiles").iterdir())
    os.chown(folder / "T", strangers.NOBODY, -1)
    assert command(*words).exit_code == (0 if in_place else 2)


def test_a_merge_of_what_is_only_read_goes_on(others_folder: pathlib.Path) -> None:
    """Its file has the permissions of the index already when it is killed."""
    make(others_folder / "f", {0: b"x" * 700}, 700, 64, 3)
    (others_folder / "f").chmod(0o444)
    for one in (others_folder / "f", others_folder / "f.subfiles", *(others_folder / "f.subfiles").iterdir()):
        os.chown(one, strangers.NOBODY, strangers.NOBODY)
    kill = f"{AS_ANOTHER}; files.step = lambda name: os._exit(9) if name == 'merge: copied' else None"
    for before, status in ((kill, 9), (AS_ANOTHER, 0)):
        with child("merge", "f", "--in-place", before=before) as process:
            out, err = process.communicate(timeout=60)
        assert process.returncode == status, err
    assert b"gone on with" in out
    assert (others_folder / "f").read_bytes() == b"x" * 700 and (others_folder / "f").stat().st_mode & 0o777 == 0o444


def test_root_goes_on_with_a_merge_of_another_user(folder: pathlib.Path) -> None:
    strangers.need()
    make(folder / "f", {0: b"x" * 700}, 700, 64, 3)
    os.chown(folder / "f", strangers.NOBODY, -1)
    killed("merge: copied", "merge", "f", "--in-place")
    done = command("merge", "f", "--in-place")
    assert done.exit_code == 0 and "gone on with" in done.output
    assert (folder / "f").read_bytes() == b"x" * 700 and (folder / "f").stat().st_uid == strangers.NOBODY


def test_another_user_splits_files_of_root(others_folder: pathlib.Path) -> None:
    """One with a group that the user is in keeps it, else no group has permissions; both have been only for reading."""
    folder = others_folder
    for name, group in (("a", 0), ("b", 4242)):
        (folder / name).write_bytes(name.encode() * 700)
        (folder / name).chmod(0o444)
        os.chown(folder / name, 0, group)
    kill = f"{AS_ANOTHER}; files.step = lambda name: os._exit(9) if name == 'split: copied' else None"
    for words in (split("a"), split("a", "--in-place"), split("b", "--in-place")):
        for before, status in ((kill, 9), (AS_ANOTHER, 0)):
            with child(*words, before=before) as process:
                out, err = process.communicate(timeout=60)
            assert process.returncode == status, err
        assert b"gone on with" in out
    for name, gid, mode in (("a", strangers.NOBODY, 0o404), ("b", 4242, 0o444)):
        own = [folder / name, *(folder / f"{name}.subfiles").iterdir()]
        found = {(one.stat().st_gid, stat.S_IMODE(one.stat().st_mode)) for one in own}
        assert found == {(gid, mode)} and is_whole(name, name.encode() * 700)
    assert is_whole("T", b"a" * 700)


@pytest.mark.parametrize(("number", "words"), [
    (errno.EAGAIN, "another command is at work on it"), (errno.EACCES, "another command is at work on it"),
    (errno.EBADF, ""), (errno.ENOLCK, ""), (errno.EIO, "cannot be locked: Input/output error"),
])  # fmt: skip
def test_locks_of_other_file_systems(
    number: int, words: str, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over NFS there is none of a descriptor that only reads (EBADF): the split does without, as without any locks."""

    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(journal.fcntl, "flock", flock)
    with contextlib.nullcontext() if not words else pytest.raises(FileSystemError, match=words):
        lock(0, folder / "a")
    done = command(*split("a"))
    assert (done.exit_code, words in done.stderr) == (2 if words else 0, True), done.output
    assert words or is_whole("T", b"a" * 700)
