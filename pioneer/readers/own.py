"""Reader of the traces of ``mpiio-ext trace``: a folder of files, one for each process.

Decoding is done in C (``csrc/tools/pioneer``), batch by batch: the memory that is in use does not depend on a file's
size. The files of a trace follow each other, by rank and by the time at which they were begun. A process that was
started under the tracer and never took part in MPI has the rank -1 in its file. It counts as rank 0 if no process has a
rank; else it is left out (shells and launchers of ranks are such processes). A rank without a file, and a rank with
several, as of two runs into one folder, are reported as problems of the trace.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext._tools import ffi, lib
from mpiio_ext.pioneer.table import LAYERS, SCHEMA, LeftOut, Source, TraceInfo

__all__ = ["NAME", "SUFFIX", "Head", "files_of", "heads", "read", "recognizes"]

#: Name of the format.
NAME = "mpiio_ext"
#: Of the file of each process.
SUFFIX = ".mpioxtrace"
BATCH_ROWS = 65536

_MAGIC = b"MPIOXTRC"
_NULL = np.iinfo(np.int64).min
_COLUMNS = (
    "timestamp",
    "duration",
    "operation",
    "file",
    "offset",
    "size",
    "handle",
    "result",
    "thread",
    "depth",
    "line",
    "layer",
)


def recognizes(path: Path) -> bool:
    """Return whether this is a trace file, or a folder that has one."""
    if path.is_dir():
        return any(child.suffix == SUFFIX for child in path.iterdir())
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return the trace files among files and folders."""
    files: list[Path] = []
    for path in paths:
        files += sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    return files


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The head of a trace file: the facts of its process.

    Attributes
    ----------
    path : of the file.
    rank, ranks : of the process in MPI_COMM_WORLD, and how many there are; -1, 0: not known.
    host, pid, command : of the process.
    started_ns : when the trace was begun, since 1970.
    running : the process has not ended its trace: it lives, or was killed.
    """

    path: Path
    rank: int
    ranks: int
    host: str
    pid: int
    command: str
    started_ns: int
    running: bool


def heads(paths: Sequence[Path]) -> list[Head]:
    """Return the heads of the trace files among files and folders, by rank and start.

    What is no trace file of this version is left out.
    """
    found: list[Head] = []
    for path in files_of(paths):
        with suppress(ValueError, OSError), _opened(path) as trace:
            found.append(
                Head(
                    path=path,
                    rank=lib.mpiio_ext_trace_rank(trace),
                    ranks=lib.mpiio_ext_trace_ranks(trace),
                    host=_text(lib.mpiio_ext_trace_host(trace)),
                    pid=lib.mpiio_ext_trace_pid(trace),
                    command=_text(lib.mpiio_ext_trace_command(trace)),
                    started_ns=lib.mpiio_ext_trace_started(trace),
                    running=bool(lib.mpiio_ext_trace_running(trace)),
                )
            )
    return sorted(found, key=lambda head: (head.rank, head.started_ns))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a trace file; ValueError if it is not of this version, OSError if it cannot be read."""
    pointer = ffi.new("mpiio_ext_trace **")
    code = lib.mpiio_ext_trace_open(os.fsencode(path), pointer)
    if code == -3:
        path.open("rb").close()  # names the reason
        raise OSError(f"{path}: cannot be read")
    if code == -1:
        raise MemoryError(f"{path}: no memory to read the trace")
    if code != 0:
        raise ValueError("no trace file, or one of another version of mpiio_ext")
    try:
        yield pointer[0]
    finally:
        lib.mpiio_ext_trace_close(pointer[0])


def _text(pointer: Any) -> str:
    return bytes(ffi.string(pointer)).decode(errors="replace")


class _Names:
    """The names of one file so far, as a dictionary for Arrow."""

    def __init__(self, get: Any, trace: Any) -> None:
        self._get, self._trace, self._names = get, trace, list[str]()

    def array(self, indices: np.ndarray[Any, Any]) -> pa.DictionaryArray:
        """Return the names of the indices; -1: null."""
        while (pointer := self._get(self._trace, len(self._names))) != ffi.NULL:
            self._names.append(_text(pointer))
        values = pa.array(indices.astype(np.int32), mask=indices < 0)
        return pa.DictionaryArray.from_arrays(values, pa.array(self._names, pa.string()))


def _numbers(values: np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    null = values == _NULL
    if kind == pa.int64():
        return pa.array(values, mask=null) if null.any() else pa.array(values)
    limit = np.iinfo(kind.to_pandas_dtype())
    inside = np.clip(values, limit.min, limit.max).astype(limit.dtype)
    return pa.array(inside, mask=null) if null.any() else pa.array(inside)


def _extras(trace: Any, rows: int) -> pa.Array:
    """Return the JSON objects of a batch."""
    pointer = ffi.new("int32_t **")
    text = lib.mpiio_ext_trace_extras(trace, ffi.cast("const int32_t **", pointer))
    offsets = np.frombuffer(ffi.buffer(pointer[0], (rows + 1) * 4), np.int32).copy()
    data = bytes(ffi.buffer(text, int(offsets[-1]))) if offsets[-1] else b""
    missing = np.diff(offsets) == 0
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes()) if missing.any() else None
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(data), valid)


