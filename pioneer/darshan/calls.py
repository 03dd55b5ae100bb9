"""Rows of a trace as calls of Darshan's modules.

Problem. A trace has every call of three layers; Darshan's modules count some of them (`meanings`). Algorithm. POSIX
and stdio count wherever the call was made, also by the MPI library; MPI-IO counts what the program itself called. Names
of files are looked at once each.
Guarantees. What has failed, or had no end, is not counted. Files of the system have no record. A file that was only
looked at (stat) has one where it is a regular file.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.common.iocalls import CALLS
from mpiio_ext.pioneer.darshan.meanings import MAKE, NEED_RECORD, Kind, meaning
from mpiio_ext.pioneer.darshan.names import clean, record_id
from mpiio_ext.pioneer.darshan.records import Calls, Integers, Layout, Records

#: Of a function by its layer and name.
_MEANINGS = {(call.layer, call.name): meaning(call) for call in CALLS}


@functools.lru_cache(maxsize=4096)
def block_bytes(folder: str) -> int:
    """Return the block size of a folder's file system, or of the next existing folder above it; -1: none exists."""
    try:
        return os.statvfs(folder).f_bsize
    except OSError:
        above = os.path.dirname(folder)  # noqa: PTH120
        return -1 if above == folder else block_bytes(above)


