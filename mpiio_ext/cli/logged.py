"""``mpiio-ext run --darshan FILE``: run a program under the tracer, and make a Darshan log of the trace.

Problem. The log can be made only when every rank has ended, however it ended: a launcher that kills a job kills what it
has started, and a batch system gives little time.

Algorithm. Each rank traces into a folder beside the log. One process, which is rank 0's or the one that has started the
launcher, stays beside the program and leaves with its exit status. Before that it has forked a writer, in a session of
its own, which no launcher knows. The writer waits on a pipe until the program has ended or its companion was killed,
then until the traces on this host have no living process, makes the log, and removes the traces. The other ranks become
the program, as without a log.

Guarantees. When the command, or the launcher outside of it, returns after a run that succeeded, the log is there whole,
or one line on standard error has said why not. After a run that failed within a launcher the log is there seconds
later. A log of ranks that were killed says what lacks. Nothing of this is done, or imported, in a run without a log.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import os
import resource
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click

from mpiio_ext.common.extras import MissingExtraError
from mpiio_ext.common.files import check_target
from mpiio_ext.errors import FileSystemError, MpiioExtError
from mpiio_ext.launchers import RANK_VARIABLES, Launch, job_name, launched_rank, let_rank_0_speak

#: So long a trace on another host may still be without its end, once those on this host have theirs; and so long the
#: companion of rank 0 waits for the other ranks: one that has left without MPI_Finalize must not keep them.
_OTHERS_S = 10.0
#: Between two looks at the traces.
_LOOK_S = 0.05
#: Leftovers of a killed run that are older go; those that are younger may be of another rank of this one.
_LEFTOVER_S = 60.0
_FORWARDED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
#: The terminal sends these to the program as well.
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def _check(target: Path) -> None:
    """Refuse a log that could not be made in the end: the run may take hours."""
    check_target(target, example="run.darshan")
    for package in ("darshan", "numpy", "pyarrow"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError("`run --darshan`", package, "pioneer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A Darshan log to be made.

    Attributes
    ----------
    target : the log.
    folder : of the traces; the same for all ranks of a run.
    inside : this is a rank, not what starts the launcher.
    writes : this process is the one to write it.
    dxt : with every access.
    """

    target: Path
    folder: Path
    inside: bool
    writes: bool
    dxt: bool

    @classmethod
    def at(cls, target: Path, *, dxt: bool) -> Log:
        """Return what this process has to do for a log; nothing is made yet."""
        inside = any(name in os.environ for name in RANK_VARIABLES)
        mark = hashlib.sha256(job_name(os.environ).encode()).hexdigest()[:16] if inside else secrets.token_hex(8)
        folder = target.with_name(f".{target.name[:40]}.{mark}.traces")
        return cls(target=target, folder=folder, inside=inside, writes=launched_rank(os.environ) == 0, dxt=dxt)

    def prepare(self) -> None:
        """Make the folder of traces; a log that could not be made in the end is refused, since runs take hours.

        Raises
        ------
        FileSystemError, MissingExtraError
            The log could not be written.
        """
        try:
            _check(self.target)
            _make(self.folder)
        except MpiioExtError:
            if let_rank_0_speak(os.environ):
                raise
            raise SystemExit(2) from None
        if self.writes:
            for left in self.folder.glob("*.mpioxtrace"):
                if left.stat().st_mtime < time.time() - _LEFTOVER_S:
                    left.unlink()

    def accompany(self, launch: Launch) -> NoReturn:
        """Start the program and the writer, wait for both, and end as the program has ended."""
        _accompany(launch, self)


def _make(folder: Path) -> None:
    """Make the folder unless another rank has: its name can be guessed, so it must be no link, and ours."""
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = folder.lstat()
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be made: {error.strerror}", str(folder)) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise FileSystemError(errno.EEXIST, "is in the way of the traces: it is no folder of yours", str(folder))


