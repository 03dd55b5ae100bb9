"""Memory in a few large pieces: requests take it as it is, whole, short, failing or past the end of the file."""

from __future__ import annotations

import pytest

from support.cases import Case, Cases

pytestmark = pytest.mark.mpi

#: Three blocks of memory with gaps between, to a file that is contiguous or in two blocks a tile; one rank per range.
PROGRAM = """
import sys
import numpy as np
import mpiio_ext.stats
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
COUNTS, STARTS = [20_000, 70_001, 30_000], [5, 30_000, 110_000]
TOTAL, ROOM = sum(COUNTS), 150_000
memory = MPI.BYTE.Create_hindexed(COUNTS, STARTS).Commit()
mask = np.zeros(ROOM, bool)
for start, count in zip(STARTS, COUNTS):
    mask[start:start + count] = True
data = np.random.default_rng(rank).integers(1, 256, ROOM, "u1")
how, path = sys.argv[1], sys.argv[2]
file = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
if how == "contiguous":
    file.Set_view(rank * TOTAL)
else:
    blocks = MPI.BYTE.Create_hindexed([50_000, 10_000], [0, 90_000]).Create_resized(0, 100_000).Commit()
    file.Set_view(rank * 300_000, MPI.BYTE, blocks)
file.Write_at(0, [data, 1, memory])
packed = np.empty(TOTAL, "u1")
file.Read_at(0, packed)
assert (packed == data[mask]).all()
back = np.full(ROOM, 7, "u1")
file.Read_at(0, [back, 1, memory])
assert (back[mask] == data[mask]).all() and (back[~mask] == 7).all()
comm.Barrier()
if how == "contiguous":
    file.Set_view(0)
    status = MPI.Status()
    back[:] = 7
    file.Read_at(size * TOTAL - 45_000, [back, 1, memory], status)  # the first block and half of the next are left
    assert status.Get_count(MPI.BYTE) == 45_000, status.Get_count(MPI.BYTE)
    left = np.flatnonzero(mask)[:45_000]
    assert (np.delete(back, left) == 7).all()
    end = np.empty(45_000, "u1")
    file.Read_at(size * TOTAL - 45_000, end)
    assert (back[left] == end).all()
counted = mpiio_ext.stats.of(file)
print("requests", counted.write_requests)
file.Close()
"""


FAULTS = {"none": "", "writes": "op=write,short=33333", "reads": "op=read,short=1001"}
HOWS = ("contiguous", "blocks")
RANKS = (1, 3)
STAGED = ("mpiox_stripe_size_io=true:striping_unit=65536", "romio_ds_write=enable")


def blocks(how: str, ranks: int, environment: dict[str, str]) -> Case:
    return Case(text=PROGRAM, ranks=ranks, arguments=(how, "{folder}/data"), environment=environment)


CASES = {
    f"{how} {ranks} {name}": blocks(how, ranks, {"MPIOX_FAULT": rule} if rule else {})
    for how in HOWS
    for ranks in RANKS
    for name, rule in FAULTS.items()
}
CASES |= {f"{how} {hints}": blocks(how, 2, {"MPIOX_HINTS": f"*:{hints}"}) for how in HOWS for hints in STAGED}


@pytest.mark.both_with("3-blocks-*")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("ranks", RANKS)
def test_large_blocks(cases: Cases, ranks: int, how: str, fault: str) -> None:
    """Every byte in its place, none beside it, whatever the requests move at a time."""
    result = cases.result(f"{how} {ranks} {fault}")
    if fault == "none":  # one request per piece of the file: nothing was staged
        expected = 1 if how == "contiguous" else 3
        assert result.stdout == (f"requests {expected}\n",) * ranks


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("hints", STAGED)
def test_hints_that_need_staging(cases: Cases, hints: str, how: str) -> None:
    """Stripe-size I/O and sieved writes keep their own way."""
    cases.result(f"{how} {hints}")
