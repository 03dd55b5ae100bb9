"""Commands that are refused something, by the rights of the user or by links: what they leave is what was there.

Root acts as another user for a command. Other users take the right to write from themselves, which comes to the same.
"""

from __future__ import annotations

import os
import pathlib

import pytest

from mpiio_ext.common import files
from mpiio_ext.subfiles import folders
from support import strangers
from support.made_subfiles import IDENT, child, command, make

IS_ROOT = os.geteuid() == 0
#: What a command runs first to be another user, who cannot read the modules of this one.
AS_ANOTHER = ("import difflib, encodings.ascii, fractions, os, textwrap; import mpiio_ext.subfiles.merge, "
              "mpiio_ext.subfiles.sharing, mpiio_ext.cli.tables; os.setgroups([]); "
              f"os.setgid({strangers.NOBODY}); os.setuid({strangers.NOBODY})")  # fmt: skip


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder that everybody may write to, with a file f; to its subfiles nobody may write."""
    found = tmp_path / "open"
    found.mkdir()
    make(found / "f", {0: b"x" * 600}, 600, 64, 3)
    for one in (tmp_path, *tmp_path.parents):
        if one.stat().st_uid == os.geteuid() and len(one.parts) > 2:
            one.chmod(one.stat().st_mode | 0o011)
    (found / "f").chmod(0o644)
    (found / "f.subfiles").chmod(0o755 if IS_ROOT else 0o555)
    found.chmod(0o777)
    return found


def refused(*words: object) -> tuple[int, str, str]:
    """Return status, output and errors of a command of another user, where this is root."""
    if IS_ROOT:
        strangers.need()
    with child(*words, before=AS_ANOTHER if IS_ROOT else "") as process:
        out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


def state(folder: pathlib.Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return what a folder has: names, inodes, owners, permissions and bytes."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        text = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = status.st_ino, status.st_uid, status.st_mode, text
    return found


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the names of files that a file system keeps, whatever the rights of the folder say."""
    kept = {f"{IDENT}.{number}" for number in range(3)}
    unlink = pathlib.Path.unlink

    def keep(path: pathlib.Path, missing_ok: bool = False) -> None:
        if path.name in kept:
            raise PermissionError(1, "Operation not permitted", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(pathlib.Path, "unlink", keep)
    return kept


@pytest.mark.parametrize("words", [["rm"], ["merge", "--in-place"]])
def test_subfiles_that_cannot_be_removed(words: list[str], folder: pathlib.Path) -> None:
    """They are asked for before anything is changed, or copied."""
    before = state(folder)
    assert refused(*words, folder / "f") == (
        2, "", f"mpiio-ext: {folder}/f.subfiles: is not writable, so {IDENT}.0 in it cannot be removed\n")
    assert state(folder) == before and command("check", folder).exit_code == 0


@pytest.mark.skipif(not IS_ROOT, reason="only root can act as another user")
@pytest.mark.parametrize("name", ["f", f"f.subfiles/{IDENT}.0"])
@pytest.mark.parametrize("words", [["rm"], ["merge", "--in-place"]])
def test_sticky_folders(words: list[str], name: str, folder: pathlib.Path) -> None:
    """In them others' files cannot be removed, nor replaced; one's own can, and all in one's own."""
    (folder / "f.subfiles").chmod(0o777)
    place = (folder / name).parent
    place.chmod(0o1777)
    before = state(folder)
    assert refused(*words, folder / "f") == (
        2, "", f"mpiio-ext: {folder}/{name}: belongs to another user, in a sticky folder\n")
    assert state(folder) == before
    os.chown(place, strangers.NOBODY, -1)
    status, _, err = refused(*words, folder / "f")
    assert status == 0, err
    assert [path.name for path in folder.iterdir()] == (["f"] if words[0] == "merge" else [])


@pytest.mark.parametrize("removed", [0, 1])
def test_rm_that_is_refused_the_first_one(removed: int, folder: pathlib.Path, stubborn: set[str]) -> None:
    """The index says again what it said; not so when a subfile has gone."""
    (folder / "f.subfiles").chmod(0o755)
    (folder / "f").chmod(0o640)
    before = (folder / "f").read_bytes()
    if removed:
        stubborn.remove(f"{IDENT}.0")
    done = command("rm", folder / "f")
    assert done.exit_code == 2 and f"{folder}/f: cannot be written: Operation not permitted" in done.stderr
    if removed:
        assert b"\nstate writing\n" in (folder / "f").read_bytes()
    else:
        assert (folder / "f").read_bytes() == before and (folder / "f").stat().st_mode & 0o777 == 0o640
        assert command("check", folder / "f").exit_code == 0
    stubborn.clear()
    assert command("rm", folder / "f").exit_code == 0 and not list(folder.iterdir())


def test_rm_leaves_an_index_that_came_meanwhile(
    folder: pathlib.Path, stubborn: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "f.subfiles").chmod(0o755)
    assert stubborn
    monkeypatch.setattr(files, "step", lambda name: (folder / "f").write_bytes(b"new") if name == "rm: marked" else 0)
    assert command("rm", folder / "f").exit_code == 2 and (folder / "f").read_bytes() == b"new"


def test_a_merge_in_place_that_cannot_end(folder: pathlib.Path, stubborn: set[str]) -> None:
    """The file is whole then, and the words say so, as often as the command is started."""
    (folder / "f.subfiles").chmod(0o755)
    for _ in range(2):
        done = command("merge", "--in-place", folder / "f")
        assert (done.exit_code, done.stderr.splitlines()[-1]) == (
            2, f"mpiio-ext: {folder}/f: is one plain file now, and whole; to remove its subfiles is left, which the "
            f"same command does: {folder}/f.subfiles/{IDENT}.0: Operation not permitted"), done.output
        assert (folder / "f").read_bytes() == b"x" * 600
    stubborn.clear()
    assert command("merge", "--in-place", folder / "f").exit_code == 0
    assert [path.name for path in folder.iterdir()] == ["f"]


@pytest.mark.parametrize("words", [
    ["merge", "f", "-o", "l"], ["merge", "f", "-o", "l/g"], ["merge", "l", "--in-place"], ["rm", "--orphans", "l"],
    ["merge", "l", "--in-place", "--layout", "hdf5"], ["split", "l", "-o", "g", "--count", "2"],
    ["split", "l", "--in-place", "--count", "2"]])  # fmt: skip
def test_links_that_lead_in_a_circle(words: list[str], folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    pathlib.Path("l").symlink_to("l")
    before = state(folder)
    done = command(*words)
    assert done.exit_code == 2 and ": Too many levels of symbolic links\n" in done.stderr, done.output
    assert state(folder) == before


def test_a_folder_of_subfiles_that_leads_in_a_circle(folder: pathlib.Path) -> None:
    """Its index cannot say what it has, so no orphan beside it goes."""
    (folder / "f.subfiles").rename(folder / "g.subfiles")
    (folder / "f.subfiles").symlink_to("f.subfiles")
    done = command("rm", "--orphans", "--yes", folder)
    assert done.exit_code == 1 and f"kept: they may be of {folder}/f, which is a damaged index, or" in done.stderr


@pytest.mark.skipif(not IS_ROOT, reason="only root can act as another user")
def test_check_of_a_folder_with_an_index_that_cannot_be_read(folder: pathlib.Path) -> None:
    """It is told; a plain file that cannot be read, and has no subfiles, is nothing of here."""
    (folder / "f").chmod(0o600)
    for name in ("plain", "folder"):
        (folder / name).touch() if name == "plain" else (folder / name).mkdir()
        (folder / name).chmod(0o600)
    (folder / "folder.subfiles").mkdir()
    (folder / "folder.subfiles" / "notes").touch()
    assert refused("check", folder) == (2, "", f"mpiio-ext: {folder}/f: cannot be read: Permission denied\n")


def test_a_merge_to_a_name_that_an_index_has_got(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program has made a file of subfiles meanwhile, and closed it: it stays."""

    def made(name: str) -> None:
        if name == "merge: copied":
            make(folder / "g", {0: b"y" * 900}, 900, 64, 3)

    monkeypatch.setattr(files, "step", made)
    done = command("merge", folder / "f", "-o", folder / "g")
    assert done.exit_code == 2 and f"{folder}/g: is an index; its subfiles would be lost: `mpiio" in done.stderr
    monkeypatch.undo()
    done = command("check", folder)
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == 2, done.output
    assert {path.name for path in folder.iterdir()} == {"f", "f.subfiles", "g", "g.subfiles"}


def test_an_index_that_a_killed_split_has_not_named(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is none, whatever is done with its subfiles; they are kept while the split can go on with them."""
    (folder / "plain").write_bytes(b"0123456789" * 100)
    stop = ("import os\nfrom mpiio_ext.common import files\n"
            "files.step = lambda name: os._exit(9) if name == 'written g' else None")  # fmt: skip
    with child("split", folder / "plain", "-o", folder / "g", "--count", 3, before=stop) as process:
        process.communicate(timeout=60)
    (part,) = folder.glob(".g.*.tmp")
    assert process.returncode == 9 and part.read_bytes().startswith(b"mpiio_ext subfiles 1\n")
    monkeypatch.setattr(folders, "YOUNG_S", -1)
    done = command("check", folder)
    assert done.exit_code == 1 and part.name not in done.output and f"{folder}/f: whole" in done.stdout
    assert f"{folder}/g.subfiles: 3 subfiles, 1,000 B, without an index; kept: `split` was killed" in done.stdout
    (folder / ".g.splitting.journal").unlink()
    done = command("rm", "--orphans", "--yes", folder)
    assert (done.exit_code, done.stdout) == (0, f"{folder}/g.subfiles: removed with 3 subfiles, 1,000 B\n"), done.output
    done = command("check", folder)
    assert (done.exit_code, done.stdout) == (0, f"{folder}/f: whole, 600 B in 3 subfiles\n"), done.output
