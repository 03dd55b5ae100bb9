"""``mpiio-ext trace``: record the I/O calls of an unchanged program."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import click

from mpiio_ext.cli.run import refuse_later, select_library, start
from mpiio_ext.cli.selection import only_option, selection, skip_option
from mpiio_ext.cli.words import program_argument
from mpiio_ext.common.commands import Command, output_option
from mpiio_ext.errors import FileSystemError
from mpiio_ext.launchers import is_rank, job_name, let_rank_0_speak

#: In the folder of a trace: the job that it is of.
_MARK = ".run"


@contextlib.contextmanager
def _folder(name: str) -> Iterator[str]:
    """Yield the absolute name of the folder, and create it if it does not exist; if the block ends, no program was run.

    Folders that were made for the trace go then.
    """
    path = Path(name).absolute()
    made = [each for each in (path, *path.parents) if not each.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if not let_rank_0_speak(os.environ):
            raise SystemExit(2) from error
        reason = "it is a file" if path.is_file() else error.strerror
        raise click.BadParameter(
            f"{path} cannot be made: {reason}; name a folder that every node can write to", param_hint="-o"
        ) from error
    _refuse_second_run(path)
    try:
        yield str(path)
    finally:
        with contextlib.suppress(OSError):
            if made and not any(path.glob("*.mpioxtrace")):
                (path / _MARK).unlink(missing_ok=True)
            for each in made:
                each.rmdir()


def _refuse_second_run(folder: Path) -> None:
    """End where the folder has traces of an earlier run: both would be read as one.

    Ranks of one run may find traces of each other; those whose launcher names the job leave that name in the folder.
    """
    job = job_name(os.environ)
    started = is_rank(os.environ)
    mark = folder / _MARK
    if started and not job:  # MPICH's launcher names no job
        return
    if any(folder.glob("*.mpioxtrace")) and not (started and mark.exists() and mark.read_text().strip() == job):
        if not let_rank_0_speak(os.environ):
            raise SystemExit(2)
        raise click.BadParameter(
            f"{folder} has traces of an earlier run: name another folder, or remove them", param_hint="-o"
        )
    if started:  # as a whole: another rank must not read a mark that is being written
        from mpiio_ext.common.files import write_whole

        try:
            write_whole(mark, f"{job}\n")
        except FileSystemError as error:
            if not let_rank_0_speak(os.environ):
                raise SystemExit(2) from error
            raise click.BadParameter(f"{error}; name a folder that every node can write to", param_hint="-o") from error


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@output_option(required=True, metavar="DIR", help="Folder for the trace: a file for each process.")
@click.option("--extension", is_flag=True, help="Put the extension under the program, too, as mpiio-ext run does.")
@click.option("--system-files", is_flag=True, help="Record files of the system and of MPI, too: /proc, libraries.")
@only_option
@skip_option
@click.option("--folders", is_flag=True, help="Record a Python program's reads of folders, too.")
@click.option("--dry-run", is_flag=True, help="Print what would be executed and exit.")
@program_argument
def trace(
    output: str,
    extension: bool,
    system_files: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    folders: bool,
    dry_run: bool,
    command: tuple[str, ...],
) -> None:
    """Run PROGRAM, an unchanged program or an MPI launcher, and record its MPI-IO, POSIX and stdio calls.

    Both ways work:

    \b
      mpirun -n 4 mpiio-ext trace -o DIR -- ./app
      mpiio-ext trace -o DIR -- mpirun -n 4 ./app

    A GLOB is compared with the absolute name of a file; * stands for slashes, too. Calls of MPI are always recorded.

    Exit status: that of PROGRAM; 2 an argument, hint or file cannot be used, 126 PROGRAM cannot be executed, 127 there
    is none. Before a launcher or a program: 125 if PROGRAM has succeeded, but no process of it has loaded mpiio_ext.
    """  # noqa: D301  (click wants the backspace character itself)
    import mpiio_ext
    from mpiio_ext._load import get_tracer

    refuse_later(command)
    made = contextlib.nullcontext(str(Path(output).absolute())) if dry_run else _folder(output)
    with made as folder:
        settings = {"MPIOX_TRACE_DIR": folder}
        if system_files:
            settings["MPIOX_TRACE_SYSTEM_FILES"] = "1"
        if folders:
            settings["MPIOX_TRACE_FOLDERS"] = "1"
        settings |= selection(only, skip)
        select_library(command)
        libraries = [str(get_tracer())] + ([str(mpiio_ext.get_library())] if extension else [])
        if dry_run or is_rank(os.environ):
            start(command, ":".join(libraries), settings, dry_run=dry_run)
            return
        from mpiio_ext.cli.logged import accompany_trace  # not for each rank

        start(
            command,
            ":".join(libraries),
            settings,
            dry_run=False,
            by=lambda launch: accompany_trace(launch, Path(folder), command),
        )
