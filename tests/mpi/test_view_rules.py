"""What MPI forbids of views is refused on every rank, with ROMIO's error classes; what it allows is read right."""

from __future__ import annotations

import pytest

from support.cases import Case, Cases
from support.launch import PROGRAMS, python_run
from support.tiers import slow

pytestmark = pytest.mark.mpi

RANKS = (1, 2, 3, 4, 5)

TABLE = """
import sys

import mpiio_ext
from mpi4py import MPI

comm = MPI.COMM_WORLD

def blocks(*places):
    return MPI.BYTE.Create_hindexed([4, 4], list(places)).Commit()


good, back, down, over = blocks(0, 8), blocks(-4, 4), blocks(8, 0), blocks(0, 2)
raw, six = MPI.INT.Create_contiguous(3), MPI.BYTE.Create_contiguous(6).Commit()
none = MPI.INT.Create_contiguous(0).Commit()
gigabyte = MPI.BYTE.Create_contiguous(1 << 30)  # beyond 2^32 bytes
far, far_down, far_over = (
    gigabyte.Create_hindexed([3, 3], places).Commit()
    for places in ([0, 3 << 30], [3 << 30, 0], [0, (3 << 30) - 1])
)
#: displacement, etype, file type, data representation, class when open for writing, for reading alone; as MPICH 5
views = [
    (-1, MPI.BYTE, good, "native", MPI.ERR_ARG, MPI.ERR_ARG),
    (MPI.DISPLACEMENT_CURRENT, MPI.BYTE, good, "native", MPI.ERR_ARG, MPI.ERR_ARG),
    (100, MPI.BYTE, back, "native", MPI.ERR_IO, MPI.ERR_IO),
    (0, MPI.BYTE, down, "native", MPI.ERR_IO, MPI.ERR_IO),
    (0, MPI.BYTE, over, "native", MPI.ERR_IO, MPI.SUCCESS),
    (0, back, back, "native", MPI.ERR_IO, MPI.ERR_IO),
    (0, down, down, "native", MPI.ERR_IO, MPI.ERR_IO),
    (0, over, over, "native", MPI.ERR_IO, MPI.SUCCESS),
    (0, back, good, "native", MPI.ERR_IO, MPI.ERR_IO),
    (0, down, good, "native", MPI.ERR_IO, MPI.ERR_IO),
    (0, over, good, "native", MPI.ERR_IO, MPI.SUCCESS),
    (0, MPI.BYTE, far, "native", MPI.SUCCESS, MPI.SUCCESS),
    (0, far, far, "native", MPI.SUCCESS, MPI.SUCCESS),
    (0, MPI.BYTE, far_down, "native", MPI.ERR_IO, MPI.ERR_IO),
    (0, MPI.BYTE, far_over, "native", MPI.ERR_IO, MPI.SUCCESS),
    (0, MPI.INT, six, "native", MPI.ERR_ARG, MPI.ERR_ARG),
    (0, MPI.DATATYPE_NULL, good, "native", MPI.ERR_TYPE, MPI.ERR_TYPE),
    (0, MPI.BYTE, MPI.DATATYPE_NULL, "native", MPI.ERR_TYPE, MPI.ERR_TYPE),
    (0, raw, good, "native", MPI.ERR_TYPE, MPI.ERR_TYPE),
    (0, MPI.INT, raw, "native", MPI.ERR_TYPE, MPI.ERR_TYPE),
    (0, MPI.BYTE, good, "none of them", MPI.ERR_UNSUPPORTED_DATAREP, MPI.ERR_UNSUPPORTED_DATAREP),
]
if MPI.get_vendor()[0] == "Open MPI":  # which divides by an etype's size
    views.append((0, none, none, "native", MPI.ERR_ARG, MPI.ERR_ARG))
path = sys.argv[1] + "/data"
MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY).Close()
for mode, column in ((MPI.MODE_RDWR, 4), (MPI.MODE_WRONLY, 4), (MPI.MODE_RDONLY, 5)):
    file = MPI.File.Open(comm, path, mode)
    for number, view in enumerate(views):
        for wrong in {0, comm.size - 1, comm.size}:  # one rank, or all of them
            mine = view if wrong in (comm.rank, comm.size) else (0, MPI.BYTE, good, "native")
            disp, etype, filetype, datarep = mine[:4]
            found = MPI.SUCCESS
            try:
                file.Set_view(disp, etype, filetype, datarep)
            except MPI.Exception as problem:
                found = problem.Get_error_class()
            expected = {view[column]}
            if view[3] != "native" and 0 <= wrong < comm.size and comm.size > 1:
                expected = {MPI.ERR_NOT_SAME}  # another representation on one rank
            assert found in expected, (number, mode, wrong, comm.rank, found, expected)
    file.Close()
for datatype in (good, back, down, over, raw, six, none, gigabyte, far, far_down, far_over):
    datatype.Free()
"""
CASES = {f"table {ranks}": Case(text=TABLE, ranks=ranks) for ranks in RANKS}

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
CASES |= {f"texts {ranks}": Case(text=TEXTS, ranks=ranks) for ranks in (1, 3)}
DELEGATES = {"MPIOX_HINTS": "mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_delegate_page=4k"}
CASES |= {f"fresh {ranks}": Case(text=FRESH, ranks=ranks, environment=DELEGATES) for ranks in RANKS}
#: On one node, on two or more, and with I/O delegates, past which overlaps are read.
PLACES = {"one_node": {}, "pretended_nodes": {"MPIOX_RANKS_PER_NODE": "2"}, "delegates": DELEGATES}


@pytest.mark.parametrize("ranks", RANKS)
def test_classes(cases: Cases, ranks: int) -> None:
    """Views that are wrong on all ranks, or on one of them: the class that ROMIO has, on every rank; nobody waits."""
    cases.result(f"table {ranks}")


@pytest.mark.parametrize("ranks", (1, 3))
def test_texts(cases: Cases, ranks: int) -> None:
    """What is told of a refused view: the MPI call, and all of what is wrong."""
    cases.result(f"texts {ranks}")


@pytest.mark.parametrize("ranks", RANKS)
def test_overlaps_past_delegates(cases: Cases, ranks: int) -> None:
    """A view that overlaps reads what another open file has written through the delegates, after a sync."""
    cases.result(f"fresh {ranks}")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("ranks", [1, 4, *slow(2, 3, 5)])
def test_random_types(tmp_path: object, ranks: int, place: str) -> None:
    """Types that are drawn at random, against the list of their bytes."""
    command = [PROGRAMS / "view_rules.py", f"{tmp_path}/data", "50"]
    python_run(command, ranks, env=PLACES[place], timeout_s=60)
