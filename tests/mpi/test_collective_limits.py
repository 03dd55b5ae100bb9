"""What collective access must do at its limits: errors of one node, absurd hints, far offsets, many open files."""

from __future__ import annotations

import pytest

from support.cases import Case, Cases
from support.partition_methods import METHODS

pytestmark = [pytest.mark.mpi, pytest.mark.both]

# Every rank writes blocks of its own letter in turn; then the file may hold these letters and what was there before.
FAILED_NODE = """
import pathlib, sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
mine, before, path = np.full(1 << 22, ord("A") + comm.rank, np.uint8), 64 << 20, folder / "target"

def write(name, letters):
    fh = MPI.File.Open(comm, str(folder / name), MPI.MODE_CREATE | MPI.MODE_RDWR)
    fh.Set_view(comm.rank * 65536, MPI.BYTE, MPI.BYTE.Create_resized(0, 1).Create_vector(1, 65536, 1).Create_resized(
        0, comm.size * 65536).Commit())
    try:
        fh.Write_all(letters)
        return 0
    except MPI.Exception as error:
        return error.Get_error_class()
    finally:
        fh.Close()

assert write("secret", np.full(1 << 22, ord("S"), np.uint8)) == 0  # fills the collective buffers of every node
classes = comm.allgather(write("target", mine))
assert classes == [MPI.ERR_IO] * comm.size, classes
if comm.rank == 0:
    content = np.fromfile(path, np.uint8)
    owner = ord("A") + (np.arange(len(content)) // 65536) % comm.size
    wrong = np.count_nonzero((content != owner) & (content != 0))
    assert wrong == 0, f"{wrong} bytes that nobody wrote"
    assert np.count_nonzero(content) > 0  # the nodes that had not failed went on
    print("verified")
"""


ROUND_TRIP = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
data = np.arange(30000, dtype=np.int32) * comm.size + comm.rank
fh = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
fh.Set_view(4 * comm.rank, MPI.INT, MPI.INT.Create_resized(0, 4 * comm.size).Commit())
fh.Write_all(data)
back = np.zeros_like(data)
fh.Seek(0)
fh.Read_all(back)
assert np.array_equal(back, data)
assert mpiio_ext.stats.of(fh).collective_writes == 1
fh.Close()
if comm.rank == 0:
    assert np.array_equal(np.fromfile(sys.argv[1], np.int32), np.arange(30000 * comm.size, dtype=np.int32))
    print("verified")
"""


FAR = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
fh = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
failed = 0
for displacement, offset in ((0, 9223372036854775000), (1 << 62, 1 << 62), ((1 << 62) + 5, 0)):
    fh.Set_view(displacement)
    try:
        fh.Write_at_all(offset if comm.rank == 0 else 0, np.ones(8, np.uint8))
    except MPI.Exception:
        failed += 1
assert comm.allgather(failed) == [3] * comm.size
fh.Set_view(0)
fh.Write_at_all(8 * comm.rank, np.full(8, 7, np.uint8))
fh.Close()
if comm.rank == 0:
    assert open(sys.argv[1], "rb").read(8 * comm.size) == bytes([7]) * 8 * comm.size
    print("verified")
"""


MANY = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
for comm, count in ((MPI.COMM_SELF, 300), (world, 100)):
    name = f"{sys.argv[1]}.{world.rank if comm == MPI.COMM_SELF else 'shared'}"
    files = [MPI.File.Open(comm, f"{name}.{i}", MPI.MODE_CREATE | MPI.MODE_RDWR) for i in range(count)]
    for i, fh in enumerate(files):
        fh.Write_at_all(comm.rank * 4, np.full(1, i, np.int32))
    for fh in files:
        assert mpiio_ext.stats.of(fh).collective_writes == 1
        fh.Close()
    assert np.fromfile(f"{name}.{count - 1}", np.int32).tolist() == [count - 1] * comm.size
world.Barrier()
if world.rank == 0:
    print("verified")
"""


# The first collective through a new view moves nothing; the second one must know the view all the same.
NEW_VIEWS = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, n = MPI.COMM_WORLD, 1000
fh = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
wanted = []
for turn, block in enumerate((1, 5, 2)):
    blocks = MPI.INT.Create_contiguous(block).Create_resized(0, 4 * block * comm.size).Commit()
    fh.Set_view(4 * (turn * n * comm.size + block * comm.rank), MPI.INT, blocks)
    fh.Write_all(np.zeros(0, np.int32))
    fh.Write_all(np.arange(n, dtype=np.int32) * comm.size + comm.rank)
    mine = np.arange(n * comm.size, dtype=np.int32).reshape(n // block, block, comm.size)
    wanted.append(mine.transpose(0, 2, 1).ravel())
fh.Close()
if comm.rank == 0:
    assert np.array_equal(np.fromfile(sys.argv[1], np.int32), np.concatenate(wanted))
    print("verified")
"""