def _batch(trace: Any, rows: int, rank: int, operations: _Names, files: _Names) -> pa.RecordBatch:
    values = {}
    for index, name in enumerate(_COLUMNS):
        column = lib.mpiio_ext_trace_column(trace, index)
        values[name] = np.frombuffer(ffi.buffer(column, rows * 8), np.int64).copy()
    columns = {
        "operation": operations.array(values["operation"]),
        "file": files.array(values["file"]),
        "layer": pa.DictionaryArray.from_arrays(pa.array(values["layer"].astype(np.int32)), pa.array(LAYERS)),
        "extra": _extras(trace, rows),
        "rank": pa.array(np.full(rows, rank, np.int32)),
    }
    for field in SCHEMA:
        if field.name not in columns:
            columns[field.name] = _numbers(values[field.name], field.type)
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _note(trace: Any, source: Source) -> None:
    """Put the decoder's facts of the file so far into the source."""
    line = ffi.new("int64_t *")
    problems = source.loss.problems
    while len(problems) < source.loss.MOST and (why := lib.mpiio_ext_trace_problem(trace, len(problems), line)):
        source.loss.add(int(line[0]), _text(why), count=0)
    source.lines = int(lib.mpiio_ext_trace_records(trace))
    source.loss.skipped = int(lib.mpiio_ext_trace_lost(trace))
    source.loss.truncated = bool(lib.mpiio_ext_trace_truncated(trace))
    source.loss.unread_bytes = int(lib.mpiio_ext_trace_unread(trace))
    source.loss.missing_bytes = int(lib.mpiio_ext_trace_missing(trace))
    numbers = ffi.new("int64_t[3]")
    name = _text(lib.mpiio_ext_trace_left_out(trace, numbers))
    operations, files, ns = (max(int(each), 0) for each in numbers)
    source.left_out = LeftOut(operations=operations, files=files, ns=ns, name=name)


def _rows(path: Path, source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file."""
    with _opened(path) as trace:
        operations, files = _Names(lib.mpiio_ext_trace_operation, trace), _Names(lib.mpiio_ext_trace_file, trace)
        while (rows := int(lib.mpiio_ext_trace_next(trace, BATCH_ROWS))) > 0:
            source.rows += rows
            yield _batch(trace, rows, source.rank, operations, files)
        if rows < 0:
            raise MemoryError(f"{path}: no memory to read the trace")
        _note(trace, source)
        if source.loss.truncated:
            source.loss.add(
                source.lines, "truncated: the process did not complete the file, or no space was left", count=0
            )
        if source.loss.missing_bytes:
            source.loss.truncated = True
            there = path.stat().st_size
            source.loss.add(
                source.lines,
                f"cut at byte {there:,} of {there + source.loss.missing_bytes:,}: "
                f"{source.loss.missing_bytes:,} bytes are missing, and {source.loss.unread_bytes:,} bytes "
                "before that could not be read",
                count=0,
            )
        elif source.loss.unread_bytes:
            source.loss.add(
                source.lines,
                f"{source.loss.unread_bytes:,} of {path.stat().st_size:,} bytes, in damaged blocks, were not read",
                count=0,
            )


def _note_ranks(info: TraceInfo, sources: Sequence[Source], place: Path) -> None:
    """Report ranks that have no trace, and ranks that have several."""
    missing = sorted(set(range(info.ranks)) - {source.rank for source in sources})
    if sources and missing:
        some = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        lost = Source(path=str(place))
        lost.loss.add(
            0,
            f"{len(missing)} of {info.ranks} ranks have no trace: {some}: a file was lost, or the process "
            "had no room for it (norank.* may be its beginning); what they did is not known",
        )
        info.sources.append(lost)
    several = Counter(source.rank for source in sources)
    for source in sources:
        if several.pop(source.rank, 1) > 1:
            source.loss.add(
                0,
                f"rank {source.rank} has several traces, which follow one another: of several runs into "
                "one folder, or of processes that were spawned",
                count=0,
            )


def read(paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return the facts of a trace, and its rows; see :class:`mpiio_ext.pioneer.readers.Reader`."""
    info = TraceInfo(format=NAME)
    found: list[tuple[int, int, Path, Source]] = []
    for path in files_of(paths):
        try:
            with _opened(path) as trace:
                source = Source(path=str(path), host=_text(lib.mpiio_ext_trace_host(trace)))
                source.rank = lib.mpiio_ext_trace_rank(trace)
                info.ranks = max(info.ranks, lib.mpiio_ext_trace_ranks(trace))
                info.selected |= bool(lib.mpiio_ext_trace_selected(trace))
                found.append((source.rank, lib.mpiio_ext_trace_started(trace), path, source))
        except ValueError as error:
            source = Source(path=str(path))
            source.loss.add(1, str(error))
            info.sources.append(source)
    folders = {path.parent for *_, path, _ in found}
    if len(folders) > 1 and all(rank < 0 for rank, *_ in found):
        lost = Source(path=", ".join(sorted(map(str, folders))))
        lost.loss.add(
            0,
            f"{len(found)} processes without MPI in {len(folders)} folders: they count as one rank's, "
            "one after the other; read runs one at a time to compare them",
            count=0,
        )
        info.sources.append(lost)
    if any(rank >= 0 for rank, *_ in found):
        found = [item for item in found if item[0] >= 0]
        _note_ranks(info, [source for *_, source in found], paths[0])
    found.sort(key=lambda item: item[:2])
    for *_, source in found:
        source.rank = max(source.rank, 0)
        info.sources.append(source)

    def batches() -> Iterator[pa.RecordBatch]:
        for *_, path, source in found:
            yield from _rows(path, source)

    return info, batches()
