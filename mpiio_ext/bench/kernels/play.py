"""Playing a kernel's steps on one rank through an interface, on the clock.

Memory is made before the clock starts: what is to be written, or poison where something is to be read. A step that
fails does not keep the rank from the later ones, because the other ranks are in them; the first error is raised
behind the last step. What was read is compared after the clock has stopped.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpiio_ext.bench.kernels.content import Content
from mpiio_ext.bench.kernels.program import Access, Barrier, Close, Kernel, Open, Phase, Step, Sync, Wait
from mpiio_ext.bench.last_words import LastWords
from mpiio_ext.bench.pattern import Bytes
from mpiio_ext.bench.stores import OpenFile, Request, Store, Where
from mpiio_ext.bench.team import agree, span_of

__all__ = ["PhaseTimes", "Player"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimes:
    """Where the time of a phase went, in seconds, on the rank that was inside longest; the sum is `elapsed_s`.

    `elapsed_s` runs from the first rank's begin to the last rank's end; what the longest rank's own steps do
    not account for is in `data_s`.
    """

    elapsed_s: float
    open_s: float
    define_s: float
    data_s: float
    close_s: float


#: A step with what it needs: an access has its memory.
_Prepared = Open | Request | Wait | Sync | Barrier | Close


class Player:
    """One kernel on one rank, through one interface, in one run. Methods are collective over `comm`.

    Parameters
    ----------
    comm : mpi4py communicator of the ranks that take part
    kernel, store : what is done, and through which interface
    folder : where the files are
    hints : for MPI_Info
    content : the bytes
    method : name of the strategy, for messages
    """

    def __init__(self, *, comm: Any, kernel: Kernel, store: Store, folder: Path, hints: dict[str, str],
                 content: Content, method: str = "") -> None:
        from mpi4py import MPI

        self._comm, self._self, self._kernel, self._store = comm, MPI.COMM_SELF, kernel, store
        self._folder, self._hints, self._content = folder, hints, content
        self._open: dict[int, OpenFile] = {}
        self._times = {"open": 0.0, "define": 0.0, "data": 0.0, "close": 0.0}
        self._first_error: Exception | None = None
        self._last_words = LastWords(comm.rank)
        self._method, self._doing = method, ""
        self._shared: dict[str, Bytes] = {}

    def phase(self, phase: Phase) -> tuple[PhaseTimes, int, str | None]:
        """Play a phase on all ranks.

        Returns
        -------
        times : of the phase, the same on every rank
        data_bytes : moved by all ranks together
        mismatch : the first wrong byte that this rank has read, in words, or None

        Raises
        ------
        BenchError
            A step failed on some rank; raised on all.
        """
        steps = list(self._kernel.steps(phase.name, self._comm.rank, self._store.name))
        self._shared = {}
        prepared = [self._prepare(step) for step in steps]
        self._store.arrange(self._comm, [item for item in prepared if isinstance(item, (Open, Request))])
        self._times = dict.fromkeys(self._times, 0.0)
        self._first_error = None
        self._doing = f"{self._kernel.label} through {self._store.title}, {self._method}, phase {phase.name}"
        self._last_words.phase_bytes = sum(self._size(item) for item in prepared if isinstance(item, Request))
        self._comm.Barrier()
        begin = time.perf_counter()
        for item in prepared:
            self._do(item)
        end = time.perf_counter()
        moved = self._last_words.phase_bytes
        gathered = self._comm.allgather(((platform.node(), begin, end), dict(self._times), moved))
        self._last_words.dismiss()
        error = self._failure()
        if error is not None:
            self._abandon()
        agree(self._comm, error, self._doing)
        return self._phase_times(gathered), sum(item[2] for item in gathered), self._mismatch(prepared)

    @staticmethod
    def _size(request: Request) -> int:
        return request.access.elements * request.variable.item_bytes

    @staticmethod
    def _phase_times(gathered: Sequence[tuple[tuple[str, float, float], dict[str, float], int]]) -> PhaseTimes:
        elapsed = span_of([marks for marks, _, _ in gathered])
        _, longest, _ = max(gathered, key=lambda item: item[0][2] - item[0][1])
        known = longest["open"] + longest["define"] + longest["close"]
        return PhaseTimes(elapsed_s=elapsed, open_s=longest["open"], define_s=longest["define"],
                          data_s=max(elapsed - known, 0.0), close_s=longest["close"])

    def _prepare(self, step: Step) -> _Prepared:
        if not isinstance(step, Access):
            return step
        layout = self._content.files[step.file]
        return Request(access=step, variable=layout.variable(step.variable), memory=self._memory(step),
                       shared=layout.owner is None)

    def _memory(self, access: Access) -> Bytes:
        """Return the memory of an access before it: the data of a write, in its own array or in a common one."""
        if not access.write:
            return self._content.poison(access)
        if not access.memory:
            return self._content.memory(access)
        if access.memory not in self._shared:
            self._shared[access.memory] = self._content.poison(access)
        self._content.place(access, self._shared[access.memory])
        return self._shared[access.memory]

    def _do(self, item: _Prepared) -> None:
        begin = time.perf_counter()
        kind = "data"
        try:
            if isinstance(item, Open):
                kind = "open"
                self._open_file(item)
            elif isinstance(item, Close):
                kind = "close"
                opened = self._open.pop(item.file, None)
                if opened is not None:
                    opened.close()
            elif isinstance(item, Barrier):
                self._comm.Barrier()
            else:
                self._use(item)
        except Exception as error:
            self._first_error = self._first_error or error
            self._last_words.prepare(f"{self._doing}: {error}{_space(self._folder)} (rank {self._comm.rank}; the "
                                     "other ranks do not come back)")
        self._times[kind] += time.perf_counter() - begin

    def _open_file(self, step: Open) -> None:
        layout = self._content.files[step.file]
        where = Where(
            comm=self._comm if layout.owner is None else self._self,
            path=self._store.path(self._folder, layout),
            layout=layout, mode=step.mode, hints=self._hints,
        )
        opened = self._store.file(where)
        try:
            opened.open()
            begin = time.perf_counter()
            opened.define()
            spent = time.perf_counter() - begin
            self._times["define"] += spent
            self._times["open"] -= spent
        except BaseException:
            opened.close()
            raise
        self._open[step.file] = opened

    def _use(self, item: Request | Wait | Sync) -> None:
        number = item.access.file if isinstance(item, Request) else item.file
        opened = self._open.get(number)
        if opened is None:
            if self._first_error is None:
                raise LookupError(f"file {number} is used while it is not open")
            return
        if isinstance(item, Request):
            opened.access(item)
        elif isinstance(item, Wait):
            opened.wait(collective=item.collective)
        else:
            opened.sync()

    def _failure(self) -> Exception | None:
        return self._first_error

    def _abandon(self) -> None:
        """Forget files that an error has left open: closing is collective, and the others may be past it."""
        self._open.clear()

    def _mismatch(self, prepared: Sequence[_Prepared]) -> str | None:
        for item in prepared:
            if isinstance(item, Request) and not item.access.write:
                found = self._difference(item)
                if found is not None:
                    return found
        return None

    def _difference(self, request: Request) -> str | None:
        expected: Bytes = self._content.memory(request.access)
        wrong = np.flatnonzero(request.memory != expected)
        if wrong.size == 0:
            return None
        i = int(wrong[0])
        layout = self._content.files[request.access.file]
        return (f"{self._store.path(self._folder, layout)}, array {request.variable.name}, part "
                f"{request.access.slabs[:1]}: byte {i} of the memory is 0x{request.memory[i]:02x} in place of "
                f"0x{expected[i]:02x}, {wrong.size} bytes are wrong")


def _space(folder: Path) -> str:
    """Return in words that the file system is full, where it is: MPI libraries have no words for it."""
    try:
        space = os.statvfs(folder)
    except OSError:
        return ""
    free = space.f_bavail * space.f_frsize
    return f"; {free} bytes are left on the file system of {folder}" if free < 1 << 20 else ""
