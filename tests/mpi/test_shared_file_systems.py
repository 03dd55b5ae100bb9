"""File systems whose caches nothing keeps coherent: what becomes of them if other nodes may share the file."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from support.cbuild import mpi_program
from support.launch import mpi_run

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


@pytest.mark.parametrize(
    ("magic", "per_node", "coherence", "ours"),
    [
        (NFS, 2, "auto", set()),
        (FUSE, 1, "auto", set()),
        (SMB, 3, "auto", set()),
        (NFS, 0, "auto", {"self", "node", "world"}),
        (NFS, 4, "auto", {"self", "node", "world"}),
        (NFS, 4, "native", {"self", "node", "world"}),
        (NFS, 2, "refresh", {"self", "node", "world"}),
        (FUSE, 1, "refresh", {"self", "node", "world"}),
        (FUSE, 2, "native", set()),
        (LUSTRE, 2, "native", {"self", "node", "world"}),
        (TMPFS, 2, "auto", {"self", "node", "world"}),
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
    lines = [json.loads(line) for line in statistics.read_text(encoding="utf-8").splitlines()]
    taken: dict[bool, set[str]] = {True: set(), False: set()}
    for line in (line for line in lines if line["kind"] == "file"):
        taken[line["collective_writes"] > 0].add(pathlib.Path(line["path"]).name.split("_")[0])
        assert line["collective_writes"] or "several nodes may share the file" in line["reason"], line
    assert taken == {True: ours, False: {"self", "node", "world"} - ours}
