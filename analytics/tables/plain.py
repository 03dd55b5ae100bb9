"""Arrow columns of Python's values, and arrays of NumPy of Arrow columns, without pandas.

Problem. `pyarrow.array`, `pyarrow.scalar`, `to_numpy` and `fill_null` import pandas where it is installed. That takes
longer than the rest of a command that shows one job. So do `filter`, `take` and `pyarrow.compute.equal` with values of
Python.

Algorithm. Columns are made of buffers. Arrays are taken through DLPack, which knows neither NULL nor flags: the known
values are taken apart, and flags as bytes.

Guarantees. The same values and types as PyArrow's own functions give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mpiio_ext.analytics.tables.arrays import Flags, Numbers


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return a table of a schema without rows."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema)


def _made(kind: pa.DataType, valid: Flags, *buffers: bytes | npt.NDArray[Any]) -> pa.Array:
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(valid), [mask, *map(pa.py_buffer, buffers)])


def column_of_array(values: npt.NDArray[Any], valid: Flags | None = None) -> pa.Array:
    """Return an array of flags or numbers as a column; NULL where not valid, by default where NaN."""
    valid = ~np.isnan(values) if valid is None else valid
    if values.dtype.kind == "b":
        return _made(pa.bool_(), valid, np.packbits(values, bitorder="little"))
    return _made(pa.from_numpy_dtype(values.dtype), valid, np.ascontiguousarray(values))


def column_of(values: Sequence[Any]) -> pa.Array:
    """Return values as a column; NULL where None. Numbers, and texts of up to 2 GiB, do without pandas.

    Raises
    ------
    pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError
        The values have no common type.
    """
    kinds = {type(value) for value in values if value is not None}
    valid = np.array([value is not None for value in values], np.bool_)
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {int} or kinds == {float} or kinds == {int, float}:
        dtype = np.dtype(np.int64 if kinds == {int} else np.float64)
        found = np.array([0 if value is None else value for value in values], dtype)
        return _made(pa.from_numpy_dtype(dtype), valid, found)
    if kinds == {str}:
        parts = [(value or "").encode() for value in values]
        ends = np.cumsum([0, *map(len, parts)])
        if ends[-1] <= np.iinfo(np.int32).max:
            return _made(pa.string(), valid, ends.astype(np.int32), b"".join(parts))
    return pa.array(values)


def scalar_of(value: int | float | str) -> pa.Scalar:
    """Return a value as Arrow has it."""
    return column_of([value])[0]


def combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    if isinstance(column, pa.Array):
        return column
    return column.combine_chunks() if column.num_chunks else pa.nulls(0, column.type)


def flags_of(column: pa.Array | pa.ChunkedArray) -> Flags:
    """Return a column of flags, none of them NULL."""
    return np.from_dlpack(combined(column.cast(pa.uint8()))).astype(np.bool_)


def values_of(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column as `to_numpy` does; whole numbers, none of them NULL, do without pandas."""
    whole = pa.types.is_integer(column.type) and not column.null_count
    return np.from_dlpack(combined(column)) if whole else column.to_numpy(zero_copy_only=False)


def numbers_of(column: pa.Array | pa.ChunkedArray) -> Numbers:
    """Return a column of numbers as float64; NaN where NULL."""
    column = column.cast(pa.float64(), safe=False)
    if not column.null_count:
        return np.array(np.from_dlpack(combined(column)))
    out = np.full(len(column), np.nan)
    out[flags_of(column.is_valid())] = np.from_dlpack(combined(column.drop_null()))
    return out
