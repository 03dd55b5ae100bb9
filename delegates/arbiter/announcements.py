"""Announcements of jobs: one file each in the folder ``jobs``, written and touched by the library.

Problem. The arbiter must know which jobs run, without a connection to them. Jobs die without a word.
Algorithm. A job touches its file every second. If a job's file does not change for the length of the lease, the job
counts as dead; if its process ran on this host and has ended, the job counts as dead at once. Hosts may have one name,
and containers of one host processes of one number: what is compared is the boot of the kernel and the space of process
numbers. How long a lease is the arbiter measures by its own clock: the times of files are another host's.
Whom to believe. A file is its owner's: nobody else can make one of that owner. The process that it names must be its
owner's, too, and have begun when the file says, where this process can see it (same boot, same space of process
numbers, /proc open to all). Of other hosts the owner of the file is all that is known. The name in the text is the name
of the file, so that a copy under another name is none.
Guarantees. A file that is half written, of another version, or not a job's is left out and named once, with its owner
and the reason. Nothing that a user puts into the folder stops the arbiter or spoils the map.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mpiio_ext.delegates.arbiter.mapfile import MOST_NODES

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,126}")  # as csrc/iod/arbiter has it: names are words of the map
_PROGRAM = re.compile(r"[A-Za-z0-9._+-]{1,127}")  # mpiox_program.h
_WORD = re.compile(r"[\x21-\x7e]{1,64}")
_MOST_BYTES = 4096
_MOST_RANKS = 1 << 24
_MOST_FILES = 4096  # of one user that are opened in one pass
_NOBODY: Mapping[str, int] = {}
#: Errors of opening a file that its owner can cause. EAGAIN: a lease (fcntl(2)) that the owner has, or takes anew.
_OWNERS_DOING = {
    errno.ELOOP: "it is no plain file",
    errno.ENXIO: "it is no plain file",
    errno.EACCES: "it must not be read",
    errno.EPERM: "it must not be read",
    errno.EAGAIN: "another process has a lease on it",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that the arbiter refuses: its owner (-1 = unknown), and the reason."""

    uid: int
    why: str


class _NoAnnouncementError(ValueError):
    """The message names the reason."""


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
    uid : owner of the file; -1 = nobody's, the scheduler says it
    started : when the process began, in clock ticks since the boot; None = an older library does not say it
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
    uid: int = -1
    started: int | None = None


