"""Several ranks write and read one file and files of their own at once, with pages of both: every byte is checked.

``delegates_scheduled.py FILE``. Rank 0 prints as JSON how many bytes were wrong and what the delegates counted.
"""

from __future__ import annotations

import json
import pathlib
import sys

import mpiio_ext.delegates
import mpiio_ext.stats  # before mpi4py.MPI

# isort: split
import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
PIECE, PIECES, ROUNDS = 700, 300, 3
MODE = MPI.MODE_CREATE | MPI.MODE_RDWR


def content(at: int, length: int, version: int, who: int) -> np.ndarray:
    """Return what a rank writes at an offset in a round."""
    places = np.arange(at, at + length)
    return ((places * 7 + (places >> 9) + 31 * version + 3 * who) % 251 + 1).astype(np.uint8)


def play(shared: MPI.File, own: MPI.File) -> int:
    """Pieces in turn in the shared file, in a random order, and in a file of the rank's own; read back meanwhile."""
    rng = np.random.default_rng(COMM.rank)
    wrong = 0
    for version in range(ROUNDS):
        written: list[int] = []
        for index in rng.permutation(PIECES).tolist():
            at = (index * COMM.size + COMM.rank) * PIECE
            shared.Write_at(at, content(at, PIECE, version, COMM.rank))
            own.Write_at(index * PIECE, content(index * PIECE, PIECE, version, COMM.rank + 100))
            written.append(index)
            again = written[int(rng.integers(len(written)))]
            data = np.empty(PIECE, np.uint8)
            for file, place, who in (
                (shared, (again * COMM.size + COMM.rank) * PIECE, COMM.rank),
                (own, again * PIECE, COMM.rank + 100),
            ):
                file.Read_at(place, data)
                wrong += int((data != content(place, PIECE, version, who)).sum())
        shared.Sync()
        COMM.Barrier()
        for index in rng.integers(PIECES, size=40).tolist():  # what other ranks wrote
            rank = int(rng.integers(COMM.size))
            at = (index * COMM.size + rank) * PIECE
            data = np.empty(PIECE, np.uint8)
            shared.Read_at(at, data)
            wrong += int((data != content(at, PIECE, version, rank)).sum())
        COMM.Barrier()
    return wrong


def stored(path: pathlib.Path) -> int:
    """Compare what is in the files in the end."""
    last = ROUNDS - 1
    whole = np.fromfile(path, np.uint8)
    mine = np.fromfile(path.with_name(f"{path.name}.{COMM.rank}"), np.uint8)
    wrong = int((mine != content(0, PIECES * PIECE, last, COMM.rank + 100)).sum())
    for index in range(PIECES):
        at = (index * COMM.size + COMM.rank) * PIECE
        wrong += int((whole[at : at + PIECE] != content(at, PIECE, last, COMM.rank)).sum())
    return wrong


def main() -> None:
    """Play, close, compare."""
    path = pathlib.Path(sys.argv[1])
    shared = MPI.File.Open(COMM, str(path), MODE)
    own = MPI.File.Open(MPI.COMM_SELF, f"{path}.{COMM.rank}", MODE)
    wrong = play(shared, own)
    counted = {
        name: sum(item.counters[name] for item in mpiio_ext.delegates.own())
        for name in ("bytes_written", "flushes", "fills", "queued_most", "merged", "reordered")
    }
    info = shared.Get_info()
    hints = {name: info.Get(f"mpiox_delegate_{name}") for name in ("scheduler", "quantum", "time_slice", "patience")}
    COMM.Barrier()
    own.Close()
    shared.Close()
    wrong = COMM.allreduce(wrong + stored(path))
    if COMM.rank == 0:
        print("SEEN " + json.dumps({"wrong": wrong, "counted": counted, "hints": hints}))


if __name__ == "__main__":
    main()
