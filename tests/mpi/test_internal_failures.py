"""Calls that the library makes for itself and that fail between nodes: an error on every rank, never wrong bytes."""

from __future__ import annotations

import pathlib
import sys

import pytest

from support.cbuild import mpi_program
from support.launch import Launch, mpi_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.both]

HEAD = """
import ctypes, itertools, pathlib, sys
import numpy as np
from mpi4py import MPI
comm, path = MPI.COMM_WORLD, pathlib.Path(sys.argv[1]) / "file"
inject = ctypes.CDLL(None)
PIECES, BLOCK = 5000, 16
letters = np.full(PIECES * BLOCK, ord("A") + comm.rank, np.uint8)
# Pieces of irregular places and no regular description: the serialized view is long.
cells = np.random.default_rng(1).permutation(PIECES * comm.size).reshape(comm.size, PIECES)
owners = np.empty(PIECES * comm.size, np.uint8)
for rank in range(comm.size):
    owners[cells[rank]] = ord("A") + rank
filetype = MPI.BYTE.Create_indexed_block(BLOCK, np.sort(cells[comm.rank]) * BLOCK).Create_resized(
    0, PIECES * comm.size * BLOCK).Commit()
fh = MPI.File.Open(comm, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR)

def access(write, new_view=True, arm=None, disarm=None):
    if new_view:
        fh.Set_view(0, MPI.BYTE, MPI.BYTE)
        fh.Set_view(0, MPI.BYTE, filetype)
    buffer = letters.copy() if write else np.zeros_like(letters)
    if arm:
        getattr(inject, arm[0])(*arm[1:])
    try:
        (fh.Write_at_all if write else fh.Read_at_all)(0, buffer)
    except MPI.Exception as error:
        return error.Get_error_class(), False
    finally:
        if disarm:
            getattr(inject, disarm[0])(*disarm[1:])
    return 0, np.array_equal(buffer, letters)

def check_file(complete):
    comm.Barrier()
    if comm.rank == 0 and path.stat().st_size:
        content = np.fromfile(path, np.uint8)
        owner = np.repeat(owners, BLOCK)[: len(content)]
        assert np.all((content == owner) | (content == 0)), "bytes that nobody wrote"
        assert not complete or (len(content) == len(letters) * comm.size and np.all(content == owner))
    comm.Barrier()

def attempt(rank, write, arm, disarm):
    what = (rank, write, arm)
    fh.Set_size(0) if write else None
    comm.Barrier()
    found = access(write, True, arm, disarm) if comm.rank == rank else access(write)
    failed = comm.rank == rank and inject.inject_done()
    found, failed = comm.allgather(found), any(comm.allgather(failed))
    check_file(False)
    if failed:
        assert len({code for code, _ in found}) == 1 and found[0][0] != 0, (what, found)
    else:
        assert all(good for _, good in found), (what, found)
    found = comm.allgather([access(True), access(False)])
    assert all(good for pair in found for _, good in pair), (what, "afterwards", found)
    check_file(True)
    return failed
"""

VIEWS = """
assert all(comm.allgather(access(True)[1] and access(False)[1]))
blob = PIECES * 8  # at least; no other request of this call is of this order
for rank, write in itertools.product(range(comm.size), (True, False)):
    assert not attempt(rank, write, ("inject_malloc", blob, 64 * blob), ("inject_malloc", 0, 0))
if comm.rank == 0:
    print("verified")
fh.Close()
"""

OPERATIONS = """
inject.inject_operation.argtypes = [ctypes.c_char_p, ctypes.c_int]
reached = set()
kinds = [(name, n) for name in ("Issend", "Isend", "Irecv") for n in (0, 2)]
for kind, rank, write in itertools.product(kinds, range(comm.size), (True, False)):
    agrees = rank % 2 == 0 and kind[0] != "Issend"  # leaders: two messages before the data and one after it; see below
    if agrees and (write or (rank, kind[0]) == (0, "Irecv")):  # no data are sent or received so
        continue
    first = 2 if agrees else 0
    arm = ("inject_operation", kind[0].encode(), first + kind[1])
    if attempt(rank, write, arm, ("inject_operation", b"", -1)):
        reached.add(kind)
assert reached == set(kinds), reached
if comm.rank == 0:
    print("verified")
fh.Close()
"""

LAST_WORD = """
inject.inject_operation.argtypes = [ctypes.c_char_p, ctypes.c_int]
assert all(comm.allgather(access(True)[1] and access(False)[1]))
access(True, True, ("inject_operation", sys.argv[2].encode(), int(sys.argv[3])) if comm.rank == 2 else None)
"""

