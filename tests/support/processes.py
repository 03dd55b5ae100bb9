"""The processes of a launch that is still running: which of them are delegates, and what each of them holds."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from support.launch import MARKER, base_environment, end_marked, marked_processes

DELEGATE = "mpiio-ext-delegate"


@dataclass(slots=True, kw_only=True)
class Job:
    """A launch under way.

    Attributes
    ----------
    marker : what all its processes have in their environment.
    log : where its standard output goes; its messages go beside it, for launchers mix the two within a line.
    """

    process: subprocess.Popen[bytes]
    marker: str
    log: pathlib.Path
    killed: list[int] = field(default_factory=list)

    def text(self) -> str:
        """Return what it has printed so far, then its messages."""
        return "\n".join(path.read_text("utf-8", errors="replace") for path in (self.log, messages_of(self.log)))

    def status(self, limit_s: float) -> int | None:
        """Wait for its end; its status, None when it goes on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(timeout=limit_s)
        return None

    def wait_for(self, said: str, limit_s: float) -> None:
        """Wait until it has said something, while it goes on."""
        deadline_s = time.monotonic() + limit_s
        while said not in self.text():
            assert time.monotonic() < deadline_s, self.text()
            assert self.process.poll() is None or said in self.text(), self.text()
            time.sleep(0.02)

    def left(self, grace_s: float) -> list[str]:
        """Return the processes that stay after the end, for so long.

        None is seen three times: a process that execve is just giving another program has no environment to be read.
        """
        deadline_s = time.monotonic() + grace_s
        pids: list[int] = []
        for _ in range(3):
            while (pids := marked_processes(self.marker)) and time.monotonic() < deadline_s:
                time.sleep(0.05)
            time.sleep(0.05)
        return [f"{pid}: {words(pid)}" for pid in pids]

    def delegates(self) -> list[int]:
        """Return the process ids of its delegates, without those who have started one or look after one."""
        parents = {pid: parent(pid) for pid in marked_processes(self.marker) if is_delegate(pid)}
        return sorted(pid for pid, above in parents.items() if above in parents and pid not in parents.values())

    def supervisors(self) -> list[int]:
        """Return the processes that look after delegates."""
        return sorted({parent(pid) for pid in self.delegates() if is_delegate(parent(pid))})


def messages_of(log: pathlib.Path) -> pathlib.Path:
    """Return where the messages of a job go whose standard output goes to `log`."""
    return log.with_name(f"{log.name}.messages")


@contextlib.contextmanager
def job(command: Sequence[str], log: pathlib.Path, env: Mapping[str, str] | None = None) -> Iterator[Job]:
    """Start a command; nothing of it is alive afterwards."""
    marker = uuid.uuid4().hex
    with log.open("wb") as output, messages_of(log).open("wb") as messages:
        process = subprocess.Popen(
            [os.fspath(word) for word in command],
            env={**base_environment(), **(env or {}), MARKER: marker},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=messages,
            start_new_session=True,
        )
    try:
        yield Job(process=process, marker=marker, log=log)
    finally:
        end_marked(marker, process)


def shared_memory() -> set[str]:
    """Return the names of this library's shared-memory files."""
    return {entry.name for entry in pathlib.Path("/dev/shm").glob("mpiox.*")}


def words(pid: int) -> str:
    """Return a process's command line, "" when it is gone."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def is_delegate(pid: int) -> bool:
    """Tell whether a process runs the delegates' executable."""
    first = words(pid).split(" ")[0]
    return pathlib.PurePath(first).name == DELEGATE


def fields(pid: int) -> dict[str, str]:
    """Return /proc/PID/status."""
    with contextlib.suppress(OSError):
        lines = pathlib.Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {}


def parent(pid: int) -> int:
    """Return a process's parent, 0 when it is gone."""
    return int(fields(pid).get("PPid", "0"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a process holds: private memory, open descriptors, threads, shared mappings, address space."""

    private_bytes: int
    descriptors: int
    threads: int
    shared_mappings: int
    virtual_bytes: int


def held(pid: int) -> Held | None:
    """Return what a process holds, None when it is gone."""
    try:
        found = fields(pid)
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text("utf-8", errors="replace").splitlines()
        return Held(
            private_bytes=int(found["RssAnon"].split()[0]) * 1024,
            descriptors=len(os.listdir(f"/proc/{pid}/fd")),
            threads=int(found["Threads"]),
            shared_mappings=sum(line.split()[1].endswith("s") for line in maps),
            virtual_bytes=int(found["VmSize"].split()[0]) * 1024,
        )
    except (OSError, KeyError):
        return None
