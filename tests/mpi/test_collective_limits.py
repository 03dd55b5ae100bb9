"""What collective access must do at its limits: places far apart, and many open files."""

from __future__ import annotations

import pytest

from support.cases import Case, Cases
from support.partition_methods import METHODS

pytestmark = [pytest.mark.mpi, pytest.mark.both]

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


NODES = (0, 2)
CASES = {
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


@pytest.mark.parametrize("ranks_per_node", NODES)
@pytest.mark.parametrize("method", METHODS)
def test_rounds_follow_the_data(cases: Cases, method: str, ranks_per_node: int) -> None:
    """A region of terabytes of which only a few places are accessed takes the rounds of those places."""
    assert "verified" in cases.result(f"apart {method} {ranks_per_node}").stdout[0]


def test_many_open_files(cases: Cases) -> None:
    """Hundreds of open files on one communicator are managed; MPICH has not three communicators for each."""
    assert "verified" in cases.result("many").stdout[0]
