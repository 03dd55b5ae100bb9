"""Collective accesses of few pieces that are far from each other: windows between them are neither passed nor read."""

from __future__ import annotations

import os

import pytest

from support.cases import Case, Cases
from support.fuzz import seed
from support.launch import MEMORY
from support.partition_methods import METHODS

pytestmark = pytest.mark.mpi

PLACE = MEMORY or "{folder}"
GIB = 1 << 30

# Every rank has PIECES pieces, each GAP bytes behind that of the rank before: one call, statistics of all ranks.
FAR = """
import pathlib, sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, path, pieces, gap = MPI.COMM_WORLD, pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
length = 5000
fh = MPI.File.Open(comm, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
fh.Set_view(comm.rank * gap + 12345, MPI.BYTE, MPI.BYTE.Create_contiguous(length).Create_resized(0, comm.size * gap)
            .Commit())
mine = np.random.default_rng(comm.rank).integers(0, 256, pieces * length, dtype=np.uint8)
back = np.zeros_like(mine)
fh.Write_all(mine)
comm.Barrier()
fh.Read_at_all(0, back)
assert np.array_equal(back, mine)
with path.open("rb") as file:
    for piece in range(pieces):
        file.seek((piece * comm.size + comm.rank) * gap + 12345)
        assert file.read(length) == mine[piece * length : (piece + 1) * length].tobytes()
stats = mpiio_ext.stats.of(fh)
assert stats.collective_writes == stats.collective_reads == 1
found = comm.allreduce(np.array([stats.write_requests, stats.read_requests, stats.rounds]))
fh.Close()
if comm.rank == 0:
    print(*found)
"""

# Pieces of random lengths with narrow and wide gaps, the ranks' in turn or one behind the other.
RANDOM = """
import pathlib, sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, path = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
random = np.random.default_rng(int(sys.argv[2]))
for number in range(12):
    count = int(random.integers(1, 14)) * comm.size
    lengths = random.integers(1, 20000, count)
    wide = random.random(count) < 0.4
    gaps = np.where(wide, random.integers(1 << 25, 1 << 28, count), random.integers(0, 9000, count))
    begins = np.cumsum(gaps + np.concatenate(([0], lengths[:-1])))
    owners = np.sort(random.integers(0, comm.size, count)) if number % 3 == 0 else random.integers(0, comm.size, count)
    own = np.flatnonzero(owners == comm.rank)
    fh = MPI.File.Open(comm, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
    nothing = ([0], [int(begins[-1]) + (1 << 34)]) if number % 2 else ([], [])  # a block of no bytes, far behind
    blocks = lengths[own].tolist() + nothing[0], begins[own].tolist() + nothing[1]
    view = MPI.BYTE.Create_hindexed(*blocks).Commit() if len(own) else MPI.BYTE
    fh.Set_view(0, MPI.BYTE, view)
    mine = np.random.default_rng([number, comm.rank]).integers(1, 256, int(lengths[own].sum()), dtype=np.uint8)
    back = np.zeros_like(mine)
    if number % 4 == 1:
        fh.Iwrite_all(mine).Wait()
    elif number % 4 == 2:
        fh.Write_all_begin(mine)
        fh.Write_all_end(mine)
    else:
        fh.Write_all(mine)
    comm.Barrier()
    fh.Read_at_all(0, back)
    assert np.array_equal(back, mine), number
    done = 0
    with path.open("rb") as file:
        for begin, length in zip(begins[own].tolist(), lengths[own].tolist()):
            file.seek(max(0, begin - 1))
            before = file.read(1) if begin and begin - 1 not in begins + lengths - 1 else b"\\0"
            file.seek(begin)
            assert before == b"\\0" and file.read(length) == mine[done : done + length].tobytes(), (number, begin)
            done += length
    comm.Barrier()
    fh.Close()
if comm.rank == 0:
    print("verified")
"""


def far(pieces: int, method: str, more: str = "", gap: int = GIB) -> Case:
    hints = f"*:mpiox_exchange=two_phase:mpiox_partition={method}:striping_unit=1m:striping_factor=3{more}"
    return Case(
        text=FAR,
        ranks=3,
        arguments=(f"{PLACE}/mpiio_ext_far_{os.getpid()}", str(pieces), str(gap)),
        environment={"MPIOX_HINTS": hints},
    )


def scattered(method: str, more: str = "") -> Case:
    hints = f"*:mpiox_exchange=two_phase:mpiox_partition={method}:striping_unit=64k:striping_factor=3{more}"
    return Case(
        text=RANDOM,
        ranks=3,
        arguments=(f"{PLACE}/mpiio_ext_scattered_{os.getpid()}", str(seed())),
        environment={"MPIOX_HINTS": hints},
        limit_s=180,
    )


# Without a hint far pieces are nobody's to exchange where one page cache serves all.
DIRECT = FAR.replace("print(*found)", "print(stats.reason)")
CASES = {"direct": Case(text=DIRECT, ranks=3, arguments=(f"{PLACE}/mpiio_ext_far_{os.getpid()}", "2", str(GIB)))}
CASES |= {f"far {method} {pieces}": far(pieces, method) for method in METHODS for pieces in (2, 8)}
CASES["many"] = far(20, "static_cyclic", gap=GIB // 8)
CASES["far nodes"] = far(2, "static_cyclic", ":mpiox_ranks_per_node=2")
CASES |= {f"scattered {method}": scattered(method) for method in METHODS}
CASES["scattered nodes"] = scattered("static_cyclic", ":mpiox_ranks_per_node=2")


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("far")])
def test_windows_between_pieces_are_not_read(cases: Cases, name: str) -> None:
    """A request a window that holds a piece, of the stripe's size; before, one a stripe in all the GiB between."""
    writes, reads, rounds = map(int, cases.result(name).stdout[0].split())
    pieces = 3 * int(CASES[name].arguments[1])
    assert writes == pieces
    assert pieces <= reads <= 4 * pieces
    assert rounds <= 3 * 4 * pieces


def test_more_pieces_than_spans(cases: Cases) -> None:
    """Equally far from each other: what has no span of its own lies within the last one; every byte is right."""
    writes, reads, _ = map(int, cases.result("many").stdout[0].split())
    assert writes == 3 * 20 <= reads


def test_far_pieces_are_sparse(cases: Cases) -> None:
    assert cases.result("direct").stdout[0].strip() == "direct: accesses are sparse"


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("scattered")])
def test_scattered_pieces(cases: Cases, name: str) -> None:
    assert cases.result(name).stdout[0].split() == ["verified"]
