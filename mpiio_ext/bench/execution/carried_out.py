"""Playing a program that the engine of PIONEER carries out, and comparing the files of two methods.

The engine makes the calls of each rank's plan in C. Files that are read are made before the clock starts, the hints of
the method go to every MPI_File_open. A call of MPI-IO that fails ends the bench; other calls may fail, as they did in
the program. The methods' files are compared byte by byte, but for bytes that no rank writes.
"""

from __future__ import annotations

import dataclasses
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.bench import extension
from mpiio_ext.bench.errors import BenchError
from mpiio_ext.bench.execution.agreement import Watch, agree, span_of
from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.execution.counters import Counted, change, change_of_each
from mpiio_ext.bench.execution.player import PhaseTimes, Played
from mpiio_ext.bench.interfaces.mpiio import info_of
from mpiio_ext.bench.kernels.layout import FileLayout
from mpiio_ext.bench.kernels.pioneer import Pioneer
from mpiio_ext.bench.kernels.program import Phase

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiio_ext.pioneer.engine import Outcome, Plan

_CHUNK_BYTES = 1 << 20


class EnginePlayer:
    """One case on one rank; has the methods of `mpiio_ext.bench.execution.player.Player`, collective over `comm`.

    Parameters
    ----------
    comm : mpi4py communicator of the ranks that take part
    case : of a program whose `by_engine` is true
    folder : where the files are
    """

    def __init__(self, *, comm: MPI.Intracomm, case: Case, folder: Path) -> None:
        self._comm, self._case, self._folder = comm, case, folder
        self._hints: dict[str, str] = {}
        self._method, self._independent, self._delegated = "", False, False

    def use(self, hints: dict[str, str], method: str, *, independent: bool = False, delegated: bool = False) -> None:
        """Play the next phases with these hints; see `Player.use`."""
        self._hints, self._method, self._independent, self._delegated = hints, method, independent, delegated

    def phase(self, phase: Phase) -> Played:
        """Carry the path out on all ranks.

        Raises
        ------
        BenchError
            A file cannot be made, or a call of MPI-IO failed on some rank; raised on all.
        """
        from mpiio_ext.pioneer.engine import carry_out, prepare_files

        program = self._case.program
        assert isinstance(program, Pioneer)
        doing = f"{program.label}, {self._method}, phase {phase.name}"
        error: Exception | None = None
        plan: Plan | None = None
        try:
            plan = program.plan(self._comm.rank, self._folder, f"-{self._case.interface.name}.dat")
            plan = _made_independent(plan) if self._independent else plan
        except Exception as caught:
            error = caught
        agree(self._comm, error, doing)
        assert plan is not None
        try:
            prepare_files(plan, self._comm)
        except OSError as caught:  # the same on all ranks
            raise BenchError(f"{doing}: {caught}") from caught
        before, calls = extension.process_statistics(), [extension.system_calls()]
        delegates = extension.delegate_statistics() if self._delegated else {}
        info = info_of(self._hints)
        self._comm.Barrier()
        watch = Watch()
        outcome = carry_out(plan, self._comm, time_scale=program.time_scale, info=info)
        end = time.perf_counter()
        info.Free()
        marks = self._comm.allgather((platform.node(), end - outcome.seconds, end))
        period = watch.begin_unix_s, watch.now_unix_s()
        agree(self._comm, _failure(plan, outcome), doing)
        calls.append(extension.system_calls())
        after = extension.delegate_statistics() if self._delegated else {}
        counted = Counted(
            extension=change(extension.process_statistics(), before),
            system_calls=tuple(calls),
            delegates=change_of_each(after, delegates),
        )
        total = sum(self._comm.allgather(outcome.bytes_written + outcome.bytes_read))
        return Played(
            times=self._times(plan, outcome, span_of(marks)),
            period=period,
            data_bytes=total,
            counted=counted,
            fault=None,
        )

    def _times(self, plan: Plan, outcome: Outcome, elapsed_s: float) -> PhaseTimes:
        """Return the parts of the time on the rank that took longest."""
        inside = [
            float(outcome.duration[np.isin(plan.operation, _numbers(names))].sum()) / 1e9
            for names in (_OPENS, _VIEWS, _CLOSES)
        ]
        _, longest = max(self._comm.allgather((outcome.seconds, inside)), key=lambda item: item[0])
        open_s, view_s, close_s = longest
        return PhaseTimes(
            elapsed_s=elapsed_s,
            access_s=elapsed_s,
            open_s=open_s,
            define_s=view_s,
            data_s=max(elapsed_s - open_s - view_s - close_s, 0.0),
            close_s=close_s,
        )


_OPENS, _VIEWS, _CLOSES = (
    ("open", "fopen", "MPI_File_open"),
    ("MPI_File_set_view",),
    ("close", "fclose", "MPI_File_close"),
)


def _numbers(names: tuple[str, ...]) -> list[int]:
    from mpiio_ext.pioneer.engine import OPERATIONS

    return [number for number in map(OPERATIONS.get, names) if number is not None]


def _made_independent(plan: Plan) -> Plan:
    """Return the plan with each collective access as an independent one."""
    from mpiio_ext.pioneer.engine import OPERATIONS

    operation = plan.operation.copy()
    for kind in ("", "i"):
        for verb in ("read", "write"):
            for where in ("", "_at"):
                together = OPERATIONS.get(f"MPI_File_{kind}{verb}{where}_all")
                alone = OPERATIONS.get(f"MPI_File_{kind}{verb}{where}")
                operation[plan.operation == together] = alone
    return dataclasses.replace(plan, operation=operation)


def _failure(plan: Plan, outcome: Outcome) -> BenchError | None:
    """Return the first call of MPI-IO that has failed, in words."""
    from mpi4py import MPI

    from mpiio_ext.pioneer.engine import engine_name
    from mpiio_ext.pioneer.engine.run import NOT_MADE

    for row in np.flatnonzero((outcome.result != 0) & (outcome.result != NOT_MADE)):
        name = engine_name(int(plan.operation[row]))
        if name.startswith("MPI_"):
            text = MPI.Get_error_string(int(outcome.result[row]))
            file = plan.paths[plan.file[row]] if plan.file[row] >= 0 else ""
            return BenchError(f"operation {plan.ids[row]} of the path, {name} {file}: {text}")
    return None


def difference(program: Pioneer, layout: FileLayout, ours: Path, theirs: Path) -> str | None:
    """Return the places, in words, at which two methods' files differ in bytes that a rank writes; None if equal."""
    if ours.exists() != theirs.exists():
        return f"is there under one method alone ({ours})"
    if not ours.exists():
        return None
    number = next(at for at, item in enumerate(program.files()) if item.name == layout.name)
    with ours.open("rb") as one, theirs.open("rb") as other:
        for begin in range(0, layout.end_bytes, _CHUNK_BYTES):
            end = min(begin + _CHUNK_BYTES, layout.end_bytes)
            first, second = (np.frombuffer(file.read(end - begin), np.uint8) for file in (one, other))
            mask = program.written(number, layout.variables[0].name, begin, end)
            if first.size != second.size and (mask is None or mask[min(first.size, second.size) :].any()):
                return f"ends at byte {begin + min(first.size, second.size)} under one method alone"
            both = min(first.size, second.size)
            differs = first[:both] != second[:both]
            differs = differs if mask is None else differs & mask[:both]
            if differs.any():
                return f"at byte {begin + int(np.flatnonzero(differs)[0])}"
    return None
