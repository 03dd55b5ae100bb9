"""Recorder: the output of ``recorder2text`` (``_text/RANK.txt``) and ``recorder2parquet`` (``_parquet/RANK.parquet``).

Problem.    The trace itself is compressed in a format of its own, which its tools alone read; they print the arguments
            by position.
Algorithm.  ``START END FUNCTION LEVEL TYPE ( ARGUMENTS )`` a line, or a row with the columns rank, thread_id, tstart,
            tend, func_id, level, arg_count, args_1 ... args_10; arguments by the signatures that the other readers use,
            names in place of handles. Both are read in C (csrc/tools/pioneer/mpiox_rawtrace_recorder.h); here columns
            are brought into the types it takes.
Ranks.      The name of the file, or the column.
Guarantee.  Every record of POSIX, stdio and MPI is a row or counted in Loss; records of HDF5 and of the application are
            counted by name. Memory does not depend on the size of a file.
Missing.    See `LACKS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mpiio_ext.pioneer.readers._files import begin_of, chunks_of, files_of, parquet_of, ranks_by_name, samples
from mpiio_ext.pioneer.readers._functions import DATATYPES
from mpiio_ext.pioneer.readers._order import ordered
from mpiio_ext.pioneer.readers._rawtrace import Placement, RawTrace, Records
from mpiio_ext.pioneer.table import Source, TraceInfo

NAME = "recorder"
LACKS = [
    "results",
    "descriptors: where a process has a file open twice, positions in it are those of both together",
    "the origin of the times: they count from the start of the program",
    "text: threads; Parquet: times have 32 bits, microseconds for the first seconds only, and 10 arguments",
]
#: Functions of which Recorder prints the bytes in place of a vector, or of a format.
_SIGNATURES = {"readv": "handle,size,vectors", "writev": "handle,size,vectors", "vfprintf": "handle,size"}
#: Records of a batch of Parquet: smaller ones cost more, by what every column of a batch costs in each step.
_BATCH = 1 << 16
_LINE = re.compile(rb"(-?\d+\.?\d*(?:e-?\d+)?) (-?\d+\.?\d*(?:e-?\d+)?) (\w+) (-?\d+) (-?\d+) \((.*) \)\s*$")
_COLUMNS = ("rank", "thread_id", "tstart", "tend", "func_id", "arg_count")
_ARGUMENTS = 10
_NONE, _BAD = np.iinfo(np.int64).min, np.iinfo(np.int64).max  # as in mpiox_rawtrace_recorder.h


def recognizes(path: Path) -> bool:
    """Return whether a file is written by Recorder's tools, or a folder has one (also in ``_text``, ``_parquet``)."""
    if path.is_dir():
        return any(recognizes(item) for item in samples(_files([path])))
    if path.suffix == ".parquet":
        try:
            return set(_COLUMNS) <= set(pq.read_schema(path).names)
        except (OSError, ValueError, pa.ArrowException):
            return False
    lines = begin_of(path).splitlines()
    return bool(lines) and _LINE.match(lines[0]) is not None


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        inner = [path / name for name in ("_text", "_parquet") if (path / name).is_dir()]
        found += files_of(inner[:1] or [path], (".txt", ".parquet") if path.is_dir() else ())
    return found


# ---- columns of Parquet ----------------------------------------------------------------------------------------------


def _single(column: pa.Array) -> pa.Array:
    """Return the values of a column that Recorder declares as repeated, with one value a row."""
    if not pa.types.is_list(column.type) and not pa.types.is_large_list(column.type):
        return column
    offsets, counts = column.offsets.slice(0, len(column)), pc.list_value_length(column)
    first = pc.if_else(pc.greater(pc.fill_null(counts, 0), 0), offsets, pa.scalar(None, offsets.type))
    return column.values.take(first)


def _whole(value: Any) -> int:
    """Return a number of a column that has another type than it should have."""
    try:
        found = int(value)
    except (ValueError, TypeError, OverflowError):
        return int(_BAD)
    return found if _NONE < found < _BAD else int(_BAD)


def _wholes(column: pa.Array) -> NDArray[np.int64]:
    """Return integers; `_BAD` for other texts, `_NONE` for missing ones."""
    if pa.types.is_integer(column.type) and column.type != pa.uint64():
        numbers: NDArray[np.int64] = np.array(pc.fill_null(column.cast(pa.int64()), int(_NONE)), np.int64)
        return numbers
    return np.array([_NONE if value is None else _whole(value) for value in column.to_pylist()], np.int64)


def _second(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, TypeError):
        return math.inf  # a number that no time can be


def _seconds(column: pa.Array) -> NDArray[np.float64]:
    """Return times, s; infinite for other texts, NaN for missing ones."""
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        numbers: NDArray[np.float64] = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), math.nan))
        infinite = np.asarray(column.is_valid()) & np.isnan(numbers)
        return np.where(infinite, math.inf, numbers) if infinite.any() else np.ascontiguousarray(numbers)
    return np.array([math.nan if value is None else _second(value) for value in column.to_pylist()], np.float64)


