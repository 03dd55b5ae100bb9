"""Memory in a few large pieces: requests take it as it is, whole, short, failing or past the end of the file."""

from __future__ import annotations

import pathlib
import sys

import pytest

from support.launch import Launch, mpi_run

pytestmark = pytest.mark.mpi

#: Three blocks of memory with gaps between, to a file that is contiguous or in two blocks a tile; one rank per range.
PROGRAM = '''
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
import os
os.write(1, f"requests {counted.write_requests}\\n".encode())
file.Close()
'''


def run(tmp_path: pathlib.Path, how: str, ranks: int, env: dict[str, str]) -> Launch:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    return mpi_run([sys.executable, program, how, tmp_path / "data"], ranks, env=env, timeout_s=60)


@pytest.mark.parametrize("fault", ["", "op=write,short=33333", "op=read,short=1001"], ids=["none", "writes", "reads"])
@pytest.mark.parametrize("how", ["contiguous", "blocks"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_large_blocks(extension: str, tmp_path: pathlib.Path, ranks: int, how: str, fault: str) -> None:
    """Every byte in its place, none beside it, whatever the requests move at a time."""
    launch = run(tmp_path, how, ranks, {"MPIOX_FAULT": fault} if fault else {})
    if not fault:  # one request per piece of the file: nothing was staged
        expected = 1 if how == "contiguous" else 3
        assert sorted(launch.stdout.split()) == [str(expected)] * ranks + ["requests"] * ranks, launch.describe()


@pytest.mark.parametrize("hints", ["mpiox_stripe_size_io=true:striping_unit=65536", "romio_ds_write=enable"])
def test_hints_that_need_staging(extension: str, tmp_path: pathlib.Path, hints: str) -> None:
    """Stripe-size I/O and sieved writes keep their own way."""
    for how in ("contiguous", "blocks"):
        folder = tmp_path / how
        folder.mkdir()
        run(folder, how, 2, {"MPIOX_HINTS": f"*:{hints}"})
