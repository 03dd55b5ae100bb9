"""What must not wait for what, and what a failed call leaves behind: programs that once hung or went astray."""

from __future__ import annotations

import pathlib
import sys

import pytest

from support.cases import Case, Cases
from support.launch import mpi_run

pytestmark = [pytest.mark.mpi, pytest.mark.both]

HEAD = """
import sys
import mpiio_ext.stats
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)


def error_class(call, *arguments):
    try:
        call(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class()
    return MPI.SUCCESS

"""

#: An independent access must complete although a nonblocking collective before it waits for a rank that waits for us.
INDEPENDENT_BEHIND_COLLECTIVE = """
data = np.full(1 << 20, 65 + rank, "u1")
if rank == 0:
    collective = file.Iwrite_at_all(0, data)
    file.Iwrite_at(size << 20, data).Wait()
    for other in range(1, size):
        comm.send(None, other)
else:
    comm.recv(source=0)
    collective = file.Iwrite_at_all(rank << 20, data)
collective.Wait()
file.Sync()
comm.Barrier()
back = np.empty((size + 1) << 20, "u1")
file.Read_at_all(0, back)
assert (back.reshape(size + 1, -1) == np.array([65 + r for r in range(size)] + [65])[:, None]).all()
file.Close()
"""

#: Nonblocking collectives of two files, begun in different orders.
TWO_FILES = """
second = MPI.File.Open(comm.Dup(), sys.argv[1] + ".2", MPI.MODE_CREATE | MPI.MODE_RDWR)
data = np.full(100_000, 1 + rank, "u1")
pair = [file, second] if rank % 2 else [second, file]
requests = [f.Iwrite_at_all(rank * data.size, data) for f in pair]
MPI.Request.Waitall(requests)
for f in (file, second):
    back = np.empty(data.size * size, "u1")
    f.Read_at_all(0, back)
    assert (back == np.repeat(np.arange(1, size + 1), data.size)).all()
    f.Close()
"""

#: A view that is refused leaves the old one in force everywhere, and the shared file pointer where it was.
REFUSED_VIEW = """
file.Set_view(1000, MPI.INT, MPI.INT)
file.Write_ordered(np.full(1, rank, "i4"))
assert error_class(file.Set_view, 0, MPI.BYTE, MPI.BYTE, "nonsense") != MPI.SUCCESS
assert file.Get_view()[0] == 1000
assert file.Get_byte_offset(2) == 1008
assert file.Get_position_shared() == size
comm.Barrier()
file.Write_shared(np.full(1, 7, "i4"))
file.Sync()
comm.Barrier()
assert file.Get_size() == 1000 + 8 * size, file.Get_size()
back = np.empty(2 * size, "i4")
file.Read_at_all(0, back)
assert (back == [*range(size), *[7] * size]).all(), back
file.Close()
"""

#: The end of a split collective whose begin has failed is an error, not a crash; the next one works.
FAILED_BEGIN = """
data = np.full(1000, rank, "u1")
assert error_class(file.Write_at_all_begin, 1000 * rank, data) == MPI.ERR_NO_SPACE
assert error_class(file.Write_at_all_end, data) != MPI.SUCCESS
assert error_class(file.Read_ordered_end, data) != MPI.SUCCESS
for _ in range(size + 1):  # every rank's descriptor fails once
    if error_class(file.Write_at_all_begin, 1000 * rank, data) == MPI.SUCCESS:
        break
file.Write_at_all_end(data)
back = np.empty(1000 * size, "u1")
file.Read_at_all(0, back)
assert (back == np.repeat(np.arange(size), 1000)).all()
file.Close()
"""

