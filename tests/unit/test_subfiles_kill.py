"""Merges, splits and removals that are killed leave nothing that looks whole and is not, and are gone on with.

Two ways: the process ends at each step between two changes of the disk, in turn; and it is killed at random moments,
while it copies tens of megabytes. After each kill the state of the folder is judged by the format alone; at last the
command is started again and has to end with every byte in its place and nothing left over.
"""

from __future__ import annotations

import os
import pathlib
import random
import shutil
import time

import pytest

from mpiio_ext.cli import main
from mpiio_ext.common import files
from support import fuzz, tiers
from support.made_subfiles import IDENT, child, command, make

SIZE, UNIT, COUNT = (24 << 20) + 77, 1 << 16, 3
WORK = {
    "merge": ["merge", "f", "-o", "g"],
    "merge in place": ["merge", "f", "--in-place"],
    "split": ["split", "f", "-o", "g", "--count", "3", "--unit", "64K"],
    "split in place": ["split", "f", "--in-place", "--count", "3", "--unit", "4K"],
    "rm": ["rm", "f"],
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies loses nothing that it has handed to the system: no need to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def data() -> bytes:
    return random.Random(int(fuzz.seed())).randbytes(SIZE)


def start(folder: pathlib.Path, work: str, data: bytes) -> None:
    """Make what the command works on."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if work.startswith("split"):
        (folder / "f").write_bytes(data)
    else:
        make(folder / "f", {0: data}, len(data), UNIT, COUNT)


def judge(path: pathlib.Path, data: bytes) -> str:
    """Return what is under a name: "none", "plain", "whole" or "writing"; the first two whole ones have every byte."""
    if not path.exists():
        return "none"
    text = path.read_bytes()
    if not text.startswith(b"mpiio_ext subfiles"):
        assert text == data
        return "plain"
    lines = dict(line.split(" ", 1) for line in text.decode().splitlines()[2:])
    if lines["state"] == "writing":
        return "writing"
    found = bytearray(len(data))
    unit, count = int(lines["unit"]), int(lines["count"])
    for number in range(count):
        part = (path.parent / f"{path.name}.subfiles" / f"{lines['id']}.{number}").read_bytes()
        for row, place in enumerate(range(0, len(part), unit)):
            begin = (row * count + number) * unit
            found[begin : begin + unit] = part[place : place + unit]
    assert found == data
    return "whole"


def judge_all(folder: pathlib.Path, work: str, data: bytes) -> None:
    """Judge a folder after a kill."""
    kinds = {name: judge(folder / name, data) for name in ("f", "g")}
    allowed = {
        "merge": {"f": ["whole"], "g": ["none", "plain"]},
        "merge in place": {"f": ["whole", "plain"], "g": ["none"]},
        "split": {"f": ["plain"], "g": ["none", "whole"]},
        "split in place": {"f": ["plain", "whole"], "g": ["none"]},
        "rm": {"f": ["whole", "writing", "none"], "g": ["none"]},
    }[work]
    assert all(kinds[name] in allowed[name] for name in kinds), kinds


#: What a folder has at the end of each command, and what the target is then.
ENDS = {
    "merge": ({"f", "f.subfiles", "g"}, "g", "plain"), "merge in place": ({"f"}, "f", "plain"),
    "split": ({"f", "g", "g.subfiles"}, "g", "whole"), "split in place": ({"f", "f.subfiles"}, "f", "whole"),
    "rm": (set(), "f", "none"),
}  # fmt: skip


def has_ended(folder: pathlib.Path, work: str, data: bytes) -> bool:
    """Return whether the command has done all of its work."""
    names, target, kind = ENDS[work]
    left = {one.name for one in folder.iterdir() if one.suffix != files.TEMPORARY}
    return left == names and judge(folder / target, data) == kind


def end(folder: pathlib.Path, work: str, data: bytes) -> None:
    """Start the command again, unless it has ended; then all is in its place, and nothing of it is left over."""
    if not has_ended(folder, work, data):
        done = command(*[folder / word if word in ("f", "g") else word for word in WORK[work]])
        assert done.exit_code == 0, done.output
    assert has_ended(folder, work, data)
    judge_all(folder, work, data)
    for one in ("f.subfiles", "g.subfiles"):
        assert not (folder / one).exists() or len(list((folder / one).iterdir())) == COUNT


def killed_at(number: int, folder: pathlib.Path, work: str) -> bool:
    """Do the work in a child that ends at the step of this number; return whether it came so far."""
    process = os.fork()
    if process == 0:
        seen = 0

        def step(_name: str) -> None:
            nonlocal seen
            if seen == number:
                os._exit(9)
            seen += 1

        status = 1
        try:
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            files.step = step
            main(["subfiles", *WORK[work]], standalone_mode=False)
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status in (0, 9)
    return status == 9


@pytest.mark.parametrize("work", WORK)
def test_killed_at_each_step(work: str, tmp_path: pathlib.Path) -> None:
    data, folder = bytes(range(256)) * 700, tmp_path / "one"
    for number in range(99):
        start(folder, work, data)
        if not killed_at(number, folder, work):
            break
        judge_all(folder, work, data)
        if number % 2 and not has_ended(folder, work, data):  # and once more, while it goes on
            killed_at(1, folder, work)
            judge_all(folder, work, data)
        end(folder, work, data)
    assert number > 3


@pytest.mark.parametrize("change", ["append", "shorten", "replace"])
def test_a_merge_that_was_killed_is_ended_after_the_file_was_written(change: str, tmp_path: pathlib.Path) -> None:
    """It has its name then, and programs may use it: what they appended stays. A shorter or other file is not its."""
    data, folder, path = bytes(range(256)) * 700, tmp_path / "one", tmp_path / "one" / "f"
    start(folder, "merge in place", data)
    for number in range(99):
        assert killed_at(number, folder, "merge in place")
        if not path.read_bytes().startswith(b"mpiio_ext subfiles"):
            break
    if change == "append":
        with path.open("ab") as file:
            file.write(b"more")
        assert command("merge", "--in-place", path).exit_code == 0
        assert path.read_bytes() == data + b"more"
        assert [each.name for each in folder.iterdir()] == ["f"]
        return
    if change == "shorten":
        os.truncate(path, 100)
    else:
        (folder / "other").write_bytes(data)
        (folder / "other").rename(path)
    before = sorted(each.name for each in (folder / "f.subfiles").iterdir())
    done = command("merge", "--in-place", path)
    assert done.exit_code == 2 and "is no index of subfiles" in done.stderr
    assert sorted(each.name for each in (folder / "f.subfiles").iterdir()) == before


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("kills", [4, *tiers.slow(200)])
def test_killed_at_random_moments(kills: int, work: str, data: bytes, tmp_path: pathlib.Path) -> None:
    """A child is killed within the time that it takes; it is started again until it has ended, three times at most."""
    draw, folder = random.Random(int(fuzz.seed())), tmp_path / "one"
    words = [folder / word if word in ("f", "g") else word for word in WORK[work]]
    ready = "import mpiio_ext.subfiles.merge, mpiio_ext.subfiles.split, sys; sys.stderr.write('r'); sys.stderr.flush()"
    took_s, hits = 0.05, 0
    start(folder, work, data)
    for number in range(kills):
        with child(*words, before=ready) as process:
            assert process.stderr is not None and process.stderr.read(1) == b"r"
            begin_s = time.monotonic()
            time.sleep(draw.uniform(0, took_s))
            process.kill()
            _, err = process.communicate(timeout=60)
        if process.returncode == 0:
            took_s = max(time.monotonic() - begin_s, 0.01)
        else:
            hits += 1
            assert process.returncode == -9 or b"already" in err, err
            took_s *= 1.1
        judge_all(folder, work, data)
        if number % 3 == 2 or has_ended(folder, work, data):
            end(folder, work, data)
            start(folder, work, data)
    assert hits > kills // 8


@pytest.mark.parametrize(("work", "most", "all_parts"), [("_units", 256 << 20, 26), ("_pieces", 0, 25)])
def test_a_merge_goes_on(
    data: bytes, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, work: str, most: int, all_parts: int
) -> None:
    """What is in the journal is not copied again; what belongs to other contents is not taken over."""
    from mpiio_ext.subfiles import copying

    folder = tmp_path / "one"
    start(folder, "merge", data)
    monkeypatch.setattr(copying, "PART", 1 << 20)
    monkeypatch.setattr(copying, "_MOST_IN_PART", most)
    parts: list[tuple[int, int]] = []
    whole = getattr(copying.Copy, work)

    def some(*arguments: object) -> None:
        if len(parts) == 10:
            raise OSError(5, "stopped here")
        whole(*arguments)
        parts.append(arguments[-1])

    monkeypatch.setattr(copying.Copy, work, some)
    done = command("merge", folder / "f", "-o", folder / "g", "--threads", "1")
    assert done.exit_code == 2 and "cannot be written: stopped here" in done.stderr and not (folder / "g").exists()
    parts += [(-1, -1)]  # no longer ten
    done = command("merge", folder / "f", "-o", folder / "g", "--threads", "1", "--verify")
    assert "gone on with, compared" in done.stdout and len(parts) == len({*parts}) == 1 + all_parts
    parts[:] = []
    command("merge", folder / "f", "-o", folder / "g", "--threads", "1")
    assert len(parts) == 10 and (folder / ".g.merging").exists()
    one = folder / "f.subfiles" / f"{IDENT}.0"
    one.write_bytes(bytes(one.stat().st_size))
    parts += [(-1, -1)]
    done = command("merge", folder / "f", "-o", folder / "g", "--threads", "1", "--verify")
    assert done.exit_code == 0 and "gone on with" not in done.stdout and len(parts) == 11 + all_parts


def test_a_change_meanwhile_is_seen(data: bytes, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "one"
    for work, changed in (("merge", f"f.subfiles/{IDENT}.2"), ("merge in place", "f"), ("split in place", "f")):
        start(folder, work, data)

        def change(name: str, path: pathlib.Path = folder / changed) -> None:
            if name in ("merge: journal", "split: made"):
                text = path.read_bytes()
                path.write_bytes(text.replace(b"unit", b"tinu") if text.startswith(b"mpiio") else text[::-1])

        monkeypatch.setattr(files, "step", change)
        done = command(*[folder / word if word in ("f", "g") else word for word in WORK[work]])
        assert done.exit_code == 2 and "has changed while it was" in done.stderr, done.output
        monkeypatch.undo()
        assert {one.name for one in folder.iterdir()} <= {"f", "f.subfiles"}


def test_two_at_a_time(data: bytes, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "one"
    for work in ("merge", "split"):
        start(folder, work, data)
        words = [folder / word if word in ("f", "g") else word for word in WORK[work]]
        said = []

        def second(name: str, words: list[object] = words, said: list[str] = said) -> None:
            if name in ("merge: copied", "split: copied"):
                with child(*words) as process:
                    said.append(process.communicate(timeout=60)[1].decode())

        monkeypatch.setattr(files, "step", second)
        assert command(*words).exit_code == 0
        assert len(said) == 1 and "another command is at work on it" in said[0]
        judge_all(folder, work, data)
