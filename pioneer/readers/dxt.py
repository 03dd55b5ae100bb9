"""Darshan DXT: the reads and writes of each rank and file, from a Darshan log, through PyDarshan.

Problem.    A log has a list of accesses for each file and rank and module, not the order of a rank's calls.
Algorithm.  All lists become arrays and are sorted by rank and time: one table for each log, handed out in pieces.
            PyDarshan's library in C ends its process on damaged logs: it works in a process of its own
            (`_darshan_worker`), whose end is told in Loss as well as its errors.
Guarantee.  Every access that the log has is a row or counted in Loss. Memory is proportional to the log, which Darshan
            limits for each process. Nothing is made up: there are no opens, closes, seeks and no metadata calls.
Missing.    See `LACKS`. Modules that ran out of memory are partial, which is told in Loss.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from mpiio_ext.common.extras import MissingExtraError
from mpiio_ext.pioneer.readers._files import files_of
from mpiio_ext.pioneer.readers._rawtrace import text_of
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
_MOST_SAID = 2000
#: Later is no time of a log: it would not fit into a column.
_MOST_SECONDS, _LAST_START_NS = 4e9, 4 * 10**18
#: `struct segment_info` of Darshan.
_SEGMENT = np.dtype([("offset", "=i8"), ("length", "=i8"), ("start", "=f8"), ("end", "=f8")])

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


def _add_record(
    columns: _Columns, record: dict[str, Any], segments: np.ndarray, file: str, start_ns: int, line: int
) -> None:  # fmt: skip
    """Add the accesses of a record: reads first, as their lines are counted."""
    layer, reads, writes = _MODULES[record["module"]]
    place = columns.files.setdefault(file, len(columns.files))
    begins = record["writes"]
    for operation, part in ((reads, segments[begins:]), (writes, segments[:begins])):
        if not len(part):
            continue
        begin = _ns(part["start"])
        columns.add(
            len(part),
            timestamp=start_ns + begin,
            duration=_ns(part["end"]) - begin,
            offset=part["offset"],
            size=part["length"],
            kind=columns.kind(layer, operation),
            file=place,
            rank=max(int(record["rank"]), 0),
            line=line + np.arange(len(part)),
        )
        line += len(part)


def _messages(stream: IO[bytes]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield what the worker has written; the last message may be cut."""
    while len(head := stream.read(8)) == 8:
        lengths = struct.unpack("<II", head)
        text, data = stream.read(lengths[0]), stream.read(lengths[1])
        if (len(text), len(data)) != lengths:
            return
        yield json.loads(text), data


def _is_possible(record: dict[str, Any], segments: np.ndarray) -> bool:
    """Return whether a record can be one: of a damaged log the library hands out anything."""
    if record["writes"] < 0 or record["reads"] < 0 or record["writes"] + record["reads"] != len(segments):
        return False
    if not -1 <= record["rank"] < 1 << 31:
        return False
    times = np.stack([segments["start"], segments["end"]])
    return bool((np.abs(times) < _MOST_SECONDS).all())


def _take(stream: IO[bytes], columns: _Columns, source: Source, info: TraceInfo) -> bool:
    """Take in what the worker says; returns whether the log was read to its end."""
    names: dict[str, str] = {}
    start_ns = 0
    for message, data in _messages(stream):
        if "problem" in message:
            source.loss.truncated = True
            source.loss.add(source.lines, f"cannot be parsed: {message['problem']}")
        elif "modules" in message:
            start_ns = message["start_ns"]
            info.ranks = max(info.ranks, min(max(message["ranks"], 0), (1 << 31) - 1))
            if not message["modules"]:
                source.loss.add(0, "the log has no DXT: record with DXT_ENABLE_IO_TRACE=1", count=0)
        elif "names" in message:
            names = message["names"]
        elif "partial" in message:
            source.loss.truncated = True
            why = f"truncated: {message['partial']} ran out of memory while it recorded"
            source.loss.add(source.lines, why, count=0)
        elif "id" in message:
            segments = np.frombuffer(data, _SEGMENT)
            source.host = source.host or message["host"]
            if _is_possible(message, segments) and 0 <= start_ns < _LAST_START_NS:
                file = names.get(str(message["id"]), "")
                _add_record(columns, message, segments, file, start_ns, source.lines + 1)
            else:
                source.loss.add(source.lines + 1, "cannot be parsed: a record of DXT", count=max(len(segments), 1))
            source.lines += len(segments)
        else:
            return True
    return False


def _read_log(path: Path, source: Source, info: TraceInfo) -> Iterator[pa.RecordBatch]:
    columns = _Columns()
    path.open("rb").close()  # the error that names what is wrong with the file
    command = [sys.executable, "-m", "mpiio_ext.pioneer.readers._darshan_worker", str(path), *_MODULES]
    with tempfile.TemporaryFile() as said, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said) as worker:
        assert worker.stdout is not None
        try:
            ended = _take(worker.stdout, columns, source, info)
        except BaseException:
            worker.kill()
            raise
        code = worker.wait()
        said.seek(0)
        text = text_of(said.read()[-_MOST_SAID:]).strip()
    if code != 0 or (not ended and not source.loss.problems):
        source.loss.truncated = True
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        source.loss.add(source.lines, f"cannot be parsed: PyDarshan's library ended {how} within this log", text)
    elif "Error" in text:  # it prints errors and goes on
        source.loss.truncated = True
        source.loss.add(source.lines, "cannot be parsed: PyDarshan's library has met errors", text)
    for batch in columns.batches():
        source.rows += len(batch)
        yield batch


def read(paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return what is known of a trace, and its rows; see `Reader.read`. A log follows the other.

    Raises
    ------
    MissingExtraError
        PyDarshan is not installed.
    """
    try:
        import darshan.backend.cffi_backend  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingExtraError("reading Darshan DXT", "PyDarshan (darshan)", "pioneer") from error
    info = TraceInfo(format=NAME, lacks=list(LACKS))
    files = files_of(paths, (".darshan",))
    info.sources = [Source(path=str(path)) for path in files]

    def rows() -> Iterator[pa.RecordBatch]:
        for path, source in zip(files, info.sources, strict=True):
            yield from _read_log(path, source, info)

    return info, rows()
