"""The common part of all shared folders: their places, the start of their servers, and their logs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster.tools import START_S, ClusterError

#: The host of the server, or of the server that the others ask.
SERVER = 1
#: Where servers keep their files: a folder of their host's own /dev/shm, in memory.
SERVED = "/dev/shm/served"
#: Bytes of the disk that a server has its files on.
DISK_BYTES = 4 << 30
#: Lines of servers' logs that name an error, and how many a message has.
ERROR_LINE = re.compile(r"\] [EC] \[|:(CRIT|MAJ|FATAL|EVENT):| -1 |\[(ERROR|WARNING)\]")
LOG_LINES = 5
#: Runs a command on a host, which must succeed: (number of the host, words); its output.
Run = Callable[[int, list[str]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a shared folder is served and mounted.

    Attributes
    ----------
    private : folder of the cluster, the same on all hosts: settings, logs, mount points.
    count : of the hosts.
    run : runs a command on a host.
    """

    private: Path
    count: int
    run: Run

    def logged(self, log: Path, k: int, words: list[str]) -> str:
        """Run a command on host k; if it fails, the end of its log is part of the message."""
        try:
            return self.run(k, words)
        except ClusterError as error:
            text = log.read_text("utf-8", errors="replace") if log.exists() else ""
            lines = [line for line in text.splitlines() if ERROR_LINE.search(line)]
            raise ClusterError("\n".join([str(error), *lines[-LOG_LINES:]])) from error


def make_disk(place: Place, k: int, path: str) -> None:
    """Give a server on host k a disk of its own, unless it has it: a file system in memory, which may get full."""
    script = f'mkdir -p "{path}"; mountpoint -q "{path}" || mount -t tmpfs -o size={DISK_BYTES},mode=700 disk "{path}"'
    place.run(k, ["sh", "-c", script])


def resize_disk(place: Place, k: int, path: str, free_bytes: int | None) -> None:
    """Leave so many bytes free on such a disk, None: as many as at first."""
    used = f'$(df -B1 --output=used "{path}" | tail -n 1)'
    size = f"{DISK_BYTES}" if free_bytes is None else f"$(({used} + {free_bytes}))"
    place.run(k, ["sh", "-c", f'mount -o remount,size={size} "{path}"'])


def keep_trying(step: Callable[[], object]) -> None:
    """Repeat a step until it goes well, as long as any step may take."""
    deadline_s = time.monotonic() + START_S
    while True:
        try:
            step()
        except ClusterError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)
        else:
            return


def lacking_fuse() -> list[str]:
    """Return why FUSE file systems cannot be mounted."""
    return [] if os.access("/dev/fuse", os.R_OK | os.W_OK) else ["/dev/fuse that can be opened"]
