"""One chunk of logs to sorted parts on the disk: the work of a worker process.

Problem. Rows must not travel between processes, and a connector of another hand must not spoil the store.

Algorithm. Call the connector; bring its tables to the schema (an absent column is NULL, a foreign one an error). Give
every log the ID that the store has for it, and every run of it one. Sort, add the OST words, and write one part a
table. A part belongs to one chunk; the manifest's owner merges parts into files.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.sources.base import Connector, Converted
from mpiio_ext.analytics.tables.bitmap import width_of, with_words
from mpiio_ext.analytics.tables.parquet import KEYS, TableWriter
from mpiio_ext.analytics.tables.schema import TABLES

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Whole

#: Row group of a part: small, because many parts are merged at a time.
_PART_ROWS = 8192


@dataclasses.dataclass(frozen=True)
class Part:
    """Sorted rows of one table on the disk; `osts`: width of its OST bitmap."""

    table: str
    path: str
    rows: int
    osts: int


@dataclasses.dataclass(frozen=True)
class Done:
    """The outcomes of a chunk's logs: `statuses`, `reasons` and rows by table in the order of the logs; parts."""

    statuses: list[str]
    reasons: list[str]
    rows: Mapping[str, list[int]]
    parts: list[Part]


def log_id_of(kind: str, root: str, path: str) -> int:
    """Return the ID of a log: positive, always the same for the same path."""
    whole = f"{kind}\0{root}/{path}".encode("utf-8", "surrogateescape")
    return (int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "big") >> 1) or 1


def digests(root: str, paths: Sequence[str]) -> list[str]:
    """Return a digest of the contents of every log; ``!reason`` for one that cannot be read, "" for an empty one."""
    out = []
    for path in paths:
        try:
            with Path(root, path).open("rb") as stream:
                found, empty = hashlib.blake2b(digest_size=16), True
                while data := stream.read(1 << 20):
                    found.update(data)
                    empty = False
            out.append("" if empty else found.hexdigest())
        except OSError as error:
            out.append(f"!{error.strerror or error}")
    return out


def _conform(name: str, table: pa.Table) -> pa.Table:
    """Return a connector's table in the columns and types of the schema.

    Raises
    ------
    ValueError
        The table has columns that the schema does not have, values that do not fit, or rows without a key.
    """
    schema = TABLES[name].schema()
    foreign = set(table.column_names) - set(schema.names)
    if foreign:
        raise ValueError(f"the connector gave {name} the unknown column {sorted(foreign)[0]}")
    columns = [
        table.column(field.name) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    whole = pa.table(columns, names=schema.names).cast(schema)
    for key in KEYS[name][:1]:
        if whole.column(key).null_count:
            raise ValueError(f"the connector gave {name} rows without {key}")
    return whole


def _own_ids(name: str, table: pa.Table, converted: Converted, ids: Sequence[int]) -> tuple[pa.Table, list[int]]:
    """Put the store's IDs in the place of the connector's, and count the rows of every log.

    The ID of a log is also that of its run. Where the connector names the log in ``source_log``, as the log has several
    runs, ``log_id`` separates these, and a run's ID is made of the log's and that.
    """
    theirs = pa.array([outcome.log_id for outcome in converted.outcomes], pa.int64())
    number = table.schema.get_field_index("log_id")
    if number < 0:
        if len(ids) > 1:
            raise ValueError(f"{name} has no log_id, so its connector converts one log at a time")
        return table, [table.num_rows]
    source = table.column("source_log")
    place = pc.index_in(pc.coalesce(source, table.column("log_id")), value_set=theirs)
    if place.null_count:
        raise ValueError(f"the connector gave {name} rows of a log that it does not name")
    rows = np.asarray(place, dtype=np.int64)
    used = np.bincount(rows, minlength=len(ids))
    if len(np.unique(np.asarray(theirs)[used > 0])) < (used > 0).sum():
        raise ValueError("the connector gave two logs one log_id")
    own = np.array(ids, dtype=np.int64)[rows]
    runs = np.where(np.asarray(pc.is_valid(source)), _run_ids(own, np.asarray(table.column("log_id"))), own)
    table = table.set_column(number, table.schema.field(number), pa.array(runs))
    number = table.schema.get_field_index("source_log")
    return table.set_column(number, table.schema.field(number), pa.array(own)), used.tolist()


def _run_ids(logs: Whole, runs: Whole) -> Whole:
    """Return positive IDs made of two numbers each; always the same for the same ones (splitmix64)."""
    mixed = logs.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + runs.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    out: Whole = np.maximum(((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64), 1)
    return out


def _write_part(name: str, table: pa.Table, stem: str, osts: int) -> tuple[Part, pa.Array]:
    """Sort, add the OST words, and write; return the part and the log IDs with OSTs beyond any bitmap."""
    table = table.sort_by([(key, "ascending") for key in KEYS[name]])
    beyond = pa.array([], pa.int64())
    width = 0
    if name == "darshan_file":
        width = max(osts, width_of(table))
        table, rows = with_words(table, width)
        beyond = pc.unique(table.column("source_log").take(pa.array(rows)))
    path = f"{stem}-{name}.parquet"
    with TableWriter(Path(path), table.schema, name, group_rows=_PART_ROWS) as writer:
        writer.write(table)
    return Part(name, path, table.num_rows, width), beyond


def convert_chunk(
    connector: Connector, logs: Sequence[str], root: str, ids: Sequence[int], stem: str, osts: int
) -> Done:
    """Convert a chunk of logs to parts.

    Parameters
    ----------
    logs : relative to `root`.
    ids : the store's ID of each log.
    stem : begin of the parts' names.
    osts : width of the OST bitmap at least.

    Raises
    ------
    ValueError
        The connector has not kept its promises.
    """
    converted = connector(logs, root)
    by_log = {outcome.log: outcome for outcome in converted.outcomes}
    if set(by_log) != set(logs) or len(converted.outcomes) != len(logs):
        raise ValueError("the connector did not give each log one outcome")
    converted = Converted(tables=converted.tables, outcomes=[by_log[log] for log in logs])
    statuses = [outcome.status for outcome in converted.outcomes]
    reasons = [outcome.reason for outcome in converted.outcomes]
    rows, parts = {}, []
    for name, table in converted.tables.items():
        whole, counts = _own_ids(name, _conform(name, table), converted, ids)
        rows[name] = counts
        if whole.num_rows:
            part, beyond = _write_part(name, whole, stem, osts)
            parts.append(part)
            for number in (list(ids).index(log_id) for log_id in beyond.to_pylist()):
                statuses[number] = "partial"
                reasons[number] = "; ".join(filter(None, [reasons[number], "an OST number is beyond all bitmaps"]))
    return Done([str(status) for status in statuses], reasons, rows, parts)
