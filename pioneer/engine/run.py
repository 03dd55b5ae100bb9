"""Carrying out plans: files that are read are made first, then every rank goes through its plan."""

from __future__ import annotations

import hashlib
import os
import socket
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.engine.beside import COPIES
from mpiio_ext.pioneer.engine.coverage import OPERATIONS
from mpiio_ext.pioneer.engine.library import engine
from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.engine.plan import Plan, make_plan, reading_numbers
from mpiio_ext.pioneer.engine.standing import REPORT_S, reported
from mpiio_ext.pioneer.engine.tracer import recorded, unrecorded
from mpiio_ext.pioneer.file_types import parse
from mpiio_ext.pioneer.path import WorkloadPath

if TYPE_CHECKING:
    from mpi4py import MPI


def are_free(allowed: Sequence[Collection[int]]) -> bool:
    """Return whether the ranks of a node can all run at a time; `allowed` are the cores that each may run on.

    Ranks that are bound to the same core share it, whatever others are free.
    """
    sharing: dict[frozenset[int], int] = defaultdict(int)
    for cores in allowed:
        sharing[frozenset(cores)] += 1
    together = len(frozenset().union(*allowed)) >= len(allowed)
    return together and all(len(cores) >= count for cores, count in sharing.items())


def cores_free(comm: MPI.Intracomm) -> bool:
    """Return whether each rank of this rank's node has a core. Collective over `comm`.

    Other processes of the node are ignored, because they come and go.
    """
    found = comm.allgather((socket.gethostname(), sorted(os.sched_getaffinity(0))))
    return are_free([cores for host, cores in found if host == found[comm.rank][0]])


#: In place of the result of an operation that was left out.
NOT_MADE = -(2**63)
_MODES = ("CREATE", "RDONLY", "WRONLY", "RDWR", "DELETE_ON_CLOSE", "UNIQUE_OPEN", "EXCL", "APPEND", "SEQUENTIAL")
_CHUNK = 1 << 20
#: Columns of the engine's plan that are those of `Plan`; results of each call; counts of all calls.
_AS_PLANNED = ("operation", "file", "slot", "second", "request", "other", "offset", "size", "place", "meets")
_OF_CALLS = ("start", "duration", "result", "error")
_COUNTS = ("bytes_written", "bytes_read", "bytes_preallocated", "failed", "left_out", "spun_ns")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a plan.

    Attributes
    ----------
    start, duration : ns, of each operation, from the engine's start.
    result : what each call returned, or NOT_MADE.
    seconds : from the engine's start to its last call's end.
    error : why each call has failed: errno, of MPI-IO the class of the error; 0: it has not; negative, the same of a
        call that may: what it asks for or removes is not there, what it makes is there.
    bytes_written, bytes_read : of calls that succeeded; of reads through MPI-IO those that were asked for.
    bytes_preallocated : the same of calls that make room in files.
    failed, left_out : numbers of calls.
    spun_ns : that the end of each sleep was spun for.
    late : ns that each call with a slack time came after it, of those that were made.
    """

    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    result: NDArray[np.int64]
    error: NDArray[np.int32]
    seconds: float
    bytes_written: int
    bytes_read: int
    bytes_preallocated: int
    failed: int
    left_out: int
    spun_ns: int
    late: NDArray[np.int64]


def needed_files(plan: Plan) -> dict[str, int]:
    """Return the files that have to be there, and how long they must be.

    They are the files that the plan reads before it has written them, and the files that existed before the program.
    """
    reading = {*reading_numbers(), OPERATIONS.get("mmap")}
    folders = {str(parent) for name in plan.paths for parent in Path(name).parents} | plan.folders
    made = {name: size for name, size in plan.existing.items() if name not in folders}
    position: dict[int, int] = {}
    written: set[int] = set()
    copying = {OPERATIONS.get(name) for name in COPIES}
    sizes = np.where(plan.moved < 0, plan.size, plan.moved)  # input that was open before the trace has no offsets
    for operation, file, second, slot, size, end in zip(
        plan.operation.tolist(),
        plan.file.tolist(),
        plan.second.tolist(),
        plan.slot.tolist(),
        sizes.tolist(),
        plan.end.tolist(),
        strict=True,
    ):
        if operation in reading and file >= 0 and file not in written:
            behind = end if end >= 0 else position.get(slot, 0) + size
            made[plan.paths[file]] = max(made.get(plan.paths[file], 0), behind)
            position[slot] = behind
        elif file >= 0 and size > 0:
            written.add(file)
        if operation in copying and second >= 0:
            written.add(second)
    return made


def _lengthen(name: str, begin: int, end: int) -> None:
    """Write zeros from one byte to another; an error names the file."""
    try:
        with Path(name).open("r+b" if Path(name).exists() else "w+b") as file:
            at = begin
            while at < end:  # a disk that is nearly full accepts a part of the bytes
                at += os.pwrite(file.fileno(), bytes(min(_CHUNK, end - at)), at)
    except OSError as error:
        raise OSError(error.errno, f"cannot be made {end:,} bytes long: {error.strerror}", name) from error


def prepare_files(plan: Plan, comm: MPI.Intracomm) -> int:
    """Make the folders and the files that the ranks need; this rank's number of files. Collective, blocking.

    Files that are long enough stay. Several ranks may lengthen the same file: each writes the same zeros behind the end
    that all have seen.

    Raises
    ------
    OSError
        A file or folder cannot be created. All ranks raise the error, which names the first rank that has failed.
    """
    error: OSError | None = None
    needed, ends = needed_files(plan), dict[str, int]()
    try:
        for folder in {Path(name).parent for name in plan.paths} | {Path(name) for name in plan.folders}:
            folder.mkdir(parents=True, exist_ok=True)
        ends = {name: Path(name).stat().st_size if Path(name).exists() else 0 for name in needed}
    except OSError as caught:
        error = caught
    comm.Barrier()
    try:
        for name in ends:
            _lengthen(name, ends[name], needed[name])
    except OSError as caught:
        error = error or caught
    found = comm.allgather(None if error is None else str(error))
    failed = next(((rank, text) for rank, text in enumerate(found) if text is not None), None)
    if failed is not None:
        raise OSError(f"rank {failed[0]}: {failed[1]}") from error
    return len(needed)


def _amodes(plan: Plan) -> NDArray[np.int32]:
    """Return the flags with MPI_MODE_* of this MPI library in opens of MPI-IO."""
    from mpi4py import MPI

    flags: NDArray[np.int32] = plan.flags.copy()
    opens = np.flatnonzero(plan.operation == OPERATIONS.get("MPI_File_open"))
    for row in opens:
        flags[row] = sum(getattr(MPI, f"MODE_{name}") for bit, name in enumerate(_MODES) if plan.flags[row] >> bit & 1)
    return flags


def _communicators(plan: Plan, comm: MPI.Intracomm) -> list[Any]:
    """Return the plan's communicators; collective over the ranks of each. All but that of all ranks are to be freed."""
    group, found = comm.Get_group(), []
    for ranks in plan.communicators:
        if not ranks:
            found.append(comm)
            continue
        some = group.Incl(list(ranks))
        found.append(comm.Create_group(some))  # collective over its members alone
        some.Free()
    group.Free()
    return found


