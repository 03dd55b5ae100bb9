"""``mpiio-ext doctor``: check whether the library works here and under a program, and print remedies if it does not."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.cli.words import complete_command
from mpiio_ext.common.commands import Command, json_option
from mpiio_ext.common.options import Duration
from mpiio_ext.common.printing import echo

if TYPE_CHECKING:
    from mpiio_ext.doctor import Finding
    from mpiio_ext.doctor.children import Answer
    from mpiio_ext.doctor.mpi import Job

#: In front of what rank 0 of a launcher's ranks prints for the command that has started the launcher.
_MARK = "mpiio_ext doctor: "
#: How much longer than a question the launcher may take.
_STARTING_S = 15.0
#: How long a rank that has not reached MPI stays: its end must not end the job.
_WITHOUT_MPI_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """The options of the command line."""

    path: Path
    timeout_s: float
    write: bool
    spawn: bool
    command: tuple[str, ...]


def _end_of_job(*_: object) -> None:
    from mpiio_ext.doctor.children import JobEnded

    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise JobEnded


def _examine(wish: _Wish, job: Job) -> Iterator[Finding]:
    """Yield all findings: first those of the program, then those of one process, then those of the job."""
    from mpiio_ext._load import get_library, select
    from mpiio_ext.doctor import mpi, program, software, storage
    from mpiio_ext.doctor.findings import bad
    from mpiio_ext.errors import LoadError

    environment, limit_s = dict(os.environ), wish.timeout_s
    words, launcher = program.program_of(wish.command)
    try:
        try:
            why = select([launcher, *words] if launcher else words)
        except LoadError as error:  # no library of the wheel is for the program's MPI
            yield bad("program.mpi", str(error), "`mpiio-ext help howto/install`, from source", abi=None)
            why, wish = select(()), replace(wish, command=())
        library = get_library()
    except LoadError as error:
        yield bad("library", str(error), "build or install mpiio_ext: `mpiio-ext help howto/install`")
        return
    examined = program.examine(wish.command, library, environment, limit_s) if wish.command else []
    yield from examined
    own = mpi.examine_library(library, environment, limit_s, why)
    yield from own.findings
    facts = next((item.facts for item in examined if item.key == "program.mpi"), {})
    theirs = facts if facts.get("abi") else {}  # a program in Python has the MPI of its mpi4py
    gets = theirs.get("library", own.mpi)  # two installations may have libraries of one name
    yield mpi.launcher(own.family, environment, limit_s, launcher, bool(own.part), gets)
    yield from software.variables(environment)
    yield program.preloaded(environment)
    yield software.hints(environment, limit_s)
    yield from storage.examine(wish.path, environment, limit_s)
    yield storage.shm(environment)
    yield from software.gpus(gets, environment, limit_s)
    yield from software.versions(environment, limit_s)
    yield from _of_job(wish, job, own.family, theirs)


def _answer(wish: _Wish, job: Job) -> Answer:
    """Let a child be this process' rank of the job.

    Rank 0 has the shortest time limit, so that it can report the event.
    """
    from mpiio_ext.doctor.children import ask, pause

    limit_s = wish.timeout_s + (0 if job.rank == 0 else 5)
    words = (str(wish.path), str(int(wish.write)), str(int(wish.spawn)))
    answer = ask("job", *words, limit_s=limit_s, inherit=job.launched)
    if job.rank != 0 and answer.trouble:  # the launcher may end the job when this rank leaves: rank 0 speaks first
        pause(wish.timeout_s if "version" in answer.values else min(wish.timeout_s, _WITHOUT_MPI_S))
    return answer


def _by_launcher(front: list[str], wish: _Wish) -> tuple[Answer, Job] | str:
    """Let a launcher start this command as its ranks; return the answer of rank 0, or the reason why there is none."""
    from mpiio_ext.common.children import run
    from mpiio_ext.doctor.children import Answer
    from mpiio_ext.doctor.mpi import Job

    options = ["--as-rank", "--path", str(wish.path), "--timeout", f"{wish.timeout_s:g}s"]
    options += [] if wish.write else ["--no-write"]
    options += [] if wish.spawn else ["--no-spawn"]
    command = [*front, sys.executable, "-m", "mpiio_ext", "doctor", *options]
    ended = run(command, limit_s=wish.timeout_s + _STARTING_S, job=True)
    lines = [line.partition(_MARK)[2] for line in ended.output.splitlines() if _MARK in line]
    if not lines:
        return ended.reason() or "they have printed nothing"
    answer, job = json.loads(lines[0])
    return Answer(**answer), Job(**job)


def _of_job(wish: _Wish, job: Job, family: str, program: Mapping[str, Any]) -> list[Finding]:
    """Return the findings of rank 0 of the job, or of the job that the launcher of the command line starts."""
    from mpiio_ext.doctor.findings import warn
    from mpiio_ext.doctor.job import examine_job
    from mpiio_ext.doctor.program import launch_of

    found: list[Finding] = []
    front = [] if job.launched else launch_of(wish.command)
    ranks = _by_launcher(front, wish) if front else ""
    if isinstance(ranks, tuple):
        answer, job = ranks
    else:
        if front:
            text = f"{' '.join(front)} has started no ranks that answer, only this process was examined: {ranks}"
            found.append(warn("job.started", text, "does the launcher start another program, such as hostname?"))
        answer = _answer(wish, job)
    return found + examine_job(answer, job, family, wish.write, wish.spawn, program)


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@click.option("--path", default=".", metavar="PATH", help="Where the program's files are; default: this folder.")
@json_option()
@click.option(
    "--timeout",
    "timeout_s",
    type=Duration(least=1),
    default="30s",
    show_default=True,
    help="How long a single question may take.",
)
@click.option("--no-write", is_flag=True, help="Write no test file by a collective.")
@click.option("--no-spawn", is_flag=True, help="Do not try MPI_Comm_spawn.")
@click.option("--as-rank", is_flag=True, hidden=True)
@click.argument(
    "command", nargs=-1, type=click.UNPROCESSED, metavar="[[--] PROGRAM [ARGS]...]", shell_complete=complete_command
)
def doctor(
    path: str, as_json: bool, timeout_s: float, no_write: bool, no_spawn: bool, as_rank: bool, command: tuple[str, ...]
) -> None:
    """Check whether the library works here, and under PROGRAM, and print what to do if it does not.

    PROGRAM is not run. The ranks of a launcher are compared, which may be in front of this command or of PROGRAM:

    \b
      mpiio-ext doctor -- ./app
      mpirun -n 2 mpiio-ext doctor --path /scratch/me
      mpiio-ext doctor -- srun -n 2 ./app

    ✓ is as it should be, ! works less well or not for everything, ✗ does not work. The exit status is 1 if there is a
    ✗, 2 for a wrong command line, else 0.
    """  # noqa: D301  (click wants the backspace character itself)
    from mpiio_ext.doctor import State, mpi, show, worst
    from mpiio_ext.doctor.children import JobEnded
    from mpiio_ext.doctor.findings import bad

    wish = _Wish(path=Path(path), timeout_s=timeout_s, write=not no_write, spawn=not no_spawn, command=command)
    job = mpi.job_of(os.environ)
    signal.signal(signal.SIGTERM, _end_of_job)
    if job.rank != 0 or as_rank:
        with contextlib.suppress(JobEnded):
            answer = _answer(wish, job)
            if job.rank == 0:
                echo(f"{_MARK}{json.dumps([asdict(answer), asdict(job)])}")
        return
    found: list[Finding] = []
    lines = show.Lines(sys.stdout, colors=not job.launched)
    if not as_json:
        lines.head(job.size)
    try:
        for item in _examine(wish, job):
            found.append(item)
            if not as_json:
                lines.add(item)
    except JobEnded:
        last = bad("job.ended", "the launcher has ended the job", "see its own messages")
        found.append(last)
        if not as_json:
            lines.add(last)
    if as_json:
        echo(json.dumps(show.as_json(found, job.size), indent=2))
    else:
        lines.end(found)
    if worst(found) is State.ERROR:
        raise SystemExit(1)
