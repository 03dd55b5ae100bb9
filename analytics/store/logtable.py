"""The table of logs: the facts of every log, and its outcome. Compared with a folder's contents in one go.

Problem. A store knows 10^5 to 10^7 logs. Whether a log is new, has changed or is gone must not cost a Python object
each.

Algorithm. Scan and manifest are Arrow tables. The key of a log is its kind and absolute path. One hash join of the keys
gives the place of every scanned log in the manifest. Sizes and times are compared as arrays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mpiio_ext.analytics.tables.schema import TABLES
from mpiio_ext.common.files import replacing

#: What a scan sees of a log. ``date`` is ``YYYY-MM-DD`` or empty; ``dated`` names its source: ``path``, ``start`` (of
#: the job, in the log), ``change`` (of the file), or ``none``; ``root`` is the folder that ``path`` is relative to.
SEEN = pa.schema(
    [
        ("kind", pa.string()),
        ("root", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("date", pa.string()),
        ("dated", pa.string()),
    ]
)

#: What the manifest knows of a log. ``status``: whole, partial, conflict (with another log of LMT), skipped, duplicate,
#: unreadable, or outside (only its date was read); ``reason``: why, for people; ``same_as``: the log with the
#: same contents; ``log_id``: ``source_log`` of its rows; ``commit``: of its rows (`FileEntry.commits`); ``vanished``:
#: not found any more (its rows stay); ``rows_TABLE``: rows that it gave.
LOGS = pa.schema(
    [
        *SEEN,
        ("period", pa.string()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("same_as", pa.string()),
        ("log_id", pa.int64()),
        ("digest", pa.string()),
        ("commit", pa.int64()),
        ("vanished", pa.bool_()),
        *((f"rows_{name}", pa.int64()) for name in TABLES),
    ]
)


def keys_of(logs: pa.Table) -> pa.ChunkedArray:
    """Return the key of every log: kind and absolute path."""
    root = pc.binary_join_element_wise(logs.column("kind"), logs.column("root"), "\0")
    return pc.binary_join_element_wise(root, logs.column("path"), "/")


def read_logs(folder: Path, segments: Sequence[str]) -> pa.Table:
    """Return the table of logs of a store; the latest row of each log."""
    if not segments:
        return LOGS.empty_table()
    tables = [pq.read_table(folder / name, schema=LOGS, memory_map=True) for name in segments]
    whole = pa.concat_tables(tables)
    if len(tables) == 1:
        return whole
    keyed = pa.table({"key": keys_of(whole), "row": np.arange(whole.num_rows)})
    last = keyed.group_by("key").aggregate([("row", "max")]).column("row_max")
    return whole.take(pa.array(np.sort(np.asarray(last))))


def write_logs(folder: Path, name: str, logs: pa.Table) -> None:
    """Write a segment of the table of logs."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        pq.write_table(logs.cast(LOGS), part, compression="ZSTD", compression_level=1)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How a scan differs from the manifest: row numbers of each.

    Attributes
    ----------
    new : numpy.ndarray
        Rows of the scan that the manifest does not know.
    changed, before : numpy.ndarray
        Rows of the scan whose size or time differ, or that could not be read or were outside, and those of the
        manifest for them.
    vanished : numpy.ndarray
        Rows of the manifest that the scan lacks and that were there before.
    returned : numpy.ndarray
        Rows of the manifest that had vanished and are there again, unchanged.
    known : logs that are unchanged.
    """

    new: Any
    changed: Any
    before: Any
    vanished: Any
    returned: Any
    known: int


def compare(seen: pa.Table, logs: pa.Table) -> Comparison:
    """Compare a scan with the table of logs."""
    place = pc.index_in(keys_of(seen), value_set=keys_of(logs))
    known = np.asarray(pc.is_valid(place))
    rows = np.flatnonzero(known)
    before = np.asarray(place.drop_null(), dtype=np.int64)
    differs = np.zeros(len(rows), dtype=bool)
    for name in ("size", "mtime_ns"):
        differs |= np.asarray(seen.column(name))[rows] != np.asarray(logs.column(name))[before]
    unreadable = np.asarray(pc.equal(logs.column("status"), "unreadable"))
    outside = np.asarray(pc.equal(logs.column("status"), "outside"))
    gone = np.asarray(pc.fill_null(logs.column("vanished"), False))
    differs |= unreadable[before] | outside[before]
    there = np.zeros(logs.num_rows, dtype=bool)
    there[before] = True
    return Comparison(
        new=np.flatnonzero(~known),
        changed=rows[differs],
        before=before[differs],
        vanished=np.flatnonzero(~there & ~gone & ~outside),
        returned=before[gone[before] & ~differs],
        known=int((~differs).sum()),
    )
