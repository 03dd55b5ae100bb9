"""What is said of a file whose bytes cannot be written behind its close, or not all of them."""

from __future__ import annotations

import pathlib
import re

import pytest

from support import subfiles
from support.launch import python_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
#: Size of `small_disk`: half of what the programs write.
DISK_KIB = 1280
BYTES, BLOCK = 1 << 20, 4096

WRITE = f"""
import sys
from mpi4py import MPI
comm, n, piece = MPI.COMM_WORLD, {BYTES}, int(sys.argv[1])
files = [MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY) for path in sys.argv[2:]]
for fh in files:
    for at in range(0, 2 * n, 2 * piece):
        fh.Write_at_all(at + comm.rank * piece, bytes([65 + comm.rank]) * piece)
    fh.Close()
"""


def hints(delegates: int, page: str) -> dict[str, str]:
    """Return the environment of a job whose delegates give up soon."""
    return {
        "MPIOX_HINTS": f"*:mpiox_delegates={delegates}:mpiox_delegate_cache=8m:mpiox_delegate_page={page}:"
        f"striping_unit={page}:mpiox_close=staged:mpiox_drain_patience=1"
    }


def lines_of(said: str, *paths: pathlib.Path) -> list[list[str]]:
    """Return the lines of each file; there are no others."""
    begin = "mpiio_ext: an I/O delegate could not write bytes of a program: write of {} failed at "
    lines = said.splitlines()
    own = [[line for line in lines if line.startswith(begin.format(path))] for path in paths]
    assert sum(map(len, own)) == len(lines), said
    return own


def blocks(line: str) -> set[int]:
    """Return where the blocks begin that a line names."""
    found = re.findall(r"at offset (\d+), length (\d+)", line)
    return {at for offset, length in found for at in range(int(offset), int(offset) + int(length), BLOCK)}


@pytest.mark.parametrize("delegates", [*slow(1), 2, *slow(4)])
def test_a_full_disk_takes_a_line_of_each_delegate(small_disk: pathlib.Path, delegates: int) -> None:
    """All bytes that are lost are named in it, and no others."""
    launch = python_run(
        ["-c", WRITE, str(BYTES // 8), small_disk / "one"], 2, env=hints(delegates, "128k"), preload=True, timeout_s=120
    )
    [lines] = lines_of(launch.stderr, small_disk / "one")
    assert len(lines) <= delegates, launch.describe()
    data = (small_disk / ".one.staging").read_bytes().ljust(2 * BYTES, b"\0")
    lost = {at for at in range(0, 2 * BYTES, BLOCK) if data[at] == 0}
    assert lost and set().union(*map(blocks, lines)) == lost, launch.describe()


def test_more_ranges_than_a_delegate_remembers_are_counted(small_disk: pathlib.Path) -> None:
    """In the same line, of each file."""
    paths = [small_disk / "one", small_disk / "two"]
    launch = python_run(["-c", WRITE, "16384", *paths], 2, env=hints(2, "16k"), preload=True, timeout_s=120)
    for path, lines in zip(paths, lines_of(launch.stderr, *paths), strict=True):
        assert 1 <= len(lines) <= 2, launch.describe()
        more = [int(found) for line in lines for found in re.findall(r"; (\d+) more ranges$", line)]
        data = (small_disk / f".{path.name}.staging").read_bytes().ljust(2 * BYTES, b"\0")
        lost = sum(data[at] == 0 for at in range(0, 2 * BYTES, 16384))
        assert more and sum(more) + "".join(lines).count("at offset") >= lost > 0, launch.describe()


@pytest.mark.parametrize(
    ("level", "reason"),
    [("replica", "at level replica MPI_File_close waits"), ("memory", "because the subfiles exist already")],
)
def test_closes_that_wait_are_lines(tmp_path: pathlib.Path, level: str, reason: str) -> None:
    """Of a file that exists, once for a process; and of one without delegates."""
    there, other = tmp_path / "there", tmp_path / "other"
    if level == "replica":
        there.touch()
    else:
        subfiles.store(there, b"", 3, 1000)
    given = f"*:mpiox_close=staged,*/there:mpiox_delegates=2:mpiox_delegate_ack={level}"
    environment = {"MPIOX_HINTS": given, "MPIOX_RANKS_PER_NODE": "1"}
    launch = python_run(["-c", WRITE, "131072", there, other], 2, env=environment, preload=True, timeout_s=120)
    for path, said in ((there, reason), (other, "needs I/O delegates")):
        assert len(re.findall(rf"^mpiio_ext: {path}: .*{said}", launch.stderr, re.M)) == 1, launch.describe()
