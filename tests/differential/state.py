"""What a case and its oracle are made of: calls, views, buffers, files, handles. Used by the workers, too."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from differential.typetree import Model, Offsets, Tree, leaves, model

Case = dict[str, Any]
Op = dict[str, Any]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Marks = npt.NDArray[np.int32]

GUARD_BYTES = 64
MAX_FILE_BYTES = 8 << 20
BYTE: Tree = ["named", "BYTE"]
#: Types whose external32 form is their native form with the bytes of each element turned round.
SWAPPABLE = ("BYTE", "CHAR", "SHORT", "INT", "FLOAT", "DOUBLE", "UINT16_T", "INT64_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """One way of data access.

    Attributes
    ----------
    family : name that ``--only`` knows.
    everybody : all ranks of the file make the call.
    pointer : what gives the position: explicit, own, shared, ordered.
    nonblocking, split : completed by a request, or by a second call.
    """

    family: str
    everybody: bool
    pointer: str
    nonblocking: bool = False
    split: bool = False


HOWS = {
    "at_all": How(family="collective", everybody=True, pointer="explicit"),
    "all": How(family="collective", everybody=True, pointer="own"),
    "at_all_split": How(family="split", everybody=True, pointer="explicit", split=True),
    "all_split": How(family="split", everybody=True, pointer="own", split=True),
    "at": How(family="independent", everybody=False, pointer="explicit"),
    "individual": How(family="independent", everybody=False, pointer="own"),
    "iat": How(family="nonblocking", everybody=False, pointer="explicit", nonblocking=True),
    "iindividual": How(family="nonblocking", everybody=False, pointer="own", nonblocking=True),
    "iat_all": How(family="icollective", everybody=True, pointer="explicit", nonblocking=True),
    "iall": How(family="icollective", everybody=True, pointer="own", nonblocking=True),
    "shared": How(family="shared", everybody=False, pointer="shared"),
    "ishared": How(family="shared", everybody=False, pointer="shared", nonblocking=True),
    "ordered": How(family="ordered", everybody=True, pointer="ordered"),
    "ordered_split": How(family="ordered", everybody=True, pointer="ordered", split=True),
}
COLLECTIVE = tuple(name for name, how in HOWS.items() if how.family in ("collective", "split"))
INDEPENDENT = tuple(name for name, how in HOWS.items() if how.family == "independent")
NONBLOCKING = tuple(name for name, how in HOWS.items() if how.nonblocking)
ACCESS = ("read", "write", "mixed")
#: Error classes, as MPI names them behind ERR_.
ERRORS = (
    *("ACCESS", "AMODE", "ARG", "BAD_FILE", "BUFFER", "COMM", "COUNT", "FILE", "FILE_EXISTS", "FILE_IN_USE", "IO"),
    *("NOT_SAME", "NO_SPACE", "NO_SUCH_FILE", "OTHER", "QUOTA", "READ_ONLY", "TYPE", "UNSUPPORTED_DATAREP"),
    "UNSUPPORTED_OPERATION",
)


class Illegal(Exception):
    """The case is not a legal program, for the reason in the message."""


@dataclass(slots=True, kw_only=True)
class View:
    """A rank's file view: displacement (bytes), etype, file type, data representation."""

    displacement: int
    etype: Model
    filetype: Model
    rep: str = "native"

    def offsets(self, position: int, length: int) -> Offsets:
        """Return the file offset of stream bytes position .. position+length-1."""
        return self.displacement + self.filetype.stream(position, length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A rank's buffer in one call: region [lo, hi) relative to the origin that MPI gets; offsets of the data bytes."""

    lo: int
    hi: int
    offsets: Offsets
    type: Model

    @property
    def nbytes(self) -> int:
        """Bytes to allocate, with a guard on each side."""
        return self.hi - self.lo + 2 * GUARD_BYTES

    @property
    def origin(self) -> int:
        """Index of the origin in the allocated bytes."""
        return GUARD_BYTES - self.lo


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What one rank must see after one data-access call."""

    buffer: Bytes
    compare: Mask  # bytes of the buffer that a read at the end of the file left alone are False
    gap: Mask  # bytes read from gaps of the file that nobody ever wrote
    doubt: Mask  # bytes read that may have several values, after a death or a failed write
    nbytes: int
    requested: int
    count: int | None
    elements: int | None
    position: int


def memory_of(op: Op, rank: int) -> Memory:
    """Return the buffer geometry of a rank in a data-access call."""
    kind = model(op["mem"][rank])
    offsets = kind.tiled(max(op["count"][rank], 0))  # -1 in a call that must fail
    lo, hi = (int(offsets.min()), int(offsets.max()) + 1) if len(offsets) else (0, 0)
    return Memory(lo=min(lo, 0), hi=max(hi, 0), offsets=offsets, type=kind)


def file_bytes(seed: int, index: int, offsets: Offsets) -> Bytes:
    """Return the value that call ``index`` writes at each file offset: a hash, so that a misplaced byte shows."""
    x = offsets.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64((seed * 1000003 + index) & (2**63 - 1))
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    values: Bytes = (x >> np.uint64(48)).astype(np.uint8)
    return values


def follows(case: Case, op: Op, rep: str) -> bool:
    """Tell whether the data of a write follow from the file offset, so that ranks that overlap write the same."""
    return (
        op.get("fill", case["fill"]) == "offset" and rep == "native" and HOWS[op["how"]].pointer in ("explicit", "own")
    )


def initial_buffer(case: Case, index: int, rank: int, memory: Memory, target: Offsets | None) -> Bytes:
    """Return the buffer's bytes before the call; ``target`` = file offsets of a write whose data follow the offset."""
    buffer = np.random.default_rng([case["seed"], index, rank]).integers(0, 256, memory.nbytes, dtype=np.uint8)
    if target is not None:
        buffer[memory.origin + memory.offsets] = file_bytes(case["seed"], index, target)
    return buffer


def initial_file(case: Case) -> Bytes:
    """Return the bytes that the file holds before it is opened."""
    generator = np.random.default_rng([case["seed"], 99])
    values: Bytes = generator.integers(0, 256, max(case["initial"], 0), dtype=np.uint8)
    return values


def verb_of(op: Op, rank: int) -> str:
    """Return whether a rank reads or writes in a data-access call."""
    return str(op["verb"][rank]) if op["op"] == "mixed" else str(op["op"])


def is_large(op: Op, rank: int) -> bool:
    """Tell whether a rank makes a data-access call in the large-count form."""
    return bool(op["large"][rank]) if "large" in op else False


def element_bytes(tree: Tree) -> int | None:
    """Return the size of the elements of a type that consists of one swappable type only, else None."""
    found = leaves(tree)
    if len(found) != 1:
        return None
    leaf = json.loads(next(iter(found)))
    return model(leaf).size if leaf[0] == "named" and leaf[1] in SWAPPABLE else None


def same_elements(one: Tree, other: Tree) -> bool:
    """Tell whether both types consist of the same swappable type."""
    return element_bytes(one) is not None and leaves(one) == leaves(other)


def encoded(values: Bytes, rep: str, tree: Tree) -> Bytes:
    """Return data bytes as they stand in the file (or the other way round)."""
    size = (element_bytes(tree) or 1) if rep == "external32" else 1
    if size == 1:
        return values
    return np.ascontiguousarray(values.reshape(-1, size)[:, ::-1]).reshape(-1)


class Track:  # not a dataclass: it is copied by copy.copy() and its view is only ever replaced
    """View and individual pointer of one rank on one handle: the part of the simulation that a worker also needs."""

    def __init__(self, pointer: int = 0) -> None:
        byte = model(BYTE)
        self.view = View(displacement=0, etype=byte, filetype=byte)
        self.pointer = pointer  # in etypes, as MPI_File_get_position

    def apply(self, op: Op, rank: int) -> None:
        """Follow a call that moves no data; SEEK_END is given its file size in ``end``."""
        if op["op"] == "view":
            self.view = View(
                displacement=op["disp"][rank],
                etype=model(op["etype"]),
                filetype=model(op["ftype"][rank]),
                rep=op.get("rep", "native"),
            )
            self.pointer = 0
        elif op["op"] == "seek":
            base = {"set": 0, "cur": self.pointer}.get(op["whence"])
            self.pointer = op["offset"][rank] + (self.end(op.get("end", 0)) if base is None else base)

    def end(self, size: int) -> int:
        """Return the end of the file in etypes, where that is beyond doubt."""
        kind = self.view.filetype
        dense = (
            kind.size == kind.extent and kind.size and kind.offsets[0] == 0 and bool((np.diff(kind.offsets) == 1).all())
        )
        if not dense or (size - self.view.displacement) % self.view.etype.size or size < self.view.displacement:
            raise Illegal("end of the file inside a hole or an etype")
        return (size - self.view.displacement) // self.view.etype.size

    def length(self, memory: Memory) -> int:
        """Return the etypes of an access."""
        if len(memory.offsets) % self.view.etype.size:
            raise Illegal("no whole number of etypes")
        if len(memory.offsets) and not self.view.filetype.size:
            raise Illegal("access through an empty view")
        return len(memory.offsets) // self.view.etype.size

    def targets(self, start: int, memory: Memory) -> Offsets:
        """Return the file offsets of an access from etype ``start`` on."""
        if start < 0:
            raise Illegal("negative offset")
        return self.view.offsets(start * self.view.etype.size, len(memory.offsets))


def groups_of(comm: str, ranks: int) -> list[list[int]]:
    """Return the ranks of a case, grouped and ordered as the communicator of that name has them."""
    everyone = list(range(ranks))
    if comm in ("world", "dup", "inter"):
        return [everyone]
    if comm == "back":
        return [everyone[::-1]]
    if comm == "self":
        return [[rank] for rank in everyone]
    if comm == "halves":
        return [part for part in (everyone[: (ranks + 1) // 2], everyone[(ranks + 1) // 2 :]) if part]
    if comm == "parity":
        return [part for part in (everyone[::2], everyone[1::2]) if part]
    if comm == "some":
        return [everyone[: max(1, ranks - 1)]]
    raise ValueError(f"unknown communicator {comm!r}")


class Handle:
    """An open file: one MPI_File_open, by one or several groups of ranks."""

    def __init__(self, op: Op, ranks: int, first: int) -> None:
        self.op = op
        self.groups = groups_of(op["comm"], ranks)
        self.files = [f"{op['file']}.{g}" if op.get("each") else str(op["file"]) for g in range(len(self.groups))]
        self.first = first  # number of the first group's instance
        self.group = {rank: g for g, members in enumerate(self.groups) for rank in members}
        self.tracks: dict[int, Track] = {rank: Track() for rank in self.group}
        self.shared = [0] * len(self.groups)
        self.touched: list[tuple[str, int] | None] = [None] * len(self.groups)  # last use of the shared pointer
        self.view: Op | None = None
        self.atomic = False

    def copy(self) -> Handle:
        """Return an independent copy."""
        twin = copy.copy(self)
        twin.tracks = {rank: copy.copy(track) for rank, track in self.tracks.items()}
        twin.shared, twin.touched = list(self.shared), list(self.touched)
        return twin

    @property
    def readable(self) -> bool:
        """Tell whether the mode allows reads."""
        return "wronly" not in self.op["mode"]

    @property
    def writable(self) -> bool:
        """Tell whether the mode allows writes."""
        return "rdonly" not in self.op["mode"]

    def instance(self, rank: int) -> int:
        """Return the number of the collective open that a rank took part in."""
        return self.first + self.group[rank]

    def file_of(self, rank: int) -> str:
        """Return the name of the file that a rank has open here."""
        return self.files[self.group[rank]]


def first_open(case: Case) -> Op:
    """Return the call that opens handle 0, which every case does first."""
    mode = ["rdonly"] if case["readonly"] else [*case.get("mode", ["rdwr"]), "create"]
    return {"op": "open", "h": 0, "file": 0, "comm": "world", "mode": mode}
