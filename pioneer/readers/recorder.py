"""Recorder: the output of ``recorder2text`` (``_text/RANK.txt``) and ``recorder2parquet`` (``_parquet/RANK.parquet``).

Problem.    The trace itself is compressed in a format of its own, which its tools alone read; they print the arguments
            by position.
Algorithm.  ``START END FUNCTION LEVEL TYPE ( ARGUMENTS )`` a line, or a row with the columns rank, thread_id, tstart,
            tend, func_id, arg_count, args_1 ... args_10; arguments by the signatures that the other readers use.
Ranks.      The name of the file, or the column.
Guarantee.  Every record of POSIX, stdio and MPI is a row or counted in Loss; records of HDF5 and of the application are
            counted by name.
Missing.    See `LACKS`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mpiio_ext.pioneer.readers._files import begin_of, chunks_of, files_of, ranks_by_name
from mpiio_ext.pioneer.readers._functions import CONSTANTS, DATATYPES, FUNCTIONS, layer_of, operation_of
from mpiio_ext.pioneer.readers._order import ordered
from mpiio_ext.pioneer.readers._rawtrace import text_of
from mpiio_ext.pioneer.table import SCHEMA, Source, TraceInfo

__all__ = ["LACKS", "NAME", "read", "recognizes"]

NAME = "recorder"
LACKS = [
    "results",
    "the origin of the times: they count from the start of the program",
    "depth of calls inside of others; extra has their level",
    "text: threads; Parquet: times have 32 bits, microseconds for the first seconds only, and 10 arguments",
]
_BATCH = 1 << 15
_MAX_LINE = 1 << 20
_MOST_SECONDS = 4e9  # more, and the difference of two times would not fit into a column
_MOST_RANK = (1 << 31) - 1
_LINE = re.compile(rb"(-?\d+\.?\d*(?:e-?\d+)?) (-?\d+\.?\d*(?:e-?\d+)?) (\w+) (-?\d+) (-?\d+) \((.*) \)\s*$")
_COLUMNS = ("rank", "thread_id", "tstart", "tend", "func_id", "arg_count")
_NAMES = {(key, str(value)): text for key, value, text in CONSTANTS}
#: HDF5, netCDF and the like: no calls of the layers of the table.
_OTHER = re.compile(r"H5|nc_|ncmpi_|adios|RECORDER_|user_")

_Row = dict[str, Any]


def recognizes(path: Path) -> bool:
    """Return whether a file is written by Recorder's tools, or a folder has one (also in ``_text``, ``_parquet``)."""
    if path.is_dir():
        return any(recognizes(item) for item in _files([path])[:1])
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


def _number(text: str) -> int | None:
    """Return a number as C prints it, that fits into a column."""
    try:
        value = int(text, 16) if text[:2] == "0x" else int(text)
    except ValueError:
        return None
    return value if -(2**63) < value < 2**63 else None


@lru_cache(maxsize=4096)
def _signature(name: str) -> tuple[str, str, tuple[str, ...]]:
    operation = operation_of(name)
    words = FUNCTIONS.get(operation, ("", ""))[1].partition("=")[0]
    return operation, layer_of(operation), tuple(words.split(",")) if words else ()


def _set_argument(row: _Row, extra: dict[str, Any], word: str, text: str) -> int | None:
    """Put an argument into its column; returns a factor of the size."""
    value = _number(text)
    if word == "file":
        row["file"] = text
    elif word == "handle" and value is None and text:
        row["file"] = text  # Recorder names files in place of descriptors
    elif word in ("handle", "offset", "size") and value is not None:
        row[word] = value
    elif word == "unit" and value is not None:
        return value
    elif word == "datatype":
        extra[word] = text
        return DATATYPES.get(text.removesuffix("_C"), -1)
    elif word not in ("-", "..."):
        extra[word] = _NAMES.get((word, text), value if value is not None and text[:2] != "0x" else text)
        return value if word == "count" else None
    return None


def _row(name: str, arguments: Sequence[str], level: int | None) -> _Row:
    operation, layer, words = _signature(name)
    row: _Row = {"operation": operation, "layer": layer}
    extra: dict[str, Any] = {}
    factors = []
    for word, text in zip(words, arguments, strict=False):
        factor = _set_argument(row, extra, word, text)
        if factor is not None:
            factors.append(factor)
    if factors and min(factors) >= 0 and ("count" in extra) == ("datatype" in extra):
        size = 1
        for factor in factors:
            size *= factor
        row["size"] = size if size < 2**63 else None
    if not words and arguments:
        extra["args"] = ", ".join(arguments)
    if level is not None:
        row["depth"] = 0 if level == 0 else None
        if level > 0:
            extra["level"] = level
    row["extra"] = json.dumps(extra) if extra else None
    return row


def _times(row: _Row, start: float, end: float) -> bool:
    """Set the times of a row; false: they make no sense."""
    if not (abs(start) < _MOST_SECONDS and abs(end) < _MOST_SECONDS):
        return False
    row["timestamp"] = round(start * 1e9)
    row["duration"] = round(end * 1e9) - row["timestamp"]
    return True