# Two ranks and two ranks, and the last one, have pieces in turn at places that are 2^42 bytes apart: 2^30 windows.
APART = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, pieces, block, places = MPI.COMM_WORLD, 300, 40, [0, (1 << 42) + 12345, (1 << 43) + 777]
place = places[comm.rank // 2]
starts = [place + (2 * piece + comm.rank % 2) * block for piece in range(pieces)]
fh = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
fh.Set_view(0, MPI.BYTE, MPI.BYTE.Create_hindexed_block(block, starts).Commit())
mine = np.random.default_rng(comm.rank).integers(1, 255, len(starts) * block).astype(np.uint8)
fh.Write_all(mine)
back = np.zeros_like(mine)
fh.Seek(0)
fh.Read_all(back)
assert np.array_equal(back, mine)
stats = mpiio_ext.stats.of(fh)
assert stats.collective_writes == stats.collective_reads == 1 and 2 * 3 <= stats.rounds <= 2 * 3 * 8, stats.rounds
fh.Close()
parts = comm.gather(mine.reshape(pieces, block))
if comm.rank == 0:
    parts.append(np.zeros_like(parts[0])[:-1])
    with open(sys.argv[1], "rb") as file:
        for number, place in enumerate(places):
            wanted = np.zeros((pieces, 2, block), np.uint8)
            wanted[:, 0], wanted[: len(parts[2 * number + 1]), 1] = parts[2 * number], parts[2 * number + 1]
            wanted = wanted.tobytes()[: -block if number == 2 else None]
            file.seek(place)
            assert file.read(len(wanted)) == wanted
            assert number == 2 or not any(file.read(1 << 20))
        assert file.read() == b""
    print("verified")
"""


HINTS = (
    "cb_config_list=*:-1",
    "cb_buffer_size=4611686018427387904",
    "cb_buffer_size=1",
    "striping_factor=2000000000:mpiox_partition=group_cyclic:cb_nodes=4",
    "striping_unit=7:striping_factor=3:mpiox_partition=transpose",
    "striping_unit=1:mpiox_partition=static_cyclic:cb_buffer_size=4k",
    "cb_nodes=2147483647:mpiox_buffers=64:mpiox_partition=transpose",
)
NODES = (0, 2)


def round_trip(hints: str, ranks_per_node: int) -> Case:
    """Return the round trip under some hints."""
    environment = {"MPIOX_HINTS": f"*:mpiox_exchange=two_phase:{hints}", "MPIOX_RANKS_PER_NODE": str(ranks_per_node)}
    return Case(text=ROUND_TRIP, ranks=3, arguments=("{folder}/file",), environment=environment)


def failed_node(ranks_per_node: int) -> Case:
    """Return the program of whose nodes the first one fails."""
    environment = {
        "MPIOX_RANKS_PER_NODE": str(ranks_per_node),
        "MPIOX_FAULT": "op=write,rank=0,path=*target,after=1,errno=EIO",
        "MPIOX_HINTS": "*:cb_buffer_size=256k:mpiox_partition=static_cyclic:mpiox_exchange=two_phase",
    }
    return Case(text=FAILED_NODE, ranks=4, environment=environment)


CASES = {f"failed node {nodes}": failed_node(nodes) for nodes in (1, 2)}
CASES |= {f"{hints} {nodes}": round_trip(hints, nodes) for hints in HINTS for nodes in NODES}
CASES["far"] = Case(text=FAR, ranks=3, arguments=("{folder}/file",))
for nodes in (0, 1, 2):
    CASES[f"new views {nodes}"] = Case(
        text=NEW_VIEWS,
        ranks=3,
        arguments=("{folder}/file",),
        environment={"MPIOX_HINTS": "*:mpiox_exchange=two_phase", "MPIOX_RANKS_PER_NODE": str(nodes)},
    )
CASES |= {
    f"apart {method} {nodes}": Case(
        text=APART,
        ranks=5,
        arguments=("{folder}/file",),
        environment={
            "MPIOX_HINTS": f"*:mpiox_partition={method}:cb_buffer_size=4096:striping_unit=8192:striping_factor=4",
            "MPIOX_RANKS_PER_NODE": str(nodes),
        },
    )
    for method in METHODS
    for nodes in NODES
}
CASES["many"] = Case(text=MANY, ranks=2, arguments=("{folder}/file",), limit_s=120)


@pytest.mark.parametrize("ranks_per_node", [1, 2])
def test_a_failed_node_leaves_no_foreign_bytes(cases: Cases, ranks_per_node: int) -> None:
    """An error on one node must not make another write parts of its buffer that it was not sent."""
    assert "verified" in cases.result(f"failed node {ranks_per_node}").stdout[0]


@pytest.mark.parametrize("ranks_per_node", NODES)
@pytest.mark.parametrize("hints", HINTS)
def test_absurd_hints_cost_speed_at_most(cases: Cases, hints: str, ranks_per_node: int) -> None:
    """No value that the registry admits may end in wrong data, an abort or a hang."""
    assert "verified" in cases.result(f"{hints} {ranks_per_node}").stdout[0]


def test_offsets_beyond_reach_fail_on_every_rank(cases: Cases) -> None:
    """One rank's offset near 2^63 is an error of all, and the file works on."""
    assert "verified" in cases.result("far").stdout[0]


@pytest.mark.parametrize("ranks_per_node", [0, 1, 2])
def test_a_new_view_is_known_although_nothing_was_moved_through_it(cases: Cases, ranks_per_node: int) -> None:
    """Between nodes leaders keep the views of all ranks: what they keep must never be older than the last set_view."""
    assert "verified" in cases.result(f"new views {ranks_per_node}").stdout[0]


@pytest.mark.parametrize("ranks_per_node", NODES)
@pytest.mark.parametrize("method", METHODS)
def test_rounds_follow_the_data(cases: Cases, method: str, ranks_per_node: int) -> None:
    """A region of terabytes of which only a few places are accessed takes the rounds of those places."""
    assert "verified" in cases.result(f"apart {method} {ranks_per_node}").stdout[0]


def test_many_open_files(cases: Cases) -> None:
    """Hundreds of open files on one communicator are managed; MPICH has not three communicators for each."""
    assert "verified" in cases.result("many").stdout[0]
