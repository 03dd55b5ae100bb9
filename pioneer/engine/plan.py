"""The plan of one rank: a workload path with the names, offsets and handles of that rank.

Problem.   A path says what the representatives have done. Another rank has other names and other offsets; and there may
           be more ranks, or fewer, than were traced.
Algorithm. A rank belongs to a group: 0 to the root's; the others to their subgroups in proportion to the numbers of
           members. Its offset in a shared file is that of the root plus its rank times the distance, per rank, of the
           representative from the root; where that is no whole number, or the root takes no part, the
           representative's own. Private files have the offsets of the representative. An operation in a session uses
           the handle of that session.
Guarantee. Every operation that is left out is counted: the engine does not know it, or its session has no open.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.operations import WHENCE, Operation, Role, operation_of
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.profile import find_sessions

__all__ = ["OPERATIONS", "Plan", "group_of_rank", "make_plan", "open_flags"]

#: What the engine makes of an operation, where that is not the operation itself.
_STAND_INS = {
    "openat": "open", "creat": "open", "readv": "read", "writev": "write", "preadv": "pread", "pwritev": "pwrite",
    "preadv2": "pread", "pwritev2": "pwrite", "fallocate": "ftruncate", "posix_fallocate": "ftruncate",
    "lstat": "stat", "fstatat": "stat", "statx": "stat", "faccessat": "access", "unlinkat": "unlink",
    "mkdirat": "mkdir", "fgets": "fread", "fgetc": "fread", "fputs": "fwrite", "fputc": "fwrite",
    "fprintf": "fwrite", "fseeko": "fseek", "rewind": "fseek", "MPI_Waitall": "MPI_Wait", "MPI_Waitany": "MPI_Wait",
    "MPI_File_preallocate": "MPI_File_set_size", "remove": "unlink",
}  # fmt: skip

_READS, _WRITES, _TRUNCATES, _APPENDS = 1, 2, 4, 8  # of fopen, as in mpiox_engine_stdio.c
_AMODES = {"CREATE": 1, "RDONLY": 2, "WRONLY": 4, "RDWR": 8, "DELETE_ON_CLOSE": 16, "EXCL": 64, "APPEND": 128}


def _load_operations() -> dict[str, int]:
    from mpiio_ext.pioneer.engine.library import engine

    ffi, lib = engine()
    names: dict[str, int] = {}
    while (name := lib.mpiio_ext_engine_name(len(names))) != ffi.NULL:
        names[ffi.string(name).decode()] = len(names)
    return names


class _Operations:
    """Numbers of the engine's operations by name; the library is loaded when the first is asked for."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] | None = None

    def get(self, name: str) -> int | None:
        """Return the number of an operation or of what stands in for it; None: the engine has neither."""
        if self._numbers is None:
            self._numbers = _load_operations()
        found = self._numbers.get(name)
        return self._numbers.get(_STAND_INS.get(name, "")) if found is None else found


OPERATIONS = _Operations()


@dataclass(slots=True)
class Plan:
    """What one rank does; arrays have an element for each of its operations.

    Attributes
    ----------
    ids : global sequence IDs.
    operation : number of the engine's operation.
    file : index in `paths`, -1: none.
    slot : which open handle, -1: none.
    everybody : of MPI_File_open: all ranks take part, else this one alone.
    flags : of opens and seeks.
    offset, size : bytes; an offset of -1 is the file pointer.
    slack : ns.
    paths : files, as they are named here.
    slots : number of handles.
    unknown : how many operations of each name are left out.
    """

    ids: NDArray[np.int64]
    operation: NDArray[np.uint8]
    file: NDArray[np.int32]
    slot: NDArray[np.int32]
    everybody: NDArray[np.bool_]
    flags: NDArray[np.int32]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    slack: NDArray[np.int64]
    paths: list[str]
    slots: int
    unknown: Counter[str] = field(default_factory=Counter)

    @property
    def bytes_written(self) -> int:
        """Bytes that the plan writes."""
        writing = {OPERATIONS.get(name) for name in ("write", "pwrite", "fwrite", *(
            f"MPI_File_{kind}write{where}" for kind in ("", "i") for where in ("", "_all", "_at", "_at_all")))}
        return int(self.size[np.isin(self.operation, [item for item in writing if item is not None])].sum())


