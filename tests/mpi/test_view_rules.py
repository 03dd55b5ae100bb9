"""Views that MPI forbids: what the error says. Views that overlap: they read what came through delegates."""

from __future__ import annotations

import pytest

from support.cases import Case, Cases
from support.marks import slow

pytestmark = pytest.mark.mpi

RANKS = (1, 2, 3, 4, 5)

#: Another open file has written through the delegates; sync, barrier, sync (MPI-4.1, section 14.6.1) makes it visible.
FRESH = """
import sys

import mpiio_ext.stats

# isort: split
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
path = sys.argv[1] + "/data"
over = MPI.BYTE.Create_hindexed([4, 4], [0, 2]).Commit()
places = [1 + 6 * tile + start + byte for tile in range(50) for start in (0, 2) for byte in range(4)]
writer = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
assert mpiio_ext.stats.of(writer).delegation
reader = MPI.File.Open(comm, path, MPI.MODE_RDONLY)
reader.Set_view(1, MPI.BYTE, over)
for turn in range(5):
    data = np.roll(np.arange(400) % 251, turn).astype("u1")
    if comm.rank == turn % comm.size:
        writer.Write_at(0, data)
    writer.Sync()
    comm.Barrier()
    writer.Sync()
    room = np.zeros(len(places), "u1")
    (reader.Read_at_all if turn % 2 else reader.Read_at)(0, room)
    assert (room == data[places]).all(), (turn, room)
    comm.Barrier()
reader.Set_view(395, MPI.BYTE, over)  # the file ends within the second piece of its only tile
status = MPI.Status()
reader.Read_at(0, room[:8], status)
assert status.Get_count(MPI.BYTE) == 4 + 5 - 2, status.Get_count(MPI.BYTE)
assert mpiio_ext.stats.of(reader).native_calls == 0
reader.Close()
writer.Close()
over.Free()
"""
TEXTS = """
import sys

import mpiio_ext
from mpi4py import MPI

comm = MPI.COMM_WORLD
over = MPI.BYTE.Create_hindexed([4, 4], [0, 2]).Commit()
file = MPI.File.Open(comm, sys.argv[1] + "/data", MPI.MODE_CREATE | MPI.MODE_RDWR)
for disp, etype, filetype, text in (
    (-1, MPI.BYTE, MPI.BYTE, "negative displacement of a view"),
    (MPI.DISPLACEMENT_CURRENT, MPI.BYTE, MPI.BYTE, "MPI_DISPLACEMENT_CURRENT without MPI_MODE_SEQUENTIAL"),
    (0, MPI.BYTE, over, "an etype or file type that overlaps, of a file open for writing"),
):
    try:
        file.Set_view(disp, etype, filetype)
    except MPI.Exception as problem:
        found = problem.Get_error_string()
        assert f": MPI_File_set_view: {text} (" in found, found
    else:
        raise AssertionError(text)
file.Close()
over.Free()
"""
CASES = {f"texts {ranks}": Case(text=TEXTS, ranks=ranks) for ranks in (1, 3)}
DELEGATES = {"MPIOX_HINTS": "mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_delegate_page=4k"}
CASES |= {f"fresh {ranks}": Case(text=FRESH, ranks=ranks, environment=DELEGATES) for ranks in RANKS}


@pytest.mark.both
@pytest.mark.parametrize("ranks", (*slow(1), 3))
def test_texts(cases: Cases, ranks: int) -> None:
    """What is told of a refused view: the MPI call, and all of what is wrong."""
    cases.result(f"texts {ranks}")


@pytest.mark.both
@pytest.mark.slow_except("3")
@pytest.mark.parametrize("ranks", RANKS)
def test_overlaps_past_delegates(cases: Cases, ranks: int) -> None:
    """A view that overlaps reads what another open file has written through the delegates, after a sync."""
    cases.result(f"fresh {ranks}")
