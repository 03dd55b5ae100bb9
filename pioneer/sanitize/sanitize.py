"""Sanitization of a trace table, batch by batch.

Problem.   A raw trace names descriptors, lacks offsets, and has the POSIX calls of MPI-IO beside the application's.
           Tracers of system calls have the names of the kernel's calls, `openat` for an `open`.
Algorithm. Each batch becomes columns of numbers, which the state machine of its rank goes over in C
           (csrc/tools/pioneer/mpiox_handle_resolution.h). A rank's rows that wait for those behind them are given to
           it again.
Result.    The same rows, with `file` and `offset` filled in and three columns more: why an operation is masked, the
           line of the call that it belongs to, and which open of its rank its handle comes from. Nothing is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext._tools import ffi, lib
from mpiio_ext.common.iocalls import CALLS
from mpiio_ext.pioneer.operations import CATALOG, DATA, Operation, Role, normal_name, operation_of
from mpiio_ext.pioneer.readers._order import whole
from mpiio_ext.pioneer.sanitize.system_files import matcher
from mpiio_ext.pioneer.table import SCHEMA, encoded

if TYPE_CHECKING:
    from cffi import FFI

_TEXT = pa.dictionary(pa.int32(), pa.string())

#: Why an operation is no operation of the application: the numbers 1, 2, ... of the state machine. The first two have a
#: parent. "no I/O on files": on sockets, pipes, standard streams, memory; calls of MPI and of the system without files.
OF_SYSTEM = "file of the system"
MASKS = ("inside MPI-IO", "descriptor of MPI-IO", OF_SYSTEM, "no I/O on files")

_SESSION = pa.field("session", pa.int64())
#: The schema of a trace table with the reason, the line of the MPI call that has made the operation, and the number of
#: the open, from 0 on for each rank, whose handle or a duplicate of it the operation uses; null: no open is known.
SANITIZED = SCHEMA.append(pa.field("mask", _TEXT)).append(pa.field("parent", pa.int64())).append(_SESSION)
#: The schema of the application's operations.
APPLICATION = SCHEMA.append(_SESSION)

#: Rows of a rank that may wait for the end of an MPI_File_open whose name has to be found.
MOST_WAITING = 1 << 18

#: Where rows of ranks are mixed: rows of all that may wait for more of their rank, of one that are enough where there
#: are many ranks, and rows that never wait.
MOST_GATHERED, ENOUGH, PLENTY = 1 << 15, 1 << 8, 1 << 12

#: Names of functions that are remembered.
_MOST_WORDS = 1 << 12

_UNKNOWN = -(2**63)
_LAYERS = {"posix": 0, "stdio": 1, "mpiio": 2}
_OTHER_LAYER = 3
(
    _NONE,
    _OPEN,
    _CLOSE,
    _MOVE,
    _MOVE_AT,
    _SEEK,
    _DUPLICATE,
    _VIEW,
    _USE,
    _WAIT,
    _OBJECT,
    _OTHER,
    _MAP,
    _UNMAP,
    _MAPPED,
    _PAIR,
) = range(16)
_ROLE_STEPS = {
    Role.OPEN: _OPEN,
    Role.CLOSE: _CLOSE,
    Role.SEEK: _SEEK,
    Role.DUPLICATE: _DUPLICATE,
    Role.META: _NONE,
    Role.WAIT: _WAIT,
    Role.MAP: _MAP,
    Role.UNMAP: _UNMAP,
}
#: Operations that make descriptors of other objects than files.
_OBJECTS = frozenset(
    {
        "socket",
        "accept",
        "accept4",
        "epoll_create",
        "epoll_create1",
        "eventfd",
        "eventfd2",
        "timerfd_create",
        "signalfd",
        "signalfd4",
        "inotify_init",
        "inotify_init1",
        "memfd_create",
        "pidfd_open",
        "userfaultfd",
    }
)
_PAIRS = frozenset({"pipe", "pipe2", "socketpair"})
#: Calls of the kernel with a folder -> the functions of programs; names of files are whole in the table.
_PLAIN = {call.name: call.values["plain"] for call in CALLS if "plain" in call.values}
#: Arguments of a `fcntl` that makes another descriptor of the same open file, by name or by number (of Linux).
_DUPLICATES = re.compile(r'"(?:command|cmd)":\s*"?(?:F_DUPFD(?:_CLOEXEC)?|0x406|0x0|0|1030)"?\s*[,}]')
_AT_REMOVEDIR = re.compile(r'"flags":\s*(?:"[^"]*(?:AT_REMOVEDIR|0x200|01000)|512\b)')


_normal_name = lru_cache(maxsize=_MOST_WORDS)(normal_name)


@lru_cache(maxsize=_MOST_WORDS)
def _plain_name(word: str) -> str:
    name = normal_name(word)
    return _PLAIN.get(name, name)


def _step_of(operation: Operation) -> int:
    if operation.name in _OBJECTS:
        return _OBJECT
    if operation.name in _PAIRS:
        return _PAIR
    if (operation.layer, _PLAIN.get(operation.name, operation.name)) not in CATALOG:
        return _OTHER
    if operation.name == "fdopen":
        return _DUPLICATE
    if operation.name == "msync":
        return _MAPPED
    if operation.name in ("fstatat", "statx"):  # of a descriptor: it has a handle
        return _USE
    if operation.name == "MPI_File_set_view":
        return _VIEW
    if operation.shared_pointer:
        return _USE
    if operation.role in DATA or operation.role is Role.BEGIN:
        return _MOVE_AT if operation.explicit_offset else _MOVE
    return _ROLE_STEPS.get(operation.role, _USE)


@lru_cache(maxsize=_MOST_WORDS)
def _step_of_word(layer: str, word: str) -> int:
    """Return the step of a function of a layer: remembered, because every batch has the same few."""
    return _step_of(operation_of(layer, normal_name(word)))


# ---- names -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Names:
    """Files as numbers, the same in all batches."""

    numbers: dict[str, int] = field(default_factory=dict)
    is_system: bytearray = field(default_factory=bytearray)
    pattern: re.Pattern[str] = field(default_factory=matcher)

    def number(self, name: str) -> int:
        found = self.numbers.get(name)
        if found is None:
            found = self.numbers[name] = len(self.numbers)
            self.is_system.append(self.pattern.match(name) is not None)
        return found


def _mapped(indices: NDArray[np.int64], values: list[int], null: int, kind: Any) -> NDArray[Any]:
    table = np.array([*values, null], kind)  # -1 is the last one
    return table[indices]


def _numbers(column: pa.Array) -> NDArray[np.int64]:
    return np.ascontiguousarray(column.cast(pa.int64()).fill_null(_UNKNOWN).to_numpy(zero_copy_only=False), np.int64)


# ---- columns ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Columns:
    """A batch as the state machine wants it."""

    arrays: dict[str, NDArray[Any]]
    extra: pa.Buffer | None

    def view(self, is_system: bytes, *, final: bool) -> FFI.CData:
        rows = ffi.new("mpiio_ext_rows *")
        rows.count = self.arrays["step"].size
        rows.final = final
        rows.extra = ffi.NULL if self.extra is None else ffi.from_buffer("char[]", self.extra)
        rows.is_system = ffi.from_buffer("unsigned char[]", is_system)
        kinds = {"uint8": "unsigned char[]", "int16": "int16_t[]", "int32": "int32_t[]", "int64": "int64_t[]"}
        for name, array in self.arrays.items():
            setattr(rows, name, ffi.from_buffer(kinds[array.dtype.name], array))
        return rows


def _steps_of(batch: pa.RecordBatch) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the step and the layer of each row."""
    names, words = encoded(batch["operation"])
    layers, layer_words = encoded(batch["layer"])
    pairs = names * len(layer_words) + layers
    steps = [_step_of_word(layer, word) for word in words for layer in layer_words]
    layer_numbers = [_LAYERS.get(layer, _OTHER_LAYER) for layer in layer_words]
    found = _mapped(pairs, steps, _NONE, np.uint8)
    for place, word in enumerate(map(_normal_name, words)):
        if word == "fcntl":
            found[_telling(batch, np.flatnonzero(names == place), _DUPLICATES)] = _DUPLICATE
    return found, _mapped(layers, layer_numbers, _OTHER_LAYER, np.uint8)


