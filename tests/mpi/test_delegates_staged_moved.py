"""The folder of a file is renamed while it is open, or written behind its close: it is found where it is by then."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import sys
import textwrap
import time

import pytest

from mpiio_ext import delegates
from support import subfiles
from support.launch import launcher, marked_processes, preload_environment
from support.marks import slow
from support.processes import job, parent
from support.staged import PARTS, RANKS, asked, checkpoint, command, hints, kill_at_once, names, whole

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
LIMIT_S = 60.0


@pytest.mark.parametrize(
    ("parts", "kill", "level"),
    [
        *slow((PARTS[0], "", "memory")),
        (PARTS[1], "", "memory"),
        (PARTS[0], "delegate", "memory"),
        (PARTS[1], "node", "replica"),
        *slow((PARTS[1], "delegate", "memory"), (PARTS[0], "node", "replica")),
    ],
)
def test_the_folder_of_a_file_that_is_written(
    tmp_path: pathlib.Path, parts: dict[str, int], kill: str, level: str
) -> None:
    """Status and wait know it by its new name, also when its delegate is killed then."""
    (before := tmp_path / "before").mkdir()
    path = (after := tmp_path / "after") / "checkpoint0"
    env = {
        **hints(mpiox_drain_rate=1, mpiox_delegate_ack=level, **parts),
        "MPIOX_RANKS_PER_NODE": "1" if level == "replica" else "0",
    }
    with job(command(before, 1, 600), tmp_path / "log", env) as running:
        running.wait_for("closed 0", LIMIT_S)
        before.rename(after)
        time.sleep(1)
        assert {file.path for item in delegates.status() for file in item.files if str(tmp_path) in file.path} == {
            f"{after}/.checkpoint0.staging"
        }
        status, text = asked("wait", "--timeout", "0s", path)
        assert (status, f"{path} is not written yet" in text) == (1, True), text
        first, other = running.delegates()
        spared = {other, parent(other), running.process.pid}
        kill_at_once({"delegate": [first], "node": set(marked_processes(running.marker)) - spared}.get(kill, []))
        for pid in running.delegates():
            os.kill(pid, signal.SIGUSR2)
        assert asked("wait", "--timeout", "60s", path) == (0, "")
        assert whole(path) == checkpoint(0)
        assert names(after) == {"checkpoint0"}
        assert "lost" not in running.text()


START = """
    import os, sys, time
    from mpi4py import MPI

    comm, folder = MPI.COMM_WORLD, sys.argv[1]
    staged, past = MPI.Info.Create(), MPI.Info.Create()
    for word in sys.argv[2].split(":"):
        staged.Set(*word.split("="))
        past.Set(*word.split("="))
    past.Set("mpiox_delegates", "0")
    past.Set("mpiox_close", "written")
    def write(path, byte):
        fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR, staged)
        fh.Write_at_all(comm.rank * 100000, bytes([byte + comm.rank]) * 100000)
        return fh
    def reads(path, byte, info):
        fh, found = MPI.File.Open(comm, path, MPI.MODE_RDONLY, info), bytearray(100000)
        fh.Read_at_all((comm.size - 1 - comm.rank) * 100000, found)
        fh.Close()
        assert found == bytes([byte + comm.size - 1 - comm.rank]) * 100000, (path, found[:9])
"""
CONTENT = b"".join(bytes([65 + rank]) * 100000 for rank in range(RANKS))


def run(tmp_path: pathlib.Path, program: str, **more: str | int) -> str:
    """Run a program with a folder `before` of its own, which is called `after` when it says so. Returns its words."""
    (tmp_path / "before").mkdir()
    code = textwrap.dedent(START) + textwrap.dedent(program)
    info = hints(**more)["MPIOX_HINTS"].removeprefix("*:")
    words = [str(launcher()), "-n", str(RANKS), sys.executable, "-c", code, str(tmp_path), info]
    with job(words, tmp_path / "log", preload_environment()) as running:
        if "now" in program:
            running.wait_for("now", LIMIT_S)
            (tmp_path / "before").rename(tmp_path / "after")
        assert running.status(LIMIT_S) == 0, running.text()
        assert not running.left(LIMIT_S), running.text()
        return running.text()


RENAMED = """
    comm.Barrier()
    if comm.rank == 0:
        print("now", flush=True)
    while not os.path.isdir(folder + "/after"):
        time.sleep(0.01)
