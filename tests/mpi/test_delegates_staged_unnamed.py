"""Files with mpiox_close=staged that have their own names all the time: half of one is not taken for a whole file."""

from __future__ import annotations

import pathlib
import sys
import textwrap

import pytest

from support.launch import launcher, marked_processes
from support.processes import job
from support.staged import PARTS, RANKS, asked, checkpoint, command, fill, hints, kill_at_once, names, whole

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
#: Size of `small_disk`.
DISK_KIB = 288

UNNAMED = """
    import os, sys
    from mpi4py import MPI

    path, filler = sys.argv[1:]
    for number in range(2):
        fh = MPI.File.Open(MPI.COMM_WORLD, path + str(number), MPI.MODE_CREATE | MPI.MODE_WRONLY)
        fh.Write_at(MPI.COMM_WORLD.rank * 20000, bytes([65 + MPI.COMM_WORLD.rank]) * 9000)  # no page is complete
        try:
            fh.Close()
            failed = MPI.SUCCESS
        except MPI.Exception as error:
            failed = error.Get_error_class()
        failed = MPI.COMM_WORLD.gather(failed == MPI.ERR_NO_SPACE)
        if MPI.COMM_WORLD.rank == 0:
            print("closed", number, failed, flush=True)
            if os.path.exists(filler):
                os.unlink(filler)
        MPI.COMM_WORLD.Barrier()
"""
UNNAMED_BYTES = b"".join((bytes([65 + rank]) * 9000).ljust(20000, b"\0") for rank in range(RANKS))[:-11000]


def test_no_room_for_another_name(small_disk: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A disk that is full when a file is made: that is said, and its close fails, on every rank, as without delegates.

    The next file finds room, and is staged.
    """
    path, filler = small_disk / "file", fill(small_disk)
    (caches := tmp_path / "caches").mkdir()
    words = [sys.executable, "-c", textwrap.dedent(UNNAMED), str(path), str(filler)]
    with job(
        [str(launcher()), "-n", str(RANKS), *words], tmp_path / "log", hints(mpiox_delegate_cache_dir=caches)
    ) as running:
        assert running.status(120) == 0, running.text()
        assert not running.left(60), running.text()
        said = running.text()
    assert f"closed 0 {[True] * RANKS}" in said and f"closed 1 {[False] * RANKS}" in said, said
    assert said.count("no name for what is not all written yet") == 1, said
    assert (
        f"{path}0: no name for what is not all written yet (No space left on device): it has its own from the "
        "start, and MPI_File_close waits" in said
    )
    assert names(small_disk) == {"file0", "file1"}
    assert (small_disk / "file1").read_bytes() == UNNAMED_BYTES


@pytest.mark.both_with("parts0")
@pytest.mark.parametrize("parts", PARTS)
def test_a_file_that_has_its_own_name_is_whole_when_it_is_closed(tmp_path: pathlib.Path, parts: dict[str, int]) -> None:
    """Else others would take it for a whole one, though the drain is slow."""
    (folder := tmp_path / "files").mkdir()
    path = folder / "file"
    (folder / ".file0.staging").touch()  # another job's
    env = hints(mpiox_drain_rate=1, **parts)
    words = [sys.executable, "-c", textwrap.dedent(UNNAMED) + "    import time; time.sleep(600)", str(path), "none"]
    with job([str(launcher()), "-n", str(RANKS), *words], tmp_path / "log", env) as running:
        running.wait_for("closed 0", 120)
        assert whole(folder / "file0") == UNNAMED_BYTES
        said = running.text()
    assert f"closed 0 {[False] * RANKS}" in said, said
    assert said.count(f"{path}0: no name for what is not all written yet") == 1, said


def test_recover_without_room_in_a_file_that_exists(small_disk: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The file has its name already: the command prints that it is not whole, and the cache stays for the next one."""
    (caches := tmp_path / "caches").mkdir()
    (path := small_disk / "checkpoint0").write_bytes(bytes(1000))
    (small_disk / "other").write_bytes(bytes(150 << 10))
    env = hints(mpiox_delegate_cache_dir=caches, mpiox_drain_rate=1)
    with job(command(small_disk, 1, 600), tmp_path / "log", env) as running:
        running.wait_for("closed 0", 120)
        kill_at_once(marked_processes(running.marker))
        assert not running.left(60), running.text()
    status, text = asked("recover", caches)
    said = f"{path} cannot be written: No space left on device; its bytes are in {caches}/mpiox."
    assert (status, said in text, ", and the file is incomplete\n" in text) == (1, True, True), text
    (small_disk / "other").unlink()
    assert asked("recover", caches)[0] == 0
    assert whole(path) == checkpoint(0)
    assert not list(caches.iterdir())
