"""Folders of subfiles whose index is gone, and foreign files in folders: what is said, and what is removed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pathlib
import shutil
import struct
import time
import types

import pytest

from mpiio_ext.subfiles import folders
from support import strangers
from support.made_subfiles import IDENT, child, command, index_text, make


def orphan(folder: pathlib.Path, name: str, count: int = 3) -> pathlib.Path:
    """Make a file that is stored as several, and remove its index as any other file; return the folder."""
    make(folder / name, {0: b"x" * 600}, 600, 64, count)
    (folder / name).unlink()
    return age(folder / f"{name}.subfiles")


#: The clock of the commands is so many seconds ahead.
AHEAD_S = [0.0]
AHEAD = "import time, types; import mpiio_ext.subfiles.folders as f; now = time.time\n" \
        "f.time = types.SimpleNamespace(time=lambda: now() + 1000)\n"  # fmt: skip


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program can set when an inode was changed last, so the clock goes on instead."""
    AHEAD_S[0] = 0.0
    monkeypatch.setattr(folders, "time", types.SimpleNamespace(time=lambda: time.time() + AHEAD_S[0]))


def age(folder: pathlib.Path) -> pathlib.Path:
    """Let a folder, and what is in it, be changed long ago."""
    for path in (*folder.iterdir(), folder):
        os.utime(path, (1, 1))
    AHEAD_S[0] = 1000.0
    return folder


def touch(path: pathlib.Path) -> None:
    """Let a file be changed just now."""
    os.utime(path, (time.time() + AHEAD_S[0],) * 2)


def test_a_folder_that_may_just_be_made_is_kept(tmp_path: pathlib.Path) -> None:
    """A job makes the subfiles before their index."""
    for changed in ("f.subfiles", f"f.subfiles/{IDENT}.1"):
        folder = orphan(tmp_path, "f")
        touch(tmp_path / changed)
        done = command("rm", "--orphans", "--yes", tmp_path)
        assert done.exit_code == 1 and "it was changed in the last minute" in done.output
        assert len(list(folder.iterdir())) == 3
        shutil.rmtree(folder)


def test_a_copy_that_is_just_being_made(tmp_path: pathlib.Path) -> None:
    """`cp -a` brings the folder before the index, with the times of long ago; its inodes tell when it was made."""
    folder = orphan(tmp_path, "f")
    AHEAD_S[0] = 0.0
    done = command("rm", "--orphans", "--yes", tmp_path)
    assert done.exit_code == 1 and "it was changed in the last minute" in done.output
    assert len(list(folder.iterdir())) == 3
    AHEAD_S[0] = 1000.0
    assert command("rm", "--orphans", "--yes", tmp_path).exit_code == 0 and not folder.exists()


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
    assert done.exit_code == 1 and f"{folder}: {many}, 600 B, without an index: put it back" in done.stdout
    assert f"grep -rlF {IDENT} FOLDER" in done.stdout and "nothing was removed: --yes does that\n" in done.stderr
    assert len(list(folder.iterdir())) == count
    done = command("rm", "--orphans", "--yes", tmp_path if count == 3 else folder)
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
    assert command("rm", "--orphans", "--yes", tmp_path).stdout == f"{tmp_path}: nothing in it is without an index\n"
    assert sorted(str(one) for one in tmp_path.rglob("*")) == before


