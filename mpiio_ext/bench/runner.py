"""Measuring patterns: which runs in which order, and one run with its phases, its checks and its counters.

Order. A repetition (`mpiio_ext.bench.schedule` says how many there are) runs every workload; inside it every strategy
follows directly on the other, and the order of the strategies is rotated by one place per repetition, so that drift of
the machine falls on all of them and no strategy always comes first. Ratios are formed inside a repetition.

One run. open, prepare, transfer, close of a new file; then every rank has closed the file, and after a barrier the file
is verified with plain reads and opened anew for reading: close, barrier, open is what MPI and close-to-open file
systems need for one rank to see what another wrote. By default a rank reads its neighbour's data. Reads come from the
page cache unless the file system says otherwise. The file is removed afterwards.

Slow native paths. Before a native strategy is measured, it is tried on 1/64, 1/16 and 1/4 of the size; from the growth
of its time the full time is extrapolated, and where that exceeds the limit the largest affordable fraction is measured
instead. Its rows are marked as scaled, and ratios compare bandwidths.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mpiio_ext.bench import extension
from mpiio_ext.bench.counters import with_counters
from mpiio_ext.bench.errors import BenchError, VerificationError
from mpiio_ext.bench.interfaces import Interface, Session, Target
from mpiio_ext.bench.pattern import POISON, Bytes, salt_of_run
from mpiio_ext.bench.results import Row
from mpiio_ext.bench.shapes import Contiguous
from mpiio_ext.bench.strategies import Strategy
from mpiio_ext.bench.team import agree, timed, wait_quietly
from mpiio_ext.bench.verify import FileFaults, Mismatch, check_buffer, check_file
from mpiio_ext.bench.workloads import REGISTRY, Plan, Sizes, Workload

__all__ = ["Case", "Runner"]

_SMALLEST_TRIAL_BYTES = 256 << 10
_FRACTIONS = (64, 16, 4, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workload through one interface."""

    workload: Workload
    interface: Interface

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.workload.label}, {self.interface.title}"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Prepared:
    """What this rank needs to run one case: plans, buffer images with salt 0, one buffer for both directions."""

    case: Case
    read_rank: int
    write_plan: Plan
    read_plan: Plan
    write_image: Bytes
    read_image: Bytes
    buffer: Bytes


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs cases under strategies; every method is collective over `comm`.

    Attributes
    ----------
    comm : mpi4py communicator
    folder : where the files go
    sizes, seed : as the workloads were made
    strategies : in the order of the first repetition
    common_hints : set for every strategy, weaker than the strategy's own
    read_shift : rank r reads what rank r + read_shift wrote
    native_limit_s : longest time of a native write and read; 0 = no limit
    native_bytes : file size for the native strategies; 0 = as the others
    keep_files : leave every file behind
    advance : called after each run with a description of the next one
    """

    comm: Any
    folder: Path
    sizes: Sizes
    strategies: list[Strategy]
    common_hints: dict[str, str] = field(default_factory=dict)
    read_shift: int = 1
    native_limit_s: float = 6.0
    native_bytes: int = 0
    keep_files: bool = False
    advance: Callable[[str], None] = lambda _: None
    rows: list[Row] = field(default_factory=list)
    _runs: int = 0
    _order: int = 0
    _native_cases: dict[tuple[str, str, str], Case] = field(default_factory=dict)
    _prepared: list[_Prepared] = field(default_factory=list)

    # ---- order ----

    def repetition(self, cases: list[Case], number: int) -> None:
        """Run every case once under every strategy; the rows are in `rows` on rank 0, also when an error ends it early.

        Raises
        ------
        BenchError
            On every rank of `comm`.
        """
        for case in cases:
            self._prepared.clear()
            with self._team(case.workload.ranks) as team:
                if team is not None:
                    self._run_case(team, case, number)
            for _ in self.strategies:
                self.advance(case.label)

    @contextlib.contextmanager
    def _team(self, ranks: int) -> Iterator[Any]:
        """Yield the communicator of the first `ranks` ranks, None on the others; all leave together."""
        if ranks == self.comm.size:
            yield self.comm
            return
        inside = self.comm.rank < ranks
        team = self.comm.Split(0 if inside else 1, self.comm.rank)
        error: BenchError | None = None
        try:
            yield team if inside else None
        except BenchError as caught:
            error = caught
        failed = wait_quietly(self.comm, error is not None)
        team.Free()
        if failed:
            agree(self.comm, error, "running")

    def _run_case(self, team: Any, case: Case, repetition: int) -> None:
        shift = repetition % len(self.strategies)
        for strategy in self.strategies[shift:] + self.strategies[:shift]:
            actual = self._native_case(team, case, strategy) if strategy.native else case
            new = self._run_once(team, actual, strategy, repetition)
            scaled = actual is not case
            self.rows.extend(replace(row, scaled=scaled) for row in new)
            self._order += 1

    # ---- slow native paths ----

    def _native_case(self, team: Any, case: Case, strategy: Strategy) -> Case:
        """Return the case at the size at which a native strategy can afford it."""
        key = (case.workload.key, case.interface.name, strategy.name)
        if key not in self._native_cases:
            self._native_cases[key] = self._affordable(team, case, strategy)
        return self._native_cases[key]

    def _scaled(self, case: Case, file_bytes: int) -> Case | None:
        """Return the case with another file size, or None when the geometry does not allow it."""
        sizes = replace(self.sizes, file_bytes=file_bytes)
        try:
            variants = REGISTRY[case.workload.name].create(sizes, self.comm.size)
        except ValueError:
            return None
        return next((Case(workload=v, interface=case.interface) for v in variants if v.key == case.workload.key), None)

    def _affordable(self, team: Any, case: Case, strategy: Strategy) -> Case:
        full_bytes = self.sizes.file_bytes
        if self.native_bytes and self.native_bytes < full_bytes:
            return self._scaled(case, self.native_bytes) or case
        if not self.native_limit_s:
            return case
        trials: list[tuple[int, float]] = []
        for fraction in _FRACTIONS:
            size = full_bytes // fraction
            if size < _SMALLEST_TRIAL_BYTES:
                continue
            if trials and self._predict(trials, full_bytes) <= self.native_limit_s:
                return case
            if trials and self._predict(trials, size) > self.native_limit_s:
                return self._scaled(case, trials[-1][0]) or case
            if fraction == 1:
                break
            small = self._scaled(case, size)
            if small is None:
                continue
            rows = self._run_once(team, small, strategy, 0)
            trials.append((size, sum(row.view_s + row.data_s for row in rows)))
        return case

    @staticmethod
    def _predict(trials: list[tuple[int, float]], size: int) -> float:
        """Extrapolate the time of a size from the last two trials by a power law with an exponent from 1 to 2.5."""
        last_size, last_s = trials[-1]
        exponent = 1.0
        if len(trials) > 1:
            before_size, before_s = trials[-2]
            exponent = math.log(max(last_s, 1e-9) / max(before_s, 1e-9)) / math.log(last_size / before_size)
            exponent = min(max(exponent, 1.0), 2.5)
        return float(last_s * (size / last_size) ** exponent)

    # ---- one run ----

    def _prepare(self, team: Any, case: Case) -> _Prepared:
        for prepared in self._prepared:
            if prepared.case is case:
                return prepared
        read_rank = (team.rank + self.read_shift) % team.size
        write_plan = case.interface.plan(case.workload, team.rank, writing=True)
        read_plan = case.interface.plan(case.workload, read_rank, writing=False)
        write_image, read_image = write_plan.image(), read_plan.image()
        prepared = _Prepared(
            case=case,
            read_rank=read_rank,
            write_plan=write_plan,
            read_plan=read_plan,
            write_image=write_image,
            read_image=read_image,
            buffer=np.empty(max(write_image.size, read_image.size), np.uint8),
        )
        self._prepared.append(prepared)
        return prepared

    def _run_once(self, team: Any, case: Case, strategy: Strategy, repetition: int) -> list[Row]:
        """Write, verify, read, compare; return both rows."""
        self._runs = team.bcast(self._runs + 1)  # ranks that were idle in an earlier case have counted fewer
        salt = salt_of_run(self._runs)
        prepared = self._prepare(team, case)
        path = self.folder / f"{case.workload.key}-{case.interface.name}.dat"
        doing = f"{case.label}, {strategy.name}"
        hints = {**self.common_hints, **strategy.hints_for(team.size)}

        def target(plan: Plan, rank: int, writing: bool) -> Target:
            return Target(
                comm=team, path=str(path), hints=hints, workload=case.workload, rank=rank, plan=plan,
                buffer=prepared.buffer[: plan.buffer_bytes], writing=writing,
            )

        self._remove(team, path)
        size = prepared.write_image.size
        np.bitwise_xor(prepared.write_image, np.uint8(salt), out=prepared.buffer[:size])
        write, start_bytes = self._measure(target(prepared.write_plan, team.rank, True), case, doing)
        gaps_written = self._verify_file(team, path, case, salt, start_bytes, strategy)

        prepared.buffer[:] = POISON ^ salt
        read, _ = self._measure(target(prepared.read_plan, prepared.read_rank, False), case, doing)
        buffer = prepared.buffer[: prepared.read_image.size]
        mismatch = check_buffer(buffer, prepared.read_image, prepared.read_plan, salt=salt, start_bytes=start_bytes)
        self._judge(team, mismatch, path, strategy, "read")
        if not self.keep_files:
            self._remove(team, path)
        self._check_native(team, strategy, (write, read))
        return [
            replace(row, strategy=strategy.name, repetition=repetition, order=self._order, gaps_written=gaps_written)
            for row in (write, read)
        ]

    def _remove(self, team: Any, path: Path) -> None:
        error: Exception | None = None
        if team.rank == 0:
            try:
                path.unlink(missing_ok=True)
            except OSError as caught:
                error = caught
        agree(team, error, f"removing {path}")

    def _measure(self, target: Target, case: Case, doing: str) -> tuple[Row, int]:
        """Run the four phases of one session; return its row and where the data begins in the file."""
        comm = target.comm
        operation = "write" if target.writing else "read"
        doing = f"{operation} {target.path} ({doing})"
        session = case.interface.session(target)
        times: list[float] = []
        kernel = [extension.kernel_counters()]
        try:
            for phase in (session.open, session.prepare, session.transfer):
                times.append(timed(comm, phase, doing))
            kernel.append(extension.kernel_counters())
            start_bytes, counted = self._facts(comm, session, doing)
        except BenchError:
            with contextlib.suppress(Exception):
                session.close()
            raise
        times.append(timed(comm, session.close, doing))
        gathered = comm.gather((target.plan.data_bytes, counted, kernel))
        total = comm.bcast(sum(item[0] for item in gathered) if comm.rank == 0 else 0)
        row = Row(
            workload=case.workload.name,
            variant=case.workload.key,
            label=case.workload.label,
            interface=case.interface.name,
            strategy="",
            operation=operation,
            repetition=0,
            order=0,
            ranks=comm.size,
            scaled=False,
            file_bytes=case.workload.extent_bytes,
            data_bytes=total,
            open_s=times[0],
            view_s=times[1],
            data_s=times[2],
            close_s=times[3],
            bandwidth_mb_per_s=total / 1e6 / max(times[1] + times[2], 1e-9),
            bandwidth_total_mb_per_s=total / 1e6 / max(sum(times), 1e-9),
            noncontiguous=_in_pieces(target.plan),
        )
        if comm.rank == 0:
            row = with_counters(row, [item[1] for item in gathered], [item[2] for item in gathered])
        return row, start_bytes

    @staticmethod
    def _facts(comm: Any, session: Session, doing: str) -> tuple[int, dict[str, Any] | None]:
        """Return data start and statistics of an open session, with errors agreed on."""
        error: Exception | None = None
        facts: tuple[int, dict[str, Any] | None] = (0, None)
        try:
            facts = session.data_start_bytes, session.statistics()
        except Exception as caught:
            error = caught
        agree(comm, error, doing)
        return facts

    # ---- checks ----

    @staticmethod
    def _check_native(team: Any, strategy: Strategy, rows: tuple[Row, ...]) -> None:
        """Raise when the extension worked under a native strategy; hints stronger than MPI_Info's bring that about."""
        error: BenchError | None = None
        if strategy.native and any(row.collectives_taken_over for row in rows):
            error = BenchError(
                f"the extension was active under '{strategy.name}': MPIOX_HINTS or MPIOX_HINTS_FILE overrides "
                "mpiox_enable=false"
            )
        agree(team, error, "running")

    def _verify_file(
        self, team: Any, path: Path, case: Case, salt: int, start_bytes: int, strategy: Strategy
    ) -> bool:
        """Check the file; return whether a native strategy wrote bytes that no rank wrote.

        MPI leaves such bytes of a new file undefined, and ROMIO's read-modify-write fills them with what was in its
        buffer: that is noted of native strategies. The extension promises to leave them alone: there it is an error.
        """
        found: FileFaults | None = None
        error: Exception | None = None
        try:
            found = check_file(
                path, case.workload, salt=salt, start_bytes=start_bytes, raw=case.interface.raw, rank=team.rank,
                ranks=team.size,
            )
        except OSError as caught:
            error = caught
        agree(team, error, f"verifying {path}")
        assert found is not None
        self._judge(team, found.data, path, strategy, "file")
        if not strategy.native:
            self._judge(team, found.gap, path, strategy, "file")
        return any(team.allgather(found.gap is not None))

    @staticmethod
    def _judge(team: Any, mismatch: Mismatch | None, path: Path, strategy: Strategy, what: str) -> None:
        """Raise on every rank when one found a wrong byte; the lowest offset is reported."""
        failed = np.zeros(1, np.int32)
        team.Allreduce(np.array([mismatch is not None], np.int32), failed)
        if not failed[0]:
            return
        found = [(item, rank) for rank, item in enumerate(team.allgather(mismatch)) if item is not None]
        worst, rank = min(found, key=lambda pair: (pair[0].offset_bytes, pair[1]))
        where = "wrong data in" if what == "file" else "wrong data read from"
        raise VerificationError(
            f"{where} {path} {worst} (strategy {strategy.name}, found by rank {rank}; {len(found)} of {team.size} "
            "ranks found wrong bytes; the file is left there)"
        )


def _in_pieces(plan: Plan) -> bool:
    """Return whether a rank's calls are in pieces, in the file or in memory."""
    return not all(isinstance(shape, Contiguous) for shape in (plan.file, *(call.memory for call in plan.calls)))
