"""Processes that commands start: they end at their limit, and when the command ends, however it ends.

Problem. A child may hang or crash. A command that is killed cannot end the launcher that it has started, and ranks live
in sessions of their own.

Algorithm. `run` waits for a limited time and then kills the child with its process group. Of a job (`launched`) every
process carries a marker in its environment. A small process beside the command reads a pipe whose other end only the
command has. If the pipe closes without a word, the command has died. Then the keeper requests the end of the launcher,
which ends its ranks on all hosts; after a grace period the keeper kills all processes of this host that carry the
marker.

Guarantees. Nothing of a job that has not succeeded lives on this host when the block is left, or seconds after the
command was killed. Where launchers are killed, too, ranks on other hosts are left to the launcher's own means. A child
of `run` that the kernel does not let die (a file server that does not answer) is left behind: nobody waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal

from mpiio_ext.common import keeper

#: How long a child that was killed is waited for.
_DYING_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a child.

    Attributes
    ----------
    trouble : "" when it ended by itself with status 0, else how it ended, such as "no answer within 20 s".
    status : exit status, minus the number of the signal that ended it; None: not started, or it does not die.
    stopped : whether it was ended at its limit.
    error : errno of a start that failed; 0: it was started.
    elapsed_s : from its start to its end or its limit.
    output, errors : what it printed; "" if that went to a file of the caller's.
    """

    trouble: str
    status: int | None = None
    stopped: bool = False
    error: int = 0
    elapsed_s: float = 0.0
    output: str = ""
    errors: str = ""

    def reason(self) -> str:
        """Return the status of the process and its last line of output, in one line."""
        return ": ".join(word for word in (self.trouble, last_line(self.errors) or last_line(self.output)) if word)


def last_line(text: str) -> str:
    """Return the last line that is not empty, which mostly names the failure; "" if all are empty."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def run(
    command: Sequence[str],
    *,
    limit_s: float,
    environment: Mapping[str, str] | None = None,
    job: bool = False,
    output: IO[bytes] | None = None,
    errors: IO[bytes] | Literal["output"] | None = None,
    keep: tuple[int, ...] | None = (),
) -> Ended:
    """Run a command for a limited time, without input, in a session of its own.

    Parameters
    ----------
    command : program and arguments.
    limit_s : seconds after which it is ended with all that it has started.
    environment : complete environment of the command; None: that of this process.
    job : it is a launcher of ranks, see `launched`.
    output, errors : files that get what it prints; None: what it prints is returned. `errors` "output": what it prints
        as errors is part of its output.
    keep : descriptors that it inherits; None: every one that can be inherited, as a rank of a job must have.
    """
    with contextlib.ExitStack() as stack:
        out = output or stack.enter_context(tempfile.TemporaryFile())
        err = out if errors == "output" else errors or stack.enter_context(tempfile.TemporaryFile())
        begin_s = time.monotonic()
        try:
            with (launched if job else _grouped)(
                command,
                environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                close_fds=keep is not None,
                pass_fds=keep or (),
            ) as process:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=limit_s)
                stopped, elapsed_s = process.returncode is None, time.monotonic() - begin_s
        except OSError as error:
            return Ended(trouble=f"cannot be started: {error.strerror}", error=error.errno or errno.EIO)
        trouble = f"no answer within {limit_s:g} s" if stopped else _how(process.returncode)
        return Ended(
            trouble=trouble,
            status=process.returncode,
            stopped=stopped,
            elapsed_s=elapsed_s,
            output="" if output else _text(out),
            errors="" if errors else _text(err),
        )


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _how(status: int) -> str:
    if status >= 0:
        return f"exit status {status}" if status else ""
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


@contextlib.contextmanager
def _grouped(
    command: Sequence[str], environment: Mapping[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a process in a session of its own; after the block kill its group, but not processes outside the group."""
    process = subprocess.Popen(list(command), env=environment, start_new_session=True, **options)
    try:
        yield process
    finally:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_DYING_S)


def _end(process: subprocess.Popen[Any], marker: str) -> None:
    """End a job: politely its launcher, then for certain all that carries its marker on this host. Blocking."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=keeper.GRACE_S)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        keeper.wait_for(marker)
    keeper.kill_marked(marker)
    process.wait()


@contextlib.contextmanager
def launched(
    command: Sequence[str], environment: Mapping[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a launcher, in a session of its own; after the block every process of a job that has not succeeded is dead.

    Parameters
    ----------
    environment : of the job; None: this process's
    options : of :class:`subprocess.Popen`

    Raises
    ------
    OSError
        The launcher cannot be started.
    """
    marker = uuid.uuid4().hex
    process = None
    with _kept(marker):
        try:
            process = subprocess.Popen(
                command,
                env={**(os.environ if environment is None else environment), keeper.NAME: marker},
                start_new_session=True,
                **options,
            )
            yield process
        finally:
            if process is None:  # an interrupt within Popen: the child may be there, unknown to this process
                keeper.kill_marked(marker)
            elif process.poll() != 0:  # also ranks that outlive a launcher that has failed
                _end(process, marker)


@contextlib.contextmanager
def _kept(marker: str) -> Iterator[None]:
    """Have the job ended if this process dies within the block."""
    theirs, ours = os.pipe()
    writing: IO[bytes] = os.fdopen(ours, "wb", buffering=0)
    words = [sys.executable, "-I", "-S", keeper.__file__, str(theirs), marker]
    environment = {name: value for name, value in os.environ.items() if name not in (keeper.NAME, "LD_PRELOAD")}
    try:
        watching = subprocess.Popen(
            words,
            env=environment,
            pass_fds=[theirs],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(theirs)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            writing.write(keeper.DONE)
        writing.close()
        watching.wait()
