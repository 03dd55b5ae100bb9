"""Programs of plain MPI_Init between nodes: views, shared pointers and nonblocking collectives are the library's.

Without MPI_THREAD_MULTIPLE no thread of the library may call MPI. That is no reason to hand views to the MPI library,
which flattens them: only a nonblocking collective would need such a thread, and every rank can do its part alone.
"""

from __future__ import annotations

import pathlib

import pytest

from support.cases import Case, Cases
from support.launch import json_lines

pytestmark = [pytest.mark.mpi, pytest.mark.both]

HEAD = """
import pathlib, sys
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
assert MPI.Query_thread() < MPI.THREAD_MULTIPLE
path = pathlib.Path(sys.argv[1]) / "data"
file = MPI.File.Open(comm, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR)


def sync():
    file.Sync(), comm.Barrier(), file.Sync()
"""

#: A view of 4 million pieces takes no memory to speak of. Flattened it takes 16 bytes a piece, 64 MB.
MEMORY = """
def memory():
    pages = int(pathlib.Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096

kind = MPI.DOUBLE.Create_vector(4 << 20, 1, size).Commit()
data = np.arange(1000) * size + rank + 0.5
file.Write_at_all(rank * 8000, data)  # whatever a first collective takes is taken
before = memory()
file.Set_view(8 * rank, MPI.DOUBLE, kind)
file.Write_all(data)
grown = memory() - before
assert grown < 16 << 20, f"{grown >> 20} MiB for a view"
file.Close()
if rank == 0:
    assert np.array_equal(np.fromfile(path), np.arange(1000 * size) + 0.5)
"""

#: Independent and ordered access at the shared file pointer, seeks, a new view, an appended file.
SHARED = """
kind = MPI.INT.Create_resized(0, 8).Commit()
file.Set_view(4, MPI.INT, kind)
file.Write_ordered(np.full(rank + 1, rank, "i4"))
total = size * (size + 1) // 2
assert file.Get_position_shared() == total
comm.Barrier()
file.Write_shared(np.full(3, 100 + rank, "i4"))
file.Iwrite_shared(np.full(2, 200 + rank, "i4")).Wait()
comm.Barrier()
assert file.Get_position_shared() == total + 5 * size
file.Seek_shared(0, MPI.SEEK_SET)
back = np.empty(rank + 1, "i4")
file.Read_ordered(back)
assert (back == rank).all(), back
file.Seek_shared(-total, MPI.SEEK_CUR)
file.Write_ordered_begin(np.full(1, 7, "i4"))
file.Write_ordered_end(np.full(1, 7, "i4"))
file.Seek_shared(0, MPI.SEEK_END)
assert file.Get_position_shared() == total + 5 * size, file.Get_position_shared()
sync()
file.Set_view(0, MPI.INT, MPI.INT)
assert file.Get_position_shared() == 0
file.Close()
file = MPI.File.Open(comm, str(path), MPI.MODE_RDWR | MPI.MODE_APPEND)
file.Write_ordered(np.full(1, rank, "i4"))
file.Close()
if rank == 0:
    found = np.fromfile(path, "i4")
    assert (found[:-size:2] == 0).all() and (found[-size:] == range(size)).all()
    ints = found[1:-size:2]
    assert (ints[size : total] == np.repeat(np.arange(size), np.arange(size) + 1)[size:]).all(), ints
    last = sorted(ints[total:].tolist())
    assert last == sorted([*[100 + r for r in range(size)] * 3, *[200 + r for r in range(size)] * 2]), last
assert not list(path.parent.glob(".data.pointer-*"))
"""

