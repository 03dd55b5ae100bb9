"""Raw traces in text through the parsers of csrc/tools/pioneer: bytes in, record batches out.

Problem.    A trace has millions of lines, and an interpreter needs microseconds for each.
Algorithm.  C cuts and reads lines (csrc/tools/pioneer); its rows are one NumPy array of structs, whose columns become
            Arrow arrays. Names of functions and files come as numbers of two lists that grow, the columns'
            dictionaries.
Guarantee.  Memory depends on the number of different names, threads and calls without end, not on the number of lines.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext._tools import ffi, lib
from mpiio_ext.pioneer.readers._functions import ALIASES, CONSTANTS, FUNCTIONS
from mpiio_ext.pioneer.table import LAYERS, SCHEMA, Source

#: `mpiio_ext_rawtrace_row`.
_ROW = np.dtype(
    [(name, np.int64) for name in ("timestamp", "offset", "size", "duration", "result", "handle")]
    + [(name, np.int64) for name in ("line", "process", "thread")]
    + [(name, np.int32) for name in ("operation", "file", "depth", "layer")]
)
_NULL = np.iinfo(np.int64).min
_LAYERS = pa.array(LAYERS, pa.string())
#: Bytes of text after which rows are taken: batches should not be small, and pieces of text should fit into caches.
TAKEN_BYTES = 8 << 20

#: From processes and threads as the trace has them, and the lines of the rows, to ranks and threads of the table.
Placement = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Records of a table: `mpiio_ext_rawtrace_columns`.

    Attributes
    ----------
    start, end : float64, s; NaN: none.
    rank, thread, level, numbers : int64: process, thread, calls around it, number of arguments; the least: none, the
        largest: no such number.
    texts : binary or text, with offsets of 32 or 64 bits: names of functions, then first arguments, second ones and
        so on; null is empty.
    """

    start: np.ndarray
    end: np.ndarray
    rank: np.ndarray
    thread: np.ndarray
    level: np.ndarray
    numbers: np.ndarray
    texts: list[pa.Array]


