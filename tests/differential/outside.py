"""Steps of a case that are no calls of MPI: POSIX calls of rank 0, deaths, the next job. Used by the workers, too.

Problem.    A program is not alone with its files: others list, rename and read them, and another job follows one that
            has died. What the MPI library, delegates or subfiles leave behind must then be as MPI promises.
Semantics.  ``posix``: rank 0 makes one call of the system between two barriers. The content must be settled. ``named``
            and ``hidden``: the file has its name, or a staging name alone, whose content ``read`` reads.
            ``kill RANKS`` or ``kill launcher``: the processes get SIGKILL, and with them the whole launch ends. A byte
            that was synced has its value; any other byte has that value, or one that was written since. ``kill
            delegates``: each delegate gets SIGKILL, and nothing else may happen.
            ``job``: the case goes on in a launch of its own, in which no file is open.
            ``limit``: no file may grow beyond a size (RLIMIT_FSIZE of each rank). Storage also fails where the case has
            ``fault`` or ``disk``: a write that fails may have written some of its bytes. A sync, a close or a change to
            atomic mode that fails may have lost what was written since the last sync. What the library loses by
            ``lost`` is no call of the case; where this makes a call fail, the same holds.
"""

from __future__ import annotations

import os
import pathlib
import resource
import signal
from typing import TYPE_CHECKING, Any

import numpy as np

from differential.filestate import File
from differential.state import Case, Illegal, Op, file_bytes
from support import subfiles
from support.launch import MARKER, marked_processes
from support.processes import is_delegate, parent, words

if TYPE_CHECKING:
    from differential.simulate import Simulation

POSIX = ("stat", "read", "write", "rename", "remove", "named", "hidden")
#: Functions of MPI that can fail for the library alone (tests/programs/undefine.c).
LOSABLE = (
    *("Bcast", "Allreduce", "Reduce", "Exscan", "Allgather", "Comm_split", "Comm_split_type"),
    *("Iallgather", "Iallreduce", "Ibcast", "Isend", "Issend", "Irecv", "Imrecv", "Improbe"),
)
LAUNCHERS = ("mpirun", "mpiexec", "orterun", "srun")


def ends_launch(op: Op) -> bool:
    """Tell whether no rank goes on after a step."""
    return bool(op["op"] == "kill" and op["who"] != "delegates")


def parts(case: Case) -> list[int]:
    """Return the number of the first step of each job of a case."""
    return [0, *(index for index, op in enumerate(case["ops"]) if op["op"] == "job")]


def storage_fails(case: Case) -> bool:
    """Tell whether a write of the case may fail for want of storage."""
    return "fault" in case or "disk" in case or loses(case) or any(op["op"] == "limit" for op in case["ops"])


def loses(case: Case) -> bool:
    """Tell whether calls of the MPI library by this one fail."""
    return any("lost" in op for op in case["ops"])


# ---- the model ------------------------------------------------------------------------------------------------------


def simulate(simulation: Simulation, index: int, op: Op) -> Any:
    """Apply one of these steps; what it must give."""
    if op["op"] == "posix":
        return posix_model(simulation, index, op)
    if simulation.pending:
        raise Illegal("requests are outstanding")
    if op["op"] == "job":
        if simulation.handles:
            raise Illegal("a file is open")
        simulation.meet("sync")
        simulation.dead = False
    elif ends_launch(op):
        for handle in simulation.handles.values():
            if "delete" in handle.op["mode"]:
                raise Illegal("nobody knows whether a file is deleted")
        for file in simulation.files.values():
            if file.dirty:
                file.may_be(file.synced)
        simulation.handles.clear()
        simulation.dead = True
    return None


def posix_model(simulation: Simulation, index: int, op: Op) -> int | None:
    """Apply a POSIX call; the size of the file that it is about, None where there is no file."""
    name, what = op["file"], op["what"]
    file = simulation.files.setdefault(name, File(np.zeros(0, np.uint8), exists=False))
    if file.dirty or simulation.pending:
        raise Illegal("accesses without sync")
    if what == "write":
        if any(name in handle.files for handle in simulation.handles.values()):
            raise Illegal("the file is open")
        target = np.arange(op["at"], op["at"] + op["count"])
        file.exists = True
        file.put(target, file_bytes(simulation.case["seed"], index, target))
        file.sync()
    elif not file.exists:
        return None
    elif what == "rename":
        simulation.rename(name, op["to"])
    elif what == "remove":
        simulation.delete(name)
    return True if what in ("named", "hidden") else len(file.data)


# ---- the worker -----------------------------------------------------------------------------------------------------


def posix(seed: int, index: int, op: Op, path: pathlib.Path, to: pathlib.Path) -> int | bytes | None:
    """Make a POSIX call; what the file held (of a read), else its size, None where there is no file."""
    what = op["what"]
    if what == "write":
        offsets = np.arange(op["at"], op["at"] + op["count"])
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(fd, file_bytes(seed, index, offsets).tobytes(), op["at"])
        os.close(fd)
    names, staging = os.listdir(path.parent), path.with_name(f".{path.name}.staging")  # no call waits for a name
    if what == "named":
        return path.name in names
    if what == "hidden":
        return path.name not in names and staging.name in names
    try:
        if what == "read" and path.name not in names and staging.name in names:
            return subfiles.read(staging)
        size = path.stat().st_size
        if what == "read":
            return path.read_bytes()
        if what == "rename":
            path.rename(to)
        elif what == "remove":
            path.unlink()
    except FileNotFoundError:
        return None
    return size


def limit(size: int) -> None:
    """Have each write beyond a size fail with EFBIG; -1: no more."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def kill_delegates() -> int:
    """Kill the delegates of this launch, and let those who look after them live; how many."""
    pids = {pid: parent(pid) for pid in marked_processes(os.environ[MARKER]) if is_delegate(pid)}
    victims = [pid for pid, above in pids.items() if above in pids and pid not in pids.values()]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    return len(victims)


def kill_launcher() -> None:
    """Kill the launcher: the highest process above this one whose program is one."""
    found, pid = 0, os.getppid()
    while pid > 1:
        found = pid if pathlib.Path(words(pid).split(" ")[0]).name in LAUNCHERS else found
        pid = parent(pid)
    os.kill(found, signal.SIGKILL)
