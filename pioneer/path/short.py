"""Reads that moved less than they asked for: the path keeps both.

Problem.   The size of a read is what the program asks for: 1 MiB, of a file that has 6 bytes. Who makes that file again
           needs what was there, and who counts bytes needs what was moved.
Algorithm. A POSIX or stdio read whose result is known and smaller than its size gets the result as `moved` in `extra`.
           MPI-IO's results are error codes: of its reads only the size is known.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.operations import Role, operation_of

#: Name in `extra`: bytes that a read has moved, where they are fewer than its size.
MOVED = "moved"
_LAYERS = ("posix", "stdio")


def _is_read(table: pa.Table) -> NDArray[np.bool_]:
    """Return which rows are reads of POSIX or stdio."""
    pairs = pa.table({name: table[name].cast(pa.string()) for name in ("layer", "operation")})
    known = pairs.group_by(["layer", "operation"]).aggregate([]).to_pylist()
    reads = [row["operation"] for row in known if row["layer"] in _LAYERS
             and operation_of(row["layer"], row["operation"]).role is Role.READ]  # fmt: skip
    chosen = pc.and_(pc.is_in(pairs["operation"], pa.array(reads, pa.string())),
                     pc.is_in(pairs["layer"], pa.array(_LAYERS)))  # fmt: skip
    return np.asarray(pc.fill_null(chosen, False).to_numpy(), bool)


def moved_of(table: pa.Table) -> NDArray[np.int64]:
    """Return of each row of a trace table the bytes of a read that has moved fewer than its size; of others -1."""
    result = pc.fill_null(table["result"], -1).to_numpy()
    short = _is_read(table) & (result >= 0) & (result < pc.fill_null(table["size"], 0).to_numpy())
    found: NDArray[np.int64] = np.where(short, result, -1)
    return found


def with_moved(table: pa.Table) -> pa.Table:
    """Return a trace table (`pioneer.table.SCHEMA`) whose short reads say in `extra` how many bytes they have moved."""
    moved = moved_of(table)
    rows = np.flatnonzero(moved >= 0)
    if not rows.size:
        return table
    extras = table["extra"].cast(pa.string()).to_pylist()
    for row in rows.tolist():
        extras[row] = json.dumps(parsed(extras[row]) | {MOVED: int(moved[row])}, separators=(",", ":"))
    place = table.schema.get_field_index("extra")
    return table.set_column(place, table.schema.field("extra"), pa.array(extras, pa.string()))


def moved_in_extra(extras: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Return the bytes that `with_moved` has put into the column `extra` of a path; -1 where there are none."""
    found = pc.extract_regex(extras.cast(pa.string()), rf'"{MOVED}":\s*(?P<bytes>\d+)')
    numbers = pc.fill_null(pc.struct_field(found, "bytes").cast(pa.int64()), -1)
    return np.asarray(numbers.to_numpy(), np.int64)
