"""Measuring kernels: the order of the runs, one run with its phases and checks, and the rows.

Repetitions are interleaved as for the patterns (`mpiio_ext.bench.runner`): inside a repetition a kernel runs under
every strategy, one directly behind the other, the order rotated by one place per repetition. In one run the phases
follow each other on the same files; every phase is verified before the next: files with other means than the
interface, memory after the clock has stopped. In the first repetition all strategies write the same bytes, and their
files are compared.

Bandwidth is data / the time of the phase from the first rank's begin to the last rank's end, opening and closing
included: what the application sees, and the only figure that does not depend on where an MPI library lets its ranks
wait (OMPIO's ranks leave a collective write early and wait in the close).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mpiio_ext.bench import extension
from mpiio_ext.bench.counters import change, with_counters
from mpiio_ext.bench.errors import BenchError, VerificationError
from mpiio_ext.bench.kernels.check import check_files, written_versions
from mpiio_ext.bench.kernels.content import Content
from mpiio_ext.bench.kernels.play import PhaseTimes, Player
from mpiio_ext.bench.kernels.program import Kernel, Phase
from mpiio_ext.bench.results import Row
from mpiio_ext.bench.stores import Store
from mpiio_ext.bench.strategies import Strategy
from mpiio_ext.bench.team import agree, wait_quietly

__all__ = ["KernelCase", "KernelRunner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCase:
    """One kernel through one interface; `name` tells it from another one of the same kernel, "" = the kernel's own."""

    kernel: Kernel
    store: Store
    name: str = ""

    @property
    def variant(self) -> str:
        """Name of its rows."""
        return self.name or self.kernel.key

    @property
    def title(self) -> str:
        """For people, without the interface."""
        return f"{self.kernel.label} ({self.name})" if self.name else self.kernel.label

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.title}, {self.store.title}"

    @property
    def bytes(self) -> int:
        """Bytes that the files take."""
        return sum(layout.end_bytes for layout in self.kernel.files())

    def strategies(self, wanted: list[Strategy]) -> list[Strategy]:
        """Return those that differ for this interface: without MPI-IO beneath, there is nothing to choose."""
        if self.store.through_mpi:
            return wanted
        return [strategy for strategy in wanted if strategy.native][:1]


