"""Collective writes while the storage beneath them fails: ``failing_storage.py FILE NOTES [read]``.

Each round is one collective write of interleaved pieces, at the next place of the file. After round READY rank 0 makes
NOTES/ready, and goes on; whoever watches breaks the storage and makes NOTES/broken. The program ends AFTER rounds
later, or once a write has failed on any rank. With "read" it then reads collectively what was reported as written; it
closes the file. Every rank appends JSON lines to NOTES/rank.RANK: ["write", round, result], ["read", round, result],
["close", 0, result], where the result is "ok", "wrong", "short" (it met the end of the file) or the name
of an error class.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
PIECE, COUNT = 4096, 32
READY, AFTER, PAUSE_S = 4, 8, 0.02
#: Bytes of a round, of all ranks.
ROUND_BYTES = PIECE * COUNT * WORLD.size
CLASSES = {getattr(MPI, name): name for name in dir(MPI) if name.startswith("ERR_")}


def content(turn: int) -> np.ndarray:
    """Return the bytes of a round: (COUNT, ranks, PIECE)."""
    at = np.arange(turn * ROUND_BYTES, (turn + 1) * ROUND_BYTES, dtype=np.uint64)
    return ((at * np.uint64(2654435761)) >> np.uint64(13)).astype(np.uint8).reshape(COUNT, WORLD.size, PIECE)


def main() -> None:
    """Write until the storage has failed."""
    path, notes = sys.argv[1], pathlib.Path(sys.argv[2])
    own = (notes / f"rank.{WORLD.rank}").open("w", encoding="utf-8")

    def note(what: str, turn: int, result: str) -> str:
        own.write(json.dumps([what, turn, result]) + "\n")
        own.flush()
        return result

    file = MPI.File.Open(WORLD, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    kind = MPI.BYTE.Create_contiguous(PIECE).Create_resized(0, PIECE * WORLD.size).Commit()
    file.Set_view(WORLD.rank * PIECE, MPI.BYTE, kind)
    good, failed, turn, left = [], False, 0, AFTER
    while left > 0 and not failed:
        mine = np.ascontiguousarray(content(turn)[:, WORLD.rank])
        result = "ok"
        try:
            file.Write_at_all(turn * PIECE * COUNT, mine)
        except MPI.Exception as error:
            result = CLASSES[error.Get_error_class()]
        note("write", turn, result)
        failed = WORLD.allreduce(result != "ok", MPI.LOR)
        good += [] if failed else [turn]
        if WORLD.rank == 0 and turn == READY:
            (notes / "ready").touch()
        left -= WORLD.bcast((notes / "broken").exists() if WORLD.rank == 0 else None)
        turn += 1
        time.sleep(PAUSE_S)
    status = MPI.Status()
    for turn in good if "read" in sys.argv[3:] else []:
        found = np.zeros((COUNT, PIECE), np.uint8)
        try:
            file.Read_at_all(turn * PIECE * COUNT, found, status)
            mine, count = content(turn)[:, WORLD.rank], status.Get_count(MPI.BYTE)
            equal = np.array_equal(found.ravel()[:count], mine.ravel()[:count])
            note("read", turn, "wrong" if not equal else "ok" if count == mine.size else "short")
        except MPI.Exception as error:
            note("read", turn, CLASSES[error.Get_error_class()])
    try:
        file.Close()
        note("close", 0, "ok")
    except MPI.Exception as error:
        note("close", 0, CLASSES[error.Get_error_class()])


if __name__ == "__main__":
    main()
