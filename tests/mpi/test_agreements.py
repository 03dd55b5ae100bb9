"""How often the nodes agree in a collective whose pieces go to the file directly: once, and then every byte is there.

So they do in opening a file like the one before: what follows from its layout is prepared before the layout is known.

A rank accesses its own large pieces before the ranks agree. Where all have done so, that agreement ends the call; where
a rank has not, it says so there, and the call goes on as if nobody had.
"""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from support.cbuild import mpi_program
from support.launch import mpi_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.both]

PROGRAM = """
import ctypes, json, pathlib, sys
import numpy as np
import mpi4py
mpi4py.rc.thread_level = "serialized"  # nothing is prepared for collectives in the background
import mpiio_ext
from mpi4py import MPI
comm, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
rank, size = comm.rank, comm.size
begun, sent = ctypes.CDLL(None).inject_begun, ctypes.CDLL(None).inject_sent
sent.restype = ctypes.c_long
PIECE = 1 << 14
counts, bytes_sent = {}, {}

def counted(name, call, *arguments):
    before, bytes_before = begun(), sent()
    try:
        call(*arguments)
        code = 0
    except MPI.Exception as error:
        code = error.Get_error_class()
    counts.setdefault(name, []).append((begun() - before, code))
    bytes_sent.setdefault(name, []).append(sent() - bytes_before)

def mine(pieces, letter=None, length=PIECE):
    return np.full(pieces * length, letter if letter is not None else ord("A") + rank, np.uint8)

def open_file(name):
    return MPI.File.Open(comm, str(folder / name), MPI.MODE_CREATE | MPI.MODE_RDWR)

def content(name):
    comm.Barrier()
    found = np.fromfile(folder / name, np.uint8)
    comm.Barrier()
    return found

def take_turns(fh, length):
    block = MPI.BYTE.Create_contiguous(length)
    turns = block.Create_resized(0, length * size).Commit()
    fh.Set_view(rank * length, MPI.BYTE, turns)

# One piece a rank, in the first file of these ranks and in the next one, whose memory is there.
for name in ("first", "next"):
    before = begun()
    fh = open_file(name)
    counts["open " + name] = [(begun() - before, 0)]
    for call in range(3):
        counted(name, fh.Write_at_all, (call * size + rank) * PIECE, mine(1))
    assert np.array_equal(content(name), np.tile(np.repeat(np.arange(size) + ord("A"), PIECE), 3))
    found = np.zeros(PIECE, np.uint8)
    counted(name + " read", fh.Read_at_all, rank * PIECE, found)
    assert np.all(found == ord("A") + rank)
    counted(name + " end", fh.Read_at_all, (3 * size - 1 + rank) * PIECE, found)
    assert np.all(found == (ord("A") + size - 1 if rank == 0 else ord("A") + rank))
    fh.Close()

# Pieces that are not tiny, dealt in turn; and a rank without data.
fh = open_file("dealt")
take_turns(fh, PIECE)
counted("dealt", fh.Write_at_all, 0, mine(4))
counted("idle", fh.Write_at_all, 4 * PIECE, mine(0 if rank == 1 else 1))
assert np.array_equal(content("dealt")[:4 * size * PIECE], np.tile(np.repeat(np.arange(size) + ord("A"), PIECE), 4))

# The last rank has so many tiny pieces that all are exchanged, the others have one each.
TINY = 4096
fh.Set_view(0, MPI.BYTE, MPI.BYTE)
for turn in range(2):
    if rank == size - 1:
        fh.Set_view(size * PIECE, MPI.BYTE, MPI.BYTE.Create_resized(0, 2).Commit())
        counted("mixed", fh.Write_at_all, 0, mine(TINY, ord("z"), 1))
    else:
        fh.Set_view(0, MPI.BYTE, MPI.BYTE)
        counted("mixed", fh.Write_at_all, rank * PIECE, mine(1, ord("a") + rank))
    found = content("dealt")
    for other in range(size - 1):
        assert np.all(found[other * PIECE:][:PIECE] == ord("a") + other)
    tail = found[size * PIECE:][:2 * TINY]
    assert np.all(tail[::2] == ord("z")) and np.all(tail[1::2] == ord("A")), "bytes that the call does not have"

# An access that one rank cannot make: an error on all of them.
fh.Set_view(0, MPI.BYTE, MPI.BYTE)
counted("refused", fh.Write_at_all, (1 << 62) + 5 if rank == 2 else rank * PIECE, mine(1))
for call in range(2):
    counted("after it", fh.Write_at_all, rank * PIECE, mine(1))
assert np.array_equal(content("dealt")[:size * PIECE], np.repeat(np.arange(size) + ord("A"), PIECE))
fh.Close()
# Files whose layout is that of the one before, and such whose is another.
for turn, unit in enumerate((65536, 65536, 4096, 65536)):
    before = begun()
    info = MPI.Info.Create({"striping_unit": str(unit), "mpiox_partition": "static_cyclic", "cb_buffer_size": "16384"})
    fh = MPI.File.Open(comm, str(folder / f"layout{turn}"), MPI.MODE_CREATE | MPI.MODE_RDWR, info)
    counts[f"layout {turn}"] = [(begun() - before, 0)]
    assert fh.Get_info().Get("striping_unit") == str(unit)
    take_turns(fh, 512)
    fh.Write_at_all(0, mine(64, length=512))
    assert np.array_equal(content(f"layout{turn}"), np.tile(np.repeat(np.arange(size) + ord("A"), 512), 64))
    fh.Close()

gathered, gathered_bytes = comm.gather(counts), comm.gather(bytes_sent)
if rank == 0:
    print(json.dumps({"counts": gathered, "bytes": gathered_bytes}))
"""
#: Up to so many nodes agree by a message from each to each, more by one operation of the MPI library.
FEW_NODES = 16
#: What a node sends to each other one: five numbers, where all went ahead in the call before; else what its ranks have.
NUMBERS, BROUGHT = 40, 192
ONCE = ("next", "next read", "next end", "dealt", "idle")