def _texts(column: pa.Array) -> pa.Array:
    """Return texts; of other types as Python prints them."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _texts(column.dictionary_decode())
    if any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    ):
        return column
    return pa.array([None if value is None else str(value).encode() for value in column.to_pylist()], pa.large_binary())


def _names(column: pa.Array) -> pa.Array:
    """Return names of functions; none if the column has no texts."""
    is_text = column.type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    if is_text or pa.types.is_dictionary(column.type):
        return _texts(column)
    return pa.nulls(len(column), pa.large_binary())


class _Threads:
    """Numbers of the threads of each rank, in the order in which they show."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}
        self._count: dict[int, int] = {}

    def _number(self, rank: int, thread: int) -> int:
        if (rank, thread) not in self._numbers:
            self._numbers[rank, thread] = self._count.get(rank, 0)
            self._count[rank] = self._numbers[rank, thread] + 1
        return self._numbers[rank, thread]

    def numbered(self, ranks: NDArray[np.int64], threads: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of threads; `_BAD` stays."""
        starts = np.flatnonzero(np.diff(ranks, prepend=ranks[:1] - 1) | np.diff(threads, prepend=threads[:1]))
        runs = zip(ranks[starts].tolist(), threads[starts].tolist(), strict=True)
        each = [thread if thread == _BAD else self._number(rank, thread) for rank, thread in runs]
        return np.repeat(np.array(each, np.int64), np.diff(starts, append=ranks.size))


def _records(batch: pa.RecordBatch, default_rank: int, threads: _Threads) -> Records:
    """Return a batch as the parser takes it."""
    columns = {name: _single(batch.column(i)) for i, name in enumerate(batch.schema.names)}
    ranks = _wholes(columns["rank"])
    ranks[ranks == _NONE] = default_rank
    numbers = _wholes(columns["thread_id"])
    numbers[numbers == _NONE] = 0
    level = _wholes(columns["level"]) if "level" in columns else np.full(len(batch), _NONE)
    given = [columns[f"args_{i + 1}"] for i in range(_ARGUMENTS) if f"args_{i + 1}" in columns]
    return Records(
        start=_seconds(columns["tstart"]),
        end=_seconds(columns["tend"]),
        rank=ranks,
        thread=threads.numbered(ranks, numbers),
        level=level,
        numbers=_wholes(columns["arg_count"]),
        texts=[_names(columns["func_id"]), *map(_texts, given)],
    )


def _pieces(path: Path, source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a table; unreadable rows are counted in the source's Loss."""
    expected = taken = 0
    try:
        file = parquet_of(path, page_checksum_verification=True)
        expected = file.metadata.num_rows
        missing = set(_COLUMNS) - set(file.schema_arrow.names)
        if missing:
            raise ValueError(f"there is no column {', '.join(sorted(missing))}")
        wanted = [name for name in file.schema_arrow.names if name in _COLUMNS or re.fullmatch(r"level|args_\d+", name)]
        for batch in file.iter_batches(_BATCH, columns=wanted):
            yield batch
            taken += len(batch)
    except (pa.ArrowException, OSError, ValueError) as error:
        source.loss.truncated = True
        there = path.stat().st_size
        source.loss.unread_bytes += 0 if expected else there
        lost = f"{expected - taken:,} of {expected:,} records" if expected else f"{there:,} bytes"
        source.loss.add(taken, f"cannot be parsed: {error}; {lost} were not read", count=max(expected - taken, 1))


def _table(path: Path, source: Source) -> Iterator[Records]:
    """Yield the records of a table."""
    threads = _Threads()
    for batch in _pieces(path, source):
        yield _records(batch, source.rank, threads)


# ---- files -----------------------------------------------------------------------------------------------------------


def _in_one_thread(rank: int) -> Placement:
    def place(processes: np.ndarray, threads: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(processes), rank), np.zeros(len(threads), np.int64)

    return place


def _unchanged(processes: np.ndarray, threads: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return processes, threads


def _one_file(parser: RawTrace, path: Path, source: Source) -> Iterator[pa.RecordBatch]:
    before = parser.others()
    if path.suffix == ".parquet":
        batches = parser.records(NAME, _table(path, source), source, _unchanged)
    else:
        batches = parser.batches(NAME, chunks_of(path, source), source, _in_one_thread(source.rank))
    yield from ordered(batches, source)
    if source.lines == 0 and not source.loss.problems:
        source.loss.truncated = True
        source.loss.add(0, "empty file", count=0)
    more = {name: count - before.get(name, 0) for name, count in parser.others().items()}
    others = sorted(((count, name) for name, count in more.items() if count), key=lambda item: -item[0])
    if others:
        most = ", ".join(f"{count} {name}" for count, name in others[:5])
        source.loss.add(0, f"{sum(count for count, _ in others)} records are of other layers: {most}", count=0)


def _rank_in_name(path: Path) -> int:
    match = re.match(r"(\d{1,9})\.(?:txt|parquet)", path.name)
    return int(match[1]) if match else -1


def read(paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return the facts of a trace, and its rows; see `Reader.read`. One rank follows the other."""
    files = _files(paths)
    ranks = [_rank_in_name(path) for path in files]
    if len(set(ranks)) < len(ranks) or -1 in ranks:
        ranks = ranks_by_name([path.name for path in files]) or list(range(len(files)))
    info = TraceInfo(format=NAME, clock="arbitrary", ranks=max(ranks, default=-1) + 1, lacks=list(LACKS))
    pairs = sorted(zip(ranks, files, strict=True))
    info.sources = [Source(path=str(path), rank=rank) for rank, path in pairs]

    def rows() -> Iterator[pa.RecordBatch]:
        parser = RawTrace(nested=True, signatures=_SIGNATURES)
        for name, size in DATATYPES.items():
            parser.name_datatype(int(_NONE), name, size)  # identified by their names, never by a handle
        for (_, path), source in zip(pairs, info.sources, strict=True):
            for batch in _one_file(parser, path, source):
                info.ranks = max(info.ranks, 1 + (pc.max(batch["rank"]).as_py() or 0))  # a table may have several
                yield batch

    return info, rows()