@dataclass(slots=True, kw_only=True)
class KernelRunner:
    """Runs cases under strategies; every method is collective over `comm`.

    Attributes
    ----------
    comm : mpi4py communicator
    folder : where the files go
    strategies, common_hints, keep_files, advance : as of `mpiio_ext.bench.runner.Runner`
    rows : of rank 0
    """

    comm: Any
    folder: Path
    strategies: list[Strategy]
    common_hints: dict[str, str] = field(default_factory=dict)
    keep_files: bool = False
    advance: Callable[[str], None] = lambda _: None
    rows: list[Row] = field(default_factory=list)
    _runs: int = 0
    _order: int = 0

    def repetition(self, cases: list[KernelCase], number: int) -> None:
        """Run every case once under every strategy.

        Raises
        ------
        BenchError
            On every rank of `comm`.
        """
        for case in cases:
            self._runs += 1
            self._on_team(case, number)
            for _ in case.strategies(self.strategies):
                self.advance(case.label)

    def _on_team(self, case: KernelCase, number: int) -> None:
        """Run the case on the ranks that take part; the others sleep until they are done."""
        if case.kernel.active == self.comm.size:
            self._run_case(self.comm, case, number)
            return
        inside = self.comm.rank < case.kernel.active
        team = self.comm.Split(0 if inside else 1, self.comm.rank)
        error: BenchError | None = None
        if inside:
            try:
                self._run_case(team, case, number)
            except BenchError as caught:
                error = caught
        failed = wait_quietly(self.comm, error is not None)
        team.Free()
        if failed:
            agree(self.comm, error, "running")

    def _run_case(self, team: Any, case: KernelCase, number: int) -> None:
        content = Content(case.kernel, self._runs)
        strategies = case.strategies(self.strategies)
        shift = number % len(strategies) if strategies else 0
        reference = self.folder / "reference" if number == 0 and len(strategies) > 1 else None
        for place, strategy in enumerate(strategies[shift:] + strategies[:shift]):
            rows = self._run_once(team, case, strategy, content)
            compared = self._compare(team, case, reference, first=place == 0) if reference else ""
            self._order += 1
            self.rows += [replace(row, repetition=number, order=self._order, compared=compared) for row in rows]
            self._remove(team, case, self.folder)
        if reference is not None and team.rank == 0:
            shutil.rmtree(reference, ignore_errors=True)

    def _run_once(self, team: Any, case: KernelCase, strategy: Strategy, content: Content) -> list[Row]:
        hints = {**self.common_hints, **strategy.hints_for(team.size)} if case.store.through_mpi else {}
        player = Player(comm=team, kernel=case.kernel, store=case.store, folder=self.folder, hints=hints,
                        content=content, method=strategy.name)
        self._remove(team, case, self.folder)
        rows, written = [], set[tuple[int, str]]()
        for phase in case.kernel.phases():
            before, kernel = extension.process_statistics(), [extension.kernel_counters()]
            times, data_bytes, mismatch = player.phase(phase)
            kernel.append(extension.kernel_counters())
            counted = change(extension.process_statistics() or {}, before) if before is not None else None
            where = f"{case.label}, {strategy.name}, phase {phase.name}"
            self._judge(team, mismatch, where, "read wrong data")
            row = _row(case, phase, strategy, team.size, times, data_bytes)
            gathered = team.gather((counted, kernel))
            if team.rank == 0:
                row = with_counters(row, [item[0] for item in gathered], [item[1] for item in gathered])
            foreign = self._verify(team, case, strategy, content, phase, written)
            if strategy.native and team.bcast(row.collectives_taken_over or row.independents_taken_over):
                raise BenchError(f"the extension was active under '{strategy.name}': MPIOX_HINTS or MPIOX_HINTS_FILE "
                                 "overrides mpiox_enable=false")
            rows.append(replace(row, gaps_written=foreign))
        return rows

    def _verify(self, team: Any, case: KernelCase, strategy: Strategy, content: Content, phase: Phase,
                written: set[tuple[int, str]]) -> bool:
        """Check the files that a phase has written; return whether a native method left bytes of its own in them."""
        versions = written_versions(case.kernel, phase.name, case.store.name)
        written.update(versions)
        complete = len(written) == sum(len(layout.variables) for layout in content.files)
        error: Exception | None = None
        data, foreign = None, None
        try:
            data, foreign = check_files(content, case.store, self.folder, versions, rank=team.rank, ranks=team.size,
                                        complete=complete)
        except Exception as caught:
            error = caught
        where = f"{case.label}, {strategy.name}, phase {phase.name}"
        agree(team, error, f"verifying ({where})")
        self._judge(team, data, where, "wrote wrong data")
        if not strategy.native:
            self._judge(team, foreign, where, "wrote what no rank wrote")
        return any(team.allgather(foreign is not None))

    @staticmethod
    def _judge(team: Any, mismatch: str | None, where: str, what: str) -> None:
        """Raise on all ranks when one has found wrong data."""
        found = [item for item in team.allgather(mismatch) if item is not None]
        if found:
            raise VerificationError(f"{where} {what}: {found[0]} (found by {len(found)} of {team.size} ranks; the "
                                    "files are left there)")

    def _compare(self, team: Any, case: KernelCase, reference: Path, *, first: bool) -> str:
        """Keep the first strategy's files, compare the others' with them; return how they were compared."""
        how, difference, error = "", None, None
        if team.rank == 0:
            try:
                paths = [case.store.path(self.folder, layout) for layout in case.kernel.files()]
                if first:
                    reference.mkdir()
                    for path in paths:
                        path.rename(reference / path.name)
                else:
                    how, difference = _compare_all(case.store, paths, reference)
            except Exception as caught:
                error = caught
        agree(team, error, f"comparing files ({case.label})")
        difference = team.bcast(difference)
        if difference is not None:
            raise VerificationError(f"{case.label}: files of two strategies differ: {difference} "
                                    f"(left in {self.folder})")
        return str(team.bcast(how))

    def _remove(self, team: Any, case: KernelCase, folder: Path) -> None:
        error: Exception | None = None
        if team.rank == 0 and not self.keep_files:
            try:
                for layout in case.kernel.files():
                    case.store.path(folder, layout).unlink(missing_ok=True)
            except OSError as caught:
                error = caught
        agree(team, error, f"removing files in {folder}")


def _compare_all(store: Store, paths: list[Path], reference: Path) -> tuple[str, str | None]:
    how = "bytes"
    for path in paths:
        this, difference = store.compare(path, reference / path.name)
        how = this if this != "bytes" else how
        if difference is not None:
            return how, f"{path.name} {difference}"
    return how, None


def _row(case: KernelCase, phase: Phase, strategy: Strategy, ranks: int, times: PhaseTimes, data_bytes: int) -> Row:
    kernel = case.kernel
    return Row(
        workload=kernel.name,
        variant=case.variant,
        label=case.title,
        interface=case.store.name,
        strategy=strategy.name,
        operation=phase.operation,
        repetition=0,
        order=0,
        ranks=ranks,
        scaled=False,
        file_bytes=sum(layout.size_bytes for layout in kernel.files()),
        data_bytes=data_bytes,
        open_s=times.open_s,
        view_s=times.define_s,
        data_s=times.data_s,
        close_s=times.close_s,
        bandwidth_mb_per_s=data_bytes / 1e6 / max(times.elapsed_s, 1e-9),
        bandwidth_total_mb_per_s=data_bytes / 1e6 / max(times.elapsed_s, 1e-9),
        kind="kernel",
        phase=phase.name,
        noncontiguous=kernel.noncontiguous and not phase.contiguous,
        files=len(kernel.files()),
    )
