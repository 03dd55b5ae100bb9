"""Collectives that do not wait, through delegates: ``collective_cached.py FILE``. Each rank's findings, as JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import mpiio_ext.stats  # before mpi4py.MPI

# isort: split
import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.rank, COMM.size
BLOCK = 5000  # not whole pages
ROUNDS = 12
LATE_S = 0.01
NOTHING = np.empty(0, np.uint8)


def opened(path: str, way: str = "cached", mode: int = MPI.MODE_RDWR, *, alone: bool = False) -> MPI.File:
    """Open a file whose collectives take the way; `alone`: it says that it has no independent accesses."""
    hints = {"mpiox_collective": way, "romio_no_indep_rw": "true" if alone else "false"}
    return MPI.File.Open(COMM, path, mode | MPI.MODE_CREATE, MPI.Info.Create(hints))


def bytes_of(value: int, length: int = BLOCK) -> np.ndarray:
    """Return bytes that are all the same."""
    return np.full(length, value % 251 + 1, np.uint8)


def without_waiting(path: str) -> str:
    """Rank 0 returns from a collective write before rank 1 begins it, and reads what it has written."""
    file = opened(path, alone=True)
    got = np.empty(BLOCK, np.uint8)
    if RANK == 1:
        COMM.recv(source=0)
    file.Write_at_all(RANK * BLOCK, bytes_of(RANK))
    if RANK == 0:
        COMM.send("written", dest=1)
    file.Read_at_all((RANK + 1) % RANKS * BLOCK, got)
    file.Close()
    return "right" if np.array_equal(got, bytes_of(RANK + 1 if RANK + 1 < RANKS else 0)) else "wrong"


def write_in_turns(file: MPI.File, base: int) -> None:
    """One rank, which is late, writes a block; then another one a part of it."""
    late, other = base % RANKS, (base + 1) % RANKS
    if late == RANK:
        time.sleep(LATE_S)
    file.Write_at_all(base * BLOCK, bytes_of(base) if late == RANK else NOTHING)
    file.Write_at_all(base * BLOCK + 100, bytes_of(base + 7, 3000) if other == RANK else NOTHING)


def written_in_turns(base: int) -> np.ndarray:
    """Return what is there afterwards."""
    expected = bytes_of(base)
    expected[100:3100] = bytes_of(base + 7, 3000)
    return expected


def order(path: str, *, alone: bool) -> int:
    """Return how often the earlier of two collectives has won, or a read saw a write that came later."""
    wrong, got = 0, np.empty(BLOCK, np.uint8)
    file = opened(path, alone=alone)
    for base in range(ROUNDS):
        write_in_turns(file, base)
        if (base + 2) % RANKS == RANK:
            time.sleep(LATE_S)
        file.Read_at_all(base * BLOCK, got)
        wrong += not np.array_equal(got, written_in_turns(base))
        file.Write_at_all(base * BLOCK, bytes_of(base + 20) if base % RANKS == RANK else NOTHING)
    file.Close()
    stored = np.fromfile(path, np.uint8)
    wrong += not np.array_equal(stored, np.concatenate([bytes_of(base + 20) for base in range(ROUNDS)]))
    for way in ("cached", "auto"):
        file = opened(f"{path}.{way}", way, MPI.MODE_WRONLY, alone=alone)
        file.Write_at(ROUNDS * BLOCK + RANK, bytes_of(ROUNDS, 1))  # from now on "auto" goes through the delegates, too
        for base in range(ROUNDS):
            write_in_turns(file, base)
        file.Close()
        stored = np.fromfile(f"{path}.{way}", np.uint8)[: ROUNDS * BLOCK]
        wrong += not np.array_equal(stored, np.concatenate([written_in_turns(base) for base in range(ROUNDS)]))
    return wrong


def alone_before(path: str, mode: int = MPI.MODE_RDWR) -> int:
    """Return how often an independent write has won over the collective behind it, to which its rank is late."""
    file = opened(path, mode=mode)
    for base in range(ROUNDS):
        if base % RANKS == RANK:
            time.sleep(LATE_S)
            file.Write_at(base * BLOCK, bytes_of(base))
        file.Write_at_all(base * BLOCK, bytes_of(base + 7) if (base + 1) % RANKS == RANK else NOTHING)
    file.Close()
    stored = np.fromfile(path, np.uint8).reshape(ROUNDS, BLOCK)
    return sum(not np.array_equal(stored[base], bytes_of(base + 7)) for base in range(ROUNDS))


def alone_behind(path: str) -> list[bool]:
    """Size, an independent read and a nonblocking one, right behind a collective to which the last rank is late."""
    file, got, other = opened(path), np.zeros(BLOCK, np.uint8), np.zeros(BLOCK, np.uint8)
    late = RANKS - 1
    found = []
    if late == RANK:
        time.sleep(10 * LATE_S)
    file.Write_at_all(RANK * BLOCK, bytes_of(RANK))
    found.append(file.Get_size() == RANKS * BLOCK)
    COMM.Barrier()
    if late == RANK:
        time.sleep(10 * LATE_S)
    file.Write_at_all(RANK * BLOCK, bytes_of(RANK + 30))
    file.Read_at(late * BLOCK, got)
    COMM.Barrier()
    if late == RANK:
        time.sleep(10 * LATE_S)
    file.Write_at_all(RANK * BLOCK, bytes_of(RANK + 60))
    file.Iread_at(late * BLOCK, other).Wait()
    file.Close()
    return [*found, np.array_equal(got, bytes_of(late + 30)), np.array_equal(other, bytes_of(late + 60))]


def said(call: Any, *arguments: Any) -> str:
    """Make a call; the class of its error, or "fine"."""
    try:
        call(*arguments)
    except MPI.Exception as error:
        classes = {MPI.ERR_ARG: "MPI_ERR_ARG", MPI.ERR_NO_SPACE: "MPI_ERR_NO_SPACE"}
        return classes.get(error.Get_error_class(), str(error))
    return "fine"


def errors(path: str, *, alone: bool) -> list[str]:
    """Rank 1 gives a wrong offset: what each call says."""
    file = opened(path, alone=alone)
    first = said(file.Write_at_all, -1 if RANK == 1 else RANK * BLOCK, bytes_of(RANK))
    second = said(file.Write_at_all, RANK * BLOCK, bytes_of(RANK))
    found = [first, second, said(file.Sync), said(file.Sync)]
    file.Close()
    return found


def refused(path: str, *, alone: bool) -> list[str]:
    """The file system refuses every byte, and the caches do not hold them all: what a rank is told, and reads, is true.

    Returns what the sync says, and whatever else is wrong: no call, no read of what was lost may seem to be fine.
    """
    file = opened(f"{path}.refused", alone=alone)
    size = 8 * BLOCK
    told = [said(file.Write_at_all, (turn * RANKS + RANK) * size, bytes_of(turn + RANK, size)) for turn in range(40)]
    wrong = sorted({*told} - {"fine", "MPI_ERR_NO_SPACE"})
    got = np.empty(size, np.uint8)
    for turn, result in enumerate(told):
        read = said(file.Read_at, (turn * RANKS + RANK) * size, got)
        if read == "fine" and result == "fine" and not np.array_equal(got, bytes_of(turn + RANK, size)):
            wrong.append(f"turn {turn} is lost, and nobody says so")
    found = [said(file.Sync), *wrong]
    said(file.Close)
    return found


def ways(path: str) -> dict[str, int]:
    """Collectives through delegates, by way: one before any other access, and one behind an independent one."""
    found = {}
    for way in ("auto", "two_phase", "cached"):
        file = opened(f"{path}.{way}", way)
        file.Write_at_all(RANK * BLOCK, bytes_of(RANK))
        file.Write_at((RANKS + RANK) * BLOCK, bytes_of(RANK + 5))
        file.Write_at_all((2 * RANKS + RANK) * BLOCK, bytes_of(RANK + 9))
        found[way] = mpiio_ext.stats.of(file).delegated_calls
        file.Close()
        parts = [bytes_of(rank + plus) for plus in (0, 5, 9) for rank in range(RANKS)]
        if not np.array_equal(np.fromfile(f"{path}.{way}", np.uint8), np.concatenate(parts)):
            found[way] = -1
    return found


def main() -> None:
    """Run all; between nodes a collective waits, so that one case would never end."""
    path, one_node = sys.argv[1], sys.argv[2] == "one"
    seen = {
        "without_waiting": without_waiting(f"{path}.1") if one_node else "right",
        "order": [order(f"{path}.2.{alone}", alone=alone) for alone in (False, True)],
        "alone_before": [alone_before(f"{path}.3.{mode}", mode) for mode in (MPI.MODE_RDWR, MPI.MODE_WRONLY)],
        "alone_behind": alone_behind(f"{path}.4"),
        "errors": [errors(f"{path}.5.{alone}", alone=alone) for alone in (False, True)],
        "ways": ways(f"{path}.6"),
        "refused": [refused(f"{path}.7.{alone}", alone=alone) for alone in (False, True)],
    }
    every = COMM.gather(seen)
    if every is not None:
        print("SEEN " + json.dumps(every))


if __name__ == "__main__":
    main()