def _time(words: Mapping[str, str], name: str) -> int | None:
    text = words.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _number(words: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = words.get(name, "nothing")
    if not text.isascii() or not text.isdigit() or len(text) > 20 or not least <= int(text) <= most:
        raise _NoAnnouncementError(f"its {name} is {text[:24]!r}, not a number from {least} to {most}")
    return int(text)


def _word(words: Mapping[str, str], name: str, pattern: re.Pattern[str]) -> str:
    text = words.get(name, "")
    if not pattern.fullmatch(text):
        raise _NoAnnouncementError(f"its {name} is {text[:24]!r}, which no job writes")
    return text


def _parse(name: str, text: str, status: os.stat_result) -> Announcement:
    """Return the contents of a file; _NoAnnouncementError: no job would write it."""
    words = dict(line.split(" ", 1) for line in text.split("\n") if " " in line)
    if words.get("mpiox-job") != "1" or not _NAME.fullmatch(name):
        raise _NoAnnouncementError("it is no announcement of a job")
    if words.get("job") != name:
        raise _NoAnnouncementError(f"it announces another job, {words.get('job', '')[:128]!r}")
    ranks = _number(words, "ranks", 1, _MOST_RANKS)
    nodes = _number(words, "nodes", 1, ranks) if "nodes" in words else None  # a node has a rank at least
    scheduler = _word(words, "scheduler_job", _WORD)
    boot = _word(words, "boot", _WORD) if "boot" in words else "-"
    return Announcement(
        job=name,
        host=_word(words, "host", _WORD),
        pid=_number(words, "pid", 1, 2**31 - 1),
        boot="" if boot == "-" else boot,
        processes=_number(words, "processes", 0, 2**64 - 1) if "processes" in words else 0,
        ranks=ranks,
        nodes=nodes,
        delegates=_number(words, "delegates", 1, MOST_NODES),
        program=_word(words, "program", _PROGRAM),
        scheduler_job="" if scheduler == "-" else scheduler,
        applied=_number(words, "applied", 0, 2**62),
        touched_ns=status.st_mtime_ns,
        age_s=time.time() - status.st_mtime_ns / 1e9,
        noticed_us=_time(words, "noticed_us"),
        applied_us=_time(words, "applied_us"),
        uid=status.st_uid,
        started=_number(words, "started", 0, 2**63 - 1) if "started" in words else None,
    )


def _read(path: str) -> tuple[str, os.stat_result]:
    """Return content and state of a file; _NoAnnouncementError: no job writes such. Never waits, as for a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _NoAnnouncementError("it is no plain file")
        if status.st_size > _MOST_BYTES:
            raise _NoAnnouncementError(f"it has {status.st_size} bytes, above {_MOST_BYTES}")
        if status.st_nlink > 1:
            raise _NoAnnouncementError("it has a second name, a link elsewhere")
        return file.read(_MOST_BYTES).decode("utf-8", errors="replace"), status


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
    """Return the announcements as :func:`look` does, and the names alone of the refused files."""
    found, refused = look(folder, expired)
    return found, sorted(refused)


def look(folder: Path, expired: Mapping[str, int] = _NOBODY) -> tuple[list[Announcement], dict[str, Refusal]]:
    """Return the announcements in an arbiter's folder, by name, and the reasons against other files there.

    Parameters
    ----------
    expired : file -> its time in ns: it is not opened, and in neither answer, as long as it has this time

    Raises
    ------
    OSError
        The file system fails. Then the running jobs are not known, and no job must count as gone.
    """
    found: list[Announcement] = []
    refused: dict[str, Refusal] = {}
    opened: Counter[int] = Counter()
    for entry in sorted(_entries(folder / "jobs"), key=lambda entry: entry.name):
        uid = -1
        try:
            state = entry.stat(follow_symlinks=False)
            uid = state.st_uid
            if expired.get(entry.name) == state.st_mtime_ns:
                continue
            opened[uid] += 1
            if stat.S_ISDIR(state.st_mode) or opened[uid] > _MOST_FILES:
                raise _NoAnnouncementError(
                    "it is no plain file"
                    if opened[uid] <= _MOST_FILES
                    else f"its owner has more than {_MOST_FILES} files here"
                )
            announcement = _parse(entry.name, *_read(entry.path))
            _check_process(announcement)
            found.append(announcement)
        except FileNotFoundError:
            continue  # it has just left
        except _NoAnnouncementError as error:
            refused[entry.name] = Refusal(uid, str(error))
        except OSError as error:
            if error.errno not in _OWNERS_DOING:
                raise
            refused[entry.name] = Refusal(uid, _OWNERS_DOING[error.errno])
    return found, refused


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


def started(pid: int) -> int | None:
    """Return when a process of this system began, in clock ticks since the boot; None if it cannot be read."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _is_of_here(announcement: Announcement) -> bool:
    return bool(announcement.boot) and (announcement.boot, announcement.processes) == here()


def _check_process(announcement: Announcement) -> None:
    """Refuse an announcement whose process is another user's than the file, where that can be seen."""
    if not _is_of_here(announcement):
        return
    try:
        text = Path(f"/proc/{announcement.pid}/status").read_text(encoding="utf-8", errors="replace")
        users = next(line.split()[1:] for line in text.splitlines() if line.startswith("Uid:"))
    except (OSError, StopIteration):
        return  # it is gone, or /proc hides it
    if str(announcement.uid) not in users:
        raise _NoAnnouncementError(f"process {announcement.pid}, which it names, is one of user {users[0]}")


def is_gone(announcement: Announcement) -> bool:
    """Return whether the process that announced the job ran where this one runs, and does not any more."""
    if not _is_of_here(announcement):
        return False
    try:
        os.kill(announcement.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # another user's
    now = started(announcement.pid)
    return announcement.started is not None and now is not None and now != announcement.started
