"""What files hold that are closed before they are written, and killing those who are to write them."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time
from collections.abc import Iterable

import numpy as np

from support import subfiles
from support.launch import PROGRAMS, launcher, preload_environment
from support.processes import Job

RANKS = 3
#: FOLDER FILES PAUSE_S; CHECKPOINT_BYTES of each file are written, the rest of it are holes.
CHECKPOINTS = PROGRAMS / "delegates_staged_deaths.py"
CHECKPOINT_BYTES = 36 * 5000
#: So long a launcher may take to pass on a line of its job.
PASSED_ON_S = 20.0


def command(folder: pathlib.Path, files: int, pause_s: float) -> list[str]:
    """Return how CHECKPOINTS is started."""
    return [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(folder), str(files), str(pause_s)]


def hints(**more: str | int) -> dict[str, str]:
    """Return the environment of a program with two delegates that write behind its closes."""
    words = {
        "mpiox_delegates": 2,
        "mpiox_delegate_cache": "2m",
        "mpiox_delegate_page": "16k",
        "striping_unit": "16k",
        "mpiox_close": "staged",
        **more,
    }
    return {**preload_environment(), "MPIOX_HINTS": "*:" + ":".join(f"{name}={value}" for name, value in words.items())}


#: One file, or hints by which it is four subfiles, whose unit is no part of a page.
PARTS: list[dict[str, int]] = [{}, {"mpiox_subfiles": 4, "mpiox_subfile_unit": 7000}]


def checkpoint(number: int, generation: int = 0) -> bytes:
    """As CHECKPOINTS writes file `number`; each generation has every other block of its own."""
    whole, blocks = np.zeros((36, 6000), np.uint8), np.arange(36)
    last = np.where((generation - blocks) % 2 == 0, generation, max(0, generation - 1))
    whole[:, :5000] = ((blocks + number + 50 * last) % 251 + 1)[:, None]
    return whole.tobytes()[:-1000]


def closed(running: Job) -> list[int]:
    """Return the files that all ranks have closed."""
    return [int(line.split()[1]) for line in running.text().splitlines() if line.startswith("closed ")]


def whole(path: pathlib.Path) -> bytes:
    """Return the bytes of a file; of one of subfiles the index says that it is whole."""
    assert not subfiles.is_index(path) or subfiles.read_index(path).size is not None, path.read_text()
    return subfiles.read(path)


def names(folder: pathlib.Path) -> set[str]:
    """Return the names in a folder, but for the folders of subfiles."""
    return {path.name for path in folder.iterdir() if not path.name.endswith(".subfiles")}


def _is_being_written(path: pathlib.Path, number: int) -> bool:
    """Tell whether it is not whole, and does not say that it is."""
    if subfiles.is_index(path) and subfiles.read_index(path).size is None:
        return True
    same = subfiles.read(path) == checkpoint(number)
    assert same or not subfiles.is_index(path), path.read_text()
    return not same


def _says_that_it_makes(number: int, running: Job) -> bool:
    """Tell whether a job has said that it makes this file without delegates.

    It says so before the file has its name, but its launcher passes the line on when it comes to it.
    """
    deadline_s = time.monotonic() + PASSED_ON_S
    while True:
        said = re.search(r"checkpoint(\d+): mpiox_close=staged needs I/O delegates", running.text())
        if said is not None:
            return int(said[1]) <= number
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)


def check_names(folder: pathlib.Path, text: str, running: Job | None = None) -> None:
    """Whatever has its name is whole. What a running job makes without delegates is not, which it has said before."""
    numbers = [int(name.removeprefix("checkpoint")) for name in names(folder) if name.startswith("checkpoint")]
    for number in numbers:
        if _is_being_written(folder / f"checkpoint{number}", number):
            said = running is not None and _says_that_it_makes(number, running)
            assert said, f"checkpoint{number}\n{text}\n{running.text() if running else ''}"


def asked(*words: str | pathlib.Path) -> tuple[int, str]:
    """Return status and messages of a command under `mpiio-ext delegates`."""
    done = subprocess.run(
        ["mpiio-ext", "delegates", *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def fill(disk: pathlib.Path) -> pathlib.Path:
    """Leave no room on a disk; return what takes it."""
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filler


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to those that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill_at_once(pids: Iterable[int]) -> None:
    """Stop all before the first is killed: none of them writes for another."""
    victims = list(pids)
    send(victims, signal.SIGSTOP)
    send(victims, signal.SIGKILL)
