"""Measuring: which run comes when, one run with its phases and checks, and the rows.

Order. A repetition (`mpiio_ext.bench.execution.schedule` says how many there are) runs every case; inside it every
method follows directly on the other. The methods rotate by one place per repetition, so that drift of the machine
affects all of them and no method always comes first. Ratios are formed inside a repetition.

One run. The phases follow each other on the same files, which are removed afterwards. Every phase is verified before
the next: files with other means than the interface, memory after the clock has stopped. Between the phases every rank
closes its files and waits at a barrier. MPI and close-to-open file systems need close, barrier and open before one rank
reads the bytes that another one wrote. Reads come from the page cache unless the file system says otherwise. In the
first repetition all methods of a kernel write the same bytes, and their files are compared.

Bandwidth of a kernel's phase is data / the time from the first rank's begin to the last rank's end, opening and closing
included. The application experiences this bandwidth. It does not depend on where an MPI library lets its ranks wait:
OMPIO's ranks leave a collective write early and wait in the close. Of a pattern it is data / (view + data), or with
delegates, which write behind, data / (view + data + close).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.bench.errors import BenchError, VerificationError
from mpiio_ext.bench.execution.afford import NativeLimit, affordable
from mpiio_ext.bench.execution.agreement import agree, wait_quietly
from mpiio_ext.bench.execution.carried_out import EnginePlayer
from mpiio_ext.bench.execution.carried_out import difference as carried_out_difference
from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.execution.content import Content
from mpiio_ext.bench.execution.counters import with_counters, with_delegates
from mpiio_ext.bench.execution.player import Played, Player
from mpiio_ext.bench.execution.verify import Fault, FileFaults, check_files
from mpiio_ext.bench.interfaces import Interface
from mpiio_ext.bench.kernels.pioneer import Pioneer
from mpiio_ext.bench.kernels.program import Phase
from mpiio_ext.bench.methods import Method
from mpiio_ext.common.results import Row

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Cast:
    """A case with the state that its runs share on this rank."""

    case: Case
    content: Content
    player: Player | EnginePlayer


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs cases under methods; every method of this class is collective over `comm`.

    Attributes
    ----------
    comm : mpi4py communicator
    folder : where the files go
    methods : in the order of the first repetition
    common_hints : set for every method, weaker than the method's own
    native : what native methods may cost
    advance : called after each run with a description of it, on the ranks that take part
    rows : of rank 0, in the order of the runs, also of what was measured before an error
    """

    comm: MPI.Intracomm
    folder: Path
    methods: list[Method]
    common_hints: dict[str, str] = field(default_factory=dict)
    native: NativeLimit = field(default_factory=NativeLimit)
    advance: Callable[[str], None] = lambda _: None
    rows: list[Row] = field(default_factory=list)
    _runs: int = 0
    _order: int = 0
    _native_cases: dict[tuple[str, str, str], Case] = field(default_factory=dict)
    _casts: list[_Cast] = field(default_factory=list)

    # ---- order ----

    def forget(self) -> None:
        """Forget what was measured: cases of other sizes follow."""
        self.rows.clear()
        self._native_cases.clear()

    def repetition(self, case: Case, number: int) -> None:
        """Run a case once under every method.

        Raises
        ------
        BenchError
            On every rank of `comm`.
        """
        self._casts.clear()
        self._on_team(case, number)

    def _on_team(self, case: Case, number: int) -> None:
        """Run the case on the ranks that take part; the other ranks sleep until the end."""
        if case.program.active == self.comm.size:
            self._run_case(self.comm, case, number)
            return
        inside = self.comm.rank < case.program.active
        group = self.comm.Split(0 if inside else 1, self.comm.rank)
        error: BenchError | None = None
        if inside:
            try:
                self._run_case(group, case, number)
            except BenchError as caught:
                error = caught
        failed = wait_quietly(self.comm, error is not None)
        self._casts.clear()
        group.Free()
        if failed:
            agree(self.comm, error, "running")

    def _run_case(self, group: Any, case: Case, number: int) -> None:
        methods = case.methods(self.methods)
        shift = number % len(methods) if methods else 0
        wanted = case.compared and (number == 0 or case.program.by_engine) and len(methods) > 1
        reference = self.folder / "reference" if wanted else None
        self._count_run(group)
        for place, method in enumerate(methods[shift:] + methods[:shift]):
            actual = self._native_case(group, case, method) if method.native else case
            if not case.compared:
                self._count_run(group)
            rows = self._run_once(group, actual, method)
            compared = self._compare(group, case, reference, first=place == 0) if reference else ""
            self.rows += [
                replace(row, repetition=number, order=self._order, scaled=actual is not case, compared=compared)
                for row in rows
            ]
            self._order += 1
            self.advance(f"{case.label}, {method.name}")
            self._remove(group, actual)
        if reference is not None and group.rank == 0:
            shutil.rmtree(reference, ignore_errors=True)

    def _count_run(self, group: Any) -> None:
        """Begin to write other bytes; ranks that were idle in an earlier case have counted fewer runs."""
        self._runs = group.bcast(self._runs + 1)

    def _native_case(self, group: Any, case: Case, method: Method) -> Case:
        """Return the case at the size at which a native method can afford it."""

        def trial(small: Case) -> float:
            self._count_run(group)
            rows = self._run_once(group, small, method)
            self._remove(group, small)
            return sum(row.view_s + row.data_s for row in rows)

        key = (case.variant, case.interface.name, method.name)
        if key not in self._native_cases:
            self._native_cases[key] = affordable(case, self.comm.size, self.native, trial)
        return self._native_cases[key]

    # ---- one run ----

    def _cast(self, group: Any, case: Case) -> _Cast:
        """Return content and player.

        Patterns reuse their images, because making an image costs more time than the access.
        """
        for known in self._casts:
            if known.case is case:
                return known
        keep = not case.compared
        content = Content(case.program, self._runs, keep=keep)
        player: Player | EnginePlayer
        if case.program.by_engine:
            player = EnginePlayer(comm=group, case=case, folder=self.folder)
        else:
            player = Player(comm=group, case=case, folder=self.folder, content=content, keep=keep)
        made = _Cast(case=case, content=content, player=player)
        self._casts.append(made)
        return made

    def _run_once(self, group: Any, case: Case, method: Method) -> list[Row]:
        """Play, verify and count every phase; return their rows."""
        cast = self._cast(group, case)
        cast.content.run = self._runs
        hints = {**self.common_hints, **method.hints_for(group.size)} if case.interface.through_mpi else {}
        cast.player.use(hints, method.name, independent=method.independent, delegated=method.delegated)
        self._remove(group, case)
        rows: list[Row] = []
        written = set[tuple[int, str]]()
        for phase in case.program.phases():
            played = cast.player.phase(phase)
            where = f"{case.label}, {method.name}, phase {phase.name}"
            self._judge(group, played.fault, where, "read wrong data")
            row = _row(case, phase, method, group.size, played)
            gathered = group.gather(played.counted)
            if group.rank == 0:
                row = with_counters(row, gathered)
                row = with_delegates(row, gathered) if method.delegated else row
            foreign = self._verify(group, case, method, cast.content, phase, written)
            if method.native and group.bcast(row.collectives_taken_over or row.independents_taken_over):
                raise BenchError(
                    f"the extension was active under '{method.name}': MPIOX_HINTS or MPIOX_HINTS_FILE "
                    "overrides mpiox_enable=false"
                )
            if phase.parts:  # rows, not files, separate the write and the read of a pattern
                foreign = foreign or any(known.gaps_written for known in rows)
            rows.append(replace(row, gaps_written=foreign))
        return rows

    def _remove(self, group: Any, case: Case) -> None:
        error: Exception | None = None
        if group.rank == 0:
            try:
                for layout in case.program.files():
                    case.interface.path(self.folder, layout).unlink(missing_ok=True)
            except OSError as caught:
                error = caught
        agree(group, error, f"removing files in {self.folder}")

    # ---- checks ----

    def _verify(
        self, group: Any, case: Case, method: Method, content: Content, phase: Phase, written: set[tuple[int, str]]
    ) -> bool:
        """Check the files of a phase; return whether a native method has left bytes of its own in them.

        MPI leaves bytes of a new file that no rank writes undefined, and ROMIO's read-modify-write fills them with what
        was in its buffer: that is noted of native methods. The extension promises to leave them alone: there it is an
        error.
        """
        versions = case.program.versions(phase.name, case.interface.name)
        written.update(versions)
        complete = len(written) == sum(len(layout.variables) for layout in content.files)
        error: Exception | None = None
        found = FileFaults()
        try:
            found = check_files(
                content, case.interface, self.folder, versions, rank=group.rank, ranks=group.size, complete=complete
            )
        except Exception as caught:
            error = caught
        where = f"{case.label}, {method.name}, phase {phase.name}"
        agree(group, error, f"verifying ({where})")
        self._judge(group, found.data, where, "wrote wrong data")
        if not method.native:
            self._judge(group, found.foreign, where, "wrote what no rank wrote")
        return any(group.allgather(found.foreign is not None))

    @staticmethod
    def _judge(group: Any, fault: Fault | None, where: str, what: str) -> None:
        """Raise on all ranks when one has found wrong data; the first place of all files is reported."""
        found = [(item, rank) for rank, item in enumerate(group.allgather(fault)) if item is not None]
        if found:
            first, rank = min(found)
            raise VerificationError(
                f"{where} {what}: {first} (found by rank {rank}, wrong data by {len(found)} of "
                f"{group.size} ranks; the files are left there)"
            )

    def _compare(self, group: Any, case: Case, reference: Path, *, first: bool) -> str:
        """Store the first method's files, compare the others' with them; return the kind of the comparison."""
        how, difference, error = "", None, None
        if group.rank == 0:
            try:
                paths = [case.interface.path(self.folder, layout) for layout in case.program.files()]
                if first:
                    reference.mkdir()
                    for path in paths:
                        if path.exists() or not case.program.by_engine:  # a program may delete its files
                            path.rename(reference / path.name)
                elif isinstance(case.program, Pioneer):
                    how, difference = "bytes", _first_difference(case.program, paths, reference)
                else:
                    how, difference = _compare_all(case.interface, paths, reference)
            except Exception as caught:
                error = caught
        agree(group, error, f"comparing files ({case.label})")
        difference = group.bcast(difference)
        if difference is not None:
            raise VerificationError(f"{case.label}: files of two methods differ: {difference} (left in {self.folder})")
        return str(group.bcast(how))


