"""Jobs that commands start: they end when the command ends, however it ends.

Problem. A command that is killed cannot end the launcher that it has started, and ranks live in sessions of their own.
Algorithm. Every process of the job carries a marker in its environment. A small process beside the command reads a pipe
whose other end only the command has. When the pipe closes without a word, the command has died: the launcher is asked
to end, which ends its ranks on all hosts; what carries the marker on this host after a grace is killed.
Guarantees. Nothing of a job that has not succeeded lives on this host when the block is left, or seconds after the
command was killed. Where launchers are killed, too, ranks on other hosts are left to the launcher's own means.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from mpiio_ext import keeper

__all__ = ["launched"]


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
    """Start a launcher, in a session of its own; nothing of its job that has not succeeded is alive behind the block.

    Parameters
    ----------
    environment : of the job; None: this process's
    options : of :class:`subprocess.Popen`

    Raises
    ------
    OSError
        It cannot be started.
    """
    marker = uuid.uuid4().hex
    with _kept(marker):
        process = subprocess.Popen(
            command, env={**(os.environ if environment is None else environment), keeper.NAME: marker},
            start_new_session=True, **options)
        try:
            yield process
        finally:
            if process.poll() != 0:  # also ranks that outlive a launcher that has failed
                _end(process, marker)


@contextlib.contextmanager
def _kept(marker: str) -> Iterator[None]:
    """Have the job ended if this process dies within the block."""
    theirs, ours = os.pipe()
    writing: IO[bytes] = os.fdopen(ours, "wb", buffering=0)
    words = [sys.executable, "-I", "-S", keeper.__file__, str(theirs), marker]
    environment = {name: value for name, value in os.environ.items() if name not in (keeper.NAME, "LD_PRELOAD")}
    try:
        watching = subprocess.Popen(words, env=environment, pass_fds=[theirs], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                                    start_new_session=True)
    finally:
        os.close(theirs)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            writing.write(keeper.DONE)
        writing.close()
        watching.wait()