def _lines(path: Path, source: Source) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks_of(path, source):
        pieces = (rest + chunk).split(b"\n")
        rest = pieces.pop()
        yield from pieces
        if len(rest) > _MAX_LINE:
            source.loss.add(source.lines + 1, "longer than 1 MiB", text_of(rest[:200]))
            rest = b""
    if rest:
        source.loss.truncated = True
        yield rest


def _text_rows(path: Path, source: Source, others: Counter[str]) -> Iterator[_Row]:
    for line in _lines(path, source):
        source.lines += 1
        match = _LINE.match(line)
        if match is None:
            if line.strip():
                source.loss.add(source.lines, "cannot be parsed: no record of Recorder", text_of(line[:200]))
            continue
        name = match[3].decode()
        if _OTHER.match(name):
            others[name] += 1
            continue
        level = _number(match[4].decode())
        if level is None:
            source.loss.add(source.lines, "cannot be parsed: level", text_of(line[:200]))
            continue
        row = _row(name, text_of(match[6]).split(), level)
        if not _times(row, float(match[1]), float(match[2])):
            source.loss.add(source.lines, "cannot be parsed: times", text_of(line[:200]))
            continue
        yield row | {"rank": source.rank, "thread": 0, "line": source.lines}


def _single(value: Any) -> Any:
    """Return the value of a column that Recorder declares as repeated, with one value a row."""
    return value[0] if isinstance(value, list) and value else value


def _record(values: _Row, default_rank: int) -> tuple[_Row, int]:
    """Return the row of a record of Parquet, without thread and line, and its thread as Recorder has it.

    Raises
    ------
    ValueError, TypeError, OverflowError
        A value is no number where it should be one, or is out of range.
    """
    count = int(values.get("arg_count") or 0)
    given = [str(values.get(f"args_{i + 1}") or "") for i in range(min(count, 10))]
    row = _row(values["func_id"], given, None)
    if not _times(row, float(values["tstart"]), float(values["tend"])):
        raise ValueError("times")
    rank = default_rank if values.get("rank") is None else int(values["rank"])
    if not -1 <= rank <= _MOST_RANK:
        raise ValueError("rank")
    return row | {"rank": rank}, int(values.get("thread_id") or 0)


def _parquet_rows(path: Path, source: Source, others: Counter[str]) -> Iterator[_Row]:
    threads: dict[int, int] = {}
    expected = 0
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        expected = file.metadata.num_rows
        for batch in file.iter_batches(_BATCH):
            for item in batch.to_pylist():
                source.lines += 1
                values = {key: _single(value) for key, value in item.items()}
                name = values.get("func_id")
                if not isinstance(name, str) or values.get("tstart") is None or values.get("tend") is None:
                    source.loss.add(source.lines, "cannot be parsed: no name or no times", str(item)[:200])
                    continue
                if _OTHER.match(name):
                    others[name] += 1
                    continue
                try:
                    row, thread = _record(values, source.rank)
                except (ValueError, TypeError, OverflowError) as error:
                    source.loss.add(source.lines, f"cannot be parsed: {error}", str(item)[:200])
                    continue
                yield row | {"thread": threads.setdefault(thread, len(threads)), "line": source.lines}
    except (pa.ArrowException, OSError, ValueError) as error:
        source.loss.truncated = True
        source.loss.add(source.lines, f"cannot be parsed: {error}", count=max(expected - source.lines, 1))


def _batches(
    rows: Callable[[Path, Source, Counter[str]], Iterator[_Row]], path: Path, source: Source
) -> Iterator[pa.RecordBatch]:
    others: Counter[str] = Counter()
    held: list[_Row] = []
    for row in rows(path, source, others):
        held.append(row)
        if len(held) == _BATCH:
            yield pa.RecordBatch.from_pylist(held, SCHEMA)
            source.rows += len(held)
            held = []
    if held:
        yield pa.RecordBatch.from_pylist(held, SCHEMA)
        source.rows += len(held)
    if source.lines == 0 and not source.loss.problems:
        source.loss.truncated = True
        source.loss.add(0, "empty file", count=0)
    if others:
        most = ", ".join(f"{count} {name}" for name, count in others.most_common(5))
        source.loss.add(0, f"{others.total()} records are of other layers: {most}", count=0)


def _rank_in_name(path: Path) -> int:
    match = re.match(r"(\d{1,9})\.(?:txt|parquet)", path.name)
    return int(match[1]) if match else -1


def read(paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return what is known of a trace, and its rows; see `Reader.read`. A rank follows the other."""
    files = _files(paths)
    ranks = [_rank_in_name(path) for path in files]
    if len(set(ranks)) < len(ranks) or -1 in ranks:
        ranks = ranks_by_name([path.name for path in files]) or list(range(len(files)))
    info = TraceInfo(format=NAME, clock="arbitrary", ranks=max(ranks, default=-1) + 1, lacks=list(LACKS))
    pairs = sorted(zip(ranks, files, strict=True))
    info.sources = [Source(path=str(path), rank=rank) for rank, path in pairs]

    def rows() -> Iterator[pa.RecordBatch]:
        for (_, path), source in zip(pairs, info.sources, strict=True):
            parse = _parquet_rows if path.suffix == ".parquet" else _text_rows
            yield from ordered(_batches(parse, path, source), source)

    return info, rows()
