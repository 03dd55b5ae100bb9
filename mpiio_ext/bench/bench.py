"""One bench from options to files: the cases that can run, the run, the results; collective over MPI_COMM_WORLD."""

from __future__ import annotations

import contextlib
import datetime
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from mpiio_ext.bench.asked import Options
from mpiio_ext.bench.environment import describe
from mpiio_ext.bench.errors import BenchError, SetupError, VerificationError
from mpiio_ext.bench.execution.afford import NativeLimit, scaled
from mpiio_ext.bench.execution.agreement import agree, on_rank_0
from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.execution.delegation import start_delegates
from mpiio_ext.bench.execution.runner import Runner
from mpiio_ext.bench.execution.schedule import Schedule
from mpiio_ext.bench.place import check_shared, keeping, make_folder, make_output
from mpiio_ext.bench.record import configuration
from mpiio_ext.bench.results.files import write_document, write_results
from mpiio_ext.bench.results.plot import plot_ratios
from mpiio_ext.bench.results.rest import WIDTH, write_page
from mpiio_ext.bench.results.table import print_absent, print_heading, print_table, print_worth
from mpiio_ext.bench.suites.archive import folder_of, write_surroundings
from mpiio_ext.bench.suites.lock import hold
from mpiio_ext.bench.terminal import progress_of_rank_0, terminal_width, within_budget
from mpiio_ext.bench.work import Work, needed_bytes, plan
from mpiio_ext.common.printing import make_console
from mpiio_ext.common.progress import Advance
from mpiio_ext.common.results import ENOUGH, Absent, Row, measure, with_ratios

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where things go: `folder` the bench files, `output` the results."""

    folder: Path
    output: Path


# ---- before anything runs ----


def _planned(comm: MPI.Intracomm, options: Options) -> Work:
    """Return the cases to run; collective, because ranks of different hosts may find different libraries."""
    work, error = Work(), None
    try:
        work = plan(options, comm.size)
    except SetupError as caught:
        error = caught
    agree(comm, error, "preparing")
    return work


def _make_output(options: Options, folder: Path) -> Path:
    """Make the folder of the results, or remove the bench files' folder; rank 0."""
    try:
        return _new_output(options)
    except SetupError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _new_output(options: Options) -> Path:
    output = options.output
    now = datetime.datetime.now().astimezone()
    if output is None and options.suite is not None:
        try:
            output = folder_of(options.archive, options.suite.name, now)
        except OSError as error:
            raise SetupError(f"--archive {options.archive}: cannot write there ({error.strerror})") from error
        return make_output(output, kept=options.archive, title=_title(options))
    if output is None:
        base = Path("bench-results") / now.strftime("%Y-%m-%dT%H-%M-%S")
        output, count = base, 1
        while output.exists():
            count += 1
            output = base.with_name(f"{base.name}-{count}")
    return make_output(output, title=_title(options))


def _title(options: Options) -> str:
    """Return the title of the page; "" if no page is requested."""
    if not options.report:
        return ""
    return options.suite.title if options.suite else "I/O benchmark of mpiio_ext"


@contextlib.contextmanager
def _one_suite(comm: MPI.Intracomm, options: Options) -> Iterator[None]:
    """Own the archive's lock while a suite runs; raise on all ranks if another suite runs; collective."""
    with contextlib.ExitStack() as stack:
        if options.suite is not None:
            on_rank_0(comm, lambda: _enter(stack, options))
        yield


def _enter(stack: contextlib.ExitStack, options: Options) -> None:
    assert options.suite is not None
    try:
        options.archive.mkdir(parents=True, exist_ok=True)
        stack.enter_context(hold(options.archive, options.suite.name))
    except OSError as error:
        raise SetupError(f"--archive {options.archive}: cannot write there ({error.strerror})") from error


def _with_delegates(comm: MPI.Intracomm, options: Options, work: Work, folder: Path) -> Work:
    """Return the cases to run once the delegates have been started, or could not be; collective."""
    ours = [method for method in work.methods if method.delegated]
    if not ours:
        return work
    text = str(comm.bcast(start_delegates(comm, ours[0].hints_for(comm.size), folder)))
    if text and not text.startswith("none"):
        return replace(work, notes=(*work.notes, f"delegates: {text}"))
    reason = text.removeprefix("none: ") or "the file system or the MPI library allows none"
    if options.methods_given:
        raise SetupError(f"--method {ours[0].name}: {reason}")
    return replace(
        work,
        methods=tuple(method for method in work.methods if not method.delegated),
        absent=(*work.absent, Absent(what=f"method {ours[0].name}", reason=reason)),
    )