class Module:
    """A module of one rank, fed with the batches of its trace.

    Parameters
    ----------
    layout : of the module.

    Attributes
    ----------
    records : what has been counted.
    """

    def __init__(self, layout: Layout) -> None:
        self.records = Records(layout)
        self._layer = {"POSIX": "posix", "MPI-IO": "mpiio", "STDIO": "stdio"}[layout.module]
        self._places: Integers = np.zeros(0, np.int64)  # by number of the file's name; -1 not yet, -2 left out
        self._names: list[str] = []

    def begin(self) -> None:
        """Begin a trace file: its names have numbers of their own."""
        self._places, self._names = np.zeros(0, np.int64), []

    def add(self, batch: pa.RecordBatch, origin_ns: int) -> Calls:
        """Count a batch of rows, and return the calls that were counted.

        Parameters
        ----------
        batch : of `pioneer.table.SCHEMA`, without calls beside the job.
        origin_ns : start of the job.
        """
        layout = self.records.layout
        kinds, counters = self._functions(batch.column("operation"))
        chosen = kinds > 0
        chosen &= pc.equal(batch.column("layer"), self._layer).to_numpy(zero_copy_only=False)
        chosen &= batch.column("file").is_valid().to_numpy(zero_copy_only=False)
        result = _numbers(batch.column("result"))
        chosen &= (result == 0) if layout.module == "MPI-IO" else (result >= 0)
        if layout.module == "MPI-IO":
            chosen &= _numbers(batch.column("depth")) == 0
        rows = batch.filter(pa.array(chosen))
        kind, counter, result = kinds[chosen], counters[chosen], result[chosen]
        size = result.copy() if layout.module == "POSIX" else np.maximum(_numbers(rows.column("size")), 0)
        start = _numbers(rows.column("timestamp")) - origin_ns
        calls = Calls(
            np.zeros(len(kind), np.int64),
            kind,
            counter,
            _numbers(rows.column("offset")),
            size,
            start,
            start + np.maximum(_numbers(rows.column("duration")), 0),
        )
        self._details(rows, calls, result)
        copies = kind == Kind.COPY
        calls.kind[copies], calls.counter[copies] = Kind.READ, layout.at("READS")
        calls.record = self._records(rows.column("file"), calls)
        self._set(rows, calls)
        calls = self._with_copies(rows, calls, copies)
        counted = calls.take(calls.record >= 0)
        if layout.module != "MPI-IO":
            counted.offset = np.maximum(counted.offset, 0)
        else:
            counted.offset[self._in_view(counted)] = -1  # no place in the file
        self.records.add(counted)
        if (odd := layout.at("FILE_NOT_ALIGNED")) >= 0:
            blocks = np.maximum(self.records.counters[counted.record, layout.at("FILE_ALIGNMENT")], 1)
            astray = np.isin(counted.kind, (Kind.READ, Kind.WRITE)) & (counted.offset % blocks != 0)
            np.add.at(self.records.counters[:, odd], counted.record[astray], 1)
        also = counted.kind == Kind.REOPEN  # each duplicate is an open, too
        np.add.at(self.records.counters[:, layout.at("OPENS")], counted.record[also], 1)
        return counted

    def _with_copies(self, rows: pa.RecordBatch, calls: Calls, copies: npt.NDArray[np.bool_]) -> Calls:
        """Return calls with a write of the other file behind each copy, which has half of its time."""
        layout, found = self.records.layout, []
        for row, more in _extras(rows.column("extra"), copies & (calls.size > 0)):
            start, end, target = int(calls.start[row]), int(calls.end[row]), clean(more.get("file2", ""))
            if target:
                calls.end[row] = start + (end - start) // 2
                found.append(
                    (
                        row + 1,
                        self._made(target),
                        int(Kind.WRITE),
                        layout.at("WRITES"),
                        more.get("offset2", 0),
                        int(calls.size[row]),
                        int(calls.end[row]),
                        end,
                    )
                )
        if not found:
            return calls
        after, *columns = np.array(found, np.int64).T
        return Calls(
            *(np.insert(getattr(calls, name), after, new) for name, new in zip(Calls.__slots__, columns, strict=True))
        )

    def _in_view(self, calls: Calls) -> npt.NDArray[np.bool_]:
        """Return which calls are made when their file has had a view."""
        views = self.records.layout.at("VIEWS")
        found: npt.NDArray[np.bool_] = self.records.counters[calls.record, views] > 0
        sets, rows = calls.counter == views, np.arange(len(calls.record))
        for place in np.unique(calls.record[sets]).tolist():
            mine = calls.record == place
            found |= mine & (rows > rows[mine & sets][0])
        return found

    def _functions(self, column: pa.DictionaryArray) -> tuple[Integers, Integers]:
        """Return kind and counter of each row's function; kind 0: the module does not count it."""
        layout = self.records.layout
        names = (name.removesuffix("_c") for name in column.dictionary.to_pylist())
        meanings = [_MEANINGS.get((self._layer, name), (0, "")) for name in names]
        kinds = np.array([kind for kind, _ in meanings], np.int64)
        counters = np.array([layout.at(name) if name else -1 for _, name in meanings], np.int64)
        codes = _numbers(column.indices, 0)
        return kinds[codes], counters[codes]

    def _records(self, column: pa.DictionaryArray, calls: Calls) -> Integers:
        """Return the place of each row's record; negative: it has no record."""
        dictionary = column.dictionary
        if len(dictionary) > len(self._names):
            new = dictionary[len(self._names) :].to_pylist()
            self._names += new
            self._places = np.concatenate([self._places, np.full(len(new), -1, np.int64)])
        codes = _numbers(column.indices, 0)
        make = [at for at in map(self.records.layout.at, MAKE) if at >= 0]
        makes = ~np.isin(calls.kind, NEED_RECORD) | np.isin(calls.counter, make)
        for code in np.unique(codes[makes & (self._places[codes] == -1)]).tolist():
            self._places[code] = self._made(clean(self._names[code]))
        unknown = np.unique(codes[self._places[codes] == -1])
        for code in unknown.tolist():  # another file's number may have brought the record
            if (name := clean(self._names[code])) in self.records.names:
                self._places[code] = self.records.names[name]
        found: Integers = self._places[codes]
        return found

    def _made(self, name: str) -> int:
        """Return the place of a record, which is made with its alignment when it is not there."""
        place = self.records.place(name)
        if (at := self.records.layout.at("FILE_ALIGNMENT")) >= 0:
            self.records.counters[place, at] = block_bytes(os.path.dirname(name))  # noqa: PTH120
        return place

    def _details(self, rows: pa.RecordBatch, calls: Calls, result: Integers) -> None:
        """Set the facts that only the details of a call contain: the number of bytes, the kind of an open."""
        layout, extra = self.records.layout, rows.column("extra")
        if layout.module == "STDIO":
            blocks = np.isin(calls.kind, (Kind.READ, Kind.WRITE))
            calls.size[blocks] = np.where(calls.size == result, calls.size, result)[blocks]
            for row, more in _extras(extra, blocks & (result > 0)):
                if more.get("count"):  # of fread and fwrite, whose result is a number of items
                    asked = int(rows.column("size")[row].as_py() or 0)
                    calls.size[row] = result[row] * (asked // more["count"])
        elif layout.module == "MPI-IO":
            for row, more in _extras(extra, calls.kind == Kind.OPEN):
                if more.get("comm_size") == 1:
                    calls.counter[row] = layout.at("INDEP_OPENS")
            for row, more in _extras(extra, calls.counter == layout.at("VIEWS")):
                if more.get("hints"):
                    calls.kind[row] = Kind.META

    def _set(self, rows: pa.RecordBatch, calls: Calls) -> None:
        """Set the counters that are no sums: modes, hints, where a file's name came from."""
        layout, counters = self.records.layout, self.records.counters
        opens = (calls.kind == Kind.OPEN) & (calls.record >= 0)
        views = (calls.counter == layout.at("VIEWS")) & (calls.record >= 0) & (layout.module == "MPI-IO")
        if layout.module == "STDIO":
            return
        mode = layout.at("MODE")
        for row, more in _extras(rows.column("extra"), opens | views):
            value = more.get("mode", 0) if layout.module == "POSIX" else more.get("amode", 0)
            if value:
                counters[calls.record[row], mode] = value
            if more.get("hints"):
                counters[calls.record[row], layout.at("HINTS")] += 1
        if layout.module == "POSIX":
            renames = (calls.counter == layout.at("RENAME_SOURCES")) & (calls.record >= 0)
            for row, more in _extras(rows.column("extra"), renames):
                self._renamed(rows.column("file")[row].as_py(), more.get("file2", ""))

    def _renamed(self, source: str, target: str) -> None:
        layout = self.records.layout
        if not target:
            return
        place = self._made(clean(target))
        self.records.counters[place, layout.at("RENAME_TARGETS")] += 1
        if self.records.counters[place, layout.at("RENAMED_FROM")] == 0:
            number = record_id(clean(source))
            self.records.counters[place, layout.at("RENAMED_FROM")] = number - (1 << 64 if number >> 63 else 0)


def _numbers(array: pa.Array, null: int = -1) -> Integers:
    """Return a column as numbers, with `null` for null."""
    filled = pc.fill_null(array, null) if array.null_count else array
    found: Integers = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _extras(column: pa.Array, chosen: Any) -> Sequence[tuple[int, dict[str, Any]]]:
    """Return the details of chosen rows, with the number of the row."""
    rows = np.flatnonzero(chosen)
    texts = column.take(pa.array(rows)).to_pylist()
    return [(int(row), json.loads(text)) for row, text in zip(rows, texts, strict=True) if text]
