"""What MPI promises on a file system whose caches nothing keeps coherent: ``without_coherence.py FOLDER SIZE``.

Two ranks on two hosts. Each step first fills the caches of both hosts with old content; SIZE is the bytes of a rank's
part of the file. Rank 0 prints one line for each step whose bytes are wrong, and "done".
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, OTHER = WORLD.rank, 1 - WORLD.rank
MODE = MPI.MODE_CREATE | MPI.MODE_RDWR
FOLDER, SIZE = sys.argv[1], int(sys.argv[2])
Step = Callable[[str], bool]


def part(rank: int, turn: int) -> np.ndarray:
    """Return what a rank writes in a turn."""
    return np.full(SIZE, 1 + 2 * turn + rank, np.uint8)


def whole(turn: int) -> np.ndarray:
    """Return a file of both parts."""
    return np.concatenate([part(0, turn), part(1, turn)])


def seen(file: MPI.File, at: int, count: int) -> np.ndarray:
    """Return what this rank reads alone."""
    found = np.zeros(count, np.uint8)
    file.Read_at(at, found)
    return found


def meet(file: MPI.File) -> None:
    """Sync, barrier, sync."""
    file.Sync()
    WORLD.Barrier()
    file.Sync()


def prepared(path: str, comm: MPI.Intracomm = WORLD) -> MPI.File:
    """Return a file of turn 0 that both hosts have read."""
    file = MPI.File.Open(comm, path, MODE)
    file.Write_at(RANK * SIZE, part(RANK, 0))
    meet(file)
    assert len(seen(file, 0, 2 * SIZE)) == 2 * SIZE
    WORLD.Barrier()
    return file


def synced(path: str, comm: MPI.Intracomm = WORLD) -> bool:
    """Independent writes of one host, seen by the other after sync-barrier-sync; the file grows, too."""
    file = prepared(path, comm)
    for turn in (1, 2):
        file.Write_at(RANK * SIZE, part(RANK, turn))
        file.Write_at((2 + 2 * turn + RANK) * SIZE, part(RANK, turn))
        meet(file)
        good = np.array_equal(seen(file, 0, 2 * SIZE), whole(turn))
        good &= np.array_equal(seen(file, (2 + 2 * turn) * SIZE, 2 * SIZE), whole(turn))
        good &= file.Get_size() == (4 + 2 * turn) * SIZE
        WORLD.Barrier()
        if not good:
            break
    file.Close()
    return good


def alone(path: str) -> bool:
    """The same where every rank opens the file by itself."""
    return synced(path, MPI.COMM_SELF)


def reopened(path: str) -> bool:
    """What was written before a close is seen after an open."""
    prepared(path).Close()
    WORLD.Barrier()
    for turn in (1, 2):
        file = MPI.File.Open(MPI.COMM_SELF, path, MODE)
        file.Write_at(RANK * SIZE, part(RANK, turn))
        file.Close()
        WORLD.Barrier()
        file = MPI.File.Open(MPI.COMM_SELF, path, MODE)
        good = np.array_equal(seen(file, 0, 2 * SIZE), whole(turn))
        file.Close()
        WORLD.Barrier()
        if not good:
            return False
    return True


def own(path: str) -> bool:
    """A rank sees at once what it has itself written, by whatever host that went."""
    file, good = prepared(path), True
    unit = SIZE // 4
    file.Set_view(RANK * unit, MPI.BYTE, MPI.BYTE.Create_contiguous(unit).Create_resized(0, 2 * unit).Commit())
    for turn in (1, 2, 3):
        file.Write_at_all(0, part(RANK, turn))
        good &= np.array_equal(seen(file, 0, SIZE), part(RANK, turn))
        file.Write_at(0, part(RANK, turn + 10)[:unit])
        found = np.zeros(SIZE, np.uint8)
        file.Read_at_all(0, found)
        good &= np.array_equal(found, np.concatenate([part(RANK, turn + 10)[:unit], part(RANK, turn)[unit:]]))
        file.Write_at(0, part(RANK, turn + 20)[:unit])
        file.Write_at_all(0, part(RANK, turn + 30))
        good &= np.array_equal(seen(file, 0, SIZE), part(RANK, turn + 30))
    file.Close()
    return bool(good)


def atomic(path: str) -> bool:
    """In atomic mode a barrier is enough."""
    file, good = prepared(path), True
    file.Set_atomicity(True)
    for turn in (1, 2):
        file.Write_at(RANK * SIZE, part(RANK, turn))
        WORLD.Barrier()
        good &= np.array_equal(seen(file, 0, 2 * SIZE), whole(turn))
        WORLD.Barrier()
    file.Close()
    return bool(good)


def shared(path: str) -> bool:
    """No two ranks get the same place of the shared file pointer."""
    file = prepared(path)
    for _ in range(10):
        file.Write_shared(np.full(SIZE // 100, 1 + RANK, np.uint8))
    meet(file)
    found = seen(file, 0, 20 * (SIZE // 100))
    good = file.Get_position_shared() == 20 * (SIZE // 100)
    good &= all(np.count_nonzero(found == 1 + rank) == 10 * (SIZE // 100) for rank in (0, 1))
    WORLD.Barrier()
    file.Close()
    return bool(good)


def appended(path: str) -> bool:
    """A file is opened to be appended to behind what another host has written."""
    prepared(path).Close()
    WORLD.Barrier()
    for turn in range(4):
        if turn % 2 == RANK:
            file = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_WRONLY | MPI.MODE_APPEND)
            file.Write(part(RANK, turn))
            file.Close()
        WORLD.Barrier()
    file = MPI.File.Open(WORLD, path, MODE)
    expected = np.concatenate([whole(0), *(part(turn % 2, turn) for turn in range(4))])
    good = file.Get_size() == 6 * SIZE and np.array_equal(seen(file, 0, 6 * SIZE), expected)
    WORLD.Barrier()
    file.Close()
    return bool(good)


STEPS: tuple[Step, ...] = (synced, alone, reopened, own, atomic, shared, appended)


def main() -> None:
    """Make all steps, each on files of its own."""
    for step in STEPS:
        good = step(f"{FOLDER}/{step.__name__}.{SIZE}")
        if not WORLD.allreduce(good, MPI.LAND) and RANK == 0:
            print(f"wrong: {step.__name__}", flush=True)
    if RANK == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
