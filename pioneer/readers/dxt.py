"""Darshan DXT: the reads and writes of each rank and file, from a Darshan log.

Problem.    A log has a list of accesses for each file and rank and module, not the order of a rank's calls.
Algorithm.  All lists become arrays and are sorted by rank and time: one table for each log, handed out in pieces.
            `mpiio_ext.common.darshanfile` reads the log, also of releases that Darshan's own library does not know yet.
Guarantee.  Every access that the log has is a row or counted in Loss. Memory is proportional to the log, which Darshan
            limits for each process. Nothing is made up: there are no opens, closes, seeks and no metadata calls.
Missing.    See `LACKS`. Modules that ran out of memory are partial, which is counted in Loss.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.common.darshanfile import Access, DamagedLogError, DarshanFile
from mpiio_ext.pioneer.readers._files import files_of, samples
from mpiio_ext.pioneer.table import SCHEMA, Source, TraceInfo

NAME = "dxt"
LACKS = [
    "opens, closes, seeks, syncs and metadata calls",
    "results, handles, threads and depth",
    "which function was called: MPI_File_read and MPI_File_write stand for all of their kind",
    "calls through stdio",
]
_MAGIC = 6567223
_BATCH = 1 << 17
#: Later is no time of a log: it would not fit into a column.
_MOST_SECONDS, _LAST_START_NS = 4e9, 4 * 10**18

#: Module -> (layer, operation that reads, operation that writes).
_MODULES = {"DXT_POSIX": ("posix", "read", "write"), "DXT_MPIIO": ("mpiio", "MPI_File_read", "MPI_File_write")}


def recognizes(path: Path) -> bool:
    """Return whether a file is a Darshan log, or a folder has one."""
    if path.is_dir():
        return any(recognizes(item) for item in samples(files_of([path], (".darshan",))))
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError:
        return False
    return len(head) == 16 and _MAGIC in (struct.unpack_from("<q", head, 8)[0], struct.unpack_from(">q", head, 8)[0])


@dataclass
class _Columns:
    """Accesses as they come: a list of arrays for each column; `kind` is an index of `operations`."""

    operations: list[tuple[str, str]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    parts: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def add(self, count: int, **values: Any) -> None:
        """Add `count` accesses; a number is the same for all."""
        for name, value in values.items():
            self.parts.setdefault(name, []).append(np.broadcast_to(np.asarray(value), (count,)))

    def kind(self, layer: str, operation: str) -> int:
        """Return the index of an operation."""
        if (layer, operation) not in self.operations:
            self.operations.append((layer, operation))
        return self.operations.index((layer, operation))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, sorted by rank and time."""
        if not self.parts:
            return
        every = {name: np.concatenate(parts) for name, parts in self.parts.items()}
        order = np.lexsort((every["timestamp"], every["rank"]))
        layers = sorted({layer for layer, _ in self.operations})  # one code a layer: pandas takes no word twice
        layer_of = np.array([layers.index(layer) for layer, _ in self.operations], np.int32)
        names = pa.array([operation for _, operation in self.operations], pa.string())
        files = pa.array(list(self.files), pa.string())
        for start in range(0, len(order), _BATCH):
            rows = {name: values[order[start : start + _BATCH]] for name, values in every.items()}
            kinds, count = rows["kind"].astype(np.int32), len(rows["kind"])
            known = {
                "operation": pa.DictionaryArray.from_arrays(pa.array(kinds), names),
                "layer": pa.DictionaryArray.from_arrays(pa.array(layer_of[kinds]), pa.array(layers, pa.string())),
                "file": pa.DictionaryArray.from_arrays(pa.array(rows["file"].astype(np.int32)), files),
                "thread": pa.array(np.zeros(count, np.int32)),
                "rank": pa.array(rows["rank"].astype(np.int32)),
                **{name: pa.array(rows[name]) for name in ("timestamp", "offset", "size", "duration", "line")},
            }
            arrays = [known[item.name] if item.name in known else pa.nulls(count, item.type) for item in SCHEMA]
            yield pa.record_batch(arrays, schema=SCHEMA)


def _ns(seconds: np.ndarray) -> np.ndarray:
    return np.asarray(np.rint(seconds * 1e9), np.int64)


def _is_possible(access: Access) -> bool:
    """Return whether requests can be real: a damaged log may contain anything."""
    times = np.stack([access.requests["start"], access.requests["end"]])
    return bool((np.abs(times) < _MOST_SECONDS).all())  # not of what is no number


def _add_access(columns: _Columns, module: str, access: Access, file: str, start_ns: int, line: int) -> None:
    """Add requests of a record that begins at a line."""
    layer, reads, writes = _MODULES[module]
    part, begin = access.requests, _ns(access.requests["start"])
    columns.add(
        len(part),
        timestamp=start_ns + begin,
        duration=_ns(part["end"]) - begin,
        offset=part["offset"],
        size=part["length"],
        kind=columns.kind(layer, writes if access.write else reads),
        file=columns.files.setdefault(file, len(columns.files)),
        rank=max(access.rank, 0),
        line=line + access.place + np.arange(len(part)),
    )


def _take(log: DarshanFile, columns: _Columns, source: Source, info: TraceInfo) -> None:
    """Add the DXT of a log; an error is that of the log."""
    job = log.job()
    processes, start_ns = job.processes, job.start * 10**9 + job.start_ns
    if not 0 <= start_ns < _LAST_START_NS:
        raise DamagedLogError(f"{log.path}: its start is no time")
    info.ranks = max(info.ranks, min(max(processes, 0), (1 << 31) - 1))
    known = [module for module in _MODULES if module in log.modules]
    if not known:
        source.loss.add(0, "the log has no DXT: record with DXT_ENABLE_IO_TRACE=1", count=0)
        return
    names = dict(log.names())
    for module in known:
        if log.partial(module):
            source.loss.truncated = True
            source.loss.add(source.lines, f"truncated: {module} ran out of memory while it recorded", count=0)
        before = source.lines
        for access in log.accesses(module):
            count = len(access.requests)
            source.host = source.host or access.host
            if _is_possible(access):
                _add_access(columns, module, access, names.get(access.file, ""), start_ns, before + 1)
            else:
                source.loss.add(before + access.place + 1, "cannot be parsed: a record of DXT", count=count)
            source.lines += count
        if source.lines == before:
            raise DamagedLogError(f"{log.path}: module {module} has bytes, and no record")


def _read_log(path: Path, source: Source, info: TraceInfo) -> Iterator[pa.RecordBatch]:
    columns = _Columns()
    try:
        _take(DarshanFile(path), columns, source, info)
    except DamagedLogError as error:
        source.loss.truncated = True
        source.loss.add(source.lines, f"cannot be parsed: {error}")
    for batch in columns.batches():
        source.rows += len(batch)
        yield batch


def read(paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return the facts of a trace, and its rows; see `Reader.read`. One log follows the other."""
    info = TraceInfo(format=NAME, lacks=list(LACKS))
    files = files_of(paths, (".darshan",))
    info.sources = [Source(path=str(path)) for path in files]

    def rows() -> Iterator[pa.RecordBatch]:
        for path, source in zip(files, info.sources, strict=True):
            yield from _read_log(path, source, info)

    return info, rows()