def test_what_is_kept(tmp_path: pathlib.Path) -> None:
    """With foreign files, a writer, a split or a merge that goes on; the others are removed all the same."""
    for name in ("foreign", "written", "split", "merge", "link", "free"):
        orphan(tmp_path, name)
    (tmp_path / "foreign.subfiles" / "notes").write_bytes(b"mine")
    (tmp_path / ".split.splitting.journal").write_bytes(b"")
    (tmp_path / ".merge.merging.journal").symlink_to(tmp_path / "nowhere")
    (tmp_path / "link.subfiles" / f"{IDENT}.1").unlink()
    (tmp_path / "link.subfiles" / f"{IDENT}.1").symlink_to(tmp_path / "plain")
    with (tmp_path / "written.subfiles" / f"{IDENT}.0").open("r+b") as stream:
        fcntl.fcntl(stream, 37, struct.pack("@hhqqi4x", fcntl.F_RDLCK, 0, 2**62 + 1, 1, 0))
        for words in (["check", tmp_path], ["rm", "--orphans", "--yes", tmp_path]):
            done = command(*words)
            assert done.exit_code == 1
            for name, said in (("foreign", "kept: notes in it is no subfile"), ("written", "a program writes or read"),
                               ("split", "`split` was killed, or is at work"), ("link", f"{IDENT}.1 in it is no"),
                               ("merge", "`merge --in-place` was killed, or is at work; start it again, or remove "
                                         f"{tmp_path}/.merge.merging.journal to give it up")):  # fmt: skip
                assert any(line.split(":")[-2 if ": kept" in line else 0] and f"/{name}.subfiles: " in line
                           and said in line for line in done.output.splitlines()), done.output  # fmt: skip
    assert {one.name for one in tmp_path.glob("*.subfiles")} == {
        f"{name}.subfiles" for name in ("foreign", "written", "split", "merge", "link")}  # fmt: skip
    assert len(list((tmp_path / "foreign.subfiles").iterdir())) == 4


def rotated(folder: pathlib.Path, count: int = 3, *, old: bool = True) -> dict[str, pathlib.Path]:
    """Write chk.new so many times, and rename it as rotation does; return the indexes by their IDs."""
    found = {}
    for number in range(count):
        make(folder / "other", {0: b"x" * 600}, 600, 64, 3)
        ident = f"{number:016x}"
        (folder / "chk.new.subfiles").mkdir(exist_ok=True)
        for part in (folder / "other.subfiles").iterdir():
            part.rename(folder / "chk.new.subfiles" / part.name.replace(IDENT, ident))
        (folder / "other.subfiles").rmdir()
        (folder / "other").unlink()
        found[ident] = folder / f"chk.{number}"
        found[ident].write_bytes(index_text("chk.new", 64, 3, 600, ident=ident))
    if old:
        age(folder / "chk.new.subfiles")
    return found


@pytest.mark.parametrize("by_folder", [False, True])
def test_subfiles_in_a_folder_of_others(tmp_path: pathlib.Path, by_folder: bool) -> None:
    """A rotation that has unlinked an index leaves subfiles beside those of other files: they alone go."""
    files = rotated(tmp_path, 4)
    gone, young = list(files)[1], list(files)[2]
    for ident in (gone, young):
        files[ident].unlink()
    shared = tmp_path / "chk.new.subfiles"
    touch(shared / f"{young}.2")
    given = shared if by_folder else tmp_path
    for words in (["check", tmp_path], ["rm", "--orphans", given]):
        done = command(*words)
        assert done.exit_code == 1, done.output
        assert f"{shared}/{gone}.*: 3 subfiles, 600 B, without an index: put it back" in done.stdout
        assert f"{shared}/{young}.*: 3 subfiles, 600 B, without an index; kept: it was changed" in done.output
        assert len(list(shared.iterdir())) == 12
    (shared / "notes").write_bytes(b"mine")
    done = command("rm", "--orphans", "--yes", given)
    assert done.exit_code == 1 and done.stdout == f"{shared}/{gone}.*: removed with 3 subfiles, 600 B\n", done.output
    assert {path.name.split(".")[0] for path in shared.iterdir()} == {*files, "notes"} - {gone}
    for ident in set(files) - {gone, young}:
        assert command("check", files[ident]).exit_code == 0


