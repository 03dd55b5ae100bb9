"""Accesses that moved fewer bytes than they requested.

Problem.   The size of a read is what the program asks for: 1 MiB, of a file that has 6 bytes. Who makes that file again
           needs what was there, and who counts bytes needs what was moved. A write that a signal or a full disk has
           stopped is made again by the program: its size would be written twice.
Algorithm. A POSIX or stdio read whose result is known and smaller than its size gets the result as `moved` in `extra`.
           The size of a POSIX write becomes its result, 0 if it failed. `fread` returns elements: `count` in `extra`
           shows of how many bytes; without it a read of more than none counts as whole.
           MPI-IO's results are error codes: of its accesses only the size is known.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.operations import Role, operation_of

#: Name in `extra`: bytes that a read has moved, where they are fewer than its size.
MOVED = "moved"
_COUNT = r'"count":\s*(?P<count>\d+)'


def _are(table: pa.Table, role: Role, layers: Sequence[str]) -> NDArray[np.bool_]:
    """Return which rows are reads or writes of some layers."""
    pairs = pa.table({name: table[name].cast(pa.string()) for name in ("layer", "operation")})
    known = pairs.group_by(["layer", "operation"]).aggregate([]).to_pylist()
    found = [
        row["operation"]
        for row in known
        if row["layer"] in layers and operation_of(row["layer"], row["operation"]).role is role
    ]
    chosen = pc.and_(
        pc.is_in(pairs["operation"], pa.array(found, pa.string())), pc.is_in(pairs["layer"], pa.array(layers))
    )
    return np.asarray(pc.fill_null(chosen, False).to_numpy(), bool)


def _read_bytes(table: pa.Table, size: NDArray[np.int64], result: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes that reads have moved by their results."""
    blocks = np.asarray(pc.fill_null(pc.equal(table["operation"].cast(pa.string()), "fread"), False).to_numpy(), bool)
    if not blocks.any():
        return result
    counts = pc.struct_field(pc.extract_regex(table["extra"].cast(pa.string()), _COUNT), "count")
    count = pc.fill_null(counts.cast(pa.int64()), 0).to_numpy()
    elements = np.where(count > 0, result * (size // np.maximum(count, 1)), np.where(result > 0, size, result))
    found: NDArray[np.int64] = np.where(blocks, elements, result)
    return found


def moved_of(table: pa.Table) -> NDArray[np.int64]:
    """Return of each row of a trace table the bytes of an access that has moved fewer than its size; of others -1."""
    size, result = (pc.fill_null(table[name], 0).to_numpy() for name in ("size", "result"))
    known = np.asarray(table["result"].is_valid().to_numpy(), bool)
    got = _read_bytes(table, size, result)
    reads = _are(table, Role.READ, ("posix", "stdio")) & known & (got >= 0) & (got < size)
    writes = _are(table, Role.WRITE, ("posix",)) & known & (result < size)
    found: NDArray[np.int64] = np.where(reads, got, np.where(writes, np.maximum(result, 0), -1))
    return found


def with_moved(table: pa.Table) -> pa.Table:
    """Return a trace table (`pioneer.table.SCHEMA`) with the bytes that short accesses moved.

    The `extra` of a read has the number; a write has it as its size.
    """
    moved = moved_of(table)
    if not (moved >= 0).any():
        return table
    short = (moved >= 0) & _are(table, Role.WRITE, ("posix",))
    if short.any():
        sizes = pc.if_else(pa.array(short), pa.array(moved), table["size"])
        place = table.schema.get_field_index("size")
        table = table.set_column(place, table.schema.field("size"), sizes)
    extras = table["extra"].cast(pa.string()).to_pylist()
    for row in np.flatnonzero((moved >= 0) & ~short).tolist():
        extras[row] = json.dumps(parsed(extras[row]) | {MOVED: int(moved[row])}, separators=(",", ":"))
    place = table.schema.get_field_index("extra")
    return table.set_column(place, table.schema.field("extra"), pa.array(extras, pa.string()))


def moved_in_extra(extras: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Return the bytes that `with_moved` has put into the column `extra` of a path; -1 without any."""
    found = pc.extract_regex(extras.cast(pa.string()), rf'"{MOVED}":\s*(?P<bytes>\d+)')
    numbers = pc.fill_null(pc.struct_field(found, "bytes").cast(pa.int64()), -1)
    return np.asarray(numbers.to_numpy(), np.int64)
