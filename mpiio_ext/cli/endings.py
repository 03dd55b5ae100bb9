"""Which ranks of a run have failed, and how, as observed by a process that is not their parent.

Problem. A launcher that has lost a rank ends the others, and names the one on a terminal at best. A rank that is ended
by a signal writes nothing, and only its parent learns how it has ended. Hydra kills the other ranks as soon as its own
connection to a rank is closed; the connection closes before the rank's process ends. A process that then inspects the
ranks finds several that have ended by the same signal, and does not find the first one first.

Algorithm. The name of each recording has rank, host and process. Linux reports new ones (inotify), and the ends of
their processes (pidfds). Each process that records is connected to a socket of the watcher, by a descriptor with a high
number, which Linux closes before those of launchers when the process dies. A rank that ends by itself, or calls
MPI_Abort, writes that into its recording and touches it, which Linux reports, too. All these events arrive through one
epoll. Its queue has the events in the order in which they happened, even if the watcher reads them late. How a process
has ended stands in `/proc` as long as nobody has waited for it, and later Linux itself reports it, from 6.15 on.

Guarantees. The watcher queries no rank, and sends nothing to a rank. Unknown facts are left out. Without pidfds (Linux
before 5.3) only what ranks have written is reported. Not guaranteed: that the first one is the cause.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import math
import os
import re
import resource
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from mpiio_ext.common.endings import Failure, ending_of, judged
from mpiio_ext.common.recordings import HEAD, SUFFIXES, lives, states

_NAME = re.compile(rf"(?:rank\d+|norank)\.(.+)\.(\d+)(?:\.\d+)?{re.escape(SUFFIXES[0])}")
#: Longest time for which a launcher that ends a rank waits until the reason is printed.
_SAID_S = 0.1
#: Longest time that a process takes to end once its connection is closed.
_ENDING_S = 0.03
_OVER_S = 2.0
#: Processes that are waited for.
_MOST_WATCHED = 512
_DESCRIPTORS = 3 * _MOST_WATCHED
#: The request of PIDFD_GET_INFO, the mask of how a process has ended, and the answer: mask … exit code.
_GET_INFO, _EXIT, _INFO = 0xC0400000 | 0xFF << 8 | 11, 1 << 3, struct.Struct("=Q52xi")
#: The connected process, its user and group.
_PEER = struct.Struct("=iII")
#: Of inotify: an event before its name; times changed, moved here, made here.
_EVENT, _TOUCHED, _MOVED, _MADE = struct.Struct("=iIII"), 0x4, 0x80, 0x100
#: The word for a launcher that ends a rank.
TERMINATED = b"terminated"
#: Precedes the number of a signal that ends the process that waits for the program.
PASSED_ON = b"passed-"


class Endings:
    """Watches the ranks of a run on this host."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._host = folder, os.uname().nodename
        self._poll = select.epoll()
        self._watched: dict[int, int] = {}  # pidfd -> process
        self._failed_at: dict[int, int] = {}  # process -> when it was first seen to fail (ns since 1970), in that order
        self._codes: dict[int, int | None] = {}
        self._ends: dict[str, int] = {}
        #: Signal that was to end the program from outside, and when that was (ns since 1970).
        self.interrupted: tuple[int, int] | None = None
        self._news, self._door = _news_of(folder), _door_of(folder)
        self._guests: dict[int, tuple[socket.socket, int]] = {}  # connection -> process
        for fd in (self._news, -1 if self._door is None else self._door.fileno()):
            if fd >= 0:
                self._poll.register(fd, select.EPOLLIN)
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                self._watch(entry.name)

    def descriptors(self) -> list[int]:
        """Return the descriptors that must stay open."""
        door = [] if self._door is None else [self._door.fileno()]
        return [self._poll.fileno(), *([self._news] if self._news >= 0 else []), *door, *self._watched, *self._guests]

    def close(self) -> None:
        """Leave it to a fork of this process."""
        self._poll.close()
        if self._door is not None:
            self._door.close()
        for fd in (*self._watched, *([self._news] if self._news >= 0 else [])):
            os.close(fd)

    def wait(self, pipe: int, fails: Callable[[Failure | None], None]) -> list[bytes]:
        """Return the words that come by a pipe until that is closed.

        `fails` is called once: when a rank of this host has failed, or soon after the word `TERMINATED`; the argument
        is None if no such rank is known.
        """
        with contextlib.suppress(OSError, ValueError):
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (most if 0 < most < _DESCRIPTORS else _DESCRIPTORS, most))
        self._poll.register(pipe, select.EPOLLIN)
        words, end_at, called = b"", math.inf, False
        while True:
            now = time.monotonic()
            ready = [fd for fd, _ in self._poll.poll(max(0.001, end_at - now) if end_at < math.inf else None)]
            failing = self._take(ready)
            text = os.read(pipe, 256) if pipe in ready else None
            words += text or b""
            if self.interrupted is None and (number := re.search(PASSED_ON + rb"(\d+)\n", words)):
                self.interrupted = int(number[1]), time.time_ns()
            if TERMINATED in words and end_at == math.inf and not called:
                end_at = time.monotonic() + _SAID_S
            late = time.monotonic() >= end_at or (text == b"" and end_at < math.inf)
            if not called and (late or failing or text):
                failure = self.failure()
                if not late and failure.first and failure.first[0].number == 0:  # it is about to end
                    end_at = min(end_at, time.monotonic() + _ENDING_S)
                elif failure or late:
                    fails(failure or None)
                    self._failed(failure)
                    called, end_at = True, math.inf
            if text == b"":
                self._poll.unregister(pipe)
                return [word for word in words.split() if word != TERMINATED and not word.startswith(PASSED_ON)]

    def failure(self, launcher: int = 0, *, over: bool = False) -> Failure:
        """Return the known failures of ranks so far.

        Parameters
        ----------
        launcher : see `judged`.
        over : no rank lives any longer, on other hosts neither.
        """
        self._take([fd for fd, _ in self._poll.poll(0)])
        ranks = [state for state in states(self._folder) if state.rank >= 0]
        until = time.monotonic() + (_OVER_S if over else 0.0)  # of a process that has gone threads may be left
        while {state.pid for state in ranks} & {*self._watched.values()} and time.monotonic() < until:
            self._take([fd for fd, _ in self._poll.poll(_SAID_S)])
        mine = {state.pid: state for state in ranks if state.host == self._host}
        seen = [
            ending_of(mine.pop(pid), self._codes.get(pid), ns) for pid, ns in self._failed_at.items() if pid in mine
        ]
        unseen = [
            ending_of(state)
            for state in ranks
            if (state.host != self._host or state.pid in mine)
            and (
                state.failed_ns is not None
                or not state.running
                or (over and not (state.host == self._host and lives(state.pid)))
            )
        ]
        first, others = judged(list(filter(None, seen)), list(filter(None, unseen)), launcher)
        if not over and first and not first[0].by_itself and any(state.host != self._host for state in ranks):
            first, others = [], []  # a rank elsewhere may have failed before it
        return Failure(first=first, others=others, moment_ns=first[0].moment_ns if first else None, ends=self._ends)

    def _failed(self, failure: Failure) -> None:
        """Let a rank continue that waits in MPI_Abort until the reason is printed (mpiox_recording_file.c)."""
        for one in failure.first if failure.first and failure.first[0].abort_code is not None else ():
            for path in self._folder.glob(f"rank{one.rank}.{self._host}.*{SUFFIXES[0]}"):
                with contextlib.suppress(OSError), path.open("r+b") as file:
                    file.seek(HEAD.size)
                    file.write(b"\1")

    def _take(self, ready: list[int]) -> bool:
        """Record the events in their order; return whether a rank has failed, or may have."""
        failing = False
        for fd in ready:
            for pid in self._failing(fd):
                self._failed_at.setdefault(pid, time.time_ns())
                failing = True
        return failing

    def _failing(self, fd: int) -> list[int]:
        """Return the processes that have failed, or may have, by what a descriptor reports."""
        if fd == self._news:
            return list(self._look())
        if fd in self._watched:
            return [self._end(fd)]
        if fd in self._guests:
            guest, pid = self._guests.pop(fd)
            self._poll.unregister(fd)
            guest.close()
            return [] if Path(f"/proc/{pid}/exe").exists() else [pid]  # the program has closed it
        if self._door is not None and fd == self._door.fileno():
            self._let_in(self._door)
        return []

    def _let_in(self, door: socket.socket) -> None:
        """Take the connections of processes that record."""
        with contextlib.suppress(OSError):
            while True:
                guest, _ = door.accept()
                pid, user, _ = _PEER.unpack(guest.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
                if user == os.geteuid() and pid > 0 and len(self._guests) < _MOST_WATCHED:
                    self._guests[guest.fileno()] = guest, pid
                    self._poll.register(guest.fileno(), select.EPOLLRDHUP)
                else:
                    guest.close()

    def _look(self) -> Iterator[int]:
        """Watch the processes of new recordings; yield the processes that have recorded a failure."""
        data = os.read(self._news, 1 << 16)
        at = 0
        while at < len(data):
            _, what, _, length = _EVENT.unpack_from(data, at)
            name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0"))
            at += _EVENT.size + length
            pid = self._watch(name)
            if pid is not None and what & _TOUCHED:
                yield pid

    def _watch(self, name: str) -> int | None:
        """Begin to wait for the process of a recording of this host, and return it; None: the name is not its form."""
        found = _NAME.fullmatch(name)
        if found is None or found[1] != self._host:
            return None
        pid = int(found[2])
        if pid not in self._watched.values() and pid not in self._codes and len(self._watched) < _MOST_WATCHED:
            with contextlib.suppress(OSError, AttributeError):
                fd = os.pidfd_open(pid)
                self._watched[fd] = pid
                self._poll.register(fd, select.EPOLLIN)
        return pid

    def _end(self, fd: int) -> int:
        """Take down how a process has ended, and return it."""
        pid = self._watched.pop(fd)
        self._codes[pid] = _code(fd, pid)
        self._ends[f"{self._host} {pid}"] = time.time_ns()
        self._poll.unregister(fd)
        os.close(fd)
        return pid


def door_name(folder: Path) -> str:
    """Return the abstract name that processes which record into a folder connect to (mpiox_recording_file.c)."""
    total = 0xCBF29CE484222325
    for byte in os.fsencode(folder):
        total = (total ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return f"mpiio_ext.run.{total:016x}"


def _door_of(folder: Path) -> socket.socket | None:
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        door.bind(f"\0{door_name(folder)}")
        door.listen(_MOST_WATCHED)
    except OSError:
        door.close()
        return None
    door.setblocking(False)
    return door


def _news_of(folder: Path) -> int:
    """Return a descriptor by which Linux reports files of a folder that are made, moved or touched; -1 if it cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        fd = int(libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        if fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(folder), _TOUCHED | _MOVED | _MADE) >= 0:
            return fd
    except AttributeError:
        pass
    return -1


def _code(fd: int, pid: int) -> int | None:
    """Return the status with which a process has ended, in the form of wait(); None: unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        if fields[0] in "ZX":
            return int(fields[49])
    with contextlib.suppress(OSError):
        info = bytearray(_INFO.pack(_EXIT, 0))
        fcntl.ioctl(fd, _GET_INFO, info)
        mask, code = _INFO.unpack(info)
        if mask & _EXIT:
            return int(code)
    return None