def test_an_index_that_nobody_can_read(tmp_path: pathlib.Path) -> None:
    """Renamed by a rotation, it may have any of the subfiles: nothing goes, and the reason is told."""
    files = rotated(tmp_path, 3)
    lost, damaged, _ = files.values()
    lost.unlink()
    text = damaged.read_bytes()
    damaged.write_bytes(text[:100])
    orphan(tmp_path, "f")
    done = command("rm", "--orphans", "--yes", tmp_path)
    assert done.exit_code == 1 and len(list(tmp_path.glob("*.subfiles/*"))) == 12
    assert done.output.count(f"kept: they may be of {damaged}, which is a damaged index, or cannot be read: mend") == 3
    damaged.write_bytes(text)
    assert command("rm", "--orphans", "--yes", tmp_path).exit_code == 0
    assert len(list(tmp_path.glob("*.subfiles/*"))) == 6 and command("check", tmp_path).exit_code == 0


def test_an_index_of_another_user(tmp_path: pathlib.Path) -> None:
    """Who must not read it cannot know which subfiles it has."""
    strangers.need()
    lost, other, _ = rotated(tmp_path, 3).values()
    lost.unlink()
    other.chmod(0o600)
    for one in (tmp_path, *tmp_path.parents):
        if one.stat().st_uid == os.geteuid() and len(one.parts) > 2:
            one.chmod(one.stat().st_mode | 0o077)
    change = f"{AHEAD}import os, mpiio_ext.cli.tables; os.setuid({strangers.NOBODY})"
    (tmp_path / "chk.new.subfiles").chmod(0o777)
    with child("rm", "--orphans", "--yes", tmp_path, before=change) as process:
        err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 1 and err.count(f"kept: they may be of {other}, which is") == 2, err
    assert len(list((tmp_path / "chk.new.subfiles").iterdir())) == 9


def test_an_index_that_was_moved_alone(tmp_path: pathlib.Path) -> None:
    """Its data is there until the user has said --yes, and the words say how the index is found."""
    (tmp_path / "archive").mkdir()
    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    age(tmp_path / "f.subfiles")
    (tmp_path / "f").rename(tmp_path / "archive" / "f")
    done = command("rm", "--orphans", tmp_path)
    assert done.exit_code == 1 and f"put it back if it was moved or renamed (grep -rlF {IDENT} FOLDER" in done.stdout
    assert IDENT.encode() in (tmp_path / "archive" / "f").read_bytes()
    (tmp_path / "archive" / "f").rename(tmp_path / "f")
    assert command("check", tmp_path / "f").exit_code == 0
    assert command("rm", "--yes", tmp_path / "f").exit_code == 2 and (tmp_path / "f").exists()


def test_a_job_whose_clock_is_behind(tmp_path: pathlib.Path) -> None:
    """It has made some of its subfiles, a minute ago by its clock: the lock that it has since the first one counts."""
    folder = tmp_path / "f.subfiles"
    folder.mkdir()
    for number in range(2):
        (folder / f"{IDENT}.{number}").touch()
    age(folder)
    with (folder / f"{IDENT}.0").open("r+b") as stream:
        fcntl.fcntl(stream, 37, struct.pack("@hhqqi4x", fcntl.F_RDLCK, 0, 2**62 + 1, 1, 0))
        done = command("rm", "--orphans", "--yes", tmp_path)
        assert done.exit_code == 1 and "kept: a program writes or reads it" in done.stderr
    assert len(list(folder.iterdir())) == 2


