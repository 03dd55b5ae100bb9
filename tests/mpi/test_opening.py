"""Opening: every rank learns rank 0's choices, and all ranks agree, with the MPI library's help or without it."""

from __future__ import annotations

import pathlib

import pytest

from support.cases import Case, Cases
from support.launch import json_lines

pytestmark = [pytest.mark.mpi, pytest.mark.both]

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

# MPI libraries cut a prefix off, or keep it in the name; a file of the other name must stay as it is.
PREFIXES = """
import os
def state(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}
for number, (name, others) in enumerate([
    ("ufs:one", ()), ("UFS:two", ()), ("nfs:three", ()), ("ufs:four", ("four",)), ("ufs:five", ("ufs:five",)),
    ("nfs:six", ("six", "nfs:six")), ("other:seven", ("seven",)), ("UFS:eight", ("eight",)),
]):
    states = []
    for way in ("native", "ours"):
        place = folder / f"{number}{way}"
        if world.rank == 0:
            place.mkdir()
            for other in others:
                (place / other).write_bytes(b"somebody's own")
        world.Barrier()
        os.chdir(place)
        own = MPI.Info.Create()
        own.Set("mpiox_enable", "true" if way == "ours" else "false")
        try:
            fh = MPI.File.Open(world, name, MPI.MODE_CREATE | MPI.MODE_RDWR, own)
            fh.Write_at_all(3 * world.rank, np.full(3, 65 + world.rank, np.uint8))
            if way == "ours" and not others:
                assert mpiio_ext.stats.of(fh).collective_writes == 1, mpiio_ext.stats.of(fh).reason
            fh.Close()
        except MPI.Exception as error:
            states.append(error.Get_error_class())
        own.Free()
        world.Barrier()
        states.append(state(place))
        world.Barrier()
    half = len(states) // 2
    assert states[:half] == states[half:], (name, states)
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
    lines = json_lines(path)
    return [(pathlib.Path(line["path"]).name, line) for line in lines if line["kind"] == "file"]


RANKS = (1, 2, 3, 4, 7)
#: Ranks, the rank that cannot follow, ranks of a pretended node (0: one node).
FAILING_ON = [(2, 1, 0), (4, 3, 0), (5, 4, 0), (4, 2, 2), (5, 1, 1)]


def many(ranks: int, level: str) -> Case:
    """Return the program under a hints file: what rank 0 tells the others is short, long or very long."""
    again = "striping_unit = 64k\n" * (1, 100, 600)[ranks % 3]
    hints = f"{again}[*/native_*]\nmpiox_enable = false\n[*/ours_*]\nmpiox_buffers = 4\n"
    return Case(
        text=HEAD + MANY,
        ranks=ranks,
        arguments=("{folder}", level),
        environment={"MPIOX_HINTS_FILE": "{folder}/hints"},
        files={"hints": hints},
        thread_level=level,
    )


def failing(ranks: int, rank: int, node: int, level: str) -> Case:
    environment = {
        "MPIOX_FAULT": f"op=open,rank={rank},path=*bad*,errno=EMFILE",
        "MPIOX_STATS": "1",
        "MPIOX_STATS_FILE": "{folder}/stats.jsonl",
        "MPIOX_RANKS_PER_NODE": str(node),
    }
    text = HEAD + FAILING
    return Case(text=text, ranks=ranks, arguments=("{folder}", level), environment=environment, thread_level=level)


CASES = {f"many {ranks} {level}": many(ranks, level) for ranks in RANKS for level in LEVELS}
CASES |= {
    f"failing {ranks} {node} {level}": failing(ranks, rank, node, level)
    for ranks, rank, node in FAILING_ON
    for level in LEVELS
}


CASES |= {
    f"prefixes {ranks}": Case(text=HEAD + PREFIXES, ranks=ranks, arguments=("{folder}", "serialized"))
    for ranks in (1, 3)
}


@pytest.mark.parametrize("ranks", [1, 3])
def test_names_with_a_prefix(cases: Cases, ranks: int) -> None:
    """Bytes go to the file that the MPI library has opened, and to no other."""
    assert "verified" in cases.result(f"prefixes {ranks}").stdout[0]


@pytest.mark.slow_except("1-serialized", "4-*")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("ranks", RANKS)
def test_many_files_on_many_communicators(cases: Cases, ranks: int, level: str) -> None:
    """Rank 0's hints hold on every rank, whichever way they came, short and long."""
    assert "verified" in cases.result(f"many {ranks} {level}").stdout[0]


@pytest.mark.slow_with("2-0-*", "5-0-*", "5-1-serialized")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("ranks", "node"), [(ranks, node) for ranks, _, node in FAILING_ON])
def test_one_rank_that_cannot_follow(cases: Cases, ranks: int, node: int, level: str) -> None:
    """All ranks take the MPI library then, on one node and on several; nobody waits for a rank that gave up."""
    result = cases.result(f"failing {ranks} {node} {level}")
    assert "verified" in result.stdout[0]
    ours = {name for name, record in files(result.folder / "stats.jsonl") if record["collective_writes"]}
    assert ours == {"good1", "good3", "good5"}