@pytest.mark.parametrize(("ranks", "each"), [(4, 2), *slow((18, 1))])
def test_one_agreement_of_direct_collectives(extension: str, tmp_path: pathlib.Path, ranks: int, each: int) -> None:
    """Leaders exchange one message in a call, and a short one, other ranks none; an error is every rank's."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    environment = {
        "LD_PRELOAD": f"{mpi_program('inject', '-shared', '-fPIC')}:{extension}",
        "MPIOX_RANKS_PER_NODE": f"{each}",
    }
    done = mpi_run([sys.executable, script, str(tmp_path)], ranks, env=environment, timeout_s=100)
    found = json.loads(done.stdout)
    counts, others = found["counts"], ranks // each - 1
    once = 2 * others if others < FEW_NODES else 1
    # The lowest values with what rank 0 says, and once more where what was prepared is of no use.
    opened, opened_anew = (once, 2 * once) if others < FEW_NODES else (2, 3)
    for rank, of_rank in enumerate(counts):
        leads = rank % each == 0
        for name in ONCE:
            assert of_rank[name] == [[once * leads, 0]] * len(of_rank[name]), (rank, name, of_rank[name])
        assert of_rank["open next"] == of_rank["layout 1"] == [[opened * leads, 0]]
        assert of_rank["layout 2"] == of_rank["layout 3"] == [[opened_anew * leads, 0]]
        assert of_rank["first"][1:] == [[once * leads, 0]] * 2, (rank, of_rank["first"])  # after the memory is made
        assert all(code == 0 for _, code in of_rank["mixed"] + of_rank["first"]), of_rank
        refused = counts[2]["refused"][0][1]
        assert refused != 0
        assert of_rank["refused"] == [[2 * once * leads, refused]], of_rank["refused"]  # the error is told by itself
        assert of_rank["after it"] == [[2 * once * leads, 0], [once * leads, 0]], of_rank  # the last one was exchanged
        assert of_rank["mixed"][0][0] > once or not leads, of_rank["mixed"]
    for rank, of_rank in enumerate(found["bytes"]):
        if rank % each == 0 and others < FEW_NODES:
            brought = of_rank["next"][0]
            assert NUMBERS * others < brought <= BROUGHT * others, of_rank
            assert of_rank["next"][1:] == [NUMBERS * others] * 2, of_rank
            assert of_rank["next read"] == [brought] and of_rank["next end"] == [NUMBERS * others], of_rank
        else:
            assert not any(any(of_calls) for of_calls in of_rank.values()), of_rank
