"""The exchange between (pretended) nodes: random accesses, many small windows, lists of pieces, reads of the same."""

from __future__ import annotations

import pathlib

import pytest

from support import fuzz
from support.cases import Case, Cases, program_case

pytestmark = pytest.mark.mpi

#: Ranks, ranks on a node, first seed, cases.
RUNS = [
    (ranks, per_node, seed, fuzz.examples(cases, least=8))
    for ranks, per_node, seed, cases in (
        (2, 1, 1, 40),
        (3, 1, 100, 40),
        (3, 2, 200, 40),
        (4, 2, 300, 40),
        (4, 3, 400, 40),
        (7, 2, 500, 30),
    )
]


HEAD = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
MB = 1 << 20

def run(owned, unit, repeats=1, **hints):
    \'\'\'Write and read this rank's units of a file; return messages and bytes that all ranks sent.\'\'\'
    info = MPI.Info.Create({"mpiox_exchange": "two_phase", **hints})
    file = MPI.File.Open(comm, sys.argv[1] + "/file", MPI.MODE_CREATE | MPI.MODE_RDWR, info)
    kind = MPI.BYTE.Create_hindexed_block(unit, (np.flatnonzero(owned) * unit).tolist()).Commit()
    data = np.arange(int(owned.sum()) * unit, dtype=np.uint32).astype(np.uint8) + np.uint8(comm.rank)
    for _ in range(repeats):
        file.Set_view(0, MPI.BYTE, kind)
        file.Write_at_all(0, data)
        found = np.zeros_like(data)
        file.Read_at_all(0, found)
        assert np.array_equal(found, data)
    stats = mpiio_ext.stats.of(file)
    file.Close()
    return comm.allreduce(np.array([stats.messages, stats.message_bytes]))
