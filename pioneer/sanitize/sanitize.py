"""Sanitization of a trace table, batch by batch.

Problem.   A raw trace names descriptors, lacks offsets, and has the POSIX calls of MPI-IO beside the application's.
Algorithm. Each batch becomes columns of numbers, which the state machine of its rank goes over in C
           (csrc/pioneer/mpiox_sanitize.h). Operations on files of the system are masked by name.
Result.    The same rows, with `file` and `offset` filled in and two columns more: why an operation is masked, and the
           line of the call that it belongs to. Nothing is dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext._binding import ffi, lib
from mpiio_ext.pioneer.operations import DATA, WHENCE, Operation, Role, normal_name, operation_of
from mpiio_ext.pioneer.sanitize.system_files import matcher
from mpiio_ext.pioneer.table import SCHEMA

__all__ = ["MASKS", "SANITIZED", "application_only", "sanitize"]

_TEXT = pa.dictionary(pa.int32(), pa.string())

#: Why an operation is no operation of the application.
MASKS = ("inside MPI-IO", "descriptor of MPI-IO", "file of the system")

#: The schema of a trace table with the reason and the line of the MPI-IO call that has made the operation.
SANITIZED = SCHEMA.append(pa.field("mask", _TEXT)).append(pa.field("parent", pa.int64()))

_UNKNOWN = -(2**63)
_LAYERS = {"posix": 0, "stdio": 1, "mpiio": 2}
_OTHER_LAYER = 3
_NONE, _OPEN, _CLOSE, _MOVE, _MOVE_AT, _SEEK, _DUPLICATE, _VIEW, _USE = range(9)
_ROLE_STEPS = {
    Role.OPEN: _OPEN, Role.CLOSE: _CLOSE, Role.SEEK: _SEEK, Role.DUPLICATE: _DUPLICATE, Role.META: _NONE,
    Role.WAIT: _NONE,
}  # fmt: skip


def _step_of(operation: Operation) -> int:
    if operation.name == "fdopen":
        return _DUPLICATE
    if operation.name == "MPI_File_set_view":
        return _VIEW
    if operation.shared_pointer:
        return _USE
    if operation.role in DATA or operation.role is Role.BEGIN:
        return _MOVE_AT if operation.explicit_offset else _MOVE
    return _ROLE_STEPS.get(operation.role, _USE)


# ---- names -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Names:
    """Files as numbers, the same in all batches."""

    numbers: dict[str, int] = field(default_factory=dict)
    is_system: list[bool] = field(default_factory=list)
    pattern: re.Pattern[str] = field(default_factory=matcher)

    def number(self, name: str) -> int:
        found = self.numbers.get(name)
        if found is None:
            found = self.numbers[name] = len(self.numbers)
            self.is_system.append(self.pattern.match(name) is not None)
        return found


def _encoded(column: pa.Array) -> tuple[NDArray[np.int64], list[Any]]:
    """Return a column of texts as numbers, -1 for null, and the texts."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return indices.astype(np.int64), encoded.dictionary.to_pylist()


def _mapped(indices: NDArray[np.int64], values: list[int], null: int, kind: Any) -> NDArray[Any]:
    table = np.array([*values, null], kind)  # -1 is the last one
    return table[indices]


def _numbers(column: pa.Array) -> NDArray[np.int64]:
    return np.ascontiguousarray(column.cast(pa.int64()).fill_null(_UNKNOWN).to_numpy(zero_copy_only=False), np.int64)


# ---- columns ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Extra:
    """What the column `extra` tells the state machine, by its different texts."""

    whence: list[int] = field(default_factory=list)
    append: list[int] = field(default_factory=list)
    etype: list[int] = field(default_factory=list)


def _extra_of(texts: list[Any]) -> _Extra:
    found = _Extra()
    for text in texts:
        try:
            values = json.loads(text) if text else {}
        except json.JSONDecodeError:
            values = {}
        values = values if isinstance(values, dict) else {}
        flags = str(values.get("flags", values.get("mode", "")))
        etype = values.get("etype_size", values.get("etype", 1))
        found.whence.append(WHENCE.get(str(values.get("whence", 0)), 0))
        found.append.append(int("APPEND" in flags or flags.startswith("a")))
        found.etype.append(etype if isinstance(etype, int) and etype > 0 else 1)
    return found


@dataclass(slots=True)
class _Columns:
    """A batch as the state machine wants it."""

    arrays: dict[str, NDArray[Any]]

    def view(self) -> Any:
        rows = ffi.new("mpiio_ext_rows *")
        rows.count = self.arrays["step"].size
        kinds = {"uint8": "unsigned char[]", "int16": "int16_t[]", "int32": "int32_t[]", "int64": "int64_t[]"}
        for name, array in self.arrays.items():
            setattr(rows, name, ffi.from_buffer(kinds[array.dtype.name], array))
        return rows


def _kinds_of(batch: pa.RecordBatch) -> tuple[NDArray[np.int64], list[Operation], NDArray[np.uint8]]:
    """Return the operation of each row as a number, what the numbers mean, and the layer."""
    names, words = _encoded(batch["operation"])
    layers, layer_words = _encoded(batch["layer"])
    pairs = names * len(layer_words) + layers
    kinds = [operation_of(layer, normal_name(word)) for word in words for layer in layer_words]
    layer_numbers = [_LAYERS.get(layer, _OTHER_LAYER) for layer in layer_words]
    return pairs, kinds, _mapped(layers, layer_numbers, _OTHER_LAYER, np.uint8)