def test_a_job_that_begins_while_orphans_are_removed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the lock of its first subfile, and finds that it is gone; what is there is not taken from it."""
    folder, seen = orphan(tmp_path, "f"), []
    orphans = folders.orphans

    def look(path: pathlib.Path, **more: bool) -> object:
        with (folder / f"{IDENT}.0").open("r+b") as stream:
            try:
                fcntl.fcntl(stream, 37, struct.pack("@hhqqi4x", fcntl.F_RDLCK, 0, 2**62 + 1, 1, 0))
                seen.append("had")
            except BlockingIOError:
                seen.append("waits")
        return orphans(path, **more)

    monkeypatch.setattr(folders, "orphans", look)
    assert command("rm", "--orphans", "--yes", tmp_path).exit_code == 0 and seen == ["had", "waits"]


def test_a_split_that_was_killed_goes_on(tmp_path: pathlib.Path) -> None:
    """`rm --orphans` between the two leaves it what it needs."""
    (tmp_path / "plain").write_bytes(b"0123456789" * 100_000)
    stop = ("import os\nfrom mpiio_ext.common import files\n"
            "files.step = lambda name: os._exit(9) if name == 'split: copied' else None")  # fmt: skip
    words = ["split", tmp_path / "plain", "-o", tmp_path / "f", "--count", 3, "--unit", 1000]
    with child(*words, before=stop) as process:
        process.communicate(timeout=60)
    assert process.returncode == 9 and not (tmp_path / "f").exists()
    age(tmp_path / "f.subfiles")
    assert command("rm", "--orphans", "--yes", tmp_path).exit_code == 1
    assert "gone on with" in command(*words).stdout and command("check", tmp_path / "f").exit_code == 0


def test_foreign_files_of_a_healthy_file(tmp_path: pathlib.Path) -> None:
    """Thousands are one line, and no failure: nothing of the file is wrong. Of the folder they are."""
    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    for number in range(2000):
        (tmp_path / "f.subfiles" / f"{15 * '0'}1.{number}").write_bytes(b"")
    done = command("check", tmp_path / "f")
    assert done.exit_code == 0 and done.stdout == f"{tmp_path}/f: whole, 600 B in 3 subfiles\n"
    assert len(done.stderr.splitlines()) == 1 and "and 1,997 more in it: no subfile of this file" in done.stderr
    done = command("check", tmp_path)
    assert done.exit_code == 1 and f"{tmp_path}/f.subfiles/{15 * '0'}1.*: 2,000 subfiles, 0 B, without" in done.stdout
    assert len(json.loads(command("check", tmp_path / "f", "--json").stdout)[0]["foreign"]) == 2000


def test_check_of_a_rotation(tmp_path: pathlib.Path) -> None:
    """What another index beside it names is not told as foreign; what none names still is."""
    files = rotated(tmp_path, 3)
    done = command("check", tmp_path)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert [one["foreign"] for one in json.loads(command("check", tmp_path, "--json").stdout)] == [[], [], []]
    (tmp_path / "chk.new.subfiles" / "notes").write_bytes(b"mine")
    files.popitem()[1].unlink()
    done = command("check", *files.values())
    assert done.exit_code == 0 and done.stderr.count(": 0000000000000002.0, 0000000000000002.1, ") == 2, done.output
    assert done.stderr.count("and 1 more in it: no subfile of this file") == 2, done.output


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
    opened_to_others(tmp_path)
    status, _, err = as_nobody("rm", "--orphans", "--yes", tmp_path)
    assert status == 2 and f"{folder}: cannot be written: Permission denied" in err, err
    assert len(list(folder.iterdir())) == 3


def opened_to_others(folder: pathlib.Path) -> None:
    """Let other users come to a folder."""
    for one in (folder, *folder.parents):
        if one.stat().st_uid == os.geteuid() and len(one.parts) > 2:
            one.chmod(one.stat().st_mode | 0o055)


def as_nobody(*words: object) -> tuple[int, str, str]:
    """Return status, output and errors of a command of another user."""
    modules = "mpiio_ext.cli.tables, mpiio_ext.subfiles.folders, mpiio_ext.subfiles.sharing"
    with child(*words, before=f"{AHEAD}import os, textwrap, {modules}; os.setuid({strangers.NOBODY})") as process:
        out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


def test_links_into_a_folder_that_nobody_may_enter(tmp_path: pathlib.Path) -> None:
    """They are no indexes of here, and hide none of what is."""
    strangers.need()
    closed, folder = tmp_path / "closed", tmp_path / "open"
    for one in (closed, folder):
        one.mkdir()
    make(closed / "f", {}, 600, 64, 3)
    make(folder / "kept", {}, 600, 64, 3)
    lost = orphan(folder, "lost")
    for name, target in (("a", "f"), ("b.subfiles", "f.subfiles"), (".lost.merging.journal", "j")):
        (folder / name).symlink_to(closed / target)
    opened_to_others(folder)
    closed.chmod(0o700)
    status, out, err = as_nobody("check", folder)
    assert (status, err) == (1, "") and f"{folder}/kept: whole" in out and f"{lost}: 3 subfiles" in out, out + err
    status, out, err = as_nobody("rm", "--orphans", folder)
    assert status == 1 and err.startswith(f"mpiio-ext: {lost}: 3 subfiles") and "b.subfiles" not in err, out + err
    (folder / ".lost.merging.journal").unlink()
    (lost / ".moving").symlink_to(closed / "m")
    status, out, err = as_nobody("rm", "--orphans", folder)
    assert status == 1 and f"kept: a command was killed; start it again: {lost}/.moving says" in err, out + err


def test_folders_that_nobody_may_read(tmp_path: pathlib.Path) -> None:
    """They are errors, and not folders in which nothing is stored as several; so is one that can be listed only."""
    strangers.need()
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder / "f", {}, 600, 64, 3)
    opened_to_others(tmp_path)
    folder.chmod(0o744)
    for words in (["check", folder], ["rm", "--orphans", folder], ["check", folder / "f"],
                  ["rm", "--orphans", folder / "f.subfiles"]):  # fmt: skip
        status, out, err = as_nobody(*words)
        assert status == 2 and not out, out + err
        assert err == f"mpiio-ext: {words[-1]}: cannot be read: Permission denied\n"
    folder.chmod(0o755)
    (folder / "f.subfiles").chmod(0o711)
    status, out, err = as_nobody("check", folder / "f")
    assert status == 2 and out == f"{folder}/f: whole, 600 B in 3 subfiles\n", out + err
    assert err == f"mpiio-ext: {folder}/f.subfiles: cannot be read: Permission denied\n"


def test_a_merge_that_is_given_up(tmp_path: pathlib.Path) -> None:
    """Who removes the journal that is named may remove the subfiles."""
    folder = orphan(tmp_path, "f")
    journal = tmp_path / ".f.merging.journal"
    journal.write_bytes(b"")
    done = command("rm", "--orphans", "--yes", tmp_path)
    assert done.exit_code == 1 and f"or remove {journal} to give it up" in done.stderr and folder.exists()
    journal.unlink()
    assert command("rm", "--orphans", "--yes", tmp_path).exit_code == 0 and not folder.exists()


@pytest.mark.parametrize("where", ["beside", "elsewhere"])
def test_rm_of_a_link(tmp_path: pathlib.Path, where: str) -> None:
    """What it leads to is somebody's file: it is named, and stays. Through a folder that is a link it goes."""
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "f"
    make(file, {0: b"x" * 600}, 600, 64, 3)
    link = (file.parent if where == "beside" else tmp_path) / "link"
    link.symlink_to(file)
    done = command("rm", link)
    assert done.exit_code == 2 and done.stderr == (
        f"mpiio-ext: {link}: is a link: rm the index {file}, or the link itself by plain rm\n")
    assert link.is_symlink() and command("check", file).exit_code == 0
    (tmp_path / "way").symlink_to("data")
    assert command("rm", tmp_path / "way" / "f").exit_code == 0
    assert not file.exists() and not list(file.parent.glob("*.subfiles"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_the_folder_of_another_user(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a sticky folder its owner could swap what is in it; root's, and one's own, are good."""
    folder = tmp_path / "f.subfiles"
    folder.mkdir()
    for user, owner, mode, good in ((0, strangers.NOBODY, 0o1777, False), (0, strangers.NOBODY, 0o777, True),
                                    (0, 0, 0o1777, True), (strangers.NOBODY, 0, 0o1777, True),
                                    (strangers.NOBODY, strangers.NOBODY, 0o1777, True),
                                    (strangers.NOBODY, 1, 0o1777, False)):  # fmt: skip
        os.chown(folder, owner, -1)
        tmp_path.chmod(mode)
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        try:
            folders.check_folder(folder)
            assert good
        except OSError as error:
            assert not good and error.errno == errno.EPERM and "f.subfiles belongs to another user" in str(error)