"""

# A part of the file for each rank: the aggregators of its node have it.
OWN_PARTS = """
units = 1024
messages, sent = run(np.arange(units) * comm.size // units == comm.rank, 4096, mpiox_partition="even", cb_nodes="4")
assert sent < 4096, sent
# Two groups of as many aggregators as servers, each with half of the file.
groups = {"mpiox_partition": "group_cyclic", "cb_nodes": "4", "striping_factor": "2", "striping_unit": "65536"}
messages, sent = run(np.arange(units) * comm.size // units == comm.rank, 4096, **groups)
assert sent < 4096, sent
print("verified")
"""

# The aggregator's node writes every window of the file, the other node its first and its last one.
FAR_APART = """
units = 4096
ends = np.isin(np.arange(units), [0, 1, units - 2, units - 1])
owned = np.where(ends, comm.rank >= 2, comm.rank < 2) & (np.arange(units) % 2 == comm.rank % 2)
messages, sent = run(owned, 4096, mpiox_partition="even", cb_buffer_size="65536", cb_nodes="1")
assert messages < 20, messages  # of 256 windows, written and read
print("verified")
"""

# What all ranks read crosses once a node.
SAME = """
owned = np.ones(1024, bool)
info = MPI.Info.Create({"mpiox_exchange": "two_phase", "cb_nodes": "1"})
if comm.rank == 0:
    np.arange(4 * MB, dtype=np.uint32).astype(np.uint8).tofile(sys.argv[1] + "/file")
comm.Barrier()
file = MPI.File.Open(comm, sys.argv[1] + "/file", MPI.MODE_RDONLY, info)
found = np.zeros(4 * MB, np.uint8)
file.Read_at_all(0, found)
assert np.array_equal(found, np.arange(4 * MB, dtype=np.uint32).astype(np.uint8))
sent = comm.allreduce(mpiio_ext.stats.of(file).message_bytes)
file.Close()
assert 4 * MB <= sent < 4.1 * MB, sent
print("verified")
"""


# Every window of many is read by both nodes: that of the aggregator keeps it until the other one has its bytes.
READ_TOGETHER = """
truth = (np.arange(3 * MB, dtype=np.uint32) * 2654435761 >> 8).astype(np.uint8)
if comm.rank == 0:
    truth.tofile(sys.argv[1] + "/file")
comm.Barrier()
info = MPI.Info.Create({"mpiox_exchange": "two_phase", "mpiox_partition": "even", "cb_buffer_size": "65536",
                        "cb_nodes": "1"})
file = MPI.File.Open(comm, sys.argv[1] + "/file", MPI.MODE_RDONLY, info)
kind = MPI.BYTE.Create_vector(truth.size // 8 // comm.size, 8, 8 * comm.size).Commit()
file.Set_view(8 * comm.rank, MPI.BYTE, kind)
for _ in range(5):
    found = np.zeros(truth.size // comm.size, np.uint8)
    file.Read_at_all(0, found)
    assert np.array_equal(found, truth.reshape(-1, comm.size, 8)[:, comm.rank].ravel())
file.Close()
print("verified")
"""

# A window holds data of one node, and those at the same place of each domain that of the same one. A piece crosses in a
# message of its own, and not many more say when one comes.
WINDOW_A_NODE = """
pieces, piece = 24, 65536
truth = (np.arange(pieces * piece * comm.size, dtype=np.uint32) * 2654435761 >> 8).astype(np.uint8)
mine = np.ascontiguousarray(truth.reshape(pieces, comm.size, piece)[:, comm.rank].ravel())
info = MPI.Info.Create({"mpiox_exchange": "two_phase", "mpiox_partition": "even", "cb_buffer_size": str(piece)})
file = MPI.File.Open(comm, sys.argv[1] + "/file", MPI.MODE_CREATE | MPI.MODE_RDWR, info)
kind = MPI.BYTE.Create_vector(pieces, piece, piece * comm.size).Commit()
file.Set_view(piece * comm.rank, MPI.BYTE, kind)
file.Write_at_all(0, mine)
sent = comm.allreduce(mpiio_ext.stats.of(file).messages)
found = np.zeros_like(mine)
file.Read_at_all(0, found)
assert np.array_equal(found, mine)
file.Close()
assert np.array_equal(np.fromfile(sys.argv[1] + "/file", np.uint8), truth)
assert sent <= (pieces + comm.size) * comm.size, sent
print("verified")
"""


def name_of(run: tuple[int, int, int, int]) -> str:
    """Return the case's name."""
    return f"{run[0]} ranks, {run[1]} a node, seeds {run[2]}..{run[2] + run[3] - 1}"


@pytest.fixture(scope="module")
def cases(extension: str, tmp_path_factory: pytest.TempPathFactory) -> Cases:
    del extension  # loaded by the launch
    listed = {
        name_of(run): program_case(
            "exchange_random", run[0], "{folder}", str(run[2]), str(run[3]), MPIOX_RANKS_PER_NODE=str(run[1])
        )
        for run in RUNS
    }
    for name, text in {"own parts": OWN_PARTS, "far apart": FAR_APART, "the same": SAME}.items():
        listed[name] = Case(text=HEAD + text, ranks=4, environment={"MPIOX_RANKS_PER_NODE": "2"})
    listed["read together"] = Case(text=HEAD + READ_TOGETHER, ranks=6, environment={"MPIOX_RANKS_PER_NODE": "3"})
    listed["a window a node"] = Case(text=HEAD + WINDOW_A_NODE, ranks=5, environment={"MPIOX_RANKS_PER_NODE": "1"})
    return Cases(listed, pathlib.Path(tmp_path_factory.mktemp("exchange")))


@pytest.mark.both_with("4 ranks, 2 a node, *")
@pytest.mark.parametrize("name", [name_of(run) for run in RUNS])
def test_every_byte_arrives(cases: Cases, name: str) -> None:
    """What each rank wrote is in the file and nothing else, and each rank reads what it asked for and nothing else."""
    assert "verified" in cases.result(name).stdout[0]


@pytest.mark.both
def test_a_window_is_kept_until_the_other_node_has_its_bytes(cases: Cases) -> None:
    """Each byte that is read is the file's, however many windows go through one buffer."""
    assert "verified" in cases.result("read together").stdout[0]


def test_windows_that_hold_data_of_one_node_each(cases: Cases) -> None:
    """Bytes are right, and messages not more than pieces, whichever window an aggregator begins with."""
    assert "verified" in cases.result("a window a node").stdout[0]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("own parts", id="domains are where the data is"),
        pytest.param("far apart", id="nothing is sent where a node has nothing"),
        pytest.param("the same", id="what many ranks read crosses once"),
    ],
)
def test_no_more_crosses_than_must(cases: Cases, name: str) -> None:
    """Messages and bytes between nodes are counted."""
    assert "verified" in cases.result(name).stdout[0]