def _accompany(launch: Launch, log: Log) -> NoReturn:
    sys.stdout.flush()
    theirs, ours = os.pipe()
    writer = os.fork()
    if writer == 0:
        os.close(ours)
        _write(theirs, log)
    os.close(theirs)
    try:
        program = subprocess.Popen(launch.arguments, env=launch.environment, close_fds=False)
    except OSError as error:
        os.write(ours, b"no\n")
        os.close(ours)
        os.waitpid(writer, 0)
        click.echo(f"mpiio-ext: cannot execute {launch.arguments[0]}: {error.strerror}", err=True)
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from error
    for number in _FORWARDED:
        signal.signal(number, lambda number, _frame: program.send_signal(number))
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.write(ours, f"{program.pid}\n".encode())
    status = program.wait()
    os.write(ours, b"ended\n")
    os.close(ours)
    # A launcher ends the other ranks of one that has failed when that has left.
    until = time.monotonic() + (_OTHERS_S if status == 0 else 0.0)
    while os.waitpid(writer, os.WNOHANG if log.inside else 0)[0] == 0 and time.monotonic() < until:
        time.sleep(_LOOK_S)
    _leave(status)


def _leave(status: int) -> NoReturn:
    """End with an exit status, or by the signal that has ended the program."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)


# ---- the writer ------------------------------------------------------------------------------------------------------


def _write(pipe: int, log: Log) -> NoReturn:
    """Be the writer: wait for the end of the run, and make the log."""
    try:
        os.setsid()
        for number in (*_FORWARDED, *_IGNORED):
            signal.signal(number, signal.SIG_IGN)
        os.closerange(3, pipe)  # what a rank has from its launcher, who may wait for its end
        os.closerange(pipe + 1, max(pipe + 1, 1024))
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        words = b"".join(iter(lambda: os.read(pipe, 256), b"")).split()
        if words[:1] != [b"no"]:
            _log(words, log)
    except MpiioExtError as error:
        click.echo(f"mpiio-ext: no Darshan log: {error}", err=True)
    except BaseException as error:  # nobody else would say so
        with contextlib.suppress(OSError):
            click.echo(f"mpiio-ext: no Darshan log: {type(error).__name__}: {error}", err=True)
    finally:
        shutil.rmtree(log.folder, ignore_errors=True)
        os._exit(0)


def _log(words: list[bytes], log: Log) -> None:
    from mpiio_ext.pioneer.darshan.convert import convert

    killed = words[-1:] != [b"ended"]
    if killed and words:
        while _lives(int(words[0])):
            time.sleep(_LOOK_S)
    _settle(log.folder, _OTHERS_S if log.inside or killed else 0.0)
    missing = "mpiio-ext was killed before the program had ended" if killed else ""
    written = convert(log.folder, log.target, dxt=log.dxt, missing=missing)
    for line in written.lacks:
        click.echo(f"mpiio-ext: {log.target}: {line}", err=True)
    count = f"{written.processes} process{'es' if written.processes != 1 else ''}"
    records = f"{written.records} record{'s' if written.records != 1 else ''}"
    click.echo(f"mpiio-ext: wrote {log.target}: {count}, {records}", err=True)


def _lives(pid: int) -> bool:
    """Return whether a process of this host lives; one that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


def _settle(folder: Path, others_s: float) -> None:
    """Wait until every trace has its end, or no process that could write it; `others_s` for those on other hosts."""
    from mpiio_ext.pioneer.readers import own

    here, until = os.uname().nodename, time.monotonic() + others_s
    while True:
        began_s = time.monotonic()
        heads = own.heads([folder])
        there = {head.rank for head in heads if head.rank >= 0}
        open_here = [head for head in heads if head.running and head.host == here and _lives(head.pid)]
        open_there = [head for head in heads if head.running and head.host != here]
        lacking = bool(heads) and len(there) < max(head.ranks for head in heads)
        if not open_here and (not (open_there or lacking) or time.monotonic() > until):
            return
        if open_here:
            until = time.monotonic() + others_s
        time.sleep(max(_LOOK_S, time.monotonic() - began_s))  # thousands of ranks
