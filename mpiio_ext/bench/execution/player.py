"""Playing a phase of a program on one rank through an interface, on the clock.

Memory is made before the clock starts: what is to be written, or poison where something is to be read. After a step
that fails, the rank still carries out the later steps, because the other ranks are in them. It raises the first error
behind the last step. The bytes read are compared after the clock has stopped.

A phase of an application runs as it does there, from one barrier to another. A phase in parts, of a pattern, is four
times that: opening, the file view (or the dataset and the selections), the data, and closing; each is timed by itself,
and the ranks agree on its errors before the next. Datatypes, messages and hints are made before the first.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.bench import extension
from mpiio_ext.bench.errors import BenchError
from mpiio_ext.bench.execution.agreement import Watch, agree, span_of, timed
from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.execution.content import Content
from mpiio_ext.bench.execution.counters import Counted, change, change_of_each
from mpiio_ext.bench.execution.last_words import LastWords
from mpiio_ext.bench.execution.verify import Fault, check_memory
from mpiio_ext.bench.interfaces import OpenFile, Request, Where
from mpiio_ext.bench.kernels.program import Access, Barrier, Close, Open, Phase, Step, Sync, Wait, made_independent
from mpiio_ext.bench.kernels.shapes import Bytes

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimes:
    """Where the time of a phase went, in seconds.

    Attributes
    ----------
    elapsed_s : all of it; of a phase of an application from the first rank's begin to the last rank's end
    access_s : what bandwidth is formed of: all of it, or of a phase in parts view and data
    open_s, define_s, data_s, close_s : of the rank that was inside longest; what its own steps do not account for is in
        `data_s`; of a phase in parts each from the first rank's begin to the last rank's end
    """

    elapsed_s: float
    access_s: float
    open_s: float
    define_s: float
    data_s: float
    close_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A phase that has been played.

    Attributes
    ----------
    times : the same on every rank
    period : when it began and ended by this rank's clock, in seconds since 1970 UTC: before the first file is opened,
        and after all ranks have closed the last one
    data_bytes : moved by all ranks together
    counted : by this rank
    fault : the first wrong byte that this rank has read, or None
    """

    times: PhaseTimes
    period: tuple[float, float]
    data_bytes: int
    counted: Counted
    fault: Fault | None


#: A step with what it needs: an access has its memory.
_Prepared = Open | Request | Wait | Sync | Barrier | Close
#: Of a phase: where its time went, when it was, and what this rank counted.
_Outcome = tuple[PhaseTimes, tuple[float, float], Counted]


