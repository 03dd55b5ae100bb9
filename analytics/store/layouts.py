"""Files with uncommon layouts, a second time and by themselves: for queries of files that differ from most.

Problem. Nearly all files of a site have one of a few layouts, and questions about striping are about the others: less
than one file in a thousand. They lie all over a table that is ordered by job, so that no statistics of row groups show
where they are, and the whole table is read for them.

Algorithm. While a Parquet file is written, rows are set aside whose layout (stripe size, count, offset, components) is
not *common*. A layout becomes common when too many rows are set aside, the most frequent one first; it stays so, and
its rows go. At the end the remaining rows are written to a file beside, with all of their columns; the manifest lists
the common layouts. A condition that no common layout meets is answered from the file beside alone.

Guarantees. Every row of a layout that is not common is in the file beside, once, in the order of the table. The file
beside has at most a twentieth of the rows, and memory holds `_MOST` rows more than a row group. Where layouts are too
different for that (offsets that give the first OST of each file) there is no file beside, and all rows are read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mpiio_ext.analytics.store.manifest import FileEntry, Manifest
from mpiio_ext.analytics.tables.parquet import TableWriter
from mpiio_ext.analytics.tables.schema import LAYOUT
from mpiio_ext.common.files import replacing

#: Rows that are set aside at most, the share of a file's rows, and common layouts of a file.
_MOST, _SHARE, _COMMON = 1 << 15, 20, 32
Layout = tuple[int | None, ...]


class Split:
    """Sets aside the rows of one file that do not have a common layout."""

    def __init__(self) -> None:
        self.common: list[Layout] = []
        self._aside: Any = None
        self._given_up = False

    def take(self, rows: pa.Table) -> None:
        """Look at the next rows of the file, an Arrow table; they may lack columns of layouts."""
        if self._given_up or not rows.num_rows:
            return
        for layout in self.common:
            rows = _without(rows, layout)
        self._aside = rows if self._aside is None else pa.concat_tables([self._aside, rows])
        if self._aside.num_rows > _MOST:
            # To the half, so that not each row group begins this anew; the copy lets go of the row group.
            self._shrink(_MOST // 2)
            self._aside = self._aside.take(pa.array(np.arange(self._aside.num_rows)))

    def _shrink(self, most: int) -> None:
        while self._aside.num_rows > most:
            if len(self.common) == _COMMON:
                self._given_up, self.common, self._aside = True, [], self._aside.slice(0, 0)
                return
            layout = _most_frequent(self._aside)
            self.common.append(layout)
            self._aside = _without(self._aside, layout)

    def finish(self, rows: int) -> pa.Table | None:
        """Return the rows for the file beside; `rows`: of the whole file."""
        if self._aside is not None:
            self._shrink(rows // _SHARE)
        return self._aside


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return rows.column(name) if name in rows.column_names else pa.nulls(rows.num_rows, pa.int64())


def _without(rows: pa.Table, layout: Layout) -> pa.Table:
    """Return the rows that do not have a layout."""
    differs = np.zeros(rows.num_rows, dtype=bool)
    for name, value in zip(LAYOUT, layout, strict=True):
        column = _column(rows, name)
        other = pc.is_valid(column) if value is None else pc.fill_null(pc.not_equal(column, value), True)
        differs |= np.asarray(other)
    return rows if differs.all() else rows.filter(pa.array(differs))


def _most_frequent(rows: pa.Table) -> Layout:
    columns = pa.table({name: _column(rows, name) for name in LAYOUT})
    counts = columns.group_by(list(LAYOUT), use_threads=False).aggregate([([], "count_all")])
    row = counts.slice(int(np.argmax(np.asarray(counts["count_all"]))), 1)
    return tuple(row[name][0].as_py() for name in LAYOUT)


def _aside(path: Path, table: str) -> Path:
    """Return the place of the rows set aside of a file: outside the folder of the table, so that they count once."""
    parts = list(path.parts)
    if table not in parts:
        return path.parent / "uncommon" / path.name
    at = len(parts) - 1 - parts[::-1].index(table)
    return Path(*parts[:at], f"{table}-uncommon", *parts[at + 1 :])


def split_of(
    split: Split, entry: FileEntry, path: Path, schema: pa.Schema, prepare: Callable[[Path], None] | None = None
) -> FileEntry:
    """Write the file beside a file, if it has rows, and return the file's entry with its layouts.

    Parameters
    ----------
    split : that has seen all rows of the file.
    path : of the file.
    prepare : called with the name of the file beside before it is written.
    """
    rows = split.finish(entry.rows)
    if rows is None:
        return entry
    place = _aside(path, entry.table)
    if rows.num_rows:
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as part:
            if prepare is not None:
                prepare(part)
            with TableWriter(part, schema, entry.table) as writer:
                writer.write(rows)
    return dataclasses.replace(entry, layouts=tuple(split.common), uncommon=str(place) if rows.num_rows else "")


def with_layouts(folder: Path, manifest: Manifest) -> Manifest:
    """Return a state of the store in which every file of ``darshan_file`` lists its layouts.

    Stores that were made before there were files beside get them so, once; the caller makes the state count.
    """
    files = list(manifest.files)
    for number, entry in enumerate(files):
        if entry.table == "darshan_file" and entry.layouts is None:
            split = Split()
            with pq.ParquetFile(folder / entry.path, memory_map=True) as file:
                for group in range(file.num_row_groups):
                    split.take(file.read_row_group(group, use_threads=False))
                schema = file.schema_arrow
            found = split_of(split, entry, folder / entry.path, schema)
            if found.uncommon and not Path(entry.path).is_absolute():
                found = dataclasses.replace(found, uncommon=str(Path(found.uncommon).relative_to(folder)))
            files[number] = found
    return manifest if files == list(manifest.files) else dataclasses.replace(manifest, files=tuple(files))