def _telling(batch: pa.RecordBatch, rows: NDArray[np.int64], wanted: re.Pattern[str]) -> NDArray[np.int64]:
    """Return the rows whose `extra` has something in it."""
    texts = batch["extra"].take(pa.array(rows)).to_pylist()
    return rows[[bool(text and wanted.search(text)) for text in texts]]


def _moved(batch: pa.RecordBatch, layer: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the bytes that each row moved: the result of a POSIX call, elsewhere the requested bytes."""
    result, size = _numbers(batch["result"]), _numbers(batch["size"])
    returned = np.where(result == _UNKNOWN, size, np.maximum(result, 0))
    return np.where(layer == _LAYERS["posix"], returned, size)


def _texts(column: pa.Array) -> tuple[NDArray[np.int32], pa.Buffer | None]:
    """Return where the texts of a column begin and end, and its bytes."""
    plain = column if column.type == pa.string() else column.cast(pa.string())
    _, places, data = plain.buffers()
    if places is None or not len(plain):
        return np.zeros(len(plain) + 1, np.int32), None
    return np.frombuffer(places, np.int32)[plain.offset : plain.offset + len(plain) + 1], data


def _columns_of(batch: pa.RecordBatch, names: _Names) -> _Columns:
    step, layer = _steps_of(batch)
    files, file_words = encoded(batch["file"])
    places, extra = _texts(batch["extra"])
    count = batch.num_rows
    handle = _numbers(batch["handle"])
    if "" in file_words:  # no file has this name: the handle's (AT_EMPTY_PATH), or a call that can only fail
        nameless = files == file_words.index("")
        files[nameless] = -1
        step[nameless & (handle == _UNKNOWN)] = _OTHER
    arrays: dict[str, NDArray[Any]] = {
        "step": step,
        "layer": layer,
        "depth": np.ascontiguousarray(batch["depth"].fill_null(-1).to_numpy(zero_copy_only=False), np.int16),
        "file": _mapped(files, [names.number(word) for word in file_words], -1, np.int32),
        "thread": np.ascontiguousarray(batch["thread"].to_numpy(zero_copy_only=False), np.int32),
        "line": _numbers(batch["line"]),
        "start": _numbers(batch["timestamp"]),
        "duration": _numbers(batch["duration"]),
        "handle": handle,
        "result": _numbers(batch["result"]),
        "offset": _numbers(batch["offset"]),
        "moved": _moved(batch, layer),
        "extra_at": places,
        "named": np.zeros(count, np.int32),
        "place": np.zeros(count, np.int64),
        "mask": np.zeros(count, np.uint8),
        "parent": np.zeros(count, np.int64),
        "session": np.zeros(count, np.int64),
    }
    return _Columns(arrays, extra)


def _known(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values, pa.int64(), mask=values == _UNKNOWN)


def _operations_of(batch: pa.RecordBatch) -> pa.Array:
    """Return the operations by the names of the functions that programs call."""
    indices, words = encoded(batch["operation"])
    plain = [_plain_name(word) for word in words]
    special = {
        place: word
        for place, word in enumerate(map(_normal_name, words))
        if word in ("fstatat", "statx", "unlinkat", "fcntl")
    }
    for place, word in special.items():
        rows = np.flatnonzero(indices == place)
        if word in ("fstatat", "statx"):  # of a descriptor: fstat
            chosen, name = rows[batch["handle"].is_valid().to_numpy(zero_copy_only=False)[rows]], "fstat"
        elif word == "fcntl":  # with F_DUPFD
            chosen, name = _telling(batch, rows, _DUPLICATES), "dup"
        else:
            chosen, name = _telling(batch, rows, _AT_REMOVEDIR), "rmdir"
        indices[chosen] = len(plain)
        plain.append(name)
    numbers = {word: number for number, word in enumerate(dict.fromkeys(plain))}  # "open" and "openat" are one word
    codes = np.array([numbers[word] for word in plain], np.int32)[indices]
    return pa.DictionaryArray.from_arrays(codes, pa.array(list(numbers), pa.string()))


def _result_of(batch: pa.RecordBatch, columns: _Columns, names: _Names) -> pa.RecordBatch:
    arrays = {name: array[: batch.num_rows] for name, array in columns.arrays.items()}
    named, mask = arrays["named"], arrays["mask"].astype(np.int32) - 1
    words = list(names.numbers)
    filled = {
        "operation": _operations_of(batch),
        "file": pa.DictionaryArray.from_arrays(pa.array(named, mask=named < 0), pa.array(words, pa.string())),
        "offset": _known(arrays["place"]),
        "mask": pa.DictionaryArray.from_arrays(
            pa.array(mask.astype(np.int32), mask=mask < 0), pa.array(MASKS, pa.string())
        ),
        "parent": _known(arrays["parent"]),
        "session": _known(arrays["session"]),
    }
    arrays_of = [(filled[kind.name] if kind.name in filled else batch[kind.name]).cast(kind.type) for kind in SANITIZED]
    return pa.RecordBatch.from_arrays(arrays_of, schema=SANITIZED)


# ---- batches ---------------------------------------------------------------------------------------------------------


class _Sanitizers:
    """The state machines of all ranks, and the rows that they have not taken yet."""

    def __init__(self, names: _Names) -> None:
        self._names = names
        self._of_rank: dict[int, FFI.CData] = {}
        self._waiting: dict[int, pa.RecordBatch] = {}

    def _machine(self, rank: int) -> FFI.CData:
        machine = self._of_rank.get(rank)
        if machine is None:
            machine = ffi.gc(lib.mpiio_ext_handle_resolver_new(), lib.mpiio_ext_handle_resolver_free)
            if machine == ffi.NULL:
                raise MemoryError("sanitizing a trace")
            self._of_rank[rank] = machine
        return machine

    def feed(self, rank: int, new: pa.RecordBatch, *, final: bool = False) -> pa.RecordBatch | None:
        """Return the rows of the rank that are known now: those that have waited, and new ones."""
        waiting = self._waiting.pop(rank, None)
        batch = new if waiting is None else whole([waiting, new])
        columns = _columns_of(batch, self._names)
        is_system = bytes(self._names.is_system)  # has to live as long as the view
        view = columns.view(is_system, final=final or batch.num_rows > MOST_WAITING)
        taken = lib.mpiio_ext_handle_resolver_feed(self._machine(rank), view)
        if taken < 0:
            raise MemoryError("sanitizing a trace")
        if taken < batch.num_rows:
            self._waiting[rank] = batch.slice(taken)
        return _result_of(batch.slice(0, taken), columns, self._names) if taken else None

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that wait for others which do not come."""
        for rank in sorted(self._waiting):
            found = self.feed(rank, self._waiting.pop(rank), final=True)
            if found is not None:
                yield found


def _by_rank(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each rank: one piece a rank, however its rows are mixed with those of others."""
    ranks = batch["rank"].to_numpy(zero_copy_only=False)
    if not ranks.size:
        return
    if (ranks == ranks[0]).all():
        yield int(ranks[0]), batch
        return
    order = np.argsort(ranks, kind="stable")
    begins = np.flatnonzero(np.diff(ranks[order], prepend=ranks[order[0]] - 1))
    for rows in np.split(order, begins[1:]):
        yield int(ranks[rows[0]]), batch.take(pa.array(rows))


class _Gathered:
    """Rows of each rank until they are worth a pass: a piece costs as much as a thousand rows."""

    def __init__(self) -> None:
        self._rows: dict[int, list[pa.RecordBatch]] = {}
        self._count: dict[int, int] = {}

    def add(self, rank: int, part: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return the rows of a rank to process now, None: wait for more."""
        if part.num_rows >= PLENTY and not self._rows.get(rank):
            return part
        self._rows.setdefault(rank, []).append(part)
        self._count[rank] = self._count.get(rank, 0) + part.num_rows
        return self.take(rank) if self._count[rank] >= max(MOST_GATHERED // len(self._rows), ENOUGH) else None

    def take(self, rank: int) -> pa.RecordBatch:
        """Return all that there is of a rank."""
        found, self._rows[rank], self._count[rank] = whole(self._rows[rank]), [], 0
        return found

    def rest(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the remaining rows of each rank."""
        for rank in sorted(rank for rank, count in self._count.items() if count):
            yield rank, self.take(rank)


def sanitize(
    batches: Iterable[pa.RecordBatch], *, system_files: re.Pattern[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield sanitized rows; those of a rank in the order of the raw ones.

    Parameters
    ----------
    batches : of `table.SCHEMA`; each rank's in the order in which its calls were begun.
    system_files : names of files whose operations are masked; `system_files.matcher`.
    """
    machines = _Sanitizers(_Names(pattern=matcher() if system_files is None else system_files))
    gathered = _Gathered()
    for batch in batches:
        for rank, part in _by_rank(batch):
            ready = gathered.add(rank, part)
            found = machines.feed(rank, ready) if ready is not None else None
            if found is not None:
                yield found
    for rank, part in gathered.rest():
        found = machines.feed(rank, part)
        if found is not None:
            yield found
    yield from machines.rest()


def application_only(table: pa.Table) -> pa.Table:
    """Return the rows of a sanitized table that the application has made, as a table of `APPLICATION`.

    Records of mpiio_ext about itself (layer "extension") are left out, too.
    """
    kept = pc.and_(pc.is_null(table["mask"]), pc.not_equal(table["layer"].cast(pa.string()), "extension"))
    return table.filter(kept).select(APPLICATION.names).cast(APPLICATION)