#: Nonblocking collectives make progress while a rank is in other calls of MPI, in whatever order it waits.
NONBLOCKING = """
kind = MPI.INT.Create_resized(0, 4 * size).Commit()
file.Set_view(4 * rank, MPI.INT, kind)
count = 5000
first, second, back = (np.arange(count, dtype="i4") * size + rank + k for k in (0, 7, 0))
if rank == 0:
    request = file.Iwrite_all(first)
    request.Wait()
    comm.Barrier()
    second = file.Iwrite_at_all(count, second)
    comm.Barrier()
    second.Wait()
else:
    request = file.Iwrite_all(first)
    comm.Barrier()
    request.Wait()
    comm.Barrier()
    file.Iwrite_at_all(count, second).Wait()
assert file.Get_position() == count
sync()
file.Seek(0)
file.Iread_all(back).Wait()
assert (back == np.arange(count) * size + rank).all()
file.Iread_at_all(count, back).Wait()
assert (back == np.arange(count) * size + rank + 7).all()
bad = np.empty(10, "i4")
try:
    file.Iread_at_all(-1, bad).Wait()
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_ARG, error
else:
    raise AssertionError("a negative offset was taken")
file.Close()
if rank == 0:
    found = np.fromfile(path, "i4")
    assert np.array_equal(found, np.concatenate([np.arange(count * size), np.arange(count * size) + 7]))
"""

#: After nonblocking collectives of small pieces the next view is the MPI library's, which exchanges them.
AFTERWARDS = """
kind = MPI.INT.Create_resized(0, 4 * size).Commit()
for turn in range(3):
    file.Set_view(4 * rank + 4000 * size * turn, MPI.INT, kind)
    file.Write_all(np.arange(1000, dtype="i4"))
    if rank == 0:  # the part of one rank is enough
        request = file.Iwrite_at_all(0, np.arange(1000, dtype="i4") * size + rank + turn)
    else:
        request = file.Iwrite_at_all(0, np.arange(1000, dtype="i4") * size + rank + turn)
    request.Wait()
    file.Write_ordered(np.arange(1000, dtype="i4")[:0])
file.Close()
if rank == 0:
    found = np.fromfile(path, "i4").reshape(3, 1000 * size)
    assert (found == np.arange(1000 * size) + np.arange(3)[:, None]).all()
"""

TEXTS = {"memory": MEMORY, "shared": SHARED, "nonblocking": NONBLOCKING, "afterwards": AFTERWARDS}
PLACES = [(2, 1), (3, 1), (4, 2)]


def case(text: str, ranks: int, per_node: int) -> Case:
    environment = {
        "MPIOX_RANKS_PER_NODE": str(per_node),
        "MPIOX_STATS": "1",
        "MPIOX_STATS_FILE": "{folder}/stats.jsonl",
    }
    return Case(text=HEAD + text, ranks=ranks, environment=environment, thread_level="single")


CASES = {
    f"{name} {ranks} {per_node}": case(text, ranks, per_node)
    for name, text in TEXTS.items()
    for ranks, per_node in PLACES
}


def files(folder: pathlib.Path) -> list[dict[str, int]]:
    """Return what the library counted of each opening, in order."""
    lines = json_lines(folder / "stats.jsonl")
    return [line for line in lines if line["kind"] == "file"]


@pytest.mark.slow_with("*-3-1")
@pytest.mark.parametrize(("ranks", "per_node"), PLACES)
@pytest.mark.parametrize("name", ["memory", "shared", "nonblocking"])
def test_no_access_is_the_mpi_librarys(cases: Cases, name: str, ranks: int, per_node: int) -> None:
    """Neither a view nor an access reaches the MPI library, and every byte is right."""
    for line in files(cases.result(f"{name} {ranks} {per_node}").folder):
        assert line["native_calls"] == 0, line


@pytest.mark.slow_with("3-1")
@pytest.mark.parametrize(("ranks", "per_node"), PLACES)
def test_small_pieces_go_to_the_mpi_library(cases: Cases, ranks: int, per_node: int) -> None:
    """Nonblocking collectives of small pieces: alone in the first view, by the MPI library in the later ones."""
    (line,) = files(cases.result(f"afterwards {ranks} {per_node}").folder)
    assert line["native_calls"] == 2 * ranks and line["nonblocking_calls"] == ranks, line
