"""Patterns and numbers of delegates, interleaved, from options to files; collective over the program's ranks.

Problem.    A number of delegates is compared with another one: what drifts on the machine must hit both alike, and
            delegates cannot be started anew for each.
Algorithm.  The largest number is started once; the hint mpiox_delegate_owners says of each file how many of them own
            its pages, and mpiox_delegates=0 that none does. In each repetition each pattern is carried out with all
            numbers, one directly after the other; their order rotates by one from repetition to repetition.
Guarantees. The requested patterns are measured, or the run ends with a line that gives the reason. Every ten seconds
what there is
            is written, so that a job that is killed leaves it.
"""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.bench import extension
from mpiio_ext.bench.environment import describe
from mpiio_ext.bench.errors import BenchError, SetupError, VerificationError
from mpiio_ext.bench.execution.agreement import agree, on_rank_0
from mpiio_ext.bench.execution.delegation import start_delegates
from mpiio_ext.bench.explore import results
from mpiio_ext.bench.explore.measure import Place, measure, prepare
from mpiio_ext.bench.explore.results import Run
from mpiio_ext.bench.explore.spec import Spec
from mpiio_ext.bench.place import check_shared, keeping, make_folder, make_output
from mpiio_ext.bench.terminal import progress_of_rank_0
from mpiio_ext.common.printing import echo
from mpiio_ext.delegates.arbitration.pattern import Pattern
from mpiio_ext.errors import ArgumentError, MpiioExtError

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The user's request.

    Attributes
    ----------
    specs : patterns
    io_nodes : numbers of delegates, 0 = none; () = what the patterns' file names
    repetitions : of patterns that do not say themselves
    path : folder of the files; a temporary folder is made in it
    output : folder of the results; None = a new one under ./bench-results
    delegate_mode, hints : how delegates are started, and hints of every file
    sync, verify : see :class:`~mpiio_ext.bench.explore.measure.Place`
    store, program : file of curves to which they are added; name of the curve of all patterns together
    progress : None = when there is a terminal
    report : draw and make the page
    notes : what is printed first
    """

    specs: tuple[Spec, ...]
    io_nodes: tuple[int, ...]
    repetitions: int = 3
    path: Path = Path()
    output: Path | None = None
    delegate_mode: str = "spawn"
    hints: dict[str, str] = field(default_factory=dict)
    sync: bool = False
    verify: bool = True
    store: Path | None = None
    program: str = ""
    progress: bool | None = None
    report: bool = True
    notes: tuple[str, ...] = ()

    def counts(self, spec: Spec) -> tuple[int, ...]:
        """Return the numbers of delegates of a pattern."""
        return self.io_nodes or spec.io_nodes

    def times(self, spec: Spec) -> int:
        """Return how often a pattern is repeated."""
        return spec.repetitions or self.repetitions

    @property
    def most(self) -> int:
        """The largest number of delegates."""
        return max((count for spec in self.specs for count in self.counts(spec)), default=0)

    def file_hints(self, spec: Spec, count: int) -> dict[str, str]:
        """Return the hints of the files of a pattern with so many delegates."""
        chosen = {"mpiox_delegates": "0"} if count == 0 else {**self.job_hints, "mpiox_delegate_owners": str(count)}
        direct = {"direct_write": "true", "direct_read": "true"} if spec.direct else {}
        return {"mpiox_enable": "true", **self.hints, **direct, **chosen}

    @property
    def job_hints(self) -> dict[str, str]:
        """Hints that start the delegates."""
        return {
            "mpiox_enable": "true",
            **self.hints,
            "mpiox_delegates": str(self.most),
            "mpiox_delegate_mode": self.delegate_mode,
        }


# ---- before anything runs ----


def _check(options: Options, ranks: int, compute_nodes: int) -> dict[Pattern, Spec]:
    """Return the patterns by the properties that identify their curves.

    Raises
    ------
    SetupError
        The patterns cannot run, or the curves of two patterns would have the same identity.
    """
    found: dict[Pattern, Spec] = {}
    for spec in options.specs:
        try:
            spec.requests(ranks)
            pattern = spec.pattern(compute_nodes, ranks)
        except ArgumentError as error:
            raise SetupError(f"--pattern: {error}") from error
        if pattern in found and found[pattern] != spec:
            raise SetupError(
                f"--pattern: two patterns are both {pattern.name} to a curve, and differ in size or "
                "stonewall: explore them in runs of their own"
            )
        if not options.counts(spec):
            raise SetupError(f"--io-nodes is missing, and {pattern.name} has no forwarders")
        found[pattern] = spec
    reason = extension.absent_reason()
    if reason is not None:
        raise SetupError(reason)
    return found


def _needed_bytes(options: Options) -> int:
    """Return the most bytes on the file system at a time: files of reads stay, one pattern writes at a time.

    If every pattern has a stonewall, the total is a limit that may never be reached: 0.
    """
    if all(spec.stonewall_s for spec in options.specs):
        return 0
    reads = sum(spec.total_bytes for spec in options.specs if spec.operation == "read")
    return reads + max((spec.total_bytes for spec in options.specs if spec.operation == "write"), default=0)


def _make_output(options: Options) -> Path:
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%dT%H-%M-%S")
    return make_output(options.output or Path("bench-results") / f"explore-{now}-{os.getpid()}")


def _start(comm: MPI.Intracomm, options: Options, folder: Path) -> str:
    """Let the delegates start, if any are requested; return the delegates that started; collective."""
    if options.most == 0:
        return ""
    text = str(comm.bcast(start_delegates(comm, options.job_hints, folder)))
    if not text or text.startswith("none"):
        raise SetupError(f"--io-nodes: {text.removeprefix('none: ') or 'the file system allows no delegates'}")
    from mpiio_ext.delegates import current

    group = current()
    there = len(group.delegates) if group is not None else 0
    error = (
        SetupError(f"--io-nodes {options.most}: there are {there} delegates ({text})") if there < options.most else None
    )
    agree(comm, error, "starting delegates")
    return text


# ---- the run ----


@dataclass(frozen=True, slots=True)
class _Step:
    """One measurement that is to be made."""

    pattern: Pattern
    spec: Spec
    count: int
    repetition: int


def _steps(options: Options, patterns: dict[Pattern, Spec]) -> Iterator[_Step]:
    for repetition in range(max(options.times(spec) for spec in patterns.values())):
        for pattern, spec in patterns.items():
            if repetition >= options.times(spec):
                continue
            counts = options.counts(spec)
            turn = repetition % len(counts)
            for count in (*counts[turn:], *counts[:turn]):
                yield _Step(pattern, spec, count, repetition + 1)


class _Explorer:
    """Makes the measurements; every rank has one."""

    def __init__(self, comm: MPI.Intracomm, options: Options, folder: Path, patterns: dict[Pattern, Spec]) -> None:
        self.comm, self.options, self.folder, self.patterns = comm, options, folder, patterns
        self.runs: list[Run] = []
        self._number = 0

    def _place(self, step: _Step, run: int) -> Place:
        return Place(
            spec=step.spec,
            path=self.folder / step.pattern.name,
            io_nodes=step.count,
            run=run,
            hints=self.options.file_hints(step.spec, step.count),
            sync=self.options.sync,
            verify=self.options.verify,
        )

    def _prepare(self) -> None:
        """Write the files to read; they stay until the end."""
        for index, (pattern, spec) in enumerate(self.patterns.items()):
            if spec.operation == "read":
                prepare(self.comm, self._place(_Step(pattern, spec, 0, 0), index))

    def run(self, advance: Callable[[str], None]) -> None:
        """Carry all out.

        Raises
        ------
        BenchError
            On all ranks.
        """
        self._prepare()
        order = list(self.patterns)
        for step in _steps(self.options, self.patterns):
            self._number += 1
            run = order.index(step.pattern) if step.spec.operation == "read" else len(order) + self._number
            measured = measure(self.comm, self._place(step, run))
            self.runs.append(
                Run(
                    spec=step.spec,
                    pattern=step.pattern,
                    io_nodes=step.count,
                    repetition=step.repetition,
                    measured=measured,
                )
            )
            advance(f"{step.pattern.name}, {step.count}: {measured.bandwidth_mb_per_s:,.0f} MB/s")


def _configuration(options: Options, text: str) -> dict[str, Any]:
    return {
        "io_nodes": list(options.io_nodes),
        "repetitions": options.repetitions,
        "hints": options.hints,
        "delegate_mode": options.delegate_mode,
        "delegates": text,
        "sync": options.sync,
        "verify": options.verify,
        "program": options.program,
        "notes": list(options.notes),
    }


def _store(options: Options, output: Path, runs: Sequence[Run]) -> list[Path]:
    """Add the curves to their stores, each as a new version."""
    from mpiio_ext.delegates.arbitration.store import Store

    curves = {pattern.name: curve for pattern, curve in results.curves_of(runs).items()}
    if options.program:
        curves[options.program] = results.joint_curve(runs)
    paths = [output / "curves.json", *([options.store] if options.store is not None else [])]
    for path in paths:
        Store(path).save(curves)
    return paths


def _finish(options: Options, output: Path, found: dict[str, Any], runs: Sequence[Run]) -> None:
    """Write all results, and print their places; on rank 0."""
    paths = results.write(output, found, runs, page=options.report)
    failed = found["failure"] is not None
    if runs and not failed:
        try:
            paths += _store(options, output, runs)
        except OSError:
            raise
        except MpiioExtError as error:
            raise SetupError(f"the curves are not stored: {error}; results are in {output}") from error
    for line in (*options.notes, *results.lines(found["summary"])):
        echo(line)
    echo(f"results: {', '.join(path.name for path in paths)} in {output}")
    if runs and not failed:
        echo(f"  mpiio-ext delegates arbitrate simulate --forge {output / 'curves.csv'}")


def explore(comm: MPI.Intracomm, options: Options) -> Path:
    """Run everything, write the results, and return their folder; collective.

    Raises
    ------
    BenchError
        On every rank with the same message.
    """
    from mpi4py import MPI

    hosts = len(set(comm.allgather(MPI.Get_processor_name())))
    error: Exception | None = None
    patterns: dict[Pattern, Spec] = {}
    try:
        patterns = _check(options, comm.size, hosts)
    except SetupError as caught:
        error = caught
    agree(comm, error, "preparing")
    folder: Path = on_rank_0(comm, lambda: make_folder(options.path, "explore", _needed_bytes(options)))
    failure: BenchError | None = None
    try:
        return _run(comm, options, folder, patterns)
    except BenchError as caught:
        failure = caught
        raise
    finally:
        if comm.rank == 0 and not isinstance(failure, VerificationError):  # wrong data stays for an inspection
            shutil.rmtree(folder, ignore_errors=True)


def _run(comm: MPI.Intracomm, options: Options, folder: Path, patterns: dict[Pattern, Spec]) -> Path:
    check_shared(comm, folder)
    output: Path = on_rank_0(comm, lambda: _make_output(options))
    text = _start(comm, options, folder)
    environment = describe(comm, folder.parent, {})
    explorer = _Explorer(comm, options, folder, patterns)
    failure: BenchError | None = None

    def found(why: str | None) -> dict[str, Any]:
        return results.document(explorer.runs, environment, _configuration(options, text), why)

    def keep() -> None:
        if comm.rank == 0:
            results.write(
                output, found("the exploration had not ended when this was written"), explorer.runs, page=False
            )

    steps = sum(len(options.counts(spec)) * options.times(spec) for spec in patterns.values())
    with progress_of_rank_0(comm, options.progress, steps) as advance:
        try:
            explorer.run(keeping(advance, keep))
        except BenchError as caught:
            failure = caught
    on_rank_0(comm, lambda: _finish(options, output, found(None if failure is None else str(failure)), explorer.runs))
    if failure is not None:
        raise failure
    return output
