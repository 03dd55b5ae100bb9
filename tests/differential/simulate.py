"""The oracle: what every call of a case must do to the file, the buffers, the status and the file pointers.

A case is plain data (see generate.py). The simulation applies its calls one after the other to a NumPy array that
stands for the file. It also decides whether a case is a legal MPI program, so that generation and shrinking never
blame a library for a program that the standard leaves undefined.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from differential.typetree import Model, Offsets, Tree, distinct, model

Case = dict[str, Any]
Op = dict[str, Any]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

GUARD_BYTES = 64
MAX_FILE_BYTES = 8 << 20
COLLECTIVE = ("at_all", "all", "at_all_split", "all_split")
INDEPENDENT = ("at", "individual")
NONBLOCKING = ("iat_all", "iall", "iat", "iindividual")
BYTE: Tree = ["named", "BYTE"]


class Illegal(Exception):
    """The case is not a legal program, for the reason in the message."""


@dataclass(slots=True, kw_only=True)
class View:
    """A rank's file view: displacement (bytes), etype, file type."""

    displacement: int
    etype: Model
    filetype: Model

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
    nbytes: int
    requested: int
    count: int | None
    elements: int | None
    position: int


def memory_of(op: Op, rank: int) -> Memory:
    """Return the buffer geometry of a rank in a data-access call."""
    kind = model(op["mem"][rank])
    offsets = kind.tiled(op["count"][rank])
    lo, hi = (int(offsets.min()), int(offsets.max()) + 1) if len(offsets) else (0, 0)
    return Memory(lo=min(lo, 0), hi=max(hi, 0), offsets=offsets, type=kind)


def file_bytes(seed: int, index: int, offsets: Offsets) -> Bytes:
    """Return the value that call ``index`` writes at each file offset: a hash, so that a misplaced byte shows."""
    x = offsets.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64((seed * 1000003 + index) & (2**63 - 1))
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    values: Bytes = (x >> np.uint64(48)).astype(np.uint8)
    return values


def initial_buffer(case: Case, index: int, rank: int, memory: Memory, target: Offsets | None) -> Bytes:
    """Return the buffer's bytes before the call; ``target`` = file offsets of a write whose data follow the offset."""
    buffer = np.random.default_rng([case["seed"], index, rank]).integers(0, 256, memory.nbytes, dtype=np.uint8)
    if target is not None and case["fill"] == "offset":
        buffer[memory.origin + memory.offsets] = file_bytes(case["seed"], index, target)
    return buffer


def initial_file(case: Case) -> Bytes:
    """Return the bytes that the file holds before it is opened."""
    generator = np.random.default_rng([case["seed"], 99])
    values: Bytes = generator.integers(0, 256, max(case["initial"], 0), dtype=np.uint8)
    return values


class Track:  # not a dataclass: it is copied by copy.copy() and its view is only ever replaced
    """Views and individual pointers of one rank: the part of the simulation that a worker also needs."""

    def __init__(self) -> None:
        byte = model(BYTE)
        self.view = View(displacement=0, etype=byte, filetype=byte)
        self.pointer = 0  # in etypes, as MPI_File_get_position

    def apply(self, op: Op, rank: int) -> None:
        """Follow a call that moves no data."""
        if op["op"] == "view":
            self.view = View(displacement=op["disp"][rank], etype=model(op["etype"]), filetype=model(op["ftype"][rank]))
            self.pointer = 0
        elif op["op"] == "seek":
            self.pointer = op["offset"][rank] + (self.pointer if op["whence"] == "cur" else 0)

    def access(self, op: Op, rank: int, memory: Memory) -> Offsets:
        """Return the file offsets that a data-access call asks for and move the pointer."""
        length = len(memory.offsets)
        if length % self.view.etype.size:
            raise Illegal("no whole number of etypes")
        explicit = "at" in op
        start = op["at"][rank] if explicit else self.pointer
        if start < 0:
            raise Illegal("negative offset")
        if length and not self.view.filetype.size:
            raise Illegal("access through an empty view")
        if not explicit:
            self.pointer += length // self.view.etype.size
        return self.view.offsets(start * self.view.etype.size, length)


