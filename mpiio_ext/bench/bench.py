"""One bench from options to files: what can run here, the run, the results; collective over MPI_COMM_WORLD."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mpiio_ext.bench import extension, interfaces, workloads
from mpiio_ext.bench.environment import describe
from mpiio_ext.bench.errors import EXIT_USAGE, BenchError, VerificationError
from mpiio_ext.bench.options import Options
from mpiio_ext.bench.plot import plot_ratios
from mpiio_ext.bench.results import Absent, summarize, with_ratios, write_results
from mpiio_ext.bench.runner import Case, Runner
from mpiio_ext.bench.strategies import Strategy
from mpiio_ext.bench.table import print_absent, print_heading, print_table
from mpiio_ext.bench.team import agree
from mpiio_ext.bench.terminal import terminal_width

__all__ = ["SetupError", "run_bench"]

_HEADER_BYTES = 1 << 20  # of self-describing formats, generously


class SetupError(BenchError):
    """What was asked for cannot run here."""

    exit_status = EXIT_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    cases: list[Case]
    strategies: list[Strategy]
    absent: list[Absent]
    notes: list[str]


def _available_interfaces(options: Options, absent: list[Absent]) -> list[interfaces.Interface]:
    available = []
    for name in options.interfaces or interfaces.REGISTRY:
        interface = interfaces.REGISTRY[name]
        reason = interface.absent_reason()
        if reason is None:
            available.append(interface)
        elif options.interfaces:
            raise SetupError(f"--interface {name}: {reason}")
        else:
            absent.append(Absent(what=f"{interface.title} variants", reason=reason))
    return available


def _available_strategies(options: Options, absent: list[Absent]) -> list[Strategy]:
    wanted = list(options.strategies)
    reason = extension.absent_reason()
    if reason is None:
        return wanted
    ours = [strategy.name for strategy in wanted if not strategy.native]
    if ours and options.strategies_given:
        raise SetupError(f"--method {ours[0]}: {reason}")
    if ours:
        absent.append(Absent(what=f"methods {', '.join(ours)}", reason=reason))
    return [strategy for strategy in wanted if strategy.native]


def _work(options: Options, ranks: int) -> _Work:
    """Decide what runs; local, the same on every rank of a homogeneous job."""
    absent: list[Absent] = []
    ways = _available_interfaces(options, absent)
    methods = _available_strategies(options, absent)
    try:
        variants = workloads.create(options.workloads, options.sizes, ranks)
    except ValueError as error:
        raise SetupError(f"--size: {error}") from error
    cases = [Case(workload=v, interface=way) for v in variants for way in ways if way.supports(v)]
    if not cases:
        raise SetupError("nothing to run: none of the workloads has a form for the interfaces asked for")
    notes = list(dict.fromkeys(v.note for v in variants if v.note))
    return _Work(cases=cases, strategies=methods, absent=absent, notes=notes)


def _on_rank_0(comm: Any, action: Callable[[], Any]) -> Any:
    """Return on every rank what `action` returns on rank 0; its OSError becomes a SetupError of all; collective."""
    result: Any = None
    error: Exception | None = None
    if comm.rank == 0:
        try:
            result = action()
        except (OSError, SetupError) as caught:
            error = caught if isinstance(caught, SetupError) else SetupError(_os_text(caught))
    agree(comm, error, "preparing")
    return comm.bcast(result)


def _os_text(error: OSError) -> str:
    return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")


def _make_folder(options: Options, work: _Work) -> Path:
    """Make the temporary folder of the bench files after checks that would otherwise fail in the middle; rank 0."""
    path = options.path
    if not path.is_dir():
        raise SetupError(f"--path {path}: {'not a folder' if path.exists() else 'no such folder'}")
    try:
        folder = Path(tempfile.mkdtemp(prefix="mpiio-bench-", dir=path.resolve()))
        folder.chmod(0o755)
    except OSError as error:
        raise SetupError(f"--path {path}: cannot write there ({error.strerror})") from error
    sizes = [case.workload.extent_bytes + (0 if case.interface.raw else _HEADER_BYTES) for case in work.cases]
    needed = sum(sizes) if options.keep_files else max(sizes)
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    if free < needed:
        folder.rmdir()
        raise SetupError(f"--path {path}: {needed / 1e6:,.1f} MB needed, {free / 1e6:,.1f} MB free")
    return folder


def _make_output(options: Options) -> Path:
    """Make the folder of the results; rank 0."""
    output = options.output
    try:
        if output is None:
            base = Path("bench-results") / datetime.datetime.now().astimezone().strftime("%Y-%m-%dT%H-%M-%S")
            output, count = base, 1
            while output.exists():
                count += 1
                output = base.with_name(f"{base.name}-{count}")
        output.mkdir(parents=True, exist_ok=True)
        if not os.access(output, os.W_OK):
            raise SetupError(f"--output {output}: cannot write there")
    except OSError as error:
        raise SetupError(f"--output {output}: cannot write there ({error.strerror})") from error
    return output


def _check_shared(comm: Any, folder: Path) -> None:
    """Every rank must see the folder that rank 0 made."""
    unseen = None if folder.is_dir() else SetupError(f"--path {folder.parent}: not the same folder on every host")
    agree(comm, unseen, "preparing")


@contextlib.contextmanager
def _progress(comm: Any, options: Options, steps: int) -> Iterator[Callable[[str], None]]:
    """Yield the function that the runner calls after each run; a bar on rank 0's terminal, otherwise nothing."""
    width = terminal_width(2) if comm.rank == 0 else None
    shown = options.progress if options.progress is not None else width is not None
    if comm.rank != 0 or not shown:
        yield lambda _: None
        return
    console = Console(stderr=True, force_terminal=True, width=width or 100)
    columns = (TextColumn("{task.completed}/{task.total}"), BarColumn(), TimeElapsedColumn(),
               TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=steps)
        yield lambda text: bar.update(task, advance=1, description=text)


