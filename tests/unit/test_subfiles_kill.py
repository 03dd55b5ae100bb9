"""Merges and removals that are killed leave nothing that looks whole and is not.

Two ways: the process ends at each step between two changes of the disk, in turn; and it is killed at random moments,
while it copies tens of megabytes. After each kill the state of the folder is judged by the format alone; at last what
an error of the command names is removed, and it has to end with every byte in its place.
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
from mpiio_ext.subfiles import copying, merge
from support import fuzz, marks
from support.made_subfiles import IDENT, child, command, make

SIZE, UNIT, COUNT = (24 << 20) + 77, 1 << 16, 3
WORK = {"merge": ["merge", "f", "-o", "g"], "merge in place": ["merge", "f", "--in-place"], "rm": ["rm", "f"]}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies loses nothing that it has handed to the system: no need to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def data() -> bytes:
    return random.Random(int(fuzz.seed())).randbytes(SIZE)


def start(folder: pathlib.Path, data: bytes) -> None:
    """Make what the command works on."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    make(folder / "f", {0: data}, len(data), UNIT, COUNT)


def judge(path: pathlib.Path, data: bytes) -> str:
    """Return what is under a name: "none", "plain", "whole" or "damaged"; the first two whole ones have every byte."""
    if not path.exists():
        return "none"
    text = path.read_bytes()
    if not text.startswith(b"mpiio_ext subfiles"):
        assert text == data
        return "plain"
    lines = dict(line.split(" ", 1) for line in text.decode().splitlines()[2:])
    if len(list(path.with_name(f"{path.name}.subfiles").glob("*"))) < COUNT:
        return "damaged"
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
        "rm": {"f": ["whole", "damaged", "none"], "g": ["none"]},
    }[work]
    assert all(kinds[name] in allowed[name] for name in kinds), kinds


#: What a folder has at the end of each command, and what the target is then.
ENDS = {
    "merge": ({"f", "f.subfiles", "g"}, "g", "plain"),
    "merge in place": ({"f"}, "f", "plain"),
    "rm": (set(), "f", "none"),
}


def end(folder: pathlib.Path, work: str, data: bytes) -> None:
    """Remove what the command says that a killed one has left, and start it again; then all is in its place."""
    names, target, kind = ENDS[work]
    words = [folder / word if word in ("f", "g") else word for word in WORK[work]]
    if judge(folder / target, data) != kind:
        done = command(*words)
        if (part := folder / f".{target}.merging").exists():
            assert done.exit_code == 2 and f"{part}: is in the way: " in done.stderr, done.output
            part.unlink()
            done = command(*words)
        assert done.exit_code == 0, done.output
    if work == "merge in place" and (folder / "f.subfiles").exists():
        done = command(*words)
        words_left = f"check the file, then rm -r {folder}/f.subfiles"
        assert done.exit_code == 2 and words_left in done.stderr, done.output
        shutil.rmtree(folder / "f.subfiles")
    judge_all(folder, work, data)
    assert {one.name for one in folder.iterdir()} == names and judge(folder / target, data) == kind


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
        start(folder, data)
        if not killed_at(number, folder, work):
            break
        judge_all(folder, work, data)
        if work == "rm":  # and once more, while it goes on
            killed_at(1, folder, work)
            judge_all(folder, work, data)
        end(folder, work, data)
    assert number > 2


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("kills", [4, *marks.slow(200)])
def test_killed_at_random_moments(kills: int, work: str, data: bytes, tmp_path: pathlib.Path) -> None:
    """A child is killed within the time that it takes."""
    draw, folder = random.Random(int(fuzz.seed())), tmp_path / "one"
    words = [folder / word if word in ("f", "g") else word for word in WORK[work]]
    ready = "import mpiio_ext.subfiles.merge, sys; sys.stderr.write('r'); sys.stderr.flush()"
    took_s, hits = 0.05, 0
    for _ in range(kills):
        start(folder, data)
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
            assert process.returncode == -9, err
            took_s *= 1.1
        judge_all(folder, work, data)
        end(folder, work, data)
    assert hits > kills // 8


def test_a_change_meanwhile_is_seen(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, folder = bytes(range(256)) * 700, tmp_path / "one"
    for work, changed in (("merge", f"f.subfiles/{IDENT}.2"), ("merge in place", "f")):
        start(folder, data)

        def changing(*arguments: object, path: pathlib.Path = folder / changed) -> str:
            text = path.read_bytes()
            path.write_bytes(text.replace(b"unit", b"tinu") if text.startswith(b"mpiio") else text[::-1])
            return copying.copy_out(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(merge, "copy_out", changing)
        done = command(*[folder / word if word in ("f", "g") else word for word in WORK[work]])
        assert done.exit_code == 2 and "has changed while it was" in done.stderr, done.output
        monkeypatch.undo()
        assert {one.name for one in folder.iterdir()} == {"f", "f.subfiles"}


def test_two_at_a_time(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, folder = bytes(range(256)) * 700, tmp_path / "one"
    start(folder, data)
    words = [folder / word if word in ("f", "g") else word for word in WORK["merge"]]
    errors = []

    def second(name: str) -> None:
        if name == "merge: copied":
            with child(*words) as process:
                errors.append(process.communicate(timeout=60)[1].decode())

    monkeypatch.setattr(files, "step", second)
    assert command(*words).exit_code == 0
    assert len(errors) == 1 and "another merge is at work on it" in errors[0]
    judge_all(folder, "merge", data)
