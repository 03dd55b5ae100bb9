"""Pages of ranks as ``csrc/core/live`` makes them, of processes that are no ranks.

`python live_pages.py RANKS FILES WORLD COMMAND` holds some until its standard input ends. WORLD, "RANK/RANKS", makes
the first one that rank of so many, in a job without a name; where it is "" the job is this process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

HEAD, FILE = 4096, 256
F_ADD_SEALS, SEALS = 1033, 1 | 2 | 4
#: Bytes and calls of each file of a page, reads and writes.
EACH = (30, 4000, 3, 40)


def start_ticks(pid: int | str = "self") -> int:
    """Return when a process was started, as /proc has it."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def content(
    rank: int = 0,
    ranks: int = 1,
    files: int = 1,
    *,
    room: int = 8,
    version: int = 1,
    state: int = 1,
    change: int = 0,
    magic: bytes = b"MPIOXLIV",
    pid: int = 0,
    ticks: int = 0,
    program: str = "app",
    world: str = "",
    path: str = "/scratch/file",
    service: str = "",
    arbiter: str = "",
    command: str = "",
    rest: tuple[int, int, int, int] = (5, 6, 7, 8),
) -> bytearray:
    """Return the bytes of a page whose first `files` entries are in use.

    Where the launcher gives the job no name it has that of this process: tests in other processes are other jobs.
    """
    page = bytearray(HEAD + max(room, files) * FILE)
    struct.pack_into(
        "<8s4i3q",
        page,
        0,
        magic,
        version,
        HEAD,
        FILE,
        max(room, files),
        pid or os.getpid(),
        ticks or start_ticks(),
        time.time_ns(),
    )
    struct.pack_into("<4iQ3q4q", page, 48, rank, ranks, state, files, change, files + 2, files, 0, *rest)
    texts = {
        128: os.uname().nodename,
        192: program,
        320: world or f"test-{os.getpid()}",
        448: command or f"./{program} --in x",
        960: service,
        1024: arbiter,
    }
    for at, text in texts.items():
        page[at : at + len(text.encode())] = text.encode()
    for index in range(files):
        struct.pack_into("<6q208s", page, HEAD + index * FILE, *EACH, time.time_ns(), 0, f"{path}.{index}".encode())
    return page


def hold(page: bytes | bytearray, *, name: str = "mpiio_ext.live", sealed: bool = True) -> int:
    """Return a descriptor of a memfd that holds a page."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(descriptor, page)
    if sealed:
        fcntl.fcntl(descriptor, F_ADD_SEALS, SEALS)
    return descriptor


@contextlib.contextmanager
def holding(ranks: int, files: int, world: str = "", *, command: str = "") -> Iterator[subprocess.Popen[str]]:
    """Have pages in another process."""
    with subprocess.Popen(
        [sys.executable, __file__, str(ranks), str(files), world, command],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def main() -> None:
    """Hold pages, say so, and wait."""
    ranks, files = map(int, sys.argv[1:3])
    world, command = sys.argv[3:5]
    first, of = map(int, world.split("/")) if world else (0, ranks)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    ticks = start_ticks()
    for rank in range(ranks):
        hold(content(first + rank, of, files, room=files, ticks=ticks, world="-" if world else "", command=command))
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
