"""``mpirun -n 4 python -m mpiio_ext.bench``: arguments, exit status and messages; rank 0 speaks for all."""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from typing import NoReturn

import click

from mpiio_ext.bench.bench import run_bench
from mpiio_ext.bench.errors import EXIT_USAGE, BenchError
from mpiio_ext.bench.options import Options, command
from mpiio_ext.bench.terminal import launch_rank

__all__ = ["main"]


def _leave(status: int, message: str) -> NoReturn:
    """Let rank 0 say why, then end every rank with the same status.

    A launcher kills the other ranks as soon as one ends with an error, so rank 0 speaks before any rank ends.
    """
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 0:
        print(f"mpiio_ext.bench: {message}", file=sys.stderr, flush=True)
    MPI.COMM_WORLD.Barrier()
    MPI.Finalize()
    sys.exit(status)


def _parse(arguments: list[str]) -> Options:
    """Return the options; ends the process after --help or a wrong argument."""
    silent = contextlib.redirect_stdout(io.StringIO()) if launch_rank() else contextlib.nullcontext()
    try:
        with silent:
            options = command.main(args=arguments, prog_name="python -m mpiio_ext.bench", standalone_mode=False)
    except click.ClickException as error:
        text = " ".join(error.format_message().split())
        _leave(EXIT_USAGE, f"{text} (--help lists the options)")
    if not isinstance(options, Options):
        sys.exit(0)
    return options


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["compare"]:  # launches MPI programs and is none itself
        from mpiio_ext.bench.compare import command as compare

        compare.main(args=arguments[1:], prog_name="python -m mpiio_ext.bench compare")
    if arguments[:1] == ["scaling"]:
        from mpiio_ext.bench.scaling import command as scaling

        scaling.main(args=arguments[1:], prog_name="python -m mpiio_ext.bench scaling")
    options = _parse(arguments)
    from mpi4py import MPI

    try:
        run_bench(MPI.COMM_WORLD, options)
    except BenchError as error:
        _leave(error.exit_status, str(error))
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)


if __name__ == "__main__":
    main()
