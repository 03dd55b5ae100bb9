"""Many files, one after the other and several at once, through the same delegates, for a given time.

``delegates_soak.py FOLDER PROGRESS SECONDS``. Everything that is read is compared. Now and then every file is closed;
then rank 0 raises the first word of PROGRESS and waits until the second is as high: somebody looks at the processes
meanwhile, a dozen times at least.
"""

from __future__ import annotations

import mmap
import pathlib
import random
import struct
import sys
import time

import numpy as np

import mpiio_ext  # isort: skip  # noqa: F401  (before MPI)
from mpi4py import MPI  # isort: skip

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.rank, COMM.size
NAMES = 12
ROUNDS_BETWEEN_LOOKS = 4
LOOKS = 12


def content(seed: int, start: int, n: int) -> np.ndarray:
    """Return the bytes of a file."""
    at = np.arange(start, start + n, dtype=np.int64)
    return ((at * 31 + (at >> 10) * 7 + seed * 101) % 251 + 1).astype(np.uint8)


def records(file: MPI.File, rng: random.Random, seed: int, size: int) -> None:
    """Write small records in turns, sync, read another rank's."""
    step = rng.choice([100, 700, 4096, 5000])
    count = size // (step * RANKS)
    order = list(range(count))
    random.Random(seed + RANK).shuffle(order)
    for i in order:
        at = (i * RANKS + RANK) * step
        file.Write_at(at, content(seed, at, step))
    file.Sync()
    COMM.Barrier()
    file.Sync()
    for i in order[:20]:
        at = (i * RANKS + (RANK + 1) % RANKS) * step
        data = np.empty(step, np.uint8)
        file.Read_at(at, data)
        assert (data == content(seed, at, step)).all(), (seed, at)


def columns(file: MPI.File, rng: random.Random, seed: int, size: int) -> None:
    """Write and read through views, also nonblocking and in a collective."""
    block = rng.choice([24, 512, 3000])
    kind = MPI.BYTE.Create_vector(size // (block * RANKS), block, block * RANKS).Commit()
    file.Set_view(RANK * block, MPI.BYTE, kind)
    n = size // (block * RANKS) * block
    place = np.arange(n)
    at = place // block * block * RANKS + RANK * block + place % block
    data = content(seed, 0, size)[at]
    half = n // 2
    file.Iwrite_at(0, data[:half]).Wait()
    file.Write_at(half, data[half:])
    if rng.random() < 0.5:
        file.Write_at_all(0, data)
    file.Sync()
    COMM.Barrier()
    file.Sync()
    back = np.empty(n, np.uint8)
    if rng.random() < 0.5:
        file.Read_at_all(0, back)
    else:
        file.Read_at(0, back)
    assert (back == data).all(), seed
    file.Set_view(0, MPI.BYTE, MPI.BYTE)
    kind.Free()


def large(file: MPI.File, rng: random.Random, seed: int, size: int) -> None:
    """Each rank writes one long run and reads what is there."""
    n = size // RANKS
    file.Write_at(RANK * n, content(seed, RANK * n, n))
    back = np.empty(n, np.uint8)
    file.Read_at(RANK * n, back)
    assert (back == content(seed, RANK * n, n)).all(), seed


def play(folder: pathlib.Path, rng: random.Random, number: int) -> None:
    """Use a few files at once, then close them in any order; some are deleted."""
    opened = []
    for i in range(rng.randrange(1, 5)):
        mode = MPI.MODE_RDWR | MPI.MODE_CREATE | (MPI.MODE_DELETE_ON_CLOSE if rng.random() < 0.3 else 0)
        path = folder / f"file{(number * 5 + i) % NAMES}"
        opened.append((MPI.File.Open(COMM, str(path), mode), path))
    alone = MPI.File.Open(MPI.COMM_SELF, str(folder / f"own{RANK}"), MPI.MODE_RDWR | MPI.MODE_CREATE)
    for i, (file, _) in enumerate(opened):
        size = rng.choice([2000, 70_000, 300_000])
        rng.choice([records, columns, large])(file, rng, number * 8 + i, size)
        alone.Write(content(number, 0, 999))
        if rng.random() < 0.2:
            file.Set_size(rng.randrange(50_000))
    alone.Close()
    rng.shuffle(opened)
    for file, _ in opened:
        file.Close()
    if rng.random() < 0.3 and RANK == 0:
        for path in folder.glob("file*"):
            path.unlink()
    COMM.Barrier()


def main() -> None:
    """Play until the time is over."""
    folder, limit_s = pathlib.Path(sys.argv[1]), float(sys.argv[3])
    rng, number, started_s = random.Random(7), 0, time.monotonic()
    with open(sys.argv[2], "r+b") as file, mmap.mmap(file.fileno(), 4096) as words:
        while True:
            for _ in range(ROUNDS_BETWEEN_LOOKS):
                play(folder, rng, number)
                number += 1
            late = COMM.bcast(time.monotonic() - started_s > limit_s and number >= LOOKS * ROUNDS_BETWEEN_LOOKS, 0)
            if RANK == 0:
                struct.pack_into("Q", words, 0, struct.unpack_from("Q", words)[0] + 1)
                while struct.unpack_from("Q", words, 8)[0] < struct.unpack_from("Q", words)[0]:
                    time.sleep(0.001)
            COMM.Barrier()
            if late:
                break
    if RANK == 0:
        print(f"end after {number} rounds", flush=True)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        import traceback

        traceback.print_exc()
        COMM.Abort(1)
