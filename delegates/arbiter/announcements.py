"""What jobs say of themselves: one file each in the folder ``jobs``, written and touched by the library.

Problem. The arbiter must know which jobs run, without a connection to them. Jobs die without a word.
Algorithm. A job touches its file every second. One that has not done so for the lease is taken for dead, at once where
its process ran on this host and is gone.
Guarantees. A file that is half written, of another version, or not a job's is left out and named once.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Announcement", "alive", "read_all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """One job.

    Attributes
    ----------
    job : name, unique
    host, pid : of the process that announced it
    ranks, delegates : of the job; delegate i runs on I/O node i
    program : file name of its executable
    scheduler_job : ID of the scheduler's job; "" = none
    applied : generation of the map that it follows; 0 = none yet
    age_s : since it was touched last, s
    """

    job: str
    host: str
    pid: int
    ranks: int
    delegates: int
    program: str
    scheduler_job: str
    applied: int
    age_s: float


def _parse(path: Path, age_s: float) -> Announcement | None:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    words = dict(line.split(" ", 1) for line in lines if " " in line)
    try:
        if words["mpiox-job"] != "1" or words["job"] != path.name:
            return None
        ranks, delegates = int(words["ranks"]), int(words["delegates"])
        if ranks < 1 or delegates < 1:
            return None
        scheduler = words["scheduler_job"]
        return Announcement(
            job=words["job"], host=words["host"], pid=int(words["pid"]), ranks=ranks, delegates=delegates,
            program=words["program"], scheduler_job="" if scheduler == "-" else scheduler,
            applied=int(words["applied"]), age_s=age_s,
        )
    except (KeyError, ValueError):
        return None


def read_all(folder: Path, *, now: float | None = None) -> tuple[list[Announcement], list[str]]:
    """Return the announcements in an arbiter's folder, by name, and the names of files that are none.

    `now` is the time in s since 1970 by the clock of the file system's server; None: of this host.
    """
    now = time.time() if now is None else now
    found: list[Announcement] = []
    others: list[str] = []
    for entry in _entries(folder / "jobs"):
        try:
            age = now - entry.stat().st_mtime
        except OSError:
            continue  # it has just left
        announcement = _parse(Path(entry.path), age)
        if announcement is None:
            others.append(entry.name)
        else:
            found.append(announcement)
    return sorted(found, key=lambda a: a.job), sorted(others)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from (entry for entry in entries if not entry.name.startswith("."))


def alive(announcement: Announcement, lease_s: float) -> bool:
    """Return whether the job is to be taken for running."""
    if announcement.age_s > lease_s:
        return False
    if announcement.host != socket.gethostname()[:63]:
        return True
    try:
        os.kill(announcement.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True