#: Polling a request that has failed, among others: its error comes once, at the end, and to nobody else.
FAILED_POLLED = """
data, token = np.full(300_000, rank, "u1"), np.zeros(1, "i4")
failing = file.Iwrite_at(300_000 * rank, data)
receive = comm.Irecv(token, (rank - 1) % size)
for _ in range(200):
    assert not MPI.Request.Testall([failing, receive])
comm.Barrier()  # nobody sends while another is still polling
comm.Send(np.full(1, 5, "i4"), (rank + 1) % size)
statuses = [MPI.Status(), MPI.Status()]
assert error_class(MPI.Request.Waitall, [failing, receive], statuses) == MPI.ERR_IN_STATUS
classes = [MPI.Get_error_class(status.Get_error()) for status in statuses]
assert classes == [MPI.ERR_NO_SPACE, MPI.SUCCESS] and token[0] == 5, classes
again = comm.Irecv(token, (rank - 1) % size)
comm.Send(np.full(1, 6, "i4"), (rank + 1) % size)
again.Wait()
assert token[0] == 6
file.Close()
"""


ORDERS = {
    "independent_behind_collective": INDEPENDENT_BEHIND_COLLECTIVE,
    "two_files": TWO_FILES,
    "refused_view": REFUSED_VIEW,
}
NODES = {"one_node": "0", "each_rank_a_node": "1"}
RANKS = (2, 3)
FAILURES = {"failed_begin": (FAILED_BEGIN, 1), "failed_polled": (FAILED_POLLED, 1000)}


def case(text: str, ranks: int, **environment: str) -> Case:
    return Case(text=HEAD + text, ranks=ranks, arguments=("{folder}/data",), environment=environment)


CASES = {
    f"{name} {ranks} {where}": case(text, ranks, MPIOX_RANKS_PER_NODE=nodes)
    for name, text in ORDERS.items()
    for ranks in RANKS
    for where, nodes in NODES.items()
}
CASES |= {
    name: case(text, 2, MPIOX_FAULT=f"op=write,errno=ENOSPC,times={times}") for name, (text, times) in FAILURES.items()
}


def run(tmp_path: pathlib.Path, text: str, ranks: int, env: dict[str, str] | None = None) -> None:
    """Run a program in a launch of its own."""
    program = tmp_path / "program.py"
    program.write_text(HEAD + text, encoding="utf-8")
    mpi_run([sys.executable, program, tmp_path / "data"], ranks, env=env or {}, timeout_s=60)


@pytest.mark.slow_with("*-2-*")
@pytest.mark.parametrize("where", NODES)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ORDERS)
def test_order(cases: Cases, name: str, ranks: int, where: str) -> None:
    """MPI's progress rule, and views that stay."""
    cases.result(f"{name} {ranks} {where}")


@pytest.mark.parametrize("name", FAILURES)
def test_failures(cases: Cases, name: str) -> None:
    """Nothing of a failure is left to hit a later call."""
    cases.result(name)


def test_hidden_file_of_another_job(extension: str, tmp_path: pathlib.Path) -> None:
    """Two jobs with a shared file pointer on pretended nodes, one after the other, on one file: each starts at zero."""
    text = (
        "file.Write_shared(np.full(1, 1, 'i4')), comm.Barrier(), file.Sync(), comm.Barrier()\n"
        "assert file.Get_size() == 4 * size and file.Get_position_shared() == 4 * size\nfile.Close()\n"
    )
    for _ in range(2):
        run(tmp_path, text, 2, {"MPIOX_RANKS_PER_NODE": "1"})
    assert [path.name for path in tmp_path.iterdir() if "pointer" in path.name] == []


def test_refused_file_is_not_deleted(extension: str, tmp_path: pathlib.Path) -> None:
    """MPI_MODE_EXCL on a file that exists, to be deleted on close: refused, not deleted (as Open MPI would)."""
    there = tmp_path / "there"
    there.write_bytes(b"precious")
    text = (
        "mode = MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_EXCL | MPI.MODE_DELETE_ON_CLOSE\n"
        "assert error_class(MPI.File.Open, comm, sys.argv[2], mode) != MPI.SUCCESS\n"
        "gone = MPI.File.Open(comm, sys.argv[2] + '.new', mode)\n"
        "gone.Close(), comm.Barrier(), file.Close()\n"
    )
    program = tmp_path / "program.py"
    program.write_text(HEAD + text, encoding="utf-8")
    mpi_run([sys.executable, program, tmp_path / "data", there], 2, timeout_s=60)
    assert there.read_bytes() == b"precious"
    assert not (tmp_path / "there.new").exists()
