"""What mpiox_subfiles asks for, and what a file gets: MPI_File_get_info says that, and a line where they differ."""

from __future__ import annotations

import pathlib
import sys

import pytest

from support import subfiles
from support.launch import Launch, mpi_family, mpi_run, preload_environment

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

PROGRAM = """
import os, sys
import numpy as np
from mpi4py import MPI

comm, name = MPI.COMM_WORLD, sys.argv[1]
mode = {"read": MPI.MODE_RDONLY, "write": MPI.MODE_RDWR | MPI.MODE_CREATE}[sys.argv[2]]
try:
    fh = MPI.File.Open(comm, name, mode)
except MPI.Exception as error:
    every = comm.gather(MPI.Get_error_string(error.Get_error_code()).replace("\\n", " "))
    if comm.rank == 0:
        print(*(f"refused: {one}" for one in every), sep="\\n", flush=True)
    sys.exit()
info = fh.Get_info()
every = comm.gather(f"info: {info.Get('mpiox_subfiles')} {info.Get('mpiox_subfile_unit')}")
if comm.rank == 0:
    print("\\n".join(every), flush=True)
if mode != MPI.MODE_RDONLY:
    fh.Write_at_all(500 * comm.rank, np.full(500, 1 + comm.rank, "u1"))
fh.Close()
"""
DATA = b"\1" * 500 + b"\2" * 500


def run(path: pathlib.Path, hints: str, how: str = "write", **environment: str) -> Launch:
    script = path.parents[1] / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    settings = {**preload_environment(), **({"MPIOX_HINTS": f"*:{hints}"} if hints else {}), **environment}
    return mpi_run([sys.executable, script, path, how], 2, env=settings)


def told(launch: Launch, words: str) -> bool:
    """Return whether rank 0, and nobody else, has told it."""
    return launch.stderr.count(words) == 1


@pytest.fixture()
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a name in a folder of its own."""
    (tmp_path / "files").mkdir()
    return tmp_path / "files" / "file"


@pytest.mark.parametrize(
    ("hints", "stored", "how", "info", "line"),
    [
        ("mpiox_subfiles=3", 0, "write", "0", "mpiox_subfiles=3: it exists as one file, and stays one"),
        ("mpiox_subfiles=3", 0, "read", "0", ""),
        ("mpiox_subfiles=3", 4, "write", "4 100", ""),
        ("", 4, "read", "4 100", ""),
        ("mpiox_subfiles=0", 4, "write", "4 100", ""),
        ("mpiox_subfiles=3:mpiox_subfile_unit=7", None, "write", "3 7", ""),
        ("mpiox_subfiles=per_node=0", None, "write", "0", ""),
        ("", None, "write", "0", ""),
        (
            "mpiox_subfiles=per_server:mpiox_subfile_unit=7",
            None,
            "write",
            "1 7",
            "mpiox_subfiles=per_server: how many servers there are is not known: one subfile is made",
        ),
        (
            "mpiox_subfiles=per_node=2049:mpiox_subfile_unit=7",
            None,
            "write",
            "4096 7",
            "mpiox_subfiles=per_node=2049: that is more than a file can have: 4096 subfiles are made",
        ),
    ],
)
def test_what_a_file_gets(path: pathlib.Path, hints: str, stored: int | None, how: str, info: str, line: str) -> None:
    if stored == 0:
        path.write_bytes(DATA)
    elif stored is not None:
        subfiles.store(path, DATA, stored, 100)
    launch = run(path, hints, how, MPIOX_RANKS_PER_NODE="1")
    assert launch.stdout.count(f"info: {info}{'' if ' ' in info else ' '}") == 2, launch.describe()
    assert told(launch, line) if line else "mpiox_subfiles" not in launch.stderr, launch.describe()
    assert subfiles.is_index(path) == (not info.startswith("0"))
    assert subfiles.read(path) == DATA


@pytest.mark.both
@pytest.mark.parametrize("hints", ["mpiox_subfiles=2", "mpiox_subfiles=2:mpiox_delegates=1:mpiox_close=staged"])
def test_names_that_subfiles_can_have(path: pathlib.Path, hints: str) -> None:
    """The longest is written; a longer one, or a path behind which there is no room, is refused in words."""
    room = 215 - len(f"{path.parent}/") if mpi_family() == "openmpi" else 214  # what Open MPI itself can take
    longest = path.with_name("n" * min(room, 214))
    run(longest, hints)
    assert subfiles.read(longest) == DATA
    deep = path.parent / "deep"
    while len(f"{deep}") < 3850:
        deep = deep / ("d" * 200)
    deep.mkdir(parents=True)
    (other := path.parent / "other").mkdir()
    for refused in (other / ("n" * 215), deep / ("n" * (4090 - len(f"{deep}/")))):
        launch = run(refused, hints)
        words = "names of subfiles are longer: give it one of 214 bytes at most, or a shorter path"
        assert launch.stdout.count("refused:") == launch.stdout.count(words) == 2, launch.describe()
        assert not list(refused.parent.iterdir())