def _moved(batch: pa.RecordBatch, layer: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the bytes that each row has moved: POSIX returns them, elsewhere what was asked for is taken."""
    result, size = _numbers(batch["result"]), _numbers(batch["size"])
    returned = np.where(result == _UNKNOWN, size, np.maximum(result, 0))
    return np.where(layer == _LAYERS["posix"], returned, size)


def _columns_of(batch: pa.RecordBatch, names: _Names) -> _Columns:
    pairs, kinds, layer = _kinds_of(batch)
    files, file_words = _encoded(batch["file"])
    extras, extra_words = _encoded(batch["extra"])
    extra = _extra_of(extra_words)
    count = batch.num_rows
    arrays: dict[str, NDArray[Any]] = {
        "step": _mapped(pairs, [_step_of(kind) for kind in kinds], _NONE, np.uint8),
        "layer": layer,
        "whence": _mapped(extras, extra.whence, 0, np.uint8),
        "flags": _mapped(extras, extra.append, 0, np.uint8),
        "etype": _mapped(extras, extra.etype, 1, np.int64),
        "depth": np.ascontiguousarray(batch["depth"].fill_null(-1).to_numpy(zero_copy_only=False), np.int16),
        "file": _mapped(files, [names.number(word) for word in file_words], -1, np.int32),
        "line": _numbers(batch["line"]),
        "handle": _numbers(batch["handle"]),
        "result": _numbers(batch["result"]),
        "offset": _numbers(batch["offset"]),
        "moved": _moved(batch, layer),
        "named": np.zeros(count, np.int32),
        "place": np.zeros(count, np.int64),
        "mask": np.zeros(count, np.uint8),
        "parent": np.zeros(count, np.int64),
    }
    return _Columns(arrays)


def _known(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values, pa.int64(), mask=values == _UNKNOWN)


def _result_of(batch: pa.RecordBatch, columns: _Columns, names: _Names) -> pa.RecordBatch:
    arrays = columns.arrays
    named, mask = arrays["named"], arrays["mask"].astype(np.int32)
    system = np.array([*names.is_system, False], bool)[named]
    mask = np.where((mask == 0) & system, MASKS.index("file of the system") + 1, mask) - 1
    words = list(names.numbers)
    operations, operation_words = _encoded(batch["operation"])
    filled = {
        "operation": pa.DictionaryArray.from_arrays(
            operations.astype(np.int32), pa.array([normal_name(word) for word in operation_words])),
        "file": pa.DictionaryArray.from_arrays(pa.array(named, mask=named < 0), pa.array(words, pa.string())),
        "offset": _known(arrays["place"]),
        "mask": pa.DictionaryArray.from_arrays(
            pa.array(mask.astype(np.int32), mask=mask < 0), pa.array(MASKS, pa.string())),
        "parent": _known(arrays["parent"]),
    }  # fmt: skip
    arrays_of = [(filled[kind.name] if kind.name in filled else batch[kind.name]).cast(kind.type) for kind in SANITIZED]
    return pa.RecordBatch.from_arrays(arrays_of, schema=SANITIZED)


# ---- batches ---------------------------------------------------------------------------------------------------------


class _Sanitizers:
    """The state machines of all ranks."""

    def __init__(self) -> None:
        self._of_rank: dict[int, Any] = {}

    def feed(self, rank: int, columns: _Columns) -> None:
        machine = self._of_rank.get(rank)
        if machine is None:
            machine = ffi.gc(lib.mpiio_ext_sanitizer_new(), lib.mpiio_ext_sanitizer_free)
            if machine == ffi.NULL:
                raise MemoryError("sanitizing a trace")
            self._of_rank[rank] = machine
        if lib.mpiio_ext_sanitizer_feed(machine, columns.view()) != 0:
            raise MemoryError("sanitizing a trace")


def _by_rank(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield stretches of one rank each."""
    ranks = batch["rank"].to_numpy(zero_copy_only=False)
    begins = np.flatnonzero(np.diff(ranks, prepend=ranks[0] - 1 if ranks.size else 0))
    for begin, end in zip(begins, [*begins[1:], ranks.size], strict=True):
        yield int(ranks[begin]), batch.slice(int(begin), int(end - begin))


def sanitize(
    batches: Iterable[pa.RecordBatch], *, system_files: re.Pattern[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield sanitized rows, in the order of the raw ones.

    Parameters
    ----------
    batches : of `table.SCHEMA`; each rank's in the order in which its calls were begun.
    system_files : names of files whose operations are masked; `system_files.matcher`.
    """
    names = _Names(pattern=matcher() if system_files is None else system_files)
    machines = _Sanitizers()
    for batch in batches:
        for rank, part in _by_rank(batch):
            columns = _columns_of(part, names)
            machines.feed(rank, columns)
            yield _result_of(part, columns, names)


def application_only(table: pa.Table) -> pa.Table:
    """Return the rows of a sanitized table that the application has made, as a table of `table.SCHEMA`.

    What mpiio_ext tells of itself (layer "extension") is left out, too.
    """
    kept = pc.and_(pc.is_null(table["mask"]), pc.not_equal(table["layer"].cast(pa.string()), "extension"))
    return table.filter(kept).select(SCHEMA.names).cast(SCHEMA)
