"""What jobs say of themselves: one file each in the folder ``jobs``, written and touched by the library.

Problem. The arbiter must know which jobs run, without a connection to them. Jobs die without a word.
Algorithm. A job touches its file every second. One whose file stays as it is for the lease is taken for dead, at once
where its process ran on this host and is gone. Hosts may have one name, and containers of one host processes of one
number: what is compared is the boot of the kernel and the space of process numbers. How long a lease is the arbiter
measures by its own clock: the times of files are another host's.
Guarantees. A file that is half written, of another version, or not a job's is left out and named once. Nothing that a
user puts into the folder stops the arbiter or spoils the map.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Announcement", "here", "is_gone", "now_ns", "read_all"]

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,126}")  # as csrc/arbiter has it: names are words of the map
_MOST_BYTES = 4096
_MOST = 2**31 - 1
_NOBODY: Mapping[str, int] = {}
_NOT_A_JOBS = (errno.ELOOP, errno.EACCES, errno.ENXIO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """One job.

    Attributes
    ----------
    job : name, unique
    host, pid : of the process that announced it
    boot, processes : of the system that it runs on, and of its space of process numbers; "" and 0 = unknown
    ranks, delegates : of the job; delegate i runs on I/O node i
    nodes : compute nodes of the job; None = unknown (announced by an older library)
    program : name that its curve has, see :mod:`mpiio_ext.delegates.arbitration.program`
    scheduler_job : ID of the scheduler's job; "" = none
    applied : generation of the map that it follows; 0 = none yet
    touched_ns : when it was touched last, by the clock of the file system
    age_s : since then, s, as far as that clock and this host's agree
    noticed_us : from the writing of that map until the job saw it, microseconds, by the clocks of the file system and
        of the job's host; None = unknown, or the clocks do not agree
    applied_us : from then until its page ranges were with the I/O nodes of that map; None = unknown
    """

    job: str
    host: str
    pid: int
    boot: str
    processes: int
    ranks: int
    nodes: int | None
    delegates: int
    program: str
    scheduler_job: str
    applied: int
    touched_ns: int
    age_s: float
    noticed_us: int | None = None
    applied_us: int | None = None


def _time(words: Mapping[str, str], name: str) -> int | None:
    value = int(words.get(name, "-1"))
    return value if 0 <= value < 2**62 else None


def _number(text: str, least: int, most: int = _MOST) -> int:
    value = int(text)
    if not least <= value <= most:
        raise ValueError
    return value


def _parse(name: str, text: str, touched_ns: int) -> Announcement | None:
    words = dict(line.split(" ", 1) for line in text.split("\n") if " " in line)
    try:
        if words["mpiox-job"] != "1" or words["job"] != name or not _NAME.fullmatch(name):
            return None
        scheduler = words["scheduler_job"]
        return Announcement(
            job=name, host=words["host"], pid=_number(words["pid"], 1),
            boot="" if words.get("boot", "-") == "-" else words["boot"],
            processes=_number(words.get("processes", "0"), 0, 2**64 - 1), ranks=_number(words["ranks"], 1),
            nodes=_number(words["nodes"], 1) if "nodes" in words else None,
            delegates=_number(words["delegates"], 1), program=words["program"],
            scheduler_job="" if scheduler == "-" else scheduler, applied=_number(words["applied"], 0, 2**62),
            touched_ns=touched_ns, age_s=time.time() - touched_ns / 1e9, noticed_us=_time(words, "noticed_us"),
            applied_us=_time(words, "applied_us"),
        )
    except (KeyError, ValueError):
        return None


def _read(path: str) -> tuple[str, int] | None:
    """Return content and time of a file; None: a job would not have written it. Never waits, as opening a pipe does."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            return None
        return file.read(_MOST_BYTES).decode("utf-8", errors="replace"), status.st_mtime_ns


def now_ns(folder: Path) -> int:
    """Return the time of the clock that stamps the files of an arbiter's folder, ns.

    Raises
    ------
    OSError
        The folder cannot be written.
    """
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".now.") as probe:
        return os.fstat(probe.fileno()).st_mtime_ns


def read_all(folder: Path, expired: Mapping[str, int] = _NOBODY) -> tuple[list[Announcement], list[str]]:
    """Return the announcements in an arbiter's folder, by name, and the names of files that are none.

    Parameters
    ----------
    expired : file -> its time in ns: it is not opened, and in neither list, as long as it has this time

    Raises
    ------
    OSError
        The file system fails. Who is there is not known then: nobody must be taken for gone.
    """
    found: list[Announcement] = []
    others: list[str] = []
    for entry in _entries(folder / "jobs"):
        try:
            if entry.name in expired and entry.stat(follow_symlinks=False).st_mtime_ns == expired[entry.name]:
                continue
            content = None if entry.is_dir(follow_symlinks=False) else _read(entry.path)
        except FileNotFoundError:
            continue  # it has just left
        except OSError as error:
            if error.errno not in _NOT_A_JOBS:
                raise
            content = None
        announcement = _parse(entry.name, *content) if content is not None else None
        if announcement is None:
            others.append(entry.name)
        else:
            found.append(announcement)
    return sorted(found, key=lambda a: a.job), sorted(others)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from (entry for entry in entries if not entry.name.startswith("."))


@cache
def here() -> tuple[str, int]:
    """Return boot and space of process numbers of this process; ("", 0): unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot, Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return "", 0


def is_gone(announcement: Announcement) -> bool:
    """Return whether the process that announced the job ran where this one runs, and does not any more."""
    if not announcement.boot or (announcement.boot, announcement.processes) != here():
        return False
    try:
        os.kill(announcement.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # another user's
    return False
