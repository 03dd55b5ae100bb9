"""Looks at delegates while they run: what they have done, and the memory that they take; a context around a launch."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpiio_ext import delegates as watching


@dataclass(slots=True)
class Seen:
    """What was seen of one delegate.

    `segment_bytes` is the peak of what its shared segment takes, whoever has it mapped: pages in memory, each counted
    once. `private_bytes` is the peak of what its process has beside it: its own memory, and before any client came.
    """

    status: Any = None
    segment_bytes: int = 0
    private_bytes: int = 0
    private_at_start_bytes: int = 0
    resident_bytes: int = 0


def _segment_of(pid: int) -> int:
    """Return the bytes in memory of the shared segments that a process holds open."""
    total, known = 0, set[tuple[int, int]]()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target, identity = str(link.readlink()), link.stat()
        except OSError:
            continue
        key = identity.st_dev, identity.st_ino
        if ("memfd:mpiox" in target or "/mpiox." in target) and key not in known:
            known.add(key)
            total += identity.st_blocks * 512
    return total


def _status_bytes(pid: int, *names: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.split(":")[0] in names)


class Observer:
    """Looks at the delegates that start while it runs; a context."""

    def __init__(self, every_s: float = 0.02) -> None:
        self.seen: dict[tuple[str, int], Seen] = {}
        self._every_s, self._stop = every_s, threading.Event()
        self._watch = watching.Watch()
        self._before = {item.status.pid for item in self._watch.look()}
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Observer:
        """Begin to look."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look a last time: the memory of delegates that have ended is still mapped."""
        self._stop.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._look()

    def _look(self) -> None:
        for item in self._watch.look():
            if item.status.pid in self._before:
                continue
            seen = self.seen.setdefault((item.status.group, item.status.delegate), Seen())
            seen.status = item.status
            try:
                private = _status_bytes(item.status.pid, "RssAnon", "RssFile")
                seen.segment_bytes = max(seen.segment_bytes, _segment_of(item.status.pid))
                seen.resident_bytes = max(seen.resident_bytes, _status_bytes(item.status.pid, "VmRSS"))
            except (OSError, ValueError):
                continue  # it has ended
            seen.private_at_start_bytes = seen.private_at_start_bytes or private
            seen.private_bytes = max(seen.private_bytes, private)
