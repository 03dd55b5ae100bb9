"""How tables lie in Parquet files: compression, row groups, statistics. The same for the store and for placed tables.

Problem. Files must be small, quick to read on DuckDB and Spark, and must let both skip what a query does not need.

Conventions
-----------
- Numbers are compressed with Snappy, text with zstd. (LZ4_RAW is out: Spark's reader fails at dictionary pages beyond
  8 KiB, a bug of parquet-java.)
- A row group has at most `GROUP_ROWS` rows and about `GROUP_BYTES` bytes of Arrow memory, with statistics. Rows come
  sorted by `KEYS`, so that the range of the first key prunes row groups.
- A file holds at most `FILE_ROWS` rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

#: Rows of a file, rows of a row group, and bytes of a row group in memory, at most.
FILE_ROWS = 4 << 20
GROUP_ROWS = 1 << 20
GROUP_BYTES = 128 << 20

#: Sort keys of a table's rows; the first is the key whose range the manifest has.
KEYS: dict[str, tuple[str, ...]] = {
    "darshan_job": ("job_id", "log_id"),
    "darshan_file": ("job_id", "log_id"),
    "slurm": ("job_id", "submit_time", "start_time"),
    "lmt": ("time", "ost", "ost_name"),
    "runs": ("job_id", "log_id"),
}


def key_of(table: str) -> str:
    """Return the name of the column whose range prunes the files of a table."""
    return KEYS[table][0]


def writer_options(schema: pa.Schema) -> dict[str, Any]:
    """Return the options of ``pyarrow.parquet.ParquetWriter`` for a table of the store."""
    codecs = {}
    for field in schema:
        listed = pa.types.is_list(field.type)
        kind = field.type.value_type if listed else field.type
        name = f"{field.name}.list.element" if listed else field.name
        codecs[name] = "ZSTD" if pa.types.is_string(kind) else "SNAPPY"
    return {"compression": codecs, "write_statistics": True, "version": "2.6", "data_page_version": "1.0"}


class TableWriter:
    """Write sorted rows to one Parquet file, row group by row group; at most one row group is in memory.

    Parameters
    ----------
    table : name of the table: says which column is the key.
    group_rows, group_bytes : largest row group.
    seen : called with the rows of each row group.

    Attributes
    ----------
    rows : int
        Rows taken so far.
    low, high : int
        Smallest and largest key, floored.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        table: str,
        *,
        group_rows: int = GROUP_ROWS,
        group_bytes: int = GROUP_BYTES,
        seen: Callable[[pa.Table], None] | None = None,
    ) -> None:
        self._schema = schema
        self._seen = seen
        self._key = key_of(table)
        self._writer = pq.ParquetWriter(path, schema, **writer_options(schema))
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._group_rows, self._group_bytes = group_rows, group_bytes
        self.rows = 0
        self.low, self.high = 0, 0

    def write(self, rows: pa.Table) -> None:
        """Append an Arrow table of the schema, behind all rows before by key."""
        if not rows.num_rows:
            return
        keys = rows.column(self._key)
        if not self.rows:
            self.low = int(keys[0].as_py() // 1)
        self.high = int(keys[-1].as_py() // 1)
        self.rows += rows.num_rows
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= self._group_rows or self._waiting_bytes >= self._group_bytes:
            self._flush(last=False)

    def _flush(self, *, last: bool) -> None:
        if not self._waiting_rows:
            return
        whole = pa.concat_tables(self._waiting)
        share = max(1, self._waiting_rows * self._group_bytes // max(1, self._waiting_bytes))
        size = min(self._group_rows, share)
        at = 0
        while whole.num_rows - at >= size or (last and at < whole.num_rows):
            self._writer.write_table(whole.slice(at, size), row_group_size=size)
            if self._seen is not None:
                self._seen(whole.slice(at, size))
            at += size
        rest = whole.slice(at)
        self._waiting = [rest] if rest.num_rows else []
        self._waiting_rows, self._waiting_bytes = rest.num_rows, rest.nbytes

    def close(self) -> None:
        """Write the waiting rows, and the footer."""
        self._flush(last=True)
        self._writer.close()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._writer.close()
