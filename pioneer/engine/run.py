"""Carrying out plans: files that are read are made first, then every rank goes through its plan."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.engine.library import engine
from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.engine.plan import OPERATIONS, Plan, make_plan
from mpiio_ext.pioneer.path import WorkloadPath

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["NOT_MADE", "Outcome", "prepare_files", "replay"]

#: In place of the result of an operation that was left out.
NOT_MADE = -(2**63)
_MODES = ("CREATE", "RDONLY", "WRONLY", "RDWR", "DELETE_ON_CLOSE", "UNIQUE_OPEN", "EXCL", "APPEND", "SEQUENTIAL")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a plan.

    Attributes
    ----------
    start, duration : ns, of each operation, from the engine's start.
    result : what each call returned, or NOT_MADE.
    bytes_written, bytes_read : of calls that succeeded.
    failed, left_out : numbers of calls.
    """

    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    result: NDArray[np.int64]
    bytes_written: int
    bytes_read: int
    failed: int
    left_out: int


def _needed(plan: Plan) -> dict[str, int]:
    """Return the files that the plan reads before it has written them, and how long they must be."""
    reading = {OPERATIONS.get(name) for name in ("read", "pread", "fread", *(
        f"MPI_File_{kind}read{where}" for kind in ("", "i") for where in ("", "_all", "_at", "_at_all")))}
    made: dict[str, int] = {}
    position: dict[int, int] = {}
    written: set[int] = set()
    for operation, file, slot, offset, size in zip(
        plan.operation.tolist(), plan.file.tolist(), plan.slot.tolist(), plan.offset.tolist(), plan.size.tolist(),
        strict=True,
    ):  # fmt: skip
        if operation in reading and file >= 0 and file not in written:
            at = offset if offset >= 0 else position.get(slot, 0)
            made[plan.paths[file]] = max(made.get(plan.paths[file], 0), at + size)
            position[slot] = at + size
        elif file >= 0 and size > 0:
            written.add(file)
    return made


def prepare_files(plan: Plan, comm: MPI.Intracomm) -> int:
    """Make the folders and the files that the ranks need; this rank's number of files. Collective, blocking.

    Files that are long enough stay. Several ranks may lengthen the same file: each writes the same zeros behind the end
    that all have seen.

    Raises
    ------
    OSError
        One cannot be made.
    """
    for folder in {Path(name).parent for name in plan.paths}:
        folder.mkdir(parents=True, exist_ok=True)
    needed = _needed(plan)
    ends = {name: Path(name).stat().st_size if Path(name).exists() else 0 for name in needed}
    comm.Barrier()
    for name, size in needed.items():
        with Path(name).open("r+b" if Path(name).exists() else "w+b") as file:
            for at in range(ends[name], size, _CHUNK):
                os.pwrite(file.fileno(), bytes(min(_CHUNK, size - at)), at)
    comm.Barrier()
    return len(needed)


def _amodes(plan: Plan) -> NDArray[np.int32]:
    """Return the flags with MPI_MODE_* of this MPI library in opens of MPI-IO."""
    from mpi4py import MPI

    flags: NDArray[np.int32] = plan.flags.copy()
    opens = np.flatnonzero(plan.operation == OPERATIONS.get("MPI_File_open"))
    for row in opens:
        flags[row] = sum(getattr(MPI, f"MODE_{name}") for bit, name in enumerate(_MODES) if plan.flags[row] >> bit & 1)
    return flags


def _run(plan: Plan, comm: MPI.Intracomm, time_scale: float, spin_ns: int, most_bytes: int) -> Outcome:
    from mpi4py import MPI

    ffi, lib = engine()
    count = plan.ids.size
    arrays: dict[str, NDArray[Any]] = {
        "operation": plan.operation, "file": plan.file, "slot": plan.slot, "flags": _amodes(plan),
        "communicator": np.where(plan.everybody, comm.py2f(), MPI.COMM_SELF.py2f()).astype(np.int32),
        "offset": plan.offset, "size": plan.size, "slack": plan.slack,
        **{name: np.zeros(count, np.int64) for name in ("start", "duration", "result")},
    }  # fmt: skip
    kinds = {"uint8": "unsigned char[]", "int32": "int32_t[]", "int64": "int64_t[]"}
    keep = [ffi.new("char[]", os.fsencode(name)) for name in plan.paths]
    paths = ffi.new("const char *[]", keep or 1)
    order = ffi.new("mpiio_ext_engine_plan *", {
        "count": count, "paths": paths, "files": len(plan.paths), "slots": plan.slots, "time_scale": time_scale,
        "spin_ns": spin_ns, "most_bytes": most_bytes,
    })  # fmt: skip
    for name, array in arrays.items():
        setattr(order, name, ffi.from_buffer(kinds[array.dtype.name], array))
    if lib.mpiio_ext_engine_run(order) != 0:
        raise MemoryError("the engine has no memory for its buffer")
    return Outcome(arrays["start"], arrays["duration"], arrays["result"], order.bytes_written, order.bytes_read,
                   order.failed, order.left_out)  # fmt: skip


def replay(
    path: WorkloadPath, folder: Path, comm: MPI.Intracomm, *, time_scale: float = 1.0, spin_ns: int = 0,
    most_bytes: int = 2**63 - 1,
) -> tuple[Plan, Outcome]:  # fmt: skip
    """Carry a path out below a folder. Collective over `comm`, blocking.

    Parameters
    ----------
    path : the same on all ranks.
    folder : exists; nothing outside of it is touched.
    comm : its ranks carry the path out, as many as there are.
    time_scale : slack times are multiplied by it; 0: as fast as can be.
    spin_ns : end of each slack time that is spun for, where cores are free.
    most_bytes : that this rank may write.

    Returns
    -------
    What this rank was to do, and what became of it.

    Raises
    ------
    PlaceError
        A name of the path leads out of the folder. On all ranks whose names do.
    OSError
        A file that is read cannot be made.
    """
    plan = make_plan(path, comm.rank, comm.size, Places(folder))
    prepare_files(plan, comm)
    return plan, _run(plan, comm, time_scale, spin_ns, most_bytes)
