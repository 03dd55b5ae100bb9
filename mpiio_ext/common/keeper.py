"""The process that ends a job when the command that has started it is dead: :mod:`mpiio_ext.common.children`.

Also a script that needs the standard library alone: ``keeper.py DESCRIPTOR MARKER``. The keeper ends silently if a byte
arrives on the descriptor; if the descriptor is closed instead, the keeper ends the job.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

#: In the environment of all processes of a job.
NAME = "MPIIO_EXT_JOB"
DONE = b"."
#: Time between the signal to a launcher and the kill of the rest, s.
GRACE_S = 5.0
#: Searches in a row that must find nothing: the environment of a process in fork or execve does not identify it.
_LOOKS = 5


def marked(marker: str) -> list[int]:
    """Return the processes of this host that carry a marker, without this one."""
    needle = f"{NAME}={marker}".encode()
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208  (a script that starts in milliseconds)
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                if needle in file.read():
                    found.append(int(name))
    return found


def kill_marked(marker: str) -> None:
    """Kill the processes that carry a marker, and the processes that they start meanwhile; wait 5 s for their ends."""
    empty = 0
    for _ in range(250):
        left = marked(marker)
        empty = 0 if left else empty + 1
        if empty == _LOOKS:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def wait_for(marker: str) -> None:
    """Wait until no process carries a marker, for the grace at most: delegates that outlive a job still write."""
    until = time.monotonic() + GRACE_S
    while marked(marker) and time.monotonic() < until:
        time.sleep(0.05)


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        return int(file.read().rpartition(b")")[2].split()[1])
    return 0


def _end(marker: str) -> None:
    """Signal the launcher to end, a process that no other process of the job started; kill the rest after the grace."""
    job = set(marked(marker))
    for pid in job:
        if _parent(pid) not in job:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
    wait_for(marker)
    kill_marked(marker)


if __name__ == "__main__" and os.read(int(sys.argv[1]), 1) != DONE:
    _end(sys.argv[2])
