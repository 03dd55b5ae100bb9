"""Files that are closed before they are written: what a program meets when it comes back to them.

``delegates_staged.py FOLDER MODE LEVEL PARTS`` writes files through delegates of that mode and level of acknowledgement
with ``mpiox_close=staged``, so slowly that each is still being written when it is used again. PARTS > 0: each is so
many subfiles. Rank 0 prints ``SEEN`` and, as
JSON, what it has found wrong.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.rank, COMM.size
BLOCK, BLOCKS = 8192, 24
BYTES = BLOCK * BLOCKS * RANKS
FOLDER = pathlib.Path(sys.argv[1])
MADE = MPI.MODE_CREATE | MPI.MODE_RDWR
SERVICE = {
    "mpiox_delegates": "2",
    "mpiox_delegate_mode": sys.argv[2],
    "mpiox_delegate_page": "16k",
    "mpiox_delegate_cache": "16m",
    "striping_unit": "16k",
    "mpiox_delegate_ack": sys.argv[3],
    "mpiox_subfiles": sys.argv[4],
    "mpiox_subfile_unit": "10000",
}
SLOWLY = {**SERVICE, "mpiox_close": "staged", "mpiox_drain_rate": "40000"}
wrong: list[str] = []


def check(what: str, *, fine: bool) -> None:
    """Note what is wrong on any rank."""
    if not COMM.allreduce(fine, MPI.LAND):
        wrong.append(what)


def info(hints: dict[str, str]) -> MPI.Info:
    """Return hints as an object."""
    made = MPI.Info.Create()
    for name, value in hints.items():
        made.Set(name, value)
    return made


def opened(name: str, mode: int, hints: dict[str, str] = SLOWLY, comm: MPI.Intracomm = COMM) -> MPI.File:
    """Open a file of the folder."""
    return MPI.File.Open(comm, str(FOLDER / name), mode, info(hints))


def content(seed: int, size: int = BYTES) -> np.ndarray:
    """Return what a file of this seed holds."""
    places = np.arange(size)
    return ((places * 7 + places // BLOCK + seed) % 251 + 1).astype(np.uint8)


def write(file: MPI.File, seed: int, *, collective: bool = False) -> None:
    """Write all blocks of this rank, every RANKS-th of the file."""
    whole = content(seed)
    for block in range(RANK, BLOCKS * RANKS, RANKS):
        call = file.Write_at_all if collective else file.Write_at
        call(block * BLOCK, whole[block * BLOCK :][:BLOCK])


def holds(file: MPI.File, seed: int, size: int = BYTES) -> bool:
    """Return whether this rank reads all of the file as it should be."""
    found = np.zeros(BYTES, np.uint8)
    status = MPI.Status()
    file.Read_at(0, found, status)
    return status.Get_count(MPI.BYTE) == size and bool((found[:size] == content(seed, size)).all())


def make(name: str, seed: int, *, collective: bool = False) -> None:
    """Make a file and close it."""
    file = opened(name, MADE)
    write(file, seed, collective=collective)
    file.Close()


def is_hidden(name: str) -> bool:
    """Return whether the file is there by its staging name alone."""
    COMM.Barrier()
    names = os.listdir(FOLDER)  # other ways to look wait until it is whole
    return f".{name}.staging" in names and name not in names


def reopened() -> None:
    """It has its name then; it is read by all ranks, written again, by a collective too, and cut."""
    make("again", 1)
    check("again: hidden", fine=is_hidden("again"))
    file = opened("again", MPI.MODE_RDONLY)
    check("again: name", fine=not is_hidden("again"))
    check("again: read", fine=file.Get_size() == BYTES and holds(file, 1))
    file.Close()
    file = opened("again", MPI.MODE_RDWR)
    write(file, 2, collective=True)
    COMM.Barrier()
    check("again: collective", fine=holds(file, 2))
    file.Set_size(BYTES // 2)
    check("again: cut", fine=file.Get_size() == BYTES // 2 and holds(file, 2, BYTES // 2))
    file.Close()


def twice() -> None:
    """A file that is open is opened by others, through delegates and without: it has no name before the last close."""
    file = opened("twice", MADE)
    write(file, 29)
    file.Sync()
    COMM.Barrier()
    others = [
        opened("twice", mode, hints, MPI.COMM_SELF)
        for mode, hints in ((MPI.MODE_RDWR, SLOWLY), (MPI.MODE_RDONLY, {**SERVICE, "mpiox_delegates": "0"}))
    ]
    check("twice: in force", fine=file.Get_info().Get("mpiox_close") == "staged")
    check("twice: read", fine=all(holds(other, 29) for other in others))
    file.Close()
    check("twice: hidden", fine=is_hidden("twice"))
    write(others[0], 30)
    for other in others:
        other.Close()
    COMM.Barrier()
    file = opened("twice", MPI.MODE_RDONLY)
    check("twice: written", fine=holds(file, 30))
    check("twice: name", fine=not is_hidden("twice"))
    file.Close()


def alone() -> None:
    """One rank opens what all have closed; the others have nothing to do with it."""
    make("alone", 3, collective=True)
    if RANK == RANKS - 1:
        file = opened("alone", MPI.MODE_RDWR, comm=MPI.COMM_SELF)
        if not holds(file, 3):
            print("alone: not as written", flush=True)
            COMM.Abort(1)
        file.Write_at(0, content(4, BLOCK))
        file.Close()
    COMM.Barrier()
    file = opened("alone", MPI.MODE_RDONLY)
    found = np.zeros(BLOCK, np.uint8)
    file.Read_at(0, found)
    check("alone: seen by all", fine=bool((found == content(4, BLOCK)).all()))
    file.Close()


def otherwise() -> None:
    """What is written at another level, or without delegates, stays: old copies do not come back."""
    make("otherwise", 24)
    file = opened("otherwise", MPI.MODE_RDWR, {**SLOWLY, "mpiox_delegate_ack": "memory"})
    check("otherwise: read", fine=holds(file, 24))
    write(file, 25)
    file.Close()
    file = opened("otherwise", MPI.MODE_RDWR, {**SERVICE, "mpiox_delegates": "0"})
    check("otherwise: written", fine=holds(file, 25))
    write(file, 26)
    file.Close()


def without_delegates() -> None:
    """Who does not go through the delegates waits until the file is whole and has its name."""
    file = opened("native", MPI.MODE_RDWR)
    write(file, 5)
    file.Close()
    file = opened("native", MPI.MODE_RDONLY, {**SLOWLY, "mpiox_delegates": "0"})
    check("native: read", fine=holds(file, 5))
    check("native: in force", fine=file.Get_info().Get("mpiox_close") == "written")
    file.Close()
    check("native: name", fine=(FOLDER / "native").exists() and not is_hidden("native"))


def new_beside() -> None:
    """A file that is made without all this while others are written has its name at once."""
    make("native", 27)
    for name, hints in (("written", SERVICE), ("library", {**SERVICE, "mpiox_delegates": "0"})):
        file = opened(name, MADE, hints)
        COMM.Barrier()
        check(f"{name}: name", fine=(FOLDER / name).exists() and not is_hidden(name))
        write(file, 28)
        file.Close()
    check("native: still hidden", fine=is_hidden("native"))


def existing() -> None:
    """A file that exists keeps its name."""
    if RANK == 0:
        (FOLDER / "old").write_bytes(bytes(BYTES))
    COMM.Barrier()
    make("old", 6)
    check("old: name", fine=not (FOLDER / ".old.staging").exists())
    file = opened("old", MPI.MODE_RDONLY)
    check("old: read", fine=holds(file, 6))
    file.Close()
    file = opened("old", MPI.MODE_RDONLY, {**SERVICE, "mpiox_delegates": "0"})
    check("old: read without delegates", fine=holds(file, 6))
    file.Close()


def deleted() -> None:
    """A file that is deleted while it is written is gone, and can be made anew; also when it is deleted on close."""
    make("gone", 7)
    if RANK == 0:
        MPI.File.Delete(str(FOLDER / "gone"))
    COMM.Barrier()
    check("gone", fine=not any(FOLDER.glob("*gone*")))
    make("gone", 8)
    file = opened("gone", MPI.MODE_RDONLY)
    check("gone: made anew", fine=holds(file, 8))
    file.Close()
    make("closing", 9)
    opened("closing", MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE).Close()
    check("closing: gone", fine=not any(FOLDER.glob("*closing*")))


def exclusive() -> None:
    """MPI_MODE_EXCL finds it, and what it refuses is not deleted."""
    for name, mode in (("there", 0), ("there still", MPI.MODE_DELETE_ON_CLOSE)):
        make(name, 10)
        try:
            opened(name, MADE | MPI.MODE_EXCL | mode).Close()
            check(f"{name}: exclusive", fine=False)
        except MPI.Exception as error:
            check(f"{name}: class", fine=error.Get_error_class() == MPI.ERR_FILE_EXISTS)
        COMM.Barrier()
        check(f"{name}: name", fine=not is_hidden(name) and (FOLDER / name).exists())
    file = opened("there open", MADE)
    write(file, 11)
    try:
        opened("there open", MADE | MPI.MODE_EXCL | MPI.MODE_DELETE_ON_CLOSE).Close()
        check("there open: exclusive", fine=False)
    except MPI.Exception as error:
        check("there open: class", fine=error.Get_error_class() == MPI.ERR_FILE_EXISTS)
    check("there open: name", fine=is_hidden("there open"))
    file.Close()
    if RANK == 0:
        MPI.File.Delete(str(FOLDER / "there open"))


def on_disk(name: str) -> bytes:
    """Return the bytes of a file past MPI; those of subfiles, of which each has its share, in turn."""
    path = FOLDER / name
    if not path.read_bytes().startswith(b"mpiio_ext subfiles 1"):
        return path.read_bytes()
    parts = [
        (FOLDER / line[8:]).read_bytes() for line in path.read_text("ascii").splitlines() if line.startswith("subfile ")
    ]
    return b"".join(part[at : at + 10000] for at in range(0, len(parts[0]), 10000) for part in parts)


def synchronised() -> None:
    """MPI_File_sync waits until everything is in the file; atomic mode works on the file itself."""
    file = opened("sync", MADE)
    write(file, 12)
    file.Sync()
    COMM.Barrier()
    check("sync: in the file", fine=on_disk(".sync.staging") == content(12).tobytes())
    file.Set_atomicity(True)
    write(file, 13)
    COMM.Barrier()
    check("sync: atomic", fine=holds(file, 13))
    file.Close()
    file = opened("sync", MPI.MODE_RDONLY)
    check("sync: read", fine=holds(file, 13))
    file.Close()


for case in (
    reopened,
    twice,
    alone,
    otherwise,
    new_beside,
    without_delegates,
    existing,
    deleted,
    exclusive,
    synchronised,
):
    case()
make("last", 14)
if RANK == 0:
    print("SEEN", json.dumps(wrong), flush=True)
