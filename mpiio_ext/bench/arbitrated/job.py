"""One job: it writes a pattern over and over until it is stopped, and prints how much it wrote when.

    mpirun -n 2 python -m mpiio_ext.bench.arbitrated.job FILE STOP PATTERN

Problem.    Bandwidth over time, while the arbiter gives the job other delegates, with every byte accounted for.
Algorithm.  Each rank makes its requests one after the other, and begins again when it is through, with other bytes; it
            adds up what it wrote in each slot of `SLOT_S` of the host's clock. Which bytes are last in the file is
            known of each request: after the file is closed each rank compares what the next one wrote, by plain reads.
            Before the first write rank 0 makes a file beside STOP, with the suffix ".begun". The job stops when the
            file STOP exists; each rank checks this now and then.
Guarantees. A byte that is lost, old or displaced ends the job with an error. Rank 0 prints one line of JSON. All jobs
            of a host have the same clock (CLOCK_MONOTONIC).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext import stats  # before mpi4py
from mpiio_ext.bench.errors import VerificationError
from mpiio_ext.bench.execution.agreement import agree
from mpiio_ext.bench.explore.content import Content
from mpiio_ext.bench.explore.spec import Spec, parse

if TYPE_CHECKING:
    from mpi4py import MPI

#: Length of a slot.
SLOT_S = 0.1
_LOOK_S = 0.02
_MOST_S = 300.0  # whatever happens
_TOTAL_BYTES = 16 << 20


class _Rank:
    """The work of one rank."""

    def __init__(self, comm: MPI.Intracomm, spec: Spec) -> None:
        self.comm, self.spec = comm, spec
        self.requests = spec.requests(comm.size)
        self.contents = (Content(spec.request_bytes, 0), Content(spec.request_bytes, 1))
        self.slots: dict[int, int] = {}
        self.begun = 0  # passes over the file
        self.done = 0  # requests of the last one

    def offset(self, rank: int, index: int) -> int:
        return self.spec.offset(rank, index, self.comm.size, self.requests)

    def write(self, file: Any, stop: Path) -> None:
        """Write until the file `stop` is there."""
        clock, size, slots = time.monotonic, self.spec.request_bytes, self.slots
        look = clock() + _LOOK_S
        end = look + _MOST_S
        while True:
            content = self.contents[self.begun % 2]
            self.begun += 1
            for index in range(self.requests):
                at = self.offset(self.comm.rank, index)
                file.Write_at(at, content.request(0, at))
                now = clock()
                slot = int(now / SLOT_S)
                slots[slot] = slots.get(slot, 0) + size
                self.done = index + 1
                if now >= look:
                    look = now + _LOOK_S
                    if stop.exists() or now >= end:
                        return

    def compare(self, path: Path, ends: list[tuple[int, int]]) -> int:
        """Compare the bytes that the next rank wrote; return their number.

        Raises
        ------
        VerificationError
            A byte is another one.
        """
        owner = (self.comm.rank + 1) % self.comm.size
        begun, done = ends[owner]
        compared = 0
        with path.open("rb", buffering=0) as file:
            for index in range(self.requests if begun > 1 else done):
                at = self.offset(owner, index)
                last = begun - 1 if index < done else begun - 2
                found = os.pread(file.fileno(), self.spec.request_bytes, at)
                if found != self.contents[last % 2].request(0, at).tobytes():
                    raise VerificationError(f"{path}: the request at byte {at} is not what rank {owner} wrote last")
                compared += len(found)
        return compared


def _carry_out(comm: MPI.Intracomm, path: Path, stop: Path, spec: Spec) -> dict[str, Any]:
    from mpi4py import MPI

    rank = _Rank(comm, spec)
    file = MPI.File.Open(comm, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR)
    comm.Barrier()
    if comm.rank == 0:
        stop.with_suffix(".begun").touch()
    begin_s = time.monotonic()
    rank.write(file, stop)
    own = stats.of(file)
    file.Close()
    end_s = time.monotonic()
    error: Exception | None = None
    compared = 0
    ends = comm.allgather((rank.begun, rank.done))
    try:
        compared = rank.compare(path, ends)
    except (VerificationError, OSError) as caught:
        error = caught
    agree(comm, error, "comparing")
    slots: dict[int, int] = {}
    for part in comm.allgather(rank.slots):
        for slot, size in part.items():
            slots[slot] = slots.get(slot, 0) + size
    marks = comm.allgather((begin_s, end_s))
    return {
        "begin_s": min(begin for begin, _ in marks),
        "end_s": max(end for _, end in marks),
        "slot_s": SLOT_S,
        "slots": sorted(slots.items()),
        "data_bytes": sum(slots.values()),
        "verified_bytes": comm.allreduce(compared),
        "delegation": own.delegation,
        "remapped_ranges": comm.allreduce(own.remapped_ranges),
    }


def main() -> None:
    """Run it; the last line of rank 0 is the result."""
    from mpi4py import MPI

    path, stop, text = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    (spec,) = parse(text, total_bytes=_TOTAL_BYTES)
    found = _carry_out(MPI.COMM_WORLD, path, stop, spec)
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
