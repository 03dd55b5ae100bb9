"""Child processes that answer questions: one that hangs, crashes or is ended by MPI takes nothing else down.

Algorithm. A question is a function of `mpiio_ext.doctor.probes`, which is run as a script, so that only those questions
load this library that are about it. It writes what it learns, one JSON object a line, as soon as it knows it, to a file
without a name whose descriptor it inherits; all of it counts that was written before the child ended, in whatever way.
At its limit the child is killed with its process group. A child that the kernel does not let die (a file server that
does not answer) is left behind: nobody waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

__all__ = ["Answer", "JobEnded", "ask", "run_limited"]

#: How long a child that was killed is waited for.
_DYING_S = 2.0
#: A child ends itself by an alarm so many seconds after its limit, should its parent be gone.
_ALARM_S = 5
_SAID_BYTES = 2000
_PROBES = Path(__file__).with_name("probes.py")


class JobEnded(Exception):  # noqa: N818  (no error of this program)
    """The launcher of the job has asked this process to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a child process has said.

    Attributes
    ----------
    values : all that it has told, later values over earlier ones.
    trouble : "" when it ended by itself with status 0, else how it ended, such as "no answer within 20 s".
    said : end of its standard output and error.
    """

    values: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""
    said: str = ""

    def last_line(self) -> str:
        """Return the last line that it printed, which mostly says what went wrong; "" where it printed nothing."""
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def reason(self) -> str:
        """Return how it ended and what it said, one line."""
        return ": ".join(word for word in (self.trouble, self.last_line()) if word)


def _values(file: IO[bytes]) -> dict[str, Any]:
    file.seek(0)
    found: dict[str, Any] = {}
    for line in file.read().splitlines():
        with contextlib.suppress(ValueError):  # a line that was cut by the child's end
            told = json.loads(line)
            if isinstance(told, dict):
                found |= told
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_DYING_S)


def _how(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    if code == 0:
        return ""
    if code < 0:
        try:
            return f"ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"ended by signal {-code}"
    return f"exit status {code}"


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> str:
    """Wait for a child for a limited time; return how it ended."""
    try:
        process.wait(timeout=limit_s)
        return _how(process)
    except subprocess.TimeoutExpired:
        return f"no answer within {limit_s:g} s"
    finally:
        _end(process)  # what it has started lives on otherwise


def run_limited(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    limit_s: float,
    inherit: bool = False,
    keep: tuple[int, ...] = (),
) -> tuple[str, bytes]:
    """Run a command for a limited time.

    Parameters
    ----------
    command : program and arguments.
    environment : complete environment of the command.
    limit_s : seconds after which it is killed with all of its process group.
    inherit : let it have every descriptor that can be inherited, as a rank of a job must have.
    keep : descriptors that it gets in any case.

    Returns
    -------
    (str, bytes)
        How it ended, "" for well; and all that it printed, on both streams.
    """
    for number in keep if inherit else ():
        os.set_inheritable(number, True)
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                list(command),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                close_fds=not inherit,
                pass_fds=() if inherit else keep,
            )
        except OSError as error:
            return f"cannot be started: {error.strerror}", b""
        trouble = _wait(process, limit_s)
        output.seek(0)
        return trouble, output.read()


def ask(
    question: str,
    *words: str,
    environment: Mapping[str, str] | None = None,
    limit_s: float = 20.0,
    inherit: bool = False,
) -> Answer:
    """Put a question to a child process and wait for it for a limited time.

    Parameters
    ----------
    question : name of a function in `mpiio_ext.doctor.probes`.
    words : its arguments.
    environment : complete environment of the child; None for that of this process.
    limit_s : seconds after which the child is killed.
    inherit : as of `run_limited`; the question is the job's, and what is told counts even if the launcher ends it.

    Raises
    ------
    JobEnded
        The launcher ends the job; not with `inherit`.
    """
    with tempfile.TemporaryFile() as told:
        number = told.fileno()
        command = [sys.executable, str(_PROBES), str(number), str(int(limit_s) + _ALARM_S)]
        try:
            trouble, printed = run_limited(
                [*command, question, *words],
                environment=os.environ if environment is None else environment,
                limit_s=limit_s,
                inherit=inherit,
                keep=(number,),
            )
        except JobEnded:
            if not inherit:
                raise
            trouble, printed = "the launcher ended the job", b""  # what its ranks have told is worth more than haste
        return Answer(values=_values(told), trouble=trouble, said=printed[-_SAID_BYTES:].decode(errors="replace"))


def pause(seconds: float) -> None:
    """Wait, unless the launcher ends the job."""
    with contextlib.suppress(JobEnded):
        time.sleep(seconds)
