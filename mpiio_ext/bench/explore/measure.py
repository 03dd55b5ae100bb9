"""One pattern with one number of delegates, once: files opened, requests made until the stonewall, closed, compared.

Problem.    Bandwidth until the data is in the file, of ranks that each stop on their own, with every byte compared.
Algorithm.  Phases, each behind a barrier and timed from the first rank's begin to the last rank's end: open, data,
            close. Each request is one independent call, made when the one before has returned. A rank reads the clock
            after each request, and makes no further request after the stonewall. The bytes of all requests made so far
            count. The time that counts is data and close: delegates have the last bytes in the file when it is closed.
            The comparison comes afterwards. The next rank reads the written bytes by plain reads. Of the bytes that a
            rank has read, those of the last requests are still in memory; the rank reads the earlier ones again in the
            same way.
Guarantees. Wrong data is an error of all ranks, which names the file and the byte. Behind what a rank has written there
            is nothing, where no rank wrote.
Source.     IOR's stonewall (-D), FORGE's `stone_wall`; Section 2 of the arbitration paper.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.bench import extension
from mpiio_ext.bench.errors import BenchError, VerificationError
from mpiio_ext.bench.execution.agreement import agree, timed
from mpiio_ext.bench.execution.counters import change_of_each
from mpiio_ext.bench.explore.content import Content
from mpiio_ext.bench.explore.spec import Spec
from mpiio_ext.bench.kernels.shapes import Bytes

if TYPE_CHECKING:
    from mpi4py import MPI

#: Memory of a rank for its reads: this much of the end is compared without reading it again.
_READ_MEMORY_BYTES = 64 << 20
#: Counters of a delegate that show that it has served pages.
_SERVED = ("hits", "misses", "flush_bytes", "fill_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a pattern is carried out.

    Attributes
    ----------
    spec : the pattern
    path : of the shared file, or the beginning of the files' names
    hints : of the files
    io_nodes : delegates that are to own pages; 0 = none
    run : number of the run that wrote the data, or does
    sync : MPI_File_sync belongs to the time
    verify : compare
    """

    spec: Spec
    path: Path
    hints: Mapping[str, str]
    io_nodes: int
    run: int
    sync: bool = False
    verify: bool = True

    def file_of(self, rank: int) -> Path:
        """Return the file of a rank."""
        return self.path.with_name(f"{self.path.name}-{rank:05d}") if self.is_split else self.path

    @property
    def is_split(self) -> bool:
        """Whether each rank has a file of its own."""
        return self.spec.layout == "file-per-process"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The results of a measurement.

    Attributes
    ----------
    data_bytes : that all ranks moved
    requests : that they made
    stopped_ranks : ranks that the stonewall has stopped
    open_s, data_s, close_s : seconds of the phases
    delegated_bytes, bypass_bytes : that went through pages of delegates, and past them though there are delegates
    serving_delegates : delegates that have served pages; None = not known
    verified_bytes : that were compared; 0 without verification
    """

    data_bytes: int
    requests: int
    stopped_ranks: int
    open_s: float
    data_s: float
    close_s: float
    delegated_bytes: int
    bypass_bytes: int
    serving_delegates: int | None
    verified_bytes: int

    @property
    def bandwidth_mb_per_s(self) -> float:
        """MB/s (10^6 bytes) until the data is in the file."""
        return self.data_bytes / 1e6 / max(self.data_s + self.close_s, 1e-9)


class _Rank:
    """The work of one rank in one measurement; all ranks run methods named after phases at once."""

    def __init__(self, comm: MPI.Intracomm, place: Place) -> None:
        self.comm, self.place, self.spec = comm, place, place.spec
        self.requests = place.spec.requests(comm.size)
        self.content = Content(place.spec.request_bytes, place.run)
        #: The rank whose data is accessed: reads access the data of another rank.
        self.owner = comm.rank if place.spec.operation == "write" else (comm.rank + 1) % comm.size
        self.file: Any = None
        self.done = 0
        self.stopped = False
        self.memory: Bytes = np.empty(0, np.uint8)
        self.statistics: dict[str, Any] | None = None

    def offset(self, index: int) -> int:
        return self.spec.offset(self.owner, index, self.comm.size, self.requests)

    def expected(self, owner: int, offset: int) -> Bytes:
        return self.content.request(owner if self.place.is_split else 0, offset)

    def slot(self, index: int) -> Bytes:
        size = self.spec.request_bytes
        begin = index * size % self.memory.size
        return self.memory[begin : begin + size]

    # ---- phases ----

    def open(self) -> None:
        from mpi4py import MPI

        mode = MPI.MODE_CREATE | MPI.MODE_WRONLY if self.spec.operation == "write" else MPI.MODE_RDONLY
        info = MPI.Info.Create()
        for name, value in self.place.hints.items():
            info.Set(name, value)
        comm = MPI.COMM_SELF if self.place.is_split else self.comm
        self.file = MPI.File.Open(comm, str(self.place.file_of(self.owner)), mode, info)
        info.Free()
        if self.spec.operation == "read":
            size = self.spec.request_bytes
            self.memory = np.empty(size * max(1, min(self.requests, _READ_MEMORY_BYTES // size)), np.uint8)
            self.content.poison(self.memory)

    def check_delegates(self) -> None:
        """Refuse to measure anything else than the request."""
        delegation = str((extension.file_statistics(self.file) or {}).get("delegation", ""))
        if (self.place.io_nodes > 0) != (bool(delegation) and not delegation.startswith("none")):
            why = delegation or "no delegates serve the file"
            raise BenchError(
                f"{self.place.io_nodes} delegates were requested, but: {why}; hints in MPIOX_HINTS, "
                "MPIOX_HINTS_FILE and the site file are stronger than the bench's"
            )

    def data(self) -> None:
        write, clock = self.spec.operation == "write", time.perf_counter
        end = clock() + self.spec.stonewall_s if self.spec.stonewall_s else float("inf")
        file_write, file_read = self.file.Write_at, self.file.Read_at
        for index in range(self.requests):
            at = self.offset(index)
            if write:
                file_write(at, self.expected(self.owner, at))
            else:
                file_read(at, self.slot(index))
            self.done = index + 1
            if clock() >= end:
                self.stopped = self.done < self.requests
                break

    def close(self) -> None:
        if self.place.sync:
            self.file.Sync()
        if self.statistics is None:
            self.statistics = extension.file_statistics(self.file)
        self.file.Close()
        self.file = None

    # ---- comparing ----

    def fault(self, path: Path, offset: int, found: Bytes, expected: Bytes) -> VerificationError:
        wrong = np.flatnonzero(found != expected[: found.size])
        at = int(wrong[0]) if wrong.size else found.size
        what = f"found 0x{found[at]:02x}" if at < found.size else "the file ends"
        return VerificationError(
            f"{path}, byte {offset + at}: expected 0x{expected[at]:02x}, {what} "
            f"({self.place.io_nodes} delegates, {self.spec.operation})"
        )

    def compare_read(self) -> int:
        """Compare the bytes that were read; return their number. The file is open."""
        path, size = self.place.file_of(self.owner), self.spec.request_bytes
        kept = min(self.done, self.memory.size // size)
        for index in range(self.done - kept, self.done):
            at = self.offset(index)
            expected = self.expected(self.owner, at)
            if not np.array_equal(self.slot(index), expected):
                raise self.fault(path, at, self.slot(index), expected)
        again = np.empty(size, np.uint8)
        for index in range(self.done - kept):
            at = self.offset(index)
            self.content.poison(again)
            self.file.Read_at(at, again)
            expected = self.expected(self.owner, at)
            if not np.array_equal(again, expected):
                raise self.fault(path, at, again, expected)
        return self.done * size

    def compare_written(self, done: list[int]) -> int:
        """Compare the bytes that the next rank wrote, by plain reads; return their number."""
        owner, size = (self.comm.rank + 1) % self.comm.size, self.spec.request_bytes
        path = self.place.file_of(owner)
        with path.open("rb", buffering=0) as file:
            for index in range(done[owner]):
                at = self.spec.offset(owner, index, self.comm.size, self.requests)
                expected = self.expected(owner, at)
                found = np.frombuffer(os.pread(file.fileno(), size, at), np.uint8)
                if not np.array_equal(found, expected):
                    raise self.fault(path, at, found, expected)
            self._compare_rest(path, file.fileno(), owner, done)
        return int(done[owner]) * size

    def _compare_rest(self, path: Path, descriptor: int, owner: int, done: list[int]) -> None:
        """Check that nothing is behind the bytes that a rank wrote."""
        size, ranks = self.spec.request_bytes, range(self.comm.size)
        owners = [owner] if self.place.is_split else [rank for rank in ranks if done[rank]]
        ends = [self.spec.offset(rank, done[rank] - 1, self.comm.size, self.requests) + size for rank in owners]
        length = os.fstat(descriptor).st_size
        if length != max(ends, default=0):
            raise VerificationError(f"{path}: has {length} bytes, and {max(ends, default=0)} are expected")
        if done[owner] < self.requests:
            at = self.spec.offset(owner, done[owner], self.comm.size, self.requests)
            rest = np.frombuffer(os.pread(descriptor, size, at), np.uint8)
            if rest.any():
                wrong = int(np.flatnonzero(rest)[0])
                raise VerificationError(
                    f"{path}, byte {at + wrong}: expected 0x00 (no rank writes this byte), found 0x{rest[wrong]:02x}"
                )


@contextlib.contextmanager
def _agreed(comm: MPI.Intracomm, doing: str) -> Iterator[None]:
    """Run the block on every rank, and raise on all when one fails; collective."""
    error: Exception | None = None
    try:
        yield
    except Exception as caught:
        error = caught
    agree(comm, error, doing)


def _serving(comm: MPI.Intracomm, before: dict[int, dict[str, Any]]) -> int | None:
    """Return how many delegates have served since; collective. The ranks of a node see theirs."""
    moved = change_of_each(extension.delegate_statistics(), before)
    mine = {index for index, item in moved.items() if any(int(item.get(name, 0)) for name in _SERVED)}
    found: set[int] = set().union(*comm.allgather(mine))
    return len(found)


def _remove(comm: MPI.Intracomm, place: Place) -> None:
    """Remove the files, outside of the measured time, after all ranks have closed them; collective."""
    comm.Barrier()
    if place.is_split or comm.rank == 0:
        with contextlib.suppress(FileNotFoundError):
            place.file_of(comm.rank).unlink()
    comm.Barrier()


def measure(comm: MPI.Intracomm, place: Place) -> Measured:
    """Carry a pattern out once; collective. The written files are removed, unless they are wrong.

    Raises
    ------
    BenchError
        On all ranks: an access failed, or other delegates than the requested ones serve the file.
    VerificationError
        Bytes are not what they must be.
    """
    rank, place_text = _Rank(comm, place), f"{place.spec.operation} with {place.io_nodes} delegates"
    before = extension.delegate_statistics()
    open_s = timed(comm, rank.open, f"{place_text}: open")
    with _agreed(comm, place_text):
        rank.check_delegates()
    data_s = timed(comm, rank.data, f"{place_text}: data")
    verified = 0
    if place.spec.operation == "read" and place.verify:
        rank.statistics = extension.file_statistics(rank.file)
        with _agreed(comm, f"{place_text}: comparing"):
            verified = rank.compare_read()
    close_s = timed(comm, rank.close, f"{place_text}: close")
    done: list[int] = comm.allgather(rank.done)
    serving = _serving(comm, before) if place.io_nodes else 0
    if place.spec.operation == "write":
        if place.verify:
            with _agreed(comm, f"{place_text}: comparing"):
                verified = rank.compare_written(done)
        _remove(comm, place)
    way = "written" if place.spec.operation == "write" else "read"
    own = rank.statistics or {}
    sums = np.array(
        [rank.stopped, own.get(f"delegated_bytes_{way}", 0), own.get(f"bypass_bytes_{way}", 0), verified], np.int64
    )
    total = np.empty_like(sums)
    comm.Allreduce(sums, total)
    return Measured(
        data_bytes=sum(done) * place.spec.request_bytes,
        requests=sum(done),
        stopped_ranks=int(total[0]),
        open_s=open_s,
        data_s=data_s,
        close_s=close_s,
        delegated_bytes=int(total[1]),
        bypass_bytes=int(total[2]),
        serving_delegates=serving,
        verified_bytes=int(total[3]),
    )


def prepare(comm: MPI.Intracomm, place: Place) -> None:
    """Write the whole file for a pattern of reads, without delegates; collective, not timed.

    Parameters
    ----------
    place : of the reads, with the hints of files without delegates
    """
    spec = dataclasses.replace(place.spec, operation="write", stonewall_s=0.0)
    rank = _Rank(comm, dataclasses.replace(place, spec=spec, io_nodes=0))
    for phase in (rank.open, rank.data, rank.close):
        timed(comm, phase, "preparing what is read")
