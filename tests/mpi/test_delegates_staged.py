"""Files that are closed before they are written (mpiox_close=staged)."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import signal
import subprocess
import textwrap

import numpy as np
import pytest

from mpiio_ext import delegates
from mpiio_ext.delegates.cli_draining import recover_cache
from support.launch import PROGRAMS, launcher, preload_environment, python_alone, python_run
from support.processes import job
from support.tiers import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
RANKS, BLOCK, BLOCKS = 3, 8192, 24


def content(seed: int) -> bytes:
    """As content() of the program."""
    places = np.arange(BLOCK * BLOCKS * RANKS)
    return ((places * 7 + places // BLOCK + seed) % 251 + 1).astype(np.uint8).tobytes()


@pytest.mark.parametrize(("mode", "per_node"), [("spawn", 0), ("thread", 1), *slow(("spawn", 2), ("thread", 0))])
def test_what_is_closed_is_there(tmp_path: pathlib.Path, mode: str, per_node: int) -> None:
    """Inside the job from the close on, whatever is done with it; for others when the job has ended, and as a whole."""
    launch = python_run([PROGRAMS / "delegates_staged.py", tmp_path, mode], RANKS,
                        env={"MPIOX_RANKS_PER_NODE": str(per_node)}, timeout_s=120, preload=True)
    line = next(line for line in launch.stdout.splitlines() if line.startswith("SEEN "))
    assert json.loads(line[5:]) == [], launch.describe()
    assert launch.stderr.count("mpiio_ext:") == 1, launch.describe()
    assert "native: mpiox_close=staged needs I/O delegates" in launch.stderr, launch.describe()
    expected = {"again": content(2)[: len(content(2)) // 2], "alone": content(4)[:BLOCK] + content(3)[BLOCK:],
                "native": content(5), "old": content(6), "gone": content(8), "there": content(10), "sync": content(13),
                "beside": content(23), "last": content(14)}
    assert {path.name for path in tmp_path.iterdir()} == set(expected)
    for name, data in expected.items():
        assert (tmp_path / name).read_bytes() == data, name


AGAIN = """
    import sys
    import mpiio_ext
    # isort: split
    from mpi4py import MPI
    from mpiio_ext.bench import pnetcdf

    MPI.File.Open(MPI.COMM_WORLD, sys.argv[1] + "/raw", MPI.MODE_CREATE | MPI.MODE_WRONLY).Close()
    for name in ("one.nc", "two.nc"):
        with pnetcdf.File.create(sys.argv[1] + "/" + name, MPI.COMM_WORLD) as file:
            file.def_var("v", ">f8", [file.def_dim("x", 10)])
            file.enddef()
