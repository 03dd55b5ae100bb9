"""Run the system's tools, from inside a process's namespaces if requested, with their message when they fail."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path

#: Seconds that any single step of the set-up may take.
START_S = 60.0
#: In none of these is PATH complete for other users than root.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PR_SET_PDEATHSIG = 1


class ClusterError(RuntimeError):
    """The cluster cannot do what was requested; the message names what is missing or what failed."""


def with_system_path(path: str | None) -> str:
    """Return a PATH that also has the folders of `ip` and `tc`, which a user's may lack."""
    own = [part for part in (path or "").split(":") if part]
    return ":".join([*own, *(part for part in SYSTEM_PATH.split(":") if part not in own)])


def command(*words: str) -> str:
    """Run a command that must succeed; its output."""
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=START_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{' '.join(words)}: {error}") from error
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").replace("\n", "; ")
        raise ClusterError(f"{' '.join(words)}: {reason}")
    return done.stdout


def in_network(pid: int, *words: str) -> str:
    """Run a command with the network of a process."""
    return command("nsenter", "-t", str(pid), "-n", *words)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel end this process when its parent dies. After a fork, or at a program's start."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


def environment_has(pid: int | str, needle: bytes) -> bool:
    """Return whether a process was started with a variable NAME=VALUE."""
    try:
        return needle in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def kill_quietly(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
