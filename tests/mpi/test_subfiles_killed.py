"""Jobs that are killed while they write subfiles: what looks whole afterwards is what a close has left.

tests/programs/subfiles_killed.py is killed at a random moment: one rank, all of them, or they and their delegates and
launcher at once. Then every file that it has made is judged by the format alone.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import re
import signal
import sys
import time

import pytest

from support import fuzz, scripts, subfiles
from support.launch import PROGRAMS, launcher, marked_processes, mpi_run, preload_environment
from support.made_subfiles import command
from support.marks import slow
from support.processes import Job, job, words

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

PROGRAM = PROGRAMS / "subfiles_killed.py"
HINTS = "*:mpiox_subfiles=4:mpiox_subfile_unit=1000"
DELEGATES = ":mpiox_delegates=2:mpiox_delegate_page=4k"
WAYS = {
    "plain": "",
    "nodes": ":mpiox_exchange=two_phase",
    "delegates": DELEGATES,
    "threads": DELEGATES + ":mpiox_delegate_mode=thread",
    "staged": DELEGATES + ":mpiox_close=staged",
}
WHO = ("one rank", "all ranks", "everything")


def kill(running: Job, who: str, draw: random.Random) -> None:
    """Kill them, without a chance to do anything more."""
    everything = marked_processes(running.marker)
    ranks = [pid for pid in everything if words(pid).startswith(sys.executable)]
    assert ranks, f"it has ended by itself: {running.text()}"
    victims = {"one rank": draw.sample(ranks, 1), "all ranks": ranks, "everything": everything}
    for pid in victims[who]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def last_words(text: str) -> dict[int, tuple[str, int]]:
    """Return what the job has told last of each file: "open" or "closed", and the generation."""
    found = re.findall(r"^(open|closed) (\d+) (\d+)$", text, re.M)
    return {int(number): (word, int(generation)) for word, number, generation in found}


def judge(path: pathlib.Path, word: str, generation: int, *, behind: bool) -> bool:
    """Judge one file; return whether it is whole. `behind`: it may be closed before it is written."""
    program = scripts.load("tests/programs/subfiles_killed.py")
    number = int(path.name)
    index = subfiles.read_index(path)  # whatever was killed, it is a good one
    assert command("check", path).exit_code == (index.size is None), command("check", path).output
    if index.size is None:
        assert word == "open" or behind, f"{path}: {word} {generation}, and not whole"
        return False
    allowed = {generation} if word == "closed" else {generation - 1, generation} - {-1}
    data = subfiles.read(path)
    assert any(data == program.content(number, one) for one in allowed), f"{path}: {word} {generation}"
    return True


def judge_all(folder: pathlib.Path, text: str, *, behind: bool) -> int:
    """Judge all files of a folder; return how many are not whole."""
    told, unfinished = last_words(text), 0
    for path in folder.iterdir():
        if path.name.endswith(".staging"):
            assert subfiles.read_index(path).size is None
            unfinished += 1
        elif path.name.isdecimal():
            unfinished += not judge(path, *told[int(path.name)], behind=behind)
    missing = {number for number, (word, _) in told.items() if word == "closed" and not (folder / str(number)).exists()}
    assert behind or not missing, f"closed, and not there: {missing}\n{text}"
    return unfinished


@pytest.mark.parametrize("kills", [6, *slow(200)])
def test_killed_while_it_writes(kills: int, tmp_path: pathlib.Path) -> None:
    """A busy machine may kill jobs before or after their writes only: then there are more, up to five times as many."""
    draw, hits, whole, number = random.Random(int(fuzz.seed())), 0, 0, 0
    while number < kills or (number < 5 * kills and not (hits > kills // 8 and whole)):
        way, who, ranks = list(WAYS)[number % len(WAYS)], draw.choice(WHO), draw.choice([2, 3, 4])
        how = draw.choice(["collective", "independent"])
        folder = tmp_path / f"{number} {way}"
        folder.mkdir()
        command_line = [str(launcher()), "-n", str(ranks), sys.executable, str(PROGRAM), str(folder), how]
        with job(command_line, tmp_path / "log", preload_environment() | {"MPIOX_HINTS": HINTS + WAYS[way]}) as running:
            running.wait_for("begun", 60)
            time.sleep(draw.uniform(0, 0.5))
            kill(running, who, draw)
            assert running.status(60) is not None, running.text()
            assert not running.left(60), running.text()
            text = folder.with_name(f"{folder.name}.told").read_text("ascii")
        try:
            unfinished = judge_all(folder, text, behind=way == "staged")
        except AssertionError as error:
            raise AssertionError(f"{way}, {how}, {ranks} ranks, {who}: {error}") from error
        hits += unfinished > 0
        whole += len(last_words(text)) > unfinished
        print(f"{number}: {way}, {how}, {ranks} ranks, {who}: {len(last_words(text))} files, {unfinished} unfinished")
        number += 1
    print(f"{number} kills, {hits} while a file was not whole")
    assert hits > kills // 8 and whole


def test_opened_while_delegates_give_it_its_name(tmp_path: pathlib.Path) -> None:
    """Both delegates may try at once; a rank that comes then finds the file by the one name or by the other."""
    files, folder = fuzz.examples(150), tmp_path / "files"
    folder.mkdir()
    words = [sys.executable, PROGRAM, folder, "collective", str(files)]
    launch = mpi_run(words, 3, env={"MPIOX_HINTS": HINTS + WAYS["staged"]}, preload=True, timeout_s=120)
    assert launch.returncode == 0, launch.describe()
    program = scripts.load("tests/programs/subfiles_killed.py")
    for number in range(0, files, 30):
        assert subfiles.read(folder / str(number)) == program.content(number, len(program.STEPS) - 1)
    assert all(subfiles.read_index(folder / str(number)).size for number in range(files))
