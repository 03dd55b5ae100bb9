"""``mpirun -n 4 mpiio-ext bench``: arguments, exit status and messages; rank 0 speaks for all."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from mpiio_ext.common.commands import suggesting
from mpiio_ext.common.extras import MissingExtraError, needing
from mpiio_ext.common.printing import echo, make_console

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # before the long imports, which ranks should not end by a traceback
try:
    with needing("bench", "the bench"):
        from mpiio_ext.bench.asked import Options
        from mpiio_ext.bench.bench import run_bench
        from mpiio_ext.bench.errors import EXIT_USAGE, BenchError
        from mpiio_ext.bench.interrupted import all_is_done, end_on_interrupt
        from mpiio_ext.bench.options import command
        from mpiio_ext.bench.terminal import launch_rank, terminal_width
except MissingExtraError as _error:
    if __name__ != "__main__":
        raise
    echo(f"mpiio-ext: {_error}", err=True)
    raise SystemExit(_error.exit_status) from None

if TYPE_CHECKING:
    from mpi4py import MPI

Kind = TypeVar("Kind")


def _leave(status: int, message: str, comm: MPI.Intracomm | None = None) -> NoReturn:
    """Let rank 0 print the reason, then end every rank of `comm` (None: of the launch) with the same status.

    A launcher kills the other ranks as soon as one ends with an error, so rank 0 speaks before any rank ends.
    """
    from mpi4py import MPI

    comm = MPI.COMM_WORLD if comm is None else comm
    if comm.rank == 0:
        echo(f"mpiio-ext: {message}", err=True)
    comm.Barrier()
    all_is_done()
    MPI.Finalize()
    sys.exit(status)


def _leave_without_mpi(status: int, message: str) -> NoReturn:
    """As `_leave`, where MPI is not to be started."""
    if not launch_rank():
        echo(f"mpiio-ext: {message}", err=True)
    sys.exit(status)


def _parse(which: click.Command, arguments: list[str], kind: type[Kind]) -> Kind:
    """Return the options, of a kind; ends the process after --help or a wrong argument."""
    silent = contextlib.redirect_stdout(io.StringIO()) if launch_rank() else contextlib.nullcontext()
    try:
        with silent, suggesting():
            options = which.main(args=arguments, prog_name=which.name, standalone_mode=False)
    except click.ClickException as error:
        text = " ".join(error.format_message().split()) + " (--help lists the options)"
        if {"--dry-run", "--list"} & set(arguments):
            _leave_without_mpi(EXIT_USAGE, text)
        _leave(EXIT_USAGE, text)
    if not isinstance(options, kind):
        sys.exit(0)
    return options


def _preview(options: Options) -> NoReturn:
    """Print the plan, or the list, without MPI; if a launcher started several processes, the first one prints."""
    if launch_rank():
        sys.exit(0)
    import mpi4py

    mpi4py.rc.initialize = False  # to ask h5py and the others whether they are there imports mpi4py.MPI

    from mpiio_ext.bench.preview import launch_ranks, print_kernels, print_plan
    from mpiio_ext.bench.work import plan

    width = terminal_width(1)
    console = make_console(force_terminal=width is not None, no_color=width is None or None, width=max(width or 0, 132))
    ranks = launch_ranks(options)
    if options.list_kernels:
        print_kernels(console, options, ranks)
        sys.exit(0)
    try:
        print_plan(console, options, plan(options, ranks), ranks)
    except BenchError as error:
        _leave_without_mpi(error.exit_status, str(error))
    sys.exit(0)


def _collect_logs(comm_rank: int, options: Options, output: Path, started: datetime.datetime) -> None:
    """End MPI, upon which Darshan writes its log, and store the log beside the results of a suite."""
    from mpi4py import MPI

    from mpiio_ext.bench.suites.archive import collect_darshan

    MPI.Finalize()
    if comm_rank == 0 and options.suite is not None:
        for path in collect_darshan(output, started):
            echo(f"Darshan log: {path}")


@contextlib.contextmanager
def _hints_of_the_job(hints: Mapping[str, str]) -> Iterator[None]:
    """Set hints of all delegates in the environment, where ranks that become delegates read them, for a while."""
    from mpiio_ext.bench.methods import OF_THE_JOB
    from mpiio_ext.hints import quote

    before = os.environ.get("MPIOX_HINTS")
    ours = [f"{name}={quote(value)}" for name, value in hints.items() if name in OF_THE_JOB and name != OF_THE_JOB[0]]
    if ours:  # what the user has set comes later, and is stronger
        os.environ["MPIOX_HINTS"] = ",".join(["*:" + ":".join(ours), *([before] if before else [])])
    try:
        yield
    finally:
        if before is not None:
            os.environ["MPIOX_HINTS"] = before
        else:
            os.environ.pop("MPIOX_HINTS", None)


def _program_ranks(mode: str, delegates: str, hints: Mapping[str, str]) -> MPI.Intracomm | None:
    """Return the communicator of the ranks that measure; None on ranks that have served as delegates."""
    from mpi4py import MPI

    if mode != "split" or delegates == "0":
        return MPI.COMM_WORLD
    from mpiio_ext.delegates import split

    if not delegates.isdigit():
        _leave(EXIT_USAGE, "--delegate-mode split: --delegates must be a number of ranks")
    if int(delegates) >= MPI.COMM_WORLD.size:
        _leave(
            EXIT_USAGE, f"--delegate-mode split: {delegates} of {MPI.COMM_WORLD.size} ranks leave none to measure with"
        )
    with _hints_of_the_job(hints):
        return split(MPI.COMM_WORLD, int(delegates))


def _explore(arguments: list[str]) -> None:
    """Run ``explore``, an MPI program too, with options of its own."""
    from mpiio_ext.bench.explore.command import command as explore_command
    from mpiio_ext.bench.explore.explore import Options as ExploreOptions
    from mpiio_ext.bench.explore.explore import explore

    options = _parse(explore_command, arguments, ExploreOptions)
    comm = _program_ranks(options.delegate_mode, str(options.most), options.job_hints)
    if comm is not None:
        _carry_out(comm, lambda: explore(comm, options))


def _carry_out(comm: MPI.Intracomm, action: Callable[[], Path]) -> Path:
    """Return the block's result; if it fails, end the process on all ranks."""
    from mpi4py import MPI

    try:
        output = action()
    except BenchError as error:
        _leave(error.exit_status, str(error), comm)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)
        raise
    all_is_done()
    return output


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "explore":
        end_on_interrupt()
        _explore(arguments[1:])
        return
    if arguments and arguments[0] in command.list_commands(click.Context(command)):
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # no MPI program: it ends its own launches
        command.main(args=arguments, prog_name=command.name)
    end_on_interrupt()
    options: Options = _parse(command, arguments, Options)
    if options.dry_run or options.list_kernels:
        _preview(options)
    started = datetime.datetime.now().astimezone()
    served = next((method for method in options.methods if method.delegated), None)
    hints = {**options.hints, **(served.job_hints if served is not None else {})}
    comm = _program_ranks(options.delegate_mode, options.delegates if served is not None else "0", hints)
    if comm is None:
        return
    output = _carry_out(comm, lambda: run_bench(comm, options))
    _collect_logs(comm.rank, options, output, started)


command.program = main

if __name__ == "__main__":
    main()
