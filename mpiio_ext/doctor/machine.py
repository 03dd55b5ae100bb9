"""What this machine gives a process: limits, shared memory, the memory of other processes, io_uring.

Each check takes a `Machine`, so that a test can give it another root of ``/dev`` and ``/proc``. Where the kernel
decides (shared memory, io_uring, process_vm_readv), it is tried in a child process and not read from a setting: a
container's seccomp profile, user namespaces and security modules have a say, too.
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mpiio_ext.common.units import size_text
from mpiio_ext.doctor.children import ask
from mpiio_ext.doctor.findings import Finding, bad, good, warn

_KIB, _MIB = 2**10, 2**20
#: Below so many descriptors rank 0 leaves files to the MPI library (docs/explanation/limitations.md).
_FEWEST_FILES, _FEW_FILES = 64, 1024
_SMALL_SHM = 64 * _MIB
_ENOSYS, _EPERM, _EACCES, _ENOMEM = 38, 1, 13, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the checks look at.

    Attributes
    ----------
    root : folder that stands for "/" in front of ``dev`` and ``proc``.
    environment : variables that count.
    limit_s : seconds that a child process may take.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    limit_s: float = 20.0

    def text(self, name: str) -> str | None:
        """Return the content of a file of the kernel without blanks around it, None where it is not there."""
        try:
            return (self.root / name).read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            return None


def _limit(which: int) -> int | None:
    """Return a soft limit, None where there is none."""
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def limits() -> list[Finding]:
    """Return what ulimit says of this process: descriptors, file size, address space, locked memory, core files."""
    return [_open_files(), _file_size(), _address_space(), _locked(), _core()]


def _open_files() -> Finding:
    key, hard = "limits.open_files", resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    soft = _limit(resource.RLIMIT_NOFILE)
    facts = {"soft": soft, "hard": None if hard == resource.RLIM_INFINITY else hard}
    if soft is not None and soft < _FEWEST_FILES:
        return bad(key, f"{soft} open files", "MPI itself needs more: ulimit -n 4096, in the job script", **facts)
    if soft is not None and soft < _FEW_FILES:
        return warn(
            key,
            f"{soft} open files",
            "rank 0 leaves files to the MPI library when fewer than eight "
            "descriptors are left: ulimit -n 4096, in the job script",
            **facts,
        )
    return good(key, f"{'any number of' if soft is None else soft} open files", **facts)


def _file_size() -> Finding:
    key, soft = "limits.file_size", _limit(resource.RLIMIT_FSIZE)
    if soft is None:
        return good(key, "files of any size", bytes=None)
    return warn(
        key,
        f"files up to {size_text(soft)}",
        "a write beyond ends the program by a signal, and shared memory counts: ulimit -f unlimited",
        bytes=soft,
    )


def _address_space() -> Finding:
    key, soft = "limits.address_space", _limit(resource.RLIMIT_AS)
    if soft is None:
        return good(key, "address space without limit", bytes=None)
    return warn(
        key,
        f"address space up to {size_text(soft)}",
        "what does not fit leaves files to the MPI library: ulimit -v unlimited",
        bytes=soft,
    )


def _locked() -> Finding:
    key, soft = "limits.locked_memory", _limit(resource.RLIMIT_MEMLOCK)
    if soft is None or soft >= _MIB:
        return good(key, f"{'any amount of' if soft is None else size_text(soft)} locked memory", bytes=soft)
    return warn(
        key,
        f"{size_text(soft)} of locked memory",
        "networks with RDMA (InfiniBand) need more, and io_uring before "
        "Linux 5.12: ulimit -l unlimited; the site sets it in limits.conf or slurmd",
        bytes=soft,
    )


def _core() -> Finding:
    key, soft = "limits.core_files", _limit(resource.RLIMIT_CORE)
    some = "core files of any size" if soft is None else f"core files up to {size_text(soft)}"
    text = some if soft != 0 else "no core files"
    return good(key, text, "" if soft != 0 else "to look into a crash: ulimit -c unlimited", bytes=soft)


def _writable(folder: Path) -> str:
    """Return why no file can be made in a folder, "" where one can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def shm(machine: Machine) -> Finding:
    """Return whether there is room in /dev/shm, which MPI libraries use between the ranks of a node.

    This library uses it, or TMPDIR, where ranks cannot open each other's memfd.
    """
    key, folder = "memory.shm", machine.root / "dev/shm"
    other = machine.environment.get("TMPDIR") or "/tmp"
    try:
        room = os.statvfs(folder)
        reason = _writable(folder)
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        spare = "" if _writable(Path(other)) else f"; this library uses {other} in its place"
        return warn(
            key,
            f"/dev/shm cannot be used: {reason}",
            f"mount a tmpfs there (MPI libraries need it){spare}",
            writable=False,
            total_bytes=None,
            free_bytes=None,
        )
    total, free = room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize
    facts = {"writable": True, "total_bytes": total, "free_bytes": free}
    text = f"/dev/shm: {size_text(free)} of {size_text(total)} free"
    if min(total, free) < _SMALL_SHM:
        full = total >= _SMALL_SHM
        advice = "remove what ended jobs have left there" if full else "make it larger: docker run --shm-size=1g"
        return warn(key, text, f"{advice}; MPI libraries die of SIGBUS where it is full", **facts)
    return good(key, text, **facts)


