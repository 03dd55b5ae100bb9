"""Which ranks of a run have failed, and how: seen by a process that is the parent of none of them.

Problem. A launcher that has lost a rank ends the others, and names the one on a terminal at best. A rank that is ended
by a signal writes down nothing, and how it has ended is told to its parent alone.

Algorithm. The name of each recording has rank, host and process; a rank that ends by itself writes its exit status into
it. Recordings of this host are looked for again and again, the more rarely the longer there is none that is new, and
their processes are waited for by pidfds: so the order in which they end is known. How one has ended stands in
`/proc` as long as nobody has waited for it, and later is told by Linux itself, from 6.15 on.

Guarantees. Ranks are not asked, and nothing is sent to them. What is not known is not said. Without pidfds (Linux
before 5.3) only exit statuses are told. Not guaranteed: that the first one is the cause. Hydra kills the other ranks
within milliseconds, and one of these may be seen first.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import select
import signal
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpiio_ext.common.recordings import SUFFIXES, State, states

_NAME = re.compile(rf"(?:rank\d+|norank)\.(.+)\.(\d+)(?:\.\d+)?{re.escape(SUFFIXES[0])}")
#: Between two looks for recordings: at first, and at most.
_FIRST_S, _MOST_S = 0.1, 5.0
#: Processes that are waited for.
_MOST_WATCHED = 512
#: The request of PIDFD_GET_INFO, the mask of how a process has ended, and what is told: mask … exit code.
_GET_INFO, _EXIT, _INFO = 0xC0400000 | 0xFF << 8 | 11, 1 << 3, struct.Struct("=Q52xi")
#: By these a launcher ends ranks.
_OF_LAUNCHERS = (signal.SIGTERM, signal.SIGKILL)
_MOST_NAMED = 8
#: What is said of a launcher that ends a rank.
TERMINATED = b"terminated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A rank that has failed.

    Attributes
    ----------
    rank, host : which.
    status : its exit status; None: it has none, or that is not known.
    number : of the signal that has ended it; 0: one that is not known; None: none has.
    """

    rank: int
    host: str
    status: int | None = None
    number: int | None = None

    @property
    def by_itself(self) -> bool:
        """Whether it is not known to have been ended as launchers end ranks."""
        return self.number is None or self.number not in (0, *_OF_LAUNCHERS)

    def text(self, launcher: int = 0) -> str:
        """Return what has become of it; `launcher`: exit status of what has started it, which may name the signal."""
        number = self.number
        if number == 0 and launcher > 128:
            number = launcher - 128
        if number is not None:
            how = f"was ended by {signal_text(number)}"
        else:
            how = f"ended with status {self.status}" if self.status else "ended without MPI_Finalize"
        return f"rank {self.rank} on {self.host} {how}"


def signal_text(number: int) -> str:
    """Return a signal in words; 0: one that is not known."""
    try:
        return f"signal {signal.Signals(number).name}" if number else "a signal"
    except ValueError:  # of real time
        return f"signal {number}"


def text_of(failed: Sequence[Ending], launcher: int = 0) -> str:
    """Return which rank has failed first, and which others did so by themselves; "" where none has."""
    if not failed:
        return ""
    more = [ending.rank for ending in failed[1:] if ending.by_itself]
    hidden = f" and {len(more) - _MOST_NAMED:,} more" if len(more) > _MOST_NAMED else ""
    others = f" (further ranks that failed: {', '.join(map(str, more[:_MOST_NAMED]))}{hidden})" if more else ""
    return failed[0].text(launcher) + others