def _console() -> Console:
    width = terminal_width(1)
    return Console(force_terminal=width is not None, no_color=width is None or None, width=max(width or 0, 132))


def _configuration(options: Options, work: _Work) -> dict[str, Any]:
    return {
        "sizes": asdict(options.sizes),
        "workloads": {
            case.workload.key: {"class": type(case.workload).__name__, **asdict(case.workload)}  # type: ignore[call-overload]
            for case in work.cases
        },
        "interfaces": list(dict.fromkeys(case.interface.name for case in work.cases)),
        "strategies": {strategy.name: dict(strategy.hints) for strategy in work.strategies},
        "hints": options.hints,
        "repetitions": options.repetitions,
        "budget_s": options.budget_s,
        "read_shift": options.read_shift,
        "native_limit_s": options.native_limit_s,
        "native_bytes": options.native_bytes,
    }


def _clean(folder: Path, options: Options, failure: BenchError | None) -> None:
    """Remove the bench files unless they were asked for, or hold the wrong data that the message speaks of; rank 0."""
    if options.keep_files or isinstance(failure, VerificationError):
        return
    shutil.rmtree(folder, ignore_errors=True)


def run_bench(comm: Any, options: Options) -> None:
    """Run everything and write the results; collective over `comm`.

    Raises
    ------
    BenchError
        On every rank with the same message.
    """
    error: Exception | None = None
    work = _Work(cases=[], strategies=[], absent=[], notes=[])
    try:
        work = _work(options, comm.size)
    except SetupError as caught:
        error = caught
    agree(comm, error, "preparing")
    output: Path = _on_rank_0(comm, lambda: _make_output(options))
    folder: Path = _on_rank_0(comm, lambda: _make_folder(options, work))
    _check_shared(comm, folder)
    versions = {k: v for case in work.cases for k, v in case.interface.versions().items()}
    environment = describe(comm, folder.parent, versions)
    console = _console() if comm.rank == 0 else None
    if console:
        print_heading(console, environment, work.notes)

    failure: BenchError | None = None
    with _progress(comm, options, len(work.cases) * len(work.strategies) * options.repetitions) as advance:
        runner = Runner(
            comm=comm,
            folder=folder,
            sizes=options.sizes,
            strategies=work.strategies,
            common_hints=options.hints,
            repetitions=options.repetitions,
            read_shift=options.read_shift,
            native_limit_s=options.native_limit_s,
            native_bytes=options.native_bytes,
            budget_s=options.budget_s,
            keep_files=options.keep_files,
            advance=advance,
        )
        try:
            runner.run(work.cases)
        except BenchError as caught:
            failure = caught

    def finish() -> None:
        _clean(folder, options, failure)
        rows = with_ratios(runner.rows)
        summaries = summarize(rows)
        assert console is not None
        if rows:
            print_table(console, summaries)
        absent = list(work.absent)
        if failure is None and runner.repetitions_done < options.repetitions:
            missing = options.repetitions - runner.repetitions_done
            reason = f"--budget of {options.budget_s:g} s ({runner.repetitions_done} done)"
            absent.append(Absent(what=f"{missing} of {options.repetitions} repetitions", reason=reason))
        print_absent(console, absent)
        paths = write_results(
            output,
            environment=environment,
            configuration=_configuration(options, work),
            rows=rows,
            absent=absent,
            failure=str(failure) if failure else None,
        )
        if options.plot:
            paths += plot_ratios(summaries, output)
        console.print(f"results: {', '.join(path.name for path in paths)} in {output}", highlight=False, soft_wrap=True)

    _on_rank_0(comm, finish)
    if failure is not None:
        raise failure
