"""``mpiio-ext run --darshan``, ``--timeline`` and ``--report``: record a run, and write these files from it.

Problem. These files can be written only after every rank has ended, however it ended. A launcher that kills a job kills
all processes that it has started, and a batch system gives little time.

Algorithm. Each rank records into a folder beside the first of these files. One process, which is rank 0's or the one
that has started the launcher, stays beside the program and ends with the exit status of the program. Before that the
process forks a writer, in a session of its own, which no launcher knows. The writer waits on a pipe until the program
has ended or its companion was killed, and then until all processes of this host that have recordings have ended. Then
it writes the requested files, and removes the folder. The other ranks become the program, as they do without a log. The
writer waits 10 s at most for processes that the program has left behind: processes that descend neither from the
program nor from its launcher.

Guarantees. If the command, or the launcher outside of it, returns after a successful run, the files are complete, or
one line on standard error has given the reason. After a run that failed within a launcher they are there seconds later.
The files name the data that killed ranks have not recorded. A folder of which no page could be made stays, and
``mpiio-ext report`` makes the page. Only the wait for the program has no bound. Nothing of this is done, or imported,
in a run without these options.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import importlib.util
import os
import resource
import secrets
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

from mpiio_ext.cli.endings import PASSED_ON, TERMINATED, Endings
from mpiio_ext.common.descriptors import let_go
from mpiio_ext.common.endings import OF_LAUNCHERS, Failure, failure_of, note_failure, signal_text
from mpiio_ext.common.extras import MissingExtraError, missing_here
from mpiio_ext.common.files import check_target, write_whole
from mpiio_ext.common.printing import echo
from mpiio_ext.common.recordings import (
    LOADED,
    NOT_LOADED,
    STATISTICS,
    launch_of,
    lives,
    note_launch,
    nothing_recorded,
    was_loaded,
)
from mpiio_ext.common.units import count_text
from mpiio_ext.errors import FileSystemError, MpiioExtError
from mpiio_ext.launchers import (
    Launch,
    ancestors,
    is_launcher_process,
    is_rank,
    job_name,
    launched_rank,
    let_rank_0_speak,
    process_name,
)

if TYPE_CHECKING:
    from mpiio_ext.pioneer.readers.own import Head

#: Longest time for which a trace on another host may lack its end, once those on this host have theirs; for which a
#: process that the program has left behind is waited for; and for which the companion of rank 0 waits for the other
#: ranks: a rank that ended without MPI_Finalize must not delay them.
_OTHERS_S = 10.0
#: Longest time for which the command waits for its files, if it has started the launcher.
_MAKING_S = 600.0
#: Time after which it prints what it waits for.
_PATIENT_S = 3.0
#: A log has all files, however many there are.
_WITHOUT_BOUND = {"MPIOX_RECORDING_BYTES": str(1 << 28), "MPIOX_RECORDING_NODE_BYTES": "0"}
#: Longest time for which it waits, if its rank has failed, until the writer has printed so.
_SAID_S = 0.5
#: Time between two checks of the traces.
_LOOK_S = 0.05
#: Leftovers of a killed run that are older go; those that are younger may be of another rank of this one.
_LEFTOVER_S = 60.0
#: Characters of the command of a process that is named.
_COMMAND = 80
_FORWARDED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_BY_LAUNCHERS = tuple(-number for number in OF_LAUNCHERS)
_BY_LAUNCHER = ", as launchers end all ranks when one has failed"
#: A terminal ends the launcher, and its ranks, beside mpiio-ext: so much later, at most, the report follows.
_SOON_NS = 10**9
#: The terminal sends these to the program as well.
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
#: Exit status of a command whose program has succeeded, without any process that has loaded the library.
NOTHING_LOADED = 125
_ENDING = (signal.SIGTERM, *_IGNORED)


class Result(Protocol):
    """A file to be made of a run.

    Attributes
    ----------
    target : the file.
    name, example : what it is, and what a file of it may be called.
    needs : the option that it is asked for by, the packages that it needs, and the extra that brings these.
    keeps : the recordings stay where it could not be made.
    """

    @property
    def target(self) -> Path: ...  # noqa: D102

    name: ClassVar[str]
    example: ClassVar[str]
    needs: ClassVar[tuple[str, tuple[str, ...], str]]
    keeps: ClassVar[bool]

    def make(self, folder: Path, missing: str) -> list[str]:
        """Make the file from a folder of recordings; return lines to print.

        `missing`: the data known to be missing in the files; it may be "".
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DarshanLog:
    """A Darshan log; `dxt`: with every access."""

    target: Path
    dxt: bool
    name: ClassVar[str] = "Darshan log"
    example: ClassVar[str] = "run.darshan"
    needs: ClassVar[tuple[str, tuple[str, ...], str]] = ("`run --darshan`", ("darshan", "numpy", "pyarrow"), "pioneer")
    keeps: ClassVar[bool] = False

    def make(self, folder: Path, missing: str) -> list[str]:
        """Make it."""
        from mpiio_ext.pioneer.darshan.convert import convert

        written = convert(folder, self.target, dxt=self.dxt, missing=missing or failure_of(folder).text())
        count = count_text(written.processes, "process", "processes")
        left = [f"left out: {written.left_out}; `--only GLOB` takes them"] * bool(written.left_out.operations)
        return [
            *(f"{self.target}: {line}" for line in [*written.lacks, *left]),
            f"wrote {self.target}: {count}, {count_text(written.records, 'record')}",
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A page about the run; `command`: the program, if it is known."""

    target: Path
    command: tuple[str, ...] = ()
    name: ClassVar[str] = "page"
    example: ClassVar[str] = "report.html"
    needs: ClassVar[tuple[str, tuple[str, ...], str]] = (
        "`run --report`",
        ("darshan", "jinja2", "markdown_it", "matplotlib", "numpy", "pyarrow"),
        "analytics",
    )
    keeps: ClassVar[bool] = True

    def make(self, folder: Path, missing: str) -> list[str]:
        """Make it."""
        from mpiio_ext.analytics.run.gather import of_folder

        return self.write(of_folder(folder, missing=missing, command=shlex.join(self.command)))

    def write(self, document: Mapping[str, Any]) -> list[str]:
        """Write the page of a document; return lines to print."""
        from mpiio_ext.analytics.run.page import page

        write_whole(self.target, page(document))
        lines = (*document["at_end"], *document["lacks"], *document["notices"])
        return [*(f"{self.target}: {line}" for line in lines), f"wrote {self.target}: {document['sentence']}"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A time line for Perfetto."""

    target: Path
    name: ClassVar[str] = "time line"
    example: ClassVar[str] = "run.pftrace"
    needs: ClassVar[tuple[str, tuple[str, ...], str]] = ("`run --timeline`", ("numpy", "pyarrow"), "pioneer")
    keeps: ClassVar[bool] = False

    def make(self, folder: Path, missing: str) -> list[str]:
        """Make it."""
        from mpiio_ext.pioneer.readers import own
        from mpiio_ext.pioneer.timeline import write_timeline

        if not own.recognizes(folder):
            raise MpiioExtError(nothing_recorded(folder))
        written = write_timeline([folder], self.target)
        known = (missing, failure_of(folder).text(), written.info.left_out)
        lacks = [*filter(None, known), *written.lacks(), *written.notes]
        return [*(f"{self.target}: {line}" for line in lacks), f"wrote {self.target}: {written.text()}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A run that is recorded.

    Attributes
    ----------
    results : what is made of it, at least one.
    folder : of the recordings; the same for all ranks of a run.
    inside : this is a rank, not what starts the launcher.
    writes : this process is the one to make the results.
    """

    results: Sequence[Result]
    folder: Path
    inside: bool
    writes: bool

    @classmethod
    def of(cls, results: Sequence[Result]) -> Recording:
        """Return the work of this process for these files; the function writes nothing yet."""
        inside = is_rank(os.environ)
        mark = hashlib.sha256(job_name(os.environ).encode()).hexdigest()[:16] if inside else secrets.token_hex(8)
        first = results[-1].target
        folder = first.with_name(f".{first.name[:40]}.{mark}.run")
        return cls(results=results, folder=folder, inside=inside, writes=launched_rank(os.environ) == 0)

    @property
    def _for_a_page(self) -> bool:
        return any(result.keeps for result in self.results)

    def settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which the tracer and the library know where to record, and how much.

        `given`: the files that options of the command request.
        """
        logs = [result for result in self.results if isinstance(result, DarshanLog)]
        common = {"MPIOX_TRACE_DIR": str(self.folder)}
        traced = any(log.dxt for log in logs) or any(isinstance(result, Timeline) for result in self.results)
        common["MPIOX_TRACE_MODE"] = "trace" if traced else "recording"
        if logs and not traced:
            common |= _WITHOUT_BOUND
        if not self._for_a_page:
            return common
        skip = given.get("MPIOX_TRACE_SKIP") or os.environ.get("MPIOX_TRACE_SKIP", "")
        return {
            **common,
            "MPIOX_REPORT_STATS": str(self.folder / STATISTICS),
            "MPIOX_TRACE_SKIP": "\n".join([*([skip] if skip else []), f"{self.folder}/*"]),
            "MPIOX_REPORT": "",
        }

    def selects(self, variables: Mapping[str, str]) -> bool:
        """Return whether the variables of the program select files for the user."""
        skipped = set(variables.get("MPIOX_TRACE_SKIP", "").split("\n")) - {"", f"{self.folder}/*"}
        return bool(variables.get("MPIOX_TRACE_ONLY") or skipped)

    def prepare(self) -> None:
        """Make the folder; refuse a file that could not be written at the end, since runs take hours.

        Raises
        ------
        FileSystemError, MissingExtraError
            A file could not be written.
        """
        try:
            for result in self.results:
                check_target(result.target, example=result.example)
                what, packages, extra = result.needs
                for package in packages:
                    if importlib.util.find_spec(package) is None:
                        raise MissingExtraError(what, package, extra)
            _make(self.folder)
        except MpiioExtError:
            if let_rank_0_speak(os.environ):
                raise
            raise SystemExit(2) from None
        if self.writes:
            for left in self.folder.iterdir():
                if left.is_file() and (left.name == STATISTICS or left.stat().st_mtime < time.time() - _LEFTOVER_S):
                    left.unlink()

    def stays(self) -> str:
        """Return the line that names the place of the recordings; "" if no page is to be made of the recordings."""
        if not self._for_a_page:
            return ""
        return f"the recordings stay: mpiio-ext report {shlex.quote(str(self.folder))} -o FILE.html"

    def names(self) -> str:
        """Return the files, in words."""
        return " and ".join(str(result.target) for result in self.results)

    def announce(self, failure: Failure | None = None) -> None:
        """Announce that the results come later: once a launcher has ended, the writer has no terminal."""
        coming = self.names()
        why = "" if failure is None else f"{failure.reason()}; "
        with contextlib.suppress(OSError):
            os.write(2, f"mpiio-ext: {why}{coming}: made when all ranks have ended, in some seconds\n".encode())

    def failed(self, failure: Failure | None) -> None:
        """Announce the failure of a rank inside a launcher, while the launcher lives."""
        if self.inside:
            self.announce(failure)

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
        raise FileSystemError(errno.EEXIST, "is in the way of the recordings: it is no folder of yours", str(folder))


def _accompany(launch: Launch, recording: Recording) -> NoReturn:
    sys.stdout.flush()
    theirs, ours = os.pipe()
    endings = Endings(recording.folder)  # before any rank can come
    launcher = next((pid for pid in ancestors(os.getpid()) if is_launcher_process(process_name(pid))), 0)
    note_launch(recording.folder, time.time_ns(), selects=recording.selects(launch.environment))
    writer = os.fork()
    if writer == 0:
        os.close(ours)
        _write(theirs, recording, endings, launcher)
    os.close(theirs)
    endings.close()
    try:
        program = subprocess.Popen(launch.arguments, env=launch.environment, close_fds=False)
    except OSError as error:
        os.write(ours, b"no\n")
        os.close(ours)
        os.waitpid(writer, 0)
        echo(f"mpiio-ext: cannot execute {launch.arguments[0]}: {error.strerror}", err=True)
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from error

    def forward(number: int, _frame: object) -> None:
        message = b"%s %s%d\n" % (TERMINATED if recording.inside else b"", PASSED_ON, number)
        if number in _ENDING:  # by a launcher, which soon kills, and ends; by a batch system; by a user
            with contextlib.suppress(OSError):
                os.write(ours, message)
        if number in _FORWARDED:
            program.send_signal(number)

    for number in (*_FORWARDED, *_IGNORED):
        signal.signal(number, forward)
    with contextlib.suppress(BrokenPipeError):  # the writer may be killed, too
        os.write(ours, f"{program.pid}\n".encode())
    status = program.wait()
    with contextlib.suppress(BrokenPipeError):
        os.write(ours, (TERMINATED if status else b"") + f"\nended {status}\n".encode())
    os.close(ours)
    ended = _wait_inside(writer, status) if recording.inside else _wait_outside(writer, recording)
    if ended is None and (status == 0 or not recording.inside):
        recording.announce()
    elif status == 0 and ended is not None and os.WIFEXITED(ended) and not recording.inside:
        status = os.WEXITSTATUS(ended)
    elif ended is not None and os.WIFSIGNALED(ended) and (stays := recording.stays()):
        echo(f"mpiio-ext: no page: its writer was killed\nmpiio-ext: {stays}", err=True)
    _leave(status)


def accompany_trace(launch: Launch, folder: Path, command: Sequence[str]) -> NoReturn:
    """Start a launcher, or a program by itself, whose processes trace into a folder; end as it has ended.

    If the program has succeeded, and no process has loaded the library, print so and end with `NOTHING_LOADED`.
    """
    sys.stdout.flush()
    (folder / LOADED).unlink(missing_ok=True)  # of an earlier run that has left no trace
    program = subprocess.Popen(launch.arguments, env=launch.environment, close_fds=False)

    def forward(number: int, _frame: object) -> None:
        if number in _FORWARDED:  # the terminal sends the others to the program as well
            program.send_signal(number)

    for number in (*_FORWARDED, *_IGNORED):
        signal.signal(number, forward)
    status = program.wait()
    if status == 0 and not was_loaded(folder):
        _print(f"{folder}: no trace: {NOT_LOADED}; `mpiio-ext doctor -- {shlex.join(command)}` finds the reason")
        status = NOTHING_LOADED
    _leave(status)


def _wait_inside(writer: int, status: int) -> int | None:
    """Wait for the writer as long as the other ranks and the launcher may wait for this rank.

    Return the writer's exit status in the form of `os.waitpid`; None if the writer still works. `status`: of the
    program.
    """
    # A launcher ends the other ranks of one that has failed when that has left.
    until = time.monotonic() + (_OTHERS_S if status == 0 else _SAID_S)
    while (left := os.waitpid(writer, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return left[1] if left[0] else None


def _wait_outside(writer: int, recording: Recording) -> int | None:
    """Wait for the writer, 10 minutes at most, or until a signal: it works on. Returns as `_wait_inside` does."""
    began, prints = time.monotonic(), os.isatty(2)

    def leave(_number: int, _frame: object) -> None:
        nonlocal began
        began = -_MAKING_S

    for number in _ENDING:
        signal.signal(number, leave)
    while (passed := time.monotonic() - began) < _MAKING_S:
        if (left := os.waitpid(writer, os.WNOHANG))[0]:
            return left[1]
        if prints and passed > _PATIENT_S:
            prints = False
            _print(f"makes {recording.names()}; after Ctrl-C it does so in the background")
        time.sleep(min(_LOOK_S, 0.002 + passed / 20))
    return None


def _leave(status: int) -> NoReturn:
    """End with an exit status, or by the signal that has ended the program.

    Close Hydra's connection first. If Hydra detects the end of a process before the end of its connection, Hydra
    assumes that the rank has finished, and the other ranks wait for that rank for ever.
    """
    with contextlib.suppress(KeyError, ValueError, OSError):
        os.close(int(os.environ["PMI_FD"]))
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)


# ---- the writer ------------------------------------------------------------------------------------------------------


def _write(pipe: int, recording: Recording, endings: Endings, launcher: int) -> NoReturn:
    """Act as the writer: wait for the end of the run, and write the results; `launcher`: as of `_results`.

    Ends with `NOTHING_LOADED` where no process has loaded the library.
    """
    status = 0
    try:
        os.setsid()
        for number in (*_FORWARDED, *_IGNORED):
            signal.signal(number, signal.SIG_IGN)
        # Descriptors that a rank has from its launcher, which may wait for their end.
        let_go({0, 1, 2, pipe, *endings.descriptors()})
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        words = endings.wait(pipe, recording.failed)
        if words[:1] == [b"no"]:
            shutil.rmtree(recording.folder, ignore_errors=True)
        else:
            missing_here("pandas")  # PyArrow imports it where it is installed: 0.2 s
            status = 0 if was_loaded(recording.folder) else NOTHING_LOADED
            _results(words, recording, endings, launcher)
    finally:
        os._exit(status)


def _results(words: list[bytes], recording: Recording, endings: Endings, launcher: int = 0) -> None:
    """Make the requested files, and remove the recordings unless they are needed.

    `launcher`: the process above all ranks of this host; 0: unknown.
    """
    ended_ns, killed = time.time_ns(), words[-2:-1] != [b"ended"]
    if killed and words:
        while lives(int(words[0])):
            time.sleep(_LOOK_S)
    missing, settled, kept = "", False, False
    for result in recording.results:
        try:
            if not settled:
                others_s = _OTHERS_S if recording.inside or killed else 0.0
                missing = _settle(recording.folder, others_s, launcher if recording.inside else None)
                failure = _failure(None if killed else int(words[-1]), recording, endings, ended_ns)
                if (started_ns := launch_of(recording.folder)[0]) is not None:
                    note_launch(recording.folder, started_ns, max([ended_ns, *failure.ends.values()]))
                note_failure(recording.folder, failure)
                settled = True
                if killed and not (recording.inside and failure.first):  # by a launcher, as is known then
                    missing = "mpiio-ext was killed before the program had ended"
            lines = result.make(recording.folder, missing)
        except BaseException as error:  # no other process would report it
            kept |= result.keeps
            text = str(error) if isinstance(error, MpiioExtError) else f"{type(error).__name__}: {error}"
            lines = [f"no {result.name}: {text}"]
            if result.keeps:
                lines.append(recording.stays())
        for line in lines:
            _print(line)
    if not kept:
        shutil.rmtree(recording.folder, ignore_errors=True)


def _failure(status: int | None, recording: Recording, endings: Endings, ended_ns: int) -> Failure:
    """Return the failure of a program, and the ranks that failed; falsy if it has not failed.

    `status`: exit status of the program that was started, in Python's form; None: unknown. `ended_ns`: when it had
    ended.
    """
    who = "rank 0" if recording.inside else "the program"
    whole = ""
    if status is not None and status > 0:
        whole = f"{who} ended with status {status}"
    elif status is not None and status < 0:
        by_launcher = recording.inside and -status == signal.SIGTERM
        whole = f"{who} was ended by {signal_text(-status)}{_BY_LAUNCHER if by_launcher else ''}"
    failure = endings.failure(0 if recording.inside else status or 0, over=True)
    if endings.interrupted is not None and not recording.inside:
        number, failed_ns = endings.interrupted
        soon = _SOON_NS if failure.first and not failure.first[0].by_itself else 0
        if failure.moment_ns is None or failed_ns <= failure.moment_ns + soon:
            whole = f"it was ended from outside, by {signal_text(number)} to mpiio-ext"
            failure = Failure(moment_ns=failed_ns, ends=failure.ends)
    if recording.inside and failure.first and (failure.first[0].rank == 0 or status in _BY_LAUNCHERS):
        whole = ""  # of rank 0 that is printed already, or only what follows from it
    moment_ns = failure.moment_ns or (ended_ns if failure.first or whole else None)
    return dataclasses.replace(failure, whole=whole, moment_ns=moment_ns)


def _settle(folder: Path, others_s: float, launcher: int | None) -> str:
    """Wait until each recording has its end, or no process that could write it; return the missing part, or "".

    Parameters
    ----------
    others_s : for those on other hosts.
    launcher : a rank is part of the run as long as this process is above it; 0: as long as it lives; None: no longer.
    """
    from mpiio_ext.pioneer.darshan.convert import heads_of

    here, since_s, printed = os.uname().nodename, time.monotonic(), False
    while True:
        began_s = time.monotonic()
        heads = heads_of(folder)
        there = {head.rank for head in heads if head.rank >= 0}
        open_here = [head for head in heads if head.running and head.host == here and lives(head.pid)]
        lacking = bool(heads) and len(there) < max(head.ranks for head in heads)
        elsewhere = lacking or any(head.running and head.host != here for head in heads)
        if any(_runs_on(head, launcher) for head in open_here):
            since_s = began_s
        passed_s = began_s - since_s
        if not open_here and (not elsewhere or passed_s > others_s):
            return ""
        if open_here and passed_s > _OTHERS_S:
            return _given_up(open_here, heads)
        if open_here and passed_s > _PATIENT_S and not printed:
            printed = True
            _print(f"waits up to {_OTHERS_S:.0f} s for {_processes(open_here)}, which the program has left behind")
        time.sleep(max(_LOOK_S, time.monotonic() - began_s))  # thousands of ranks


def _runs_on(head: Head, launcher: int | None) -> bool:
    """Return whether a living process is still part of the run; `launcher`: as of `_settle`."""
    if not launcher:
        return launcher is not None and head.rank >= 0
    return launcher in ancestors(head.pid)


def _processes(heads: Sequence[Head]) -> str:
    more = f" and {count_text(len(heads) - 1, 'more process', 'more processes')}" if len(heads) > 1 else ""
    return f"process {heads[0].pid} ({heads[0].command[:_COMMAND]}){more}"


def _given_up(left: Sequence[Head], heads: Sequence[Head]) -> str:
    """Return what will lack in the numbers of a run, since processes run on; print it if these are in no number."""
    line = f"{_processes(left)}, left behind by the program, still runs: what it does from now on is missing"
    if any(head.rank >= 0 for head in left) or all(head.rank < 0 for head in heads):
        return line
    _print(line)
    return ""


def _print(line: str) -> None:
    echo(f"mpiio-ext: {line}", err=True)