def _compare_all(interface: Interface, paths: list[Path], reference: Path) -> tuple[str, str | None]:
    how = "bytes"
    for path in paths:
        this, difference = interface.compare(path, reference / path.name)
        how = this if this != "bytes" else how
        if difference is not None:
            return how, f"{path.name} {difference}"
    return how, None


def _first_difference(program: Pioneer, paths: list[Path], reference: Path) -> str | None:
    for layout, path in zip(program.files(), paths, strict=True):
        found = carried_out_difference(program, layout, path, reference / path.name)
        if found is not None:
            return f"{path.name} {found}"
    return None


def _row(case: Case, phase: Phase, method: Method, ranks: int, played: Played) -> Row:
    program, times, data_bytes = case.program, played.times, played.data_bytes
    layouts = program.files()
    return Row(
        workload=program.name,
        variant=case.variant,
        label=case.title,
        interface=case.interface.name,
        strategy=method.name,
        operation=phase.operation,
        repetition=0,
        order=0,
        ranks=ranks,
        scaled=False,
        file_bytes=sum(layout.size_bytes for layout in layouts),
        data_bytes=data_bytes,
        open_s=times.open_s,
        view_s=times.define_s,
        data_s=times.data_s,
        close_s=times.close_s,
        bandwidth_mb_per_s=data_bytes / 1e6 / max(times.access_s, 1e-9),
        bandwidth_total_mb_per_s=data_bytes / 1e6 / max(times.elapsed_s, 1e-9),
        kind=program.kind,
        phase="" if phase.parts else phase.name,
        noncontiguous=program.noncontiguous and not phase.contiguous,
        files=len(layouts),
        begin_unix_s=played.period[0],
        end_unix_s=played.period[1],
    )