def sharing(machine: Machine) -> Finding:
    """Return whether processes of this user can map each other's memory, by which the ranks of a node exchange data."""
    key = "memory.sharing"
    answer = ask("sharing", environment=machine.environment, limit_s=machine.limit_s)
    trouble = answer.values.get("memfd") or (answer.reason() if "memfd" not in answer.values else "")
    overcommit = machine.text("proc/sys/vm/overcommit_memory")
    facts = {"memfd": not trouble, "overcommit_memory": overcommit}
    if not trouble:
        return good(key, "a process can map another's memory (memfd)", **facts)
    other = machine.environment.get("TMPDIR") or "/tmp"
    folders = [str(folder) for folder in (machine.root / "dev/shm", Path(other)) if not _writable(folder)]
    if folders:
        return warn(
            key,
            f"no memfd of another process: {trouble}",
            f"files in {folders[0]} take its place; all ranks of a node must see this folder",
            **facts,
        )
    return bad(
        key,
        f"processes cannot share memory: {trouble}; neither /dev/shm nor {other} can be written to",
        "files stay with the MPI library: give the ranks a /dev/shm or a TMPDIR",
        **facts,
    )


def vm_readv(machine: Machine) -> Finding:
    """Return whether a process may read another's memory (CMA), by which MPI libraries send large messages."""
    key, scope = "memory.process_vm_readv", machine.text("proc/sys/kernel/yama/ptrace_scope")
    answer = ask("vm_readv", environment=machine.environment, limit_s=machine.limit_s)
    number = answer.values.get("errno")
    facts = {"errno": number, "ptrace_scope": scope}
    if number == 0:
        # Between ranks only ranks can tell: `job.process_vm_readv`.
        return good(key, "process_vm_readv works between processes that one process has started", **facts)
    reason = answer.reason() if number is None else os.strerror(int(number))
    why = f", kernel.yama.ptrace_scope is {scope}" if scope not in (None, "0") else ""
    return warn(
        key,
        f"process_vm_readv is refused: {reason}{why}",
        "messages of the MPI library inside a node are "
        "copied twice: sysctl kernel.yama.ptrace_scope=0, or docker run --cap-add=SYS_PTRACE; this library does "
        "without",
        **facts,
    )


def io_uring(machine: Machine, has_liburing: bool | None, opens_liburing: bool = False) -> Finding:
    """Return whether the kernel gives a process an io_uring, and whether the library would use it."""
    key, disabled = "io_uring", machine.text("proc/sys/kernel/io_uring_disabled")
    answer = ask("io_uring", environment=machine.environment, limit_s=machine.limit_s)
    number = answer.values.get("errno")
    facts = {"errno": number, "io_uring_disabled": disabled, "liburing": has_liburing}
    follows = "plain calls are used; reads that wait for a device are not in flight together"
    if number != 0:
        reason = answer.reason() if number is None else os.strerror(int(number))
        if disabled in ("1", "2"):
            return warn(
                key,
                f"refused: kernel.io_uring_disabled is {disabled}",
                f"{follows}: sysctl kernel.io_uring_disabled=0",
                **facts,
            )
        cause = {
            _ENOSYS: "Linux 5.1 or newer has it, a container may hide it (seccomp)",
            _EPERM: "the container's seccomp profile forbids it",
            _ENOMEM: "raise ulimit -l",
        }.get(-1 if number is None else int(number), "")
        return warn(key, f"refused: {reason}", "; ".join(word for word in (follows, cause) if word), **facts)
    if has_liburing is False and opens_liburing:
        return warn(
            key,
            "the kernel gives one, but there is no liburing.so.2",
            f"{follows}: install it (liburing2 of Debian, liburing of RHEL), or put its folder into LD_LIBRARY_PATH",
            **facts,
        )
    if has_liburing is False:
        return warn(
            key,
            "the kernel gives one, but this library was built without liburing",
            f"{follows}: install liburing 2.2 or newer with its headers, and build again",
            **facts,
        )
    return good(key, "the kernel gives one (hint mpiox_storage)", **facts)


def examine(machine: Machine, has_liburing: bool | None, opens_liburing: bool = False) -> list[Finding]:
    """Return all that is found out about this machine.

    Parameters
    ----------
    machine : where to look.
    has_liburing : whether the library has it; None where that is not known.
    opens_liburing : whether it looks for it at run time, as that of a wheel does.
    """
    last = io_uring(machine, has_liburing, opens_liburing)
    return [*limits(), shm(machine), sharing(machine), vm_readv(machine), last]