# ---- ranks and groups ------------------------------------------------------------------------------------------------


def group_of_rank(rank: int, ranks: int, members: Sequence[Sequence[int]]) -> int:
    """Return the group of a rank when the path is carried out by so many."""
    if rank == 0 or len(members) < 2:
        return 0
    sizes = [max(1, len(group)) for group in members[1:]]
    place = (rank - 1) * sum(sizes) / max(1, ranks - 1)
    ends = np.cumsum(sizes)
    return 1 + int(np.searchsorted(ends, place, side="right"))


def _own_values(path: WorkloadPath, name: str, rank: int, group: int) -> NDArray[np.int64]:
    """Return offsets or sizes of this rank, -1 where they are not known."""
    own = pc.fill_null(path.table[f"{name}_{group}"], -1).to_numpy()
    other = path.info.representatives[group]
    if group == 0 or name != "offset" or rank == other:
        return np.asarray(own)
    root = pc.fill_null(path.table[f"{name}_0"], -1).to_numpy()
    shared = np.array([owner == "shared" for owner in path.table["owner"].to_pylist()], bool)
    apart = own - root
    known = shared & (own >= 0) & (root >= 0) & (apart % max(1, other) == 0)
    found: NDArray[np.int64] = np.where(known, root + apart // max(1, other) * rank, own)
    return found


# ---- flags -----------------------------------------------------------------------------------------------------------


def _posix_flags(extra: dict[str, Any], name: str, reads: bool, writes: bool) -> int:
    given = extra.get("flags")
    if isinstance(given, int):
        return given & ~os.O_EXCL
    if name == "creat":
        return os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    if isinstance(given, str):
        words = [word.strip() for word in given.split("|")]
        return sum(getattr(os, word) for word in set(words) if hasattr(os, word) and word != "O_EXCL")
    mode = os.O_RDWR if reads and writes else os.O_WRONLY if writes else os.O_RDONLY
    return mode | (os.O_CREAT if writes else 0)


def _stdio_flags(extra: dict[str, Any], reads: bool, writes: bool) -> int:
    mode = extra.get("mode", extra.get("flags"))
    if not isinstance(mode, str):
        return (_READS if reads else 0) | (_WRITES | _TRUNCATES if writes and not reads else _WRITES if writes else 0)
    plus = _READS | _WRITES if "+" in mode else 0
    return plus | {"r": _READS, "w": _WRITES | _TRUNCATES, "a": _APPENDS}.get(mode[:1], _READS)


def _amode(extra: dict[str, Any], reads: bool, writes: bool) -> int:
    """Return a mode in Open MPI's and MPICH's numbers of MPI_MODE_*; `run` turns it into those of the MPI library."""
    given = extra.get("amode")
    if isinstance(given, int):  # Open MPI and MPICH have the same numbers
        return given & ~_AMODES["EXCL"]
    if isinstance(given, str):
        words = {word.strip().removeprefix("MPI_MODE_") for word in given.split("|")}
        return sum(_AMODES[word] for word in words - {"EXCL"} if word in _AMODES)
    mode = "RDWR" if reads and writes else "WRONLY" if writes else "RDONLY"
    return _AMODES[mode] | (_AMODES["CREATE"] if writes else 0)


def open_flags(operation: Operation, extra: dict[str, Any], *, reads: bool, writes: bool) -> int:
    """Return the flags of an open: those of the trace where it has them, else what its session needs.

    Exclusive creation is left out, since the file of an earlier run may be there.
    """
    if operation.layer == "stdio":
        return _stdio_flags(extra, reads, writes)
    if operation.layer == "mpiio":
        return _amode(extra, reads, writes)
    return _posix_flags(extra, operation.name, reads, writes)


def _parsed(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except json.JSONDecodeError:
        found = {}
    return found if isinstance(found, dict) else {}


def _seek_flags(extra: dict[str, Any]) -> int:
    return WHENCE.get(str(extra.get("whence", 0)), 0)


# ---- the plan --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Handles:
    """Sessions of the path, and the handle slots that they have while they are open."""

    of: NDArray[np.int64]
    reads: list[bool]
    writes: list[bool]
    has_open: list[bool]
    free: list[int] = field(default_factory=list)
    slot_of: dict[int, int] = field(default_factory=dict)
    count: int = 0

    def open(self, session: int) -> int:
        slot = self.free.pop() if self.free else self.count
        self.count = max(self.count, slot + 1)
        self.slot_of[session] = slot
        return slot

    def close(self, session: int) -> int:
        slot = self.slot_of.pop(session, -1)
        if slot >= 0:
            self.free.append(slot)
        return slot


def _handles_of(path: WorkloadPath, operations: Sequence[Operation]) -> _Handles:
    sessions = find_sessions(path)
    reads, writes, has_open = [], [], []
    for session in sessions.sessions:
        kinds = [operations[row] for row in session.members]
        reads.append(any(kind.role is Role.READ or kind.writes is False for kind in kinds))
        writes.append(any(kind.role in (Role.WRITE, Role.RESIZE) or kind.writes is True for kind in kinds))
        has_open.append(session.has_open)
    return _Handles(sessions.of, reads, writes, has_open)


def make_plan(path: WorkloadPath, rank: int, ranks: int, places: Places) -> Plan:
    """Return what a rank does when a path is carried out by so many ranks.

    Raises
    ------
    PlaceError
        A name of the path leads out of the folder.
    """
    group = group_of_rank(rank, ranks, path.info.members)
    table = path.table
    pairs = list(zip(table["layer"].to_pylist(), table["operation"].to_pylist(), strict=True))
    kinds = [operation_of(*pair) for pair in pairs]
    handles = _handles_of(path, kinds)
    files, extras = table["file"].to_pylist(), table["extra"].to_pylist()
    groups = table["groups"].to_numpy()
    everybody = (1 << path.group_count) - 1
    offsets, sizes = _own_values(path, "offset", rank, group), _own_values(path, "size", rank, group)
    slacks = pc.fill_null(table[f"slack_{group}"], 0).to_numpy()
    numbers: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, bool, int, int, int, int]] = []
    unknown: Counter[str] = Counter()
    lost_ns = 0  # slack of what is left out is the next operation's
    for row in np.flatnonzero(groups >> group & 1):
        kind, session = kinds[row], int(handles.of[row])
        number = OPERATIONS.get(kind.name)
        if number is None or (session >= 0 and not handles.has_open[session]):
            unknown[kind.name] += 1
            lost_ns += int(slacks[row])
            continue
        extra, flags, slot = _parsed(extras[row]), 0, -1
        if kind.role is Role.OPEN:
            flags = open_flags(kind, extra, reads=handles.reads[session], writes=handles.writes[session])
            slot = handles.open(session)
        elif kind.role is Role.CLOSE:
            slot = handles.close(session)
        elif session >= 0:
            slot = handles.slot_of.get(session, -1)
        if kind.role is Role.SEEK:
            flags = _seek_flags(extra)
        name = files[row]
        file = -1 if name is None else numbers.setdefault(str(places.of(Template(name).name(rank))), len(numbers))
        alone = extra.get("comm") == "self" or table["owner"][row].as_py() in ("private", "root", "child")
        explicit = kind.explicit_offset or kind.role in (Role.SEEK, Role.RESIZE)
        together = bool(groups[row] == everybody) and not alone
        offset = int(offsets[row]) if explicit else -1
        slack = int(slacks[row]) + lost_ns
        rows.append((int(row), number, file, slot, together, flags, offset, max(0, int(sizes[row])), slack))
        lost_ns = 0
    columns = np.array(rows, np.int64).reshape(len(rows), 9)
    return Plan(
        ids=columns[:, 0].copy(), operation=columns[:, 1].astype(np.uint8), file=columns[:, 2].astype(np.int32),
        slot=columns[:, 3].astype(np.int32), everybody=columns[:, 4].astype(bool), flags=columns[:, 5].astype(np.int32),
        offset=columns[:, 6].copy(), size=columns[:, 7].copy(), slack=columns[:, 8].copy(), paths=list(numbers),
        slots=handles.count, unknown=unknown,
    )  # fmt: skip