OUTCOME = """
inject.inject_operation.argtypes = [ctypes.c_char_p, ctypes.c_int]
each, places = int(sys.argv[2]), [word.split(",") for word in sys.argv[3:]]
assert all(comm.allgather(access(True)[1] and access(False)[1]))
good, node = fh, comm.rank // each

def classes(call, arm=(b"-", 0)):
    inject.inject_operation(*arm)
    comm.Barrier()
    code = call()
    missed = comm.rank % each == 0 and inject.inject_done()
    inject.inject_operation(b"", -1)
    return comm.allgather(code), comm.allgather(missed)

def close():
    try:
        fh.Close()
    except MPI.Exception as error:
        return error.Get_error_class()
    return 0

# Nodes whose storage fails, the node whose leader MPI fails for, and where in the call; "C": as the file is closed.
for failing, (name, n, what), deaf in itertools.product(("0", "1", "01"), places, (0, 1)):
    fh = MPI.File.Open(comm, f"{path}.{failing}.{what}", MPI.MODE_CREATE | MPI.MODE_RDWR)
    arm = ("inject_operation", name.encode(), int(n)) if comm.rank == deaf * each else None
    if what == "C":
        codes, missed = classes(close, arm[1:] if arm else (b"-", 0))
    else:
        codes, missed = classes(lambda: access(True, True, arm)[0])
    assert any(missed), (failing, name, n, deaf)
    knows = [rank // each != deaf or str(deaf) in failing for rank in range(comm.size)]
    assert all(codes), (failing, name, n, deaf, codes)
    assert {code for code, known in zip(codes, knows) if known} == {MPI.ERR_IO}, (failing, name, n, deaf, codes)
    if what != "C":  # what was told to a leader that did not know of it is not taken for the next call's
        codes, missed = classes(lambda: access(True, True)[0])
        assert set(codes) == {MPI.ERR_IO} and not any(missed), (failing, name, n, deaf, codes)
        fh.Close()
    fh = good
    assert all(comm.allgather(access(True)[1] and access(False)[1]))
if comm.rank == 0:
    print("verified")
fh.Close()
"""


def launch(
    extension: str,
    folder: pathlib.Path,
    text: str,
    *arguments: str,
    check: bool = True,
    nodes: tuple[int, int] = (2, 2),
    faults: str | None = None,
) -> Launch:
    """Run the program on so many pretended nodes of so many ranks each."""
    script = folder / "program.py"
    script.write_text(HEAD + text, encoding="utf-8")
    environment = {
        "LD_PRELOAD": f"{mpi_program('inject', '-shared', '-fPIC')}:{extension}",
        "MPIOX_HINTS": f"*:mpiox_exchange=two_phase:cb_buffer_size=32k:cb_nodes={nodes[0]}",
        "MPIOX_RANKS_PER_NODE": str(nodes[1]),
    }
    if faults:
        environment["MPIOX_FAULT"] = faults
    words = [sys.executable, script, str(folder), *arguments]
    ranks, last_words = nodes[0] * nodes[1], None if check else folder / "errors"
    return mpi_run(words, ranks, env=environment, timeout_s=100, check=check, last_words=last_words)


def test_a_view_that_no_memory_holds(extension: str, tmp_path: pathlib.Path) -> None:
    """Views that are long lists are not sent: no rank needs memory for them, whatever other ranks' views are."""
    done = launch(extension, tmp_path, VIEWS)
    assert "verified" in done.stdout, done.describe()


def test_operations_that_fail(extension: str, tmp_path: pathlib.Path) -> None:
    """Each operation of the MPI library under a collective fails once, on each rank: all ranks get one error class."""
    done = launch(extension, tmp_path, OPERATIONS)
    assert "verified" in done.stdout, done.describe()


@pytest.mark.parametrize(
    ("operation", "n", "message"),
    [
        ("Irecv", 0, "agreeing on the access region"),
        *slow(("Isend", 0, "agreeing on the access region")),
        ("Irecv", 1, "exchanging views"),
        ("Imrecv", 0, "receiving a message from another node"),
    ],
)
def test_a_leader_that_cannot_go_on(
    extension: str, tmp_path: pathlib.Path, operation: str, n: int, message: str
) -> None:
    """Where the other nodes would wait for what a leader cannot know, the job ends with a message and does not hang."""
    done = launch(extension, tmp_path, LAST_WORD, operation, str(n), check=False)
    assert not done.timed_out, done.describe()
    assert done.returncode != 0, done.describe()
    assert f"rank 2: {message}" in done.stderr, done.describe()


@pytest.mark.parametrize(
    ("nodes", "each", "places"),
    [
        (2, 2, ["Isend,2,W", "Irecv,2,W", "Irecv,0,C", "Isend,0,C"]),
        *slow((18, 1, ["Iallreduce,0,W", "Iallreduce,0,C"])),
    ],
)
def test_an_outcome_that_a_leader_does_not_hear(
    extension: str, tmp_path: pathlib.Path, nodes: int, each: int, places: list[str]
) -> None:
    """Where storage fails, and MPI fails for a leader in the last agreement: an error on every rank, and none waits."""
    faults = ";".join(
        f"op={op},rank={rank},path=*/file.{('0*', '*1')[rank // each]}.{op[0].upper()},errno=EIO"
        for rank in range(2 * each)
        for op in ("write", "close")
    )
    done = launch(extension, tmp_path, OUTCOME, str(each), *places, nodes=(nodes, each), faults=faults)
    assert "verified" in done.stdout, done.describe()