"""


@pytest.mark.slow_with("parts0")
@pytest.mark.parametrize("parts", PARTS)
def test_the_folder_of_a_file_that_is_open(tmp_path: pathlib.Path, parts: dict[str, int]) -> None:
    said = run(tmp_path, f'fh = write(folder + "/before/file", 65)\n{textwrap.dedent(RENAMED)}\nfh.Close()', **parts)
    assert "mpiio_ext:" not in said, said
    assert names(tmp_path / "after") == {"file"}
    assert subfiles.read(tmp_path / "after/file") == CONTENT


@pytest.mark.slow_with("parts1")
@pytest.mark.parametrize("parts", PARTS)
def test_the_job_comes_back_to_it(tmp_path: pathlib.Path, parts: dict[str, int]) -> None:
    """By its new name, through delegates and past them."""
    program = f"""write(folder + "/before/file", 65).Close()
{textwrap.dedent(RENAMED)}
reads(folder + "/after/file", 65, staged)
assert ".file.staging" not in os.listdir(folder + "/after")
reads(folder + "/after/file", 65, past)
"""
    said = run(tmp_path, program, mpiox_drain_rate=1000, **parts)
    assert "mpiio_ext:" not in said, said
    assert whole(tmp_path / "after/file") == CONTENT
    assert names(tmp_path / "after") == {"file"}


@pytest.mark.both
def test_the_job_renames_it(tmp_path: pathlib.Path) -> None:
    """rename() waits for what is closed below the folder, not for what this job has open."""
    said = run(
        tmp_path,
        """
        write(folder + "/before/file", 65).Close()
        fh = write(folder + "/before/open", 65)
        comm.Barrier()
        if comm.rank == 0:
            begun = time.monotonic()
            os.rename(folder + "/before", folder + "/after")
            print("took", time.monotonic() - begun, sorted(os.listdir(folder + "/after")))
        comm.Barrier()
        fh.Close()
    """,
        mpiox_drain_rate=20000,
    )
    assert "['.open.staging', '.open.staging.parts', 'file']" in said, said
    assert names(tmp_path / "after") == {"file", "open"}
    assert whole(tmp_path / "after/file") == whole(tmp_path / "after/open") == CONTENT


@pytest.mark.slow_with("parts0")
@pytest.mark.parametrize("parts", PARTS)
def test_others_remove_it(tmp_path: pathlib.Path, parts: dict[str, int]) -> None:
    """As `mv` does that copies a folder to another file system: each delegate says what the copy lacks."""
    said = run(
        tmp_path,
        f"""write(folder + "/before/file", 65).Close()
{textwrap.dedent(RENAMED)}
if comm.rank == 0:
    import subprocess
    words = {{name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}}
    subprocess.run(["rm", "-r", folder + "/after"], env=words, check=True)
""",
        mpiox_drain_rate=1,
        mpiox_drain_patience=3,
        **parts,
    )
    lines = [line for line in said.splitlines() if line.startswith("mpiio_ext:") and (not parts or "removed" in line)]
    assert len(lines) == 2, said
    left = [
        re.fullmatch(rf"mpiio_ext: {tmp_path}/\w+/file was removed while (\d+) bytes were not written: .*", line)
        for line in lines
    ]
    assert all(left) and 0 < sum(int(match[1]) for match in left if match) <= len(CONTENT), said


@pytest.mark.both
@pytest.mark.parametrize("how", [*slow("os.unlink(name)"), "MPI.File.Delete(name)", "os.unlink(name), fh.Close()"])
def test_the_program_removes_it(tmp_path: pathlib.Path, how: str) -> None:
    """It knows that."""
    said = run(
        tmp_path,
        f"""
        name = folder + "/before/file"
        if "fh" in {how!r}:
            open(name, "w").close()
        fh = write(name, 65)
        if "fh" not in {how!r}:
            fh.Close()
        comm.Barrier()
        if comm.rank == 0:
            {how.split(",")[0]}
        comm.Barrier()
        if "fh" in {how!r}:
            fh.Close()
    """,
        mpiox_drain_rate=20000,
    )
    assert "mpiio_ext:" not in said, said
    assert names(tmp_path / "before") == set()