def _delegates_or_clean(comm: MPI.Intracomm, options: Options, work: Work, place: _Place) -> Work:
    """Do as `_with_delegates`; if it ends the bench, remove the folders that were made."""
    try:
        return _with_delegates(comm, options, work, place.folder)
    except BenchError:
        if comm.rank == 0:
            shutil.rmtree(place.folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # not empty: it was there before
                place.output.rmdir()
        raise


# ---- what people see ----


def _console() -> Console:
    """Return a console that records its output for table.txt."""
    width = terminal_width(1)
    return make_console(
        force_terminal=width is not None, no_color=width is None or None, width=max(width or 0, WIDTH), record=True
    )


# ---- the run ----


def _runner(comm: MPI.Intracomm, options: Options, work: Work, folder: Path, advance: Callable[[str], None]) -> Runner:
    return Runner(
        comm=comm,
        folder=folder,
        methods=list(work.methods),
        common_hints=options.hints,
        native=NativeLimit(seconds=options.native_limit_s, file_bytes=options.native_bytes),
        advance=advance,
    )


def _schedule(options: Options, work: Work, runner: Runner, advance: Advance) -> Schedule[Case]:
    def smaller(share: float) -> Sequence[Case]:
        runner.forget()
        advance(by=0, of=(1 + ENOUGH) * work.runs)
        return [scaled(case, share, runner.comm.size) for case in work.cases]

    return Schedule(
        comm=runner.comm,
        cases=work.cases,
        run_case=runner.repetition,
        repetitions=options.repetitions,
        budget_s=options.budget_s,
        smaller=smaller if options.fit else None,
        replanned=lambda cases: advance(
            by=0, of=work.runs + (min(options.repetitions, ENOUGH) - 1) * work.runs_of(cases)
        ),
    )


def _clean(folder: Path, failure: BenchError | None) -> None:
    """Remove the bench files, unless a message names their wrong data; rank 0."""
    if not isinstance(failure, VerificationError):
        shutil.rmtree(folder, ignore_errors=True)


def _missing(schedule: Schedule[Case]) -> list[Absent]:
    """Return the repetitions that the budget did not allow."""
    missing = schedule.repetitions - schedule.repetitions_done
    reason = f"--budget of {schedule.budget_s:g} s"
    found = (
        [
            Absent(
                what=f"{missing} of {schedule.repetitions} repetitions",
                reason=f"{reason} ({schedule.repetitions_done} done)",
            )
        ]
        if missing
        else []
    )
    if schedule.share < 1:
        found.append(Absent(what="the full size", reason=f"{reason}: the files have {schedule.share:.0%} of it"))
    once = [case.label for case in schedule.cases if case not in schedule.repeated]
    if once and schedule.repeated:
        found.append(Absent(what=f"repetitions of {'; '.join(once)}", reason=reason))
    return found


def _versions(work: Work) -> dict[str, str]:
    return {name: version for case in work.cases for name, version in case.interface.versions().items()}


def run_bench(comm: MPI.Intracomm, options: Options) -> Path:
    """Run everything, write the results and return their folder; collective over `comm`.

    Raises
    ------
    BenchError
        On every rank with the same message.
    """
    work = _planned(comm, options)
    with _one_suite(comm, options):
        folder: Path = on_rank_0(comm, lambda: make_folder(options.path, "bench", needed_bytes(work)))
        output: Path = on_rank_0(comm, lambda: _make_output(options, folder))
        check_shared(comm, folder)
        work = _delegates_or_clean(comm, options, work, _Place(folder=folder, output=output))
        _run(comm, options, work, _Place(folder=folder, output=output))
    return output


def _run(comm: MPI.Intracomm, options: Options, work: Work, place: _Place) -> None:
    environment = describe(comm, place.folder.parent, _versions(work))
    console = _console() if comm.rank == 0 else None
    if console:
        print_heading(console, environment, work.notes)
    failure: BenchError | None = None
    rows: list[Row] = []

    def keep() -> None:
        if comm.rank == 0:
            write_document(
                place.output,
                environment=environment,
                configuration=configuration(options, replace(work, cases=tuple(schedule.cases))),
                rows=with_ratios(rows),
                absent=work.absent,
                failure="the bench had not ended when this was written",
                final=False,
            )

    with progress_of_rank_0(comm, options.progress, work.runs * options.repetitions, about=options.budget_s > 0) as bar:
        advance = within_budget(bar, once=work.runs, most=work.runs * options.repetitions, budget_s=options.budget_s)
        runner = _runner(comm, options, work, place.folder, keeping(advance, keep))
        rows = runner.rows
        schedule = _schedule(options, work, runner, advance)
        try:
            schedule.run()
        except BenchError as caught:
            failure = caught

    def finish() -> None:
        assert console is not None
        _clean(place.folder, failure)
        absent = (*work.absent, *(_missing(schedule) if failure is None else []))
        done = replace(work, cases=tuple(schedule.cases), absent=absent)
        _write(console, options, done, place.output, environment=environment, rows=with_ratios(rows), failure=failure)

    on_rank_0(comm, finish)
    if failure is not None:
        raise failure


# ---- the results; all on rank 0 ----


def _write(
    console: Console,
    options: Options,
    work: Work,
    output: Path,
    *,
    environment: dict[str, Any],
    rows: list[Row],
    failure: BenchError | None,
) -> None:
    """Print the table and write all results."""
    summaries = measure(rows)
    if rows:
        print_table(console, summaries)
    print_absent(console, work.absent)
    paths = write_results(
        output,
        environment=environment,
        configuration=configuration(options, work),
        rows=rows,
        absent=work.absent,
        failure=str(failure) if failure else None,
    )
    if options.plot:
        paths += plot_ratios(summaries, output)
    if options.suite is not None:
        paths += write_surroundings(output, options.suite, environment)
    page = write_page(console, output, _title(options)) if options.report and rows else None
    paths.append(output / "table.txt")
    print_worth(console, summaries)
    console.print(f"results: {', '.join(path.name for path in paths)} in {output}", highlight=False, soft_wrap=True)
    if page is not None:
        console.print(f"report: {page}", highlight=False, soft_wrap=True)
    console.save_text(str(output / "table.txt"))
