"""Darshan DXT: the reads and writes of each rank and file, from a Darshan log, through PyDarshan.

Problem.    A log has a list of accesses for each file and rank and module, not the order of a rank's calls.
Algorithm.  All lists become arrays and are sorted by rank and time: one table for each log, handed out in pieces.
Guarantee.  Every access that the log has is a row. Memory is proportional to the log, which Darshan limits for each
            process. Nothing is made up: there are no opens, closes, seeks and no metadata calls.
Missing.    See `LACKS`. Modules that ran out of memory are partial, which is told in Loss.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.pioneer.errors import MissingPackageError
from mpiio_ext.pioneer.readers._files import files_of
from mpiio_ext.pioneer.table import SCHEMA, Source, TraceInfo

__all__ = ["LACKS", "NAME", "read", "recognizes"]

NAME = "dxt"
LACKS = [
    "opens, closes, seeks, syncs and metadata calls",
    "results, handles, threads and depth",
    "which function was called: MPI_File_read and MPI_File_write stand for all of their kind",
    "calls through stdio",
]
_MAGIC = 6567223
_BATCH = 1 << 17

#: Module -> (layer, operation that reads, operation that writes).
_MODULES = {
    "DXT_POSIX": ("posix", "read", "write"),
    "DXT_MPIIO": ("mpiio", "MPI_File_read", "MPI_File_write"),
}


def recognizes(path: Path) -> bool:
    """Return whether a file is a Darshan log, or a folder has one."""
    if path.is_dir():
        return any(recognizes(item) for item in files_of([path], (".darshan",))[:1])
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
        """Add `count` accesses; a number stands for all of them."""
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
        layers = pa.array([layer for layer, _ in self.operations], pa.string())
        names = pa.array([operation for _, operation in self.operations], pa.string())
        files = pa.array(list(self.files), pa.string())
        for start in range(0, len(order), _BATCH):
            rows = {name: values[order[start : start + _BATCH]] for name, values in every.items()}
            kinds, count = pa.array(rows["kind"].astype(np.int32)), len(rows["kind"])
            known = {
                "operation": pa.DictionaryArray.from_arrays(kinds, names),
                "layer": pa.DictionaryArray.from_arrays(kinds, layers),
                "file": pa.DictionaryArray.from_arrays(pa.array(rows["file"].astype(np.int32)), files),
                "thread": pa.array(np.zeros(count, np.int32)),
                "rank": pa.array(rows["rank"].astype(np.int32)),
                **{name: pa.array(rows[name]) for name in ("timestamp", "offset", "size", "duration", "line")},
            }
            arrays = [known[item.name] if item.name in known else pa.nulls(count, item.type) for item in SCHEMA]
            yield pa.record_batch(arrays, schema=SCHEMA)


def _ns(seconds: np.ndarray) -> np.ndarray:
    return np.asarray(np.rint(seconds * 1e9), np.int64)


def _add_record(columns: _Columns, record: dict[str, Any], module: str, file: str, start_ns: int, line: int) -> int:
    layer, *operations = _MODULES[module]
    place = columns.files.setdefault(file, len(columns.files))
    added = 0
    for operation, segments in zip(operations, (record["read_segments"], record["write_segments"]), strict=True):
        if not segments:
            continue
        begin = _ns(np.array([segment["start_time"] for segment in segments]))
        columns.add(
            len(segments),
            timestamp=start_ns + begin,
            duration=_ns(np.array([segment["end_time"] for segment in segments])) - begin,
            offset=np.array([segment["offset"] for segment in segments], np.int64),
            size=np.array([segment["length"] for segment in segments], np.int64),
            kind=columns.kind(layer, operation),
            file=place,
            rank=max(int(record["rank"]), 0),
            line=line + added + np.arange(len(segments)),
        )
        added += len(segments)
    return added


def _read_log(path: Path, source: Source, info: TraceInfo) -> Iterator[pa.RecordBatch]:
    from darshan.backend import cffi_backend as backend

    columns = _Columns()
    path.open("rb").close()  # the error that names what is wrong with the file
    log = backend.log_open(str(path))
    if not log["handle"]:
        source.loss.truncated = True
        source.loss.add(0, "cannot be parsed: PyDarshan does not open this log")
        return
    try:
        job, modules = backend.log_get_job(log), backend.log_get_modules(log)
        info.ranks = max(info.ranks, int(job["nprocs"]))
        names = backend.log_get_name_records(log)
        start_ns = int(job["start_time_sec"]) * 10**9 + int(job.get("start_time_nsec", 0))
        for module in (name for name in _MODULES if name in modules):
            if modules[module].get("partial_flag"):
                source.loss.truncated = True
                source.loss.add(source.lines, f"truncated: {module} ran out of memory while it recorded", count=0)
            while (record := backend.log_get_dxt_record(log, module)) is not None:
                file = names.get(record["id"], "")
                source.host = source.host or record["hostname"]
                source.lines += _add_record(columns, record, module, file, start_ns, source.lines + 1)
        if not any(module in modules for module in _MODULES):
            source.loss.add(0, "the log has no DXT: record with DXT_ENABLE_IO_TRACE=1", count=0)
    except (RuntimeError, KeyError, ValueError) as error:
        source.loss.truncated = True
        source.loss.add(source.lines, f"cannot be parsed: {error}")
    finally:
        backend.log_close(log)
    for batch in columns.batches():
        source.rows += len(batch)
        yield batch


def read(paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return what is known of a trace, and its rows; see `Reader.read`. A log follows the other.

    Raises
    ------
    MissingPackageError
        PyDarshan is not installed.
    """
    try:
        import darshan.backend.cffi_backend  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingPackageError("reading Darshan DXT", "PyDarshan (darshan)", error) from error
    info = TraceInfo(format=NAME, lacks=list(LACKS))
    files = files_of(paths, (".darshan",))
    info.sources = [Source(path=str(path)) for path in files]

    def rows() -> Iterator[pa.RecordBatch]:
        for path, source in zip(files, info.sources, strict=True):
            yield from _read_log(path, source, info)

    return info, rows()