def _arrays(plan: Plan, views: list[Any], communicators: list[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of the engine's plan; `views` and `communicators` are those of the plan."""
    from mpi4py import MPI

    several = np.array([*(one.py2f() for one in communicators), MPI.COMM_SELF.py2f()], np.int32)  # -1 is the last one
    handles = np.array([*(view.py2f() for view in views), MPI.BYTE.py2f()], np.int32)  # -1 is the last one
    return {
        **{name: getattr(plan, name) for name in _AS_PLANNED},
        "flags": _amodes(plan),
        "communicator": several[plan.communicator],
        "view": handles[plan.view],
        "slack": waits(plan),
        "error": np.zeros(plan.ids.size, np.int32),
        **{name: np.zeros(plan.ids.size, np.int64) for name in ("start", "duration", "result")},
    }


def _datatypes(plan: Plan) -> list[Any]:
    from mpi4py import MPI

    return [parse(text).make(MPI).Commit() for text in plan.views]


def waits(plan: Plan) -> NDArray[np.int64]:
    """Return the ns before each call: its slack time; before the first one the start of the rank as well."""
    found: NDArray[np.int64] = plan.slack.copy()
    found[:1] += plan.start_ns
    return found


def _late(plan: Plan, start: NDArray[np.int64], duration: NDArray[np.int64], time_scale: float) -> NDArray[np.int64]:
    """Return by how much each slack time was too long, ns; none if the pace is "as fast as possible"."""
    if time_scale == 0 or not start.size:
        return np.zeros(0, np.int64)
    ended, paused = np.concatenate([[0], (start + duration)[:-1]]), waits(plan)
    found: NDArray[np.int64] = (start - ended - (paused * time_scale).astype(np.int64))[paused > 0]
    return found


def together_alike(plan: Plan, comm: MPI.Intracomm) -> str | None:
    """Return why ranks would hang, waiting for each other: the same on all. Collective, blocking.

    All ranks have to make the same collective calls on files that all have opened, in the same order.
    """
    own = hashlib.blake2b(np.ascontiguousarray(plan.together[:, :3]).tobytes(), digest_size=16).digest()
    every = comm.allgather(own)
    other = next((rank for rank, one in enumerate(every) if one != every[0]), None)
    return (
        None
        if other is None
        else (
            f"rank {other} would not make the collective calls of rank 0, and both would hang: `mpiio-ext pioneer "
            f"check PATH` names the operation"
        )
    )


def carry_out(
    plan: Plan,
    comm: MPI.Intracomm,
    *,
    time_scale: float = 1.0,
    spin_ns: int | None = None,
    most_bytes: int = 2**63 - 1,
    info: Any = None,
    report_s: float = REPORT_S,
) -> Outcome:
    """Go through a plan whose files are there. Collective over `comm`, blocking.

    Parameters
    ----------
    plan, comm, time_scale, spin_ns, most_bytes : as of `replay`.
    info : MPI.Info of every MPI_File_open; None: without.
    report_s : after so many seconds without progress a rank says where it stands; 0: it does not.

    Raises
    ------
    MemoryError, ValueError
        A rank has no memory for its buffers; a plan has numbers that are out of their range. On all ranks, before
        anything is done.
    """
    from mpi4py import MPI

    ffi, lib = engine()
    views = _datatypes(plan)
    communicators = _communicators(plan, comm)
    arrays = _arrays(plan, views, communicators)
    kinds = {"uint8": "unsigned char[]", "int32": "int32_t[]", "int64": "int64_t[]"}
    keep = [ffi.new("char[]", os.fsencode(name)) for name in plan.paths]
    paths = ffi.new("const char *[]", keep or 1)
    order = ffi.new("mpiio_ext_engine_plan *")
    order.count, order.paths, order.files, order.slots = plan.ids.size, paths, len(plan.paths), plan.slots
    order.requests, order.mappings, order.meets_after = plan.requests, plan.mappings, plan.meets_after
    order.info, order.everybody = (MPI.INFO_NULL if info is None else info).py2f(), comm.py2f()
    order.time_scale, order.spin_ns = time_scale, -1 if spin_ns is None else spin_ns
    order.most_bytes, order.cores_free = most_bytes, cores_free(comm)
    for name, array in arrays.items():
        setattr(order, name, ffi.from_buffer(kinds[array.dtype.name], array))
    with reported(plan, comm.rank, lambda: int(order.standing), report_s), recorded():
        code = lib.mpiio_ext_engine_run(order)
    lib.mpiio_ext_engine_end(order)
    for view in views:
        view.Free()
    for one, ranks in zip(communicators, plan.communicators, strict=True):
        if ranks:
            one.Free()
    if code == -1:
        raise MemoryError("the engine has no memory for its buffers, on this rank or another")
    if code != 0:
        row, wrong = order.wrong_row, order.wrong
        raise ValueError(
            "the plan of another rank is wrong"
            if wrong == ffi.NULL
            else f"row {row} of the plan, operation {plan.ids[row]} of the path: {ffi.string(wrong).decode()}"
        )
    found: dict[str, Any] = {name: arrays[name] for name in _OF_CALLS}
    found |= {name: getattr(order, name) for name in _COUNTS}
    ended = arrays["start"] + arrays["duration"]
    return Outcome(
        seconds=float(ended[-1]) / 1e9 if ended.size else 0.0,
        late=_late(plan, arrays["start"], arrays["duration"], time_scale),
        **found,
    )


def replay(
    path: WorkloadPath,
    folder: Path,
    comm: MPI.Intracomm,
    *,
    time_scale: float = 1.0,
    spin_ns: int | None = None,
    most_bytes: int = 2**63 - 1,
) -> tuple[Plan, Outcome]:
    """Carry a path out below a folder. Collective over `comm`, blocking. A tracer records the path's calls only.

    Parameters
    ----------
    path : the same on all ranks.
    folder : exists; nothing outside of it is touched.
    comm : its ranks carry the path out, as many as there are.
    time_scale : slack times are multiplied by it; 0: as fast as can be.
    spin_ns : end of each slack time that is spun for, ns; None: as much as sleeps are late here, measured, 200 us at
        most; where ranks share cores 20 us at most, and others are let before.
    most_bytes : that this rank may write.

    Returns
    -------
    The operations that this rank had to carry out, and their results.

    Raises
    ------
    PlaceError, PlanError
        A name of the path leads out of the folder; an operation makes no sense. On all ranks where it is so.
    ValueError
        Ranks would hang in collective calls. On all ranks.
    OSError
        A file that is read cannot be made.
    """
    with unrecorded():
        plan = make_plan(path, comm.rank, comm.size, Places(folder))
        if problem := together_alike(plan, comm):
            raise ValueError(problem)
        prepare_files(plan, comm)
        outcome = carry_out(plan, comm, time_scale=time_scale, spin_ns=spin_ns, most_bytes=most_bytes)
    return plan, outcome