"""


def test_pnetcdf_finds_whole_files_alone(tmp_path: pathlib.Path) -> None:
    """A program that makes files through PnetCDF is told so, once."""
    probe = "from mpiio_ext.bench import pnetcdf; print(pnetcdf.absent_reason() or '')"
    if reason := python_alone(probe).stdout.strip():
        pytest.skip(reason)
    launch = python_run(["-c", textwrap.dedent(AGAIN), tmp_path], 2, timeout_s=120, preload=True,
                        env={"MPIOX_HINTS": "*:mpiox_delegates=1:mpiox_close=staged"})  # fmt: skip
    said = [line for line in launch.stderr.splitlines() if line.startswith("mpiio_ext: ")]
    assert len(said) == 1, launch.describe()
    assert said[0].startswith(f"mpiio_ext: {tmp_path}/one.nc: PnetCDF does not find a file again before"), said
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "one.nc", "two.nc"}


# ---- from outside ----------------------------------------------------------------------------------------------------

CHECKPOINTS = PROGRAMS / "delegates_staged_deaths.py"


def checkpoint(number: int) -> bytes:
    """As that program writes file `number`."""
    whole = np.zeros((36, 6000), np.uint8)
    whole[:, :5000] = ((np.arange(36) + number) % 251 + 1)[:, None]
    return whole.tobytes()[:-1000]


def command(folder: pathlib.Path, files: int, pause_s: float) -> list[str]:
    """Return how that program is started."""
    return [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(folder), str(files), str(pause_s)]


def hints(**more: str | int) -> dict[str, str]:
    """Return the environment of a program with two delegates that write behind its closes."""
    words = {"mpiox_delegates": 2, "mpiox_delegate_cache": "2m", "mpiox_delegate_page": "16k", "striping_unit": "16k",
             "mpiox_close": "staged", **more}  # fmt: skip
    return {**preload_environment(), "MPIOX_HINTS": "*:" + ":".join(f"{name}={value}" for name, value in words.items())}


def asked(*words: str | pathlib.Path) -> tuple[int, str]:
    """Return status and messages of a command under `mpiio-ext delegates`."""
    done = subprocess.run(["mpiio-ext", "delegates", *map(str, words)], capture_output=True, text=True, timeout=120,
                          check=False)  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_it_is_seen_and_waited_for(tmp_path: pathlib.Path) -> None:
    """What is left is shown; waiting ends at its limit, or when all is there; a warning lifts the rate."""
    first, second = tmp_path / "checkpoint0", tmp_path / "checkpoint1"
    with job(command(tmp_path, 2, 600), tmp_path / "log", hints(mpiox_drain_rate=1)) as running:
        running.wait_for("closed 0", 120)
        files = [file for item in delegates.status() for file in item.files if str(tmp_path) in file.path]
        assert {(file.path, file.hidden, file.draining) for file in files} == {
            (str(tmp_path / ".checkpoint0.staging"), True, True)}  # fmt: skip
        assert 0 < sum(file.dirty_bytes for file in files) <= 36 * 5000
        assert "is written" in asked("status", "--once")[1]
        status, text = asked("wait", "--timeout", "0s", first)
        assert status == 1
        assert f"{first} is not written yet" in text
        status, text = asked("wait", second)
        assert (status, text.strip()) == (1, f"{second} is not there")
        for pid in running.delegates():
            os.kill(pid, signal.SIGUSR2)
        assert asked("wait", "--timeout", "60s", first) == (0, "")
        assert first.read_bytes() == checkpoint(0)
        assert running.process.poll() is None
    assert asked("wait", first) == (0, "")


def test_evenly_until_the_next(tmp_path: pathlib.Path) -> None:
    """When the interval is known, a checkpoint is written little by little; the first one is written at once."""
    with job(command(tmp_path, 2, 8), tmp_path / "log", hints(mpiox_drain_pace="even")) as running:
        running.wait_for("closed 0", 120)
        assert asked("wait", "--timeout", "60s", tmp_path / "checkpoint0") == (0, "")
        running.wait_for("closed 1", 120)
        left: set[int] = set()
        while not (tmp_path / "checkpoint1").exists():
            assert running.process.poll() is None, running.text()
            left.add(sum(file.dirty_bytes for item in delegates.status() for file in item.files
                         if str(tmp_path) in file.path))  # fmt: skip
        assert running.status(120) == 0, running.text()
    assert len(left) > 3, left
    assert (tmp_path / "checkpoint1").read_bytes() == checkpoint(1)


def test_what_says_who_has_bytes_is_removed(tmp_path: pathlib.Path) -> None:
    """The file does not get its name, and that is said; nothing of it is lost."""
    with job(command(tmp_path, 1, 600), tmp_path / "log", hints(mpiox_drain_rate=1)) as running:
        running.wait_for("closed 0", 120)
        (tmp_path / ".checkpoint0.staging.parts").unlink()
        for pid in running.delegates():
            os.kill(pid, signal.SIGUSR1)
        status, text = asked("wait", "--patience", "1s", tmp_path / "checkpoint0")
        assert (status, "checkpoint0.staging.parts was removed" in text) == (1, True), text
        assert (tmp_path / ".checkpoint0.staging").read_bytes() == checkpoint(0)
        (tmp_path / ".checkpoint0.staging").rename(tmp_path / "checkpoint0")
        assert asked("wait", "--timeout", "60s", tmp_path / "checkpoint0") == (0, "")


def test_scratch_files_go_with_the_job(tmp_path: pathlib.Path) -> None:
    """They are seen, cannot be waited for, and nothing of them is left when the job is ended."""
    (tmp_path / "files").mkdir()
    with job(command(tmp_path / "files", 2, 600), tmp_path / "log", hints(mpiox_close="never")) as running:
        running.wait_for("closed 0", 120)
        assert "never written" in asked("status", "--once")[1]
        assert {path.name for path in (tmp_path / "files").iterdir()} == {".checkpoint0.staging",
                                                                          ".checkpoint0.staging.parts"}  # fmt: skip
        status, text = asked("wait", tmp_path / "files" / "checkpoint0")
        assert (status, "checkpoint0 is a scratch file" in text) == (1, True), text
        running.process.terminate()
        assert running.status(120) is not None
        assert not running.left(60)
    assert not list((tmp_path / "files").iterdir())


def test_what_the_file_system_refuses(tmp_path: pathlib.Path) -> None:
    """For a while: it is written again. For good: it is named, and can be recovered when the file system takes it."""
    folder, caches = tmp_path / "files", tmp_path / "caches"
    folder.mkdir()
    caches.mkdir()
    fault = "op=write,path=*0.staging,errno=EIO,times=3;op=write,path=*1.staging,errno=ENOSPC"
    env = {**hints(mpiox_delegate_cache_dir=caches, mpiox_drain_patience=4), "MPIOX_FAULT": fault}
    with job(command(folder, 2, 0), tmp_path / "log", env) as running:
        running.wait_for("closed 1", 120)
        status, text = asked("wait", "--patience", "1s", folder / "checkpoint1")
        assert status == 1
        assert f"{folder / 'checkpoint1'} cannot be written: {os.strerror(errno.ENOSPC)}" in text
        assert any(str(path) in text for path in caches.iterdir()), text
        assert running.status(120) is not None
        assert not running.left(60)
        said = running.text()
    assert f"write of {folder / '.checkpoint1.staging'} failed" in said
    assert (folder / "checkpoint0").read_bytes() == checkpoint(0)
    assert {path.name for path in folder.iterdir()} == {"checkpoint0", ".checkpoint1.staging",
                                                        ".checkpoint1.staging.parts"}  # fmt: skip
    assert all(str(path) in said for path in caches.iterdir()), said
    recovered = [recover_cache(path) for path in caches.iterdir()]
    assert sum(moved for moved, _ in recovered) == 36 * 5000
    assert not [path for _, failed in recovered for path in failed]
    assert not list(caches.iterdir())
    assert (folder / "checkpoint1").read_bytes() == checkpoint(1)


def test_caches_that_are_not_used(tmp_path: pathlib.Path) -> None:
    """What others may open, links, and what is no cache are left alone, and named."""
    for name, mode in (("mpiox.empty", 0o600), ("mpiox.open", 0o644)):
        (tmp_path / name).write_bytes(bytes(1 << 20))
        (tmp_path / name).chmod(mode)
    (tmp_path / "mpiox.link").symlink_to("mpiox.empty")
    status, text = asked("recover", tmp_path)
    assert status == 1
    assert text.count("cannot be used") == 2
    assert {path.name for path in tmp_path.iterdir()} == {"mpiox.empty", "mpiox.open", "mpiox.link"}