class Player:
    """One case on one rank. Methods are collective over `comm`.

    Parameters
    ----------
    comm : mpi4py communicator of the ranks that take part
    case : what is done, and through which interface
    folder : where the files are
    content : the bytes
    keep : keep steps and memory from run to run, as `content` keeps its images
    """

    def __init__(self, *, comm: MPI.Intracomm, case: Case, folder: Path, content: Content, keep: bool = False) -> None:
        from mpi4py import MPI

        self._comm, self._self, self._case = comm, MPI.COMM_SELF, case
        self._folder, self._content, self._keep = folder, content, keep
        self._hints: dict[str, str] = {}
        self._independent = self._delegated = False
        self._open: dict[int, OpenFile] = {}
        self._times = {"open": 0.0, "define": 0.0, "data": 0.0, "close": 0.0}
        self._first_error: Exception | None = None
        self._last_words = LastWords(comm.rank)
        self._method, self._doing = "", ""
        self._steps: dict[tuple[str, bool], list[Step]] = {}
        self._buffer = np.empty(0, np.uint8)
        self._shared: dict[str, Bytes] = {}

    def use(self, hints: dict[str, str], method: str, *, independent: bool = False, delegated: bool = False) -> None:
        """Play the next phases with these hints for MPI_Info, every access independently if requested.

        `delegated`: what delegates count is read, and closing is part of the access. `method` is for messages.
        """
        self._hints, self._method, self._independent, self._delegated = hints, method, independent, delegated

    def phase(self, phase: Phase) -> Played:
        """Play a phase on all ranks.

        Raises
        ------
        BenchError
            A step failed on some rank; raised on all.
        """
        case = self._case
        prepared = self._prepare(self._steps_of(phase))
        self._doing = f"{case.program.label} through {case.interface.title}, {self._method}, phase {phase.name}"
        requests = [item for item in prepared if isinstance(item, Request)]
        moved = sum(request.access.data_bytes(request.variable) for request in requests)
        if phase.parts:
            times, period, counted = self._in_parts(prepared, requests)
        else:
            times, period, counted = self._at_once(prepared, moved)
        total = sum(self._comm.allgather(moved))
        return Played(times=times, period=period, data_bytes=total, counted=counted, fault=self._mismatch(requests))

    # ---- before the clock starts ----

    def _steps_of(self, phase: Phase) -> list[Step]:
        key = phase.name, self._independent
        if key in self._steps:
            return self._steps[key]
        steps = list(self._case.steps(phase, self._comm.rank))
        if self._independent:
            steps = [made_independent(step) for step in steps]
        if self._keep:
            self._steps[key] = steps
        return steps

    def _prepare(self, steps: Sequence[Step]) -> list[_Prepared]:
        self._shared = {}
        rooms = self._rooms([step for step in steps if isinstance(step, Access)])
        return [self._request(step, next(rooms)) if isinstance(step, Access) else step for step in steps]

    def _request(self, access: Access, room: Bytes | None) -> Request:
        layout = self._content.files[access.file]
        return Request(
            access=access,
            variable=layout.variable(access.variable),
            memory=self._memory(access, room),
            shared=layout.owner is None,
        )

    def _rooms(self, accesses: Sequence[Access]) -> Iterator[Bytes | None]:
        """Yield for each access its part of the common buffer, one after another; None without a common buffer."""
        if not self._keep:
            yield from itertools.repeat(None)
        sizes = [access.memory_bytes(self._content.variable(access)) for access in accesses]
        if sum(sizes) > self._buffer.size:
            self._buffer = np.empty(sum(sizes), np.uint8)
        begin = 0
        for size in sizes:
            yield self._buffer[begin : begin + size]
            begin += size

    def _memory(self, access: Access, out: Bytes | None) -> Bytes:
        """Return an access's memory before the access: the data of a write, in its own array or in a common one."""
        if not access.write:
            return self._content.poison(access, out)
        if not access.memory:
            return self._content.memory(access, out)
        if access.memory not in self._shared:
            self._shared[access.memory] = self._content.poison(access)
        self._content.place(access, self._shared[access.memory])
        return self._shared[access.memory]

    def _file(self, step: Open) -> OpenFile:
        layout = self._content.files[step.file]
        return self._case.interface.file(
            Where(
                comm=self._comm if layout.owner is None else self._self,
                path=self._case.interface.path(self._folder, layout),
                layout=layout,
                mode=step.mode,
                hints=self._hints,
                independent=self._independent,
            )
        )

    # ---- a phase in parts ----

    def _in_parts(self, prepared: Sequence[_Prepared], requests: list[Request]) -> _Outcome:
        """Play one open, accesses and one close; counting ends before the file is closed."""
        first = prepared[0]
        assert isinstance(first, Open)
        opened: OpenFile | None = None
        error: Exception | None = None
        try:
            opened = self._file(first)
            opened.build(requests)
        except Exception as caught:
            error = caught
        agree(self._comm, error, self._doing)
        assert opened is not None
        file = opened

        def select() -> None:
            file.define()
            file.select(requests)

        def transfer() -> None:
            file.access_all(requests)

        before, calls = extension.process_statistics(), [extension.system_calls()]
        delegates = self._delegate_statistics()
        watch = Watch()
        try:
            parts = [timed(self._comm, part, self._doing) for part in (file.open, select, transfer)]
        except BenchError:
            with contextlib.suppress(Exception):
                file.close()
            raise
        calls.append(extension.system_calls())
        statistics = None
        try:
            statistics = file.statistics() or change(extension.process_statistics(), before)
        except Exception as caught:
            error = caught
        agree(self._comm, error, self._doing)
        parts.append(timed(self._comm, file.close, self._doing))
        period = watch.begin_unix_s, watch.now_unix_s()
        counted = Counted(
            extension=statistics,
            system_calls=tuple(calls),
            delegates=change_of_each(self._delegate_statistics(), delegates),
        )
        access_s = sum(parts[1:] if self._delegated else parts[1:3])
        return (
            PhaseTimes(
                elapsed_s=sum(parts),
                access_s=access_s,
                open_s=parts[0],
                define_s=parts[1],
                data_s=parts[2],
                close_s=parts[3],
            ),
            period,
            counted,
        )

    # ---- a phase of an application ----

    def _at_once(self, prepared: Sequence[_Prepared], moved: int) -> _Outcome:
        """Play all steps without a barrier of ours between them."""
        before, calls = extension.process_statistics(), [extension.system_calls()]
        delegates = self._delegate_statistics()
        self._case.interface.arrange(self._comm, [item for item in prepared if isinstance(item, (Open, Request))])
        self._times = dict.fromkeys(self._times, 0.0)
        self._first_error = None
        self._last_words.phase_bytes = moved
        self._comm.Barrier()
        watch = Watch()
        begin = time.perf_counter()
        for item in prepared:
            self._do(item)
        end = time.perf_counter()
        gathered = self._comm.allgather(((platform.node(), begin, end), dict(self._times)))
        period = watch.begin_unix_s, watch.now_unix_s()
        self._last_words.dismiss()
        error = self._failure()
        if error is not None:
            self._open.clear()  # files that an error has left open: closing is collective, and others may be past it
        agree(self._comm, error, self._doing)
        calls.append(extension.system_calls())
        counted = Counted(
            extension=change(extension.process_statistics(), before),
            system_calls=tuple(calls),
            delegates=change_of_each(self._delegate_statistics(), delegates),
        )
        return self._phase_times(gathered), period, counted

    def _delegate_statistics(self) -> dict[int, dict[str, Any]]:
        return extension.delegate_statistics() if self._delegated else {}

    @staticmethod
    def _phase_times(gathered: Sequence[tuple[tuple[str, float, float], dict[str, float]]]) -> PhaseTimes:
        elapsed = span_of([marks for marks, _ in gathered])
        _, longest = max(gathered, key=lambda item: item[0][2] - item[0][1])
        known = longest["open"] + longest["define"] + longest["close"]
        return PhaseTimes(
            elapsed_s=elapsed,
            access_s=elapsed,
            open_s=longest["open"],
            define_s=longest["define"],
            data_s=max(elapsed - known, 0.0),
            close_s=longest["close"],
        )

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
            self._last_words.prepare(
                f"{self._doing}: {error}{_space(self._folder)} (rank {self._comm.rank}; the other ranks do not return)"
            )
        self._times[kind] += time.perf_counter() - begin

    def _failure(self) -> Exception | None:
        return self._first_error

    def _open_file(self, step: Open) -> None:
        opened = self._file(step)
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

    # ---- after it ----

    def _mismatch(self, requests: Sequence[Request]) -> Fault | None:
        for request in requests:
            if not request.access.write:
                path = self._case.interface.path(self._folder, self._content.files[request.access.file])
                fault = check_memory(self._content, request.access, request.memory, path)
                if fault is not None:
                    return fault
        return None


def _space(folder: Path) -> str:
    """Return a note that the file system is full, if it is: MPI libraries do not report it."""
    try:
        space = os.statvfs(folder)
    except OSError:
        return ""
    free = space.f_bavail * space.f_frsize
    return f"; {free} bytes are left on the file system of {folder}" if free < 1 << 20 else ""
