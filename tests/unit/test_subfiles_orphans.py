"""Folders of subfiles whose index is gone, and foreign files in folders: what is said, and what is removed."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import struct

import pytest

from support import strangers
from support.made_subfiles import IDENT, child, command, index_text, make


def orphan(folder: pathlib.Path, name: str, count: int = 3) -> pathlib.Path:
    """Make a file that is stored as several, and remove its index as any other file; return the folder."""
    make(folder / name, {0: b"x" * 600}, 600, 64, count)
    (folder / name).unlink()
    os.utime(folder / f"{name}.subfiles", (1, 1))  # changed long ago
    return folder / f"{name}.subfiles"


def test_a_folder_that_may_just_be_made_is_kept(tmp_path: pathlib.Path) -> None:
    """A job makes the subfiles before their index."""
    folder = orphan(tmp_path, "f")
    os.utime(folder)
    done = command("rm", "--orphans", tmp_path)
    assert done.exit_code == 1 and "it was changed in the last minute" in done.output
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("count", [1, 3, 4096])
def test_an_orphan_is_found_and_removed(count: int, tmp_path: pathlib.Path) -> None:
    """By the folder that it is in, and by its own; what has an index is whole, and stays."""
    make(tmp_path / "kept", {0: b"y" * 600}, 600, 64, 3)
    (tmp_path / "plain").write_bytes(b"plain")
    folder = orphan(tmp_path, "f", count)
    many = "1 subfile" if count == 1 else f"{count:,} subfiles"
    for given in (tmp_path, folder):
        done = command("check", given)
        assert done.exit_code == 1 and f"{folder}: {many}, 600 B, without an index: put it back" in done.stdout
    done = command("check", tmp_path, "--json")
    found = json.loads(done.stdout)
    assert [(one["path"], [problem["kind"] for problem in one["problems"]]) for one in found] == [
        (str(tmp_path / "kept"), []), (str(folder), ["orphan"])]  # fmt: skip
    assert len(found[1]["subfiles"]) == found[1]["count"] == count and done.exit_code == 1
    done = command("rm", "--orphans", tmp_path if count == 3 else folder)
    assert (done.exit_code, done.stdout) == (0, f"{folder}: removed with {many}, 600 B\n"), done.output
    assert {one.name for one in tmp_path.iterdir()} == {"kept", "kept.subfiles", "plain"}
    done = command("rm", "--orphans", tmp_path)
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path}: nothing in it is without an index\n")
    assert command("check", tmp_path).exit_code == 0


def test_what_is_spoken_of_is_none(tmp_path: pathlib.Path) -> None:
    """By an index that was renamed, a hidden one of a file that is staged, and a damaged one."""
    for name, index in (("a", "renamed"), ("b", ".b.staging"), ("c", "c")):
        make(tmp_path / name, {}, 600, 64, 3)
        (tmp_path / name).rename(tmp_path / index)
    (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes()[:-9])
    (tmp_path / "d.subfiles").mkdir()  # a folder of the user's, which is called so
    (tmp_path / "d.subfiles" / "thesis").write_bytes(b"mine")
    (tmp_path / "e.subfiles").symlink_to("d.subfiles")
    before = sorted(str(one) for one in tmp_path.rglob("*"))
    done = command("check", tmp_path)
    assert done.exit_code == 2 and "without" not in done.output and "c: is a damaged index" in done.stderr, done.output
    assert command("rm", "--orphans", tmp_path).stdout == f"{tmp_path}: nothing in it is without an index\n"
    assert sorted(str(one) for one in tmp_path.rglob("*")) == before


def test_what_is_kept(tmp_path: pathlib.Path) -> None:
    """With foreign files, a writer, a split or a merge that goes on; the others are removed all the same."""
    for name in ("foreign", "written", "split", "merge", "link", "free"):
        orphan(tmp_path, name)
    (tmp_path / "foreign.subfiles" / "notes").write_bytes(b"mine")
    (tmp_path / ".split.splitting.journal").write_bytes(b"")
    (tmp_path / ".merge.merging.journal").write_bytes(b"")
    (tmp_path / "link.subfiles" / f"{IDENT}.1").unlink()
    (tmp_path / "link.subfiles" / f"{IDENT}.1").symlink_to(tmp_path / "plain")
    with (tmp_path / "written.subfiles" / f"{IDENT}.0").open("r+b") as stream:
        fcntl.fcntl(stream, 37, struct.pack("@hhqqi4x", fcntl.F_RDLCK, 0, 2**62 + 1, 1, 0))
        for words in (["check", tmp_path], ["rm", "--orphans", tmp_path]):
            done = command(*words)
            assert done.exit_code == 1
            for name, said in (("foreign", "kept: notes in it is no subfile"), ("written", "a program writes it"),
                               ("split", "`split` was killed, or is at work"), ("link", f"{IDENT}.1 in it is no"),
                               ("merge", "`merge --in-place` was killed")):  # fmt: skip
                assert any(line.split(":")[-2 if ": kept" in line else 0] and f"/{name}.subfiles: " in line
                           and said in line for line in done.output.splitlines()), done.output  # fmt: skip
    assert {one.name for one in tmp_path.glob("*.subfiles")} == {
        f"{name}.subfiles" for name in ("foreign", "written", "split", "merge", "link")}  # fmt: skip
    assert len(list((tmp_path / "foreign.subfiles").iterdir())) == 4


def test_a_split_that_was_killed_goes_on(tmp_path: pathlib.Path) -> None:
    """`rm --orphans` between the two leaves it what it needs."""
    (tmp_path / "plain").write_bytes(b"0123456789" * 100_000)
    stop = ("import os\nfrom mpiio_ext.common import files\n"
            "files.step = lambda name: os._exit(9) if name == 'split: copied' else None")  # fmt: skip
    words = ["split", tmp_path / "plain", "-o", tmp_path / "f", "--count", 3, "--unit", 1000]
    with child(*words, before=stop) as process:
        process.communicate(timeout=60)
    assert process.returncode == 9 and not (tmp_path / "f").exists()
    assert command("rm", "--orphans", tmp_path).exit_code == 1
    assert "gone on with" in command(*words).stdout and command("check", tmp_path / "f").exit_code == 0


def test_foreign_files_of_a_healthy_file(tmp_path: pathlib.Path) -> None:
    """Thousands are one line, and no failure: nothing of the file is wrong."""
    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    for number in range(2000):
        (tmp_path / "f.subfiles" / f"{15 * '0'}1.{number}").write_bytes(b"")
    done = command("check", tmp_path / "f")
    assert done.exit_code == 0 and done.stdout == f"{tmp_path}/f: whole, 600 B in 3 subfiles\n"
    assert len(done.stderr.splitlines()) == 1 and "and 1,997 more in it: no subfile of this file" in done.stderr
    assert command("check", tmp_path).exit_code == 0
    assert len(json.loads(command("check", tmp_path / "f", "--json").stdout)[0]["foreign"]) == 2000


def test_check_of_a_folder(tmp_path: pathlib.Path) -> None:
    done = command("check", tmp_path)
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path}: no file in it is stored as several\n")
    make(tmp_path / "good", {}, 600, 64, 3)
    make(tmp_path / "unfinished", {}, 600, 64, 3, whole=False)
    done = command("check", tmp_path)
    assert done.exit_code == 1 and len(done.stdout.splitlines()) == 2
    assert "good: whole" in done.stdout and "unfinished: is not whole" in done.stdout
    (tmp_path / "bad").write_bytes(index_text("bad", 64, 3, 600)[:-3])
    done = command("check", tmp_path, tmp_path / "none")
    assert done.exit_code == 2 and "bad: is a damaged index" in done.stderr and "none: cannot be read" in done.stderr


def test_another_user_may_not(tmp_path: pathlib.Path) -> None:
    strangers.need()
    folder = orphan(tmp_path, "f")
    for one in (tmp_path, *tmp_path.parents):
        if one.stat().st_uid == os.geteuid() and len(one.parts) > 2:
            one.chmod(one.stat().st_mode | 0o055)
    change = f"import os; import mpiio_ext.subfiles.folders, mpiio_ext.cli.tables; os.setuid({strangers.NOBODY})"
    with child("rm", "--orphans", tmp_path, before=change) as process:
        err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 2 and f"{folder}: cannot be written: Permission denied" in err, err
    assert len(list(folder.iterdir())) == 3
