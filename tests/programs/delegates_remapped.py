"""Ranks write and read all the time while the arbiter gives the job other I/O nodes: tests/mpi/test_arbiter_live.py.

    delegates_remapped.py FILE SECONDS LEAST [STOP]

Every rank writes small pieces of its own, keeps what it wrote, reads pieces back and compares; now and then the ranks
synchronise, and each reads all that the next one has written. It goes on for SECONDS, until page ranges have changed
hands LEAST times, and until there is a file STOP, if one is named. Then the file is closed and compared as a whole, by
plain reads. Rank 0 prints a line when they have changed hands so often, and one of JSON at the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib

import mpiio_ext.delegates  # isort: skip  (before mpi4py)
import mpiio_ext.stats  # isort: skip
import numpy as np
from mpi4py import MPI

BYTES = 1 << 20  # of each rank
COUNTERS = ("bytes_written", "moved_in", "moved_out")
MOST = 200.0  # seconds, whatever happens
OFTEN = "page ranges have changed hands often enough"


def is_neighbour_wrong(file: MPI.File, own: np.ndarray) -> bool:
    """Synchronise; does this rank read what the next one has written?"""
    world = MPI.COMM_WORLD
    expected, got = np.zeros_like(own), np.zeros_like(own)
    following = (world.rank + 1) % world.size
    world.Sendrecv(own, (world.rank - 1) % world.size, recvbuf=expected, source=following)
    file.Sync()
    world.Barrier()
    file.Sync()
    file.Read_at(following * len(own), got)
    world.Barrier()
    return not np.array_equal(got, expected)


def counters() -> list[dict[str, int]]:
    """Return each delegate's counters as all of them were at one moment: two readings agree.

    One delegate is read after the other. A page range that moves in between would count where it leaves, not where it
    arrives, or the other way round.
    """
    seen: list[dict[str, int]] = []
    while True:
        now = [{name: item.counters[name] for name in COUNTERS} for item in mpiio_ext.delegates.own()]
        if now == seen:
            return now
        seen = now
        time.sleep(0.001)


def rounds(file: MPI.File, own: np.ndarray, seconds: float, least: int, stop: str) -> tuple[int, int, int, float]:
    """Write and read until the time is over.

    Returns how many accesses were made, how many read wrong bytes, how many bytes were written, and the longest access
    in seconds: how long one waits at most while page ranges change hands.
    """
    world = MPI.COMM_WORLD
    rng = np.random.default_rng([1, world.rank])
    base = world.rank * len(own)
    accesses = wrong = turn = written = 0
    longest = 0.0
    begun, on, often = time.monotonic(), True, False
    while on:
        for _ in range(50):
            length = int(rng.integers(1, 9000))
            at = int(rng.integers(0, len(own) - length))
            started = time.monotonic()
            if rng.random() < 0.6:
                piece = rng.integers(1, 256, length, dtype=np.uint8)
                file.Write_at(base + at, piece)
                own[at : at + length] = piece
                written += length
            else:
                got = np.zeros(length, np.uint8)
                file.Read_at(base + at, got)
                wrong += not np.array_equal(got, own[at : at + length])
            longest = max(longest, time.monotonic() - started)
            accesses += 1
        turn += 1
        wrong += turn % 8 == 0 and is_neighbour_wrong(file, own)
        passed = time.monotonic() - begun
        moved = mpiio_ext.stats.of(file).remapped_ranges if world.rank == 0 else 0
        if moved >= least > 0 and not often:
            often = True
            print(OFTEN, flush=True)
        done = passed >= seconds and moved >= least and (not stop or os.path.exists(stop))
        on = world.bcast(not done and passed < MOST, 0)
    return accesses, wrong, written, longest


def main() -> None:
    """Run the rounds, compare, report."""
    path, seconds, least = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    stop = sys.argv[4] if len(sys.argv) > 4 else ""
    world = MPI.COMM_WORLD
    own = np.zeros(BYTES, np.uint8)
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Write_at(world.rank * BYTES, own)
    file.Sync()
    world.Barrier()
    before = sum(item.counters["bytes_written"] for item in mpiio_ext.delegates.own())
    world.Barrier()
    accesses, wrong, written, longest = rounds(file, own, seconds, least, stop)
    remapped = mpiio_ext.stats.of(file).remapped_ranges
    file.Sync()
    world.Barrier()
    delegates = counters()
    file.Close()
    with open(path, "rb") as plain:
        plain.seek(world.rank * BYTES)
        same = plain.read(BYTES) == own.tobytes()
    sums = world.gather((accesses, wrong, same, remapped, zlib.crc32(own), written, longest), 0)
    if world.rank == 0:
        print(
            json.dumps(
                {
                    "accesses": sum(row[0] for row in sums),
                    "wrong_reads": sum(row[1] for row in sums),
                    "same": all(row[2] for row in sums),
                    "remapped_ranges": sums[0][3],
                    "checksums": [row[4] for row in sums],
                    "written": sum(row[5] for row in sums),
                    "longest_access_s": max(row[6] for row in sums),
                    "delegates": delegates,
                    "delegates_wrote": sum(item["bytes_written"] for item in delegates) - before,
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
