"""File systems whose caches nothing keeps coherent: what becomes of them if other nodes may share the file."""

from __future__ import annotations

import pathlib
import sys

import pytest

from support.cbuild import mpi_library, mpi_program
from support.launch import json_lines, mpi_run
from support.marks import slow
from support.shares import write_mountinfo

pytestmark = pytest.mark.mpi

# Three groups write one file each, or all of them the same one: ranks alone, those of a node, all of them.
PROGRAM = """
import pathlib, sys
import numpy as np
from mpi4py import MPI
world, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
groups = {"self": MPI.COMM_SELF, "node": world.Split(world.rank // 2, world.rank), "world": world}
for name, comm in groups.items():
    for mode, how in ((MPI.MODE_WRONLY, "w"), (MPI.MODE_RDWR, "rw")):
        fh = MPI.File.Open(comm, str(folder / f"{name}_{how}"), MPI.MODE_CREATE | mode)
        fh.Set_view(0, MPI.INT, MPI.INT.Create_resized(0, 4 * world.size).Commit())
        fh.Set_view(4 * world.rank, MPI.INT, MPI.INT.Create_resized(0, 4 * world.size).Commit())
        fh.Write_all(np.arange(3000, dtype=np.int32) * world.size + world.rank)
        fh.Close()
        world.Barrier()
        if name == "world":
            content = np.fromfile(folder / f"{name}_{how}", np.int32)
            assert np.array_equal(content, np.arange(3000 * world.size, dtype=np.int32)), f"{name}_{how}"
if world.rank == 0:
    print("verified")
"""
NFS, FUSE, SMB, LUSTRE, TMPFS = "6969", "65735546", "FF534D42", "0BD00BD0", "01021994"


@pytest.mark.both_with("6969-2-auto-ours0", "6969-2-refresh-ours6")
@pytest.mark.parametrize(
    ("magic", "per_node", "coherence", "ours"),
    [
        (NFS, 2, "auto", set()),
        *slow(
            (FUSE, 1, "auto", set()),
            (SMB, 3, "auto", set()),
            (NFS, 0, "auto", {"self", "node", "world"}),
            (NFS, 4, "auto", {"self", "node", "world"}),
        ),
        (NFS, 4, "native", {"self", "node", "world"}),
        *slow((NFS, 2, "refresh", {"self", "node", "world"})),
        (FUSE, 1, "refresh", {"self", "node", "world"}),
        *slow(
            (FUSE, 2, "native", set()),
            (LUSTRE, 2, "native", {"self", "node", "world"}),
            (TMPFS, 2, "auto", {"self", "node", "world"}),
        ),
    ],
)
def test_groups_within_a_node(
    extension: str, tmp_path: pathlib.Path, magic: str, per_node: int, coherence: str, ours: set[str]
) -> None:
    """The communicator does not tell who shares the file: MPI_COMM_WORLD does."""
    script, statistics = tmp_path / "program.py", tmp_path / "stats.jsonl"
    script.write_text(PROGRAM, encoding="utf-8")
    environment = {
        "LD_PRELOAD": f"{mpi_program('inject', '-shared', '-fPIC')}:{extension}",
        "PRETEND_FS": magic,
        "MPIOX_RANKS_PER_NODE": str(per_node),
        "MPIOX_HINTS": f"*:mpiox_coherence={coherence}",
        "MPIOX_STATS": "1",
        "MPIOX_STATS_FILE": str(statistics),
    }
    launch = mpi_run([sys.executable, str(script), str(tmp_path)], 4, env=environment, timeout_s=60)
    assert "verified" in launch.stdout, launch.describe()
    groups = {"self", "node", "world"}
    assert files_of(statistics) == {True: ours, False: groups - ours}


def files_of(statistics: pathlib.Path) -> dict[bool, set[str]]:
    """Return the groups whose files were the library's, and those whose files were left to the MPI library."""
    lines = json_lines(statistics)
    taken: dict[bool, set[str]] = {True: set(), False: set()}
    for line in (line for line in lines if line["kind"] == "file"):
        taken[line["collective_writes"] > 0].add(pathlib.Path(line["path"]).name.split("_")[0])
        assert line["collective_writes"] or "several nodes may share the file" in line["reason"], line
    return taken


@pytest.mark.parametrize(
    ("mount", "coherence", "is_ours"),
    [
        ("fuse mfs\\04310.77.0.1:9421", "auto", True),
        ("fuse.mfs mfs\\043master:9421", "auto", True),
        ("fuse mfs\\04310.77.0.1:9421", "native", False),
        ("fuse.sshfs server:/x", "auto", False),
        ("fuse mfs:/x", "auto", False),
    ],
)
def test_moosefs(extension: str, tmp_path: pathlib.Path, mount: str, coherence: str, is_ours: bool) -> None:
    """MooseFS is known by its mount alone, and its files are the library's between nodes without being asked."""
    script, statistics, folder = tmp_path / "program.py", tmp_path / "stats.jsonl", tmp_path / "mounted"
    script.write_text(PROGRAM, encoding="utf-8")
    folder.mkdir()
    write_mountinfo(tmp_path, folder, mount)
    environment = {
        "LD_PRELOAD": f"{mpi_library('fake_file_system')}:{extension}",
        "FAKE_FS": "fuse",
        "FAKE_FS_ROOT": str(folder),
        "FAKE_PROC": str(tmp_path),
        "MPIOX_RANKS_PER_NODE": "2",
        "MPIOX_HINTS": f"*:mpiox_coherence={coherence}",
        "MPIOX_STATS": "1",
        "MPIOX_STATS_FILE": str(statistics),
    }
    launch = mpi_run([sys.executable, str(script), str(folder)], 4, env=environment, timeout_s=60)
    assert "verified" in launch.stdout, launch.describe()
    assert files_of(statistics) == {is_ours: {"self", "node", "world"}, not is_ours: set()}
