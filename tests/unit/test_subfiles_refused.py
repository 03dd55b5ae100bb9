"""Commands that are refused something, by the rights of the user or by links: what they leave is what was there.

Root acts as another user for a command. Other users take the right to write from themselves, which comes to the same.
"""

from __future__ import annotations

import os
import pathlib

import pytest

from mpiio_ext.common import files
from support import strangers
from support.made_subfiles import IDENT, child, command, make

IS_ROOT = os.geteuid() == 0
#: What a command runs first to be another user, who cannot read the modules of this one.
AS_ANOTHER = (
    "import difflib, encodings.ascii, fractions, os, textwrap; import mpiio_ext.subfiles.cli, "
    "mpiio_ext.subfiles.merge, mpiio_ext.cli; os.setgroups([]); "
    f"os.setgid({strangers.NOBODY}); os.setuid({strangers.NOBODY})"
)


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


def test_rm_that_is_refused(folder: pathlib.Path) -> None:
    """Nothing has changed then."""
    before = state(folder)
    status, out, err = refused("rm", folder / "f")
    assert (status, out) == (2, "") and f"mpiio-ext: {folder}/f: cannot be removed: Permission denied" in err
    assert state(folder) == before and command("check", folder / "f").exit_code == 0


@pytest.mark.parametrize("removed", [0, 1])
def test_rm_that_is_refused_one(removed: int, folder: pathlib.Path, stubborn: set[str]) -> None:
    """When a subfile has gone the file is not whole; the next rm removes the rest."""
    (folder / "f.subfiles").chmod(0o755)
    if removed:
        stubborn.remove(f"{IDENT}.2")
    done = command("rm", folder / "f")
    assert done.exit_code == 2 and f"{folder}/f: cannot be removed: Operation not permitted" in done.stderr
    assert command("check", folder / "f").exit_code == removed
    stubborn.clear()
    assert command("rm", folder / "f").exit_code == 0 and not list(folder.iterdir())


def test_a_merge_in_place_that_cannot_end(folder: pathlib.Path, stubborn: set[str]) -> None:
    """The file is whole then; the words say so, and what to remove, also when the command is started again."""
    (folder / "f.subfiles").chmod(0o755)
    assert stubborn
    done = command("merge", "--in-place", folder / "f")
    words = "is one plain file now, and whole; its subfiles could not be removed, Operation not permitted: rm -r "
    assert done.exit_code == 2 and f"mpiio-ext: {folder}/f: {words}{folder}/f.subfiles\n" in done.stderr, done.output
    done = command("merge", "--in-place", folder / "f")
    assert done.exit_code == 2 and f"check the file, then rm -r {folder}/f.subfiles" in done.stderr
    assert (folder / "f").read_bytes() == b"x" * 600 and len(list((folder / "f.subfiles").iterdir())) == 3


@pytest.mark.parametrize(
    "words", [["merge", "f", "-o", "l"], ["merge", "f", "-o", "l/g"], ["merge", "l", "--in-place"], ["rm", "l"]]
)
def test_links_that_lead_in_a_circle(words: list[str], folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    pathlib.Path("l").symlink_to("l")
    before = state(folder)
    done = command(*words)
    assert done.exit_code == 2 and ": Too many levels of symbolic links\n" in done.stderr, done.output
    assert state(folder) == before


def test_a_merge_to_a_name_that_an_index_has_got(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program has made a file of subfiles meanwhile, and closed it: it stays."""

    def made(name: str) -> None:
        if name == "merge: copied":
            make(folder / "g", {0: b"y" * 900}, 900, 64, 3)

    monkeypatch.setattr(files, "step", made)
    done = command("merge", folder / "f", "-o", folder / "g")
    assert done.exit_code == 2 and f"{folder}/g: is an index; its subfiles would be lost: `mpiio" in done.stderr
    monkeypatch.undo()
    assert command("check", folder / "f", folder / "g").exit_code == 0
    assert {path.name for path in folder.iterdir()} == {"f", "f.subfiles", "g", "g.subfiles"}
