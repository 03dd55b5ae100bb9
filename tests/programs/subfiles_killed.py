"""Make files of subfiles, each opened again, until somebody ends the job: FOLDER collective|independent [FILES].

File N has generations: it is made; overwritten in part; cut and written beyond its new end; emptied and written anew;
synced and lengthened. Rank 0 tells each opening and each close in FOLDER.told, past the launcher. `content` is what a
close leaves, without any file.
"""

from __future__ import annotations

import sys

import numpy as np

BLOCK, MOST = 700, 130
#: Of each generation: the size that it is given first, None for that which it has; the blocks that are written then.
STEPS: list[tuple[int | None, range]] = [
    (None, range(120)),
    (None, range(0, 120, 2)),
    (50 * BLOCK + 33, range(40, 60)),
    (0, range(90)),
    (None, range(90, MOST)),
]


def data(number: int, generation: int) -> np.ndarray:
    """Return what a generation of a file is written from, each block from its own place."""
    return np.random.default_rng([number, generation]).integers(1, 255, MOST * BLOCK, "u1").reshape(MOST, BLOCK)


def content(number: int, generation: int) -> bytes:
    """Return the bytes of a file that was closed."""
    found = bytearray()
    for step, (size, blocks) in enumerate(STEPS[: generation + 1]):
        size = len(found) if size is None else size
        found = found[:size] + bytes(max(0, size - len(found)))
        rows = data(number, step)
        for block in blocks:
            found.extend(bytes(max(0, block * BLOCK + BLOCK - len(found))))
            found[block * BLOCK : block * BLOCK + BLOCK] = rows[block].tobytes()
    return bytes(found)


def write(name: str, number: int, generation: int, together: bool) -> None:
    """Open a file, write a generation of it, close it."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    size, blocks = STEPS[generation]
    mine, rows = list(blocks)[comm.rank :: comm.size], data(number, generation)
    fh = MPI.File.Open(comm, name, MPI.MODE_RDWR | (MPI.MODE_CREATE if generation == 0 else 0))
    if size is not None:
        fh.Set_size(size)
    if generation == len(STEPS) - 1:
        fh.Sync()
    if together:
        fh.Set_view(0, MPI.BYTE, MPI.BYTE.Create_hindexed_block(BLOCK, [block * BLOCK for block in mine]).Commit())
        fh.Write_all(rows[mine])
    else:
        for block in mine:
            fh.Write_at(block * BLOCK, rows[block])
    fh.Close()


def main() -> None:
    """Go on until the end comes from elsewhere, or so many files are made."""
    from mpi4py import MPI

    comm, folder, together = MPI.COMM_WORLD, sys.argv[1], sys.argv[2] == "collective"
    files = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    with open(f"{folder}.told", "a", buffering=1, encoding="ascii") as told:
        for number, generation in ((number, one) for number in range(files) for one in range(len(STEPS))):
            if comm.rank == 0:
                told.write(f"open {number} {generation}\n")
            write(f"{folder}/{number}", number, generation, together)
            if comm.rank == 0:
                told.write(f"closed {number} {generation}\n")
            if (number, generation) == (0, 0):
                print("begun", flush=True)


if __name__ == "__main__":
    main()