def _byte_by_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(chr(byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error("mpiio_ext_bytes", _byte_by_byte)


def text_of(raw: bytes) -> str:
    """Return bytes of a trace as text; bytes that are not valid UTF-8 become U+00XX."""
    return raw.decode("utf-8", "mpiio_ext_bytes")


class _Names:
    """A dictionary of a column, that follows a list of the C side as it grows."""

    def __init__(self, handle: Any, which: int) -> None:
        self._handle = handle
        self._which = which
        self._texts: list[str] = []
        self._array = pa.array([], pa.string())

    def texts(self) -> list[str]:
        data, offsets = ffi.new("const char **"), ffi.new("const int64_t **")
        count = lib.mpiio_ext_rawtrace_names(self._handle, self._which, data, offsets)
        for i in range(len(self._texts), count):
            start, end = offsets[0][i], offsets[0][i + 1]
            self._texts.append(text_of(ffi.buffer(data[0] + start, end - start)[:]) if end > start else "")
        return self._texts

    def array(self) -> pa.Array:
        if len(self.texts()) > len(self._array):
            self._array = pa.array(self._texts, pa.string())
        return self._array


def _nullable(values: np.ndarray) -> pa.Array:
    column = np.ascontiguousarray(values)
    return pa.array(column, mask=column == _NULL)


def _extras(rows: int, data: Any, offsets: Any) -> pa.Array:
    places = np.frombuffer(ffi.buffer(offsets, 4 * (rows + 1)), np.int32).copy()
    size = int(places[-1])
    text = ffi.buffer(data, size)[:] if size else b""
    empty = places[1:] == places[:-1]
    valid = pa.py_buffer(np.packbits(~empty, bitorder="little").tobytes())
    buffers = [valid, pa.py_buffer(places), pa.py_buffer(text)]
    return pa.StringArray.from_buffers(rows, buffers[1], buffers[2], buffers[0], int(empty.sum()))


class RawTrace:
    """A parser of the C library, for the files of one trace one after the other.

    Parameters
    ----------
    nested : whether the text shows which calls were made inside of others; else `depth` is null.
    signatures : of functions whose arguments the tracer prints otherwise than they take them.
    """

    def __init__(self, *, nested: bool = False, signatures: Mapping[str, str] | None = None) -> None:
        self._handle = ffi.gc(lib.mpiio_ext_rawtrace_create(), lib.mpiio_ext_rawtrace_free)
        if self._handle == ffi.NULL:
            raise MemoryError("a parser of raw traces")
        self._nested = nested
        for name, (layer, signature) in FUNCTIONS.items():
            self._describe(name, ALIASES.get(name, name), layer, (signatures or {}).get(name, signature))
        for name, operation in ALIASES.items():
            if name not in FUNCTIONS:
                layer, signature = FUNCTIONS.get(operation, ("posix", "..."))
                self._describe(name, operation, layer, signature)
        for key, value, text in CONSTANTS:
            self.name_constant(key, value, text)
        self._operations = _Names(self._handle, 0)
        self._files = _Names(self._handle, 1)
        self._categories = _Names(self._handle, 2)

    def name_datatype(self, value: int, name: str, element_bytes: int) -> None:
        """Name a datatype by its handle, with the bytes of an element."""
        self._check(lib.mpiio_ext_rawtrace_datatype(self._handle, value, name.encode(), element_bytes))

    def name_constant(self, key: str, value: int, text: str) -> None:
        """Name a number of one key of `extra`."""
        self._check(lib.mpiio_ext_rawtrace_constant(self._handle, key.encode(), value, text.encode()))

    @staticmethod
    def _check(code: int) -> int:
        if code == -1:
            raise MemoryError("reading a raw trace: memory is exhausted")
        if code < 0:
            raise ValueError(f"reading a raw trace: {ffi.string(lib.mpiio_ext_tools_error_name(code)).decode()}")
        return code

    def _describe(self, name: str, operation: str, layer: str, signature: str) -> None:
        texts = (name.encode(), operation.encode(), LAYERS.index(layer), signature.encode())
        self._check(lib.mpiio_ext_rawtrace_describe(self._handle, *texts))

    def notes(self, form: str, chunks: Iterable[bytes], source: Source) -> Iterator[bytes]:
        """Yield the lines of metadata of a file that the parser does not use itself; rows are not made."""
        for _ in self._feed(form, chunks, source):
            pass
        line, count = ffi.new("int64_t *"), ffi.new("int64_t *")
        for i in range(lib.mpiio_ext_rawtrace_count(self._handle, 6)):
            text = lib.mpiio_ext_rawtrace_note(self._handle, i, line, count)
            yield ffi.buffer(text, count[0])[:]

    def batches(
        self, form: str, chunks: Iterable[bytes], source: Source, place: Placement, taken_bytes: int = TAKEN_BYTES
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file; its lines, rows and losses are in `source` when the last has been taken.

        `taken_bytes`: rows are taken when so much text has been read.
        """
        fed = 0
        for count in self._feed(form, chunks, source):
            fed += count
            if fed >= taken_bytes or count == 0:
                yield from self._take(source, place)
                fed = 0

    def records(
        self, form: str, pieces: Iterable[Records], source: Source, place: Placement
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file whose records are columns, as `batches` does."""
        self._check(lib.mpiio_ext_rawtrace_begin(self._handle, form.encode()))
        for piece in pieces:
            self._hand_in(piece)
            source.lines = lib.mpiio_ext_rawtrace_count(self._handle, 0)
            yield from self._take(source, place)
        self._check(lib.mpiio_ext_rawtrace_end(self._handle))
        self._finish(source)

    def _hand_in(self, records: Records) -> None:
        columns = ffi.new("mpiio_ext_rawtrace_columns *", {"count": len(records.start), "texts": len(records.texts)})
        keep: list[Any] = [columns]
        for name, kind in (
            ("start", "double"),
            ("end", "double"),
            ("rank", "int64_t"),
            ("thread", "int64_t"),
            ("level", "int64_t"),
            ("numbers", "int64_t"),
        ):
            keep.append(ffi.from_buffer(f"{kind}[]", np.ascontiguousarray(getattr(records, name))))
            setattr(columns, name, keep[-1])
        offsets, data = [], []
        for text in (pc.fill_null(text, b"") if text.null_count else text for text in records.texts):
            width = np.int64 if text.type in (pa.large_binary(), pa.large_string()) else np.int32
            places = np.frombuffer(text.buffers()[1] or bytes(8), width)[text.offset : text.offset + len(text) + 1]
            offsets.append(ffi.from_buffer("int64_t[]", np.ascontiguousarray(places, np.int64)))
            data.append(ffi.from_buffer("char[]", text.buffers()[2] or b"\0"))
        keep += [offsets, data, ffi.new("int64_t *[]", offsets), ffi.new("char *[]", data)]
        columns.offsets, columns.bytes = keep[-2:]
        self._check(lib.mpiio_ext_rawtrace_records(self._handle, columns))

    def others(self) -> dict[str, int]:
        """Return how many events were no calls, by their category, in all files so far."""
        texts = self._categories.texts()
        return {text: lib.mpiio_ext_rawtrace_category_events(self._handle, i) for i, text in enumerate(texts)}

    def _feed(self, form: str, chunks: Iterable[bytes], source: Source) -> Iterator[int]:
        """Yield how many bytes have been fed, 0 at the end, when there may be rows to take."""
        self._check(lib.mpiio_ext_rawtrace_begin(self._handle, form.encode()))
        place = line_begin = 0
        for chunk in chunks:
            self._check(lib.mpiio_ext_rawtrace_feed(self._handle, ffi.from_buffer(chunk), len(chunk)))
            source.lines = lib.mpiio_ext_rawtrace_count(self._handle, 0)
            if (newline := chunk.rfind(b"\n")) >= 0:
                line_begin = place + newline + 1
            place += len(chunk)
            yield len(chunk)
        skipped = lib.mpiio_ext_rawtrace_count(self._handle, 1)
        self._check(lib.mpiio_ext_rawtrace_end(self._handle))
        yield 0
        self._finish(source)
        if lib.mpiio_ext_rawtrace_count(self._handle, 4):
            self._note_cut(source, line_begin, place, lib.mpiio_ext_rawtrace_count(self._handle, 1) > skipped)

    @staticmethod
    def _note_cut(source: Source, begin: int, end: int, lost: bool) -> None:
        """Report that a file ends in the middle of a line; `lost`: the part of the line was not understood."""
        source.loss.unread_bytes += (end - begin) * lost
        what = "were not understood" if lost else "were read as a line"
        source.loss.add(
            source.lines,
            f"the text ends at byte {end:,}, in the middle of a line: its {end - begin:,} "
            f"bytes {what}; how much is missing is not known",
            count=0,
        )

    def _finish(self, source: Source) -> None:
        source.lines = lib.mpiio_ext_rawtrace_count(self._handle, 0)
        source.loss.truncated |= bool(lib.mpiio_ext_rawtrace_count(self._handle, 4))
        line, text, count = ffi.new("int64_t *"), ffi.new("const char **"), ffi.new("int64_t *")
        for i in range(lib.mpiio_ext_rawtrace_count(self._handle, 5)):
            why = lib.mpiio_ext_rawtrace_problem(self._handle, i, line, text, count)
            quoted = text_of(ffi.buffer(text[0], count[0])[:]) if count[0] else ""
            source.loss.add(line[0], ffi.string(why).decode(), quoted, count=0)
        source.loss.skipped += lib.mpiio_ext_rawtrace_count(self._handle, 1)

    def _take(self, source: Source, place: Placement) -> Iterator[pa.RecordBatch]:
        rows, extra = ffi.new("const mpiio_ext_rawtrace_row **"), ffi.new("const char **")
        offsets = ffi.new("const int32_t **")
        while count := self._check(lib.mpiio_ext_rawtrace_take(self._handle, rows, extra, offsets)):
            table = np.frombuffer(ffi.buffer(rows[0], count * _ROW.itemsize), _ROW)
            yield self._batch(table, _extras(count, extra[0], offsets[0]), place)
            source.rows += count

    def _batch(self, rows: np.ndarray, extras: pa.Array, place: Placement) -> pa.RecordBatch:
        ranks, threads = place(rows["process"], rows["thread"], rows["line"])
        files = np.ascontiguousarray(rows["file"])
        depth = rows["depth"].astype(np.int16)
        columns = {
            "operation": pa.DictionaryArray.from_arrays(
                pa.array(np.ascontiguousarray(rows["operation"])), self._operations.array()
            ),
            "file": pa.DictionaryArray.from_arrays(pa.array(files, mask=files < 0), self._files.array()),
            "extra": extras,
            "rank": pa.array(ranks.astype(np.int32)),
            "thread": pa.array(threads.astype(np.int32)),
            "layer": pa.DictionaryArray.from_arrays(pa.array(np.ascontiguousarray(rows["layer"])), _LAYERS),
            "depth": pa.array(depth, mask=(depth < 0) | (not self._nested)),
        }
        for name in ("timestamp", "offset", "size", "duration", "result", "handle", "line"):
            columns[name] = _nullable(rows[name])
        return pa.record_batch([columns[name] for name in SCHEMA.names], schema=SCHEMA)
