"""Opening: every rank learns rank 0's choices, and all ranks agree, with the MPI library's help or without it."""

from __future__ import annotations

import json
import pathlib

import pytest

from support.launch import python_run

pytestmark = pytest.mark.mpi

LEVELS = ("serialized", "multiple")
HEAD = """
import mpi4py, pathlib, sys
mpi4py.rc.thread_level = sys.argv[2]
import mpiio_ext
import numpy as np
from mpi4py import MPI
world, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
"""

# Many files on communicators of the same ranks and of fewer, in the same order, in another one; some not managed.
MANY = """
reversed_ = world.Split(0, -world.rank)
some = world.Split(world.rank % 2, world.rank)
comms = [world, world.Dup(), reversed_, some, MPI.COMM_SELF, world.Split(0, world.rank)]
names = ["all", "dup", "reversed", f"part{world.rank % 2}", f"self{world.rank}", "split"]
opened = []
for turn in range(24):
    which = (turn * 5) % len(comms)
    comm, kind = comms[which], "native" if turn % 7 == 3 else "ours"
    name = f"{kind}_{names[which]}_{turn}"
    own = MPI.Info.Create()
    own.Set("cb_nodes", "77" if comm.rank and kind == "ours" else str(1 + turn % 3))  # rank 0's counts
    fh = MPI.File.Open(comm, str(folder / name), MPI.MODE_CREATE | MPI.MODE_RDWR, own)
    own.Free()
    info = fh.Get_info()
    if kind == "ours":
        assert info.Get("mpiox_buffers") == "4", info.Get("mpiox_buffers")
        assert info.Get("cb_nodes") == str(min(1 + turn % 3, comm.size)), info.Get("cb_nodes")
    assert {info.Get("cb_nodes")} == set(comm.allgather(info.Get("cb_nodes")))
    info.Free()
    opened.append((fh, comm))
    block = 1000 + turn
    mine = np.full(block, comm.rank + 1, np.uint8)
    fh.Write_at_all(comm.rank * block, mine)
    if turn % 3 == 0:
        fh.Sync()
    if len(opened) > 5:  # several files of a group stay open, closed in another order than opened
        opened.pop(turn % 4)[0].Close()
    found = np.zeros(comm.size * block, np.uint8)
    fh.Sync(); comm.Barrier(); fh.Sync()
    fh.Read_at_all(0, found)
    assert (found == np.repeat(np.arange(1, comm.size + 1), block)).all()
for fh, comm in opened:
    fh.Close()
if world.rank == 0:
    print("verified")
"""

# Some rank cannot follow: all ranks leave the file to the MPI library, and the next file is ours again.
FAILING = """
comm = world
for turn in range(6):
    name = "good" if turn % 2 else "bad"
    fh = MPI.File.Open(comm, str(folder / f"{name}{turn}"), MPI.MODE_CREATE | MPI.MODE_RDWR)
    mine, found = np.full(5000, comm.rank + 1, np.uint8), np.zeros(5000 * comm.size, np.uint8)
    fh.Write_at_all(comm.rank * 5000, mine)
    fh.Sync(); comm.Barrier(); fh.Sync()
    fh.Read_at_all(0, found)
    assert (found == np.repeat(np.arange(1, comm.size + 1), 5000)).all()
    fh.Close()
if comm.rank == 0:
    print("verified")
"""


def files(path: pathlib.Path) -> list[tuple[str, dict[str, object]]]:
    """Return name and statistics of every file."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(pathlib.Path(line["path"]).name, line) for line in lines if line["kind"] == "file"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_many_files_on_many_communicators(extension: str, tmp_path: pathlib.Path, ranks: int, level: str) -> None:
    """Rank 0's hints hold on every rank, whichever way they came, short and long."""
    script, hints = tmp_path / "many.py", tmp_path / "hints"
    script.write_text(HEAD + MANY, encoding="utf-8")
    again = "striping_unit = 64k\n" * (1, 100, 600)[ranks % 3]  # what rank 0 tells is short, long, very long
    hints.write_text(f"{again}[*/native_*]\nmpiox_enable = false\n[*/ours_*]\nmpiox_buffers = 4\n", encoding="utf-8")
    environment = {"MPIOX_HINTS_FILE": str(hints)}
    launch = python_run([script, str(tmp_path), level], ranks, env=environment, timeout_s=90)
    assert "verified" in launch.stdout, launch.describe()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("ranks", "node"), [(2, 0), (4, 0), (5, 0), (4, 2), (5, 1)])
def test_one_rank_that_cannot_follow(
    extension: str, tmp_path: pathlib.Path, ranks: int, node: int, level: str
) -> None:
    """All ranks take the MPI library then, on one node and on several; nobody waits for a rank that gave up."""
    script, statistics = tmp_path / "failing.py", tmp_path / "stats.jsonl"
    script.write_text(HEAD + FAILING, encoding="utf-8")
    environment = {
        "MPIOX_FAULT": f"op=open,rank={node if node else ranks - 1},path=*bad*,errno=EMFILE",
        "MPIOX_STATS": "1",
        "MPIOX_STATS_FILE": str(statistics),
    }
    if node:
        environment["MPIOX_RANKS_PER_NODE"] = str(node)
    launch = python_run([script, str(tmp_path), level], ranks, env=environment, timeout_s=90)
    assert "verified" in launch.stdout, launch.describe()
    ours = {name for name, record in files(statistics) if record["collective_writes"]}
    assert ours == {"good1", "good3", "good5"}
