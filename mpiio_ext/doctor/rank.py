"""One rank of the job in which doctor examines MPI: initialise, compare, write and read, spawn.

Runs in a child of each rank's ``mpiio-ext doctor``, which has the rank's place in the job. The steps come in the order
of how likely they are to fail, and each result is reported before the next one begins.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.doctor.linker import loaded_mpi
from mpiio_ext.doctor.storage import folder_of

if TYPE_CHECKING:
    from mpi4py import MPI

_BLOCK_BYTES = 4096
_BLOCKS = 16
_CHILD = (
    "from mpi4py import MPI; parent = MPI.Comm.Get_parent(); parent.send(MPI.COMM_WORLD.size, 0); parent.Disconnect()"
)

Report = Callable[..., None]


def facts() -> dict[str, Any]:
    """Return the facts in which the ranks of a job must agree, and their host."""
    import mpiio_ext

    library, python = str(mpiio_ext.get_library()), ".".join(map(str, sys.version_info[:3]))
    return {"host": socket.gethostname(), "mpiio_ext": mpiio_ext.__version__, "library": library, "python": python}


def take_part(report: Report, path: str, write: bool, spawn: bool) -> None:
    """Take part in the job as one rank. Collective over the ranks of the job; blocks as MPI does.

    Parameters
    ----------
    report : writes down the facts.
    path : in whose folder a small file is written and read.
    write : whether it is to be.
    spawn : whether rank 0 is to spawn a process.
    """
    import mpiio_ext  # under MPI, as in a program
    from mpiio_ext._binding import ffi, lib

    import mpi4py  # isort: skip

    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    from mpi4py import MPI

    version = MPI.Get_library_version().strip("\0\n ").splitlines()[0]
    report(version=version, standard=list(MPI.Get_version()), interposed=mpiio_ext.interposed(), mpi_paths=loaded_mpi())
    MPI.Init_thread(MPI.THREAD_MULTIPLE)
    world = MPI.COMM_WORLD
    world.Set_errhandler(MPI.ERRORS_RETURN)
    report(size=world.size)
    gathered = world.gather(facts() | {"version": version}, root=0)
    if gathered is not None:
        report(ranks=gathered)
    if write:
        _round_trip(report, folder_of(Path(path)))
    if spawn and world.rank == 0:
        reason = lib.mpiio_ext_spawn_refusal()
        refused = "" if reason == ffi.NULL else ffi.string(reason).decode()
        report(spawn_refused=refused)
        if not refused:  # else it may hang, or end the job, and no rank would spawn
            _spawn(report)
    MPI.Finalize()
    report(finalized=True)


def _name(world: MPI.Intracomm, folder: Path) -> tuple[Path, str]:
    """Return a new file of rank 0, or why there is none, the same on all ranks."""
    made = ("", "")
    if world.rank == 0:
        try:
            number, name = tempfile.mkstemp(prefix=".mpiio_ext-doctor-", dir=folder)
            os.close(number)
            made = (name, "")
        except OSError as error:
            made = ("", error.strerror or str(error))
    name, reason = world.bcast(made, root=0)
    return Path(name), reason


def _round_trip(report: Report, folder: Path) -> None:
    """Write interleaved blocks by a collective, read them back, and report which library carried it out."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    path, reason = _name(world, folder)
    if reason:
        report(trip_error=f"no file can be made: {reason}")
        return
    seen = world.allgather((socket.gethostname(), path.exists()))
    blind = sorted({host for host, there in seen if not there})
    try:
        if blind:
            report(trip_error=f"{', '.join(blind)} does not see the file that rank 0 has made", trip_blind=blind)
            return
        try:
            _transfer(report, world, path)
        except MPI.Exception as error:
            report(trip_error=error.Get_error_string())
    finally:
        world.Barrier()
        if world.rank == 0:
            path.unlink(missing_ok=True)


def _transfer(report: Report, world: MPI.Intracomm, path: Path) -> None:
    from mpi4py import MPI

    from mpiio_ext import stats

    mine = bytes((world.rank + index) % 251 for index in range(_BLOCK_BYTES)) * _BLOCKS
    file = MPI.File.Open(world, str(path), MPI.MODE_RDWR)
    pieces = MPI.BYTE.Create_vector(_BLOCKS, _BLOCK_BYTES, _BLOCK_BYTES * world.size).Commit()
    file.Set_view(world.rank * _BLOCK_BYTES, MPI.BYTE, pieces)
    file.Write_at_all(0, mine)
    back = bytearray(len(mine))
    file.Read_at_all(0, back)
    numbers = stats.of(file)
    right = world.allreduce(back == mine, MPI.LAND)
    own = world.allreduce(numbers is not None and numbers.native_calls == 0, MPI.LAND)
    report(trip_right=bool(right), trip_own=bool(own), trip_reason="" if numbers is None else numbers.reason)
    pieces.Free()
    file.Close()


def _spawn(report: Report) -> None:
    """Spawn one process and receive its message."""
    from mpi4py import MPI

    try:
        child = MPI.COMM_SELF.Spawn(sys.executable, ["-c", _CHILD], 1)
        size = child.recv(source=0)
        child.Disconnect()
        report(spawned=size)
    except MPI.Exception as error:
        report(spawned=0, spawn_error=error.Get_error_string())