class Endings:
    """Watches the ranks of a run on this host."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._host = folder, os.uname().nodename
        self._poll = select.poll()
        self._watched: dict[int, int] = {}  # pidfd -> process
        self._names: set[str] = set()
        #: Processes in the order of their ends, those of one moment together, and how they have ended.
        self._ended: list[dict[int, int | None]] = []

    def wait(self, pipe: int, fails: Callable[[Ending | None], None]) -> list[bytes]:
        """Return the words that come by a pipe until that is closed.

        `fails` is called once: when a rank of this host has failed, or soon after the word `TERMINATED`, with None
        where no such rank is known.
        """
        self._poll.register(pipe, select.POLLIN)
        told, pause, look_at, tell_at = b"", _FIRST_S, time.monotonic(), math.inf
        called = False
        while True:
            if (now := time.monotonic()) >= look_at:
                pause = _FIRST_S if self._look() else min(2 * pause, _MOST_S)
                look_at = now + pause
            ready = [fd for fd, _ in self._poll.poll(max(1.0, 1000 * (min(look_at, tell_at) - now)))]
            self._take([fd for fd in ready if fd != pipe])
            text = os.read(pipe, 256) if pipe in ready else None
            told += text or b""
            if TERMINATED in told and tell_at == math.inf and not called:
                tell_at = now + _FIRST_S
            late = time.monotonic() >= tell_at or (text == b"" and tell_at < math.inf)
            if not called and (late or self._ended or text):
                failed = self.failed()
                if failed or late:
                    fails(failed[0] if failed else None)
                    called, tell_at = True, math.inf
            if text == b"":
                return [word for word in told.split() if word != TERMINATED]

    def failed(self) -> list[Ending]:
        """Return the ranks that have failed, as far as is known now, in the order in which they did."""
        ranks = [state for state in states(self._folder) if state.rank >= 0]
        mine = {state.pid: state for state in ranks if state.host == self._host}
        found: list[Ending] = []
        for together in self._ended:
            endings = [_ending(mine.pop(pid), code) for pid, code in together.items() if pid in mine]
            found += sorted(filter(None, endings), key=lambda ending: (not ending.by_itself, ending.rank))
        rest = [state for state in ranks if (state.host != self._host or state.pid in mine)
                and (state.exit_status is not None or not state.running)]  # fmt: skip
        others = [ending for state in rest if (ending := _ending(state, None)) is not None]
        return found + others if found and found[0].by_itself else others + found

    def _look(self) -> bool:
        """Begin to wait for the processes of recordings that are new; return whether there are some."""
        new = False
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                name = _NAME.fullmatch(entry.name) if entry.name not in self._names else None
                self._names.add(entry.name)
                if name is None or name[1] != self._host or int(name[2]) in self._watched.values():
                    continue
                new = True
                if len(self._watched) < _MOST_WATCHED:
                    with contextlib.suppress(OSError, AttributeError):
                        fd = os.pidfd_open(int(name[2]))
                        self._watched[fd] = int(name[2])
                        self._poll.register(fd, select.POLLIN)
        return new

    def _take(self, ready: Sequence[int]) -> None:
        """Take down which processes have ended."""
        ended = {}
        for fd in ready:
            pid = self._watched.pop(fd)
            ended[pid] = _code(fd, pid)
            self._poll.unregister(fd)
            os.close(fd)
        if ended:
            self._ended.append(ended)


def _ending(state: State, code: int | None) -> Ending | None:
    """Return how a rank has failed; None where it has not. `code`: as of wait(); None: not known."""
    if code is None and state.exit_status is not None:
        code = state.exit_status << 8
    if code is None:
        if state.running:
            return Ending(rank=state.rank, host=state.host, number=0)
        return None if state.finalized else Ending(rank=state.rank, host=state.host)
    if code & 0x7F:
        return Ending(rank=state.rank, host=state.host, number=code & 0x7F)
    if code >> 8 == 0 and state.finalized:
        return None
    return Ending(rank=state.rank, host=state.host, status=code >> 8)


def _code(fd: int, pid: int) -> int | None:
    """Return how a process has ended, as of wait(); None: nobody tells."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        if fields[0] in "ZX":
            return int(fields[49])
    with contextlib.suppress(OSError):
        told = bytearray(_INFO.pack(_EXIT, 0))
        fcntl.ioctl(fd, _GET_INFO, told)
        mask, code = _INFO.unpack(told)
        if mask & _EXIT:
            return int(code)
    return None