class Simulation:
    """All ranks of one case; :meth:`run` gives the expected results."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.ranks: int = case["ranks"]
        self.data = initial_file(case)
        self.written = np.ones(len(self.data), bool)  # False in gaps that nobody wrote: zero by us, undefined by MPI
        self.tracks = [Track() for _ in range(self.ranks)]
        # rank that wrote (read) a byte since the last sync, -1 none, -2 several
        self.writer = np.full(0, -1, np.int16)
        self.reader = np.full(0, -1, np.int16)
        self.synced_bytes = len(self.data)  # size of the file at the last sync
        self.met_end = False  # a read since the last sync went past the end

    def copy(self) -> Simulation:
        """Return an independent copy of the present state."""
        twin = copy.copy(self)
        twin.data, twin.written = self.data.copy(), self.written.copy()
        twin.writer, twin.reader = self.writer.copy(), self.reader.copy()
        twin.tracks = [copy.copy(track) for track in self.tracks]
        return twin

    def grow(self, size: int) -> None:
        """Make the file at least ``size`` bytes long."""
        if size > MAX_FILE_BYTES:
            raise Illegal("file too large for the model")
        if size > len(self.data):
            more = size - len(self.data)
            self.data = np.concatenate([self.data, np.zeros(more, np.uint8)])
            self.written = np.concatenate([self.written, np.zeros(more, bool)])

    def run(self) -> list[list[Expected] | None]:
        """Apply all calls; one entry per call, None where the call moves no data."""
        return [self.step(index, op) for index, op in enumerate(self.case["ops"])]

    def step(self, index: int, op: Op) -> list[Expected] | None:
        """Apply one call."""
        kind = op["op"]
        if kind in ("view", "seek"):
            for rank, track in enumerate(self.tracks):
                track.apply(op, rank)
                self.check_view(track)
            return None
        if kind == "sync":
            self.writer = np.full(0, -1, np.int16)
            self.reader = np.full(0, -1, np.int16)
            self.synced_bytes, self.met_end = len(self.data), False
            return None
        if kind == "size":
            self.grow(op["bytes"])
            self.data = self.data[: op["bytes"]].copy()
            self.written = self.written[: op["bytes"]].copy()
            self.writer, self.reader = self.writer[: op["bytes"]], self.reader[: op["bytes"]]
            return None
        if kind == "preallocate":
            self.grow(op["bytes"])
            return None
        if kind == "write" and self.case["readonly"]:
            raise Illegal("write to a file open for reading")
        memories = [memory_of(op, rank) for rank in range(self.ranks)]
        targets = [self.tracks[rank].access(op, rank, memories[rank]) for rank in range(self.ranks)]
        self.check_order(op, targets)
        return self.write(index, op, memories, targets) if kind == "write" else self.read(index, op, memories, targets)

    def check_view(self, track: Track) -> None:
        """Refuse an illegal view."""
        kind = track.view.filetype
        write = not self.case["readonly"]
        if track.view.etype.size == 0 or not kind.is_file_legal(write=write) or track.pointer < 0:
            raise Illegal("illegal view")

    def check_order(self, op: Op, targets: list[Offsets]) -> None:
        """Refuse a conflict between ranks that no sync separates; "lax" cases may rely on collectives being ordered."""
        top = max((int(t.max()) + 1 for t in targets if len(t)), default=0)
        if top > MAX_FILE_BYTES:
            raise Illegal("file too large for the model")
        if top > len(self.writer):
            more = np.full(top - len(self.writer), -1, np.int16)
            self.writer, self.reader = np.concatenate([self.writer, more]), np.concatenate([self.reader, more])
        lax = self.case["lax"] and op["how"] in COLLECTIVE
        for rank, target in enumerate(targets):
            others = [self.writer, self.reader] if op["op"] == "write" else [self.writer]
            if not lax and not all(np.isin(seen[target], (-1, rank)).all() for seen in others):
                raise Illegal("conflict without sync")
        if op["op"] == "write":  # a size that changes while somebody reads at the end is a conflict, too
            if top > len(self.data) and self.met_end and not lax:
                raise Illegal("file grows after a read past its end without sync")
        else:
            if top > self.synced_bytes and len(self.data) > self.synced_bytes and not lax:
                raise Illegal("read past the end of the file at the last sync")
            self.met_end = self.met_end or top > len(self.data)
        noted = self.writer if op["op"] == "write" else self.reader
        for rank, target in enumerate(targets):
            before = noted[target]
            noted[target] = np.where((before == -1) | (before == rank), rank, -2)

    def write(self, index: int, op: Op, memories: list[Memory], targets: list[Offsets]) -> list[Expected]:
        """Apply a write by all ranks."""
        every = np.concatenate(targets)
        for rank, target in enumerate(targets):
            if len(target) and not (np.diff(target) >= 1).all():
                raise Illegal("written file type overlaps itself")
            if self.case["fill"] == "offset" and not memories[rank].type.is_distinct(op["count"][rank]):
                raise Illegal("data cannot follow the offset in a type that repeats bytes")
        if self.case["fill"] != "offset" and not distinct(every):
            raise Illegal("ranks write different data to the same byte")
        result = []
        for rank, (memory, target) in enumerate(zip(memories, targets, strict=True)):
            buffer = initial_buffer(self.case, index, rank, memory, target)
            if len(target):
                self.grow(int(target.max()) + 1)
                self.data[target] = buffer[memory.origin + memory.offsets]
                self.written[target] = True
            care, none = np.ones(len(buffer), bool), np.zeros(len(buffer), bool)
            result.append(self.expect(memory, rank, buffer, care, none, len(target)))
        return result

    def read(self, index: int, op: Op, memories: list[Memory], targets: list[Offsets]) -> list[Expected]:
        """Apply a read by all ranks."""
        result = []
        for rank, (memory, target) in enumerate(zip(memories, targets, strict=True)):
            if not memory.type.is_distinct(op["count"][rank]):
                raise Illegal("read into a type that repeats bytes")
            past = np.flatnonzero(target >= len(self.data))
            done = int(past[0]) if len(past) else len(target)
            buffer = initial_buffer(self.case, index, rank, memory, None)
            buffer[memory.origin + memory.offsets[:done]] = self.data[target[:done]]
            compare = np.ones(len(buffer), bool)
            compare[memory.origin + memory.offsets[done:]] = False
            gap = np.zeros(len(buffer), bool)
            gap[memory.origin + memory.offsets[:done]] = ~self.written[target[:done]]
            result.append(self.expect(memory, rank, buffer, compare, gap, done))
        return result

    def expect(self, memory: Memory, rank: int, buffer: Bytes, compare: Mask, gap: Mask, done: int) -> Expected:
        """Put the expected results of one rank together."""
        size = memory.type.size
        count = 0 if size == 0 else done // size if done % size == 0 else None
        return Expected(
            buffer=buffer,
            compare=compare,
            gap=gap,
            nbytes=done,
            requested=len(memory.offsets),
            count=count,
            elements=memory.type.elements(done),
            position=self.tracks[rank].pointer,
        )


def check(case: Case) -> str | None:
    """Return why a case is illegal, None when it is legal."""
    try:
        Simulation(case).run()
    except Illegal as error:
        return str(error)
    return None


def managed_calls(case: Case) -> list[bool]:
    """Return for every call whether the library takes it over: a collective, switched on, in a view it can manage."""
    usable, result = True, []
    for op in case["ops"]:
        if op["op"] == "view":
            kinds = [model(tree) for tree in op["ftype"]]
            usable = all(kind.size and kind.is_file_legal(write=True) for kind in kinds)
        on = case["hints"].get(f"romio_cb_{op['op']}") != "disable"
        result.append(op["op"] in ("read", "write") and op["how"] in COLLECTIVE and usable and on)
    return result
